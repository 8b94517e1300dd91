"""The terms of a system as the arrays of a compiled step, and the terms that it lacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from add.compiled import joints as codes
from add.compiled.arrays import (
    KINDS,
    BodyPairs,
    Joints,
    Layout,
    Loads,
    Nodal,
    NodePairs,
    Rigid,
    Weight,
)
from add.compiled.pack_trees import TREE_TERMS, pack_trees
from add.compiled.packed import PackedFamilies, empty, packed
from add.compiled.reasons import NotCompiled
from add.contact.coefficients import NormalLaw
from add.contact.penalty_bodies import BodyContact
from add.contact.penalty_nodes import PenaltyContact
from add.equations.lift import Lift
from add.equations.lifted import LiftedDecidingTerm, LiftedTerm
from add.equations.points import NodePoints, WorldFrames
from add.equations.signals import Signal
from add.equations.system import System
from add.equations.term import DecidingTerm, Term
from add.joints.actuators import AxisTorque, Motor, PointForce
from add.joints.air import AirOnFaces, Drag
from add.joints.joints import AngleLimit, AngularDamping, JointFriction, Slider
from add.joints.law_term import DecidingJointLaw, JointLaw
from add.joints.springs import Cable, ElasticJoint, Spring
from add.kernels.contact_detection import meeting_pairs
from add.terms import Gravity, Inertia, NodalForce, RigidInertia
from add.typing import AnyArray, IntArray

#: Up to so many coordinates a step is a compiled one: beyond, sparse matrices beat dense ones.
MOST_COORDINATES = 200

#: Up to so many entries of contact blocks, of all pairs that may ever touch.
MOST_ENTRIES = 2_000_000

#: The code of each joint law.
LAWS: dict[type, int] = {
    Spring: codes.SPRING,
    ElasticJoint: codes.BOND,
    AngularDamping: codes.BOND,
    Slider: codes.SLIDER,
    JointFriction: codes.FRICTION,
    Drag: codes.DRAG,
    AirOnFaces: codes.FACES,
    Motor: codes.MOTOR,
    AxisTorque: codes.TORQUE,
    PointForce: codes.GIVEN,
    Cable: codes.CABLE,
    AngleLimit: codes.LIMIT,
}


@final
@dataclass(frozen=True)
class PackedSystem:
    """A system as arrays.

    Attributes
    ----------
    system : System
    families : PackedFamilies
    signals : of loads, moves and joints, in the order of their numbers
    codes : of each deciding term, the part of the codes that is its own; None for contact
    bodies, nodes : numbers of the deciding terms that are contact between bodies, and of nodes; -1 for none
    n_codes : number of the codes of all joints with branches
    """

    system: System
    families: PackedFamilies
    signals: tuple[Signal, ...]
    codes: tuple[slice | None, ...]
    bodies: int
    nodes: int
    n_codes: int


def lacking(system: System) -> str:
    """Return the reason why a system takes no compiled steps; empty if it does."""
    try:
        pack(system)
    except NotCompiled as reason:
        return str(reason)
    return ""


def pack(system: System) -> PackedSystem:
    """Return the arrays of a system.

    Raises
    ------
    NotCompiled
        If it has a term without a compiled family, or is too large.
    """
    if system.n > MOST_COORDINATES:
        raise NotCompiled(f"{system.n} coordinates, more than {MOST_COORDINATES}")
    if not system.partition.free.size:
        raise NotCompiled("nothing is free to move")
    if system.constraints:
        raise NotCompiled(type(system.constraints[0]).__name__)
    found = _Packing(system).result()
    if system.limit is not None:
        raise NotCompiled(type(system.limit).__name__)
    return found


@final
@dataclass
class _Packing:
    """The families of a system in the making."""

    system: System
    families: dict[type, tuple[AnyArray, ...]] = field(default_factory=dict)
    signals: list[Signal] = field(default_factory=list)
    lift: Lift | None = None
    of_trees: list[Term] = field(default_factory=list)
    joints: list[tuple[int, JointLaw | DecidingJointLaw, int]] = field(default_factory=list)
    loads: list[tuple[bool, IntArray, AnyArray, Signal, IntArray]] = field(default_factory=list)
    n_codes: int = 0

    def result(self) -> PackedSystem:
        system = self.system
        self._find_lift()
        for term in system.terms:
            if type(term) in TREE_TERMS:
                self.of_trees.append(term)
            else:
                self._take(term.inner if isinstance(term, LiftedTerm) else term)
        for move in system.motion.moves:
            self.loads.append((True, move.dofs, move.axes, move.signal, move.rows))
        own: list[slice | None] = []
        numbers = {BodyContact: -1, PenaltyContact: -1}
        for k, given in enumerate(system.deciding):
            choice, first = given.inner if isinstance(given, LiftedDecidingTerm) else given, self.n_codes
            self._take(choice)
            own.append(slice(first, self.n_codes) if isinstance(choice, DecidingJointLaw) else None)
            if type(choice) in numbers:
                numbers[type(choice)] = k
        layout = system.partition.free, system.partition.prescribed, system.rotations, np.array([system.n])
        self.families[Layout] = layout
        self.families[Loads] = self._loads()
        self.families[Joints] = self._joints()
        if self.lift is not None and not self.of_trees:
            raise NotCompiled("a body in coordinates of its own that is no tree")
        if self.of_trees:
            self.families |= pack_trees(self.of_trees, self.lift, system.n, self._touched(), self._signal)
        return PackedSystem(
            system=system,
            families=packed(self.families.get(kind, empty(kind)) for kind in KINDS),
            signals=tuple(self.signals),
            codes=tuple(own),
            bodies=numbers[BodyContact],
            nodes=numbers[PenaltyContact],
            n_codes=self.n_codes,
        )

    @property
    def n_rows(self) -> int:
        """Number of rows of X that force families are written over."""
        return self.system.n if self.lift is None else self.lift.rows.n

    def _find_lift(self) -> None:
        """Find the lift of the families; it is the same for all."""
        for term in (*self.system.terms, *self.system.deciding):
            if isinstance(term, LiftedTerm | LiftedDecidingTerm):
                self.lift = term.lift

    def _touched(self) -> IntArray:
        """Return the rows of X that families depend on."""
        places = {Rigid: 3, Nodal: 5, Joints: 7, BodyPairs: 6, NodePairs: 13}
        found = [self.families[kind][k] % self.n_rows for kind, k in places.items() if kind in self.families]
        return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *found])).astype(np.int64)

    def _take(self, term: Term | DecidingTerm) -> None:
        """Add the arrays of a term."""
        if type(term) in LAWS:
            self._joint(term)
            return
        if type(term) not in _FAMILIES:
            raise NotCompiled(type(term).__name__)
        kind, arrays = _FAMILIES[type(term)]
        if kind is Loads:
            self.loads.append((False, term.nodes, term.shares, term.signal, term.rows))  # type: ignore[union-attr]
            return
        if kind in self.families:
            raise NotCompiled(f"a second {type(term).__name__}")
        self.families[kind] = arrays(term, self.n_rows)

    def _joint(self, term: Any) -> None:
        law, first = LAWS[type(term)], -1
        if isinstance(term, DecidingJointLaw):
            first, self.n_codes = self.n_codes, self.n_codes + term.sites.n
            law = codes.CLIPPED_CABLE if isinstance(term, Cable) and term.clip else law
        elif isinstance(term, AirOnFaces) and term.closed:
            law = codes.CLOSED_FACES
        self.joints.append((law, term, first))

    def _signal(self, signal: Signal) -> int:
        self.signals.append(signal)
        return len(self.signals) - 1

    def _loads(self) -> tuple[AnyArray, ...]:
        table, nodes, shares, axes, rows = [], [], [], [], []
        first = begin = 0
        for is_move, which, numbers, signal, index in self.loads:
            table.append([first, first + which.size, begin, self._signal(signal), int(is_move), 0])
            nodes.append(which)
            shares.append(np.zeros(which.size) if is_move else numbers)
            axes.append(numbers if is_move else np.zeros(which.size))
            rows.append(index)
            first, begin = first + which.size, begin + index.shape[0]
        if not table:
            return empty(Loads)
        return (
            np.array(table),
            np.concatenate(nodes),
            np.concatenate(shares),
            np.concatenate(axes),
            np.concatenate(rows),
        )

    def _joints(self) -> tuple[AnyArray, ...]:
        if not self.joints:
            return empty(Joints)
        table = []
        parts: list[list[AnyArray]] = [[] for _ in range(7)]
        size = [0] * 7
        for law, term, first_code in self.joints:
            sites, values = term.sites, term.values
            place = _places(sites.pattern, self.n_rows)
            table.append(
                [
                    law, sites.n, sites.arity, sites.dofs.shape[1], values.index.shape[1], values.rows.shape[2],
                    size[0], size[1], size[4], size[5], size[6], self._signal(values.signal), first_code,
                ]
            )  # fmt: skip
            arrays = (sites.kind, sites.dofs, sites.weights, sites.place, values.index, values.rows, place)
            for k, array in enumerate(arrays):
                parts[k].append(array if k == 3 else array.ravel())
                size[k] += array.shape[0] if k == 3 else array.size
        return (np.array(table), *(np.concatenate(part) for part in parts))


def _places(pattern: tuple[IntArray, IntArray], n: int) -> IntArray:
    """Return the places of entries in a full matrix by columns."""
    rows, cols = pattern
    return np.asarray(cols * n + rows, dtype=np.int64)


def _rigid(term: RigidInertia, n: int) -> tuple[AnyArray, ...]:
    return term.start, term.mass, term.inertia, _places(term.pattern(), n)


def _nodal(term: Inertia, n: int) -> tuple[AnyArray, ...]:
    return term.rows, term.cols, term.mass, term.density, term.damping, _places(term.pattern(), n)


def _weight(term: Gravity, n: int) -> tuple[AnyArray, ...]:
    return term.nodes, term.mass, term.density, term.gravity


def _refuse_laws(term: BodyContact | PenaltyContact) -> None:
    if term.is_hybrid:
        raise NotCompiled("hybrid friction")
    if term.normal_law is not NormalLaw.PENALTY:
        raise NotCompiled(f"the contact law {term.normal_law.name}")


def _bodies(term: BodyContact, n: int) -> tuple[AnyArray, ...]:
    """Return the arrays of contact between bodies, with the blocks of all pairs that may ever touch."""
    _refuse_laws(term)
    if term.sizes is not None:
        raise NotCompiled("sizes of shapes that are numbers")
    contacts, blocks = term.arrays, term.blocks
    nb = contacts.bodies.shape[0]
    run, shape = meeting_pairs(contacts).T
    host = contacts.hosts[shape]
    keys = []
    for r, b in zip(run[host >= 0], host[host >= 0], strict=True):
        points = np.arange(contacts.runs[r, 0], contacts.runs[r, 1])
        carriers = np.where(contacts.points[points, 2] >= 0, contacts.points[points, 2], nb + points)
        keys.append(np.unique(carriers) * nb + b)
    every = np.unique(np.concatenate([blocks.always, *keys])).astype(np.int64)
    if 144 * every.size > MOST_ENTRIES:
        raise NotCompiled(f"{every.size} pairs of bodies that may touch")
    ints, floats, fields = term.packed
    places = _places(blocks.pattern(every), n)
    return ints, floats, fields, blocks.own, every, np.array([blocks.rows.size]), places


def _nodes(term: PenaltyContact, n: int) -> tuple[AnyArray, ...]:
    points, shapes, pairs, frames = term.points, term.shapes, term.pairs, term.shapes.frames
    _refuse_laws(term)
    if not isinstance(points, NodePoints) or not isinstance(frames, WorldFrames):
        raise NotCompiled("contact points between nodes")
    static = np.full((*pairs.k_n.shape, 2), -1) if pairs.static is None else pairs.static
    return (
        points.nodes, term.scale, term.group, shapes.kind, shapes.size, frames.rotation, frames.position,
        frames.velocity, term.shape_group, pairs.enabled,
        np.stack([pairs.k_n, pairs.k_d, pairs.k_t, pairs.c_f, static[:, :, 0], static[:, :, 1]]),
        np.stack([pairs.onset, pairs.ramp]), np.array(term.kernel_law), _places(points.block_pattern(), n),
    )  # fmt: skip


#: The family of each term that is no joint, and its arrays. What is not here takes the steps of the terms themselves.
_FAMILIES: dict[type, tuple[type, Callable[[Any, int], tuple[AnyArray, ...]]]] = {
    RigidInertia: (Rigid, _rigid),
    Inertia: (Nodal, _nodal),
    Gravity: (Weight, _weight),
    BodyContact: (BodyPairs, _bodies),
    PenaltyContact: (NodePairs, _nodes),
    NodalForce: (Loads, lambda term, n: ()),
}

#: The types of terms that compiled steps know.
KNOWN = frozenset({*LAWS, *_FAMILIES, *TREE_TERMS})
