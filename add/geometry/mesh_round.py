"""Structured meshes of simple shapes: boxes, balls, cylinders and tori, the same in every process and on every machine.

A ball is an icosahedron cut into 20 tetrahedra round its centre, each with a regular lattice of nodes that is bent onto
the round shape. A cylinder and a torus are a disc of rings that is swept.
"""

from collections.abc import Callable
from itertools import combinations, permutations
from typing import Any

import numpy as np

from add.errors import InputError
from add.geometry import FAMILIES, HEX8, TET10, SoftMesh, box_mesh, to_tet10
from add.geometry.elements import TET4
from add.geometry.shapes import box_size, length
from add.typing import FloatArray, IntArray

#: Decimals kept of coordinates divided by the size, so that another libm's last bit changes no mesh.
_DIGITS = 12
#: Edge of a ball of n layers, times n / radius [-]: radially 1, along the layers 1 to 1.3; with the diagonals of the
#: lattice the mean of all is 1.04 (n = 1), 1.20 (2), 1.27 (4), 1.29 (8), as measured.
_BALL_EDGE = 1.1


def ball_mesh(radius: float, edge: float) -> SoftMesh:
    """Fill a ball round the origin with 20 n^3 linear tetrahedra in n layers.

    Parameters
    ----------
    radius : [m]
    edge : length of the elements' edges, as nearly as whole layers allow [m]

    Returns
    -------
    SoftMesh. Its nodes are symmetric about the three coordinate planes; those of layer k lie on the sphere of radius
    k radius / n.
    """
    n = max(1, round(_BALL_EDGE * radius / edge))
    corners, faces = _icosahedron()
    arc = np.arccos(1.0 / np.sqrt(5.0))  # between neighbouring corners
    lattice = [(i, j, k) for i in range(n + 1) for j in range(i + 1) for k in range(j + 1)]
    piece = _lattice_cells(lattice)
    number: dict[tuple[tuple[int, int], ...], int] = {}
    points: list[FloatArray] = []
    cells = []
    for face in faces:
        nodes = []
        for i, j, k in lattice:
            # i is the layer; i - j, j - k and k are shares of the face's corners. A node is known by its shares above
            # zero, which are the same in every piece that has it.
            shares = tuple((corner, part) for corner, part in zip(face, (i - j, j - k, k), strict=True) if part)
            if shares not in number:
                number[shares] = len(points)
                # Along an edge of the icosahedron sines divide the arc evenly; inside a face they nearly do.
                away = sum((np.sin(arc * part / i) * corners[corner] for corner, part in shares), np.zeros(3))
                points.append(away * (i / n / max(float(np.linalg.norm(away)), 1e-9)))  # the centre is 0 / n
            nodes.append(number[shares])
        cells.append(np.array(nodes)[piece])
    return _oriented(radius, np.array(points), np.concatenate(cells))


def cylinder_mesh(radius: float, height: float, edge: float) -> SoftMesh:
    """Fill a cylinder round z, centred at the origin, with linear tetrahedra.

    Parameters
    ----------
    radius, height : [m]
    edge : length of the elements' edges along z and in the plane, as nearly as whole rings and layers allow [m]
    """
    disc, triangles = _disc(max(1, round(radius / edge)))
    n_layers = max(1, round(height / edge))
    z = height * (np.arange(n_layers + 1) / n_layers - 0.5) / radius
    points = np.concatenate([np.column_stack([disc, np.full(len(disc), level)]) for level in z])
    return _oriented(radius, points, _swept(triangles, len(disc), n_layers))


def torus_mesh(radius: float, tube_radius: float, edge: float) -> SoftMesh:
    """Fill a torus round z, centred at the origin, with linear tetrahedra.

    Parameters
    ----------
    radius : of the centre line [m]
    tube_radius : less than `radius` [m]
    edge : length of the elements' edges, as nearly as whole rings and sections allow; along the tube that is its length
        on the centre line, on the inner side it is shorter by 1 - tube_radius / radius [m]
    """
    if tube_radius >= radius:
        raise InputError(
            "the tube of a torus must be thinner than its radius", found=tube_radius, expected=f"< {radius}"
        )
    disc, triangles = _disc(max(1, round(tube_radius / edge)))
    n_sections = max(6, round(2.0 * np.pi * radius / edge))
    out, up = 1.0 + disc[:, 0] * (tube_radius / radius), disc[:, 1] * (tube_radius / radius)
    angle = 2.0 * np.pi * np.arange(n_sections) / n_sections
    points = np.concatenate([np.column_stack([out * np.cos(a), out * np.sin(a), up]) for a in angle])
    cells = _swept(triangles, len(disc), n_sections) % len(points)
    return _oriented(radius, points, cells)


def on_sphere(points: FloatArray, radius: float, **_: float) -> FloatArray:
    """Nearest points of a sphere round the origin, (n, 3) [m]."""
    moved: FloatArray = points * (radius / np.linalg.norm(points, axis=1))[:, None]
    return moved


def on_side(points: FloatArray, radius: float, edge: float, **_: float) -> FloatArray:
    """Move the middles of `cylinder_mesh`'s edges from chords of the side to the side, (n, 3) [m]; caps are flat."""
    n_rings = max(1, round(radius / edge))
    r = np.linalg.norm(points[:, :2], axis=1)
    # Chords of the rim, and diagonals above them, pass the axis at this distance; edges inside a cap are nearer to it.
    chord = r >= radius * np.cos(np.pi / (6 * n_rings)) * (1.0 - 1e-6)
    moved = points.copy()
    moved[chord, :2] *= (radius / r[chord])[:, None]
    return moved


def on_torus(points: FloatArray, radius: float, tube_radius: float, **_: float) -> FloatArray:
    """Nearest points of a torus round z, (n, 3) [m]."""
    flat = points * (1.0, 1.0, 0.0)
    line = flat * (radius / np.linalg.norm(flat, axis=1))[:, None]
    moved: FloatArray = line + on_sphere(points - line, tube_radius)
    return moved


# --- pieces ----------------------------------------------------------------------------------------------------------


def _icosahedron() -> tuple[FloatArray, list[tuple[int, int, int]]]:
    """Corners (12, 3) on the unit sphere, and 20 faces, each with ascending corners."""
    golden = (1.0 + np.sqrt(5.0)) / 2.0
    seeds = [(0.0, a, b * golden) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    corners = np.array([np.roll(seed, k) for k in range(3) for seed in seeds])  # neighbours are 2 apart
    near = np.linalg.norm(corners[:, None] - corners, axis=2) < 2.5
    faces = [face for face in combinations(range(12), 3) if all(near[a, b] for a, b in combinations(face, 2))]
    unit: FloatArray = corners / np.sqrt(1.0 + golden**2)
    return unit, faces


def _lattice_cells(lattice: list[tuple[int, int, int]]) -> IntArray:
    """Tetrahedra of the lattice points i >= j >= k, (nt, 4): of each unit cube those of Kuhn's six that lie in it."""
    place = {point: slot for slot, point in enumerate(lattice)}
    cells = []
    for start in lattice:
        for axes in permutations(range(3)):
            i, j, k = start
            path = [start]
            for axis in axes:
                i, j, k = i + (axis == 0), j + (axis == 1), k + (axis == 2)
                path.append((i, j, k))
            if all(point in place for point in path):
                cells.append([place[point] for point in path])
    return np.array(cells)


def _disc(n: int) -> tuple[FloatArray, IntArray]:
    """Unit disc of n rings: points (1 + 3 n (n + 1), 2), ring k has 6 k, and 6 n^2 triangles (nt, 3)."""
    ring = np.concatenate([np.zeros(1, dtype=int), *(np.full(6 * k, k) for k in range(1, n + 1))])
    step = np.concatenate([np.zeros(1, dtype=int), *(np.arange(6 * k) for k in range(1, n + 1))])
    angle = np.pi / 3.0 * step / np.maximum(ring, 1)
    points = np.stack([np.cos(angle), np.sin(angle)], axis=-1) * (ring / n)[:, None]

    def node(k: int, s: int) -> int:
        return 1 + 3 * k * (k - 1) + s % (6 * k) if k else 0

    triangles = []
    for k in range(1, n + 1):
        for sector in range(6):
            for j in range(k):
                outer, inner = sector * k + j, sector * (k - 1) + j
                triangles.append([node(k - 1, inner), node(k, outer), node(k, outer + 1)])
                if j < k - 1:
                    triangles.append([node(k - 1, inner), node(k, outer + 1), node(k - 1, inner + 1)])
    return points, np.array(triangles)


def _swept(triangles: IntArray, n_points: int, n_layers: int) -> IntArray:
    """Three tetrahedra for each prism over a triangle, (3 nt n_layers, 4); layer k has the nodes from k n_points on.

    The diagonal of a prism's side runs up from its node of lower number, so that neighbours share it.
    """
    a, b, c = np.sort(triangles, axis=1).T
    top = n_points
    prism = np.stack([[a, b, c, c + top], [a, b, b + top, c + top], [a, a + top, b + top, c + top]])
    layer = prism.transpose(2, 0, 1).reshape(-1, 4)
    return np.concatenate([layer + k * n_points for k in range(n_layers)])


def _oriented(size: float, points: FloatArray, cells: IntArray) -> SoftMesh:
    """Scale nodes given in units of `size` [m], and turn every tetrahedron the right way round."""
    points = np.round(points, _DIGITS) + 0.0  # no negative zeros
    corners = points[cells]
    inward = np.linalg.det(corners[:, 1:] - corners[:, :1]) < 0.0
    cells[inward] = cells[inward][:, TET4.flip]
    return SoftMesh(points * size, cells, TET4)


def shape_mesh(
    shape: str,
    *,
    element: str = "tet4",
    edge: float | None = None,
    size: Any = None,
    divisions: Any = None,
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
        It divides the shape evenly (radially, along the axis, around); the diagonals between are longer.
    size : (3,) edge lengths of a box [m]
    divisions : (3,) cells along each edge of a box, instead of `edge`
    radius : of a sphere or cylinder, or of the centre line of a torus [m]
    height : of a cylinder [m]
    tube_radius : of a torus [m]

    Returns
    -------
    SoftMesh, the same in every process. Boundary nodes of round shapes lie on the true surface; flat faces cut off some
    of the volume (tet4: 6 % of a sphere with edge = radius / 3).

    Raises
    ------
    InputError
        for missing, superfluous or impossible numbers, or an edge too long for the shape.

    Notes
    -----
    Round shapes were once filled by fTetWild. It draws its random numbers from the system, without a seed that could be
    set, so that every process computed with another mesh.
    """
    if shape not in _LENGTHS:
        raise InputError("unknown shape", found=repr(shape), expected=" or ".join(map(repr, _LENGTHS)))
    if element not in FAMILIES:
        raise InputError("unknown element family", found=repr(element), expected=" or ".join(map(repr, FAMILIES)))
    lengths = {"edge": edge, "radius": radius, "height": height, "tube_radius": tube_radius}
    given = {name for name, value in {**lengths, "size": size, "divisions": divisions}.items() if value is not None}
    needed, optional = _LENGTHS[shape], ("edge", "divisions") if shape == "box" else ()
    if missing := [name for name in needed if name not in given]:
        raise InputError(f"a {shape} needs {', '.join(missing)}")
    if extra := given.difference(needed, optional):
        raise InputError(f"a {shape} takes no {', '.join(sorted(extra))}", expected=", ".join(needed + optional))
    if shape == "box":
        if len(given.intersection(optional)) != 1:
            raise InputError("a box needs either divisions or edge")
        if edge is not None:
            divisions = np.maximum(1, np.round(box_size(size) / length(shape, "edge", edge)))
        return box_mesh(size, divisions, FAMILIES[element])
    if element == HEX8.name:
        raise InputError(f"a {shape} cannot be made of hex8", expected="'tet4' or 'tet10'")
    sizes = {name: length(shape, name, lengths[name]) for name in needed}
    shortest = min(value for name, value in sizes.items() if name != "edge")
    if sizes["edge"] > shortest:
        raise InputError(f"the edge is too long for this {shape}", found=f"{edge:g} m", expected=f"<= {shortest:g} m")
    fill, onto = _ROUND[shape]
    mesh = fill(**sizes)
    return mesh if element != TET10.name else to_tet10(mesh, lambda middles: onto(middles, **sizes))


#: What a shape needs.
_LENGTHS = {
    "box": ("size",),
    "sphere": ("radius", "edge"),
    "cylinder": ("radius", "height", "edge"),
    "torus": ("radius", "tube_radius", "edge"),
}
#: What fills a round shape, and what brings the middles of boundary edges to its surface.
_ROUND: dict[str, tuple[Callable[..., SoftMesh], Callable[..., FloatArray]]] = {
    "sphere": (ball_mesh, on_sphere),
    "cylinder": (cylinder_mesh, on_side),
    "torus": (torus_mesh, on_torus),
}
