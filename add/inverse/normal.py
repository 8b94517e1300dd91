"""The normal equations of Gauss-Newton, J^T J s = -J^T rho with damping: whole, or by their structure in time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np
import scipy.linalg

from add.inverse.residuals import Jacobian
from add.typing import BoolArray, FloatArray


class NormalEquations(ABC):
    """N = J^T J and J^T rho at a point, for n numbers.

    Attributes
    ----------
    slope : (n,)
        J^T rho.
    largest : float
        Largest diagonal entry of N.
    backward : bool
        Whether a sweep backward through the run made them.
    """

    slope: FloatArray
    largest: float
    backward: bool

    @abstractmethod
    def product(self, step: FloatArray) -> FloatArray:
        """Return N step (n,)."""

    @abstractmethod
    def solve(self, free: BoolArray, damping: float, b: FloatArray) -> FloatArray | None:
        """Return s (n,), zero where not ``free``, with N s + damping s = b in the free rows.

        None where round-off leaves the matrix without a Cholesky factor.
        """


@final
class WholeNormal(NormalEquations):
    """N as a matrix.

    Parameters
    ----------
    jacobian : Jacobian
    slope : (n,)
    backward : bool
    """

    def __init__(self, jacobian: Jacobian, slope: FloatArray, *, backward: bool = False) -> None:
        self.slope, self.matrix, self.backward = slope, jacobian.normal(), backward
        self.largest = float(self.matrix.diagonal().max(initial=0.0))

    def product(self, step: FloatArray) -> FloatArray:
        """Return N step."""
        return np.asarray(self.matrix @ step)

    def solve(self, free: BoolArray, damping: float, b: FloatArray) -> FloatArray | None:
        """Solve by one Cholesky factor; see `NormalEquations.solve`."""
        matrix, out = self.matrix[np.ix_(free, free)], np.zeros_like(b)
        matrix[np.diag_indices_from(matrix)] += damping
        try:
            factor = scipy.linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            return None
        out[free] = scipy.linalg.cho_solve(factor, b[free])
        return out
