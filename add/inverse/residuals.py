"""Residuals of an inverse problem at a point, and their Jacobian."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from add.simulation.run import Trajectory
from add.typing import FloatArray


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
