"""How an optimisation went."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, final

import numpy as np

from add.errors import InputError
from add.plot._figure import BLUE, GREY, ORANGE, figure
from add.typing import FloatArray


@final
@dataclass(frozen=True, eq=False)
class Evaluation:
    """One evaluation of the objective: a line of ``evaluations.jsonl``.

    Attributes
    ----------
    phase : str
    index : int
        Counted from 0, in the phase or over all.
    x, gradient : (n,) as the optimiser sees them
    value : float
    parameters : name -> number
    seconds : float
        How long it took.
    """

    phase: str
    index: int
    x: FloatArray
    value: float
    gradient: FloatArray
    parameters: Mapping[str, float]
    seconds: float


def parse_evaluations(lines: Iterable[Mapping[str, Any]]) -> list[Evaluation]:
    """Turn lines of ``evaluations.jsonl``, numbers in hexadecimal, into values.

    Raises
    ------
    InputError
        naming the line (from 1) that is not an evaluation.
    """
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(
                Evaluation(
                    phase=str(line.get("phase", "")),
                    index=int(line.get("index", number - 1)),
                    x=np.array([_number(x) for x in line["x"]]),
                    value=_number(line["value"]),
                    gradient=np.array([_number(x) for x in line["gradient"]]),
                    parameters=dict(line.get("parameters") or {}),
                    seconds=float(line.get("seconds") or 0.0),
                )
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"not an evaluation: {error!r}", place=f"evaluations.jsonl line {number}") from error
    return found


def _number(text: Any) -> float:
    if text is None:
        return float("nan")
    return float.fromhex(text) if isinstance(text, str) else float(text)


def plot_convergence(evaluations: Iterable[Mapping[str, Any]], path: str | PathLike[str]) -> Path:
    """Draw objective and norm of the gradient over the evaluations, on logarithmic axes, with the phases marked.

    Parameters
    ----------
    evaluations : the lines of ``evaluations.jsonl``
    path : .png or .svg

    Raises
    ------
    InputError
        If there is none.
    """
    parsed = parse_evaluations(evaluations)
    if not parsed:
        raise InputError("no evaluations to draw")
    number = np.arange(1, len(parsed) + 1)
    value = np.array([e.value for e in parsed])
    norm = np.array([np.linalg.norm(e.gradient) if e.gradient.size else np.nan for e in parsed])
    starts = [i for i, e in enumerate(parsed) if i == 0 or e.phase != parsed[i - 1].phase]
    ends = [*starts[1:], len(parsed)]
    with figure(path, 7.0, 5.0) as (drawn, path):
        axes = drawn.subplots(2, 1, sharex=True)
        for axis, y, colour, label in (
            (axes[0], value, BLUE, "objective"),
            (axes[1], norm, ORANGE, "norm of the gradient"),
        ):
            for start, end in zip(starts, ends, strict=True):
                part = slice(start, end)
                axis.plot(number[part], y[part], "o", color=colour, markersize=3.5, alpha=0.45, markeredgewidth=0)
                if label == "objective":  # line searches and bad steps go up: the line is the best so far
                    best = np.fmin.accumulate(y[part])
                    axis.step(number[part], best, where="post", color=colour)
                else:
                    axis.plot(number[part], y[part], color=colour, linewidth=1.0)
            _logarithmic(axis, y)
            axis.set_ylabel(label)
            for start in starts[1:]:
                axis.axvline(start + 0.5, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)))
        if len(starts) > 1 or parsed[0].phase:
            for start in starts:
                axes[0].annotate(
                    parsed[start].phase,
                    (start + 0.6, 1.01),
                    xycoords=("data", "axes fraction"),
                    color=GREY,
                    fontsize=8.5,
                )
        axes[1].set_xlabel("evaluation")
        axes[1].set_xlim(0.5, len(parsed) + 0.5)
        axes[1].xaxis.get_major_locator().set_params(integer=True)
    return path


def _logarithmic(axis: Any, y: FloatArray) -> None:
    """Logarithmic where all is positive, symmetric-logarithmic where it changes sign, linear where all is zero."""
    finite = y[np.isfinite(y)]
    if finite.size and (finite > 0.0).all():
        axis.set_yscale("log")
    elif finite.any():
        axis.set_yscale("symlog", linthresh=float(np.abs(finite[finite != 0.0]).min()))
