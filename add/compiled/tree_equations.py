"""The equations of a small system with trees at one state: families over rows of X, trees in their own coordinates.

Rows of X that are coordinates come first, the links of trees behind them: X = Phi(q) with P = dPhi/dq. One lift serves
all families; `add.equations.lift` has the equations, which `add.equations.lifted` applies term by term. The matrix K by
places and C by rates of all families over X gives

    w_q (P^T K P + P^T C Q + H) + w_v P^T C P,    H = sum_i r_X,i d2Phi_i/dq2
"""

from typing import NamedTuple

import numpy as np

from add.compiled.structure import layout_of, links_of, tree_of
from add.compiled.walk import Choices, add_inputs, add_jacobian, add_parameters, forces, new_found, norm, unit
from add.kernels import tree_dynamics, tree_map
from add.kernels.arena import Found, Instant
from add.kernels.borrowed import borrowed, put
from add.kernels.caching import CALLED, njit
from add.kernels.tree_dynamics import Wrenches, fill_wrenches
from add.kernels.tree_pullback import add_placement_work, fill_parameters, fill_works, scatter
from add.kernels.trees import Motion, fill_motion, tree_motion
from add.typing import FloatArray

fill_places, fill_rates, add_curvature = tree_map.fill_places, tree_map.fill_rates, tree_map.add_curvature
add_tree_residual, add_tree_jacobian = tree_dynamics.add_residual, tree_dynamics.add_jacobian

#: The families over rows of X, and those over the coordinates of trees: column `add.kernels.arena.OWN`.
_ROWS, _TREES = 0, 1


class Lifted(NamedTuple):
    """Trees at a state: room that `residual` fills, for the derivatives there. All empty without trees.

    Attributes
    ----------
    motion, wrenches : of the trees
    x, v, a : (rows,) places and rates of the rows of X; accelerations of links are zero, and no family reads them
    p : (m, n_own) P of the rows of links
    forces : (rows,) those of all families over X
    """

    motion: Motion
    wrenches: Wrenches
    x: FloatArray
    v: FloatArray
    a: FloatArray
    p: FloatArray
    forces: FloatArray


class Pulled(NamedTuple):
    """Room for what lam^T dr goes through on its way to the numbers of trees, behind that of `Lifted`.

    Attributes
    ----------
    works : (4, N, 6) see `add.kernels.tree_pullback.fill_works`
    by_rows : (3, rows) P lam, and what X and V of the rows get
    by_link, armature, gravity : see `add.kernels.tree_pullback.tree_parameters`
    """

    works: FloatArray
    by_rows: FloatArray
    by_link: FloatArray
    armature: FloatArray
    gravity: FloatArray


@njit(**CALLED)
def new_lifted(arrays):
    """Return room for the trees of a system: one array, since compiling calls with many takes long."""
    links, tree = links_of(arrays), tree_of(arrays)
    if links.sizes.size != 2:  # see `add.compiled.sparse_trees`
        return np.zeros(links.sizes[2] if links.sizes.size else 0)
    (rows, same), n, c = links.sizes, tree.parent.size, tree.element.size
    return np.zeros(95 * n + 19 * c + 7 * rows + (rows - same) * (layout_of(arrays).size[0] - same) + 3)


@njit(forceinline=True, **CALLED)
def pulled_of(arrays, room):
    """Return the part for derivatives of what `new_lifted` has made, its last."""
    n, c, rows = tree_of(arrays).parent.size, tree_of(arrays).element.size, links_of(arrays).sizes[0]
    first = room.size - (40 * n + 3 * rows + c + 3)
    end = first + 40 * n
    return Pulled(
        borrowed(room, first, (4, n, 6)), borrowed(room, end, (3, rows)), borrowed(room, first + 24 * n, (n, 16)),
        borrowed(room, end + 3 * rows, (c,)), borrowed(room, end + 3 * rows + c, (3,)),
    )  # fmt: skip


@njit(forceinline=True, **CALLED)
def parts_of(arrays, room):
    """Return the parts of what `new_lifted` has made."""
    links, rows, same, own, n, c = links_of(arrays), 0, 0, 0, 0, 0
    if links.sizes.size:
        tree, (rows, same) = tree_of(arrays), links.sizes
        own, n, c = layout_of(arrays).size[0] - same, tree.parent.size, tree.element.size
    s = 39 * n  # columns, behind places, rotations and twists
    t = s + 18 * c  # inertia and wrenches
    x = t + 16 * n
    motion = Motion(
        borrowed(room, 0, (n, 3)), borrowed(room, 3 * n, (n, 3, 3)), borrowed(room, 12 * n, (n, 3)),
        borrowed(room, 15 * n, (n, 3, 3)), borrowed(room, 24 * n, (n, 3)),
        borrowed(room, 27 * n, (n, 6)), borrowed(room, 33 * n, (n, 6)),
        borrowed(room, s, (c, 6)), borrowed(room, s + 6 * c, (c, 6)), borrowed(room, s + 12 * c, (c, 6)),
    )  # fmt: skip
    wrenches = Wrenches(borrowed(room, t, (n, 10)), borrowed(room, t + 10 * n, (n, 6)))
    return Lifted(
        motion, wrenches, borrowed(room, x, (rows,)), borrowed(room, x + rows, (rows,)),
        borrowed(room, x + 2 * rows, (rows,)), borrowed(room, x + 4 * rows, (rows - same, own)),
        borrowed(room, x + 3 * rows, (rows,)),
    )  # fmt: skip


@njit(forceinline=True, **CALLED)
def at_rows(at, lifted):
    """Return the state on rows of X."""
    return Instant(at.t, lifted.x, lifted.v, lifted.a, at.theta, at.signals)


@njit(forceinline=True, **CALLED)
def _lift(arrays, at, lifted):
    """Fill places and rates of the rows of X, and P, which is one for multipliers, the last rows and coordinates."""
    links, x, p = links_of(arrays), lifted.x, lifted.p
    same, multipliers = links.sizes[1], layout_of(arrays).size[3]
    put(at.q[:same], x)
    put(at.a[:same], lifted.a)
    fill_places(tree_of(arrays), lifted.motion, links.element, x[same:], p)
    for k in range(1, multipliers + 1):
        x[x.size - k], p[p.shape[0] - k, p.shape[1] - k] = at.q[at.q.size - k], 1.0
    push_rows(arrays, lifted, at.v, lifted.v)


@njit(forceinline=True, **CALLED)
def push_rows(arrays, lifted, rates, out):
    """Fill ``out`` (rows,) with P times what is given of the coordinates (n,)."""
    same, p = links_of(arrays).sizes[1], lifted.p
    put(rates[:same], out)
    for i in range(p.shape[0]):
        out[same + i] = 0.0
        for k in range(p.shape[1]):
            out[same + i] += p[i, k] * rates[same + k]


@njit(forceinline=True, **CALLED)
def _tree_forces(arrays, at, lifted, given, measured, scale, r):
    """Add inertia, weight and the laws of coordinates; return all choices, and the norm of the largest family."""
    links, same = links_of(arrays), links_of(arrays).sizes[1]
    out = np.zeros(r.size) if measured else r
    add_tree_residual(tree_of(arrays), at.theta, lifted.motion, lifted.wrenches, same, at.a, out)
    if measured:
        for i in range(same, r.size):
            r[i] += out[i]
        for k in range(links.trees.size - 1):
            scale = max(scale, norm(out[same + links.trees[k] : same + links.trees[k + 1]], measured))
    return forces(arrays, _TREES, at, *given, measured, scale, r, lifted.p[:0])


@njit(**CALLED)
def residual(arrays, at, room, replay, choices, measured, r):
    """Fill r (n,) and ``room``; decide, or take ``choices``. Return the choices, and the largest family's norm.

    ``measured``: 1 or 2, the norm; 0 to leave it out. The codes are written to ``choices``.
    """
    links, lifted, chosen, scale = links_of(arrays), parts_of(arrays, room), choices, 0.0
    r[:] = 0.0
    fill_links(arrays, at, lifted)
    if links.touched.size:
        given = replay, choices, choices
        chosen, scale = forces(arrays, _ROWS, at_rows(at, lifted), *given, measured, scale, lifted.forces, lifted.p)
    elif not replay:
        chosen = Choices(choices.rows[:0], np.zeros(choices.ends.size, dtype=np.int64))
    pull_rows(arrays, lifted, r)
    return _tree_forces(arrays, at, lifted, (replay, choices, chosen), measured, scale, r)


@njit(forceinline=True, **CALLED)
def fill_links(arrays, at, lifted):
    """Fill ``lifted`` but for the forces over X, which become zero."""
    same, tree, own = links_of(arrays).sizes[1], tree_of(arrays), (at.q.size - links_of(arrays).sizes[1],)
    q, v, a = borrowed(at.q, same, own), borrowed(at.v, same, own), borrowed(at.a, same, own)
    fill_motion(tree, at.theta, q, v, a, lifted.motion)
    fill_wrenches(tree, at.theta, lifted.motion, lifted.wrenches)
    lifted.forces[:] = 0.0
    if links_of(arrays).touched.size:
        _lift(arrays, at, lifted)


@njit(forceinline=True, **CALLED)
def pull_rows(arrays, lifted, r):
    """Add P^T r_X of the forces over X to r (n,)."""
    same, p, over_rows = links_of(arrays).sizes[1], lifted.p, lifted.forces
    for i in range(same):
        r[i] += over_rows[i]
    for i in range(p.shape[0]):
        if over_rows[same + i] != 0.0:
            for k in range(p.shape[1]):
                r[same + k] += p[i, k] * over_rows[same + i]


@njit(**CALLED)
def _acting(matrix, links):
    """Return the rows of X that a matrix over them has columns of, and the elements of these rows' links, -1 else."""
    rows, same = links.sizes
    acting, element, count = np.empty(links.touched.size, dtype=np.int64), np.full(links.element.size, -1), 0
    bits = matrix.view(np.int64)  # of numbers a loop without an end of its own is three times as fast
    for j in links.touched:
        some = 0
        for i in range(j * rows, (j + 1) * rows):
            some |= bits[i]
        if some:
            acting[count] = j
            count += 1
            number = (j - same) // 6
            if 0 <= number < element.size:
                element[number] = links.element[number]
    return acting[:count], element


@njit(**CALLED)
def _spread(weight, matrix, links, acting, p, by_rates, data, own, n):
    """Add ``weight`` P^T A P of a matrix A over X, ``by_rates`` P^T A Q with Q in place of the second P.

    Entries of rows that are coordinates, and those beside them, go to ``data`` (n n,) by columns, the rest to ``own``.
    """
    (rows, same), (left, right) = links.sizes, p
    n_own, line = left.shape[1], np.empty(left.shape[1])
    for i in links.touched:
        line[:] = 0.0
        some = False
        for j in acting:
            value = weight * matrix[j * rows + i]
            if value == 0.0:
                continue
            if j >= same:
                some = True
                for k in range(n_own):
                    line[k] += value * right[j - same, k]
            elif not by_rates:
                if i < same:
                    data[j * n + i] += value
                else:
                    for k in range(n_own):
                        data[j * n + same + k] += value * left[i - same, k]
        if not some:
            continue
        if i < same:
            for k in range(n_own):
                data[(same + k) * n + i] += line[k]
            continue
        for k in range(n_own):
            factor = left[i - same, k]
            if factor != 0.0:
                for l in range(n_own):
                    own[k, l] += factor * line[l]


@njit(**CALLED)
def _add_trees(arrays, at, lifted, choices, weights, own, data):
    """Add ``own`` (n_own, n_own), the trees' own derivatives and those of laws of coordinates to ``data``."""
    same, n = links_of(arrays).sizes[1], at.q.size
    add_tree_jacobian(tree_of(arrays), at.theta, lifted.motion, lifted.wrenches, at.q[same:], weights, own)
    for c in range(n - same):
        for r in range(n - same):
            data[(same + c) * n + same + r] += own[r, c]
    add_jacobian(arrays, _TREES, at, choices, weights[0], weights[1], weights[2], data)


@njit(**CALLED)
def jacobian(arrays, at, room, choices, weight_q, weight_v, weight_a, data):
    """Fill ``data`` (n n,) with weight_q dr/dq + weight_v dr/dv + weight_a dr/da, by columns.

    ``room`` is that of `residual` at this state.
    """
    links, lifted, n = links_of(arrays), parts_of(arrays, room), at.q.size
    rows, n_own = links.sizes[0], lifted.p.shape[1]
    matrix, of_trees = np.empty(rows * rows), np.zeros((n_own, n_own))
    data[:] = 0.0
    for rates in range(2 if links.touched.size else 0):
        # The second time dr/dv over X alone; one call of a large function is compiled in less time than two.
        if rates and weight_q == 0.0:
            break
        w_q, w_v, w_a = (0.0, 1.0, 0.0) if rates else (weight_q, weight_v, weight_a)
        matrix[:] = 0.0
        add_jacobian(arrays, _ROWS, at_rows(at, lifted), choices, w_q, w_v, w_a, matrix)
        if rates:
            _add_by_rates(weight_q, arrays, at, lifted, matrix, of_trees, data)
        else:
            acting, _ = _acting(matrix, links)
            _spread(1.0, matrix, links, acting, (lifted.p, lifted.p), False, data, of_trees, n)
    _add_trees(arrays, at, lifted, choices, (weight_q, weight_v, weight_a), of_trees, data)


@njit(**CALLED)
def _add_by_rates(weight, arrays, at, lifted, matrix, own, data):
    """Add ``weight`` (P^T C Q + H) of the matrix C over X."""
    links, p, n = links_of(arrays), lifted.p, at.q.size
    same, tree = links.sizes[1], tree_of(arrays)
    acting, element = _acting(matrix, links)
    if acting.size:
        rates = np.empty(p.shape)
        fill_rates(tree, lifted.motion, element, rates)
        _spread(weight, matrix, links, acting, (p, rates), True, data, own, n)
    add_curvature(tree, lifted.motion, links.element, at.q[same:], weight, lifted.forces[same:], own)


@njit(**CALLED)
def matrices(arrays, at, room, choices, c, over_rows, out):
    """Fill ``out`` (3, n n) with dr/dq, dr/dv, dr/da, and ``over_rows`` (3, rows rows) with those over X.

    With c > 0 the first is J = dr/dq + c dr/dv + c^2 dr/da. ``room`` is that of `residual` at this state.
    """
    links, lifted, n = links_of(arrays), parts_of(arrays, room), at.q.size
    touched, n_own = links.touched.size, lifted.p.shape[1]
    for k in range(3 if touched else 0):
        by_q, by_v, by_a = unit(k)
        over_rows[k] = 0.0
        add_jacobian(arrays, _ROWS, at_rows(at, lifted), choices, by_q, by_v, by_a, over_rows[k])
    for k in range(3):
        by_own = np.zeros((n_own, n_own))
        out[k] = 0.0
        if touched:
            acting, _ = _acting(over_rows[k], links)
            _spread(1.0, over_rows[k], links, acting, (lifted.p, lifted.p), False, out[k], by_own, n)
            if k == 0:
                _add_by_rates(1.0, arrays, at, lifted, over_rows[1], by_own, out[0])
        _add_trees(arrays, at, lifted, choices, unit(k), by_own, out[k])
    if c > 0.0:
        for i in range(n * n):
            out[0, i] += c * (out[1, i] + c * out[2, i])


@njit(**CALLED)
def parameters(arrays, at, room, choices, over_rows, lam, out):
    """Add lam^T dr/dtheta to ``out`` (n_theta,); ``over_rows`` is that of `matrices`."""
    links, lifted = links_of(arrays), parts_of(arrays, room)
    pulled = pulled_of(arrays, room)
    push_rows(arrays, lifted, lam, pulled.by_rows[0])
    pull_trees(arrays, at, lifted, pulled, over_rows, lam, out)
    if links.touched.size:
        add_parameters(arrays, _ROWS, at_rows(at, lifted), choices, pulled.by_rows[0], out)
    add_parameters(arrays, _TREES, at, choices, lam, out)


@njit(forceinline=True, **CALLED)
def pull_trees(arrays, at, lifted, pulled, over_rows, lam, out):
    """Add lam^T dr/dtheta by the numbers of trees to ``out``, and fill ``pulled`` but for P lam, which it reads.

    ``over_rows`` is that of `matrices`.
    """
    links, tree = links_of(arrays), tree_of(arrays)
    (rows, same), motion = links.sizes, lifted.motion
    size, (works, by_rows, by_link, armature, gravity) = tree.parent.size, pulled
    pushed, by_x, by_v = by_rows[0], by_rows[1], by_rows[2]
    by_x[:], by_v[:] = 0.0, 0.0
    fill_works(tree, motion, lifted.wrenches, same, lam, works)
    bars = by_link, armature, gravity
    fill_parameters(tree, at.theta, motion, lifted.wrenches, works, same, at.a, lam, bars)
    if links.touched.size:
        # Phi itself depends on the placements: of places and rates of the forces, and of P in lam^T P^T r_X.
        by_placement = np.zeros((size, 6))
        _add_transposed(over_rows[0], links, pushed, by_x)
        _add_transposed(over_rows[1], links, pushed, by_v)
        add_placement_work(tree, at.theta, motion, links.element, by_x[same:], by_v[same:], by_placement)
        if lifted.forces[same:].any():
            moved = tree_motion(tree, at.theta, at.q[same:], lam[same:], np.zeros(lam.size - same))
            none = np.zeros(rows - same)
            add_placement_work(tree, at.theta, moved, links.element, none, lifted.forces[same:], by_placement)
        for i in range(size):
            for b in range(6):
                by_link[i, 10 + b] += by_placement[i, b]
    scatter(tree, bars, out)


@njit(**CALLED)
def _add_transposed(matrix, links, left, out):
    """Add A^T left to ``out``, at the rows that anything depends on."""
    rows = links.sizes[0]
    for c in links.touched:
        for r in links.touched:
            out[c] += matrix[c * rows + r] * left[r]


@njit(**CALLED)
def inputs(arrays, at, room, choices, indptr):
    """Return what `add.compiled.walk.inputs` does."""
    links, lifted, n = links_of(arrays), parts_of(arrays, room), at.q.size
    same, p = links.sizes[1], lifted.p
    columns = new_found(arrays, at, lifted.x.size)
    if links.touched.size:
        add_inputs(arrays, _ROWS, at_rows(at, lifted), choices, indptr, columns)
    out = np.zeros((columns.values.shape[0], n))
    for m in range(columns.size[0]):
        put(columns.values[m, :same], out[m])
        for i in range(p.shape[0]):
            if columns.values[m, same + i] != 0.0:
                for k in range(p.shape[1]):
                    out[m, same + k] += p[i, k] * columns.values[m, same + i]
    add_inputs(arrays, _TREES, at, choices, indptr, Found(columns.place, columns.entries, columns.size, out))
    return columns.entries[: columns.size[0]], out[: columns.size[0]]
