"""Whether compiled steps are there: kept on disk from an earlier time, so that no run waits for their compilation."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import config, typeof

from add.compiled.arrays import KINDS, Signals
from add.compiled.each import pull_back_each, take_each
from add.compiled.families import Choices
from add.compiled.matrices import Along, Reading, state_matrices, step_matrices
from add.compiled.newton import Criteria
from add.compiled.packed import empty, packed
from add.compiled.routines import NONE, callees
from add.compiled.steps import Steps, Timing, pull_back_steps, take_steps
from add.compiled.tangents import push_steps
from add.kernels.caching import is_kept


@cache
def available() -> bool:
    """Whether compiled steps can be used at once."""
    if config.DISABLE_JIT:
        return False  # there is no calling of LAPACK by address
    return all(is_kept(*call) for call in functions())


def functions() -> list[tuple[Any, tuple[Any, ...]]]:
    """Return all functions with the types of their arguments: each can be compiled without the others."""
    of_callees = [(one.function, one.signature) for one in callees()]
    return [*of_callees, *((function, tuple(map(typeof, arguments))) for function, arguments in _calls())]


def _calls() -> tuple[tuple[Any, tuple[Any, ...]], ...]:
    """Return all functions with arguments of the types that runs and batches of steps give them."""
    families = packed(empty(kind) for kind in KINDS)
    one, two, three = (np.zeros((0,) * n) for n in (1, 2, 3))
    rows, codes = np.zeros((0, 3), dtype=np.int64), np.zeros((0, 0), dtype=np.int8)
    signals = Signals(two, np.zeros((0, 0, 3), dtype=np.int64))
    common = (families, NONE, Timing(0.0, 0, one, one, one))
    given = one, Choices(rows, rows, codes.ravel())
    take = (*common, Criteria(0.0, 0.0, 0.0, 2, 1), (two, two), 1, one, signals, one, False, given)
    turned = np.zeros((0, 0), dtype=bool)
    steps = Steps(two, two, two, two, two, turned, rows, one, two, rows, rows, rows, codes)
    back = (*common, steps, 1, (one, one), signals, one, (three, three), one, one)
    firsts, four = np.zeros(0, dtype=np.int64), np.zeros((0,) * 4)
    take_many = (*common, firsts, Criteria(0.0, 0.0, 0.0, 2, 1), (three, three), two, signals, two, False, given)
    back_many = (*common, firsts, steps, (two, two), signals, two, (four, four), two, two)
    now = Signals(one, np.zeros((0, 3), dtype=np.int64))
    counts = np.zeros(0, dtype=np.int64)
    along = Along(counts, counts, one, 0, False)
    matrices = families, NONE, 0.0, (one, one, one), one, now, given[1], along
    of_step = families, NONE, Reading(0.0, 0.0, one, 2), (one, one, one), one, now, given[1], along
    push = (*common, steps, 0, 1, signals, one, along, counts, four)
    return (
        (take_steps, take), (pull_back_steps, back), (state_matrices, matrices), (step_matrices, of_step),
        (take_each, take_many), (pull_back_each, back_many), (push_steps, push),
    )  # fmt: skip
