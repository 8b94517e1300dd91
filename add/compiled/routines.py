"""The routines that compiled steps call by address: LAPACK, equations of a state, sparse matrices, limits of trials."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, final

import numpy as np
from numba import typeof

from add.compiled import linear, sparse_trees, tree_equations, walk
from add.compiled.linear import make, no_linear
from add.compiled.walk import Choices
from add.equations.lifted import StepLimit
from add.kernels.arena import empty_arena, empty_instant
from add.kernels.by_address import Callee, address, by_address
from add.linalg.blas import Blas, addresses
from add.typing import FloatArray

#: Without a result: three addresses.
_CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@final
class AskedLimit:
    """A `StepLimit` that compiled functions ask, of one run: it says nothing of a step that they have not begun.

    What it raises waits until the call is over, for nothing passes through compiled functions.
    """

    def __init__(self, limit: StepLimit, n: int) -> None:
        self._limit, self._theta = limit, np.zeros(0)
        self._way = ctypes.c_double * n
        self._raised: BaseException | None = None
        self._call = _CALL(self._share)
        self._address = ctypes.cast(self._call, ctypes.c_void_p).value or 0

    def asked_at(self, theta: FloatArray) -> int:
        """Return the address at which ways with these numbers are asked for; see `add.compiled.routines.Routines`."""
        self._theta = theta
        return self._address

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Raise at the end what asking has raised within.

        Python answers signals in the first line of what is called, before it can be caught there, and ignores it.
        """
        usual = sys.unraisablehook

        def hear(what: "sys.UnraisableHookArgs") -> object:
            if issubclass(what.exc_type, KeyboardInterrupt) and what.object in (None, self._share):
                self._raised = what.exc_value
                return None
            return usual(what)

        sys.unraisablehook = hear
        try:
            yield
        finally:
            sys.unraisablehook = usual
            raised, self._raised = self._raised, None
        if raised is not None:
            raise raised

    def _share(self, begin: int, end: int, out: int) -> None:
        share = np.nan
        try:
            share = self._limit.share(self._at(begin), self._at(end), self._theta)
        except BaseException as error:  # also a signal of the user's
            self._raised = error
        ctypes.c_double.from_address(out).value = share

    def _at(self, address: int) -> FloatArray:
        """Return a copy of the coordinates at an address."""
        way: Any = self._way.from_address(address)
        return np.array(way)


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
    of = sparse_trees if trees and sparse else tree_equations if trees else walk
    families, at, one = empty_arena(), empty_instant(), np.zeros(0)
    many, counts = np.zeros((0, 0)), np.zeros(0, dtype=np.int64)
    choices = Choices(np.zeros((0, 3), dtype=np.int64), counts)
    calls = (
        (of.residual, (families, at, one, False, choices, 0, one), (choices, 0.0)),
        (of.jacobian, (families, at, one, choices, 0.0, 0.0, 0.0, one), None),
        (of.matrices, (families, at, one, choices, 0.0, many, many), None),
        (of.parameters, (families, at, one, choices, many, one, one), None),
        (of.inputs, (families, at, one, choices, counts), (counts, many)),
    )
    matrices = (families, NONE.blas, no_linear())
    of_matrices = (
        (linear.factor_sparse, (*matrices, one), 0.0),
        (linear.solve_sparse, (*matrices, 0.0, False, one, one, one), False),
        (linear.add_sparse_product, (families, one, one, False, one), None),
    )
    return tuple(
        Callee(function, tuple(map(typeof, arguments)), typeof(result))
        for function, arguments, result in (*calls, *(of_matrices if sparse else ()))
    )


@cache
def routines(trees: bool, sparse: bool) -> Routines:
    """Return the addresses for systems with trees, or without; what is not on disk is compiled."""
    pointers = [address(callee) for callee in callees(trees, sparse)]
    return Routines(addresses(), *pointers, *[0] * (len(Routines._fields) - 1 - len(pointers)))


def _caller(k: int, name: str) -> Any:
    """Return the call by address of one of `callees`, as (address, arguments)."""
    return by_address(name, lambda: callees(False, True)[k])


call_residual, call_jacobian, call_matrices, call_parameters, call_inputs, *_of_sparse = (
    _caller(k, name)
    for k, name in enumerate(("residual", "jacobian", "matrices", "parameters", "inputs", "factor", "solve", "product"))
)
factor, solve, add_product = make(*_of_sparse)
