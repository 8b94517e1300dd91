"""The three matrices of a small system's equations at one state, in one compiled call."""

from __future__ import annotations

import numpy as np

from add.compiled.arrays import Instant, unpacked
from add.compiled.equations import jacobian
from add.kernels.caching import njit


@njit(cache=True, error_model="numpy", nogil=True)
def state_matrices(arrays, t, kin, theta, signals, choices, out):
    """Fill ``out`` (3, n, n) with the transposed of dr/dq, dr/dv and dr/da.

    ``arrays`` is a `PackedFamilies`, ``kin`` q, v and a (n,) each, ``signals`` those of the instant.
    """
    families = unpacked(arrays.ints, arrays.floats, arrays.places)
    at = Instant(t, kin[0], kin[1], kin[2], theta, signals)
    for k in range(3):
        weights = np.zeros(3)
        weights[k] = 1.0
        jacobian(families, at, choices, weights[0], weights[1], weights[2], out[k].ravel())
    return out
