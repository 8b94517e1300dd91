"""A small deterministic mesher: fills convex round solids, or sweeps a section round a circle.

pytetwild (fTetWild) gives another mesh on every call, even on one thread, so a run from a shape could not be repeated
or resumed. Delaunay on points laid by hand is enough for round shapes, and needs no mesher to be installed.
"""

from collections.abc import Callable

import numpy as np
from scipy.spatial import Delaunay, cKDTree

from add.errors import InputError
from add.fem import TET4, SoftMesh, boundary_faces, validate
from add.typing import BoolArray, FloatArray, IntArray

SEED = 20200717
RELAXATIONS = 12
SWEEPS = 25
PEEL = 0.25
"""Tetrahedra with two faces on the boundary and less quality than this are taken off [-]."""
IMPROVE = 0.5
"""Nodes round tetrahedra of less quality than this are moved about to improve them [-]."""
WORST = 0.02
"""A mesh with a tetrahedron of less quality than this is refused [-]."""


def quality(points: FloatArray, cells: IntArray) -> FloatArray:
    """Mean ratio 12 (3 V)^(2/3) / (sum of squared edges), (ne,) [-]: 1 regular, 0 flat, negative inverted."""
    corners = points[cells]
    a, b, c = np.moveaxis(corners[:, 1:] - corners[:, :1], 1, 0)
    volume = np.einsum("ea,ea->e", a, np.cross(b, c)) / 6.0
    edges = sum(((p - q) ** 2).sum(axis=1) for p, q in ((a, 0), (b, 0), (c, 0), (a, b), (b, c), (c, a)))
    return np.sign(volume) * 12.0 * np.abs(3.0 * volume) ** (2.0 / 3.0) / edges


def fill(
    surface_points: FloatArray,
    depth: Callable[[FloatArray], FloatArray],
    edge: float,
    project: Callable[[FloatArray], FloatArray],
    movable: BoolArray,
) -> SoftMesh:
    """Fill a convex solid with tetrahedra.

    Parameters
    ----------
    surface_points : (ns, 3) points on the surface, about `edge` apart; they become its boundary nodes [m]
    depth : p (m, 3) -> how far inside the solid (m,), negative outside [m]
    edge : target edge length [m]
    project : p (m, 3) -> nearest points of the surface (m, 3) [m]
    movable : (ns,) which surface points may slide along it

    Notes
    -----
    A body-centred lattice inside, Delaunay, a few steps towards the optimal Delaunay triangulation (Chen 2004) of the
    inner nodes, then a seeded local search for the nodes round poor elements.
    """
    inner = _lattice(surface_points, depth, edge)
    points = np.concatenate([surface_points, inner])
    n_surface = len(surface_points)
    for _ in range(RELAXATIONS if len(inner) else 0):
        points = _relax(points, _delaunay(points, depth, edge), n_surface, depth, edge)
    cells = _peel(points, _delaunay(points, depth, edge), n_surface)
    boundary = np.arange(len(points)) < n_surface
    fixed = np.zeros(len(points), dtype=bool)
    fixed[:n_surface] = ~movable
    mesh = improve(SoftMesh(points, cells, TET4), edge, project, boundary, fixed)
    if mesh.n_nodes != len(points):
        raise _too_coarse(edge)
    return mesh


def sweep(section: FloatArray, n: int, edge: float, project: Callable[[FloatArray], FloatArray]) -> SoftMesh:
    """Turn a convex section round z, as prisms that are cut into three tetrahedra each.

    Parameters
    ----------
    section : (m, 2) points (r, z) of the section, r > 0 [m]
    n : number of sections round the circle
    edge, project : as in `fill`

    Notes
    -----
    Each quadrilateral is cut from its node of lowest number (Dompierre et al. 1999), so that neighbours agree.
    """
    angle = 2.0 * np.pi * np.arange(n)[:, None] / n
    r, z = section.T
    points = np.stack([r * np.cos(angle), r * np.sin(angle), np.broadcast_to(z, (n, len(z)))], axis=-1).reshape(-1, 3)
    triangles = Delaunay(section).simplices.astype(np.int64)
    shift = np.arange(n)[:, None, None] * len(section)
    prisms = np.concatenate([triangles + shift, triangles + np.roll(shift, -1, axis=0)], axis=2).reshape(-1, 6)
    first = np.argmin(prisms, axis=1)
    v = np.take_along_axis(prisms, _PRISM_TURNS[first], axis=1)
    one = np.minimum(v[:, 1], v[:, 5]) < np.minimum(v[:, 2], v[:, 4])
    cells = np.where(one[:, None, None], v[:, _PRISM_CUTS[0]], v[:, _PRISM_CUTS[1]]).reshape(-1, 4)
    mesh = validate(SoftMesh(points, cells, TET4)).mesh
    boundary = np.zeros(len(points), dtype=bool)
    boundary[boundary_faces(mesh).faces] = True
    return improve(mesh, edge, project, boundary, np.zeros(len(points), dtype=bool))


_PRISM_TURNS = np.array(
    [
        [0, 1, 2, 3, 4, 5],
        [1, 2, 0, 4, 5, 3],
        [2, 0, 1, 5, 3, 4],
        [3, 5, 4, 0, 2, 1],
        [4, 3, 5, 1, 0, 2],
        [5, 4, 3, 2, 1, 0],
    ]
)
_PRISM_CUTS = np.array([[[0, 1, 2, 5], [0, 1, 5, 4], [0, 4, 5, 3]], [[0, 1, 2, 4], [0, 4, 2, 5], [0, 4, 5, 3]]])


def _too_coarse(edge: float) -> InputError:
    return InputError("the edge is too long for this shape", found=f"edge {edge:g} m", expected="a shorter one")


def _lattice(surface_points: FloatArray, depth: Callable[[FloatArray], FloatArray], edge: float) -> FloatArray:
    """Body-centred lattice inside, at least half an edge from the surface, a little disturbed against ties."""
    spacing = 1.09 * edge  # of the cubes; the edges of the tetrahedra are 0.87 and 1 of it
    high = np.abs(surface_points).max(axis=0)
    counts = np.ceil(high / spacing).astype(int)
    axes = [spacing * np.arange(-k, k + 1) for k in counts]
    cubic = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=-1)
    points = np.concatenate([cubic, cubic + spacing / 2.0])
    points += np.random.default_rng(SEED).uniform(-0.01, 0.01, points.shape) * edge
    inside = points[depth(points) > 0.45 * edge]
    return inside[cKDTree(surface_points).query(inside)[0] > 0.6 * edge] if len(inside) else inside


def _delaunay(points: FloatArray, depth: Callable[[FloatArray], FloatArray], edge: float) -> IntArray:
    """Delaunay tetrahedra whose middle lies inside, oriented, without the flat ones."""
    cells = Delaunay(points).simplices.astype(np.int64)
    value = quality(points, cells)
    cells[value < 0.0] = cells[value < 0.0][:, TET4.flip]
    return cells[(depth(points[cells].mean(axis=1)) > 1e-3 * edge) & (np.abs(value) > 1e-3)]


def _relax(
    points: FloatArray, cells: IntArray, n_surface: int, depth: Callable[[FloatArray], FloatArray], edge: float
) -> FloatArray:
    """Move inner nodes to the volume-weighted mean of the circumcentres round them (kept near their elements)."""
    corners = points[cells]
    spans = corners[:, 1:] - corners[:, :1]
    volumes = np.abs(np.linalg.det(spans)) / 6.0
    centroids = corners.mean(axis=1)
    usable = volumes > 1e-3 * edge**3
    centres = centroids.copy()
    right = 0.5 * (spans[usable] ** 2).sum(axis=2)[..., None]
    centres[usable] = corners[usable, 0] + np.linalg.solve(spans[usable], right)[..., 0]
    far = np.linalg.norm(centres - centroids, axis=1) > edge
    centres[far] = centroids[far]
    total = np.bincount(cells.ravel(), np.repeat(volumes, 4), minlength=len(points))
    sums = np.stack(
        [np.bincount(cells.ravel(), np.repeat(volumes * centres[:, k], 4), minlength=len(points)) for k in range(3)],
        axis=-1,
    )
    moved = points.copy()
    target = sums[n_surface:] / np.maximum(total[n_surface:], 1e-300)[:, None]
    keep = (total[n_surface:] > 0.0) & (depth(target) > 0.3 * edge)
    moved[n_surface:][keep] = target[keep]
    return moved


def _peel(points: FloatArray, cells: IntArray, n_surface: int) -> IntArray:
    """Take off flat elements that lie on the boundary, until there are none."""
    while True:
        mesh = SoftMesh(points, cells, TET4)
        exposed = np.bincount(boundary_faces(mesh).elements, minlength=len(cells))
        flat = (quality(points, cells) < PEEL) & (exposed >= 2) & (cells < n_surface).all(axis=1)
        if not flat.any():
            return cells
        cells = cells[~flat]


def improve(
    mesh: SoftMesh,
    edge: float,
    project: Callable[[FloatArray], FloatArray],
    boundary: BoolArray,
    fixed: BoolArray,
) -> SoftMesh:
    """Move nodes of poor elements to the best of some random places if that raises the worst quality round them.

    Nodes of `boundary` (n,) slide along the surface by `project`, nodes of `fixed` (n,) stay. Seeded, so repeatable.
    """
    rng = np.random.default_rng(SEED)
    points, cells = mesh.points.copy(), mesh.cells
    order = np.argsort(cells.ravel(), kind="stable")
    starts = np.searchsorted(cells.ravel()[order], np.arange(len(points) + 1))
    for sweep_number in range(SWEEPS):
        poor = np.unique(cells[quality(points, cells) < IMPROVE])
        for node in poor[~fixed[poor]]:
            around = cells[order[starts[node] : starts[node + 1]] // 4]
            trials = points[node] + rng.normal(size=(24, 3)) * (0.2 * edge * 0.85**sweep_number)
            if boundary[node]:
                trials = project(trials)
            trials[0] = points[node]
            corners = np.broadcast_to(points[around], (24, *around.shape, 3)).copy()
            corners[:, around == node] = trials[:, None]
            flat = corners.reshape(-1, 3)
            values = quality(flat, np.arange(len(flat)).reshape(-1, 4)).reshape(24, -1).min(axis=1)
            points[node] = trials[int(np.argmax(values))]
    if quality(points, cells).min(initial=1.0) < WORST:
        raise _too_coarse(edge)
    return validate(SoftMesh(points, cells, TET4)).mesh
