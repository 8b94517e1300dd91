"""Formulas of local laws: a small grammar, exact derivatives, and compiled functions made from them."""

from add.laws.expression import ZERO, Expression, Number, Symbol, total
from add.laws.grammar import (
    compiled,
    derivative,
    evaluate,
    parse,
    require_names,
    substitute,
    symbols,
    unknown_sign,
    walk,
)
