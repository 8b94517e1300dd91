"""Arrays beside the families of a system: coordinates, given motions, trees, rows of links, signals at many steps."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, final

import numpy as np

from add.equations.signals import Signal
from add.kernels.arena import Floats2, Ints, Ints2, Ints3, Signals, fields_of, unpacker
from add.kernels.borrowed import borrowed, put
from add.kernels.caching import CALLED, njit
from add.kernels.rotation import change_chart_pullback
from add.kernels.trees import Tree
from add.linalg.multifrontal import analysis_of
from add.linalg.pattern import Pattern
from add.typing import AnyArray, FloatArray, IntArray


class Layout(NamedTuple):
    """Coordinates of the system.

    Attributes
    ----------
    free, prescribed : coordinates, sorted
    rotations : first coordinates of the rotation vectors that change chart
    size : (5,) number of coordinates n, and of values of a matrix over them; a bit for each decision of
        which equations hold what touches and does not slip; how many multipliers are the last coordinates, free ones
        without mass and history; how many of these, the last, hold what sticks
    """

    free: Ints
    prescribed: Ints
    rotations: Ints
    size: Ints


class Moves(NamedTuple):
    """Moves of prescribed coordinates that follow signals; see `add.equations.initial.PinMotion`.

    Attributes
    ----------
    table : (k, 4) int64
        Of each move: first and last of its coordinates, where its rows begin, number of its signal.
    dofs, axes : coordinates, and the column of the rows that each follows
    rows : (n_rows, 3) indices in theta of each, one behind the other
    """

    table: Ints2
    dofs: Ints
    axes: Ints
    rows: Ints2


class Links(NamedTuple):
    """Rows X of the links of trees, behind those of bodies whose coordinates are rows; see `add.equations.lift`.

    Attributes
    ----------
    sizes : (2,) number of rows of X, and of the first ones that are coordinates; empty without trees. Where matrices
        are sparse (`Ties`) 0, 0 and the room that an evaluation takes
    element : (n_l,) the element of each link
    touched : (k,) rows of X that force families depend on, those that are coordinates first
    trees : (n_t + 1,) first own coordinate of each tree, and the end
    """

    sizes: Ints
    element: Ints
    touched: Ints
    trees: Ints


class Ties(NamedTuple):
    """Rows of X where matrices are sparse, of links and of nodes tied to elements; see `add.compiled.sparse_trees`.

    Attributes
    ----------
    same : (k, 2) rows of X that are coordinates, and these
    columns : (n_c,) coordinates of all trees
    row : (m,) rows of X that are none, six a link and three a tied node
    element, rest : (n_t,), (n_t, 3) the element that carries each node, and the node's place in its frame [m]
    pairs : (n_w, 2) row and column of each value over X beside such a row, column by column: numbers in `row`, or
        -1 - k for the coordinate k of `border`
    border : (n_b,) coordinates beside which there are such values
    across : (2, n_b, n_c) places in the matrix of the entries of these rows and of these columns; -1 for none
    own : (n_c, n_c) place of the values of trees; -1 for none
    """

    same: Ints2
    columns: Ints
    row: Ints
    element: Ints
    rest: Floats2
    pairs: Ints2
    border: Ints
    across: Ints3
    own: Ints2


class Sparse(NamedTuple):
    """The structure of a sparse matrix over all coordinates, and of its free block; all empty for a dense one.

    Attributes
    ----------
    indptr, indices : of the whole matrix by columns
    block_indptr, block_indices : of the rows and columns of the free coordinates
    place : where each value of the block stands in the whole
    mirror, diagonal : of the block, see `add.linalg.fronts.is_symmetric`
    sizes : (4,) numbers of the stack, rows of the largest border, numbers of the factors, values of the block
    """

    indptr: Ints
    indices: Ints
    block_indptr: Ints
    block_indices: Ints
    place: Ints
    mirror: Ints
    diagonal: Ints
    sizes: Ints


class Elimination(NamedTuple):
    """The fields of `add.linalg.symbolic.Fronts` of the free block of a sparse matrix."""

    order: Ints
    pivots: Ints
    border: Ints
    rows: Ints
    local: Ints
    store: Ints
    children: Ints
    child: Ints
    entries: Ints
    source: Ints
    target: Ints


def sparse_structure(whole: Pattern, free: IntArray, n: int) -> dict[type, tuple[AnyArray, ...]]:
    """Return the arrays of `Sparse` and `Elimination` of the pattern over all coordinates.

    ``free`` are all unknowns; from ``n`` on they are multipliers, which are eliminated behind what they hold.
    """
    compressed = np.full(whole.n, -1, dtype=np.int64)
    compressed[free] = np.arange(free.size)
    rows, columns = compressed[whole.indices], np.repeat(compressed, np.diff(whole.indptr))
    place = np.flatnonzero((rows >= 0) & (columns >= 0))
    indptr: AnyArray = np.cumsum([0, *np.bincount(columns[place], minlength=free.size)], dtype=np.int32)
    indices: AnyArray = rows[place].astype(np.int32)
    block = Pattern(whole.id, free.size, indptr, indices, ())
    _, mirror, fronts, sizes = analysis_of(block, (free < n).astype(float))
    sparse = Sparse(
        whole.indptr, whole.indices, block.indptr, block.indices, place, mirror, block.diagonal,
        np.array([sizes.stack, sizes.border, sizes.fill, block.nnz]),
    )  # fmt: skip
    return {Sparse: sparse, Elimination: tuple(fronts)}


def joined_trees(trees: Sequence[tuple[Tree, int]]) -> tuple[AnyArray, ...]:
    """Return the arrays of trees one behind the other; each with its first coordinate among those of all."""
    moved, element, column = [], 0, 0
    for tree, coordinate in trees:
        moved.append(
            tree._replace(
                parent=np.where(tree.parent >= 0, tree.parent + element, -1),
                first=tree.first + column,
                element=tree.element + element,
                coordinate=tree.coordinate + coordinate,
            )
        )
        element, column = element + tree.parent.size, column + tree.element.size
    joined = [np.concatenate(parts) for parts in zip(*moved, strict=True)]
    return (*joined[:-1], trees[0][0].gravity)


#: The same for each class, and asked for with every scene that is built.
known_fields = cache(fields_of)

#: In this order they stand before the families; the first number of each.
STRUCTURE: tuple[type, ...] = (Layout, Moves, Links, Tree, Sparse, Elimination, Ties)
FIRST = [int(n) for n in np.cumsum([0, *(len(fields_of(kind)) for kind in STRUCTURE)])][:-1]
_LAYOUT, _MOVES, _LINKS, _TREE, _SPARSE, _ELIMINATION, _TIES = FIRST
_layout, _moves, _links, _tree, _sparse, _elimination, _ties = (unpacker(kind) for kind in STRUCTURE)


@njit(**CALLED)
def layout_of(arena):
    """Return the `Layout` of an arena."""
    return _layout(arena, _LAYOUT)


@njit(**CALLED)
def links_of(arena):
    """Return the `Links` of an arena."""
    return _links(arena, _LINKS)


@njit(**CALLED)
def tree_of(arena):
    """Return the `Tree` of an arena: all trees, one behind the other."""
    return _tree(arena, _TREE)


@njit(**CALLED)
def ties_of(arena):
    """Return the `Ties` of an arena."""
    return _ties(arena, _TIES)


@njit(**CALLED)
def sparse_of(arena):
    """Return the `Sparse` of an arena."""
    return _sparse(arena, _SPARSE)


@njit(**CALLED)
def fronts_of_system(arena):
    """Return the `Elimination` of an arena."""
    return _elimination(arena, _ELIMINATION)


def empty(kind: type) -> tuple[AnyArray, ...]:
    """Return the arrays of what a system has none of."""
    return tuple(np.zeros((0,) * dimensions, dtype=dtype) for dimensions, dtype in known_fields(kind))


@njit(**CALLED)
def move_prescribed(arena, at, start, q):
    """Fill the prescribed entries of q (n,): ``start`` (n_p,) and the moves at this instant."""
    prescribed, moves = layout_of(arena).prescribed, _moves(arena, _MOVES)
    for i in range(prescribed.size):
        q[prescribed[i]] = start[i]
    for k in range(moves.table.shape[0]):
        first, last, begin, signal = moves.table[k]
        row, start_at, width = at.signals.table[signal]
        weights = borrowed(at.signals.weights, start_at, (width,))
        for c in range(3):
            way = 0.0
            for j in range(width):
                way += weights[j] * at.theta[moves.rows[begin + row + j, c]]
            for i in range(first, last):
                if moves.axes[i] == c:
                    q[moves.dofs[i]] += way


@njit(**CALLED)
def move_parameters(arena, at, bar, out):
    """Add the cotangents of the moves' coefficients for cotangents of prescribed coordinates, ``bar`` (n,), to out."""
    moves = _moves(arena, _MOVES)
    for k in range(moves.table.shape[0]):
        first, last, begin, signal = moves.table[k]
        row, start, width = at.signals.table[signal]
        by_axis = np.zeros(3)
        for i in range(first, last):
            by_axis[moves.axes[i]] += bar[moves.dofs[i]]
        for j in range(width):
            for c in range(3):
                out[moves.rows[begin + row + j, c]] += at.signals.weights[start + j] * by_axis[c]


#: Steps whose signals are evaluated together. Chunks begin at multiples, so that a step meets the same numbers
#: whatever the step that a run began with.
CHUNK = 64
#: The share of an explicit step after which its first stage reads signals.
WITHIN = 1e-6


def windows(signals: Sequence[Signal], times: FloatArray) -> Signals:
    """Return the signals at each of the times (k,): weights (k, m) and tables (k, s, 3)."""
    k = times.size
    table = np.zeros((k, len(signals), 3), dtype=np.int64)
    parts, begin = [np.zeros((k, 0))], 0
    for i, signal in enumerate(signals):
        first, weights = signal.windows(times)
        table[:, i, 0], table[:, i, 1], table[:, i, 2] = first, begin, weights.shape[1]
        parts.append(weights)
        begin += weights.shape[1]
    return Signals(np.ascontiguousarray(np.concatenate(parts, axis=1)), table)


@final
class SignalsOfSteps:
    """Signals at the ends of steps, or at their stages, evaluated in chunks: of one run."""

    def __init__(self, signals: Sequence[Signal]) -> None:
        self._signals, self._chunk = signals, (0.0, -1, 0)
        self._windows = Signals(np.zeros(0), np.zeros((0, 3), dtype=np.int64))

    def of(self, dt: float, step: int, n: int, stages: FloatArray | None = None) -> Signals:
        """Return the signals at the ends of ``n`` steps from number ``step`` on, which lie in one chunk.

        Or at all their ``stages`` (s,), shares of a step: an explicit step meets what a piecewise constant signal is
        within it.
        """
        s, chunk = 1 if stages is None else stages.size, step // CHUNK
        if self._chunk != (dt, chunk, s):
            times = dt * np.arange(chunk * CHUNK, (chunk + 1) * CHUNK, dtype=float)
            if stages is not None:
                begins = dt * np.arange(chunk * CHUNK - 1, (chunk + 1) * CHUNK - 1, dtype=float)
                times = np.add.outer(begins, np.maximum(stages, WITHIN) * dt).ravel()
            self._windows, self._chunk = windows(self._signals, times), (dt, chunk, s)
        part = slice(s * (step - chunk * CHUNK), s * (step - chunk * CHUNK + n))
        return Signals(self._windows.weights[part], self._windows.table[part])


@njit(**CALLED)
def pull_charts(rotations, steps, k, before, pairs, bars):
    """Replace cotangents of q and v (2, n) after the changes of chart of step k by those before; ``pairs`` are scratch.

    ``before`` is the newest pair (q, v) of the state before the steps.
    """
    (pair_q, pair_v), (bar_q, bar_v) = pairs, bars
    for i in range(rotations.size):
        if steps.turned[k, i]:
            put(steps.q[k], pair_q[0])
            put(steps.v[k], pair_v[0])
            put(steps.states_q[k - 1] if k else before[0], pair_q[1])
            put(steps.states_v[k - 1] if k else before[1], pair_v[1])
            change_chart_pullback(rotations[i], pair_q, pair_v, bar_q, bar_v)
