"""Losses of residuals, and penalties on parameters: what picks one control out of the many that do the same."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import scipy.sparse as sp

from add.equations.kinematics import Columns, Directions, State, StateTangent, StateTangents
from add.objectives.base import LeastSquares
from add.typing import FloatArray, IntArray

# --- Robust losses: samples that are far off, such as swapped markers, count less than their square -------------------


@dataclass(frozen=True)
class Loss(ABC):
    """rho(s^2) of a distance s, which is s^2 for s << k (Triggs et al. 2000, appendix; Huber 1964).

    Attributes
    ----------
    scale : float
        k, the distance from which on a sample counts less [m].
    scores : bool
        Bend vectors to their scores psi = rho' d, half the slope of rho, and not to residuals.
    """

    scale: float
    scores: bool = False

    @abstractmethod
    def value(self, squared: FloatArray) -> FloatArray:
        """Return rho(s^2) [m^2]."""

    @abstractmethod
    def slope(self, squared: FloatArray) -> FloatArray:
        """Return d rho / d s^2, in (0, 1] [-]."""

    @abstractmethod
    def curvature(self, squared: FloatArray) -> FloatArray:
        """Return d^2 rho / d (s^2)^2, at most zero [1/m^2]."""


@final
@dataclass(frozen=True)
class Huber(Loss):
    """s^2 up to k, 2 k s - k^2 beyond: as a sum of distances far off."""

    def value(self, squared: FloatArray) -> FloatArray:
        k = self.scale
        return np.where(squared <= k * k, squared, 2.0 * k * np.sqrt(squared) - k * k)

    def slope(self, squared: FloatArray) -> FloatArray:
        return np.minimum(1.0, self.scale / np.sqrt(np.maximum(squared, np.finfo(float).tiny)))

    def curvature(self, squared: FloatArray) -> FloatArray:
        far = np.maximum(squared, self.scale**2)
        return np.where(squared > self.scale**2, -0.5 * self.scale / far**1.5, 0.0)


@final
@dataclass(frozen=True)
class SoftL1(Loss):
    """2 k^2 (sqrt(1 + s^2 / k^2) - 1): Huber's without its corner in the second derivative."""

    def value(self, squared: FloatArray) -> FloatArray:
        ratio = squared / self.scale**2
        return 2.0 * squared / (np.sqrt(1.0 + ratio) + 1.0)

    def slope(self, squared: FloatArray) -> FloatArray:
        return 1.0 / np.sqrt(1.0 + squared / self.scale**2)

    def curvature(self, squared: FloatArray) -> FloatArray:
        return -0.5 * self.slope(squared) ** 3 / self.scale**2


@final
@dataclass(frozen=True)
class Cauchy(Loss):
    """k^2 ln(1 + s^2 / k^2): a sample that is far off hardly pulls at all, and there may be several minima."""

    def value(self, squared: FloatArray) -> FloatArray:
        return self.scale**2 * np.log1p(squared / self.scale**2)

    def slope(self, squared: FloatArray) -> FloatArray:
        return 1.0 / (1.0 + squared / self.scale**2)

    def curvature(self, squared: FloatArray) -> FloatArray:
        return -(self.slope(squared) ** 2) / self.scale**2


def _root(loss: Loss, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return g(s^2) = sqrt(rho / s^2) and dg / d s^2 of vectors d (n, k); 1 and 0 at the origin. Of scores g = rho'."""
    squared = (d * d).sum(axis=1)
    if loss.scores:
        return loss.slope(squared), loss.curvature(squared)
    safe = np.where(squared > 0.0, squared, 1.0)
    g = np.where(squared > 0.0, np.sqrt(loss.value(squared) / safe), 1.0)
    # Differences of nearly equal numbers: below 1e-6 of the scale the vectors that multiply this are smaller still.
    far = squared > 1e-12 * loss.scale**2
    return g, np.where(far, (loss.slope(squared) - g * g) / (2.0 * g * safe), 0.0)


def bend(loss: Loss, d: FloatArray) -> FloatArray:
    """Return residuals r = g d (n, k), of which r . r = rho(|d|^2), or scores."""
    return _root(loss, d)[0][:, None] * d


def bending(loss: Loss, d: FloatArray) -> FloatArray:
    """Return d r / d d = g I + 2 (dg / d s^2) d d^T, (n, k, k)."""
    g, slope = _root(loss, d)
    return g[:, None, None] * np.eye(d.shape[1]) + 2.0 * slope[:, None, None] * d[:, :, None] * d[:, None, :]


# ----------------------------------------------------------------------------------------------------------------------


class Regulariser(LeastSquares):
    """phi = |rho(theta)|^2, whatever the motion."""

    @abstractmethod
    def parameter_residuals(self, theta: FloatArray) -> FloatArray:
        """Return rho (r,)."""

    @abstractmethod
    def parameter_residual_jacobian(self, theta: FloatArray) -> sp.csr_array:
        """Return d rho / d theta (r, n_theta)."""

    @final
    def parameter_value(self, theta: FloatArray) -> float:
        """Return |rho|^2."""
        rho = self.parameter_residuals(theta)
        return float(rho @ rho)

    @final
    def parameter_gradient(self, theta: FloatArray, theta_bar: FloatArray) -> None:
        """Add 2 (d rho / d theta)^T rho."""
        theta_bar += 2.0 * (self.parameter_residual_jacobian(theta).T @ self.parameter_residuals(theta))

    @final
    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add nothing."""

    @final
    def steps(self, theta: FloatArray) -> IntArray:
        """Return nothing."""
        return np.zeros(0, dtype=np.int64)

    #: No state counts.
    looks: ClassVar[bool] = False

    @final
    def step_residuals(self, state: State, theta: FloatArray) -> FloatArray:
        """Return nothing."""
        return np.zeros(0)

    @final
    def step_residual_tangents(
        self, state: State, theta: FloatArray, tangents: StateTangents, directions: Directions
    ) -> Columns:
        """Return nothing."""
        return Columns.none()


@final
@dataclass(frozen=True)
class Smoothness(Regulariser):
    """phi = sum_i |p_{i+1} - p_i|^2 over the rows of a table.

    Attributes
    ----------
    table : (n_rows, ...)
        Indices in theta.
    """

    table: IntArray

    def parameter_residuals(self, theta: FloatArray) -> FloatArray:
        """Return the differences of neighbouring rows."""
        return np.diff(theta[self.table], axis=0).ravel()

    def parameter_residual_jacobian(self, theta: FloatArray) -> sp.csr_array:
        """Return -1 and 1 in each row."""
        before, after = self.table[:-1].ravel(), self.table[1:].ravel()
        rows, ones = np.arange(before.size), np.ones(before.size)
        entries = np.concatenate([-ones, ones]), (np.concatenate([rows, rows]), np.concatenate([before, after]))
        return sp.csr_array(entries, shape=(before.size, theta.size))


@final
@dataclass(frozen=True)
class Roughness(Regulariser):
    """The variation of a field of positive numbers between neighbouring elements, by u = ln p.

    phi = sum_f w_f (u_a - u_b)^2, or phi = sum_f w_f (sqrt((u_a - u_b)^2 + s^2) - s), the total variation, which lets
    a field jump (Rudin, Osher & Fatemi 1992): rho_f = sqrt(w_f) d / sqrt(sqrt(d^2 + s^2) + s) with d = u_a - u_b.

    Attributes
    ----------
    pairs : (n_f, 2)
        Places in theta of the numbers of two neighbours.
    weights : (n_f,)
    softness : float
        s; none for squares.
    """

    pairs: IntArray
    weights: FloatArray
    softness: float | None = None

    def _rows(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rho and its slope by d."""
        one, other = np.log(theta[self.pairs]).T
        d, roots = one - other, np.sqrt(self.weights)
        if self.softness is None:
            return roots * d, roots
        length = np.sqrt(d * d + self.softness**2)
        root = np.sqrt(length + self.softness)
        return roots * d / root, roots * (1.0 / root - d * d / (2.0 * length * root**3))

    def parameter_residuals(self, theta: FloatArray) -> FloatArray:
        """Return one number for each pair."""
        return self._rows(theta)[0]

    def parameter_residual_jacobian(self, theta: FloatArray) -> sp.csr_array:
        """Return two entries in each row."""
        slopes = self._rows(theta)[1][:, None] * np.array([1.0, -1.0]) / theta[self.pairs]
        rows = np.repeat(np.arange(len(self.pairs)), 2)
        return sp.csr_array((slopes.ravel(), (rows, self.pairs.ravel())), shape=(len(self.pairs), theta.size))


@final
@dataclass(frozen=True)
class Proximity(Regulariser):
    """phi = sum_i |p_i - p0_i|^2 over the rows of a table.

    Attributes
    ----------
    table : (n_rows, ...)
        Indices in theta.
    centre : broadcastable to (n_rows, ...)
        p0, in the unit of p.
    """

    table: IntArray
    centre: FloatArray

    def parameter_residuals(self, theta: FloatArray) -> FloatArray:
        """Return p - p0."""
        return (theta[self.table] - self.centre).ravel()

    def parameter_residual_jacobian(self, theta: FloatArray) -> sp.csr_array:
        """Return 1 in each row."""
        entries = np.ones(self.table.size), (np.arange(self.table.size), self.table.ravel())
        return sp.csr_array(entries, shape=(self.table.size, theta.size))
