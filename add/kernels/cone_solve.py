"""Complementarity problems over cones, solved: Gauss-Seidel's method or ADMM finds the modes, Newton the digits."""

from typing import NamedTuple

import numpy as np
from numba import typeof, types

from add.kernels.borrowed import put
from add.kernels.by_address import when_called
from add.kernels.caching import CALLED, THREADED, njit
from add.kernels.cone_modes import (
    EXACT,
    SEPARATE,
    STICK,
    close,
    identify,
    margins,
    polish,
    redundancy,
    revise,
    ruled_residual,
)
from add.kernels.cone_shares import follows_rule, max_norm, redundant_normals
from add.kernels.cones import (
    DISC,
    FREE,
    Blocks,
    admm,
    block_size,
    eigenvalues,
    natural_map,
    new_splitting,
    sweeps,
    velocity_of,
)
from add.kernels.ordering import order_of
from add.typing import FloatArray

_ROWS, _MATRIX, _MODES = types.float64[::1], types.float64[:, ::1], types.int64[::1]
_NO_BLOCKS = Blocks(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
_BLOCKS = typeof(_NO_BLOCKS)


class Problem(NamedTuple):
    """A scaled problem u = G l + g over the cones of blocks, and the scale (m,) of its rows."""

    G: FloatArray
    g: FloatArray
    blocks: Blocks
    scale: FloatArray


_PROBLEM = typeof(Problem(np.zeros((0, 0)), np.zeros(0), _NO_BLOCKS, np.zeros(0)))
#: l, u and modes.
_ANSWER = types.Tuple((_ROWS, _ROWS, _MODES))  # type: ignore[attr-defined]

#: Newton on the mode equations, called from four functions: each would compile it anew.
call_polish = when_called(
    polish, (_MATRIX, _ROWS, _BLOCKS, _ROWS, types.boolean, _MODES, _ROWS, _ROWS, types.int64), types.none
)

#: Active-set rounds for one answer of ADMM.
_ROUNDS = 6

#: Iterations of ADMM after which the modes are tried although its tolerance is not met.
_PATIENCE = 2000

#: Velocities of closed contacts, as a share of the largest one, that count as a disagreement between redundant rows.
_DISAGREES = 1e-7

#: Closed contacts beyond which shares that follow no rule stay as they are: to choose among them takes a solve for each
#: pair of contacts.
_MOST_SETTLED = 24

#: Below this margin a block may as well be in another mode.
_DOUBT = 1e-6


@njit(nogil=True, **CALLED)
def _keep(l, u, modes, answer):
    """Make these the answer, l, u and modes."""
    put(l, answer[0])
    put(u, answer[1])
    put(modes, answer[2])


@njit(nogil=True, **CALLED)
def _joints_disagree(blocks, wrong, offset):
    """Whether rows of joints contradict each other: nothing of that is of second order."""
    worst = 0.0
    for b in range(blocks.kind.size):
        i = blocks.first[b]
        if blocks.kind[b] == FREE:
            worst = max(worst, abs(wrong[i]))
    return worst >= _DISAGREES * max_norm(offset)


@njit(nogil=True, **CALLED)
def _settle_shares(problem, answer):
    """Choose among shares that follow no rule: contacts let go, the least loaded first, until nothing is open.

    Where the rule of shares has no solution, those of an iteration depend on where it began, and so would the motion;
    with as many contacts as the bodies need, both have derivatives. Of many, shares stay those of the iteration.
    """
    (G, g, blocks, scale), (l, u, modes) = problem, answer
    for _ in range(modes.size):
        rows, _, N = redundant_normals(G, blocks, modes, scale)
        if rows.size > _MOST_SETTLED or follows_rule(rows, N, l, 1e-8):
            return
        settled, open_answer = False, answer
        for k in order_of(l[rows]):
            trial_modes = modes.copy()
            for b in range(modes.size):
                if blocks.first[b] + block_size(blocks.kind[b]) - 1 == rows[k]:
                    trial_modes[b] = SEPARATE
            for ruled in (True, False):
                trial, velocity = l.copy(), u.copy()
                call_polish((G, g, blocks, scale, ruled, trial_modes, trial, velocity, 12))
                if natural_map(blocks, trial, velocity) < EXACT:
                    if ruled:
                        _keep(trial, velocity, trial_modes, answer)
                        return
                    if not settled:
                        settled, open_answer = True, (trial, velocity, trial_modes)
        if not settled:
            return
        _keep(open_answer[0], open_answer[1], open_answer[2], answer)


call_ruled = when_called(ruled_residual, (_MATRIX, _BLOCKS, _ROWS, _MODES, _ROWS, _ROWS), types.float64)
call_settle = when_called(_settle_shares, (_PROBLEM, _ANSWER), types.none)


@njit(nogil=True, **CALLED)
def _finish(problem, agree, others, l, modes, answer):
    """Polish an approximate answer, with modes revised; keep it as the answer if it is better.

    Returns the natural map of the answer, and rounds.

    Where the rule of shares leads nowhere (friction may need another), any shares will do. Two points of an edge that
    is tilted by a millionth of a radian cannot both come to rest on a plane: what redundant rows disagree about by next
    to nothing, redundant normals by less than ``agree``, others by ``others``, is of second order, and left out of the
    velocities.
    """
    G, g, blocks, scale = problem
    u = velocity_of(G, l, g)
    best, rounds = natural_map(blocks, answer[0], answer[1]), 0
    for ruled in (True, False):
        trial_modes = modes.copy()
        for _ in range(_ROUNDS):
            trial, velocity = l.copy(), u.copy()
            call_polish((G, g, blocks, scale, ruled, trial_modes, trial, velocity, 12))
            size = natural_map(blocks, trial, velocity)
            rounds += 1
            if EXACT <= size < max(agree, others):
                closed = velocity.copy()
                close(blocks, trial_modes, closed)
                wrong, offset = closed.copy(), g.copy()
                for i in range(g.size):
                    wrong[i], offset[i] = (closed[i] - velocity[i]) / scale[i], g[i] / scale[i]
                alone = call_ruled((G, blocks, scale, trial_modes, trial, velocity)) < EXACT
                most = max(agree, others) if alone else others
                most = min(most, _DISAGREES) if _joints_disagree(blocks, wrong, offset) else most
                if max_norm(wrong) < most * max_norm(offset):
                    velocity = closed
                    size = natural_map(blocks, trial, velocity)
            if size < best:
                best = size
                _keep(trial, velocity, trial_modes, answer)
            if size < EXACT:
                if not ruled:
                    call_settle((problem, answer))
                return natural_map(blocks, answer[0], answer[1]), rounds
            if revise(blocks, trial, velocity, trial_modes) == 0:
                break
    return best, rounds


call_finish = when_called(
    _finish,
    (_PROBLEM, types.float64, types.float64, _ROWS, _MODES, _ANSWER),
    types.Tuple((types.float64, types.int64)),  # type: ignore[attr-defined]
)


@njit(nogil=True, **CALLED)
def _in_doubt(blocks, modes, l, u):
    """Whether a block may as well be in another mode."""
    for margin in margins(blocks, modes, l, u, 1.0):
        if margin < _DOUBT:
            return True
    return False


@njit(nogil=True, **CALLED)
def _by_sweeps(problem, agree, answer):
    """Solve a convex problem by sweeps and Newton; return Newton's rounds, 0 unless the answer is beyond doubt.

    Redundant impulses and blocks between two modes are left to ADMM, which shares loads evenly.
    """
    (G, g, blocks, scale), (l, u, modes) = problem, answer
    trial, trial_modes, rounds, done = np.zeros(g.size), modes.copy(), 0, 0
    for most in (4, 16, 64):
        done = sweeps(G, g, blocks, trial, most)
        velocity = velocity_of(G, trial, g)
        identify(blocks, trial, velocity, 1e-10, trial_modes)
        best, more = call_finish((problem, agree, _DISAGREES, trial, trial_modes, answer))
        rounds += more
        if best < EXACT:
            if redundancy(G, blocks, modes, scale, l, u) > 0 or _in_doubt(blocks, modes, l, u):
                return 0
            return rounds
        if done < most:
            return 0
    return 0


call_sweeps = when_called(_by_sweeps, (_PROBLEM, types.float64, _ANSWER), types.int64)


@njit(nogil=True, **CALLED)
def solve(problem, agree, left_over, convex, most, start, start_modes):
    """Solve a scaled problem: ADMM to a loose tolerance, modes, Newton; tighter where the signs come out wrong.

    Before that, Newton is tried from ``start`` (m,) on ``start_modes`` (k,), both empty where there is no such guess.
    ADMM's own answer counts, too: it is what is left where Newton finds none. Then rows may disagree by ``left_over``.

    Returns l, u, modes, the natural map, the iterations of ADMM and the rounds of Newton.
    """
    G, g, blocks, _ = problem
    m = g.size
    l, u, modes = np.zeros(m), g.copy(), np.zeros(blocks.kind.size, dtype=np.int64)
    answer = l, u, modes
    identify(blocks, l, u, 0.0, modes)
    best = natural_map(blocks, l, u)
    rounds, iterations, tolerance = 0, 0, 1e-4
    if best == 0.0:
        return l, u, modes, best, 0, 0
    if start_modes.size:
        best, rounds = call_finish((problem, agree, _DISAGREES, start, start_modes.copy(), answer))
        if best < EXACT:
            return l, u, modes, best, 0, rounds
    if convex:
        rounds = call_sweeps((problem, agree, answer))
        if rounds:
            return l, u, modes, natural_map(blocks, l, u), 0, rounds
        put(np.zeros(m), l)
        put(g, u)
        identify(blocks, l, u, 0.0, modes)
        best = natural_map(blocks, l, u)
    even, skew = np.empty((m, m)), np.empty((m, m))
    for i in range(m):
        for j in range(m):
            even[i, j], skew[i, j] = 0.5 * (G[i, j] + G[j, i]), 0.5 * (G[i, j] - G[j, i])
    values, vectors = eigenvalues((even,))
    for i in range(m):
        values[i] = max(values[i], 0.0)
    if values[m - 1] == 0.0:
        return l, u, modes, best, 0, rounds
    state = new_splitting(m, values[m - 1], convex)
    trial_modes = modes.copy()
    while best >= EXACT and tolerance > EXACT and iterations < most and np.isfinite(max_norm(state.z)):
        # ADMM knows the symmetric part of G; gyroscopic steps have another, which follows round by round. Modes may be
        # right long before its tolerance is met.
        shifted = velocity_of(skew, state.z, g)
        done = admm(vectors, values, shifted, blocks, state, tolerance, min(_PATIENCE, most - iterations), convex)
        iterations += abs(done)
        # What hardly slips may stick on the edge of its cone: the slower threshold comes second.
        for threshold in (10.0 * tolerance, np.sqrt(tolerance)):
            velocity = velocity_of(G, state.z, g)
            identify(blocks, state.z, velocity, threshold, trial_modes)
            size = natural_map(blocks, state.z, velocity)
            if size < best:
                best = size
                _keep(state.z, velocity, trial_modes, answer)
            best, more = call_finish((problem, agree, _DISAGREES, state.z, trial_modes, answer))
            rounds += more
            if best < EXACT:
                break
        if done > 0:
            tolerance *= 1e-2
    if EXACT <= best < left_over:
        best, more = call_finish((problem, agree, left_over, l.copy(), modes.copy(), answer))
        rounds += more
    return l, u, modes, natural_map(blocks, l, u), iterations, rounds


@njit(**THREADED)
def row_scale(G, blocks):
    """Return one number a block, on its rows (m,): the inverse root of the mean diagonal; 1 where nothing moves."""
    out, largest = np.empty(G.shape[0]), 0.0
    for b in range(blocks.kind.size):
        first, size, mean = blocks.first[b], block_size(blocks.kind[b]), 0.0
        for i in range(first, first + size):
            mean += G[i, i] / size
        for i in range(first, first + size):
            out[i] = mean
        largest = max(largest, mean)
    for i in range(out.size):
        out[i] = 1.0 / np.sqrt(out[i]) if out[i] > max(1e-14 * largest, 1e-300) else 1.0
    return out


@njit(**THREADED)
def solve_unscaled(G, g, blocks, agree, left_over, convex, most, start, start_modes):
    """Scale a problem, solve it, and give the answer in its own units.

    Returns l, u, modes, the natural map of the scaled problem, iterations, rounds, the scale (m,) and the size: NaN if
    a number is not finite, zero if there is nothing to do.
    """
    m = g.size
    scale = row_scale(G, blocks)
    size = 0.0
    for i in range(m):
        size = max(size, abs(scale[i] * g[i]))
    modes = np.zeros(blocks.kind.size, dtype=np.int64)
    if not np.isfinite(max_norm(G.ravel()) + max_norm(g)):
        return np.zeros(m), g.copy(), modes, np.inf, 0, 0, scale, np.nan
    if size == 0.0:
        for b in range(modes.size):
            modes[b] = STICK if blocks.kind[b] == FREE else SEPARATE
        return np.zeros(m), g.copy(), modes, 0.0, 0, 0, scale, 0.0
    scaled, offset, begin, bound = np.empty((m, m)), np.empty(m), np.empty(m), blocks.bound.copy()
    for i in range(m):
        offset[i], begin[i] = scale[i] * g[i] / size, start[i] / (scale[i] * size)
        for j in range(m):
            scaled[i, j] = scale[i] * G[i, j] * scale[j]
    for b in range(bound.size):
        if blocks.kind[b] == DISC:
            bound[b] /= scale[blocks.first[b]] * size
    inner = Blocks(blocks.kind, blocks.first, bound)
    problem = Problem(scaled, offset, inner, scale)
    l, u, modes, best, iterations, rounds = solve(problem, agree, left_over, convex, most, begin, start_modes)
    for i in range(m):
        l[i] *= size * scale[i]
        u[i] *= size / scale[i]
    return l, u, modes, best, iterations, rounds, scale, size


#: Types of the arguments that `solve_unscaled` is called with.
ARGUMENTS = (
    _MATRIX, _ROWS, _BLOCKS, types.float64, types.float64, types.boolean, types.int64, _ROWS, _MODES,
)  # fmt: skip
