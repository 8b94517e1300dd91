"""Mass-spring bodies, cloth and rods of a scene, with the numbers they bring."""

from collections.abc import Sequence

import numpy as np

from add.bodies import Layer, MassSpringBody, NetBody, NodalLoad, Pin, Seam, ThinBody
from add.errors import InputError
from add.geometry import SoftMesh
from add.geometry.sheet import ALTERNATING, IRREGULAR, ONE, Sheet, rectangle
from add.io.surfaces import Pattern, read_pattern
from add.materials.strains import PLATE, StrainLaw
from add.scene.build.rigid_bodies import pose_numbers
from add.scene.build.selections import nodal_load, select_points
from add.scene.build.ties import SceneParts
from add.scene.read.paths import asked_for_by
from add.scene.spec import nets
from add.scene.spec.bodies import FileMeshSpec, SoftBodySpec
from add.scene.spec.materials import IsotropicMembraneSpec
from add.typing import FloatArray, IntArray

_DIAGONALS = {"alternating": ALTERNATING, "one": ONE, "irregular": IRREGULAR}
_NO_PLACES = np.zeros((1, 0), dtype=np.int64)
#: How much the two sides of a seam may differ in length, as a part of the longer.
_EASE = 0.05


def net_body(name: str, body: nets.NetSpec, parts: SceneParts) -> NetBody:
    """Return a mass-spring body, a cloth or a rod."""
    if isinstance(body, nets.ClothBodySpec):
        return _cloth(name, body, parts)
    if isinstance(body, nets.RodBodySpec):
        return _rod(name, body, parts)
    assert isinstance(body, nets.MassSpringBodySpec)
    return _mass_spring(name, body, parts)


def pins_and_loads(
    at: str, body: nets.NetSpec | SoftBodySpec, points: FloatArray, parts: SceneParts, mesh: SoftMesh | None = None
) -> tuple[tuple[Pin, ...], tuple[NodalLoad, ...]]:
    """Return pins and loads of a body of nodes; their numbers, and those of its start, go to ``parts``."""
    pins, loads = [], []
    parts.numbers += pose_numbers(at, body)
    for k, pin in enumerate(body.pins):
        nodes = select_points(points, pin.where, f"{at}.pins.{k}.where", mesh)
        motion = parts.moved(pin.motion, f"{at}.pins.{k}.motion", "m")
        pins.append(Pin(nodes, tuple("xyz".index(axis) for axis in pin.axes), motion))
    _no_pin_twice(pins, at)
    for k, load in enumerate(body.loads):
        nodes = select_points(points, load.where, f"{at}.loads.{k}.where", mesh)
        force = parts.moved(load.force, f"{at}.loads.{k}.force", "N")
        assert force is not None
        loads.append(nodal_load(load, nodes, points, force, f"{at}.loads.{k}"))
        if load.at is not None:
            parts.add_of(f"{at}.loads.{k}", load, "at")
    return tuple(pins), tuple(loads)


def _no_pin_twice(pins: Sequence[Pin], at: str) -> None:
    """Refuse pins that hold a node along one axis in two ways: two motions would add up, one hides that it is held."""
    held: set[tuple[int, int]] = set()
    moved: set[tuple[int, int]] = set()
    for k, pin in enumerate(pins):
        own = {(int(node), axis) for node in pin.nodes for axis in pin.axes}
        twice = own & (held if pin.motion else moved)
        if twice:
            node, axis = min(twice)
            raise InputError(
                f"node {node} is already {'held' if pin.motion else 'moved'} along {'xyz'[axis]} by an earlier pin",
                place=f"{at}.pins.{k}",
            )
        held |= own
        if pin.motion:
            moved |= own


# --- springs ----------------------------------------------------------------------------------------------------------


def _mass_spring(name: str, body: nets.MassSpringBodySpec, parts: SceneParts) -> NetBody:
    at = f"bodies.{name}"
    points, edges, triangles = _mass_spring_mesh(body)
    n = points.shape[0]
    pins, loads = pins_and_loads(at, body, points, parts)
    if body.mass is None:
        held = {(int(node), axis) for pin in pins for node in pin.nodes for axis in pin.axes}
        if len(held) < 3 * n:
            raise InputError("nodes without mass have to be pinned, all of them along x, y, z", place=f"{at}.mass")
    else:
        parts.add_of(at, body, "mass", "rayleigh_mass")
    if edges.size:
        parts.add_of(at, body, "stiffness", "damping")
        lengths = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
        # Of the mesh, and no number of the scene.
        parts.add(f"{at}.lengths", lengths, "m", fixed=True)
    shares = np.full(n, 1.0 / n)
    return MassSpringBody(name, points, shares, edges, triangles, body.collision, pins, loads, body.mass is None)


def _mass_spring_mesh(body: nets.MassSpringBodySpec) -> tuple[FloatArray, IntArray, IntArray]:
    mesh = body.mesh
    if isinstance(mesh, nets.PointsMeshSpec):
        edges = np.array(mesh.edges, dtype=np.int64).reshape(-1, 2)
        return np.array(mesh.points, dtype=float), edges, np.zeros((0, 3), dtype=np.int64)
    nx, ny = mesh.divisions
    x, y = (np.linspace(-0.5 * size, 0.5 * size, n + 1) for size, n in zip(mesh.size, mesh.divisions, strict=True))
    points = np.stack([*np.broadcast_arrays(x[:, None], y[None, :], 0.0)], axis=-1).reshape(-1, 3)
    number = np.arange((nx + 1) * (ny + 1)).reshape(nx + 1, ny + 1)
    pairs = [(number[:-1], number[1:]), (number[:, :-1], number[:, 1:])]
    if mesh.shear:
        pairs += [(number[:-1, :-1], number[1:, 1:]), (number[1:, :-1], number[:-1, 1:])]
    if mesh.bend:
        pairs += [(number[:-2], number[2:]), (number[:, :-2], number[:, 2:])]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])
    a, b, c, d = (number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:])
    triangles = np.concatenate([np.stack([p.ravel() for p in t], axis=1) for t in ((a, b, c), (a, c, d))])
    return points, edges, triangles


# --- cloth ------------------------------------------------------------------------------------------------------------


def _cloth(name: str, body: nets.ClothBodySpec, parts: SceneParts) -> NetBody:
    at = f"bodies.{name}"
    points, triangles, sheet = _sheet(body, at)
    try:
        sheet.require_sheet()
    except InputError as error:
        error.place = f"{at}.mesh, {error.place}"
        raise
    if sheet.upright.any() and not isinstance(body.material.membrane, IsotropicMembraneSpec):
        raise InputError("the warp stands upright on the cloth, whose membrane has directions", place=f"{at}.warp",
                         found=f"{sheet.upright.sum()} of {sheet.upright.size} triangles without a warp",
                         expected="a direction that lies along all of them")  # fmt: skip
    pins, loads = pins_and_loads(at, body, points, parts)
    membrane, *bending = body.material.laws
    n = triangles.shape[0]
    places = np.repeat(_NO_PLACES, n, axis=0)
    layers = [Layer(membrane, triangles, places, sheet.gradients.reshape(n, 6), sheet.areas)]
    layers += [_bending(law, sheet) for law in bending if sheet.hinges]
    parts.add_of(f"{at}.material", body.material, "density", "rayleigh_mass", block=at)
    units = {modulus.key: modulus.unit for layer in layers for modulus in layer.law.parameters}
    for key, unit in units.items():
        parts.add(f"{at}.material.{key}", body.material.number(key), unit, ((f"{at}.{key}", 1.0),))
    seams = []
    for k, seam in enumerate(body.seams):
        seams.append(_seam(seam, sheet, points.shape[0], f"{at}.seams.{k}"))
        parts.add_of(f"{at}.seams.{k}", seam, "stiffness", "damping")
    areas = sheet.node_areas(points.shape[0])
    return ThinBody(
        name, points, areas / areas.sum(), np.zeros((0, 2), dtype=np.int64), triangles, body.collision, pins, loads,
        tuple(layers), float(areas.sum()), "kg/m^2", tuple(seams), sheet.gradients,
    )  # fmt: skip


def _sheet(body: nets.ClothBodySpec, at: str) -> tuple[FloatArray, IntArray, Sheet]:
    """Return points and triangles at the start, and the sheet at rest."""
    mesh = body.mesh
    if not isinstance(mesh, FileMeshSpec):
        points, triangles = rectangle(mesh.size, mesh.cells, _DIAGONALS[mesh.diagonals])
        read = Pattern(points, triangles, None)
    else:
        with asked_for_by(f"{at}.mesh.file"):
            read = read_pattern(mesh.file)
    points, corners = body.scale * read.points, read.points[read.triangles]
    if isinstance(body.rest, FileMeshSpec):
        with asked_for_by(f"{at}.rest.file"):
            other = read_pattern(body.rest.file)
        if not np.array_equal(other.triangles, read.triangles):
            raise InputError(
                "the shape without stress has other triangles", file=body.rest.file, place=f"{at}.rest.file",
                found=f"{len(other.triangles)} triangles", expected=f"the {len(read.triangles)} of the mesh, in order",
            )  # fmt: skip
        corners = other.points[other.triangles]
    elif body.rest == "uv":
        if read.uv is None:
            raise InputError("not every corner has texture coordinates", place=f"{at}.rest", found="'uv'",
                             expected="lines 'vt' and faces 'v/vt' of an .obj file, or 'mesh'")  # fmt: skip
        corners = np.concatenate([read.uv, np.zeros((*read.uv.shape[:2], 1))], axis=2)
    return points, read.triangles, Sheet(read.triangles, body.scale * corners, body.rest == "uv", body.warp)


def _bending(law: StrainLaw, sheet: Sheet) -> Layer:
    if law.strain is PLATE:
        plates = sheet.plates()
        return Layer(law, plates.cells, plates.places, plates.shape, sheet.areas[plates.triangles])
    n = len(sheet.hinges)
    places = np.tile(np.arange(4), (n, 1))
    shape = np.column_stack([sheet.rest_angles, np.ones(n)])
    return Layer(law, sheet.hinge_nodes, places, shape, sheet.hinge_weights)


def _seam(seam: nets.SeamSpec, sheet: Sheet, n: int, at: str) -> Seam:
    if len(seam.a) != len(seam.b):
        raise InputError("the sides of a seam do not fit", place=at, found=f"{len(seam.a)} and {len(seam.b)} nodes",
                         expected="as many on one as on the other")  # fmt: skip
    pairs = np.column_stack([seam.a, seam.b])
    if pairs.min() < 0 or pairs.max() >= n or (pairs[:, 0] == pairs[:, 1]).any():
        raise InputError("a seam joins two different nodes", place=at, expected=f"within 0..{n - 1}")
    place = np.zeros((n, 3))
    place[sheet.triangles] = sheet.corners
    long = [float(np.linalg.norm(np.diff(place[side], axis=0), axis=1).sum()) for side in pairs.T]
    if abs(long[0] - long[1]) > _EASE * max(long):
        raise InputError("the sides of a seam do not fit", place=at, found=f"{long[0]:.4g} m and {long[1]:.4g} m long",
                         expected=f"lengths that differ by at most {_EASE:.0%}")  # fmt: skip
    return Seam(pairs)


# --- rods -------------------------------------------------------------------------------------------------------------


def _rod(name: str, body: nets.RodBodySpec, parts: SceneParts) -> NetBody:
    at = f"bodies.{name}"
    if isinstance(body.mesh, nets.LineMeshSpec):
        points = np.linspace([0.0, 0.0, 0.0], [body.mesh.length, 0.0, 0.0], body.mesh.segments + 1)
    else:
        points = np.array(body.mesh.points)
    n = points.shape[0]
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    if not lengths.all():
        raise InputError("a segment of length zero", place=f"{at}.mesh.points.{int(np.argmin(lengths))}")
    pins, loads = pins_and_loads(at, body, points, parts)
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    stretching, bending = body.laws
    layers = [Layer(stretching, edges, np.repeat(_NO_PLACES, n - 1, axis=0), lengths[:, None], lengths)]
    if n > 2:
        cells = np.column_stack([np.arange(n - 2) + k for k in range(3)])
        none = np.repeat(_NO_PLACES, n - 2, axis=0)
        layers.append(Layer(bending, cells, none, np.zeros((n - 2, 0)), 2.0 / (lengths[1:] + lengths[:-1])))
    parts.add_of(at, body, "density", "rayleigh_mass")
    for modulus in (modulus for layer in layers for modulus in layer.law.parameters):
        parts.add(f"{at}.{modulus.key}", body.number(modulus.key), modulus.unit)
    amounts = 0.5 * (np.append(lengths, 0.0) + np.append(0.0, lengths))
    return ThinBody(
        name, points, amounts / amounts.sum(), edges, np.zeros((0, 3), dtype=np.int64), body.collision, pins, loads,
        tuple(layers), float(amounts.sum()), "kg/m",
    )  # fmt: skip
