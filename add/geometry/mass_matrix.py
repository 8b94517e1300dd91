"""Mass matrix at unit density, consistent or lumped."""

from typing import NamedTuple

import numpy as np

from add.geometry.elements import FloatArray, IntArray, SoftMesh
from add.geometry.quadrature import determinants


class MassPairs(NamedTuple):
    """Node pairs of the mass matrix at unit density.

    M[3 i + a, 3 j + a] = density * value for every pair (i, j) = (`rows`, `cols`) and a = 0, 1, 2; `values` in [m^3].
    Pairs are unique and sorted by (row, column); both (i, j) and (j, i) are present, with identical values.
    """

    rows: IntArray
    cols: IntArray
    values: FloatArray


def element_masses(mesh: SoftMesh) -> FloatArray:
    """Consistent element mass matrices at unit density, m_ij = integral of N_i N_j dV, (ne, nn, nn) [m^3]."""
    rule = mesh.family.mass_quadrature
    shape = mesh.family.shape(rule.points)
    products = (rule.weights[:, None, None] * shape[:, :, None] * shape[:, None, :]).reshape(len(rule.weights), -1)
    masses = (determinants(mesh, rule) @ products).reshape(-1, mesh.family.n_nodes, mesh.family.n_nodes)
    return 0.5 * (masses + masses.swapaxes(1, 2))  # exactly symmetric, so that the assembled pairs are


def mass_pairs(mesh: SoftMesh, lumped: bool) -> MassPairs:
    """Assemble the mass matrix at unit density as node pairs.

    Parameters
    ----------
    mesh : SoftMesh
    lumped : False: consistent, integral of N_i N_j dV. True: diagonal by Hinton, Rock and Zienkiewicz (1976): the
        diagonal of each consistent element matrix, scaled to the mass of the element. Always positive, where row sums
        of tet10 are negative at the corners.

    Returns
    -------
    MassPairs; the values sum to the volume of the mesh. Lumped: rows == cols == every node.
    """
    masses = element_masses(mesh)
    n = mesh.n_nodes
    if lumped:
        diagonal = np.einsum("eii->ei", masses)
        diagonal = diagonal * (masses.sum(axis=(1, 2)) / diagonal.sum(axis=1))[:, None]
        values = np.bincount(mesh.cells.ravel(), diagonal.ravel(), minlength=n).astype(np.float64)
        nodes = np.arange(n)
        return MassPairs(nodes, nodes.copy(), values)
    keys = (mesh.cells[:, :, None] * n + mesh.cells[:, None, :]).ravel()
    pairs, slot = np.unique(keys, return_inverse=True)
    values = np.bincount(slot.ravel(), masses.ravel()).astype(np.float64)
    rows, cols = np.divmod(pairs, n)
    return MassPairs(rows, cols, values)
