"""Elasticity of all soft bodies of one element family and one law."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Term
from add.materials import ElementLoops, Material, element_loops
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class ElementBatch:
    """The elements of one family and one law over all bodies; a body is a group.

    Attributes
    ----------
    cells : (ne, nn) nodes of the system
    gradients : (ne, nq, nn, 3)
        Shape function gradients at the quadrature points [1/m].
    weights : (ne, nq)
        Rest volumes of the quadrature points [m^3].
    group : (ne,) body of each element
    mean_dilatation : (n_groups,) bool
    law : Material
    moduli : (n_groups, n_p)
        Indices in theta of the law's parameters.
    """

    cells: IntArray
    gradients: FloatArray
    weights: FloatArray
    group: IntArray
    mean_dilatation: BoolArray
    law: Material
    moduli: IntArray
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
        return self.mean_dilatation.size

    @property
    def loops(self) -> ElementLoops:
        """The compiled loops of the law."""
        return element_loops(self.law)

    def local(self, slots: IntArray) -> IntArray:
        """Return flat slots as (ne, 3 nn, 3 nn)."""
        k = 3 * self.cells.shape[1]
        return slots.reshape(-1, k, k)


@final
@dataclass(frozen=True)
class Elastic(Term):
    """r = dE/dq; see `add.materials` for the laws and `add.materials.elements` for the loops.

    Attributes
    ----------
    batch : ElementBatch
    """

    depends: ClassVar[str] = "q"

    batch: ElementBatch

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return dense element blocks."""
        return self.batch.pattern

    def _arguments(self):
        b = self.batch
        return b.cells, b.gradients, b.weights, b.group, b.mean_dilatation

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add dE/dq; NaN at the nodes of inverted elements."""
        self.batch.loops.residual(kin.q, *self._arguments(), theta[self.batch.moduli], out)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add weights.q d2E/dq2."""
        if weights.q:
            moduli = theta[self.batch.moduli]
            self.batch.loops.jacobian(kin.q, *self._arguments(), moduli, weights.q, data, self.batch.local(slots))

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the moduli."""
        moduli = self.batch.moduli
        np.add.at(out, moduli, self.batch.loops.parameter_vjp(kin.q, lam, *self._arguments(), theta[moduli]))

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the residual's tangent by those of the moduli."""
        moduli = self.batch.moduli
        self.batch.loops.parameter_jvp(kin.q, *self._arguments(), theta[moduli], theta_dot[moduli], out)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the strain energy [J]."""
        return float(self.batch.loops.energy(kin.q, *self._arguments(), theta[self.batch.moduli]))
