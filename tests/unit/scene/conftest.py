"""What the tests of the scene format share."""

import pytest

from add.scene.spec.extension import Extension


@pytest.fixture(autouse=True)
def no_extensions(monkeypatch):
    """The format alone: other tests of the process, and the examples of the docs, define extensions."""
    monkeypatch.setattr(Extension, "known", classmethod(lambda cls: {}))
