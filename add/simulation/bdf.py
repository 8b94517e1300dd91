"""Steps by backward differentiation, order one and two, with their exact derivatives."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from add.compiled.newton import Criteria, Formula
from add.compiled.run import CompiledRun
from add.equations import charts
from add.equations.kinematics import State, StateTangent
from add.equations.tangents import Directions, StateTangents
from add.simulation.formula import BDFFormula, StartUp
from add.simulation.implicit_solve import Linearised, NewtonSolve, Solution
from add.simulation.stepper import NO_CHARTS, DifferentiableStepper, Record
from add.solve.step_equations import NewtonOptions, NewtonReport, Status
from add.solve.step_matrix import Assembler
from add.typing import FloatArray

#: Compiled steps have none.
_NO_MULTIPLIERS: FloatArray = np.zeros(0)


@final
@dataclass(frozen=True)
class BDF(DifferentiableStepper):
    """Backward differentiation (see `BDFFormula`), each step solved by Newton's method.

    The derivative of a step: with J = dr/dq + c dr/dv + c^2 dr/da and lambda from J^T lambda = q_bar + c v_bar,

        q_bar_k += c alpha_k (dr/dv^T lambda + c dr/da^T lambda - v_bar),   v_bar_k += c alpha_k dr/da^T lambda,
        theta_bar -= dr/dtheta^T lambda.

    Attributes
    ----------
    step_size : float
        dt [s].
    bdf_order : int
        1 or 2.
    start_up : StartUp
        Only BDF2 asks.
    newton : NewtonOptions
    formula, implicit : BDFFormula, NewtonSolve
        The equations of a step, and how they are solved.
    """

    step_size: float
    bdf_order: int = 2
    start_up: StartUp = StartUp.BDF1
    newton: NewtonOptions = NewtonOptions()
    formula: BDFFormula = field(init=False, repr=False, compare=False)
    implicit: NewtonSolve = field(init=False, repr=False, compare=False)
    _criteria: Criteria = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "formula", BDFFormula(self.step_size, self.bdf_order, self.start_up))
        object.__setattr__(self, "implicit", NewtonSolve(self.newton))
        o = self.newton
        criteria = Criteria(float(o.atol), float(o.rtol), float(o.reuse), int(o.norm), int(o.max_iterations))
        object.__setattr__(self, "_criteria", criteria)

    @property
    def order(self) -> int:
        """Two only for BDF2 with the BDF1 start."""
        return 2 if self.bdf_order == 2 and self.start_up is StartUp.BDF1 else 1

    @property
    def dt(self) -> float:
        """Step [s]."""
        return self.step_size

    @property
    def n_history(self) -> int:
        """Two pairs, so that objectives may interpolate whatever the order."""
        return 2

    def solved_by(self, options: NewtonOptions) -> BDF:
        """Return the stepper with other options of Newton's method."""
        return replace(self, newton=options)

    def start(self, q: FloatArray, v: FloatArray) -> State:
        """Return the state at t = 0 with its straight-line history."""
        return self.formula.start(q, v)

    def start_pullback(self, state_bar: StateTangent) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents of the initial q and v."""
        return state_bar.q.sum(axis=0), state_bar.v.sum(axis=0) - self.dt * state_bar.q[1]

    def start_pushforward(self, q_dot: FloatArray, v_dot: FloatArray) -> StateTangent:
        """Return the tangent of the state at t = 0."""
        return StateTangent(np.stack([q_dot, q_dot - self.dt * v_dot]), np.stack([v_dot, v_dot]))

    def step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step; see `Stepper.step`."""
        formula = self.formula
        known = replay.solution if replay else None
        if assembler.compiled is not None:
            found = self._compiled(assembler.compiled, state, theta, known)
            if found is not None:
                if replay is not None:
                    changed = replay.charts
                else:
                    changed = charts.beyond(found[0].kin.q, assembler.system.rotations) if found[1] else NO_CHARTS
                return formula.finish(assembler.system, state, found[0], changed)
        equations = formula.equations(assembler, state, theta)
        guesses = formula.guesses(state, equations)
        solution = self.implicit.solve(assembler, equations, theta, guesses, state, known)
        return formula.finish(assembler.system, state, solution, replay.charts if replay else None)

    def _compiled(
        self, run: CompiledRun, state: State, theta: FloatArray, replay: Solution | None
    ) -> tuple[Solution, bool] | None:
        """Return a compiled step, and whether a rotation vector is beyond pi then; None where it takes the terms."""
        numbers = self.formula.numbers(state.step)
        given = (replay.kin.v / numbers.c, replay.decisions) if replay is not None else None
        found = run.step(numbers, self._criteria, state.step + 1, (state.q, state.v), theta, given)
        if found is None:
            return None
        status = Status.ROUND_OFF if found.at_round_off else Status.CONVERGED
        report = NewtonReport(
            status, len(found.merits) - 1, found.factorizations, found.merits[-1], found.tolerance, found.worst, 0,
            found.merits,
        )  # fmt: skip
        return Solution(found.kin, _NO_MULTIPLIERS, found.decisions, numbers.c, self.dt, report), found.turned

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised | None:
        """Assemble and factor J = dr/dq + c dr/dv + c^2 dr/da; see `DifferentiableStepper.linearise`."""
        return None if assembler.compiled is not None else self.implicit.linearise(assembler, record.solution, theta)

    def pullback(
        self,
        assembler: Assembler,
        record: Record,
        theta: FloatArray,
        state_bar: StateTangent,
        theta_bar: FloatArray,
        linearised: Linearised | None = None,
    ) -> StateTangent:
        """Pull a cotangent back through one step; see `DifferentiableStepper.pullback`."""
        c = record.c
        if record.unchanged is not None:
            state_bar = charts.pullback(record.unchanged, record.charts, state_bar)
        if assembler.compiled is not None and linearised is None:
            alpha = record.alpha
            numbers = Formula(record.kin.t, self.dt, c, alpha[0], alpha[1] if len(alpha) > 1 else 0.0)
            found = assembler.compiled.pullback(numbers, record.kin, record.decisions, theta, state_bar, theta_bar)
            if found is not None:
                return found
        u_bar = state_bar.q[0] + c * state_bar.v[0]
        linearised = linearised or self.implicit.linearise(assembler, record.solution, theta)
        bar = self.implicit.pullback(assembler, record.solution, theta, u_bar, theta_bar, linearised)
        before = StateTangent.zeros(self.n_history, assembler.system.n)
        before.q[0] += state_bar.q[1]
        before.v[0] += state_bar.v[1]
        for k, alpha in enumerate(record.alpha):
            before.q[k] += c * alpha * (bar.v + c * bar.a - state_bar.v[0])
            before.v[k] += c * alpha * bar.a
        return before

    def pushforward(
        self,
        assembler: Assembler,
        record: Record,
        theta: FloatArray,
        tangents: StateTangents,
        directions: Directions,
        linearised: Linearised | None = None,
    ) -> StateTangents:
        """Push tangents forward through one step; see `DifferentiableStepper.pushforward`."""
        tangents, q_dot, v_dot = self.implicit.pushforward(
            assembler, record.solution, theta, tangents, record.alpha, directions, linearised
        )
        if not tangents.index.size:
            return tangents
        after = StateTangent(np.stack([q_dot, tangents.dot.q[0]]), np.stack([v_dot, tangents.dot.v[0]]))
        if record.unchanged is not None:
            after = charts.pushforward(record.unchanged, record.charts, after)
        return StateTangents(tangents.index, after)
