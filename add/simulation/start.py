"""The start of a run (the given state, or static equilibrium), and backward differentiation formulas."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from add.compiled.steps import Timing
from add.equations import charts
from add.equations.initial import InitialState
from add.equations.kinematics import (
    NO_CARRY,
    Carry,
    Columns,
    Directions,
    State,
    StateTangent,
    StateTangents,
    ThetaMap,
    push,
)
from add.equations.system import System
from add.errors import InputError, SolverError
from add.simulation.derivative import Instant, NewtonSolve, Solution
from add.simulation.stepper import Record, Stepper
from add.solve.step_equations import NewtonOptions, StepEquations
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray, require_count


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
    """Initial coordinates and velocities as a function of theta.

    Attributes
    ----------
    initial : InitialState
        The poses that it is of.
    """

    initial: InitialState

    def solved_by(self, options: NewtonOptions) -> "Start":
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
    """Bodies start where and as fast as theta says; prescribed coordinates follow their motion, and loops these."""

    initial: InitialState

    def evaluate(
        self, assembler: Assembler, theta: FloatArray, replay: Solution | None = None
    ) -> tuple[FloatArray, FloatArray, Solution | None]:
        """Return q0, v0; nothing is decided."""
        return *self.initial.closed(theta, self.initial.moved(theta, assembler.system.motion)), None

    def pullback(self, begun: Begun, q_bar: FloatArray, v_bar: FloatArray, theta_bar: FloatArray) -> None:
        """Pull back through pose and velocity field."""
        system, theta = begun.assembler.system, begun.theta
        prescribed, start = system.partition.prescribed, self.initial.moved(theta, system.motion)
        q_bar, v_bar = (bar.copy() for bar in self.initial.closed_vjp(theta, start, (q_bar, v_bar), theta_bar))
        system.motion.vjp(0.0, theta, q_bar[prescribed], v_bar[prescribed], theta_bar)
        q_bar[prescribed] = 0.0
        v_bar[prescribed] = 0.0
        self.initial.given_vjp(theta, q_bar, v_bar, theta_bar)

    def pushforward(self, begun: Begun, directions: Directions) -> Columns:
        """Return the tangents of (q0, v0)."""
        system, theta = begun.assembler.system, begun.theta
        n, prescribed, start = system.n, system.partition.prescribed, self.initial.moved(theta, system.motion)

        def jvp(theta_dot: FloatArray, out: FloatArray) -> None:
            q_dot, v_dot = self.initial.given_jvp(theta, theta_dot)
            q_dot[prescribed], v_dot[prescribed] = system.motion.jvp(0.0, theta, theta_dot)
            out += np.concatenate(self.initial.closed_jvp(theta, start, theta_dot, (q_dot, v_dot)))

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

    def solved_by(self, options: NewtonOptions) -> "EquilibriumStart":
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
            solution = NewtonSolve(self.newton).solve(assembler, equations, theta, (zero,), replay=replay)
        except SolverError as error:
            raise SolverError(f"static equilibrium: {error}") from None
        return solution.kin.q, zero, solution

    def pullback(self, begun: Begun, q_bar: FloatArray, v_bar: FloatArray, theta_bar: FloatArray) -> None:
        """Pull back through the static solve."""
        begun.instant().pull(q_bar, np.zeros_like(q_bar), theta_bar)

    def pushforward(self, begun: Begun, directions: Directions) -> Columns:
        """Push forward through the static solve."""
        n = begun.assembler.system.n
        still = StateTangents(np.zeros(0, dtype=np.int64), StateTangent(np.zeros((1, n, 0)), np.zeros((1, n, 0))))
        tangents, q_dot, v_dot = begun.instant().push(still, directions)
        return Columns(tangents.index, np.concatenate([q_dot, v_dot]))


_COEFFICIENTS = {1: (1.0, (1.0,)), 2: (2.0 / 3.0, (4.0 / 3.0, -1.0 / 3.0))}


def _pair(newest: FloatArray, last: FloatArray) -> FloatArray:
    """Return both (2, n); the general function takes longer than a small system's kernels."""
    return np.concatenate([newest, last]).reshape(2, -1)


# --- States that are given --------------------------------------------------------------------------------------------

#: How far coordinates with a given motion may be from it in a given state [m], [rad], and over the largest of them.
_JUMP = 1e-4
#: How far a given state may leave loops open [m], [rad], or the cosine of an angle.
_OPEN = 1e-3


def given_state(
    stepper: Stepper, n: int, pair: tuple[ArrayLike, ArrayLike], step: int | None, carry: Carry = NO_CARRY
) -> State:
    """Return a state of n coordinates from those, and velocities, that somebody gives; see `Simulation.state`."""
    places, rates = (np.atleast_2d(np.asarray(x, dtype=float)) for x in pair)
    m = stepper.n_history
    if places.shape != rates.shape or places.shape not in ((1, n), (m, n)):
        raise InputError(
            "these are no coordinates and velocities of this system",
            found=f"shapes {np.shape(pair[0])} and {np.shape(pair[1])}",
            expected=f"({n},) or ({m}, {n}) both",
        )
    require_count(0 if step is None else step, "step")
    if len(places) == 1:
        first = stepper.start(places[0], rates[0])
        if not step:
            return replace(first, carry=carry)
        places, rates = first.q, first.v
        carry = stepper.anew if carry is NO_CARRY else carry
    elif not step:
        wanted = "their number, t = step dt"
        raise InputError("a state with a history has steps behind it", place="step", found=f"{step}", expected=wanted)
    return State(step * stepper.dt, step, places, rates, carry)


def refuse_jumps(
    system: System, initial: InitialState, state: State, theta: FloatArray, place: str | None = None
) -> None:
    """Refuse a given state that the first step would jump from: loops are open, or given motions are elsewhere.

    Raises
    ------
    InputError
        Of the coordinate with a given motion that is farthest away, or of the loops.
    """
    known = system.partition.prescribed
    wanted = system.motion.positions(state.t, theta)
    away = np.abs(state.q[0][known] - wanted)
    if away.size and away.max() > _JUMP * max(1.0, float(np.abs(wanted).max())):
        worst = int(away.argmax())
        raise InputError(
            f"{system.dofs.describe(int(known[worst]))} has a given motion, and is elsewhere at t = {state.t:g} s",
            place=place, found=f"{state.q[0][known[worst]]:.6g}",
            expected=f"{wanted[worst]:.6g}, or the number of steps behind the state as `step`",
        )  # fmt: skip
    gap = initial.gap(theta, state.q[0])
    if gap > _OPEN:
        raise InputError(
            "loops, or equations between joints, are open in this state", place=place, found=f"{gap:.3g}",
            expected="those of a pose that `simulation.start.initial.closed(theta, (q, v))` returns",
        )  # fmt: skip


# --- Backward differentiation formulas --------------------------------------------------------------------------------


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
