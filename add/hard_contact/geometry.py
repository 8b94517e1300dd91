"""Gaps, normals and relative velocities of contact pairs, with all that a Newton matrix needs of them.

The equations stand in `add.kernels.contact_points` and `add.kernels.contact_blocks`: they are those of penalty contact,
without its law. A force F on the point acts on its carrier a as (F, J_a^T (l_a x F)), on the shape's body b as minus
(F, J_b^T (l_b x F)); at fixed F the torque changes by J^T (dl x F) + d(J^T tau)/dw dw.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from add.contact import BodyContact, FrictionLaw
from add.equations.kinematics import Kinematics
from add.equations.lift import Lift
from add.equations.lifted import LiftedDecidingTerm, LiftedTerm
from add.equations.lifted_constraint import LiftedConstraint
from add.equations.system import System
from add.kernels import contact_rows as kernel
from add.kernels.contact_arrays import Contacts, Motion, Packed, nothing, packed as pack
from add.kernels.contact_detection import meeting_pairs
from add.kernels.contact_lines import may_cross
from add.kernels.contact_pairs import Law
from add.kernels.shape_grid import FIRST, STOP
from add.typing import BoolArray, FloatArray, IntArray

# --- Which points may touch which shapes: the pairs of the penalty term that hard contact takes the place of ----------


@final
@dataclass(frozen=True)
class ContactPairs:
    """Points and shapes that may touch; every row is one pair.

    Attributes
    ----------
    arrays, packed : those of the penalty term
    frictionless : bool
        Whether its law has no friction.
    number : (m,) point * n_shapes + shape, increasing; with bits of `decided`
    """

    arrays: Contacts
    packed: Packed
    frictionless: bool
    number: IntArray

    @classmethod
    def of(cls, contact: BodyContact | None) -> "ContactPairs":
        """Return the pairs of a penalty term; none without one."""
        if contact is None:
            return cls(nothing(), pack(nothing(), Law(0, 0)), True, np.zeros(0, dtype=np.int64))
        number = _possible_pairs(contact.arrays)
        return cls(contact.arrays, contact.packed, contact.law is FrictionLaw.NONE, number)

    def select(self, rows: IntArray | BoolArray) -> "ContactPairs":
        """Return some of the pairs."""
        return replace(self, number=self.number[rows])

    def decided(self, kin: Kinematics, theta: FloatArray) -> "ContactPairs":
        """Return the pairs of a step from there: which points roll with their rims no unknown of it chooses."""
        number = self.number.copy()
        kernel.decide_rims(Motion(float(kin.t), kin.q, kin.v, theta), self.packed, number)
        return replace(self, number=number)

    @property
    def n(self) -> int:
        """Number of pairs."""
        return int(self.number.size)

    @cached_property
    def point(self) -> IntArray:
        """Points (m,)."""
        return (self.number & kernel.PAIRS) // max(self.arrays.kind.size, 1)

    @cached_property
    def shape(self) -> IntArray:
        """Shapes (m,)."""
        return (self.number & kernel.PAIRS) % max(self.arrays.kind.size, 1)

    @cached_property
    def _bodies(self) -> IntArray:
        """Rows of `Contacts.bodies` of carrier and host (m, 2); -1 for a node or the world."""
        return np.stack([self.arrays.points[self.point, 2], self.arrays.hosts[self.shape]], axis=1)

    @cached_property
    def rigid(self) -> BoolArray:
        """Whether a body carries the point (m,)."""
        return np.asarray(self._bodies[:, 0] >= 0)

    @cached_property
    def hosted(self) -> BoolArray:
        """Whether a body carries the shape (m,)."""
        return np.asarray(self._bodies[:, 1] >= 0)

    @cached_property
    def centres(self) -> IntArray:
        """Indices (m, 6) in theta of the centres of mass of carrier and host; -1 for none."""
        known = np.concatenate([self.arrays.bodies[:, 1:4], np.full((1, 3), -1)])
        return known[self._bodies].reshape(-1, 6)

    def _indices(self, column: int) -> IntArray:
        points, columns = self.arrays.points[self.point, 1], self.arrays.columns[self.shape, 0]
        return self.arrays.tables[points, columns, column]

    @cached_property
    def c_f(self) -> IntArray:
        """Indices (m,) in theta of the coefficients of friction; -1 for none."""
        return np.full(self.n, -1) if self.frictionless else self._indices(3)

    @cached_property
    def k_d(self) -> IntArray:
        """Indices (m,) in theta of the dampings, in whose places restitutions may stand."""
        return self._indices(1)

    @cached_property
    def velocity(self) -> FloatArray:
        """Given velocities (m, 3) of shapes of the world, and the opposite of its points [m/s]; zero for others."""
        known = np.append(self.arrays.bodies[:, 0], 0)[self._bodies[:, 0]]
        moves = np.where(known[:, None] < 0, -self.arrays.poses[np.maximum(-2 - known, 0), 4], 0.0)
        return np.where(self.hosted[:, None], moves, self.arrays.poses[self.shape, 4])

    def friction(self, theta: FloatArray) -> FloatArray:
        """Return the coefficients of friction (m,)."""
        return np.where(self.c_f >= 0, theta[self.c_f], 0.0)

    def dofs(self) -> IntArray:
        """Return the coordinates (m, 12) of carrier and host; nodes have three, the world none, -1 for the others."""
        return self._dofs

    @cached_property
    def _dofs(self) -> IntArray:
        first = self.arrays.points[self.point, 0]
        host = np.append(self.arrays.bodies[:, 0], 0)[self._bodies[:, 1]]
        out = np.concatenate([first[:, None] + np.arange(6), host[:, None] + np.arange(6)], axis=1)
        out[~self.rigid, 3:6] = -1
        out[first < 0, :6] = -1
        out[~self.hosted, 6:] = -1
        return out


def contact_term(system: System) -> tuple[BodyContact | None, System]:
    """Return the contact of points of a system, if it has any, and the system without it; other terms stay.

    That of a system with a lift is written over its rows.
    """
    inner = [term.inner if isinstance(term, LiftedDecidingTerm) else term for term in system.deciding]
    others = tuple(term for term, bare in zip(system.deciding, inner, strict=True) if not isinstance(bare, BodyContact))
    return next((bare for bare in inner if isinstance(bare, BodyContact)), None), replace(system, deciding=others)


def lift_of(system: System) -> Lift:
    """Return the lift that the terms of a system are written over; that of q itself where there is none."""
    for term in (*system.terms, *system.deciding, *system.constraints):
        if isinstance(term, LiftedTerm | LiftedDecidingTerm | LiftedConstraint):
            return term.lift
    return Lift(system.dofs, system.dofs)


def _possible_pairs(arrays: Contacts) -> IntArray:
    """Return the numbers of all pairs that may touch: many where there are many bodies."""
    run, shape = meeting_pairs(arrays).T
    first, count = arrays.runs[run, FIRST], (arrays.runs[:, STOP] - arrays.runs[:, FIRST])[run]
    point = np.repeat(first, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    shape = np.repeat(shape, count)
    # Lines cross lines alone, and most pairs of points and shapes are of lines.
    kept = np.flatnonzero(may_cross(point, shape, arrays))
    return np.sort(point[kept] * arrays.kind.size + shape[kept])


# ----------------------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Rows:
    """Rows of contacts in velocities.

    Attributes
    ----------
    axes : (k, 3, 3) columns t_1, t_2, n
    dofs : (k, 12) coordinates of carrier and host, -1 for none
    push : (k, 12, 3) generalised force per force, world axes
    local : (k, 3, 12) rows over the coordinates of the pairs, in their axes
    matrix : (3 k, n) rows over all coordinates
    """

    axes: FloatArray
    dofs: IntArray
    push: FloatArray
    local: FloatArray
    matrix: FloatArray


@final
@dataclass(frozen=True)
class TouchDerivatives:
    """Derivatives by p numbers of each pair: the coordinates of carrier (six) and host (six), or centres of mass.

    Attributes
    ----------
    gap : (m, p)
    normal, velocity : (m, 3, p)
    push : (m, 12, 3) generalised force per force on the point; zeros of derivatives by centres of mass
    pushed : (m, 12, p) of the generalised forces of given forces
    """

    gap: FloatArray
    normal: FloatArray
    velocity: FloatArray
    push: FloatArray
    pushed: FloatArray


@final
@dataclass(frozen=True)
class Touches:
    """Gaps, normals, velocities and places of pairs at one state; rows follow the pairs.

    Attributes
    ----------
    pairs : ContactPairs
    motion : Motion
        Time, coordinates, rates and theta: not copies, they must not change.
    gap : (m,) [m]
    normal : (m, 3) away from the shape
    velocity : (m, 3) of the point's surface relative to the shape's [m/s]
    place : (m, 3) where the surfaces meet [m]
    arms : (m, 2, 3) from the centres of mass of carrier and host to there [m]
    """

    pairs: ContactPairs
    motion: Motion
    gap: FloatArray
    normal: FloatArray
    velocity: FloatArray
    place: FloatArray
    arms: FloatArray

    @classmethod
    def far(cls, pairs: ContactPairs, kin: Kinematics, theta: FloatArray) -> "Touches":
        """Return pairs none of which is near; see `measure`."""
        m = pairs.n
        out = np.full(m, np.inf), np.zeros((m, 3)), np.zeros((m, 3)), np.zeros((m, 3)), np.zeros((m, 2, 3))
        return cls(pairs, Motion(float(kin.t), kin.q, kin.v, theta), *out)

    def in_reach(self, kin: Kinematics, dt: float, faster: float, resting: float, touching: float) -> IntArray:
        """Return which pairs may be as near as ``touching`` within dt; see `add.kernels.contact_rows.in_reach`."""
        motion = Motion(float(kin.t), kin.q, kin.v, self.motion.theta)
        return np.asarray(kernel.in_reach(motion, *self._arguments[1:], dt, faster, resting, touching))

    def measure(self, rows: IntArray, kin: Kinematics, theta: FloatArray) -> None:
        """Fill what is known of some pairs at ``kin``, where their lowest points are."""
        found = touches(self.pairs.select(rows), kin, theta, lowest=True)
        for name in ("gap", "normal", "velocity", "place", "arms"):
            getattr(self, name)[rows] = getattr(found, name)
        self.__dict__.pop("normal_velocity", None)

    def select(self, rows: IntArray) -> "Touches":
        """Return those of some pairs."""
        parts = (self.gap, self.normal, self.velocity, self.place, self.arms)
        return Touches(self.pairs.select(rows), self.motion, *(part[rows] for part in parts))

    @cached_property
    def normal_velocity(self) -> FloatArray:
        """Relative velocity along the normal (m,) [m/s]."""
        return np.asarray(np.einsum("mi,mi->m", self.normal, self.velocity))

    @property
    def tangential_velocity(self) -> FloatArray:
        """Relative velocity across the normal (m, 3) [m/s]."""
        return self.velocity - self.normal_velocity[:, None] * self.normal

    @property
    def _arguments(self):
        return self.motion, self.pairs.packed, self.pairs.number

    def add_forces(self, force: FloatArray, out: FloatArray) -> None:
        """Add the generalised forces to ``out`` (n,): ``force`` (m, 3) on the points, the opposite on the shapes."""
        kernel.add_touch_forces(*self._arguments, self.arms, np.ascontiguousarray(force), out)

    def rows(self) -> Rows:
        """Return the rows of the pairs in velocities."""
        m, n = self.pairs.n, self.motion.q.size
        axes, dofs, push = np.zeros((m, 3, 3)), np.full((m, 12), -1, dtype=np.int64), np.zeros((m, 12, 3))
        out = axes, dofs, push, np.zeros((m, 3, 12)), np.zeros((3 * m, n))
        kernel.touch_rows(*self._arguments, self.normal, self.arms, out)
        return Rows(*out)

    def by_coordinates(self, c: float, force: FloatArray | None = None) -> TouchDerivatives:
        """Return the derivatives by the step's unknown u: dq = du, dv = c du; ``force`` (m, 3) is held."""
        return self._derivatives(False, c, force)

    def by_centres(self, force: FloatArray | None = None) -> TouchDerivatives:
        """Return the derivatives by the centres of mass of carrier and host (p = 6), velocities of the bodies held."""
        return self._derivatives(True, 0.0, force)

    def _derivatives(self, centres: bool, c: float, force: FloatArray | None) -> TouchDerivatives:
        m, p = self.pairs.n, 6 if centres else 12
        held = np.zeros((m, 3)) if force is None else np.ascontiguousarray(force)
        out = np.zeros((m, p)), np.zeros((m, 3, p)), np.zeros((m, 3, p)), np.zeros((m, 12, 3)), np.zeros((m, 12, p))
        kernel.touch_derivatives(*self._arguments, centres, c, held, out)
        return TouchDerivatives(*out)


def gathered(values: FloatArray, index: IntArray) -> FloatArray:
    """Return values (n, ...) at an index (k, p), zero where it is -1."""
    there = (index >= 0).reshape(*index.shape, *(1,) * (values.ndim - 1))
    return np.where(there, values[index], 0.0)


def scatter(local: FloatArray, index: IntArray, out: FloatArray) -> None:
    """Add local (k, p, ...) to out (n, ...) at an index (k, p), nowhere where it is -1."""
    there = index >= 0
    np.add.at(out, index[there], local[there])


class LocalBlocks(NamedTuple):
    """Derivatives of numbers of each pair by others, both ways.

    Attributes
    ----------
    places : (k, p) which numbers these are by, -1 for none
    values : (k, r, p)
    """

    places: IntArray
    values: FloatArray

    def push(self, dot: FloatArray) -> FloatArray:
        """Return the tangents (k, r, .) along dot (n, .)."""
        return np.asarray(self.values @ gathered(dot, self.places))

    def pull(self, bar: FloatArray, out: FloatArray) -> None:
        """Add the cotangents to out (n,) from bar (k, r)."""
        scatter(np.einsum("kr,krp->kp", bar, self.values), self.places, out)


def cross_matrices(u: FloatArray) -> FloatArray:
    """Return [u] (m, 3, 3) with [u] x = u x x."""
    out = np.zeros((u.shape[0], 3, 3))
    out[:, 0, 1], out[:, 0, 2], out[:, 1, 2] = -u[:, 2], u[:, 1], -u[:, 0]
    return out - out.transpose(0, 2, 1)


def cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a x b of rows (m, 3): `numpy.cross` takes longer than all else of a small step."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    out[:, 0] = a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]
    out[:, 1] = a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]
    out[:, 2] = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return out


def touches(pairs: ContactPairs, kin: Kinematics, theta: FloatArray, *, lowest: bool = False) -> Touches:
    """Return where all pairs are at ``kin``; ``lowest``: see `add.kernels.contact_rows.touches`."""
    m, motion = pairs.n, Motion(float(kin.t), kin.q, kin.v, theta)
    out = np.empty(m), np.empty((m, 3)), np.empty((m, 3)), np.empty((m, 3)), np.empty((m, 2, 3))
    geometry = Touches(pairs, motion, *out)
    kernel.touches(*geometry._arguments, lowest, out)
    return geometry
