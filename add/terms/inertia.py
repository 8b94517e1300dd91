"""Inertia of soft bodies and of masses on them, with damping, gravity, and water that moves with faces."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import NO_ENTRIES, Family, Kind, node_blocks
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics
from add.kernels.arena import FAMILY, FIELD, Floats, Floats2, Ints, Ints2, add_entry, rates_in, unpacker
from add.kernels.caching import njit
from add.typing import FloatArray, IntArray


@njit(cache=True)
def nodal_inertia_residual(theta, rows, cols, mass, density, damping, v, a, out):
    """Add M (a + alpha v) to ``out`` (n,); see `Inertia` for the arrays."""
    for k in range(rows.size):
        alpha = theta[damping[k]] if damping[k] >= 0 else 0.0
        i, j = 3 * rows[k], 3 * cols[k]
        for d in range(3):
            out[i + d] += theta[density[k]] * mass[k, d] * (a[j + d] + alpha * v[j + d])


class _Arrays(NamedTuple):
    rows: Ints
    cols: Ints
    mass: Floats2
    density: Ints
    damping: Ints


_own = unpacker(_Arrays)


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    pairs = _own(arena, arena.families[k, FIELD])
    nodal_inertia_residual(at.theta, pairs.rows, pairs.cols, pairs.mass, pairs.density, pairs.damping, at.v, at.a, out)
    return rows


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if weight_v == 0.0 and weight_a == 0.0:
        return
    pairs = _own(arena, arena.families[k, FIELD])
    for i in range(pairs.rows.size):
        alpha = at.theta[pairs.damping[i]] if pairs.damping[i] >= 0 else 0.0
        value = at.theta[pairs.density[i]] * (weight_a + weight_v * alpha)
        for d in range(3):
            data[slots[3 * i + d]] += value * pairs.mass[i, d]


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    pairs = _own(arena, arena.families[k, FIELD])
    products = rates_in(forward, at, out)
    for i in range(pairs.rows.size):  # by pairs, of which a soft body has many: not entry by entry
        density, damping, row, col = pairs.density[i], pairs.damping[i], 3 * pairs.rows[i], 3 * pairs.cols[i]
        alpha, by_a, by_v = at.theta[damping] if damping >= 0 else 0.0, 0.0, 0.0
        density_dot = along[density] if forward else 0.0
        damping_dot = at.theta[density] * along[damping] if forward and damping >= 0 else 0.0
        for d in range(3):
            mass, a, v = pairs.mass[i, d], at.a[col + d], at.v[col + d]
            if forward:
                out[row + d] += mass * (density_dot * (a + alpha * v) + damping_dot * v)
            else:
                by_a += mass * along[row + d] * a
                by_v += mass * along[row + d] * v
        for d in range(3 if products.size else 0):
            load = at.theta[density] * pairs.mass[i, d] * along[row + d]
            products[col + d] += alpha * load
            if products.size > at.v.size:
                products[at.v.size + col + d] += load
        if not forward:
            out[density] += by_a + alpha * by_v
            if damping >= 0:
                out[damping] += at.theta[density] * by_v


KIND = Kind("inertia", _Arrays, _forces, _parameters, _jacobian, rates=True)


@final
@dataclass(frozen=True)
class Inertia(FamilyTerm):
    """r = M (a + alpha v), M = sum over node pairs of theta[density] * mass.

    A soft body contributes its mass matrix at unit density (consistent or lumped); a point mass on a weighted set of
    nodes contributes w_i w_j at unit mass, its "density" being the mass itself.

    Attributes
    ----------
    rows, cols : (k,)
        Nodes of the system.
    mass : (k, 3)
        Mass at unit density [m^3], or products of weights [-], along each axis: the three differ only for a mass that
        hangs on a string, which does not follow sideways.
    density : (k,)
        Index in theta of the density [kg/m^3] or mass [kg].
    damping : (k,)
        Index in theta of the mass-proportional damping alpha [1/s]; -1 for none.
    """

    depends: ClassVar[str] = "va"
    linear: ClassVar[str] = "va"

    rows: IntArray
    cols: IntArray
    mass: FloatArray
    density: IntArray
    damping: IntArray

    def family(self) -> Family:
        """Return three diagonal entries a node pair."""
        rows, cols = (np.asarray((3 * nodes[:, None] + np.arange(3)).ravel()) for nodes in (self.rows, self.cols))
        arrays = _Arrays(self.rows, self.cols, self.mass, self.density, self.damping)
        return Family(KIND, arrays, (rows, cols))

    def kinetic_energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return v^T M v / 2 [J]."""
        return 0.5 * float(self._momenta(kin, theta) @ kin.v)

    def momentum(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return the linear momentum (3,) [kg m/s]."""
        return self._momenta(kin, theta).reshape(-1, 3).sum(axis=0)

    def _momenta(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return M v (n,)."""
        r, none = np.zeros_like(kin.v), np.full_like(self.damping, -1)
        nodal_inertia_residual(theta, self.rows, self.cols, self.mass, self.density, none, kin.v, kin.v, r)
        return r


class _Weights(NamedTuple):
    nodes: Ints
    mass: Floats
    density: Ints
    gravity: Ints


_weights = unpacker(_Weights)


@njit(**FAMILY)
def _gravity_forces(arena, k, at, replay, rows, out):
    points = _weights(arena, arena.families[k, FIELD])
    for i in range(points.nodes.size):
        m = at.theta[points.density[i]] * points.mass[i]
        for d in range(3):
            out[3 * points.nodes[i] + d] -= m * at.theta[points.gravity[d]]
    return rows


@njit(**FAMILY)
def _gravity_parameters(arena, k, at, rows, forward, along, out):
    points = _weights(arena, arena.families[k, FIELD])
    for i in range(points.nodes.size):
        density, mass = points.density[i], points.mass[i]
        for d in range(3):
            row, g = 3 * points.nodes[i] + d, points.gravity[d]
            add_entry(forward, row, g, -at.theta[density] * mass, along, out)
            add_entry(forward, row, density, -mass * at.theta[g], along, out)


GRAVITY = Kind("gravity", _Weights, _gravity_forces, _gravity_parameters)


@final
@dataclass(frozen=True)
class Gravity(FamilyTerm):
    """r = -m g at every node, m = theta[density] * mass (row sums of the mass matrix).

    Attributes
    ----------
    nodes : (k,)
    mass : (k,)
        Mass at unit density [m^3], or weights of a point mass [-].
    density : (k,)
        Index in theta of the density [kg/m^3] or mass [kg].
    gravity : (3,)
        Indices in theta of g [m/s2].
    """

    depends: ClassVar[str] = ""

    nodes: IntArray
    mass: FloatArray
    density: IntArray
    gravity: IntArray

    def family(self) -> Family:
        """See `Term.family`."""
        return Family(GRAVITY, _Weights(self.nodes, self.mass, self.density, self.gravity), NO_ENTRIES)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return -sum m g . x [J]."""
        height = kin.q.reshape(-1, 3)[self.nodes] @ theta[self.gravity]
        return -float((theta[self.density] * self.mass) @ height)


class _Water(NamedTuple):
    """Triangles, and where the density and the depth stand in theta."""

    triangles: Ints2
    numbers: Ints


_water = unpacker(_Water)


@njit(cache=True, error_model="numpy")
def _face(at, triangle, area, mean):
    """Fill the area vector A of a face and the mean b of its accelerations; return |A| and A . b."""
    a, b, c = 3 * triangle[0], 3 * triangle[1], 3 * triangle[2]
    size, along = 0.0, 0.0
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        x = at.q
        area[i] = 0.5 * ((x[b + j] - x[a + j]) * (x[c + k] - x[a + k]) - (x[b + k] - x[a + k]) * (x[c + j] - x[a + j]))
        mean[i] = (at.a[a + i] + at.a[b + i] + at.a[c + i]) / 3.0
        size += area[i] ** 2
        along += area[i] * mean[i]
    return math.sqrt(size), along


@njit(**FAMILY)
def _add(own, at, factor, out):
    """Add factor (A . b) A / (3 |A|) to each corner of each face."""
    area, mean = np.empty(3), np.empty(3)
    for e in range(own.triangles.shape[0]):
        size, along = _face(at, own.triangles[e], area, mean)
        if size == 0.0:
            continue
        for corner in range(3):
            for i in range(3):
                out[3 * own.triangles[e, corner] + i] += factor * along * area[i] / (3.0 * size)


@njit(**FAMILY)
def _water_forces(arena, k, at, replay, rows, out):
    faces = _water(arena, arena.families[k, FIELD])
    _add(faces, at, at.theta[faces.numbers[0]] * at.theta[faces.numbers[1]], out)
    return rows


@njit(**FAMILY)
def _water_jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    faces = _water(arena, arena.families[k, FIELD])
    layer = at.theta[faces.numbers[0]] * at.theta[faces.numbers[1]]
    area, mean, edge, by_area = np.empty(3), np.empty(3), np.empty(3), np.empty((3, 3))
    for e in range(faces.triangles.shape[0]):
        size, along = _face(at, faces.triangles[e], area, mean)
        if size == 0.0:
            continue
        for i in range(3):
            for j in range(3):
                outer = area[i] * area[j] / size
                by_area[i, j] = area[i] * mean[j] / size - along * outer / size**2 + (along / size if i == j else 0.0)
        for corner in range(3):
            after, before = 3 * faces.triangles[e, (corner + 1) % 3], 3 * faces.triangles[e, (corner + 2) % 3]
            for i in range(3):
                edge[i] = at.q[before + i] - at.q[after + i]
            for i in range(3):
                for j in range(3):
                    # Column j of [e]x is e x (unit vector j).
                    m, n = (j + 1) % 3, (j + 2) % 3
                    turned = 0.5 * (by_area[i, m] * edge[n] - by_area[i, n] * edge[m])
                    value = weight_q * turned / 3.0 + weight_a * area[i] * area[j] / (9.0 * size)
                    for row in range(3):
                        data[slots[81 * e + 9 * (3 * row + i) + 3 * corner + j]] += layer * value


@njit(**FAMILY)
def _water_parameters(arena, k, at, rows, forward, along, out):
    faces = _water(arena, arena.families[k, FIELD])
    unit = np.zeros(at.q.size)
    _add(faces, at, 1.0, unit)
    for c in range(2):
        other = at.theta[faces.numbers[1 - c]]
        for i in range(unit.size):
            add_entry(forward, i, faces.numbers[c], other * unit[i], along, out)


WATER = Kind("added_mass", _Water, _water_forces, _water_parameters, _water_jacobian)


@final
@dataclass(frozen=True)
class AddedMass(FamilyTerm):
    """r = rho d (A . b) A/(3 |A|) on each corner of each face, b the mean of the accelerations of its corners.

    A face of area vector A accelerates the water before it as a layer of depth d along its normal. With d = R/2 that is
    all of the water about a ball of radius R that moves straight on: half the mass that it displaces. That the layer of
    a face that turns has another direction soon after is left out, terms of the velocity squared.

    Attributes
    ----------
    triangles : (m, 3)
        Nodes of the system.
    numbers : (2,)
        Indices in theta of the density rho [kg/m^3] and the depth d [m].
    """

    depends: ClassVar[str] = "qa"

    triangles: IntArray
    numbers: IntArray

    def family(self) -> Family:
        """Return a dense block a triangle."""
        return Family(WATER, _Water(self.triangles, self.numbers), node_blocks(self.triangles))
