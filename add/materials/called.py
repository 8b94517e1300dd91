"""Elastic laws as compiled loops call them, by address: one loop serves all laws, and is compiled once for all.

A law then compiles its own functions alone, in a second or two where the loops took twenty. A call costs some 20 ns at
a point, where forces of a linear tetrahedron take 100 and derivatives 1000.
"""

import functools
from typing import Any

import numpy as np
from numba import types

from add.kernels.by_address import Callee, address, by_address
from add.materials.formulas import LawFunctions, Material
from add.typing import IntArray

_NUMBERS, _MATRIX = types.float64[::1], types.float64[:, ::1]
_AT = _NUMBERS, _MATRIX, _MATRIX, types.float64
_SIGNATURES: tuple[tuple[tuple[Any, ...], Any], ...] = (
    (_AT, types.float64),
    ((*_AT, _MATRIX), types.none),
    ((*_AT, types.float64[:, :, :, ::1]), types.none),
    ((*_AT, types.float64[:, :, ::1]), types.none),
    ((_NUMBERS, _MATRIX), types.UniTuple(types.float64, 2)),
)

#: Entries of what `called` returns: the addresses of `LawFunctions`, and how many rows of numbers a point has.
ENERGY, STRESS, TANGENT, BY_PARAMETERS, LINEAR_MODULI, ROWS = range(6)

call_energy, call_stress, call_tangent, call_by_parameters, call_linear_moduli = (
    by_address(f"law's {name}", functools.partial(Callee, None, *signature))
    for name, signature in zip(LawFunctions._fields, _SIGNATURES, strict=True)
)


def callees(law: Material) -> list[Callee]:
    """Return the functions of a law with their types."""
    return [Callee(function, *signature) for function, signature in zip(law.functions, _SIGNATURES, strict=True)]


@functools.cache
def called(law: Material) -> IntArray:
    """Return the addresses of a law's functions in this process, which are compiled if need be, and `ROWS`."""
    return np.array([*map(address, callees(law)), int(law.by_point)])
