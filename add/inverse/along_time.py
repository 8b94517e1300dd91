"""Normal equations solved by their structure in time: numbers are eliminated where they cease to act.

The residuals of a run see its states as a linear system y_(k+1) = T y_k + B u, rho_k = E y_k + D u of few y (see
`add.adjoint.forward`); those of the numbers alone, as smoothness, are sparse, S. The least squares problem

    sum_k |E y_k + D u|^2 + |S u|^2 + damping |u|^2 - 2 b.u

is eliminated from the last step back: H is the cost to go over (y_k, o), o the numbers that act later and also earlier,
or are coupled with ones that do. A step substitutes its equation, and eliminates the numbers whose first step it is: a
Riccati recursion where every number acts in one step. Work grows with the steps, not with the cube of the numbers.
"""

from functools import cached_property
from typing import NamedTuple, final

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from add.adjoint.forward import ObservedRun, observe
from add.equations.kinematics import Directions
from add.inverse.experiment import Experiment, Jacobian, NormalEquations, Residuals, WholeNormal
from add.objectives.base import StateRows
from add.typing import BoolArray, FloatArray, IntArray

#: Entries of all rows that a sweep backward begins with.
MOST_ENTRIES = 1 << 25
#: What the arrays of a state cost beside their arithmetic, in multiplications of a Cholesky factor.
OVERHEAD = 8e5


class _Eliminated(NamedTuple):
    """Numbers that were eliminated: L^T u = w - X z, L their Cholesky factor, z of y and ``others``."""

    numbers: IntArray
    factor: FloatArray
    rest: FloatArray
    w: FloatArray
    others: IntArray


@final
class AlongTime(NormalEquations):
    """N of one run and of residuals of the numbers alone.

    Parameters
    ----------
    run : ObservedRun
        Along the n numbers.
    sparse : (m, n)
        Derivative of the residuals of the numbers alone.
    rho : (m,)
        Those residuals.
    """

    def __init__(self, run: ObservedRun, sparse: sp.csr_array, rho: FloatArray) -> None:
        self.run, self.backward, self._own = run, True, sp.csr_array(sparse.T @ sparse)
        self.slope = run.slope + sparse.T @ rho
        n, k = run.n, len(run.states)
        # The stage of a number: the first state that it acts on, 0 through the start; and the last of the steps.
        self._first, self._last = np.full(n, k), np.full(n, -1)
        for at in range(k - 1, -1, -1):
            state = run.states[at]
            for index in (state.inputs.index, state.direct.index):
                self._first[index] = at
                self._last[index] = np.maximum(self._last[index], at)
        self._first[run.start.index] = -1
        self._leaving = [np.flatnonzero(self._first == at) for at in range(k)]

    @property
    def work(self) -> float:
        """About how many multiplications an elimination takes, halved: the front of each step, its numbers beside."""
        enters = np.minimum(self._last, len(self.run.states))
        out = OVERHEAD * len(self.run.states)
        for at, state in enumerate(self.run.states):
            front = state.seen.shape[1] + int(((self._first <= at) & (enters >= at)).sum())
            out += front**2 * (state.seen.shape[1] + state.inputs.index.size)
        return out

    @cached_property
    def largest(self) -> float:  # type: ignore[override]
        """Largest diagonal entry of N: tangents of numbers, as long as these act; then |y|^2 says the rest."""
        diagonal = self._own.diagonal()
        alive, y = self.run.start.index, self.run.start.values
        for at, state in enumerate(self.run.states):
            gone = self._last[alive] < at
            diagonal[alive[gone]] += (y[:, gone] ** 2).sum(axis=0)
            kept, old = alive[~gone], y[:, ~gone]
            alive = np.union1d(kept, np.union1d(state.inputs.index, state.direct.index))
            y = np.zeros((old.shape[0], alive.size))
            y[:, np.searchsorted(alive, kept)] = old
            rows = state.seen @ y
            rows[:, np.searchsorted(alive, state.direct.index)] += state.direct.values
            diagonal[alive] += (rows**2).sum(axis=0)
            y = state.onward @ y
            y[:, np.searchsorted(alive, state.inputs.index)] += state.inputs.values
        return float(diagonal.max(initial=0.0))

    def product(self, step: FloatArray) -> FloatArray:
        """Return N step: forward through the states, and back."""
        run, out = self.run, self._own @ step
        y, seen = run.start.values @ step[run.start.index], []
        for state in run.states:
            seen.append(state.seen @ y + state.direct.values @ step[state.direct.index])
            y = state.onward @ y + state.inputs.values @ step[state.inputs.index]
        bar = np.zeros(0)
        for state, rho in zip(reversed(run.states), reversed(seen), strict=True):
            out[state.direct.index] += rho @ state.direct.values
            out[state.inputs.index] += bar @ state.inputs.values
            bar = bar @ state.onward + rho @ state.seen
        out[run.start.index] += bar @ run.start.values
        return np.asarray(out)

    def solve(self, free: BoolArray, damping: float, b: FloatArray) -> FloatArray | None:
        """Eliminate back in time, substitute forward; see `NormalEquations.solve`."""
        front = _Front(self._own, free, damping, b)
        gone: list[list[_Eliminated]] = []
        try:
            for at in range(len(self.run.states) - 1, -1, -1):
                state = self.run.states[at]
                front.back(state.onward, state.seen, (state.inputs.index, state.inputs.values),
                           (state.direct.index, state.direct.values))  # fmt: skip
                gone.append(front.eliminate(self._leaving[at]))
            start = self.run.start
            front.back(np.zeros((start.values.shape[0], 0)), np.zeros((0, 0)), (start.index, start.values),
                       (start.index[:0], np.zeros((0, 0))))  # fmt: skip
            last = front.eliminate(np.flatnonzero(free))
        except scipy.linalg.LinAlgError:
            return None
        out, y = np.zeros_like(b), np.zeros(0)
        _substitute(last, y, out)
        y = start.values @ out[start.index]
        for state, factors in zip(self.run.states, reversed(gone), strict=True):
            _substitute(factors, y, out)
            y = state.onward @ y + state.inputs.values @ out[state.inputs.index]
        return out


@final
class _Front:
    """H and -g of the cost to go z.H z/2 - g.z over z = (y, o)."""

    def __init__(self, own: sp.csr_array, free: BoolArray, damping: float, b: FloatArray) -> None:
        self.own, self.free, self.damping, self.b = own, free, damping, b
        self.done = ~free
        self.place = np.full(free.size, -1)
        self.open: IntArray = np.zeros(0, dtype=np.int64)
        self.n_y, self.H, self.g = 0, np.zeros((0, 0)), np.zeros(0)

    def _enter(self, numbers: IntArray) -> None:
        """Put numbers that come up first now into the front, with what they cost by themselves."""
        new = numbers[(self.place[numbers] < 0) & ~self.done[numbers]]
        if not new.size:
            return
        size, more = self.g.size, new.size
        self.place[new] = self.open.size + np.arange(more)
        self.open = np.concatenate([self.open, new])
        H = np.zeros((size + more, size + more))
        H[:size, :size] = self.H
        rows, columns, values = _entries(self.own, new)
        inside = self.place[columns] >= 0
        at, beside = size + rows[inside], self.n_y + self.place[columns[inside]]
        H[at, beside] = values[inside]
        H[beside, at] = values[inside]
        places = size + np.arange(more)
        H[places, places] += self.damping
        self.H, self.g = H, np.concatenate([self.g, self.b[new]])

    def back(
        self,
        onward: FloatArray,
        seen: FloatArray,
        inputs: tuple[IntArray, FloatArray],
        direct: tuple[IntArray, FloatArray],
    ) -> None:
        """Substitute y' = onward y + inputs u, and add the residuals seen y + direct u."""
        self._enter(inputs[0])
        self._enter(direct[0])
        old, r, o = self.n_y, onward.shape[1], self.open.size
        P = np.zeros((old + o, r + o))
        P[:old, :r], P[old:, r:] = onward, np.eye(o)
        self._spread(P[:old, r:], *inputs)
        H, self.g, self.n_y = P.T @ (self.H @ P), P.T @ self.g, r
        if seen.shape[0]:
            rows = np.zeros((seen.shape[0], r + o))
            rows[:, :r] = seen
            self._spread(rows[:, r:], *direct)
            H += rows.T @ rows
        self.H = H

    def _spread(self, out: FloatArray, index: IntArray, values: FloatArray) -> None:
        """Put the columns of free numbers where they stand in the front."""
        free = self.free[index]
        out[:, self.place[index[free]]] = values[:, free]

    def eliminate(self, numbers: IntArray) -> list[_Eliminated]:
        """Eliminate those of the numbers that are free and still there; those coupled with them enter."""
        numbers = numbers[~self.done[numbers]]
        if not numbers.size:
            return []
        self._enter(numbers)
        self._enter(np.unique(_entries(self.own, numbers)[1]))
        leaving = np.zeros(self.open.size, dtype=bool)
        leaving[self.place[numbers]] = True
        at, numbers = self.n_y + np.flatnonzero(leaving), self.open[leaving]
        rest = np.concatenate([np.arange(self.n_y), self.n_y + np.flatnonzero(~leaving)])
        H = self.H
        factor = scipy.linalg.cholesky(H[np.ix_(at, at)], lower=True, check_finite=False)
        right = np.column_stack([H[np.ix_(at, rest)], self.g[at]])
        solved = scipy.linalg.solve_triangular(factor, right, lower=True, check_finite=False)
        X, w = solved[:, :-1], solved[:, -1]
        self.H, self.g = H[np.ix_(rest, rest)] - X.T @ X, self.g[rest] - X.T @ w
        self.open = self.open[~leaving]
        self.place[numbers] = -1
        self.done[numbers] = True
        self.place[self.open] = np.arange(self.open.size)
        return [_Eliminated(numbers, factor, X, w, self.open)]


def may_go_backward(point: Residuals, most: int) -> bool:
    """Whether a sweep backward through a point's only run may be tried with ``most`` rows that see a state."""
    (run,) = point.runs.values()
    n = run.q.shape[1]
    entries = 4 * n * (point.of_runs + 4 * n)  # all rows by two pairs, and the units of one state
    return point.of_runs <= most * (run.n_steps + 1) and entries <= MOST_ENTRIES


def observed(
    experiment: Experiment, point: Residuals, theta: FloatArray, directions: Directions, most: int
) -> ObservedRun | None:
    """Return what the residuals of the point's only run see of it along directions of theta; see `observe`.

    None besides where residuals read more than the states around them (`Objective.for_run`).
    """
    (run,) = point.runs.values()
    parts, _ = experiment.squares_within(point.window)
    if run.initial.step or any(part.for_run() is not part for _, part in parts):
        return None
    by_state: dict[int, list[tuple[FloatArray, StateRows]]] = {}
    done = 0
    for root, part in parts:
        for rows in part.state_rows(run, theta, directions):
            size = rows.bars.q.shape[2]
            by_state.setdefault(rows.step, []).append((point.rho[done : done + size], rows.times(root)))
            done += size
    return observe(experiment.simulation, run, theta, directions, by_state, most)


def along_time(run: ObservedRun, sparse: sp.csr_array, rho: FloatArray) -> NormalEquations:
    """Return the normal equations of a run and of residuals of the numbers alone, as `AlongTime` or whole.

    Whole where elimination, sum over states of (y + o)^2 (y + numbers of the step) and what handling them costs, is
    more work than a Cholesky factor of the matrix, n^3 / 6: where numbers are hundreds, or most act throughout.
    """
    equations = AlongTime(run, sparse, rho)
    if equations.work <= run.n**3 / 6.0:
        return equations
    return WholeNormal(Jacobian(run.jacobian(), sparse), run.slope + sparse.T @ rho, backward=True)


def _entries(matrix: sp.csr_array, rows: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return (number of the row, column, value) of all entries in some rows."""
    first, last = matrix.indptr[rows], matrix.indptr[rows + 1]
    counts = last - first
    at = np.repeat(first - np.cumsum([0, *counts[:-1]]), counts) + np.arange(counts.sum())
    return np.repeat(np.arange(rows.size), counts), matrix.indices[at].astype(np.int64), matrix.data[at]


def _substitute(found: list[_Eliminated], y: FloatArray, out: FloatArray) -> None:
    """Fill in the numbers that were eliminated at a state."""
    for part in found:
        right = part.w - part.rest @ np.concatenate([y, out[part.others]])
        out[part.numbers] = scipy.linalg.solve_triangular(part.factor, right, lower=True, trans=1, check_finite=False)
