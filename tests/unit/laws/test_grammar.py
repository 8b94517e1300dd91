"""Texts become expressions, and what is no formula one clear error; nothing of a text is ever executed."""

import math

import numpy as np
import pytest

from add.errors import InputError
from add.laws import derivative, evaluate, parse, require_names
from add.laws.grammar import MOST_OPERATIONS

VALUES = {"a": 1.3, "b": 0.4, "c": 2.1, "n": 1.7}
GOOD = (
    "a", "2", "-a", "+a - -b", "a + b*c - 3", "a/b/c", "(a + b)*(a - b)", "a**b**c", "-a**2", "2**-1*a", "a**-2",
    "1e-3*a", "sqrt(a*b)", "sqrt(a)*sqrt(a)", "sqrt(a*b)*sqrt(a*b)", "exp(a - b)", "log(a/b)",
    "sin(a)*cos(b)", "tanh(a)**2",
    "a**n", "n**(a - b)", "a**(2/3)*a**(-5/3)", "0*a + b", "a - a", "(2*a)**3/a", "(a + b)**2 - (a + b)", "3*(a + b)/2",
    "sqrt(2)*a", "(1 - (a - b)/c)**1.5", "exp(0)*a + cos(0) + log(1)", "1/(a + 1/(b + 1/c))", "((a + b)*2)**-1",
)  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_values_are_those_of_python(text: str) -> None:
    expected = eval(text, {name: getattr(math, name) for name in ("sqrt", "exp", "log", "sin", "cos", "tanh")} | VALUES)
    assert evaluate(parse(text), VALUES) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("text", GOOD)
@pytest.mark.parametrize("name", ["a", "b", "n"])
def test_first_and_second_derivatives(text: str, name: str) -> None:
    """Exact derivatives against differences of fourth order."""
    once = parse(text)
    for _ in range(2):
        slope = derivative(once, name)

        def at(x: float, of=once) -> float:
            return float(evaluate(of, VALUES | {name: VALUES[name] + x}))

        h = 1e-3
        found = (at(-2 * h) - at(2 * h) + 8.0 * (at(h) - at(-h))) / (12.0 * h)
        assert evaluate(slope, VALUES) == pytest.approx(found, rel=1e-7, abs=1e-8)
        once = slope


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a*b", "b*a"), ("a + b + c", "c + (b + a)"), ("a*a", "a**2"), ("a + a", "2*a"), ("a/a", "1"),
        ("sqrt(a)", "a**0.5"), ("a**(1/3)*a**(2/3)", "a"), ("2*(a + b)", "2*b + 2*a"), ("(a*b)**2",
        "a**2*b**2"), ("a - b", "-(b - a)"),
    ],
)  # fmt: skip
def test_what_is_the_same_has_one_form(one: str, other: str) -> None:
    assert parse(one) == parse(other) and parse(one).key == parse(other).key


def test_what_differs_has_other_keys() -> None:
    texts = [
        "a",
        "b",
        "a + b",
        "a*b",
        "a**b",
        "b**a",
        "a - b",
        "b - a",
        "2*a",
        "3*a",
        "a**2",
        "a**3",
        "sin(a)",
        "cos(a)",
    ]
    assert len({parse(text).key for text in texts}) == len(texts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a +", "no formula"),
        ("a b", "no formula"),
        ("lambda*a", "'lambda' cannot be a name, 'lambda_' can"),
        ("\0a", "no formula"),
        ("(" * 300 + "a" + ")" * 300, "no formula: too many nested parentheses"),
        ("-" * 3000 + "a", "formula"),  # nested too deeply for a parser, or too long, as the version of Python has it
        ("a # b", "no comments"),
        ("a + d", "unknown symbol 'd'"),
        ("alfa + aa", "unknown symbol 'alfa'"),
        ("__import__('os').system('true')", "no place in a formula"),
        ("__import__('os')", "there is no function '__import__'"),
        ("a.real", "no place in a formula (found 'a.real'"),
        ("a[0]", "no place in a formula"),
        ("a if b else c", "no place in a formula"),
        ("a > b", "no place in a formula"),
        ("a // b", "no place in a formula"),
        ("a % b", "no place in a formula"),
        ("~a", "no place in a formula"),
        ("True*a", "no place in a formula (found 'True'"),
        ("1j*a", "no place in a formula (found '1j'"),
        ("'a'", "no place in a formula"),
        ("[x for x in a]", "no place in a formula"),
        ("(a := 3)", "no place in a formula"),
        ("abs(a)", "there is no function 'abs'"),
        ("sinh(a)", "there is no function 'sinh'; did you mean 'sin'?"),
        ("exp(a, b)", "exp takes one argument"),
        ("exp(x=a)", "exp takes one argument"),
        ("exp*a", "exp is a function"),
        ("1e999*a", "too large"),
        ("1e308*1e308*a", "too large"),
        ("9**9**9*a", "too large a power"),
        ("a/0", "a division by zero"),
        ("a**2/(b - b)", "a division by zero"),
        ("log(0)", "the logarithm of a number that is not above zero"),
        ("+".join(["a"] * (MOST_OPERATIONS + 2)), "too long (found 201 operations"),
        ("+".join(["a"] * 1_000_000), "too long (found 1999999 characters"),
        ("tanh(" * 60 + "a" + ")" * 60, "nested too deeply"),
    ],
)
def test_bad_formulas(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse(text, ["a", "b", "c", "aaa"])
    assert message in str(error.value)
    assert len(str(error.value)) < 300 and "\n" not in str(error.value)


def test_the_nearest_name_is_said() -> None:
    with pytest.raises(InputError, match="unknown symbol 'kapa'; did you mean 'kappa'"):
        parse("kapa*J", ["kappa", "J"])


@pytest.mark.parametrize("name", ["J", "exp", "sqrt", "lambda", "1c", "a b", "c-1", "m\u00fc"])
def test_bad_names(name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name of a number"):
        require_names(["c", name], ["J"])


def test_any_text_is_a_formula_or_one_error() -> None:
    """Texts of random pieces raise nothing else, and what is read has a value and a derivative, or NaN."""
    pieces = ["a", "b", "2", "0", "1e-3", "1e300", "(1/3)", "+", "-", "*", "/", "**", "(", ")", "sqrt(", "log(", "exp("]
    pieces += [",", ".", "'", "[", "x", "\n", " ", "#", "=", "<", "@", "if", "é", "0x1f", "5l", "\\", "{", ":"]
    rng, read = np.random.default_rng(0), 0
    for _ in range(4000):
        text = "".join(rng.choice(pieces, size=rng.integers(1, 14)))
        try:
            formula = parse(text, ["a", "b"])
            float(evaluate(derivative(formula, "a"), {"a": 1.5, "b": 0.5}))
            read += 1
        except InputError as error:
            assert "\n" not in str(error)
    assert read > 50
