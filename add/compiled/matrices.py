"""The matrices of a small system's equations at one state, in one compiled call."""

from __future__ import annotations

import numpy as np

from add.compiled.arrays import Instant, unpacked
from add.compiled.equations import new_lifted
from add.compiled.families import Choices
from add.compiled.routines import call_matrices, call_parameters, call_residual
from add.kernels.caching import njit


@njit(cache=True, error_model="numpy", nogil=True)
def state_matrices(arrays, routines, t, kin, theta, signals, choices, with_theta):
    """Return the transposed of dr/dq, dr/dv and dr/da (3, n, n); ``with_theta`` dr/dtheta (n, n_theta), too.

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
    out, over_rows = np.empty((3, n * n)), np.empty((3, rows * rows))
    call_matrices(routines.matrices, (arrays, at, lifted, choices, over_rows, out))
    wanted, unit = n if with_theta else 0, np.zeros(n)
    by_theta = np.zeros((wanted, theta.size if with_theta else 0))
    for i in range(wanted):
        unit[i] = 1.0
        call_parameters(routines.parameters, (arrays, at, lifted, choices, over_rows, unit, by_theta[i]))
        unit[i] = 0.0
    return out.reshape((3, n, n)), by_theta
