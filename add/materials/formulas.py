"""The elastic law of a material as a value, and laws by formula: W of invariants, its derivatives made from the text.

A law is a strain energy density W(F; p) [J/m^3] of the deformation gradient F with a few parameters p. The loops over
elements (`add.materials.elements`) are compiled once for all laws, and call them by address: a law compiles its own
functions alone, in a second or two where the loops took twenty. Arrays, some 35 words each, go as addresses, too: a
call costs 3 ns at a point in place of 32, where forces of a linear tetrahedron take 70 and derivatives 400.

A formula is in I1, I2, J of C = F^T F, in the principal stretches l1, l2, l3, in which it is symmetric, in the
invariants of fibres with the directions a and s at rest, I4 = |F a|^2, I6 = |F s|^2 and I8 = F a . F s, and in
parameters. Names with a b do not see changes of volume: I1b = J^(-2/3) I1, I2b = J^(-4/3) I2, l1b = J^(-1/3) l1,
I4b = J^(-2/3) I4.

A law has no stress at rest where 2 W_1 + 4 W_2 + W_J + W_l1 = 0 at (3, 3, 1, 1, 1, 1), and no fibre pulls there.
Without its fibres it is linear elasticity there with

    mu = 2 (W_1 + W_2) + (W_l1l1 - W_l1l2 + W_l1)/2,
    lambda = 4 (W_11 + 4 W_12 + 4 W_22 + W_1J + 2 W_2J + W_2) + W_JJ + W_J + W_l1l2 + 4 W_1l1 + 8 W_2l1 + 2 W_Jl1.

Where a logarithm has no value (Gent's limit), neither has the law: energy and stress are NaN there, which the line
search rejects as it does inverted elements.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, final

import numpy as np
from numba import types

from add.errors import InputError
from add.kernels.borrowed import floats_at, place_of
from add.kernels.by_address import Callee, address, by_address
from add.kernels.caching import CALLED, INNER, njit
from add.laws import (
    ZERO,
    Expression,
    Number,
    derivative,
    evaluate,
    parse,
    substitute,
    symbols,
    total,
    unknown_sign,
    walk,
)
from add.typing import IntArray


class Modulus(NamedTuple):
    """A parameter of a law: its key in scenes and in theta, its unit, and a line about it."""

    key: str
    unit: str
    description: str


class LawFunctions(NamedTuple):
    """The compiled functions of an elastic law.

    All take p (n_p,), and those of a deformation F (3, 3), its cofactor matrix J F^-T and J = det F > 0.

    Attributes
    ----------
    energy : (p, f, cof, jac) -> W [J/m^3]
    stress : (p, f, cof, jac, out)
        Writes the first Piola stress P = dW/dF (3, 3) [Pa].
    tangent : (p, f, cof, jac, out)
        Writes out[i, j, m, n] = d2W/dF_im dF_jn [Pa] for i <= j; the others follow by symmetry.
    by_parameters : (p, f, cof, jac, out)
        Writes out[k] = dP/dp_k (3, 3).
    linear_moduli : (p, slopes) -> (mu, lambda)
        The Lame constants of the law linearised at rest [Pa]; writes their slopes (2, n_p) by p. Damping that is
        proportional to stiffness is made of them.
    """

    energy: Callable[..., float]
    stress: Callable[..., None]
    tangent: Callable[..., None]
    by_parameters: Callable[..., None]
    linear_moduli: Callable[..., tuple[float, float]]


@final
@dataclass(frozen=True)
class Material:
    """An elastic law: its name, its parameters, its compiled functions, and its formula where a scene writes that.

    Attributes
    ----------
    name : str
        Of scenes and results; of a formula a hash that tells its kernels from others.
    parameters : tuple of Modulus
        In the order of p.
    make : () -> LawFunctions
        Makes the functions, when they are asked for first: to derive those of all laws takes a quarter of a second.
    by_point : bool
        Whether every quadrature point has numbers of its own.
    formula : str
        Of a law that a scene writes itself, see `add.materials.formulas`; empty for laws with names.
    """

    name: str
    parameters: tuple[Modulus, ...]
    make: Callable[[], LawFunctions]
    by_point: bool = False
    formula: str = ""

    @functools.cached_property
    def functions(self) -> LawFunctions:
        """The compiled functions."""
        return self.make()


#: Parameters of laws that are written in Lame's constants: scenes may give Young's modulus and Poisson's ratio instead.
LAME = (
    Modulus("mu", "Pa", "shear modulus, Lame's second parameter"),
    Modulus("lambda", "Pa", "Lame's first parameter"),
)

#: Unit directions of fibres at rest, which the parameters of laws with fibres end with.
DIRECTIONS = tuple(
    Modulus(f"{name}.{axis}", "-", f"{axis} of the unit vector of the {name} at rest")
    for name in ("fibre", "sheet")
    for axis in "xyz"
)


INVARIANTS_OF_C = ("I1", "I2", "J")
STRETCHES = ("l1", "l2", "l3")
#: Invariants of fibres -> the directions that they take, 0 the fibre's and 1 the sheet's.
FIBRES = {"I4": (0, 0), "I6": (1, 1), "I8": (0, 1)}
_POWERS = {"I1": "-2/3", "I2": "-4/3"} | dict.fromkeys(STRETCHES, "-1/3") | dict.fromkeys(FIBRES, "-2/3")
_ISOCHORIC = {f"{name}b": parse(f"J**({power})*{name}") for name, power in _POWERS.items()}
_OF_DEFORMATION = (*INVARIANTS_OF_C, *STRETCHES, *FIBRES)
#: Symbols of a formula that stand for the deformation, all of them but I8 positive.
INVARIANTS = (*_OF_DEFORMATION, *_ISOCHORIC)
_VALUES_AT_REST = {"I1": 3, "I2": 3, "J": 1, "I8": 0} | dict.fromkeys((*STRETCHES, "I4", "I6"), 1)
_REST = {name: Number(Fraction(value)) for name, value in _VALUES_AT_REST.items()}
_AT_REST = "where I1 = I2 = I1b = I2b = 3 and J = 1"
#: Parts of the second derivatives that compile in seconds.
MOST_IN_SLOPES = 600
#: Stress at rest that counts as none, as a part of the moduli.
ROUNDING = 1e-9


class Slopes(NamedTuple):
    """Derivatives of W by I1, I2 and J: first, and second in the order 11, 12, 1J, 22, 2J, JJ."""

    first: tuple[Expression, ...]
    second: tuple[Expression, ...]


@final
@dataclass(frozen=True)
class Formula:
    """A strain energy density W [J/m^3] as an expression of I1, I2, J and parameters."""

    energy: Expression

    @classmethod
    def read(cls, text: str, numbers: Mapping[str, Any] | None = None) -> "Formula":
        """Return the law that a text writes, with these numbers; any where none are given.

        Raises
        ------
        InputError
            See `add.laws.parse`; or if a number is not used.
        """
        written = parse(text, None if numbers is None else [*INVARIANTS, *numbers])
        out = cls.of(written)
        every = [*out.slopes.first, *out.further_first]
        n = sum(1 for _ in walk([*every, *out.slopes.second, *(one for row in out.further_second for one in row)]))
        if n > MOST_IN_SLOPES:
            raise InputError("the formula is too long", found=f"second derivatives of {n} parts",
                             expected=f"at most {MOST_IN_SLOPES}")  # fmt: skip
        out._require_symmetry()
        felt = {name for slope in every for name in symbols(slope)}
        for name in sorted(set(numbers or ()) - felt):
            text = (
                "no stress depends on this number"
                if name in symbols(written)
                else "the formula does not have this number"
            )
            raise InputError(text, place=f"numbers.{name}")
        return out

    @classmethod
    def of(cls, written: Expression) -> "Formula":
        """Return the law of an expression that may have the names with a b, of which nothing is asked."""
        return cls(substitute(written, _ISOCHORIC))

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters, in alphabetical order."""
        return [name for name in symbols(self.energy) if name not in _OF_DEFORMATION]

    @functools.cached_property
    def further(self) -> tuple[str, ...]:
        """The stretches, all or none of them, and the invariants of fibres that it has."""
        names = symbols(self.energy)
        stretches = STRETCHES if set(STRETCHES) & set(names) else ()
        return (*stretches, *(name for name in FIBRES if name in names))

    @property
    def directions(self) -> int:
        """How many directions of fibres it takes: 0, 1, or 2."""
        return 1 + max((max(FIBRES[name]) for name in self.further if name in FIBRES), default=-1)

    @functools.cached_property
    def further_first(self) -> tuple[Expression, ...]:
        """Derivatives by `further`."""
        return tuple(derivative(self.energy, name) for name in self.further)

    @functools.cached_property
    def further_second(self) -> tuple[tuple[Expression, ...], ...]:
        """For each of `further` the second derivatives with I1, I2, J and each of `further`."""
        return tuple(
            tuple(derivative(slope, name) for name in (*INVARIANTS_OF_C, *self.further)) for slope in self.further_first
        )

    def _require_symmetry(self) -> None:
        """Refuse an energy that a change of the stretches' order changes: which one is the first means nothing."""
        names = symbols(self.energy)
        rng = np.random.default_rng(0)
        at = dict(zip(names, rng.uniform(0.9, 1.1, len(names)), strict=True)) | {"l1": 1.02, "l2": 1.05, "l3": 0.97}
        value = float(evaluate(self.energy, at))
        for one, other in (("l1", "l2"), ("l2", "l3")):
            swapped = float(evaluate(self.energy, at | {one: at[other], other: at[one]}))
            if abs(swapped - value) > ROUNDING * (abs(value) + abs(swapped)):
                raise InputError("the law is not symmetric in the principal stretches", found=f"{one} and {other} in "
                                 "other roles", expected="the same energy whatever their order")  # fmt: skip

    @functools.cached_property
    def slopes(self) -> Slopes:
        """First and second derivatives by I1, I2, J."""
        first = tuple(derivative(self.energy, name) for name in INVARIANTS_OF_C)
        second = tuple(derivative(first[i], INVARIANTS_OF_C[j]) for i in range(3) for j in range(i, 3))
        return Slopes(first, second)

    def rest(self) -> tuple[Expression, Expression, Expression]:
        """Return the pressure at rest, and Lame's constants mu and lambda, as expressions of the parameters."""
        one, two, volume = (substitute(slope, _REST) for slope in self.slopes.first)
        weights = 4, 16, 4, 16, 8, 1
        curved = [(Fraction(k), substitute(slope, _REST)) for k, slope in zip(weights, self.slopes.second, strict=True)]

        along: Expression = ZERO
        rows: tuple[Expression, ...] = (ZERO,) * 5
        if self.further[:1] == STRETCHES[:1]:
            along = substitute(self.further_first[0], _REST)
            rows = tuple(substitute(slope, _REST) for slope in self.further_second[0][:5])
        by_one, by_two, by_volume, same, other = rows

        def part(*weights: Fraction | int) -> list[tuple[Fraction, Expression]]:
            slopes = (one, two, volume, along, same, other, by_one, by_two, by_volume)
            return [(Fraction(weight), slope) for weight, slope in zip(weights, slopes, strict=False)]

        half = Fraction(1, 2)
        mu, lame = part(2, 2, 0, half, half, -half), [*part(0, 4, 1, 0, 0, 1, 4, 8, 2), *curved]
        return total(part(2, 4, 1, 1)), total(mu), total(lame)

    @property
    def rest_domain(self) -> list[Expression]:
        """The expressions that must be above zero at rest."""
        return [substitute(one, _REST) for one in self.domain]

    @functools.cached_property
    def domain(self) -> list[Expression]:
        """The expressions, beside J, that must be above zero for the law to have a value."""
        return unknown_sign(self.energy, frozenset(_OF_DEFORMATION) - {"I8"})

    def require_sound(self, numbers: Mapping[str, float]) -> None:
        """Refuse a law that has no value at rest, a stress there, or no stable equilibrium.

        Raises
        ------
        InputError
            With the value that is wrong.
        """
        at = {name: float(value) for name, value in _VALUES_AT_REST.items()} | dict(numbers)
        try:
            rest = self.rest()
        except InputError as error:
            raise InputError(f"the law has no value at rest: {error.message}", found=error.found) from None
        values = [float(evaluate(one, at)) for one in (self.energy, *rest)]
        margins = [float(evaluate(one, at)) for one in self.domain]
        if not np.isfinite(values).all() or any(not margin > ROUNDING for margin in margins):
            what = ("energy", "stress", "shear modulus", "Lame's first parameter")
            wrong = [name for name, value in zip(what, values, strict=True) if not np.isfinite(value)]
            found = f"{wrong[0]} nan or infinite" if wrong else f"a logarithm or broken power of {min(margins):g}"
            raise InputError(f"the law has no value at rest, {_AT_REST}", found=found)
        _, pressure, mu, lame = values
        bulk = lame + 2.0 / 3.0 * mu
        if abs(pressure) > ROUNDING * max(abs(mu), abs(bulk)) or mu == bulk == 0.0 != pressure:
            expected = "2 dW/dI1 + 4 dW/dI2 + dW/dJ = 0"
            found = f"a stress of {pressure:.6g} Pa"
            raise InputError(f"the law is not free of stress at rest, {_AT_REST}", found=found, expected=expected)
        pulls = [
            (name, float(evaluate(slope, at)))
            for name, slope in zip(self.further, self.further_first, strict=True)
            if name in FIBRES
        ]
        if any(abs(pull) > ROUNDING * max(abs(mu), abs(bulk)) for _, pull in pulls):
            name, pull = max(pulls, key=lambda one: abs(one[1]))
            raise InputError("the law is not free of stress at rest", found=f"dW/d{name} = {pull:.6g} Pa",
                             expected="fibres that pull nothing where I4 = I6 = 1 and I8 = 0")  # fmt: skip
        if not (mu > 0.0 and bulk > 0.0):
            raise InputError("the law is not stable at rest",
                             found=f"eigenvalues of its tangent 2 mu = {2.0 * mu:.6g} Pa, 3 K = {3.0 * bulk:.6g} Pa",
                             expected="both above 0")  # fmt: skip


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

_energy, _stress, _tangent, _by_parameters, _linear_moduli = (
    by_address(f"law's {name}", functools.partial(Callee, None, *signature))
    for name, signature in zip(LawFunctions._fields, _SIGNATURES, strict=True)
)


@njit(**INNER)
def law_energy(law, p, f, cof, jac):
    """See `LawFunctions.energy`; ``law`` is what `called` returns, here as below."""
    return _energy(law[0], (place_of(p), p.size, place_of(f), place_of(cof), jac))


@njit(**INNER)
def law_stress(law, p, f, cof, jac, out):
    """See `LawFunctions.stress`."""
    _stress(law[1], (place_of(p), p.size, place_of(f), place_of(cof), jac, place_of(out)))


@njit(**INNER)
def law_tangent(law, p, f, cof, jac, out):
    """See `LawFunctions.tangent`."""
    _tangent(law[2], (place_of(p), p.size, place_of(f), place_of(cof), jac, place_of(out)))


@njit(**INNER)
def law_by_parameters(law, p, f, cof, jac, out):
    """See `LawFunctions.by_parameters`."""
    _by_parameters(law[3], (place_of(p), p.size, place_of(f), place_of(cof), jac, place_of(out)))


@njit(**INNER)
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
