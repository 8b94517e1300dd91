"""Bodies that start inside what they should touch from outside."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from scipy.spatial import cKDTree

from add.bodies import LinkBody
from add.contact import BodyContact
from add.equations.kinematics import Kinematics
from add.geometry.shapes import shape_of
from add.kernels.contact_arrays import SLOT
from add.kernels.contact_detection import which_meet
from add.kernels.rotation import rotation_matrix
from add.kernels.shape_codes import MESH
from add.kernels.shape_grid import FIRST
from add.model.build import Model
from add.model.contact_terms import ContactModel
from add.typing import BoolArray, FloatArray, IntArray

#: Depth from which on a start counts as a mistake, over the largest extent of the body's contact points [-]; what
#: stands on soft feet may well be meant to start some per cent in the floor.
DEEP = 0.1


#: So many places of a line are looked at.
MOST_ALONG = 64
#: Shapes that are so many times as large as half of them are looked at for each body, near or not.
LARGE = 4.0


@final
@dataclass(frozen=True)
class Overlap:
    """A body whose points start inside a shape.

    Attributes
    ----------
    body, other : whose points, and whose shape: an obstacle or a body
    depth : of the deepest point [m]
    size : largest extent of the body's contact points along the axes [m]
    """

    body: str
    other: str
    depth: float
    size: float


class _Meeting(NamedTuple):
    """Points (n, ...) and shapes (ns, ...) where they start.

    `owner`: of the points; `free`: points that move; `fixed`: shapes that do not; `names`: of the shapes' owners, the
    `world`'s first; `term`: what may touch what.
    """

    points: FloatArray
    radius: FloatArray
    owner: IntArray
    free: BoolArray
    kind: IntArray
    size: FloatArray
    rotation: FloatArray
    position: FloatArray
    fixed: BoolArray
    names: tuple[str, ...]
    world: frozenset[str]
    term: BodyContact


class Surface(NamedTuple):
    """A shape at a state: its owner, code, size (or row of a mesh), frame, speed [m/s]; whether no force moves it."""

    name: str
    kind: int
    size: FloatArray
    rotation: FloatArray
    position: FloatArray
    speed: float
    still: bool

    def gaps(self, places: FloatArray) -> FloatArray:
        """Return the signed distances of places (n, 3) [m]."""
        return shape_of(self.kind).gaps(self.size, (places - self.position) @ self.rotation)


def surfaces(model: Model, kin: Kinematics, theta: FloatArray, among: frozenset[str] | None = None) -> list[Surface]:
    """Return the shapes of obstacles and of bodies, or of some of these, at ``kin`` of X."""
    out = []
    for item in model.obstacles:
        if among is not None and item.name not in among:
            continue
        row = np.array(item.size) if item.mesh is None else item.mesh.row
        speed = float(np.linalg.norm(item.velocity))
        out.append(
            Surface(item.name, item.kind, row, item.rotation, item.position + kin.t * item.velocity, speed, True)
        )
    for body in model.bodies:
        if not body.shapes or (among is not None and body.name not in among):
            continue
        still = not body.moves and not isinstance(body, LinkBody)
        start, centre = model.lift.rows[body.name].start, body.centre(model.layouts)
        turn = rotation_matrix(kin.q[start + 3 : start + 6])
        for shape in body.shapes:
            row = np.array(shape.size) if shape.mesh is None else shape.mesh.row
            place = kin.q[start : start + 3] + turn @ (shape.position - _values(theta, centre))
            speed = float(np.linalg.norm(kin.v[start : start + 3]))
            out.append(Surface(body.name, shape.kind, row, turn @ shape.rotation, place, speed, still))
    return out


def may_touch(contact: ContactModel, points: str, shapes: str) -> bool:
    """Return whether the contact of a scene lets one body meet another, or an obstacle, by points or by meshes."""
    classes = contact.class_of(points), contact.class_of(shapes)
    by_meshes = contact.meshes is not None and (points, shapes) in contact.meshes.asked
    return classes not in contact.disabled and (by_meshes or not contact.keeps_apart(points, shapes))


def deep_starts(model: Model, theta: FloatArray) -> list[Overlap]:
    """Return the pairs that start deeper in each other than `DEEP`, the deepest first.

    Only contacts count that are switched on and can move something: prescribed points are left out where the shape is
    prescribed too. A body of one point without a radius has no size, and is never found.
    """
    return _found(model, theta, DEEP)


def touching_starts(model: Model, theta: FloatArray) -> list[Overlap]:
    """Return the pairs that touch or are in each other at the start, the deepest first; as `deep_starts` otherwise."""
    return _found(model, theta, None)


def _found(model: Model, theta: FloatArray, share: float | None) -> list[Overlap]:
    """Return the pairs that are deeper in each other than a share of the body's size, or that touch."""
    kin, prescribed = model.begins(theta), model.system.partition.prescribed
    # Rows of bodies with coordinates of their own come last.
    moves = np.ones(kin.q.size, dtype=bool)
    moves[prescribed] = False
    world = [obstacle.name for obstacle in model.obstacles]
    owners = [*(body.name for body in model.bodies), *world]
    carriers = [body.name for body in model.bodies for _ in body.shapes]
    meetings = [_bodies(term, kin, theta, moves, (*world, *carriers)) for term in model.term(BodyContact)]
    overlaps: dict[tuple[str, str], Overlap] = {}
    for item in (overlap for meeting in meetings for overlap in _overlaps(meeting, owners, share)):
        known = overlaps.get((item.body, item.other))
        if known is None or item.depth > known.depth:
            overlaps[item.body, item.other] = item
    return sorted(overlaps.values(), key=lambda item: -item.depth)


def _overlaps(meeting: _Meeting, owners: list[str], share: float | None) -> Iterator[Overlap]:
    for owner, mine, shapes in _near(meeting):
        points, radius = meeting.points[mine], meeting.radius[mine]
        extent = (points + radius[:, None]).max(axis=0) - (points - radius[:, None]).min(axis=0)
        size = float(extent.max(initial=0.0))
        for o in shapes:
            counts = meeting.free[mine] | (not meeting.fixed[o])
            if not counts.any() or (size == 0.0 and share is not None):
                continue
            local = (points[counts] - meeting.position[o]) @ meeting.rotation[o]
            # Beside a mesh the rows of all shapes are as long as the mesh's.
            kind, row = meeting.kind[o], meeting.size[o]
            gaps = shape_of(kind).gaps(row if kind == MESH else row[:3], local)
            depth = float((radius[counts] - gaps).max())
            if depth >= 0.0 if share is None else depth > share * size:
                one, two = owners[owner], meeting.names[o]
                one, two = (two, one) if one in meeting.world else (one, two)
                yield Overlap(one, two, depth, size)


def _near(meeting: _Meeting) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Yield bodies, the numbers of their points, and the shapes that these may touch and that are near enough.

    Shapes are looked up by place: all pairs would be too many where there are many bodies.
    """
    term, contacts = meeting.term, meeting.term.arrays
    if not meeting.owner.size or not meeting.kind.size:
        return
    bound = contacts.bounds
    ends = np.isfinite(bound)
    usual = ends & (bound <= LARGE * np.median(bound[ends])) if ends.any() else ends
    large, small = np.flatnonzero(~usual), np.flatnonzero(usual)
    tree, most = cKDTree(meeting.position[small].reshape(-1, 3)), float(bound[small].max(initial=0.0))
    order = np.argsort(meeting.owner, kind="stable")
    run_owner = term.owner[contacts.runs[:, FIRST]]
    by_owner = np.argsort(run_owner, kind="stable")
    for mine in np.split(order, np.flatnonzero(np.diff(meeting.owner[order])) + 1):
        owner = int(meeting.owner[mine[0]])
        middle = meeting.points[mine].mean(axis=0)
        reach = float((_norm(meeting.points[mine] - middle) + meeting.radius[mine]).max())
        near = np.concatenate([large, small[np.array(tree.query_ball_point(middle, reach + most), dtype=np.int64)]])
        near = np.sort(near[_norm(meeting.position[near] - middle) <= bound[near] + reach])
        runs = by_owner[slice(*np.searchsorted(run_owner[by_owner], [owner, owner + 1]))]
        pairs = np.stack(np.meshgrid(runs, near, indexing="ij"), axis=2).reshape(-1, 2)
        yield owner, mine, np.unique(pairs[which_meet(contacts, pairs), 1])


def _norm(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(vectors, axis=1))


def _bodies(
    term: BodyContact, kin: Kinematics, theta: FloatArray, moves: BoolArray, names: tuple[str, ...]
) -> _Meeting:
    """Points of bodies against shapes of the world and of bodies."""
    still = term.carrier < 0
    first = np.where(still, 0, term.carrier)[:, None] + np.arange(3)
    points, axes = kin.q[first], np.zeros((term.carrier.size, 3))
    points[still] = term.arm[still] + kin.t * term.velocity[-2 - term.carrier[still]]
    half, lines = term.half_lengths.copy(), np.flatnonzero(term.half_lengths > 0.0)
    half[lines[np.abs(term.rims[term.rim[lines], SLOT]) > 1.0]] = 0.0  # of a rim its middle, a place of the body
    axes[half > 0.0] = term.rims[term.rim[half > 0.0], 3:6]
    ways = np.zeros_like(axes)
    framed = np.flatnonzero(term.rigid & ~still)
    framed = framed[np.argsort(term.carrier[framed], kind="stable")]
    for mine in np.split(framed, np.flatnonzero(np.diff(term.carrier[framed])) + 1) if framed.size else ():
        start = term.carrier[mine[0]]
        turn = rotation_matrix(kin.q[start + 3 : start + 6])
        points[mine] += (term.arm[mine] - _values(theta, term.centre[mine])) @ turn.T
        ways[mine] = axes[mine] @ turn.T
    rotation, position = term.rotation.copy(), term.position.copy()
    on_bodies = np.flatnonzero(term.shape_carrier >= 0)
    for o in on_bodies:
        start = term.shape_carrier[o]
        turn = rotation_matrix(kin.q[start + 3 : start + 6])
        rotation[o] = turn @ rotation[o]
        position[o] = kin.q[start : start + 3] + turn @ (position[o] - _values(theta, term.shape_centre[o]))
    fixed = np.ones(term.kind.size, dtype=bool)
    fixed[on_bodies] = ~moves[term.shape_carrier[on_bodies]]
    # Lines are looked at in places a width apart; a ball about one is in the body up to the end of the line.
    width = np.where(term.radius > 0.0, term.radius, term.corners[:, 3])
    on = np.flatnonzero(half > 0.0)
    counts = np.clip(np.ceil(2.0 * half[on] / width[on]), 8, MOST_ALONG).astype(np.int64) | 1
    lines, share = np.repeat(on, counts), np.concatenate([np.zeros(0), *(np.linspace(-1.0, 1.0, n) for n in counts)])
    free = np.asarray(moves[first].any(axis=1)) & ~still
    radius = np.concatenate([term.radius, np.minimum(term.radius[lines], half[lines] * (1.0 - np.abs(share)))])
    radius[on] = 0.0
    along = ways[lines] * (half[lines] * share)[:, None]
    return _Meeting(
        np.concatenate([points, points[lines] + along]),
        radius,
        np.concatenate([term.owner, term.owner[lines]]),
        np.concatenate([free, free[lines]]),
        term.kind,
        term.size,
        rotation,
        position,
        fixed,
        names,
        frozenset(names[: np.count_nonzero(term.shape_carrier < 0)]),
        term,
    )


def _values(theta: FloatArray, index: IntArray) -> FloatArray:
    """Numbers of theta, zero where the index is -1."""
    return np.where(index >= 0, theta[index], 0.0)
