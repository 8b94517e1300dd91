"""Penalty contact with linear or tanh friction (Geilinger et al. 2020, section 4) as a term with branches."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.contact.branches import NO_CONTACT, PairContact, refuse_laws
from add.contact.coefficients import FrictionLaw, NormalLaw, PairParameters
from add.contact.shapes import Shapes
from add.contact.sticking import StickingPairs
from add.equations.family import Family, Kind, NotCompiled
from add.equations.kinematics import Kinematics, Weights
from add.equations.points import LinearPoints, NodePoints, WorldFrames
from add.equations.term import Candidates, Decision, Term
from add.kernels import contact_nodes as kernel
from add.kernels.arena import FAMILY, FIELD, Floats, Floats2, Floats3, Ints, Ints2, Ints3, unpacker
from add.kernels.caching import CALLED, njit
from add.kernels.contact_pairs import Law, Shapes as Placed
from add.kernels.point_ways import free_nodes
from add.kernels.sticking import StickRows, new_stick_rows, stick_rows_of_nodes
from add.typing import BoolArray, FloatArray, IntArray


class _Arrays(NamedTuple):
    nodes: Ints
    scale: Floats
    group: Ints
    kind: Ints
    size: Floats2
    rotation: Floats3
    position: Floats2
    velocity: Floats2
    column: Ints
    enabled: Ints2
    tables: Ints3
    depths: Floats3
    law: Ints


_own = unpacker(_Arrays)
Points, Table = kernel.Points, kernel.Table
contact_force, decided_contact_force = kernel.contact_force, kernel.decided_contact_force
contact_jacobian, contact_parameters = kernel.contact_jacobian, kernel.contact_parameters


@njit(**CALLED)
def _at(nodes, at):
    """Return points, shapes, table and law, as the kernels take them."""
    n, ns = nodes.nodes.size, nodes.kind.size
    x, v = np.empty((n, 3)), np.empty((n, 3))
    for i in range(n):
        for c in range(3):
            x[i, c], v[i, c] = at.q[3 * nodes.nodes[i] + c], at.v[3 * nodes.nodes[i] + c]
    place = np.empty((ns, 3))
    for o in range(ns):
        for c in range(3):
            place[o, c] = nodes.position[o, c] + at.t * nodes.velocity[o, c]
    rows, columns = nodes.enabled.shape
    values, enabled = np.empty((6, rows, columns)), np.empty((rows, columns), dtype=np.bool_)
    for r in range(rows):
        for c in range(columns):
            enabled[r, c] = nodes.enabled[r, c] != 0
            for k in range(6):
                index = nodes.tables[k, r, c]
                values[k, r, c] = at.theta[index] if index >= 0 else 0.0
    shapes = Placed(nodes.kind, nodes.size, nodes.rotation, place, nodes.velocity, np.zeros((ns, 3)))
    none = np.zeros((rows, columns))
    table = Table(
        nodes.column, enabled, values[0], values[1], values[2], values[3], nodes.depths[0], nodes.depths[1], none, none,
        values[4], values[5],
    )  # fmt: skip
    return Points(x, v, nodes.scale, nodes.group), shapes, table, Law(nodes.law[0], nodes.law[1], 0)


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    own = _own(arena, arena.families[k, FIELD])
    points, shapes, table, law = _at(own, at)
    force = np.empty((own.nodes.size, 3))
    if replay:
        n = contact_force(points, shapes, table, law, replay, rows, force)
    else:
        rows, n = decided_contact_force(points, shapes, table, law, rows[:0], force)
    if n:
        for i in range(own.nodes.size):
            for c in range(3):
                out[3 * own.nodes[i] + c] -= force[i, c]
    return rows


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if rows.size == 0 or (weight_q == 0.0 and weight_v == 0.0):
        return
    own = _own(arena, arena.families[k, FIELD])
    points, shapes, table, law = _at(own, at)
    n = own.nodes.size
    by_x, by_v = np.empty((n, 3, 3)), np.empty((n, 3, 3))
    if contact_jacobian(points, shapes, table, law, rows, by_x, by_v):
        for i in range(n):
            for r in range(3):
                for c in range(3):
                    data[slots[9 * i + 3 * r + c]] -= weight_q * by_x[i, r, c] + weight_v * by_v[i, r, c]


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    if rows.size == 0:
        return
    own = _own(arena, arena.families[k, FIELD])
    points, shapes, table, law = _at(own, at)
    n_rows, columns = own.enabled.shape
    bars, at_points = np.zeros((7, n_rows, columns)), np.zeros((own.nodes.size, 3))
    for i in range(0 if forward else own.nodes.size):
        for c in range(3):
            at_points[i, c] = along[3 * own.nodes[i] + c]
    for i in range(6 if forward else 0):
        for r in range(n_rows):
            for c in range(columns):
                if own.tables[i, r, c] >= 0:
                    bars[i if i < 4 else i + 1, r, c] = along[own.tables[i, r, c]]  # bar 4 is of the thickness
    contact_parameters(
        points, shapes, table, law, rows, forward,
        (bars[0], bars[1], bars[2], bars[3], bars[4], bars[5], bars[6]), at_points,
    )  # fmt: skip
    for i in range(own.nodes.size if forward else 0):
        for c in range(3):
            out[3 * own.nodes[i] + c] -= at_points[i, c]
    for i in range(0 if forward else 6):
        for r in range(n_rows):
            for c in range(columns):
                if own.tables[i, r, c] >= 0:
                    out[own.tables[i, r, c]] -= bars[i if i < 4 else i + 1, r, c]


KIND = Kind("contact_of_nodes", _Arrays, _forces, _parameters, _jacobian)


@final
@dataclass(frozen=True)
class PenaltyContact(PairContact):
    """Forces of shapes on points of bodies; the equations stand in `add.kernels.contact_pairs`.

    Attributes
    ----------
    points : LinearPoints
        Contact points of all bodies.
    scale : (n_points,)
        One, or the rest area of the point [m^2] where stiffness is per area.
    group : (n_points,)
        Row of each point in the pair parameters.
    owner : (n_points,)
        Number of the body of each point.
    shapes : Shapes
    shape_group : (n_shapes,)
        Column of each shape in the pair parameters.
    pairs : PairParameters
    law : FrictionLaw
    total_normal : bool
        Whether Coulomb's limit counts the damping force; the paper counts the elastic part only.
    adhesive_damping : bool
        Whether the damping may pull while bodies part; by default the normal force is clipped at zero.
    normal_law : NormalLaw
    """

    points: LinearPoints
    scale: FloatArray
    group: IntArray
    owner: IntArray
    shapes: Shapes
    shape_group: IntArray
    pairs: PairParameters
    law: FrictionLaw
    total_normal: bool = False
    adhesive_damping: bool = False
    normal_law: NormalLaw = NormalLaw.PENALTY

    def __post_init__(self) -> None:
        self.check_thickness()
        if self.shapes.frames.carried:
            raise ValueError("shapes carried by bodies need reactions on their carriers, which this term does not give")
        if self.is_hybrid and not isinstance(self.points, NodePoints):
            raise ValueError("hybrid friction sticks nodes, not points between them")

    @property
    def n_shapes(self) -> int:
        """Number of shapes."""
        return int(self.shapes.kind.size)

    def family(self) -> Family:
        """See `DecidingTerm.family`."""
        points, shapes, pairs, frames = self.points, self.shapes, self.pairs, self.shapes.frames
        refuse_laws(self)
        if not isinstance(points, NodePoints) or not isinstance(frames, WorldFrames):
            raise NotCompiled("contact points between nodes")
        static = np.full((*pairs.k_n.shape, 2), -1) if pairs.static is None else pairs.static
        arrays = _Arrays(
            points.nodes, self.scale, self.group, shapes.kind, shapes.size, frames.rotation, frames.position,
            frames.velocity, self.shape_group, pairs.enabled.astype(np.int64),
            np.stack([pairs.k_n, pairs.k_d, pairs.k_t, pairs.c_f, static[:, :, 0], static[:, :, 1]]),
            np.stack([pairs.onset, pairs.ramp]), np.array(self.kernel_law),
        )  # fmt: skip
        return Family(KIND, arrays, points.block_pattern())

    def arguments(
        self, kin: Kinematics, theta: FloatArray
    ) -> tuple[kernel.Points, kernel.Shapes, kernel.Table, kernel.Law]:
        """Return points, shapes, coefficients and the law as the kernels take them."""
        x, v = self.points.points(kin, theta)
        return kernel.Points(x, v, self.scale, self.group), self.shapes.at(kin), self._table(theta), self.kernel_law

    def _table(self, theta: FloatArray) -> kernel.Table:
        pairs = self.pairs
        thickness = self._no_layers if pairs.thickness is None else theta[pairs.thickness]
        reach = thickness if pairs.thickness is None else self.normal_law.reach * thickness
        return kernel.Table(
            self.shape_group, self._enabled,
            theta[pairs.k_n], theta[pairs.k_d], theta[pairs.k_t], theta[pairs.c_f], pairs.onset, pairs.ramp,
            thickness, reach, *self._static(theta),
        )  # fmt: skip

    def _static(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the entries of ``theta`` for static coefficients and Stribeck's speeds; zero where there are none."""
        index = self.pairs.static
        if index is None:
            return self._no_layers, self._no_layers
        return theta[index[:, :, 0]], theta[index[:, :, 1]]

    @cached_property
    def _no_layers(self) -> FloatArray:
        return np.zeros(self.pairs.k_n.shape)

    def free_share(self, q0: FloatArray, q1: FloatArray, theta: FloatArray) -> float:
        """Return the share of the ways that is free; see `PairContact.free_share`."""
        none = np.zeros_like(q0)
        begin, end = (Kinematics(q, none, none, 0.0, 0) for q in (q0, q1))
        x0, x1 = (self.points.points(kin, theta)[0] for kin in (begin, end))
        return float(free_nodes(x0, x1, self.shapes.at(begin), self.group, self._table(theta)))

    @cached_property
    def _enabled(self) -> BoolArray:
        return np.asarray(self.pairs.enabled != 0)

    def decided_residual(
        self, kin: Kinematics, theta: FloatArray, out: FloatArray, sticking: Decision | None = None
    ) -> Decision:
        """Decide and add minus the contact forces in one pass; ``sticking`` goes on sticking."""
        force = np.empty((self.points.n_points, 3))
        given = NO_CONTACT if sticking is None or not sticking.size else sticking
        decision, n = kernel.decided_contact_force(*self.arguments(kin, theta), given, force)
        if n:
            self.points.pull(-force, out)
        return decision

    def structure(self, decision: Decision, candidates: Candidates | None = None) -> Hashable:
        """Return a constant: against shapes of the world every point couples to itself alone."""
        return None

    def _stick_constraint(self, decision: Decision, rows: Decision, candidates: Candidates | None) -> StickingNodes:
        return StickingNodes(self, decision, rows)

    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> Term:
        """Return the smooth law of the given branch."""
        return NodeContactBranch(self, decision)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the elastic energy of all contacts [J]."""
        return float(kernel.contact_energy(*self.arguments(kin, theta)))


@final
@dataclass(frozen=True)
class NodeContactBranch(Term):
    """One branch of a `PenaltyContact`: smooth, without any decision.

    Attributes
    ----------
    contact : PenaltyContact
    decision : (k, 3) rows of `add.kernels.contact_pairs`
    """

    depends: ClassVar[str] = "qv"

    contact: PenaltyContact
    decision: Decision

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return the points' own blocks."""
        return self.contact.points.block_pattern()

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add minus the contact forces."""
        force = np.empty((self.contact.points.n_points, 3))
        if kernel.contact_force(*self.contact.arguments(kin, theta), True, self.decision, force):
            self.contact.points.pull(-force, out)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives, unsymmetric."""
        if not (weights.q or weights.v):
            return
        n = self.contact.points.n_points
        by_x, by_v = np.empty((n, 3, 3)), np.empty((n, 3, 3))
        if kernel.contact_jacobian(*self.contact.arguments(kin, theta), self.decision, by_x, by_v):
            by_x *= -weights.q
            by_x -= weights.v * by_v
            self.contact.points.scatter_blocks(by_x, data, slots)

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the pair parameters."""
        if not self.decision.size:
            return
        pairs = self.contact.pairs
        shape = pairs.k_n.shape
        bars = tuple(np.zeros(shape) for _ in range(7))
        at_points = self.contact.points.gather(lam)
        kernel.contact_parameters(*self.contact.arguments(kin, theta), self.decision, False, bars, at_points)
        static = (None, None) if pairs.static is None else (pairs.static[:, :, 0], pairs.static[:, :, 1])
        indices = (pairs.k_n, pairs.k_d, pairs.k_t, pairs.c_f, pairs.thickness, *static)
        for index, bar in zip(indices, bars, strict=True):
            if index is not None:
                np.subtract.at(out, index, bar)

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        if not self.decision.size:
            return
        pairs, points = self.contact.pairs, self.contact.points
        force = np.zeros((points.n_points, 3))
        layers = np.zeros(pairs.k_n.shape) if pairs.thickness is None else theta_dot[pairs.thickness]
        dots = (
            theta_dot[pairs.k_n], theta_dot[pairs.k_d], theta_dot[pairs.k_t], theta_dot[pairs.c_f], layers,
            *self.contact._static(theta_dot),
        )  # fmt: skip
        kernel.contact_parameters(*self.contact.arguments(kin, theta), self.decision, True, dots, force)
        points.pull(-force, out)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the elastic energy of all contacts that touch at ``kin`` [J]."""
        return self.contact.energy(kin, theta)


@final
class StickingNodes(StickingPairs):
    """Nodes that stick to obstacles of the world; reactions in world axes."""

    def __init__(self, contact: PenaltyContact, decision: Decision, rows: Decision) -> None:
        super().__init__(decision, rows, contact.n_shapes)
        self.contact = contact

    @cached_property
    def dofs(self) -> IntArray:
        """The three coordinates of each node."""
        rows, _ = self.contact.points.block_pattern()
        return rows.reshape(-1, 3, 3)[self.points, :, 0]

    @property
    def theta_index(self) -> IntArray:
        """None: obstacles of the world are given."""
        return np.zeros((self.rows.shape[0], 0), dtype=np.int64)

    @property
    def first_slots(self) -> IntArray:
        """Nine entries a point."""
        return 9 * self.points

    def _evaluate(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray) -> StickRows:
        """Return the rows at ``kin`` with ``reactions``."""
        out = new_stick_rows(self.rows.shape[0], 3, 0)
        points, shapes, table, law = self.contact.arguments(kin, theta)
        stick_rows_of_nodes(points, shapes, table, law, self.rows.copy(), reactions, out)
        return out
