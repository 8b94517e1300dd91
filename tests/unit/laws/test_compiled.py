"""Compiled formulas have the values of their expressions, and the same text in every process."""

import subprocess
import sys

import numpy as np
import pytest

from add.laws import compiled, derivative, evaluate, parse, unknown_sign
from add.laws.grammar import printed

NAMES = {"a": "p[0]", "b": "p[1]", "x": "x"}
TEXTS = (
    "a*(x - 3)**2 + b*x**(-2/3)", "sqrt(x)*exp(-b*x)/x**2.5", "a*tanh(b*x) - log(1 + x**2)", "x**a - b**x",
    "sin(x)*cos(a*x)", "-a/(x*b)", "x**1.7 + x**0.7 + 2", "(x + 1)**(1/3)*(x + 1)**(4/3)", "7",
)  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_values(text: str) -> None:
    formula = parse(text)
    values = [formula, derivative(formula, "x"), derivative(formula, "a")]
    function = compiled("f", "p, x, out", values, NAMES, into=["out[0]"], error_model="numpy")
    p, out = np.array([1.4, 0.6]), np.zeros(1)
    for x in (0.3, 1.0, 2.9):
        found = [*function(p, x, out), out[0]]
        expected = [evaluate(one, {"a": p[0], "b": p[1], "x": x}) for one in values]
        np.testing.assert_allclose(found, expected, rtol=3e-15, atol=1e-15)


def test_domain() -> None:
    """Beyond the limit of a logarithm its derivative is a number, and the compiled one is NaN."""
    formula = parse("-a*log(1 - x/b) + x**1.5")
    slope, domain = derivative(formula, "x"), unknown_sign(formula, frozenset("x"))
    assert domain == [parse("1 - x/b")]
    assert unknown_sign(parse("log(x)*sqrt(a*x) + log(1 + exp(b))"), frozenset("xa")) == []
    assert unknown_sign(formula, frozenset()) == [parse("1 - x/b"), parse("x")]
    function = compiled("f", "p, x", [slope, formula], NAMES, domain=domain, error_model="numpy")
    p = np.array([1.4, 0.6])
    assert np.isfinite(function(p, 0.59)).all()
    assert np.isfinite(evaluate(slope, {"a": 1.4, "b": 0.6, "x": 0.61})) and np.isnan(function(p, 0.61)).all()


def test_equal_parts_are_computed_once() -> None:
    text = printed("f", "p, x", [parse("a*exp(b*x) + sqrt(exp(b*x) + 1)/x**(1/3)"), parse("exp(b*x)*x**(-2/3)")], NAMES)
    assert text.count("np.exp") == 1 and text.count("1.0 / 3.0") == 1


def test_the_text_is_the_same_in_every_process() -> None:
    """Kernels are kept by the bytecode of the text: its order may not follow hashes that differ between processes."""
    code = (
        "from add.laws import parse, derivative\n"
        "from add.laws.grammar import printed\n"
        "one = parse('a*(x - 3)**2*tanh(b*x) + b*x**(-2/3) + exp(a + b + x)*sin(x*a*b)')\n"
        "print(printed('f', 'p, x', [derivative(one, 'x'), one], {'a': 'p[0]', 'b': 'p[1]', 'x': 'x'}), one.key)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout and b"np.tanh" in runs[0].stdout


def test_functions_of_two_texts_have_two_symbols():
    """A symbol is a name and a number that counts in each process anew: of two files with one, the first counts."""
    one, same, other = (
        compiled("w", "x", [parse(text)], {"x": "x"}).py_func.__qualname__ for text in ("2*x", "2*x", "3*x")
    )
    assert one == same != other
