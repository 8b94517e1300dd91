"""The state of motion that terms see, the weights of a Jacobian, the history that steppers carry, and tangents.

Tangents are along many directions of theta at once, and a direction costs nothing until something moves along it.

A step reads few entries of theta: the material, the contact laws, and of a control those coefficients whose weights
are not zero then. One pull-back of a generic vector finds them, so that no term has to name what it reads, and the
derivative by them, times their rows of the directions, is all that a step adds.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import final

import numpy as np
import scipy.sparse as sp

from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class Kinematics:
    """Coordinates, their rates and the time at which a residual is evaluated.

    Attributes
    ----------
    q, v, a : (n,)
        Coordinates [m], velocities [m/s], accelerations [m/s2].
    t : float
        Time [s].
    step : int
        Number of the step that ends at ``t``.
    """

    q: FloatArray
    v: FloatArray
    a: FloatArray
    t: float
    step: int

    def content(self, theta: FloatArray) -> tuple[object, ...]:
        """Return what tells this state with these numbers from another one: arrays may be changed in place."""
        return self.t, self.step, *(array.tobytes() for array in (self.q, self.v, self.a, theta))


@dataclass
class KinematicCotangent:
    """Cotangents of (q, v, a), accumulated."""

    q: FloatArray
    v: FloatArray
    a: FloatArray

    @classmethod
    def zeros(cls, n: int) -> "KinematicCotangent":
        """Return a zero cotangent."""
        return cls(np.zeros(n), np.zeros(n), np.zeros(n))


@final
@dataclass(frozen=True)
class Weights:
    """Factors of dr/dq, dr/dv and dr/da in a Jacobian; (1, c, c^2) is a BDF step's.

    ``multiplier`` is the factor of dr/d(multiplier): one in a step's matrix, zero in derivatives by the state.
    """

    q: float
    v: float
    a: float
    multiplier: float = 0.0


@final
@dataclass(frozen=True)
class Carry:
    """Numbers that a step hands on beside coordinates and velocities: what else the next step depends on.

    Attributes
    ----------
    memory : (m, n_m)
        Numbers that derivatives go through; rows newest first, as many as their owner looks back to.
    marks : tuple of int arrays
        What was decided or counted: never differentiated.
    """

    memory: FloatArray
    marks: tuple[IntArray, ...] = ()


#: A step that hands on coordinates and velocities alone.
NO_CARRY = Carry(np.zeros((0, 0)))


@final
@dataclass(frozen=True)
class State:
    """The numbers that the next step depends on, theta apart: the last m pairs (q, v), and the stepper's own.

    Attributes
    ----------
    t : float
        Time of the newest pair [s].
    step : int
        Steps taken so far.
    q, v : (m, n)
        Coordinates and velocities, newest first.
    carry : Carry
    """

    t: float
    step: int
    q: FloatArray
    v: FloatArray
    carry: Carry = NO_CARRY


@final
@dataclass
class StateTangent:
    """A tangent or cotangent of a `State`: arrays of the shapes of its ``q``, ``v`` and ``carry.memory``."""

    q: FloatArray
    v: FloatArray
    memory: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def zeros(cls, n_history: int, n: int) -> "StateTangent":
        """Return a zero (co)tangent of a state without a memory."""
        return cls(np.zeros((n_history, n)), np.zeros((n_history, n)))

    @classmethod
    def of_flat(cls, x: FloatArray, m: int) -> "StateTangent":
        """Return m pairs (m, n, ...), given as (2 m n, ...): q, v, q, v, ..."""
        pairs = x.reshape(m, 2, x.shape[0] // (2 * m), *x.shape[1:])
        return cls(pairs[:, 0].copy(), pairs[:, 1].copy())

    def flat(self) -> FloatArray:
        """Return the pairs as (2 m n, ...)."""
        return np.stack([self.q, self.v], axis=1).reshape(2 * self.q.shape[0] * self.q.shape[1], *self.q.shape[2:])

    @classmethod
    def zeros_like(cls, state: State) -> "StateTangent":
        """Return a zero (co)tangent of a state."""
        return cls(np.zeros_like(state.q), np.zeros_like(state.v), np.zeros_like(state.carry.memory))


#: Compressed by rows or by columns.
SparseMatrix = sp.csr_array | sp.csc_array


@final
@dataclass(frozen=True)
class Directions:
    """Directions of theta: the columns of a matrix.

    Attributes
    ----------
    matrix : (n_theta, k) sparse
    """

    matrix: sp.csr_array
    _columns: sp.csc_array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.matrix.has_canonical_format:
            matrix = self.matrix.copy()
            matrix.sum_duplicates()
            object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "_columns", self.matrix.tocsc())

    @classmethod
    def of(cls, directions: "Directions | Sequence[FloatArray] | FloatArray | SparseMatrix") -> "Directions":
        """Return the directions given as a matrix (n_theta, k), or as a sequence of k vectors (n_theta,)."""
        if isinstance(directions, Directions):
            return directions
        if isinstance(directions, sp.csr_array | sp.csc_array):
            return cls(directions.tocsr())
        matrix = directions if isinstance(directions, np.ndarray) else np.stack(list(directions), axis=1)
        return cls(sp.csr_array(matrix))

    @property
    def n_theta(self) -> int:
        """Number of entries of theta."""
        return self.matrix.shape[0]

    @property
    def n(self) -> int:
        """Number of directions."""
        return self.matrix.shape[1]

    @cached_property
    def moved(self) -> BoolArray:
        """Of every entry of theta (n_theta,), whether any direction goes along it."""
        return np.diff(self.matrix.indptr) > 0

    @cached_property
    def rows(self) -> tuple[IntArray, IntArray, FloatArray]:
        """The matrix compressed by rows: indptr (n_theta + 1,), indices and values, for compiled functions."""
        matrix = self.matrix
        indptr, indices = (np.asarray(x, dtype=np.int64) for x in (matrix.indptr, matrix.indices))
        return indptr, indices, np.asarray(matrix.data, dtype=float)

    def among(self, entries: IntArray) -> IntArray:
        """Return the entries of theta along which any direction goes."""
        return entries[self.moved[entries]]

    def touching(self, entries: IntArray) -> IntArray:
        """Return the directions, sorted, that move one of these entries of theta."""
        indptr, indices = self.matrix.indptr, self.matrix.indices
        return np.unique(np.concatenate([indices[indptr[i] : indptr[i + 1]] for i in entries] or [indices[:0]]))

    def block(self, entries: IntArray, columns: IntArray) -> FloatArray:
        """Return the matrix restricted to some entries of theta and all columns that move them."""
        out = np.zeros((entries.size, columns.size))
        indptr, indices, data = self.matrix.indptr, self.matrix.indices, self.matrix.data
        for row, i in zip(out, entries, strict=True):
            part = slice(indptr[i], indptr[i + 1])
            row[np.searchsorted(columns, indices[part])] = data[part]
        return out

    def column(self, k: int) -> FloatArray:
        """Return direction k as a vector (n_theta,)."""
        out = np.zeros(self.n_theta)
        part = slice(self._columns.indptr[k], self._columns.indptr[k + 1])
        out[self._columns.indices[part]] = self._columns.data[part]
        return out


@final
@dataclass(frozen=True)
class Columns:
    """A matrix (n, k) most of whose columns are zero.

    Attributes
    ----------
    index : (c,) increasing
        The columns that are not zero.
    values : (n, c)
    """

    index: IntArray
    values: FloatArray

    @classmethod
    def none(cls, n: int = 0) -> "Columns":
        """Return no columns, of n rows."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros((n, 0)))

    @classmethod
    def stacked(cls, parts: "Sequence[Columns]") -> "Columns":
        """Return columns one below the other."""
        index = np.unique(np.concatenate([cls.none().index, *(part.index for part in parts)]))
        return cls(index, np.concatenate([np.zeros((0, index.size)), *(part.over(index) for part in parts)]))

    @classmethod
    def summed(cls, first: "Columns", *others: "Columns") -> "Columns":
        """Return the sum of columns of equally many rows."""
        index = np.unique(np.concatenate([first.index, *(part.index for part in others)]))
        return cls(index, sum((part.over(index) for part in others), first.over(index)))

    def over(self, index: IntArray) -> FloatArray:
        """Return the columns of a sorted ``index``, which has all of these."""
        out = np.zeros((self.values.shape[0], index.size))
        out[:, np.searchsorted(index, self.index)] = self.values
        return out

    def dense(self, k: int) -> FloatArray:
        """Return the whole matrix (n, k)."""
        return self.over(np.arange(k))


@final
@dataclass
class StateTangents:
    """Tangents of a `State` along those of k directions that have moved it.

    Attributes
    ----------
    index : (c,)
        Which direction each tangent belongs to, in the order in which they set in.
    dot : StateTangent
        Arrays (m, n, c).
    """

    index: IntArray
    dot: StateTangent

    def including(self, *columns: IntArray) -> "StateTangents":
        """Return the tangents with zeros for directions that set in now."""
        new = np.setdiff1d(np.concatenate(columns), self.index)
        if not new.size:
            return self
        count = self.index.size
        parts = [part.reshape(*part.shape[:2], count) for part in (self.dot.q, self.dot.v, self.dot.memory)]
        grown = [np.concatenate([old, np.zeros((*old.shape[:2], new.size))], axis=2) for old in parts]
        return StateTangents(np.concatenate([self.index, new]), StateTangent(*grown))

    def places(self, columns: IntArray) -> IntArray:
        """Return the columns of the tangents along these directions, all of which have set in."""
        order = np.argsort(self.index)
        return order[np.searchsorted(self.index, columns, sorter=order)]


@final
@dataclass(frozen=True)
class StretchTangents:
    """Tangents of the newest pairs of consecutive states, along those of c directions that have moved any of them.

    Attributes
    ----------
    index : (c,)
        Which direction each tangent belongs to.
    q, v : (k + 1, c, n)
        Row 0 is of the state before the k states.
    last : StateTangents
        Of the last state, whose older pair is that of a state after a change of chart if there was one.
    """

    index: IntArray
    q: FloatArray
    v: FloatArray
    last: StateTangents

    @property
    def n(self) -> int:
        """Number of states k."""
        return self.q.shape[0] - 1

    def states(self) -> Iterator[StateTangents]:
        """Yield the tangents of the k states."""
        for k in range(1, self.n):
            pairs = (np.ascontiguousarray(x[[k, k - 1]].transpose(0, 2, 1)) for x in (self.q, self.v))
            yield StateTangents(self.index, StateTangent(*pairs))
        yield self.last


@final
@dataclass(frozen=True)
class ThetaMap:
    """The derivative by theta of something with n entries, known by what it does to vectors; both parts add.

    Attributes
    ----------
    jvp : (theta_dot (n_theta,), out (n,)) -> None
    vjp : (bar (n,), out (n_theta,)) -> None
    """

    jvp: Callable[[FloatArray, FloatArray], None]
    vjp: Callable[[FloatArray, FloatArray], None]


@lru_cache(maxsize=16)
def generic(n: int) -> FloatArray:
    """Return a vector without structure, so that no product with it vanishes by chance."""
    rng = np.random.default_rng(20)
    return rng.choice([-1.0, 1.0], n) * rng.uniform(0.5, 1.5, n)


def read_entries(part: ThetaMap, n: int, n_theta: int) -> IntArray:
    """Return the entries of theta by which the derivative is not zero."""
    bar = np.zeros(n_theta)
    part.vjp(generic(n), bar)
    return np.flatnonzero(bar)


def push(parts: Sequence[ThetaMap], n: int, directions: Directions) -> Columns:
    """Return the sum of derivatives by theta, times the directions, as the columns (n, k) that are not zero.

    Each part is evaluated once for every entry of theta that it reads and some direction moves, or once for every
    direction that moves one, whichever is fewer.
    """
    touching = []
    for part in parts if directions.matrix.nnz else ():
        entries = directions.among(read_entries(part, n, directions.n_theta))
        if entries.size:
            touching.append((part, entries, directions.touching(entries)))
    index = np.unique(np.concatenate([columns for _, _, columns in touching] or [np.zeros(0, dtype=np.int64)]))
    values = np.zeros((n, index.size))
    by_entry = [item for item in touching if item[1].size <= item[2].size]
    # Parts may read the same entries: together they are one column of the derivative.
    entries = np.unique(np.concatenate([item[1] for item in by_entry] or [np.zeros(0, dtype=np.int64)]))
    if entries.size:
        derivative, unit = np.zeros((entries.size, n)), np.zeros(directions.n_theta)
        for part, numbers, _ in by_entry:
            for entry, row in zip(numbers, np.searchsorted(entries, numbers), strict=True):
                unit[entry] = 1.0
                part.jvp(unit, derivative[row])
                unit[entry] = 0.0
        values += derivative.T @ directions.block(entries, index)
    for part, numbers, columns in touching:
        if numbers.size > columns.size:
            for column, place in zip(columns, np.searchsorted(index, columns), strict=True):
                out = np.zeros(n)
                part.jvp(directions.column(int(column)), out)
                values[:, place] += out
    return Columns(index, values)
