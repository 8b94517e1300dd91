"""Chambers of the bodies of a scene."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from add.bodies import Body, Layouts, NetBody, SoftBody
from add.errors import InputError
from add.geometry.boundary import triangle_areas
from add.kernels.gas_faces import enclosed_volume
from add.scene.build.coupling_parts import is_closed
from add.scene.build.selections import select_points
from add.scene.build.ties import SceneParts
from add.scene.read.paths import require_known
from add.scene.spec.actuation import (
    ChamberSpec,
    GasChamberSpec,
    JoinedChamberSpec,
    PressureChamberSpec,
    VolumeChamberSpec,
)
from add.scene.spec.bodies import SoftBodySpec
from add.scene.spec.nets import NetSpec
from add.scene.spec.scene import SceneSpec
from add.terms import Chamber, GivenVolume, IsothermalGas, Pressure
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class _Walls:
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
        For a chamber that has to be closed and is not, a hollow that is not there, a name that means none.
    """
    found: dict[str, tuple[str, ChamberSpec, _Walls]] = {}
    joined: dict[str, list[_Walls]] = {}
    for body in bodies:
        own = spec.bodies.get(body.name)
        if isinstance(own, SoftBodySpec | NetSpec):
            assert isinstance(body, SoftBody | NetBody)
            for name, item in own.chambers.items():
                place = f"bodies.{body.name}.chambers.{name}"
                found[f"{body.name}/{name}"] = place, item, _walls(body, item, place)
    known = [key for key, (_, item, _) in found.items() if not isinstance(item, JoinedChamberSpec)]
    for place, item, walls in found.values():
        if isinstance(item, JoinedChamberSpec):
            other = item.to if "/" in item.to else f"{walls.body}/{item.to}"
            require_known("chamber", other, known, f"{place}.to")
            joined.setdefault(other, []).append(walls)
    for key in known:
        place, item, walls = found[key]
        parts.terms.append(_content(key, place, item, [walls, *joined.get(key, [])], parts))


def _content(
    name: str, place: str, item: ChamberSpec, walls: list[_Walls], parts: SceneParts
) -> Callable[[Sequence[Body], Layouts], list[Pressure | Chamber]]:
    """Return what makes the term or the equation of a chamber with all that is joined to it."""
    volume, area = sum(one.volume for one in walls), sum(one.area for one in walls)

    def triangles(at: Layouts) -> IntArray:
        return np.concatenate([at.rows[one.body].start // 3 + one.triangles for one in walls])

    def index(block: str, at: Layouts) -> IntArray:
        return at.parameters[block].indices.ravel()

    if isinstance(item, VolumeChamberSpec):
        given = volume if item.volume is None else item.volume
        amount = parts.signal(given, f"{place}.volume", "m^3", 1)

        def liquid(_: Sequence[Body], at: Layouts) -> list[Pressure | Chamber]:
            filling = GivenVolume(amount.signal, index(amount.parameter, at))
            return [Chamber(name, triangles(at), filling, area)]

        return liquid
    assert isinstance(item, PressureChamberSpec | GasChamberSpec)
    drive = parts.signal(item.pressure, f"{place}.pressure", "Pa", 1)
    if isinstance(item, PressureChamberSpec):
        closed = all(one.closed for one in walls)

        def pressed(_: Sequence[Body], at: Layouts) -> list[Pressure | Chamber]:
            return [Pressure(name, triangles(at), drive.signal, index(drive.parameter, at), closed)]

        return pressed
    given = volume if item.rest_volume is None else item.rest_volume
    rest = parts.number(f"{place}.rest_volume", given, "m^3")
    atmosphere, over = parts.number(f"{place}.atmosphere", item.atmosphere, "Pa"), item.atmosphere

    def gas(_: Sequence[Body], at: Layouts) -> list[Pressure | Chamber]:
        v_0, p_atm = (int(index(block, at)[0]) for block in (rest, atmosphere))
        filling = IsothermalGas(drive.signal, index(drive.parameter, at), v_0, p_atm, over)
        return [Chamber(name, triangles(at), filling, area)]

    return gas


def _walls(body: SoftBody | NetBody, item: ChamberSpec, place: str) -> _Walls:
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
        faces = faces[chosen[faces].all(axis=1)]
        if not faces.size:
            raise InputError("the selection holds no whole face of the surface", place=f"{place}.where", found="nodes",
                             expected="all three nodes of a triangle")  # fmt: skip
    elif isinstance(body, SoftBody):
        faces = _hollow(points, faces, item.cavity, place)
    if not faces.size:
        raise InputError("the body has no triangles to press on", place=place, found=f"'{body.name}'")
    faces, closed = np.ascontiguousarray(faces), is_closed(faces)
    volume = float(enclosed_volume(points.ravel(), faces)) if closed else 0.0
    if closed and volume < 0.0 and isinstance(body, NetBody):
        faces, volume = np.ascontiguousarray(faces[:, ::-1]), -volume
    if not closed and not isinstance(item, PressureChamberSpec):
        raise InputError(
            "a chamber with a content is closed, and this one has a hole", place=place, found=_hole(points, faces),
            expected="every edge of its faces between two of them, or \"type\": \"pressure\"",
        )  # fmt: skip
    return _Walls(body.name, faces, closed, volume, float(triangle_areas(points, faces).sum()))


def _parts(faces: IntArray, n: int) -> IntArray:
    """Return the number of the connected part that each face is in, in the order of their lowest nodes."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]]])
    graph = coo_array((np.ones(len(edges)), tuple(edges.T)), shape=(n, n))
    label = connected_components(graph, directed=False)[1][faces[:, 0]]
    return np.asarray(np.unique(label, return_inverse=True)[1], dtype=np.int64)


def _hollow(points: FloatArray, faces: IntArray, number: int | None, place: str) -> IntArray:
    """Return the faces of a hollow inside a body, whose faces, seen from the gas, enclose a volume above zero."""
    label = _parts(faces, points.shape[0])
    parts = [faces[label == k] for k in range(label.max() + 1)]
    hollows = [part for part in parts if enclosed_volume(points.ravel(), np.ascontiguousarray(part)) > 0.0]
    if len(hollows) == 1 and number is None:
        return hollows[0]
    if number is not None and number < len(hollows):
        return hollows[number]
    centres = ", ".join(_shown(points[np.unique(part)].mean(axis=0)) for part in hollows)
    found = f"{len(hollows)} hollows" + (f", around {centres}" if hollows else "")
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
    edges = np.array(sorted(rim))
    label = connected_components(
        coo_array((np.ones(len(edges)), tuple(edges.T)), shape=2 * points.shape[:1]), directed=False
    )[1][edges[:, 0]]
    holes = [edges[label == k] for k in np.unique(label)]
    first = max(holes, key=len)
    around = _shown(points[np.unique(first)].mean(axis=0))
    return f"{len(holes)} hole{'s' * (len(holes) > 1)}, the largest with a rim of {len(first)} edges around {around} m"


def _shown(point: FloatArray) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in point) + ")"
