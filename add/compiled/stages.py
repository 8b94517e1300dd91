"""Explicit Runge-Kutta steps, one behind the other, and the way back through them, each in one compiled call.

A stage of few coordinates takes 2 us: so long as it takes to count references to a hundred arrays, or to hand a tree
to a function that is not inlined. All that a stage reads are views (`Equations`), and what takes them is inlined.
"""

from typing import NamedTuple

import numpy as np

from add.compiled.linear import Linear, add_transposed, factor_dense, new_linear, solve_dense
from add.compiled.structure import layout_of, links_of, pull_charts, tree_of
from add.compiled.tree_equations import (
    at_rows,
    fill_links,
    new_lifted,
    parts_of,
    pull_rows,
    pull_trees,
    pulled_of,
    push_rows,
)
from add.compiled.walk import unit
from add.kernels.arena import (
    FORCES,
    JACOBIAN,
    OWN,
    PARAMETERS,
    SLOTS,
    Arena,
    Instant,
    Signals,
    call_forces,
    call_jacobian,
    call_parameters,
    context_of,
    opened,
)
from add.kernels.borrowed import borrowed, put, uncounted, view_at
from add.kernels.caching import CALLED, njit
from add.kernels.rotation import beyond_pi, change_chart
from add.kernels.tree_dynamics import add_ball_rows, add_mass, add_residual
from add.kernels.tree_map import add_curvature, fill_rates
from add.kernels.tree_pullback import pull_columns
from add.kernels.trees import BALL
from add.linalg.blas import Blas
from add.typing import FloatArray, IntArray

_INLINED = {"forceinline": True, **CALLED}
#: Numbers of a context.
_CONTEXT = 18


class Equations(NamedTuple):
    """The equations of a system at a stage, where nothing decides: views that count no references.

    Attributes
    ----------
    arena : Arena
    blas : Blas
    by_q, by_v, by_a : families that depend on q, v and a
    at : Instant
        Its arrays are filled anew for each stage; its time is none.
    own, over_x : contexts of families over coordinates, and of those over rows of X where there are trees
    none : (0, 3) what does not decide
    room : of trees
    linear : Linear
        Room for the mass matrix.
    """

    arena: Arena
    blas: Blas
    by_q: IntArray
    by_v: IntArray
    by_a: IntArray
    at: Instant
    own: IntArray
    over_x: IntArray
    none: IntArray
    room: FloatArray
    linear: Linear


@njit(**CALLED)
def _owners(arrays, theta, n, s, signals):
    """Return the arrays that views of stages are views of."""
    weights, table = np.empty(signals.weights.shape[1]), np.empty(signals.table.shape[1:], dtype=np.int64)
    at = Instant(0.0, np.zeros(n), np.zeros(n), np.zeros(n), theta, Signals(weights, table))
    room, contexts = new_lifted(arrays), np.empty(2 * _CONTEXT, dtype=np.int64)
    put(context_of(arrays, at), contexts)
    if room.size:
        put(context_of(arrays, at_rows(at, parts_of(arrays, room))), contexts[_CONTEXT:])
    return at, contexts, room, new_linear(arrays), np.empty((11 + 2 * s + 2 * n) * n)


@njit(**_INLINED)
def _equations(owners, known):
    """Return the equations; their owners are to outlive them, as arguments of the function that calls this do."""
    (_, contexts, room, linear, _), (blas, (by_q, by_v, by_a)) = uncounted((owners, known))
    own, over_x = borrowed(contexts, 0, (_CONTEXT,)), borrowed(contexts, _CONTEXT, (_CONTEXT,))
    arena, at = opened(own, 0.0)
    return Equations(arena, blas, by_q, by_v, by_a, at, own, over_x, view_at(np.int64, own[0], (0, 3)), room, linear)


@njit(**_INLINED)
def _read(signals, k, at):
    """Fill the signals of an instant with those of place ``k``."""
    for i in range(signals.weights.shape[1]):
        at.signals.weights[i] = signals.weights[k, i]
    for i in range(signals.table.shape[1]):
        for j in range(3):
            at.signals.table[i, j] = signals.table[k, i, j]


@njit(**_INLINED)
def _add_forces(eq, own, context, t, out):
    """Add the forces of the families over coordinates, or over rows of X, to ``out``."""
    for k in range(eq.arena.families.shape[0]):
        if eq.arena.families[k, OWN] == own:
            call_forces(eq.arena.families[k, FORCES], (context, t, k, True, eq.none, out))


@njit(**_INLINED)
def _add_jacobian(eq, families, wanted, own, context, t, data):
    """Add the derivatives of some families by q, v or a, as ``wanted`` says, to ``data``."""
    arena, (by_q, by_v, by_a) = eq.arena, unit(wanted)
    for i in range(families.size):
        k = families[i]
        if arena.families[k, OWN] == own:
            slots = arena.families[k, SLOTS]
            places = borrowed(arena.ints, arena.fields[slots, 0], (arena.fields[slots, 1],))
            call_jacobian(arena.families[k, JACOBIAN], (context, t, k, eq.none, by_q, by_v, by_a, data, places))


@njit(**_INLINED)
def _fill_links(eq, t):
    """Fill the room of trees at the state, with the forces over X."""
    if eq.room.size:
        lifted = parts_of(eq.arena, eq.room)
        fill_links(eq.arena, eq.at, lifted)
        if links_of(eq.arena).touched.size:
            _add_forces(eq, 0, eq.over_x, t, lifted.forces)


@njit(**_INLINED)
def _fill_residual(eq, t, r):
    """Fill r (n,); the room is that of `_fill_links`."""
    for k in range(r.size):
        r[k] = 0.0
    _add_forces(eq, 1 if eq.room.size else 0, eq.own, t, r)
    if eq.room.size:
        lifted, same = parts_of(eq.arena, eq.room), links_of(eq.arena).sizes[1]
        add_residual(tree_of(eq.arena), eq.at.theta, lifted.motion, lifted.wrenches, same, eq.at.a, r)
        if links_of(eq.arena).touched.size:
            pull_rows(eq.arena, lifted, r)


@njit(**_INLINED)
def _factor_mass(eq, t):
    """Fill the matrix with dr/da, and factor it; return its largest entry, -1 if that does not go."""
    data, n, sizes = eq.linear.matrix, eq.at.q.size, links_of(eq.arena).sizes
    for k in range(n * n):
        data[k] = 0.0
    if eq.by_a.size:
        _add_jacobian(eq, eq.by_a, 2, 1 if sizes.size else 0, eq.own, t, data)
    if sizes.size:
        lifted, (rows, same) = parts_of(eq.arena, eq.room), sizes
        if eq.by_a.size and same:
            # No family depends on accelerations of links.
            matrix = np.zeros(rows * rows)
            _add_jacobian(eq, eq.by_a, 2, 0, eq.over_x, t, matrix)
            for c in range(same):
                for r in range(same):
                    data[c * n + r] += matrix[c * rows + r]
        add_mass(tree_of(eq.arena), eq.at.theta, lifted.motion, lifted.wrenches, same, n, data)
    return factor_dense(eq.linear, eq.blas)


@njit(**CALLED)
def _take(owners, known, tableau, clock, before, signals, rotations, fastest, out):
    """Fill ``out``, what `take_stages` returns, with steps; return how many were found."""
    eq, (dt, first), s, n = _equations(owners, known), clock, tableau.b.size, before[0].size
    q, v, states_q, states_v, turned, stages = out
    scratch, at = uncounted(owners[4]), eq.at
    old_q, old_v = borrowed(scratch, 0, (1, n)), borrowed(scratch, n, (1, n))
    r, x, rest = borrowed(scratch, 2 * n, (n,)), borrowed(scratch, 3 * n, (n,)), borrowed(scratch, 4 * n, (n,))
    for k in range(n):
        old_q[0, k], old_v[0, k] = before[0][k], before[1][k]
    for step in range(q.shape[0]):
        good = True
        for i in range(s):
            for k in range(n):
                at.q[k], at.v[k] = old_q[0, k], old_v[0, k]
            for j in range(i):
                h = dt * tableau.a[i, j]
                if h != 0.0:
                    for k in range(n):
                        at.q[k] += h * stages[step, 1, j, k]
                        at.v[k] += h * stages[step, 2, j, k]
            t = (first + step) * dt + tableau.c[i] * dt
            _read(signals, step * s + i, at)
            _fill_links(eq, t)
            _fill_residual(eq, t, r)
            largest = _factor_mass(eq, t)
            for k in range(n):
                r[k] = -r[k]
            good = largest >= 0.0 and solve_dense(eq.linear, largest, False, r, x, rest, eq.blas)
            if not good:
                return step
            for k in range(n):
                stages[step, 0, i, k], stages[step, 1, i, k], stages[step, 2, i, k] = at.q[k], at.v[k], x[k]
        for k in range(n):
            for i in range(s):
                old_q[0, k] += dt * tableau.b[i] * stages[step, 1, i, k]
                old_v[0, k] += dt * tableau.b[i] * stages[step, 2, i, k]
            q[step, k], v[step, k] = old_q[0, k], old_v[0, k]
            good = good and np.isfinite(q[step, k]) and abs(v[step, k]) <= fastest
        if not good:
            return step
        if rotations.size:
            put(beyond_pi(old_q[0], rotations), turned[step])
        for i in range(rotations.size):
            if turned[step, i]:
                change_chart(rotations[i], old_q, old_v)
        for k in range(n):
            states_q[step, k], states_v[step, k] = old_q[0, k], old_v[0, k]
    return q.shape[0]


@njit(cache=True, error_model="numpy", nogil=True)
def take_stages(arrays, known, tableau, timing, before, signals, theta, fastest):
    """Take explicit steps from the state ``before``, q and v (n,), until one ends too fast or cannot be taken.

    q_i = q + dt sum a_ij v_j, v_i = v + dt sum a_ij a_j, M(q_i) a_i = -r(q_i, v_i, 0). ``signals`` are those of the
    stages of all steps, ``known`` the addresses of BLAS, and the families that depend on q, on v and on a.

    Returns how many were found, q and v behind each (k, n), the states' after a change of charts, which change
    (k, n_rotations), and q, v and a of the stages (k, 3, s, n).
    """
    rotations, s, n = layout_of(arrays).rotations, tableau.b.size, before[0].size
    n_steps = signals.weights.shape[0] // s
    q, v, states_q, states_v = (
        np.empty((n_steps, n)), np.empty((n_steps, n)), np.empty((n_steps, n)), np.empty((n_steps, n)),
    )  # fmt: skip
    turned, stages = np.zeros((n_steps, rotations.size), dtype=np.bool_), np.zeros((n_steps, 3, s, n))
    owners, clock = _owners(arrays, theta, n, s, signals), (timing.dt, timing.first)
    out = q, v, states_q, states_v, turned, stages
    done = _take(owners, known, tableau, clock, before, signals, rotations, fastest, out)
    return done, q, v, states_q, states_v, turned, stages


@njit(**_INLINED)
def _pull_families(eq, own, context, t, lam, by_state, theta_bar):
    """Fill ``by_state`` (2 m,) with dr/dq and dr/dv of the families over coordinates, or over rows of X.

    Adds lam^T dr/dtheta to ``theta_bar``.
    """
    families, m = eq.arena.families, by_state.size // 2
    for k in range(by_state.size):
        by_state[k] = 0.0
    for k in range(families.shape[0]):
        if families[k, OWN] == own:
            call_parameters(families[k, PARAMETERS], (context, t, k, eq.none, False, lam, theta_bar))
    _add_jacobian(eq, eq.by_q, 0, own, context, t, borrowed(by_state, 0, (m,)))
    _add_jacobian(eq, eq.by_v, 1, own, context, t, borrowed(by_state, m, (m,)))


@njit(**_INLINED)
def _pull_trees(eq, t, lam, q_bar, v_bar, theta_bar):
    """Add what `_pull_stage` does, of trees and of what acts on links and bodies beside them."""
    arena, room, at = eq.arena, eq.room, eq.at
    links, tree, lifted, pulled = links_of(arena), tree_of(arena), parts_of(arena, room), pulled_of(arena, room)
    touched, (rows, same), n, p = links.touched.size > 0, links.sizes, lam.size, lifted.p
    over_rows = np.empty((2, rows * rows) if touched else (0, 0))
    if touched:
        push_rows(arena, lifted, lam, pulled.by_rows[0])
        _pull_families(eq, 0, eq.over_x, t, pulled.by_rows[0], over_rows.reshape(over_rows.size), theta_bar)
    pull_trees(arena, at, lifted, pulled, over_rows, lam, theta_bar)
    pull_columns(tree, lifted.motion, lifted.wrenches, pulled.works, same, q_bar, v_bar)
    second = touched
    for i in range(tree.kind.size):
        second = second or tree.kind[i] == BALL
    if second:
        hessian, own_q = np.zeros((n - same, n - same)), borrowed(at.q, same, (n - same,))
        add_ball_rows(tree, at.theta, lifted.motion, lifted.wrenches, own_q, 1.0, hessian)
        if touched:
            add_curvature(tree, lifted.motion, links.element, own_q, 1.0, lifted.forces[same:], hessian)
        for r in range(n - same):
            for c in range(n - same):
                q_bar[same + c] += hessian[r, c] * lam[same + r]
    if touched:
        by_rows, rates = pulled.by_rows, np.empty(p.shape)
        fill_rates(tree, lifted.motion, links.element, rates)
        for k in range(same):
            q_bar[k] += by_rows[1, k]
            v_bar[k] += by_rows[2, k]
        for i in range(rows - same):
            for k in range(n - same):
                q_bar[same + k] += p[i, k] * by_rows[1, same + i] + rates[i, k] * by_rows[2, same + i]
                v_bar[same + k] += p[i, k] * by_rows[2, same + i]


@njit(**_INLINED)
def _pull_stage(eq, t, lam, data, q_bar, v_bar, theta_bar):
    """Add lam^T dr/dq, lam^T dr/dv and lam^T dr/dtheta to cotangents; ``data`` (2 n n,) is scratch."""
    n = lam.size
    _pull_families(eq, 1 if eq.room.size else 0, eq.own, t, lam, data, theta_bar)
    add_transposed(data, n, lam, q_bar)
    add_transposed(borrowed(data, n * n, (n * n,)), n, lam, v_bar)
    if eq.room.size:
        _pull_trees(eq, t, lam, q_bar, v_bar, theta_bar)


@njit(**CALLED)
def _pull_back(owners, known, clock, steps, stages, before, signals, rotations, bars, theta_bar):
    """Do what `pull_back_stages` does."""
    eq, (dt, first), s, n = _equations(owners, known), clock, stages.tableau.b.size, before[0].size
    at, (scratch, to_theta, (q_bars, v_bars)) = eq.at, uncounted((owners[4], theta_bar, bars))
    tableau, values = stages
    bar_q, bar_v = borrowed(scratch, 0, (2, n)), borrowed(scratch, 2 * n, (2, n))
    pair_q, pair_v = borrowed(scratch, 4 * n, (2, n)), borrowed(scratch, 6 * n, (2, n))
    lam, a_bar, rest = borrowed(scratch, 8 * n, (n,)), borrowed(scratch, 9 * n, (n,)), borrowed(scratch, 10 * n, (n,))
    begin = 11 * n
    of_q, of_v = borrowed(scratch, begin, (s, n)), borrowed(scratch, begin + s * n, (s, n))
    data = borrowed(scratch, begin + 2 * s * n, (2 * n * n,))
    for left in range(signals.weights.shape[0] // s, 0, -1):
        step = left - 1
        for j in range(2):
            for k in range(n):
                bar_q[j, k], bar_v[j, k] = q_bars[left, j, k], v_bars[left, j, k]
        pull_charts(rotations, steps, step, before, (pair_q, pair_v), (bar_q, bar_v))
        for i in range(s - 1, -1, -1):
            for k in range(n):
                of_q[i, k], of_v[i, k], a_bar[k] = 0.0, dt * tableau.b[i] * bar_q[0, k], dt * tableau.b[i] * bar_v[0, k]
                at.q[k], at.v[k], at.a[k] = values[step, 0, i, k], values[step, 1, i, k], values[step, 2, i, k]
            for j in range(i + 1, s):
                h = dt * tableau.a[j, i]
                if h != 0.0:
                    for k in range(n):
                        a_bar[k] += h * of_v[j, k]
                        of_v[i, k] += h * of_q[j, k]
            t = (first + step) * dt + tableau.c[i] * dt
            _read(signals, step * s + i, at)
            _fill_links(eq, t)
            largest = _factor_mass(eq, t)
            if largest < 0.0 or not solve_dense(eq.linear, largest, True, a_bar, lam, rest, eq.blas):
                return left
            for k in range(n):
                lam[k] = -lam[k]
            to_q, to_v = borrowed(scratch, begin + i * n, (n,)), borrowed(scratch, begin + (s + i) * n, (n,))
            _pull_stage(eq, t, lam, data, to_q, to_v, to_theta)
        for k in range(n):
            by_q, by_v = bar_q[0, k] + bar_q[1, k], bar_v[0, k] + bar_v[1, k]
            for i in range(s):
                by_q += of_q[i, k]
                by_v += of_v[i, k]
            q_bars[step, 0, k] += by_q
            v_bars[step, 0, k] += by_v
    return 0


@njit(cache=True, error_model="numpy", nogil=True)
def pull_back_stages(arrays, known, timing, steps, stages, before, signals, theta, bars, theta_bar):
    """Pull cotangents back through explicit steps, as many as ``signals`` has, the last first.

    ``bars`` are those of `add.compiled.steps.pull_back_steps`, ``before`` the newest pair (q, v) of the state before.
    With those of a stage's q and v, of what later ones make of them, lambda = M^-T a_bar, and all of r moves:
    q_bar_i = -dr/dq^T lambda, v_bar_i -= dr/dv^T lambda, theta_bar -= dr/dtheta^T lambda.

    Returns the number of steps left, zero unless a mass matrix is singular.
    """
    owners = _owners(arrays, theta, before[0].size, stages.tableau.b.size, signals)
    clock, rotations = (timing.dt, timing.first), layout_of(arrays).rotations
    return _pull_back(owners, known, clock, steps, stages, before, signals, rotations, bars, theta_bar)
