"""Reference elements (shapes, quadrature, faces of tet4, tet10, hex8), meshes of them, and their rest states.

Node order is meshio's (VTK's) "tetra", "tetra10" and "hexahedron". Tetrahedra live on the unit simplex (corners at
the origin and the three unit points, volume 1/6), hexahedra on [-1, 1]^3 (volume 8).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import roots_jacobi

from add.errors import InputError
from add.typing import FloatArray, IntArray


class Quadrature(NamedTuple):
    """Rule on the reference element: integral of g = sum_q weights[q] g(points[q]).

    `points` is (nq, 3), `weights` is (nq,) and sums to the volume of the reference element. All weights are positive.
    """

    points: FloatArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class ElementFamily:
    """One kind of volume element on its reference domain.

    Attributes
    ----------
    name : "tet4", "tet10" or "hex8"
    meshio_name : the name of the cell type in meshio
    n_nodes : nodes of an element (nn)
    shape : xi (..., 3) -> N (..., nn), the shape functions [-]
    gradient : xi (..., 3) -> dN/dxi (..., nn, 3) [-]
    nodes : (nn, 3) reference coordinates of the nodes
    centre : (3,) reference coordinates of the middle
    quadrature : rule for forces and stiffness
    mass_quadrature : rule that integrates N_i N_j det(dx/dxi) exactly, for curved elements too
    edges : (n_edges, 2) local corner nodes of each edge
    faces : (nf, nodes of a face) local nodes; corners go round counter-clockwise seen from outside, then mid-edges
    face_triangles : (nst, 3) sub-triangles of a face, as positions in a row of `faces`, oriented as the face
    face_area_triangles : (nat, 3) sub-triangles over which nodal areas are taken, each counted `face_area_factor` times
        (hex8: both ways to cut a quadrilateral, each by half, so that no corner is preferred)
    face_area_factor : 1 or 1/2
    flip : (nn,) permutation of the nodes that reverses the orientation
    inside : xi (..., 3) -> how far inside the reference domain (...,); 0 on its boundary, negative outside [-]
    """

    name: str
    meshio_name: str
    n_nodes: int
    shape: Callable[[FloatArray], FloatArray]
    gradient: Callable[[FloatArray], FloatArray]
    nodes: FloatArray
    centre: FloatArray
    quadrature: Quadrature
    mass_quadrature: Quadrature
    edges: IntArray
    faces: IntArray
    face_triangles: IntArray
    face_area_triangles: IntArray
    face_area_factor: float
    flip: IntArray
    inside: Callable[[FloatArray], FloatArray]

    def __repr__(self) -> str:
        """Name it only: the tables are constants."""
        return f"ElementFamily({self.name!r})"

    def __reduce__(self) -> tuple[Callable[[str], "ElementFamily"], tuple[str]]:
        """Pickle by name, so that copies stay the same object."""
        return family_by_name, (self.name,)


# --- shape functions ------------------------------------------------------------------------------------------------


def _barycentric(xi: FloatArray) -> FloatArray:
    xi = np.asarray(xi, dtype=np.float64)
    return np.concatenate([1.0 - xi.sum(axis=-1, keepdims=True), xi], axis=-1)


_BARYCENTRIC_GRADIENT = np.array([[-1.0, -1.0, -1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
_TET_EDGES = np.array([[0, 1], [1, 2], [0, 2], [0, 3], [1, 3], [2, 3]])
_TET_NODES = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
_HEX_NODES = np.array(
    [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]],
    dtype=np.float64,
)


def _tet4_gradient(xi: FloatArray) -> FloatArray:
    return np.broadcast_to(_BARYCENTRIC_GRADIENT, (*np.shape(xi)[:-1], 4, 3)).copy()


def _tet10_shape(xi: FloatArray) -> FloatArray:
    """N = b (2 b - 1) at corners, 4 b_i b_j at mid-edges, b the barycentric coordinates."""
    b = _barycentric(xi)
    return np.concatenate([b * (2.0 * b - 1.0), 4.0 * b[..., _TET_EDGES[:, 0]] * b[..., _TET_EDGES[:, 1]]], axis=-1)


def _tet10_gradient(xi: FloatArray) -> FloatArray:
    b = _barycentric(xi)[..., None]
    i, j = _TET_EDGES.T
    corners = (4.0 * b - 1.0) * _BARYCENTRIC_GRADIENT
    middles = 4.0 * (b[..., i, :] * _BARYCENTRIC_GRADIENT[j] + b[..., j, :] * _BARYCENTRIC_GRADIENT[i])
    return np.concatenate([corners, middles], axis=-2)


def _hex8_shape(xi: FloatArray) -> FloatArray:
    """N_i = (1 + x x_i)(1 + y y_i)(1 + z z_i) / 8."""
    factors = 1.0 + np.asarray(xi, dtype=np.float64)[..., None, :] * _HEX_NODES
    return factors.prod(axis=-1) / 8.0


def _hex8_gradient(xi: FloatArray) -> FloatArray:
    x, y, z = np.moveaxis(1.0 + np.asarray(xi, dtype=np.float64)[..., None, :] * _HEX_NODES, -1, 0)
    return np.stack([y * z, z * x, x * y], axis=-1) * _HEX_NODES / 8.0


def _tet_inside(xi: FloatArray) -> FloatArray:
    return _barycentric(xi).min(axis=-1)


def _hex_inside(xi: FloatArray) -> FloatArray:
    return (1.0 - np.abs(xi)).min(axis=-1)


# --- quadrature -----------------------------------------------------------------------------------------------------


def _tet_four_points() -> Quadrature:
    """Exact to degree 2."""
    near, far = (5.0 - np.sqrt(5.0)) / 20.0, (5.0 + 3.0 * np.sqrt(5.0)) / 20.0
    points = np.full((4, 3), near)
    points[1:][np.eye(3, dtype=bool)] = far
    return Quadrature(points, np.full(4, 1.0 / 24.0))


def _tet_conical(n: int) -> Quadrature:
    """Conical product of Gauss-Jacobi rules (Stroud 1971): n^3 points, exact to degree 2 n - 1, positive weights."""
    rules = [roots_jacobi(n, power, 0.0) for power in (2, 1, 0)]
    s, t, u = ((1.0 + rule[0]) / 2.0 for rule in rules)
    a, b, c = (rule[1] / 2.0 ** (power + 1) for rule, power in zip(rules, (2, 1, 0), strict=True))
    s, t, u = (g.ravel() for g in np.meshgrid(s, t, u, indexing="ij"))
    points = np.stack([s, t * (1.0 - s), u * (1.0 - s) * (1.0 - t)], axis=-1)
    return Quadrature(points, np.einsum("i,j,k->ijk", a, b, c).ravel())


def _hex_gauss(n: int) -> Quadrature:
    """Gauss product rule: n^3 points, exact to degree 2 n - 1 in each direction."""
    x, w = np.polynomial.legendre.leggauss(n)
    points = np.stack([g.ravel() for g in np.meshgrid(x, x, x, indexing="ij")], axis=-1)
    return Quadrature(points, np.einsum("i,j,k->ijk", w, w, w).ravel())


# --- the families ---------------------------------------------------------------------------------------------------

TET4 = ElementFamily(
    name="tet4",
    meshio_name="tetra",
    n_nodes=4,
    shape=_barycentric,
    gradient=_tet4_gradient,
    nodes=_TET_NODES,
    centre=np.full(3, 0.25),
    quadrature=Quadrature(np.full((1, 3), 0.25), np.array([1.0 / 6.0])),
    mass_quadrature=_tet_four_points(),
    edges=_TET_EDGES,
    faces=np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]),
    face_triangles=np.array([[0, 1, 2]]),
    face_area_triangles=np.array([[0, 1, 2]]),
    face_area_factor=1.0,
    flip=np.array([0, 2, 1, 3]),
    inside=_tet_inside,
)

_TRI6 = np.array([[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]])

TET10 = replace(
    TET4,
    name="tet10",
    meshio_name="tetra10",
    n_nodes=10,
    shape=_tet10_shape,
    gradient=_tet10_gradient,
    nodes=np.concatenate([_TET_NODES, _TET_NODES[_TET_EDGES].mean(axis=1)]),
    quadrature=_tet_four_points(),
    mass_quadrature=_tet_conical(4),
    faces=np.array([[0, 2, 1, 6, 5, 4], [0, 1, 3, 4, 8, 7], [1, 2, 3, 5, 9, 8], [0, 3, 2, 7, 9, 6]]),
    face_triangles=_TRI6,
    face_area_triangles=_TRI6,
    flip=np.array([0, 2, 1, 3, 6, 5, 4, 7, 9, 8]),
)

HEX8 = ElementFamily(
    name="hex8",
    meshio_name="hexahedron",
    n_nodes=8,
    shape=_hex8_shape,
    gradient=_hex8_gradient,
    nodes=_HEX_NODES,
    centre=np.zeros(3),
    quadrature=_hex_gauss(2),
    mass_quadrature=_hex_gauss(3),
    edges=np.array([[0, 1], [1, 2], [2, 3], [3, 0], [4, 5], [5, 6], [6, 7], [7, 4], [0, 4], [1, 5], [2, 6], [3, 7]]),
    faces=np.array([[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]]),
    face_triangles=np.array([[0, 1, 2], [0, 2, 3]]),
    face_area_triangles=np.array([[0, 1, 2], [0, 2, 3], [0, 1, 3], [1, 2, 3]]),
    face_area_factor=0.5,
    flip=np.array([4, 5, 6, 7, 0, 1, 2, 3]),
    inside=_hex_inside,
)

FAMILIES: dict[str, ElementFamily] = {family.name: family for family in (TET4, TET10, HEX8)}


def family_by_name(name: str) -> ElementFamily:
    """Return the family called `name` ("tet4", "tet10", "hex8"); KeyError otherwise."""
    return FAMILIES[name]


@dataclass(frozen=True, eq=False)
class SoftMesh:
    """Nodes and elements of one family.

    Attributes
    ----------
    points : (n, 3) rest positions [m]
    cells : (ne, nn) nodes of each element, counted from 0, in the order of `family`
    family : TET4, TET10 or HEX8

    Notes
    -----
    Only shapes are checked here. `add.geometry.validate` checks the rest and mends orientation; every mesh that comes
    from `add.io` has been through it.
    """

    points: FloatArray
    cells: IntArray
    family: ElementFamily

    def __post_init__(self) -> None:
        """Bring the arrays to C-ordered float64 and int64."""
        points = np.ascontiguousarray(self.points, dtype=np.float64)
        cells = np.ascontiguousarray(self.cells, dtype=np.int64)
        if points.ndim != 2 or points.shape[1] != 3:
            raise InputError("points of a mesh must be three-dimensional", found=points.shape, expected="shape (n, 3)")
        if cells.ndim != 2 or cells.shape[1] != self.family.n_nodes:
            raise InputError(
                f"elements of a {self.family.name} mesh have the wrong number of nodes",
                found=cells.shape,
                expected=f"shape (ne, {self.family.n_nodes})",
            )
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "cells", cells)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.points)

    @property
    def n_elements(self) -> int:
        """Number of elements."""
        return len(self.cells)


class QuadratureGeometry(NamedTuple):
    """Shape-function gradients and weights at the quadrature points of the rest state.

    `gradients` (ne, nq, nn, 3) is dN/dX [1/m], so that F = sum_i x_i (dN_i/dX)^T. `weights` (ne, nq) is
    w_q det(dX/dxi) [m^3], so that the integral of g is sum weights g; negative in an inverted element.
    """

    gradients: FloatArray
    weights: FloatArray


def jacobians(corners: FloatArray, gradients: FloatArray) -> FloatArray:
    """Map derivative dX_a/dxi_b = sum_i X_ia dN_i/dxi_b.

    Parameters
    ----------
    corners : (ne, nn, 3)    nodes of each element [m]
    gradients : (nq, nn, 3)  dN/dxi [-]

    Returns
    -------
    (ne, nq, 3, 3) [m]
    """
    return np.einsum("eia,qib->eqab", corners, gradients, optimize=True)


def determinants(mesh: SoftMesh, rule: Quadrature) -> FloatArray:
    """det(dX/dxi) of every element at the points of a rule, (ne, nq) [m^3]; negative where inverted."""
    return np.linalg.det(jacobians(mesh.points[mesh.cells], mesh.family.gradient(rule.points)))


def quadrature_geometry(mesh: SoftMesh) -> QuadratureGeometry:
    """Gradients dN/dX = dN/dxi (dX/dxi)^-1 and weights at the points of the family's stiffness rule.

    Parameters
    ----------
    mesh : SoftMesh, without degenerate elements (see `validate`)
    """
    rule = mesh.family.quadrature
    reference = mesh.family.gradient(rule.points)
    jacobian = jacobians(mesh.points[mesh.cells], reference)
    gradients = np.ascontiguousarray(np.einsum("qib,eqba->eqia", reference, np.linalg.inv(jacobian), optimize=True))
    weights = np.linalg.det(jacobian) * rule.weights
    return QuadratureGeometry(gradients, np.ascontiguousarray(weights))  # for kernels, which know no other order


def enhanced_geometry(mesh: SoftMesh) -> QuadratureGeometry:
    """Geometry of hexahedra with three inner nodes each, which come last: they let an element bend without shear.

    F = sum_a x_a (x) G_a + sum_k (y_k - c) (x) E_k, with the mean c of the element's nodes and

        E_k = xi_k det(J_0)/det(J) J_0^-T e_k,   J = dX/dxi, J_0 that in the middle,

    the enhanced strains of Simo & Armero (1992), as gradients of nodes y_k that rest in c and turn with the element.
    The sum of w E_k is zero: an element in a uniform state needs none, and passes the patch test.

    Parameters
    ----------
    mesh : SoftMesh
        Of HEX8.
    """
    rule = mesh.family.quadrature
    plain = quadrature_geometry(mesh)
    corners = mesh.points[mesh.cells]
    middle = jacobians(corners, mesh.family.gradient(mesh.family.centre[None]))[:, 0]
    ratio = np.linalg.det(middle)[:, None] * rule.weights / plain.weights
    incompatible = np.einsum("eq,qk,eki->eqki", ratio, rule.points, np.linalg.inv(middle))
    shared = plain.gradients - incompatible.sum(axis=2, keepdims=True) / mesh.family.n_nodes
    return QuadratureGeometry(np.ascontiguousarray(np.concatenate([shared, incompatible], axis=2)), plain.weights)


def element_volumes(mesh: SoftMesh) -> FloatArray:
    """Exact volume of every element, (ne,) [m^3], curved ones included; negative where inverted."""
    rule = mesh.family.mass_quadrature
    return determinants(mesh, rule) @ rule.weights


def volume(mesh: SoftMesh) -> float:
    """Volume of the mesh [m^3]."""
    return float(element_volumes(mesh).sum())
