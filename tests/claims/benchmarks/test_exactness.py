"""Single steps by the fast back end and by SuperLU at its defaults are the same, and so are their pull-backs."""

import pytest

from add.linalg import Factorization, factorization_for
from benchmarks.exactness import CASES, TOLERANCE, case


@pytest.mark.parametrize(
    "name", [pytest.param(c[0], marks=[pytest.mark.slow] if c[0].startswith("cylinder") else []) for c in CASES]
)
def test_back_ends_take_the_same_step(name):
    found = case(name)
    assert found["same_decisions"]
    assert found["step"] < TOLERANCE
    assert found["reactions"] < TOLERANCE
    # Two programs do not agree to the last bit: equal numbers would mean that only one of them was called.
    assert 0.0 < found["cotangents"] < TOLERANCE
    assert (found["multipliers"] > 0) is ("hybrid" in name)


class Careless(Factorization):
    """A back end whose transposed solves are off by a part in a billion."""

    def __init__(self, n):
        self.inner = factorization_for(n)

    def factor(self, pattern, data):
        self.inner.factor(pattern, data)

    def solve(self, b):
        return self.inner.solve(b)

    def solve_transposed(self, b):
        return self.inner.solve_transposed(b) * (1.0 + 1e-9)


def test_a_careless_back_end_is_seen(monkeypatch):
    monkeypatch.setattr("benchmarks.exactness.factorization_for", Careless)
    assert case("robot")["cotangents"] > TOLERANCE
