"""The equations of a small system at one state, its matrices and the derivatives of a step, tangents through steps.

Each is one compiled call: for solvers that decide in Python, and for what is asked of finished steps.
"""

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np

from add.compiled.holding import Held, first_iteration, holding, iterate
from add.compiled.impulse_near import Possible, Rules
from add.compiled.impulses import take_impulses
from add.compiled.linear import factor_dense, new_linear, solve_all
from add.compiled.newton import Begun, Criteria, Formula
from add.compiled.pack import PackedSystem, free_of
from add.compiled.routines import call_inputs, call_jacobian, call_matrices, call_parameters, call_residual
from add.compiled.steps import Block, Steps, Timing
from add.compiled.structure import CHUNK, SignalsOfSteps, layout_of, links_of, windows
from add.compiled.tree_equations import new_lifted
from add.compiled.walk import Choices, choices_of, moved_by, no_choices
from add.equations.family_term import plain
from add.equations.kinematics import Carry, Kinematics, Weights
from add.equations.term import Decisions
from add.kernels.arena import Instant, Signals
from add.kernels.borrowed import put
from add.kernels.caching import CALLED, njit
from add.linalg.pattern import Pattern
from add.typing import FloatArray, IntArray

_NOTHING: FloatArray = np.zeros(0)
#: The equations of a step: t, c, q_star and v_star.
StepOf = tuple[float, float, FloatArray, FloatArray]


@njit(cache=True, error_model="numpy", nogil=True)
def evaluate(arrays, routines, state, replay, choices, measured, weights, r, data):
    """Fill r (n,), or the weighted derivatives ``data`` (n n,) of given decisions, by columns, unless it is empty.

    ``state`` are t, q, v, a, theta and the signals. Unless decisions are given, for a ``replay``, they are made: what
    sticks in ``choices`` goes on sticking. Returns the norm of the largest force family, of order ``measured``, zero
    for none; and the fields of the choices.
    """
    t, q, v, a, theta, signals = state
    at, room = Instant(t, q, v, a, theta, signals), new_lifted(arrays)
    chosen, scale = choices, 0.0
    if data.size == 0 or links_of(arrays).sizes.size:  # the matrix of trees needs the room that r fills
        chosen, scale = call_residual(routines.residual, (arrays, at, room, replay, choices, measured, r))
    if data.size:
        by_q, by_v, by_a = weights
        call_jacobian(routines.jacobian, (arrays, at, room, choices, by_q, by_v, by_a, data))
    return scale, chosen.rows, chosen.ends


def as_choices(decisions: Decisions, none: Choices) -> Choices:
    """Return the decisions of the deciding terms as compiled functions take them, ``none`` where there are none."""
    return Choices(plain(np.concatenate(decisions)), np.cumsum([0, *map(len, decisions)])) if decisions else none


def _divided(rows: IntArray, ends: IntArray) -> Decisions:
    """Return the decisions of the deciding terms."""
    return tuple([rows[first:last] for first, last in pairwise(ends.tolist())])


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
    def of(cls, system: PackedSystem | None) -> "CompiledEquations | None":
        """Return them, or None for other systems."""
        return None if system is None or system.sparse or system.changing or system.sized else cls(system)

    def __init__(self, system: PackedSystem) -> None:
        self._system, self._free = system, free_of(system.system)
        self._arena, self._routines = system.common
        self._signals, self._none = system.signals, no_choices(len(system.system.deciding))
        self._of_steps = SignalsOfSteps(system.signals)
        self._now: tuple[float, Signals] = np.nan, Signals(_NOTHING, np.zeros((0, 3), dtype=np.int64))
        self._holding: dict[Held, CompiledEquations | None] = {}

    def holding(self, held: Held) -> "CompiledEquations | None":
        """Return those with multipliers more that hold what sticks; None where there are none."""
        if not any(held):
            return self
        if held not in self._holding:
            self._holding[held] = self.of(holding(self._system, held))
        return self._holding[held]

    def _run(
        self,
        kin: Kinematics,
        theta: FloatArray,
        given: tuple[bool, Choices],
        order: int,
        weights: Weights | None,
        mu: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray, tuple[float, IntArray, IntArray]]:
        """Return r (n + m,), the values of the matrix over these, and what `evaluate` does."""
        wide, t = self._system.with_multipliers, float(kin.t)
        q, v, a = wide(kin.q, mu), wide(kin.v), wide(kin.a)
        state, n = (t, plain(q), plain(v), plain(a), plain(theta), self._signals_at(t)), q.size
        by = (0.0, 0.0, 0.0) if weights is None else (float(weights.q), float(weights.v), float(weights.a))
        r, data = np.empty(n), np.empty(0 if weights is None else n * n)
        found = evaluate(self._arena, self._routines, state, *given, order, by, r, data)
        return r, data, found

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
            self._arena, self._routines,
            (Formula(0.0, float(timing.dt), float(timing.c[1]), 1.0, 0.0), criteria, self._none), (possible, rules),
            ((q, v), (*map(plain, kept), any_step)), (times, plain(targets[:n]), signals), plain(theta),
        )  # fmt: skip
        carry = partial(_carry, possible.number.size, marks, memory, ends)
        steps = Steps(*fields) if done == n else Steps(*(x[:done].copy() for x in fields[:9]), *fields[9:])
        return Block(self._system, timing, steps, done, q, v, carry=carry)

    def residual(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, decisions: Decisions | None, replay: bool
    ) -> tuple[FloatArray, FloatArray, Decisions]:
        """Return r (n,), the rows (m,) and the decisions: given, or made so that what sticks goes on sticking."""
        choices = self._none if decisions is None else as_choices(decisions, self._none)
        r, _, (_, rows, ends) = self._run(kin, theta, (replay, choices), 0, None, mu)
        return r[: kin.q.size], r[kin.q.size :], _divided(rows, ends)

    def _given(self, step: StepOf, criteria: Criteria, theta: FloatArray, u: FloatArray, sticking: Decisions) -> Any:
        """Return what `iterate` and `first_iteration` are called with."""
        (t, c, *stars), wide, before = step, self._system.with_multipliers, np.zeros((2, u.size + 1))
        before[0, :-1], before[1, :-1] = map(wide, stars)
        formula, at, given = Formula(t, 0.0, c, 0.0, 0.0), self._signals_at(t), as_choices(sticking, self._none)
        return self._arena, self._routines, formula, criteria, before, at, plain(theta), u, given

    def iterate(
        self, step: StepOf, criteria: Criteria, theta: FloatArray, u: FloatArray, sticking: Decisions, scale: float
    ) -> tuple[int, int, int, FloatArray, FloatArray, FloatArray, FloatArray, Decisions]:
        """Go on from u with multipliers (n + m,), with forces of that ``scale``; what sticks in decisions does so.

        See `add.compiled.holding.iterate`; decisions come last.
        """
        given = self._given(step, criteria, theta, u, sticking)
        *found, rows, ends = iterate(*given, Begun(0, 0, scale, _NOTHING))
        return *found, _divided(rows, ends)

    def first_iteration(
        self, step: StepOf, criteria: Criteria, theta: FloatArray, u: FloatArray, sticking: Decisions
    ) -> tuple[float, float, FloatArray, FloatArray, FloatArray, FloatArray, Decisions]:
        """See `add.compiled.holding.first_iteration`; decisions come last."""
        *found, rows, ends = first_iteration(*self._given(step, criteria, theta, u, sticking))
        return *found, _divided(rows, ends)

    def force_scale(self, kin: Kinematics, theta: FloatArray, decisions: Decisions, order: int) -> float:
        """Return the norm of the largest force family; see `BranchEquations.force_scale`."""
        return self._run(kin, theta, (True, as_choices(decisions, self._none)), order, None)[2][0]

    def matrix(
        self,
        pattern: Pattern,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        weights: Weights,
        decisions: Decisions,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the weighted derivatives: the values of a pattern over what is unknown without reactions.

        Then the columns of the reactions and the rows of what they hold, (k, n_unknown) each. Those by multipliers have
        the weight of those by q.
        """
        choices, places = as_choices(decisions, self._none), pattern.dense_positions
        size = kin.q.size + self._system.system.n_multipliers
        values = self._run(kin, theta, (True, choices), 0, weights, mu)[1]
        free, held = self._free[: pattern.n], self._free[pattern.n :]
        by_columns = values.reshape(size, size)
        if free.size < size:
            columns, rows = np.divmod(places, free.size)
            places = free[columns] * size + free[rows]
        return values[places], by_columns[held[:, None], free], by_columns[free, held[:, None]]


class Reading(NamedTuple):
    """The formula of a step: time t [s] of its end, c = 1/(beta dt), history coefficients, pairs that a state holds."""

    t: float
    c: float
    alpha: FloatArray
    pairs: int


@njit(cache=True, error_model="numpy", nogil=True)
def state_matrices(arrays, routines, t, kin, theta, signals, choices, along):
    """Return the transposed of dr/dq, dr/dv and dr/da (3, n, n), the directions that act (k,), dr along each (k, n).

    ``arrays`` is an `Arena`, ``kin`` q, v and a (n,) each, ``signals`` those of the instant.
    """
    q, v, a = kin
    at, lifted = Instant(t, q, v, a, theta, signals), new_lifted(arrays)
    n, rows = q.size, 0
    sizes = links_of(arrays).sizes
    if sizes.size:
        rows = sizes[0]
        call_residual(routines.residual, (arrays, at, lifted, True, choices, 0, np.empty(n)))
    out, by_rows = np.empty((3, n * n)), np.empty((3, rows * rows))
    call_matrices(routines.matrices, (arrays, at, lifted, choices, 0.0, by_rows, out))
    entries, values = np.zeros(0, dtype=np.int64), np.zeros((0, n))
    if along.numbers:
        by_theta, unit = np.zeros((n, theta.size)), np.zeros(n)
        for i in range(n):
            unit[i] = 1.0
            call_parameters(routines.parameters, (arrays, at, lifted, choices, by_rows, unit, by_theta[i]))
            unit[i] = 0.0
        entries = np.flatnonzero(along.indptr[1:] > along.indptr[:-1])
        values = np.empty((entries.size, n))
        for m in range(entries.size):
            values[m] = by_theta[:, entries[m]]
    elif along.indices.size:
        entries, values = call_inputs(routines.inputs, (arrays, at, lifted, choices, along.indptr))
    columns, by_theta = moved_by(entries, values, along)
    return out.reshape((3, n, n)), columns, by_theta


@njit(cache=True, error_model="numpy", nogil=True)
def step_matrices(arrays, routines, step, kin, theta, signals, choices, along):
    """Return the transition (2 m n, 2 m n) of a step, its derivatives (2 m n, k) by directions that act, and these.

    With J = dr/dq + c dr/dv + c^2 dr/da, J dq' = (c dr/dv + c^2 dr/da) dq_star + c dr/da dv_star - dr/dtheta, and
    dv' = c (dq' - dq_star); all coordinates are free. Last comes whether J could be solved with.
    """
    by_state, columns, by_theta = state_matrices(arrays, routines, step.t, kin, theta, signals, choices, along)
    by_q, by_v, by_a = by_state[0], by_state[1], by_state[2]
    n, k, c = by_q.shape[0], columns.size, step.c
    linear, b = new_linear(arrays), np.empty((2 * n + k, n))
    for j in range(n):
        for i in range(n):
            rates = c * by_v[j, i] + c * c * by_a[j, i]
            linear.matrix[j * n + i] = by_q[j, i] + rates
            b[j, i], b[n + j, i] = rates, c * by_a[j, i]
    for m in range(k):
        for i in range(n):
            b[2 * n + m, i] = -by_theta[m, i]
    size = 2 * step.pairs * n
    transition, along_inputs = np.zeros((size, size)), np.zeros((size, k))
    x, largest = np.empty((2 * n + k, n)), factor_dense(linear, routines.blas)
    if largest < 0.0 or not solve_all(linear, largest, b, x, routines.blas):
        return transition, along_inputs, columns, False
    for read in range(step.alpha.size):
        alpha, first = step.alpha[read], 2 * read * n
        for i in range(n):
            for j in range(2 * n):
                transition[i, first + j] = alpha * x[j, i]
                transition[n + i, first + j] = c * alpha * x[j, i]
            transition[n + i, first + i] -= c * alpha
    for i in range(2 * n, size):
        transition[i, i - 2 * n] = 1.0  # the older pairs are those of the state before
    for i in range(n):
        for j in range(k):
            along_inputs[i, j], along_inputs[n + i, j] = x[2 * n + j, i], c * x[2 * n + j, i]
    return transition, along_inputs, columns, True


@njit(**CALLED)
def _fill_step(linear, by_state, by_theta, places, stars, c, b):
    """Fill the matrix J of a step, and the right sides (k, n) of the tangents of its coordinates.

    J = dr/dq + c dr/dv + c^2 dr/da, b = (c dr/dv + c^2 dr/da) q_star + c dr/da v_star - dr; ``by_state`` is transposed.
    """
    by_q, by_v, by_a = by_state[0], by_state[1], by_state[2]
    n, rates, by_star = by_q.shape[0], np.empty(by_q.shape[0]), np.empty(by_q.shape[0])
    b[:] = 0.0
    for j in range(n):
        for i in range(n):
            by_star[i] = c * by_a[j, i]
            rates[i] = c * (by_v[j, i] + by_star[i])
            linear.matrix[j * n + i] = by_q[j, i] + rates[i]
        for m in range(b.shape[0]):
            q_star, v_star = stars[0, m, j], stars[1, m, j]
            for i in range(n):
                b[m, i] += rates[i] * q_star + by_star[i] * v_star
    for m in range(places.size):
        b[places[m]] -= by_theta[m]


@njit(cache=True, error_model="numpy", nogil=True)
def push_steps(arrays, routines, timing, steps, part, signals, theta, along, moved, dots):
    """Push tangents through a ``part`` of the steps of a block, its first and their number, all coordinates free.

    With J dq = (c dr/dv + c^2 dr/da) dq_star + c dr/da dv_star - dr, dv = c (dq - dq_star), star = sum alpha_k of the
    pairs before. ``moved`` (m,) are the directions that have moved the state before, ``dots`` (2, 2, m, n) its tangents
    along them: q and v, each of two pairs, newest first. ``signals`` are those of the block's steps.

    Returns how many steps could be solved with, the directions that have moved anything (k,), those of ``moved`` first,
    and the tangents of q and v after each step (n_steps, k, n).
    """
    (first, n_steps), n, count = part, steps.q.shape[1], moved.size
    order, place = np.empty(along.n, dtype=np.int64), np.full(along.n, -1)
    for m in range(count):
        order[m] = moved[m]
        place[moved[m]] = m
    q, v = np.zeros((n_steps, along.n, n)), np.zeros((n_steps, along.n, n))
    old, stars = np.zeros((2, 2, along.n, n)), np.zeros((2, along.n, n))
    for i in range(2):
        for j in range(2):
            put(dots[i, j], old[i, j])
    linear, done = new_linear(arrays), 0
    for k in range(n_steps):
        number = first + k
        row = 0 if timing.first + number == 0 else 1
        c = timing.c[row]
        t = (timing.first + number + 1) * timing.dt
        now = Signals(signals.weights[number], signals.table[number])
        chosen = choices_of(steps, number)
        kin = steps.q[number], steps.v[number], steps.a[number]
        by_state, columns, by_theta = state_matrices(arrays, routines, t, kin, theta, now, chosen, along)
        for column in columns:
            if place[column] < 0:
                place[column], order[count] = count, column
                count += 1
        if count:
            for kind in range(2):
                for m in range(count):
                    for i in range(n):  # multipliers have no history: theirs stay zero
                        stars[kind, m, i] = (
                            timing.alpha_0[row] * old[kind, 0, m, i] + timing.alpha_1[row] * old[kind, 1, m, i]
                        )
            b, x = np.empty((count, n)), np.empty((count, n))
            _fill_step(linear, by_state, by_theta, place[columns], stars, c, b)
            largest = factor_dense(linear, routines.blas)
            if largest < 0.0 or not solve_all(linear, largest, b, x, routines.blas):
                break
            for m in range(count):
                for i in range(n):
                    q[k, m, i] = x[m, i]
                    v[k, m, i] = c * (x[m, i] - stars[0, m, i])
                for i in range(n - layout_of(arrays).size[3]):
                    old[0, 1, m, i], old[1, 1, m, i] = old[0, 0, m, i], old[1, 0, m, i]
                    old[0, 0, m, i], old[1, 0, m, i] = q[k, m, i], v[k, m, i]
        done += 1
    return done, order[:count].copy(), q[:done, :count].copy(), v[:done, :count].copy()
