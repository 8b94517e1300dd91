"""Rigid fits against known transforms, and what they refuse."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from add.errors import InputError
from add.mocap import Recording, register, rigid_fit

POINTS = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.02, 0.07, 0.0], [0.03, 0.01, 0.05]])


@pytest.fixture
def rng():
    return np.random.default_rng(20240)


@pytest.mark.parametrize("n", [3, 4])
@pytest.mark.parametrize("angle", [0.0, 1.0, np.pi])
def test_recovers_a_rigid_motion(rng, n, angle):
    axis = rng.normal(size=3)
    R = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
    t = rng.normal(size=3)
    fit = rigid_fit(POINTS[:n], POINTS[:n] @ R.T + t)
    np.testing.assert_allclose(fit.R, R, atol=1e-13)
    np.testing.assert_allclose(fit.t, t, atol=1e-13)
    assert fit.rms < 1e-14
    np.testing.assert_allclose(fit.apply(POINTS), POINTS @ R.T + t, atol=1e-13)


def test_is_the_minimum(rng):
    target = POINTS + 0.004 * rng.normal(size=POINTS.shape)
    weights = np.array([1.0, 2.0, 0.5, 3.0])
    fit = rigid_fit(POINTS, target, weights)

    def cost(rotvec, shift):
        moved = POINTS @ (Rotation.from_rotvec(rotvec).as_matrix() @ fit.R).T + fit.t + shift
        return weights @ ((moved - target) ** 2).sum(axis=1)

    best = cost(np.zeros(3), np.zeros(3))
    assert fit.rms == pytest.approx(np.sqrt(best / weights.sum()), rel=1e-12)
    np.testing.assert_allclose(fit.residuals, np.linalg.norm(fit.apply(POINTS) - target, axis=1))
    for _ in range(50):
        assert cost(1e-3 * rng.normal(size=3), 1e-5 * rng.normal(size=3)) > best


def test_a_mirrored_set_gets_a_rotation_and_a_residual():
    fit = rigid_fit(POINTS, POINTS * [1.0, 1.0, -1.0])
    assert np.linalg.det(fit.R) == pytest.approx(1.0)
    np.testing.assert_allclose(fit.R @ fit.R.T, np.eye(3), atol=1e-14)
    assert fit.rms > 1e-3


def test_zero_weight_leaves_a_point_out():
    target = POINTS.copy()
    target[3] += 1.0
    fit = rigid_fit(POINTS, target, [1.0, 1.0, 1.0, 0.0])
    assert fit.rms < 1e-14
    assert fit.residuals[3] == pytest.approx(np.sqrt(3.0))


LINE = np.outer([0.0, 1.0, 2.0, 3.5], [0.1, 0.2, -0.1])
TETRAHEDRON = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])


@pytest.mark.parametrize(
    ("source", "target", "weights", "message"),
    [
        (POINTS[:2], POINTS[:2], None, "too few points"),
        (POINTS, POINTS, [1.0, 1.0, 0.0, 0.0], "too few points"),
        (LINE, POINTS, None, "source points of a rigid fit lie on one line (found 4 points with spreads"),
        (POINTS, LINE, None, "target points of a rigid fit lie on one line"),
        (np.zeros((3, 3)), POINTS[:3], None, "lie on one line"),
        (POINTS, POINTS[:3], None, "differ in number (found 4 and 3 points"),
        (POINTS[:, :2], POINTS[:, :2], None, "shape (4, 2)"),
        (POINTS, POINTS, [1.0, 1.0], "bad weights"),
        (POINTS, POINTS, [1.0, 1.0, 1.0, -1.0], "bad weights"),
        (POINTS * [[1.0], [np.nan], [1.0], [1.0]], POINTS, None, "point 1: a source point"),
        (TETRAHEDRON, -TETRAHEDRON, None, "several rotations"),
    ],
)
def test_refuses(source, target, weights, message):
    with pytest.raises(InputError) as error:
        rigid_fit(source, target, weights)
    assert message in str(error.value)


NAMES = ("Base-1", "Base-2", "Base-3", "Tip-1")
MODEL = {name: POINTS[k] for k, name in enumerate(NAMES[:3])}


@pytest.fixture
def recorded(rng):
    """(recording, R, t): markers at rest until 0.05 s, then the tip moves; R, t map it to the model frame."""
    R, t = Rotation.from_rotvec([0.3, -2.0, 0.7]).as_matrix(), np.array([0.4, -0.2, 1.0])
    times = np.arange(20) / 100.0
    model = np.broadcast_to(POINTS, (20, 4, 3)).copy()
    model[6:, 3] += 0.01 * (times[6:, None] - 0.05)
    return Recording(NAMES, times, (model - t) @ R, np.ones((20, 4), dtype=bool), "made.csv"), R, t


def test_register_moves_the_whole_recording(recorded):
    recording, R, t = recorded
    moved, fit = register(recording, MODEL, window=(0.0, 0.05))
    np.testing.assert_allclose(fit.R, R, atol=1e-13)
    np.testing.assert_allclose(fit.t, t, atol=1e-13)
    np.testing.assert_allclose(moved.positions[0], POINTS, atol=1e-13)
    np.testing.assert_allclose(moved.positions[-1, 3], POINTS[3] + 0.01 * 0.14, atol=1e-13)
    assert moved.names == recording.names


def test_register_uses_valid_frames_of_the_window_only(recorded):
    recording, R, _ = recorded
    spoilt = recording.positions.copy()
    spoilt[10:, 0] += 1.0  # outside the window
    other = Recording(NAMES, recording.times, spoilt, recording.valid).mask(["Base-2"], 0.0, 0.04)
    _, fit = register(other, MODEL, window=(0.0, 0.05))
    np.testing.assert_allclose(fit.R, R, atol=1e-13)


def test_register_refuses(recorded):
    recording = recorded[0]
    cases = [
        ({**MODEL, "base 3": POINTS[3]}, None, "nearest 'Base-3', 'Base-2', 'Base-1'; available 'Base-1', 'Base-2'"),
        (MODEL, (5.0, 6.0), "no valid frame of 'Base-1', 'Base-2', 'Base-3'"),
        (MODEL, (1.0, 0.0), "window of a registration is empty"),
        ({"Base-1": POINTS[0], "Base-2": POINTS[1]}, None, "too few points"),
        ({}, None, "too few points"),
        ({**MODEL, "Base-2": [0.0, 1.0]}, None, "bad model position of marker 'Base-2'"),
    ]
    for model, window, message in cases:
        with pytest.raises(InputError) as error:
            register(recording, model, window=window)
        assert message in str(error.value)
    with pytest.raises(InputError, match=r"made.csv: no valid frame of 'Base-3'"):
        register(recording.mask(["Base-3"], 0.0, 0.1), MODEL, window=(0.0, 0.05))
