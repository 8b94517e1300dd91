"""The conditions under which a matrix is the inertia of a body."""

import numpy as np
from numpy.typing import ArrayLike

from add.errors import InputError
from add.typing import FloatArray

ROUND_OFF = 1e-9
"""Share of the largest entry by which symmetry and the triangle inequality may be missed [-]."""


def check_inertia(matrix: ArrayLike) -> FloatArray:
    """Check that some distribution of mass has this inertia about its centre of mass.

    I = sum m (x.x 1 - x x^T) is symmetric and positive definite, and its principal moments obey I1 + I2 >= I3, since
    I1 + I2 - I3 = 2 sum m x3^2; equality is a flat body.

    Parameters
    ----------
    matrix : (3, 3) [kg m^2], or [m^5] at unit density

    Returns
    -------
    (3, 3) its symmetric part

    Raises
    ------
    InputError
        with the eigenvalues, where that is missed by more than round-off (1e-9 of the largest).
    """
    inertia = np.asarray(matrix, dtype=np.float64)
    if inertia.shape != (3, 3) or not np.isfinite(inertia).all():
        raise InputError("not an inertia", found=inertia.tolist(), expected="3 x 3 finite numbers [kg m^2]")
    allowed = ROUND_OFF * float(np.abs(inertia).max())
    if (np.abs(inertia - inertia.T) > allowed).any():
        raise InputError("the inertia is not symmetric", found=inertia.tolist(), expected="Iyx = Ixy and so on")
    inertia = (inertia + inertia.T) / 2.0
    moments = np.linalg.eigvalsh(inertia)
    found = "principal moments " + ", ".join(f"{moment:.6g}" for moment in moments)
    if not moments[0] > allowed:
        raise InputError("the inertia is not positive definite", found=found, expected="three moments > 0 [kg m^2]")
    if moments[0] + moments[1] < moments[2] - allowed:
        raise InputError(
            "no body has this inertia: its largest principal moment exceeds the sum of the others",
            found=found,
            expected=f"the largest <= {moments[0] + moments[1]:.6g}",
        )
    return inertia
