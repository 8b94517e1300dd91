"""Compiled steps, made once for all tests here: minutes the first time."""

import fcntl
from pathlib import Path

import pytest
from numba import config

from add.commands.ahead import warm
from add.compiled.available import available


@pytest.fixture(scope="session", autouse=True)
def compiled_steps(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile the steps unless they are kept on disk; one worker does, the others wait."""
    if config.DISABLE_JIT:
        pytest.skip("compiled steps call LAPACK by address, which needs numba's compiler")
    base: Path = tmp_path_factory.getbasetemp().parent
    with open(base / "compiled-steps.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        available.cache_clear()
        if not available():
            warm(1)
    assert available()
