"""Penalty contact of points on any body with shapes on any body, as a term with branches."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from add.contact.held import HeldBodies
from add.contact.penalty import (
    FrictionLaw,
    PairParameters,
    count_branches,
    hold_sticking,
    hold_touching,
    normal_bits,
    release_held,
)
from add.kernels import body_contact as kernel
from add.kernels.body_derivatives import body_contact_jacobian, node_keys
from add.kernels.body_parameters import body_contact_parameters
from add.kernels.contact import ACTIVE, GIVEN, HELD, RELEASED
from add.kinematics import Kinematics, Weights
from add.term import DecidingTerm, Decision, Term
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class ContactPlaces:
    """Where bodies touch, for display.

    Attributes
    ----------
    place : (k, 3) world places [m]
    force : (k, 3) force on the point's body there [N]; the shape's body takes minus that
    point, shape : (k,) what touches what
    """

    place: FloatArray
    force: FloatArray
    point: IntArray
    shape: IntArray


@final
@dataclass(frozen=True)
class BodyContact(DecidingTerm):
    """Forces between points and shapes on bodies, equal and opposite; equations stand in `add.kernels.body_contact`.

    A pair of bodies whose points and shapes meet both ways (corners of either in faces of the other) counts both: two
    edges that cross touch nowhere. A body never touches its own shapes: such pairs must be disabled.

    Attributes
    ----------
    carrier : (n_points,)
        First coordinate of what carries each point.
    rigid : (n_points,) bool
        Whether that is a rigid body (six coordinates x, w) or a node (three).
    arm : (n_points, 3)
        Place in the body's frame [m]; ignored for nodes.
    radius : (n_points,)
        The point is the centre of a sphere of this radius [m]; 0 for a point.
    scale : (n_points,)
        One, or the rest area of the point [m^2] where stiffness is per area.
    group : (n_points,)
        Row of each point in the pair parameters.
    centre : (n_points, 3)
        Indices in theta of the centre of mass of the point's body in its frame; -1 is zero.
    kind : (n_shapes,) codes of `add.kernels.distance`
    size : (n_shapes, 3) [m]
    shape_carrier : (n_shapes,)
        First coordinate of the rigid body that carries each shape; -1 for the world.
    rotation, position : (n_shapes, 3, 3), (n_shapes, 3)
        Pose of the shape in the carrier's frame, or in the world at t = 0 [m].
    velocity : (n_shapes, 3)
        Steady velocity of shapes of the world [m/s]; ignored for others.
    shape_centre : (n_shapes, 3)
        Indices in theta of the centre of mass of the shape's body; -1 is zero.
    pairs : PairParameters
        Rows are groups of points, columns are shapes.
    law : FrictionLaw
    total_normal : bool
        Whether Coulomb's limit counts the damping force; the paper counts the elastic part only.
    pulls : bool
        Whether the damping may pull while bodies part; by default the normal force is clipped at zero.
    """

    carrier: IntArray
    rigid: BoolArray
    arm: FloatArray
    radius: FloatArray
    scale: FloatArray
    group: IntArray
    centre: IntArray
    kind: IntArray
    size: FloatArray
    shape_carrier: IntArray
    rotation: FloatArray
    position: FloatArray
    velocity: FloatArray
    shape_centre: IntArray
    pairs: PairParameters
    law: FrictionLaw
    total_normal: bool = False
    pulls: bool = False
    _arrays: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    _blocks: _Blocks = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        enabled = self.pairs.enabled[self.group]
        own = enabled & (self.carrier[:, None] == self.shape_carrier) & self.rigid[:, None]
        if own.any():
            i, o = np.argwhere(own)[0]
            raise ValueError(f"point {i} and shape {o} are on the same body: disable this pair")
        bodies, rows = self._body_table()
        hosts = np.array([rows.get(int(s), -1) for s in self.shape_carrier], dtype=np.int64)
        body = [rows[int(s)] if r else -1 for s, r in zip(self.carrier, self.rigid, strict=True)]
        points = np.stack([self.carrier, self.group, np.array(body, dtype=np.int64)], axis=1).astype(np.int64)
        arms = np.column_stack([self.arm, self.radius, self.scale]).astype(float)
        poses = np.concatenate([self.rotation, self.position[:, None], self.velocity[:, None]], axis=1)
        pairs = self.pairs
        tables = np.stack([pairs.k_n, pairs.k_d, pairs.k_t, pairs.c_f, pairs.enabled], axis=2).astype(np.int64)
        depths = np.stack([pairs.onset, pairs.ramp], axis=2).astype(float)
        runs, spheres = _runs(points, arms)
        arrays = (
            bodies,
            points,
            arms,
            runs,
            spheres,
            np.ascontiguousarray(self.kind, dtype=np.int64),
            np.ascontiguousarray(self.size, dtype=float),
            hosts,
            np.ascontiguousarray(poses, dtype=float),
            np.ascontiguousarray(tables),
            np.ascontiguousarray(depths),
        )
        object.__setattr__(self, "_arrays", arrays)
        object.__setattr__(self, "_blocks", _Blocks.build(bodies, points, hosts, enabled))

    def _body_table(self) -> tuple[IntArray, dict[int, int]]:
        """Return (first coordinate, indices of X_c) of every rigid body, and the row of every first coordinate."""
        table: dict[int, tuple[int, ...]] = {}
        on_bodies = self.shape_carrier >= 0
        starts = np.concatenate([self.carrier[self.rigid], self.shape_carrier[on_bodies]])
        centres = np.concatenate([self.centre[self.rigid], self.shape_centre[on_bodies]])
        for start, centre in zip(starts.tolist(), centres.tolist(), strict=True):
            if table.setdefault(start, tuple(centre)) != tuple(centre):
                raise ValueError(f"two centres of mass for the body that begins at coordinate {start}")
        rows = {start: row for row, start in enumerate(sorted(table))}
        bodies = np.array([(start, *table[start]) for start in sorted(table)], dtype=np.int64).reshape(-1, 4)
        return bodies, rows

    @property
    def n_points(self) -> int:
        """Number of points."""
        return int(self.carrier.size)

    @property
    def blocks(self) -> _Blocks:
        """Where the derivatives go."""
        return self._blocks

    @property
    def law_arguments(self) -> tuple[int, int]:
        """Friction law and what limits friction, as the kernels take them."""
        return self.law.kernel, normal_bits(self.total_normal, self.pulls)

    def arguments(self, kin: Kinematics, theta: FloatArray) -> tuple[Any, ...]:
        """Return time, state, parameters and structure as the kernels take them."""
        return (kin.t, kin.q, kin.v, theta, *self._arrays)

    def new_codes(self) -> Decision:
        """Return empty codes (n_points, n_shapes)."""
        return np.zeros((self.carrier.size, self.kind.size), dtype=np.int32)

    def decide(self, kin: Kinematics, theta: FloatArray) -> Decision:
        """Return the branch that holds at ``kin``."""
        return self.decided_residual(kin, theta, np.zeros_like(kin.q))

    def decided_residual(
        self, kin: Kinematics, theta: FloatArray, out: FloatArray, held: Decision | None = None
    ) -> Decision:
        """Decide and add minus the contact forces in one pass; ``held`` stays held."""
        codes = self.new_codes() if held is None else held & GIVEN
        kernel.body_contact_force(
            kin.t,
            kin.q,
            kin.v,
            theta,
            *self._arrays,
            *self.law_arguments,
            False,
            codes,
            out,
        )
        return codes

    def keys(self, decision: Decision) -> IntArray:
        """Return the pairs of nodes and bodies that touch, numbered, sorted."""
        if not self._blocks.dynamic:
            return _NO_KEYS
        bodies, points, hosts = self._arrays[0], self._arrays[1], self._arrays[7]
        return np.asarray(node_keys(points, hosts, decision, bodies.shape[0]))

    def structure(self, decision: Decision) -> Hashable:
        """Return which nodes touch which bodies, or a constant where no node can touch a body."""
        return self.keys(decision).tobytes() if self._blocks.dynamic else None

    @property
    def holds(self) -> bool:
        """Whether the law is hybrid."""
        return self.law is FrictionLaw.HYBRID

    def hold(self, decision: Decision) -> Decision:
        """Return the decision with all pairs held that stick."""
        return hold_sticking(decision) if self.holds else decision

    def touching(self, decision: Decision) -> Decision:
        """Return the decision with all pairs held that touch."""
        return hold_touching(decision) if self.holds else decision

    def at_rest(self, kin: Kinematics, theta: FloatArray) -> Decision | None:
        """Return the branch at ``kin`` with all pairs held that touch; None if one of them slides."""
        if not self.holds:
            return None
        codes = self.touching(self.decide(kin, theta))
        hold = self.held(codes)
        return codes if hold is None or hold.rest(kin, theta) else None

    def held(self, decision: Decision) -> HeldBodies | None:
        """Return the equations of the pairs that are held."""
        return HeldBodies(self, decision) if self.holds and (decision & HELD).any() else None

    def release(self, decision: Decision, rows: BoolArray) -> Decision:
        """Return the decision without some of its holds."""
        return release_held(decision, rows)

    def held_arguments(self, kin: Kinematics, theta: FloatArray) -> tuple[Any, ...]:
        """Return what the kernel of held pairs takes: all but the runs that detection goes through."""
        bodies, points, arms, _, _, *rest = self._arrays
        return (kin.t, kin.q, kin.v, theta, bodies, points, arms, *rest, self.law_arguments[1])

    def first_entries(self, pairs: IntArray, decision: Decision) -> IntArray:
        """Return where the dense block of the carriers of each pair (k, 2) begins in the frozen term's pattern."""
        blocks, points, hosts = self._blocks, self._arrays[1], self._arrays[7]
        i, o = pairs.T
        body, host = points[i, 2], hosts[o]
        out = blocks.own[i]
        both = (body >= 0) & (host >= 0)
        out[both] = blocks.between[body[both], host[both]]
        nodes = (body < 0) & (host >= 0)
        if nodes.any():
            numbers = i[nodes] * blocks.bodies.shape[0] + host[nodes]
            out[nodes] = blocks.rows.size + 81 * np.searchsorted(self.keys(decision), numbers)
        return out

    def without(self, decision: Decision, rows: BoolArray) -> Decision:
        """Return the decision without some of its holds, as if they had never been."""
        return release_held(decision, rows) & ~RELEASED

    def is_held(self, decision: Decision, other: Decision) -> BoolArray:
        """Return which of the pairs held in ``decision`` are held in another one, too."""
        return np.asarray(other[decision & HELD != 0] & HELD != 0)

    def frozen(self, decision: Decision) -> Term:
        """Return the smooth law of the given branch."""
        return FrozenBodyContact(self, decision)

    def describe(self, decision: Decision) -> dict[str, int]:
        """Return how many pairs touch, stick and slip, and under the hybrid law creep: neither held nor slipping."""
        return count_branches(self.law, decision)

    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return (n,) generalised contact forces [N, N m]."""
        out = np.zeros_like(kin.q)
        self.decided_residual(kin, theta, out)
        return -out

    def places(
        self, kin: Kinematics, theta: FloatArray, codes: Decision, reactions: FloatArray | None = None
    ) -> ContactPlaces:
        """Return where the pairs of ``codes`` touch and what they push with, ``reactions`` of held pairs included."""
        n = int(np.count_nonzero(codes & ACTIVE))
        place, force, pairs = np.empty((n, 3)), np.empty((n, 3)), np.empty((n, 2), dtype=np.int64)
        kernel.body_contact_places(*self.arguments(kin, theta), *self.law_arguments, True, codes, place, force, pairs)
        hold = self.held(codes)
        if hold is not None and reactions is not None:
            # The generalised force on the first three coordinates of the point's carrier is the force in world axes.
            pull = np.einsum("kam,ka->km", hold.operators(kin, theta).by_v[:, :, :3], reactions.reshape(-1, 3))
            width = codes.shape[1]
            numbers, held = pairs[:, 0] * width + pairs[:, 1], hold.pairs[:, 0] * width + hold.pairs[:, 1]
            _, mine, theirs = np.intersect1d(numbers, held, assume_unique=True, return_indices=True)
            force[mine] -= pull[theirs]
        return ContactPlaces(place, force, pairs[:, 0], pairs[:, 1])

    def stiffnesses(self) -> IntArray:
        """Return the indices of all stiffnesses and dampings."""
        return self.pairs.stiffnesses()

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the elastic energy of all contacts [J]."""
        return float(kernel.body_contact_energy(*self.arguments(kin, theta), self.new_codes()))


@final
@dataclass(frozen=True)
class FrozenBodyContact(Term):
    """One branch of a `BodyContact`: smooth, without any decision.

    Attributes
    ----------
    contact : BodyContact
    codes : (n_points, n_shapes)
        Bits of `add.kernels.contact`.
    """

    depends: ClassVar[str] = "qv"

    contact: BodyContact
    codes: Decision

    @cached_property
    def _keys(self) -> IntArray:
        return self.contact.keys(self.codes)

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return the blocks of all bodies that may touch, and of the nodes that touch bodies."""
        return self.contact.blocks.pattern(self._keys)

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add minus the contact forces."""
        contact = self.contact
        kernel.body_contact_force(*contact.arguments(kin, theta), *contact.law_arguments, True, self.codes, out)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives, unsymmetric."""
        if not (weights.q or weights.v):
            return
        contact, blocks = self.contact, self.contact.blocks
        body_contact_jacobian(
            *contact.arguments(kin, theta),
            *contact.law_arguments,
            True,
            self.codes,
            weights.q,
            weights.v,
            blocks.own,
            blocks.between,
            self._keys,
            blocks.rows.size,
            data,
            slots,
        )

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the pair parameters and of the centres of mass."""
        contact = self.contact
        body_contact_parameters(
            *contact.arguments(kin, theta), *contact.law_arguments, True, self.codes, False, out, lam
        )

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        contact = self.contact
        body_contact_parameters(
            *contact.arguments(kin, theta), *contact.law_arguments, True, self.codes, True, theta_dot, out
        )

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the elastic energy of all contacts that touch at ``kin`` [J]."""
        return self.contact.energy(kin, theta)


_NO_KEYS = np.zeros(0, dtype=np.int64)


@final
@dataclass(frozen=True)
class _Blocks:
    """The dense blocks of the derivatives: one for every two carriers that may touch.

    Attributes
    ----------
    rows, cols : entries of the blocks that are always there
    own : (n_points,)
        First entry of the block of each point's carrier alone (shapes of the world); -1 where there is none.
    between : (n_bodies, n_bodies)
        First entry of the block of a body with points and a body with shapes.
    dynamic : bool
        Whether nodes may touch bodies: their blocks (9 x 9) come behind, one for every pair that touches.
    points, bodies : as the kernels take them
    """

    rows: IntArray
    cols: IntArray
    own: IntArray
    between: IntArray
    dynamic: bool
    points: IntArray
    bodies: IntArray

    @classmethod
    def build(cls, bodies: IntArray, points: IntArray, hosts: IntArray, enabled: BoolArray) -> _Blocks:
        """Number the blocks of a `BodyContact`."""
        own = np.full(points.shape[0], -1, dtype=np.int64)
        between = np.full((bodies.shape[0], bodies.shape[0]), -1, dtype=np.int64)
        groups: list[IntArray] = []
        size = 0
        with_world = enabled[:, hosts < 0].any(axis=1)
        for rigid, width in ((True, 6), (False, 3)):
            chosen = np.flatnonzero(with_world & ((points[:, 2] >= 0) == rigid))
            starts, which = np.unique(points[chosen, 0], return_inverse=True)
            own[chosen] = size + width * width * which
            size += width * width * starts.size
            groups.append(starts[:, None] + np.arange(width))
        on_bodies = points[:, 2] >= 0
        met = np.zeros_like(between, dtype=bool)
        for o in np.flatnonzero(hosts >= 0):
            met[points[on_bodies & enabled[:, o], 2], hosts[o]] = True
        a, b = np.nonzero(met)
        between[a, b] = size + 144 * np.arange(a.size)
        six = np.arange(6)
        groups.append(np.concatenate([bodies[a, 0][:, None] + six, bodies[b, 0][:, None] + six], axis=1))
        rows, cols = zip(*(_entries(dofs) for dofs in groups), strict=True)
        dynamic = bool(enabled[np.ix_(~on_bodies, hosts >= 0)].any())
        return cls(np.concatenate(rows), np.concatenate(cols), own, between, dynamic, points, bodies)

    def pattern(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        """Return (rows, cols) of all blocks, those of ``keys`` last."""
        if keys.size == 0:
            return self.rows, self.cols
        i, b = np.divmod(keys, self.bodies.shape[0])
        node, body = self.points[i, 0][:, None] + np.arange(3), self.bodies[b, 0][:, None] + np.arange(6)
        rows, cols = _entries(np.concatenate([node, body], axis=1))
        return np.concatenate([self.rows, rows]), np.concatenate([self.cols, cols])


def _entries(dofs: IntArray) -> tuple[IntArray, IntArray]:
    """Return flat (rows, cols) of the dense blocks over each row of ``dofs`` (n_blocks, width)."""
    shape = (dofs.shape[0], dofs.shape[1], dofs.shape[1])
    rows = np.broadcast_to(dofs[:, :, None], shape).ravel()
    cols = np.broadcast_to(dofs[:, None, :], shape).ravel()
    return rows.astype(np.int64), cols.astype(np.int64)


def _runs(points: IntArray, arms: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return (first, stop, group, body) of the longest runs of like points, and a ball around each run of a body."""
    n = points.shape[0]
    like = np.zeros((0, 2)) if n == 0 else points[:, 1:]
    breaks = np.flatnonzero((like[1:] != like[:-1]).any(axis=1)) + 1
    firsts = np.concatenate([[0], breaks]) if n else np.zeros(0, dtype=np.int64)
    stops = np.concatenate([breaks, [n]]) if n else np.zeros(0, dtype=np.int64)
    runs = np.empty((firsts.size, 4), dtype=np.int64)
    spheres = np.zeros((firsts.size, 4))
    for k, (first, stop) in enumerate(zip(firsts, stops, strict=True)):
        runs[k] = first, stop, points[first, 1], points[first, 2]
        part = arms[first:stop]
        middle = 0.5 * (part[:, :3].min(axis=0) + part[:, :3].max(axis=0))
        reach = np.linalg.norm(part[:, :3] - middle, axis=1) + part[:, 3]
        spheres[k] = *middle, reach.max()
    return runs, spheres
