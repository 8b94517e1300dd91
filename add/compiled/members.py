"""Compiled steps of many states at once, one step each, and the way back through it.

Members do not meet: each one is a block of one step of `add.compiled.steps`, so that its numbers are those of a step
taken alone, to the bit.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from add.compiled.newton import FRESH, Criteria
from add.compiled.pack import PackedSystem
from add.compiled.steps import Block, Steps, Timing, pull_back_steps, take_steps
from add.compiled.structure import CHUNK, windows
from add.compiled.walk import choices_of, no_choices, with_rows
from add.equations.family_term import plain
from add.kernels.arena import Signals
from add.kernels.caching import njit
from add.typing import BoolArray, FloatArray, IntArray


@njit(cache=True, error_model="numpy", nogil=True)
def take_each(arrays, routines, timing, criteria, before, starts, signals, thetas, given):
    """Take one step of each of b states.

    As `add.compiled.steps.take_steps`, where ``before`` are the numbers (b,) of the states before, q and v (b, 2, n),
    ``starts`` (b, n_p), ``signals`` a row a member and ``thetas`` (b, n_theta); no step is replayed.

    Returns which members (b,) were found by the normal path, and the fields of `Steps` with a row a member.
    """
    firsts, q_before, v_before = before
    b, n = q_before.shape[0], q_before.shape[2]
    n_choices = given[1].ends.size
    solved = np.zeros(b, dtype=np.bool_)
    q, v, a = np.zeros((b, n)), np.zeros((b, n)), np.zeros((b, n))
    states_q, states_v = np.zeros((b, n)), np.zeros((b, n))
    counts, tolerance = np.zeros((b, 5), dtype=np.int64), np.zeros(b)
    merits = np.zeros((b, criteria.max_iterations + 1))
    rows, n_rows = np.empty((4 * b, 3), dtype=np.int64), 0
    ends = np.zeros((b, n_choices), dtype=np.int64)
    turned = np.zeros((b, 0), dtype=np.bool_)
    for k in range(b):
        clock = Timing(timing.dt, firsts[k], timing.c, timing.alpha_0, timing.alpha_1)
        now = Signals(signals.weights[k : k + 1], signals.table[k : k + 1])
        (
            done, q_k, v_k, a_k, states_q_k, states_v_k, turned_k, counts_k, tolerance_k, merits_k, rows_k, ends_k, _,
        ) = take_steps(
            arrays, routines, clock, criteria, (q_before[k], v_before[k]), starts[k], now, thetas[k], False, given
        )  # fmt: skip
        if k == 0:
            turned = np.zeros((b, turned_k.shape[1]), dtype=np.bool_)
        ends[k] = n_rows
        if done == 0:
            continue
        solved[k] = True
        q[k], v[k], a[k], states_q[k], states_v[k] = q_k[0], v_k[0], a_k[0], states_q_k[0], states_v_k[0]
        turned[k], counts[k], tolerance[k] = turned_k[0], counts_k[0], tolerance_k[0]
        # Beyond the last iterate a row holds whatever the memory held.
        merits[k, : counts_k[0, 1] + 1] = merits_k[0, : counts_k[0, 1] + 1]
        rows = with_rows(rows, n_rows, rows_k)
        for i in range(n_choices):
            ends[k, i] += ends_k[0, i]
        n_rows += rows_k.shape[0]
    return (
        solved, q, v, a, states_q, states_v, turned, counts, tolerance, merits, rows[:n_rows].copy(), ends,
    )  # fmt: skip


@njit(cache=True, error_model="numpy", nogil=True)
def pull_back_each(arrays, routines, timing, steps, before, signals, thetas, bars, by_positions, theta_bars):
    """Pull the cotangents of the states after the steps of `take_each` back.

    ``before`` are the numbers (b,) of the states before, q and v (b, n) of their newest pairs, ``bars`` those of q and
    v (b, 2, 2, n): of each member, row 1 the cotangent of the pairs after the step, row 0 takes that of the pairs
    before. ``by_positions`` (b, n) and ``theta_bars`` (b, n_theta) as in `add.compiled.steps.pull_back_steps`.

    Returns which members (b,) had a matrix that could be solved with.
    """
    (firsts, q_before, v_before), (q_bars, v_bars) = before, bars
    b = thetas.shape[0]
    solved = np.zeros(b, dtype=np.bool_)
    for k in range(b):
        clock = Timing(timing.dt, firsts[k], timing.c, timing.alpha_0, timing.alpha_1)
        now = Signals(signals.weights[k : k + 1], signals.table[k : k + 1])
        chosen, part = choices_of(steps, k), slice(k, k + 1)
        step = Steps(
            steps.q[part], steps.v[part], steps.a[part], steps.states_q[part], steps.states_v[part],
            steps.turned[part], steps.counts[part], steps.tolerance[part], steps.merits[part],
            chosen.rows, chosen.ends.reshape((1, chosen.ends.size)),
        )  # fmt: skip
        left = pull_back_steps(
            arrays, routines, clock, step, (q_before[k], v_before[k]), now, thetas[k], (q_bars[k], v_bars[k]),
            by_positions[k], theta_bars[k],
        )  # fmt: skip
        solved[k] = left == 0
    return solved


_NOTHING: FloatArray = np.zeros(0)


@final
@dataclass(frozen=True, eq=False)
class Members:
    """One step of each of b states.

    Attributes
    ----------
    system : PackedSystem
    timing : Timing
        Its number of the first state is none of these.
    firsts : (b,) numbers of the states before
    steps : Steps
        A row a member.
    found : (b,) whether the normal path found the step
    q, v : (b, n) newest pair of each state before
    mu : (b, m) multipliers
    """

    system: PackedSystem
    timing: Timing
    firsts: IntArray
    steps: Steps
    found: BoolArray
    q: FloatArray
    v: FloatArray
    mu: FloatArray

    def block(self, k: int) -> Block:
        """Return the step of member ``k`` as a block of one."""
        steps, part = self.steps, slice(k, k + 1)
        ends = steps.ends[k]
        one = Steps(
            steps.q[part], steps.v[part], steps.a[part], steps.states_q[part], steps.states_v[part],
            steps.turned[part], steps.counts[part], steps.tolerance[part], steps.merits[part],
            steps.rows[ends[0] : ends[-1]], (ends - ends[0])[None],
        )  # fmt: skip
        timing = self.timing._replace(first=int(self.firsts[k]))
        return Block(self.system, timing, one, int(self.found[k]), self.q[k], self.v[k], mu=self.mu[part])


@final
class CompiledMembers:
    """The compiled steps of many states of one system; never shared between threads.

    It keeps the windows of signals, which depend on time alone.
    """

    def __init__(self, system: PackedSystem) -> None:
        self.system = system
        self._given = _NOTHING, no_choices(len(system.system.deciding)), FRESH
        self._windows: dict[tuple[float, int], Signals] = {}
        self._prescribed = system.system.partition.prescribed

    def _signals(self, dt: float, firsts: IntArray) -> Signals:
        """Return the signals at the end of each member's step, those of `CompiledRun` to the bit."""
        chunks, inside = np.divmod(firsts + 1, CHUNK)
        parts = []
        for chunk in np.unique(chunks).tolist():
            if (dt, chunk) not in self._windows:
                times = dt * np.arange(chunk * CHUNK, (chunk + 1) * CHUNK, dtype=float)
                self._windows[dt, chunk] = windows(self.system.signals, times)
            parts.append((chunk, self._windows[dt, chunk]))
        width = max(signals.weights.shape[1] for _, signals in parts)
        weights = np.zeros((firsts.size, width))
        table = np.zeros((firsts.size, *parts[0][1].table.shape[1:]), dtype=np.int64)
        for chunk, signals in parts:
            members = chunks == chunk
            weights[members, : signals.weights.shape[1]] = signals.weights[inside[members]]
            table[members] = signals.table[inside[members]]
        return Signals(weights, table)

    def _starts(self, thetas: FloatArray) -> FloatArray:
        motion = self.system.system.motion
        if not self._prescribed.size:
            return np.zeros((thetas.shape[0], 0))
        return np.stack([motion.start(theta) for theta in thetas])

    def take(
        self,
        timing: Timing,
        firsts: IntArray,
        criteria: Criteria,
        before: tuple[FloatArray, FloatArray],
        thetas: FloatArray,
    ) -> Members:
        """Take one step of each state.

        Parameters
        ----------
        firsts : (b,) numbers of the states
        before : q and v (b, 2, n), newest first
        thetas : (b, n_theta)
        """
        firsts, thetas = plain(np.asarray(firsts, dtype=np.int64)), plain(thetas)
        packed = self.system
        q, v = (plain(packed.with_multipliers(x)) for x in before)
        solved, *fields = take_each(
            *packed.common, timing, criteria, (firsts, q, v), self._starts(thetas),
            self._signals(timing.dt, firsts), thetas, self._given,
        )  # fmt: skip
        steps, mu = packed.divided(fields)
        q, v = (plain(x[:, 0]) for x in before)
        return Members(packed, timing, firsts, Steps(*steps), solved, q, v, mu)

    def pull_back(
        self, members: Members, thetas: FloatArray, bars: tuple[FloatArray, FloatArray], theta_bars: FloatArray
    ) -> BoolArray:
        """Pull cotangents of the pairs after the steps, before any change of chart, back; return whose could be.

        Parameters
        ----------
        bars : of q and of v (b, 2, 2, n); row 1 is given, row 0 becomes the cotangent of the pairs before
        theta_bars : (b, n_theta), added to
        """
        thetas, wide = plain(thetas), self.system.with_multipliers
        all_bars, by_positions = tuple(map(wide, bars)), wide(np.zeros((thetas.shape[0], self.system.system.n)))
        steps = members.steps._replace(turned=np.zeros_like(members.steps.turned))
        solved: BoolArray = pull_back_each(
            *self.system.common, members.timing, self.system.with_all(steps, members.mu),
            (members.firsts, wide(members.q), wide(members.v)),
            self._signals(members.timing.dt, members.firsts), thetas, all_bars, by_positions, theta_bars,
        )  # fmt: skip
        for mine, own in zip(all_bars, bars, strict=True):
            own[...] = mine[..., : own.shape[-1]]
        if self._prescribed.size:
            motion = self.system.system.motion
            for k in np.flatnonzero(solved):
                index, rows = motion.start_rows(thetas[k])
                theta_bars[k, index] += by_positions[k, self._prescribed] @ rows
        return solved
