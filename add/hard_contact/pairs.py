"""Pairs of points and shapes that may touch, read from the penalty terms that a model was built with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from add.contact import BodyContact, FrictionLaw
from add.equations.lift import Lift
from add.equations.lifted import LiftedDecidingTerm, LiftedTerm
from add.equations.lifted_constraint import LiftedConstraint
from add.equations.system import System
from add.kernels.contact_detection import FIRST, STOP, meeting_pairs
from add.kernels.contact_places import PairArrays
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class ContactPairs:
    """Pairs of a point and a shape of the world or of a rigid body. Stiffnesses and dampings are not read.

    Attributes
    ----------
    first : (m,)
        First coordinate of what carries the point.
    rigid : (m,) bool
        Whether that is a rigid body (six coordinates x, w) or a node (three).
    arm : (m, 3)
        Place in the body's frame [m]; ignored for nodes.
    radius : (m,)
        The point is the centre of a sphere of this radius [m].
    centre : (m, 3)
        Indices in theta of the centre of mass of the body in its frame; -1 is zero.
    kind, size : (m,), (m, 3)
        Shape, as in `add.kernels.distance`.
    host : (m,)
        First coordinate of the rigid body that carries the shape; -1 for the world.
    host_centre : (m, 3)
        Indices in theta of that body's centre of mass; -1 is zero.
    rotation, position, velocity : (m, 3, 3), (m, 3), (m, 3)
        Pose of the shape in the host's frame, or in the world at t = 0 [m], and its steady velocity there [m/s].
    c_f, k_d : (m,)
        Indices in theta of the coefficients of friction (-1 is none) and of the dampings.
    source : (m, 3)
        Number of the term, of its point and of its shape.
    """

    first: IntArray
    rigid: BoolArray
    arm: FloatArray
    radius: FloatArray
    centre: IntArray
    kind: IntArray
    size: FloatArray
    host: IntArray
    host_centre: IntArray
    rotation: FloatArray
    position: FloatArray
    velocity: FloatArray
    c_f: IntArray
    k_d: IntArray
    source: IntArray

    @property
    def n(self) -> int:
        """Number of pairs."""
        return int(self.first.size)

    @classmethod
    def of(cls, contacts: Sequence[BodyContact]) -> ContactPairs:
        """Return the pairs of penalty terms."""
        parts = [_of_bodies(k, term) for k, term in enumerate(contacts)]
        return parts[0]._with(parts[1:]) if parts else _nothing()

    def select(self, rows: IntArray | BoolArray) -> ContactPairs:
        """Return some of the pairs."""
        return ContactPairs(*(value[rows] for value in self._values()))

    def friction(self, theta: FloatArray) -> FloatArray:
        """Return the coefficients of friction (m,)."""
        return np.where(self.c_f >= 0, theta[self.c_f], 0.0)

    @cached_property
    def centres(self) -> IntArray:
        """Indices (m, 6) in theta of the centres of mass of carrier and host; -1 for none."""
        carrier = np.where(self.rigid[:, None], self.centre, -1)
        return np.concatenate([carrier, np.where(self.hosted[:, None], self.host_centre, -1)], axis=1)

    @property
    def hosted(self) -> BoolArray:
        """Whether a body carries the shape (m,)."""
        return self.host >= 0

    @cached_property
    def arrays(self) -> PairArrays:
        """The pairs as the kernels take them."""
        return PairArrays(
            self.first, self.rigid, self.arm, self.radius, self.centre, self.kind, self.size, self.host,
            self.host_centre, self.rotation, self.position, self.velocity,
        )  # fmt: skip

    def dofs(self) -> IntArray:
        """Return the coordinates (m, 12) of carrier and host; nodes have three, the world none, -1 for the others."""
        return self._dofs

    @cached_property
    def _dofs(self) -> IntArray:
        out = np.concatenate([self.first[:, None] + np.arange(6), self.host[:, None] + np.arange(6)], axis=1)
        out[~self.rigid, 3:6] = -1
        out[~self.hosted, 6:] = -1
        return out

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def _with(self, others: Sequence[ContactPairs]) -> ContactPairs:
        columns = zip(self._values(), *(other._values() for other in others), strict=True)
        return ContactPairs(*(np.concatenate(column) for column in columns))


def contact_terms(system: System) -> tuple[tuple[BodyContact, ...], System]:
    """Return the contact terms of a system, and the system without them; cables and other terms stay.

    Those of systems with a lift are written over its rows.
    """
    inner = [term.inner if isinstance(term, LiftedDecidingTerm) else term for term in system.deciding]
    contacts = tuple(term for term in inner if isinstance(term, BodyContact))
    others = tuple(term for term, own in zip(system.deciding, inner, strict=True) if not isinstance(own, BodyContact))
    return contacts, replace(system, deciding=others)


def lift_of(system: System) -> Lift:
    """Return the lift that the terms of a system are written over; that of q itself where there is none."""
    for term in (*system.terms, *system.deciding, *system.constraints):
        if isinstance(term, LiftedTerm | LiftedDecidingTerm | LiftedConstraint):
            return term.lift
    return Lift(system.dofs, system.dofs)


def _nothing() -> ContactPairs:
    none, vectors = np.zeros(0, dtype=np.int64), np.zeros((0, 3))
    at = np.zeros((0, 3), dtype=np.int64)
    frames = np.zeros((0, 3, 3))
    return ContactPairs(
        none,
        np.zeros(0, dtype=bool),
        vectors,
        np.zeros(0),
        at,
        none,
        vectors,
        none,
        at,
        frames,
        vectors,
        vectors,
        none,
        none,
        at,
    )


def _friction(law: FrictionLaw, index: IntArray) -> IntArray:
    return np.full_like(index, -1) if law is FrictionLaw.NONE else index


def _possible_pairs(term: BodyContact) -> tuple[IntArray, IntArray]:
    """Return points and shapes of all pairs that may touch, by point: many where there are many bodies."""
    runs = term.arrays.runs
    run, shape = meeting_pairs(term.arrays).T
    count = (runs[:, STOP] - runs[:, FIRST])[run]
    point = np.repeat(runs[run, FIRST], count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    shape = np.repeat(shape, count)
    order = np.lexsort((shape, point))
    return point[order], shape[order]


def _of_bodies(number: int, term: BodyContact) -> ContactPairs:
    i, o = _possible_pairs(term)
    return ContactPairs(
        first=term.carrier[i].astype(np.int64),
        rigid=term.rigid[i],
        arm=np.asarray(term.arm, dtype=float)[i],
        radius=np.asarray(term.radius, dtype=float)[i],
        centre=term.centre[i],
        kind=np.asarray(term.kind, dtype=np.int64)[o],
        size=np.asarray(term.size, dtype=float)[o],
        host=np.asarray(term.shape_carrier, dtype=np.int64)[o],
        host_centre=term.shape_centre[o],
        rotation=np.asarray(term.rotation, dtype=float)[o],
        position=np.asarray(term.position, dtype=float)[o],
        velocity=np.where(term.shape_carrier[o, None] >= 0, 0.0, np.asarray(term.velocity, dtype=float)[o]),
        c_f=_friction(term.law, term.pairs.c_f[term.group[i], term.shape_group[o]]),
        k_d=term.pairs.k_d[term.group[i], term.shape_group[o]],
        source=np.stack([np.full(i.size, number), i, o], axis=1),
    )
