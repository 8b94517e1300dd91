"""What the tests of the commands share."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def drawn_for_commands(roughly_drawn: None) -> None:
    """Commands write pictures; how these look is asked by `tests/claims/plot`."""
