"""Viscosity and stiffness-proportional damping of all soft bodies of one element family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Term
from add.kernels import viscous as kernel
from add.terms.elastic import ElementBatch
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Viscous(Term):
    """First Piola stress F (eta D + zeta <tr D> I), see `add.kernels.viscous`.

    eta = nu + 2 mu beta, zeta = lambda beta.

    Attributes
    ----------
    batch : ElementBatch
    mu, lam : (n_groups,)
        Indices in theta of the Lame constants [Pa].
    viscosity : (n_groups,)
        Indices of nu [Pa s] (Geilinger et al. 2020, Eq. 19).
    beta : (n_groups,)
        Indices of the stiffness-proportional damping [s].
    """

    depends: ClassVar[str] = "qv"
    linear: ClassVar[str] = "v"

    batch: ElementBatch
    mu: IntArray
    lam: IntArray
    viscosity: IntArray
    beta: IntArray

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return dense element blocks."""
        return self.batch.pattern

    def _geometry(self):
        b = self.batch
        return b.cells, b.gradients, b.weights, b.group, b.mean_dilatation

    def _moduli(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        beta = theta[self.beta]
        return theta[self.viscosity] + 2.0 * theta[self.mu] * beta, theta[self.lam] * beta

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the viscous forces' negatives."""
        kernel.viscous_residual(kin.q, kin.v, *self._geometry(), *self._moduli(theta), out)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives by q and v; unsymmetric in q."""
        if weights.q or weights.v:
            kernel.viscous_jacobian(
                kin.q,
                kin.v,
                *self._geometry(),
                *self._moduli(theta),
                weights.q,
                weights.v,
                data,
                self.batch.local(slots),
            )

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of nu, beta and the Lame constants."""
        bar = kernel.viscous_parameter_vjp(kin.q, kin.v, lam, *self._geometry(), self.batch.n_groups)
        beta = theta[self.beta]
        np.add.at(out, self.viscosity, bar[:, 0])
        np.add.at(out, self.beta, 2.0 * theta[self.mu] * bar[:, 0] + theta[self.lam] * bar[:, 1])
        np.add.at(out, self.mu, 2.0 * beta * bar[:, 0])
        np.add.at(out, self.lam, beta * bar[:, 1])

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the residual of the moduli's tangents."""
        beta, beta_dot = theta[self.beta], theta_dot[self.beta]
        eta_dot = theta_dot[self.viscosity] + 2.0 * (theta_dot[self.mu] * beta + theta[self.mu] * beta_dot)
        zeta_dot = theta_dot[self.lam] * beta + theta[self.lam] * beta_dot
        kernel.viscous_residual(kin.q, kin.v, *self._geometry(), eta_dot, zeta_dot, out)
