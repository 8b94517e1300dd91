"""Places, velocities, rows and their derivatives of contact pairs without penalties, pair by pair.

`add.hard_contact.geometry` has the equations; the names here are those of its text.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.caching import njit
from add.kernels.distance import signed_distance
from add.kernels.rotation import fill_left_jacobian, fill_rotation, jacobian_coefficients, turn, turn_derivative
from add.typing import BoolArray, FloatArray, IntArray

_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}


class PairArrays(NamedTuple):
    """What may touch what; see `add.hard_contact.pairs.ContactPairs`."""

    first: IntArray
    rigid: BoolArray
    arm: FloatArray
    radius: FloatArray
    centre: IntArray
    kind: IntArray
    size: FloatArray
    host: IntArray
    host_centre: IntArray
    rotation: FloatArray
    position: FloatArray
    velocity: FloatArray


class Side(NamedTuple):
    """Contribution of one of the two bodies of every pair; zero where it is a node or the world.

    Attributes
    ----------
    rotation : (m, 3) rotation vector
    matrix, turn, rate : (m, 3, 3) R, J and D
    omega : (m, 3) angular velocity [1/s]
    rho, arm : (m, 3) from the centre of mass to the point, and to where the surfaces meet [m]
    """

    rotation: FloatArray
    matrix: FloatArray
    turn: FloatArray
    rate: FloatArray
    omega: FloatArray
    rho: FloatArray
    arm: FloatArray

    def select(self, rows: IntArray) -> "Side":
        """Return that of some pairs."""
        return Side(*(part[rows] for part in self))


class Touches(NamedTuple):
    """Gaps, normals, velocities and places of pairs; rows follow the pairs.

    Attributes
    ----------
    gap : (m,) [m]
    normal : (m, 3) away from the shape
    velocity : (m, 3) of the point's surface relative to the shape's [m/s]
    place : (m, 3) where the surfaces meet [m]
    hessian : (m, 3, 3) of the distance [1/m]
    normal_velocity : (m,) relative velocity along the normal [m/s]
    carrier, host : Side
        Of the point and of the shape.
    """

    gap: FloatArray
    normal: FloatArray
    velocity: FloatArray
    place: FloatArray
    hessian: FloatArray
    normal_velocity: FloatArray
    carrier: Side
    host: Side

    def select(self, rows: IntArray) -> "Touches":
        """Return some of the pairs."""
        numbers = (self.gap, self.normal, self.velocity, self.place, self.hessian, self.normal_velocity)
        gap, normal, velocity, place, hessian, along = (part[rows] for part in numbers)
        carrier, host = self.carrier.select(rows), self.host.select(rows)
        return Touches(gap, normal, velocity, place, hessian, along, carrier, host)

    @property
    def tangential_velocity(self) -> FloatArray:
        """Relative velocity across the normal (m, 3) [m/s]."""
        return self.velocity - self.normal_velocity[:, None] * self.normal


class Rows(NamedTuple):
    """Rows of contacts in velocities.

    Attributes
    ----------
    axes : (k, 3, 3) columns t_1, t_2, n
    dofs : (k, 12) coordinates of carrier and host, -1 for none
    push : (k, 12, 3) generalised force per force, world axes
    local : (k, 3, 12) rows over the coordinates of the pairs, in their axes
    matrix : (3 k, n) rows over all coordinates
    """

    axes: FloatArray
    dofs: IntArray
    push: FloatArray
    local: FloatArray
    matrix: FloatArray


@njit(**_JIT)
def _new_side(m):
    return Side(
        np.zeros((m, 3)), np.zeros((m, 3, 3)), np.zeros((m, 3, 3)), np.zeros((m, 3, 3)), np.zeros((m, 3)),
        np.zeros((m, 3)), np.zeros((m, 3)),
    )  # fmt: skip


@njit(**_JIT)
def _fill_side(side, i, first, q, v, k):
    """Write rotation and rates of the rigid body at ``first`` to row i."""
    w, w_dot = q[first + 3 : first + 6], v[first + 3 : first + 6]
    jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
    side.rotation[i] = w
    fill_rotation(w, k, side.matrix[i])
    fill_left_jacobian(w, k, side.turn[i])
    turn(1.0, w, w_dot, k, side.omega[i])
    turn_derivative(1.0, w, w_dot, k, side.rate[i])


@njit(**_JIT)
def _add_cross(sign, a, b, out):
    """Add sign a x b to ``out`` (3,)."""
    out[0] += sign * (a[1] * b[2] - a[2] * b[1])
    out[1] += sign * (a[2] * b[0] - a[0] * b[2])
    out[2] += sign * (a[0] * b[1] - a[1] * b[0])


@njit(**_JIT)
def touches(pairs, q, v, t, theta):
    """Return where all pairs are at (q, v) and time t."""
    m = pairs.first.size
    gap, normal, velocity, place = np.empty(m), np.empty((m, 3)), np.empty((m, 3)), np.empty((m, 3))
    hessian, along, carrier, host = np.empty((m, 3, 3)), np.empty(m), _new_side(m), _new_side(m)
    k, c, p, x, n = np.empty(6), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    R, H = np.empty((3, 3)), np.empty((3, 3))
    for i in range(m):
        a, b, rigid = pairs.first[i], pairs.host[i], pairs.rigid[i]
        if rigid:
            _fill_side(carrier, i, a, q, v, k)
            for j in range(3):
                centre = pairs.centre[i, j]
                x[j] = pairs.arm[i, j] - (theta[centre] if centre >= 0 else 0.0)
            for r in range(3):
                for j in range(3):
                    carrier.rho[i, r] += carrier.matrix[i, r, j] * x[j]
        for r in range(3):
            c[r] = q[a + r] + carrier.rho[i, r]
            velocity[i, r] = v[a + r] - pairs.velocity[i, r]
            p[r] = pairs.position[i, r] + t * pairs.velocity[i, r]
            for j in range(3):
                R[r, j] = pairs.rotation[i, r, j]
        if b >= 0:
            _fill_side(host, i, b, q, v, k)
            for j in range(3):
                centre = pairs.host_centre[i, j]
                x[j] = pairs.position[i, j] - (theta[centre] if centre >= 0 else 0.0)
            for r in range(3):
                p[r] = q[b + r]
                host.rho[i, r] = c[r] - q[b + r]
                velocity[i, r] -= v[b + r]
                for j in range(3):
                    p[r] += host.matrix[i, r, j] * x[j]
                    R[r, j] = 0.0
                    for s in range(3):
                        R[r, j] += host.matrix[i, r, s] * pairs.rotation[i, s, j]
        for r in range(3):
            x[r] = 0.0
            for j in range(3):
                x[r] += R[j, r] * (c[j] - p[j])
        gap[i] = signed_distance(pairs.kind[i], pairs.size[i], x, -1, n, H)[0] - pairs.radius[i]
        lever = pairs.radius[i] if rigid else 0.0
        for r in range(3):
            normal[i, r] = R[r, 0] * n[0] + R[r, 1] * n[1] + R[r, 2] * n[2]
            for j in range(3):
                total = 0.0
                for s in range(3):
                    for u in range(3):
                        total += R[r, s] * H[s, u] * R[j, u]
                hessian[i, r, j] = total
            if rigid:
                carrier.arm[i, r] = carrier.rho[i, r] - lever * normal[i, r]
            if b >= 0:
                host.arm[i, r] = host.rho[i, r] - lever * normal[i, r]
            place[i, r] = c[r] - pairs.radius[i] * normal[i, r]
        _add_cross(1.0, carrier.omega[i], carrier.arm[i], velocity[i])
        _add_cross(-1.0, host.omega[i], host.arm[i], velocity[i])
        along[i] = normal[i, 0] * velocity[i, 0] + normal[i, 1] * velocity[i, 1] + normal[i, 2] * velocity[i, 2]
    return Touches(gap, normal, velocity, place, hessian, along, carrier, host)


@njit(**_JIT)
def _fill_push(hosted, at, i, push):
    """Write the generalised force per force (12, 3): one on the carrier, the opposite on the host."""
    for half in range(2):
        side, sign, first = (at.carrier, 1.0, 0) if half == 0 else (at.host, -1.0, 6)
        arm, J = side.arm[i], side.turn[i]
        if half == 0 or hosted:
            for r in range(3):
                push[first + r, r] = sign
        for r in range(3):
            # (J^T [arm])_r = J_r x arm, J_r the columns of J
            push[first + 3 + r, 0] = sign * (J[1, r] * arm[2] - J[2, r] * arm[1])
            push[first + 3 + r, 1] = sign * (J[2, r] * arm[0] - J[0, r] * arm[2])
            push[first + 3 + r, 2] = sign * (J[0, r] * arm[1] - J[1, r] * arm[0])


@njit(**_JIT)
def _fill_axes(n, axes):
    """Write t_1 along n x e, e the world axis that is furthest from n; t_2 = n x t_1; n."""
    far = 0
    for r in range(1, 3):
        if abs(n[r]) < abs(n[far]):
            far = r
    j, l = (far + 1) % 3, (far + 2) % 3
    size = np.sqrt(n[j] * n[j] + n[l] * n[l])
    axes[far, 0], axes[j, 0], axes[l, 0] = 0.0, n[l] / size, -n[j] / size
    for r in range(3):
        a, b = (r + 1) % 3, (r + 2) % 3
        axes[r, 1] = n[a] * axes[b, 0] - n[b] * axes[a, 0]
        axes[r, 2] = n[r]


@njit(**_JIT)
def rows(pairs, at, numbers, n):
    """Return the rows of the pairs of these ``numbers`` over n coordinates."""
    k = numbers.size
    axes, push, local = np.empty((k, 3, 3)), np.zeros((k, 12, 3)), np.empty((k, 3, 12))
    dofs, matrix = np.full((k, 12), -1, dtype=np.int64), np.zeros((3 * k, n))
    for i in range(k):
        pair = numbers[i]
        _fill_axes(at.normal[pair], axes[i])
        _fill_push(pairs.host[pair] >= 0, at, pair, push[i])
        for p in range(6 if pairs.rigid[pair] else 3):
            dofs[i, p] = pairs.first[pair] + p
        if pairs.host[pair] >= 0:
            for p in range(6):
                dofs[i, 6 + p] = pairs.host[pair] + p
        for a in range(3):
            for p in range(12):
                total = 0.0
                for r in range(3):
                    total += axes[i, r, a] * push[i, p, r]
                local[i, a, p] = total
                if dofs[i, p] >= 0:
                    matrix[3 * i + a, dofs[i, p]] += total
    return Rows(axes, dofs, push, local, matrix)


@njit(**_JIT)
def _cross_columns(sign, a, by, first, out, to):
    """Write sign a x each of the three columns of ``by`` (3, 3) to the columns of ``out`` from ``to`` on."""
    for p in range(3):
        x, y, z = by[0, first + p], by[1, first + p], by[2, first + p]
        out[0, to + p] = sign * (a[1] * z - a[2] * y)
        out[1, to + p] = sign * (a[2] * x - a[0] * z)
        out[2, to + p] = sign * (a[0] * y - a[1] * x)


@njit(**_JIT)
def derivatives(pairs, at, c):
    """Return apart, normal, velocity, carrier_arm, host_arm (m, 3, 12) and push (m, 12, 3); rates move with c."""
    m = pairs.first.size
    shape = (m, 3, 12)
    apart, normal, velocity = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    carrier_arm, host_arm, push = np.zeros(shape), np.zeros(shape), np.zeros((m, 12, 3))
    place, moved, column = np.zeros((3, 12)), np.empty((3, 3)), np.zeros(3)
    for i in range(m):
        a, b, hosted = at.carrier, at.host, pairs.host[i] >= 0
        lever = pairs.radius[i] if pairs.rigid[i] else 0.0
        for r in range(3):
            place[r, r] = 1.0
        _cross_columns(-1.0, a.rho[i], a.turn[i], 0, place, 3)
        apart[i] = place
        if hosted:
            for r in range(3):
                apart[i, r, 6 + r] = -1.0
        _cross_columns(1.0, b.rho[i], b.turn[i], 0, apart[i], 9)
        _cross_columns(-1.0, at.normal[i], b.turn[i], 0, normal[i], 9)
        for r in range(3):
            for p in range(12):
                for s in range(3):
                    normal[i, r, p] += at.hessian[i, r, s] * apart[i, s, p]
                carrier_arm[i, r, p] = -lever * normal[i, r, p]
                if 3 <= p < 6:
                    carrier_arm[i, r, p] += place[r, p]
                if hosted:
                    host_arm[i, r, p] = place[r, p] - lever * normal[i, r, p]
                    if 6 <= p < 9:
                        host_arm[i, r, p] += apart[i, r, p]
                if 6 <= p < 9:
                    velocity[i, r, p] = c * apart[i, r, p]
            velocity[i, r, r] = c
        for r in range(3):
            for p in range(3):
                moved[r, p] = c * a.turn[i, r, p] + a.rate[i, r, p]
        _cross_columns(-1.0, a.arm[i], moved, 0, velocity[i], 3)
        for r in range(3):
            for p in range(3):
                moved[r, p] = c * b.turn[i, r, p] + b.rate[i, r, p]
        _cross_columns(1.0, b.arm[i], moved, 0, velocity[i], 9)
        for p in range(12):
            column[:] = 0.0
            _add_cross(1.0, a.omega[i], carrier_arm[i, :, p], column)
            _add_cross(-1.0, b.omega[i], host_arm[i, :, p], column)
            for r in range(3):
                velocity[i, r, p] += column[r]
        _fill_push(hosted, at, i, push[i])
    return apart, normal, velocity, carrier_arm, host_arm, push
