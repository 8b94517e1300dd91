"""Numbers of the scene that are others than the scene's for a while: continuation in the phases of an optimiser."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from add.inverse.problem import InverseProblem
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class NumberOverride:
    """Values that take the place of some numbers of one experiment's scene.

    Attributes
    ----------
    experiment : str
    index : (k,)
        Places in the scene's numbers; none of them belongs to a parameter.
    values : (k,)
        In the units of the numbers.
    """

    experiment: str
    index: IntArray
    values: FloatArray


def with_overrides(problem: InverseProblem, overrides: tuple[NumberOverride, ...]) -> InverseProblem:
    """Return the problem with other numbers: theta changes, and nothing is built again.

    The ties of theta to the numbers hold, so that a stick stiffness that follows from the normal stiffness follows.
    """
    if not overrides:
        return problem
    numbers = {experiment.name: experiment.numbers.copy() for experiment in problem.experiments}
    for item in (one for one in overrides if one.experiment in numbers):
        numbers[item.experiment][item.index] = item.values
    return replace(problem, experiments=tuple(replace(e, numbers=numbers[e.name]) for e in problem.experiments))
