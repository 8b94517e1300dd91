"""Which points may touch which shapes: the pairs of the penalty term that hard contact takes the place of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from add.contact import BodyContact, FrictionLaw
from add.equations.lift import Lift
from add.equations.lifted import LiftedDecidingTerm, LiftedTerm
from add.equations.lifted_constraint import LiftedConstraint
from add.equations.system import System
from add.kernels.contact_arrays import Contacts, Packed, nothing, packed as pack
from add.kernels.contact_detection import FIRST, STOP, meeting_pairs
from add.kernels.contact_pairs import Law
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class ContactPairs:
    """Points and shapes that may touch; every row is one pair.

    Attributes
    ----------
    arrays, packed : those of the penalty term
    frictionless : bool
        Whether its law has no friction.
    number : (m,) point * n_shapes + shape, increasing
    """

    arrays: Contacts
    packed: Packed
    frictionless: bool
    number: IntArray

    @classmethod
    def of(cls, contact: BodyContact | None) -> ContactPairs:
        """Return the pairs of a penalty term; none without one."""
        if contact is None:
            return cls(nothing(), pack(nothing(), Law(0, 0)), True, np.zeros(0, dtype=np.int64))
        number = _possible_pairs(contact.arrays)
        return cls(contact.arrays, contact.packed, contact.law is FrictionLaw.NONE, number)

    def select(self, rows: IntArray | BoolArray) -> ContactPairs:
        """Return some of the pairs."""
        return replace(self, number=self.number[rows])

    @property
    def n(self) -> int:
        """Number of pairs."""
        return int(self.number.size)

    @cached_property
    def point(self) -> IntArray:
        """Points (m,)."""
        return self.number // max(self.arrays.kind.size, 1)

    @cached_property
    def shape(self) -> IntArray:
        """Shapes (m,)."""
        return self.number % max(self.arrays.kind.size, 1)

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
        """Given velocities (m, 3) of shapes of the world [m/s]; zero for others."""
        return np.where(self.hosted[:, None], 0.0, self.arrays.poses[self.shape, 4])

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
        out[~self.hosted, 6:] = -1
        return out


def contact_term(system: System) -> tuple[BodyContact | None, System]:
    """Return the contact of points of a system, if it has any, and the system without it; other terms stay.

    That of a system with a lift is written over its rows.
    """
    inner = [term.inner if isinstance(term, LiftedDecidingTerm) else term for term in system.deciding]
    others = tuple(term for term, own in zip(system.deciding, inner, strict=True) if not isinstance(own, BodyContact))
    return next((own for own in inner if isinstance(own, BodyContact)), None), replace(system, deciding=others)


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
    return np.sort(point * arrays.kind.size + np.repeat(shape, count))
