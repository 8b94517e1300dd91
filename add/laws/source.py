"""Expressions printed as functions that numba compiles: straight lines in which what is equal is computed once."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from add.kernels.caching import njit
from add.laws.expression import Call, Expression, Number, Product, Sum, Symbol

#: Square and cube roots are taken once; other broken powers each for itself.
_MOST_ROOTS = 3


def compiled(
    name: str,
    arguments: str,
    values: Sequence[Expression],
    names: Mapping[str, str],
    *,
    domain: Sequence[Expression] = (),
    into: Sequence[str] = (),
    **options: Any,
) -> Any:
    """Return a compiled function of expressions.

    Parameters
    ----------
    name, arguments, values, names, domain, into
        See `printed`.
    options
        Of `add.kernels.caching.njit`.
    """
    known: dict[str, Any] = {"np": np, "math": math, "nan": math.nan, "__name__": __name__}
    text = printed(name, arguments, values, names, domain=domain, into=into)
    exec(compile(text, __file__, "exec"), known)  # of this printer, which has no word of a user's but numbers
    # Files of two functions that have one symbol share the one that is loaded first: the text is part of the name.
    known[name].__qualname__ += f"_{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
    return njit(known[name], **options)


def printed(
    name: str,
    arguments: str,
    values: Sequence[Expression],
    names: Mapping[str, str],
    *,
    domain: Sequence[Expression] = (),
    into: Sequence[str] = (),
) -> str:
    """Return the text of a function of expressions.

    Parameters
    ----------
    name, arguments : its name, and its arguments as text
    values : what it returns, one value or a tuple
    names : symbol -> how the function finds it, an argument or an entry of one
    domain : expressions that must be above zero; all values are NaN elsewhere
    into : targets such as "out[0, 1]"; the last so many of ``values`` are written to them instead of returned
    """
    lines = _Lines(names)
    guard = ""
    if domain:
        inside = " and ".join(f"{lines.text(one)} > 0.0" for one in domain)
        lines.add(f"inside = 0.0 if {inside} else nan")
        guard = " + inside"
    found = [f"{lines.text(value)}{guard}" for value in values]
    n = len(found) - len(into)
    for target, text in zip(into, found[n:], strict=True):
        lines.add(f"{target} = {text}")
    lines.add(f"return {', '.join(found[:n])}" if n else "return")
    return f"def {name}({arguments}):\n    " + "\n    ".join(lines.lines) + "\n"


class _Lines:
    """The lines of a function in the making, and the name of each expression that they compute."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._names = names
        self._texts: dict[object, str] = {}

    def add(self, line: str) -> None:
        self.lines.append(line)

    def text(self, one: Expression) -> str:
        """Return a number, or the name under which an expression is known, computing it if it is not yet."""
        match one:
            case Number():
                return _number(one.number)
            case Symbol():
                return self._names[one.name]
            case Call():
                return self._named(
                    one, lambda: one.function.written.format(name=one.function.name, x=self.text(one.argument))
                )
            case Sum():
                return self._named(one, lambda: self._sum(one))
            case Product():
                return self._named(one, lambda: self._product(one))
        raise TypeError(one)

    def _named(self, key: object, make: Any) -> str:
        if key not in self._texts:
            text = make()
            name = f"t{len(self._texts)}"
            self.add(f"{name} = {text}")
            self._texts[key] = name
        return self._texts[key]

    def _sum(self, one: Sum) -> str:
        out = ""
        for factor, term in sorted(one.terms, key=lambda part: part[0] < 0):
            scaled = self.text(term) if abs(factor) == 1 else f"{_number(abs(factor))} * {self.text(term)}"
            out += (" - " if factor < 0 else " + ") + scaled if out else ("-" if factor < 0 else "") + scaled
        if one.constant:
            out += f" {'-' if one.constant < 0 else '+'} {_number(abs(one.constant))}"
        return out

    def _product(self, one: Product) -> str:
        over: list[str] = []
        under: list[str] = []
        for base, exponent in one.powers:
            if not isinstance(exponent, Number):
                over.append(self._named((base, exponent), partial(self._open, base, exponent)))
            elif exponent.number.denominator > _MOST_ROOTS:
                over.append(self._whole(self.text(base), exponent.number))
            else:
                n, root = exponent.number.numerator, self._root(base, exponent.number.denominator)
                (over if n > 0 else under).append(self._whole(root, Fraction(abs(n))))
        if one.factor != 1 or not over:
            over.insert(0, _number(one.factor))
        below = under[0] if len(under) == 1 else f"({' * '.join(under)})"
        return " * ".join(over) + (f" / {below}" if under else "")

    def _open(self, base: Expression, exponent: Expression) -> str:
        return f"{self.text(base)} ** {self.text(exponent)}"

    def _root(self, base: Expression, n: int) -> str:
        """Return the one root of a base, of which all powers with this denominator are made."""
        text = self.text(base)
        if n == 1:
            return text
        return self._named((text, n, "root"), lambda: f"np.sqrt({text})" if n == 2 else f"{text} ** (1.0 / {n}.0)")

    def _whole(self, base: str, exponent: Fraction) -> str:
        if exponent == 1:
            return base
        power = str(exponent) if exponent.denominator == 1 else _number(exponent)
        return self._named((base, exponent), lambda: f"{base} ** {power}")


def _number(number: Fraction) -> str:
    text = repr(float(number))
    return f"({text})" if text.startswith("-") else text
