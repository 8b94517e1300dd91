"""All families of joint laws of a system: forces, derivatives by the state and by theta."""

from __future__ import annotations

import numpy as np

from add.compiled.arrays import (
    ARITY,
    CODES,
    COUNT,
    DOFS,
    INDEX,
    LAW,
    N_INDEX,
    N_SIGNAL,
    PLACES,
    ROWS,
    SIGNAL,
    SITES,
    WIDTH,
)
from add.kernels import air, joints as laws, sites as site_kernels, springs
from add.kernels.borrowed import borrowed
from add.kernels.caching import CALLED, njit
from add.kernels.law_numbers import LawNumbers

#: Codes of the laws; those that rates do not enter come last.
SPRING, CABLE, CLIPPED_CABLE, BOND, SLIDER, FRICTION, LIMIT, DRAG, FACES, CLOSED_FACES, MOTOR, TORQUE, GIVEN = range(13)

spring_force, spring_derivatives = springs.spring_force, springs.spring_derivatives
bond_force, bond_derivatives = springs.bond_force, springs.bond_derivatives
motor_force, motor_derivatives = springs.motor_force, springs.motor_derivatives
axial_force, axial_derivatives = springs.axial_force, springs.axial_derivatives
slider_force, slider_derivatives = laws.slider_force, laws.slider_derivatives
friction_force, friction_derivatives = laws.friction_force, laws.friction_derivatives
limit_force, limit_derivatives = laws.limit_force, laws.limit_derivatives
drag_force, drag_derivatives = air.drag_force, air.drag_derivatives
face_force, face_derivatives = air.face_force, air.face_derivatives
evaluate, pull, assemble, parameter_vjp = (
    site_kernels.evaluate, site_kernels.pull, site_kernels.assemble, site_kernels.parameter_vjp,
)  # fmt: skip


@njit(**CALLED)
def joint_arrays(joints, signals, k):
    """Return kind, dofs, shares and places_of of the sites of family k, and index, weights and rows of its numbers."""
    row = joints.table[k]
    n, n_i, n_s, width = row[COUNT], row[N_INDEX], row[N_SIGNAL], row[WIDTH]
    sites = n * row[ARITY]
    signal = signals.table[row[SIGNAL]]
    weights = borrowed(signals.weights, signal[1], (signal[2],))
    first = row[ROWS] + signal[0] * n * n_s
    dofs, triples = row[DOFS], width // 3
    return (
        borrowed(joints.kind, row[SITES], (sites,)),
        borrowed(joints.dofs, dofs, (sites, width)),
        borrowed(joints.shares, dofs // 3, (sites, triples)),
        joints.places_of[row[SITES] : row[SITES] + sites],
        borrowed(joints.numbers, row[INDEX], (n, n_i)),
        weights,
        borrowed(joints.rows, first, (weights.size, n, n_s)),
    )


@njit(**CALLED)
def _force(law, replay, y, y_dot, p, codes, f):
    """Fill f of a law, and its codes unless they are imposed; return how many interactions act."""
    if law == SPRING:
        return spring_force(y, y_dot, p, False, False, True, codes, f)
    if law == CABLE or law == CLIPPED_CABLE:
        return spring_force(y, y_dot, p, True, law == CLIPPED_CABLE, replay, codes, f)
    if law == LIMIT:
        return limit_force(y, y_dot, p, replay, codes, f)
    if law == BOND:
        bond_force(y, y_dot, p, f)
    elif law == SLIDER:
        slider_force(y, y_dot, p, f)
    elif law == FRICTION:
        friction_force(y, y_dot, p, f)
    elif law == DRAG:
        drag_force(y, y_dot, p, f)
    elif law == FACES or law == CLOSED_FACES:
        face_force(y, y_dot, p, law == CLOSED_FACES, f)
    elif law == MOTOR:
        motor_force(y, y_dot, p, f)
    elif law == TORQUE:
        axial_force(y, y_dot, p, 3, f)
    else:
        f[:] = p
    return 1


@njit(**CALLED)
def _derivatives(law, y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f and its derivatives, which are zeros, on the branches of the codes."""
    if law == SPRING:
        spring_derivatives(y, y_dot, p, False, codes, f, f_y, f_v, f_p)
    elif law == CABLE or law == CLIPPED_CABLE:
        spring_derivatives(y, y_dot, p, True, codes, f, f_y, f_v, f_p)
    elif law == LIMIT:
        limit_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p)
    elif law == BOND:
        bond_derivatives(y, y_dot, p, f, f_y, f_v, f_p)
    elif law == SLIDER:
        slider_derivatives(y, y_dot, p, f, f_y, f_v, f_p)
    elif law == FRICTION:
        friction_derivatives(y, y_dot, p, f, f_y, f_v, f_p)
    elif law == DRAG:
        drag_derivatives(y, y_dot, p, f, f_y, f_v, f_p)
    elif law == FACES or law == CLOSED_FACES:
        face_derivatives(y, y_dot, p, law == CLOSED_FACES, f, f_y, f_v, f_p)
    elif law == MOTOR:
        motor_derivatives(y, y_dot, p, f, f_y, f_v, f_p)
    elif law == TORQUE:
        axial_derivatives(y, y_dot, p, 3, f, f_y, f_v, f_p)
    else:
        f[:] = p
        for e in range(p.shape[0]):
            for i in range(3):
                f_p[e, i, i] = 1.0


@njit(**CALLED)
def _codes(row, codes):
    """Return the codes of a family; none for a law without branches."""
    first = row[CODES]
    return codes[first : first + row[COUNT]] if first >= 0 else codes[:0]


@njit(**CALLED)
def joint_forces(k, joints, signals, q, v, theta, replay, codes, out):
    """Add -J^T f of family k to ``out`` (n,); decide, or take the branches of ``codes``."""
    row = joints.table[k]
    kind, dofs, shares, place, index, weights, rows = joint_arrays(joints, signals, k)
    y, y_dot, frame = np.empty((kind.size, 3)), np.empty((kind.size, 3)), np.empty((kind.size, 12))
    p, f = np.empty((row[COUNT], row[N_INDEX] + row[N_SIGNAL])), np.empty((kind.size, 3))
    evaluate(q, v, theta, kind, dofs, shares, place, index, weights, rows, y, y_dot, frame, p)
    if _force(row[LAW], replay, y, y_dot, p, _codes(row, codes), f):
        pull(-1.0, q, kind, dofs, shares, frame, f, out)


@njit(**CALLED)
def linearised(k, joints, signals, q, v, theta, codes):
    """Return what derivatives of family k share: frame, forces and their derivatives."""
    row = joints.table[k]
    kind, dofs, shares, place, index, weights, rows = joint_arrays(joints, signals, k)
    n, size = row[COUNT], 3 * row[ARITY]
    y, y_dot, frame = np.empty((kind.size, 3)), np.empty((kind.size, 3)), np.empty((kind.size, 12))
    p, f = np.empty((n, row[N_INDEX] + row[N_SIGNAL])), np.empty((kind.size, 3))
    evaluate(q, v, theta, kind, dofs, shares, place, index, weights, rows, y, y_dot, frame, p)
    f_y, f_v, f_p = np.zeros((n, size, size)), np.zeros((n, size, size)), np.zeros((n, size, p.shape[1]))
    _derivatives(row[LAW], y, y_dot, p, _codes(row, codes), f, f_y, f_v, f_p)
    return frame, f, f_y, f_v, f_p


@njit(**CALLED)
def joint_jacobian(joints, signals, q, v, theta, codes, weight_q, weight_v, data):
    """Add weight_q dr/dq + weight_v dr/dv of all families to ``data``."""
    for k in range(joints.table.shape[0]):
        if weight_q == 0.0 and joints.table[k, LAW] >= MOTOR:
            continue
        kind, dofs, shares, _, _, _, _ = joint_arrays(joints, signals, k)
        frame, f, f_y, f_v, _ = linearised(k, joints, signals, q, v, theta, codes)
        places = joints.places[joints.table[k, PLACES] :]
        assemble(weight_q, weight_v, q, v, kind, dofs, shares, frame, f, f_y, f_v, data, places)


@njit(**CALLED)
def joint_parameters(joints, signals, q, v, theta, codes, lam, out):
    """Add lam^T dr/dtheta of all families to ``out`` (n_theta,)."""
    for k in range(joints.table.shape[0]):
        kind, dofs, shares, place, index, weights, rows = joint_arrays(joints, signals, k)
        frame, f, f_y, f_v, f_p = linearised(k, joints, signals, q, v, theta, codes)
        arm, centre = np.ascontiguousarray(place[:, :3]), np.ascontiguousarray(place[:, 3:])
        numbers = LawNumbers(index, weights, rows)
        parameter_vjp(lam, q, kind, dofs, shares, frame, f, f_y, f_v, f_p, arm, centre, numbers, out)
