"""Crossings of lines as contacts: their places and normals, how much they count, and the forces of what counts less.

With the lines, normals and places of `contact_lines.py` and

    f = e x n,   h = d x n,   q = d . e,   S = sigma m = n . (d x e),   g' = n . (C - E)

the way ds of a's material at c and its turn dphi, both against b's, change the gap, the places on both lines, the angle
between these, and the angles alpha and beta of n about them, as bodies a and b see it, by

    dg = n . ds,   ds = -(f . ds + g' h . dphi/S)/S,   dt = -(h . ds + q g' h . dphi/S)/S
    dq = S n . dphi,   dalpha = -f . dphi/S,   dbeta = -h . dphi/S

The place c is one where the gap of the line is least, so that the gradient of g is that of material there (the envelope
theorem), as `contact_places.py` has it for rims:

    dn = T dphi,   T = -f h^T/S
    dc = ds + P (f . ds + g' h . dphi/S),   P = -d/S

The six above are all that a relative motion has, so that any potential W U(g) of a crossing, W of all six, is one of
them, and its force and couple are W times those of a point, and

    -U grad W,   grad W = (W_g n - (W_s f + W_t h)/S,   S W_q n - (W_alpha f + W_beta h + g' (W_s + q W_t) h/S)/S)

which keeps energy where crossings fade. With dn, df = -dbeta n about e, dh = dphi x h - dalpha n and dS = -q n . dphi,
the product rule gives how it changes. The couple is that about c; about the place of contact, which is r_a n behind it,
it is r_a n x (force) more.
"""

import math

from numba import types

from add.kernels.by_address import when_called
from add.kernels.caching import njit
from add.kernels.contact_blocks import DEPTH, OTHER, PULL, SCALE
from add.kernels.contact_lines import (
    ALL,
    END,
    HALF,
    NUMBER,
    OVER,
    SLENDER,
    STEEP,
    TURNS,
    WHICH,
    axis_of,
    faces_of,
    line_of,
    nearest_on_lines,
    relative_frame,
)
from add.kernels.contact_places import BEND, BY, GROWN, MOVED, TURN, has_corner
from add.kernels.shape_codes import BOX

#: Rows of L of a crossing: T (10-12); unused, the scale of the force, and whether there is a crossing; the change of
#: ln W by both half-lengths, and which numbers these are, 3 a + b; the gap; U and its changes by the depth and by k_n,
#: and, in the row before, by the thickness; the force and the couple of -U grad W;
#: grad W, its couple about the place of contact; that about c; what its couple changes by as g' does; grad W by both
#: half-lengths, two rows each; then by ds and by dphi, of each of its six, a row each.
TWIST, WEIGHT, HALVES, GAP, ENERGY, FADES, FADE, ABOUT, BY_GAP, BY_HALVES = 10, 13, 14, 15, 16, 17, 19, 21, 22, 23
BY_MOTION = 27
#: Rows of L.
ROWS = 39


@njit(cache=True, error_model="numpy", inline="always")
def share(u):
    """Return w = u^3 (10 - 15 u + 6 u^2) between 0 and 1, (ln w)' and (ln w)''."""
    if u >= 1.0:
        return 1.0, 0.0, 0.0
    if u <= 0.0:
        return 0.0, 0.0, 0.0
    rest = 10.0 - u * (15.0 - 6.0 * u)
    slope = 30.0 * (1.0 - u) * (1.0 - u) / (u * rest)
    return u * u * u * rest, slope, 60.0 * (1.0 - u) * (1.0 - 2.0 * u) / (u * u * rest) - slope * slope


@njit(cache=True, error_model="numpy", inline="always")
def _dot(x, y):
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]


@njit(cache=True, error_model="numpy", inline="always")
def _cross(x, y):
    return x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]


@njit(cache=True, error_model="numpy", inline="always")
def _row(L, r):
    return L[r, 0], L[r, 1], L[r, 2]


@njit(cache=True, error_model="numpy", inline="always")
def _end(u_s, s, h, depth):
    """Return the share of a crossing at s of a line of half-length h, and the logarithm's changes.

    They are those by s, s s, g, g g, s g, h, s h and g h; ``u_s`` is the sign of s.
    """
    w, l, l_2 = share((1.0 - abs(s) / h) / END)
    by, by_h = -u_s / (END * h), abs(s) / (END * h * h)
    l_s, l_ss, l_h, l_sh = l * by, l_2 * by * by, l * by_h, l_2 * by * by_h + l * u_s / (END * h * h)
    l_g, l_gg, l_sg, l_gh = 0.0, 0.0, 0.0, 0.0
    if depth > 0.0:
        rest, by, by_h = 2.0 * (h - abs(s)) / depth, -2.0 * u_s / depth, 2.0 / depth
        part, l, l_2 = share(rest - 1.0)
        by_g = rest / depth
        w, l_s, l_ss, l_h, l_sh = w * part, l_s + l * by, l_ss + l_2 * by * by, l_h + l * by_h, l_sh + l_2 * by * by_h
        l_g, l_gg = l * by_g, l_2 * by_g * by_g + 2.0 * l * by_g / depth
        l_sg, l_gh = l_2 * by * by_g + l * by / depth, l_2 * by_h * by_g + l * by_h / depth
    return w, (l_s, l_ss, l_g, l_gg, l_sg, l_h, l_sh, l_gh)


@njit(cache=True, error_model="numpy", inline="always")
def _wedge(lean, turned):
    """Return the share of a normal that leans out of a face, and the logarithm's changes as n turns about the line.

    ``lean`` is how far, n . b or -n . a, and ``turned`` its derivative by the angle.
    """
    w, l, l_2 = share((lean + OVER) / TURNS)
    by = turned / TURNS
    return w, l * by, l_2 * by * by - l * lean / TURNS


@njit(cache=True, error_model="numpy")
def cross(i, o, feature, order, contacts, frames, x, L, n):
    """Move line i, at x and L[0] as `point_place` leaves them, to where it crosses shape o; return the gap g [m].

    Fill the normal n (3,) and the rows of L from `MOVED` on: what moves with what, the weight, and its gradient; of
    ``order`` 2 also how that changes.
    """
    kind, size, R, rim = contacts.kind[o], contacts.size[o], frames.shapes.R[o], contacts.rims[contacts.points[i, 3]]
    code, sigma = (feature & WHICH) // 2, 1.0 if feature & 1 != 0 else -1.0
    k, s_j, s_l = axis_of(kind, code)
    j, l = (k + 1) % 3, (k + 2) % 3
    Q = relative_frame(contacts.points[i, 2], o, frames)
    C, D = line_of(i, Q, contacts, frames)
    m = math.sqrt(D[j] * D[j] + D[l] * D[l])
    n_j, n_l, S = sigma * D[l] / m, -sigma * D[j] / m, sigma * m
    s, t, g = nearest_on_lines(C, D, k, C[j] - s_j * size[j], C[l] - s_l * size[l], n_j, n_l, S)
    d = (_dot(_row(R, 0), D), _dot(_row(R, 1), D), _dot(_row(R, 2), D))
    for r in range(3):
        n[r] = R[r, j] * n_j + R[r, l] * n_l
        L[BEND, r] = L[GROWN, r] = R[r, l] * n_j - R[r, j] * n_l
        L[0, r] += s * d[r]
        x[0, r] += s * d[r]
    f, h, q, radius = _row(L, BEND), _cross(d, (n[0], n[1], n[2])), D[k], contacts.arms[i, 3]
    for r in range(3):
        L[MOVED, r], L[BY, r] = -d[r] / S, -g * h[r] / S
        for c in range(3):
            L[TWIST + r, c] = -f[r] * h[c] / S
    L[GAP, 0] = g - (0.0 if kind == BOX else size[0])
    half, h_b, slender = rim[HALF], size[k] if kind == BOX else size[1], STEEP * rim[SLENDER]
    weight, of_s = _end(math.copysign(1.0, s), s, half, radius - L[GAP, 0])
    part, of_t = _end(math.copysign(1.0, t), t, h_b, radius - L[GAP, 0])
    weight *= part
    part, l_1, l_2 = share((m - slender) / (2.0 * slender))
    weight *= part
    by = -q / (2.0 * slender * m)
    of_q = (l_1 * by, l_2 * by * by - l_1 / (2.0 * slender * m * m * m))
    alpha, alpha_2, beta, beta_2 = 0.0, 0.0, 0.0, 0.0
    if kind == BOX:
        part, l_1, l_2 = _wedge(s_j * n_j, -s_j * n_l)
        weight, beta, beta_2 = weight * part, beta + l_1, beta_2 + l_2
        part, l_1, l_2 = _wedge(s_l * n_l, s_l * n_j)
        weight, beta, beta_2 = weight * part, beta + l_1, beta_2 + l_2
    if has_corner(i, contacts):
        one, two = faces_of(i, Q, D, contacts)
        h_j, h_l, h_k = -D[k] * n_l, D[k] * n_j, D[j] * n_l - D[l] * n_j
        part, l_1, l_2 = _wedge(-one[j] * n_j - one[l] * n_l, -one[j] * h_j - one[l] * h_l - one[k] * h_k)
        weight, alpha, alpha_2 = weight * part, alpha + l_1, alpha_2 + l_2
        part, l_1, l_2 = _wedge(-two[j] * n_j - two[l] * n_l, -two[j] * h_j - two[l] * h_l - two[k] * h_k)
        weight, alpha, alpha_2 = weight * part, alpha + l_1, alpha_2 + l_2
    W = contacts.arms[i, 4] * weight
    L[WEIGHT, 1], L[WEIGHT, 2] = W, 1.0
    own = int(rim[NUMBER])
    L[HALVES, 0], L[HALVES, 1], L[HALVES, 2] = of_s[5], of_t[5], 3 * own + (k if kind == BOX else 1)
    by = (of_s[2] + of_t[2], of_s[0], of_t[0], of_q[0], alpha, beta)
    _fill_gradient(W, by, (g, q, S, radius), (f, h), n, L)
    if order >= 2:
        _fill_changes(W, by, (of_s, of_t, of_q[1], alpha_2, beta_2), (g, q, S, radius), (f, h), n, L)
    return L[GAP, 0]


@njit(cache=True, error_model="numpy", inline="always")
def _gradient(by, numbers, f, h, n, r):
    """Return component r of force and couple of the gradient of what changes ``by`` the six, about c."""
    g, q, S, _ = numbers
    couple = S * by[3] * n[r] - (by[4] * f[r] + (by[5] + g * (by[1] + q * by[2]) / S) * h[r]) / S
    return by[0] * n[r] - (by[1] * f[r] + by[2] * h[r]) / S, couple


@njit(cache=True, error_model="numpy", inline="always")
def _at_place(radius, n, at, L):
    """Turn the couple about c in row ``at`` + 1 of L to one about the place of contact; row ``at`` has the force."""
    moved = _cross((n[0], n[1], n[2]), _row(L, at))
    for r in range(3):
        L[at + 1, r] += radius * moved[r]


@njit(cache=True, error_model="numpy", inline="always")
def _fill_gradient(W, by, numbers, vectors, n, L):
    """Fill grad W; ``by`` are the changes of ln W by all six."""
    (f, h), (_, q, S, radius) = vectors, numbers
    for r in range(3):
        force, couple = _gradient(by, numbers, f, h, n, r)
        L[FADE, r], L[FADE + 1, r] = W * force, W * couple
        L[ABOUT, r] = L[FADE + 1, r]
        L[BY_GAP, r] = -W * (by[1] + q * by[2]) * h[r] / (S * S)
    _at_place(radius, n, FADE, L)


@njit(cache=True, error_model="numpy")
def _fill_changes(W, by, second, numbers, vectors, n, L):
    """Fill how grad W changes: by both half-lengths, by the way and by the turn; ``second`` are changes of ``by``."""
    (of_s, of_t, by_qq, by_aa, by_bb), (f, h), (g, q, S, radius) = second, vectors, numbers
    normal, force = (n[0], n[1], n[2]), _row(L, FADE)
    for side in range(2):
        of, at = of_s if side == 0 else of_t, BY_HALVES + 2 * side
        more = (of[7], of[6] if side == 0 else 0.0, 0.0 if side == 0 else of[6], 0.0, 0.0, 0.0)
        for r in range(3):
            along, turned = _gradient(more, numbers, f, h, n, r)
            L[at, r] = of[5] * L[FADE, r] + W * along
            L[at + 1, r] = of[5] * L[ABOUT, r] + W * turned
        _at_place(radius, n, at, L)
    for c in range(6):
        way = (1.0 if c == 0 else 0.0, 1.0 if c == 1 else 0.0, 1.0 if c == 2 else 0.0)
        spin = (1.0 if c == 3 else 0.0, 1.0 if c == 4 else 0.0, 1.0 if c == 5 else 0.0)
        d_g, across = _dot(normal, way), _dot(h, spin) / S
        d_s, d_t = -(_dot(f, way) + g * across) / S, -(_dot(h, way) + q * g * across) / S
        twist = _dot(normal, spin)
        d_q, d_S, d_a, d_b = S * twist, -q * twist, -_dot(f, spin) / S, -across
        d_W = _dot(force, way) + _dot(_row(L, ABOUT), spin)
        # The changes of W by the six, of these the changes, and of the vectors.
        b_g, b_s, b_t, b_q, b_a, b_b = W * by[0], W * by[1], W * by[2], W * by[3], W * by[4], W * by[5]
        c_g = by[0] * d_W + W * ((of_s[3] + of_t[3]) * d_g + of_s[4] * d_s + of_t[4] * d_t)
        c_s, c_t = by[1] * d_W + W * (of_s[1] * d_s + of_s[4] * d_g), by[2] * d_W + W * (of_t[1] * d_t + of_t[4] * d_g)
        c_q, c_a, c_b = by[3] * d_W + W * by_qq * d_q, by[4] * d_W + W * by_aa * d_a, by[5] * d_W + W * by_bb * d_b
        turned = _cross(spin, h)
        lever, lever_c = g * (b_s + q * b_t) / S, (d_g * (b_s + q * b_t) + g * (c_s + q * c_t + d_q * b_t)) / S
        lever_c -= lever * d_S / S
        for r in range(3):
            d_n, d_f, d_h = d_b * f[r], -d_b * n[r], turned[r] - d_a * n[r]
            along = c_g * n[r] + b_g * d_n - (c_s * f[r] + b_s * d_f + c_t * h[r] + b_t * d_h) / S
            along += (b_s * f[r] + b_t * h[r]) * d_S / (S * S)
            about = (d_S * b_q + S * c_q) * n[r] + S * b_q * d_n + (b_a * f[r] + (b_b + lever) * h[r]) * d_S / (S * S)
            about -= (c_a * f[r] + b_a * d_f + (c_b + lever_c) * h[r] + (b_b + lever) * d_h) / S
            L[BY_MOTION + 2 * r + c // 3, c % 3] = along
            L[BY_MOTION + 6 + 2 * r + c // 3, c % 3] = about
        for r in range(3):
            p, e = (r + 1) % 3, (r + 2) % 3
            at, col = c // 3, c % 3
            arm = n[p] * L[BY_MOTION + 2 * e + at, col] - n[e] * L[BY_MOTION + 2 * p + at, col]
            L[BY_MOTION + 6 + 2 * r + at, col] += radius * (arm + d_b * (f[p] * force[e] - f[e] * force[p]))


call_cross = when_called(
    cross, (*[types.int64] * 4, *ALL, *[types.float64[:, ::1]] * 2, types.float64[::1]), types.float64
)


@njit(cache=True, error_model="numpy", inline="always")
def fade(k_n, slope, stored, L):
    """Fill the force and the couple on a, about the place of contact, of -U grad W, and add the force to L[2].

    ``slope`` is the force at unit stiffness, ``stored`` the energy, and its change by the thickness at a fixed gap.
    """
    U = k_n * stored[0]
    L[ENERGY, 0], L[ENERGY, 1], L[ENERGY, 2], L[GAP, 1] = U, k_n * slope, stored[0], k_n * stored[1]
    for r in range(3):
        L[FADES, r], L[FADES + 1, r] = -U * L[FADE, r], -U * L[FADE + 1, r]
        L[2, r] += L[FADES, r]


@njit(cache=True, error_model="numpy")
def fade_columns(first, stop, F, L, Y, E):
    """Add to the columns first to stop of E what W, grad W and U change force and couple F (6,) by."""
    for c in range(first, stop):
        U, grows = L[ENERGY, 0], L[ENERGY, 1] * Y[DEPTH, c]
        for r in range(6):
            by_W = L[FADE + r // 3, r % 3]
            E[r, c] += (F[r] + U * by_W) * Y[SCALE, c] - grows * by_W - U * Y[PULL + r, c]


@njit(cache=True, error_model="numpy", inline="always")
def _fill_pull(c, weight, way, spin, turn, L, Y):
    """Fill column c of what W and grad W change by, over a way and a turn, and as axes turn by ``turn``."""
    Y[SCALE, c] = 0.0
    if L[WEIGHT, 1] > 0.0:
        Y[SCALE, c] = weight * (_dot(_row(L, FADE), way) + _dot(_row(L, ABOUT), spin)) / L[WEIGHT, 1]
    along, about = _cross(turn, _row(L, FADE)), _cross(turn, _row(L, FADE + 1))
    for r in range(3):
        at = BY_MOTION + 2 * r
        Y[PULL + r, c] = weight * (along[r] + _dot(_row(L, at), way) + _dot(_row(L, at + 1), spin))
        Y[PULL + 3 + r, c] = weight * (about[r] + _dot(_row(L, at + 6), way) + _dot(_row(L, at + 7), spin))


@njit(cache=True, error_model="numpy")
def pull_columns(bodies, weight_q, B, L, Y):
    """Fill, of the coordinates of bodies a and b (-1: none), the rows of Y that say what W and grad W change by."""
    a, b = bodies
    for c in range(OTHER + 6 if b >= 0 else 6):
        side, axis, sign = c // 6, c % 3, 1.0 if c < 6 else -1.0
        unit = (sign if axis == 0 else 0.0, sign if axis == 1 else 0.0, sign if axis == 2 else 0.0)
        if c % 6 < 3:
            _fill_pull(c, weight_q, unit, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), L, Y)
            continue
        body = a if side == 0 else b
        spin = (sign * B[body, TURN, axis], sign * B[body, TURN + 1, axis], sign * B[body, TURN + 2, axis])
        turn = (0.0, 0.0, 0.0) if side == 0 else (-spin[0], -spin[1], -spin[2])
        _fill_pull(c, weight_q, _cross(spin, _row(L, side)), spin, turn, L, Y)


@njit(cache=True, error_model="numpy")
def pull_column(c, way, round_a, round_b, side, half, n, L, Y):
    """Fill column c of Y as `pull_columns` does, for a number that moves the line against the shape by ``way`` (3,).

    ``round_a`` is the growth of r_a, ``round_b`` whether it is r_b; these move no line, and change no g'. ``half``: the
    number is the half-length of the line of a ``side``.
    """
    towards, still, normal = (way[0], way[1], way[2]), (0.0, 0.0, 0.0), (n[0], n[1], n[2])
    _fill_pull(c, 1.0, towards, still, still, L, Y)
    spurious = _dot(normal, towards) if round_b else -round_a
    lever = _cross(normal, _row(L, FADE))
    for r in range(3):
        Y[PULL + 3 + r, c] += round_a * lever[r] - spurious * L[BY_GAP, r]
        if half:
            Y[PULL + r, c] += L[BY_HALVES + 2 * side, r]
            Y[PULL + 3 + r, c] += L[BY_HALVES + 2 * side + 1, r]
    if half:
        Y[SCALE, c] += L[HALVES, side]
