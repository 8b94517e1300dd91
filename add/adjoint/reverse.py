"""The discrete adjoint of a run: exact for the converged steps, whatever the stepper.

The sweep walks backwards over states and records and calls the stepper's `pullback`; it knows neither the integrator
nor where cotangents come from: an objective adds them (`value_and_gradient`), or a caller brings them (`pullback`).
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import zip_longest
from typing import final

import numpy as np

from add.adjoint.schedule import KeptRun, Schedule, StoreAll, WholeSteps, linearisations, prefetch_assemblers
from add.compiled.steps import Block
from add.equations.kinematics import State, StateTangent
from add.errors import InputError
from add.linalg import one_blas_thread
from add.objectives.base import Objective, seen_at, total
from add.simulation import Record, Solution
from add.simulation.bdf import record_of, state_after, stepwise
from add.simulation.derivative import linearise
from add.simulation.kept_states import Records
from add.simulation.run import Observer, Replay, Simulation, Trajectory
from add.simulation.start import Begun
from add.simulation.stepper import TakenStep
from add.solve.step_matrix import Assembler
from add.typing import FloatArray

#: Adds the cotangents of a state and of theta that come from outside: (state, state_bar, theta_bar) -> None.
Seed = Callable[[State, StateTangent, FloatArray], None]


@final
@dataclass
class Evaluation:
    """Value and gradient of an objective, with the states that the schedule kept.

    Attributes
    ----------
    value : float
    gradient : (n_theta,)
    """

    value: float
    gradient: FloatArray


@final
@dataclass(frozen=True)
class Cotangents:
    """Cotangents of all states of a trajectory: derivatives of anything by its ``q`` and ``v``.

    Attributes
    ----------
    q, v : (k + 1, n)
        Of the shapes of `Trajectory.q` and `Trajectory.v`; of a body that changed its rotation vector for another one
        of the same rotation (`Record.charts`), by the one that stands there.
    """

    q: FloatArray
    v: FloatArray


@final
class _ReverseSweep:
    """A reverse sweep in progress: what it has gathered by the state that it has come to.

    ``wanted`` says whether a state, by its number, has cotangents from outside at all; ``arrays``, those of q and v of
    all states from number ``first.step`` on (k + 1, n), are added beside what ``seed`` adds.
    """

    def __init__(
        self,
        simulation: Simulation,
        theta: FloatArray,
        seed: Seed,
        first: State,
        wanted: Callable[[int], bool] = lambda step: True,
        arrays: Cotangents | None = None,
    ) -> None:
        self.simulation, self.theta, self._seed = simulation, theta, seed
        self.wanted, self.arrays, self._first = wanted, arrays, first.step
        self.theta_bar = np.zeros_like(theta)
        self.bar = StateTangent.zeros_like(first)
        # Sums of their own, so that their order does not depend on how steps are cut into blocks.
        self._seeded = np.zeros_like(theta)
        self._by_position = np.zeros(simulation.system.n)

    def seed(self, state: State, bar: StateTangent) -> None:
        """Add the cotangents of a state that come from outside."""
        if self.arrays is not None:
            bar.q[0] += self.arrays.q[state.step - self._first]
            bar.v[0] += self.arrays.v[state.step - self._first]
        if self.wanted(state.step):
            self._seed(state, bar, self._seeded)

    def through(self, assemblers: Sequence[Assembler], steps: Sequence[tuple[State, Record]]) -> None:
        """Go back through consecutive steps, the last first; each is a record with the state after it."""
        stepper, theta = self.simulation.differentiable, self.theta
        # Where there are compiled steps, they go back through what the terms took, too.
        ahead = () if assemblers[0].compiled else (record for _, record in reversed(steps))
        with closing(linearisations(stepper, assemblers, theta, ahead)) as linearised:
            for (state, record), step in zip_longest(reversed(steps), linearised):
                self.seed(state, self.bar)
                self.bar = stepper.pullback(TakenStep(assemblers[0], record, theta, step), self.bar, self.theta_bar)

    def through_block(self, assemblers: Sequence[Assembler], block: Block, n: int) -> None:
        """Go back through the first ``n`` steps of a block of compiled ones."""
        compiled = assemblers[0].compiled
        if compiled is None:
            raise ValueError("compiled steps need their arrays")
        shape = (n + 1, *self.bar.q.shape)
        q_bars, v_bars = np.zeros(shape), np.zeros(shape)
        q_bars[n], v_bars[n] = self.bar.q, self.bar.v
        begin = block.timing.first
        if self.arrays is not None:
            part = slice(begin + 1 - self._first, begin + n + 1 - self._first)
            q_bars[1:, 0] += self.arrays.q[part]
            v_bars[1:, 0] += self.arrays.v[part]
        for k in range(n, 0, -1):
            if self.wanted(begin + k):
                self._seed(state_after(block, k - 1), StateTangent(q_bars[k], v_bars[k]), self._seeded)
        left = compiled.pull_back(block, n, self.theta, (q_bars, v_bars), self._by_position, self.theta_bar)
        self.bar = StateTangent(q_bars[left], v_bars[left])
        stepper = self.simulation.differentiable
        for k in range(left, 0, -1):  # a matrix that compiled steps cannot solve with
            record = record_of(block, k - 1)
            step = linearise(assemblers[0], record.solution, self.theta)
            self.bar = stepper.pullback(TakenStep(assemblers[0], record, self.theta, step), self.bar, self.theta_bar)
            self.bar = StateTangent(self.bar.q + q_bars[k - 1], self.bar.v + v_bars[k - 1])

    def back(self, assemblers: Sequence[Assembler], taken: Sequence[Block | tuple[State, Record]]) -> None:
        """Go back through what was taken, the last first."""
        single: list[tuple[State, Record]] = []
        for part in reversed(taken):
            if isinstance(part, Block) and part.carry:
                single.extend(list(stepwise(part))[::-1])
            elif isinstance(part, Block):
                self.through(assemblers, single[::-1])
                single = []
                self.through_block(assemblers, part, part.n)
            else:
                single.append(part)
        self.through(assemblers, single[::-1])

    def back_through(self, assemblers: Sequence[Assembler], kept: KeptRun) -> None:
        """Go back through the steps of a segment."""
        for group in kept.backwards():
            self.back(assemblers, group)

    def settle(self, assembler: Assembler, first: State) -> None:
        """Take the cotangents of the first state and of theta by it, and all that has been put by."""
        self.seed(first, self.bar)
        self.theta_bar += self._seeded
        if assembler.compiled is not None:
            assembler.compiled.add_start(self.theta, self._by_position, self.theta_bar)

    def finish(self, assembler: Assembler, first: State, start: Solution | None) -> FloatArray:
        """Go back through the start of the run; return the cotangent of theta (n_theta,)."""
        simulation, theta = self.simulation, self.theta
        self.settle(assembler, first)
        q_bar, v_bar = simulation.differentiable.start_pullback(self.bar)
        simulation.start.pullback(Begun(assembler, start, theta), q_bar, v_bar, self.theta_bar)
        return self.theta_bar


def pullback(simulation: Simulation, trajectory: Trajectory, theta: FloatArray, cotangents: Cotangents) -> FloatArray:
    """Pull cotangents of all states of a finished run back to theta; one linear solve a step.

    The transpose of `pushforward`: sum over states of <q_bar, q_dot> + <v_bar, v_dot> = <theta_bar, theta_dot>.

    Parameters
    ----------
    simulation : Simulation
    trajectory : Trajectory
        The run from t = 0, whose decisions are held.
    theta : (n_theta,)
        That of the run.
    cotangents : Cotangents

    Returns
    -------
    (n_theta,)

    Raises
    ------
    InputError
        If the steps have no derivative, the trajectory does not begin at t = 0, or the cotangents have other shapes.
    """
    theta = np.asarray(theta, dtype=float)
    if trajectory.initial.step:
        raise InputError("the run went on from a state of its own", found=f"t = {trajectory.t[0]:g} s", expected="0 s")
    with one_blas_thread():
        sweep, assembler = _swept(simulation, trajectory, theta, cotangents)
        return sweep.finish(assembler, trajectory.initial, trajectory.start)


def pullback_to_state(
    simulation: Simulation, trajectory: Trajectory, theta: FloatArray, cotangents: Cotangents
) -> tuple[FloatArray, StateTangent]:
    """Pull cotangents of all states of a finished run back to theta and to the state that it began with.

    As `pullback`, but theta's share in that state is left out: the state is an input of its own.

    Returns
    -------
    (n_theta,), StateTangent
    """
    theta = np.asarray(theta, dtype=float)
    with one_blas_thread():
        sweep, assembler = _swept(simulation, trajectory, theta, cotangents)
        sweep.settle(assembler, trajectory.initial)
    return sweep.theta_bar, sweep.bar


def _swept(
    simulation: Simulation, trajectory: Trajectory, theta: FloatArray, cotangents: Cotangents
) -> tuple[_ReverseSweep, Assembler]:
    """Return the sweep back to the first state, and the workspace of it; one thread of BLAS is the caller's matter."""
    q_bar, v_bar = np.asarray(cotangents.q, dtype=float), np.asarray(cotangents.v, dtype=float)
    if not q_bar.shape == v_bar.shape == trajectory.q.shape:
        raise InputError(
            "one cotangent a coordinate and state", found=f"{q_bar.shape}, {v_bar.shape}",
            expected=f"{trajectory.q.shape}, twice",
        )  # fmt: skip

    assembler = simulation.assembler(sweeping=True)
    arrays = Cotangents(q_bar, v_bar)
    sweep = _ReverseSweep(simulation, theta, _no_seed, trajectory.initial, lambda step: False, arrays)
    if simulation.threads > 1 and trajectory.records:
        # What threads are to share: the analysis of the pattern and the size of its factors.
        simulation.differentiable.linearise(assembler, trajectory.records[-1], theta)
    sweep.back(prefetch_assemblers(assembler, simulation.threads), _taken(trajectory, assembler))
    return sweep, assembler


def _no_seed(state: State, bar: StateTangent, theta_bar: FloatArray) -> None:
    """Add nothing."""


def _taken(trajectory: Trajectory, assembler: Assembler) -> list[Block | tuple[State, Record]]:
    """Return the steps of a run as they were taken."""
    records = trajectory.records
    out: list[Block | tuple[State, Record]] = []
    blocks = records.blocks() if isinstance(records, Records) and assembler.compiled is not None else None
    for k, block, n in blocks or ((k, None, 1) for k in range(len(records) - 1, -1, -1)):
        whole = block is not None and n == block.n
        if whole and block is not None:
            out.append(block)
        else:
            out.extend((trajectory.state(j + 1), records[j]) for j in range(k + n - 1, k - 1, -1))
    return out[::-1]


def evaluate(
    simulation: Simulation,
    objective: Objective,
    theta: FloatArray | None = None,
    *,
    n_steps: int | None = None,
    replay: Replay | None = None,
    observers: Sequence[Observer] = (),
) -> tuple[float, Trajectory]:
    """Return the objective's value and the run it was found on."""
    theta = simulation.theta if theta is None else theta
    trajectory = simulation.run(theta, n_steps=n_steps, replay=replay, observers=observers)
    return total(objective, trajectory.states(), theta), trajectory


def value_and_gradient(
    simulation: Simulation,
    objective: Objective,
    theta: FloatArray | None = None,
    *,
    n_steps: int | None = None,
    schedule: Schedule | None = None,
    replay: Replay | None = None,
    observers: Sequence[Observer] = (),
) -> Evaluation:
    """Run forward, then pull the objective's derivatives by all states back to theta.

    Parameters
    ----------
    simulation : Simulation
    objective : Objective
    theta : (n_theta,), optional
    n_steps : int, optional
    schedule : Schedule, optional
        Default `StoreAll`. Recomputed segments are bit-equal to the first pass: a step depends on its State alone.
    replay : Replay, optional
        Decisions to hold in the forward pass.
    observers : called after every step of the first forward pass

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        If the steps have no derivative.
    SolverError
        If a step fails.
    """
    simulation.differentiable  # noqa: B018  refused before the run, not after it
    theta = simulation.theta if theta is None else np.asarray(theta, dtype=float)
    n_steps = simulation.n_steps if n_steps is None else n_steps
    schedule = schedule or StoreAll()
    segments = schedule.segments(n_steps)
    objective = objective.for_run()
    seen = seen_at(objective, theta)
    assembler = simulation.assembler(sweeping=True)

    def wanted(step: int) -> bool:
        return seen(step) is not None

    def step_value(state: State) -> float:
        part = seen(state.step)
        return 0.0 if part is None else part.step_value(state, theta)

    def taken(state: State, first: int, last: int, *, watching: bool = False) -> tuple[KeptRun, State]:
        """Take the steps of a segment; return what is kept of them, and the state after the last."""
        steps = schedule.keep(state)
        held = Replay(None, replay.records[first:last]) if replay else None
        for piece in simulation.taken(assembler, state, theta, last - first, held):
            steps.append(piece)
            state = state_after(piece, piece.n - 1) if isinstance(piece, Block) else piece[0]
            if watching:
                add_values(piece)
            for after, record in stepwise(piece) if watching and observers else ():
                for observer in observers:
                    observer(after, record)
        return steps, state

    def seed(state: State, bar: StateTangent, theta_bar: FloatArray) -> None:
        if (part := seen(state.step)) is not None:
            part.step_pullback(state, theta, bar, theta_bar)

    with one_blas_thread():
        state, start = simulation.begin(assembler, theta, replay)
        value = objective.parameter_value(theta) + step_value(state)
        checkpoints: list[State] = []
        steps: KeptRun = WholeSteps()

        def add_values(found: Block | tuple[State, Record]) -> None:
            nonlocal value
            if not isinstance(found, Block):
                value += step_value(found[0])
                return
            for k in range(found.n):
                if wanted(found.timing.first + k + 1):
                    value += step_value(state_after(found, k))

        for first, last in segments:
            checkpoints.append(state)
            steps, state = taken(state, first, last, watching=True)

        assemblers = prefetch_assemblers(assembler, simulation.threads)
        sweep = _ReverseSweep(simulation, theta, seed, checkpoints[0], wanted)
        objective.parameter_gradient(theta, sweep.theta_bar)
        sweep.back_through(assemblers, steps)
        for (first, last), checkpoint in zip(reversed(segments[:-1]), reversed(checkpoints[:-1]), strict=True):
            sweep.back_through(assemblers, taken(checkpoint, first, last)[0])
        gradient = sweep.finish(assembler, checkpoints[0], start)
    return Evaluation(value, gradient)
