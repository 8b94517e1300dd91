"""Inertia of soft bodies and of masses attached to them, with mass-proportional damping."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind
from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Term
from add.kernels.arena import FAMILY, FIELD, Floats2, Ints, unpacker
from add.kernels.caching import njit
from add.typing import FloatArray, IntArray


@njit(cache=True)
def nodal_inertia_residual(theta, rows, cols, mass, density, damping, v, a, out):
    """Add M (a + alpha v) to ``out`` (n,); see `Inertia` for the arrays."""
    for k in range(rows.size):
        alpha = theta[damping[k]] if damping[k] >= 0 else 0.0
        i, j = 3 * rows[k], 3 * cols[k]
        for d in range(3):
            out[i + d] += theta[density[k]] * mass[k, d] * (a[j + d] + alpha * v[j + d])


@njit(cache=True)
def nodal_inertia_jacobian(theta, mass, density, damping, weight_v, weight_a, data, slots):
    """Add weight_a M + weight_v alpha M to ``data[slots]``."""
    for k in range(density.size):
        alpha = theta[damping[k]] if damping[k] >= 0 else 0.0
        value = theta[density[k]] * (weight_a + weight_v * alpha)
        for d in range(3):
            data[slots[3 * k + d]] += value * mass[k, d]


@njit(cache=True)
def nodal_inertia_parameter_vjp(theta, rows, cols, mass, density, damping, v, a, lam, out):
    """Add lam^T dr/dtheta to ``out`` (n_theta,)."""
    for k in range(rows.size):
        alpha = theta[damping[k]] if damping[k] >= 0 else 0.0
        i, j = 3 * rows[k], 3 * cols[k]
        lam_a = lam_v = 0.0
        for d in range(3):
            lam_a += mass[k, d] * lam[i + d] * a[j + d]
            lam_v += mass[k, d] * lam[i + d] * v[j + d]
        out[density[k]] += lam_a + alpha * lam_v
        if damping[k] >= 0:
            out[damping[k]] += theta[density[k]] * lam_v


@njit(cache=True)
def _parameter_jvp(theta, theta_dot, rows, cols, mass, density, damping, v, a, out):
    for k in range(rows.size):
        alpha = alpha_dot = 0.0
        if damping[k] >= 0:
            alpha = theta[damping[k]]
            alpha_dot = theta_dot[damping[k]]
        i, j = 3 * rows[k], 3 * cols[k]
        for d in range(3):
            m = theta[density[k]] * mass[k, d]
            m_dot = theta_dot[density[k]] * mass[k, d]
            out[i + d] += m_dot * (a[j + d] + alpha * v[j + d]) + m * alpha_dot * v[j + d]


class _Arrays(NamedTuple):
    rows: Ints
    cols: Ints
    mass: Floats2
    density: Ints
    damping: Ints


_own = unpacker(_Arrays)


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    own = _own(arena, arena.families[k, FIELD])
    nodal_inertia_residual(at.theta, own.rows, own.cols, own.mass, own.density, own.damping, at.v, at.a, out)
    return rows


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if weight_v != 0.0 or weight_a != 0.0:
        own = _own(arena, arena.families[k, FIELD])
        nodal_inertia_jacobian(at.theta, own.mass, own.density, own.damping, weight_v, weight_a, data, slots)


@njit(**FAMILY)
def _parameters(arena, k, at, rows, lam, out):
    own = _own(arena, arena.families[k, FIELD])
    nodal_inertia_parameter_vjp(at.theta, own.rows, own.cols, own.mass, own.density, own.damping, at.v, at.a, lam, out)


KIND = Kind("inertia", _Arrays, _forces, _parameters, _jacobian)


@final
@dataclass(frozen=True)
class Inertia(Term):
    """r = M (a + alpha v), M = sum over node pairs of theta[density] * mass.

    A soft body contributes its mass matrix at unit density (consistent or lumped); a point mass on a weighted set of
    nodes contributes w_i w_j at unit mass, its "density" being the mass itself.

    Attributes
    ----------
    rows, cols : (k,)
        Nodes of the system.
    mass : (k, 3)
        Mass at unit density [m^3], or products of weights [-], along each axis: the three differ only for a mass that
        hangs on a string, which does not follow sideways.
    density : (k,)
        Index in theta of the density [kg/m^3] or mass [kg].
    damping : (k,)
        Index in theta of the mass-proportional damping alpha [1/s]; -1 for none.
    """

    depends: ClassVar[str] = "va"
    linear: ClassVar[str] = "va"

    rows: IntArray
    cols: IntArray
    mass: FloatArray
    density: IntArray
    damping: IntArray
    _pattern: tuple[IntArray, IntArray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        axes = np.arange(3)
        pattern = ((3 * self.rows[:, None] + axes).ravel(), (3 * self.cols[:, None] + axes).ravel())
        object.__setattr__(self, "_pattern", pattern)

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return three diagonal entries a node pair."""
        return self._pattern

    def family(self) -> Family:
        """See `Term.family`."""
        return Family(KIND, _Arrays(self.rows, self.cols, self.mass, self.density, self.damping), self._pattern)

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add M (a + alpha v)."""
        nodal_inertia_residual(theta, self.rows, self.cols, self.mass, self.density, self.damping, kin.v, kin.a, out)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add weights.a M + weights.v alpha M."""
        nodal_inertia_jacobian(theta, self.mass, self.density, self.damping, weights.v, weights.a, data, slots)

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of densities, masses and alphas."""
        nodal_inertia_parameter_vjp(
            theta, self.rows, self.cols, self.mass, self.density, self.damping, kin.v, kin.a, lam, out
        )

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        _parameter_jvp(theta, theta_dot, self.rows, self.cols, self.mass, self.density, self.damping, kin.v, kin.a, out)

    def kinetic_energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return v^T M v / 2 [J]."""
        r = np.zeros_like(kin.v)
        none = np.full_like(self.damping, -1)
        nodal_inertia_residual(theta, self.rows, self.cols, self.mass, self.density, none, kin.v, kin.v, r)
        return 0.5 * float(r @ kin.v)

    def momentum(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return the linear momentum (3,) [kg m/s]."""
        r = np.zeros_like(kin.v)
        none = np.full_like(self.damping, -1)
        nodal_inertia_residual(theta, self.rows, self.cols, self.mass, self.density, none, kin.v, kin.v, r)
        return r.reshape(-1, 3).sum(axis=0)
