"""Chambers of the bodies of a scene, and nodes that are tied to other bodies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from add.bodies import Body, CarriedShape, Graft, Layouts, LinkBody, NetBody, NodeTie, RigidBody, SoftBody, TreeBody
from add.errors import InputError
from add.geometry.boundary import surface, triangle_areas
from add.geometry.shapes import shape_of
from add.kernels.air import enclosed_volume
from add.kernels.rotation import rotation_matrix, rotation_vector
from add.scene.build.coupling_parts import is_closed
from add.scene.build.joints import start_of
from add.scene.build.selections import select, select_points
from add.scene.build.ties import WORLD, Derived, SceneParts
from add.scene.read.paths import require_known
from add.scene.spec import actuation
from add.scene.spec.bodies import EmbeddingSpec, SoftBodySpec
from add.scene.spec.common import HARD
from add.scene.spec.nets import NetSpec
from add.scene.spec.scene import SceneSpec
from add.summary import as_point, counted
from add.terms import Chamber, GivenVolume, IsothermalGas, Pressure
from add.ties import Line, PoseOnOther
from add.typing import FloatArray, IntArray


class _Walls(NamedTuple):
    """The triangles of one chamber, nodes of its body, outward from the gas; its volume and area at rest."""

    body: str
    triangles: IntArray
    closed: bool
    volume: float
    area: float


def chambers(spec: SceneSpec, bodies: Sequence[Body], parts: SceneParts) -> None:
    """Add the chambers of all bodies: what makes their terms and equations, and their numbers.

    Raises
    ------
    InputError
        For a chamber that has to be closed and is not, a hollow that is not there or has a chamber, a wrong name.
    """
    walled: dict[str, tuple[str, actuation.ChamberSpec, _Walls]] = {}
    joined: dict[str, list[_Walls]] = {}
    pressed: dict[tuple[str, bytes], str] = {}
    for body in bodies:
        owner = spec.bodies.get(body.name)
        if isinstance(owner, SoftBodySpec | NetSpec):
            assert isinstance(body, SoftBody | NetBody)
            for name, item in owner.chambers.items():
                place = f"bodies.{body.name}.chambers.{name}"
                walls = _walls(body, item, place)
                walled[f"{body.name}/{name}"] = place, item, walls
                first = pressed.setdefault((body.name, walls.triangles.tobytes()), place)
                if first != place:
                    raise InputError("another chamber has the same walls, and both would press on them", place=place,
                                     found=f"those of {first}", expected="one chamber")  # fmt: skip
    known = [key for key, (_, item, _) in walled.items() if not isinstance(item, actuation.JoinedChamberSpec)]
    for place, item, walls in walled.values():
        if isinstance(item, actuation.JoinedChamberSpec):
            other = item.to if "/" in item.to else f"{walls.body}/{item.to}"
            require_known("chamber", other, known, f"{place}.to")
            joined.setdefault(other, []).append(walls)
    for key in known:
        place, item, walls = walled[key]
        parts.terms.append(_content(key, place, item, [walls, *joined.get(key, [])], parts))


def _content(
    name: str, place: str, item: actuation.ChamberSpec, walls: list[_Walls], parts: SceneParts
) -> Callable[[Sequence[Body], Layouts], list[Pressure | Chamber]]:
    """Return what makes the term or the equation of a chamber with all that is joined to it."""
    volume, area = sum(one.volume for one in walls), sum(one.area for one in walls)
    if isinstance(item, actuation.VolumeChamberSpec):
        drive = parts.signal(volume if item.volume is None else item.volume, f"{place}.volume", "m^3", 1)
    else:
        assert isinstance(item, actuation.PressureChamberSpec | actuation.GasChamberSpec)
        drive = parts.signal(item.pressure, f"{place}.pressure", "Pa", 1)
    constants: tuple[str, ...] = ()
    if isinstance(item, actuation.GasChamberSpec):
        rest = volume if item.rest_volume is None else item.rest_volume
        constants = parts.number(f"{place}.rest_volume", rest, "m^3"), *parts.numbers_of(place, item, "atmosphere")

    def made(_: Sequence[Body], at: Layouts) -> list[Pressure | Chamber]:
        corners = np.concatenate([at.rows[one.body].start // 3 + one.triangles for one in walls])
        rows, *numbers = (at.parameters[block].indices.ravel() for block in (drive.parameter, *constants))
        if isinstance(item, actuation.PressureChamberSpec):
            return [Pressure(name, corners, drive.signal, rows, all(one.closed for one in walls))]
        if isinstance(item, actuation.GasChamberSpec):
            v_0, p_atm = (int(index[0]) for index in numbers)
            return [Chamber(name, corners, IsothermalGas(drive.signal, rows, v_0, p_atm, item.atmosphere), area)]
        return [Chamber(name, corners, GivenVolume(drive.signal, rows), area)]

    return made


def _walls(body: SoftBody | NetBody, item: actuation.ChamberSpec, place: str) -> _Walls:
    """Return the walls that a chamber names.

    Raises
    ------
    InputError
        If there are none, several to choose from, or a hole in what has to be closed.
    """
    points = body.rest
    faces = body.surface.triangles[:, ::-1] if isinstance(body, SoftBody) else body.triangles
    if item.where is not None:
        mesh = body.mesh if isinstance(body, SoftBody) else None
        chosen = np.zeros(points.shape[0], dtype=bool)
        chosen[select_points(points, item.where, f"{place}.where", mesh)] = True
        faces = faces[chosen[faces].all(axis=1)] if mesh is None else surface(mesh, chosen).triangles[:, ::-1]
        if not faces.size:
            raise InputError("the selection holds no whole face of the surface", place=f"{place}.where", found="nodes",
                             expected="all nodes of a face")  # fmt: skip
    elif isinstance(body, SoftBody):
        faces = _hollow(points, faces, item.cavity, place)
    elif item.cavity is not None:
        raise InputError("cloth and nets have no hollows to number", place=f"{place}.cavity", found=item.cavity,
                         expected="'where', a selection, or nothing: the whole surface")  # fmt: skip
    if not faces.size:
        raise InputError("the body has no triangles to press on", place=place, found=f"'{body.name}'")
    faces, closed = np.ascontiguousarray(faces), is_closed(faces)
    volume = float(enclosed_volume(points.ravel(), faces)) if closed else 0.0
    if closed and volume < 0.0 and isinstance(body, NetBody):
        faces, volume = np.ascontiguousarray(faces[:, ::-1]), -volume
    if not closed and not isinstance(item, actuation.PressureChamberSpec):
        raise InputError(
            "a chamber with a content is closed, and this one has a hole", place=place, found=_hole(points, faces),
            expected="every edge of its faces between two of them, or \"type\": \"pressure\"",
        )  # fmt: skip
    return _Walls(body.name, faces, closed, volume, float(triangle_areas(points, faces).sum()))


def _pieces(rows: IntArray, n: int) -> list[IntArray]:
    """Return the connected parts of faces, or edges, between ``n`` nodes, in the order of their lowest nodes."""
    edges = np.concatenate([rows[:, k : k + 2] for k in range(rows.shape[1] - 1)])
    graph = coo_array((np.ones(len(edges)), tuple(edges.T)), shape=(n, n))
    label = connected_components(graph, directed=False)[1][rows[:, 0]]
    return [rows[label == k] for k in np.unique(label)]


def _hollow(points: FloatArray, faces: IntArray, number: int | None, place: str) -> IntArray:
    """Return the faces of a hollow inside a body, whose faces, seen from the gas, enclose a volume above zero."""
    parts = _pieces(faces, points.shape[0])
    hollows = [part for part in parts if enclosed_volume(points.ravel(), np.ascontiguousarray(part)) > 0.0]
    if len(hollows) == 1 and number is None:
        return hollows[0]
    if number is not None and number < len(hollows):
        return hollows[number]
    centres = ", ".join(as_point(points[np.unique(part)].mean(axis=0)) for part in hollows)
    found = counted(len(hollows), "hollow") + (f", around {centres}" if hollows else "")
    if number is not None:
        raise InputError("the body has no such hollow", place=f"{place}.cavity", found=f"{number}, and {found}",
                         expected=f"0..{len(hollows) - 1}" if hollows else "'where', a selection")  # fmt: skip
    raise InputError("the chamber is not said", place=place, found=found,
                     expected="'cavity', the number of one, or 'where', a selection")  # fmt: skip


def _hole(points: FloatArray, faces: IntArray) -> str:
    """Return in words where a surface is open."""
    sides = {(int(a), int(b)) for face in faces for a, b in zip(face, np.roll(face, -1), strict=True)}
    rim = [side for side in sides if side[::-1] not in sides]
    if not rim:
        return "faces that do not go round the same way"
    holes = _pieces(np.array(sorted(rim)), points.shape[0])
    first = max(holes, key=len)
    around = as_point(points[np.unique(first)].mean(axis=0))
    return f"{len(holes)} hole{'s' * (len(holes) > 1)}, the largest with a rim of {len(first)} edges around {around} m"


# --- Nodes of soft bodies that are fixed to links and rigid bodies ----------------------------------------------------


def embed(spec: SceneSpec, bodies: list[Body], starts: Mapping[str, FloatArray], parts: SceneParts) -> None:
    """Tie nodes of soft bodies to others, in ``bodies``; add what follows from their poses, and who is tied to whom.

    Parameters
    ----------
    spec : SceneSpec
    bodies : all of the scene; those that are tied, or that others are tied to, are replaced
    starts : poses (6,) of links at the start, by name

    Raises
    ------
    InputError
        For nodes of two ties, or that something else holds, bodies that carry nothing, and nodes that are too far away.
    """
    place = {body.name: k for k, body in enumerate(bodies)}
    for name, soft in spec.bodies.items():
        if not isinstance(soft, SoftBodySpec) or not soft.embedded:
            continue
        at, body = f"bodies.{name}", bodies[place[name]]
        assert isinstance(body, SoftBody)
        if any(item.by == "condensation" for item in soft.embedded):
            _refuse(spec, soft, at)
        ties: list[NodeTie] = []
        for k, item in enumerate(soft.embedded):
            carrier = bodies[place[item.body]]
            if not isinstance(carrier, RigidBody | LinkBody) or (isinstance(carrier, LinkBody) and carrier.massless):
                raise InputError("nodes are tied to rigid bodies and links", place=f"{at}.embedded.{k}.body",
                                 found=f"'{item.body}'", expected="a body with a frame and a mass")  # fmt: skip
            start = start_of(spec, starts, item.body)
            nodes = _nodes(soft, body, item, carrier, start, f"{at}.embedded.{k}")
            for other in ties:
                both = np.intersect1d(nodes, other.nodes)
                if both.size:
                    raise InputError(
                        f"node {both[0]} is tied twice", place=f"{at}.embedded.{k}",
                        found=f"{both.size} nodes that are tied to '{other.carrier}', too", expected="one link a node",
                    )  # fmt: skip
            ties.append(NodeTie(nodes, item.body, f"{at}.embedded.{k}", item.by == "multipliers"))
            parts.connected |= {(name, item.body), (item.body, name)}
        _refuse_held(body, ties, at)
        made = replace(body, ties=tuple(ties))
        bodies[place[name]] = made
        for tie in ties:
            parts.derived += _follow(made, tie, bodies[place[tie.carrier]], parts)
            _graft(made, tie, bodies, place)


def _refuse(spec: SceneSpec, own: SoftBodySpec, at: str) -> None:
    """Refuse what has no equations with nodes that are no unknowns."""
    law = spec.contact.friction_law
    if law in HARD:
        raise InputError("contact without penalties knows no tied nodes", place="contact.friction_law",
                         found=f"'{law}', and {at}.embedded",
                         expected="'none', 'linear', 'tanh' or 'hybrid', or `by` 'multipliers'")  # fmt: skip
    if any(material.branches for material in (own.material, *(part.material for part in own.regions.values()))):
        raise InputError("stress of a body with tied nodes does not relax", place=f"{at}.embedded",
                         found="material.relaxation", expected="a material without, or `by` 'multipliers'")  # fmt: skip


def _refuse_held(body: SoftBody, ties: list[NodeTie], at: str) -> None:
    """Refuse tied nodes that pins hold or that have masses of their own, and a body of nothing else."""
    nodes = np.concatenate([tie.nodes for tie in ties])
    holding = {f"pins.{k}": pin.nodes for k, pin in enumerate(body.pins)}
    holding |= {f"point_masses.{k}": mass.nodes for k, mass in enumerate(body.masses)}
    for key, held in holding.items():
        both = np.intersect1d(held, nodes)
        if both.size:
            raise InputError(f"node {both[0]} is tied to a link", place=f"{at}.{key}",
                             expected="nodes that nothing else holds; masses belong to the link")  # fmt: skip
    if nodes.size == body.mesh.n_nodes:
        raise InputError("all nodes are tied: nothing deforms", place=f"{at}.embedded", expected="free nodes")


def _nodes(
    own: SoftBodySpec, body: SoftBody, item: EmbeddingSpec, carrier: RigidBody | LinkBody, start: FloatArray, at: str
) -> IntArray:
    """Return the nodes of an embedding, in their order."""
    nodes = np.arange(body.mesh.n_nodes) if item.where is None else select(body.mesh, item.where, f"{at}.where")
    nodes = np.unique(nodes)
    if item.where is not None and item.within is None:
        return nodes
    shapes = _shapes(carrier)
    if not shapes:
        raise InputError("this body has no shape that nodes could be inside of", place=f"{at}.body",
                         found=f"'{item.body}'", expected="a body with a geometry, or `where` alone")  # fmt: skip
    place = np.array(own.position) + body.rest[nodes] @ rotation_matrix(rotation_vector(own.orientation)).T
    arms = (place - start[:3]) @ rotation_matrix(start[3:])
    gaps = np.min([_gaps(shape, arms) for shape in shapes], axis=0)
    inside = gaps <= (item.within or 0.0) + 1e-9 * np.ptp(body.rest, axis=0).max()
    if item.where is None and not inside.any():
        raise InputError("no node is inside this body", place=at, found=f"the nearest is {gaps.min():.3g} m outside",
                         expected="`within`, a finer mesh, or `where`")  # fmt: skip
    if item.where is not None and not inside.all():
        far = int(np.argmax(gaps))
        raise InputError(f"node {nodes[far]} is far from '{item.body}'", place=f"{at}.within",
                         found=f"{gaps[far]:.3g} m outside its shapes",
                         expected=f"at most {item.within:g} m")  # fmt: skip
    return nodes[inside]


def _shapes(carrier: RigidBody | LinkBody) -> tuple[CarriedShape, ...]:
    if isinstance(carrier, RigidBody) and not carrier.shapes and carrier.outline[0] >= 0:
        return (CarriedShape(*carrier.outline, np.eye(3), np.zeros(3)),)
    return carrier.shapes


def _gaps(shape: CarriedShape, places: FloatArray) -> FloatArray:
    """Return the signed distances of places (n, 3) of the carrier's frame [m]."""
    row = np.array(shape.size) if shape.mesh is None else shape.mesh.row
    return shape_of(shape.kind).gaps(row, (places - shape.position) @ shape.rotation)


def _follow(body: SoftBody, tie: NodeTie, carrier: Body, parts: SceneParts) -> list[Derived]:
    """Return the place of the tissue in the link's frame, and its masses there."""
    centre = f"bodies.{carrier.name}.centre" if isinstance(carrier, RigidBody) and carrier.moves else WORLD[:3]
    pose = (f"{tie.path}.position", f"{tie.path}.orientation")
    out = [Derived(pose, PoseOnOther(), (*parts.pose_of(body.name), *parts.pose_of(carrier.name), centre))]
    for part in body.tied_masses(tie):
        outputs = tuple(f"{part.name}.{key}" for key in ("mass", "centre", "inertia"))
        slopes, offsets = (part.mass, 0.0, 0.0, 0.0, *part.inertia), (0.0, *part.centre, *[0.0] * 6)
        out.append(Derived(outputs, Line(slopes, offsets), (f"{part.region.place(body.name)}.density",)))
    return out


def _graft(body: SoftBody, tie: NodeTie, bodies: list[Body], place: Mapping[str, int]) -> None:
    """Add the frame of tied nodes, with their mass, to the body that carries them."""
    carrier, masses = bodies[place[tie.carrier]], tuple(part.name for part in body.tied_masses(tie))
    if isinstance(carrier, RigidBody):
        bodies[place[tie.carrier]] = replace(carrier, grafts=(*carrier.grafts, Graft(tie.path, 0, masses)))
        return
    assert isinstance(carrier, LinkBody)
    tree = bodies[place[carrier.tree]]
    assert isinstance(tree, TreeBody)
    joint = next(k for k, joint in enumerate(tree.joints) if joint.link == carrier.link)
    bodies[place[carrier.tree]] = replace(tree, grafts=(*tree.grafts, Graft(tie.path, joint, masses)))
