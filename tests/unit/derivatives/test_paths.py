"""Lengths of paths around spheres and cylinders: against closed forms, their slopes against differences."""

import numpy as np
import pytest

from add.kernels.paths import CYLINDER, SPHERE, STRAIGHT, path_length


def length(q, kind, side, radius=0.4, weight=0.7):
    segments = np.array([[kind, 0, 1, 2, 3 if kind == CYLINDER else -1, 4 if side else -1]])
    g, bent = np.empty(15), np.empty((15, 15))
    return path_length(q, 3 * np.arange(5), segments, np.array([[weight, radius]]), g, bent), g, bent


@pytest.mark.parametrize("kind", [SPHERE, CYLINDER])
@pytest.mark.parametrize("side", [False, True])
def test_two_tangents_and_an_arc(kind, side):
    """Tangents of length 1; along a cylinder the way of a helix. A point of the side asks for the arc past it."""
    r, along, arc = 0.4, 0.5 * (kind == CYLINDER), np.pi / 2 if side else np.pi / 6
    c, s = np.cos(arc), np.sin(arc)
    q = np.array([r, -1, 0, r * c - s, r * s + c, along, 0, 0, 0, 0, 0, 1, 1, 1, 0])
    assert length(q, kind, side, r, 1.0)[0] == pytest.approx(np.hypot(2 + r * arc, along), rel=1e-12)
    straight = np.linalg.norm(q[:3] - q[3:6])
    assert (length(q, kind, False, r, 1.0)[0] == pytest.approx(straight, rel=1e-12)) == side
    q[:3] = 0.1, 0.1, 0.0  # an end inside
    assert length(q, kind, side, r, 1.0)[0] == pytest.approx(np.linalg.norm(q[:3] - q[3:6]), rel=1e-14)


def test_all_around(rng):
    """An end close to the surface, whose tangent is too short to cross the other one: a turn more, as MuJoCo's."""
    r, phi, A, B = 0.2145, 0.492, 0.248, 0.7216
    q = np.array([A, 0, 0, B * np.cos(phi), B * np.sin(phi), 0, 0, 0, 0, 0, 0, 1, -0.13, -0.27, 0])
    tangents = np.sqrt(A * A - r * r) + np.sqrt(B * B - r * r)
    expected = tangents + r * (phi + 2 * np.pi - np.arccos(r / A) - np.arccos(r / B))
    assert length(q, CYLINDER, True, r, 1.0)[0] == pytest.approx(expected, rel=1e-12)
    l, g, bent = length(q, SPHERE, True, r, 1.0)
    assert l == pytest.approx(expected, rel=1e-12)
    along, h = 0.1 * rng.normal(size=15), 1e-6
    more, less = (length(q + sign * h * along, SPHERE, True, r, 1.0) for sign in (1, -1))
    assert g @ along == pytest.approx((more[0] - less[0]) / (2 * h), abs=1e-7)
    assert bent @ along == pytest.approx((more[1] - less[1]) / (2 * h), abs=1e-5)


def test_sides_are_those_that_mujoco_chooses(rng):
    """Ends, axes and points of the side at random, these outside of the sphere or cylinder."""
    mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")

    def words(x):
        return " ".join(map(repr, map(float, x)))

    wound = 0
    for k in range(300):
        kind, r, side = (SPHERE, CYLINDER)[k % 2], rng.uniform(0.05, 0.3), k % 3 > 0
        x = rng.normal(size=(5, 3)) * rng.choice([0.2, 0.5])
        x[2] *= 0.2
        x[3] = x[2] + x[3] / np.linalg.norm(x[3])
        x[4] = x[2] + (x[4] - x[2]) * max(1.0, 1.01 * r / np.linalg.norm(x[4] - x[2]))
        sites = "".join(f'<site name="{name}" pos="{words(x[n])}"/>' for name, n in (("a", 0), ("b", 1), ("s", 4)))
        shape = f'type="cylinder" size="{r!r} 1" zaxis="{words(x[3] - x[2])}"' if kind == CYLINDER else f'size="{r!r}"'
        wrap = '<geom geom="g" sidesite="s"/>' if side else '<geom geom="g"/>'
        model = mujoco.MjModel.from_xml_string(
            f'<mujoco><worldbody><body><joint/><geom size="1"/></body>{sites}<geom name="g" {shape} '
            f'pos="{words(x[2])}"/></worldbody><tendon><spatial><site site="a"/>{wrap}<site site="b"/></spatial>'
            "</tendon></mujoco>"
        )
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        assert length(x.ravel(), kind, side, r, 1.0)[0] == pytest.approx(data.ten_length[0], rel=1e-10), k
        wound += bool(data.ten_wrapnum[0] == 4)
    assert 50 < wound < 250


@pytest.mark.parametrize("side", [False, True])
@pytest.mark.parametrize("kind", [STRAIGHT, SPHERE, CYLINDER])
def test_slopes(kind, side, rng):
    """By all points, at places where the path touches and where not, but for those at a switch."""
    counts, h = [0, 0], 1e-6
    for _ in range(120):
        q = rng.normal(size=15)
        q[9:12] = q[6:9] + q[9:12] / np.linalg.norm(q[9:12])
        l, g, bent = length(q, kind, side)
        ends = [[length(q + sign * h * unit, kind, side) for unit in np.eye(15)] for sign in (1, -1)]
        touches = abs(l - 0.7 * np.linalg.norm(q[:3] - q[3:6])) > 1e-4
        if max(abs(found[0] - l) for part in ends for found in part) > 1e-4 or np.abs(bent).max() > 30.0:
            continue  # across a switch, or next to the surface
        slopes = np.array([(a[0] - b[0]) / (2 * h) for a, b in zip(*ends, strict=True)])
        twice = np.array([(a[1] - b[1]) / (2 * h) for a, b in zip(*ends, strict=True)])
        assert g == pytest.approx(slopes, abs=1e-7)
        assert bent == pytest.approx(twice, abs=2e-5 * max(1.0, np.abs(bent).max()))
        counts[int(touches)] += 1
    assert counts[0] > 30 and (counts[1] > 0) == (kind != STRAIGHT)
