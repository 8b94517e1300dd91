"""Expressions as immutable values in one normal form, with exact derivatives.

Numbers are fractions, sums c + sum a_k t_k collect like terms and products f prod b_k^e_k like powers, so that much
simplifies as it is made; nothing is expanded. Two expressions are equal where their keys are: a key is a hash of the
normal form, the same in every process, and what is equal is computed once (`add.laws.grammar`).
"""

import functools
import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from scipy.special import erf

from add.errors import InputError

#: Powers of numbers above this are not numbers that someone means.
LARGEST_EXPONENT = 64
_DIGITS = 2100  # binary ones of the longest fraction that a float may stand for


class Expression(ABC):
    """A value of the normal form: a number, a symbol, a sum, a product of powers, or a function of one argument."""

    @property
    @abstractmethod
    def children(self) -> "tuple[Expression, ...]":
        """Expressions that it is made of."""

    @property
    @abstractmethod
    def content(self) -> str:
        """All that it is, beside its children."""

    @functools.cached_property
    def key(self) -> str:
        """Hash of the normal form, the same in every process."""
        text = " ".join([type(self).__name__, self.content, *(child.key for child in self.children)])
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @functools.cached_property
    def depth(self) -> int:
        """How many expressions stand inside one another."""
        return 1 + max((child.depth for child in self.children), default=0)

    @abstractmethod
    def slope(self, by: "Callable[[Expression], Expression]") -> "Expression":
        """Return its derivative, that of its children being ``by``."""

    @abstractmethod
    def rebuilt(self, new: "Callable[[Expression], Expression]") -> "Expression":
        """Return it with ``new`` of its children."""

    @abstractmethod
    def value(self, of: "Callable[[Expression], Any]") -> Any:
        """Return its value by those of its children."""

    def __eq__(self, other: object) -> bool:
        """Whether both are the same expression."""
        return isinstance(other, Expression) and self.key == other.key

    def __hash__(self) -> int:
        """Return the hash of the key."""
        return hash(self.key)

    def __add__(self, other: "Expression") -> "Expression":
        """Return the sum."""
        return total([(Fraction(1), self), (Fraction(1), other)])

    def __sub__(self, other: "Expression") -> "Expression":
        """Return the difference."""
        return total([(Fraction(1), self), (Fraction(-1), other)])

    def __mul__(self, other: "Expression") -> "Expression":
        """Return the product."""
        return product([(self, ONE), (other, ONE)])

    def __truediv__(self, other: "Expression") -> "Expression":
        """Return the quotient."""
        return product([(self, ONE), (other, Number(Fraction(-1)))])

    def __pow__(self, other: "Expression") -> "Expression":
        """Return the power."""
        return product([(self, other)])


class Leaf(Expression):
    """An expression without parts, and without a derivative but that by itself."""

    @property
    def children(self) -> tuple[Expression, ...]:
        """None."""
        return ()

    def slope(self, by: Callable[[Expression], Expression]) -> Expression:
        """Return zero."""
        return ZERO

    def rebuilt(self, new: Callable[[Expression], Expression]) -> Expression:
        """Return it."""
        return self


@final
@dataclass(frozen=True, eq=False)
class Number(Leaf):
    """An exact number."""

    number: Fraction

    @property
    def is_whole(self) -> bool:
        """Whether it is an integer."""
        return self.number.denominator == 1

    @property
    def content(self) -> str:
        """The fraction."""
        return str(self.number)

    def value(self, of: Callable[[Expression], Any]) -> Any:
        """Return the nearest float."""
        return np.float64(float(self.number))


@final
@dataclass(frozen=True, eq=False)
class Symbol(Leaf):
    """A variable or a parameter."""

    name: str

    @property
    def content(self) -> str:
        """The name."""
        return self.name

    def value(self, of: Callable[[Expression], Any]) -> Any:
        """Return NaN: the values of symbols are known before."""
        return np.float64(np.nan)


@final
@dataclass(frozen=True, eq=False)
class Sum(Expression):
    """constant + sum of factor * term, the terms in the order of their keys; made by `total`."""

    constant: Fraction
    terms: tuple[tuple[Fraction, Expression], ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        """The terms."""
        return tuple(term for _, term in self.terms)

    @property
    def content(self) -> str:
        """Constant and factors."""
        return " ".join(map(str, [self.constant, *(factor for factor, _ in self.terms)]))

    def slope(self, by: Callable[[Expression], Expression]) -> Expression:
        """Return the sum of derivatives."""
        return total((factor, by(term)) for factor, term in self.terms)

    def rebuilt(self, new: Callable[[Expression], Expression]) -> Expression:
        """Return it with ``new`` of its terms."""
        return total([(self.constant, ONE), *((factor, new(term)) for factor, term in self.terms)])

    def value(self, of: Callable[[Expression], Any]) -> Any:
        """Return the sum."""
        return float(self.constant) + sum(float(factor) * of(term) for factor, term in self.terms)


@final
@dataclass(frozen=True, eq=False)
class Product(Expression):
    """factor * prod base ** exponent, the bases in the order of their keys; made by `product`."""

    factor: Fraction
    powers: tuple[tuple[Expression, Expression], ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        """Bases and exponents."""
        return tuple(part for power in self.powers for part in power)

    @property
    def content(self) -> str:
        """The factor."""
        return str(self.factor)

    def slope(self, by: Callable[[Expression], Expression]) -> Expression:
        """Return the sum over powers of this product with the derivative of the one."""
        parts = []
        for k, (base, exponent) in enumerate(self.powers):
            others = [(Number(self.factor), ONE), *self.powers[:k], *self.powers[k + 1 :]]
            by_base, by_exponent = by(base), by(exponent)
            if by_base != ZERO:
                parts.append(product([*others, (exponent, ONE), (base, exponent - ONE), (by_base, ONE)]))
            if by_exponent != ZERO:
                parts.append(product([*others, (base, exponent), (call(LOG, base), ONE), (by_exponent, ONE)]))
        return total((Fraction(1), part) for part in parts)

    def rebuilt(self, new: Callable[[Expression], Expression]) -> Expression:
        """Return it with ``new`` of its bases and exponents."""
        return product([(Number(self.factor), ONE), *((new(base), new(exponent)) for base, exponent in self.powers)])

    def value(self, of: Callable[[Expression], Any]) -> Any:
        """Return the product; NaN for a power of a negative number that is not whole."""
        out = np.float64(float(self.factor))
        for base, exponent in self.powers:
            out = out * np.power(of(base), of(exponent))
        return out


@final
@dataclass(frozen=True)
class Function:
    """A function of one argument: its name, values and derivative by the argument, and how compiled code writes it."""

    name: str
    values: Callable[[Any], Any]
    slope: Callable[[Expression], Expression]
    written: str = "np.{name}({x})"


@final
@dataclass(frozen=True, eq=False)
class Call(Expression):
    """A function of an argument; made by `call`."""

    function: Function
    argument: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        """The argument."""
        return (self.argument,)

    @property
    def content(self) -> str:
        """The function's name."""
        return self.function.name

    def slope(self, by: Callable[[Expression], Expression]) -> Expression:
        """Return the function's derivative times that of the argument."""
        inner = by(self.argument)
        return ZERO if inner == ZERO else self.function.slope(self.argument) * inner

    def rebuilt(self, new: Callable[[Expression], Expression]) -> Expression:
        """Return the function of ``new`` of its argument."""
        return call(self.function, new(self.argument))

    def value(self, of: Callable[[Expression], Any]) -> Any:
        """Return the function's value."""
        return self.function.values(of(self.argument))


ZERO, ONE, TWO = Number(Fraction(0)), Number(Fraction(1)), Number(Fraction(2))

EXP: Function = Function("exp", np.exp, lambda x: call(EXP, x))
LOG: Function = Function("log", np.log, lambda x: ONE / x)
SIN: Function = Function("sin", np.sin, lambda x: call(COS, x))
COS: Function = Function("cos", np.cos, lambda x: total([(Fraction(-1), call(SIN, x))]))
TANH: Function = Function("tanh", np.tanh, lambda x: ONE - call(TANH, x) ** TWO)
ERF: Function = Function(
    "erf", erf, lambda x: Number(Fraction(2.0 / math.sqrt(math.pi))) * call(EXP, Number(Fraction(-1)) * x**TWO),
    "math.erf({x})",
)  # fmt: skip
#: One where the argument is above zero, else zero: the slope of `POS`.
STEP: Function = Function("step", lambda x: np.heaviside(x, 0.0), lambda x: ZERO, "(1.0 if {x} > 0.0 else 0.0)")
#: max(x, 0): what acts in tension only.
POS: Function = Function("pos", lambda x: np.maximum(x, 0.0), lambda x: call(STEP, x), "max({x}, 0.0)")
#: Functions of the grammar beside sqrt, which is a power.
FUNCTIONS = {function.name: function for function in (EXP, LOG, SIN, COS, TANH, ERF, POS)}
_AT_ZERO = {EXP: ONE, SIN: ZERO, COS: ONE, TANH: ZERO, ERF: ZERO, POS: ZERO, STEP: ZERO}


def call(function: Function, argument: Expression) -> Expression:
    """Return a function of an argument, a number where it is known exactly."""
    if argument == ZERO and function in _AT_ZERO:
        return _AT_ZERO[function]
    if function is LOG and isinstance(argument, Number):
        if argument.number <= 0:
            raise InputError("the logarithm of a number that is not above zero", found=f"log({argument.number})")
        if argument.number == 1:
            return ZERO
    return Call(function, argument)


def total(parts: Iterable[tuple[Fraction, Expression]]) -> Expression:
    """Return the sum of factors times expressions."""
    constant, terms = Fraction(0), dict[Expression, Fraction]()
    for factor, part in parts:
        inner = part.terms if isinstance(part, Sum) else ((Fraction(1), part),)
        if isinstance(part, Sum):
            constant += factor * part.constant
        for factor_of, term in inner:
            weight = factor * factor_of
            if isinstance(term, Number):
                constant += weight * term.number
                continue
            if isinstance(term, Product) and term.factor != 1:
                weight, term = weight * term.factor, product(term.powers)
            terms[term] = terms.get(term, Fraction(0)) + weight
    left = tuple((_short(terms[term]), term) for term in sorted(terms, key=lambda one: one.key) if terms[term])
    if not left:
        return Number(_short(constant))
    if len(left) == 1 and not constant:
        return product([(Number(left[0][0]), ONE), (left[0][1], ONE)])
    return Sum(_short(constant), left)


def product(parts: Iterable[tuple[Expression, Expression]]) -> Expression:
    """Return the product of bases to exponents."""
    factor, powers = Fraction(1), dict[Expression, Expression]()
    queue = list(parts)
    for base, exponent in queue:  # grows while it is walked
        whole = isinstance(exponent, Number) and exponent.is_whole
        if isinstance(base, Product) and whole:
            queue += [(Number(base.factor), exponent), *((one, power * exponent) for one, power in base.powers)]
        elif isinstance(base, Number) and isinstance(exponent, Number) and (whole or base.number in (0, 1)):
            factor *= _power(base.number, exponent.number)
        else:
            powers[base] = powers[base] + exponent if base in powers else exponent
    left = tuple((base, powers[base]) for base in sorted(powers, key=lambda one: one.key) if powers[base] != ZERO)
    factor = _short(factor)
    if not left or not factor:
        return Number(factor)
    (base, exponent), alone = left[0], len(left) == 1
    if alone and exponent == ONE and (factor == 1 or isinstance(base, Sum)):
        return base if factor == 1 else total([(factor, base)])
    if alone and isinstance(base, Product | Number) and isinstance(exponent, Number) and exponent.is_whole:
        return product([(Number(factor), ONE), (base, exponent)])  # roots that have met: sqrt(x y) sqrt(x y)
    return Product(factor, left)


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    """Return a power of a number, whole or of 0 and 1."""
    if base == 0 and exponent <= 0:
        raise InputError("a division by zero, or a power of it that has no value", found=f"0 ** ({exponent})")
    if base in (0, 1):
        return base
    if abs(exponent) > LARGEST_EXPONENT:
        raise InputError("too large a power of a number", found=f"{float(base):g} ** {exponent}",
                         expected=f"exponents up to {LARGEST_EXPONENT}")  # fmt: skip
    return base ** int(exponent)


def _short(number: Fraction) -> Fraction:
    """Return a number, that of the nearest float where it has too many digits."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) < _DIGITS // 2:
        return number
    try:
        near = float(number)
    except OverflowError:
        near = math.inf
    if not math.isfinite(near):
        raise InputError("a number is too large", expected="numbers below 1e308")
    return Fraction(near)
