"""What all tests share."""

import gc
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from support.places import DATA

matplotlib.use("Agg")

# Kernels and modules are objects by the million that stay; to look at them again and again takes a tenth of the time.
gc.set_threshold(100_000)


def pytest_collection_finish() -> None:
    """Leave out of every collection of cycles what was imported and collected: it stays until the end."""
    gc.freeze()


#: Imported by a process of its own: kernels with one more shape are compiled anew.
collect_ignore = ["support/torus.py"]


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Folder of the real recordings, which are not part of the repository: ADD_DATA, or shared/data beside it."""
    if not DATA.is_dir():
        pytest.skip(f"no recordings at {DATA}; set ADD_DATA to the folder that holds them")
    return DATA


@pytest.fixture(scope="module")
def undrawn() -> Iterator[None]:
    """Reports without diagrams, for modules that ask for other things of fits: drawing takes most of a small one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("add.commands.report.plot_run", lambda run, progress: [])
        yield


@pytest.fixture(scope="module")
def roughly_drawn() -> Iterator[None]:
    """Diagrams in few pixels and not laid out, for modules that do not ask how they look: `tests/claims/plot` does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("add.plot.files.DPI", 50)
        patch.setattr("matplotlib.layout_engine.ConstrainedLayoutEngine.execute", lambda self, drawn: None)
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are the same in every run and do not depend on the order of the tests."""
    return np.random.default_rng(20200717)
