"""Sparse assembly into fixed slots: the pattern is found once, an iteration only adds numbers."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, pairwise
from typing import Generic, TypeVar, final

import numpy as np
import scipy.sparse as sp

from add.kernels.caching import njit
from add.linalg.tree import merged
from add.typing import AnyArray, FloatArray, IntArray

_pattern_ids = count()


@final
@dataclass(frozen=True)
class Pattern:
    """The sparsity of a square matrix in compressed columns, and where every local entry goes.

    Attributes
    ----------
    id : int
        Changes when, and only when, the structure does: factorisations reuse their analysis by it.
    n : int
    indptr, indices : CSC structure, rows sorted within a column
    slots : tuple of IntArray
        For every contributor, the position of each of its local entries in the values; entries of rows or columns
        that are left out go to position ``nnz``, one past the last value.
    base, place : Pattern and (base.nnz,), or None
        Of a pattern that extends another one: it has slots for its own contributors alone, and the values of ``base``
        go to ``place``.
    """

    id: int
    n: int
    indptr: IntArray
    indices: IntArray
    slots: tuple[IntArray, ...]
    base: "Pattern | None" = None
    place: IntArray | None = None

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return self.indices.size

    @cached_property
    def dense_positions(self) -> IntArray:
        """Place of every value in the full matrix, column by column."""
        return np.repeat(np.arange(self.n) * self.n, np.diff(self.indptr)) + self.indices

    def extended(self, entries: Sequence[tuple[IntArray, IntArray]], compressed: IntArray | None = None) -> "Pattern":
        """Return the pattern of this one and more contributors; parameters as in `build`."""
        return self._with(entries, compressed, base=self)

    def _with(
        self, entries: Sequence[tuple[IntArray, IntArray]], compressed: IntArray | None, base: "Pattern | None"
    ) -> "Pattern":
        # Families of the same elements share their entries, and then their slots.
        by_id = {id(entry): entry for entry in entries}
        rows, cols = (
            np.concatenate([np.zeros(0, dtype=np.int64), *(np.ravel(one[k]) for one in by_id.values())], dtype=np.int64)
            for k in (0, 1)
        )
        if compressed is not None:
            rows, cols = compressed[rows], compressed[cols]
        # Few entries take a millisecond without a compiled function, which takes a second to make.
        merge = getattr(merged, "py_func", merged) if base is None and rows.size <= FEW else merged
        indptr, indices, place, slots = merge(self.indptr, self.indices, rows, cols)
        bounds = np.cumsum([0, *(rows.size for rows, _ in by_id.values())])
        slots_of = {key: slots[a:b] for key, (a, b) in zip(by_id, pairwise(bounds), strict=True)}
        return Pattern(
            id=next(_pattern_ids),
            n=self.n,
            indptr=indptr,
            indices=indices,
            slots=tuple([slots_of[id(entry)] for entry in entries]),
            base=base,
            place=place if base is not None else None,
        )

    @cached_property
    def diagonal(self) -> IntArray:
        """Place of every diagonal value."""
        columns = np.repeat(np.arange(self.n), np.diff(self.indptr))
        return np.flatnonzero(self.indices == columns)

    def new_data(self) -> FloatArray:
        """Return zeroed values with the dummy slot at the end."""
        return np.zeros(self.nnz + 1)

    def matrix(self, data: FloatArray) -> sp.csc_array:
        """Return the matrix over (not a copy of) ``data``."""
        return sp.csc_array((data[: self.nnz], self.indices, self.indptr), shape=(self.n, self.n))

    @classmethod
    def of(cls, matrix: sp.csc_array) -> "tuple[Pattern, FloatArray]":
        """Return the pattern of a matrix, new whatever was seen before, and its values."""
        matrix.sort_indices()
        indptr: AnyArray = matrix.indptr.astype(np.int32)
        indices: AnyArray = matrix.indices.astype(np.int32)
        return cls(next(_pattern_ids), matrix.shape[0], indptr, indices, ()), matrix.data

    @classmethod
    def build(
        cls, n: int, entries: Sequence[tuple[IntArray, IntArray]], compressed: IntArray | None = None
    ) -> "Pattern":
        """Find the pattern of a sum of local contributions.

        Parameters
        ----------
        n : int
            Size of the matrix.
        entries : (rows, cols) of every contributor, in its own numbering
        compressed : (n_full,), optional
            New number of every row and column; -1 leaves it out. Default: all kept.
        """
        diagonal = cls(-1, n, np.arange(n + 1, dtype=np.int32), np.arange(n, dtype=np.int32), ())
        return diagonal._with(entries, compressed, base=None)


Made = TypeVar("Made")

#: Entries that are merged without a compiled function.
FEW = 1000

#: Patterns that are kept at once.
MOST_PATTERNS = 64


@final
class PatternCache(Generic[Made]):
    """The patterns of branches, or what is made of them, that were asked for last, by what their structure depends on.

    Contacts that come and go make new structures for as long as a run goes on.
    """

    def __init__(self, most: int = MOST_PATTERNS) -> None:
        self._kept: OrderedDict[Hashable, Made] = OrderedDict()
        self._most = most

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, structure: Hashable, build: Callable[[], Made]) -> Made:
        """Return the pattern of a structure; it is built where it is not kept."""
        # Threads may share it: at worst two build the same one.
        pattern = self._kept.pop(structure, None)
        if pattern is None:
            pattern = build()
        self._kept[structure] = pattern
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return pattern

    def copy(self) -> "PatternCache[Made]":
        """Return another one with the same patterns."""
        other: PatternCache[Made] = PatternCache(self._most)
        other._kept.update(self._kept)
        return other


@njit(cache=True)
def add_blocks(entries, factor, blocks, data, slots):
    """Add factor times blocks (k, m, m) to ``data[slots[entries]]``; nowhere where an entry is -1."""
    for k in range(entries.shape[0]):
        for a in range(entries.shape[1]):
            for e in range(entries.shape[2]):
                if entries[k, a, e] >= 0:
                    data[slots[entries[k, a, e]]] += factor * blocks[k, a, e]


@njit(cache=True)
def add_product(rows, cols, values, x, out):
    """Add the product of a matrix of local entries (repeats allowed) with ``x`` to ``out``."""
    for k in range(rows.size):
        out[rows[k]] += values[k] * x[cols[k]]
