"""Simple shapes as values: how far away they are, how large, how they are drawn; and their points.

Kernels know a shape by its code (`add.kernels.distance`), results by code and size. Everything else that depends on the
kind of a shape stands here; a further kind is one value, given to `add_shape` before anything computes.

Their points are tested against the signed distances of other bodies: positions (n, 3) in the axes of the body [m].
Spheres and capsules are points thickened by a radius; all others are bare points.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from add.errors import InputError
from add.geometry.triangle_surface import as_surface
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, MESH, PLANE, SPHERE, DistanceKernel, add_distance
from add.typing import FloatArray, IntArray

_CORNERS = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
_ANGLES = np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)
_CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES), np.zeros_like(_ANGLES)], axis=1)
#: Places on a unit ball.
BALL = np.concatenate([np.eye(3), -np.eye(3), _CORNERS / np.sqrt(3.0), _CIRCLE])
_Z = np.array([0.0, 0.0, 1.0])


class Shape(NamedTuple):
    """One kind of shape; all functions take its size (3,) [m] first, or the row of a mesh.

    Attributes
    ----------
    name : str
    code : int
        In kernels and results.
    gaps : size, points (n, 3) -> (n,)
        Signed distances in the shape's frame [m]: those of the kernel, for many points at once.
    hull : size -> (m, 3)
        Places that show its extent [m]; the origin alone for a shape without end.
    surface : size -> vertices (n, 3), triangles (m, 3)
        What is drawn; None where the viewer has a way of its own (meshes are stored with what is drawn).
    outline : size -> paths (m_i, 3)
        Lines on the surface that show how it is turned; none without ``surface``.
    kernel : DistanceKernel or None
        Of a further shape.
    """

    name: str
    code: int
    gaps: Callable[[FloatArray, FloatArray], FloatArray]
    hull: Callable[[FloatArray], FloatArray]
    surface: Callable[[FloatArray], tuple[FloatArray, IntArray]] | None = None
    outline: Callable[[FloatArray], list[FloatArray]] | None = None
    kernel: DistanceKernel | None = None


def _norm(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(vectors, axis=1))


def _beyond(beyond: FloatArray) -> FloatArray:
    """Return the distance by how far beyond each pair of faces (n, k) points are."""
    return _norm(np.maximum(beyond, 0.0)) + np.minimum(beyond.max(axis=1), 0.0)


def _of_capsule(size: FloatArray, x: FloatArray) -> FloatArray:
    beyond = np.maximum(np.abs(x[:, 2]) - size[1], 0.0)
    return _norm(np.column_stack([x[:, :2], beyond])) - size[0]


def _of_cylinder(size: FloatArray, x: FloatArray) -> FloatArray:
    return _beyond(np.column_stack([_norm(x[:, :2]) - size[0], np.abs(x[:, 2]) - size[1]]))


def _ends(ring: FloatArray, half: float) -> FloatArray:
    return np.concatenate([ring + half * _Z, ring - half * _Z])


# Imported when asked for: kernels may be imported only after all shapes are known.
def _of_mesh(row: FloatArray, x: FloatArray) -> FloatArray:
    from add.geometry.triangle_surface import mesh_gaps

    return mesh_gaps(row, x)


def _mesh_hull(row: FloatArray) -> FloatArray:
    from add.geometry.triangle_surface import row_vertices

    return row_vertices(row)


_SHAPES = {
    shape.code: shape
    for shape in (
        Shape("plane", PLANE, lambda size, x: x[:, 2], lambda size: np.zeros((1, 3))),
        Shape("sphere", SPHERE, lambda size, x: _norm(x) - size[0], lambda size: size[0] * BALL),
        Shape("box", BOX, lambda size, x: _beyond(np.abs(x) - size), lambda size: size * _CORNERS),
        Shape("capsule", CAPSULE, _of_capsule, lambda size: _ends(size[0] * BALL, size[1])),
        Shape("cylinder", CYLINDER, _of_cylinder, lambda size: _ends(size[0] * _CIRCLE, size[1])),
        Shape("mesh", MESH, _of_mesh, _mesh_hull),
    )
}


def shape_of(code: int) -> Shape:
    """Return the shape of a code.

    Raises
    ------
    InputError
    """
    try:
        return _SHAPES[int(code)]
    except KeyError:
        names = ", ".join(f"{shape.code} ({shape.name})" for shape in _SHAPES.values())
        raise InputError("unknown kind of shape", found=code, expected=names) from None


def known_shapes() -> tuple[Shape, ...]:
    """Return all kinds of shapes."""
    return tuple(_SHAPES.values())


def add_shape(shape: Shape) -> None:
    """Add a kind of shape to this process, before anything computes; its kernels are compiled with it.

    Raises
    ------
    RuntimeError
        If the kernels were imported before.
    ValueError
        If the code is taken, or something is missing.
    """
    if shape.kernel is None or shape.kernel.code != shape.code or shape.surface is None:
        raise ValueError(f"the shape '{shape.name}' needs a kernel of its code and a surface")
    add_distance(shape.kernel)
    _SHAPES[shape.code] = shape


# --- Checks of the numbers that describe a shape ----------------------------------------------------------------------


def length(shape: str, name: str, value: object) -> float:
    """A positive, finite length [m]."""
    if not isinstance(value, int | float | np.number) or not 0.0 < value < np.inf:
        raise InputError(f"impossible {name} of a {shape}", found=value, expected="a positive length [m]")
    return float(value)


def box_size(size: ArrayLike) -> FloatArray:
    """(3,) positive, finite edge lengths [m]."""
    expected = "three positive lengths [m]"
    try:
        lengths = np.asarray(size, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("impossible size of a box", found=size, expected=expected) from error
    if lengths.shape != (3,) or not (np.isfinite(lengths) & (lengths > 0.0)).all():
        raise InputError("impossible size of a box", found=lengths.tolist(), expected=expected)
    return lengths


def intervals(extent: float, spacing: float) -> int:
    """Number of equal parts, none longer than `spacing`, of a length; 1 where the spacing is infinite."""
    if not isinstance(spacing, int | float | np.number) or not spacing > 0.0:
        raise InputError("impossible spacing of contact points", found=spacing, expected="a positive length [m]")
    # 0.3 / 0.1 is 2.9999999999999996 or 3.0000000000000004 by chance: round-off must not add a part
    parts = np.ceil(extent / spacing * (1.0 - 1e-12))
    if parts > MOST_POINTS:
        raise too_many(parts, spacing)
    return max(1, int(parts))


#: More contact points than this on one body are taken for a mistake in the units.
MOST_POINTS = 1_000_000


def too_many(count: float, spacing: float) -> InputError:
    """The error for a spacing that would give more than MOST_POINTS points."""
    return InputError(
        "too many contact points on one body: is the spacing in metres?",
        found=f"about {count:.3g} points at a spacing of {spacing:g} m",
        expected=f"at most {MOST_POINTS}",
    )


# ----------------------------------------------------------------------------------------------------------------------

#: Random places for each square of the spacing, of which `surface_points` keeps about 0.7.
CANDIDATES = 20


def box_points(size: ArrayLike, spacing: float) -> FloatArray:
    """Corners, edges and faces of a box centred at the origin, on a grid.

    Parameters
    ----------
    size : (3,) edge lengths [m]
    spacing : longest distance between neighbours along an edge or a row of a face [m]; infinite: the corners alone

    Notes
    -----
    What slips between the points where both bodies carry them and each is tested against the other's distance:

    - Edge across edge: less than spacing / 2. An edge that passes the other at depth h, inside its wedge of angle b,
      stays in there for at least 2 h tan(b / 2), the shortest when it is square to the other edge and to the middle
      of its wedge; it goes unnoticed only where no point lies on that stretch. So h < spacing / (2 tan(b / 2)), for
      the right angles of boxes spacing / 2; sharper edges of other bodies sink in deeper.
    - A corner into a face, nothing: the corner is a point.

    Where only one body carries points, whatever is narrower than the spacing can pass between them.
    """
    lengths = box_size(size)
    counts = [intervals(extent, spacing) for extent in lengths]
    x, y, z = counts
    total = 2 * (x * y + y * z + z * x) + 2
    if total > MOST_POINTS:
        raise too_many(total, spacing)
    faces = []
    for axis in range(3):
        ranges = [np.arange(count + 1) for count in counts]
        ranges[axis] = np.array([0, counts[axis]])
        faces.append(np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, 3))
    grid = np.unique(np.concatenate(faces), axis=0)
    return (grid / counts - 0.5) * lengths


def sphere_points(radius: float) -> FloatArray:
    """Return the centre, (1, 3): thickened by the radius [m] it is the sphere, exact against every distance."""
    length("sphere", "radius", radius)
    return np.zeros((1, 3))


def capsule_points(radius: float, half_length: float, spacing: float) -> FloatArray:
    """Centres of spheres along the axis (z) of a capsule centred at the origin, those of both ends included.

    Parameters
    ----------
    radius, half_length : the ends are at z = -half_length and half_length [m]
    spacing : longest distance d between the centres of neighbours [m]; infinite: the ends alone, exact against planes

    Notes
    -----
    Between two spheres the surface lies r - sqrt(r^2 - d^2 / 4), about d^2 / (8 r), too deep: 3 % of the radius at
    d = r / 2. From d = 2 r on there are holes.
    """
    length("capsule", "radius", radius)
    half = length("capsule", "half_length", half_length)
    z = np.linspace(-half, half, intervals(2.0 * half, spacing) + 1)
    return np.column_stack([np.zeros((len(z), 2)), z])


def cylinder_points(radius: float, height: float, spacing: float) -> FloatArray:
    """Both rims of a cylinder about the z axis, centred at the origin.

    Parameters
    ----------
    radius, height : [m]
    spacing : longest distance between neighbours, along the rim [m]; at least 3 points a rim

    Notes
    -----
    The rims stand for the cylinder on a plane: on an end, lying, on edge. Over faces they turn so that one is
    lowest (`add.kernels.contact_places`). Over others it rolls as a prism of n sides does, its axis going down and up
    by r (1 - cos(pi / n)), about spacing^2 / (8 r). Neither the round side nor the ends carry points: an edge or a
    corner of another body is noticed only by points of its own.
    """
    r, h = length("cylinder", "radius", radius), length("cylinder", "height", height)
    n = max(3, intervals(2.0 * np.pi * r, spacing))
    angles = 2.0 * np.pi * np.arange(n) / n
    rim = np.column_stack([r * np.cos(angles), r * np.sin(angles), np.full(n, h / 2.0)])
    return np.concatenate([rim * [1.0, 1.0, -1.0], rim])


def surface_points(
    vertices: ArrayLike, triangles: ArrayLike, spacing: float, seed: int, *, every_vertex: bool = True
) -> FloatArray:
    """Vertices of a surface, points along its edges, and random places on its triangles, evenly spread.

    Parameters
    ----------
    vertices, triangles : (nv, 3) [m], (nt, 3); the surface need not be closed
    spacing : longest distance between neighbours along an edge; every place of the surface has a point within about
        this distance (5 % more, at times) [m]
    seed : of the random places; the same seed gives the same points
    every_vertex : False: vertices and edges keep only points that are `spacing` apart, which a fine mesh needs (the
        points are then about 0.7 area / spacing^2) and which may take a tip its point

    Notes
    -----
    Random places are taken in turn unless a point is nearer than `spacing` already (random sequential addition); of
    20 candidates for each one expected, those refused show that the gaps are filled. With every vertex, edges across
    edges sink into each other no deeper than in `box_points`.
    """
    points, corners = as_surface(vertices, triangles)
    if not isinstance(spacing, int | float | np.number) or not 0.0 < spacing < np.inf:
        raise InputError("impossible spacing of contact points", found=spacing, expected="a positive length [m]")
    used = np.concatenate([points[np.unique(corners)], _along_edges(points, corners, spacing)])
    candidates = np.concatenate([used, _on_triangles(points[corners], spacing, seed)])
    fixed = len(used) if every_vertex else 0
    free = np.ones(len(candidates), dtype=bool)
    tree = cKDTree(candidates)
    for index in range(len(candidates)):
        if free[index]:
            near = np.array(tree.query_ball_point(candidates[index], spacing), dtype=np.int64)
            free[near[near >= max(index + 1, fixed)]] = False
    return candidates[free]


def _along_edges(points: FloatArray, corners: IntArray, spacing: float) -> FloatArray:
    """Points that cut every edge into equal parts no longer than the spacing, without its ends."""
    edges = np.stack([corners, np.roll(corners, -1, axis=1)], axis=2).reshape(-1, 2)
    edges = np.unique(np.sort(edges, axis=1), axis=0)
    start, step = points[edges[:, 0]], points[edges[:, 1]] - points[edges[:, 0]]
    parts = np.maximum(np.ceil(np.linalg.norm(step, axis=1) / spacing * (1.0 - 1e-12)), 1.0)
    if parts.sum() > MOST_POINTS + len(edges):
        raise too_many(parts.sum(), spacing)
    inner = parts.astype(np.int64) - 1
    which = np.repeat(np.arange(len(edges)), inner)
    place = 1 + np.arange(len(which)) - np.repeat(np.cumsum(inner) - inner, inner)
    return start[which] + (place / parts[which])[:, None] * step[which]


def _on_triangles(triangles: FloatArray, spacing: float, seed: int) -> FloatArray:
    """Random places, CANDIDATES for each square of the spacing, evenly over the area of triangles (nt, 3, 3)."""
    a, b, c = np.moveaxis(triangles, 1, 0)
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2.0
    squares = float(areas.sum()) / spacing**2
    if squares > MOST_POINTS:
        raise too_many(squares, spacing)
    count = int(np.ceil(CANDIDATES * squares))
    if not count:
        return np.empty((0, 3))
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(areas), count, p=areas / areas.sum())
    u, v = rng.random((2, count, 1))
    u, v = np.where(u + v > 1.0, 1.0 - u, u), np.where(u + v > 1.0, 1.0 - v, v)
    return a[chosen] + u * (b - a)[chosen] + v * (c - a)[chosen]
