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
from add.hard_contact.pairs import ContactPairs
from add.kernels import contact_hard as kernel, contact_places as places
from add.kernels.contact_places import Touches
from add.typing import FloatArray


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


def touches(pairs: ContactPairs, kin: Kinematics, theta: FloatArray) -> Touches:
    """Return where all pairs are at ``kin``."""
    found: Touches = places.touches(pairs.arrays, kin.q, kin.v, kin.t, theta)
    return found


def derivatives(pairs: ContactPairs, at: Touches, c: float) -> TouchDerivatives:
    """Return the derivatives by the step's unknown u: dq = du, dv = c du."""
    return TouchDerivatives(*places.derivatives(pairs.arrays, at, c))


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


def by_centres(pairs: ContactPairs, at: Touches) -> TouchDerivatives:
    """Return the derivatives by the centres of mass of carrier and host (k, ., 6), as by coordinates.

    The carrier's point moves by -R dX from its centre of mass; the shape by -R_b dX_b, and all else with it.
    """
    k = pairs.n
    ways = np.zeros((k, 3, 6))
    ways[:, :, :3] = np.where(pairs.rigid[:, None, None], -at.carrier.matrix, 0.0)
    apart = ways.copy()
    apart[:, :, 3:] = np.where(pairs.hosted[:, None, None], at.host.matrix, 0.0)
    normal = at.hessian @ apart
    lever = np.where(pairs.rigid, pairs.radius, 0.0)[:, None, None]
    carrier_arm = np.where(pairs.rigid[:, None, None], ways - lever * normal, 0.0)
    host_arm = np.where(pairs.hosted[:, None, None], ways - lever * normal, 0.0)
    velocity = cross_matrices(at.carrier.omega) @ carrier_arm - cross_matrices(at.host.omega) @ host_arm
    return TouchDerivatives(apart, normal, velocity, carrier_arm, host_arm, np.zeros((k, 12, 3)))


def push_by_centres(pairs: ContactPairs, at: Touches, by: TouchDerivatives, force: FloatArray) -> FloatArray:
    """Return the derivative (k, 12, 6) of the generalised forces by the centres of mass."""
    out = np.zeros((pairs.n, 12, 6))
    for sign, side, arm, rows in (
        (1.0, at.carrier, by.carrier_arm, slice(3, 6)),
        (-1.0, at.host, by.host_arm, slice(9, 12)),
    ):
        out[:, rows] = -sign * side.turn.transpose(0, 2, 1) @ cross_matrices(force) @ arm
    return out
