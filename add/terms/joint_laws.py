"""Forces on single coordinates of trees: springs, damping, dry friction, limits, and actuators that follow a signal."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind, dense_blocks
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics
from add.equations.signals import Signal
from add.kernels import joint_laws as kernel
from add.kernels.arena import FAMILY, FIELD, Floats, Ints, Ints2, add_entry, row_of, unpacker, window
from add.kernels.caching import njit
from add.kernels.joint_laws import COLUMNS, DRIVE, axis_law, axis_laws, ball_derivatives, ball_forces
from add.typing import FloatArray, IntArray


class _Axes(NamedTuple):
    code: Ints
    dof: Ints
    numbers: Ints2
    constants: Floats


_axes = unpacker(_Axes)


@njit(**FAMILY)
def _slopes(arena, k, at):
    """Return the arrays of a family of `AxisLaw`, and r and its slopes (m, 7)."""
    own = _axes(arena, arena.families[k, FIELD])
    out = np.empty((own.dof.size, COLUMNS))
    axis_laws(own.code[0], own.dof, own.numbers, own.constants, at.q, at.v, at.theta, out)
    return own, out


@njit(**FAMILY)
def _axis_forces(arena, k, at, replay, rows, out):
    own, slopes = _slopes(arena, k, at)
    for i in range(own.dof.size):
        out[own.dof[i]] += slopes[i, 0]
    return rows


@njit(**FAMILY)
def _axis_jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if weight_q != 0.0 or weight_v != 0.0:
        own, slopes = _slopes(arena, k, at)
        for i in range(own.dof.size):
            data[slots[i]] += weight_q * slopes[i, 1] + weight_v * slopes[i, 2]


@njit(**FAMILY)
def _axis_parameters(arena, k, at, rows, forward, along, out):
    own, slopes = _slopes(arena, k, at)
    for i in range(own.dof.size):
        for j in range(own.numbers.shape[1]):
            add_entry(forward, own.dof[i], own.numbers[i, j], slopes[i, 3 + j], along, out)


AXES = Kind("axes", _Axes, _axis_forces, _axis_parameters, _axis_jacobian)


class _Balls(NamedTuple):
    first: Ints
    damping: Ints
    armature: Ints


_balls = unpacker(_Balls)


@njit(**FAMILY)
def _ball_forces(arena, k, at, replay, rows, out):
    own = _balls(arena, arena.families[k, FIELD])
    found = np.empty((own.first.size, 2, 3))
    ball_forces(own.first, at.q, at.v, at.a, found)
    for i in range(own.first.size):
        d, inertia = at.theta[own.damping[i]], at.theta[own.armature[i]]
        for c in range(3):
            out[own.first[i] + c] += d * found[i, 0, c] + inertia * found[i, 1, c]
    return rows


@njit(**FAMILY)
def _ball_jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    own = _balls(arena, arena.families[k, FIELD])
    blocks = np.empty((own.first.size, 3, 3))
    weights = (weight_q, weight_v, weight_a)
    ball_derivatives(at.theta, own.first, own.damping, own.armature, at.q, at.v, at.a, weights, blocks)
    for i in range(own.first.size):
        for r in range(3):
            for c in range(3):
                data[slots[9 * i + 3 * r + c]] += blocks[i, r, c]


@njit(**FAMILY)
def _ball_parameters(arena, k, at, rows, forward, along, out):
    own = _balls(arena, arena.families[k, FIELD])
    forces = np.empty((own.first.size, 2, 3))
    ball_forces(own.first, at.q, at.v, at.a, forces)
    for i in range(own.first.size):
        for c in range(3):
            add_entry(forward, own.first[i] + c, own.damping[i], forces[i, 0, c], along, out)
            add_entry(forward, own.first[i] + c, own.armature[i], forces[i, 1, c], along, out)


BALLS = Kind("balls", _Balls, _ball_forces, _ball_parameters, _ball_jacobian)


class AxisLaw(FamilyTerm):
    """Forces on coordinates each by itself, with diagonal derivatives; `add.kernels.joint_laws` has the equations."""

    depends: ClassVar[str] = "qv"

    #: Of `add.kernels.joint_laws.axis_law`.
    code: ClassVar[int]

    dof: IntArray

    @property
    @abstractmethod
    def numbers(self) -> IntArray:
        """Indices in theta (m, k) of the numbers of each coordinate."""

    @property
    def constants(self) -> FloatArray:
        """Numbers (m,) that are no parameters."""
        return np.zeros(self.dof.size)

    @final
    @cached_property
    def arrays(self) -> tuple[IntArray, FloatArray]:
        """Numbers and constants, gathered once."""
        return np.ascontiguousarray(self.numbers), self.constants

    @final
    def family(self) -> Family:
        """See `Term.family`."""
        return Family(AXES, _Axes(np.array([self.code]), self.dof, *self.arrays), (self.dof, self.dof))


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
class BallLaws(FamilyTerm):
    """r_w = J_l(w)^T (d omega + I omega_dot), omega = J_l(w) w_dot: damping and armature of ball joints.

    Attributes
    ----------
    first : (m,) first coordinates of their rotation vectors
    damping, armature : (m,) indices in theta of d [N m s/rad] and I [kg m^2]
    """

    first: IntArray
    damping: IntArray
    armature: IntArray

    def family(self) -> Family:
        """Return one 3 x 3 block a joint."""
        return Family(BALLS, _Balls(self.first, self.damping, self.armature), dense_blocks(self._dofs))

    @property
    def _dofs(self) -> IntArray:
        return np.asarray(self.first[:, None] + np.arange(3))

    def kinetic_energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the sum of I omega^2 / 2 [J]."""
        out = np.empty((self.first.size, 2, 3))
        ball_forces(self.first, kin.q, kin.v, kin.a, out)
        work = (kin.v[self._dofs] * out[:, 0]).sum(axis=1)
        return float(0.5 * theta[self.armature] @ work)


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


class _Drives(NamedTuple):
    dof: Ints
    rows: Ints
    gains: Ints
    limit: Floats


_drives = unpacker(_Drives)


@njit(**FAMILY)
def _driven(arena, k, at):
    """Return the arrays, the first row of the signal that acts, its weights, and r with its slopes (7,)."""
    own = _drives(arena, arena.families[k, FIELD])
    first, weights = window(arena, k, at)
    p, out, place = np.zeros(4), np.empty(COLUMNS), own.dof[0]
    for j in range(weights.size):
        p[0] += weights[j] * at.theta[own.rows[first + j]]
    for j in range(3):
        p[1 + j] = at.theta[own.gains[j]]
    axis_law(DRIVE, at.q[place], at.v[place], p, own.limit[0], out)
    return own, first, weights, out


@njit(**FAMILY)
def _drive_forces(arena, k, at, replay, rows, out):
    own, _, _, slopes = _driven(arena, k, at)
    out[own.dof[0]] += slopes[0]
    return rows


@njit(**FAMILY)
def _drive_jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if weight_q != 0.0 or weight_v != 0.0:
        _, _, _, slopes = _driven(arena, k, at)
        data[slots[0]] += weight_q * slopes[1] + weight_v * slopes[2]


@njit(**FAMILY)
def _drive_parameters(arena, k, at, rows, forward, along, out):
    own, first, weights, slopes = _driven(arena, k, at)
    for j in range(weights.size):
        add_entry(forward, own.dof[0], own.rows[first + j], slopes[3] * weights[j], along, out)
    for j in range(3):
        add_entry(forward, own.dof[0], own.gains[j], slopes[4 + j], along, out)


@njit(**FAMILY)
def _drive_inputs(arena, k, at, rows, indptr, found):
    own, first, weights, slopes = _driven(arena, k, at)
    for j in range(weights.size):
        to = row_of(own.rows[first + j], indptr, found)
        if to >= 0:
            found.values[to, own.dof[0]] += slopes[3] * weights[j]


DRIVES = Kind("joint_drive", _Drives, _drive_forces, _drive_parameters, _drive_jacobian, _drive_inputs)


@final
@dataclass(frozen=True)
class JointDrive(FamilyTerm):
    """r = -clip(g u(t) + b_q q + b_v v, -limit, limit) on one coordinate.

    Torque: g = 1; position servo: g = k_p, b_q = -k_p, b_v = -k_d; velocity servo: g = k_d, b_v = -k_d. Beyond the
    limit the force is constant, and its derivatives by everything but the limit are zero.

    Attributes
    ----------
    dof : int
    signal : Signal
    rows : (n_rows,) indices in theta of the coefficients of u
    gains : (3,) indices in theta of g, b_q, b_v
    limit : float
        Largest force [N, N m]; infinity for none.
    """

    depends: ClassVar[str] = "qv"

    dof: int
    signal: Signal
    rows: IntArray
    gains: IntArray
    limit: float = np.inf

    def family(self) -> Family:
        """Return the diagonal entry."""
        dof = np.array([self.dof])
        arrays = _Drives(dof, self.rows, self.gains, np.array([self.limit]))
        return Family(DRIVES, arrays, (dof, dof), self.signal, followers=1)
