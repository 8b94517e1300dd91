"""Rigid bodies against differences: rotation kernels, inertia, initial pose, changes of chart."""

import numpy as np
import pytest

from add.equations import charts
from add.equations.initial import RigidPose
from add.equations.kinematics import Kinematics, State, StateTangent
from add.equations.points import Along
from add.equations.sites import SiteKind, SitePoints, Sites
from add.kernels.rotation import (
    fill_jacobian,
    fill_rotation,
    jacobian_coefficients,
    left_jacobian,
    rotation_matrix,
    turn,
    turn_derivative,
    turn_second_derivative,
)
from add.terms import RigidInertia
from add.testing import check_pullback, check_term

SIZES = (0.0, 1e-9, 1e-3, 0.5, 0.999, 1.001, 3.1, 6.0)
"""Lengths of rotation vectors: zero, both sides of where the series ends (|w| = 1), below 2 pi."""


def rotation_of(size: float, rng: np.random.Generator) -> np.ndarray:
    w = rng.normal(size=3)
    return size * w / np.linalg.norm(w)


def coefficients(w: np.ndarray) -> np.ndarray:
    out = np.empty(6)
    jacobian_coefficients(w @ w, out)
    return out


def differences(f, x: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """Fourth-order central differences, last axis the direction."""
    columns = [
        (8.0 * (f(x + h * e) - f(x - h * e)) - (f(x + 2 * h * e) - f(x - 2 * h * e))) / (12.0 * h)
        for e in np.eye(x.size)
    ]
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_exponential_map(size: float, sign: float, rng: np.random.Generator) -> None:
    w, u, h = rotation_of(size, rng), rng.normal(size=3), rng.normal(size=3)
    k = coefficients(w)

    def times(x: np.ndarray) -> np.ndarray:
        out = np.empty(3)
        turn(sign, x, u, coefficients(x), out)
        return out

    def derivative(x: np.ndarray) -> np.ndarray:
        out = np.empty((3, 3))
        turn_derivative(sign, x, u, coefficients(x), out)
        return out

    rotation, jacobian, second = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    fill_rotation(w, k, rotation)
    fill_jacobian(1.0, w, k, jacobian)
    turn_second_derivative(sign, w, u, h, k, second)
    np.testing.assert_allclose(rotation, rotation_matrix(w), atol=1e-15)
    np.testing.assert_allclose(jacobian, left_jacobian(w), atol=1e-15)
    np.testing.assert_allclose(times(w), (jacobian if sign > 0 else jacobian.T) @ u, atol=1e-14)
    # The definition of J_l: R(w + dw) R(w)^T = I + [J_l dw]x.
    spin = differences(lambda x: rotation_matrix(x) @ rotation.T, w)
    axial = np.stack([spin[2, 1], spin[0, 2], spin[1, 0]])
    np.testing.assert_allclose(axial, jacobian, atol=1e-9)
    np.testing.assert_allclose(derivative(w), differences(times, w), atol=1e-9)
    np.testing.assert_allclose(second, differences(lambda x: derivative(x) @ h, w), atol=1e-9)


@pytest.mark.parametrize("size", [0.0, 0.3, 2.0, 4.5])
def test_rigid_inertia(size: float, rng: np.random.Generator) -> None:
    """Two bodies with a gap between them in q; every derivative, also by the six entries of an inertia."""
    term = RigidInertia(np.array([0, 9]), np.array([0, 1]), np.arange(2, 14).reshape(2, 6))
    theta = np.concatenate([rng.uniform(1.0, 3.0, 5), 0.1 * rng.normal(size=3), rng.uniform(1.0, 2.0, 3),
                            0.1 * rng.normal(size=3)])  # fmt: skip
    q, v, a = rng.normal(size=(3, 15))
    for first in (3, 12):
        q[first : first + 3] = rotation_of(size, rng)
    found = check_term(term, Kinematics(q, v, a, 0.0, 1), theta, rng=rng)
    assert found.q > 0.0 and found.v > 0.0
    assert set(found.parameters) == set(range(14))


def test_rigid_inertia_is_euler_s_equation(rng: np.random.Generator) -> None:
    """J_l^-T r_w = d(R I R^T omega)/dt along a smooth motion w(t)."""
    c = rng.normal(size=(3, 3))
    inertia = np.diag([1.0, 2.0, 2.5]) + 0.2 * (np.ones((3, 3)) - np.eye(3))
    theta = np.array([2.0, 1.0, 2.0, 2.5, 0.2, 0.2, 0.2])
    term = RigidInertia(np.array([0]), np.array([0]), np.arange(1, 7).reshape(1, 6))

    def w(t: float) -> np.ndarray:
        return c[0] + t * c[1] + t * t * c[2]

    def angular_momentum(t: float) -> np.ndarray:
        rotation = rotation_matrix(w(t))
        omega = left_jacobian(w(t)) @ (c[1] + 2.0 * t * c[2])
        return rotation @ inertia @ rotation.T @ omega

    t = 0.4
    kin = Kinematics(*(np.concatenate([np.zeros(3), x]) for x in (w(t), c[1] + 2.0 * t * c[2], 2.0 * c[2])), t, 1)
    r = np.zeros(6)
    term.residual(kin, theta, r)
    rate = differences(lambda x: angular_momentum(x[0]), np.array([t]))[:, 0]
    np.testing.assert_allclose(np.linalg.solve(left_jacobian(w(t)).T, r[3:]), rate, atol=1e-8)
    np.testing.assert_allclose(term.momentum(kin, theta)[3:], angular_momentum(t), atol=1e-12)
    omega = left_jacobian(w(t)) @ kin.v[3:]
    assert term.kinetic_energy(kin, theta) == pytest.approx(0.5 * omega @ angular_momentum(t), rel=1e-12)


@pytest.mark.parametrize("size", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("with_centre", [True, False])
def test_rigid_pose(size: float, with_centre: bool, rng: np.random.Generator) -> None:
    centre = np.arange(12, 15) if with_centre else None
    pose = RigidPose(3, centre, *(np.arange(k, k + 3) for k in (0, 3, 6, 9)))
    theta = rng.normal(size=16)
    theta[3:6] = rotation_of(size, rng)

    def start(p: np.ndarray) -> np.ndarray:
        q, v = np.zeros(12), np.zeros(12)
        pose.evaluate(p, q, v)
        return np.concatenate([q, v])

    def push(p: np.ndarray, p_dot: np.ndarray) -> np.ndarray:
        q, v = np.zeros(12), np.zeros(12)
        pose.jvp(p, p_dot, q, v)
        return np.concatenate([q, v])

    def pull(p: np.ndarray, bar: np.ndarray) -> np.ndarray:
        out = np.zeros(16)
        pose.vjp(p, bar[:12], bar[12:], out)
        return out

    found = check_pullback(start, push, pull, theta, rng=rng, scale=0.3)
    assert (np.abs(found).max(axis=0) > 0.0)[: 15 if with_centre else 12].all()
    q, v = start(theta)[:12], start(theta)[12:]
    omega = left_jacobian(q[6:9]) @ v[6:9]
    np.testing.assert_allclose(omega, theta[9:12], atol=1e-13)


def chart_state(rng: np.random.Generator) -> State:
    """A newest vector beyond pi, the older one still below it: the branch of the newest holds for both."""
    axis = rotation_of(1.0, rng)
    q = rng.normal(size=(2, 9))
    q[0, 3:6], q[1, 3:6] = 3.3 * axis, 2.9 * axis + 0.05 * rng.normal(size=3)
    return State(0.3, 4, q, rng.normal(size=(2, 9)))


def test_chart_keeps_the_motion(rng: np.random.Generator) -> None:
    state = chart_state(rng)
    turned = charts.change(state, charts.beyond(state.q[0], np.array([3])))
    assert np.linalg.norm(turned.q[0, 3:6]) < np.pi < np.linalg.norm(turned.q[1, 3:6])
    for k in range(2):
        w, w_new = state.q[k, 3:6], turned.q[k, 3:6]
        np.testing.assert_allclose(rotation_matrix(w_new), rotation_matrix(w), atol=1e-14)
        omega, omega_new = (left_jacobian(x) @ v for x, v in ((w, state.v[k, 3:6]), (w_new, turned.v[k, 3:6])))
        np.testing.assert_allclose(omega_new, omega, atol=1e-13)
    assert np.array_equal(turned.q[:, :3], state.q[:, :3]) and np.array_equal(turned.v[:, 6:], state.v[:, 6:])
    assert not charts.beyond(turned.q[0], np.array([3])).size


def test_chart_derivatives(rng: np.random.Generator) -> None:
    state = chart_state(rng)
    rotations = np.array([3])

    def split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return x[:18].reshape(2, 9), x[18:].reshape(2, 9)

    def join(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.concatenate([q.ravel(), v.ravel()])

    def at(x: np.ndarray) -> State:
        return State(0.3, 4, *split(x))

    def forward(x: np.ndarray) -> np.ndarray:
        turned = charts.change(at(x), rotations)
        return join(turned.q, turned.v)

    def push(x: np.ndarray, dot: np.ndarray) -> np.ndarray:
        out = charts.pushforward(at(x), rotations, StateTangent(*split(dot)))
        return join(out.q, out.v)

    def pull(x: np.ndarray, bar: np.ndarray) -> np.ndarray:
        out = charts.pullback(at(x), rotations, StateTangent(*split(bar)))
        return join(out.q, out.v)

    check_pullback(forward, push, pull, join(state.q, state.v), rng=rng, scale=0.1)
    # Many directions at once are the same as one by one.
    dots = rng.normal(size=(2, 36, 5))
    many = charts.pushforward(state, rotations, StateTangent(*(np.stack([split(dots[0, :, k])[i] for k in range(5)],
                                                                       axis=-1) for i in range(2))))  # fmt: skip
    for k in range(5):
        one = charts.pushforward(state, rotations, StateTangent(*split(dots[0, :, k])))
        np.testing.assert_allclose(many.q[..., k], one.q)
        np.testing.assert_allclose(many.v[..., k], one.v)


@pytest.mark.parametrize("size", [0.0, 1.1, 4.0])
def test_site_points(size: float, rng: np.random.Generator) -> None:
    """Nodes, points, directions, spins and places of the world as one map of (q, v, theta)."""
    kinds = [SiteKind.NODES, SiteKind.POINT, SiteKind.DIRECTION, SiteKind.SPIN, SiteKind.WORLD]
    dofs = np.full((5, 6), -1)
    dofs[0] = np.arange(6, 12)
    dofs[1] = np.arange(6)
    dofs[2, :3] = dofs[3, :3] = np.arange(3, 6)
    weights = np.zeros((5, 2))
    weights[0] = 0.3, 0.7
    arm, centre = np.full((5, 3), -1), np.full((5, 3), -1)
    arm[1], arm[2], arm[4], centre[1] = np.arange(3), np.arange(3, 6), np.arange(6, 9), np.arange(9, 12)
    points = SitePoints(Sites(np.array(kinds, dtype=np.int64), dofs, weights, arm, centre))
    n, n_theta = 12, 12
    x = rng.normal(size=2 * n + n_theta)
    x[3:6] = rotation_of(size, rng)

    def split(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return y[:n], y[n : 2 * n], y[2 * n :]

    def at(y: np.ndarray) -> tuple[Kinematics, np.ndarray]:
        q, v, theta = split(y)
        return Kinematics(q, v, np.zeros(n), 0.0, 1), theta

    def place(y: np.ndarray) -> np.ndarray:
        return np.concatenate([part.ravel() for part in points.points(*at(y))])

    def push(y: np.ndarray, dot: np.ndarray) -> np.ndarray:
        return np.concatenate([part.ravel() for part in points.jvp_over(many(y), many(dot[None]))])

    def many(y: np.ndarray) -> Along:
        q, v, theta = np.split(y, [n, 2 * n], axis=-1)
        return Along(q[None], v[None], theta)

    def pull(y: np.ndarray, bar: np.ndarray) -> np.ndarray:
        out = np.zeros_like(y)
        points.vjp(*at(y), bar[:15].reshape(5, 3), bar[15:].reshape(5, 3), Along(*split(out)))
        return out

    found = check_pullback(place, push, pull, x, rng=rng, scale=0.3)
    assert (np.abs(found).max(axis=0) > 0.0).all()
    some = points.select(np.array([2, 0]))
    np.testing.assert_array_equal(some.points(*at(x))[0], points.points(*at(x))[0][[2, 0]])
