"""Elastic laws by formula: W of invariants, its scalar derivatives made from the text, one push-forward for all.

A formula is in I1, I2, J of C = F^T F, or in I1b = J^(-2/3) I1 and I2b = J^(-4/3) I2, which do not see changes of
volume, and in parameters.

A law has no stress at rest where
2 W_1 + 4 W_2 + W_J = 0 at (3, 3, 1), and is linear elasticity there with

    mu = 2 (W_1 + W_2),   lambda = 4 (W_11 + 4 W_12 + 4 W_22 + W_1J + 2 W_2J + W_2) + W_JJ + W_J.

Where a logarithm has no value (Gent's limit), neither has the law: energy and stress are NaN there, which the line
search rejects as it does inverted elements.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, final

import numpy as np

from add.errors import InputError
from add.laws import (
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

#: Symbols of a formula that stand for the deformation, all of them positive.
INVARIANTS = ("I1", "I2", "J", "I1b", "I2b")
INVARIANTS_OF_C = ("I1", "I2", "J")
_ISOCHORIC = {"I1b": parse("J**(-2/3)*I1"), "I2b": parse("J**(-4/3)*I2")}
_REST = {"I1": Number(Fraction(3)), "I2": Number(Fraction(3)), "J": Number(Fraction(1))}
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
    def read(cls, text: str, numbers: Mapping[str, Any] | None = None) -> Formula:
        """Return the law that a text writes, with these numbers; any where none are given.

        Raises
        ------
        InputError
            See `add.laws.parse`; or if a number is not used.
        """
        known = None if numbers is None else [*INVARIANTS, *numbers]
        written = parse(text, known)
        out = cls(substitute(written, _ISOCHORIC))
        n = sum(1 for _ in walk([*out.slopes.first, *out.slopes.second]))
        if n > MOST_IN_SLOPES:
            raise InputError("the formula is too long", found=f"second derivatives of {n} parts",
                             expected=f"at most {MOST_IN_SLOPES}")  # fmt: skip
        felt = {name for slope in out.slopes.first for name in symbols(slope)}
        for name in sorted(set(numbers or ()) - felt):
            text = (
                "no stress depends on this number"
                if name in symbols(written)
                else "the formula does not have this number"
            )
            raise InputError(text, place=f"numbers.{name}")
        return out

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters, in alphabetical order."""
        return [name for name in symbols(self.energy) if name not in INVARIANTS_OF_C]

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

        def part(a: int, b: int, c: int) -> list[tuple[Fraction, Expression]]:
            return [(Fraction(a), one), (Fraction(b), two), (Fraction(c), volume)]

        return total(part(2, 4, 1)), total(part(2, 2, 0)), total([*part(0, 4, 1), *curved])

    @property
    def rest_domain(self) -> list[Expression]:
        """What must be above zero at rest."""
        return [substitute(one, _REST) for one in self.domain]

    @functools.cached_property
    def domain(self) -> list[Expression]:
        """What must be above zero for the law to have a value, beside J."""
        return unknown_sign(self.energy, frozenset(INVARIANTS_OF_C))

    def require_sound(self, numbers: Mapping[str, float]) -> None:
        """Refuse a law that has no value at rest, a stress there, or no stable equilibrium.

        Raises
        ------
        InputError
            With the value that is wrong.
        """
        at = {"I1": 3.0, "I2": 3.0, "J": 1.0} | dict(numbers)
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
        if not (mu > 0.0 and bulk > 0.0):
            raise InputError("the law is not stable at rest",
                             found=f"eigenvalues of its tangent 2 mu = {2.0 * mu:.6g} Pa, 3 K = {3.0 * bulk:.6g} Pa",
                             expected="both above 0")  # fmt: skip
