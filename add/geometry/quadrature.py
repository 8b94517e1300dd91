"""Geometry of the rest state at quadrature points."""

from typing import NamedTuple

import numpy as np

from add.geometry.elements import Quadrature, SoftMesh
from add.typing import FloatArray


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


def quadrature_geometry(mesh: SoftMesh, rule: Quadrature | None = None) -> QuadratureGeometry:
    """Gradients dN/dX = dN/dxi (dX/dxi)^-1 and weights at quadrature points.

    Parameters
    ----------
    mesh : SoftMesh, without degenerate elements (see `validate`)
    rule : the family's stiffness rule by default (tet4 1 point, tet10 4 points, hex8 2 x 2 x 2)
    """
    rule = mesh.family.quadrature if rule is None else rule
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
    own = np.einsum("eq,qk,eki->eqki", ratio, rule.points, np.linalg.inv(middle))
    shared = plain.gradients - own.sum(axis=2, keepdims=True) / mesh.family.n_nodes
    return QuadratureGeometry(np.ascontiguousarray(np.concatenate([shared, own], axis=2)), plain.weights)


def element_volumes(mesh: SoftMesh) -> FloatArray:
    """Exact volume of every element, (ne,) [m^3], curved ones included; negative where inverted."""
    rule = mesh.family.mass_quadrature
    return determinants(mesh, rule) @ rule.weights


def volume(mesh: SoftMesh) -> float:
    """Volume of the mesh [m^3]."""
    return float(element_volumes(mesh).sum())
