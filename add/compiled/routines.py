"""The routines that compiled steps call by address: LAPACK, and the equations of a state."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import typeof

from add.compiled.arrays import KINDS, Instant, Signals
from add.compiled.by_address import Callee, address, by_address
from add.compiled.equations import jacobian, matrices, parameters, residual
from add.compiled.families import Choices
from add.compiled.inputs import inputs
from add.compiled.packed import empty, packed
from add.linalg.blas import addresses


class Routines(NamedTuple):
    """Addresses in this process."""

    getrf: int
    getrs: int
    residual: int
    jacobian: int
    matrices: int
    parameters: int
    inputs: int


#: Addresses of nothing, for their types.
NONE = Routines(0, 0, 0, 0, 0, 0, 0)


@cache
def callees() -> tuple[Callee, ...]:
    """Return the functions of the equations with the types of their arguments and results."""
    families = packed(empty(kind) for kind in KINDS)
    one, rows = np.zeros(0), np.zeros((0, 3), dtype=np.int64)
    at = Instant(0.0, one, one, one, one, Signals(one, rows))
    choices = Choices(rows, rows, np.zeros(0, dtype=np.int8))
    many, counts = np.zeros((0, 0)), np.zeros(0, dtype=np.int64)
    calls = (
        (residual, (families, at, one, False, choices, 0, one), (choices, 0.0)),
        (jacobian, (families, at, one, choices, 0.0, 0.0, 0.0, one), None),
        (matrices, (families, at, one, choices, many, many), None),
        (parameters, (families, at, one, choices, many, one, one), None),
        (inputs, (families, at, one, choices, counts), (counts, many)),
    )
    return tuple(
        Callee(function, tuple(map(typeof, arguments)), typeof(result)) for function, arguments, result in calls
    )


@cache
def routines() -> Routines:
    """Return the addresses; what is not on disk is compiled."""
    blas = addresses()
    return Routines(blas.getrf, blas.getrs, *map(address, callees()))


def _caller(k: int, name: str) -> Any:
    """Return the call by address of one of `callees`, as (address, arguments)."""
    return by_address(name, lambda: callees()[k])


call_residual, call_jacobian, call_matrices, call_parameters, call_inputs = (
    _caller(k, name) for k, name in enumerate(("residual", "jacobian", "matrices", "parameters", "inputs"))
)
