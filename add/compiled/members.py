"""Compiled steps of many states at once, one step each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.compiled.each import pull_back_each, take_each
from add.compiled.newton import Criteria
from add.compiled.pack import PackedSystem
from add.compiled.run import Block
from add.compiled.steps import Steps, Timing
from add.compiled.walk import no_choices
from add.compiled.windows import CHUNK, windows
from add.equations.family_term import plain
from add.kernels.arena import Signals
from add.typing import BoolArray, FloatArray, IntArray

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
    """

    system: PackedSystem
    timing: Timing
    firsts: IntArray
    steps: Steps
    found: BoolArray
    q: FloatArray
    v: FloatArray

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
        return Block(self.system, timing, one, int(self.found[k]), self.q[k], self.v[k])


@final
class CompiledMembers:
    """The compiled steps of many states of one system; never shared between threads.

    It keeps the windows of signals, which depend on time alone.
    """

    def __init__(self, system: PackedSystem) -> None:
        self.system = system
        self._given = _NOTHING, no_choices(len(system.system.deciding))
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
            own = chunks == chunk
            weights[own, : signals.weights.shape[1]] = signals.weights[inside[own]]
            table[own] = signals.table[inside[own]]
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
        q, v = plain(before[0]), plain(before[1])
        found, *steps = take_each(
            *self.system.common, timing, firsts, criteria, (q, v), self._starts(thetas),
            self._signals(timing.dt, firsts), thetas, False, self._given,
        )  # fmt: skip
        return Members(self.system, timing, firsts, Steps(*steps), found, plain(q[:, 0]), plain(v[:, 0]))

    def pull_back(
        self, members: Members, thetas: FloatArray, bars: tuple[FloatArray, FloatArray], theta_bars: FloatArray
    ) -> BoolArray:
        """Pull cotangents of the pairs after the steps, before any change of chart, back; return whose could be.

        Parameters
        ----------
        bars : of q and of v (b, 2, 2, n); row 1 is given, row 0 becomes the cotangent of the pairs before
        theta_bars : (b, n_theta), added to
        """
        thetas = plain(thetas)
        by_positions = np.zeros((thetas.shape[0], self.system.system.n))
        steps = members.steps._replace(turned=np.zeros_like(members.steps.turned))
        solved: BoolArray = pull_back_each(
            *self.system.common, members.timing, members.firsts, steps, (members.q, members.v),
            self._signals(members.timing.dt, members.firsts), thetas, bars, by_positions, theta_bars,
        )  # fmt: skip
        if self._prescribed.size:
            motion = self.system.system.motion
            for k in np.flatnonzero(solved):
                index, rows = motion.start_rows(thetas[k])
                theta_bars[k, index] += by_positions[k, self._prescribed] @ rows
        return solved
