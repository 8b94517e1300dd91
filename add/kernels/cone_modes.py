"""Modes of complementarity problems over cones: the smooth equations of each, Newton on them, and their derivatives.

Each block of rows (see `add.kernels.cones`) is in one mode:

    SEPARATE   l = 0
    STICK      u = 0                 (a joint, a closed contact without friction, a contact that does not slip)
    SLIDE      l_t + r u_t/|u_t| = 0,  u_n = 0,     r = mu l_n for a cone, the radius for a disc

A pyramid has 1 + s_1 + 3 s_2 in place of STICK and SLIDE, with s = 0 where a tangent sticks (u = 0), 1 where it is at
its upper bound (l = mu l_n), 2 at its lower one. All equations together are F(l, u) = 0 with u = G l + g, and

    K = dF/dl + dF/du G

is the matrix of Newton and of all derivatives. Redundant contacts make it singular: least-norm steps are taken.
"""

import numpy as np

from add.kernels.caching import njit
from add.kernels.cones import (
    CONE,
    DISC,
    FREE,
    HALF_LINE,
    PYRAMID,
    admm,
    block_size,
    natural_map,
    new_splitting,
)

_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}

SEPARATE, STICK, SLIDE = 0, 1, 2

#: Accepted size of the natural map, and of wrong signs, of a polished solution; problems are scaled to one.
EXACT = 1e-12

#: Residuals that no iteration need improve.
_ROUND_OFF = 1e-14

#: Singular values below this share of the largest one are redundant rows.
REDUNDANT = 1e-11

#: Slower than this no direction of slip is known.
_STILL = 1e-14

#: Active-set rounds for one answer of ADMM.
_ROUNDS = 6

#: Iterations of ADMM after which the modes are tried although its tolerance is not met.
_PATIENCE = 2000


@njit(**_JIT)
def _slips(slip, room, tolerance):
    """Whether a tangent slips: by its speed, against how far the impulse is inside its bound."""
    return slip > tolerance and slip > 0.1 * room


@njit(**_JIT)
def identify(blocks, l, u, tolerance, modes):
    """Write the modes that approximate impulses and velocities are closest to."""
    for b in range(blocks.kind.size):
        i, mu, kind = blocks.first[b], blocks.bound[b], blocks.kind[b]
        if kind == FREE:
            modes[b] = STICK
        elif kind == HALF_LINE:
            modes[b] = STICK if l[i] > u[i] else SEPARATE
        elif kind == DISC:
            slip, size = np.sqrt(u[i] ** 2 + u[i + 1] ** 2), np.sqrt(l[i] ** 2 + l[i + 1] ** 2)
            modes[b] = SEPARATE if mu == 0.0 else SLIDE if _slips(slip, mu - size, tolerance) else STICK
        elif l[i + 2] <= u[i + 2]:
            modes[b] = SEPARATE
        elif kind == CONE:
            slip, size = np.sqrt(u[i] ** 2 + u[i + 1] ** 2), np.sqrt(l[i] ** 2 + l[i + 1] ** 2)
            modes[b] = SLIDE if mu == 0.0 or _slips(slip, mu * l[i + 2] - size, tolerance) else STICK
        else:
            modes[b] = STICK
            for a in range(2):
                if mu == 0.0 or _slips(abs(u[i + a]), mu * l[i + 2] - abs(l[i + a]), tolerance):
                    modes[b] += (1 if u[i + a] < 0.0 else 2) * (1 if a == 0 else 3)


@njit(**_JIT)
def pyramid_side(mode, a):
    """Return 0 where tangent ``a`` sticks, 1 at its upper and 2 at its lower bound."""
    return (mode - 1) % 3 if a == 0 else (mode - 1) // 3


@njit(**_JIT)
def _slip_direction(l, u, i):
    """Return the direction and speed of slip; at rest the direction against the friction."""
    size = np.sqrt(u[i] ** 2 + u[i + 1] ** 2)
    if size > _STILL:
        return u[i] / size, u[i + 1] / size, size
    force = np.sqrt(l[i] ** 2 + l[i + 1] ** 2)
    if force > 0.0:
        return -l[i] / force, -l[i + 1] / force, _STILL
    return 1.0, 0.0, _STILL


@njit(**_JIT)
def mode_equations(blocks, modes, l, u, F, by_l, by_u, by_bound):
    """Fill F (m,), dF/dl and dF/du (m, m; zero between blocks), and dF/dbound (m,) by the bound of a row's block."""
    by_l[:], by_u[:], by_bound[:] = 0.0, 0.0, 0.0
    for b in range(blocks.kind.size):
        i, mu, kind, mode = blocks.first[b], blocks.bound[b], blocks.kind[b], modes[b]
        for r in range(i, i + block_size(kind)):
            F[r] = l[r] if mode == SEPARATE else u[r]
            (by_l if mode == SEPARATE else by_u)[r, r] = 1.0
        if mode == SEPARATE:
            continue
        if kind == PYRAMID:
            for a in range(2):
                side = pyramid_side(mode, a)
                if side:
                    sign = -1.0 if side == 1 else 1.0
                    F[i + a] = l[i + a] + sign * mu * l[i + 2]
                    by_u[i + a, i + a], by_l[i + a, i + a], by_l[i + a, i + 2] = 0.0, 1.0, sign * mu
                    by_bound[i + a] = sign * l[i + 2]
        elif mode == SLIDE:
            t_0, t_1, speed = _slip_direction(l, u, i)
            limit = mu if kind == DISC else mu * l[i + 2]
            for a in range(2):
                t = t_0 if a == 0 else t_1
                F[i + a] = l[i + a] + limit * t
                by_l[i + a, i + a] = 1.0
                by_bound[i + a] = t
                if kind == CONE:
                    by_l[i + a, i + 2] = mu * t
                    by_bound[i + a] = l[i + 2] * t
                for c in range(2):
                    by_u[i + a, i + c] = ((1.0 if a == c else 0.0) - t * (t_0 if c == 0 else t_1)) * limit / speed


@njit(**_JIT)
def mode_matrix(G, blocks, by_l, by_u, out):
    """Write K = dF/dl + dF/du G."""
    out[:] = by_l
    for b in range(blocks.kind.size):
        i, end = blocks.first[b], blocks.first[b] + block_size(blocks.kind[b])
        for r in range(i, end):
            for c in range(i, end):
                if by_u[r, c] != 0.0:
                    for k in range(G.shape[0]):
                        out[r, k] += by_u[r, c] * G[c, k]


@njit(**_JIT)
def _singular_values(matrix):
    """Return the singular value decomposition; by eigenvalues where LAPACK's divide and conquer does not converge.

    Those of [[0, A], [A^T, 0]] are plus and minus the singular values of A, with the vectors (u, v)/sqrt(2).
    """
    m = matrix.shape[0]
    try:
        return np.linalg.svd(matrix)
    except Exception:
        both = np.zeros((2 * m, 2 * m))
        both[:m, m:] = matrix
        both[m:, :m] = matrix.T
        values, vectors = np.linalg.eigh(both)
        scale = np.sqrt(2.0)
        left, right = np.empty((m, m)), np.empty((m, m))
        for k in range(m):
            left[:, k] = scale * vectors[:m, 2 * m - 1 - k]
            right[k] = scale * vectors[m:, 2 * m - 1 - k]
        return left, np.maximum(values[::-1][:m], 0.0), right


@njit(**_JIT)
def least_norm_inverse(K):
    """Return X with X r the least-norm solution of K x = r, and a basis (m, redundant rows) of the kernel of K.

    Rows are scaled to length one first: impulses and velocities of one problem stand in them.
    """
    m = K.shape[0]
    scaled, sizes = K.copy(), np.ones(m)
    for i in range(m):
        sizes[i] = np.sqrt((K[i] ** 2).sum())
        if sizes[i] == 0.0:
            sizes[i] = 1.0
        scaled[i] /= sizes[i]
    if not np.isfinite(scaled.sum()):
        return np.full((m, m), np.nan), np.zeros((m, 0))
    left, s, right = _singular_values(scaled)
    rank = 0
    while rank < m and s[rank] > REDUNDANT * s[0]:
        rank += 1
    shares = np.ascontiguousarray(left[:, :rank].T)
    for k in range(rank):
        shares[k] /= s[k]
    for i in range(m):
        shares[:, i] /= sizes[i]
    return np.ascontiguousarray(right[:rank].T) @ shares, np.ascontiguousarray(right[rank:].T)


@njit(**_JIT)
def polish(G, g, blocks, modes, l, u, most):
    """Take Newton steps on the mode equations until they bring nothing more."""
    m = g.size
    F, by_l, by_u, by_bound, K = np.empty(m), np.empty((m, m)), np.empty((m, m)), np.empty(m), np.empty((m, m))
    last = np.inf
    for _ in range(most):
        mode_equations(blocks, modes, l, u, F, by_l, by_u, by_bound)
        size = np.abs(F).max()
        if size <= _ROUND_OFF or not np.isfinite(size) or (size >= 0.5 * last and size < 0.1 * EXACT):
            return
        last = size
        mode_matrix(G, blocks, by_l, by_u, K)
        l -= least_norm_inverse(K)[0] @ F
        u[:] = G @ l + g


@njit(**_JIT)
def _least_norm(G, g, blocks, modes, l, u):
    """Take out of the impulses the part that redundant contacts pass among each other, if the cones allow it."""
    m = g.size
    F, by_l, by_u, by_bound, K = np.empty(m), np.empty((m, m)), np.empty((m, m)), np.empty(m), np.empty((m, m))
    mode_equations(blocks, modes, l, u, F, by_l, by_u, by_bound)
    mode_matrix(G, blocks, by_l, by_u, K)
    basis = least_norm_inverse(K)[1]
    if basis.shape[1] == 0:
        return
    least = l - basis @ (np.ascontiguousarray(basis.T) @ l)
    velocity = G @ least + g
    if natural_map(blocks, least, velocity) < EXACT:
        l[:], u[:] = least, velocity


@njit(**_JIT)
def _revise(blocks, l, u, modes):
    """Change the modes of the blocks whose signs are wrong; return how many there are."""
    changed = 0
    for b in range(blocks.kind.size):
        i, mu, kind, mode = blocks.first[b], blocks.bound[b], blocks.kind[b], modes[b]
        n, new = i + block_size(kind) - 1, mode
        if kind == FREE:
            continue
        if kind == DISC:
            if mode == SLIDE and l[i] * u[i] + l[i + 1] * u[i + 1] > 0.0:
                new = STICK
            elif mode == STICK and np.sqrt(l[i] ** 2 + l[i + 1] ** 2) > mu + EXACT:
                new = SLIDE
        elif mode == SEPARATE:
            new = STICK if u[n] < -EXACT else SEPARATE
        elif l[n] < -EXACT:
            new = SEPARATE
        elif kind == CONE:
            if mode == STICK and np.sqrt(l[i] ** 2 + l[i + 1] ** 2) > mu * l[n] + EXACT:
                new = SLIDE
            elif mode == SLIDE and l[i] * u[i] + l[i + 1] * u[i + 1] > 0.0:
                # Newton went to slip along the friction: it passed through rest.
                new = STICK
        elif kind == PYRAMID:
            new = STICK
            for a in range(2):
                side = pyramid_side(mode, a)
                if side == 0 and abs(l[i + a]) > mu * l[n] + EXACT:
                    side = 1 if l[i + a] > 0.0 else 2
                elif (side == 1 and u[i + a] > EXACT) or (side == 2 and u[i + a] < -EXACT):
                    side = 0
                new += side * (1 if a == 0 else 3)
        if new != mode:
            modes[b] = new
            changed += 1
    return changed


@njit(**_JIT)
def _finish(G, g, blocks, l, modes, best_l, best_u, best_modes):
    """Polish an approximate answer, with modes revised; keep it if it is better. Returns its natural map and rounds."""
    u = G @ l + g
    best = natural_map(blocks, best_l, best_u)
    for k in range(_ROUNDS):
        trial, velocity = l.copy(), u.copy()
        polish(G, g, blocks, modes, trial, velocity, 12)
        size = natural_map(blocks, trial, velocity)
        if size < best:
            best = size
            best_l[:], best_u[:], best_modes[:] = trial, velocity, modes
        if size < EXACT or _revise(blocks, trial, velocity, modes) == 0:
            return best, k + 1
    return best, _ROUNDS


@njit(**_JIT)
def solve(G, g, blocks, convex, most, start, start_modes):
    """Solve a scaled problem: ADMM to a loose tolerance, modes, Newton; tighter where the signs come out wrong.

    Before that, Newton is tried from ``start`` (m,) on ``start_modes`` (k,), both empty where there is no such guess.
    ADMM's own answer counts, too: it is what is left where Newton finds none.

    Returns l, u, modes, the natural map, the iterations of ADMM and the rounds of Newton.
    """
    m = g.size
    l, u, modes = np.zeros(m), g.copy(), np.zeros(blocks.kind.size, dtype=np.int64)
    identify(blocks, l, u, 0.0, modes)
    best = natural_map(blocks, l, u)
    rounds, iterations, tolerance = 0, 0, 1e-4
    if best == 0.0:
        return l, u, modes, best, 0, 0
    if start_modes.size:
        best, rounds = _finish(G, g, blocks, start, start_modes.copy(), l, u, modes)
        if best < EXACT:
            _least_norm(G, g, blocks, modes, l, u)
            return l, u, modes, natural_map(blocks, l, u), 0, rounds
    values, vectors = np.linalg.eigh(0.5 * (G + G.T))
    values, vectors = np.maximum(values, 0.0), np.ascontiguousarray(vectors)
    if values[m - 1] == 0.0:
        return l, u, modes, best, 0, rounds
    state, skew = new_splitting(m, values[m - 1], convex), 0.5 * (G - G.T)
    trial_modes = modes.copy()
    while best >= EXACT and tolerance > EXACT and iterations < most and np.isfinite(state.z.sum()):
        # ADMM knows the symmetric part of G; gyroscopic steps have another, which follows round by round. Modes may be
        # right long before its tolerance is met.
        shifted = g + skew @ state.z
        done = admm(vectors, values, shifted, blocks, state, tolerance, min(_PATIENCE, most - iterations), convex)
        iterations += abs(done)
        # What hardly slips may stick on the edge of its cone: the slower threshold comes second.
        for threshold in (10.0 * tolerance, np.sqrt(tolerance)):
            velocity = G @ state.z + g
            identify(blocks, state.z, velocity, threshold, trial_modes)
            size = natural_map(blocks, state.z, velocity)
            if size < best:
                best = size
                l[:], u[:], modes[:] = state.z, velocity, trial_modes
            best, more = _finish(G, g, blocks, state.z, trial_modes, l, u, modes)
            rounds += more
            if best < EXACT:
                break
        if done > 0:
            tolerance *= 1e-2
    _least_norm(G, g, blocks, modes, l, u)
    return l, u, modes, natural_map(blocks, l, u), iterations, rounds
