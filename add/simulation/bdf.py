"""Backward differentiation formulas of order one and two, with their exact derivatives."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import final

import numpy as np

from add.equations import charts
from add.equations.kinematics import Kinematics, State, StateTangent, Weights
from add.equations.tangents import Directions, StateTangents
from add.simulation.stepper import Linearised, Record, Stepper
from add.solve.fallbacks import SMALLER_STEP, failure, naming, solve
from add.solve.newton import NewtonOptions, StepEquations
from add.solve.step_matrix import Assembler
from add.typing import FloatArray

_COEFFICIENTS = {1: (1.0, (1.0,)), 2: (2.0 / 3.0, (4.0 / 3.0, -1.0 / 3.0))}


def _pair(newest: FloatArray, last: FloatArray) -> FloatArray:
    """Return both (2, n); the general function takes longer than a small system's kernels."""
    return np.concatenate([newest, last]).reshape(2, -1)


class StartUp(Enum):
    """How BDF2 begins."""

    BDF1 = "one BDF1 step (order 2)"
    STRAIGHT_LINE = "history q - dt v, v (order 1; the scenes of Geilinger et al. 2020)"


@final
@dataclass(frozen=True)
class BDF(Stepper):
    """v = c (q - sum alpha_k q_k), a = c (v - sum alpha_k v_k), c = 1/(beta dt).

    BDF1: beta = 1, alpha = (1).  BDF2: beta = 2/3, alpha = (4/3, -1/3).

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
    """

    step_size: float
    bdf_order: int = 2
    start_up: StartUp = StartUp.BDF1
    newton: NewtonOptions = NewtonOptions()

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

    def coefficients(self, step: int) -> tuple[float, tuple[float, ...]]:
        """Return c and alpha of the step that follows state number ``step``."""
        first = step == 0 and self.start_up is StartUp.BDF1
        beta, alpha = _COEFFICIENTS[1 if first else self.bdf_order]
        return 1.0 / (beta * self.dt), alpha

    def start(self, q: FloatArray, v: FloatArray) -> State:
        """Return the state at t = 0 with its straight-line history."""
        return State(0.0, 0, np.stack([q, q - self.dt * v]), np.stack([v, v]))

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
        c, alpha = self.coefficients(state.step)
        q_star = sum(a * q for a, q in zip(alpha, state.q, strict=False))
        v_star = sum(a * v for a, v in zip(alpha, state.v, strict=False))
        # Not state.t + dt: a million additions drift.
        t = (state.step + 1) * self.dt
        system = assembler.system
        prescribed = system.partition.prescribed
        u_prescribed = assembler.prescribed(t, theta) - q_star[prescribed]
        equations = StepEquations(q_star, v_star, c, t, state.step + 1, u_prescribed)
        # Guesses for v = c u: the acceleration of the last step goes on; none; the body stops.
        a_last = (state.v[0] - state.v[1]) / self.dt
        guesses = [v_star / c + a_last / c**2, state.v[0] / c, state.q[0] - q_star]
        if replay:
            # A frozen branch may have more than one root (slip forward or backward): stay at the recorded one.
            guesses.insert(0, replay.kin.v / c)
        before = Kinematics(state.q[0], state.v[0], a_last, state.t, state.step)
        branch = system.on_branch(replay.decisions) if replay else None
        result = solve(assembler, equations, theta, guesses, self.newton, branch, before)
        if not result.report.status.success:
            raise failure(result, assembler, equations, self.dt, self.newton)
        kin = result.kin
        following = State(t, state.step + 1, _pair(kin.q, state.q[0]), _pair(kin.v, state.v[0]))
        changed = replay.charts if replay else charts.beyond(kin.q, system.rotations)
        if not changed.size:
            return following, Record(kin, result.mu, result.branch.decisions, c, alpha, result.report)
        record = Record(kin, result.mu, result.branch.decisions, c, alpha, result.report, changed, following)
        return charts.change(following, changed), record

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised:
        """Assemble and factor J = dr/dq + c dr/dv + c^2 dr/da; see `Stepper.linearise`."""
        branch, c = assembler.system.on_branch(record.decisions), record.c
        with self._naming(record):
            factors = assembler.factor(record.kin, record.mu, theta, Weights(1.0, c, c * c, 1.0), branch)
        return Linearised(branch, factors)

    def _naming(self, record: Record) -> AbstractContextManager[None]:
        """Name the step in the errors of its derivative."""
        place = f"derivative of step {record.kin.step} (t={record.kin.t:.6g} s)"
        return naming(place, SMALLER_STEP.format(dt=0.25 * self.dt))

    def pullback(
        self,
        assembler: Assembler,
        record: Record,
        theta: FloatArray,
        state_bar: StateTangent,
        theta_bar: FloatArray,
        linearised: Linearised | None = None,
    ) -> StateTangent:
        """Pull a cotangent back through one step; see `Stepper.pullback`."""
        system, c, kin = assembler.system, record.c, record.kin
        free, prescribed = system.partition.free, system.partition.prescribed
        if record.unchanged is not None:
            state_bar = charts.pullback(record.unchanged, record.charts, state_bar)
        q_bar = state_bar.q[0] + c * state_bar.v[0]
        linearised = linearised or self.linearise(assembler, record, theta)
        branch = linearised.branch
        rhs = np.concatenate([q_bar[free], np.zeros(record.mu.size)])
        with self._naming(record):
            solution = linearised.factors.solve_transposed(rhs)
        lam = np.zeros(system.n)
        lam[free] = solution[: free.size]
        lam_rows = solution[free.size :]
        wanted = "qva" if prescribed.size else "va"
        bar = branch.state_vjp(kin, record.mu, theta, lam, lam_rows, wanted)
        if prescribed.size:
            by_position = (q_bar - bar.q - c * bar.v - c * c * bar.a)[prescribed]
            system.motion.vjp(kin.t, theta, by_position, None, theta_bar)
        share = np.zeros_like(theta_bar)
        branch.parameter_vjp(kin, record.mu, theta, lam, lam_rows, share)
        theta_bar -= share
        before = StateTangent.zeros(self.n_history, system.n)
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
        """Push tangents forward through one step; see `Stepper.pushforward`."""
        system, c, kin = assembler.system, record.c, record.kin
        free, prescribed = system.partition.free, system.partition.prescribed
        branch = linearised.branch if linearised else system.on_branch(record.decisions)
        by_theta = branch.parameter_tangents(kin, record.mu, theta, directions)
        moved = system.motion_tangents(kin.t, theta, directions)
        tangents = tangents.including(by_theta.index, moved.index)
        if not tangents.index.size:
            return tangents
        before = tangents.dot
        q_star = sum(a * q for a, q in zip(record.alpha, before.q, strict=False))
        v_star = sum(a * v for a, v in zip(record.alpha, before.v, strict=False))

        # The tangents with the free coordinates held; their own are what the linear solves add.
        q_dot = np.zeros_like(before.q[0])
        q_dot[np.ix_(prescribed, tangents.places(moved.index))] = moved.values
        v_dot = c * (q_dot - q_star)
        a_dot = c * (v_dot - v_star)
        rhs = -assembler.product(kin, record.mu, theta, branch, q_dot, v_dot, a_dot)
        rhs[:, tangents.places(by_theta.index)] -= by_theta.values
        factors = (linearised or self.linearise(assembler, record, theta)).factors
        with self._naming(record):
            q_dot[free] = factors.solve(np.concatenate([rhs[free], rhs[system.n :]]))[: free.size]
        v_dot = c * (q_dot - q_star)
        after = StateTangent(np.stack([q_dot, before.q[0]]), np.stack([v_dot, before.v[0]]))
        if record.unchanged is not None:
            after = charts.pushforward(record.unchanged, record.charts, after)
        return StateTangents(tangents.index, after)
