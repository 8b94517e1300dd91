"""Loads that vary in time on nodes, and actuators on places: a force and a torque that a link carries along.

Points that multipliers hold at places that vary in time.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import NO_ENTRIES, Family, Kind, bordered, by_signal, dense_blocks
from add.equations.family_term import FamilyConstraint, FamilyTerm
from add.equations.points import LinearPoints
from add.equations.signals import Signal
from add.kernels.arena import FAMILY, FIELD, Floats, Floats2, Ints, Ints2, Ints3, add_entry, unpacker, window
from add.kernels.caching import njit
from add.kernels.muscles import length_drive
from add.kernels.rotation import fill_jacobian, fill_rotation, jacobian_coefficients, turn, turn_derivative
from add.kernels.sites import cross
from add.terms.lengths import LengthActuator, length_kind
from add.typing import FloatArray, IntArray


class _Arrays(NamedTuple):
    nodes: Ints
    shares: Floats
    rows: Ints2
    slopes: Floats2
    place: Ints


_own = unpacker(_Arrays)


@njit(**FAMILY)
def _share(own, at, i):
    """Return the share of node i, shares_i + slopes_i . X of a load with a place X."""
    share = own.shares[i]
    for d in range(own.place.size):
        share += own.slopes[i, d] * at.theta[own.place[d]]
    return share


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    own = _own(arena, arena.families[k, FIELD])
    first, weights = window(arena, k, at)
    for c in range(3):
        force = 0.0
        for j in range(weights.size):
            force += weights[j] * at.theta[own.rows[first + j, c]]
        for i in range(own.nodes.size):
            out[3 * own.nodes[i] + c] -= _share(own, at, i) * force
    return rows


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    own = _own(arena, arena.families[k, FIELD])
    first, weights = window(arena, k, at)
    for c in range(3):
        force = 0.0
        for j in range(weights.size):
            force += weights[j] * at.theta[own.rows[first + j, c]]
            for i in range(own.nodes.size):
                value = -_share(own, at, i) * weights[j]
                add_entry(forward, 3 * own.nodes[i] + c, own.rows[first + j, c], value, along, out)
        for d in range(own.place.size):
            for i in range(own.nodes.size):
                add_entry(forward, 3 * own.nodes[i] + c, own.place[d], -own.slopes[i, d] * force, along, out)


KIND = Kind("nodal_force", _Arrays, _forces, _parameters, inputs=by_signal(_Arrays, _parameters))


@final
@dataclass(frozen=True)
class NodalForce(FamilyTerm):
    """r = -share_i F(t): a total force F(t) [N] spread over nodes; dead, it keeps its direction.

    Attributes
    ----------
    nodes : (k,)
    shares : (k,)
        Share of each node, summing to one; of a load with a place X the share is shares_i + slopes_i . X.
    signal : Signal
    rows : (n_rows, 3)
        Indices in theta of the signal's coefficients [N].
    slopes : (k, 3)
        Of the shares by the place [1/m].
    place : (3,), or (0,) without a place
        Indices in theta of X [m].
    """

    depends: ClassVar[str] = ""

    nodes: IntArray
    shares: FloatArray
    signal: Signal
    rows: IntArray
    slopes: FloatArray
    place: IntArray

    def family(self) -> Family:
        """See `Term.family`."""
        arrays = _Arrays(self.nodes, self.shares, self.rows, self.slopes, self.place)
        return Family(KIND, arrays, NO_ENTRIES, self.signal, followers=3)


class _Places(NamedTuple):
    """Rows of the place, an actuator, and its gear; see `add.terms.lengths`."""

    begin: Ints
    dof: Ints
    law: Ints
    rows: Ints
    numbers: Ints
    bounds: Floats
    gear: Floats


@njit(**FAMILY)
def _wrench(own, l, at, g, h, bent, wanted):
    """Return no length, and the rate s = (R g_f) . x' + (R g_t) . omega; its slopes are by (x', w')."""
    h[:], bent[:] = 0.0, 0.0
    w = at.q[own.dof[3] : own.dof[3] + 3]
    k, R, J, D = np.empty(6), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
    fill_rotation(w, k, R)
    fill_jacobian(1.0, w, k, J)
    turned, lever, rate = np.zeros((2, 3)), np.empty((2, 3)), 0.0
    for i in range(3):
        for j in range(3):
            turned[0, i] += R[i, j] * own.gear[j]
            turned[1, i] += R[i, j] * own.gear[3 + j]
        g[i] = turned[0, i]
    turn(-1.0, w, turned[1], k, g[3:])
    turn_derivative(-1.0, w, turned[1], k, D)
    for j in range(3):
        for part in range(2):
            cross(J[:, j].copy(), turned[part], lever[part])
        for i in range(3):
            bent[6 * i + 3 + j] = lever[0, i]
            bent[6 * (3 + i) + 3 + j] = D[i, j]
            for c in range(3):
                bent[6 * (3 + i) + 3 + j] += J[c, i] * lever[1, c]
    for a in range(6):
        v = at.v[own.dof[a]]
        rate += g[a] * v
        for b in range(6):
            h[b] += v * bent[6 * a + b]
    return 0.0, rate


@njit(**FAMILY)
def _actuator(own, l, at, asked, length, rate, p, out):
    """Fill the slopes of an actuator whose length is constant."""
    length_drive(own.law[0], length, rate, asked, at.theta, own.numbers, own.bounds, out)
    out[1] = 0.0
    return 1.0


WRENCHES = length_kind("wrench", _Places, _wrench, _actuator, driven=True)


@final
@dataclass(frozen=True)
class Wrench(FamilyTerm):
    """r = -f g of an actuator on a place, g = (R g_f, J_l^T R g_t): its length is zero, its rate s = g . (x', w').

    Attributes
    ----------
    law : LengthActuator
    first : int
        First row of the place.
    gear : (6,) force and torque of f = 1 in its axes
    """

    depends: ClassVar[str] = "qv"

    law: LengthActuator
    first: int
    gear: tuple[float, ...]

    def family(self) -> Family:
        """Return one block."""
        dof = self.first + np.arange(6)
        gear: FloatArray = np.array(self.gear)
        arrays = _Places(np.array([0, 6]), dof, *self.law.arrays, gear)
        return Family(WRENCHES, arrays, dense_blocks(dof[None]), self.law.signal, followers=1)


class _Points(NamedTuple):
    row: Ints
    dof: Ints
    value: Floats
    rows: Ints3
    first: Ints


_points = unpacker(_Points)


@njit(**FAMILY)
def _point_forces(arena, k, at, replay, rows, out):
    own = _points(arena, arena.families[k, FIELD])
    first, (begin, weights) = own.first[0], window(arena, k, at)
    for e in range(own.row.size):
        out[first + own.row[e]] += own.value[e] * at.q[own.dof[e]]
        out[own.dof[e]] += own.value[e] * at.q[first + own.row[e]]
    for j in range(weights.size):
        for i in range(3 * own.rows.shape[0]):
            out[first + i] -= weights[j] * at.theta[own.rows[i // 3, begin + j, i % 3]]
    return rows


@njit(**FAMILY)
def _point_jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    own = _points(arena, arena.families[k, FIELD])
    n = own.row.size
    for e in range(n):
        data[slots[e]] += weight_q * own.value[e]
        data[slots[n + e]] += weight_q * own.value[e]


@njit(**FAMILY)
def _point_parameters(arena, k, at, rows, forward, along, out):
    own = _points(arena, arena.families[k, FIELD])
    begin, weights = window(arena, k, at)
    for j in range(weights.size):
        for i in range(3 * own.rows.shape[0]):
            add_entry(forward, own.first[0] + i, own.rows[i // 3, begin + j, i % 3], -weights[j], along, out)


POINTS = Kind("points", _Points, _point_forces, _point_parameters, _point_jacobian, rates=True)


@final
@dataclass(frozen=True)
class PointConstraint(FamilyConstraint):
    """c = x(q) - p(t) = 0 for every point of a map; mu is the force that the point exerts on its holder [N].

    Unlike a pin it can hold any point of a body, not only a node.

    Attributes
    ----------
    points : LinearPoints
        The points that are held.
    signal : Signal
    rows : (n_points, n_rows, 3)
        Indices in theta of the places' coefficients [m].
    """

    points: LinearPoints
    signal: Signal
    rows: IntArray

    @property
    def n_rows(self) -> int:
        """Three a point."""
        return 3 * self.points.n_points

    def family(self, first: int) -> Family:
        """Return the entries of the points as G, and G^T."""
        row, dof, value = self.points.entries()
        arrays = _Points(row, dof, value, self.rows, np.array([first]))
        return Family(POINTS, arrays, bordered(first + row, dof, np.zeros((0, 0), dtype=np.int64)), self.signal)
