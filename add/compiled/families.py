"""The force families over rows of X of a small system at one state: residual, matrix, derivatives by theta.

The rows are the coordinates themselves unless there are trees; `add.compiled.equations` lifts them then.

The walk over the terms of a `add.equations.system.System`, compiled: the same kernels, called in the same way. The
terms are the definition; tests compare the two on every scene.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from add.compiled.joints import joint_forces, joint_jacobian, joint_parameters
from add.compiled.packed import bodies_of, joints_of, loads_of, nodal_of, nodes_of, rigid_of, weight_of
from add.kernels.caching import CALLED, njit
from add.kernels.contact_arrays import Motion, no_growth, unpacked as unpacked_contacts, unpacked_law
from add.kernels.contact_bodies import body_contact_force, decided_body_contact_force
from add.kernels.contact_bodies_jacobian import Slots, body_contact_jacobian
from add.kernels.contact_bodies_parameters import body_contact_parameters
from add.kernels.contact_couples import add_couples, add_packed_couples, couples_jacobian, couples_parameters
from add.kernels.contact_nodes import (
    Points,
    Table,
    contact_force,
    contact_jacobian,
    contact_parameters,
    decided_contact_force,
)
from add.kernels.contact_pairs import COUPLES, Law, Shapes
from add.kernels.rigid_inertia import inertia_jacobian, inertia_parameters, inertia_residual
from add.terms.gravity import gravity_parameter_vjp, gravity_residual
from add.terms.inertia import nodal_inertia_jacobian, nodal_inertia_parameter_vjp, nodal_inertia_residual
from add.typing import AnyArray, IntArray


class Choices(NamedTuple):
    """The decisions of all families.

    Attributes
    ----------
    bodies, nodes : (k, 3) rows of contact between bodies, and of nodes
    codes : int8, of all joints with branches, one family behind the other
    """

    bodies: IntArray
    nodes: IntArray
    codes: AnyArray


@njit(**CALLED)
def _node_contact(nodes, at):
    """Return points, shapes, table and law of contact of nodes, as its kernels take them."""
    n, ns = nodes.nodes.size, nodes.kind.size
    x, v = np.empty((n, 3)), np.empty((n, 3))
    for i in range(n):
        for c in range(3):
            x[i, c], v[i, c] = at.q[3 * nodes.nodes[i] + c], at.v[3 * nodes.nodes[i] + c]
    place = np.empty((ns, 3))
    for o in range(ns):
        for c in range(3):
            place[o, c] = nodes.position[o, c] + at.t * nodes.velocity[o, c]
    rows, columns = nodes.enabled.shape
    values, enabled = np.empty((6, rows, columns)), np.empty((rows, columns), dtype=np.bool_)
    for r in range(rows):
        for c in range(columns):
            enabled[r, c] = nodes.enabled[r, c] != 0
            for k in range(6):
                index = nodes.tables[k, r, c]
                values[k, r, c] = at.theta[index] if index >= 0 else 0.0
    shapes = Shapes(nodes.kind, nodes.size, nodes.rotation, place, nodes.velocity, np.zeros((ns, 3)))
    none = np.zeros((rows, columns))
    table = Table(
        nodes.column, enabled, values[0], values[1], values[2], values[3], nodes.depths[0], nodes.depths[1], none, none,
        values[4], values[5],
    )  # fmt: skip
    return Points(x, v, nodes.scale, nodes.group), shapes, table, Law(nodes.law[0], nodes.law[1], 0)


@njit(**CALLED)
def _add_load(k, loads, at, out):
    """Add -share F(t) of a load to ``out`` (n,)."""
    first, last, begin, signal, move, _ = loads.table[k]
    if move:
        return
    row, start, width = at.signals.table[signal]
    for c in range(3):
        force = 0.0
        for j in range(width):
            force += at.signals.weights[start + j] * at.theta[loads.rows[begin + row + j, c]]
        for i in range(first, last):
            out[3 * loads.nodes[i] + c] -= loads.shares[i] * force


@njit(**CALLED)
def _load_parameters(k, loads, at, lam, out):
    """Add lam^T dr/dtheta of a load, or of a move with lam the cotangent of positions, to ``out`` (n_theta,)."""
    first, last, begin, signal, move, _ = loads.table[k]
    row, start, width = at.signals.table[signal]
    bar = np.zeros(3)
    for i in range(first, last):
        if move:
            bar[loads.axes[i]] += lam[loads.nodes[i]]
        else:
            for c in range(3):
                bar[c] -= loads.shares[i] * lam[3 * loads.nodes[i] + c]
    for j in range(width):
        for c in range(3):
            out[loads.rows[begin + row + j, c]] += at.signals.weights[start + j] * bar[c]


@njit(**CALLED)
def move_prescribed(loads, layout, at, start, q):
    """Fill the prescribed entries of q (n,): ``start`` (n_p,) and the moves at this instant."""
    for i in range(layout.prescribed.size):
        q[layout.prescribed[i]] = start[i]
    for k in range(loads.table.shape[0]):
        first, last, begin, signal, move, _ = loads.table[k]
        if not move:
            continue
        row, at_weight, width = at.signals.table[signal]
        for c in range(3):
            way = 0.0
            for j in range(width):
                way += at.signals.weights[at_weight + j] * at.theta[loads.rows[begin + row + j, c]]
            for i in range(first, last):
                if loads.axes[i] == c:
                    q[loads.nodes[i]] += way


@njit(**CALLED)
def norm(force, order):
    """Return the L2 or L1 norm."""
    total = 0.0
    for x in force:
        total += x * x if order == 2 else abs(x)
    return np.sqrt(total) if order == 2 else total


@njit(**CALLED)
def _gathered(family, r, scale, order, lift):
    """Add a family's forces to r, clear them, and return the larger of its norm and ``scale``.

    The norm is that over coordinates, with ``lift`` (m, n_own) the matrix P of the last m rows.
    """
    if lift.size:
        same = family.size - lift.shape[0]
        pulled = lift.T @ family[same:]
        lower, upper = norm(family[:same], order), norm(pulled, order)
        found = np.sqrt(lower * lower + upper * upper) if order == 2 else lower + upper
    else:
        found = norm(family, order)
    for i in range(r.size):
        r[i] += family[i]
        family[i] = 0.0
    return max(scale, found)


@njit(**CALLED)
def forces(arrays, at, replay, choices, measured, r, lift):
    """Fill r (n,); decide, or take ``choices``. Return the choices, and the norm of the largest force family.

    ``measured``: 1 or 2, the norm; 0 to leave it out; ``lift`` the matrix P of rows of links, empty for none. The codes
    are written to ``choices``.
    """
    rigid, nodal, weight, loads, joints = (
        rigid_of(arrays), nodal_of(arrays), weight_of(arrays), loads_of(arrays), joints_of(arrays),
    )  # fmt: skip
    bodies, nodes = bodies_of(arrays), nodes_of(arrays)
    q, v, a, theta = at.q, at.v, at.a, at.theta
    r[:] = 0.0
    out = np.zeros(r.size) if measured else r
    scale = 0.0
    if rigid.start.size:
        inertia_residual(theta, rigid.start, rigid.mass, rigid.inertia, q, v, a, out)
        if measured:
            scale = _gathered(out, r, scale, measured, lift)
    if nodal.rows.size:
        nodal_inertia_residual(theta, nodal.rows, nodal.cols, nodal.mass, nodal.density, nodal.damping, v, a, out)
        if measured:
            scale = _gathered(out, r, scale, measured, lift)
    if weight.nodes.size:
        gravity_residual(theta, weight.nodes, weight.mass, weight.density, weight.gravity, out)
        if measured:
            scale = _gathered(out, r, scale, measured, lift)
    for k in range(loads.table.shape[0]):
        _add_load(k, loads, at, out)
        if measured:
            scale = _gathered(out, r, scale, measured, lift)
    for k in range(joints.table.shape[0]):
        joint_forces(k, joints, at.signals, q, v, theta, replay, choices.codes, out)
        if measured:
            scale = _gathered(out, r, scale, measured, lift)
    of_bodies, of_nodes = choices.bodies, choices.nodes
    if nodes.nodes.size:
        points, shapes, table, law = _node_contact(nodes, at)
        force = np.empty((nodes.nodes.size, 3))
        if replay:
            n = contact_force(points, shapes, table, law, replay, of_nodes, force)
        else:
            of_nodes, n = decided_contact_force(points, shapes, table, law, of_nodes[:0], force)
        if n:
            for i in range(nodes.nodes.size):
                for c in range(3):
                    out[3 * nodes.nodes[i] + c] -= force[i, c]
        if measured:
            scale = _gathered(out, r, scale, measured, lift)
    if bodies.ints.size:
        if replay:
            motion, contacts = Motion(at.t, q, v, theta), unpacked_contacts(bodies.ints, bodies.floats, bodies.fields)
            if of_bodies.size:
                body_contact_force(motion, contacts, unpacked_law(bodies.ints), of_bodies, out)
                add_couples(motion, contacts, unpacked_law(bodies.ints), of_bodies, out)
        else:
            of_bodies = decided_body_contact_force(
                at.t, q, v, theta, bodies.ints, bodies.floats, bodies.fields, of_bodies[:0], out
            )
            if unpacked_law(bodies.ints).normal & COUPLES:
                add_packed_couples(at.t, q, v, theta, bodies.ints, bodies.floats, bodies.fields, of_bodies, out)
        if measured:
            scale = _gathered(out, r, scale, measured, lift)
    return Choices(of_bodies, of_nodes, choices.codes), scale


@njit(**CALLED)
def force_jacobian(arrays, at, choices, weight_q, weight_v, weight_a, data):
    """Fill ``data`` (n n,) with weight_q dr/dq + weight_v dr/dv + weight_a dr/da, by columns."""
    rigid, nodal, joints, bodies, nodes = (
        rigid_of(arrays), nodal_of(arrays), joints_of(arrays), bodies_of(arrays), nodes_of(arrays),
    )  # fmt: skip
    q, v, a, theta = at.q, at.v, at.a, at.theta
    data[:] = 0.0
    if rigid.start.size:
        inertia_jacobian(
            theta, rigid.start, rigid.mass, rigid.inertia, q, v, a, weight_q, weight_v, weight_a, data, rigid.places
        )
    if nodal.rows.size and (weight_v != 0.0 or weight_a != 0.0):
        nodal_inertia_jacobian(theta, nodal.mass, nodal.density, nodal.damping, weight_v, weight_a, data, nodal.places)
    if weight_q == 0.0 and weight_v == 0.0:
        return
    joint_jacobian(joints, at.signals, q, v, theta, choices.codes, weight_q, weight_v, data)
    if choices.nodes.size:
        points, shapes, table, law = _node_contact(nodes, at)
        n = nodes.nodes.size
        by_x, by_v = np.empty((n, 3, 3)), np.empty((n, 3, 3))
        if contact_jacobian(points, shapes, table, law, choices.nodes, by_x, by_v):
            for i in range(n):
                for r in range(3):
                    for c in range(3):
                        value = weight_q * by_x[i, r, c] + weight_v * by_v[i, r, c]
                        data[nodes.places[9 * i + 3 * r + c]] -= value
    if choices.bodies.size:
        slots = Slots(bodies.own, bodies.keys, bodies.first[0])
        body_contact_jacobian(
            at.t, q, v, theta, bodies.ints, bodies.floats, bodies.fields, choices.bodies,
            weight_q, weight_v, slots, data, bodies.places,
        )  # fmt: skip
        if unpacked_law(bodies.ints).normal & COUPLES:
            couples_jacobian(
                at.t, q, v, theta, bodies.ints, bodies.floats, bodies.fields, choices.bodies,
                weight_q, weight_v, slots, data, bodies.places,
            )  # fmt: skip


@njit(**CALLED)
def force_parameters(arrays, at, choices, lam, out):
    """Add lam^T dr/dtheta to ``out`` (n_theta,)."""
    rigid, nodal, weight, loads, joints = (
        rigid_of(arrays), nodal_of(arrays), weight_of(arrays), loads_of(arrays), joints_of(arrays),
    )  # fmt: skip
    bodies, nodes = bodies_of(arrays), nodes_of(arrays)
    q, v, a, theta = at.q, at.v, at.a, at.theta
    forward = lam.size < 0  # False: the constant would make kernels of its own, beside those that terms call
    if rigid.start.size:
        inertia_parameters(theta, rigid.start, rigid.mass, rigid.inertia, q, v, a, forward, lam, lam[:0], out)
    if nodal.rows.size:
        nodal_inertia_parameter_vjp(
            theta, nodal.rows, nodal.cols, nodal.mass, nodal.density, nodal.damping, v, a, lam, out
        )
    if weight.nodes.size:
        gravity_parameter_vjp(theta, weight.nodes, weight.mass, weight.density, weight.gravity, lam, out)
    for k in range(loads.table.shape[0]):
        if loads.table[k, 4] == 0:
            _load_parameters(k, loads, at, lam, out)
    joint_parameters(joints, at.signals, q, v, theta, choices.codes, lam, out)
    if choices.nodes.size:
        points, shapes, table, law = _node_contact(nodes, at)
        rows, columns = nodes.enabled.shape
        bars = np.zeros((7, rows, columns))
        at_points = np.empty((nodes.nodes.size, 3))
        for i in range(nodes.nodes.size):
            for c in range(3):
                at_points[i, c] = lam[3 * nodes.nodes[i] + c]
        contact_parameters(
            points, shapes, table, law, choices.nodes, forward,
            (bars[0], bars[1], bars[2], bars[3], bars[4], bars[5], bars[6]), at_points,
        )  # fmt: skip
        for k in range(6):
            for r in range(rows):
                for c in range(columns):
                    if nodes.tables[k, r, c] >= 0:
                        out[nodes.tables[k, r, c]] -= bars[k if k < 4 else k + 1, r, c]  # bar 4 is of the thickness
    if choices.bodies.size:
        motion, contacts = Motion(at.t, q, v, theta), unpacked_contacts(bodies.ints, bodies.floats, bodies.fields)
        law = unpacked_law(bodies.ints)
        body_contact_parameters(motion, contacts, law, no_growth(), choices.bodies, forward, out, lam)
        couples_parameters(motion, contacts, law, no_growth(), choices.bodies, forward, out, lam)


@njit(**CALLED)
def move_parameters(arrays, at, bar, out):
    """Add the cotangents of the moves' coefficients for cotangents of prescribed coordinates, ``bar`` (n,), to out."""
    loads = loads_of(arrays)
    for k in range(loads.table.shape[0]):
        if loads.table[k, 4] == 1:
            _load_parameters(k, loads, at, bar, out)
