"""Actuators of joints: a force along one coordinate that follows a signal, with feedback and a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind
from add.equations.family_term import FamilyTerm
from add.equations.signals import Signal
from add.kernels.arena import FAMILY, FIELD, Floats, Ints, add_entry, row_of, unpacker, window
from add.kernels.caching import njit
from add.kernels.joint_laws import COLUMNS, DRIVE, axis_law
from add.typing import IntArray


class _Arrays(NamedTuple):
    dof: Ints
    rows: Ints
    gains: Ints
    limit: Floats


_own = unpacker(_Arrays)


@njit(**FAMILY)
def _found(arena, k, at):
    """Return the arrays, the first row of the signal that acts, its weights, and r with its slopes (7,)."""
    own = _own(arena, arena.families[k, FIELD])
    first, weights = window(arena, k, at)
    p, out, place = np.zeros(4), np.empty(COLUMNS), own.dof[0]
    for j in range(weights.size):
        p[0] += weights[j] * at.theta[own.rows[first + j]]
    for j in range(3):
        p[1 + j] = at.theta[own.gains[j]]
    axis_law(DRIVE, at.q[place], at.v[place], p, own.limit[0], out)
    return own, first, weights, out


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    own, _, _, slopes = _found(arena, k, at)
    out[own.dof[0]] += slopes[0]
    return rows


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if weight_q != 0.0 or weight_v != 0.0:
        _, _, _, slopes = _found(arena, k, at)
        data[slots[0]] += weight_q * slopes[1] + weight_v * slopes[2]


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    own, first, weights, slopes = _found(arena, k, at)
    for j in range(weights.size):
        add_entry(forward, own.dof[0], own.rows[first + j], slopes[3] * weights[j], along, out)
    for j in range(3):
        add_entry(forward, own.dof[0], own.gains[j], slopes[4 + j], along, out)


@njit(**FAMILY)
def _inputs(arena, k, at, rows, indptr, found):
    own, first, weights, slopes = _found(arena, k, at)
    for j in range(weights.size):
        to = row_of(own.rows[first + j], indptr, found)
        if to >= 0:
            found.values[to, own.dof[0]] += slopes[3] * weights[j]


KIND = Kind("joint_drive", _Arrays, _forces, _parameters, _jacobian, _inputs)


@final
@dataclass(frozen=True)
class JointDrive(FamilyTerm):
    """r = -clip(g u(t) + b_q q + b_v v, -limit, limit) on one coordinate.

    Torque: g = 1; position servo: g = k_p, b_q = -k_p, b_v = -k_d; velocity servo: g = k_d, b_v = -k_d. Beyond the
    limit the force is constant, and its derivatives by everything but the limit are zero.

    Attributes
    ----------
    dof : int
    signal : Signal
    rows : (n_rows,) indices in theta of the coefficients of u
    gains : (3,) indices in theta of g, b_q, b_v
    limit : float
        Largest force [N, N m]; infinity for none.
    """

    depends: ClassVar[str] = "qv"

    dof: int
    signal: Signal
    rows: IntArray
    gains: IntArray
    limit: float = np.inf

    @property
    def inputs(self) -> IntArray:
        """See `Term.inputs`."""
        return self.rows.ravel()

    def family(self) -> Family:
        """Return the diagonal entry."""
        dof = np.array([self.dof])
        arrays = _Arrays(dof, self.rows, self.gains, np.array([self.limit]))
        return Family(KIND, arrays, (dof, dof), self.signal, followers=1)
