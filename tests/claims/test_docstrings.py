"""The examples of docstrings, of the few files that have some: pytest's own collection would import every package."""

import doctest
import importlib

import pytest
from support.places import ROOT

FILES = [path.relative_to(ROOT) for path in sorted((ROOT / "add").rglob("*.py")) if ">>>" in path.read_text("utf-8")]


@pytest.mark.parametrize("file", FILES, ids=str)
def test_examples(file):
    module = importlib.import_module(".".join(file.with_suffix("").parts))
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert found.attempted and not found.failed
