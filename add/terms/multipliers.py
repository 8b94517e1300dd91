"""Constraints that multipliers hold: points on links and rigid bodies, loops of trees and joints that move together."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind, bordered
from add.equations.family_term import FamilyConstraint
from add.equations.tree_embedding import TiedNodes
from add.kernels.arena import FAMILY, FIELD, Floats2, Floats3, Ints, Ints2, add_entry, unpacker
from add.kernels.borrowed import borrowed, put
from add.kernels.caching import njit
from add.kernels.joint_laws import loop_curvature, loop_rows
from add.kernels.tree_map import add_point_curvature, fill_points
from add.kernels.tree_pullback import add_point_work
from add.kernels.trees import Tree, tree_motion
from add.typing import FloatArray, IntArray


@njit(**FAMILY)
def _lengths(theta, index):
    """Return the numbers at the indices, zero at -1."""
    out = np.zeros(index.size)
    for i in range(index.size):
        if index[i] >= 0:
            out[i] = theta[index[i]]
    return out


class _Loops(NamedTuple):
    kind: Ints
    frames: Ints2
    axes: Floats3
    length: Ints
    first: Ints


_loops = unpacker(_Loops)


@njit(**FAMILY)
def _loop_forces(arena, k, at, replay, rows, out):
    own = _loops(arena, arena.families[k, FIELD])
    first, m = own.first[0], own.kind.size
    c, G = np.empty(m), np.empty((m, 12))
    loop_rows(own.kind, own.frames, own.axes, _lengths(at.theta, own.length), at.q, c, G)
    for i in range(m):
        out[first + i] += c[i]
        for j in range(12):
            out[own.frames[i, j // 6] + j % 6] += G[i, j] * at.q[first + i]
    return rows


@njit(**FAMILY)
def _loop_jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    own = _loops(arena, arena.families[k, FIELD])
    first, m = own.first[0], own.kind.size
    c, G, H = np.empty(m), np.empty((m, 12)), np.empty((m, 12, 12))
    loop_rows(own.kind, own.frames, own.axes, _lengths(at.theta, own.length), at.q, c, G)
    loop_curvature(own.kind, own.frames, own.axes, at.q[first : first + m], at.q, H)
    for i in range(m):
        for j in range(12):
            data[slots[12 * i + j]] += weight_q * G[i, j]
            data[slots[12 * (m + i) + j]] += weight_q * G[i, j]
            for l in range(12):
                data[slots[12 * (2 * m + 12 * i + j) + l]] += weight_q * H[i, j, l]


@njit(**FAMILY)
def _loop_parameters(arena, k, at, rows, forward, along, out):
    own = _loops(arena, arena.families[k, FIELD])
    for i in range(own.length.size):
        if own.length[i] >= 0:
            add_entry(forward, own.first[0] + i, own.length[i], -1.0, along, out)


LOOPS = Kind("loops", _Loops, _loop_forces, _loop_parameters, _loop_jacobian, rates=True)


@final
@dataclass(frozen=True)
class LinkLoops(FamilyConstraint):
    """Rows of `add.kernels.joint_laws` between two frames each; mu are forces [N] and torques [N m].

    Frames are rows of X: their places on links are the lift's numbers.

    Attributes
    ----------
    kind : (m,)
    frames : (m, 2) first entries of both frames in X
    axes : (m, 2, 3) unit vectors e and f in them
    length : (m,)
        Indices in theta of distances [m]; -1 of rows without one.
    """

    closes_starts: ClassVar[bool] = True

    kind: IntArray
    frames: IntArray
    axes: FloatArray
    length: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.kind.size)

    def family(self, first: int) -> Family:
        """Return G and G^T, twelve a row, then blocks of twelve of the derivative of G^T mu."""
        dofs = (self.frames[:, :, None] + np.arange(6)).reshape(-1, 12)
        arrays = _Loops(self.kind, self.frames, self.axes, self.length, np.array([first]))
        return Family(LOOPS, arrays, bordered(first + np.repeat(np.arange(self.n_rows), 12), dofs.ravel(), dofs))


class Sums(NamedTuple):
    """Sums of coordinates, one for each equation: equation, coordinate and index in theta of the factor, -1 for one."""

    row: Ints
    dof: Ints
    factor: Ints


class _Couplings(NamedTuple):
    y: Sums
    x: Sums
    start: Floats2
    coefficients: Ints2
    first: Ints


_couplings = unpacker(_Couplings)


@njit(**FAMILY)
def _factor(theta, sums, e):
    """Return the factor of an entry."""
    return theta[sums.factor[e]] if sums.factor[e] >= 0 else 1.0


@njit(**FAMILY)
def _polynomials(own, at):
    """Return c (m,), x - x_0 (m,), the slopes and the second derivatives of the polynomials (m,)."""
    q, theta, m, there = at.q, at.theta, own.start.shape[0], np.zeros(own.start.shape[0], dtype=np.bool_)
    out = np.zeros((4, m))
    c, d, slope, bend = out[0], out[1], out[2], out[3]
    for e in range(own.y.row.size):
        c[own.y.row[e]] += _factor(theta, own.y, e) * q[own.y.dof[e]]
    for e in range(own.x.row.size):
        d[own.x.row[e]] += _factor(theta, own.x, e) * q[own.x.dof[e]]
        there[own.x.row[e]] = True
    for i in range(m):
        d[i] = d[i] - own.start[i, 1] if there[i] else 0.0
        value = 0.0
        for j in range(4, -1, -1):  # Horner's rule, with both derivatives
            number = own.coefficients[i, j]
            bend[i] = bend[i] * d[i] + 2.0 * slope[i]
            slope[i] = slope[i] * d[i] + value
            value = value * d[i] + (theta[number] if number >= 0 else 0.0)
        c[i] -= own.start[i, 0] + value
    return out


@njit(**FAMILY)
def _coupling_forces(arena, k, at, replay, rows, out):
    own = _couplings(arena, arena.families[k, FIELD])
    first, (c, _, slope, _) = own.first[0], _polynomials(own, at)
    for i in range(c.size):
        out[first + i] += c[i]
    for e in range(own.y.row.size):
        out[own.y.dof[e]] += _factor(at.theta, own.y, e) * at.q[first + own.y.row[e]]
    for e in range(own.x.row.size):
        i = own.x.row[e]
        out[own.x.dof[e]] -= _factor(at.theta, own.x, e) * slope[i] * at.q[first + i]
    return rows


@njit(**FAMILY)
def _coupling_jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    own = _couplings(arena, arena.families[k, FIELD])
    first, (_, _, slope, bend) = own.first[0], _polynomials(own, at)
    y, x, theta = own.y, own.x, at.theta
    n = y.row.size + x.row.size
    for e in range(n):
        of_y = e < y.row.size
        p = e if of_y else e - y.row.size
        value = weight_q * (_factor(theta, y, p) if of_y else -_factor(theta, x, p) * slope[x.row[p]])
        data[slots[e]] += value
        data[slots[n + e]] += value
    place = 2 * n
    for e in range(x.row.size):
        for p in range(x.row.size):
            i = x.row[e]
            if x.row[p] == i:
                value = at.q[first + i] * bend[i] * _factor(theta, x, e) * _factor(theta, x, p)
                data[slots[place]] -= weight_q * value
                place += 1


@njit(**FAMILY)
def _coupling_parameters(arena, k, at, rows, forward, along, out):
    own = _couplings(arena, arena.families[k, FIELD])
    first, (_, d, slope, bend) = own.first[0], _polynomials(own, at)
    y, x, theta, q = own.y, own.x, at.theta, at.q
    for i in range(d.size):
        power = 1.0
        for j in range(5):
            if own.coefficients[i, j] >= 0:
                add_entry(forward, first + i, own.coefficients[i, j], -power, along, out)
            power *= d[i]
    for e in range(y.row.size):
        if y.factor[e] >= 0:
            add_entry(forward, first + y.row[e], y.factor[e], q[y.dof[e]], along, out)
            add_entry(forward, y.dof[e], y.factor[e], q[first + y.row[e]], along, out)
    for e in range(x.row.size):
        i, by_x, power = x.row[e], _factor(theta, x, e), 1.0
        mu = q[first + i]
        for j in range(1, 5):
            if own.coefficients[i, j] >= 0:
                add_entry(forward, x.dof[e], own.coefficients[i, j], -by_x * mu * j * power, along, out)
            power *= d[i]
        if x.factor[e] >= 0:
            add_entry(forward, first + i, x.factor[e], -slope[i] * q[x.dof[e]], along, out)
            add_entry(forward, x.dof[e], x.factor[e], -mu * slope[i], along, out)
        for p in range(x.row.size):
            if x.row[p] == i and x.factor[p] >= 0:
                add_entry(forward, x.dof[e], x.factor[p], -mu * bend[i] * by_x * q[x.dof[p]], along, out)


COUPLINGS = Kind("couplings", _Couplings, _coupling_forces, _coupling_parameters, _coupling_jacobian, rates=True)


@final
@dataclass(frozen=True)
class JointCouplings(FamilyConstraint):
    """c = (y - y_0) - sum_k a_k (x - x_0)^k of coordinates or sums of them (lengths of tendons); mu are their forces.

    Attributes
    ----------
    y, x : Sums
        x of an equation without entries is x_0.
    start : (m, 2) y_0 and x_0 [rad, m]
    coefficients : (m, 5) indices in theta of a_0 to a_4; -1 for zero
    """

    of_coordinates: ClassVar[bool] = True
    closes_starts: ClassVar[bool] = True

    y: Sums
    x: Sums
    start: FloatArray
    coefficients: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.start)

    def family(self, first: int) -> Family:
        """Return G and G^T by y and by x, and pairs of the entries of x of the same row."""
        y, x = self.y, self.x
        left, right = np.nonzero(x.row[:, None] == x.row)
        row, dof = first + np.append(y.row, x.row), np.append(y.dof, x.dof)
        pattern = np.concatenate([row, dof, x.dof[left]]), np.concatenate([dof, row, x.dof[right]])
        arrays = *y, *x, self.start, self.coefficients, np.array([first])
        return Family(COUPLINGS, arrays, pattern)


class _Tied(NamedTuple):
    nodes: Ints
    element: Ints
    rest: Floats2
    moved: Ints
    first: Ints
    tree: Tree


_tied = unpacker(_Tied)


@njit(**FAMILY)
def _tied_state(own, at, rates):
    """Return the coordinates of the carrier, its motion at velocities ``rates``, and the multipliers."""
    first, n, m = own.first[0], own.first[1], own.rest.size
    q, mu = borrowed(at.q, first, (n,)), borrowed(at.q, own.first[2], (m,))
    return q, tree_motion(own.tree, at.theta, q, rates, np.zeros(n)), mu


@njit(**FAMILY)
def _tied_places(own, motion):
    """Return the places of the nodes in their frame, and their derivatives by the carrier's coordinates."""
    x, p, none = np.empty(own.rest.size), np.empty((own.rest.size, own.first[1])), np.empty((0, 0))
    fill_points(own.tree, motion, own.element, own.rest, x, p, none)
    return x, p


@njit(**FAMILY)
def _tied_forces(arena, k, at, replay, rows, out):
    own = _tied(arena, arena.families[k, FIELD])
    _, motion, mu = _tied_state(own, at, np.zeros(own.first[1]))
    x, p = _tied_places(own, motion)
    for i in range(x.size):
        node = own.nodes[i // 3] + i % 3
        out[own.first[2] + i] += at.q[node] - x[i]
        out[node] += mu[i]
        for j in own.moved:
            out[own.first[0] + j] -= p[i, j] * mu[i]
    return rows


@njit(**FAMILY)
def _tied_jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    own = _tied(arena, arena.families[k, FIELD])
    q, motion, mu = _tied_state(own, at, np.zeros(own.first[1]))
    (x, p), n, moved = _tied_places(own, motion), own.first[1], own.moved.size
    both, bent = x.size * (1 + moved), np.zeros((n, n))
    for i in range(x.size):
        for side in range(2):
            data[slots[side * both + i]] += weight_q
            for j in range(moved):
                data[slots[side * both + x.size + i * moved + j]] -= weight_q * p[i, own.moved[j]]
    add_point_curvature(own.tree, motion, own.element, own.rest, q, 1.0, mu, bent)
    for i in range(moved):
        for j in range(moved):
            data[slots[2 * both + i * moved + j]] -= weight_q * bent[own.moved[i], own.moved[j]]


@njit(**FAMILY)
def _tied_parameters(arena, k, at, rows, forward, along, out):
    own = _tied(arena, arena.families[k, FIELD])
    first, n, m = own.first[0], own.first[1], own.rest.size
    # mu^T d(P lam)/dtheta and lam^T dPhi/dtheta are linear in lam: forward, those of units.
    for unit in range(n + m if forward else 1):
        lam, c_bar = np.zeros(n), np.zeros(m)
        if forward and unit < n:
            lam[unit] = 1.0
        elif forward:
            c_bar[unit - n] = 1.0
        else:
            put(along[first : first + n], lam)
            put(along[own.first[2] : own.first[2] + m], c_bar)
        _, motion, mu = _tied_state(own, at, lam)
        works = np.zeros((own.tree.parent.size, 6))
        add_point_work(own.tree, at.theta, motion, own.element, own.rest, c_bar, mu, works)
        row = first + unit if unit < n else own.first[2] + unit - n
        for i in range(works.shape[0]):
            for b in range(6):
                number = own.tree.placement[i, b]
                if number >= 0 and forward:
                    out[row] -= works[i, b] * along[number]
                elif number >= 0:
                    out[number] -= works[i, b]


TIED = Kind("tied_points", _Tied, _tied_forces, _tied_parameters, _tied_jacobian, rates=True)


@final
@dataclass(frozen=True)
class TiedPoints(FamilyConstraint):
    """c = x - Phi(y) = 0, places of nodes and those in the frame of a carrier; mu is the force of each on it [N].

    With P = dPhi/dy, forces are mu on the nodes and -P^T mu on the coordinates y of the carrier; their derivative has
    -sum_i mu_i d2Phi_i/dy2 (see `add.kernels.tree_map`).

    Attributes
    ----------
    body, carrier : names, for results
    nodes : (k,) first coordinate of each node
    frame : TiedNodes
    first : first of the coordinates y
    """

    of_coordinates: ClassVar[bool] = True

    body: str
    carrier: str
    nodes: IntArray
    frame: TiedNodes
    first: int

    @property
    def n_rows(self) -> int:
        """Three a node."""
        return 3 * self.nodes.size

    def points(self, q: FloatArray) -> FloatArray:
        """Return the places (k, 3) of the nodes."""
        return q[self.nodes[:, None] + np.arange(3)]

    def family(self, first: int) -> Family:
        """Return G, one entry a row by the nodes, then blocks by y; G^T; the derivative by y."""
        frame, rows, moved = self.frame, first + np.arange(self.n_rows), np.flatnonzero(self.frame.structure[0])
        y, dofs = self.first + moved, (self.nodes[:, None] + np.arange(3)).ravel()
        numbers = np.array([self.first, frame.n_coordinates, first])
        arrays = self.nodes, frame.elements, frame.rest, moved, numbers, *frame.frame.tree
        pattern = bordered(np.append(rows, np.repeat(rows, y.size)), np.append(dofs, np.tile(y, rows.size)), y[None])
        return Family(TIED, arrays, pattern)
