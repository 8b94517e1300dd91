"""Initial states and the motion of pins against differences."""

import itertools

import numpy as np
import pytest
from support.angles import ANGLES

from add.equations.initial import BodyPose, InitialState, Motion, PinMotion
from add.equations.signals import Sine, Spline, Table
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.testing import check_pullback


def _initial(rng: np.random.Generator) -> InitialState:
    index = itertools.count()

    def take() -> np.ndarray:
        return np.array([next(index) for _ in range(3)])

    bodies, start = [], 0
    for n in (4, 7):
        rest = rng.normal(size=(n, 3))
        bodies.append(BodyPose(start, rest, rng.normal(size=3), take(), take(), take(), take()))
        start += rest.size
    return InitialState(start, tuple(bodies))


@pytest.mark.parametrize("angle", ANGLES)
def test_initial_state(angle: float, rng: np.random.Generator) -> None:
    initial = _initial(rng)
    theta = rng.normal(size=24)
    for body in initial.bodies:
        vector = rng.normal(size=3)
        theta[body.orientation] = angle * vector / np.linalg.norm(vector)

    def vjp(theta: np.ndarray, bar: np.ndarray) -> np.ndarray:
        out = np.full(theta.size, 0.5)
        initial.vjp(theta, bar[: initial.n], bar[initial.n :], out)
        return out - 0.5

    check_pullback(
        lambda theta: np.concatenate(initial.evaluate(theta)),
        lambda theta, dot: np.concatenate(initial.jvp(theta, dot)),
        vjp,
        theta,
        rng=rng,
        rtol=1e-8,
        scale=1.0,
        sizes=(3e-2, 1e-2, 3e-3, 1e-3),
    )


def test_initial_velocity_is_that_of_a_rigid_body(rng: np.random.Generator) -> None:
    """v is dx/dt when position and orientation move with velocity and angular velocity."""
    initial = _initial(rng)
    theta, rate = rng.normal(size=24), np.zeros(24)
    for body in initial.bodies:
        omega, w = theta[body.angular_velocity], theta[body.orientation]
        rate[body.orientation] = np.linalg.solve(left_jacobian(w), omega)
        # The centre of mass has the given velocity.
        centre = rotation_matrix(w) @ body.centre
        rate[body.position] = theta[body.velocity] - np.cross(omega, centre)
    np.testing.assert_allclose(initial.jvp(theta, rate)[0], initial.evaluate(theta)[1], atol=1e-13)


@pytest.mark.parametrize("t", [0.0, 0.013, 0.05, 0.3])
def test_motion(t: float, rng: np.random.Generator) -> None:
    initial = _initial(rng)
    sine, table, spline = Sine(2.0, 0.3), Table(np.array([0.0, 0.02, 0.1])), Spline(np.array([0.0, 0.03, 0.05, 0.1]))
    moves = (
        PinMotion(np.array([0, 1, 2, 9, 10]), np.array([0, 1, 2, 0, 1]), sine, 24 + np.arange(6).reshape(2, 3)),
        PinMotion(np.array([2, 14, 20]), np.array([2, 2, 2]), table, 30 + np.arange(9).reshape(3, 3)),
        PinMotion(np.array([12]), np.array([0]), spline, 39 + np.arange(12).reshape(4, 3)),
    )
    motion = Motion(initial, np.array([0, 1, 2, 5, 9, 10, 12, 14, 20]), moves)
    theta = rng.normal(size=51)

    def vjp(theta: np.ndarray, bar: np.ndarray) -> np.ndarray:
        out = np.full(theta.size, 0.5)
        motion.vjp(t, theta, bar[:9], bar[9:], out)
        return out - 0.5

    check_pullback(
        lambda theta: np.concatenate([motion.positions(t, theta), motion.velocities(t, theta)]),
        lambda theta, dot: np.concatenate(motion.jvp(t, theta, dot)),
        vjp,
        theta,
        rng=rng,
        rtol=1e-8,
        scale=1.0,
    )
    # Without a velocity cotangent: that of zero.
    bar, out = rng.normal(size=9), np.zeros(51)
    motion.vjp(t, theta, bar, None, out)
    np.testing.assert_allclose(out, vjp(theta, np.concatenate([bar, np.zeros(9)])), atol=1e-14)
    # Velocities are the rates of positions (from the right at a kink).
    h = 1e-6
    rate = (motion.positions(t + 2 * h, theta) - motion.positions(t, theta)) / (2 * h)
    np.testing.assert_allclose(motion.velocities(t + h, theta), rate, atol=1e-5 * np.abs(rate).max())


def test_motion_without_pins(rng: np.random.Generator) -> None:
    motion = Motion(_initial(rng), np.zeros(0, dtype=np.int64))
    out = np.zeros(24)
    motion.vjp(0.0, rng.normal(size=24), np.zeros(0), np.zeros(0), out)
    assert motion.positions(0.0, out).size == motion.velocities(0.0, out).size == 0
    assert not out.any()
