"""The equations of a system with a sparse matrix some of whose rows of X are no coordinates: links, and tied nodes.

Trees are walked as one, over the coordinates of all of them, wherever these stand; a rigid body that carries tissue is
a tree, too. Rows of X that are no coordinates are those of links, then those of nodes tied to an element, X = Phi(q)
with P = dPhi/dq. A value of the matrix K over X, and of C by rates, between two coordinates goes where it stays; one
beside another row waits behind the values of the matrix over q, and is spread from there:

    w_q (P^T K P + P^T C Q + H) + w_v P^T C P,    H = sum_i r_X,i d2Phi_i/dq2

`add.compiled.tree_equations` does the same for few coordinates, with full matrices.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array

from add.compiled.structure import Links, Ties, joined_trees, layout_of, links_of, ties_of, tree_of
from add.compiled.walk import add_inputs, add_jacobian, add_parameters, forces, new_found, norm, unit
from add.equations.family import Family, NotCompiled, dense_blocks
from add.equations.lift import Lift
from add.equations.tree_embedding import TiedNodes, TreeEmbedding
from add.kernels.arena import CHOICE, EQUATION, OWN, Arena, Found, Instant
from add.kernels.borrowed import borrowed, put
from add.kernels.caching import CALLED, njit
from add.kernels.tree_dynamics import add_jacobian as add_tree_jacobian, add_residual, fill_wrenches, new_wrenches
from add.kernels.tree_map import add_curvature, add_point_curvature, fill_places, fill_points, fill_rates
from add.kernels.tree_pullback import add_placement_work, add_point_work, fill_parameters, fill_works, scatter
from add.kernels.trees import Tree, tree_motion
from add.linalg.pattern import Pattern
from add.terms.rigid_inertia import TreeInertia
from add.typing import AnyArray, FloatArray, IntArray

#: The families over rows of X, and those over coordinates: column `add.kernels.arena.OWN`.
_ROWS, _OWN = 0, 1


class SparseLift(NamedTuple):
    """A sparse matrix over rows of X and over coordinates.

    Attributes
    ----------
    structure : arrays of `Links`, `Ties` and `Tree`
    whole : Pattern
        Over all coordinates.
    places : of the entries of each family among its values and, behind these, among those that are spread
    n_values : of both
    """

    structure: dict[type, tuple[AnyArray, ...]]
    whole: Pattern
    places: list[IntArray]
    n_values: int


def _carriers(lift: Lift, trees: Sequence[TreeInertia]) -> dict[int, TreeInertia]:
    """Return the trees, and what carries tissue without an inertia of its own, by their first coordinates, sorted."""
    out = {term.start: term for term in trees}
    for item in lift.carried:
        assert isinstance(item.embedding, TiedNodes)
        tree = item.embedding.frame.tree
        still = tree._replace(mass=np.full_like(tree.mass, -1), armature=np.full_like(tree.armature, -1))
        out.setdefault(item.first, TreeInertia(still, item.first, item.embedding.n_coordinates))
    return dict(sorted(out.items()))


def _moved_rows(lift: Lift, trees: dict[int, TreeInertia]) -> tuple[IntArray, IntArray, FloatArray]:
    """Return elements of links, and elements and places of tied nodes, in the order of `Lift.blocks`."""
    first = dict(zip(trees, np.cumsum([0, *(term.tree.parent.size for term in trees.values())]), strict=False))
    links, tied, rest = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], [np.zeros((0, 3))]
    for embedding, q, _, _ in lift.blocks:
        if not isinstance(embedding, TreeEmbedding | TiedNodes) or q.start not in trees:
            raise NotCompiled("a body in coordinates of its own that is no tree")
        if isinstance(embedding, TiedNodes):
            tied.append(embedding.elements + first[q.start])
            rest.append(embedding.rest)
        else:
            links.append(embedding.links + first[q.start])
    return np.concatenate(links), np.concatenate(tied), np.concatenate(rest)


def sparse_lift(
    lift: Lift, inertia: Sequence[TreeInertia], families: Sequence[tuple[Family, int, bool]], n: int, multipliers: int
) -> SparseLift:
    """Return the structure of a system of n coordinates; of families the last says whether they are over these."""
    trees = _carriers(lift, inertia)
    starts = np.cumsum([0, *(term.n for term in trees.values())])
    blocks = [term.start + np.arange(term.n) for term in trees.values()]
    columns = np.concatenate(blocks)
    links, tied, rest = _moved_rows(lift, trees)
    # Rows of X that are coordinates, multipliers among them, and the others in the order of their blocks.
    every, beyond = np.arange(lift.rows.n), np.arange(multipliers)
    same = np.append(every[lift.same], every.size + beyond)
    dofs = np.append(np.arange(lift.n_same), n + beyond)
    others = np.concatenate([every[rows] for _, _, rows, _ in lift.blocks])
    coordinate, of_rows = np.full((2, every.size + multipliers), -1, dtype=np.int64)
    coordinate[same], of_rows[others] = dofs, np.arange(others.size)
    # The matrix over X: what stays, and what waits to be spread.
    over = Pattern.build(coordinate.size, [family.pattern for family, _, own in families if not own])
    r, c = over.indices.astype(np.int64), np.repeat(np.arange(over.n), np.diff(over.indptr))
    waits = (coordinate[r] < 0) | (coordinate[c] < 0)
    first, moves, _ = lift.entries
    moves, first = np.append(moves, n + beyond), np.append(first, first[-1] + 1 + beyond)
    phi = csr_array((np.ones(moves.size), moves, first), shape=(coordinate.size, n + multipliers))
    product = (phi.T @ csc_array((np.ones(r.size), (r, c)), shape=(over.n, over.n)) @ phi).tocoo()
    whole = Pattern.build(
        n + multipliers,
        [
            (coordinate[r[~waits]], coordinate[c[~waits]]),
            (product.coords[0].astype(np.int64), product.coords[1].astype(np.int64)),
            *(dense_blocks(block[None]) for block in blocks),
            *(family.pattern for family, _, own in families if own),
        ],
    )
    place = np.empty(r.size, dtype=np.int64)
    place[~waits], place[waits] = whole.slots[0], whole.nnz + np.arange(waits.sum())
    ends = [np.where(coordinate[x[waits]] < 0, of_rows[x[waits]], -1 - coordinate[x[waits]]) for x in (r, c)]
    border = np.unique(np.concatenate([-1 - end[end < 0] for end in ends]))
    ends = [np.where(end < 0, -1 - np.searchsorted(border, -1 - end), end) for end in ends]
    numbers = csc_array((np.arange(1, whole.nnz + 1), whole.indices, whole.indptr), shape=(whole.n, whole.n))
    across = numbers[border][:, columns], numbers[columns][:, border].T, numbers[columns][:, columns]
    to_border, from_border, own_places = (part.toarray().astype(np.int64) - 1 for part in across)
    over_x, over_q = iter(over.slots), iter(whole.slots[2 + len(blocks) :])
    none = np.zeros(0, dtype=np.int64)
    structure: dict[type, tuple[AnyArray, ...]] = {
        Links: (np.array([0, 0, 4 * coordinate.size + 2 * int(waits.sum())]), links, none, starts),
        Ties: (
            np.stack([same, dofs], axis=1), columns, others, tied, rest, np.stack(ends, axis=1), border,
            np.stack([to_border, from_border]), own_places,
        ),
        Tree: joined_trees([(term.tree, first) for term, first in zip(trees.values(), starts.tolist(), strict=False)]),
    }  # fmt: skip
    places = [np.asarray(next(over_q) if of_q else place[next(over_x)], dtype=np.int64) for _, _, of_q in families]
    return SparseLift(structure, whole, places, whole.nnz + int(waits.sum()))


class _State(NamedTuple):
    """Trees at a state, and what depends on them.

    Attributes
    ----------
    own : (3, n_c) coordinates of the trees, their rates and accelerations
    motion, wrenches : of the trees
    x : (m,) places of the rows of X that are no coordinates
    p, q : (m n_c,) P of these rows, and Q or nothing
    """

    own: AnyArray
    motion: AnyArray
    wrenches: AnyArray
    x: AnyArray
    p: AnyArray
    q: AnyArray


@njit(**CALLED)
def _gathered(values, places):
    """Return values at places."""
    out = np.empty(places.size)
    for i in range(places.size):
        out[i] = values[places[i]]
    return out


@njit(**CALLED)
def _state(arrays, at, rates):
    """Return the `_State`, with Q where ``rates`` are asked for."""
    ties, tree, links = ties_of(arrays), tree_of(arrays), links_of(arrays)
    own = np.empty((3, ties.columns.size))
    put(_gathered(at.q, ties.columns), own[0])
    put(_gathered(at.v, ties.columns), own[1])
    put(_gathered(at.a, ties.columns), own[2])
    motion = tree_motion(tree, at.theta, own[0], own[1], own[2])
    wrenches = new_wrenches(tree.parent.size)
    fill_wrenches(tree, at.theta, motion, wrenches)
    m, n, first = ties.row.size, ties.columns.size, 6 * links.element.size
    x, p, q = np.empty(m), np.empty(m * n), np.empty(m * n if rates else 0)
    of_nodes = borrowed(q, first * n if rates else 0, (m - first if rates else 0, n))
    fill_places(tree, motion, links.element, x, borrowed(p, 0, (first, n)))
    fill_points(tree, motion, ties.element, ties.rest, x[first:], borrowed(p, first * n, (m - first, n)), of_nodes)
    if rates:
        fill_rates(tree, motion, links.element, borrowed(q, 0, (first, n)))
    return _State(own, motion, wrenches, x, p, q)


@njit(**CALLED)
def _rows(arrays, room):
    """Return X, its rates, accelerations and forces (4, n_x), and the values of K and C that are spread (2, k)."""
    waiting = ties_of(arrays).pairs.shape[0]
    n = (room.size - 2 * waiting) // 4
    return borrowed(room, 0, (4, n)), borrowed(room, 4 * n, (2, waiting))


@njit(**CALLED)
def _at_rows(at, rows):
    """Return the state on rows of X."""
    return Instant(at.t, rows[0], rows[1], rows[2], at.theta, at.signals)


@njit(**CALLED)
def _push(arrays, p, given, out):
    """Fill ``out`` (n_x,) with P times what is given of the coordinates."""
    ties = ties_of(arrays)
    same, n = ties.same, ties.columns.size
    for i in range(same.shape[0]):
        out[same[i, 0]] = given[same[i, 1]]
    own = _gathered(given, ties.columns)
    for i in range(ties.row.size):
        total = 0.0
        for k in range(n):
            total += p[i * n + k] * own[k]
        out[ties.row[i]] = total


@njit(**CALLED)
def _pull(arrays, p, over_rows, r):
    """Add P^T times forces over X to r."""
    ties = ties_of(arrays)
    same, n = ties.same, ties.columns.size
    for i in range(same.shape[0]):
        r[same[i, 1]] += over_rows[same[i, 0]]
    for i in range(ties.row.size):
        force = over_rows[ties.row[i]]
        if force != 0.0:
            for k in range(n):
                r[ties.columns[k]] += p[i * n + k] * force


@njit(**CALLED)
def _largest(arrays, at, p, chosen, order):
    """Return the norm over coordinates of the largest family over X; equations have no force, see `walk.forces`."""
    scale = 0.0
    for k in range(arrays.families.shape[0]):
        if arrays.families[k, OWN] == _ROWS and arrays.families[k, CHOICE] > EQUATION:
            one = Arena(arrays.ints, arrays.floats, arrays.fields, arrays.families[k : k + 1])
            over_rows, r = np.zeros(at.q.size), np.zeros(layout_of(arrays).size[0])
            forces(one, _ROWS, at, True, chosen, chosen, 0, 0.0, over_rows, np.empty((0, 0)))
            _pull(arrays, p, over_rows, r)
            scale = max(scale, norm(r, order))
    return scale


@njit(**CALLED)
def residual(arrays, at, room, replay, choices, measured, r):
    """Do what `add.compiled.walk.residual` does, and fill the ``room`` of `add.compiled.tree_equations.new_lifted`."""
    ties, trees = ties_of(arrays), links_of(arrays).trees
    now, (rows, _), none = _state(arrays, at, False), _rows(arrays, room), np.empty((0, 0))
    _push(arrays, now.p, at.v, rows[1])
    for i in range(ties.same.shape[0]):
        x, k = ties.same[i]
        rows[0, x], rows[2, x] = at.q[k], at.a[k]
    for i in range(ties.row.size):
        rows[0, ties.row[i]] = now.x[i]
    rows[3, :], r[:] = 0.0, 0.0
    lifted, scale = _at_rows(at, rows), 0.0
    chosen = forces(arrays, _ROWS, lifted, replay, choices, choices, 0, 0.0, rows[3], none)[0]
    _pull(arrays, now.p, rows[3], r)
    if measured:
        scale = _largest(arrays, lifted, now.p, chosen, measured)
    own = np.zeros(ties.columns.size)
    add_residual(tree_of(arrays), at.theta, now.motion, now.wrenches, 0, now.own[2], own)
    for i in range(own.size):
        r[ties.columns[i]] += own[i]
    for k in range(trees.size - 1 if measured else 0):
        scale = max(scale, norm(own[trees[k] : trees[k + 1]], measured))
    return forces(arrays, _OWN, at, replay, choices, chosen, measured, scale, r, none)


@njit(**CALLED)
def _spread(arrays, weight, data, by_rates, now, own):
    """Add P^T A P of the values of A that wait behind those of the matrix, and ``weight`` P^T C Q.

    What both sides are lifted goes to ``own`` (n_c, n_c), column by column of A, the rest to ``data``.
    """
    ties, n = ties_of(arrays), ties_of(arrays).columns.size
    pairs, lines = ties.pairs, np.zeros((2, n))
    first = data.size - pairs.shape[0]
    for k in range(pairs.shape[0]):
        i, j = pairs[k]
        value, rate = data[first + k], weight * by_rates[first + k] if weight != 0.0 else 0.0
        if j < 0:
            for a in range(n):
                if ties.across[1, -1 - j, a] >= 0:
                    data[ties.across[1, -1 - j, a]] += now.p[i * n + a] * value
        elif i < 0:
            for a in range(n):
                if ties.across[0, -1 - i, a] >= 0:
                    more = rate * now.q[j * n + a] if weight != 0.0 else 0.0
                    data[ties.across[0, -1 - i, a]] += value * now.p[j * n + a] + more
        else:
            for a in range(n):
                lines[0, a] += now.p[i * n + a] * value
                lines[1, a] += now.p[i * n + a] * rate
        if j >= 0 and (k + 1 == pairs.shape[0] or pairs[k + 1, 1] != j):
            for a in range(n):
                for b in range(n):
                    own[a, b] += lines[0, a] * now.p[j * n + b]
                    if weight != 0.0:
                        own[a, b] += lines[1, a] * now.q[j * n + b]
            lines[:, :] = 0.0


@njit(**CALLED)
def _finish(arrays, at, now, over_rows, choices, weights, by_rates, data):
    """Spread what waits; add the curvature under forces over X, the trees' derivatives, families over coordinates."""
    ties, tree, links = ties_of(arrays), tree_of(arrays), links_of(arrays)
    n, first = ties.columns.size, 6 * links.element.size
    own, q = np.zeros((n, n)), now.own[0]
    _spread(arrays, weights[0], data, by_rates, now, own)
    if weights[0] != 0.0:
        force = _gathered(over_rows, ties.row)
        add_curvature(tree, now.motion, links.element, q, weights[0], force, own)
        add_point_curvature(tree, now.motion, ties.element, ties.rest, q, weights[0], force[first:], own)
    add_tree_jacobian(tree, at.theta, now.motion, now.wrenches, q, weights, own)
    for i in range(n):
        for k in range(n):
            if ties.own[i, k] >= 0:
                data[ties.own[i, k]] += own[i, k]
    add_jacobian(arrays, _OWN, at, choices, weights[0], weights[1], weights[2], data)


@njit(**CALLED)
def jacobian(arrays, at, room, choices, weight_q, weight_v, weight_a, data):
    """Fill ``data`` as `add.compiled.walk.jacobian` does; ``room`` is that of `residual` at this state."""
    now, (rows, _) = _state(arrays, at, weight_q != 0.0), _rows(arrays, room)
    lifted, by_rates = _at_rows(at, rows), np.zeros(data.size if weight_q != 0.0 else 0)
    data[:] = 0.0
    for rates in range(2 if by_rates.size else 1):
        out = by_rates if rates else data
        w_q, w_v, w_a = (0.0, 1.0, 0.0) if rates else (weight_q, weight_v, weight_a)
        add_jacobian(arrays, _ROWS, lifted, choices, w_q, w_v, w_a, out)
    _finish(arrays, at, now, rows[3], choices, (weight_q, weight_v, weight_a), by_rates, data)


@njit(**CALLED)
def matrices(arrays, at, room, choices, c, over_rows, out):
    """Fill ``out`` (3, n_values) as `add.compiled.tree_equations.matrices` does, and ``room`` for `parameters`."""
    now, (rows, waiting) = _state(arrays, at, True), _rows(arrays, room)
    first = out.shape[1] - waiting.shape[1]
    for k in range(3):
        by_q, by_v, by_a = unit(k)
        out[k, :] = 0.0
        add_jacobian(arrays, _ROWS, _at_rows(at, rows), choices, by_q, by_v, by_a, out[k])
        if k < 2:
            put(out[k, first:], waiting[k])
    for k in range(3):
        _finish(arrays, at, now, rows[3], choices, unit(k), out[1], out[k])
    if c > 0.0:
        for i in range(first):
            out[0, i] += c * (out[1, i] + c * out[2, i])


@njit(**CALLED)
def parameters(arrays, at, room, choices, over_rows, lam, out):
    """Add lam^T dr/dtheta to ``out`` (n_theta,); ``room`` is that of `matrices`."""
    ties, tree, links = ties_of(arrays), tree_of(arrays), links_of(arrays)
    now, (rows, waiting), theta = _state(arrays, at, False), _rows(arrays, room), at.theta
    size, first, pushed = tree.parent.size, 6 * links.element.size, np.empty(rows.shape[1])
    _push(arrays, now.p, lam, pushed)
    add_parameters(arrays, _ROWS, _at_rows(at, rows), choices, pushed, out)
    own, works = _gathered(lam, ties.columns), np.empty((4, size, 6))
    bars = np.empty((size, 16)), np.empty(tree.element.size), np.empty(3)
    fill_works(tree, now.motion, now.wrenches, 0, own, works)
    fill_parameters(tree, theta, now.motion, now.wrenches, works, 0, now.own[2], own, bars)
    # Phi itself depends on the placements: of places and rates of the forces, and of P in lam^T P^T r_X.
    by_rows, by_placement = np.zeros((2, ties.row.size)), np.zeros((size, 6))
    for k in range(ties.pairs.shape[0]):
        i, to = ties.pairs[k]
        if to >= 0:
            left = pushed[ties.row[i]] if i >= 0 else lam[ties.border[-1 - i]]
            by_rows[0, to] += waiting[0, k] * left
            by_rows[1, to] += waiting[1, k] * left
    force, none = _gathered(rows[3], ties.row), np.zeros(ties.row.size)
    moved = tree_motion(tree, theta, now.own[0], own, np.zeros(own.size))
    for motion, x, u in ((now.motion, by_rows[0], by_rows[1]), (moved, none, force)):
        add_placement_work(tree, theta, motion, links.element, x, u, by_placement)
        add_point_work(tree, theta, motion, ties.element, ties.rest, x[first:], u[first:], by_placement)
    for i in range(size):
        for b in range(6):
            bars[0][i, 10 + b] += by_placement[i, b]
    scatter(tree, bars, out)
    add_parameters(arrays, _OWN, at, choices, lam, out)


@njit(**CALLED)
def inputs(arrays, at, room, choices, indptr):
    """Return what `add.compiled.walk.inputs` does."""
    now, (rows, _) = _state(arrays, at, False), _rows(arrays, room)
    columns = new_found(arrays, at, rows.shape[1])
    add_inputs(arrays, _ROWS, _at_rows(at, rows), choices, indptr, columns)
    out = np.zeros((columns.values.shape[0], at.q.size))
    for k in range(columns.size[0]):
        _pull(arrays, now.p, columns.values[k], out[k])
    add_inputs(arrays, _OWN, at, choices, indptr, Found(columns.place, columns.entries, columns.size, out))
    return columns.entries[: columns.size[0]], out[: columns.size[0]]
