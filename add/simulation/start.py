"""Where a run starts: the given state, or the static equilibrium."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.initial import InitialState
from add.equations.kinematics import Kinematics, Weights
from add.equations.tangents import Columns, Directions, ThetaMap, push
from add.equations.term import Decisions
from add.errors import SolverError
from add.solve.fallbacks import NOT_HELD, failure, naming, solve
from add.solve.newton import NewtonOptions, NewtonResult, StepEquations
from add.solve.step_matrix import Assembler
from add.typing import FloatArray

_STATIC = Weights(1.0, 0.0, 0.0, 1.0)


@final
@dataclass(frozen=True)
class StartRecord:
    """What the start decided; `kin` is where a static solve converged."""

    kin: Kinematics
    mu: FloatArray
    decisions: Decisions


class Start(ABC):
    """Initial coordinates and velocities as a function of theta."""

    @abstractmethod
    def evaluate(
        self, assembler: Assembler, theta: FloatArray, replay: StartRecord | None = None
    ) -> tuple[FloatArray, FloatArray, StartRecord | None]:
        """Return q0, v0 (n,) and the record."""

    @abstractmethod
    def pullback(
        self,
        assembler: Assembler,
        record: StartRecord | None,
        theta: FloatArray,
        q_bar: FloatArray,
        v_bar: FloatArray,
        theta_bar: FloatArray,
    ) -> None:
        """Add the cotangent of theta to ``theta_bar``."""

    @abstractmethod
    def pushforward(
        self,
        assembler: Assembler,
        record: StartRecord | None,
        theta: FloatArray,
        directions: Directions,
    ) -> Columns:
        """Return the tangents of (q0, v0), (2 n, k)."""


@final
@dataclass(frozen=True)
class GivenStart(Start):
    """Bodies start where and as fast as theta says; prescribed coordinates follow their motion."""

    initial: InitialState

    def evaluate(
        self, assembler: Assembler, theta: FloatArray, replay: StartRecord | None = None
    ) -> tuple[FloatArray, FloatArray, StartRecord | None]:
        """Return q0, v0; nothing is decided."""
        system = assembler.system
        q, v = self.initial.evaluate(theta)
        prescribed = system.partition.prescribed
        q[prescribed] = system.motion.positions(0.0, theta)
        v[prescribed] = system.motion.velocities(0.0, theta)
        return q, v, None

    def pullback(
        self,
        assembler: Assembler,
        record: StartRecord | None,
        theta: FloatArray,
        q_bar: FloatArray,
        v_bar: FloatArray,
        theta_bar: FloatArray,
    ) -> None:
        """Pull back through pose and velocity field."""
        system = assembler.system
        prescribed = system.partition.prescribed
        system.motion.vjp(0.0, theta, q_bar[prescribed], v_bar[prescribed], theta_bar)
        q_bar, v_bar = q_bar.copy(), v_bar.copy()
        q_bar[prescribed] = 0.0
        v_bar[prescribed] = 0.0
        self.initial.vjp(theta, q_bar, v_bar, theta_bar)

    def pushforward(
        self,
        assembler: Assembler,
        record: StartRecord | None,
        theta: FloatArray,
        directions: Directions,
    ) -> Columns:
        """Return the tangents of (q0, v0)."""
        system = assembler.system
        n, prescribed = system.n, system.partition.prescribed

        def jvp(theta_dot: FloatArray, out: FloatArray) -> None:
            q_dot, v_dot = self.initial.jvp(theta, theta_dot)
            q_dot[prescribed], v_dot[prescribed] = system.motion.jvp(0.0, theta, theta_dot)
            out += np.concatenate([q_dot, v_dot])

        def vjp(bar: FloatArray, out: FloatArray) -> None:
            self.pullback(assembler, record, theta, bar[:n], bar[n:], out)

        return push([ThetaMap(jvp, vjp)], 2 * n, directions)


@final
@dataclass(frozen=True)
class EquilibriumStart(Start):
    """Bodies start at rest in static equilibrium, f(q0) = 0, v0 = 0, found from the given pose.

    The derivative is the implicit one: with K = dr/dq at q0, K^T lambda = q_bar, theta_bar -= dr/dtheta^T lambda. Loads
    that the pose cannot carry at once are brought on by regularised steps.

    Attributes
    ----------
    initial : InitialState
        The pose the search starts from.
    newton : NewtonOptions
    """

    initial: InitialState
    newton: NewtonOptions

    def evaluate(
        self, assembler: Assembler, theta: FloatArray, replay: StartRecord | None = None
    ) -> tuple[FloatArray, FloatArray, StartRecord | None]:
        """Solve for the equilibrium.

        Raises
        ------
        SolverError
            If there is none that Newton can reach, e.g. because a body is not held.
        """
        system = assembler.system
        q, _ = self.initial.evaluate(theta)
        prescribed = system.partition.prescribed
        zero = np.zeros(system.n)
        held = system.motion.positions(0.0, theta) - q[prescribed]
        equations = StepEquations(q, zero, 0.0, 0.0, 0, held)
        # A frozen branch may have more than one root: a replay stays at the recorded one.
        guesses = (replay.kin.q - q, zero) if replay else (zero,)
        result: NewtonResult = solve(
            assembler, equations, theta, guesses, self.newton, system.on_branch(replay.decisions) if replay else None
        )
        if not result.report.status.success:
            raise SolverError(f"static equilibrium: {failure(result, assembler, equations, 0.0, self.newton)}")
        record = StartRecord(result.kin, result.mu, result.branch.decisions)
        return result.kin.q, zero, record

    def pullback(
        self,
        assembler: Assembler,
        record: StartRecord | None,
        theta: FloatArray,
        q_bar: FloatArray,
        v_bar: FloatArray,
        theta_bar: FloatArray,
    ) -> None:
        """Pull back through the static solve."""
        assert record is not None
        system = assembler.system
        free, prescribed = system.partition.free, system.partition.prescribed
        branch = system.on_branch(record.decisions)
        with naming("derivative of the static equilibrium", NOT_HELD):
            factorization = assembler.factor(record.kin, record.mu, theta, _STATIC, branch)
            solution = factorization.solve_transposed(np.concatenate([q_bar[free], np.zeros(record.mu.size)]))
        lam = np.zeros(system.n)
        lam[free] = solution[: free.size]
        lam_rows = solution[free.size :]
        bar = branch.state_vjp(record.kin, record.mu, theta, lam, lam_rows, "q")
        system.motion.vjp(0.0, theta, (q_bar - bar.q)[prescribed], None, theta_bar)
        share = np.zeros_like(theta_bar)
        branch.parameter_vjp(record.kin, record.mu, theta, lam, lam_rows, share)
        theta_bar -= share

    def pushforward(
        self,
        assembler: Assembler,
        record: StartRecord | None,
        theta: FloatArray,
        directions: Directions,
    ) -> Columns:
        """Push forward through the static solve."""
        assert record is not None
        system = assembler.system
        free, prescribed = system.partition.free, system.partition.prescribed
        branch = system.on_branch(record.decisions)
        by_theta = branch.parameter_tangents(record.kin, record.mu, theta, directions)
        moved = system.motion_tangents(0.0, theta, directions)
        index = np.union1d(by_theta.index, moved.index)
        dots = np.zeros((2 * system.n, index.size))
        if not index.size:
            return Columns(index, dots)
        q_dot = dots[: system.n]
        q_dot[np.ix_(prescribed, np.searchsorted(index, moved.index))] = moved.values
        rhs = -assembler.product(record.kin, record.mu, theta, branch, q_dot)
        rhs[:, np.searchsorted(index, by_theta.index)] -= by_theta.values
        with naming("derivative of the static equilibrium", NOT_HELD):
            factorization = assembler.factor(record.kin, record.mu, theta, _STATIC, branch)
            q_dot[free] = factorization.solve(np.concatenate([rhs[free], rhs[system.n :]]))[: free.size]
        return Columns(index, dots)
