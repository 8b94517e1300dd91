"""Whether compiled steps are there: kept on disk from an earlier time, so that no run waits for their compilation."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import config, typeof

from add.compiled.adjoint import step_pullback
from add.compiled.arrays import KINDS, Signals, empty, packed
from add.compiled.dense import Lapack
from add.compiled.families import Choices
from add.compiled.newton import Criteria, Formula, newton_step
from add.kernels.caching import is_kept


@cache
def available() -> bool:
    """Whether compiled steps can be used at once."""
    if config.DISABLE_JIT:
        return False  # there is no calling of LAPACK by address
    return all(is_kept(function, tuple(map(typeof, arguments))) for function, arguments in _calls())


def warm() -> None:
    """Compile the steps, which takes minutes, and keep them on disk."""
    for function, arguments in _calls():
        function.compile(tuple(map(typeof, arguments)))
    available.cache_clear()


def _calls() -> tuple[tuple[Any, tuple[Any, ...]], ...]:
    """Return both functions with arguments of the types that runs give them."""
    families = packed(empty(kind) for kind in KINDS)
    one, two, rows = np.zeros(0), np.zeros((2, 0)), np.zeros((0, 3), dtype=np.int64)
    chosen = Choices(rows, rows, np.zeros(0, dtype=np.int8))
    common = (*families, Lapack(0, 0), Formula(0.0, 0.0, 0.0, 0.0, 0.0))
    signals = Signals(one, rows)
    step = (*common, Criteria(0.0, 0.0, 0.0, 2, 1), two, two, one, *signals, one, False, (one, chosen))
    back = (*common, one, one, one, *signals, one, chosen, two, two, one)
    return (newton_step, step), (step_pullback, back)
