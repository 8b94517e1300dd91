"""Penalty contact of the meshes of bodies with each other, as a term with branches."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from add.contact.body_family import call_mesh_force, mesh_family, nothing_near
from add.contact.branches import NO_CONTACT, ContactBranch, RowContact, StickingContacts
from add.contact.crossings import Primitives, candidates
from add.contact.formulas import CONSTANT_FRICTION, FrictionCurve, FrictionLaw, NormalFormula, NormalLaw
from add.contact.sparsity import union
from add.contact.surfaces import ContactSurface, Sides, both_sides
from add.equations.family import Family
from add.equations.family_term import OneFamily
from add.equations.kinematics import Kinematics
from add.equations.term import Candidates, Decision, Term
from add.kernels import mesh_contact as kernel
from add.kernels.boxes import greatest_skin, near_pairs
from add.kernels.contact_blocks import WIDTH
from add.kernels.contact_pairs import Law
from add.kernels.mesh_arrays import Meshes, Near, holdable_rows
from add.kernels.mesh_derivatives import block_entries, carrier_keys
from add.kernels.mesh_sticking import dense_places, stick_dofs, stick_rows_of_primitives
from add.kernels.primitives import ways_from
from add.kernels.stencil import edges_region, face_region, stencil
from add.kernels.sticking import StickRows, new_stick_rows
from add.typing import BoolArray, FloatArray, IntArray

#: A step's matrices have the places of all pairs that would touch if skins were so much thicker.
THICKER = 1.5
#: Pairs are looked for this much further than a body has moved since the last time, but no further than this share of
#: its mean edge: to there pairs are about as many, and coarse sheets swing far beside their skins.
FURTHER, STRIDE = 2.0, 0.25


class MeshPlaces(NamedTuple):
    """Places at which meshes touch, for display.

    Attributes
    ----------
    place : (k, 3) middle between the closest points [m]
    force : (k, 3) force on the first body there [N]; the second one takes minus that
    bodies : (k, 2) numbers of the surface's bodies
    """

    place: FloatArray
    force: FloatArray
    bodies: IntArray


class MeshDepths(NamedTuple):
    """How deep pairs are in each other's skins.

    Attributes
    ----------
    depth, reach : (k,) the reach less the distance, and the reach: half the sum of both thicknesses, of guards their
        share of it [m]
    stiffness : (k,) k_n [N/m^3]
    bodies : (k, 2) numbers of the surface's bodies
    """

    depth: FloatArray
    reach: FloatArray
    stiffness: FloatArray
    bodies: IntArray


@final
@dataclass(frozen=True)
class MeshContact(RowContact):
    """Forces between the meshes of bodies; equations stand in `add.kernels.mesh_contact`.

    A decision has a row (pair, feature, bits) for every pair that touches, see `add.kernels.mesh_pairs`.

    Attributes
    ----------
    surface : ContactSurface
        Its half-thicknesses are not read: they are numbers of theta.
    tables : (C, C, 6), or (C, C, 8) where the coefficient of friction has a curve
        Indices in theta of two classes' stiffness k_n [N/m^3], damping k_d [N s/m^3], stick stiffness k_t [N s/m^3],
        friction c_f [-], onset and ramp [m], and of the numbers of the curve; symmetric.
    thickness : (n_bodies,)
        Indices in theta of the half-thicknesses of the bodies [m]; -1 is zero.
    law : FrictionLaw
        Hybrid friction holds vertices that carry, and edges that cross.
    total_normal, adhesive_damping : as in `BodyContact`
    sides : Sides
        Which pairs count; by default all alike.
    names : of the surface's bodies, for messages
    normal_law : NormalLaw or NormalFormula
        The reach of a pair is its thickness; the soft-max, which reaches beyond, is not for meshes.
    curve : as in `BodyContact`
    """

    surface: ContactSurface
    tables: IntArray
    thickness: IntArray
    law: FrictionLaw = FrictionLaw.LINEAR
    total_normal: bool = False
    adhesive_damping: bool = False
    sides: Sides | None = None
    names: tuple[str, ...] = ()
    normal_law: NormalLaw | NormalFormula = NormalLaw.PENALTY
    curve: FrictionCurve = CONSTANT_FRICTION
    _near: list[Near] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.normal_law is not NormalLaw.PENALTY and not self.normal_law.is_infinite:
            raise ValueError("skins of meshes need a law that is infinite where they touch")

    @cached_property
    def arrays(self) -> Meshes:
        """The arrays of the term, as the kernels take them."""
        surface = self.surface
        sides = self.sides or both_sides(surface)
        moving = surface.carrier >= 0
        starts, number = np.unique(surface.carrier[moving], return_inverse=True)
        of_points = np.full(surface.n_points, -1, dtype=np.int64)
        of_points[moving] = number
        rigid = np.zeros(starts.size, dtype=bool)
        rigid[of_points[surface.rigid]] = True
        frames, one = np.unique(surface.carrier[surface.rigid], return_index=True)
        row = np.where(surface.rigid, np.searchsorted(frames, surface.carrier), -1)
        ends = surface.rest[surface.edges]
        return Meshes(
            edges=surface.edges,
            faces=surface.faces,
            face_edges=surface.face_edges,
            sharp=surface.sharp.astype(np.int64),
            rest=np.ascontiguousarray(surface.rest),
            areas=surface.vertex_areas,
            edge_areas=surface.edge_areas,
            squares=((ends[:, 1] - ends[:, 0]) ** 2).sum(axis=1),
            edge_normals=surface.edge_normals,
            body=surface.body,
            meets=surface.meets.astype(np.int64),
            round=surface.round.astype(np.int64),
            vertex_shares=sides.vertex_shares,
            vertex_reach=sides.vertex_reach,
            keen=sides.keen.astype(np.int64),
            points=np.column_stack([of_points, row, surface.contact_class]).astype(np.int64),
            carriers=np.column_stack([starts, np.where(rigid, 6, 3)]).astype(np.int64).reshape(-1, 2),
            bodies=np.column_stack([frames, surface.centre[surface.rigid][one]]).astype(np.int64).reshape(-1, 4),
            tables=np.concatenate(
                [self.tables, np.full((*self.tables.shape[:2], 8 - self.tables.shape[2]), -1)], axis=2
            ).astype(np.int64),
            thickness=np.ascontiguousarray(self.thickness, dtype=np.int64),
            numbers=np.array([surface.rest_factor, sides.edge_reach]),
        )

    def near_at_rest(self, theta: FloatArray) -> list[tuple[str, int, float]]:
        """Return name, number of pairs and least distance [m] of bodies whose primitives are too near at rest to meet.

        They have no point in common and are nearer than `ContactSurface.rest_factor` times the reach: no force acts
        between them, but none passes through another (`add.contact.limits`).
        """
        meshes = self.arrays
        reach = self.surface.rest_factor * np.where(self.thickness < 0, 0.0, theta[self.thickness])
        distances: dict[int, list[float]] = {}
        c, g, P = np.zeros(4), np.zeros((4, 4)), np.zeros((9, 3))
        pairs = candidates(Primitives.of(self.surface), meshes.rest, reach=reach)
        for ends, others, region, two in zip(
            (np.arange(len(meshes.rest))[:, None], meshes.edges), (meshes.faces, meshes.edges),
            (face_region, edges_region), pairs, strict=True,
        ):  # fmt: skip
            points = np.hstack([ends[two[:, 0]], others[two[:, 1]]])
            body = meshes.body[points]
            apart = (np.diff(np.sort(points, axis=1), axis=1) > 0).all(axis=1) & (body[:, 0] == body[:, 3])
            for four, number in zip(points[apart], body[apart, 0].tolist(), strict=True):
                places = meshes.rest[four]
                d = float(stencil(region(places), places, 4, 1, c, g, P)[0])
                if d < 2.0 * reach[number]:
                    distances.setdefault(number, []).append(d)
        return [(self.names[number], len(all_of), min(all_of)) for number, all_of in distances.items()]

    @cached_property
    def _strides(self) -> FloatArray:
        """The share of its mean edge that a body may move (n_bodies,) until pairs are looked for again [m]."""
        meshes, n = self.arrays, self.thickness.size
        of = meshes.body[meshes.edges[:, 0]]
        return STRIDE * np.bincount(of, np.sqrt(meshes.squares), n) / np.maximum(np.bincount(of, minlength=n), 1)

    def _found_near(self, kin: Kinematics, theta: FloatArray) -> Near | None:
        """Look for pairs that are near, unless places are not finite; which ones are kept changes no number."""
        meshes = self.arrays
        x, half = kernel.places_and_halves(kin.q, kin.v, theta, meshes)
        if not np.isfinite(x).all():
            return None
        margins = np.full(half.size, greatest_skin(half, meshes))
        for last in self._near:
            ways = ways_from(last.x, x, x, meshes.body, half.size)
            margins = np.maximum(margins, np.minimum(FURTHER * ways, self._strides))
        near = Near(*near_pairs(x, half, meshes, margins))
        self._near[:] = [near]
        return near

    def decided_residual(
        self, kin: Kinematics, theta: FloatArray, out: FloatArray, sticking: Decision | None = None
    ) -> Decision:
        """Decide and add minus the contact forces in one pass; ``sticking`` goes on sticking."""
        given = NO_CONTACT if sticking is None or not sticking.size else sticking
        for kept in [*self._near, None]:
            near = kept or self._found_near(kin, theta)
            if near is None:
                break  # Newton went astray, and notices
            rows, covered = kernel.decided_mesh_contact_force(
                kin.q, kin.v, theta, self.arrays, self.kernel_law, near, given, out
            )
            if covered:
                return np.asarray(rows)
        return NO_CONTACT

    def candidates(self, kin: Kinematics, theta: FloatArray, dt: float) -> Candidates | None:
        """Return the blocks of what would touch now, or at the end of the step, if skins were thicker."""
        thick, has = theta.copy(), self.thickness >= 0
        index, half = self.thickness[has], theta[self.thickness[has]]
        # Round bodies have a radius for a skin, the share of which would be too much.
        skin = greatest_skin(np.where(has, theta[np.maximum(self.thickness, 0)], 0.0), self.arrays)
        thick[index] = np.where(self.surface.round[has], half + (THICKER - 1.0) * skin, THICKER * half)
        ends = [Kinematics(q, kin.v, kin.a, kin.t, kin.step) for q in (kin.q, kin.q + dt * kin.v)]
        return np.union1d(*[carrier_keys(self.decide(end, thick), self.arrays) for end in ends])

    def family(self) -> Family:
        """Return the forces as compiled steps take them, without the pairs of a step."""
        return self.family_of_step(NO_CONTACT, None)

    def family_of_step(self, decision: Decision, candidates: Candidates | None) -> Family:
        """Return them with the pairs that are near and the blocks of a step."""
        near, keys = self.arrays_now(), self.keys(decision, candidates)
        return mesh_family(near, self.arrays, self.kernel_law, keys)

    def arrays_now(self) -> Near:
        """Return the pairs that were near when they were looked for last."""
        return self._near[0] if self._near else nothing_near(self.thickness.size)

    def family_with(self, keys: IntArray) -> Family:
        """Return the family with the places of some blocks: what is decided asks for no pairs that are near."""
        return mesh_family(nothing_near(self.thickness.size), self.arrays, self.kernel_law, keys)

    @cached_property
    def one(self) -> OneFamily:
        """The family by itself, without places."""
        return OneFamily(self.family_with(np.zeros(0, dtype=np.int64)))

    def keys(self, decision: Decision, candidates: Candidates | None = None) -> IntArray:
        """Return which nodes and bodies touch each other."""
        acting = carrier_keys(decision, self.arrays)
        return acting if candidates is None else union(candidates, acting)

    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> Term:
        """Return the smooth law of the given branch."""
        return MeshContactBranch(self, decision, candidates)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the elastic energy of all contacts [J]."""
        rows = self.decide(kin, theta)
        return float(kernel.mesh_contact_energy(kin.q, kin.v, theta, self.arrays, self.kernel_law, rows))

    def depths(self, kin: Kinematics, theta: FloatArray, decision: Decision) -> MeshDepths:
        """Return how deep the pairs of a decision are in each other's skins."""
        n = decision.shape[0]
        depth, stiffness, bodies = np.empty((n, 2)), np.empty(n), np.empty((n, 2), dtype=np.int64)
        kernel.mesh_contact_depths(
            kin.q, kin.v, theta, self.arrays, self.kernel_law, decision, depth, stiffness, bodies
        )
        return MeshDepths(depth[:, 0], depth[:, 1], stiffness, bodies)

    def tightest(self, kin: Kinematics, theta: FloatArray) -> str:
        """Return the pair that is deepest in each other's skins, in words."""
        depths = self.depths(kin, theta, self.decide(kin, theta))
        if not depths.depth.size:
            return ""
        row = int(np.argmax(depths.depth / depths.reach))
        names = [self.names[body] if self.names else f"number {body}" for body in depths.bodies[row]]
        return (
            f"'{names[0]}' and '{names[1]}' are {depths.depth[row]:.3g} m deep in skins that touch at "
            f"{depths.reach[row]:.3g} m, with k_n = {depths.stiffness[row]:.3g} N/m^3: try a stiffer "
            "contact.mesh.stiffness"
        )

    def stiffnesses(self) -> IntArray:
        """Return the indices of all stiffnesses and dampings."""
        return np.unique(self.tables[:, :, :3])

    def holdable(self, decision: Decision) -> BoolArray:
        """Return which rows (k,) may be held: vertices that carry and edges that cross, counted positively."""
        return np.asarray(holdable_rows(decision, self.arrays))

    def _stick_constraint(self, decision: Decision, rows: Decision, candidates: Candidates | None) -> StickingContacts:
        return StickingPrimitives(self.arrays, self.kernel_law, self.keys(decision, candidates), decision, rows)

    def places(
        self, kin: Kinematics, theta: FloatArray, decision: Decision, reactions: FloatArray | None = None
    ) -> MeshPlaces:
        """Return where the pairs of a decision touch and what they push with; ``reactions`` of those that stick."""
        n = decision.shape[0]
        out = MeshPlaces(np.empty((n, 3)), np.empty((n, 3)), np.empty((n, 2), dtype=np.int64))
        held = np.zeros((0, 3)) if reactions is None else reactions.reshape(-1, 3)
        kernel.mesh_contact_places(kin.q, kin.v, theta, self.arrays, self.kernel_law, decision, held, *out)
        return out


@final
@dataclass(frozen=True)
class MeshContactBranch(ContactBranch):
    """One branch of a `MeshContact`: smooth, without any decision.

    Attributes
    ----------
    contact : MeshContact
    decision : (k, 3) rows of `add.kernels.mesh_pairs`
    candidates : keys of blocks that the pattern has, too
    """

    contact: MeshContact
    decision: Decision
    candidates: Candidates | None = None

    def family(self) -> Family:
        """See `OverFamily.family`."""
        return self.contact.family_with(self.contact.keys(self.decision, self.candidates))

    @cached_property
    def one(self) -> OneFamily:
        """The family by itself, with the places of the branch."""
        return self.contact.one.over(self.family())


@final
class StickingPrimitives(StickingContacts):
    """Vertices that stick to other meshes, and edges that stick to edges; reactions in world axes."""

    def __init__(self, meshes: Meshes, law: Law, keys: IntArray, decision: Decision, rows: Decision) -> None:
        super().__init__(decision, rows)
        self.meshes, self.law, self.keys = meshes, law, keys

    @cached_property
    def _indices(self) -> tuple[IntArray, IntArray]:
        k = self.n
        dofs = np.empty((k, WIDTH), dtype=np.int64)
        centres = np.empty((k, 6), dtype=np.int64)
        stick_dofs(self.rows, self.meshes, dofs, centres)
        return dofs, centres

    @property
    def dofs(self) -> IntArray:
        """The coordinates of what carries the vertex or the first edge, then those of what it meets."""
        return self._indices[0]

    @property
    def theta_index(self) -> IntArray:
        """The centres of mass of both bodies."""
        return self._indices[1]

    @cached_property
    def entries(self) -> IntArray:
        """The blocks of nodes and bodies."""
        first, _, _ = block_entries(self.keys, self.meshes)
        out = np.empty((self.n, WIDTH, WIDTH), dtype=np.int64)
        dense_places(self.rows, self.meshes, self.keys, first, out)
        return out

    def _evaluate(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray) -> StickRows:
        """Return the rows at ``kin`` with ``reactions``."""
        out = new_stick_rows(self.n, WIDTH, 6)
        rows = self.rows.copy()
        stick_rows_of_primitives(kin.q, kin.v, theta, self.meshes, self.law, rows, reactions, out)
        return out


def functions_of_meshes() -> list[tuple[Any, tuple[Any, ...]]]:
    """Return the compiled function beside the family, with the types of its arguments."""
    return [call_mesh_force.callee[:2]]
