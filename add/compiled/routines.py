"""The routines that compiled steps call by address: LAPACK, the equations of a state, and sparse matrices."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import typeof

from add.compiled import equations, sparse as sparse_matrix, tree_equations
from add.compiled.linear import make, no_linear
from add.compiled.walk import Choices
from add.kernels.by_address import Callee, address, by_address
from add.kernels.families import empty_arena, empty_instant
from add.linalg.blas import Blas, addresses


class Routines(NamedTuple):
    """Addresses in this process; those of sparse matrices are zero where matrices are dense.

    ``limit`` fills (1,) with the share of the way from q to another one, (n,), that a trial may go, by Python; zero
    where it may go anywhere.
    """

    blas: Blas
    residual: int
    jacobian: int
    matrices: int
    parameters: int
    inputs: int
    factor: int
    solve: int
    product: int
    limit: int


#: Addresses of nothing, for their types.
NONE = Routines(Blas(*[0] * len(Blas._fields)), 0, 0, 0, 0, 0, 0, 0, 0, 0)


@cache
def callees(trees: bool, sparse: bool) -> tuple[Callee, ...]:
    """Return the equations of systems with trees, or without, and the functions of ``sparse`` matrices, with types."""
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
    matrices = (families, NONE.blas, no_linear())
    of_matrices = (
        (sparse_matrix.factor, (*matrices, one), 0.0),
        (sparse_matrix.solve, (*matrices, 0.0, False, one, one, one), False),
        (sparse_matrix.add_product, (families, one, one, False, one), None),
    )
    return tuple(
        Callee(function, tuple(map(typeof, arguments)), typeof(result))
        for function, arguments, result in (*calls, *(of_matrices if sparse else ()))
    )


@cache
def routines(trees: bool, sparse: bool) -> Routines:
    """Return the addresses for systems with trees, or without; what is not on disk is compiled."""
    found = [address(callee) for callee in callees(trees, sparse)]
    return Routines(addresses(), *found, *[0] * (len(Routines._fields) - 1 - len(found)))


def _caller(k: int, name: str) -> Any:
    """Return the call by address of one of `callees`, as (address, arguments)."""
    return by_address(name, lambda: callees(False, True)[k])


call_residual, call_jacobian, call_matrices, call_parameters, call_inputs, *_of_sparse = (
    _caller(k, name)
    for k, name in enumerate(("residual", "jacobian", "matrices", "parameters", "inputs", "factor", "solve", "product"))
)
factor, solve, add_product = make(*_of_sparse)
