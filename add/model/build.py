"""From bodies, joints, obstacles and contact settings to a `System`: who owns which slots, which term acts on what."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from add.bodies import Block, Body, Family, Layouts, ObstacleBody
from add.contact import BodyContact, MeshContact
from add.contact.limits import CollisionLimit, PointLimit
from add.equations.assembly import Assembly
from add.equations.initial import InitialState, Motion, Pose
from add.equations.initial_on_hinge import HingedPose
from add.equations.kinematics import Kinematics
from add.equations.layout import DofLayout, DofPartition, ParameterLayout
from add.equations.lift import Lift
from add.equations.lifted import AllLimits, LiftedDecidingTerm, LiftedLimit, LiftedTerm, StepLimit
from add.equations.lifted_constraint import LiftedConstraint
from add.equations.points import LiftedPoints, PointMap
from add.equations.signals import Signal
from add.equations.sites import NO_INDICES, LawValues, Site, SiteKind, gather
from add.equations.system import System
from add.equations.term import Constraint, DecidingTerm, Term
from add.errors import InputError
from add.joints.law_term import JointLaw
from add.joints.laws import TERMS, BodySite, HingeStart, JointPart
from add.model.contact_terms import ContactModel, Obstacle, contact_terms
from add.model.mesh_terms import mesh_blocks, mesh_term
from add.summary import Summarised, Summary
from add.terms import Inertia
from add.typing import FloatArray, IntArray

# --- Joint parts gathered into terms: one a kind, or one a kind and signal --------------------------------------------


def system_site(site: BodySite, bodies: Sequence[Body], at: Layouts) -> Site:
    """Return a site in the numbering of the system."""
    return place_site(site, at.parameters[site.arm].indices if site.arm else NO_INDICES, bodies, at)


def place_site(site: BodySite, arm: IntArray, bodies: Sequence[Body], at: Layouts) -> Site:
    """Return a site whose arm has the indices ``arm`` (3,) in theta."""
    if site.kind is SiteKind.WORLD:
        return Site.of_world(arm)
    body = next(body for body in bodies if body.name == site.body)
    return body.site(site.kind, arm, site.nodes, site.weights, at)


def joint_terms(
    joint_parts: Sequence[JointPart], bodies: Sequence[Body], at: Layouts
) -> tuple[list[Term], list[DecidingTerm]]:
    """Return the smooth and the deciding terms of all joint parts."""
    smooth: list[Term] = []
    deciding: list[DecidingTerm] = []
    for kind in dict.fromkeys([*TERMS, *(part.term for part in joint_parts)]):
        for group in _by_signal([part for part in joint_parts if part.term == kind]):
            # Corners of faces are sites of several interactions, and are made once.
            ends = {id(end): end for part in group for end in part.sites}
            made = {key: system_site(end, bodies, at) for key, end in ends.items()}
            sites = gather([made[id(end)] for part in group for end in part.sites])
            term = kind(sites, _values(group, at.parameters))
            smooth.append(term) if isinstance(term, JointLaw) else deciding.append(term)
    return smooth, deciding


def _values(group: Sequence[JointPart], parameters: ParameterLayout) -> LawValues:
    """Return the numbers of parts of one kind, and of one signal or none."""
    law, drive = group[0].term.law, group[0].drive
    count = [len(part.sites) // len(law.slots) for part in group]
    starts = [[parameters[name].start if name else -1 for name in part.numbers] for part in group]
    columns = np.repeat(np.array(starts, dtype=np.int64).reshape(len(group), -1), count, axis=0).T
    if drive is None:
        return LawValues.of(*columns)
    width = law.n_columns - len(columns)
    rows = np.stack([parameters[part.drive.parameter].indices[:, :width] for part in group if part.drive], axis=1)
    return LawValues.driven(drive.signal, np.repeat(rows, count, axis=1), *columns)


def _same(a: Signal, b: Signal) -> bool:
    """Whether two signals weigh their rows alike at all times."""
    if type(a) is not type(b):
        return False
    public = [f.name for f in fields(a) if not f.name.startswith("_")]  # type: ignore[arg-type]
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in public)


def _by_signal(joint_parts: Sequence[JointPart]) -> list[list[JointPart]]:
    """Group parts that follow no signal, or signals with the same weights: they differ in their rows of theta alone."""
    groups: list[list[JointPart]] = []
    for part in joint_parts:
        for group in groups:
            one, other = group[0].drive, part.drive
            if one is other or (one and other and _same(one.signal, other.signal)):
                group.append(part)
                break
        else:
            groups.append([part])
    return groups


# ----------------------------------------------------------------------------------------------------------------------


def parameter_layout(
    bodies: Sequence[Body], obstacles: Sequence[Obstacle], contact: ContactModel, extra: Sequence[Block] = ()
) -> ParameterLayout:
    """Return the layout of theta; ``extra`` blocks come last."""
    blocks: list[Block] = [("gravity", (3,), "m/s^2")]
    blocks += [block for body in bodies for block in body.parameters()]
    # A signal that drives several things has one block.
    drives: dict[str, Block] = {}
    for drive, unit in (signal for body in bodies for signal in body.signals()):
        drives.setdefault(drive.parameter, (drive.parameter, (drive.signal.n_rows, 3), unit))
    blocks += drives.values()
    shapes = [*(obstacle.name for obstacle in obstacles), *dict.fromkeys(body.name for body in bodies if body.shapes)]
    per = "/m^2" if contact.per_area else ""
    for pair in contact_pairs([body.name for body in bodies], shapes, contact):
        blocks += [
            (f"{pair}.k_n", (), f"N/m{per}"),
            (f"{pair}.k_d", (), f"N s/m{per}"),
            (f"{pair}.k_t", (), f"N s/m{per}"),
            (f"{pair}.c_f", (), "-"),
        ]
        if contact.normal_law.has_layer:
            blocks.append((f"{pair}.thickness", (), "m"))
        blocks += contact.curve.blocks(pair, per)
        if contact.couples:
            blocks += [(f"{pair}.c_t", (), "m"), (f"{pair}.c_r", (), "m"), (f"{pair}.w_0", (), "rad/s")]
    blocks += mesh_blocks(bodies, contact)
    known = {name for name, _, _ in blocks}
    more = {block[0]: block for block in extra if block[0] not in known}
    return ParameterLayout([*blocks, *more.values()])


def contact_pairs(bodies: Sequence[str], shapes: Sequence[str], contact: ContactModel) -> list[str]:
    """Return the names of the blocks of two contact classes that a body and the shape of another are of."""
    members: dict[str, set[str]] = {}
    for name in shapes:
        members.setdefault(contact.class_of(name), set()).add(name)
    out: dict[str, None] = {}
    for body in bodies:
        for name, owners in members.items():
            if len(owners) > 1 or body not in owners:
                out[f"contact.{contact.class_of(body)}.{name}"] = None
    return list(out)


@final
@dataclass(frozen=True, repr=False)
class Model(Summarised):
    """A system with what is needed to start it, read it and draw it.

    Attributes
    ----------
    system : System
    initial : InitialState
    bodies : tuple of Body
        In the order of their coordinates.
    obstacles : tuple of Obstacle
        Of the world; adjustable ones are bodies.
    lift : Lift
        Rows X = Phi(q), on which terms, markers and pictures are written.
    joint_parts : tuple of JointPart
    contact : ContactModel
    """

    system: System
    initial: InitialState
    bodies: tuple[Body, ...]
    obstacles: tuple[Obstacle, ...]
    lift: Lift
    joint_parts: tuple[JointPart, ...] = ()
    contact: ContactModel = field(default_factory=ContactModel)

    def summary(self) -> Summary:
        """Return a few lines: the system's, obstacles and joints."""
        rows = [
            ("obstacles", ", ".join(item.name for item in self.obstacles)),
            ("joint parts", str(len(self.joint_parts))),
        ]
        return Summary("Model", (*self.system.summary().rows, *rows))

    def at_start(self, theta: FloatArray) -> Kinematics:
        """Return the rows X at the start, without accelerations."""
        q, v = self.initial.evaluate(theta)
        return self.lift.kinematics(Kinematics(q, v, np.zeros_like(v), 0.0, 0), theta)

    def begins(self, theta: FloatArray) -> Kinematics:
        """Return the rows X at t = 0, where given motions have begun; `at_start` is without them."""
        q, v = self.initial.closed(theta, self.initial.moved(theta, self.system.motion))
        return self.lift.kinematics(Kinematics(q, v, np.zeros_like(v), 0.0, 0), theta)

    @property
    def layouts(self) -> Layouts:
        """Places of coordinates, rows of X and numbers."""
        return Layouts(self.system.dofs, self.lift.rows, self.system.parameters)

    def body(self, name: str) -> Body:
        """Return the body of that name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Body]:
        return {body.name: body for body in self.bodies}

    def obstacles_at(self, theta: FloatArray) -> tuple[Obstacle, ...]:
        """Return all obstacles, those that theta places included."""
        placed = []
        for body in self.bodies:
            if isinstance(body, ObstacleBody):
                shape, pose = body.shape, body.placed(theta, self.layouts)
                placed.append(Obstacle(body.name, shape.kind, shape.size, *pose, shape.mesh))
        return *self.obstacles, *placed

    def term(self, kind: type) -> list:
        """Return the terms of one class, also those that are lifted."""
        terms = [getattr(term, "inner", term) for term in (*self.system.terms, *self.system.deciding)]
        return [term for term in terms if isinstance(term, kind)]

    def node_masses(self, theta: FloatArray) -> FloatArray:
        """Return the masses of the nodes on rows of X, by three rows a node [kg]; zero for frames."""
        out = np.zeros(self.lift.rows.n // 3)
        for term in self.term(Inertia):
            out += np.bincount(term.rows, term.mass[:, 2] * theta[term.density], minlength=out.size)
        return out

    def lifted(self, points: PointMap) -> PointMap:
        """Return points on rows of X as points on q."""
        return points if self.lift.is_identity else LiftedPoints(points, self.lift)


#: Given bodies and layouts -> terms and equations.
MakeTerms = Callable[[Sequence[Body], Layouts], Sequence[Term | DecidingTerm | Constraint]]


def build_model(
    bodies: Sequence[Body] = (),
    obstacles: Sequence[Obstacle] = (),
    contact: ContactModel | None = None,
    *,
    joint_parts: Sequence[JointPart] = (),
    starts: Sequence[HingeStart] = (),
    extra: Sequence[Block] = (),
    further: Sequence[MakeTerms] = (),
) -> Model:
    """Assemble a model.

    Parameters
    ----------
    bodies : in any order; their coordinates come in the order of kinds
    obstacles : shapes of the world
    contact : ContactModel, optional
    joint_parts : springs, joints, motors, forces
    starts : bodies that start on hinges of others
    extra : blocks (name, shape, unit) of theta that joint parts read, or that only objectives read
    further : what makes terms and equations of chambers, muscles and extensions, over rows of X

    Returns
    -------
    Model
    """
    contact = contact or ContactModel()
    bodies = sorted(bodies, key=lambda body: body.order)
    frames = frozenset(body.name for body in bodies if body.has_frame)
    dofs = DofLayout([(body.name, body.coordinates(), "m") for body in bodies], rigid=frames)
    rows = DofLayout([(body.name, body.rows(), "m") for body in bodies], rigid=frames)
    parameters = parameter_layout(bodies, obstacles, contact, extra)
    at = Layouts(dofs, rows, parameters)
    embeddings = [body.embedding(at) for body in bodies]
    named = {body.name: body for body in bodies}
    carried = tuple(item for body in bodies for item in body.tied_rows(at, named))
    lift = Lift(dofs, rows, tuple(embedding for embedding in embeddings if embedding is not None), carried)
    smooth, deciding = joint_terms(joint_parts, bodies, at)
    constraints: list[Constraint] = [constraint for body in bodies for constraint in body.constraints(at, named)]
    for term in (term for make in further for term in make(bodies, at)):
        if isinstance(term, Constraint):
            constraints.append(term)
        else:
            deciding.append(term) if isinstance(term, DecidingTerm) else smooth.append(term)
    initial = InitialState(dofs.n, tuple(_poses(bodies, starts, at)))
    motion = _motion(bodies, at, initial)
    forces, of_coordinates, held = _family_terms(bodies, at)
    forces += smooth
    meshes = mesh_term(bodies, contact, at)
    of_points = contact_terms(bodies, obstacles, contact, at)
    choices = [*of_points, *([] if meshes is None else [meshes]), *deciding]
    if not lift.is_identity:
        forces = [LiftedTerm.of(term, lift) for term in forces]
        choices = [LiftedDecidingTerm(term, lift) for term in choices]
        constraints = [c if c.of_coordinates else LiftedConstraint(c, lift) for c in constraints]
    closing = [c for c in constraints if getattr(c, "inner", c).closes_starts]
    if closing:
        initial = replace(initial, assembly=Assembly(tuple(closing), dofs.n, motion.prescribed))
    system = System(
        dofs,
        parameters,
        DofPartition(dofs.n, motion.prescribed),
        motion,
        (*forces, *of_coordinates),
        (*choices, *held),
        tuple(constraints),
        np.array([start for body in bodies for start in body.rotations(at)], dtype=np.int64),
        _limit(meshes, of_points, lift),
    )
    return Model(system, initial, tuple(bodies), tuple(obstacles), lift, tuple(joint_parts), contact)


def _limit(meshes: MeshContact | None, of_points: Sequence[BodyContact], lift: Lift) -> StepLimit | None:
    """Return how far a trial may go before meshes pass through each other, or points touch what has a wall."""
    limits: list[StepLimit] = [] if meshes is None else [CollisionLimit(meshes.surface)]
    for term in of_points:
        if term.normal_law.is_infinite:
            starts = term.arrays.bodies[:, 0]
            limits.append(PointLimit(term, starts[starts >= 0] + 3))
    limit = AllLimits.of(limits)
    return limit if limit is None or lift.is_identity else LiftedLimit(limit, lift)


def _family_terms(bodies: Sequence[Body], at: Layouts) -> tuple[list[Term], list[Term], list[DecidingTerm]]:
    """Return the terms of all families: on rows of X, on coordinates, and those with branches, on coordinates."""
    gathered: dict[Family, list[Any]] = {}
    single: list[Term] = []
    for part in (part for body in bodies for part in body.parts(at)):
        if isinstance(part, Term):
            single.append(part)
        else:
            gathered.setdefault(part.family, []).append(part.arrays)
    rows: list[Term] = []
    of_coordinates: list[Term] = []
    deciding: list[DecidingTerm] = []
    for family, parts in gathered.items():
        for term in family.terms(parts, at.parameters):
            if isinstance(term, DecidingTerm):
                deciding.append(term)
            else:
                (of_coordinates if family.of_coordinates else rows).append(term)
    return [*rows, *single], of_coordinates, deciding


def _poses(bodies: Sequence[Body], starts: Sequence[HingeStart], at: Layouts) -> list[Pose]:
    poses = {body.name: body.pose(at) for body in bodies}
    for hinge in _in_order(starts):
        poses[hinge.b] = _hinged(hinge, poses.get(hinge.a), at.dofs, at.parameters)
    return list(poses.values())


def _in_order(starts: Sequence[HingeStart]) -> list[HingeStart]:
    """Return the hinges from the root outwards."""
    left, done = list(starts), []
    while left:
        waiting = {hinge.b for hinge in left}
        ready = [hinge for hinge in left if hinge.a not in waiting]
        if not ready:
            names = ", ".join(sorted(waiting))
            raise InputError("hinges start from each other in a circle", place="couplings", found=names)
        done += ready
        left = [hinge for hinge in left if hinge.a in waiting]
    return done


def _hinged(hinge: HingeStart, parent: Pose | None, dofs: DofLayout, parameters: ParameterLayout) -> HingedPose:
    return HingedPose(
        dofs[hinge.b].start,
        dofs.n,
        parent,
        dofs[hinge.a].start if hinge.a else 0,
        parameters[f"bodies.{hinge.a}.centre"].indices if hinge.a else None,
        parameters[f"bodies.{hinge.a}.orientation"].indices if hinge.a else None,
        parameters[f"bodies.{hinge.b}.orientation"].indices,
        np.stack([parameters[name].indices for name in (hinge.place_a, hinge.place_b)]),
        parameters[hinge.axis].indices,
        parameters[f"bodies.{hinge.b}.centre"].indices,
        parameters[hinge.angle].start,
        parameters[hinge.rate].start,
    )


def _motion(bodies: Sequence[Body], at: Layouts, initial: InitialState) -> Motion:
    prescribed = [body.prescribed(at) for body in bodies]
    dofs = [np.zeros(0, dtype=np.int64), *(part for parts, _ in prescribed for part in parts)]
    return Motion(initial, np.unique(np.concatenate(dofs)), tuple(move for _, moves in prescribed for move in moves))
