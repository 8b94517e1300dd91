"""The equations of a small system at one state, one compiled call each: for solvers that decide in Python."""

from __future__ import annotations

from functools import partial
from typing import final

import numpy as np

from add.compiled.impulse_near import Possible, Rules
from add.compiled.impulses import calls, take_impulses
from add.compiled.newton import Criteria, Formula
from add.compiled.pack import PackedSystem
from add.compiled.routines import call_jacobian, call_residual
from add.compiled.steps import Block, Steps, Timing
from add.compiled.structure import CHUNK, SignalsOfSteps, links_of, windows
from add.compiled.tree_equations import new_lifted
from add.compiled.walk import Choices, no_choices
from add.equations.family_term import plain
from add.equations.kinematics import Carry, Kinematics, Weights
from add.equations.term import Decisions
from add.kernels.arena import CHOICE, OWN, Arena, Instant, Signals
from add.kernels.caching import njit
from add.linalg.pattern import Pattern
from add.typing import FloatArray, IntArray

_NOTHING: FloatArray = np.zeros(0)
#: In the column `OWN`: a family that is left out.
_LEFT_OUT = -1


@njit(cache=True, error_model="numpy", nogil=True)
def evaluate(arrays, routines, state, choices, measured, weights, r, data):
    """Fill r (n,) of given decisions, or the weighted derivatives ``data`` (n n,), by columns, unless it is empty.

    ``state`` are t, q, v, a, theta and the signals. Returns the norm of the largest force family, of order
    ``measured``; zero for none.
    """
    t, q, v, a, theta, signals = state
    at, room = Instant(t, q, v, a, theta, signals), new_lifted(arrays)
    scale = 0.0
    if data.size == 0 or links_of(arrays).sizes.size:  # the matrix of trees needs the room that r fills
        _, scale = call_residual(routines.residual, (arrays, at, room, True, choices, measured, r))
    if data.size:
        by_q, by_v, by_a = weights
        call_jacobian(routines.jacobian, (arrays, at, room, choices, by_q, by_v, by_a, data))
    return scale


def as_choices(decisions: Decisions, none: Choices) -> Choices:
    """Return the decisions of the deciding terms as compiled functions take them, ``none`` where there are none."""
    return Choices(plain(np.concatenate(decisions)), np.cumsum([0, *map(len, decisions)])) if decisions else none


def _carry(m: int, marks: IntArray, memory: FloatArray, ends: IntArray, k: int) -> Carry:
    """Return what step ``k`` of some by impulses hands on (see `add.hard_contact.impulse_coupling`).

    ``m`` pairs may touch; the arrays are the last that `add.compiled.impulses.take_impulses` returns.
    """
    (mark, number), (last_mark, last) = ends[k : k + 2].tolist()
    near, modes = marks[mark:last_mark].reshape(2, -1)
    k = int(np.searchsorted(near, m))
    return Carry(memory[None, number:last], (near[:k], np.zeros(k, dtype=np.int64), modes, near[k:] - m))


@final
class CompiledEquations:
    """Forces and matrices of a system whose matrices are dense, and of which no decision changes the pattern.

    Of one run, never shared between runs.
    """

    @classmethod
    def of(cls, system: PackedSystem | None) -> CompiledEquations | None:
        """Return them, or None for other systems."""
        return None if system is None or system.sparse or system.changing else cls(system)

    def __init__(self, system: PackedSystem) -> None:
        self._system, self._free = system, system.system.partition.free
        self._arena, self._routines = system.common
        families = self._arena.families.copy()
        families[families[:, CHOICE] >= 0, OWN] = _LEFT_OUT
        self._smooth = self._arena._replace(families=families)
        self._signals, self._none = system.signals, no_choices(len(system.system.deciding))
        self._of_steps = SignalsOfSteps(system.signals)
        self._now: tuple[float, Signals] = np.nan, Signals(_NOTHING, np.zeros((0, 3), dtype=np.int64))

    def _run(
        self, arena: Arena, kin: Kinematics, theta: FloatArray, choices: Choices, order: int, weights: Weights | None
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return r, the values of the matrix, and the norm of the largest force family."""
        n, t = kin.q.size, float(kin.t)
        by = (0.0, 0.0, 0.0) if weights is None else (float(weights.q), float(weights.v), float(weights.a))
        r, data = np.empty(n), np.empty(0 if weights is None else n * n)
        state = t, plain(kin.q), plain(kin.v), plain(kin.a), plain(theta), self._signals_at(t)
        scale = evaluate(arena, self._routines, state, choices, order, by, r, data)
        return r, data, scale

    def _signals_at(self, t: float) -> Signals:
        if self._signals and self._now[0] != t:
            at = windows(self._signals, np.array([t]))
            self._now = t, Signals(at.weights[0], at.table[0])
        return self._now[1]

    def take_impulses(
        self, timing: Timing, criteria: Criteria, times: FloatArray, before: tuple[FloatArray, FloatArray],
        theta: FloatArray,
        given: tuple[Possible, Rules, FloatArray, tuple[IntArray, IntArray, IntArray, FloatArray, bool]],
    ) -> Block:  # fmt: skip
        """Take steps of contact in velocities; see `add.compiled.impulses.take_impulses`."""
        possible, rules, targets, (*kept, any_step) = given
        n, first = times.size - 1, timing.first + 1
        if times[1] != timing.dt * first:  # a part of a step
            now = self._signals_at(times[1])
            signals = Signals(now.weights[None], now.table[None])
        else:
            n = min(n, CHUNK - first % CHUNK)
            signals = self._of_steps.of(timing.dt, first, n)
        q, v = map(plain, before)
        done, *fields, marks, memory, ends = take_impulses(
            self._arena, self._routines, calls(),
            (Formula(0.0, float(timing.dt), float(timing.c[1]), 1.0, 0.0), criteria, self._none), (possible, rules),
            ((q, v), (*map(plain, kept), any_step)), (times, plain(targets[:n]), signals), plain(theta),
        )  # fmt: skip
        carry = partial(_carry, possible.number.size, marks, memory, ends)
        steps = Steps(*fields) if done == n else Steps(*(x[:done].copy() for x in fields[:9]), *fields[9:])
        return Block(self._system, timing, steps, done, q, v, carry=carry)

    def smooth_forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return r (n,) of all terms that do not decide."""
        return self._run(self._smooth, kin, theta, self._none, 0, None)[0]

    def force_scale(self, kin: Kinematics, theta: FloatArray, decisions: Decisions, order: int) -> float:
        """Return the norm of the largest force family; see `BranchEquations.force_scale`."""
        return self._run(self._arena, kin, theta, as_choices(decisions, self._none), order, None)[2]

    def matrix(
        self, pattern: Pattern, kin: Kinematics, theta: FloatArray, weights: Weights, decisions: Decisions
    ) -> FloatArray:
        """Return the values of a pattern over the free coordinates: the weighted derivatives, without reactions."""
        choices, free, places = as_choices(decisions, self._none), self._free, pattern.dense_positions
        values = self._run(self._arena, kin, theta, choices, 0, weights)[1]
        if free.size < kin.q.size:
            columns, rows = np.divmod(places, free.size)
            places = free[columns] * kin.q.size + free[rows]
        return values[places]
