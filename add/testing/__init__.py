"""Derivative checks for people who add a term, a constraint or a map: every claim of the contract against differences.

All checks raise `AssertionError` with the weight, the entries and the numbers.  Differences are central and of fourth
order; of several step sizes the best counts, since truncation spoils large ones and round-off small ones.  A check is
worth as much as the state it is made at: give a deformed, moving state, and assert that the branch you mean is active.
"""

from add.testing.differences import SIZES, central_difference, check_pullback, taylor_rates
from add.testing.parts import Sensitivity
from add.testing.terms import check_constraint, check_deciding_term, check_term

__all__ = [
    "SIZES",
    "Sensitivity",
    "central_difference",
    "check_constraint",
    "check_deciding_term",
    "check_pullback",
    "check_term",
    "taylor_rates",
]
