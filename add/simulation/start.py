"""The start of a run: the given state, or the static equilibrium."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np

from add.equations.initial import InitialState
from add.equations.kinematics import Columns, Directions, StateTangent, StateTangents, ThetaMap, push
from add.errors import SolverError
from add.simulation.derivative import Instant, NewtonSolve, Solution
from add.solve.step_equations import NewtonOptions, StepEquations
from add.solve.step_matrix import Assembler
from add.typing import FloatArray


class Begun(NamedTuple):
    """The start of a run whose derivatives are wanted: with where a static solve converged, if there was one."""

    assembler: Assembler
    record: Solution | None
    theta: FloatArray

    def instant(self) -> Instant:
        """Return the equations of the static solve."""
        assert self.record is not None
        return Instant(self.assembler, self.record, (), self.theta)


class Start(ABC):
    """Initial coordinates and velocities as a function of theta."""

    def solved_by(self, options: NewtonOptions) -> Start:
        """Return the start with other options of Newton's method; itself where nothing is solved."""
        return self

    @abstractmethod
    def evaluate(
        self, assembler: Assembler, theta: FloatArray, replay: Solution | None = None
    ) -> tuple[FloatArray, FloatArray, Solution | None]:
        """Return q0, v0 (n,) and where a static solve converged."""

    @abstractmethod
    def pullback(self, begun: Begun, q_bar: FloatArray, v_bar: FloatArray, theta_bar: FloatArray) -> None:
        """Add the cotangent of theta to ``theta_bar``."""

    @abstractmethod
    def pushforward(self, begun: Begun, directions: Directions) -> Columns:
        """Return the tangents of (q0, v0), (2 n, k)."""


@final
@dataclass(frozen=True)
class GivenStart(Start):
    """Bodies start where and as fast as theta says; prescribed coordinates follow their motion."""

    initial: InitialState

    def evaluate(
        self, assembler: Assembler, theta: FloatArray, replay: Solution | None = None
    ) -> tuple[FloatArray, FloatArray, Solution | None]:
        """Return q0, v0; nothing is decided."""
        system = assembler.system
        q, v = self.initial.evaluate(theta)
        prescribed = system.partition.prescribed
        q[prescribed] = system.motion.positions(0.0, theta)
        v[prescribed] = system.motion.velocities(0.0, theta)
        return q, v, None

    def pullback(self, begun: Begun, q_bar: FloatArray, v_bar: FloatArray, theta_bar: FloatArray) -> None:
        """Pull back through pose and velocity field."""
        system, theta = begun.assembler.system, begun.theta
        prescribed = system.partition.prescribed
        system.motion.vjp(0.0, theta, q_bar[prescribed], v_bar[prescribed], theta_bar)
        q_bar, v_bar = q_bar.copy(), v_bar.copy()
        q_bar[prescribed] = 0.0
        v_bar[prescribed] = 0.0
        self.initial.vjp(theta, q_bar, v_bar, theta_bar)

    def pushforward(self, begun: Begun, directions: Directions) -> Columns:
        """Return the tangents of (q0, v0)."""
        system, theta = begun.assembler.system, begun.theta
        n, prescribed = system.n, system.partition.prescribed

        def jvp(theta_dot: FloatArray, out: FloatArray) -> None:
            q_dot, v_dot = self.initial.jvp(theta, theta_dot)
            q_dot[prescribed], v_dot[prescribed] = system.motion.jvp(0.0, theta, theta_dot)
            out += np.concatenate([q_dot, v_dot])

        def vjp(bar: FloatArray, out: FloatArray) -> None:
            self.pullback(begun, bar[:n], bar[n:], out)

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

    def solved_by(self, options: NewtonOptions) -> EquilibriumStart:
        """Return the start with other options of Newton's method."""
        return replace(self, newton=options)

    def evaluate(
        self, assembler: Assembler, theta: FloatArray, replay: Solution | None = None
    ) -> tuple[FloatArray, FloatArray, Solution | None]:
        """Solve for the equilibrium.

        Raises
        ------
        SolverError
            If there is none that Newton can reach, e.g. because a body is not held.
        """
        system = assembler.system
        q, _ = self.initial.evaluate(theta)
        zero = np.zeros(system.n)
        held = system.motion.positions(0.0, theta) - q[system.partition.prescribed]
        equations = StepEquations(q, zero, 0.0, 0.0, 0, held)
        try:
            found = NewtonSolve(self.newton).solve(assembler, equations, theta, (zero,), replay=replay)
        except SolverError as error:
            raise SolverError(f"static equilibrium: {error}") from None
        return found.kin.q, zero, found

    def pullback(self, begun: Begun, q_bar: FloatArray, v_bar: FloatArray, theta_bar: FloatArray) -> None:
        """Pull back through the static solve."""
        begun.instant().pull(q_bar, np.zeros_like(q_bar), theta_bar)

    def pushforward(self, begun: Begun, directions: Directions) -> Columns:
        """Push forward through the static solve."""
        n = begun.assembler.system.n
        still = StateTangents(np.zeros(0, dtype=np.int64), StateTangent(np.zeros((1, n, 0)), np.zeros((1, n, 0))))
        tangents, q_dot, v_dot = begun.instant().push(still, directions)
        return Columns(tangents.index, np.concatenate([q_dot, v_dot]))
