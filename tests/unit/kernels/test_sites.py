"""Sites against their definitions, and their pulls and Jacobians against differences."""

import numpy as np
import pytest

from add.kernels import sites as kernel
from add.kernels.rotation import rotation_matrix
from add.testing import central_difference

N = 15  # a rigid body, three nodes
ARM = np.array([[0, 1, 2], [-1, -1, -1], [3, 4, 5], [6, -1, 7], [-1, -1, -1]])
CENTRE = np.array([[-1] * 3, [-1] * 3, [8, 9, 10], [-1] * 3, [-1] * 3])
KIND = np.array([kernel.WORLD, kernel.NODES, kernel.POINT, kernel.DIRECTION, kernel.SPIN])
DOFS = np.full((5, 9), -1)
DOFS[1, :6] = [6, 7, 8, 12, 13, 14]
DOFS[2, :6] = range(6)
DOFS[3, :3] = DOFS[4, :3] = [3, 4, 5]
SHARES = np.zeros((5, 3))
SHARES[1, :2] = 0.3, -0.8
SITES = kernel.SiteArrays(KIND, DOFS, SHARES, np.concatenate([ARM, CENTRE], axis=1))
INDEX = np.array([[0, -1], [2, 3]])
ROWS = np.array([[[4], [5]], [[6], [-1]]])
WEIGHTS = np.array([0.2, 0.7])


def evaluate(q: np.ndarray, v: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, ...]:
    y, y_dot, frame, p = (np.full(shape, np.nan) for shape in ((5, 3), (5, 3), (5, 12), (2, 3)))
    numbers = kernel.LawNumbers(INDEX, WEIGHTS, ROWS)
    kernel.evaluate(q, v, theta, SITES, numbers, y, y_dot, frame, p)
    return y, y_dot, frame, p


def state(angle: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, v, theta = rng.normal(size=N), rng.normal(size=N), rng.normal(size=11)
    q[3:6] *= angle / np.linalg.norm(q[3:6])
    return q, v, theta


@pytest.mark.parametrize("angle", [0.0, 1e-5, 0.9, 3.0, 5.5])
def test_values_and_rates(angle: float, rng: np.random.Generator) -> None:
    q, v, theta = state(angle, rng)
    y, y_dot, _, p = evaluate(q, v, theta)
    R = rotation_matrix(q[3:6])
    np.testing.assert_allclose(y[0], theta[:3])
    np.testing.assert_allclose(y[1], 0.3 * q[6:9] - 0.8 * q[12:15])
    np.testing.assert_allclose(y[2], q[:3] + R @ (theta[3:6] - theta[8:11]), rtol=1e-12)
    np.testing.assert_allclose(y[3], R @ np.array([theta[6], 0.0, theta[7]]), rtol=1e-12, atol=1e-14)
    assert not y[4].any() and not y_dot[0].any()
    rate = central_difference(lambda x: evaluate(x, v, theta)[0].ravel(), q, v, 1e-3).reshape(5, 3)
    np.testing.assert_allclose(y_dot[:4], rate[:4], atol=1e-9)
    spin = central_difference(lambda x: rotation_matrix(x[3:6]).ravel(), q, v, 1e-3).reshape(3, 3) @ R.T
    np.testing.assert_allclose(y_dot[4], [spin[2, 1], spin[0, 2], spin[1, 0]], atol=1e-9)
    total = [WEIGHTS @ theta[[4, 6]], WEIGHTS[0] * theta[5]]
    np.testing.assert_allclose(p, [[theta[0], 0.0, total[0]], [theta[2], theta[3], total[1]]])


@pytest.mark.parametrize("angle", [0.0, 1e-5, 0.9, 3.0, 5.5])
def test_jacobians_and_pull(angle: float, rng: np.random.Generator) -> None:
    q, v, theta = state(angle, rng)
    f = rng.normal(size=(5, 3))
    _, _, frame, _ = evaluate(q, v, theta)
    full = np.zeros((5, 3, N))
    full_v = np.zeros((5, 3, N))
    geometric = np.zeros((N, N))
    J, J_v, G, work = np.empty((3, 9)), np.empty((3, 9)), np.empty((3, 3)), np.empty((2, 3, 3))
    counts = []
    for b in range(5):
        n = kernel.jacobians(b, q, v, SITES, frame, f, J, J_v, G, work)
        counts.append(n)
        full[b][:, DOFS[b, :n]] = J[:, :n]
        full_v[b][:, DOFS[b, :n]] = J_v[:, :n]
        if KIND[b] >= kernel.POINT:
            geometric[3:6, 3:6] += G
    assert counts == [0, 6, 6, 3, 3]

    def pulled(q: np.ndarray) -> np.ndarray:
        out = np.zeros(N)
        kernel.pull(1.0, q, SITES, evaluate(q, v, theta)[2], f, out)
        return out

    np.testing.assert_allclose(pulled(q), np.einsum("bin,bi->n", full, f), atol=1e-13)
    for i, unit in enumerate(np.eye(N)):
        by_q = central_difference(lambda x: np.stack(evaluate(x, v, theta)[:2]).ravel(), q, unit, 1e-3)
        by_v = central_difference(lambda x: evaluate(q, x, theta)[1].ravel(), v, unit, 1e-3).reshape(5, 3)
        y_q, rate_q = by_q.reshape(2, 5, 3)
        np.testing.assert_allclose(full[:4, :, i], y_q[:4], atol=1e-8)
        np.testing.assert_allclose(full[:, :, i], by_v, atol=1e-8)
        np.testing.assert_allclose(full_v[:, :, i], rate_q, atol=1e-8)
        np.testing.assert_allclose(geometric[:, i], central_difference(pulled, q, unit, 1e-3), atol=1e-8)
