"""The equations of a small system at one state: force families over rows of X, and trees in coordinates of their own.

Rows of X that are coordinates come first, the links of trees behind them: X = Phi(q) with P = dPhi/dq. One lift serves
all families; `add.equations.lift` has the equations, which `add.equations.lifted` applies term by term. The matrix K by
places and C by rates of all families over X gives

    w_q (P^T K P + P^T C Q + H) + w_v P^T C P,    H = sum_i r_X,i d2Phi_i/dq2
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from add.compiled.arrays import Instant
from add.compiled.axes import axis_forces, axis_jacobian, axis_parameters
from add.compiled.families import Choices, force_jacobian, force_parameters, forces, norm
from add.kernels import tree_map
from add.kernels.caching import njit
from add.kernels.tree_dynamics import add_jacobian, add_residual, fill_parameters
from add.kernels.trees import tree_motion
from add.typing import FloatArray

_JIT = {"cache": True, "error_model": "numpy"}

fill_places, fill_rates = tree_map.fill_places, tree_map.fill_rates
add_curvature, add_placement_work = tree_map.add_curvature, tree_map.add_placement_work


class Lifted(NamedTuple):
    """A state on rows of X.

    Attributes
    ----------
    at : Instant
        Places and rates of the rows; accelerations of links are zero, and no family reads them.
    p : (m, n_own) P of the rows of links
    """

    at: Instant
    p: FloatArray


@njit(**_JIT)
def _motion(families, at):
    """Return the motion of the trees."""
    same = families.links.sizes[1]
    return tree_motion(families.tree, at.theta, at.q[same:], at.v[same:], at.a[same:])


@njit(**_JIT)
def _lifted(families, at, motion):
    """Return the state on rows of X."""
    rows, same = families.links.sizes
    x, v, a = np.empty(rows), np.empty(rows), np.zeros(rows)
    x[:same], v[:same], a[:same] = at.q[:same], at.v[:same], at.a[:same]
    p = np.empty((rows - same, at.q.size - same))
    fill_places(families.tree, motion, families.links.element, x[same:], p)
    v[same:] = p @ at.v[same:]
    return Lifted(Instant(at.t, x, v, a, at.theta, at.signals), p)


@njit(**_JIT)
def _tree_forces(families, at, motion, measured, scale, r):
    """Add inertia, weight and the laws of coordinates; return the norm of the largest family."""
    links, axes, same = families.links, families.axes, families.links.sizes[1]
    out = np.zeros(r.size)
    add_residual(families.tree, at.theta, motion, same, at.a, out)
    for i in range(same, r.size):
        r[i] += out[i]
    if measured:
        for k in range(links.trees.size - 1):
            scale = max(scale, norm(out[same + links.trees[k] : same + links.trees[k + 1]], measured))
    for k in range(axes.table.shape[0]):
        out[:] = 0.0
        axis_forces(axes, k, at, out)
        if measured:
            scale = max(scale, norm(out, measured))
        for i in range(same, r.size):
            r[i] += out[i]
    return scale


@njit(**_JIT)
def residual(families, at, replay, choices, measured, r):
    """Fill r (n,); decide, or take ``choices``. Return the choices, and the norm of the largest force family.

    ``measured``: 1 or 2, the norm; 0 to leave it out. The codes are written to ``choices``.
    """
    links = families.links
    if links.sizes.size == 0:
        return forces(families, at, replay, choices, measured, r, np.empty((0, 0)))
    motion, same, scale = _motion(families, at), links.sizes[1], 0.0
    chosen = Choices(choices.bodies, choices.nodes, choices.codes)
    r[:] = 0.0
    if links.touched.size:
        lifted = _lifted(families, at, motion)
        over_rows = np.empty(links.sizes[0])
        chosen, scale = forces(families, lifted.at, replay, choices, measured, over_rows, lifted.p)
        r[:same] = over_rows[:same]
        r[same:] = lifted.p.T @ over_rows[same:]
    return chosen, _tree_forces(families, at, motion, measured, scale, r)


@njit(**_JIT)
def _spread(matrix, links, p, by_rates, data, own, n):
    """Add P^T A P of a matrix A over X, ``by_rates`` P^T A Q with Q in place of ``p``, to ``data`` and ``own``.

    Entries of rows that are coordinates, and those beside them, go to ``data`` (n n,) by columns, the rest to ``own``.
    """
    rows, same = links.sizes
    touched, n_own = links.touched, p[0].shape[1]
    left, right = p
    line = np.empty(n_own)
    for i in touched:
        line[:] = 0.0
        some = False
        for j in touched:
            value = matrix[j * rows + i]
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


@njit(**_JIT)
def jacobian(families, at, choices, weight_q, weight_v, weight_a, data):
    """Fill ``data`` (n n,) with weight_q dr/dq + weight_v dr/dv + weight_a dr/da, by columns."""
    links = families.links
    if links.sizes.size == 0:
        force_jacobian(families, at, choices, weight_q, weight_v, weight_a, data)
        return
    rows, same = links.sizes
    n, tree, motion = at.q.size, families.tree, _motion(families, at)
    own = np.zeros((n - same, n - same))
    data[:] = 0.0
    if links.touched.size:
        lifted = _lifted(families, at, motion)
        matrix = np.empty(rows * rows)
        force_jacobian(families, lifted.at, choices, weight_q, weight_v, weight_a, matrix)
        _spread(matrix, links, (lifted.p, lifted.p), False, data, own, n)
        if weight_q != 0.0:
            force_jacobian(families, lifted.at, choices, 0.0, weight_q, 0.0, matrix)
            rates = np.empty(lifted.p.shape)
            fill_rates(tree, motion, links.element, rates)
            _spread(matrix, links, (lifted.p, rates), True, data, own, n)
            over_rows = _held(families, lifted, choices)
            add_curvature(tree, motion, links.element, at.q[same:], weight_q, over_rows[same:], own)
    add_jacobian(tree, at.theta, motion, at.q[same:], (weight_q, weight_v, weight_a), own)
    for c in range(n - same):
        for r in range(n - same):
            data[(same + c) * n + same + r] += own[r, c]
    axis_jacobian(families.axes, at, weight_q, weight_v, weight_a, data)


@njit(**_JIT)
def _held(families, lifted, choices):
    """Return the forces over X on the branches chosen."""
    out = np.empty(families.links.sizes[0])
    held = Choices(choices.bodies, choices.nodes, choices.codes.copy())
    forces(families, lifted.at, True, held, 0, out, np.empty((0, 0)))
    return out


@njit(**_JIT)
def parameters(families, at, choices, lam, out):
    """Add lam^T dr/dtheta to ``out`` (n_theta,)."""
    links = families.links
    if links.sizes.size == 0:
        force_parameters(families, at, choices, lam, out)
        return
    (rows, same), tree, motion = links.sizes, families.tree, _motion(families, at)
    size = tree.parent.size
    own, armature, gravity = np.zeros((size, 16)), np.zeros(tree.element.size), np.zeros(3)
    fill_parameters(tree, at.theta, motion, same, at.a, lam, own, armature, gravity)
    if links.touched.size:
        lifted = _lifted(families, at, motion)
        pushed = np.empty(rows)
        pushed[:same] = lam[:same]
        pushed[same:] = lifted.p @ lam[same:]
        force_parameters(families, lifted.at, choices, pushed, out)
        # Phi itself depends on the placements: of places and rates of the forces, and of P in lam^T P^T r_X.
        by_x, by_v, matrix = np.zeros(rows), np.zeros(rows), np.empty(rows * rows)
        force_jacobian(families, lifted.at, choices, 1.0, 0.0, 0.0, matrix)
        _add_transposed(matrix, links, pushed, by_x)
        force_jacobian(families, lifted.at, choices, 0.0, 1.0, 0.0, matrix)
        _add_transposed(matrix, links, pushed, by_v)
        by_placement = np.zeros((size, 6))
        add_placement_work(tree, at.theta, motion, links.element, by_x[same:], by_v[same:], by_placement)
        moved = tree_motion(tree, at.theta, at.q[same:], lam[same:], np.zeros(lam.size - same))
        over_rows = _held(families, lifted, choices)
        by_x[:] = 0.0
        add_placement_work(tree, at.theta, moved, links.element, by_x[same:], over_rows[same:], by_placement)
        for i in range(size):
            for b in range(6):
                own[i, 10 + b] += by_placement[i, b]
    _scatter(tree, own, armature, gravity, out)
    axis_parameters(families.axes, at, lam, out)


@njit(**_JIT)
def _add_transposed(matrix, links, left, out):
    """Add A^T left to ``out``, at the rows that anything depends on."""
    rows = links.sizes[0]
    for c in links.touched:
        for r in links.touched:
            out[c] += matrix[c * rows + r] * left[r]


@njit(**_JIT)
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
