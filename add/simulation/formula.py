"""Backward differentiation formulas: the equations of a step from the states behind it, and the state after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import final

import numpy as np

from add.compiled.steps import Timing
from add.equations import charts
from add.equations.kinematics import State
from add.equations.system import System
from add.simulation.derivative import Solution
from add.simulation.stepper import Record
from add.solve.step_equations import StepEquations
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray

_COEFFICIENTS = {1: (1.0, (1.0,)), 2: (2.0 / 3.0, (4.0 / 3.0, -1.0 / 3.0))}


def _pair(newest: FloatArray, last: FloatArray) -> FloatArray:
    """Return both (2, n); the general function takes longer than a small system's kernels."""
    return np.concatenate([newest, last]).reshape(2, -1)


class StartUp(Enum):
    """Ways in which BDF2 begins."""

    BDF1 = "one BDF1 step (order 2)"
    STRAIGHT_LINE = "history q - dt v, v (order 1; the scenes of Geilinger et al. 2020)"


@final
@dataclass(frozen=True)
class BDFFormula:
    """v = c (q - sum alpha_k q_k), a = c (v - sum alpha_k v_k), c = 1/(beta dt).

    BDF1: beta = 1, alpha = (1).  BDF2: beta = 2/3, alpha = (4/3, -1/3).

    Attributes
    ----------
    dt : float
        Step [s].
    order : int
        1 or 2.
    start_up : StartUp
        Only BDF2 asks.
    """

    dt: float
    order: int
    start_up: StartUp
    _numbers: tuple[FloatArray, FloatArray, FloatArray] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows = [(c, alpha[0], sum(alpha[1:])) for c, alpha in map(self.coefficients, (0, 1))]
        object.__setattr__(self, "_numbers", tuple(np.array(column, dtype=float) for column in zip(*rows, strict=True)))

    def coefficients(self, step: int) -> tuple[float, tuple[float, ...]]:
        """Return c and alpha of the step that follows state number ``step``."""
        first = step == 0 and self.start_up is StartUp.BDF1
        beta, alpha = _COEFFICIENTS[1 if first else self.order]
        return 1.0 / (beta * self.dt), alpha

    def timing(self, step: int) -> Timing:
        """Return the steps that follow state number ``step`` as compiled steps take them."""
        return Timing(self.dt, step, *self._numbers)

    def equations(self, assembler: Assembler, state: State, theta: FloatArray) -> StepEquations:
        """Return the equations of the step that follows ``state``."""
        c, alpha = self.coefficients(state.step)
        q_star = sum(a * q for a, q in zip(alpha, state.q, strict=False))
        v_star = sum(a * v for a, v in zip(alpha, state.v, strict=False))
        # Not state.t + dt: a million additions drift.
        t = (state.step + 1) * self.dt
        u_prescribed = assembler.prescribed(t, theta) - q_star[assembler.system.partition.prescribed]
        return StepEquations(q_star, v_star, c, t, state.step + 1, u_prescribed, self.dt)

    def guesses(self, state: State, equations: StepEquations) -> list[FloatArray]:
        """Return first guesses of u: the acceleration of the last step goes on; none; the body stops."""
        c, a_last = equations.c, (state.v[0] - state.v[1]) / self.dt
        return [equations.v_star / c + a_last / c**2, state.v[0] / c, state.q[0] - equations.q_star]

    def finish(
        self, system: System, state: State, solution: Solution, changed: IntArray | None = None
    ) -> tuple[State, Record]:
        """Return the state after a solved step, and its record.

        Parameters
        ----------
        state : before the step
        changed : first coordinates of the rotation vectors that change chart, of a replay; default: those beyond pi
        """
        return finished(system, state, solution, self.coefficients(state.step)[1], changed)


def finished(
    system: System, state: State, solution: Solution, alpha: tuple[float, ...], changed: IntArray | None = None
) -> tuple[State, Record]:
    """Return the state after a solved step with these history coefficients, and its record; see `BDFFormula.finish`."""
    kin = solution.kin
    following = State(kin.t, kin.step, _pair(kin.q, state.q[0]), _pair(kin.v, state.v[0]), solution.carry)
    changed = charts.beyond(kin.q, system.rotations) if changed is None else changed
    if not changed.size:
        return following, Record(solution, alpha)
    return charts.change(following, changed), Record(solution, alpha, changed, following)
