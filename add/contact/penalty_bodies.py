"""Penalty contact of points on any body with shapes on any body, as a term with branches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, final

import numpy as np

from add.contact.body_family import body_family, family_with
from add.contact.branches import NO_CONTACT, ContactBranch, PairContact, StickingContacts
from add.contact.formulas import (
    CONSTANT_FRICTION,
    FrictionCurve,
    FrictionLaw,
    NormalFormula,
    NormalLaw,
    PairParameters,
)
from add.contact.limits import point_runs
from add.contact.sparsity import Blocks, body_table
from add.contact.surfaces import ContactPlaces
from add.equations.family import Family
from add.equations.family_term import OneFamily
from add.equations.kinematics import Kinematics
from add.equations.term import Candidates, Decision, Term
from add.kernels import contact_bodies as kernel
from add.kernels.contact_arrays import HALF, Contacts, Growth, Motion, Packed, Sizes, no_growth, packed as pack
from add.kernels.contact_blocks import first_entries
from add.kernels.contact_detection import meeting_pairs
from add.kernels.contact_pairs import ACTIVE, BITS, FACE, PAIR, STICKS
from add.kernels.distance import distance_bound
from add.kernels.shape_grid import FIRST
from add.kernels.sticking import StickRows, new_stick_rows, stick_rows_of_bodies
from add.typing import AnyArray, BoolArray, FloatArray, IntArray

#: How far ahead pairs are candidates, in steps.
AHEAD = 2.0


@final
@dataclass(frozen=True)
class BodyContact(PairContact):
    """Forces between points and shapes on bodies, equal and opposite; equations stand in `add.kernels.contact_bodies`.

    A pair of bodies whose points and shapes meet both ways (corners of either in faces of the other) counts both. A
    body never touches its own shapes.

    Attributes
    ----------
    carrier : (n_points,)
        First coordinate of the node or body; of points of an obstacle -2 less its number, see `Contacts`.
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
    size : (n_shapes, m) [m]
        Three numbers of each shape, or the row of a mesh.
    shape_carrier : (n_shapes,)
        First coordinate of the rigid body that carries each shape; -1 for the world.
    rotation, position : (n_shapes, 3, 3), (n_shapes, 3)
        Pose of the shape in the carrier's frame, or in the world at t = 0 [m].
    velocity : (n_shapes, 3)
        Steady velocity of shapes of the world [m/s]; ignored for others.
    shape_centre : (n_shapes, 3)
        Indices in theta of the centre of mass of the shape's body; -1 is zero.
    shape_group : (n_shapes,)
        Column of each shape in the pair parameters.
    owner, shape_owner : (n_points,), (n_shapes,)
        Numbers of the bodies and obstacles that the points and shapes are of.
    pairs : PairParameters
        Rows are groups of points, columns are groups of shapes.
    law : FrictionLaw
    total_normal : bool
        Whether Coulomb's limit counts the damping force; the paper counts the elastic part only.
    adhesive_damping : bool
        Whether the damping may pull while bodies part; by default the normal force is clipped at zero.
    part, shape_part : (n_points,), (n_shapes,)
        Labels of points and shapes; the owners where there are none.
    apart : (m, 2)
        Labels of points and of shapes that never meet.
    normal_law : NormalLaw or NormalFormula
    curve : FrictionCurve
        Of the coefficient of friction.
    sizes : Sizes or None
        Where arms, radii and sizes stand in theta; those above are then read no more (`at`).
    rim : (n_points,)
        Row of ``rims`` of points that turn with one (`add.kernels.contact_places`), -1 for others.
    rims : (m, 10)
        Circles that points turn on, and lines, as `add.kernels.contact_arrays.Contacts` has them.
    corners : (n_points, 4)
        Sum of the normals of the faces of its own box or cylinder that each point is on, in the body's frame, and the
        `fall_radius` of that [m]; zeros for others.
    lined : (n_shapes,) bool
        Shapes that are met by other bodies' lines and have lines of their own.
    part_of : Contacts or None
        Arrays in place of those made of the above: those of some of the points.
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
    shape_group: IntArray
    owner: IntArray
    shape_owner: IntArray
    pairs: PairParameters
    law: FrictionLaw
    total_normal: bool = False
    adhesive_damping: bool = False
    apart: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    part: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    shape_part: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    normal_law: NormalLaw | NormalFormula = NormalLaw.PENALTY
    curve: FrictionCurve = CONSTANT_FRICTION
    sizes: Sizes | None = None
    rim: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rims: FloatArray = field(default_factory=lambda: np.zeros((0, 10)))
    corners: FloatArray = field(default_factory=lambda: np.zeros((0, 4)))
    lined: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    part_of: Contacts | None = None
    _last: list[tuple[Any, ...]] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.check_thickness()
        _ = self.arrays  # what is wrong is said now

    def at(self, theta: FloatArray) -> BodyContact:
        """Return the contact with the arms, radii and sizes of theta; itself where none stand there."""
        if self.sizes is None:
            return self
        for entries, kept, grown in self._last:
            if np.array_equal(kept, theta[entries]):  # all others may change, and do where derivatives are checked
                return grown
        points = self.sizes.points(theta)
        size, rims = self.sizes.shapes(self.size, theta), self.sizes.lines(self.rim, self.rims, theta)
        grown = replace(self, arm=points[:, :3], radius=points[:, 3], size=size, rims=rims, sizes=None)
        entries = self.sizes.entries()
        self._last[:] = [(entries, theta[entries], grown)]
        return grown

    @cached_property
    def half_lengths(self) -> FloatArray:
        """Half the lengths (n_points,) of the lines that points stand for, zero for others [m]."""
        rim = self.rim if self.rim.size else np.full(self.carrier.size, -1)
        return np.where(rim >= 0, np.append(np.maximum(self.rims[:, HALF], 0.0), 0.0)[rim], 0.0)

    @cached_property
    def growth(self) -> Growth:
        """The derivatives of points and shapes by sizes in theta."""
        return no_growth() if self.sizes is None else self.sizes.growth

    @cached_property
    def arrays(self) -> Contacts:
        """The arrays of the term, as the kernels take them."""
        if self.part_of is not None:
            return self.part_of
        on_bodies = self.shape_carrier >= 0
        bodies, row_of = body_table(
            np.concatenate([self.carrier[self.rigid], self.shape_carrier[on_bodies]]),
            np.concatenate([self.centre[self.rigid], self.shape_centre[on_bodies]]),
        )
        hosts = np.array([row_of.get(int(s), -1) for s in self.shape_carrier], dtype=np.int64)
        body = [row_of[int(s)] if r else -1 for s, r in zip(self.carrier, self.rigid, strict=True)]
        rim = self.rim if self.rim.size else np.full(self.carrier.size, -1)
        points = np.stack([self.carrier, self.group, np.array(body, dtype=np.int64), rim], axis=1).astype(np.int64)
        corners = self.corners if self.corners.size else np.zeros((self.carrier.size, 4))
        arms = np.column_stack([self.arm, self.radius, self.scale, corners]).astype(float)
        part = self.part if self.part.size else self.owner
        shape_part = self.shape_part if self.shape_part.size else self.shape_owner
        runs, spheres = point_runs(np.column_stack([points[:, 1:3], part]), arms, rim, self.rims, self.half_lengths)
        pairs, lined = self.pairs, self.lined if self.lined.size else np.zeros(self.n_shapes, dtype=bool)
        poses = np.concatenate([self.rotation, self.position[:, None], self.velocity[:, None]], axis=1)
        size = np.ascontiguousarray(self.size, dtype=float)
        stride = int(shape_part.max(initial=-1)) + 1
        return Contacts(
            bodies=bodies,
            points=points,
            arms=arms,
            runs=runs,
            spheres=spheres,
            kind=np.ascontiguousarray(self.kind, dtype=np.int64),
            size=size,
            hosts=hosts,
            poses=np.ascontiguousarray(poses, dtype=float),
            bounds=np.array([distance_bound(int(k), *s) for k, s in zip(self.kind, size[:, :3], strict=True)], float),
            columns=np.column_stack([self.shape_group, shape_part, lined]).astype(np.int64),
            tables=pairs.tables(),
            depths=pairs.depths(self.normal_law.reach),
            apart=np.unique(self.apart[:, 0] * stride + self.apart[:, 1]).astype(np.int64),
            rims=np.ascontiguousarray(self.rims, dtype=float),
            stride=stride,
        )

    @cached_property
    def packed(self) -> Packed:
        """The arrays and the law as few arguments, for what is called at every iteration."""
        return pack(self.arrays, self.kernel_law)

    def family(self) -> Family:
        """See `DecidingTerm.family`."""
        return body_family(self.arrays, self.packed, self.growth, self.blocks)

    def arrays_at(self, theta: FloatArray) -> tuple[AnyArray, ...]:
        """See `DecidingTerm.arrays_at`."""
        return tuple(self.at(theta).packed)

    def family_with(self, keys: IntArray) -> Family:
        """Return the family with the places of some blocks of two bodies."""
        return family_with(self.packed, self.growth, self.blocks, keys)

    @cached_property
    def one(self) -> OneFamily:
        """The family by itself."""
        return OneFamily(self.family_with(self.blocks.always))

    @cached_property
    def blocks(self) -> Blocks:
        """The places of the derivatives."""
        return Blocks.build(self.arrays)

    def free_share(self, q0: FloatArray, q1: FloatArray, theta: FloatArray) -> float:
        """Return the share of the ways that is free; see `PairContact.free_share`."""
        ends = [Motion(0.0, q, np.zeros_like(q), theta) for q in (q0, q1)]
        return float(kernel.free_points(*ends, self.at(theta).arrays))

    @property
    def n_shapes(self) -> int:
        """Number of shapes."""
        return int(self.kind.size)

    def met_shapes(self) -> dict[int, IntArray]:
        """Return owner of points -> the shapes that they may touch: many where there are many bodies."""
        run, shape = meeting_pairs(self.arrays).T
        owner = self.owner[self.arrays.runs[run, FIRST]]
        return {int(k): np.unique(shape[owner == k]) for k in np.unique(owner)}

    def motion(self, kin: Kinematics, theta: FloatArray) -> Motion:
        """Return time, state and parameters as the kernels take them."""
        return Motion(kin.t, kin.q, kin.v, theta)

    def decided_residual(
        self, kin: Kinematics, theta: FloatArray, out: FloatArray, sticking: Decision | None = None
    ) -> Decision:
        """Decide and add minus the contact forces in one pass; ``sticking`` goes on sticking."""
        given = NO_CONTACT if sticking is None or not sticking.size else sticking
        return self._force(kin, theta, False, given, out, out[:0])

    def _force(self, kin: Kinematics, theta: FloatArray, replay: bool, given: Decision, *into: FloatArray) -> Decision:
        by = *self.motion(kin, theta), *self.at(theta).packed
        return np.asarray(kernel.body_contact_force(*by, replay, given, into))

    def candidates(self, kin: Kinematics, theta: FloatArray, dt: float) -> Candidates | None:
        """Return the blocks of bodies and nodes that are so near that they may touch within ``dt``."""
        blocks = self.blocks
        return None if blocks.constant else self.at(theta).blocks.near(self.motion(kin, theta), AHEAD * dt)

    def within(self, free: BoolArray, candidates: Candidates | None) -> tuple[Self, Candidates | None]:
        """Return the contact of what is free, of what may touch it, and of the world; see `DecidingTerm.within`."""
        if self.sizes is not None or candidates is None:
            return self, candidates
        part, candidates = self.blocks.within(free, candidates)
        return replace(self, part_of=part), candidates

    def keep_faces(self, kin: Kinematics, theta: FloatArray, dt: float) -> Decision:
        """Return the rows of what may touch within ``dt``, by the features at ``kin``."""
        rows = self.at(theta).blocks.near_rows(self.motion(kin, theta), AHEAD * dt)
        rows[:, BITS] = FACE
        return rows

    def keys(self, decision: Decision, candidates: Candidates | None = None) -> Candidates | None:
        """Return which bodies and nodes touch which bodies; None where that does not matter."""
        return None if self.blocks.constant else self.blocks.keys(decision, candidates)

    def _stick_constraint(self, decision: Decision, rows: Decision, candidates: Candidates | None) -> StickingBodies:
        return StickingBodies(self, decision, rows, candidates)

    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> Term:
        """Return the smooth law of the given branch."""
        return BodyContactBranch(self, decision, candidates)

    def places(
        self, kin: Kinematics, theta: FloatArray, decision: Decision, reactions: FloatArray | None = None
    ) -> ContactPlaces:
        """Return the places and forces of the touching pairs of a decision, ``reactions`` of sticking ones included."""
        rows = decision[decision[:, BITS] & ACTIVE != 0]
        self._force(kin, theta, True, rows, np.zeros(kin.q.size), seen := np.zeros(1 + 6 * rows.shape[0]))
        place, force = np.moveaxis(seen[1:].reshape(-1, 2, 3), 1, 0).copy()
        constraint = self.stick_constraint(decision)
        if constraint is not None and reactions is not None:
            # The generalised force on the first three coordinates of the point's carrier is the force in world axes.
            forces = np.einsum("kam,ka->km", constraint.operators(kin, theta).by_v[:, :, :3], reactions.reshape(-1, 3))
            held = decision[decision[:, BITS] & STICKS != 0, PAIR]
            _, mine, theirs = np.intersect1d(rows[:, PAIR], held, True, True)
            force[mine] -= forces[theirs]
        return ContactPlaces(place, force, *self.touching_pairs(decision))

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the elastic energy of all contacts [J]."""
        self._force(kin, theta, False, NO_CONTACT, np.zeros(kin.q.size), energy := np.zeros(1))
        return float(energy[0])


@final
@dataclass(frozen=True)
class BodyContactBranch(ContactBranch):
    """One branch of a `BodyContact`: smooth, without any decision.

    Attributes
    ----------
    contact : BodyContact
    decision : (k, 3) rows of `add.kernels.contact_pairs`
    candidates : keys of blocks that the pattern has, too
    """

    contact: BodyContact
    decision: Decision
    candidates: Candidates | None = None

    def family(self) -> Family:
        """See `OverFamily.family`."""
        return self.contact.family_with(self.contact.blocks.keys(self.decision, self.candidates))

    @cached_property
    def one(self) -> OneFamily:
        """The family by itself, with the places of the branch."""
        contact = self.contact
        return contact.one if contact.blocks.constant else contact.one.over(self.family())

    def at(self, theta: FloatArray) -> OneFamily:
        """See `FamilyTerm.at`."""
        grown = self.contact.at(theta)
        if grown is self.contact:
            return self.one
        family = self.one.family
        arrays = *grown.packed, *family.arrays[len(grown.packed) :]
        return self.one.over(replace(family, arrays=arrays))


@final
class StickingBodies(StickingContacts):
    """Points that stick to shapes that bodies, or the world, carry; reactions in the axes of the shape."""

    def __init__(self, contact: BodyContact, decision: Decision, rows: Decision, candidates: Candidates | None) -> None:
        super().__init__(decision, rows)
        self.contact, self.candidates = contact, candidates
        self.points, self.shapes = np.divmod(rows[:, PAIR], contact.kind.size)

    @cached_property
    def dofs(self) -> IntArray:
        """The coordinates of the point's carrier, then those of the shape's body."""
        contact, six, points, shapes = self.contact, np.arange(6), self.points, self.shapes
        out = np.full((points.size, 12), -1, dtype=np.int64)
        out[:, :6] = contact.carrier[points][:, None] + six
        out[~contact.rigid[points], 3:6] = -1
        out[contact.carrier[points] < 0, :6] = -1
        carried = contact.shape_carrier[shapes] >= 0
        out[carried, 6:] = contact.shape_carrier[shapes[carried]][:, None] + six
        return out

    @cached_property
    def theta_index(self) -> IntArray:
        """The centres of mass of both bodies."""
        contact = self.contact
        return np.concatenate([contact.centre[self.points], contact.shape_centre[self.shapes]], axis=1)

    @cached_property
    def entries(self) -> IntArray:
        """The dense block of both carriers, row by row over the coordinates that there are."""
        contact, there = self.contact, self.dofs >= 0
        slots = contact.blocks.slots(contact.blocks.keys(self.decision, self.candidates))
        there = there[:, :, None] & there[:, None, :]
        within = np.cumsum(there.reshape(there.shape[0], -1), axis=1).reshape(there.shape) - 1
        return np.where(there, first_entries(contact.arrays, slots, self.rows)[:, None, None] + within, -1)

    def _evaluate(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray) -> StickRows:
        """Return the rows at ``kin`` with ``reactions``."""
        contact, rows, out = self.contact, self.rows.copy(), new_stick_rows(self.rows.shape[0], 12, 6)
        stick_rows_of_bodies(contact.motion(kin, theta), contact.packed, rows, reactions, True, NO_CONTACT, out)
        return out
