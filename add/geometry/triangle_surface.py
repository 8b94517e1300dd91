"""Closed surfaces of triangles, small repairs of them, and those that points are tested against by a tree of boxes."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from add.errors import InputError
from add.kernels.mesh_distance import HEAD, box_tree, layout, mesh_branch, mesh_feature
from add.typing import FloatArray, IntArray


class TriangleSurface(NamedTuple):
    """Triangles of a surface: `vertices` (nv, 3) [m], `triangles` (nt, 3) counter-clockwise seen from outside."""

    vertices: FloatArray
    triangles: IntArray


def as_surface(vertices: ArrayLike, triangles: ArrayLike) -> TriangleSurface:
    """Check shapes, numbers and indices; the surface may be open."""
    points = np.asarray(vertices, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
        raise InputError(
            "bad vertices of a surface", found=f"shape {points.shape}", expected="(nv, 3) finite coordinates [m]"
        )
    given = np.asarray(triangles)
    if given.ndim != 2 or given.shape[1] != 3 or len(given) == 0 or given.dtype.kind not in "iu":
        raise InputError(
            "bad triangles of a surface",
            found=f"shape {given.shape} of {given.dtype}",
            expected="(nt, 3) indices of vertices, nt >= 1",
        )
    corners = given.astype(np.int64)
    if corners.min() < 0 or corners.max() >= len(points):
        bad = int(np.flatnonzero(((corners < 0) | (corners >= len(points))).any(axis=1))[0])
        raise InputError(
            "a triangle has a vertex that does not exist",
            place=f"triangle {bad}",
            found=corners[bad].tolist(),
            expected=f"indices from 0 to {len(points) - 1}",
        )
    return TriangleSurface(points, corners)


def check_surface(vertices: ArrayLike, triangles: ArrayLike) -> TriangleSurface:
    """Check that triangles bound a volume: every edge is run through as often one way as the other.

    Parameters
    ----------
    vertices : (nv, 3) [m]. Corners that coincide must be one vertex, as `add.io.surfaces.read_surface` makes them.
    triangles : (nt, 3) indices of vertices

    Raises
    ------
    InputError
        saying how many edges are open, or wrongly wound, and where the first one is.

    Notes
    -----
    Four triangles at one edge (two parts that touch along it) are a boundary as well, and pass. That the surface does
    not cut itself is not checked.
    """
    surface = as_surface(vertices, triangles)
    points, corners = surface
    corners = corners[(corners != np.roll(corners, 1, axis=1)).all(axis=1)]  # a triangle of two corners bounds nothing
    directed, edges, which, uses = _sides(corners)
    balance = np.bincount(which, np.sign(directed[:, 1] - directed[:, 0]), minlength=len(edges))

    def first(bad: np.ndarray) -> str:
        ends = edges[np.flatnonzero(bad)[0]]
        where = " to ".join("(" + ", ".join(f"{x:.6g}" for x in points[end]) + ")" for end in ends)
        return f"{int(bad.sum())} of {len(edges)} edges; the first one from vertex {ends[0]} to {ends[1]}, {where} m"

    is_open = uses % 2 == 1
    if is_open.any():
        raise InputError(
            "the surface is not closed",
            found=first(is_open),
            expected="every edge between two triangles (merge coinciding vertices, fill the holes)",
        )
    if (balance != 0).any():
        raise InputError(
            "triangles of the surface are wound against their neighbours",
            found=first(balance != 0),
            expected="every triangle counter-clockwise seen from outside",
        )
    return surface


def box_surface(size: ArrayLike) -> TriangleSurface:
    """Return corners and triangles of a box centred at the origin, with edge lengths ``size`` (3,) [m]."""
    corners = np.array([[x, y, z] for z in (-0.5, 0.5) for y in (-0.5, 0.5) for x in (-0.5, 0.5)])
    sides = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]]
    triangles = [[side[0], side[k], side[k + 1]] for side in sides for k in (1, 2)]
    return TriangleSurface(corners * np.asarray(size, dtype=float), np.array(triangles, dtype=np.int64))


#: Sides of the prism that stands for a cylinder: between its edges it is thinner by 0.9 %.
_SIDES = 24


def cylinder_surface(radius: float, half_length: float) -> TriangleSurface:
    """Return the prism of 24 sides whose edges lie on a cylinder along z, centred at the origin [m]."""
    angles = 2.0 * np.pi * np.arange(_SIDES) / _SIDES
    rim = np.column_stack([radius * np.cos(angles), radius * np.sin(angles), np.full(_SIDES, half_length)])
    points = np.concatenate([rim * [1.0, 1.0, -1.0], rim, [[0.0, 0.0, -half_length], [0.0, 0.0, half_length]]])
    k, after, low, high = np.arange(_SIDES), np.roll(np.arange(_SIDES), -1), 2 * _SIDES, 2 * _SIDES + 1
    sides = [
        np.column_stack([k, after, after + _SIDES]),
        np.column_stack([k, after + _SIDES, k + _SIDES]),
        np.column_stack([np.full(_SIDES, low), after, k]),
        np.column_stack([np.full(_SIDES, high), k + _SIDES, after + _SIDES]),
    ]
    return TriangleSurface(points, np.concatenate(sides).astype(np.int64))


@final
@dataclass(frozen=True, eq=False)
class CollisionMesh:
    """A closed mesh as a collision shape; see `add.kernels.mesh_distance`.

    Attributes
    ----------
    vertices : (nv, 3) in the frame of the shape [m]
    triangles : (nt, 3), counter-clockwise seen from outside

    Raises
    ------
    InputError
        If the surface is open, is wound inside out or has triangles without an area.
    """

    vertices: FloatArray
    triangles: IntArray

    def __post_init__(self) -> None:
        vertices, triangles = check_surface(self.vertices, self.triangles)
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "triangles", triangles)
        volume = float(_volumes(vertices, triangles).sum())
        if volume <= 0.0:
            raise InputError(
                "the triangles of a collision shape are wound inside out",
                found=f"a volume of {volume:.6g} m^3",
                expected="every triangle counter-clockwise seen from outside",
            )
        a, b, c = (vertices[triangles[:, k]] for k in range(3))
        flat = np.linalg.norm(np.cross(b - a, c - a), axis=1) == 0.0
        if flat.any():
            raise InputError(
                "a triangle of a collision shape has no area",
                found=f"{int(flat.sum())} of {len(triangles)}; the first is number {int(np.flatnonzero(flat)[0])}",
                expected="triangles with three corners that are not in a line",
            )
        uses = _sides(triangles)[3]
        if (uses != 2).any():
            raise InputError(
                "more than two triangles of a collision shape share an edge",
                found=f"{int((uses != 2).sum())} of {uses.size} edges",
                expected="two triangles at every edge: split vertices where parts touch",
            )

    @property
    def half_extent(self) -> tuple[float, float, float]:
        """Half the edges of the least box about the origin of the frame that holds the mesh [m]."""
        x, y, z = (float(value) for value in np.abs(self.vertices).max(axis=0))
        return x, y, z

    @cached_property
    def row(self) -> FloatArray:
        """The mesh as the kernels take it."""
        vertices, triangles = self.vertices, self.triangles
        _, edges, which, _ = _sides(triangles)
        sides = which.reshape(-1, 3)
        a, b, c = (vertices[triangles[:, k]] for k in range(3))
        of_faces = _unit(np.cross(b - a, c - a))
        of_edges = np.zeros((len(edges), 3))
        np.add.at(of_edges, sides.ravel(), np.repeat(of_faces, 3, axis=0))
        of_vertices = np.zeros_like(vertices)
        for k, (p, q, r) in enumerate(((a, b, c), (b, c, a), (c, a, b))):
            angle = np.arccos(np.clip(np.einsum("ij,ij->i", _unit(q - p), _unit(r - p)), -1.0, 1.0))
            np.add.at(of_vertices, triangles[:, k], angle[:, None] * of_faces)
        order, boxes, below = box_tree(vertices[triangles])
        counts = len(vertices), len(triangles), len(edges), len(boxes)
        at = getattr(layout, "py_func", layout)(*counts)  # by Python: what is compiled runs no Python on its way out
        out = np.empty(at.size)
        out[:HEAD] = *self.half_extent, *counts
        parts = (
            vertices, triangles[order], sides[order], order, edges, of_faces, _unit(of_edges), _unit(of_vertices),
            triangles, boxes, below,
        )  # fmt: skip
        for first, part in zip(at, parts, strict=False):
            out[first : first + part.size] = part.ravel()
        return out

    def gaps(self, points: FloatArray) -> FloatArray:
        """Return the signed distances of points (n, 3) of its frame [m]."""
        return mesh_gaps(self.row, points)


def mesh_gaps(row: FloatArray, points: FloatArray) -> FloatArray:
    """Return the signed distances (n,) of points (n, 3) from the mesh of a row [m]."""
    n, H = np.zeros(3), np.zeros((3, 3))
    return np.array([mesh_branch(row, *x, mesh_feature(row, *x), 0, n, H) for x in points], dtype=float)


def row_vertices(row: FloatArray) -> FloatArray:
    """Return the vertices (nv, 3) of the mesh of a row [m]."""
    return row[HEAD : HEAD + 3 * int(row[3])].reshape(-1, 3)


def _sides(triangles: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the sides 01, 12, 20 of all triangles (3 nt, 2), the edges (ne, 2), that of each side, and their uses."""
    directed = triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    n = int(triangles.max(initial=0)) + 1
    keys, which, uses = np.unique(np.sort(directed, axis=1) @ [n, 1], return_inverse=True, return_counts=True)
    return directed, np.column_stack(np.divmod(keys, n)), which, uses


def _volumes(points: FloatArray, triangles: IntArray) -> FloatArray:
    """Return the volumes (nt,) of the tetrahedra of the origin and each triangle, which sum to what they enclose."""
    corners = points[triangles]
    return np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0


def _unit(vectors: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0.0, lengths, 1.0)


#: A hole is filled without asking if the sum of its edges is below this share of the surface's largest extent.
SMALL_HOLE = 0.5


class Repaired(NamedTuple):
    """A closed surface, and what was done to make it one.

    Attributes
    ----------
    surface : closed, wound so that its volume is positive
    notes : a sentence for each kind of repair
    volume : that it encloses, in the cube of the file's unit
    """

    surface: TriangleSurface
    notes: tuple[str, ...]
    volume: float


def repaired(surface: TriangleSurface, *, fill: bool = False) -> Repaired:
    """Return a closed surface.

    Triangles that appear twice are dropped but for one, holes are closed by triangles to their middle, and triangles
    that are wound against their neighbours are turned.

    Parameters
    ----------
    surface : vertices that coincide must be one
    fill : whether holes of any size are closed

    Raises
    ------
    InputError
        If a hole is large, or three triangles meet at an edge.
    """
    points, triangles = surface
    notes = []
    _, first = np.unique(np.sort(triangles, axis=1), axis=0, return_index=True)
    if first.size < len(triangles):
        notes.append(f"{len(triangles) - first.size} triangles that were there twice were dropped")
        triangles = triangles[np.sort(first)]
    loops = _holes(points, triangles)
    extent = float(np.ptp(points, axis=0).max())
    for loop in loops:
        around = float(np.linalg.norm(points[loop] - points[np.roll(loop, -1)], axis=1).sum())
        if around > SMALL_HOLE * extent and not fill:
            raise InputError(
                "the surface has a large hole: what is inside is a guess",
                found=f"{len(loop)} edges of {around:.3g} together, about {_place(points[loop].mean(axis=0))}",
                expected="a closed surface, or `--fill-holes`",
            )
        centre = len(points)
        points = np.concatenate([points, points[loop].mean(axis=0)[None]])
        cap = np.column_stack([np.roll(loop, -1), loop, np.full(len(loop), centre)])
        triangles = np.concatenate([triangles, cap])
    if loops:
        notes.append(f"{len(loops)} holes were closed, the largest of {max(map(len, loops))} edges")
    triangles, turned = _wound(points, triangles)
    if turned:
        notes.append(f"{turned} triangles were wound against their neighbours and turned")
    volume = float(_volumes(points, triangles).sum())
    if volume == 0.0:
        raise InputError("the surface encloses nothing")
    return Repaired(TriangleSurface(points, triangles), tuple(notes), volume)


def _place(point: FloatArray) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in point) + ")"


def _holes(points: FloatArray, triangles: IntArray) -> list[IntArray]:
    """Return the loops of edges that only one triangle has; four at an edge are two parts that touch along it."""
    _, edges, _, uses = _sides(triangles)
    odd = (uses > 2) & (uses % 2 == 1)
    if odd.any():
        bad = edges[np.flatnonzero(odd)[0]]
        raise InputError(
            "an odd number of triangles meet at an edge",
            found=f"{int(odd.sum())} edges, the first at {_place(points[bad].mean(axis=0))}",
            expected="a surface that bounds one body",
        )
    # Along the hole a triangle may be wound either way: edges are followed without their direction.
    border = edges[uses == 1]
    at: dict[int, list[int]] = {}
    for number, (a, b) in enumerate(border):
        at.setdefault(int(a), []).append(number)
        at.setdefault(int(b), []).append(number)
    left = set(range(len(border)))
    loops = []
    while left:
        number = min(left)
        start, here = (int(v) for v in border[number])
        loop = [start]
        left.discard(number)
        while here != start:
            loop.append(here)
            onward = [k for k in at[here] if k in left]
            if not onward:
                raise InputError("the border of a hole does not close", found=f"at {_place(points[here])}")
            left.discard(onward[0])
            a, b = (int(v) for v in border[onward[0]])
            here = b if a == here else a
        loops.append(np.array(loop))
    return loops


def _wound(points: FloatArray, triangles: IntArray) -> tuple[IntArray, int]:
    """Return the triangles wound alike within each part, outward by the sign of its volume, and how many were turned.

    A part inside another one, a cavity, is wound as the signed volumes of the file say where they agree within it.
    """
    n = len(triangles)
    directed, _, which, uses = _sides(triangles)
    order = np.argsort(which, kind="stable")
    # Four at an edge say nothing of each other.
    sides = order[uses[which[order]] == 2].reshape(-1, 2)
    one, other = (sides // 3).T
    against = directed[sides[:, 0], 0] == directed[sides[:, 1], 0]  # both run along it: one of the two is to be turned
    _, part = connected_components(coo_array((np.ones(one.size), (one, other)), (n, n)))
    # Two copies of every triangle, as it is and turned: those that agree hang together.
    copies = np.concatenate([one, one + n]), np.concatenate([other + n * against, other + n * ~against])
    _, sheet = connected_components(coo_array((np.ones(2 * one.size), copies), (2 * n, 2 * n)))
    turned = sheet[:n] != sheet[np.unique(part, return_index=True)[1]][part]
    out = np.where(turned[:, None], triangles[:, ::-1], triangles)
    mixed = np.bincount(part, turned) > 0.0
    inward = (mixed | (mixed.size == 1)) & (np.bincount(part, _volumes(points, out)) < 0.0)
    out = np.where(inward[part, None], out[:, ::-1], out)
    return out, int((out != triangles).any(axis=1).sum())
