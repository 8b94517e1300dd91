"""Viscosity and stiffness-proportional damping of all soft bodies of one element family and one law."""

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

    eta = nu + 2 mu beta, zeta = lambda beta, with the Lame constants mu and lambda of the law at rest.

    Attributes
    ----------
    batch : ElementBatch
    viscosity : (n_groups,)
        Indices in theta of nu [Pa s] (Geilinger et al. 2020, Eq. 19).
    beta : (n_groups,)
        Indices of the stiffness-proportional damping [s].
    """

    depends: ClassVar[str] = "qv"
    linear: ClassVar[str] = "v"

    batch: ElementBatch
    viscosity: IntArray
    beta: IntArray

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return dense element blocks."""
        return self.batch.pattern

    def _geometry(self):
        b = self.batch
        return b.cells, b.gradients, b.weights, b.group, b.mean_dilatation

    def _linear(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return 2 mu and lambda (n_groups, 2), and their slopes by the moduli (n_groups, 2, n_p)."""
        lame, slopes = self.batch.loops.linear_moduli(theta[self.batch.moduli])
        factor = np.array([2.0, 1.0])
        return factor * lame, factor[:, None] * slopes

    def _viscosities(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = theta[self.beta][:, None] * self._linear(theta)[0]
        return theta[self.viscosity] + values[:, 0], values[:, 1]

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the viscous forces' negatives."""
        kernel.viscous_residual(kin.q, kin.v, *self._geometry(), *self._viscosities(theta), out)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives by q and v; unsymmetric in q."""
        if weights.q or weights.v:
            kernel.viscous_jacobian(
                kin.q,
                kin.v,
                *self._geometry(),
                *self._viscosities(theta),
                weights.q,
                weights.v,
                data,
                self.batch.local(slots),
            )

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of nu, beta and the moduli."""
        bar = kernel.viscous_parameter_vjp(kin.q, kin.v, lam, *self._geometry(), self.batch.n_groups)
        values, slopes = self._linear(theta)
        np.add.at(out, self.viscosity, bar[:, 0])
        np.add.at(out, self.beta, np.einsum("gi,gi->g", values, bar))
        np.add.at(out, self.batch.moduli, np.einsum("g,gip,gi->gp", theta[self.beta], slopes, bar))

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the residual of the viscosities' tangents."""
        values, slopes = self._linear(theta)
        by_moduli = np.einsum("gip,gp->gi", slopes, theta_dot[self.batch.moduli])
        dots = theta_dot[self.beta][:, None] * values + theta[self.beta][:, None] * by_moduli
        kernel.viscous_residual(
            kin.q, kin.v, *self._geometry(), theta_dot[self.viscosity] + dots[:, 0], dots[:, 1], out
        )
