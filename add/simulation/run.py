"""The forward loop and what it leaves."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from add.compiled.available import packed_or_reason
from add.compiled.pack import PackedSystem
from add.compiled.run import CompiledRun
from add.compiled.steps import Block
from add.equations.charts import Chart, change
from add.equations.kinematics import NO_CARRY, Carry, Kinematics, State
from add.equations.system import System
from add.errors import InputError, SolverError
from add.linalg import Factorization, factorization_for, one_blas_thread
from add.simulation import DifferentiableStepper, Record, Solution, Stepper
from add.simulation.bdf import sound, state_after, stepwise
from add.simulation.composed import Remembering
from add.simulation.kept_states import Records
from add.simulation.start import Start, given_state, refuse_jumps
from add.simulation.step_jacobians import Dynamics, Step, StepDerivatives, block_directions
from add.simulation.step_operators import StepOperators, step_operators
from add.simulation.stepper import BlockStepper
from add.solve.step_matrix import Assembler
from add.summary import Summarised, Summary
from add.typing import FloatArray, as_vector, index_of, require_count

_log = logging.getLogger(__name__)

#: Called after every step with the new state and its record.
Observer = Callable[[State, Record], None]


@final
@dataclass(frozen=True)
class Replay:
    """The decisions of an earlier run, to be held instead of deciding."""

    start: Solution | None
    records: Sequence[Record]


@final
@dataclass(repr=False)
class Trajectory(Summarised):
    """States and records of a run.

    Attributes
    ----------
    t : (k + 1,) times [s]
    q, v : (k + 1, n)
    start : Solution or None
    records : k records
    initial : State
        The state at t = 0 with its history.
    """

    t: FloatArray
    q: FloatArray
    v: FloatArray
    start: Solution | None
    records: Sequence[Record]
    initial: State

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return len(self.records)

    @property
    def replay(self) -> Replay:
        """The run's decisions."""
        return Replay(self.start, self.records)

    def state(self, k: int) -> State:
        """Return the state after step ``k``; -1 is the last one."""
        k = index_of(k, self.n_steps + 1)
        if k == 0:
            return self.initial
        unchanged = self.records[k - 1].unchanged
        if unchanged is not None:
            return change(unchanged, self.records[k - 1].charts)
        q0, v0 = self.q[k], self.v[k]
        step = self.initial.step + k
        q, v = np.stack([q0, self.q[k - 1]]), np.stack([v0, self.v[k - 1]])
        return State(float(self.t[k]), step, q, v, self.records[k - 1].carry)

    def step(self, k: int) -> Step:
        """Return step ``k``, counted from zero, with the states around it; -1 is the last one."""
        k = index_of(k, self.n_steps)
        return Step(self.state(k), self.records[k], self.state(k + 1))

    def states(self) -> Iterator[State]:
        """Iterate over all states, the initial one first."""
        return (self.state(k) for k in range(self.n_steps + 1))

    def after(self, k: int) -> "Trajectory":
        """Return the part that begins with the state after step ``k``; -1 is the last one."""
        k = index_of(k, self.n_steps + 1)
        if k == 0:
            return self
        return Trajectory(self.t[k:], self.q[k:], self.v[k:], None, self.records[k:], self.state(k))

    def kinematics(self, k: int) -> Kinematics:
        """Return the kinematics at time ``t[k]``; accelerations of the first state are zero."""
        k = index_of(k, self.n_steps + 1)
        if k:
            record = self.records[k - 1]  # whose coordinates are where the equations of the step hold
            unchanged = record.unchanged
            return replace(record.kin, q=self.q[k] if unchanged is None else unchanged.q[0])
        first = self.initial
        return Kinematics(self.q[0], self.v[0], np.zeros_like(self.q[0]), first.t, first.step)

    def summary(self) -> Summary:
        """Return a few lines: states, times, iterations, contacts changing charts."""
        iterations = sum(record.report.iterations for record in self.records)
        attempts = sum(record.report.attempt > 0 for record in self.records)
        rows = [
            ("states", f"{self.t.size} of {self.q.shape[1]} coordinates"),
            ("time", f"{self.t[0]:g} to {self.t[-1]:g} s"),
            ("solves", f"{iterations} iterations of Newton's method, {attempts} steps by a fallback"),
        ]
        return Summary("Trajectory", tuple(rows))


@final
@dataclass(frozen=True, repr=False)
class Simulation(Summarised):
    """A system, a way to start, a way to step, and for how long. Keeps no state: runs do not meet.

    Attributes
    ----------
    system : System
    start : Start
    stepper : Stepper
    n_steps : int
    theta : (n_theta,)
        The scene's own parameters, used where `run` is given none.
    solver : n_unknowns -> Factorization
        Back end of the linear algebra; each run makes its own.
    threads : int
        How many steps the sweeps of derivatives may linearise at once (see `add.adjoint.schedule`).
    """

    system: System
    start: Start
    stepper: Stepper
    n_steps: int
    theta: FloatArray = field(repr=False)
    solver: Callable[[int], Factorization] = factorization_for
    threads: int = 1

    def dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike | None = None, **options: Any) -> Dynamics:
        """Return mass matrix, bias and derivatives of the equations of motion; see `Dynamics.of`."""
        return Dynamics.of(self.system, self.theta, q, v, a, **options)

    def state(
        self, q: ArrayLike, v: ArrayLike, *, step: int | None = None, carry: Carry = NO_CARRY,
        theta: FloatArray | None = None,
    ) -> State:  # fmt: skip
        """Return a state from coordinates and velocities that another program, or a measurement, gives.

        Parameters
        ----------
        q, v : (n,) or (m, n)
            Coordinates and velocities [m], [rad], [m/s], [rad/s]; with a history the newest first, one time step apart.
        step : int, optional
            Number of steps taken so far, so that t = step dt, for signals; with a history it must be given.
        carry : Carry
            What the stepper that made the state handed on beside coordinates and velocities (`State.carry`).
        theta : (n_theta,), optional, of the run; it says where given motions are, and how loops close

        Returns
        -------
        State
            For `step`, or for ``run(state=...)``; where it has no history, BDF2 begins with one step of BDF1.

        Raises
        ------
        InputError
            If a shape does not fit, a history has no number of steps behind it, or the first step would jump.
        """
        state = given_state(self.stepper, self.system.n, (q, v), step, carry)
        refuse_jumps(self.system, self.start.initial, state, self.theta if theta is None else theta)
        return state

    def step(
        self, state: State, theta: FloatArray | None = None, *, assembler: Assembler | None = None
    ) -> tuple[State, Record]:
        """Take one step by hand; ``assembler``, of `assembler`, keeps patterns from step to step.

        Raises
        ------
        SolverError
            If the step has no solution near by.
        """
        theta = self.theta if theta is None else np.asarray(theta, dtype=float)
        with one_blas_thread():
            return self.stepper.step(assembler or self.assembler(), state, theta)

    def step_derivatives(
        self,
        theta: FloatArray | None = None,
        *,
        controls: Sequence[str] = (),
        parameters: Sequence[str] = (),
        chart: str | Chart = Chart.COORDINATES,
    ) -> StepDerivatives:
        """Return what takes the derivatives of finished steps, and keeps patterns of matrices from step to step.

        ``.jacobians(step)`` of the result has them as matrices, by one factorisation and one solve. A step is
        ``trajectory.step(k)``, or the record that `step` returns beside the state; its decisions are held.

        Parameters
        ----------
        theta : (n_theta,), optional
            That of the run.
        controls, parameters : sequence of str
            Blocks of theta, e.g. that of a control signal; of a control those rows come back that act in the step.
        chart : Chart, or "coordinates" or "twist"

        Raises
        ------
        InputError
            If the steps have no derivative, or a block is none.
        """
        theta = self.theta if theta is None else np.asarray(theta, dtype=float)
        wanted = [block_directions(self.system, names) for names in (controls, parameters)]
        return StepDerivatives(self.differentiable, self.assembler(), theta, wanted[0], wanted[1], Chart.named(chart))

    def step_operators(self, step: Step | Record, theta: FloatArray | None = None, **options: Any) -> StepOperators:
        """Return the derivatives of a finished step as operators, for big systems; see `step_derivatives`."""
        return step_operators(self.step_derivatives(theta, **options), step)

    def summary(self) -> Summary:
        """Return a few lines: steps, system."""
        rows = [
            (
                "steps",
                f"{self.n_steps} of {self.stepper.dt:g} s, {type(self.stepper).__name__} of order {self.stepper.order}",
            )
        ]
        return Summary("Simulation", (*rows, *self.system.summary().rows))

    @property
    def differentiable(self) -> DifferentiableStepper:
        """The stepper, if it has derivatives.

        Raises
        ------
        InputError
            If it has none.
        """
        if not isinstance(self.stepper, DifferentiableStepper):
            raise InputError(
                "these steps have no derivative", found=type(self.stepper).__name__,
                expected="contact by a penalty law, e.g. contact.friction_law = 'hybrid'",
            )  # fmt: skip
        return self.stepper

    def advance(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step; ``replay`` holds the decisions of an earlier run, which only steps with derivatives do."""
        if replay is None:
            return self.stepper.step(assembler, state, theta)
        return self.differentiable.step(assembler, state, theta, replay)

    def taken(
        self, assembler: Assembler, state: State, theta: FloatArray, n_steps: int, replay: Replay | None = None
    ) -> Iterator[Block | tuple[State, Record]]:
        """Take steps and yield them: blocks of compiled ones, others one by one."""
        stepper, k = self.stepper, 0
        while k < n_steps:
            if isinstance(stepper, BlockStepper) and replay is None:
                piece = stepper.steps(assembler, state, theta, n_steps - k)
            else:
                piece = self.advance(assembler, state, theta, replay.records[k] if replay else None)
            piece = sound(self.system, piece)
            state = state_after(piece, piece.n - 1) if isinstance(piece, Block) else piece[0]
            k += piece.n if isinstance(piece, Block) else 1
            yield piece

    def assembler(self, *, sweeping: bool = False) -> Assembler:
        """Return the matrix workspace of one run, or of a sweep of derivatives.

        Sweeps that several threads share are those of the terms where matrices are sparse: a call works on one thread.
        """
        packed = None if sweeping and self.threads > 1 and self.packed and self.packed.sparse else self.packed
        compiled = CompiledRun(packed) if packed is not None else None
        return Assembler(self.system, self.solver(self.system.n_unknowns), compiled)

    @cached_property
    def packed(self) -> PackedSystem | None:
        """The arrays of compiled steps; None where the terms make the steps themselves (see `add.compiled`)."""
        if self.by_terms:
            _log.debug("steps without compiled ones: %s", self.by_terms)
        return None if isinstance(self._packed, str) else self._packed

    @cached_property
    def by_terms(self) -> str:
        """The reason why the terms make the steps themselves; empty where compiled steps do."""
        return self._packed if isinstance(self._packed, str) else ""

    @cached_property
    def _packed(self) -> PackedSystem | str:
        """The arrays of compiled steps, or why there are none."""
        if self.solver is not factorization_for:
            return "another solver of linear systems is asked for"
        if not (isinstance(self.stepper, BlockStepper | Remembering) or self.stepper.needs_compiled):
            return f"steps of {type(self.stepper).__name__}"
        return packed_or_reason(self.system, self.stepper.needs_compiled)

    def begin(
        self, assembler: Assembler, theta: FloatArray, replay: Replay | None = None
    ) -> tuple[State, Solution | None]:
        """Return the state at t = 0."""
        q, v, record = self.start.evaluate(assembler, theta, replay.start if replay else None)
        return self.stepper.start(q, v), record

    def run(
        self,
        theta: FloatArray | None = None,
        *,
        n_steps: int | None = None,
        observers: Sequence[Observer] = (),
        replay: Replay | None = None,
        state: State | None = None,
    ) -> Trajectory:
        """Run the forward simulation.

        Parameters
        ----------
        theta : (n_theta,), optional
        n_steps : int, optional, from t = 0
        observers : called after every step
        replay : Replay, optional, decisions to hold
        state : State, optional
            Of an earlier run, with its history: go on from there, to the bit, instead of from the start.

        Returns
        -------
        Trajectory

        Raises
        ------
        InputError
            If the run ends before ``state``, or that is of another system.
        SolverError
            If a step fails; its ``trajectory`` holds the steps that were finished, as that of a `MemoryError` does.
        """
        theta = self.theta if theta is None else as_vector("theta", theta, self.theta.size)
        n_steps = self.n_steps if n_steps is None else n_steps
        require_count(n_steps, "n_steps")
        assembler, records = self.assembler(), Records()
        with one_blas_thread():
            start_record: Solution | None = None
            if state is None:
                state, start_record = self.begin(assembler, theta, replay)
            else:
                as_vector("state.q", state.q[0], self.system.n)
            initial = state
            if n_steps < initial.step:
                raise InputError("ends before the state", place="n_steps", found=n_steps, expected=f">= {initial.step}")
            n_steps -= initial.step
            q, v = (np.empty((n_steps + 1, self.system.n)) for _ in range(2))
            t = np.empty(n_steps + 1)
            q[0], v[0], t[0] = state.q[0], state.v[0], state.t
            try:
                for taken in self.taken(assembler, state, theta, n_steps, replay):
                    if isinstance(taken, Block) and not observers:
                        k = len(records) + 1
                        part = slice(k, k + taken.n)
                        q[part], v[part] = taken.steps.states_q[: taken.n], taken.steps.states_v[: taken.n]
                        t[part] = taken.timing.dt * np.arange(initial.step + k, initial.step + k + taken.n)
                        records.extend(taken)
                        continue
                    # Step by step: a run that an observer ends has what that one has seen.
                    for j, (state, record) in enumerate(stepwise(taken)):
                        k = len(records) + 1
                        q[k], v[k], t[k] = state.q[0], state.v[0], state.t
                        records.append((taken, j) if isinstance(taken, Block) else record)
                        for observer in observers:
                            observer(state, record)
            except (SolverError, KeyboardInterrupt, MemoryError) as error:
                done = len(records) + 1
                partial = Trajectory(t[:done], q[:done], v[:done], start_record, records, initial)
                error.trajectory = partial  # type: ignore[union-attr]
                raise
        return Trajectory(t, q, v, start_record, records, initial)
