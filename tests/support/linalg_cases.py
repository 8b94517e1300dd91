"""Matrices for the tests of the back ends."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from add.linalg.pattern import Pattern
from add.typing import FloatArray


def pattern_of(matrix: sp.sparray) -> tuple[Pattern, FloatArray]:
    """Return a pattern with the matrix's structure and its values."""
    coo = sp.coo_array(matrix)
    pattern = Pattern.build(coo.shape[0], [(coo.row, coo.col)])
    data = pattern.new_data()
    np.add.at(data, pattern.slots[0], coo.data)
    return pattern, data


def grid_cells(nx: int, ny: int, nz: int) -> np.ndarray:
    """Return the tetrahedra (ne, 4) of a box of nx ny nz nodes, six a cube."""
    nodes = np.arange(nx * ny * nz).reshape(nx, ny, nz)
    corner = [
        nodes[i : nx - 1 + i, j : ny - 1 + j, k : nz - 1 + k].ravel() for k in (0, 1) for j in (0, 1) for i in (0, 1)
    ]
    around = ((0, 1, 3, 7), (0, 1, 5, 7), (0, 2, 3, 7), (0, 2, 6, 7), (0, 4, 5, 7), (0, 4, 6, 7))
    return np.concatenate([np.stack([corner[i] for i in tet], axis=1) for tet in around])


def soft_body(shape: tuple[int, int, int], rng: np.random.Generator, unsymmetric: float = 0.1) -> sp.csc_array:
    """Return a matrix like J of a soft body: 3 x 3 blocks of a mesh, nodes numbered at random, a little indefinite."""
    count = int(np.prod(shape))
    cells = rng.permutation(count)[grid_cells(*shape)]
    dofs = (3 * cells[:, :, None] + np.arange(3)).reshape(-1, 12)
    half = rng.normal(size=(dofs.shape[0], 12, 12))
    local = half @ half.transpose(0, 2, 1) - 2.0 * np.eye(12) + unsymmetric * rng.normal(size=half.shape)
    rows, cols = np.repeat(dofs, 12, axis=1), np.tile(dofs, (1, 12))
    return sp.csc_array(sp.coo_array((local.ravel(), (rows.ravel(), cols.ravel())), shape=(3 * count, 3 * count)))


def random_blocks(n_nodes: int, rng: np.random.Generator, shift: float) -> sp.csc_array:
    """Return random 3 x 3 blocks of unsymmetric values on a random symmetric structure, ``shift`` on the diagonal."""
    links = 2 * n_nodes
    i, j = rng.integers(n_nodes, size=(2, links))
    i, j = np.concatenate([i, j, np.arange(n_nodes)]), np.concatenate([j, i, np.arange(n_nodes)])
    rows = (3 * i[:, None, None] + np.arange(3)[:, None]) + np.zeros((1, 1, 3), dtype=int)
    cols = (3 * j[:, None, None] + np.arange(3)[None, :]) + np.zeros((1, 3, 1), dtype=int)
    values = rng.normal(size=rows.shape)
    matrix = sp.coo_array((values.ravel(), (rows.ravel(), cols.ravel())), shape=(3 * n_nodes, 3 * n_nodes))
    return sp.csc_array(matrix + shift * sp.eye_array(3 * n_nodes))


def saddle_point(stiffness: sp.sparray, rows: sp.sparray) -> sp.csc_array:
    """Return [K, C^T; C, 0]."""
    return sp.csc_array(sp.block_array([[stiffness, rows.T], [rows, None]]))


def error(factorization, matrix: sp.sparray, b: FloatArray, transposed: bool) -> float:
    """Return the largest error of a solution relative to the largest number in numpy's."""
    dense = matrix.toarray().T if transposed else matrix.toarray()
    wanted = np.linalg.solve(dense, b)
    # One step of refinement for numpy too: it is otherwise the less exact of the two.
    wanted += np.linalg.solve(dense, b - dense @ wanted)
    x = factorization.solve_transposed(b) if transposed else factorization.solve(b)
    assert x.shape == b.shape
    return float(np.abs(x - wanted).max() / np.abs(wanted).max())
