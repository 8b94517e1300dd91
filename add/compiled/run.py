"""Compiled steps of one run: what they share, blocks of steps and the way back through them."""

import operator
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, final

import numpy as np

from add.compiled.equations import Reading, as_choices, push_steps, state_matrices, step_matrices
from add.compiled.holding import MOST_ITERATIONS, Held, held_at_rest, holding
from add.compiled.newton import FRESH, HOLDING, MOVING, RESTING, Begun, Criteria
from add.compiled.pack import Others, PackedSystem
from add.compiled.routines import AskedLimit, Routines
from add.compiled.stages import pull_back_stages
from add.compiled.steps import Block, Steps, Timing, pull_back_steps, take_steps
from add.compiled.structure import CHUNK, SignalsOfSteps, windows
from add.compiled.walk import Along, Choices, no_choices
from add.equations.family_term import plain
from add.equations.kinematics import Columns, Directions, Kinematics, StateTangents
from add.equations.term import AllCandidates, Decisions
from add.errors import SolverError
from add.kernels.arena import Arena, Signals
from add.linalg.blas import Blas, addresses
from add.typing import AnyArray, FloatArray, IntArray

_NOTHING: FloatArray = np.zeros(0)


@final
class CompiledRun:
    """The compiled steps of one run; never shared between runs.

    It keeps what depends on theta or time alone: prescribed coordinates, windows of signals. ``rested``: whether the
    step that the last call did not find has been tried with what rests before it held.
    """

    def __init__(self, system: PackedSystem) -> None:
        self.system, self._failed = system, (0.0, -1, _NOTHING, (_NOTHING, FRESH))
        self._none = no_choices(len(system.system.deciding))
        self._nothing: Decisions = (self._none.rows,) * len(system.system.deciding)
        self._theta: FloatArray | None = None
        self._start = _NOTHING
        self._rows: tuple[Any, FloatArray] | None = None
        self._of_steps = SignalsOfSteps(system.signals)
        self._prescribed = system.system.partition.prescribed
        self._directions: Directions | None = None
        # What an arena of a step was made of, all of which must outlive it, and the arena.
        self._last: tuple[Others | None, dict[int, tuple[AnyArray, ...]], Others | None, Arena]
        self._last = None, {}, None, system.arena
        self._places: AllCandidates = ()
        self._arena: Arena = system.arena
        self._sizes: tuple[Others, ...] = ()
        self._limit = None if system.system.limit is None else AskedLimit(system.system.limit, system.system.n)
        self._rows_along = Along(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), _NOTHING, 0, False)
        self._holding: dict[Held, CompiledRun | None] = {}
        self._at_first = False  # whether the last call ended at a first guess where something may rest
        self.rested = False

    @property
    def dense(self) -> bool:
        """Whether matrices are dense; sparse ones are not handed out, and tangents take those of the terms."""
        return not self.system.sparse

    def failed(self, timing: Timing, q: FloatArray, theta: FloatArray) -> tuple[FloatArray, Begun] | None:
        """Return what the last call ended with where it did not find the step after q (n,); None where it did not try.

        That is u, with multipliers, where something is to be held, as loosely solved as shows it, and else empty; and
        what has been done for it.
        """
        dt, step, before, ended = self._failed
        tried = (dt, step) == (timing.dt, timing.first) and np.array_equal(before, q)
        same = self._theta is not None and np.array_equal(self._theta, theta)
        return ended if tried and same else None

    def holding(self, held: Held) -> "CompiledRun | None":
        """Return the run of the system with multipliers more that hold what sticks; None for none."""
        if not any(held):
            return self
        if held not in self._holding:
            packed = holding(self.system, held)
            self._holding[held] = None if packed is None else CompiledRun(packed)
        return self._holding[held]

    def _of(self, block: Block) -> "CompiledRun":
        """Return the run that a block is one of."""
        mine, theirs = self.system.system, block.system.system
        run = self if mine.n_multipliers == theirs.n_multipliers else self.holding(mine.held(block.decisions(0)))
        assert run is not None
        return run

    def take_resting(
        self, timing: Timing, criteria: Criteria, before: tuple[FloatArray, FloatArray], n: int, theta: FloatArray
    ) -> Block | None:
        """Take up to ``n`` steps in which equations hold what rests, or one that ended at its first guess for that."""
        if not self.dense or self.system.changing:
            return None  # the terms hold what rests
        held = held_at_rest(self.system.system, self._before(timing, *before), theta)
        run, rested = self.holding(held) if any(held) else None, not any(held)
        if run is not None:
            few = criteria._replace(max_iterations=min(criteria.max_iterations, MOST_ITERATIONS))
            if (block := run.take(timing, few, before, n, theta)).n:
                return block
            done = run._failed[-1][-1]
            rested = done.iterations == few.max_iterations or (done.scale < 0.0 and done.iterations > 0)
        moving = self.take(timing, criteria, before, 1, theta, begun=MOVING) if self._at_first else None
        self.rested = rested
        return moving

    def copy(self) -> "CompiledRun":
        """Return another one for the same run, to be used at the same time."""
        return CompiledRun(self.system)

    def _of_block(self, block: Block) -> tuple[Arena, Routines]:
        """Return the arguments that compiled steps begin with for a block: where patterns change, for its one step.

        The places of the block before serve as long as they suffice: what a step may meet has all that acts at its
        beginning, so that a sweep back makes every second pattern at most where steps meet what was foreseen.
        """
        if not self.system.changing:
            return self._common(())
        chosen = as_choices(block.decisions(0), self._none)
        if not self._places or self._with_places(chosen, self._places) is not self._places:
            self._places = self._with_places(chosen, block.candidates)
        return self._common(self._nothing if self._places else block.decisions(0), self._places)

    def _common(self, decisions: Decisions, candidates: AllCandidates = ()) -> tuple[Arena, Routines]:
        """Return the arguments that compiled steps begin with, with places for decisions and candidates."""
        packed = self.system
        arena, routines = self._arena, packed.common[1]
        if packed.changing:
            parts = {
                k: (packed.system.deciding[number], decisions[number], candidates[number] if candidates else None)
                for k, number in packed.changing.items()
            }
            pattern = packed.patterns.get(
                tuple([term.structure(rows, near) for term, rows, near in parts.values()]),
                lambda: packed.of_step({k: term.family_of_step(rows, near) for k, (term, rows, near) in parts.items()}),
            )
            now = {k: term.arrays_now() for k, (term, _, _) in parts.items()}
            last, then, _, arena = self._last
            if last is not pattern or any([now[k][0] is not arrays[0] for k, arrays in then.items()]):
                others = packed.of_now(now)
                arena = packed.arena_with(pattern, others, *self._sizes)
                self._last = pattern, now, others, arena
        return arena, routines

    @staticmethod
    def _before(timing: Timing, q: FloatArray, v: FloatArray) -> Kinematics:
        """Return the state before a step, from its pairs."""
        return Kinematics(q[0], v[0], (v[0] - v[1]) / timing.dt, timing.first * timing.dt, timing.first)

    def _candidates(self, timing: Timing, q: FloatArray, v: FloatArray, theta: FloatArray) -> AllCandidates:
        """Return what the terms whose patterns change may decide in the step that follows the pairs q and v."""
        if not self.system.changing:
            return ()
        kin, changing = self._before(timing, q, v), self.system.changing.values()
        terms = enumerate(self.system.system.deciding)
        return tuple([term.candidates(kin, theta, timing.dt) if number in changing else None for number, term in terms])

    def _at(self, theta: FloatArray) -> None:
        """Take new parameters, also where the array is the same and its numbers are others."""
        if self._theta is None or not np.array_equal(self._theta, theta):
            self._theta, self._rows = theta.copy(), None
            self._start = self.system.system.motion.start(theta) if self._prescribed.size else _NOTHING
            if self.system.sized:
                self._sizes = (self.system.of_now({k: one.arrays_at(theta) for k, one in self.system.sized.items()}),)
                self._arena = self.system.arena_with(*self._sizes)
                self._last = None, {}, None, self._arena

    def signals(self, timing: Timing, n: int, stages: FloatArray | None = None) -> Signals:
        """Return the signals at the ends, or at the ``stages``, of steps."""
        return self._of_steps.of(timing.dt, timing.first + 1, n, stages)

    @property
    def explicit(self) -> tuple[Arena, tuple[Blas, tuple[IntArray, IntArray, IntArray]]]:
        """The arguments that explicit steps begin with."""
        return self.system.arena, (addresses(), self.system.depending)

    def take(
        self,
        timing: Timing,
        criteria: Criteria,
        before: tuple[FloatArray, FloatArray],
        n: int,
        theta: FloatArray,
        replay: tuple[FloatArray, Decisions, AllCandidates] | None = None,
        begun: Begun = FRESH,
    ) -> Block:
        """Take up to ``n`` steps, fewer at the end of a chunk or where one is not found by the normal path.

        Parameters
        ----------
        before : q and v (2, n_coordinates), newest first
        replay : of one step, u to begin with, decisions to hold, and the candidates that it had
        begun : of one step, what is known of it
        """
        self._at(theta := plain(theta))
        n = min(n, CHUNK - (timing.first + 1) % CHUNK, self.system.steps_a_call)
        u, held = (_NOTHING, self._none) if replay is None else (plain(replay[0]), as_choices(replay[1], self._none))
        packed, u, self.rested = self.system, self.system.with_multipliers(u) if u.size else u, False
        q, v = (plain(packed.with_multipliers(x)) for x in before)
        candidates = self._candidates(timing, *before, theta) if replay is None else replay[2]
        asked = self._nothing if replay is None else replay[1]
        while True:
            arena, routines = self._common(asked, candidates)
            if self._limit is not None:
                routines = routines._replace(limit=self._limit.asked_at(theta))
            with nullcontext() if self._limit is None else self._limit.heard():
                taken, *fields, (u_left, chosen, iterations, factorizations, scale) = take_steps(
                    arena, routines, timing, criteria, (q, v),
                    self._start, self.signals(timing, n), theta, replay is not None, (u, held, begun),
                )  # fmt: skip
            given_up = not taken and replay is None and scale >= 0.0
            wider = self._with_places(Choices(*chosen), candidates) if given_up else candidates
            if wider is candidates:
                break
            # What acts by now had no places in the matrix.
            candidates, u, begun = wider, u_left, Begun(iterations, factorizations, scale, fields[-3][0, :iterations])
        fields, mu = packed.divided(fields)
        steps, before = Steps(*fields), (plain(before[0][0]), plain(before[1][0]))
        ahead = steps.states_q[taken - 1] if taken else before[0]
        self._failed, self._at_first = (0.0, -1, ahead, (_NOTHING, FRESH)), taken < n and scale == RESTING
        if taken < n and not self._at_first:
            done = Begun(iterations, factorizations, scale, fields[-3][taken, :iterations].copy())
            loose = u_left if scale == HOLDING else _NOTHING
            self._failed = timing.dt, timing.first + taken, ahead, (loose, done)
        if not steps.turned.any():  # states are solutions: kept once
            steps = steps._replace(states_q=steps.q, states_v=steps.v)
        return Block(packed, timing, steps, taken, *before, candidates, mu)

    def pull_back(
        self,
        block: Block,
        n: int,
        theta: FloatArray,
        bars: tuple[FloatArray, FloatArray],
        by_position: FloatArray,
        theta_bar: FloatArray,
    ) -> int:
        """Pull cotangents back through the first ``n`` steps of a block; return how many are left.

        None are, unless the matrix of one cannot be solved with. ``bars`` (n + 1, 2, n_coordinates) as in
        `add.compiled.steps.pull_back_steps`; ``by_position`` (n_coordinates,) takes what `add_start` wants.
        """
        if (run := self._of(block)) is not self:
            return run.pull_back(block, n, theta, bars, by_position, theta_bar)
        theta = plain(theta)
        if block.stages is not None:
            left = pull_back_stages(
                *self.explicit, block.timing, block.steps, block.stages, (block.q, block.v),
                self.signals(block.timing, n, block.stages.tableau.c), theta, bars, theta_bar,
            )  # fmt: skip
            if left:
                raise SolverError(f"derivative of step {block.timing.first + left}: a mass matrix is singular")
            return 0
        self._at(theta)
        wide, size = self.system.with_multipliers, by_position.size
        all_bars, positions = tuple(map(wide, bars)), wide(by_position)
        left = pull_back_steps(
            *self._of_block(block), block.timing, self.system.with_all(block.steps, block.mu),
            (wide(block.q), wide(block.v)), self.signals(block.timing, n), theta, all_bars, positions, theta_bar,
        )  # fmt: skip
        if self.system.system.n_multipliers:
            for mine, own in zip((*all_bars, positions), (*bars, by_position), strict=True):
                own[...] = mine[..., :size]
        return int(left)

    def matrices_at(
        self, t: float, kin: tuple[FloatArray, FloatArray, FloatArray], theta: FloatArray, directions: Directions
    ) -> tuple[FloatArray, Columns]:
        """Return dr/dq, dr/dv, dr/da (3, n, n) at a time, where nothing decides, and dr along directions."""
        now = windows(self.system.signals, np.array([t]))
        by_state, index, by_theta = state_matrices(
            *self.system.common, t, tuple(plain(x) for x in kin), plain(theta), Signals(now.weights[0], now.table[0]),
            self._none, self._along(directions),
        )  # fmt: skip
        return np.transpose(by_state, (0, 2, 1)), Columns(index, by_theta.T)

    def matrices(
        self,
        timing: Timing,
        kin: tuple[FloatArray, FloatArray, FloatArray],
        decisions: Decisions,
        theta: FloatArray,
        directions: Directions,
    ) -> tuple[FloatArray, Columns]:
        """Return dr/dq, dr/dv, dr/da (3, n, n) of a solved step, the first of ``timing``, and dr along directions.

        ``kin`` are q, v and a with multipliers behind them, of which the matrices have rows and columns.
        """
        along, time, instant = (
            self._along(directions),
            (timing.first + 1) * timing.dt,
            self._instant(timing, kin, theta),
        )
        by_state, index, by_theta = state_matrices(
            *self._common(decisions), time, *instant, as_choices(decisions, self._none), along
        )
        return np.transpose(by_state, (0, 2, 1)), Columns(index, by_theta.T)

    def step_matrices(
        self,
        timing: Timing,
        step: tuple[float, Sequence[float], int],
        kin: tuple[FloatArray, FloatArray, FloatArray],
        decisions: Decisions,
        theta: FloatArray,
        directions: Directions,
    ) -> tuple[FloatArray, Columns] | None:
        """Return the transition of a solved step (2 m n, 2 m n) and its derivatives along directions (2 m n, k).

        ``kin`` are q, v and a with multipliers behind them, ``step`` c, the history coefficients, and the number m of
        pairs that a state holds. None where the matrix of the step cannot be solved with.
        """
        c, alpha, pairs = step
        reading = Reading((timing.first + 1) * timing.dt, c, np.array(alpha), pairs)
        along, instant = self._along(directions), self._instant(timing, kin, theta)  # now arrays are those of theta
        transition, by_theta, index, solved = step_matrices(
            *self._common(decisions), reading, *instant, as_choices(decisions, self._none), along
        )
        if not solved:
            return None
        n = self.system.system.n
        size, each = 2 * pairs * n, (2 * pairs, kin[0].size)
        transition = transition.reshape(*each, *each)[:, :n, :, :n].reshape(size, size)
        return transition, Columns(index, by_theta.reshape(*each, index.size)[:, :n].reshape(size, index.size))

    def push(
        self, block: Block, first: int, n: int, theta: FloatArray, tangents: StateTangents, directions: Directions
    ) -> tuple[int, IntArray, FloatArray, FloatArray]:
        """Push the tangents of the state before step ``first`` of a block through n steps, all coordinates free.

        Returns how many steps could be solved with, the directions (k,) that have moved anything, those of ``tangents``
        first, and the tangents (steps, k, n_coordinates) of q and v after each step, before a change of chart.
        """
        if (run := self._of(block)) is not self:
            return run.push(block, first, n, theta, tangents, directions)
        self._at(theta := plain(theta))
        packed, dot = self.system, tangents.dot
        dots = np.stack([dot.q, dot.v]).reshape(2, 2, packed.system.n, tangents.index.size)
        done, index, q_dot, v_dot = push_steps(
            *self._of_block(block), block.timing, packed.with_all(block.steps, block.mu), (first, n),
            self.signals(block.timing, block.n), theta, self._along(directions), tangents.index.astype(np.int64),
            plain(packed.with_multipliers(np.transpose(dots, (0, 1, 3, 2)))),
        )  # fmt: skip
        return done, index, q_dot[..., : packed.system.n], v_dot[..., : packed.system.n]

    def _instant(
        self, timing: Timing, kin: tuple[FloatArray, FloatArray, FloatArray], theta: FloatArray
    ) -> tuple[tuple[FloatArray, FloatArray, FloatArray], FloatArray, Signals]:
        """Return the state, theta and the signals at the end of the first step."""
        theta, (q, v, a) = plain(theta), kin
        self._at(theta)
        signals = self.signals(timing, 1)
        return (plain(q), plain(v), plain(a)), theta, Signals(signals.weights[0], signals.table[0])

    def _along(self, directions: Directions) -> Along:
        """Return directions as compiled functions take them."""
        if self._directions is not directions:
            numbers = self.system.held_by_signals or self.system.system.moves_numbers(directions)
            self._directions = directions
            self._rows_along = Along(*directions.rows, directions.n, numbers)
        return self._rows_along

    def add_start(self, theta: FloatArray, by_position: FloatArray, theta_bar: FloatArray) -> None:
        """Add the share of where prescribed coordinates begin, once for all steps: sums of a fixed order."""
        if not self._prescribed.size:
            return
        self._at(theta := plain(theta))
        if self._rows is None:
            self._rows = self.system.system.motion.start_rows(theta)
        index, rows = self._rows
        theta_bar[index] += by_position[self._prescribed] @ rows

    def block_of(
        self,
        timing: Timing,
        kin: tuple[FloatArray, FloatArray, FloatArray],
        decisions: Decisions,
        candidates: AllCandidates = (),
        mu: FloatArray = _NOTHING,
    ) -> Block:
        """Return a solved step, without a change of chart, as a block."""
        chosen, system = as_choices(decisions, self._none), self.system.system
        q, v, a = (plain(x)[None] for x in kin)
        turned = np.zeros((1, system.rotations.size), dtype=bool)
        none, counts = np.zeros((1, 1)), np.zeros((1, 5), dtype=np.int64)
        steps = Steps(q, v, a, q, v, turned, counts, none[0], none, chosen.rows, chosen.ends[None])
        return Block(self.system, timing, steps, 1, q[0], v[0], candidates, mu[None])

    def _with_places(self, chosen: Choices, candidates: AllCandidates) -> AllCandidates:
        """Return candidates with what choices need; the same ones where these have all of it."""
        wider, ends = list(candidates), chosen.ends.tolist()
        for number in self.system.changing.values() if candidates else ():
            term, before = self.system.system.deciding[number], candidates[number]
            with_own = term.keys(chosen.rows[ends[number] : ends[number + 1]], before)
            if before is not None and with_own is not None and with_own.size > before.size:
                wider[number] = with_own
        return candidates if all(map(operator.is_, wider, candidates)) else tuple(wider)
