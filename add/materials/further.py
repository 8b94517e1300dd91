"""Principal stretches and invariants of fibres in elastic laws: their part of stress and tangent.

With further invariants v_k beside I1, I2 and J, G_k = dv_k/dF and G_1 = 2 F, G_2 = 2 H, G_J = cof F of those,

    P += sum_k W_k G_k

    dP/dF += sum_k (G_k (x) Y_k + Y_k (x) G_k) + W_k dG_k/dF,   Y_k = sum_b W_kb G_b + sum_l W_kl G_l / 2,

b over I1, I2, J and l over the further ones. Of the invariant (F u) . (F w) of fibres, G = F (u (x) w + w (x) u) and
dG_im/dF_jn = d_ij (u_m w_n + w_m u_n). Of the stretches, F = sum_a l_a n_a (x) N_a, G_a = n_a (x) N_a, and

    sum_a W_a dG_a/dF = sum_{a<b} D_ab/2 S (x) S + (W_a + W_b)/(l_a + l_b)/2 T (x) T,
    S, T = n_a (x) N_b +- n_b (x) N_a,   D_ab = (W_a - W_b)/(l_a - l_b),

which is (W_aa + W_bb)/2 - W_ab where the stretches coincide (Ogden 1984, section 6.1.4).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from add.kernels.caching import INLINED, INNER, njit
from add.kernels.deformation import add_scaled, cauchy_green
from add.laws import compiled, derivative
from add.materials.formulas import FIBRES, STRETCHES, Formula
from add.typing import IntArray

#: Difference of two stretches, over their sum, below which their quotient is its limit: both are good to 1e-10 there.
COINCIDENT = 1e-5


@njit(**INNER)
def principal(f, l, frame):
    """Write the principal stretches, and in the columns of ``frame`` (2, 3, 3) n_a and N_a, by Jacobi's rotations."""
    xx, yy, zz, xy, xz, yz = cauchy_green(f)
    c = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    right = frame[1]
    right[:] = 0.0
    right[0, 0] = right[1, 1] = right[2, 2] = 1.0
    for _ in range(12):
        if abs(c[0, 1]) + abs(c[0, 2]) + abs(c[1, 2]) <= 1e-17 * (xx + yy + zz):
            break
        for a in range(2):
            for b in range(a + 1, 3):
                if c[a, b] == 0.0:
                    continue
                half = (c[b, b] - c[a, a]) / (2.0 * c[a, b])
                tan = (1.0 if half >= 0.0 else -1.0) / (abs(half) + np.sqrt(half * half + 1.0))
                cos = 1.0 / np.sqrt(tan * tan + 1.0)
                sin = tan * cos
                for i in range(3):
                    c[i, a], c[i, b] = cos * c[i, a] - sin * c[i, b], sin * c[i, a] + cos * c[i, b]
                for i in range(3):
                    c[a, i], c[b, i] = cos * c[a, i] - sin * c[b, i], sin * c[a, i] + cos * c[b, i]
                    right[i, a], right[i, b] = (
                        cos * right[i, a] - sin * right[i, b],
                        sin * right[i, a] + cos * right[i, b],
                    )
    for a in range(3):
        l[a] = np.sqrt(c[a, a])
        for i in range(3):
            frame[0, i, a] = (f[i, 0] * right[0, a] + f[i, 1] * right[1, a] + f[i, 2] * right[2, a]) / l[a]


@njit(**INNER)
def along_fibres(f, u, w, out):
    """Write F (u (x) w + w (x) u), and return (F u) . (F w)."""
    value = 0.0
    for i in range(3):
        fu = f[i, 0] * u[0] + f[i, 1] * u[1] + f[i, 2] * u[2]
        fw = f[i, 0] * w[0] + f[i, 1] * w[1] + f[i, 2] * w[2]
        value += fu * fw
        for m in range(3):
            out[i, m] = fu * w[m] + fw * u[m]
    return value


@njit(**INNER)
def add_products(slopes, v, g, f, h, cof, out):
    """Add G_k (x) Y_k + Y_k (x) G_k of all further invariants; ``slopes`` (m, 4 + m) W_k, W_k1, W_k2, W_kJ, W_kl."""
    y = np.empty((3, 3))
    for k in range(v.size):
        for i in range(3):
            for m in range(3):
                y[i, m] = 2.0 * slopes[k, 1] * f[i, m] + slopes[k, 3] * cof[i, m]
                if slopes[k, 2] != 0.0:
                    y[i, m] += 2.0 * slopes[k, 2] * h[i, m]
                for one in range(v.size):
                    y[i, m] += 0.5 * slopes[k, 4 + one] * g[one, i, m]
        add_product(1.0, g[k], y, out)
        add_product(1.0, y, g[k], out)


@njit(**INNER)
def add_product(weight, a, b, out):
    """Add weight A (x) B to the blocks i <= j of a tangent."""
    for i in range(3):
        for j in range(i, 3):
            for m in range(3):
                for n in range(3):
                    out[i, j, m, n] += weight * a[i, m] * b[j, n]


@njit(**INNER)
def add_turning(slopes, l, frame, out):
    """Add sum_a W_a dG_a/dF of the stretches."""
    one, other = np.empty((3, 3)), np.empty((3, 3))
    for a in range(2):
        for b in range(a + 1, 3):
            gap, width = l[a] - l[b], l[a] + l[b]
            if abs(gap) > COINCIDENT * width:
                divided = (slopes[a, 0] - slopes[b, 0]) / gap
            else:
                divided = 0.5 * (slopes[a, 4 + a] + slopes[b, 4 + b]) - slopes[a, 4 + b]
            for i in range(3):
                for m in range(3):
                    straight, crossed = frame[0, i, a] * frame[1, m, b], frame[0, i, b] * frame[1, m, a]
                    one[i, m], other[i, m] = straight + crossed, straight - crossed
            add_product(0.5 * divided, one, one, out)
            add_product(0.5 * (slopes[a, 0] + slopes[b, 0]) / width, other, other, out)


class Further(NamedTuple):
    """Compiled functions of the further invariants of one law; they do nothing where it has none.

    Attributes
    ----------
    measured : (p, f) -> found, whose first entry are the values v
    add_stress : (p, i1, i2, jac, found, out)
    add_tangent : (p, i1, i2, jac, found, f, h, cof, out)
    add_by_parameters : (p, i1, i2, jac, found, f, cof, by_two, out)
        Adds those by the numbers of the formula, and writes those by the directions, which p ends with.
    """

    measured: Callable[..., Any]
    add_stress: Callable[..., None]
    add_tangent: Callable[..., None]
    add_by_parameters: Callable[..., None]


@njit(**INLINED)
def _no_measures(p, f):
    return (p,)


@njit(**INLINED)
def _no_stress(p, i1, i2, jac, found, out):
    return


@njit(**INLINED)
def _no_tangent(p, i1, i2, jac, found, f, h, cof, out):
    return


@njit(**INLINED)
def _no_parameters(p, i1, i2, jac, found, f, cof, by_two, out):
    return


def _by_parameters(
    pairs: IntArray,
    start: int,
    n: int,
    directions: int,
    slopes_of: tuple[Callable[..., None], Callable[..., None]],
    write_stress: Callable[..., None],
) -> Callable[..., None]:
    """Return `Further.add_by_parameters`.

    ``pairs`` (k, 2) are the directions of each invariant of fibres, the first of which is number ``start``;
    ``n`` are the numbers of the formula. ``slopes_of`` write the slopes of W by the further invariants, and those of
    these by the numbers.
    """
    n_pairs, (w_further, w_mixed) = len(pairs), slopes_of

    @njit(**INNER)
    def add_by_parameters(p, i1, i2, jac, found, f, cof, by_two, out):
        v, g, _ = found
        m = v.size
        by = np.empty((n, m))
        w_mixed(p, i1, i2, jac, v, by)
        for k in range(n):
            for one in range(m):
                add_scaled(by[k, one], g[one], out[k])
        if not directions:
            return
        slopes, turned, axis = np.empty((m, 4 + m)), np.empty((3, 3)), np.zeros(3)
        rise, steer, base = np.empty(n_pairs), np.empty((3, 3)), np.empty(3)
        w_further(p, i1, i2, jac, v, slopes)
        for k in range(3 * directions):
            axis[:] = 0.0
            axis[k % 3] = 1.0
            steer[:] = 0.0
            for j in range(n_pairs):
                rise[j] = 0.0
                for side in range(2):
                    if pairs[j, side] == k // 3:
                        rise[j] += along_fibres(f, p[n + 3 * pairs[j, 1 - side] :], axis, turned)
                        add_scaled(slopes[start + j, 0], turned, steer)
            base[:] = 0.0
            for j in range(n_pairs):
                for i in range(3):
                    base[i] += rise[j] * slopes[start + j, 1 + i]
            write_stress(f, cof, base[0], base[1], base[2], by_two, out[n + k])
            add_scaled(1.0, steer, out[n + k])
            for one in range(m):
                for j in range(n_pairs):
                    add_scaled(rise[j] * slopes[one, 4 + start + j], g[one], out[n + k])

    return add_by_parameters


def further_part(
    formula: Formula, words: list[str], names: dict[str, str], write_stress: Callable[..., None]
) -> Further:
    """Return the functions of a formula; ``words`` are its numbers, ``names`` how compiled code finds its symbols."""
    if not formula.further:
        return Further(_no_measures, _no_stress, _no_tangent, _no_parameters)

    n, m, directions = len(words), len(formula.further), formula.directions
    stretched = formula.further[0] in STRETCHES
    start = 3 if stretched else 0
    pairs = np.array([FIBRES[name] for name in formula.further[start:]], dtype=np.int64).reshape(-1, 2)
    n_pairs = len(pairs)
    arguments = "p, i1, i2, jac, v, out"
    given: dict[str, Any] = {"names": names, "domain": formula.domain, **INNER}
    rows = [[first, *second] for first, second in zip(formula.further_first, formula.further_second, strict=True)]
    w_further = compiled("w_further", arguments, [one for row in rows for one in row],
                         into=[f"out[{k}, {j}]" for k in range(m) for j in range(4 + m)], **given)  # fmt: skip
    w_first = compiled("w_first_further", arguments, list(formula.further_first),
                       into=[f"out[{k}]" for k in range(m)], **given)  # fmt: skip
    mixed = [derivative(slope, word) for word in words for slope in formula.further_first]
    w_mixed = compiled("w_mixed_further", arguments, mixed,
                       into=[f"out[{k}, {j}]" for k in range(n) for j in range(m)], **given)  # fmt: skip

    @njit(**INNER)
    def measured(p, f):
        v, g, frame = np.empty(m), np.empty((m, 3, 3)), np.empty((2, 3, 3))
        if stretched:
            principal(f, v, frame)
            for a in range(3):
                for i in range(3):
                    for k in range(3):
                        g[a, i, k] = frame[0, i, a] * frame[1, k, a]
        for j in range(n_pairs):
            u, w = p[n + 3 * pairs[j, 0] :], p[n + 3 * pairs[j, 1] :]
            v[start + j] = along_fibres(f, u, w, g[start + j])
        return v, g, frame

    @njit(**INNER)
    def add_stress(p, i1, i2, jac, found, out):
        slopes = np.empty(m)
        w_first(p, i1, i2, jac, found[0], slopes)
        for k in range(m):
            add_scaled(slopes[k], found[1][k], out)

    @njit(**INNER)
    def add_tangent(p, i1, i2, jac, found, f, h, cof, out):
        v, g, frame = found
        slopes = np.empty((m, 4 + m))
        w_further(p, i1, i2, jac, v, slopes)
        add_products(slopes, v, g, f, h, cof, out)
        if stretched:
            add_turning(slopes, v, frame, out)
        for j in range(n_pairs):
            u, w = p[n + 3 * pairs[j, 0] :], p[n + 3 * pairs[j, 1] :]
            for i in range(3):
                for k in range(3):
                    for o in range(3):
                        out[i, i, k, o] += slopes[start + j, 0] * (u[k] * w[o] + w[k] * u[o])

    add_by_parameters = _by_parameters(pairs, start, n, directions, (w_further, w_mixed), write_stress)
    return Further(measured, add_stress, add_tangent, add_by_parameters)
