"""Lines of bodies as a shape sees them, and rims of cylinders: where they are nearest to edges, and to cores.

Seen along a line through E along the axis e_k, an edge of a box, or the core of a capsule or a cylinder, a circle about
C with the axis a is an ellipse,

    y(phi) = P (C - E) + rho P (cos(phi) e_1 + sin(phi) e_2),   P = 1 - e_k e_k^T

nearest to the line where y . y' = 0 and y' . y' + y . y'' > 0: at two places at the most. With its half-axes A, B and
psi from the first,

    y . y' = F(psi) = q cos psi - p sin psi - (A^2 - B^2) sin psi cos psi,   p = P (C - E) . A,  q = P (C - E) . B

The ends of the axes and the places of tan^3 psi = -q/p, where F/(sin psi cos psi) turns round, bracket all of its
zeros. Newton's method finds them within the brackets, to round-off, so that forces have derivatives there. At q = 0, as
of a rod along a face, the ends of the long axis are zeros, and the others are where cos psi = -p/(A^2 - B^2).

Two rims, of radii rho and r, cross where a place x of the smaller one and the place y of the other that is nearest to
it, at the distance L r from its middle seen along its axis, are as near as any beside them, d and e being the tangents
and u the direction from the middle to x:

    F(phi) = (x - y) . d = 0,   F'(phi) = rho (1 - (d . e)^2/L) - (x - y) . u > 0
"""

import math

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_arrays import CENTRE, HALF, SLENDER, SLOT, seen
from add.kernels.distance import RIM_BOTTOM, RIM_TOP, SIDE
from add.kernels.shape_codes import BOX, CYLINDER

#: Sine of the angle between axis and normal from which on rims roll.
UPRIGHT = 0.05
#: Bit of a feature over which a line crosses one of a shape; below are the edge and the sign of n.
CROSSES = 1 << 41
#: Bit of a feature over which a line would cross if it were longer, or turned: it does not touch.
OPEN = 1 << 42
#: The u from which on a crossing counts for laws that know no half contacts.
WHOLE = 0.5
#: The bits of edge and sign.
WHICH = 63
#: Share of a half-length, towards an end, over which crossings fade.
END = 0.02
#: Sine of the angle between lines at which crossings begin to fade in, in units of the slenderness.
STEEP = 0.4
#: By how much n may lean out of a wedge, and over which range crossings fade there [-].
OVER, TURNS = 0.1, 0.06
#: Least half-sizes of a box down to which its edges cross others.
DEEPEST = 1.0
#: Steps of Newton's method, which bisects where it would leave its bracket, and the one [rad] behind which it is at
#: round-off: each is about the square of the one before.
MOST, NEAR = 50, 1e-9
#: Angles at which signs of F are looked at: two places that are nearer together cross as good as parallel.
LOOKS = 48
_ANGLES = np.column_stack([of(2.0 * np.pi * np.arange(LOOKS + 1) / LOOKS) for of in (np.cos, np.sin)])


@njit(cache=True, error_model="numpy", inline="always")
def is_line(i, contacts):
    """Whether point i stands for a line."""
    rim = contacts.points[i, 3]
    return rim >= 0 and contacts.rims[rim, HALF] > 0.0


@njit(cache=True, error_model="numpy", inline="always")
def axis_of(kind, code):
    """Return the axis along a line of a shape and the signs of the two that follow, zero for a core."""
    if kind != BOX:
        return 2, 0.0, 0.0
    signs = (code // 9 - 1.0, code // 3 % 3 - 1.0, code % 3 - 1.0)
    k = 0 if signs[0] == 0.0 else (1 if signs[1] == 0.0 else 2)
    return k, signs[(k + 1) % 3], signs[(k + 2) % 3]


@njit(cache=True, error_model="numpy", inline="always")
def line_of(i, Q, contacts, frames):
    """Return middle and direction of line i in the frame of a shape."""
    rim, arms, centre = contacts.rims[contacts.points[i, 3]], contacts.arms, frames.B[contacts.points[i, 2]][CENTRE]
    y = seen(Q, arms[i, 0] - centre[0], arms[i, 1] - centre[1], arms[i, 2] - centre[2])
    return (y[0] + Q[3][0], y[1] + Q[3][1], y[2] + Q[3][2]), seen(Q, rim[3], rim[4], rim[5])


@njit(cache=True, error_model="numpy", inline="always")
def dot(a, b):
    """Return a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(cache=True, error_model="numpy", inline="always")
def between(a, b, factor):
    """Return factor a x b."""
    return (
        factor * (a[1] * b[2] - a[2] * b[1]),
        factor * (a[2] * b[0] - a[0] * b[2]),
        factor * (a[0] * b[1] - a[1] * b[0]),
    )


@njit(cache=True, error_model="numpy", inline="always")
def basis_of(a):
    """Return two directions across a that make a right-handed frame e_1, e_2, a."""
    if abs(a[0]) <= abs(a[1]) and abs(a[0]) <= abs(a[2]):
        length = math.sqrt(a[1] * a[1] + a[2] * a[2])
        one = (0.0, a[2] / length, -a[1] / length)
    elif abs(a[1]) <= abs(a[2]):
        length = math.sqrt(a[0] * a[0] + a[2] * a[2])
        one = (-a[2] / length, 0.0, a[0] / length)
    else:
        length = math.sqrt(a[0] * a[0] + a[1] * a[1])
        one = (a[1] / length, -a[0] / length, 0.0)
    return one, (a[1] * one[2] - a[2] * one[1], a[2] * one[0] - a[0] * one[2], a[0] * one[1] - a[1] * one[0])


@njit(cache=True, error_model="numpy", inline="always")
def at_angle(basis, phi):
    """Return the direction u from the middle of a circle to its place at an angle, and the tangent d there."""
    (e0, e1, e2), (f0, f1, f2) = basis
    cos, sin = math.cos(phi), math.sin(phi)
    u = (cos * e0 + sin * f0, cos * e1 + sin * f1, cos * e2 + sin * f2)
    return u, (cos * f0 - sin * e0, cos * f1 - sin * e1, cos * f2 - sin * e2)


@njit(cache=True, error_model="numpy")
def nearest_angles(y_j, y_l, e_j, e_l, f_j, f_l):
    """Return how many places of an ellipse y + e cos(phi) + f sin(phi) are nearest to its origin, and their angles."""
    n, first, second = 0, 0.0, 0.0
    turn = 0.5 * math.atan2(2.0 * (e_j * f_j + e_l * f_l), e_j * e_j + e_l * e_l - f_j * f_j - f_l * f_l)
    cos, sin = math.cos(turn), math.sin(turn)
    a_j, a_l, b_j, b_l = cos * e_j + sin * f_j, cos * e_l + sin * f_l, cos * f_j - sin * e_j, cos * f_l - sin * e_l
    p, q = y_j * a_j + y_l * a_l, y_j * b_j + y_l * b_l
    slim = a_j * a_j + a_l * a_l - b_j * b_j - b_l * b_l
    if abs(q) <= 1e-14 * (abs(p) + slim):
        if abs(p) >= slim:
            return 1, (turn if p < 0.0 else turn + math.pi, second)
        psi = math.acos(-p / slim)
        return 2, (turn + psi, turn - psi)
    # Within a quarter, F/(sin psi cos psi) turns round at tan^3 psi = -q/p alone.
    ratio = -q / p if p != 0.0 else math.inf
    between = math.atan(math.copysign(abs(ratio) ** (1.0 / 3.0), ratio))
    bounds = (0.0, between, 0.5 * math.pi, math.pi, math.pi + between, 1.5 * math.pi, 2.0 * math.pi)
    if between < 0.0:
        one, two = math.pi + between, 2.0 * math.pi + between
        bounds = (0.0, 0.5 * math.pi, one, math.pi, 1.5 * math.pi, two, 2.0 * math.pi)
    low, before = 0.0, q
    for k in range(1, 7):
        high = bounds[k]
        value = _slope(high, p, q, slim) if k < 6 else q
        if before < 0.0 <= value and n < 2:
            psi = turn + _root(low, high, p, q, slim)
            first, second, n = (psi, second, 1) if n == 0 else (first, psi, 2)
        low, before = high, value
    return n, (first, second)


@njit(cache=True, error_model="numpy", inline="always")
def _slope(psi, p, q, slim):
    """Return F, half the slope of the squared distance along psi."""
    return q * math.cos(psi) - (p + slim * math.cos(psi)) * math.sin(psi)


@njit(cache=True, error_model="numpy", inline="always")
def _nearer(low, high, psi, height, slope):
    """Return a bracket of a zero that is passed upwards, an angle in it, by Newton's method, and whether that is it."""
    low, high = (psi, high) if height < 0.0 else (low, psi)
    after = psi - height / slope if slope > 0.0 else math.inf
    within = low <= after <= high
    return low, high, after if within else 0.5 * (low + high), within and abs(after - psi) <= NEAR


@njit(cache=True, error_model="numpy")
def _root(low, high, p, q, slim):
    """Return where F grows through zero between two angles."""
    psi = 0.5 * (low + high)
    for _ in range(MOST):
        cos, sin = math.cos(psi), math.sin(psi)
        height = q * cos - (p + slim * cos) * sin
        slope = -q * sin - p * cos - slim * (cos * cos - sin * sin)
        low, high, psi, still = _nearer(low, high, psi, height, slope)
        if still:
            break
    return psi


@njit(cache=True, error_model="numpy", inline="always")
def is_circle(i, contacts):
    """Whether line i is a rim."""
    return abs(contacts.rims[contacts.points[i, 3], SLOT]) > 1.0


@njit(cache=True, error_model="numpy", inline="always")
def angles_of(circle, k, y_j, y_l, rho):
    """Return how many places of a rim are nearest to a line along axis k, y away, and their angles."""
    (e, f), j, l = circle[2], (k + 1) % 3, (k + 2) % 3
    return nearest_angles(y_j, y_l, rho * e[j], rho * e[l], rho * f[j], rho * f[l])


@njit(cache=True, error_model="numpy", inline="always")
def half_lengths(kind, size):
    """Return the half-lengths of a box, or of the core of another shape along its axis, and the radius of its lines."""
    if kind == BOX:
        return (size[0], size[1], size[2]), 0.0
    return (0.0, 0.0, size[1]), size[0]


@njit(cache=True, error_model="numpy", inline="always")
def rim_at(circle, rho, slender, k, s, shape, side, phi):
    """Return place, tangent, and direction from the middle of a rim at an angle, u, gap, and the way of its tangent.

    That is over the line along axis k of a shape, as `half_lengths` has it, with n to a side; ``s`` are its signs, zero
    of a core: of the two that a core crosses, the side says the way.
    """
    (C, A, basis), (s_j, s_l), (j, l), (size, radius) = circle, s, ((k + 1) % 3, (k + 2) % 3), shape
    U, D = at_angle(basis, phi)
    X = (C[0] + rho * U[0], C[1] + rho * U[1], C[2] + rho * U[2])
    m = math.sqrt(D[j] * D[j] + D[l] * D[l])
    n_j, n_l = (2 * side - 1) * D[l] / max(m, 1e-12), (1 - 2 * side) * D[j] / max(m, 1e-12)
    u = min((m - slender) / (2.0 * slender), (s_j * n_j + OVER) / TURNS, (s_l * n_l + OVER) / TURNS)
    u = min(u, (OVER - U[j] * n_j - U[l] * n_l) / TURNS, (OVER - A[j] * n_j - A[l] * n_l) / TURNS)
    g, inside = n_j * (X[j] - s_j * size[j]) + n_l * (X[l] - s_l * size[l]) - radius, size[k] - abs(X[k])
    u = min(u, inside / (END * size[k]))
    if g < 0.0:
        u = min(u, -2.0 * inside / g - 1.0)
    if radius > 0.0:
        # A core is passed on the side where the rim is.
        return (X, D, U), u if g > -radius else -math.inf, g, 2 * side - 1.0
    return (X, D, U), u, g, s_j * D[j] if s_l * n_l > s_j * n_j else s_l * D[l]


@njit(cache=True, error_model="numpy")
def crosses_in_full(C, A, rho, slender, kind, size):
    """Whether a rim about C with axis A, of a slenderness, crosses the core of a shape and counts in full somewhere."""
    circle, shape = (C, A, basis_of(A)), half_lengths(kind, size)
    n, angles = angles_of(circle, 2, C[0], C[1], rho)
    for place in range(2 * n):
        _, u, _, _ = rim_at(circle, rho, STEEP * slender, 2, (0.0, 0.0), shape, place % 2, angles[place // 2])
        if u >= 1.0:
            return True
    return False


@njit(cache=True, error_model="numpy")
def rim_features(i, o, Q, reach, least, contacts, frames):
    """Return the features by which a rim, as line i, crosses shape o: those of its first point and of its second.

    -1 for none; and the u of both. See `add.kernels.contact_lines.crossing_features`.
    """
    kind, rim = contacts.kind[o], contacts.rims[contacts.points[i, 3]]
    shape = half_lengths(kind, contacts.size[o])
    size, radius = shape
    rho, slender, first, last, best_first, best_last = rim[HALF], STEEP * rim[SLENDER], -1, -1, least, least
    C, A = line_of(i, Q, contacts, frames)
    for c in range(3):
        if abs(C[c]) - rho * math.sqrt(max(1.0 - A[c] * A[c], 0.0)) > size[c] + radius + reach:
            return first, last, best_first, best_last
    circle, weight = (C, A, basis_of(A)), (9, 3, 1)
    deepest = -DEEPEST * min(size[0], size[1], size[2], rho) if kind == BOX else -radius
    for k in range(0 if kind == BOX else 2, 3):
        j, l = (k + 1) % 3, (k + 2) % 3
        for corner in range(4 if kind == BOX else 1):
            s_j, s_l = 0.0, 0.0
            if kind == BOX:
                s_j, s_l = 2.0 * (corner % 2) - 1.0, 2.0 * (corner // 2) - 1.0
            y_j, y_l = C[j] - s_j * size[j], C[l] - s_l * size[l]
            if y_j * y_j + y_l * y_l > (rho + radius + reach) * (rho + radius + reach):
                continue
            n, angles = angles_of(circle, k, y_j, y_l, rho)
            for place in range(2 * n):
                side = place % 2
                _, u, g, way = rim_at(circle, rho, slender, k, (s_j, s_l), shape, side, angles[place // 2])
                if g >= reach or g <= deepest or u <= (best_last if way >= 0.0 else best_first):
                    continue
                code = int(13 + s_j * weight[j] + s_l * weight[l]) if kind == BOX else SIDE
                feature = CROSSES | 2 * code | side
                if way >= 0.0:
                    best_last, last = min(u, 1.0), feature
                else:
                    best_first, first = min(u, 1.0), feature
    for code in range(RIM_TOP, RIM_BOTTOM + 1 if _meets_rims(i, o, contacts) else RIM_TOP):
        other, deepest = rim_of(code, size[2], radius), -min(rho, radius, size[2])
        apart = abs(C[2] - other[0][2]) - rho * math.sqrt(max(1.0 - A[2] * A[2], 0.0))
        if apart > max(reach, -deepest) or C[0] * C[0] + C[1] * C[1] > (rho + radius + reach) * (rho + radius + reach):
            continue
        one, two = rims_across((C, A, basis_of(A), rho), other, slender)
        if one[0] > best_first and deepest < one[1] < reach:
            best_first, first = min(one[0], 1.0), CROSSES | 2 * code
        if two[0] > best_last and deepest < two[1] < reach:
            best_last, last = min(two[0], 1.0), CROSSES | 2 * code | 1
    return first, last, best_first, best_last


@njit(cache=True, error_model="numpy", inline="always")
def _meets_rims(i, o, contacts):
    """Whether rim i crosses those of shape o: each pair of them once, and rims of obstacles none."""
    a = contacts.points[i, 2]
    if contacts.kind[o] != CYLINDER or contacts.bodies[a, 0] < 0:
        return False
    both = contacts.tables[contacts.points[i, 1], contacts.columns[o, 0], 11] != 0 and contacts.columns[o, 2] != 0
    return not both or a < contacts.hosts[o]


@njit(cache=True, error_model="numpy", inline="always")
def rim_of(code, half, radius):
    """Return middle, axis outwards, basis and radius of a rim of a cylinder, in its frame."""
    sign = 1.0 if code == RIM_TOP else -1.0
    return (0.0, 0.0, sign * half), (0.0, 0.0, sign), ((1.0, 0.0, 0.0), (0.0, sign, 0.0)), radius


@njit(cache=True, error_model="numpy")
def _beside(circle, other, phi):
    """Return place, tangent and direction u of a circle at an angle, those of the other nearest to it, F and F'."""
    (C, _, basis, rho), (O, N, _, radius) = circle, other
    U, D = at_angle(basis, phi)
    X = (C[0] + rho * U[0], C[1] + rho * U[1], C[2] + rho * U[2])
    z = dot(X, N) - dot(O, N)
    W = (X[0] - O[0] - z * N[0], X[1] - O[1] - z * N[1], X[2] - O[2] - z * N[2])
    far = max(math.sqrt(dot(W, W)), 1e-12 * radius)
    W = (W[0] / far, W[1] / far, W[2] / far)
    E, T = (O[0] + radius * W[0], O[1] + radius * W[1], O[2] + radius * W[2]), between(N, W, 1.0)
    Y, along = (X[0] - E[0], X[1] - E[1], X[2] - E[2]), dot(D, T)
    return (X, D, U), (E, T, W), dot(Y, D), rho * (1.0 - along * along * radius / far) - dot(Y, U)


@njit(cache=True, error_model="numpy")
def rims_across(one, two, slender):
    """Return u, gap, and both places, as `rim_at` has them, where two rims cross with n along -d x e and along d x e.

    Of several places it is the one that counts most, u is minus infinity where there is none. n leads from the second
    rim to the first.
    """
    swapped = one[3] > two[3]
    circle, other = (two, one) if swapped else (one, two)
    mine, its, _, _ = _beside(circle, other, 0.0)
    best = -math.inf, 0.0, mine, its
    found = best, best
    (C, _, (e, f), rho), (O, N, _, radius) = circle, other
    Y = (C[0] - O[0], C[1] - O[1], C[2] - O[2])
    y_e, y_f, y_n, n_e, n_f, square = dot(Y, e), dot(Y, f), dot(Y, N), dot(N, e), dot(N, f), dot(Y, Y) + rho * rho
    before = math.inf
    for k in range(LOOKS + 1):
        # F in few operations, of which there are many: C . d = x . d, and y is along x less its part along the axis.
        cos, sin = _ANGLES[k, 0], _ANGLES[k, 1]
        y_d, z = cos * y_f - sin * y_e, y_n + rho * (cos * n_e + sin * n_f)
        far = square + 2.0 * rho * (cos * y_e + sin * y_f) - z * z
        value = y_d - radius * (y_d - z * (cos * n_f - sin * n_e)) / math.sqrt(max(far, 1e-24 * radius * radius))
        if before < 0.0 <= value:
            low, high = 2.0 * math.pi * (k - 1) / LOOKS, 2.0 * math.pi * k / LOOKS
            psi = 0.5 * (low + high)
            for _ in range(MOST):
                mine, its, height, slope = _beside(circle, other, psi)
                low, high, psi, still = _nearer(low, high, psi, height, slope)
                if still:
                    break
            mine, its, _, _ = _beside(circle, other, psi)
            if swapped:
                mine, its = its, mine
            (X, D, U), (E, T, W), A, N = mine, its, one[1], two[1]
            n = between(D, T, 1.0)
            m = math.sqrt(dot(n, n))
            g = (dot(n, X) - dot(n, E)) / max(m, 1e-12)
            to_u, to_a, to_w, to_n = (dot(n, U), dot(n, A), dot(n, W), dot(n, N))
            for side in range(2):
                sign = (2.0 * side - 1.0) / max(m, 1e-12)
                u = min((m - slender) / (2.0 * slender), (OVER - max(sign * to_u, sign * to_a)) / TURNS)
                u = min(u, (min(sign * to_w, sign * to_n) + OVER) / TURNS)
                if side == 1 and u > found[1][0]:
                    found = found[0], (u, g, mine, its)
                elif side == 0 and u > found[0][0]:
                    found = (u, -g, mine, its), found[1]
        before = value
    return found


@njit(cache=True, error_model="numpy")
def rim_place(i, o, Q, feature, contacts, frames):
    """Return place, tangent and direction from the middle of the rim of line i where it crosses shape o over a feature.

    Of two places it is the one that counts more.
    """
    rim, kind, side = contacts.rims[contacts.points[i, 3]], contacts.kind[o], feature & 1
    rho, slender, shape = rim[HALF], STEEP * rim[SLENDER], half_lengths(kind, contacts.size[o])
    k, s_j, s_l = axis_of(kind, (feature & WHICH) // 2)
    size = shape[0]
    C, A = line_of(i, Q, contacts, frames)
    circle = C, A, basis_of(A)
    n, angles = angles_of(
        circle, k, C[(k + 1) % 3] - s_j * size[(k + 1) % 3], C[(k + 2) % 3] - s_l * size[(k + 2) % 3], rho
    )
    found, best, _, _ = rim_at(circle, rho, slender, k, (s_j, s_l), shape, side, angles[0])
    if n > 1:
        other, u, _, _ = rim_at(circle, rho, slender, k, (s_j, s_l), shape, side, angles[1])
        found = other if u > best else found
    return found
