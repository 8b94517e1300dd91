"""Real recordings of tossed bodies and swinging pendulums: read them, and find what physics says."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from add.geometry import box_points
from add.mocap import read_angle_csv, read_pose_csv

HINGE, CENTRE = np.array([-0.035, 0.06, 0.0]), np.array([0.035, 0.0, 0.0])


@pytest.fixture(scope="module")
def rigid(data_root):
    root = data_root / "rigid"
    if not root.is_dir():
        pytest.skip(f"no recordings at {root} (set ADD_DATA)")
    return root


def takes(folder):
    paths = sorted(folder.glob("*.csv"))
    if not paths:
        pytest.skip(f"no recordings at {folder} (set ADD_DATA)")
    return paths


def test_cubes(rigid):
    """The cube of 0.1048 m, all of whose lengths come out 2 % short: g is 9.61 and it rests at 0.0512 m."""
    gravity, rest, turning = [], [], []
    for path in takes(rigid / "csv" / "cube_contactnets"):
        toss = read_pose_csv(path)
        corners = toss.markers(box_points(3 * [0.1048], np.inf))
        lowest = corners.positions[:, :, 2].min(axis=1)
        assert -0.006 < lowest.min() < -0.001
        rest.append(toss.position[-20:, 2].mean())
        free = np.argmax(lowest < 0.01)
        if free >= 15:
            gravity.append(-2.0 * np.polyfit(toss.times[:free], toss.position[:free, 2], 2)[0])
        turns = Rotation.from_matrix(toss.rotations[1:] @ np.swapaxes(toss.rotations[:-1], 1, 2)).as_rotvec()
        spin = (toss.angular_velocity[1:] + toss.angular_velocity[:-1]) / 2.0
        turning.append(np.sqrt(np.mean((turns / np.diff(toss.times)[:, None] - spin) ** 2)))
    assert np.median(gravity) == pytest.approx(9.61, abs=0.03)
    assert np.median(rest) == pytest.approx(0.0512, abs=0.0004)
    assert np.median(turning) < 0.6  # rad/s; 3 where omega is taken for that of the world


def test_elbows(rigid):
    """Box 2 hangs on a hinge about y, and neither box goes below the ground."""
    for path in takes(rigid / "csv" / "elbow_dair_pll"):
        toss = read_pose_csv(path)
        assert set(toss.extra) == {"joint_rad", "joint_rad_s"}
        assert toss.n_frames == 121
        corners = box_points([0.1, 0.05, 0.05], np.inf)
        hinge = Rotation.from_rotvec(toss.extra["joint_rad"][:, None] * [0.0, 1.0, 0.0]).as_matrix()
        second = np.einsum("fij,mj->fmi", hinge, corners + CENTRE) + HINGE
        second = np.einsum("fij,fmj->fmi", toss.rotations, second) + toss.position[:, None]
        assert toss.markers(corners).positions[..., 2].min() > -0.015
        assert second[..., 2].min() > -0.015
        assert second[-10:, :, 2].min() > -0.001


def test_pendulums(rigid):
    """Angles are absolute, 0 upright: swings follow from their own first frame and the parameters of the authors."""
    m1, m2, a1, a2, l1, i1, i2 = 0.09384, 0.13760, 0.10857, 0.11678, 0.17272, 4.3753e-4, 1.2688e-3

    def double(_, y):
        (t1, t2), w, g = y[:2], y[2:], 9.8086
        c, s = m2 * l1 * a2 * np.cos(t1 - t2), m2 * l1 * a2 * np.sin(t1 - t2)
        mass = [[i1 + m1 * a1**2 + m2 * l1**2, c], [c, i2 + m2 * a2**2]]
        force = [-s * w[1] ** 2 + (m1 * a1 + m2 * l1) * g * np.sin(t1), s * w[0] ** 2 + m2 * a2 * g * np.sin(t2)]
        return [*w, *np.linalg.solve(mass, force - np.array([2.3714e-4, 1e-5]) * w)]

    def single(_, y):
        i, m, a = 1.0912e-4, 0.147585, 0.147755
        return [y[1], (m * a * 9.81 * np.sin(y[0]) - 2.239e-4 * y[1]) / (i + m * a**2)]

    for folder, rhs, n_frames, until in (("single", single, 4584, 3.0), ("double", double, 1334, 2.0)):
        for path in takes(rigid / "pendulum_mit" / folder):
            swing = read_angle_csv(path)
            assert swing.n_frames == n_frames
            start = np.concatenate([swing.angles[0], swing.rates[0]])
            swing = swing.crop(0.0, until)
            found = solve_ivp(rhs, [0.0, until], start, t_eval=swing.times, rtol=1e-8, atol=1e-8).y
            n = len(swing.names)
            assert np.sqrt(np.mean((found[:n].T - swing.angles) ** 2)) < 0.06
