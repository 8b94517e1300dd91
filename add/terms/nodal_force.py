"""Nodal loads that vary in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

from add.equations.family import NO_ENTRIES, Family, Kind
from add.equations.family_term import FamilyTerm
from add.equations.signals import Signal
from add.kernels.arena import FAMILY, FIELD, Floats, Floats2, Ints, Ints2, add_entry, row_of, unpacker, window
from add.kernels.caching import njit
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


@njit(**FAMILY)
def _inputs(arena, k, at, rows, indptr, found):
    own = _own(arena, arena.families[k, FIELD])
    first, weights = window(arena, k, at)
    for j in range(weights.size):
        for c in range(3):
            to = row_of(own.rows[first + j, c], indptr, found)
            if to >= 0:
                for i in range(own.nodes.size):
                    found.values[to, 3 * own.nodes[i] + c] -= _share(own, at, i) * weights[j]


KIND = Kind("nodal_force", _Arrays, _forces, _parameters, inputs=_inputs)


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

    @property
    def inputs(self) -> IntArray:
        """See `Term.inputs`."""
        return self.rows.ravel()

    def family(self) -> Family:
        """See `Term.family`."""
        arrays = _Arrays(self.nodes, self.shares, self.rows, self.slopes, self.place)
        return Family(KIND, arrays, NO_ENTRIES, self.signal, followers=3)
