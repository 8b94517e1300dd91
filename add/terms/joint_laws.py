"""Forces on single coordinates of trees: springs, damping, dry friction, limits."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics
from add.kernels import joint_laws as kernel
from add.terms.lengths import AxisLaw
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class JointSprings(AxisLaw):
    """r = k (q - rest) on every coordinate.

    Attributes
    ----------
    dof : (m,) coordinates, each once
    stiffness, rest : (m,)
        Indices in theta of k [N/m, N m/rad] and rest [m, rad].
    """

    depends: ClassVar[str] = "q"
    code: ClassVar[int] = kernel.SPRING

    dof: IntArray
    stiffness: IntArray
    rest: IntArray

    @property
    def numbers(self) -> IntArray:
        """Indices of k and rest."""
        return np.stack([self.stiffness, self.rest], axis=1)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return k/2 (q - rest)^2 [J]."""
        return float(0.5 * theta[self.stiffness] @ (kin.q[self.dof] - theta[self.rest]) ** 2)


@final
@dataclass(frozen=True)
class JointResistance(AxisLaw):
    """r = d v + tau tanh(v / v_s) on every coordinate: damping, and dry friction without a jump.

    Attributes
    ----------
    dof : (m,) coordinates, each once
    damping, friction, slip : (m,)
        Indices in theta of d [N s/m, N m s/rad], tau [N, N m], v_s [m/s, rad/s].
    """

    depends: ClassVar[str] = "v"
    code: ClassVar[int] = kernel.RESISTANCE

    dof: IntArray
    damping: IntArray
    friction: IntArray
    slip: IntArray

    @property
    def numbers(self) -> IntArray:
        """Indices of d, tau and v_s."""
        return np.stack([self.damping, self.friction, self.slip], axis=1)


@final
@dataclass(frozen=True)
class JointLimits(AxisLaw):
    """r = k (s(q - upper) - s(lower - q)) + d v s' beyond the limits of coordinates.

    s(e) = 0 for e < 0, e^2 / (2 delta) for e < delta, e - delta / 2 beyond: force and damping begin without a jump.

    Attributes
    ----------
    dof : (m,) coordinates
    lower, upper, stiffness, damping : (m,)
        Indices in theta [m, rad], [N/m, N m/rad], [N s/m, N m s/rad].
    onset : (m,) delta [m, rad]
    hard : bool
        Whether a stepper with hard contact is to take its place by stops that give not at all.
    """

    code: ClassVar[int] = kernel.LIMIT

    dof: IntArray
    lower: IntArray
    upper: IntArray
    stiffness: IntArray
    damping: IntArray
    onset: FloatArray
    hard: bool = False

    @property
    def numbers(self) -> IntArray:
        """Indices of both limits, stiffness and damping."""
        return np.stack([self.lower, self.upper, self.stiffness, self.damping], axis=1)

    @property
    def constants(self) -> FloatArray:
        """Onsets."""
        return self.onset

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy of the stops [J]; hard ones store none."""
        out = 0.0
        if self.hard:
            return out
        for sign, limit in ((1.0, self.upper), (-1.0, self.lower)):
            e, d = sign * (kin.q[self.dof] - theta[limit]), self.onset
            outer = 0.5 * (e - 0.5 * d) ** 2 + d * d / 24.0
            out += float(theta[self.stiffness] @ np.where(e >= d, outer, np.where(e > 0.0, e**3 / (6.0 * d), 0.0)))
        return out
