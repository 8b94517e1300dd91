"""Contact terms of a model: nodes against the world, and everything against shapes that bodies carry."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from add.contact import BodyContact, PairParameters, PenaltyContact, Shapes
from add.equations.layout import DofLayout, ParameterLayout
from add.equations.points import NodePoints, WorldFrames
from add.equations.term import DecidingTerm
from add.geometry import Surface
from add.model.bodies import ParticleBody, RigidBody, SoftBody
from add.model.obstacles import ContactModel, Obstacle
from add.model.site_lookup import centre_of_mass
from add.typing import BoolArray, FloatArray, IntArray

_NOWHERE = np.full(3, -1, dtype=np.int64)


def contact_terms(
    soft: Sequence[SoftBody],
    surfaces: Sequence[Surface],
    particles: Sequence[ParticleBody],
    rigid: Sequence[RigidBody],
    obstacles: Sequence[Obstacle],
    contact: ContactModel,
    dofs: DofLayout,
    parameters: ParameterLayout,
) -> tuple[DecidingTerm, ...]:
    """Return the contact terms that have anything to do."""
    owners = [*(b.name for b in soft), *(b.name for b in particles), *(b.name for b in rigid)]
    nodes, node_scale, node_group = _nodes(soft, surfaces, particles, dofs, contact.per_area)
    world = [obstacle.name for obstacle in obstacles]
    carriers = [body for body in rigid for _ in body.shapes]
    terms: list[DecidingTerm] = []
    if nodes.size and world:
        pairs = _pairs(owners, world, contact, parameters)
        terms.append(
            PenaltyContact(
                NodePoints(nodes),
                node_scale,
                node_group,
                _world_shapes(obstacles),
                pairs,
                contact.law,
                contact.total_normal,
                contact.pulls,
            )
        )
    columns = [*world, *(body.name for body in carriers)]
    pairs = _pairs(owners, columns, contact, parameters)
    # Nodes against the world are the term above.
    pairs.enabled[: len(soft) + len(particles), : len(world)] = False
    _balls_once(rigid, owners, columns, pairs.enabled)
    if not pairs.enabled[np.ix_(_populated(soft, particles, rigid), range(len(columns)))].any():
        return tuple(terms)
    shapes = [shape for body in rigid for shape in body.shapes]
    centre = {body.name: centre_of_mass(body, parameters) for body in rigid}
    with_nodes = bool(pairs.enabled[: len(soft) + len(particles)].any())
    counts = [body.points.shape[0] for body in rigid]
    first_rigid = len(soft) + len(particles)
    node_part = nodes if with_nodes else nodes[:0]
    n = node_part.size
    starts = np.array([dofs[body.name].start for body in rigid], dtype=np.int64)
    terms.append(
        BodyContact(
            carrier=np.concatenate([3 * node_part, np.repeat(starts, counts)]),
            rigid=np.concatenate([np.zeros(n, dtype=bool), np.ones(sum(counts), dtype=bool)]),
            arm=np.concatenate([np.zeros((n, 3)), *(body.points.reshape(-1, 3) for body in rigid)]),
            radius=np.concatenate([np.zeros(n), *(body.radii for body in rigid)]),
            scale=np.concatenate(
                [node_scale[:n], *(body.areas if contact.per_area else np.ones(body.radii.size) for body in rigid)]
            ),
            group=np.concatenate([node_group[:n], np.repeat(first_rigid + np.arange(len(rigid)), counts)]),
            centre=np.concatenate(
                [np.full((n, 3), -1), *(np.tile(centre[b.name], (c, 1)) for b, c in zip(rigid, counts, strict=True))]
            ).astype(np.int64),
            kind=np.array([o.kind for o in obstacles] + [shape.kind for shape in shapes], dtype=np.int64),
            size=np.array([o.size for o in obstacles] + [shape.size for shape in shapes], dtype=float).reshape(-1, 3),
            shape_carrier=np.array([-1] * len(world) + [dofs[body.name].start for body in carriers], dtype=np.int64),
            rotation=np.array([o.rotation for o in obstacles] + [s.rotation for s in shapes], dtype=float),
            position=np.array([o.position for o in obstacles] + [s.position for s in shapes], dtype=float),
            velocity=np.array([o.velocity for o in obstacles] + [np.zeros(3) for _ in shapes], dtype=float),
            shape_centre=np.array([_NOWHERE for _ in world] + [centre[body.name] for body in carriers], dtype=np.int64),
            pairs=pairs,
            law=contact.law,
            total_normal=contact.total_normal,
            pulls=contact.pulls,
        )
    )
    return tuple(terms)


def _balls_once(rigid: Sequence[RigidBody], owners: list[str], columns: list[str], enabled: BoolArray) -> None:
    """Switch off what a ball would feel twice.

    The one point of a ball, with its radius, meets any shape exactly. The points of that shape's body against the
    ball's own shape would only add the same force again, wherever a corner or another ball's centre comes in.
    """
    balls = {body.name for body in rigid if body.radii.size == 1 and body.radii[0] > 0.0}
    for body in rigid:
        for ball in balls & set(columns) - {body.name}:
            if body.name not in columns:
                continue
            there, back = (owners.index(body.name), columns.index(ball)), (owners.index(ball), columns.index(body.name))
            if enabled[there] and enabled[back]:
                enabled[there] = False


def _populated(soft: Sequence[SoftBody], particles: Sequence[ParticleBody], rigid: Sequence[RigidBody]) -> list[int]:
    """Return the rows of bodies that have contact points."""
    has = [True] * len(soft) + [body.touching for body in particles] + [body.radii.size > 0 for body in rigid]
    return [k for k, flag in enumerate(has) if flag]


def _nodes(
    soft: Sequence[SoftBody],
    surfaces: Sequence[Surface],
    particles: Sequence[ParticleBody],
    dofs: DofLayout,
    per_area: bool,
) -> tuple[IntArray, FloatArray, IntArray]:
    nodes, scale, group = [np.zeros(0, dtype=np.int64)], [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    for k, (body, boundary) in enumerate(zip(soft, surfaces, strict=True)):
        nodes.append(dofs[body.name].start // 3 + boundary.nodes)
        scale.append(boundary.areas if per_area else np.ones(boundary.nodes.size))
        group.append(np.full(boundary.nodes.size, k, dtype=np.int64))
    for k, sheet in enumerate(particles, start=len(soft)):
        if sheet.touching:
            nodes.append(dofs[sheet.name].start // 3 + np.arange(sheet.n_nodes))
            scale.append(_node_areas(sheet) if per_area else np.ones(sheet.n_nodes))
            group.append(np.full(sheet.n_nodes, k, dtype=np.int64))
    return np.concatenate(nodes), np.concatenate(scale), np.concatenate(group)


def _node_areas(sheet: ParticleBody) -> FloatArray:
    """Return a third of the area of the triangles around each node [m^2]."""
    a, b, c = (sheet.points[sheet.triangles[:, k]] for k in range(3))
    third = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 6.0
    return np.bincount(sheet.triangles.ravel(), np.repeat(third, 3), minlength=sheet.n_nodes).astype(float)


def _pairs(
    owners: Sequence[str], columns: Sequence[str], contact: ContactModel, parameters: ParameterLayout
) -> PairParameters:
    """Return the table of owners and shapes; a body and its own shape never meet."""
    shape = (len(owners), len(columns))

    def table(key: str) -> IntArray:
        rows = [[0 if o == s else parameters[f"contact.{o}.{s}.{key}"].start for s in columns] for o in owners]
        return np.array(rows, dtype=np.int64).reshape(shape)

    enabled: BoolArray = np.array(
        [[o != s and (o, s) not in contact.disabled for s in columns] for o in owners], dtype=bool
    ).reshape(shape)
    return PairParameters(
        k_n=table("k_n"),
        k_d=table("k_d"),
        k_t=table("k_t"),
        c_f=table("c_f"),
        onset=np.full(shape, contact.onset),
        ramp=np.full(shape, contact.ramp),
        enabled=enabled,
    )


def _world_shapes(obstacles: Sequence[Obstacle]) -> Shapes:
    frames = WorldFrames(
        np.array([o.rotation for o in obstacles], dtype=float),
        np.array([o.position for o in obstacles], dtype=float),
        np.array([o.velocity for o in obstacles], dtype=float),
    )
    return Shapes(
        tuple(o.name for o in obstacles),
        np.array([o.kind for o in obstacles], dtype=np.int64),
        np.array([o.size for o in obstacles], dtype=float),
        frames,
    )
