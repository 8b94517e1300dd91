"""Penalty contact of points on any body with shapes on any body, as a term with branches."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from add.contact.branches import PairContact
from add.contact.coefficients import FrictionLaw, PairParameters
from add.contact.sparsity import Blocks
from add.contact.sticking import StickingBodies
from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Decision, Term
from add.kernels import contact_bodies as kernel
from add.kernels.contact_bodies_jacobian import body_contact_jacobian, node_keys
from add.kernels.contact_bodies_parameters import body_contact_parameters
from add.kernels.contact_nodes import ACTIVE, GIVEN
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
class BodyContact(PairContact):
    """Forces between points and shapes on bodies, equal and opposite; equations stand in `add.kernels.contact_bodies`.

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
    _blocks: Blocks = field(init=False, repr=False, compare=False)
    #: Friction law and what limits friction, as the kernels take them.
    law_arguments: tuple[int, int] = field(init=False, repr=False, compare=False)

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
        object.__setattr__(self, "law_arguments", (self.law.kernel, self.normal_bits))
        object.__setattr__(self, "_blocks", Blocks.build(bodies, points, hosts, enabled))

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
    def blocks(self) -> Blocks:
        """Where the derivatives go."""
        return self._blocks

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

    def _hold(self, decision: Decision, pairs: IntArray) -> StickingBodies:
        return StickingBodies(self, decision, pairs)

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

    def on_branch(self, decision: Decision) -> Term:
        """Return the smooth law of the given branch."""
        return BodyContactBranch(self, decision)

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

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the elastic energy of all contacts [J]."""
        return float(kernel.body_contact_energy(*self.arguments(kin, theta), self.new_codes()))


@final
@dataclass(frozen=True)
class BodyContactBranch(Term):
    """One branch of a `BodyContact`: smooth, without any decision.

    Attributes
    ----------
    contact : BodyContact
    codes : (n_points, n_shapes)
        Bits of `add.kernels.contact_nodes`.
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
