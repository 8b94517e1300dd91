"""Neo-Hookean elasticity of all soft bodies of one element family."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Term
from add.kernels import elastic as kernel
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class ElementBatch:
    """The elements of one family over all bodies; a body is a group.

    Attributes
    ----------
    cells : (ne, nn) nodes of the system
    gradients : (ne, nq, nn, 3)
        Shape function gradients at the quadrature points [1/m].
    weights : (ne, nq)
        Rest volumes of the quadrature points [m^3].
    group : (ne,) body of each element
    form : (n_groups,)
        Volumetric form: 0 (ln J)^2, 1 Ciarlet; see `add.kernels.elastic`.
    mean_dilatation : (n_groups,) bool
    """

    cells: IntArray
    gradients: FloatArray
    weights: FloatArray
    group: IntArray
    form: IntArray
    mean_dilatation: BoolArray
    pattern: tuple[IntArray, IntArray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        dofs = (3 * self.cells[:, :, None] + np.arange(3)).reshape(self.cells.shape[0], -1)
        shape = (dofs.shape[0], dofs.shape[1], dofs.shape[1])
        rows = np.ascontiguousarray(np.broadcast_to(dofs[:, :, None], shape)).ravel()
        cols = np.ascontiguousarray(np.broadcast_to(dofs[:, None, :], shape)).ravel()
        object.__setattr__(self, "pattern", (rows, cols))

    @property
    def n_groups(self) -> int:
        """Number of bodies."""
        return self.form.size

    def local(self, slots: IntArray) -> IntArray:
        """Return flat slots as (ne, 3 nn, 3 nn)."""
        k = 3 * self.cells.shape[1]
        return slots.reshape(-1, k, k)


@final
@dataclass(frozen=True)
class Elastic(Term):
    """r = dE/dq; the energy and its two derivatives stand in `add.kernels.elastic`.

    Attributes
    ----------
    batch : ElementBatch
    mu, lam : (n_groups,)
        Indices in theta of the Lame constants [Pa].
    """

    depends: ClassVar[str] = "q"

    batch: ElementBatch
    mu: IntArray
    lam: IntArray

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return dense element blocks."""
        return self.batch.pattern

    def _arguments(self):
        b = self.batch
        return b.cells, b.gradients, b.weights, b.group, b.form, b.mean_dilatation

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add dE/dq; NaN at the nodes of inverted elements."""
        kernel.elastic_residual(kin.q, *self._arguments(), theta[self.mu], theta[self.lam], out)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add weights.q d2E/dq2."""
        if weights.q:
            kernel.elastic_jacobian(
                kin.q,
                *self._arguments(),
                theta[self.mu],
                theta[self.lam],
                weights.q,
                data,
                self.batch.local(slots),
            )

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the Lame constants, in which r is linear."""
        bar = kernel.elastic_parameter_vjp(kin.q, lam, *self._arguments(), self.batch.n_groups)
        np.add.at(out, self.mu, bar[:, 0])
        np.add.at(out, self.lam, bar[:, 1])

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the residual of the Lame constants' tangents."""
        kernel.elastic_residual(kin.q, *self._arguments(), theta_dot[self.mu], theta_dot[self.lam], out)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the strain energy [J]."""
        return float(kernel.elastic_energy(kin.q, *self._arguments(), theta[self.mu], theta[self.lam]))
