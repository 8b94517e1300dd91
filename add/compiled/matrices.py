"""The three matrices of a small system's equations at one state, in one compiled call."""

from __future__ import annotations

import numpy as np

from add.compiled.arrays import Instant, unpacked
from add.compiled.equations import new_lifted
from add.compiled.families import Choices
from add.compiled.routines import call_matrices, call_residual
from add.kernels.caching import njit


@njit(cache=True, error_model="numpy", nogil=True)
def state_matrices(arrays, routines, t, kin, theta, signals, choices):
    """Return the transposed of dr/dq, dr/dv and dr/da (3, n, n).

    ``arrays`` is a `PackedFamilies`, ``kin`` q, v and a (n,) each, ``signals`` those of the instant.
    """
    families = unpacked(arrays.ints, arrays.floats, arrays.places)
    q, v, a = kin
    at, lifted = Instant(t, q, v, a, theta, signals), new_lifted(families)
    n, rows = q.size, 0
    if families.links.sizes.size:
        rows = families.links.sizes[0]
        held = Choices(choices.bodies, choices.nodes, choices.codes.copy())
        call_residual(routines.residual, (arrays, at, lifted, True, held, 0, np.empty(n)))
    out = np.empty((3, n * n))
    call_matrices(routines.matrices, (arrays, at, lifted, choices, np.empty((3, rows * rows)), out))
    return out.reshape((3, n, n))
