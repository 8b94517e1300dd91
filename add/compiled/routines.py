"""The routines that compiled steps call by address: LAPACK, and the equations of a state."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import typeof

from add.compiled import equations, tree_equations
from add.compiled.walk import Choices
from add.kernels.by_address import Callee, address, by_address
from add.kernels.families import empty_arena, empty_instant
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
def callees(trees: bool) -> tuple[Callee, ...]:
    """Return the equations of systems with trees, or without, and the types of their arguments and results."""
    of = tree_equations if trees else equations
    families, at, one = empty_arena(), empty_instant(), np.zeros(0)
    many, counts = np.zeros((0, 0)), np.zeros(0, dtype=np.int64)
    choices = Choices(np.zeros((0, 3), dtype=np.int64), counts)
    calls = (
        (of.residual, (families, at, one, False, choices, 0, one), (choices, 0.0)),
        (of.jacobian, (families, at, one, choices, 0.0, 0.0, 0.0, one), None),
        (of.matrices, (families, at, one, choices, many, many), None),
        (of.parameters, (families, at, one, choices, many, one, one), None),
        (of.inputs, (families, at, one, choices, counts), (counts, many)),
    )
    return tuple(
        Callee(function, tuple(map(typeof, arguments)), typeof(result)) for function, arguments, result in calls
    )


@cache
def routines(trees: bool) -> Routines:
    """Return the addresses for systems with trees, or without; what is not on disk is compiled."""
    blas = addresses()
    return Routines(blas.getrf, blas.getrs, *map(address, callees(trees)))


def _caller(k: int, name: str) -> Any:
    """Return the call by address of one of `callees`, as (address, arguments)."""
    return by_address(name, lambda: callees(False)[k])


call_residual, call_jacobian, call_matrices, call_parameters, call_inputs = (
    _caller(k, name) for k, name in enumerate(("residual", "jacobian", "matrices", "parameters", "inputs"))
)
