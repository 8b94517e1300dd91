"""Tiers of tests: `make test` leaves the long cases to `make test-all`."""

import pytest


def long_case(*values):
    """Return a case of a product that the quick tiers leave out: they take each of its values somewhere."""
    return pytest.param(*values, marks=pytest.mark.slow)
