"""The symbolic factorisation: fronts, their rows, and where every entry and every contribution goes."""

from typing import NamedTuple

import numpy as np

from add.kernels.caching import njit
from add.linalg.tree import Structure, column_counts, elimination_tree, postorder, supernodes
from add.typing import AnyArray

#: A front of at most ``SMALL[i]`` pivots may store the share ``SHARE[i]`` of zeros, a larger one the last. Measured on
#: boxes of 150 to 1500 nodes and six scenes; the optimum is flat.
SMALL = np.array([6, 24, 48])
SHARE = np.array([1.0, 0.3, 0.1, 0.05])


class Fronts(NamedTuple):
    """The fronts in the order of their elimination; unknowns are numbered in that order too.

    A front of p pivots and b border rows stores (p + b) x p numbers by columns, L below U, then b x p, the rest of U
    transposed. Offsets of k fronts have k + 1 entries.

    Attributes
    ----------
    order : (n,) the unknown at each place
    pivots : (k + 1,) first place of each front
    border : (k + 1,) offsets in rows and local
    rows : places of the border rows, increasing
    local : index of each border row in the parent's front
    store : (k + 1,) offsets in the factors
    children : (k + 1,) offsets in child
    child : fronts whose contributions a front gathers, in the order in which they lie on the stack
    entries : (k + 1,) offsets in source and target
    source : entry of the matrix
    target : where it goes, from the start of the front's factors
    """

    order: AnyArray
    pivots: AnyArray
    border: AnyArray
    rows: AnyArray
    local: AnyArray
    store: AnyArray
    children: AnyArray
    child: AnyArray
    entries: AnyArray
    source: AnyArray
    target: AnyArray


class Sizes(NamedTuple):
    """Work of a factorisation.

    stack: numbers on the stack of contributions at its highest, border: rows of the largest border, fill: numbers
    stored, flops: floating-point operations.
    """

    stack: int
    border: int
    fill: int
    flops: float


@njit(cache=True)
def _numbered(parent, into, below):
    """Number the fronts, children before parents.

    Returns the number of every vertex's front, the parent of every front (-1 for a root), and how much more room than
    it leaves behind the subtree of every front needs on the stack of contributions.
    """
    n = parent.size
    number = np.full(n, -1, dtype=np.int32)
    count = 0
    for k in range(n):
        if into[k] == k:
            number[k] = count
            count += 1
    above = np.full(count, -1, dtype=np.int32)
    peak, gathered, left = np.zeros(count), np.zeros(count), np.zeros(count)
    for k in range(n):
        if into[k] == k:
            s = number[k]
            left[s] = float(below[k]) ** 2
            peak[s] = max(peak[s], gathered[s] + left[s])
            if parent[k] >= 0:
                p = number[into[parent[k]]]
                above[s] = p
                gathered[p] += left[s]
                peak[p] = max(peak[p], peak[s])
    for k in range(n):
        number[k] = number[into[k]]
    return number, above, peak - left


@njit(cache=True)
def _members(number, above, sequence, order):
    """Renumber the fronts in the given sequence.

    Returns the vertices front by front, the offsets of each front in them, and the parent of each front.
    """
    count, n = above.size, order.size
    rank = np.empty(count, dtype=np.int32)
    for i in range(count):
        rank[sequence[i]] = i
    start = np.zeros(count + 1, dtype=np.int32)
    for k in range(n):
        start[rank[number[k]] + 1] += 1
    for s in range(count):
        start[s + 1] += start[s]
    fill = start[:count].copy()
    members = np.empty(n, dtype=np.int32)
    for k in range(n):
        s = rank[number[k]]
        members[fill[s]] = order[k]
        fill[s] += 1
    up = np.full(count, -1, dtype=np.int32)
    for s in range(count):
        if above[s] >= 0:
            up[rank[s]] = rank[above[s]]
    return members, start, up


@njit(cache=True)
def _borders(indptr, neighbours, members, start, up, capacity):
    """Return the vertices below each front, by place in ``members``, increasing: (offsets, places).

    The union of the neighbours of the front's vertices and of its children's borders, without what lies in it;
    ``capacity`` is at least the sum of their numbers.
    """
    n, count = members.size, up.size
    place = np.empty(n, dtype=np.int32)
    for k in range(n):
        place[members[k]] = k
    head = np.full(count, -1, dtype=np.int32)
    following = np.full(count, -1, dtype=np.int32)
    seen = np.full(n, -1, dtype=np.int32)
    offsets = np.zeros(count + 1, dtype=np.int64)
    border = np.empty(capacity, dtype=np.int32)
    size = 0
    for s in range(count):
        for k in range(start[s], start[s + 1]):
            g = members[k]
            for e in range(indptr[g], indptr[g + 1]):
                i = place[neighbours[e]]
                if i >= start[s + 1] and seen[i] != s:
                    seen[i] = s
                    border[size] = i
                    size += 1
        c = head[s]
        while c >= 0:
            for e in range(offsets[c], offsets[c + 1]):
                i = border[e]
                if i >= start[s + 1] and seen[i] != s:
                    seen[i] = s
                    border[size] = i
                    size += 1
            c = following[c]
        offsets[s + 1] = size
        if up[s] >= 0:
            following[s] = head[up[s]]
            head[up[s]] = s
    # Two transpositions sort all of them at once.
    column = np.zeros(n + 1, dtype=np.int64)
    for e in range(size):
        column[border[e] + 1] += 1
    for i in range(n):
        column[i + 1] += column[i]
    fill = column[:n].copy()
    owner = np.empty(size, dtype=np.int32)
    for s in range(count):
        for e in range(offsets[s], offsets[s + 1]):
            owner[fill[border[e]]] = s
            fill[border[e]] += 1
    next_free = offsets[:count].copy()
    for i in range(n):
        for e in range(column[i], column[i + 1]):
            s = owner[e]
            border[next_free[s]] = i
            next_free[s] += 1
    return offsets, border[:size].copy()


@njit(cache=True)
def _expand(first, members, start, offsets, places, up):
    """Return vertices as unknowns: (order, pivots, border, rows, local, store)."""
    count = up.size
    n = first[-1]
    at = np.empty(members.size + 1, dtype=np.int32)
    order = np.empty(n, dtype=np.int32)
    at[0] = 0
    for k in range(members.size):
        g = members[k]
        at[k + 1] = at[k] + first[g + 1] - first[g]
        for i in range(at[k + 1] - at[k]):
            order[at[k] + i] = first[g] + i
    pivots = np.empty(count + 1, dtype=np.int64)
    border = np.zeros(count + 1, dtype=np.int64)
    store = np.zeros(count + 1, dtype=np.int64)
    for s in range(count + 1):
        pivots[s] = at[start[s]]
    for s in range(count):
        b = 0
        for e in range(offsets[s], offsets[s + 1]):
            b += at[places[e] + 1] - at[places[e]]
        border[s + 1] = border[s] + b
        p = pivots[s + 1] - pivots[s]
        store[s + 1] = store[s] + p * (p + 2 * b)
    rows = np.empty(border[-1], dtype=np.int32)
    size = 0
    for e in range(places.size):
        for i in range(at[places[e]], at[places[e] + 1]):
            rows[size] = i
            size += 1
    local = np.empty(rows.size, dtype=np.int32)
    index = np.empty(n, dtype=np.int32)
    head = np.full(count, -1, dtype=np.int32)
    following = np.full(count, -1, dtype=np.int32)
    for s in range(count):
        if up[s] >= 0:
            following[s] = head[up[s]]
            head[up[s]] = s
    for s in range(count):
        if head[s] < 0:
            continue
        p = pivots[s + 1] - pivots[s]
        for i in range(p):
            index[pivots[s] + i] = i
        for e in range(border[s], border[s + 1]):
            index[rows[e]] = p + e - border[s]
        c = head[s]
        while c >= 0:
            for e in range(border[c], border[c + 1]):
                local[e] = index[rows[e]]
            c = following[c]
    return order, pivots, border, rows, local, store


@njit(cache=True)
def _children(up):
    """Return (offsets, children in increasing order)."""
    count = up.size
    offsets = np.zeros(count + 1, dtype=np.int32)
    for s in range(count):
        if up[s] >= 0:
            offsets[up[s] + 1] += 1
    for s in range(count):
        offsets[s + 1] += offsets[s]
    fill = offsets[:count].copy()
    child = np.empty(offsets[-1], dtype=np.int32)
    for s in range(count):
        if up[s] >= 0:
            child[fill[up[s]]] = s
            fill[up[s]] += 1
    return offsets, child


@njit(cache=True)
def _entries(indptr, indices, row_indptr, row_indices, row_entry, order, pivots, border, rows):
    """Return the places of the entries of the matrix: (offsets, source, target)."""
    n, count = order.size, pivots.size - 1
    place = np.empty(n, dtype=np.int32)
    for i in range(n):
        place[order[i]] = i
    index = np.empty(n, dtype=np.int32)
    offsets = np.zeros(count + 1, dtype=np.int64)
    source = np.empty(indices.size, dtype=np.int32)
    target = np.empty(indices.size, dtype=np.int32)
    size = 0
    for s in range(count):
        low, high = pivots[s], pivots[s + 1]
        p, b = high - low, border[s + 1] - border[s]
        m = p + b
        for i in range(low, high):
            index[i] = i - low
        for e in range(border[s], border[s + 1]):
            index[rows[e]] = p + e - border[s]
        for j in range(p):
            column = order[low + j]
            for e in range(indptr[column], indptr[column + 1]):
                i = place[indices[e]]
                if i >= low:
                    source[size] = e
                    target[size] = j * m + index[i]
                    size += 1
            for e in range(row_indptr[column], row_indptr[column + 1]):
                i = place[row_indices[e]]
                if i >= high:
                    source[size] = row_entry[e]
                    target[size] = p * m + j * b + index[i] - p
                    size += 1
        offsets[s + 1] = size
    return offsets, source, target


@njit(cache=True)
def _highest(b, children, child):
    """Return how many numbers the stack of contributions holds at most; ``b`` are the borders of the fronts."""
    stack = highest = 0.0
    for s in range(b.size):
        # The new contribution is made above those it gathers.
        highest = max(highest, stack + b[s] ** 2)
        stack += b[s] ** 2
        for c in range(children[s], children[s + 1]):
            stack -= b[child[c]] ** 2
    return highest


def _sizes(fronts: Fronts) -> Sizes:
    p, b = np.diff(fronts.pivots).astype(float), np.diff(fronts.border).astype(float)
    highest = _highest(b, fronts.children, fronts.child)
    flops = float((2.0 / 3.0 * p**3 + 2.0 * p**2 * b + 2.0 * p * b**2).sum())
    return Sizes(int(highest), int(b.max(initial=0.0)), int(fronts.store[-1]), flops)


def fronts_of(structure: Structure, order: AnyArray) -> tuple[Fronts, Sizes]:
    """Return the fronts of a structure whose vertices are eliminated in (a postorder of) this order."""
    # Called one by one: compiled as one function they take four times as long to compile.
    adjacent, neighbours, first = structure.adjacent, structure.neighbours, structure.first
    size = np.diff(first)
    parent, position = elimination_tree(adjacent, neighbours, order)
    below = column_counts(adjacent, neighbours, order, position, parent, size)
    into = supernodes(parent, size[order].astype(np.int64), below, SMALL, SHARE)
    number, above, room = _numbered(parent, into, below)
    # Contributions wait on a stack: among siblings, first the one that needs most room beyond what it leaves.
    sequence = postorder(above, np.argsort(room, kind="stable"))
    members, start, up = _members(number, above, sequence, order)
    offsets, places = _borders(adjacent, neighbours, members, start, up, int(below[into == np.arange(into.size)].sum()))
    order, pivots, border, rows, local, store = _expand(first, members, start, offsets, places, up)
    by_rows = structure.row_indptr, structure.row_indices, structure.row_entry
    entries = _entries(structure.indptr, structure.indices, *by_rows, order, pivots, border, rows)
    fronts = Fronts(order, pivots, border, rows, local, store, *_children(up), *entries)
    return fronts, _sizes(fronts)
