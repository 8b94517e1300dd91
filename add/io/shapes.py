"""Meshes of simple shapes: boxes by hand, round ones by fTetWild (pytetwild, an optional dependency)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from add.errors import InputError
from add.fem import FAMILIES, TET4, SoftMesh, boundary_faces, box_mesh, move_without_folding, to_tet10, validate
from add.fem.elements import FloatArray, IntArray

SHAPES = ("box", "sphere", "cylinder", "torus")
ENVELOPE = 1e-3
"""How far fTetWild may leave the given surface, over the diagonal of its bounding box [-]."""


class Solid(NamedTuple):
    """A closed surface and the way back to it: triangles over points, and p (m, 3) -> nearest points (m, 3) [m]."""

    points: FloatArray
    triangles: IntArray
    project: Callable[[FloatArray], FloatArray]


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
    edge : target edge length [m]; the count of elements grows as edge^-3
    size : (3,) edge lengths of a box [m]
    divisions : (3,) cells along each edge of a box, instead of `edge`
    radius : of a sphere or cylinder, or of the centre line of a torus [m]
    height : of a cylinder [m]
    tube_radius : of a torus [m]

    Returns
    -------
    SoftMesh, the same for the same arguments (and version of pytetwild). Its volume is less than that of a round shape,
    by about (edge / radius)^2 / 4 with tet4.

    Raises
    ------
    InputError
        for missing, superfluous or impossible numbers, or without pytetwild: `pip install add[mesh]`.
    """
    given = {
        "edge": edge,
        "size": size,
        "divisions": divisions,
        "radius": radius,
        "height": height,
        "tube_radius": tube_radius,
    }
    needs = {
        "box": ["size"],
        "sphere": ["radius", "edge"],
        "cylinder": ["radius", "height", "edge"],
        "torus": ["radius", "tube_radius", "edge"],
    }
    if shape not in needs:
        raise InputError("unknown shape", found=repr(shape), expected=" or ".join(map(repr, SHAPES)))
    if element not in FAMILIES:
        raise InputError("unknown element family", found=repr(element), expected=" or ".join(map(repr, FAMILIES)))
    missing = [name for name in needs[shape] if given[name] is None]
    if missing:
        raise InputError(f"a {shape} needs {', '.join(missing)}")
    allowed = {*needs[shape], *(("edge", "divisions") if shape == "box" else ())}
    extra = [name for name, value in given.items() if value is not None and name not in allowed]
    if extra:
        raise InputError(f"a {shape} takes no {', '.join(extra)}", expected=", ".join(sorted(allowed)))
    for name in ("edge", "radius", "height", "tube_radius"):
        value = given[name]
        if value is not None and not (np.ndim(value) == 0 and np.isfinite(value) and value > 0):
            raise InputError(f"impossible {name} of a {shape}", found=value, expected="a positive length [m]")
    if shape == "box":
        return _box(size, divisions, edge, element)
    if element == "hex8":
        raise InputError(f"a {shape} cannot be made of hex8", expected="'tet4' or 'tet10'")
    if shape == "sphere":
        return fill(sphere_surface(radius, edge), edge, element)
    if shape == "cylinder":
        return fill(cylinder_surface(radius, height, edge), edge, element)
    if tube_radius >= radius:
        raise InputError("the tube of a torus must be thinner than its radius", found=tube_radius, expected=f"< {radius}")
    return fill(torus_surface(radius, tube_radius, edge), edge, element)


def _box(size: ArrayLike, divisions: ArrayLike | None, edge: float | None, element: str) -> SoftMesh:
    if (divisions is None) == (edge is None):
        raise InputError("a box needs either divisions or edge")
    if divisions is None:
        divisions = np.maximum(1, np.round(np.asarray(size, dtype=np.float64) / edge))
    return box_mesh(size, divisions, FAMILIES[element])


# --- closed surfaces ------------------------------------------------------------------------------------------------


def sphere_surface(radius: float, edge: float) -> Solid:
    """Geodesic sphere: every face of an icosahedron cut into n^2, pushed out to the radius [m]."""
    golden = (1.0 + np.sqrt(5.0)) / 2.0
    seeds = [(0.0, a, b * golden) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    corners = np.array([np.roll(seed, k) for k in range(3) for seed in seeds])
    near = np.isclose(np.linalg.norm(corners[:, None] - corners[None], axis=2), 2.0)
    faces = [(i, j, k) for i in range(12) for j in range(i) for k in range(j) if near[i, j] and near[j, k] and near[i, k]]
    n = max(1, round(1.1 * radius / edge))  # the edge of an icosahedron is 1.05 radii
    grid = {(i, j): m for m, (i, j) in enumerate((i, j) for i in range(n + 1) for j in range(n + 1 - i))}
    weights = np.array([(n - i - j, i, j) for i, j in grid]) / n
    up = [(grid[i, j], grid[i + 1, j], grid[i, j + 1]) for i, j in grid if i + j < n]
    down = [(grid[i + 1, j], grid[i + 1, j + 1], grid[i, j + 1]) for i, j in grid if i + j < n - 1]
    local = np.array(up + down)
    points = np.concatenate([weights @ corners[list(face)] for face in faces])
    triangles = np.concatenate([local + m * len(weights) for m in range(len(faces))])
    points = radius * points / np.linalg.norm(points, axis=1)[:, None]

    def project(p: FloatArray) -> FloatArray:
        return p * (radius / np.linalg.norm(p, axis=1))[:, None]

    return _welded(points, triangles, project)


def cylinder_surface(radius: float, height: float, edge: float) -> Solid:
    """Cylinder round z: rings on the side and on the caps [m]."""
    n = max(8, round(2.0 * np.pi * radius / edge))
    layers, rings = max(1, round(height / edge)), max(1, round(radius / edge))
    half = height / 2.0
    side = [(radius, half - height * k / layers) for k in range(layers + 1)]
    bottom = [(radius * k / rings, -half) for k in range(rings - 1, -1, -1)]
    profile = np.array([(r, -z) for r, z in reversed(bottom)] + side + bottom)
    sag = 1.5 * radius * (1.0 - np.cos(np.pi / n))

    def project(p: FloatArray) -> FloatArray:
        r = np.linalg.norm(p[:, :2], axis=1)
        to_side, to_cap = np.abs(radius - r), np.abs(half - np.abs(p[:, 2]))
        rim = np.maximum(sag, 2.0 * ENVELOPE * np.hypot(2.0 * radius, height))
        on_side = (to_side <= to_cap) | (to_side < rim)
        on_cap = (to_cap < to_side) | (to_cap < rim / 2.0)
        moved = p.copy()
        moved[on_side, :2] *= (radius / r[on_side])[:, None]
        moved[on_cap, 2] = np.copysign(half, p[on_cap, 2])
        return moved

    return _revolved(profile, n, project)


def torus_surface(radius: float, tube_radius: float, edge: float) -> Solid:
    """Torus round z: `radius` of the centre line, `tube_radius` round it [m]."""
    n = max(6, round(2.0 * np.pi * radius / edge))
    angle = 2.0 * np.pi * np.arange(max(6, round(2.0 * np.pi * tube_radius / edge))) / max(
        6, round(2.0 * np.pi * tube_radius / edge)
    )
    profile = np.stack([radius + tube_radius * np.cos(angle), tube_radius * np.sin(angle)], axis=-1)

    def project(p: FloatArray) -> FloatArray:
        flat = p * (1.0, 1.0, 0.0)
        centre = flat * (radius / np.linalg.norm(flat, axis=1))[:, None]
        out = p - centre
        return centre + out * (tube_radius / np.linalg.norm(out, axis=1))[:, None]

    return _revolved(np.concatenate([profile, profile[:1]]), n, project)


def _revolved(profile: FloatArray, n: int, project: Callable[[FloatArray], FloatArray]) -> Solid:
    """Turn a profile (m, 2) of (r, z) round z in n steps; every other row is turned by half a step."""
    rows = np.arange(len(profile))
    closed = np.array_equal(profile[0], profile[-1])
    shift = np.where(closed & (rows == len(profile) - 1), 0, rows % 2) / 2.0
    angle = 2.0 * np.pi * (np.arange(n) + shift[:, None]) / n
    r, z = profile[:, 0, None], profile[:, 1, None]
    points = np.stack([r * np.cos(angle), r * np.sin(angle), np.broadcast_to(z, angle.shape)], axis=-1)
    triangles = []
    for row in rows[:-1]:
        a, b = row * n + np.arange(n), (row + 1) * n + np.arange(n)
        a1, b1 = np.roll(a, -1), np.roll(b, -1)
        if shift[row] <= shift[row + 1]:
            triangles += [np.stack([a, b, a1], axis=-1), np.stack([a1, b, b1], axis=-1)]
        else:
            triangles += [np.stack([a, b, b1], axis=-1), np.stack([a, b1, a1], axis=-1)]
    return _welded(points.reshape(-1, 3), np.concatenate(triangles), project)


def _welded(points: FloatArray, triangles: IntArray, project: Callable[[FloatArray], FloatArray]) -> Solid:
    """Join coincident points and drop the triangles that collapse."""
    key = np.round(points / np.abs(points).max(), 9) + 0.0
    _, first, slot = np.unique(key, axis=0, return_index=True, return_inverse=True)
    triangles = slot.ravel()[triangles]
    distinct = np.array([len({*t}) == 3 for t in triangles.tolist()])
    return Solid(points[first], triangles[distinct], project)


# --- filling --------------------------------------------------------------------------------------------------------


def fill(solid: Solid, edge: float, element: str = "tet4") -> SoftMesh:
    """Fill a closed surface with tetrahedra by fTetWild, and put the boundary nodes back onto it.

    Boundary nodes of elements that this would make worse than a hundredth of their edge cubed stay where the mesher
    put them (within `ENVELOPE`). `edge` is the target edge length [m].
    """
    try:
        import pytetwild
    except ImportError as error:
        raise InputError(
            "round shapes are meshed by pytetwild, which is not installed: pip install add[mesh]"
        ) from error
    scale = float(np.ptp(solid.points, axis=0).max())  # fTetWild is not used to small numbers
    points, cells = pytetwild.tetrahedralize(
        np.ascontiguousarray(solid.points / scale),
        np.ascontiguousarray(solid.triangles, dtype=np.int32),
        edge_length_abs=edge / scale,
        epsilon=ENVELOPE,
        num_threads=1,
        quiet=True,
    )
    if len(cells) == 0:
        raise InputError("the mesher returned nothing; try a smaller edge", found=f"edge {edge} m")
    mesh = validate(SoftMesh(points * scale, cells, TET4)).mesh
    boundary = np.unique(boundary_faces(mesh).faces)
    target = mesh.points.copy()
    target[boundary] = solid.project(target[boundary])
    mesh = SoftMesh(move_without_folding(mesh, target, least=0.01), mesh.cells, TET4)
    return to_tet10(mesh, solid.project) if element == "tet10" else mesh
