"""Contact terms of a model: nodes against the world, and everything against shapes that bodies carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from add.contact import BodyContact, PairParameters, PenaltyContact, Shapes
from add.equations.layout import DofLayout, ParameterLayout
from add.equations.points import NodePoints, WorldFrames
from add.equations.term import DecidingTerm
from add.geometry import Surface
from add.kernels.contact_detection import ALWAYS, BEHIND, NEVER
from add.model.bodies import NodalBody, ParticleBody, RigidBody, SoftBody
from add.model.obstacles import ContactModel, Obstacle
from add.model.site_lookup import centre_of_mass
from add.typing import FloatArray, IntArray

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
    nodal: list[NodalBody] = [*soft, *particles]
    owners = [*(body.name for body in nodal), *(body.name for body in rigid)]
    number = {name: k for k, name in enumerate([*owners, *(obstacle.name for obstacle in obstacles)])}
    nodes, node_scale, node_owner = _nodes(soft, surfaces, particles, dofs, contact.per_area)
    carriers = [body for body in rigid for _ in body.shapes]
    points = [*(_Side(contact.class_of(body.name)) for body in nodal), *(_side(body, contact) for body in rigid)]
    world = [_Side(contact.class_of(obstacle.name), world=True) for obstacle in obstacles]
    rows, row_of = _numbered(points)
    columns, column_of = _numbered([*world, *(_side(body, contact) for body in carriers)])
    terms: list[DecidingTerm] = []
    if nodes.size and obstacles:
        pairs = _pairs(rows, columns, contact, parameters)
        terms.append(
            PenaltyContact(
                NodePoints(nodes),
                node_scale,
                row_of[node_owner],
                node_owner,
                _world_shapes(obstacles),
                column_of[: len(obstacles)],
                pairs,
                contact.law,
                contact.total_normal,
                contact.pulls,
            )
        )
    pairs = _pairs(rows, columns, contact, parameters, bodies=True)
    has_points = [True] * len(soft) + [body.touching for body in particles] + [body.radii.size > 0 for body in rigid]
    if not pairs.enabled[np.unique(row_of[np.flatnonzero(has_points)])].any():
        return tuple(terms)
    shapes = [shape for body in rigid for shape in body.shapes]
    centre = {body.name: centre_of_mass(body, parameters) for body in rigid}
    on_bodies = np.array([not column.world for column in columns], dtype=bool)
    with_nodes = bool(pairs.enabled[np.unique(row_of[: len(nodal)])][:, on_bodies].any())
    counts = [body.points.shape[0] for body in rigid]
    n = nodes.size if with_nodes else 0
    starts = np.array([dofs[body.name].start for body in rigid], dtype=np.int64)
    apart = {pair for pair in contact.apart if set(pair) <= number.keys()}  # a joint may be with the world
    owner = np.concatenate([node_owner[:n], np.repeat(len(nodal) + np.arange(len(rigid)), counts)])
    terms.append(
        BodyContact(
            carrier=np.concatenate([3 * nodes[:n], np.repeat(starts, counts)]),
            rigid=np.concatenate([np.zeros(n, dtype=bool), np.ones(sum(counts), dtype=bool)]),
            arm=np.concatenate([np.zeros((n, 3)), *(body.points.reshape(-1, 3) for body in rigid)]),
            radius=np.concatenate([np.zeros(n), *(body.radii for body in rigid)]),
            scale=np.concatenate(
                [node_scale[:n], *(body.areas if contact.per_area else np.ones(body.radii.size) for body in rigid)]
            ),
            group=row_of[owner],
            centre=np.concatenate(
                [np.full((n, 3), -1), *(np.tile(centre[b.name], (c, 1)) for b, c in zip(rigid, counts, strict=True))]
            ).astype(np.int64),
            kind=np.array([o.kind for o in obstacles] + [shape.kind for shape in shapes], dtype=np.int64),
            size=np.array([o.size for o in obstacles] + [shape.size for shape in shapes], dtype=float).reshape(-1, 3),
            shape_carrier=np.array(
                [-1] * len(obstacles) + [dofs[body.name].start for body in carriers], dtype=np.int64
            ),
            rotation=np.array([o.rotation for o in obstacles] + [s.rotation for s in shapes], dtype=float),
            position=np.array([o.position for o in obstacles] + [s.position for s in shapes], dtype=float),
            velocity=np.array([o.velocity for o in obstacles] + [np.zeros(3) for _ in shapes], dtype=float),
            shape_centre=np.array(
                [_NOWHERE for _ in obstacles] + [centre[body.name] for body in carriers], dtype=np.int64
            ),
            shape_group=column_of,
            owner=owner,
            shape_owner=np.array(
                [*(number[o.name] for o in obstacles), *(number[b.name] for b in carriers)], dtype=np.int64
            ),
            pairs=pairs,
            law=contact.law,
            total_normal=contact.total_normal,
            pulls=contact.pulls,
            apart=np.array([[number[a], number[b]] for a, b in sorted(apart)], dtype=np.int64).reshape(-1, 2),
        )
    )
    return tuple(terms)


class _Side(NamedTuple):
    """What bodies and obstacles have alike that share a row or a column of the tables.

    ``ball``: whether its only point is the centre of a sphere; ``carries``: whether it is a body with a shape.
    """

    name: str
    rigid: bool = False
    world: bool = False
    ball: bool = False
    carries: bool = False


def _side(body: RigidBody, contact: ContactModel) -> _Side:
    ball = body.radii.size == 1 and body.radii[0] > 0.0
    return _Side(contact.class_of(body.name), rigid=True, ball=bool(ball), carries=bool(body.shapes))


def _numbered(sides: Sequence[_Side]) -> tuple[list[_Side], IntArray]:
    """Return the different ones, and the number of each among them."""
    numbers = {side: k for k, side in enumerate(dict.fromkeys(sides))}
    return list(numbers), np.array([numbers[side] for side in sides], dtype=np.int64)


def _nodes(
    soft: Sequence[SoftBody],
    surfaces: Sequence[Surface],
    particles: Sequence[ParticleBody],
    dofs: DofLayout,
    per_area: bool,
) -> tuple[IntArray, FloatArray, IntArray]:
    nodes, scale, owner = [np.zeros(0, dtype=np.int64)], [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    for k, (body, boundary) in enumerate(zip(soft, surfaces, strict=True)):
        nodes.append(dofs[body.name].start // 3 + boundary.nodes)
        scale.append(boundary.areas if per_area else np.ones(boundary.nodes.size))
        owner.append(np.full(boundary.nodes.size, k, dtype=np.int64))
    for k, sheet in enumerate(particles, start=len(soft)):
        if sheet.touching:
            nodes.append(dofs[sheet.name].start // 3 + np.arange(sheet.n_nodes))
            scale.append(_node_areas(sheet) if per_area else np.ones(sheet.n_nodes))
            owner.append(np.full(sheet.n_nodes, k, dtype=np.int64))
    return np.concatenate(nodes), np.concatenate(scale), np.concatenate(owner)


def _node_areas(sheet: ParticleBody) -> FloatArray:
    """Return a third of the area of the triangles around each node [m^2]."""
    a, b, c = (sheet.points[sheet.triangles[:, k]] for k in range(3))
    third = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 6.0
    return np.bincount(sheet.triangles.ravel(), np.repeat(third, 3), minlength=sheet.n_nodes).astype(float)


def _pairs(
    rows: Sequence[_Side],
    columns: Sequence[_Side],
    contact: ContactModel,
    parameters: ParameterLayout,
    bodies: bool = False,
) -> PairParameters:
    """Return the tables of nodes and the world, or all others if ``bodies``; two classes without bodies never meet."""
    shape = (len(rows), len(columns))

    def on(points: _Side, shapes: _Side) -> bool:
        pair = points.name, shapes.name
        return f"contact.{pair[0]}.{pair[1]}.k_n" in parameters and pair not in contact.disabled

    def enabled(row: _Side, column: _Side) -> int:
        if (not row.rigid and column.world) == bodies or not on(row, column):
            return NEVER
        # The one point of a ball, with its radius, meets any shape exactly. The points of that shape's body against the
        # ball's own shape would only add the same force again, wherever a corner or another ball's centre comes in.
        if column.ball and row.carries and on(column, row):
            return BEHIND if row.ball else NEVER
        return ALWAYS

    def table(key: str) -> IntArray:
        names = [[f"contact.{row.name}.{column.name}.{key}" for column in columns] for row in rows]
        found = [[parameters[name].start if name in parameters else 0 for name in line] for line in names]
        return np.array(found, dtype=np.int64).reshape(shape)

    return PairParameters(
        k_n=table("k_n"),
        k_d=table("k_d"),
        k_t=table("k_t"),
        c_f=table("c_f"),
        onset=np.full(shape, contact.onset),
        ramp=np.full(shape, contact.ramp),
        enabled=np.array([[enabled(row, column) for column in columns] for row in rows]).reshape(shape),
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
