"""Find the element that holds a rest position, and its weights there; directions between two ends of a mesh."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

from add.errors import InputError
from add.geometry.boundary import boundary_faces
from add.geometry.elements import SoftMesh, quadrature_geometry
from add.typing import FloatArray, IntArray

#: How far outside the reference domain still counts as inside [-].
INSIDE_TOLERANCE = 1e-9


class Located(NamedTuple):
    """A material point: x = sum_i weights_i q_(nodes_i).

    `element`: its number; `nodes` (nn,); `weights` (nn,): sum to 1 and reproduce the rest position; `distance`: how
    far the position lies outside the mesh [m], 0 inside.
    """

    element: int
    nodes: IntArray
    weights: FloatArray
    distance: float


def invert(corners: FloatArray, mesh: SoftMesh, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve X(xi) = x in several elements at once by Newton's method on the isoparametric map.

    Parameters
    ----------
    corners : (m, nn, 3) element nodes [m]
    x : (3,) [m]

    Returns
    -------
    xi : (m, 3); the iterates are kept within a few element sizes, so xi is meaningless far outside a curved element
    error : (m,) |X(xi) - x| [m]
    """
    family = mesh.family
    low, high = family.nodes.min(axis=0), family.nodes.max(axis=0)
    low, high = low - (high - low), high + (high - low)
    xi = np.broadcast_to(family.centre, (len(corners), 3)).copy()
    scale = np.ptp(corners, axis=1).max(axis=1)
    for _ in range(30):
        residual = np.einsum("ei,eia->ea", family.shape(xi), corners) - x
        if (np.abs(residual).max(axis=1) <= 1e-15 * scale).all():
            break
        jacobian = np.einsum("eia,eib->eab", corners, family.gradient(xi))
        step = _solve(jacobian, residual)
        new = np.clip(xi - step, low, high)
        still = np.abs(new - xi).max(axis=1) <= 1e-15
        xi = new
        if still.all():
            break
    residual = np.einsum("ei,eia->ea", family.shape(xi), corners) - x
    return xi, np.linalg.norm(residual, axis=1)


def _solve(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Solve 3 x 3 systems by Cramer's rule; singular ones give a zero step instead of an error."""
    a, b, c = np.moveaxis(matrices, 2, 0)
    cofactors = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=1)
    determinant = np.einsum("ea,ea->e", a, cofactors[:, 0])
    size = np.abs(matrices).max(axis=(1, 2)) ** 3
    usable = np.abs(determinant) > 1e-14 * size
    solution = np.einsum("eba,ea->eb", cofactors, vectors)
    return np.where(usable[:, None], solution / np.where(usable, determinant, 1.0)[:, None], 0.0)


def triangle_weights(points: FloatArray, corners: FloatArray) -> FloatArray:
    """Return the weights (m, 3) of the closest points of triangles (m, 3, 3), one pair a row."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    ab, ac = b - a, c - a

    def dot(u: FloatArray, v: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("mk,mk->m", u, v))

    d1, d2 = dot(ab, points - a), dot(ac, points - a)
    d3, d4 = dot(ab, points - b), dot(ac, points - b)
    d5, d6 = dot(ab, points - c), dot(ac, points - c)
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    with np.errstate(divide="ignore", invalid="ignore"):
        on_ab, on_ac = d1 / (d1 - d3), d2 / (d2 - d6)
        on_bc = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        total = va + vb + vc
        v, w = vb / total, vc / total
        out = np.stack([1.0 - v - w, v, w], axis=1)
    zero, one = np.zeros_like(d1), np.ones_like(d1)
    cases = [
        ((d1 <= 0) & (d2 <= 0), (one, zero, zero)),
        ((d3 >= 0) & (d4 <= d3), (zero, one, zero)),
        ((d6 >= 0) & (d5 <= d6), (zero, zero, one)),
        ((vc <= 0) & (d1 >= 0) & (d3 <= 0), (1.0 - on_ab, on_ab, zero)),
        ((vb <= 0) & (d2 >= 0) & (d6 <= 0), (1.0 - on_ac, zero, on_ac)),
        ((va <= 0) & (d4 >= d3) & (d5 >= d6), (zero, 1.0 - on_bc, on_bc)),
    ]
    for condition, values in reversed(cases):
        out = np.where(condition[:, None], np.stack(values, axis=1), out)
    return out


def closest_on_triangles(x: FloatArray, triangles: FloatArray) -> FloatArray:
    """Closest point to x (3,) of each triangle (nt, 3, 3); returns (nt, 3)."""
    weights = triangle_weights(np.broadcast_to(x, (len(triangles), 3)), triangles)
    return np.asarray(np.einsum("tk,tka->ta", weights, triangles))


def locate_on_cells(x: FloatArray, points: FloatArray, cells: IntArray) -> tuple[IntArray, FloatArray, float]:
    """Return nodes and weights of the place of a net of triangles or edges that is nearest to x, and how far it is [m].

    Parameters
    ----------
    x : (3,) [m]
    points : (n, 3) [m]
    cells : (m, 3) triangles or (m, 2) edges; without any the nearest node stands for the place
    """
    away = np.linalg.norm(points - x, axis=1)
    node = int(np.argmin(away))
    if not cells.size or away[node] <= INSIDE_TOLERANCE * np.ptp(points, axis=0).max():
        return np.array([node]), np.ones(1), float(away[node])
    corners = points[cells]
    if cells.shape[1] == 3:
        weights = triangle_weights(np.broadcast_to(x, (len(cells), 3)), corners)
    else:
        along = corners[:, 1] - corners[:, 0]
        length2 = np.maximum(np.einsum("ea,ea->e", along, along), np.finfo(np.float64).tiny)
        share = np.clip(np.einsum("ea,ea->e", x - corners[:, 0], along) / length2, 0.0, 1.0)
        weights = np.stack([1.0 - share, share], axis=1)
    distances = np.linalg.norm(np.einsum("ek,eka->ea", weights, corners) - x, axis=1)
    k = int(np.argmin(distances))
    return cells[k], weights[k], float(distances[k])


class Locator:
    """Point location in one mesh; keeps what `locate` needs, for many points."""

    def __init__(self, mesh: SoftMesh) -> None:
        self.mesh = mesh
        self._corners = mesh.points[mesh.cells]
        self._centres = self._corners.mean(axis=1)
        reach = np.linalg.norm(self._corners - self._centres[:, None], axis=2).max(axis=1)
        self._reach = reach * (1.0 + 1e-6 if mesh.family.name != "tet10" else 1.5)  # curved faces may bulge out
        boundary = boundary_faces(mesh)
        triangles = boundary.faces[:, mesh.family.face_triangles]
        self._owners = np.repeat(boundary.elements, triangles.shape[1])
        self._triangles = mesh.points[triangles.reshape(-1, 3)]

    def locate(self, x: ArrayLike) -> Located:
        """Weights of a rest position x (3,) [m]; see `add.geometry.locate`."""
        position = np.asarray(x, dtype=np.float64)
        if position.shape != (3,) or not np.isfinite(position).all():
            raise InputError("a position must be three finite numbers", found=x)
        near = np.flatnonzero(np.linalg.norm(self._centres - position, axis=1) <= self._reach)
        element, xi = self._deepest(near, position)
        if element >= 0:
            return self._located(element, xi, position, 0.0)
        closest = closest_on_triangles(position, self._triangles)
        distances = np.linalg.norm(closest - position, axis=1)
        distance = float(distances.min())
        ties = np.flatnonzero(distances <= distance * (1.0 + 1e-9))
        candidates = np.unique(self._owners[ties])
        element, xi = self._deepest(candidates, closest[ties[0]], accept=np.inf)
        return self._located(element, xi, position, distance)

    def _deepest(self, candidates: IntArray, x: FloatArray, accept: float = INSIDE_TOLERANCE) -> tuple[int, FloatArray]:
        """Return the candidate in which x lies deepest, or -1 where x is more than `accept` outside of all."""
        if len(candidates) == 0:
            return -1, self.mesh.family.centre
        corners = self._corners[candidates]
        xi, error = invert(corners, self.mesh, x)
        depth = np.where(error <= 1e-9 * np.ptp(corners, axis=1).max(axis=1), self.mesh.family.inside(xi), -1e9)
        best = int(np.argmax(depth))
        return (int(candidates[best]) if depth[best] >= -accept else -1), xi[best]

    def _located(self, element: int, xi: FloatArray, x: FloatArray, distance: float) -> Located:
        """Weights N(xi) + dN/dxi (dX/dxi)^-1 (x - X(xi)): N(xi) inside, linearly continued outside."""
        family, corners = self.mesh.family, self._corners[element]
        shape, gradient = family.shape(xi), family.gradient(xi)
        weights = shape + gradient @ np.linalg.solve(corners.T @ gradient, x - shape @ corners)
        return Located(element, self.mesh.cells[element].copy(), weights, distance)


def locate(mesh: SoftMesh, x: ArrayLike) -> Located:
    """Shape-function weights of a rest position.

    Inside, xi solves X(xi) = x (Newton's method for tet10 and hex8) and the weights are N(xi). Outside, xi belongs to
    the closest point of the boundary (of its flat sub-triangles, where it is curved) and the weights are continued
    linearly from there, so that they still reproduce x and every affine motion, without the growth of quadratic shape
    functions.

    Parameters
    ----------
    mesh : SoftMesh
    x : (3,) rest position [m]

    Notes
    -----
    Each call visits the whole mesh once; for many points make one `Locator` and call its `locate`.
    """
    return Locator(mesh).locate(x)


# --- Directions through a mesh by Laplace's equation ------------------------------------------------------------------


#: Slopes below this, in units of one over the size of the mesh, are round-off of a function that is constant.
_NONE = 1e-9


def laplace_gradient(mesh: SoftMesh, low: IntArray, high: IntArray) -> FloatArray:
    """Return the gradient of u in every element, laplace u = 0 from u = 0 at some nodes to u = 1 at others.

    Rule-based fibres of muscles follow it (Bayer et al. 2012): it leaves one end of a body for the other along its
    shape. No flow leaves through the rest of the surface. The gradient is the mean over an element.

    Parameters
    ----------
    mesh : SoftMesh
    low, high : (k,)
        Nodes with u = 0 and with u = 1.

    Returns
    -------
    (ne, 3) [1/m]
        Exactly zero in elements where u is constant.

    Raises
    ------
    InputError
        For nodes in both, and for parts of the mesh that have not both.
    """
    both = np.intersect1d(low, high)
    if both.size:
        raise InputError("the two ends have a node in common", found=f"node {both[0]}", expected="ends that are apart")
    gradients, weights = quadrature_geometry(mesh)
    n, cells = mesh.n_nodes, mesh.cells
    values = np.einsum("eq,eqia,eqja->eij", weights, gradients, gradients, optimize=True)
    rows, cols = np.broadcast_arrays(cells[:, :, None], cells[:, None, :])
    matrix = sp.csr_matrix((values.ravel(), (rows.ravel(), cols.ravel())), shape=(n, n))
    parts, part = connected_components(matrix, directed=False)
    for end, nodes in (("first", low), ("second", high)):
        lacking = np.setdiff1d(np.unique(part[cells]), part[nodes])
        if lacking.size:
            raise InputError(f"a part of the mesh has no node of the {end} end",
                             found=f"the part of node {np.argmax(part == lacking[0])}",
                             expected=f"one in each of its {parts} parts")  # fmt: skip
    u = np.zeros(n)
    u[high] = 1.0
    free = np.setdiff1d(np.unique(cells), np.concatenate([low, high]))
    if free.size:
        u[free] = spsolve(matrix[free][:, free].tocsc(), -(matrix[free] @ u))
    slopes = np.einsum("eq,eqia,ei->ea", weights, gradients, u[cells], optimize=True) / weights.sum(axis=1)[:, None]
    slopes[np.linalg.norm(slopes, axis=1) * np.ptp(mesh.points) < _NONE] = 0.0
    return np.asarray(slopes)
