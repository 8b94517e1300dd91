"""Ways to a value and its gradient, measured with smaller and smaller steps against their limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from add.typing import FloatArray
from benchmarks.timing import least

#: Value and gradient.
Found = tuple[float, FloatArray]


class Way(NamedTuple):
    """A program's way to a value and its gradient.

    Attributes
    ----------
    program, name : str
    make : number of steps -> a call that returns value and gradient
    steps : numbers of steps that are measured, rising
    reference : value and gradient in the limit of small steps
    """

    program: str
    name: str
    make: Callable[[int], Callable[[], Found]]
    steps: Sequence[int]
    reference: Found


class Sample(NamedTuple):
    """One measurement.

    Attributes
    ----------
    program, name : of the way
    steps : int
    value_error, gradient_error : relative to the reference [-]
    ms : processor time of value and gradient
    """

    program: str
    name: str
    steps: int
    value_error: float
    gradient_error: float
    ms: float


def measured(way: Way, seconds: float, most: int) -> list[Sample]:
    """Return a sample for every number of steps."""
    value, gradient = way.reference
    out = []
    for n in way.steps:
        call = way.make(n)
        found, slope = call()
        errors = abs(found - value) / abs(value), float(np.linalg.norm(slope - gradient) / np.linalg.norm(gradient))
        out.append(Sample(way.program, way.name, n, *errors, 1e3 * least(call, seconds, most)))
    return out


def coarsest(samples: Sequence[Sample], level: float) -> Sample | None:
    """Return the sample with the fewest steps whose gradient error, and that of all finer ones, is within a level."""
    chosen = None
    for sample in reversed(samples):
        if sample.gradient_error > level:
            break
        chosen = sample
    return chosen
