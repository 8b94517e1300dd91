"""The equations of a small system at one state: force families over rows of X, and trees in coordinates of their own.

Rows of X that are coordinates come first, the links of trees behind them: X = Phi(q) with P = dPhi/dq. One lift serves
all families; `add.equations.lift` has the equations, which `add.equations.lifted` applies term by term. The matrix K by
places and C by rates of all families over X gives

    w_q (P^T K P + P^T C Q + H) + w_v P^T C P,    H = sum_i r_X,i d2Phi_i/dq2

The families pass from function to function packed, and each is unpacked where it acts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from add.compiled.arrays import Instant
from add.compiled.axes import axis_forces, axis_jacobian, axis_parameters
from add.compiled.families import Choices, force_jacobian, force_parameters, forces, norm
from add.compiled.packed import axes_of, layout_of, links_of, tree_of
from add.kernels import tree_map
from add.kernels.borrowed import borrowed
from add.kernels.caching import CALLED, njit
from add.kernels.tree_dynamics import (
    Wrenches,
    add_jacobian,
    add_residual,
    fill_parameters,
    fill_wrenches,
)
from add.kernels.trees import Motion, fill_motion, tree_motion
from add.typing import FloatArray

fill_places, fill_rates = tree_map.fill_places, tree_map.fill_rates
add_curvature, add_placement_work = tree_map.add_curvature, tree_map.add_placement_work


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


@njit(**CALLED)
def new_lifted(arrays):
    """Return room for the trees of a system: one array, since compiling calls with many takes long."""
    links, tree = links_of(arrays), tree_of(arrays)
    if links.sizes.size == 0:
        return np.zeros(0)
    (rows, same), n, c = links.sizes, tree.parent.size, tree.element.size
    return np.zeros(55 * n + 18 * c + 4 * rows + (rows - same) * (layout_of(arrays).size[0] - same))


@njit(**CALLED)
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


@njit(**CALLED)
def at_rows(at, lifted):
    """Return the state on rows of X."""
    return Instant(at.t, lifted.x, lifted.v, lifted.a, at.theta, at.signals)


@njit(**CALLED)
def _lift(arrays, at, lifted):
    """Fill places and rates of the rows of X, and P."""
    links, x, v, p = links_of(arrays), lifted.x, lifted.v, lifted.p
    same = links.sizes[1]
    x[:same], v[:same], lifted.a[:same] = at.q[:same], at.v[:same], at.a[:same]
    fill_places(tree_of(arrays), lifted.motion, links.element, x[same:], p)
    for i in range(p.shape[0]):
        v[same + i] = 0.0
        for k in range(p.shape[1]):
            v[same + i] += p[i, k] * at.v[same + k]


@njit(**CALLED)
def _tree_forces(arrays, at, lifted, measured, scale, r):
    """Add inertia, weight and the laws of coordinates; return the norm of the largest family."""
    links, axes = links_of(arrays), axes_of(arrays)
    same = links.sizes[1]
    out = np.zeros(r.size)
    add_residual(tree_of(arrays), at.theta, lifted.motion, lifted.wrenches, same, at.a, out)
    for i in range(same, r.size):
        r[i] += out[i]
    if measured:
        for k in range(links.trees.size - 1):
            scale = max(scale, norm(out[same + links.trees[k] : same + links.trees[k + 1]], measured))
    for k in range(axes.table.shape[0]):
        if not measured:
            axis_forces(axes, k, at, r)
            continue
        out[:] = 0.0
        axis_forces(axes, k, at, out)
        scale = max(scale, norm(out, measured))
        for i in range(same, r.size):
            r[i] += out[i]
    return scale


@njit(**CALLED)
def residual(arrays, at, room, replay, choices, measured, r):
    """Fill r (n,) and ``room``; decide, or take ``choices``. Return the choices, and the largest family's norm.

    ``measured``: 1 or 2, the norm; 0 to leave it out. The codes are written to ``choices``.
    """
    links, there, found = links_of(arrays), at, r
    trees = links.sizes.size > 0
    lifted = parts_of(arrays, room)
    p = lifted.p
    if trees:
        same, tree = links.sizes[1], tree_of(arrays)
        fill_motion(tree, at.theta, at.q[same:], at.v[same:], at.a[same:], lifted.motion)
        fill_wrenches(tree, at.theta, lifted.motion, lifted.wrenches)
        r[:] = 0.0
        if links.touched.size:
            _lift(arrays, at, lifted)
        there, found = at_rows(at, lifted), lifted.forces
    chosen, scale = Choices(choices.bodies, choices.nodes, choices.codes), 0.0
    if not trees or links.touched.size:
        chosen, scale = forces(arrays, there, replay, choices, measured, found, p)
    if trees:
        same = links.sizes[1]
        r[:same] = found[:same]
        for i in range(p.shape[0]):
            if found[same + i] != 0.0:
                for k in range(p.shape[1]):
                    r[same + k] += p[i, k] * found[same + i]
        scale = _tree_forces(arrays, at, lifted, measured, scale, r)
    return chosen, scale


@njit(**CALLED)
def _acting(matrix, links):
    """Return the rows of X that a matrix over them has columns of, and the elements of these rows' links, -1 else."""
    rows, same = links.sizes
    acting, element, count = np.empty(links.touched.size, dtype=np.int64), np.full(links.element.size, -1), 0
    for j in links.touched:
        for i in links.touched:
            if matrix[j * rows + i] != 0.0:
                acting[count] = j
                count += 1
                if j >= same:
                    number = (j - same) // 6
                    element[number] = links.element[number]
                break
    return acting[:count], element


@njit(**CALLED)
def _spread(weight, matrix, links, acting, p, by_rates, data, own, n):
    """Add ``weight`` P^T A P of a matrix A over X, ``by_rates`` P^T A Q with Q in place of the second P.

    Entries of rows that are coordinates, and those beside them, go to ``data`` (n n,) by columns, the rest to ``own``.
    """
    rows, same = links.sizes
    left, right = p
    n_own = left.shape[1]
    line = np.empty(n_own)
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
def _add_trees(arrays, at, lifted, weights, own, data):
    """Add ``own`` (n_own, n_own), the trees' own derivatives and those of laws of coordinates to ``data``."""
    same, n = links_of(arrays).sizes[1], at.q.size
    add_jacobian(tree_of(arrays), at.theta, lifted.motion, lifted.wrenches, at.q[same:], weights, own)
    for c in range(n - same):
        for r in range(n - same):
            data[(same + c) * n + same + r] += own[r, c]
    axis_jacobian(axes_of(arrays), at, weights[0], weights[1], weights[2], data)


@njit(**CALLED)
def jacobian(arrays, at, room, choices, weight_q, weight_v, weight_a, data):
    """Fill ``data`` (n n,) with weight_q dr/dq + weight_v dr/dv + weight_a dr/da, by columns.

    ``room`` is that of `residual` at this state.
    """
    links, lifted, n = links_of(arrays), parts_of(arrays, room), at.q.size
    trees = links.sizes.size > 0
    rows, there, matrix = 0, at, data
    if trees:
        rows, there = links.sizes[0], at_rows(at, lifted)
        matrix = np.empty(rows * rows)
        data[:] = 0.0
    n_own = lifted.p.shape[1] if trees else 0
    own = np.zeros((n_own, n_own))
    for rates in range(2):
        # The second time dr/dv over X alone; one call of a large function is compiled in less time than two.
        if rates and (not trees or weight_q == 0.0 or not links.touched.size):
            break
        w_q, w_v, w_a = (0.0, 1.0, 0.0) if rates else (weight_q, weight_v, weight_a)
        if not trees or links.touched.size:
            force_jacobian(arrays, there, choices, w_q, w_v, w_a, matrix)
        if trees and not rates and links.touched.size:
            acting, _ = _acting(matrix, links)
            _spread(1.0, matrix, links, acting, (lifted.p, lifted.p), False, data, own, n)
        elif rates:
            _add_by_rates(weight_q, arrays, at, lifted, matrix, own, data)
    if trees:
        _add_trees(arrays, at, lifted, (weight_q, weight_v, weight_a), own, data)


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
def matrices(arrays, at, room, choices, over_rows, out):
    """Fill ``out`` (3, n n) with dr/dq, dr/dv, dr/da, and ``over_rows`` (3, rows rows) with those over X.

    ``room`` is that of `residual` at this state.
    """
    links, lifted, n = links_of(arrays), parts_of(arrays, room), at.q.size
    trees = links.sizes.size > 0
    there = at_rows(at, lifted) if trees else at
    rows, own = (over_rows, lifted.p.shape[1]) if trees else (out, 0)
    if not trees or links.touched.size:
        for k in range(3):
            by_q, by_v, by_a = _unit(k)
            force_jacobian(arrays, there, choices, by_q, by_v, by_a, rows[k])
    for k in range(3 if trees else 0):
        by_own = np.zeros((own, own))
        out[k] = 0.0
        if links.touched.size:
            acting, _ = _acting(over_rows[k], links)
            _spread(1.0, over_rows[k], links, acting, (lifted.p, lifted.p), False, out[k], by_own, n)
            if k == 0:
                _add_by_rates(1.0, arrays, at, lifted, over_rows[1], by_own, out[0])
        _add_trees(arrays, at, lifted, _unit(k), by_own, out[k])


@njit(**CALLED)
def _unit(k):
    """Return the weights of derivatives by q, v and a that leave the one of place ``k``."""
    return 1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0


@njit(**CALLED)
def parameters(arrays, at, room, choices, over_rows, lam, out):
    """Add lam^T dr/dtheta to ``out`` (n_theta,); ``over_rows`` is that of `matrices`."""
    links, lifted = links_of(arrays), parts_of(arrays, room)
    trees = links.sizes.size > 0
    there, pushed = at, lam
    if trees:
        p = lifted.p
        there, pushed = at_rows(at, lifted), np.empty(lifted.x.size)
        same = links.sizes[1]
        pushed[:same] = lam[:same]
        for i in range(p.shape[0]):
            pushed[same + i] = 0.0
            for k in range(p.shape[1]):
                pushed[same + i] += p[i, k] * lam[same + k]
    if not trees or links.touched.size:
        force_parameters(arrays, there, choices, pushed, out)
    if not trees:
        return
    (rows, same), tree, motion = links.sizes, tree_of(arrays), lifted.motion
    size = tree.parent.size
    own, armature, gravity = np.zeros((size, 16)), np.zeros(tree.element.size), np.zeros(3)
    fill_parameters(tree, at.theta, motion, lifted.wrenches, same, at.a, lam, own, armature, gravity)
    if links.touched.size:
        # Phi itself depends on the placements: of places and rates of the forces, and of P in lam^T P^T r_X.
        by_x, by_v, by_placement = np.zeros(rows), np.zeros(rows), np.zeros((size, 6))
        _add_transposed(over_rows[0], links, pushed, by_x)
        _add_transposed(over_rows[1], links, pushed, by_v)
        add_placement_work(tree, at.theta, motion, links.element, by_x[same:], by_v[same:], by_placement)
        if lifted.forces[same:].any():
            moved = tree_motion(tree, at.theta, at.q[same:], lam[same:], np.zeros(lam.size - same))
            by_x[:] = 0.0
            add_placement_work(
                tree, at.theta, moved, links.element, by_x[same:], lifted.forces[same:], by_placement
            )  # fmt: skip
        for i in range(size):
            for b in range(6):
                own[i, 10 + b] += by_placement[i, b]
    _scatter(tree, own, armature, gravity, out)
    axis_parameters(axes_of(arrays), at, lam, out)


@njit(**CALLED)
def _add_transposed(matrix, links, left, out):
    """Add A^T left to ``out``, at the rows that anything depends on."""
    rows = links.sizes[0]
    for c in links.touched:
        for r in links.touched:
            out[c] += matrix[c * rows + r] * left[r]


@njit(**CALLED)
def _scatter(tree, own, armature, gravity, out):
    """Add the cotangents of the elements' numbers to ``out``."""
    for i in range(tree.parent.size):
        if tree.mass[i] >= 0:
            out[tree.mass[i]] += own[i, 0]
            for b in range(3):
                out[tree.centre[i, b]] += own[i, 1 + b]
            for b in range(6):
                out[tree.inertia[i, b]] += own[i, 4 + b]
        for b in range(6):
            if tree.placement[i, b] >= 0:
                out[tree.placement[i, b]] += own[i, 10 + b]
    for c in range(tree.element.size):
        if tree.armature[c] >= 0:
            out[tree.armature[c]] += armature[c]
    for b in range(3):
        out[tree.gravity[b]] += gravity[b]
