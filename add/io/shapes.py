"""Meshes of simple shapes: structured boxes, and spheres, cylinders and tori of unstructured tetrahedra."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from add.errors import InputError
from add.fem import FAMILIES, HEX8, TET10, SoftMesh, box_mesh, to_tet10
from add.fem.build import box_lengths
from add.io.tetrahedra import fill, sweep
from add.typing import BoolArray, FloatArray

SHAPES = ("box", "sphere", "cylinder", "torus")


class Solid(NamedTuple):
    """A solid centred at the origin, [m].

    `points` (ns, 3): on its surface, about one edge apart; `depth`: p (m, 3) -> how far inside (m,); `project`:
    p (m, 3) -> nearest points on the surface; `movable` (ns,): which points may slide on it (not those on an edge).
    """

    points: FloatArray
    depth: Callable[[FloatArray], FloatArray]
    project: Callable[[FloatArray], FloatArray]
    movable: BoolArray


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
    SoftMesh, the same for the same arguments. Boundary nodes of round shapes lie on the true surface; flat faces cut
    off some of the volume (tet4: 5 % of a sphere with edge = radius / 3).

    Raises
    ------
    InputError
        for missing, superfluous or impossible numbers, or an edge too long for the shape.
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
    if shape == "sphere":
        mesh, project = _filled(sphere(**given), given["edge"])
    elif shape == "cylinder":
        mesh, project = _filled(cylinder(**given), given["edge"])
    else:
        mesh, project = torus(**given)
    return to_tet10(mesh, project) if element == TET10.name else mesh


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


def _filled(solid: Solid, edge: float) -> tuple[SoftMesh, Callable[[FloatArray], FloatArray]]:
    return fill(solid.points, solid.depth, edge, solid.project, solid.movable), solid.project


# --- round solids ---------------------------------------------------------------------------------------------------


def sphere(radius: float, edge: float) -> Solid:
    """Sphere; its points are those of an icosahedron, every face cut into n^2, pushed out to the radius."""
    golden = (1.0 + np.sqrt(5.0)) / 2.0
    seeds = [(0.0, a, b * golden) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    corners = np.array([np.roll(seed, k) for k in range(3) for seed in seeds])
    near = np.isclose(np.linalg.norm(corners[:, None] - corners[None], axis=2), 2.0)
    faces = [
        (i, j, k) for i in range(12) for j in range(i) for k in range(j) if near[i, j] and near[j, k] and near[i, k]
    ]
    n = max(1, round(1.15 * radius / edge))  # the edges of the icosahedron are 1.05 radii, bulging 1.11
    weights = np.array([(n - i - j, i, j) for i in range(n + 1) for j in range(n + 1 - i)]) / n
    points = np.concatenate([weights @ corners[list(face)] for face in faces])
    points = _distinct(points / np.linalg.norm(points, axis=1)[:, None])

    def depth(p: FloatArray) -> FloatArray:
        return radius - np.linalg.norm(p, axis=1)

    def project(p: FloatArray) -> FloatArray:
        return p * (radius / np.linalg.norm(p, axis=1))[:, None]

    return Solid(radius * points, depth, project, np.ones(len(points), dtype=bool))


def cylinder(radius: float, height: float, edge: float) -> Solid:
    """Cylinder round z; its points are rings round the side and on the caps."""
    half, n = height / 2.0, max(6, round(2.0 * np.pi * radius / edge))
    layers, rings = max(1, round(height / edge)), max(1, round(radius / edge))
    side = [_ring(radius, -half + height * k / layers, n, (k % 2) / 2.0) for k in range(layers + 1)]
    caps = [
        _ring(radius * k / rings, z, max(1, round(n * k / rings)), ((rings - k) % 2) / 2.0)
        for k in range(rings)
        for z in (-half, half)
    ]
    sag = 1.5 * radius * (1.0 - np.cos(np.pi / n))

    def depth(p: FloatArray) -> FloatArray:
        return np.minimum(radius - np.linalg.norm(p[:, :2], axis=1), half - np.abs(p[:, 2]))

    def project(p: FloatArray) -> FloatArray:
        """Onto the nearer of side and caps; onto the rim where a chord between two points of the rim may be."""
        r = np.linalg.norm(p[:, :2], axis=1)
        to_side, to_cap = np.abs(radius - r), np.abs(half - np.abs(p[:, 2]))
        on_side = (to_side <= to_cap) | (to_side < sag)
        moved = p.copy()
        moved[on_side, :2] *= (radius / r[on_side])[:, None]
        on_cap = (to_cap < to_side) | (to_cap < 1e-9 * half)
        moved[on_cap, 2] = np.copysign(half, p[on_cap, 2])
        return moved

    points = np.concatenate(side + caps)
    rim = np.isclose(np.linalg.norm(points[:, :2], axis=1), radius) & np.isclose(np.abs(points[:, 2]), half)
    return Solid(points, depth, project, ~rim)


def torus(radius: float, tube_radius: float, edge: float) -> tuple[SoftMesh, Callable[[FloatArray], FloatArray]]:
    """Torus round z: a disc of rings, swept; with the map to the nearest points of the surface."""
    if tube_radius >= radius:
        raise InputError(
            "the tube of a torus must be thinner than its radius", found=tube_radius, expected=f"< {radius}"
        )
    around, rings = max(6, round(2.0 * np.pi * tube_radius / edge)), max(1, round(tube_radius / edge))
    disc = [
        _ring(tube_radius * k / rings, 0.0, max(1, round(around * k / rings)), ((rings - k) % 2) / 2.0)
        for k in range(rings + 1)
    ]
    section = np.concatenate(disc)[:, :2] + (radius, 0.0)

    def project(p: FloatArray) -> FloatArray:
        flat = p * (1.0, 1.0, 0.0)
        line = flat * (radius / np.linalg.norm(flat, axis=1))[:, None]
        out = p - line
        return line + out * (tube_radius / np.linalg.norm(out, axis=1))[:, None]

    return sweep(section, max(6, round(2.0 * np.pi * radius / edge)), edge, project), project


def _ring(r: float, z: float, n: int, shift: float) -> FloatArray:
    """`n` points round z at radius r and height z, turned by `shift` of a step."""
    angle = 2.0 * np.pi * (np.arange(n) + shift) / n
    return np.stack([r * np.cos(angle), r * np.sin(angle), np.full(n, z)], axis=-1)


def _distinct(points: FloatArray) -> FloatArray:
    """Points (of size about 1) without repetitions."""
    return points[np.sort(np.unique(np.round(points, 9) + 0.0, axis=0, return_index=True)[1])]
