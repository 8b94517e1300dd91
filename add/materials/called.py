"""Elastic laws as compiled loops call them, by address: one loop serves all laws, and is compiled once for all.

A law then compiles its own functions alone, in a second or two where the loops took twenty. A call takes addresses of
arrays, as arrays themselves fill some 35 words: it costs 3 ns at a point in place of 32, where forces of a linear
tetrahedron take 70 and derivatives 400.
"""

import functools
from typing import Any

import numpy as np
from numba import types

from add.kernels.borrowed import floats_at, place_of
from add.kernels.by_address import Callee, address, by_address
from add.kernels.caching import CALLED, njit
from add.materials.formulas import LawFunctions, Material
from add.typing import IntArray

_PLACE, _FLOAT = types.uint64, types.float64
_AT = _PLACE, types.int64, _PLACE, _PLACE, _FLOAT
#: Types of arguments and results: addresses of p, F and its cofactor matrix, how many numbers p has; J; where to write.
_SIGNATURES: tuple[tuple[tuple[Any, ...], Any], ...] = (
    (_AT, _FLOAT),
    *(((*_AT, _PLACE), types.none),) * 3,
    ((_PLACE, types.int64, _PLACE), types.UniTuple(_FLOAT, 2)),
)

#: Entry of what `called` returns, behind the addresses of `LawFunctions`: how many rows of numbers a point has.
ROWS = 5
_JIT = {"nogil": True, "error_model": "numpy"}

_energy, _stress, _tangent, _by_parameters, _linear_moduli = (
    by_address(f"law's {name}", functools.partial(Callee, None, *signature))
    for name, signature in zip(LawFunctions._fields, _SIGNATURES, strict=True)
)


@njit(**_JIT)
def law_energy(law, p, f, cof, jac):
    """See `LawFunctions.energy`; ``law`` is what `called` returns, here as below."""
    return _energy(law[0], (place_of(p), p.size, place_of(f), place_of(cof), jac))


@njit(**_JIT)
def law_stress(law, p, f, cof, jac, out):
    """See `LawFunctions.stress`."""
    _stress(law[1], (place_of(p), p.size, place_of(f), place_of(cof), jac, place_of(out)))


@njit(**_JIT)
def law_tangent(law, p, f, cof, jac, out):
    """See `LawFunctions.tangent`."""
    _tangent(law[2], (place_of(p), p.size, place_of(f), place_of(cof), jac, place_of(out)))


@njit(**_JIT)
def law_by_parameters(law, p, f, cof, jac, out):
    """See `LawFunctions.by_parameters`."""
    _by_parameters(law[3], (place_of(p), p.size, place_of(f), place_of(cof), jac, place_of(out)))


@njit(**_JIT)
def law_linear_moduli(law, p, slopes):
    """See `LawFunctions.linear_moduli`."""
    return _linear_moduli(law[4], (place_of(p), p.size, place_of(slopes)))


@functools.cache
def callees(law: Material) -> tuple[Callee, ...]:
    """Return the functions of a law by address, with their types."""
    of_energy, of_stress, of_tangent, of_numbers, of_rest = law.functions
    kept = CALLED | {"nogil": True, "variant": law.name}

    @njit(**kept)
    def energy(p, n, f, cof, jac):
        return of_energy(floats_at(p, (n,)), floats_at(f, (3, 3)), floats_at(cof, (3, 3)), jac)

    @njit(**kept)
    def stress(p, n, f, cof, jac, out):
        of_stress(floats_at(p, (n,)), floats_at(f, (3, 3)), floats_at(cof, (3, 3)), jac, floats_at(out, (3, 3)))

    @njit(**kept)
    def tangent(p, n, f, cof, jac, out):
        of_tangent(floats_at(p, (n,)), floats_at(f, (3, 3)), floats_at(cof, (3, 3)), jac, floats_at(out, (3, 3, 3, 3)))

    @njit(**kept)
    def by_parameters(p, n, f, cof, jac, out):
        of_numbers(floats_at(p, (n,)), floats_at(f, (3, 3)), floats_at(cof, (3, 3)), jac, floats_at(out, (n, 3, 3)))

    @njit(**kept)
    def linear_moduli(p, n, slopes):
        mu, lame = of_rest(floats_at(p, (n,)), floats_at(slopes, (2, n)))
        return float(mu), float(lame)

    functions = energy, stress, tangent, by_parameters, linear_moduli
    return tuple(Callee(function, *signature) for function, signature in zip(functions, _SIGNATURES, strict=True))


@functools.cache
def called(law: Material) -> IntArray:
    """Return the addresses of a law's functions in this process, which are compiled if need be, and `ROWS`."""
    return np.array([*map(address, callees(law)), int(law.by_point)])
