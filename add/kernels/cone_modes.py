"""Modes of complementarity problems over cones: the smooth equations of each, Newton on them, and their derivatives.

Each block of rows (see `add.kernels.cones`) is in one mode:

    SEPARATE   l = 0
    STICK      u = 0                 (a joint, a closed contact without friction, a contact that does not slip)
    SLIDE      l_t + r u_t/|u_t| = 0,  u_n = 0,     r = mu l_n for a cone, the radius for a disc

A pyramid has 1 + s_1 + 3 s_2 in place of STICK and SLIDE, with s = 0 where a tangent sticks (u = 0), 1 where it is at
its upper bound (l = mu l_n), 2 at its lower one. All equations together are F(l, u) = 0 with u = G l + g, and

    K = dF/dl + dF/du G

is the matrix of Newton and of all derivatives. Redundant contacts would make it singular: where a load may be shared,
`add.kernels.cone_shares` says how. What is still open (tangential impulses of contacts that stick, a motion that the
modes leave open) takes least-norm steps.
"""

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import THREADED, njit
from add.kernels.cone_shares import (
    follows_rule,
    kernel_of,
    least_norm_inverse,
    least_norm_solution,
    max_norm,
    norm,
    redundant_normals,
    share_normals,
    spread_sticking,
)
from add.kernels.cones import CONE, DISC, FREE, HALF_LINE, PYRAMID, Blocks, block_size, velocity_of

SEPARATE, STICK, SLIDE = 0, 1, 2

#: Accepted size of the natural map, and of wrong signs, of a polished solution; problems are scaled to one.
EXACT = 1e-12

#: Residuals that no iteration need improve.
_ROUND_OFF = 1e-14

#: Slower than this no direction of slip is known.
_STILL = 1e-14


@njit(**THREADED)
def _slips(slip, room, tolerance):
    """Whether a tangent slips: by its speed, against how far the impulse is inside its bound."""
    return slip > tolerance and slip > 0.1 * room


@njit(**THREADED)
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


@njit(**THREADED)
def pyramid_side(mode, a):
    """Return 0 where tangent ``a`` sticks, 1 at its upper and 2 at its lower bound."""
    return (mode - 1) % 3 if a == 0 else (mode - 1) // 3


@njit(**THREADED)
def _slip_direction(l, u, i):
    """Return the direction and speed of slip; at rest the direction against the friction."""
    size = np.sqrt(u[i] ** 2 + u[i + 1] ** 2)
    if size > _STILL:
        return u[i] / size, u[i + 1] / size, size
    force = np.sqrt(l[i] ** 2 + l[i + 1] ** 2)
    if force > 0.0:
        return -l[i] / force, -l[i + 1] / force, _STILL
    return 1.0, 0.0, _STILL


@njit(**THREADED)
def mode_equations(blocks, modes, l, u, F, by_l, by_u, by_bound):
    """Fill F (m,), dF/dl and dF/du (m, m; zero between blocks), and dF/dbound (m,) by the bound of a row's block."""
    for r in range(F.size):
        by_bound[r] = 0.0
        for c in range(F.size):
            by_l[r, c] = by_u[r, c] = 0.0
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


@njit(**THREADED)
def mode_matrix(G, by_l, by_u, out):
    """Write K = dF/dl + dF/du G."""
    m = G.shape[0]
    put(by_l, out)
    for r in range(m):
        for c in range(m):
            if by_u[r, c] != 0.0:
                for k in range(m):
                    out[r, k] += by_u[r, c] * G[c, k]


@njit(**THREADED)
def polish(G, g, blocks, scale, ruled, modes, l, u, most):
    """Take Newton steps on the mode equations until they bring nothing more; ``ruled``: with the rule of shares."""
    m = g.size
    F, by_l, by_u, by_bound, K = np.empty(m), np.empty((m, m)), np.empty((m, m)), np.empty(m), np.empty((m, m))
    rows, Z, N = redundant_normals(G, blocks, modes, scale)
    last, moved = np.inf, np.inf
    for _ in range(most):
        mode_equations(blocks, modes, l, u, F, by_l, by_u, by_bound)
        if ruled:
            share_normals(rows, Z, N, l, u, F, by_l, by_u)
        size = max_norm(F)
        # What redundant rows disagree about stays, and moves nothing.
        still = size < 0.1 * EXACT or moved <= EXACT * max_norm(l)
        if size <= _ROUND_OFF or not np.isfinite(size) or (size >= 0.5 * last and still):
            break
        last = size
        mode_matrix(G, by_l, by_u, K)
        step = least_norm_solution(K, F)
        moved = max_norm(step)
        for i in range(m):
            l[i] -= step[i]
        put(velocity_of(G, l, g), u)
    if np.isfinite(last) and _overloaded(blocks, modes, l):
        mode_equations(blocks, modes, l, u, F, by_l, by_u, by_bound)
        if ruled:
            share_normals(rows, Z, N, l, u, F, by_l, by_u)
        mode_matrix(G, by_l, by_u, K)
        basis = kernel_of(K)
        if basis.shape[1] > 0:
            spread_sticking(blocks, modes, STICK, basis, l)
            put(velocity_of(G, l, g), u)


@njit(**THREADED)
def ruled_residual(G, blocks, scale, modes, l, u):
    """Return the largest entry of the mode equations with the rule of shares: what redundant normals do not explain."""
    m = l.size
    F, by_l, by_u, by_bound = np.empty(m), np.empty((m, m)), np.empty((m, m)), np.empty(m)
    rows, Z, N = redundant_normals(G, blocks, modes, scale)
    mode_equations(blocks, modes, l, u, F, by_l, by_u, by_bound)
    share_normals(rows, Z, N, l, u, F, by_l, by_u)
    return max_norm(F)


@njit(**THREADED)
def close(blocks, modes, u):
    """Write the velocities that the modes say are zero."""
    for b in range(blocks.kind.size):
        i, kind, mode = blocks.first[b], blocks.kind[b], modes[b]
        if mode == SEPARATE:
            continue
        last = i + block_size(kind) - 1
        if mode == STICK or kind != DISC:
            u[last] = 0.0
        if mode == STICK:
            for r in range(i, last):
                u[r] = 0.0
        elif kind == PYRAMID:
            for a in range(2):
                if pyramid_side(mode, a) == 0:
                    u[i + a] = 0.0


@njit(**THREADED)
def _overloaded(blocks, modes, l):
    """Whether a contact that sticks is outside its cone."""
    for b in range(blocks.kind.size):
        if blocks.kind[b] == CONE and modes[b] == STICK:
            i = blocks.first[b]
            if l[i + 2] > 0.0 and np.sqrt(l[i] ** 2 + l[i + 1] ** 2) > blocks.bound[b] * l[i + 2] + 0.1 * EXACT:
                return True
    return False


@njit(**THREADED)
def held_modes(G, g, blocks, scale, modes, start, most):
    """Solve the equations of given modes, whatever their signs, near ``start`` (m,); return l and u.

    Newton's steps are shortened where they would make |F| larger: slow slip turns further than a step can see.
    """
    m = g.size
    F, by_l, by_u, by_bound, K = np.empty(m), np.empty((m, m)), np.empty((m, m)), np.empty(m), np.empty((m, m))
    rows, Z, N = redundant_normals(G, blocks, modes, scale)
    ruled = follows_rule(rows, N, start, 1e-3)  # of a neighbour
    l = start.copy()
    u = velocity_of(G, l, g)
    mode_equations(blocks, modes, l, u, F, by_l, by_u, by_bound)
    if ruled:
        share_normals(rows, Z, N, l, u, F, by_l, by_u)
    size = norm(F)
    for _ in range(most):
        mode_matrix(G, by_l, by_u, K)
        step = least_norm_solution(K, F)
        length = 1.0
        while True:
            trial = l - length * step
            velocity = velocity_of(G, trial, g)
            mode_equations(blocks, modes, trial, velocity, F, by_l, by_u, by_bound)
            if ruled:
                share_normals(rows, Z, N, trial, velocity, F, by_l, by_u)
            remaining = norm(F)
            if remaining <= (1.0 - 0.25 * length) * size or remaining <= _ROUND_OFF or length < 1e-3:
                break
            length *= 0.5
        if not remaining < size:
            break
        l, u, size = trial, velocity, remaining
        if size <= _ROUND_OFF:
            break
    return l, u


@njit(**THREADED)
def redundancy(G, blocks, modes, scale, l, u):
    """Return how many impulses others could replace."""
    m = l.size
    F, by_l, by_u, by_bound, K = np.empty(m), np.empty((m, m)), np.empty((m, m)), np.empty(m), np.empty((m, m))
    rows, Z, N = redundant_normals(G, blocks, modes, scale)
    mode_equations(blocks, modes, l, u, F, by_l, by_u, by_bound)
    share_normals(rows, Z, N, l, u, F, by_l, by_u)
    mode_matrix(G, by_l, by_u, K)
    return Z.shape[1] + kernel_of(K).shape[1]


@njit(**THREADED)
def revise(blocks, l, u, modes):
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


@njit(**THREADED)
def margins(blocks, modes, l, u, largest_u):
    """Return how far each block (k,) is from another mode; see `add.cones.solver.ConeSolution.margins`."""
    out = np.ones(blocks.kind.size)
    largest_l = max(max_norm(l), 1e-300)
    for b in range(blocks.kind.size):
        i, bound, kind, mode = blocks.first[b], blocks.bound[b], blocks.kind[b], modes[b]
        n = i + block_size(kind) - 1
        if kind not in (FREE, DISC):
            out[b] = u[n] / largest_u if mode == SEPARATE else l[n] / largest_l
        limit = bound if kind == DISC else bound * l[n]
        if mode == SEPARATE or limit == 0.0 or kind in (FREE, HALF_LINE):
            continue
        if kind == PYRAMID:
            for a in range(2):
                inside = 1.0 - abs(l[i + a]) / limit if pyramid_side(mode, a) == 0 else abs(u[i + a]) / largest_u
                out[b] = min(out[b], inside)
        elif mode == SLIDE:
            out[b] = min(out[b], np.sqrt(u[i] ** 2 + u[i + 1] ** 2) / largest_u)
        else:
            out[b] = min(out[b], 1.0 - np.sqrt(l[i] ** 2 + l[i + 1] ** 2) / limit)
    return out


@njit(**THREADED)
def scaled_equations(G, blocks, modes, l, u, scale):
    """Return the scaled G and the derivatives dF/dl, dF/du (m, m) and dF/dbound (m,) of the scaled mode equations.

    ``blocks``, ``l`` and ``u`` are in their own units.
    """
    m = l.size
    F, by_bound, by_l, by_u = np.empty(m), np.empty(m), np.empty((m, m)), np.empty((m, m))
    bound, scaled = blocks.bound.copy(), np.empty((m, m))
    for b in range(bound.size):
        if blocks.kind[b] == DISC:
            bound[b] /= scale[blocks.first[b]]
    for i in range(m):
        for j in range(m):
            scaled[i, j] = scale[i] * G[i, j] * scale[j]
    mode_equations(Blocks(blocks.kind, blocks.first, bound), modes, l / scale, scale * u, F, by_l, by_u, by_bound)
    return scaled, by_l, by_u, by_bound


@njit(**THREADED)
def linearised(scaled, blocks, modes, by_l, by_u, by_bound, slides, scale, l):
    """Return K^-1, dF/du and dF/dbound in their own units, the redundant impulses, and two warnings.

    These are how fast the kernel of K moves, and how much of it is in tangents that slide (see
    `add.cones.sensitivity.Sensitivity`). Impulses l (m,), scaled, that follow the rule of shares go on doing so; an
    empty l leaves the rule out.
    """
    m = scale.size
    K, shared_normals, shared = np.empty((m, m)), 0, 0.0
    if l.size:
        rows, Z, N = redundant_normals(scaled, blocks, modes, scale)
        if follows_rule(rows, N, l, 1e-8):
            share_normals(rows, Z, N, l, l, np.zeros(m), by_l, by_u)
            shared_normals = Z.shape[1]
            for i in range(rows.size):
                if rows[i] > 1 and slides[rows[i] - 1]:
                    for c in range(shared_normals):
                        shared = max(shared, abs(N[i, c]) / scale[rows[i]])
    mode_matrix(scaled, by_l, by_u, K)
    inverse, basis = least_norm_inverse(K)
    moving = 0.0
    for c in range(basis.shape[1]):
        for i in range(m):
            speed = 0.0
            for j in range(m):
                speed += scaled[i, j] * basis[j, c]
            moving = max(moving, abs(speed))
    out, own_bound = np.empty((m, m)), by_bound.copy()
    for b in range(blocks.kind.size):
        i = blocks.first[b]
        for r in range(i, i + block_size(blocks.kind[b])):
            if blocks.kind[b] == DISC:
                own_bound[r] /= scale[i]
            if slides[r] and modes[b] != SEPARATE:
                for c in range(basis.shape[1]):
                    shared = max(shared, abs(basis[r, c]))
    for i in range(m):
        for j in range(m):
            inverse[i, j] *= scale[i]
            out[i, j] = by_u[i, j] * scale[j]
    return inverse, out, own_bound, shared_normals + basis.shape[1], moving, shared
