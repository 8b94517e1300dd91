"""Rotations, their inverse and their derivatives against differences and power series."""

import numpy as np
import pytest
from support.angles import ANGLES

from add.kernels.rotation import left_jacobian, rotation_matrix, rotation_vector, skew


def _vee(m: np.ndarray) -> np.ndarray:
    return np.array([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]) / 2.0


# The series of the rotation end at 1e-4, those of the Jacobian at 1e-2.
@pytest.mark.parametrize("angle", [*ANGLES, 0.99e-4, 1.01e-4, 0.99e-2, 1.01e-2])
def test_rotation(angle: float, rng: np.random.Generator) -> None:
    """Orthogonal; d/de exp([w + e d]) exp([w])^T = [J_l d]."""
    axis = rng.normal(size=3)
    w = angle * axis / np.linalg.norm(axis)
    r = rotation_matrix(w)
    np.testing.assert_allclose(r @ r.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(r) == pytest.approx(1.0, abs=1e-14)
    h = 2e-3
    columns = []
    for d in np.eye(3):
        near = rotation_matrix(w + h * d) - rotation_matrix(w - h * d)
        far = rotation_matrix(w + 2 * h * d) - rotation_matrix(w - 2 * h * d)
        spin = (8.0 * near - far) / (12.0 * h) @ r.T
        np.testing.assert_allclose(spin, -spin.T, atol=1e-9)
        columns.append(_vee(spin))
    np.testing.assert_allclose(left_jacobian(w), np.stack(columns, axis=1), atol=1e-9)


@pytest.mark.parametrize("angle", [1e-6, 0.99e-4, 1.01e-4, 1e-3, 0.99e-2, 1.01e-2, 0.05])
def test_rotation_near_zero_equals_power_series(angle: float, rng: np.random.Generator) -> None:
    """Both sides of the switches, to round-off: exp = sum K^k / k!, J_l = sum K^k / (k + 1)!."""
    axis = rng.normal(size=3)
    w = angle * axis / np.linalg.norm(axis)
    power, exponential, jacobian, factorial = np.eye(3), np.zeros((3, 3)), np.zeros((3, 3)), 1.0
    for k in range(12):
        exponential += power / factorial
        jacobian += power / (factorial * (k + 1))
        power = power @ skew(w)
        factorial *= k + 1
    # Relative to the size of each order, so that a wrong coefficient of K^2 shows although K^2 is small.
    np.testing.assert_allclose(rotation_matrix(w), exponential, rtol=0, atol=4e-16)
    np.testing.assert_allclose(left_jacobian(w), jacobian, rtol=0, atol=4e-16)
    symmetric = (left_jacobian(w) + left_jacobian(w).T) / 2 - np.eye(3)
    expected = (jacobian + jacobian.T) / 2 - np.eye(3)
    np.testing.assert_allclose(symmetric, expected, rtol=0, atol=1e-9 * angle**2 + 3e-16)


def test_rotation_vector_inverts(rng: np.random.Generator) -> None:
    for angle in (0.0, 1e-14, 1e-6, 1.0, 3.1, np.pi):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        quaternion = np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)])
        for sign in (1.0, -1.0):
            again = rotation_vector(sign * quaternion)
            np.testing.assert_allclose(rotation_matrix(again), rotation_matrix(angle * axis), atol=1e-14)
            assert np.linalg.norm(again) <= np.pi + 1e-12
