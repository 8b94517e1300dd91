"""Calls of a family's functions by address, from compiled functions and from Python."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import typeof

from add.kernels.arena import (
    COLUMNS,
    FORCES,
    JACOBIAN,
    PARAMETERS,
    Arena,
    Found,
    Instant,
    Signals,
    context_of,
)
from add.kernels.by_address import Callee, by_address
from add.kernels.caching import njit


def empty_arena() -> Arena:
    """Return the arena of nothing, for its type."""
    fields, families = np.zeros((0, 5), dtype=np.int64), np.zeros((0, COLUMNS), dtype=np.int64)
    return Arena(np.zeros(0, dtype=np.int64), np.zeros(0), fields, families)


def empty_instant() -> Instant:
    """Return an instant of nothing, for its type."""
    one = np.zeros(0)
    return Instant(0.0, one, one, one, one, Signals(one, np.zeros((0, 3), dtype=np.int64)))


@cache
def signatures() -> tuple[tuple[tuple[Any, ...], Any], ...]:
    """Return the types of arguments and result of a family's functions, in the order of their columns."""
    one, rows, counts = np.zeros(0), np.zeros((0, 3), dtype=np.int64), np.zeros(0, dtype=np.int64)
    found = Found(counts, counts, counts, np.zeros((0, 0)))
    calls = (
        ((counts, 0.0, 0, False, rows, one), rows),
        ((counts, 0.0, 0, rows, 0.0, 0.0, 0.0, one, counts), None),
        ((counts, 0.0, 0, rows, False, one, one), None),
        ((counts, 0.0, 0, rows, counts, found), None),
    )
    return tuple((tuple(map(typeof, arguments)), typeof(result)) for arguments, result in calls)


def _caller(k: int, name: str) -> Any:
    return by_address(f"family's {name}", lambda: Callee(None, *signatures()[k]))


call_forces, call_jacobian, call_parameters, call_inputs = (
    _caller(k, name) for k, name in enumerate(("forces", "jacobian", "parameters", "inputs"))
)


@njit(cache=True, error_model="numpy", nogil=True)
def run_forces(arena, at, replay, rows, out):
    """Add the forces of an arena's first family; return the rows."""
    return call_forces(arena.families[0, FORCES], (context_of(arena, at), at.t, 0, replay, rows, out))


@njit(cache=True, error_model="numpy", nogil=True)
def run_jacobian(arena, at, rows, weight_q, weight_v, weight_a, data, slots):
    """Add the weighted derivatives of an arena's first family."""
    call_jacobian(
        arena.families[0, JACOBIAN],
        (context_of(arena, at), at.t, 0, rows, weight_q, weight_v, weight_a, data, slots),
    )


@njit(cache=True, error_model="numpy", nogil=True)
def run_parameters(arena, at, rows, forward, along, out):
    """Add the derivatives by theta of an arena's first family, along theta or backward."""
    call_parameters(arena.families[0, PARAMETERS], (context_of(arena, at), at.t, 0, rows, forward, along, out))
