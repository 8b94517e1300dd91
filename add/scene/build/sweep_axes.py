"""The axes of a sweep: texts such as ``bodies.ball.velocity.0=-1:1:21`` become places in x and values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from add.errors import InputError
from add.inverse.maps import DesignParameter, Log
from add.inverse.problem import InverseProblem
from add.scene.read.paths import meant
from add.typing import FloatArray

#: Values of an axis that does not say how many.
SAMPLES = 21
#: Values of an axis, at most.
MOST_SAMPLES = 10_000
_FORM = "PATH, PATH=low:high or PATH=low:high:n"


@final
@dataclass(frozen=True)
class SweepAxis:
    """One design variable and the values that it takes.

    Attributes
    ----------
    name, unit : str
    index : int
        Its place in x.
    values : (n,)
        Physical values, increasing.
    logarithmic : bool
        Whether they are spaced by equal ratios: those of a parameter with a log transform are.
    """

    name: str
    unit: str
    index: int
    values: FloatArray
    logarithmic: bool


def sweep_axes(problem: InverseProblem, texts: Sequence[str]) -> tuple[SweepAxis, ...]:
    """Return the axes that the texts ask for.

    Parameters
    ----------
    problem : InverseProblem
    texts : one or two of the form PATH, PATH=low:high or PATH=low:high:n; PATH is one of the scene's parameters, or
        one component of it as ``bodies.ball.velocity.0``. An empty limit is the parameter's bound.

    Raises
    ------
    InputError
        naming the text that cannot be used.
    """
    if not 1 <= len(texts) <= 2:
        raise InputError("a sweep has one or two parameters", place="--parameter", found=len(texts))
    axes = tuple(_axis(problem, text) for text in texts)
    if len({axis.index for axis in axes}) < len(axes):
        raise InputError("the parameter is given twice", place="--parameter", found=f"'{axes[0].name}'")
    return axes


def _axis(problem: InverseProblem, text: str) -> SweepAxis:
    path, equals, given = text.partition("=")
    parameter, index = _find(problem, path)
    parts = given.split(":") if equals else ["", ""]
    if len(parts) not in (2, 3):
        raise InputError("not a range", place="--parameter", found=f"'{text}'", expected=_FORM)
    low = _limit(parts[0], parameter.lower, text, "lower")
    high = _limit(parts[1], parameter.upper, text, "upper")
    n = _count(parts[2], text) if len(parts) == 3 else SAMPLES
    if not low < high:
        raise InputError("the lower limit must be below the upper one", place="--parameter", found=f"'{text}'")
    name, unit = problem.labels()[index], problem.units()[index]
    logarithmic = isinstance(parameter.transform, Log)
    if not np.isfinite(parameter.transform.inverse(np.array([low]))).all():
        raise InputError("the transform of this parameter needs values above 0", place="--parameter", found=f"'{text}'")
    values = np.geomspace(low, high, n) if logarithmic else np.linspace(low, high, n)
    return SweepAxis(name, unit, index, values, logarithmic)


def _find(problem: InverseProblem, path: str) -> tuple[DesignParameter, int]:
    """Return the parameter that a path names, and the place in x."""
    labels = problem.labels()
    names: dict[str, tuple[DesignParameter, int]] = {}
    for parameter in problem.parameters:
        own, at, experiment = parameter.name.partition("@")
        for k, entry in enumerate(parameter.entries):
            found = parameter, parameter.first + k
            names[labels[found[1]]] = found
            for alias in {own, *own.split("+")}:
                names[f"{alias}.{entry}{at}{experiment}"] = found
                if parameter.n == 1:
                    names[f"{alias}{at}{experiment}"] = found
    if path in names:
        return names[path]
    whole = next((p for p in problem.parameters if path == p.name or path in p.name.split("+")), None)
    if whole is not None:
        components = ", ".join(f"'{whole.name}.{entry}'" for entry in whole.entries[:6])
        raise InputError("choose one component", place="--parameter", found=f"'{path}'", expected=components)
    raise InputError(
        "there is no such entry of `parameters`" + meant(path, names),
        place="--parameter",
        found=f"'{path}'",
        expected=", ".join(labels[:6]) + (" ..." if len(labels) > 6 else ""),
    )


def _limit(text: str, bound: float, whole: str, side: str) -> float:
    if not text.strip():
        if not np.isfinite(bound):
            raise InputError(
                f"the parameter has no {side} bound: give a range",
                place="--parameter",
                found=f"'{whole}'",
                expected="PATH=low:high:n",
            )
        return bound
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise InputError("not a number", place="--parameter", found=f"'{text}' in '{whole}'", expected=_FORM)
    return value


def _count(text: str, whole: str) -> int:
    count = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not 2 <= count <= MOST_SAMPLES:
        raise InputError(
            "not a number of values",
            place="--parameter",
            found=f"'{text[:40]}' in '{whole[:80]}'",
            expected=f"2 to {MOST_SAMPLES}",
        )
    return count
