"""Signed distances of simple shapes, with gradient and Hessian, branch by branch.

Every smooth branch ("feature") of every shape here is one of three formulas, X being the point in the shape's frame:

    half space   g = s X_k - h,             n = s e_k,                     Hessian 0
    round        g = |m (X - c)| - r,       n = m (X - c) / |m (X - c)|,   Hessian (diag(m) - n n^T) / |m (X - c)|
    rim          d = sqrt(a^2 + b^2),       n = (a e_rho + b s e_z) / d,   Hessian t t^T / d + a e_phi e_phi^T / (d rho)
                 a = rho - r, b = s X_2 - l, t = (-b e_rho + a s e_z) / d,  rho = |(X_0, X_1)|,  g = d or d - r'

where `m` is a 0/1 mask of axes (three axes: distance to a point; two: to a line). The gap g is negative inside and the
exact Euclidean distance outside; inside it is minus the depth below the nearest part of the surface. Hence a box or a
cylinder is only ever *penetrated* through a face, a side or a flat cap: edges, corners and rims are outside.

Sites (small ints, unique within a shape)
    PLANE, SPHERE   0
    BOX             9 (s_0 + 1) + 3 (s_1 + 1) + (s_2 + 1), s the signs of the axes that are clamped: one for a face
                    (4, 10, 12, 14, 16, 22), two for an edge, three for a corner. 13 does not occur.
    CAPSULE         SIDE, TOP, BOTTOM (round caps)
    CYLINDER        SIDE, TOP, BOTTOM (flat caps), RIM_TOP, RIM_BOTTOM
    both            27 and more: faces that go on beyond edges, see `facing_feature`
    MESH            faces, edges, vertices of a closed mesh (`mesh_distance.py`); its "size" is a row with all of it

An imposed feature evaluates the same formula wherever the point is: the smooth continuation a replayed step needs.
The normal is undefined on the axis or centre of a round branch; there, and as near to it as `ON_AXIS` says, it is the
first axis of the mask, Hessian 0: a Hessian of 1e17/m makes a matrix beside which every force is rounding.
"""

import math

from add.kernels.caching import njit
from add.kernels.mesh_distance import call_mesh_branch, call_mesh_feature
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, MESH, PLANE, SPHERE, further_kernels

SIDE, TOP, BOTTOM, RIM_TOP, RIM_BOTTOM = 0, 1, 2, 3, 4
#: Share of a radius within which a point is on the axis, or at the centre.
ON_AXIS = 1e-8
#: First feature of a face that goes on beyond an edge, and how many there are of each radius.
BESIDE, MANY_BESIDE = 27, 81
#: Share of a size by which faces go on flat beyond edges: nothing changes just where bodies are flush.
FLUSH = 1e-3
#: Radius with which faces go on beyond edges, in sizes 1/(1/s_0 + 1/s_1 + 1/s_2) or 1/(1/r + 1/l).
FALL = 0.75
#: Share of that radius down to which a corner beside a face meets it where that goes on.
DEEP = 0.8
#: The sum of a corner's normals along a face's from which on the corner looks away from that face.
AWAY = 0.75


@njit(error_model="numpy")
def _never(kind, size0, size1, size2, X0, X1, X2):
    """Whether a point is inside a shape of no known kind."""
    return False


@njit(error_model="numpy")
def _no_bound(kind, size0, size1, size2):
    """Bound of a shape of no known kind."""
    return math.inf


@njit(error_model="numpy")
def _no_feature(kind, size, X0, X1, X2):
    """Feature of a shape of no known kind."""
    return 0


@njit(error_model="numpy")
def _no_branch(kind, size, X0, X1, X2, feature, order, n, H):
    """Gap of a shape of no known kind: it is infinitely far away."""
    return math.inf


def _dispatch(part, otherwise):
    """Return a compiled function (kind, *arguments) that calls this part of the further shapes, else ``otherwise``."""
    chosen = otherwise
    for kernel in further_kernels():
        chosen = _either(kernel.code, getattr(kernel, part), chosen)
    return chosen


def _either(code, own, others):
    @njit(error_model="numpy")
    def choose(kind, *arguments):
        if kind == code:
            return own(*arguments)
        return others(kind, *arguments)

    return choose


_further_inside, _further_bound = _dispatch("inside", _never), _dispatch("bound", _no_bound)
_further_feature, _further_branch = _dispatch("feature", _no_feature), _dispatch("branch", _no_branch)


@njit(cache=True, error_model="numpy")
def distance_inside(kind, size0, size1, size2, X0, X1, X2):
    """Whether the gap of (X0, X1, X2) is negative, without a square root (so up to rounding); not for meshes."""
    if kind > CYLINDER:
        return _further_inside(kind, size0, size1, size2, X0, X1, X2)
    if kind == PLANE:
        return X2 < 0.0
    if kind == SPHERE:
        return X0 * X0 + X1 * X1 + X2 * X2 < size0 * size0
    if kind == BOX:
        return abs(X0) < size0 and abs(X1) < size1 and abs(X2) < size2
    beyond = abs(X2) - size1
    if kind == CAPSULE:
        beyond = max(beyond, 0.0)
        return X0 * X0 + X1 * X1 + beyond * beyond < size0 * size0
    return beyond < 0.0 and X0 * X0 + X1 * X1 < size0 * size0


@njit(cache=True, error_model="numpy")
def distance_bound(kind, size0, size1, size2):
    """Radius of a ball about the origin of the frame that holds the shape [m]; infinite for a plane."""
    if kind > MESH:
        return _further_bound(kind, size0, size1, size2)
    if kind == PLANE:
        return math.inf
    if kind == SPHERE:
        return size0
    if kind == BOX or kind == MESH:
        return math.sqrt(size0 * size0 + size1 * size1 + size2 * size2)
    if kind == CYLINDER:
        return math.sqrt(size0 * size0 + size1 * size1)
    return size0 + size1


@njit(cache=True, error_model="numpy")
def distance_feature(kind, size, X0, X1, X2):
    """Feature of the point (X0, X1, X2) of the obstacle's frame: the branch whose formula is the distance there."""
    if kind == BOX:
        q0, q1, q2 = abs(X0) - size[0], abs(X1) - size[1], abs(X2) - size[2]
        largest = max(q0, q1, q2)
        if largest > 0.0:
            on0, on1, on2 = q0 > 0.0, q1 > 0.0, q2 > 0.0
        else:
            on0 = q0 == largest
            on1 = not on0 and q1 == largest
            on2 = not on0 and not on1
        code = 13
        if on0:
            code += 9 if X0 >= 0.0 else -9
        if on1:
            code += 3 if X1 >= 0.0 else -3
        if on2:
            code += 1 if X2 >= 0.0 else -1
        return code
    if kind == CAPSULE:
        if abs(X2) <= size[1]:
            return SIDE
        return TOP if X2 >= 0.0 else BOTTOM
    if kind == CYLINDER:
        a, b = math.sqrt(X0 * X0 + X1 * X1) - size[0], abs(X2) - size[1]
        if a > 0.0 and b > 0.0:
            return RIM_TOP if X2 >= 0.0 else RIM_BOTTOM
        if a > b:
            return SIDE
        return TOP if X2 >= 0.0 else BOTTOM
    if kind == MESH:
        return call_mesh_feature((size, X0, X1, X2))
    if kind > MESH:
        return _further_feature(kind, size, X0, X1, X2)
    return 0


@njit(cache=True, error_model="numpy")
def fall_radius(kind, size):
    """Radius [m] with which faces of a box or a cylinder go on beyond edges."""
    if kind == BOX:
        return FALL / (1.0 / size[0] + 1.0 / size[1] + 1.0 / size[2])
    return FALL / (1.0 / size[0] + 1.0 / size[1])


@njit(cache=True, error_model="numpy")
def facing_feature(kind, size, X0, X1, X2, M0, M1, M2, widest):
    """Feature of a box or a cylinder that the corner of another body meets.

    M is the sum of the normals of the faces that meet in the corner. It comes through faces that it is against, and not
    through one that it looks away from, behind which its body lies: where the corner is almost flush with that, as in a
    pile of equal bricks or where one tips over the end of another, the nearest face would let it pass. Beyond an edge
    to such a face, where a corner of this body takes over, the face that it meets goes on and falls away with
    `fall_radius`, halved until it is no more than about ``widest`` [m], so that forces end smoothly. Where it looks
    away from none, and deeper than half of the thinnest way through, distance alone decides.
    """
    nearest, feature, faced, outside, past, away = -math.inf, -1, 0, 0, 0, False
    rho = math.sqrt(X0 * X0 + X1 * X1)
    for axis in range(3 if kind == BOX else 2):
        if kind == BOX:
            X, M, code = (X0, M0, 9) if axis == 0 else ((X1, M1, 3) if axis == 1 else (X2, M2, 1))
            code = code if X >= 0.0 else -code
            beyond, way, face = abs(X) - size[axis], M if X >= 0.0 else -M, 13 + code
        elif axis == 0:
            beyond, way, face, code = rho - size[0], (X0 * M0 + X1 * M1) / max(rho, 1e-300), SIDE, 1
        else:
            beyond, way, face = abs(X2) - size[1], M2 if X2 >= 0.0 else -M2, TOP if X2 >= 0.0 else BOTTOM
            code = 1 if X2 >= 0.0 else 2
        if way > AWAY:
            past += code if beyond > FLUSH * size[axis] else 0
            away = True
            continue
        outside += beyond > 0.0
        if beyond > nearest:
            nearest, feature, faced = beyond, face if way < 0.0 else -1, axis
    if feature < 0 or outside > 1 or not away:
        return distance_feature(kind, size, X0, X1, X2)
    radius, level = fall_radius(kind, size), 0
    while radius > math.sqrt(2.0) * widest and level < 60:
        radius, level = 0.5 * radius, level + 1
    least = min(size[0], size[1], size[2]) if kind == BOX else min(size[0], size[1])
    if nearest < -(DEEP * radius if past > 0 else least):
        return distance_feature(kind, size, X0, X1, X2)
    if past == 0:
        return feature
    # Of a cylinder the side is axis 0, a cap axis 1: which cap says all.
    at = feature + past if kind == BOX or faced == 0 else feature
    return BESIDE + MANY_BESIDE * level + 27 * faced + at


@njit(cache=True, error_model="numpy")
def beside(kind, size, feature):
    """Return a feature as an edge or a cap, the axis that the face is across which goes on there (-1: none) and r."""
    if feature < BESIDE or not (kind == BOX or kind == CYLINDER):
        return feature, -1, 0.0
    level, at = divmod(feature - BESIDE, MANY_BESIDE)
    return at % 27, at // 27, fall_radius(kind, size) * 0.5**level


@njit(cache=True, error_model="numpy")
def is_flat(kind, size, feature):
    """Whether a feature is part of a plane: its normal is the same everywhere."""
    if kind == BOX:
        return feature == 4 or feature == 10 or feature == 12 or feature == 14 or feature == 16 or feature == 22
    if kind == CYLINDER:
        return feature == TOP or feature == BOTTOM
    return kind == PLANE or (kind == MESH and feature < size[4])


@njit(cache=True, error_model="numpy")
def is_round(kind, feature):
    """Whether a feature is part of a ball or of the side of a cylinder, or goes on beyond an edge."""
    if kind == BOX or (kind == CYLINDER and feature >= BESIDE):
        return feature >= BESIDE
    return kind == SPHERE or kind == CAPSULE or (kind == CYLINDER and feature == SIDE)


@njit(cache=True, error_model="numpy")
def distance_branch(kind, size, X0, X1, X2, feature, order, n, H):
    """Gap [m] of one branch; fills n (3,) = grad g if order >= 1 and H (3, 3) [1/m] if order >= 2.

    kind, size (3,) [m]   obstacle code and dimensions (see `docs/architecture.md`)
    X0, X1, X2            point in the obstacle's frame [m]; n and H are in that frame too
    feature               branch, from `distance_feature` or imposed
    """
    if order >= 2:
        for r in range(3):
            for c in range(3):
                H[r, c] = 0.0
    if kind == MESH:
        return call_mesh_branch((size, X0, X1, X2, feature, order, n, H))
    if kind > MESH:
        return _further_branch(kind, size, X0, X1, X2, feature, order, n, H)

    # Reduce the branch to one of the three formulas.
    feature, faced, fall = beside(kind, size, feature)
    edge = 1.0 + FLUSH if faced >= 0 else 1.0
    s0, s1, s2, h = 0.0, 0.0, 0.0, 0.0  # half space: signs, offset
    m0, m1, m2 = 1.0, 1.0, 1.0  # round: mask
    y0, y1, y2, radius = X0, X1, X2, fall
    flat = False
    if kind == PLANE:
        flat, s2 = True, 1.0
    elif kind == SPHERE:
        radius = size[0]
    elif kind == BOX:
        s0, s1, s2 = feature // 9 - 1.0, feature // 3 % 3 - 1.0, feature % 3 - 1.0
        m0, m1, m2 = abs(s0), abs(s1), abs(s2)
        flat = m0 + m1 + m2 == 1.0
        h = m0 * size[0] + m1 * size[1] + m2 * size[2]
        f0 = size[0] - fall if faced == 0 else edge * size[0]
        f1 = size[1] - fall if faced == 1 else edge * size[1]
        f2 = size[2] - fall if faced == 2 else edge * size[2]
        y0, y1, y2 = m0 * X0 - s0 * f0, m1 * X1 - s1 * f1, m2 * X2 - s2 * f2
    elif faced >= 0:
        s2 = 1.0 if feature == TOP else -1.0
        r, h = (size[0] - fall, edge * size[1]) if faced == 0 else (edge * size[0], size[1] - fall)
        return _rim(r, s2 * X2 - h, s2, X0, X1, order, n, H) - fall
    elif feature == SIDE:  # capsule and cylinder
        radius, m2, y2 = size[0], 0.0, 0.0
    else:
        s2 = 1.0 if (feature == TOP or feature == RIM_TOP) else -1.0
        if kind == CAPSULE:
            radius, y2 = size[0], X2 - s2 * size[1]
        elif feature == TOP or feature == BOTTOM:
            flat, h = True, size[1]
        else:
            return _rim(size[0], s2 * X2 - size[1], s2, X0, X1, order, n, H)

    if flat:
        if order >= 1:
            n[0], n[1], n[2] = s0, s1, s2
        return s0 * X0 + s1 * X1 + s2 * X2 - h

    length = math.sqrt(y0 * y0 + y1 * y1 + y2 * y2)
    if order >= 1:
        if length > ON_AXIS * radius:
            n[0], n[1], n[2] = y0 / length, y1 / length, y2 / length
            if order >= 2:
                for r in range(3):
                    for c in range(3):
                        H[r, c] = -n[r] * n[c] / length
                H[0, 0] += m0 / length
                H[1, 1] += m1 / length
                H[2, 2] += m2 / length
        else:
            n[0], n[1], n[2] = m0, (1.0 - m0) * m1, 0.0
    return length - radius


@njit(cache=True, error_model="numpy")
def _rim(radius, b, s, X0, X1, order, n, H):
    """Distance to a circle about the axis, as it bounds a flat cap of a cylinder (third formula of the module)."""
    rho = math.sqrt(X0 * X0 + X1 * X1)
    e0, e1 = (X0 / rho, X1 / rho) if rho > 0.0 else (1.0, 0.0)
    a = rho - radius
    g = math.sqrt(a * a + b * b)
    if order >= 1:
        if g > 0.0:
            n[0], n[1], n[2] = a * e0 / g, a * e1 / g, b * s / g
        else:
            n[0], n[1], n[2] = e0, e1, 0.0
    if order >= 2 and g > 0.0 and rho > 0.0:
        t0, t1, t2 = -b * e0 / g, -b * e1 / g, a * s / g
        k = a / (g * rho)
        H[0, 0] = t0 * t0 / g + k * e1 * e1
        H[0, 1] = t0 * t1 / g - k * e0 * e1
        H[1, 1] = t1 * t1 / g + k * e0 * e0
        H[0, 2] = t0 * t2 / g
        H[1, 2] = t1 * t2 / g
        H[2, 2] = t2 * t2 / g
        H[1, 0], H[2, 0], H[2, 1] = H[0, 1], H[0, 2], H[1, 2]
    return g


@njit(cache=True, error_model="numpy")
def signed_distance(kind, size, X, feature, n, H):
    """Gap [m] and feature of the point X (3,) of the obstacle's frame; fills n (3,) [-] and H (3, 3) [1/m].

    `feature < 0` decides the branch, `feature >= 0` imposes it.
    """
    if feature < 0:
        feature = distance_feature(kind, size, X[0], X[1], X[2])
    g = distance_branch(kind, size, X[0], X[1], X[2], feature, 2, n, H)
    return g, feature
