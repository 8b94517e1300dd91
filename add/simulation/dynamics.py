"""The equations of motion at one state as matrices: mass, bias, and their derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from add.equations.kinematics import Kinematics, Weights
from add.equations.system import System
from add.equations.term import UNIT
from add.errors import InputError
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class Dynamics:
    """r(q, v, a) = M a + bias with all forces in it, those of contact on the branch that holds at the state.

    Attributes
    ----------
    mass : (n, n)
        M = dr/da.
    bias : (n,)
        r at a = 0: Coriolis and centrifugal forces less all others; M a = -bias is the motion.
    residual : (n,)
        r at the accelerations asked for: the forces that would have to act along the coordinates (inverse dynamics).
    by_coordinates, by_velocities : (n, n)
        dr/dq and dr/dv there.
    rows : (m, n)
        G = dc/dq of the equations c(q) = 0 that close loops or hold points; none: (0, n). Where there are any,
        M a + bias + G^T mu = 0 is the motion, and residual and derivatives are without G^T mu.
    """

    mass: FloatArray
    bias: FloatArray
    residual: FloatArray
    by_coordinates: FloatArray
    by_velocities: FloatArray
    rows: FloatArray

    @classmethod
    def of(
        cls,
        system: System,
        usual: FloatArray,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike | None = None,
        *,
        t: float = 0.0,
        theta: FloatArray | None = None,
    ) -> Dynamics:
        """Return the equations at a state.

        Parameters
        ----------
        system : System
        usual : (n_theta,) theta where no other is given
        q, v : (n,)
            Coordinates and velocities.
        a : (n,), optional
            Accelerations at which residual and derivatives are wanted; default 0.
        t : float
            Time that signals are read at [s].
        theta : (n_theta,), optional

        Raises
        ------
        InputError
            If a shape does not fit.
        """
        n, theta = system.n, usual if theta is None else np.asarray(theta, dtype=float)
        arrays = [np.asarray(np.zeros(n) if x is None else x, dtype=float) for x in (q, v, a)]
        for name, array in zip("qva", arrays, strict=True):
            if array.shape != (n,):
                raise InputError(f"another shape of '{name}'", found=str(array.shape), expected=f"({n},)")
        kin, none = Kinematics(arrays[0], arrays[1], arrays[2], t, 0), np.zeros(system.n_multipliers)
        residual, _, branch = system.residual(kin, none, theta)
        bias, _ = branch.residual(Kinematics(kin.q, kin.v, np.zeros(n), t, 0), none, theta)
        found = {name: np.zeros((n, n)) for name, _ in UNIT}
        for term in branch.terms:
            rows, cols = term.pattern()
            for name, weights in UNIT:
                if name in term.depends:
                    values = np.zeros(rows.size)
                    term.jacobian(kin, theta, weights, values, np.arange(rows.size))
                    np.add.at(found[name], (rows, cols), values)
        closing = np.zeros((n + system.n_multipliers, n + system.n_multipliers))
        for constraint, part in system.parts:
            rows, cols = constraint.pattern(n + part.start)
            values = np.zeros(rows.size)
            constraint.jacobian(kin, none[part], theta, Weights(1.0, 0.0, 0.0), values, np.arange(rows.size))
            np.add.at(closing, (rows, cols), values)
        return cls(found["a"], bias, residual, found["q"], found["v"], closing[n:, :n])
