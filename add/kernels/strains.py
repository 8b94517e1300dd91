"""Strains of small stencils of nodes, with first and second derivatives: stretch of triangles, bending, lengths, turns.

A strain z (nz,) of the places x (m, 3) of a stencil's nodes is two functions:

    value(x, places, shape, work, z, dz)        fills z and dz/dx (nz, 3 m)
    second(x, places, shape, g, v, work, out, turned)
                                                adds sum_a g_a d2z_a/dx2 to out (3 m, 3 m) and, of rates v (m, 3),
                                                d2z_a/dx2 v to turned (nz, 3 m); v may be empty, and asks for none

``places`` (integers) and ``shape`` (floats) say what is known of the stencil at rest; ``work`` (13, 12) is scratch.
"""

import math

from add.kernels.caching import INNER, njit

# --- stretch of a triangle --------------------------------------------------------------------------------------------


@njit(**INNER)
def membrane_value(x, places, shape, work, z, dz):
    """Fill C_11, C_22, C_12 of C = F^T F, F = sum_k x_k b_k^T, b_k (2,) the gradients of the shape functions at rest.

    ``shape`` (6,) is b_0, b_1, b_2; axes 1 and 2 are warp and weft.
    """
    along, across = work[0], work[1]
    for i in range(3):
        along[i] = shape[0] * x[0, i] + shape[2] * x[1, i] + shape[4] * x[2, i]
        across[i] = shape[1] * x[0, i] + shape[3] * x[1, i] + shape[5] * x[2, i]
    z[:] = 0.0
    for i in range(3):
        z[0] += along[i] * along[i]
        z[1] += across[i] * across[i]
        z[2] += along[i] * across[i]
        for k in range(3):
            dz[0, 3 * k + i] = 2.0 * shape[2 * k] * along[i]
            dz[1, 3 * k + i] = 2.0 * shape[2 * k + 1] * across[i]
            dz[2, 3 * k + i] = shape[2 * k] * across[i] + shape[2 * k + 1] * along[i]


@njit(**INNER)
def membrane_second(x, places, shape, g, v, work, out, turned):
    """Add the constant second derivatives of C."""
    for k in range(3):
        for l in range(3):
            p, q, s, t = shape[2 * k], shape[2 * k + 1], shape[2 * l], shape[2 * l + 1]
            along, across, both = 2.0 * p * s, 2.0 * q * t, p * t + q * s
            value = g[0] * along + g[1] * across + g[2] * both
            for i in range(3):
                out[3 * k + i, 3 * l + i] += value
                if v.size:
                    turned[0, 3 * k + i] += along * v[l, i]
                    turned[1, 3 * k + i] += across * v[l, i]
                    turned[2, 3 * k + i] += both * v[l, i]


# --- angles of hinges -------------------------------------------------------------------------------------------------


@njit(**INNER)
def _between(x, i, j):
    return x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]


@njit(**INNER)
def _cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@njit(**INNER)
def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(**INNER, cache=True)  # which meshes of cloth call
def hinge_angle(x, at, work, second):
    """Return the angle theta of a hinge, 0 where it is flat; fill its gradient and, if ``second``, its Hessian.

    Nodes ``at`` (4,): the edge x_0 x_1, then x_2 and x_3 opposite; n_0 = e x (x_2 - x_0), n_1 = (x_3 - x_0) x e,

        theta = atan2((n_0 x n_1) . e/|e|, n_0 . n_1),  e = x_1 - x_0,

    Over the vectors e, a = x_2 - x_0 and b = x_3 - x_0 (Tamstorf and Grinspun 2013 in other words), with n = e x w,

        dtheta/dw = g = -+ |e| n/|n|^2,   dtheta/de = -sum s g,  s = w . e/|e|^2,  w = a (upper sign) and b.

    ``work[0]`` takes the gradient by x_0 .. x_3, ``work[1:13]`` the Hessian.
    """
    # Vectors are tuples: six arrays would take three times as long as all else of a gradient.
    e, a, b = _between(x, at[0], at[1]), _between(x, at[0], at[2]), _between(x, at[0], at[3])
    gradient, hessian = work[0], work[1:13]
    gradient[:] = 0.0
    if second:
        hessian[:] = 0.0
    long2 = _dot(e, e)
    long = math.sqrt(long2)
    n0, n1 = _cross(e, a), _cross(b, e)
    sine, cosine = _dot(_cross(n0, n1), e) / long, _dot(n0, n1)
    for wing in range(2):
        w = a if wing == 0 else b
        # n_1 is -(e x b), and so is its sign.
        n = n0 if wing == 0 else n1
        sign = -1.0 if wing == 0 else 1.0
        big, s = _dot(n, n), _dot(w, e) / long2
        row = 6 + 3 * wing
        for i in range(3):
            g = -long * n[i] / big
            gradient[row + i] = g
            gradient[3 + i] -= s * g
        if not second:
            continue
        for i in range(3):
            g = gradient[row + i]
            for j in range(3):
                # dn/de and dn/dw turn about: columns of -[w]x and [e]x times the sign of n.
                k, l = (j + 1) % 3, (j + 2) % 3
                across_w, across_e = 0.0, 0.0
                for p, turn_w, turn_e in ((k, w[l], -e[l]), (l, -w[k], e[k])):
                    kept = (1.0 if i == p else 0.0) - 2.0 * n[i] * n[p] / big
                    across_w -= kept * turn_w
                    across_e -= kept * turn_e
                by_w = sign * long / big * across_e
                by_e = sign * long / big * across_w - n[i] / big * e[j] / long
                hessian[row + i, row + j] = by_w
                hessian[row + i, 3 + j] = by_e
                hessian[3 + j, row + i] = by_e
                hessian[3 + i, 3 + j] -= g * (w[j] - 2.0 * s * e[j]) / long2 + s * by_e
    for i in range(3):
        gradient[i] = -gradient[3 + i] - gradient[6 + i] - gradient[9 + i]
    if second:
        for i in range(12):
            for j in range(3):
                hessian[i, j] = -hessian[i, 3 + j] - hessian[i, 6 + j] - hessian[i, 9 + j]
        for j in range(12):
            for i in range(3):
                hessian[i, j] = -hessian[3 + i, j] - hessian[6 + i, j] - hessian[9 + i, j]
    return math.atan2(sine, cosine)


@njit(**INNER)
def bends_value(x, places, shape, work, z, dz):
    """Fill z_a = sum_h c_ah (theta_h - theta_0h), the differences by the nearest turn: a hinge goes on past pi.

    ``places`` (4 n,) the nodes of n hinges, ``shape`` their theta_0 (n,), then c (nz, n).
    """
    n = places.size // 4
    z[:] = 0.0
    dz[:] = 0.0
    for h in range(n):
        at = places[4 * h : 4 * h + 4]
        bent = hinge_angle(x, at, work, False) - shape[h]
        bent -= 2.0 * math.pi * round(bent / (2.0 * math.pi))
        for a in range(z.size):
            c = shape[n + n * a + h]
            z[a] += c * bent
            for k in range(4):
                for i in range(3):
                    dz[a, 3 * at[k] + i] += c * work[0, 3 * k + i]


@njit(**INNER)
def bends_second(x, places, shape, g, v, work, out, turned):
    """Add the second derivatives of all hinges."""
    n = places.size // 4
    for h in range(n):
        at = places[4 * h : 4 * h + 4]
        c = 0.0
        for a in range(g.size):
            c += g[a] * shape[n + n * a + h]
        if c == 0.0 and not v.size:
            continue
        hinge_angle(x, at, work, True)
        for k in range(4):
            for i in range(3):
                row, rate = work[1 + 3 * k + i], 0.0
                for l in range(4):
                    for j in range(3):
                        out[3 * at[k] + i, 3 * at[l] + j] += c * row[3 * l + j]
                        if v.size:
                            rate += row[3 * l + j] * v[at[l], j]
                for a in range(g.size):
                    if v.size:
                        turned[a, 3 * at[k] + i] += shape[n + n * a + h] * rate


# --- lengths and turns of a line --------------------------------------------------------------------------------------


@njit(**INNER)
def _direction(x, first, out):
    """Fill the unit vector of two nodes; return their distance."""
    for i in range(3):
        out[i] = x[first + 1, i] - x[first, i]
    length = math.sqrt(_dot(out, out))
    for i in range(3):
        out[i] /= length
    return length


@njit(**INNER)
def length_value(x, places, shape, work, z, dz):
    """Fill the stretch |x_1 - x_0| / L, ``shape`` = (L,)."""
    t = work[0]
    z[0] = _direction(x, 0, t) / shape[0]
    for i in range(3):
        dz[0, i], dz[0, 3 + i] = -t[i] / shape[0], t[i] / shape[0]


@njit(**INNER)
def length_second(x, places, shape, g, v, work, out, turned):
    """Add the second derivative (I - t t^T) / (L |x_1 - x_0|) in the pattern of a difference."""
    t = work[0]
    scale = 1.0 / (shape[0] * _direction(x, 0, t))
    for i in range(3):
        for j in range(3):
            value = scale * ((1.0 if i == j else 0.0) - t[i] * t[j])
            for k in range(2):
                for l in range(2):
                    signed = value if k == l else -value
                    out[3 * k + i, 3 * l + j] += g[0] * signed
                    if v.size:
                        turned[0, 3 * k + i] += signed * v[l, j]


@njit(**INNER)
def turn_value(x, places, shape, work, z, dz):
    """Fill c = t_0 . t_1, the cosine between two neighbouring segments of three nodes."""
    t, u = work[0], work[1]
    before, after = _direction(x, 0, t), _direction(x, 1, u)
    c = t[0] * u[0] + t[1] * u[1] + t[2] * u[2]
    z[0] = c
    for i in range(3):
        by_first, by_second = (u[i] - c * t[i]) / before, (t[i] - c * u[i]) / after
        dz[0, i], dz[0, 3 + i], dz[0, 6 + i] = -by_first, by_first - by_second, by_second


@njit(**INNER)
def turn_second(x, places, shape, g, v, work, out, turned):
    """Add the second derivative; nothing resists its rate.

    Of e_0 and e_1 with P = I - t t^T:

    d2c/de_0 de_0 = -(t_0 t_1^T + t_1 t_0^T + c (I - 3 t_0 t_0^T)) / |e_0|^2,  d2c/de_0 de_1 = P_0 P_1 / (|e_0| |e_1|)
    """
    t, u = work[0], work[1]
    before, after = _direction(x, 0, t), _direction(x, 1, u)
    c = t[0] * u[0] + t[1] * u[1] + t[2] * u[2]
    for i in range(3):
        for j in range(3):
            same = 1.0 if i == j else 0.0
            both = t[i] * u[j] + u[i] * t[j]
            first = -g[0] * (both + c * (same - 3.0 * t[i] * t[j])) / before**2
            second = -g[0] * (both + c * (same - 3.0 * u[i] * u[j])) / after**2
            mixed = g[0] * (same - t[i] * t[j] - u[i] * u[j] + c * t[i] * u[j]) / (before * after)
            turned = g[0] * (same - t[i] * t[j] - u[i] * u[j] + c * t[j] * u[i]) / (before * after)
            out[i, j] += first
            out[6 + i, 6 + j] += second
            out[i, 6 + j] -= mixed
            out[6 + i, j] -= turned
            out[i, 3 + j] += mixed - first
            out[3 + i, j] += turned - first
            out[3 + i, 6 + j] += mixed - second
            out[6 + i, 3 + j] += turned - second
            out[3 + i, 3 + j] += first + second - mixed - turned
