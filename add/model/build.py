"""From bodies, links, obstacles and contact settings to a `System`: who owns which slots, which term acts on what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.equations.initial import BodyPose, InitialState, Pose, RigidPose
from add.equations.initial_on_hinge import HingedPose
from add.equations.layout import DofLayout, DofPartition, ParameterLayout
from add.equations.points import WeightedPoints
from add.equations.prescribed import Motion, PinMotion
from add.equations.system import System
from add.equations.term import Constraint, Term
from add.errors import InputError
from add.geometry import Surface, mass_pairs, quadrature_geometry, surface
from add.joints.links import HingeStart, Link
from add.model.bodies import NodalBody, ParticleBody, RigidBody, SoftBody
from add.model.contact_terms import contact_terms
from add.model.joint_terms import link_terms
from add.model.mass_terms import mass_terms
from add.model.obstacles import ContactModel, Obstacle
from add.model.parameters import POSE_VECTORS, Block, parameter_layout
from add.summary import Summarised, Summary
from add.terms import Elastic, ElementBatch, NodalForce, PointConstraint, Viscous
from add.typing import IntArray


@final
@dataclass(frozen=True, repr=False)
class Model(Summarised):
    """A system with what is needed to start it, read it and draw it.

    Coordinates come in the order soft bodies, particles, rigid bodies.

    Attributes
    ----------
    system : System
    initial : InitialState
    bodies : tuple of SoftBody
    obstacles : tuple of Obstacle
    surfaces : Surface of each soft body
    first_node : (n_bodies,) number in the system of each soft body's node 0
    particles : tuple of ParticleBody
    rigid : tuple of RigidBody
    links : tuple of Link
    contact : ContactModel
    """

    system: System
    initial: InitialState
    bodies: tuple[SoftBody, ...]
    obstacles: tuple[Obstacle, ...]
    surfaces: tuple[Surface, ...]
    first_node: IntArray
    particles: tuple[ParticleBody, ...] = ()
    rigid: tuple[RigidBody, ...] = ()
    links: tuple[Link, ...] = ()
    contact: ContactModel = field(default_factory=ContactModel)

    def summary(self) -> Summary:
        """Return a few lines: the system's, obstacles and joints."""
        rows = [("obstacles", ", ".join(item.name for item in self.obstacles)), ("joint parts", str(len(self.links)))]
        return Summary("Model", (*self.system.summary().rows, *rows))

    def body_index(self, name: str) -> int:
        """Return a soft body's number."""
        return [body.name for body in self.bodies].index(name)

    def rigid_body(self, name: str) -> RigidBody | None:
        """Return the rigid body of that name, if it is one."""
        return next((body for body in self.rigid if body.name == name), None)

    def term(self, kind: type) -> list:
        """Return the terms of one class."""
        return [term for term in (*self.system.terms, *self.system.deciding) if isinstance(term, kind)]


def build_model(
    bodies: Sequence[SoftBody] = (),
    obstacles: Sequence[Obstacle] = (),
    contact: ContactModel | None = None,
    *,
    particles: Sequence[ParticleBody] = (),
    rigid: Sequence[RigidBody] = (),
    links: Sequence[Link] = (),
    starts: Sequence[HingeStart] = (),
    extra: Sequence[Block] = (),
) -> Model:
    """Assemble a model.

    Parameters
    ----------
    bodies : soft bodies
    obstacles : shapes of the world
    contact : ContactModel, optional
    particles, rigid : the other bodies
    links : springs, joints, motors, forces
    starts : bodies that start on hinges of others
    extra : blocks (name, shape, unit) of theta that links read, or that only objectives read

    Returns
    -------
    Model
    """
    contact = contact or ContactModel()
    blocks = [(body.name, (body.mesh.n_nodes, 3), "m") for body in bodies]
    blocks += [(sheet.name, (sheet.n_nodes, 3), "m") for sheet in particles]
    blocks += [(solid.name, (2, 3), "m") for solid in rigid]
    dofs = DofLayout(blocks, rigid=frozenset(solid.name for solid in rigid))
    carriers = list(dict.fromkeys(solid.name for solid in rigid if solid.shapes))
    shapes = [*(obstacle.name for obstacle in obstacles), *carriers]
    parameters = parameter_layout(bodies, particles, rigid, shapes, contact, extra)
    first_node = np.array([dofs[body.name].start // 3 for body in bodies], dtype=np.int64)
    surfaces = tuple(surface(body.mesh) for body in bodies)
    terms: list[Term] = mass_terms(bodies, particles, rigid, dofs, parameters)
    terms += _material_terms(bodies, first_node, parameters)
    nodal: list[NodalBody] = [*bodies, *particles]
    for owner in nodal:
        for load in owner.loads:
            rows = parameters[load.force.parameter].indices
            terms.append(NodalForce(dofs[owner.name].start // 3 + load.nodes, load.shares, load.force.signal, rows))
    smooth, deciding = link_terms(links, particles, rigid, dofs, parameters)
    initial = InitialState(dofs.n, tuple(_poses(bodies, particles, rigid, starts, dofs, parameters)))
    motion = _motion(bodies, particles, rigid, dofs, parameters, initial)
    contacts = contact_terms(bodies, surfaces, particles, rigid, obstacles, contact, dofs, parameters)
    system = System(
        dofs,
        parameters,
        DofPartition(dofs.n, motion.prescribed),
        motion,
        (*terms, *smooth),
        (*contacts, *deciding),
        _anchors(bodies, first_node, parameters),
        np.array([dofs[body.name].start + 3 for body in rigid if not body.kinematic], dtype=np.int64),
    )
    return Model(
        system,
        initial,
        tuple(bodies),
        tuple(obstacles),
        surfaces,
        first_node,
        tuple(particles),
        tuple(rigid),
        tuple(links),
        contact,
    )


def _material_terms(bodies: Sequence[SoftBody], first_node: IntArray, parameters: ParameterLayout) -> list[Term]:
    terms: list[Term] = []
    for kind in dict.fromkeys((body.mesh.family.name, body.law.name) for body in bodies):
        members = [k for k, body in enumerate(bodies) if (body.mesh.family.name, body.law.name) == kind]
        terms.append(Elastic(_batch(bodies, members, first_node, parameters)))
        viscous = [k for k in members if bodies[k].viscous]
        if viscous:
            nu, beta = (
                np.array([parameters[f"bodies.{bodies[k].name}.{key}"].start for k in viscous])
                for key in ("viscosity", "rayleigh_stiffness")
            )
            terms.append(Viscous(_batch(bodies, viscous, first_node, parameters), nu, beta))
    return terms


def _batch(
    bodies: Sequence[SoftBody], members: list[int], first_node: IntArray, parameters: ParameterLayout
) -> ElementBatch:
    geometries = [quadrature_geometry(bodies[k].mesh) for k in members]
    law = bodies[members[0]].law
    return ElementBatch(
        cells=np.concatenate([first_node[k] + bodies[k].mesh.cells for k in members]),
        gradients=np.concatenate([g.gradients for g in geometries]),
        weights=np.concatenate([g.weights for g in geometries]),
        group=np.concatenate([np.full(bodies[k].mesh.n_elements, i) for i, k in enumerate(members)]),
        mean_dilatation=np.array([bodies[k].mean_dilatation for k in members]),
        law=law,
        moduli=np.array(
            [[parameters[f"bodies.{bodies[k].name}.{p.key}"].start for p in law.parameters] for k in members]
        ),
    )


def _poses(
    bodies: Sequence[SoftBody],
    particles: Sequence[ParticleBody],
    rigid: Sequence[RigidBody],
    starts: Sequence[HingeStart],
    dofs: DofLayout,
    parameters: ParameterLayout,
) -> list[Pose]:
    poses: list[Pose] = []

    def vectors(name: str) -> list[IntArray]:
        return [parameters[f"bodies.{name}.{key}"].indices for key, _ in POSE_VECTORS]

    for body in bodies:
        pairs = mass_pairs(body.mesh, lumped=body.lumped)
        weights = np.bincount(pairs.rows, pairs.values, minlength=body.mesh.n_nodes)
        centre = weights @ body.mesh.points / weights.sum()
        poses.append(BodyPose(dofs[body.name].start, body.mesh.points, centre, *vectors(body.name)))
    for sheet in particles:
        poses.append(BodyPose(dofs[sheet.name].start, sheet.points, sheet.shares @ sheet.points, *vectors(sheet.name)))
    own: dict[str, Pose] = {}
    for solid in rigid:
        origin = None if solid.kinematic else parameters[f"bodies.{solid.name}.centre"].indices
        own[solid.name] = RigidPose(dofs[solid.name].start, origin, *vectors(solid.name))
    for hinge in _in_order(starts):
        own[hinge.b] = _hinged(hinge, own.get(hinge.a), dofs, parameters)
    return [*poses, *own.values()]


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


def _motion(
    bodies: Sequence[SoftBody],
    particles: Sequence[ParticleBody],
    rigid: Sequence[RigidBody],
    layout: DofLayout,
    parameters: ParameterLayout,
    initial: InitialState,
) -> Motion:
    prescribed, moves = [np.zeros(0, dtype=np.int64)], []
    nodal: list[NodalBody] = [*bodies, *particles]
    for body in nodal:
        first = layout[body.name].start // 3
        for pin in body.pins:
            nodes, axes = np.unique(pin.nodes), np.unique(pin.axes)
            dofs = (3 * (first + nodes)[:, None] + axes).ravel()
            prescribed.append(dofs)
            if pin.motion:
                rows = parameters[pin.motion.parameter].indices
                moves.append(PinMotion(dofs, np.tile(axes, nodes.size), pin.motion.signal, rows))
    for solid in rigid:
        if solid.kinematic:
            dofs = layout[solid.name].indices
            prescribed.append(dofs.ravel())
            for drive, part in ((solid.translation, dofs[0, :]), (solid.rotation, dofs[1, :])):
                if drive:
                    rows = parameters[drive.parameter].indices
                    moves.append(PinMotion(part, np.arange(3), drive.signal, rows))
    return Motion(initial, np.unique(np.concatenate(prescribed)), tuple(moves))


def _anchors(bodies: Sequence[SoftBody], first_node: IntArray, parameters: ParameterLayout) -> tuple[Constraint, ...]:
    return tuple(
        PointConstraint(
            WeightedPoints(first + anchor.nodes[None, :], anchor.weights[None, :]),
            anchor.place.signal,
            parameters[anchor.place.parameter].indices[None],
        )
        for body, first in zip(bodies, first_node, strict=True)
        for anchor in body.anchors
    )
