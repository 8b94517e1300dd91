"""Residuals of an inverse problem at a point, their Jacobian, and their normal equations.

The normal equations are those of Gauss-Newton, J^T J s = -J^T rho with damping, whole or by their structure in time.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from add.simulation.run import Trajectory
from add.typing import BoolArray, FloatArray


@final
@dataclass(frozen=True)
class Residuals:
    """rho with phi = rho . rho, and the runs that it was found on.

    Attributes
    ----------
    x : (n,)
    rho : (m,)
        Those of the runs first, then those of the parameters alone.
    runs : experiment name -> Trajectory
    window : (start, stop) or None
    of_runs : int
        How many are those of the runs.
    """

    x: FloatArray
    rho: FloatArray
    runs: Mapping[str, Trajectory]
    window: tuple[float, float] | None
    of_runs: int = 0

    @property
    def value(self) -> float:
        """The objective."""
        return float(self.rho @ self.rho)


@final
@dataclass(frozen=True)
class Jacobian:
    """d rho / dx: the rows of the runs are dense, those of the parameters alone sparse.

    Attributes
    ----------
    dense : (m_1, n)
    sparse : (m_2, n)
    """

    dense: FloatArray
    sparse: sp.csr_array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.dense.shape[0] + self.sparse.shape[0], self.dense.shape[1]

    def array(self) -> FloatArray:
        """Return the whole matrix."""
        return np.concatenate([self.dense, self.sparse.toarray()])

    def product(self, x_dot: FloatArray) -> FloatArray:
        """Return J x_dot."""
        return np.concatenate([self.dense @ x_dot, self.sparse @ x_dot])

    def transposed(self, rho_bar: FloatArray) -> FloatArray:
        """Return J^T rho_bar."""
        m = self.dense.shape[0]
        return self.dense.T @ rho_bar[:m] + self.sparse.T @ rho_bar[m:]

    def normal(self) -> FloatArray:
        """Return J^T J (n, n)."""
        # The rank-k update does half the work of the product and leaves one triangle.
        upper = scipy.linalg.blas.dsyrk(1.0, self.dense.T) if self.dense.size else np.zeros((self.shape[1],) * 2)
        out = np.triu(upper) + np.triu(upper, 1).T
        entries = (self.sparse.T @ self.sparse).tocoo()
        np.add.at(out, (entries.row, entries.col), entries.data)
        return out


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
