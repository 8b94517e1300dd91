"""Text -> expression: numbers, names, + - * / **, parentheses, and a few functions. Nothing of a text is executed."""

import ast
import difflib
import keyword
import warnings
from collections.abc import Callable, Collection, Iterable
from fractions import Fraction

from add.errors import InputError
from add.laws.expression import FUNCTIONS, Expression, Number, Symbol, call

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
    >>> from add.laws.calculus import derivative, evaluate
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
