"""The contact term of meshes: which bodies meet by their meshes, and the numbers that they bring."""

from collections.abc import Iterator, Sequence, Set
from itertools import combinations, combinations_with_replacement, product
from typing import NamedTuple, final

import numpy as np

from add.bodies import Block, Body, ContactMesh, Layouts
from add.contact import MeshContact, NormalLaw
from add.contact.surfaces import ContactSurface, SurfacePart, one_side
from add.model.contact_terms import ContactModel
from add.typing import FloatArray

#: Numbers of a pair of classes, and their units.
COEFFICIENTS = (
    ("k_n", "N/m/m^2"),
    ("k_d", "N s/m/m^2"),
    ("k_t", "N s/m/m^2"),
    ("c_f", "-"),
    ("onset", "m"),
    ("ramp", "m"),
)


@final
class MeetingMeshes(NamedTuple):
    """Bodies that meet by their meshes.

    Attributes
    ----------
    bodies : those that meet any, themselves included
    meshes : theirs
    pairs : pairs (k, l) of them, k < l, or k = l for one that meets itself
    """

    bodies: tuple[Body, ...]
    meshes: tuple[ContactMesh, ...]
    pairs: tuple[tuple[int, int], ...]


def meeting_meshes(bodies: Sequence[Body], contact: ContactModel) -> MeetingMeshes:
    """Return who meets whom by meshes: two bodies of which neither has points for the other's shapes, or as asked."""
    settings = contact.meshes
    if settings is None:
        return MeetingMeshes((), (), ())
    meshes = {body.name: mesh for body in bodies if (mesh := body.contact_mesh()) is not None}
    points = {body.name for body in bodies if body.contact_points().radii.size}
    shapes = {body.name for body in bodies if body.shapes}
    meetings = []
    names = [body.name for body in bodies if body.name in meshes]
    place = {name: k for k, name in enumerate(names)}
    asked = {pair for pair in settings.asked if set(pair) <= place.keys() and place[pair[0]] < place[pair[1]]}
    for a, b in {*without_shapes(names, points, shapes), *asked}:
        both = {(a, b), (b, a)}
        classes = {(contact.class_of(x), contact.class_of(y)) for x, y in both}
        if classes & contact.disabled or both & settings.apart:
            continue
        if _without_faces(meshes[a], meshes[b]):
            continue
        meetings.append((a, b))
    moving = {body.name for body in bodies if body.moves}
    meetings = [pair for pair in meetings if moving & set(pair)]
    meetings += [(name, name) for name in settings.itself if name in meshes and meshes[name].nodes is not None]
    meeting = {name for pair in meetings for name in pair}
    used = [body for body in bodies if body.name in meeting]
    number = {body.name: k for k, body in enumerate(used)}
    pairs = sorted((min(number[a], number[b]), max(number[a], number[b])) for a, b in meetings)
    return MeetingMeshes(tuple(used), tuple(meshes[body.name] for body in used), tuple(pairs))


def without_shapes(names: Sequence[str], points: Set[str], shapes: Set[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of bodies, in the order of ``names``, of which neither has points for the other's shapes.

    Parameters
    ----------
    names : of bodies
    points, shapes : names of those that have points, and of those that have shapes
    """
    kinds: dict[tuple[bool, bool], list[int]] = {}
    for k, name in enumerate(names):
        kinds.setdefault((name in points, name in shapes), []).append(k)
    for one, two in combinations_with_replacement(kinds, 2):
        if (one[0] and two[1]) or (two[0] and one[1]):
            continue
        pairs = combinations(kinds[one], 2) if one == two else product(kinds[one], kinds[two])
        for pair in pairs:
            yield names[min(pair)], names[max(pair)]


def class_pairs(meeting: MeetingMeshes, contact: ContactModel) -> dict[tuple[str, str], str]:
    """Return (class, class), in either order -> name of their coefficients in theta."""
    out: dict[tuple[str, str], str] = {}
    for k, l in meeting.pairs:
        a, b = (contact.class_of(meeting.bodies[i].name) for i in (k, l))
        if (a, b) not in out:
            out[a, b] = out[b, a] = f"mesh_contact.{a}.{b}"
    return out


def mesh_blocks(bodies: Sequence[Body], contact: ContactModel) -> list[Block]:
    """Return the blocks of theta that contact of meshes reads."""
    meeting = meeting_meshes(bodies, contact)
    names = dict.fromkeys(class_pairs(meeting, contact).values())
    blocks: list[Block] = []
    for name in names:
        blocks += [(f"{name}.{key}", (), unit) for key, unit in COEFFICIENTS]
        blocks += contact.curve.blocks(name, "/m^2")
    return [*blocks, *((f"bodies.{body.name}.half_thickness", (), "m") for body in meeting.bodies)]


def mesh_term(bodies: Sequence[Body], contact: ContactModel, at: Layouts) -> MeshContact | None:
    """Return the contact of meshes; None if none meet."""
    meeting = meeting_meshes(bodies, contact)
    if not meeting.pairs:
        return None
    labels = list(dict.fromkeys(contact.class_of(body.name) for body in meeting.bodies))
    parts = [
        SurfacePart(
            mesh.points,
            mesh.faces,
            mesh.edges,
            at.rows[body.name].start,
            mesh.nodes,
            body.centre(at),
            labels.index(contact.class_of(body.name)),
            half_thickness(mesh),
            (k, k) in meeting.pairs,
            mesh.areas,
            mesh.radius > 0.0,
        )
        for k, (body, mesh) in enumerate(zip(meeting.bodies, meeting.meshes, strict=True))
    ]
    apart = sorted(set(combinations(range(len(parts)), 2)) - set(meeting.pairs))
    keys = [*(key for key, _ in COEFFICIENTS), *(number.name for number in contact.curve.numbers)]
    tables = np.zeros((len(labels), len(labels), len(keys)), dtype=np.int64)
    for (a, b), name in class_pairs(meeting, contact).items():
        tables[labels.index(a), labels.index(b)] = [at.parameters[f"{name}.{key}"].start for key in keys]
    thickness = [at.parameters[f"bodies.{body.name}.half_thickness"].start for body in meeting.bodies]
    surface = ContactSurface.of(parts, apart)
    return MeshContact(
        surface,
        tables,
        np.array(thickness, dtype=np.int64),
        law=contact.law,
        total_normal=contact.total_normal,
        adhesive_damping=contact.adhesive_damping,
        sides=one_side(surface),
        names=tuple(body.name for body in meeting.bodies),
        # The skins of meshes end in a wall: where a penalty lets surfaces touch, no step is left.
        normal_law=NormalLaw.PENALTY_WALL if contact.normal_law is NormalLaw.PENALTY else contact.normal_law,
        curve=contact.curve,
    )


def edge_lengths(mesh: ContactMesh) -> FloatArray:
    """Return the lengths of all edges, of faces and others [m]."""
    sides = mesh.faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    ends = mesh.points[np.unique(np.sort(np.concatenate([sides, mesh.edges]), axis=1), axis=0)]
    return np.asarray(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1))


def _without_faces(a: ContactMesh, b: ContactMesh) -> bool:
    """Whether a round body, which meets faces, has none to meet."""
    return (a.radius > 0.0 and not b.faces.size) or (b.radius > 0.0 and not a.faces.size)


def half_thickness(mesh: ContactMesh) -> float:
    """Return what a body has that says none [m]: a quarter of its mesh width, but no more than 0.02 of its size.

    That of a ball or a capsule is its radius; a mesh that meets itself may ask for less.
    """
    if mesh.radius:
        return mesh.radius
    return float(min(0.25 * np.median(edge_lengths(mesh)), 0.02 * np.ptp(mesh.points, axis=0).max()))
