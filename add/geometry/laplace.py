"""Directions through a mesh by Laplace's equation."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

from add.errors import InputError
from add.geometry.elements import SoftMesh, quadrature_geometry
from add.typing import FloatArray, IntArray

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
