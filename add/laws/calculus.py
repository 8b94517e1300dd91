"""Operations on expressions: derivatives, substitution, values, symbols, domains."""

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from add.laws.expression import EXP, LOG, ONE, Call, Expression, Number, Product, Sum, Symbol


def derivative(expression: Expression, by: str) -> Expression:
    """Return the derivative by a symbol."""

    @functools.cache
    def slope(one: Expression) -> Expression:
        if isinstance(one, Symbol) and one.name == by:
            return ONE
        return one.slope(slope)

    return slope(expression)


def substitute(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """Return an expression with other expressions in place of symbols.

    Raises
    ------
    InputError
        If it has no value then: a logarithm of zero, a division by it.
    """

    @functools.cache
    def new(one: Expression) -> Expression:
        return values.get(one.name, one) if isinstance(one, Symbol) else one.rebuilt(new)

    return new(expression)


def evaluate(expression: Expression, values: Mapping[str, Any]) -> Any:
    """Return the value for floats or arrays in place of symbols; NaN or infinite where there is none."""

    @functools.cache
    def of(one: Expression) -> Any:
        return values[one.name] if isinstance(one, Symbol) else one.value(of)

    with np.errstate(all="ignore"):
        return of(expression)


def walk(roots: Iterable[Expression]) -> Iterator[Expression]:
    """Yield every expression inside others once, children first."""
    seen: set[Expression] = set()

    def visit(one: Expression) -> Iterator[Expression]:
        if one not in seen:
            seen.add(one)
            for child in one.children:
                yield from visit(child)
            yield one

    for root in roots:
        yield from visit(root)


def symbols(expression: Expression) -> list[str]:
    """Return the names of the symbols, in alphabetical order."""
    return sorted(one.name for one in walk([expression]) if isinstance(one, Symbol))


def unknown_sign(expression: Expression, positive: frozenset[str]) -> list[Expression]:
    """Return what logarithms and broken powers are taken of and may be no positive number; ``positive`` symbols are.

    Derivatives of a logarithm have values where it has none: these expressions are the domain of a law.
    """

    @functools.cache
    def sure(one: Expression) -> bool:
        match one:
            case Number():
                return one.number > 0
            case Symbol():
                return one.name in positive
            case Sum():
                return one.constant >= 0 and all(factor > 0 and sure(term) for factor, term in one.terms)
            case Product():
                return one.factor > 0 and all(sure(base) for base, _ in one.powers)
        return isinstance(one, Call) and one.function is EXP

    inner: list[Expression] = []
    for one in walk([expression]):
        if isinstance(one, Call) and one.function is LOG:
            inner.append(one.argument)
        elif isinstance(one, Product):
            inner += [base for base, power in one.powers if not (isinstance(power, Number) and power.is_whole)]
    return [one for one in dict.fromkeys(inner) if not sure(one)]
