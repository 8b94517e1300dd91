"""Gaps, normals and relative velocities of contact pairs, with all that a Newton matrix needs of them.

A point sits at c = x_a + rho_a, rho_a = R_a (X - X_c), on a rigid body a with coordinates (x, w), or is a node c = x.
It may be the centre of a sphere of radius r. The shape belongs to a rigid body b, rho_b = c - x_b, or to the world,
where it translates with V. With omega = J w_dot, J = J_l(w), D = d(J w_dot)/dw, and the distance from the shape with
gradient n and Hessian H,

    g = dist(c) - r,   l_a = rho_a - r n,   l_b = rho_b - r n,   v = v_a + omega_a x l_a - (v_b + omega_b x l_b)

Relative to the material of b, c moves by ds = dc - dx_b - J_b dw_b x rho_b, dc = dx_a + J_a dw_a x rho_a, and

    dg = n.ds,   dn = H ds + J_b dw_b x n,   dl_a = J_a dw_a x rho_a - r dn,   dl_b = dc - dx_b - r dn
    dv = dv_a + (J_a dw_dot_a + D_a dw_a) x l_a + omega_a x dl_a - the same of b

A force F on the point acts on a as (F, J_a^T (l_a x F)), on b as minus (F, J_b^T (l_b x F)); at fixed F the torque
changes by J^T (dl x F) + d(J^T tau)/dw dw. A node does not turn: there is no torque, and surfaces meet at c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics
from add.hard_contact.pairs import ContactPairs, Turns
from add.kernels import contact_hard as kernel
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Side:
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

    def select(self, rows: IntArray) -> Side:
        """Return that of some pairs."""
        return Side(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


@final
@dataclass(frozen=True)
class Touches:
    """Gaps, normals, velocities and places of the pairs of one `ContactPairs`; rows follow the pairs.

    Attributes
    ----------
    gap : (m,) [m]
    normal : (m, 3) away from the shape
    velocity : (m, 3) of the point's surface relative to the shape's [m/s]
    place : (m, 3) where the surfaces meet [m]
    hessian : (m, 3, 3) of the distance [1/m]
    carrier, host : Side
        Of the point and of the shape.
    """

    gap: FloatArray
    normal: FloatArray
    velocity: FloatArray
    place: FloatArray
    hessian: FloatArray
    carrier: Side
    host: Side

    def select(self, rows: IntArray) -> Touches:
        """Return some of the pairs."""
        parts = (self.gap, self.normal, self.velocity, self.place, self.hessian)
        gap, normal, velocity, place, hessian = (part[rows] for part in parts)
        return Touches(gap, normal, velocity, place, hessian, self.carrier.select(rows), self.host.select(rows))

    @property
    def normal_velocity(self) -> FloatArray:
        """Relative velocity along the normal (m,) [m/s]."""
        return np.einsum("mi,mi->m", self.normal, self.velocity)

    @property
    def tangential_velocity(self) -> FloatArray:
        """Relative velocity across the normal (m, 3) [m/s]."""
        return self.velocity - self.normal_velocity[:, None] * self.normal


@final
@dataclass(frozen=True)
class TouchDerivatives:
    """Derivatives by the coordinates of carrier (six) and host (six); rates move with c times coordinates.

    Attributes
    ----------
    apart : (m, 3, 12) way of the point relative to the material of the shape
    normal, velocity, carrier_arm, host_arm : (m, 3, 12)
    push : (m, 12, 3) generalised force per force on the point
    """

    apart: FloatArray
    normal: FloatArray
    velocity: FloatArray
    carrier_arm: FloatArray
    host_arm: FloatArray
    push: FloatArray


def cross_matrices(u: FloatArray) -> FloatArray:
    """Return [u] (m, 3, 3) with [u] x = u x x."""
    out = np.zeros((u.shape[0], 3, 3))
    out[:, 0, 1], out[:, 0, 2], out[:, 1, 2] = -u[:, 2], u[:, 1], -u[:, 0]
    return out - out.transpose(0, 2, 1)


def cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a x b of rows (m, 3): `numpy.cross` takes longer than all else of a small step."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    out[:, 0] = a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]
    out[:, 1] = a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]
    out[:, 2] = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return out


def _side(m: int, bodies: Turns, kin: Kinematics) -> Side:
    """Return rotations and rates of the rigid bodies of m pairs; arms come later."""
    rotation, omega = np.zeros((m, 3)), np.zeros((m, 3))
    matrix, turn, rate = (np.zeros((m, 3, 3)) for _ in range(3))
    on, starts, row, turns = bodies
    if on.size:
        R, J, D = (np.empty((starts.size, 3, 3)) for _ in range(3))
        spin = np.empty((starts.size, 3))
        kernel.body_turns(starts, kin.q, kin.v, R, J, D, spin)
        matrix[on], turn[on], rate[on], omega[on] = R[row], J[row], D[row], spin[row]
        rotation[on] = kin.q[turns]
    return Side(rotation, matrix, turn, rate, omega, np.zeros((m, 3)), np.zeros((m, 3)))


def _centre(index: IntArray, theta: FloatArray) -> FloatArray:
    return np.where(index >= 0, theta[index], 0.0)


def touches(pairs: ContactPairs, kin: Kinematics, theta: FloatArray) -> Touches:
    """Return where all pairs are at ``kin``."""
    m, hosted = pairs.n, pairs.hosted
    columns = pairs.first[:, None] + np.arange(3)
    carrier, host = _side(m, pairs.carrier_turns, kin), _side(m, pairs.host_turns, kin)
    rho = np.einsum("mij,mj->mi", carrier.matrix, pairs.arm - _centre(pairs.centre, theta))
    carrier.rho[:] = rho
    c, velocity = kin.q[columns] + rho, kin.v[columns] - pairs.velocity

    rotation, position = pairs.rotation, pairs.position + kin.t * pairs.velocity
    if hosted.any():
        at = pairs.host[hosted, None] + np.arange(3)
        rotation, position = rotation.copy(), position.copy()
        offset = pairs.position[hosted] - _centre(pairs.host_centre[hosted], theta)
        rotation[hosted] = host.matrix[hosted] @ pairs.rotation[hosted]
        position[hosted] = kin.q[at] + np.einsum("mij,mj->mi", host.matrix[hosted], offset)
        host.rho[hosted] = c[hosted] - kin.q[at]
        velocity[hosted] -= kin.v[at]
    gap, normal, hessian = np.empty(m), np.empty((m, 3)), np.empty((m, 3, 3))
    kernel.distances(pairs.kind, pairs.size, rotation, position, c, gap, normal, hessian)

    lever = _lever(pairs)[:, None] * normal
    carrier.arm[:] = np.where(pairs.rigid[:, None], carrier.rho - lever, 0.0)
    host.arm[:] = np.where(hosted[:, None], host.rho - lever, 0.0)
    velocity += cross(carrier.omega, carrier.arm) - cross(host.omega, host.arm)
    place = c - pairs.radius[:, None] * normal
    return Touches(gap - pairs.radius, normal, velocity, place, hessian, carrier, host)


def _lever(pairs: ContactPairs) -> FloatArray:
    """Return the radius (m,) at which forces act; a node's sphere only keeps its distance."""
    return np.where(pairs.rigid, pairs.radius, 0.0)


def derivatives(pairs: ContactPairs, at: Touches, c: float) -> TouchDerivatives:
    """Return the derivatives by the step's unknown u: dq = du, dv = c du."""
    m, eye, a, b = pairs.n, np.eye(3), at.carrier, at.host
    hosted = pairs.hosted[:, None, None]
    place, apart, velocity = (np.zeros((m, 3, 12)) for _ in range(3))
    place[:, :, :3] = eye
    place[:, :, 3:6] = -cross_matrices(a.rho) @ a.turn
    apart[:] = place
    apart[:, :, 6:9] = np.where(hosted, -eye, 0.0)
    apart[:, :, 9:] = cross_matrices(b.rho) @ b.turn
    normal = at.hessian @ apart
    normal[:, :, 9:] -= cross_matrices(at.normal) @ b.turn

    lever = _lever(pairs)[:, None, None]
    carrier_arm = -lever * normal
    carrier_arm[:, :, 3:6] += place[:, :, 3:6]
    host_arm = np.where(hosted, place - lever * normal, 0.0)
    host_arm[:, :, 6:9] += apart[:, :, 6:9]
    velocity[:, :, :3] = c * eye
    velocity[:, :, 3:6] = -cross_matrices(a.arm) @ (c * a.turn + a.rate)
    velocity[:, :, 6:9] = c * apart[:, :, 6:9]
    velocity[:, :, 9:] = cross_matrices(b.arm) @ (c * b.turn + b.rate)
    velocity += cross_matrices(a.omega) @ carrier_arm - cross_matrices(b.omega) @ host_arm

    push = np.zeros((m, 12, 3))
    push[:, :3] = eye
    push[:, 3:6] = a.turn.transpose(0, 2, 1) @ cross_matrices(a.arm)
    push[:, 6:9] = apart[:, :, 6:9]
    push[:, 9:] = -b.turn.transpose(0, 2, 1) @ cross_matrices(b.arm)
    return TouchDerivatives(apart, normal, velocity, carrier_arm, host_arm, push)


def add_forces(pairs: ContactPairs, at: Touches, force: FloatArray, out: FloatArray) -> None:
    """Add the generalised forces to ``out`` (n,): ``force`` (m, 3) on the points, the opposite on the shapes."""
    for sign, first, there, turns, side in (
        (1.0, pairs.first, np.ones(pairs.n, dtype=bool), pairs.rigid, at.carrier),
        (-1.0, pairs.host, pairs.hosted, pairs.hosted, at.host),
    ):
        np.add.at(out, first[there, None] + np.arange(3), sign * force[there])
        if turns.any():
            torque = np.einsum("mji,mj->mi", side.turn[turns], cross(side.arm[turns], sign * force[turns]))
            np.add.at(out, first[turns, None] + np.arange(3, 6), torque)


def push_derivatives(pairs: ContactPairs, at: Touches, by: TouchDerivatives, force: FloatArray) -> FloatArray:
    """Return the derivative (m, 12, 12) of the generalised forces by the coordinates, forces held."""
    out = np.zeros((pairs.n, 12, 12))
    for sign, turns, side, arm, rows in (
        (1.0, pairs.rigid, at.carrier, by.carrier_arm, slice(3, 6)),
        (-1.0, pairs.hosted, at.host, by.host_arm, slice(9, 12)),
    ):
        on = np.flatnonzero(turns)
        if on.size:
            own, turned = sign * force[on], np.empty((on.size, 3, 3))
            kernel.torque_derivatives(side.rotation[on], cross(side.arm[on], own), turned)
            out[on, rows] = -side.turn[on].transpose(0, 2, 1) @ cross_matrices(own) @ arm[on]
            out[on, rows, rows] += turned
    return out
