"""Text -> expression -> derivatives: numbers, names, + - * / **, a few functions. Nothing of a text is executed.

Expressions are printed as functions that numba compiles: straight lines in which what is equal is computed once.
"""

import ast
import difflib
import functools
import hashlib
import keyword
import math
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from add.errors import InputError
from add.kernels.caching import njit
from add.laws.expression import EXP, FUNCTIONS, LOG, ONE, Call, Expression, Number, Product, Sum, Symbol, call

# --- Operations on expressions: derivatives, substitution, values, symbols, domains -----------------------------------


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


# ----------------------------------------------------------------------------------------------------------------------

#: Limits of a formula: characters of its text, operations, and how many stand inside one another.
MOST_CHARACTERS, MOST_OPERATIONS, DEEPEST = 4000, 200, 40

_OPERATIONS: dict[type[ast.operator], Callable[[Expression, Expression], Expression]] = {
    ast.Add: Expression.__add__,
    ast.Sub: Expression.__sub__,
    ast.Mult: Expression.__mul__,
    ast.Div: Expression.__truediv__,
    ast.Pow: Expression.__pow__,
}
_NAMES = (*FUNCTIONS, "sqrt")
_ALLOWED = f"numbers, names, + - * / **, parentheses and {', '.join(sorted(_NAMES))}"


def parse(text: str, known: Collection[str] | None = None) -> Expression:
    """Return the expression that a text writes.

    Parameters
    ----------
    text : str
    known : names of symbols, optional
        None for any.

    Raises
    ------
    InputError
        If the text is no formula, too long, has a name that is not known, or a part without a value such as 1/0.

    Examples
    --------
    >>> from add.laws.grammar import derivative, evaluate
    >>> float(evaluate(derivative(parse("k/2*(l - L)**2"), "l"), {"k": 10.0, "l": 1.5, "L": 1.0}))
    5.0
    """
    if len(text) > MOST_CHARACTERS:
        raise InputError("the formula is too long", found=f"{len(text)} characters",
                         expected=f"at most {MOST_CHARACTERS}")  # fmt: skip
    if "#" in text:
        raise InputError("a formula has no comments", found=_cut(text), expected=_ALLOWED)
    try:
        with warnings.catch_warnings(action="ignore"):  # of what looks odd in a program
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        words = [word for word in text.replace("(", " ").replace("*", " ").split() if keyword.iskeyword(word)]
        hint = f"; '{words[0]}' cannot be a name, '{words[0]}_' can" if words else ""
        reason = getattr(error, "msg", None) or "not readable"
        raise InputError(f"this is no formula: {reason}{hint}", found=_cut(text), expected=_ALLOWED) from None
    n = sum(isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call) for node in ast.walk(tree))
    if n > MOST_OPERATIONS:
        raise InputError("the formula is too long", found=f"{n} operations", expected=f"at most {MOST_OPERATIONS}")
    out = _Reader(text.strip(), known).read(tree.body)
    if out.depth > DEEPEST:
        raise InputError("the formula is nested too deeply", found=f"{out.depth} levels", expected=f"at most {DEEPEST}")
    return out


def require_names(names: Iterable[str], variables: Collection[str]) -> None:
    """Refuse names of numbers that a formula in these variables cannot write, or that mean something else in it."""
    expected = f"letters, digits and _, other than {', '.join(variables)} and functions"
    for name in names:
        taken = name in variables or name in _NAMES or keyword.iskeyword(name)
        if taken or not (name.isascii() and name.isidentifier()):
            at = f"numbers.{name}"
            raise InputError("this cannot be the name of a number", place=at, found=repr(name), expected=expected)


def _cut(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


class _Reader:
    """Nodes of Python's syntax tree -> expressions, those of the grammar alone."""

    def __init__(self, text: str, known: Collection[str] | None) -> None:
        self._text, self._known = text, known

    def read(self, node: ast.expr) -> Expression:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self._number(node, value)
            case ast.Name(id=name):
                return self._symbol(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Number(Fraction(-1)) * self.read(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.read(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                return _OPERATIONS[type(op)](self.read(left), self.read(right))
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _NAMES:
                inner = self.read(argument)
                return call(FUNCTIONS[name], inner) if name in FUNCTIONS else inner ** Number(Fraction(1, 2))
            case ast.Call(func=ast.Name(id=name)) if name in _NAMES:
                raise InputError(f"{name} takes one argument", found=self._source(node))
            case ast.Call(func=ast.Name(id=name)):
                raise InputError(f"there is no function '{name}'{_nearest(name, _NAMES)}", found=self._source(node),
                                 expected=", ".join(sorted(_NAMES)))  # fmt: skip
        raise InputError("this has no place in a formula", found=self._source(node), expected=_ALLOWED)

    def _source(self, node: ast.expr) -> str:
        return _cut(ast.get_source_segment(self._text, node) or self._text)

    def _number(self, node: ast.expr, value: float) -> Expression:
        if value in (float("inf"), float("-inf")):
            raise InputError("a number is too large", found=self._source(node), expected="numbers below 1e308")
        return Number(Fraction(str(value)))

    def _symbol(self, name: str) -> Expression:
        if name in _NAMES:
            raise InputError(f"{name} is a function: it takes an argument", found=name, expected=f"{name}(...)")
        if self._known is not None and name not in self._known:
            listed = ", ".join(sorted(self._known))
            raise InputError(f"unknown symbol '{name}'{_nearest(name, self._known)}", found=name, expected=listed)
        return Symbol(name)


def _nearest(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


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
    texts = [f"{lines.text(value)}{guard}" for value in values]
    n = len(texts) - len(into)
    for target, text in zip(into, texts[n:], strict=True):
        lines.add(f"{target} = {text}")
    lines.add(f"return {', '.join(texts[:n])}" if n else "return")
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
