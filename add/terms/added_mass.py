"""Water that the faces of a body accelerate with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind
from add.equations.family_term import FamilyTerm
from add.kernels.arena import FAMILY, FIELD, Ints, Ints2, add_entry, unpacker
from add.kernels.caching import njit
from add.terms.pressure import face_pattern
from add.typing import IntArray


class _Arrays(NamedTuple):
    """Triangles, and where the density and the depth stand in theta."""

    triangles: Ints2
    numbers: Ints


_own = unpacker(_Arrays)


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
def _forces(arena, k, at, replay, rows, out):
    own = _own(arena, arena.families[k, FIELD])
    _add(own, at, at.theta[own.numbers[0]] * at.theta[own.numbers[1]], out)
    return rows


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    own = _own(arena, arena.families[k, FIELD])
    layer = at.theta[own.numbers[0]] * at.theta[own.numbers[1]]
    area, mean, edge, by_area = np.empty(3), np.empty(3), np.empty(3), np.empty((3, 3))
    for e in range(own.triangles.shape[0]):
        size, along = _face(at, own.triangles[e], area, mean)
        if size == 0.0:
            continue
        for i in range(3):
            for j in range(3):
                outer = area[i] * area[j] / size
                by_area[i, j] = area[i] * mean[j] / size - along * outer / size**2 + (along / size if i == j else 0.0)
        for corner in range(3):
            after, before = 3 * own.triangles[e, (corner + 1) % 3], 3 * own.triangles[e, (corner + 2) % 3]
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
def _parameters(arena, k, at, rows, forward, along, out):
    own = _own(arena, arena.families[k, FIELD])
    unit = np.zeros(at.q.size)
    _add(own, at, 1.0, unit)
    for c in range(2):
        other = at.theta[own.numbers[1 - c]]
        for i in range(unit.size):
            add_entry(forward, i, own.numbers[c], other * unit[i], along, out)


KIND = Kind("added_mass", _Arrays, _forces, _parameters, _jacobian)


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
        return Family(KIND, _Arrays(self.triangles, self.numbers), face_pattern(self.triangles))
