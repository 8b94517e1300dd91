"""The contract of a time integrator with the forward loop and the sweeps."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Self, final

import numpy as np

from add.compiled.steps import Block
from add.equations import charts
from add.equations.kinematics import (
    NO_CARRY,
    Carry,
    Columns,
    Directions,
    Kinematics,
    State,
    StateTangent,
    StateTangents,
    StretchTangents,
)
from add.equations.term import Decisions
from add.simulation.derivative import Instant, Linearised, Solution
from add.solve.step_equations import NewtonOptions, NewtonReport
from add.solve.step_matrix import Assembler
from add.typing import BoolArray, FloatArray, IntArray

#: An implicit step has none.
NO_STAGES: FloatArray = np.zeros((3, 0, 0))
#: No chart changed.
NO_CHARTS: IntArray = np.zeros(0, dtype=np.int64)


@final
@dataclass(frozen=True)
class Record:
    """A finished step. The backward pass never decides again.

    Attributes
    ----------
    solution : Solution
    alpha : tuple of float
        History coefficients.
    charts : (k,) first coordinates of the rotation vectors that changed chart after the step
    unchanged : State or None
        The state after the step and before that change; None where nothing changed.
    inner : tuple of Record
        Of other solves that the step is made of; the stepper knows which.
    stages : (3, s, n)
        q, v and a of the stages of an explicit step; none of others.
    begun : Carry
        What the step has read beside coordinates and velocities, where derivatives go through it.
    """

    solution: Solution
    alpha: tuple[float, ...]
    charts: IntArray = field(default_factory=lambda: NO_CHARTS)
    unchanged: State | None = None
    inner: "tuple[Record, ...]" = ()
    stages: FloatArray = field(default_factory=lambda: NO_STAGES)
    begun: Carry = NO_CARRY

    @property
    def composed(self) -> bool:
        """Whether the step is made of more than one solve: it does not follow from its end and the formula."""
        return bool(self.inner) or self.stages.size > 0

    @property
    def kin(self) -> Kinematics:
        """Converged coordinates and rates."""
        return self.solution.kin

    @property
    def mu(self) -> FloatArray:
        """Multipliers."""
        return self.solution.mu

    @property
    def decisions(self) -> Decisions:
        """Branches of the deciding terms."""
        return self.solution.decisions

    @property
    def c(self) -> float:
        """1/(beta dt) [1/s]."""
        return self.solution.c

    @property
    def report(self) -> NewtonReport:
        """Report of the solve."""
        return self.solution.report

    @property
    def carry(self) -> Carry:
        """Handed on to the next step beside coordinates and velocities."""
        return self.solution.carry


@final
class WeakContact(NamedTuple):
    """A contact on the border of two modes: derivatives there are one-sided.

    Attributes
    ----------
    point, shape : int
        Numbers of its point and of its shape in the penalty term that says what may touch what.
    margin : float
        How far it is from another mode [-].
    """

    point: int
    shape: int
    margin: float


@final
@dataclass(frozen=True)
class ContactForces:
    """Forces of contacts that a step has solved for.

    Attributes
    ----------
    generalised : (n,) by all of them together [N], [N m]
    places, forces : (k, 3) where surfaces meet [m], and on the body of the point [N]
    on_rigid : (k,) whether a rigid body carries the point
    counts : touching, sticking, slipping -> how many
    modes, margins : (k,)
        1 sticks, 2 slides (of a pyramid: 2 to 9); how far from another mode [-]. Empty where the law has none.
    weak : tuple of WeakContact
        Also among those that do not touch.
    natural_map : float
        How well the complementarity problem is solved, scaled; zero where the law has none.
    """

    generalised: FloatArray
    places: FloatArray
    forces: FloatArray
    on_rigid: BoolArray
    counts: dict[str, int]
    modes: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    margins: FloatArray = field(default_factory=lambda: np.zeros(0))
    weak: tuple[WeakContact, ...] = ()
    natural_map: float = 0.0


class Stepper(ABC):
    """One step forward. Nothing is kept on the stepper: what the next step needs is in the state."""

    @property
    @abstractmethod
    def order(self) -> int:
        """Order of accuracy on smooth problems."""

    @property
    @abstractmethod
    def dt(self) -> float:
        """Step [s]."""

    @property
    @abstractmethod
    def n_history(self) -> int:
        """Number of (q, v) pairs in a State."""

    @property
    def anew(self) -> Carry:
        """The carry of a state without a history that has steps behind it: none where a straight one serves."""
        return NO_CARRY

    @property
    def needs_compiled(self) -> bool:
        """Whether it has no equations but the compiled ones of a system."""
        return False

    @abstractmethod
    def start(self, q: FloatArray, v: FloatArray) -> State:
        """Return the state at t = 0."""

    @abstractmethod
    def step(self, assembler: Assembler, state: State, theta: FloatArray) -> tuple[State, Record]:
        """Take one step.

        Raises
        ------
        SolverError
            If the equations of the step are not solved.
        """

    def contact_changes(self, record: Record, other: Record) -> int:
        """Return in how many contacts of its own, not of terms of the system, two records of a step differ."""
        return 0

    def contact_forces(self, record: Record, theta: FloatArray) -> ContactForces | None:
        """Return the contact forces that a step solved for; None where terms of the system make them."""
        return None


@final
class TakenStep(NamedTuple):
    """A finished step, or a part of one, whose derivatives are wanted.

    Attributes
    ----------
    assembler : Assembler
    record : Record
    theta : (n_theta,)
    linearised : Linearised, optional
        Made when it is asked for if it is not given.
    """

    assembler: Assembler
    record: Record
    theta: FloatArray
    linearised: Linearised | None = None

    def instant(self, linearised: Linearised | None = None) -> Instant:
        """Return its equations, linearised as given here or there."""
        record = self.record
        return Instant(self.assembler, record.solution, record.alpha, self.theta, linearised or self.linearised)


@final
class TakenBlock(NamedTuple):
    """Finished steps of a compiled block whose derivatives are wanted.

    Attributes
    ----------
    assembler : Assembler
    block : Block
    steps : range
        Numbers in the block.
    theta : (n_theta,)
    """

    assembler: Assembler
    block: Block
    steps: range
    theta: FloatArray


#: Of q and of v (n,).
Pair = tuple[FloatArray, FloatArray]
#: The tangents before, with those of directions that set in, and those of q and v (n, k) at the end.
PushedStep = tuple[StateTangents, FloatArray, FloatArray]


class StepPart(ABC):
    """A part of a step as its derivatives take it: the whole of it, or less.

    Both take the newest pair (q, v) at the end, in the chart of the step; older pairs and charts are the stepper's.
    """

    @abstractmethod
    def pull(self, step: TakenStep, bar: Pair, theta_bar: FloatArray) -> StateTangent:
        """Return the cotangent of the state before from those of q and v; add that of theta to ``theta_bar``."""

    @abstractmethod
    def push(self, step: TakenStep, tangents: StateTangents, directions: Directions) -> PushedStep:
        """Return the tangents before, with those of directions that set in, and those of q and v (n, k) at the end."""


class DifferentiableStepper(Stepper, StepPart):
    """A stepper with a pull-back and a push-forward, and steps that hold the decisions of an earlier run.

    A state has two pairs, so that objectives may interpolate whatever the order, those at t = 0 on a straight line.
    ``newton`` says when a step counts as solved.
    """

    newton: NewtonOptions

    #: Whether a step depends on numbers beside coordinates, velocities and theta that derivatives go through.
    remembers: ClassVar[bool] = False

    #: Two.
    n_history: ClassVar[int] = 2

    @abstractmethod
    def solved_by(self, options: NewtonOptions) -> Self:
        """Return the stepper with other options of Newton's method."""

    @abstractmethod
    def step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step; ``replay`` holds the decisions of an earlier run. See `Stepper.step`."""

    def start(self, q: FloatArray, v: FloatArray) -> State:
        """Return the state at t = 0 with its straight-line history."""
        return State(0.0, 0, np.stack([q, q - self.dt * v]), np.stack([v, v]))

    def start_pullback(self, state_bar: StateTangent) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents of the initial q and v."""
        return state_bar.q.sum(axis=0), state_bar.v.sum(axis=0) - self.dt * state_bar.q[1]

    def start_pushforward(self, q_dot: FloatArray, v_dot: FloatArray) -> StateTangent:
        """Return the tangent of the state at t = 0; arrays (n,), or (n, k) for k directions."""
        return StateTangent(np.stack([q_dot, q_dot - self.dt * v_dot]), np.stack([v_dot, v_dot]))

    @abstractmethod
    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised | None:
        """Assemble and factor the matrix of a step; what comes back holds until the assembler's next call.

        None where the pull-back does all of it in one call.
        """

    def pullback(self, step: TakenStep, state_bar: StateTangent, theta_bar: FloatArray) -> StateTangent:
        """Return the cotangent of the state before the step; add that of theta to ``theta_bar``."""
        record = step.record
        if record.unchanged is not None:
            state_bar = charts.pullback(record.unchanged, record.charts, state_bar)
        before = self.pull(step, (state_bar.q[0], state_bar.v[0]), theta_bar)
        before.q[0] += state_bar.q[1]
        before.v[0] += state_bar.v[1]
        return before

    def pushforward(self, step: TakenStep, tangents: StateTangents, directions: Directions) -> StateTangents:
        """Return the tangents of the state after the step; one factorisation for all."""
        record, after = step.record, shifted(*self.push(step, tangents, directions))
        if record.unchanged is None or not after.index.size:
            return after
        return StateTangents(after.index, charts.pushforward(record.unchanged, record.charts, after.dot))

    def matrices(self, step: TakenStep, directions: Directions) -> tuple[FloatArray, Columns] | None:
        """Return dr/dq, dr/dv, dr/da (3, n, n) of a step and dr along directions; None where no call makes them."""
        return None

    def step_matrices(self, step: TakenStep, directions: Directions) -> tuple[FloatArray, Columns] | None:
        """Return the transition (2 m n, 2 m n) of a step and its derivatives along directions, as of `StepJacobians`.

        None where no one call makes them, or the matrix of the step cannot be solved with.
        """
        return None

    def pull_rows(
        self, step: TakenStep, bars: StateTangent, directions: Directions
    ) -> tuple[StateTangent, Columns] | None:
        """Pull r cotangents (m, n, r) back through a step, with one factorisation for all of them.

        Returns those of the state before and, (r, k), those of theta times the directions; None where no one
        factorisation serves.
        """
        record = step.record
        if record.unchanged is not None:
            bars = charts.pullback(record.unchanged, record.charts, bars)
        pulled = self.pull_each(step, (bars.q[0], bars.v[0]), directions)
        if pulled is not None:
            pulled[0].q[0] += bars.q[1]
            pulled[0].v[0] += bars.v[1]
        return pulled

    def pull_each(self, step: TakenStep, bars: Pair, directions: Directions) -> tuple[StateTangent, Columns] | None:
        """Return the same from r cotangents of the newest pair, (n, r) each, in the chart of the step."""
        return None

    def push_stretch(
        self, taken: TakenBlock, tangents: StateTangents, directions: Directions
    ) -> StretchTangents | None:
        """Push the tangents of the state before steps of a block through the first of these, one at least.

        None where no one call does.
        """
        return None


def shifted(tangents: StateTangents, q_dot: FloatArray, v_dot: FloatArray) -> StateTangents:
    """Return the tangents of the state whose newest pair has these, and whose older one was the newest before."""
    before = tangents.dot
    if not tangents.index.size:
        return tangents
    dot = StateTangent(np.stack([q_dot, before.q[0]]), np.stack([v_dot, before.v[0]]))
    return StateTangents(tangents.index, dot)


class BlockStepper(DifferentiableStepper):
    """A stepper that takes blocks of compiled steps where a system has them."""

    @abstractmethod
    def steps(self, assembler: Assembler, state: State, theta: FloatArray, n: int) -> Block | tuple[State, Record]:
        """Take up to ``n`` steps in one compiled call, one at least; where that is not to be, one by the terms."""
