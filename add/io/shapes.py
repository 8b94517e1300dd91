"""Meshes of simple shapes: structured boxes, and spheres, cylinders and tori filled with tetrahedra by fTetWild."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull

from add.errors import InputError
from add.fem import (
    FAMILIES,
    HEX8,
    TET4,
    TET10,
    SoftMesh,
    boundary_faces,
    box_mesh,
    move_without_folding,
    to_tet10,
    validate,
)
from add.fem.build import box_lengths
from add.typing import FloatArray, IntArray

SHAPES = ("box", "sphere", "cylinder", "torus")
ENVELOPE = 0.1
"""How far fTetWild's boundary may lie from the triangles it is given, in edges [-]; larger is faster and coarser."""
ROUNDS = 10
"""Most rounds of fTetWild's optimisation; with its own 80, some tori of 16000 elements took a minute, for no better."""
FLAT = 0.01
"""No node is moved to the true surface if an element's volume / longest edge^3 falls below this [-]; regular: 0.118."""


class Solid(NamedTuple):
    """A solid centred at the origin, [m].

    `points` (ns, 3) on its surface, about one edge apart; `triangles` (nt, 3): its closed surface, outward;
    `project`: p (m, 3), room -> nearest points on the surface (m, 3), where points nearer than room to a rim go to it.
    """

    points: FloatArray
    triangles: IntArray
    project: Callable[[FloatArray, float], FloatArray]


def shape_mesh(
    shape: str,
    *,
    element: str = "tet4",
    edge: float | None = None,
    size: ArrayLike | None = None,
    divisions: ArrayLike | None = None,
    radius: float | None = None,
    height: float | None = None,
    tube_radius: float | None = None,
) -> SoftMesh:
    """Mesh a simple shape centred at the origin.

    Parameters
    ----------
    shape : "box", "sphere", "cylinder" (axis z) or "torus" (axis z)
    element : "tet4", "tet10"; "hex8" for a box only. Mid-edge nodes of tet10 on the boundary lie on the true surface.
    edge : target edge length [m]; the count of elements grows as edge^-3. At most the radius, height and tube radius.
    size : (3,) edge lengths of a box [m]
    divisions : (3,) cells along each edge of a box, instead of `edge`
    radius : of a sphere or cylinder, or of the centre line of a torus [m]
    height : of a cylinder [m]
    tube_radius : of a torus [m]

    Returns
    -------
    SoftMesh. Boundary nodes of round shapes lie on the true surface, except (rarely) where that would flatten an
    element; flat faces cut off some of the volume (tet4: 6 % of a sphere with edge = radius / 3).

    Raises
    ------
    InputError
        for missing, superfluous or impossible numbers, an edge too long for the shape, or a round shape without
        pytetwild.

    Notes
    -----
    Round shapes are filled by fTetWild (Hu et al. 2020), which gives another mesh on every call, even on one thread.
    Within one process the same arguments give the same mesh; to have it again later, write it to a file, as
    `add.scene.materialise` does.
    """
    if shape not in SHAPES:
        raise InputError("unknown shape", found=repr(shape), expected=" or ".join(map(repr, SHAPES)))
    if element not in FAMILIES:
        raise InputError("unknown element family", found=repr(element), expected=" or ".join(map(repr, FAMILIES)))
    lengths = {"edge": edge, "radius": radius, "height": height, "tube_radius": tube_radius}
    _check_names(shape, {**lengths, "size": size, "divisions": divisions})
    given = {name: _length(shape, name, value) for name, value in lengths.items() if value is not None}
    if shape == "box":
        return _box(size, divisions, given.get("edge"), element)
    if element == HEX8.name:
        raise InputError(f"a {shape} cannot be made of hex8", expected="'tet4' or 'tet10'")
    mesh = _round_mesh(shape, **given)
    if element == TET10.name:
        return to_tet10(mesh, lambda p: _ROUND[shape](**given).project(p, 0.0))
    return SoftMesh(mesh.points.copy(), mesh.cells.copy(), mesh.family)


_NEEDED = {
    "box": ("size",),
    "sphere": ("radius", "edge"),
    "cylinder": ("radius", "height", "edge"),
    "torus": ("radius", "tube_radius", "edge"),
}
_OPTIONAL = {"box": ("edge", "divisions")}


def _check_names(shape: str, arguments: dict[str, Any]) -> None:
    needed = _NEEDED[shape]
    missing = [name for name in needed if arguments[name] is None]
    if missing:
        raise InputError(f"a {shape} needs {', '.join(missing)}")
    allowed = needed + _OPTIONAL.get(shape, ())
    extra = [name for name, value in arguments.items() if value is not None and name not in allowed]
    if extra:
        raise InputError(f"a {shape} takes no {', '.join(extra)}", expected=", ".join(allowed))


def _length(shape: str, name: str, value: float) -> float:
    if not isinstance(value, int | float | np.number) or not 0.0 < value < np.inf:
        raise InputError(f"impossible {name} of a {shape}", found=value, expected="a positive length [m]")
    return float(value)


def _box(size: Any, divisions: ArrayLike | None, edge: float | None, element: str) -> SoftMesh:
    if divisions is not None and edge is None:
        return box_mesh(size, divisions, FAMILIES[element])
    if divisions is None and edge is not None:
        return box_mesh(size, np.maximum(1, np.round(box_lengths(size) / edge)), FAMILIES[element])
    raise InputError("a box needs either divisions or edge")


# Kept for the life of the process: all experiments of one problem, and the state, markers and contact surface of each,
# must share one mesh, and the mesher would give another one every time. Callers get copies.
@functools.cache
def _round_mesh(shape: str, **lengths: float) -> SoftMesh:
    """Fill a round shape with tet4 and bring its boundary nodes to the true surface."""
    shortest = min(value for name, value in lengths.items() if name != "edge")
    if lengths["edge"] > shortest:
        raise InputError(
            f"the edge is too long for this {shape}", found=f"{lengths['edge']:g} m", expected=f"<= {shortest:g} m"
        )
    solid = _ROUND[shape](**lengths)
    mesh = _fill(shape, solid, lengths["edge"])
    boundary = np.unique(boundary_faces(mesh).faces)
    target = mesh.points.copy()
    target[boundary] = solid.project(target[boundary], 1.5 * ENVELOPE * lengths["edge"])
    return validate(SoftMesh(move_without_folding(mesh, target, FLAT), mesh.cells, TET4)).mesh


def _fill(shape: str, solid: Solid, edge: float) -> SoftMesh:
    """Fill a closed surface with tetrahedra by fTetWild."""
    try:
        import pytetwild
    except ImportError as error:
        raise InputError(
            f"meshing a {shape} needs the mesher pytetwild: pip install 'add-sim[mesh]', or give the mesh as a file"
        ) from error
    points = solid.points / edge  # some of the mesher's tolerances are absolute
    with _no_leftovers():
        filled, cells = pytetwild.tetrahedralize(
            points,
            solid.triangles.astype(np.int32),
            edge_length_abs=1.0,
            epsilon=ENVELOPE / float(np.linalg.norm(np.ptp(points, axis=0))),
            num_opt_iter=ROUNDS,
            num_threads=1,  # as fast at these sizes, and its threads would not survive a fork
            vtk_ordering=True,
        )
    return validate(SoftMesh(filled * edge, cells.astype(np.int64), TET4)).mesh


@contextlib.contextmanager
def _no_leftovers() -> Iterator[None]:
    """Remove the surface that fTetWild always writes to the working directory, unless such a file was there before."""
    dropped = Path("__tracked_surface.stl").absolute()
    before = dropped.exists()
    try:
        yield
    finally:
        if not before:
            with contextlib.suppress(OSError):
                dropped.unlink()


# --- round solids ---------------------------------------------------------------------------------------------------


def _sphere(radius: float, edge: float) -> Solid:
    """Sphere: an icosahedron, every face cut into n^2, pushed out to the radius."""
    golden = (1.0 + np.sqrt(5.0)) / 2.0
    seeds = [(0.0, a, b * golden) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    corners = np.array([np.roll(seed, k) for k in range(3) for seed in seeds])
    n = max(1, round(1.15 * radius / edge))  # the edges of the icosahedron are 1.05 radii, bulging 1.11
    weights = np.array([(n - i - j, i, j) for i in range(n + 1) for j in range(n + 1 - i)]) / n
    points = np.concatenate([weights @ corners[face] for face in ConvexHull(corners).simplices])
    points /= np.linalg.norm(points, axis=1)[:, None]
    points = points[np.sort(np.unique(np.round(points, 9) + 0.0, axis=0, return_index=True)[1])]  # faces share edges
    triangles = ConvexHull(points).simplices.astype(np.int64)
    inward = np.linalg.det(points[triangles]) < 0.0
    triangles[inward] = triangles[inward, ::-1]

    def project(p: FloatArray, room: float) -> FloatArray:
        return p * (radius / np.linalg.norm(p, axis=1))[:, None]

    return Solid(radius * points, triangles, project)


def _cylinder(radius: float, height: float, edge: float) -> Solid:
    """Cylinder round z: rings round the side, and fans on the caps."""
    half, n = height / 2.0, max(6, round(2.0 * np.pi * radius / edge))
    layers = max(1, round(height / edge))
    angle = 2.0 * np.pi * np.arange(n) / n
    rings = [
        np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(n, z)], axis=-1)
        for z in np.linspace(-half, half, layers + 1)
    ]
    points = np.concatenate([*rings, [(0.0, 0.0, -half), (0.0, 0.0, half)]])
    ring = np.arange(n)
    ends = np.stack([ring, np.roll(ring, -1)], axis=-1)
    bottom = np.column_stack([ends[:, ::-1], np.full(n, len(points) - 2)])
    top = np.column_stack([ends + layers * n, np.full(n, len(points) - 1)])
    side = _cut_quadrilaterals(np.arange((layers + 1) * n).reshape(layers + 1, n), wrap=(1,))
    sag = radius * (1.0 - np.cos(np.pi / n))  # how far a chord of the rim lies inside it

    def project(p: FloatArray, room: float) -> FloatArray:
        """Onto the nearer of side and caps; onto the rim where both are near."""
        r = np.linalg.norm(p[:, :2], axis=1)
        to_side, to_cap = np.abs(radius - r), np.abs(half - np.abs(p[:, 2]))
        on_cap = to_cap <= room + 1e-9 * half
        on_side = to_side <= room + 2.0 * sag  # chords may be longer than an edge
        neither = ~on_cap & ~on_side
        on_cap |= neither & (to_cap < to_side)
        on_side |= neither & (to_side <= to_cap)
        moved = p.copy()
        moved[on_side, :2] *= (radius / r[on_side])[:, None]
        moved[on_cap, 2] = np.copysign(half, p[on_cap, 2])
        return moved

    return Solid(points, np.concatenate([side, bottom, top]), project)


def _torus(radius: float, tube_radius: float, edge: float) -> Solid:
    """Torus round z: rings round the tube."""
    if tube_radius >= radius:
        raise InputError(
            "the tube of a torus must be thinner than its radius", found=tube_radius, expected=f"< {radius}"
        )
    n, m = (max(6, round(2.0 * np.pi * length / edge)) for length in (radius, tube_radius))
    u, v = np.meshgrid(2.0 * np.pi * np.arange(n) / n, 2.0 * np.pi * np.arange(m) / m, indexing="ij")
    away = radius + tube_radius * np.cos(v)
    points = np.stack([away * np.cos(u), away * np.sin(u), tube_radius * np.sin(v)], axis=-1).reshape(-1, 3)

    def project(p: FloatArray, room: float) -> FloatArray:
        flat = p * (1.0, 1.0, 0.0)
        line = flat * (radius / np.linalg.norm(flat, axis=1))[:, None]
        out = p - line
        return line + out * (tube_radius / np.linalg.norm(out, axis=1))[:, None]

    return Solid(points, _cut_quadrilaterals(np.arange(n * m).reshape(n, m).T, wrap=(0, 1)), project)


_ROUND: dict[str, Callable[..., Solid]] = {"sphere": _sphere, "cylinder": _cylinder, "torus": _torus}


def _cut_quadrilaterals(nodes: IntArray, wrap: tuple[int, ...]) -> IntArray:
    """Triangles of a grid of points (k, n) that closes on itself along the axes `wrap`, (nt, 3).

    Their normal is that of (along the second axis) x (along the first axis).
    """
    nodes = np.pad(nodes, [(0, int(axis in wrap)) for axis in (0, 1)], mode="wrap")
    a, b, c, d = nodes[:-1, :-1], nodes[:-1, 1:], nodes[1:, 1:], nodes[1:, :-1]
    return np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3)
