"""Forces on joints of trees: on single coordinates springs, damping, dry friction, limits; on those of balls.

A ball's are each on three coordinates: damping, armature, dry friction, a limit of the angle.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np
from numba import types

from add.equations.family import Family, Kind, dense_blocks
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics
from add.kernels import joint_laws as kernel
from add.kernels.arena import FAMILY, FIELD, Floats, Ints, Ints2, add_entry, unpacker
from add.kernels.by_address import Callee, address, by_address
from add.kernels.caching import njit
from add.kernels.rotation import left_jacobian
from add.terms.lengths import AxisLaw
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class JointSprings(AxisLaw):
    """r = k (q - rest) on every coordinate.

    Attributes
    ----------
    dof : (m,) coordinates, each once
    stiffness, rest : (m,)
        Indices in theta of k [N/m, N m/rad] and rest [m, rad].
    """

    depends: ClassVar[str] = "q"
    code: ClassVar[int] = kernel.SPRING

    dof: IntArray
    stiffness: IntArray
    rest: IntArray

    @property
    def numbers(self) -> IntArray:
        """Indices of k and rest."""
        return np.stack([self.stiffness, self.rest], axis=1)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return k/2 (q - rest)^2 [J]."""
        return float(0.5 * theta[self.stiffness] @ (kin.q[self.dof] - theta[self.rest]) ** 2)


@final
@dataclass(frozen=True)
class JointResistance(AxisLaw):
    """r = d v + tau tanh(v / v_s) on every coordinate: damping, and dry friction without a jump.

    Attributes
    ----------
    dof : (m,) coordinates, each once
    damping, friction, slip : (m,)
        Indices in theta of d [N s/m, N m s/rad], tau [N, N m], v_s [m/s, rad/s].
    """

    depends: ClassVar[str] = "v"
    code: ClassVar[int] = kernel.RESISTANCE

    dof: IntArray
    damping: IntArray
    friction: IntArray
    slip: IntArray

    @property
    def numbers(self) -> IntArray:
        """Indices of d, tau and v_s."""
        return np.stack([self.damping, self.friction, self.slip], axis=1)


@final
@dataclass(frozen=True)
class JointLimits(AxisLaw):
    """r = k (s(q - upper) - s(lower - q)) + d v s' beyond the limits of coordinates.

    s(e) = 0 for e < 0, e^2 / (2 delta) for e < delta, e - delta / 2 beyond: force and damping begin without a jump.

    Attributes
    ----------
    dof : (m,) coordinates
    lower, upper, stiffness, damping : (m,)
        Indices in theta [m, rad], [N/m, N m/rad], [N s/m, N m s/rad].
    onset : (m,) delta [m, rad]
    hard : bool
        Whether a stepper with hard contact is to take its place by stops that give not at all.
    """

    code: ClassVar[int] = kernel.LIMIT

    dof: IntArray
    lower: IntArray
    upper: IntArray
    stiffness: IntArray
    damping: IntArray
    onset: FloatArray
    hard: bool = False

    @property
    def numbers(self) -> IntArray:
        """Indices of both limits, stiffness and damping."""
        return np.stack([self.lower, self.upper, self.stiffness, self.damping], axis=1)

    @property
    def constants(self) -> FloatArray:
        """Onsets."""
        return self.onset

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy of the stops [J]; hard ones store none."""
        out = 0.0
        if self.hard:
            return out
        for sign, limit in ((1.0, self.upper), (-1.0, self.lower)):
            e, d = sign * (kin.q[self.dof] - theta[limit]), self.onset
            outer = 0.5 * (e - 0.5 * d) ** 2 + d * d / 24.0
            out += float(theta[self.stiffness] @ np.where(e >= d, outer, np.where(e > 0.0, e**3 / (6.0 * d), 0.0)))
        return out


class _Arrays(NamedTuple):
    first: Ints
    numbers: Ints2
    constants: Floats
    law: Ints


_own = unpacker(_Arrays)


#: Laws of `add.kernels.joint_laws`, which are called by address: their arguments.
_ARGUMENTS = (
    types.int64[::1], types.float64[:, ::1], types.float64[::1], types.UniTuple(types.float64[::1], 3), types.boolean,
    types.float64[:, ::1], types.float64[:, :, ::1], types.float64[:, :, :, ::1],
)  # fmt: skip
MOTION, FRICTION, LIMIT = (
    Callee(law, _ARGUMENTS, types.none) for law in (kernel.ball_motion, kernel.ball_friction, kernel.ball_limit)
)
_law = by_address("ball's law", lambda: MOTION)


@njit(**FAMILY)
def _found(arena, k, at, wanted):
    balls = _own(arena, arena.families[k, FIELD])
    m, n = balls.numbers.shape
    p = np.empty((m, n))
    for i in range(m):
        for j in range(n):
            p[i, j] = at.theta[balls.numbers[i, j]]
    forces, by_number, by_state = np.empty((m, 3)), np.empty((m, n, 3)), np.zeros((3, m, 3, 3))
    state = at.q, at.v, at.a
    _law(balls.law[0], (balls.first, p, balls.constants, state, wanted, forces, by_number, by_state))
    return balls, forces, by_number, by_state


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    balls, force, _, _ = _found(arena, k, at, False)
    for i in range(balls.first.size):
        for c in range(3):
            out[balls.first[i] + c] += force[i, c]
    return rows


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    balls, _, _, by = _found(arena, k, at, True)
    for i in range(balls.first.size):
        for r in range(3):
            for c in range(3):
                value = weight_q * by[0, i, r, c] + weight_v * by[1, i, r, c] + weight_a * by[2, i, r, c]
                data[slots[9 * i + 3 * r + c]] += value


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    balls, _, by_number, _ = _found(arena, k, at, False)
    for i in range(balls.first.size):
        for j in range(balls.numbers.shape[1]):
            for c in range(3):
                add_entry(forward, balls.first[i] + c, balls.numbers[i, j], by_number[i, j, c], along, out)


KIND = Kind("ball_law", _Arrays, _forces, _parameters, _jacobian)


class BallLaw(FamilyTerm):
    """A law of `add.kernels.joint_laws` on every ball."""

    law: ClassVar[Callee]

    first: IntArray

    @property
    @abstractmethod
    def numbers(self) -> tuple[IntArray, ...]:
        """Indices (m,) in theta of the law's numbers."""

    @property
    def constants(self) -> FloatArray:
        """Numbers (m,) that are no parameters."""
        return np.zeros(self.first.size)

    @property
    def dofs(self) -> IntArray:
        """Coordinates (m, 3)."""
        return np.asarray(self.first[:, None] + np.arange(3))

    @final
    def family(self) -> Family:
        """Return one 3 x 3 block a joint."""
        arrays = _Arrays(self.first, np.stack(self.numbers, axis=1), self.constants, np.array([address(self.law)]))
        return Family(KIND, arrays, dense_blocks(self.dofs))


@final
@dataclass(frozen=True)
class BallLaws(BallLaw):
    """r_w = J_l(w)^T (d omega + I omega_dot), omega = J_l(w) w_dot: damping and armature of ball joints.

    Attributes
    ----------
    first : (m,) first coordinates of their rotation vectors
    damping, armature : (m,) indices in theta of d [N m s/rad] and I [kg m^2]
    """

    law: ClassVar[Callee] = MOTION

    first: IntArray
    damping: IntArray
    armature: IntArray

    @property
    def numbers(self) -> tuple[IntArray, ...]:
        """Indices in theta of d and I."""
        return self.damping, self.armature

    def kinetic_energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the sum of I omega^2 / 2 [J]."""
        squares = [((left_jacobian(kin.q[dofs]) @ kin.v[dofs]) ** 2).sum() for dofs in self.dofs]
        return float(0.5 * theta[self.armature] @ np.array(squares))


@final
@dataclass(frozen=True)
class BallFriction(BallLaw):
    """r_w = J_l(w)^T tau tanh(|omega| / s) omega / |omega|, omega = J_l(w) w_dot.

    Attributes
    ----------
    first : (m,) first coordinates of their rotation vectors
    friction, slip : (m,) indices in theta of tau [N m] and s [rad/s]
    """

    law: ClassVar[Callee] = FRICTION

    first: IntArray
    friction: IntArray
    slip: IntArray

    @property
    def numbers(self) -> tuple[IntArray, ...]:
        """Indices in theta of tau and s."""
        return self.friction, self.slip


@final
@dataclass(frozen=True)
class BallLimits(BallLaw):
    """r_w = (k s(e) + d e' s'(e)) w / |w|, e = |w| - upper: a stop for the angle by which a ball is turned.

    The ramp s is that of `add.terms.JointLimits`. Angles are at most pi: beyond it the rotation vector changes chart.

    Attributes
    ----------
    first : (m,) first coordinates of their rotation vectors
    upper, stiffness, damping : (m,) indices in theta [rad], [N m/rad], [N m s/rad]
    onset : (m,) [rad]
    """

    law: ClassVar[Callee] = LIMIT

    first: IntArray
    upper: IntArray
    stiffness: IntArray
    damping: IntArray
    onset: FloatArray

    @property
    def numbers(self) -> tuple[IntArray, ...]:
        """Indices in theta of limits, stiffnesses and dampings."""
        return self.upper, self.stiffness, self.damping

    @property
    def constants(self) -> FloatArray:
        """Onsets."""
        return self.onset

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy of the stops [J]."""
        w, d = kin.q[self.dofs], self.onset
        e = np.sqrt((w * w).sum(axis=1)) - theta[self.upper]
        outer = 0.5 * (e - 0.5 * d) ** 2 + d * d / 24.0
        return float(theta[self.stiffness] @ np.where(e >= d, outer, np.where(e > 0.0, e**3 / (6.0 * d), 0.0)))
