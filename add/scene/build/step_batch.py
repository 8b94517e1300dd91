"""The same step of many states, each with its own controls and numbers, in one compiled call where there is one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.compiled.members import CompiledMembers, Members
from add.equations import charts
from add.equations.kinematics import State, StateTangent
from add.errors import InputError, SolverError
from add.linalg import one_blas_thread
from add.scene.build.inputs import of_member, require_finite_rows
from add.scene.build.step_arguments import Rows
from add.scene.build.steps import Step, StepFunction
from add.simulation.bdf import BDF, record_of, state_after
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class StepBatch:
    """Steps that were taken, one a member.

    Attributes
    ----------
    function : StepFunction
    values, thetas : (b, n_s), (b, n_theta)
        The scene's numbers, and theta, that each was taken with.
    k : (b,) steps behind each state before
    before : coordinates and velocities of the pairs before (b, m, n)
    q, v : (b, m, n)
        Of the pairs after the step, NaN of a member that failed.
    failures : number of the member -> its error
    """

    function: StepFunction
    values: FloatArray
    thetas: FloatArray
    k: IntArray
    before: tuple[FloatArray, FloatArray]
    q: FloatArray
    v: FloatArray
    failures: Mapping[int, SolverError]
    _members: Members | None = field(repr=False)
    _taken: Mapping[int, Step] = field(repr=False)

    def step(self, i: int) -> Step:
        """Return the step of a member that did not fail."""
        if i in self._taken:
            return self._taken[i]
        assert self._members is not None
        block, k = self._members.block(i), int(self.k[i])
        before = State(k * self.function.simulation.stepper.dt, k, self.before[0][i], self.before[1][i])
        after, record = state_after(block, 0), record_of(block, 0)
        return Step(self.function, before, after, record, self.values[i], self.thetas[i])

    def pullback(
        self, q_bar: FloatArray, v_bar: FloatArray
    ) -> tuple[FloatArray, FloatArray, dict[str, FloatArray], dict[str, FloatArray]]:
        """Pull cotangents (b, m, n) back to the pairs before (b, m, n), controls and inputs, a row a member."""
        function, b = self.function, self.k.size
        q, v, theta_bars = np.zeros_like(self.q), np.zeros_like(self.v), np.zeros_like(self.thetas)
        alone = list(range(b))
        if self._members is not None:
            with one_blas_thread():
                alone = self._pull_compiled(self._members, (q_bar, v_bar), (q, v), theta_bars)
        s_bars = function.arguments.pull_numbers(self.values, theta_bars)
        out = function.arguments.inputs.cotangents(s_bars)
        by_control = {
            name: np.empty((b, *place.shape)) for name, place in function.arguments.places(int(self.k[0])).items()
        }
        for k in np.unique(self.k).tolist():
            members = self.k == k
            for name, place in function.arguments.places(k).items():
                by_control[name][members] = s_bars[members][:, place]
        for i in alone:
            one = self.step(i).vjp(q_bar[i], v_bar[i])
            q[i], v[i] = one.q, one.v
            for bars, rows in ((one.control, by_control), (one.inputs, out)):
                for name, bar in bars.items():
                    rows[name][i] = bar
        return q, v, by_control, out

    def _pull_compiled(
        self,
        members: Members,
        bars: tuple[FloatArray, FloatArray],
        into: tuple[FloatArray, FloatArray],
        theta_bars: FloatArray,
    ) -> list[int]:
        """Pull back through the compiled steps; return the members that are left."""
        stepper = self.function.simulation.stepper
        assert isinstance(stepper, BDF)
        q_bars, v_bars = (np.zeros((*bar.shape[:1], 2, *bar.shape[1:])) for bar in bars)
        q_bars[:, 1], v_bars[:, 1] = bars
        for i in np.flatnonzero(members.steps.turned.any(axis=1)).tolist():
            record = record_of(members.block(i), 0)
            assert record.unchanged is not None
            bar = charts.pullback(record.unchanged, record.charts, StateTangent(q_bars[i, 1], v_bars[i, 1]))
            q_bars[i, 1], v_bars[i, 1] = bar.q, bar.v
        by_theta = np.zeros_like(theta_bars)
        solved = CompiledMembers(members.system).pull_back(members, self.thetas, (q_bars, v_bars), by_theta)
        solved &= members.found
        first = solved & (self.k == 0)  # a start has no history
        for out, pulled in zip(into, (q_bars, v_bars), strict=True):
            out[solved] = pulled[solved, 0]
        q, v = into
        for i in np.flatnonzero(first).tolist():
            q[i, 0], v[i, 0] = stepper.start_pullback(StateTangent(q[i].copy(), v[i].copy()))
            q[i, 1:] = v[i, 1:] = 0.0
        theta_bars[solved] = by_theta[solved]
        return np.flatnonzero(~solved).tolist()


def step_batch(
    function: StepFunction, q: FloatArray, v: FloatArray, k: IntArray, control: Rows, inputs: Rows
) -> StepBatch:
    """Take one step of many states.

    Parameters
    ----------
    function : StepFunction
    q, v : (b, m, n)
        Pairs of coordinates and velocities.
    k : (b,)
        Steps behind each state; of one with none, only the first pair counts.
    control, inputs : name -> (b, ...)

    Raises
    ------
    InputError, SolverError
        As the function; they name the member where there are several.
    """
    b = k.size
    for name, pairs in (("state.q", q), ("state.v", v)):
        used = np.where((k == 0)[:, None, None] & (np.arange(pairs.shape[1]) > 0)[None, :, None], 0.0, pairs)
        require_finite_rows(name, used, "the state is not finite")
    if (k < 0).any():
        at = int(np.flatnonzero(k < 0)[0])
        raise InputError("a state has steps behind it, or none", place=of_member(at, b, "step"), found=int(k[at]))
    values, thetas = function.arguments.base(inputs, b)
    function.arguments.drive(values, thetas, k, control)
    q, v = q.copy(), v.copy()
    for i in np.flatnonzero(k == 0).tolist():
        first = function.state(q[i], v[i], 0)
        q[i], v[i] = first.q, first.v
    states = None if _compiled(function) else [function.state(q[i], v[i], n) for i, n in enumerate(k.tolist())]
    batch = _taken(function, states, (q, v), k, values, thetas)
    for i, error in batch.failures.items():
        if b > 1:
            raise SolverError(f"member {i}: {error}") from error
        raise error
    return batch


def steps_of(function: StepFunction, states: Sequence[State], values: FloatArray, thetas: FloatArray) -> StepBatch:
    """Take one step of each of several states, with numbers of `StepArguments.base` and `StepArguments.drive`.

    A member that fails is among the batch's `failures`.
    """
    pairs = np.stack([state.q for state in states]), np.stack([state.v for state in states])
    k = np.array([state.step for state in states], dtype=np.int64)
    return _taken(function, states, pairs, k, values, thetas)


def _compiled(function: StepFunction) -> bool:
    """Whether steps of many states can be compiled ones."""
    packed = function.simulation.packed
    return packed is not None and not packed.alone and isinstance(function.simulation.stepper, BDF)


def _taken(
    function: StepFunction,
    states: Sequence[State] | None,
    pairs: tuple[FloatArray, FloatArray],
    k: IntArray,
    values: FloatArray,
    thetas: FloatArray,
) -> StepBatch:
    """Take the steps: compiled, and by the function those that are not found so; ``states`` where none is compiled."""
    stepper, packed = function.simulation.stepper, function.simulation.packed
    members: Members | None = None
    q, v = np.full_like(pairs[0], np.nan), np.full_like(pairs[1], np.nan)
    left = list(range(k.size))
    if packed is not None and _compiled(function):
        assert isinstance(stepper, BDF)
        with one_blas_thread():
            members = stepper.each(CompiledMembers(packed), k, pairs, thetas)
        solved = members.found
        for out, newest, before in zip((q, v), (members.steps.q, members.steps.v), pairs, strict=True):
            out[solved, 0], out[solved, 1] = newest[solved], before[solved, 0]
        for i in np.flatnonzero(solved & members.steps.turned.any(axis=1)).tolist():
            after = state_after(members.block(i), 0)
            q[i], v[i] = after.q, after.v
        left = np.flatnonzero(~solved).tolist()
    taken: dict[int, Step] = {}
    failures: dict[int, SolverError] = {}
    for i in left:
        state = states[i] if states is not None else function.state(pairs[0][i], pairs[1][i], int(k[i]))
        try:
            taken[i] = function.taken(state, values[i], thetas[i])
            q[i], v[i] = taken[i].state.q, taken[i].state.v
        except SolverError as error:
            failures[i] = error
    return StepBatch(function, values, thetas, k, pairs, q, v, failures, members, taken)
