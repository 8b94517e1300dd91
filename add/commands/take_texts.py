"""Sentences about the numbers and error bars of a fit, by its takes."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from add.inverse import InverseProblem
from add.inverse.between_takes import MOST_SHARED
from add.inverse.uncertainty import Uncertainty
from add.scene import Scene
from add.scene.spec.roles import limits
from add.typing import BoolArray, FloatArray

_log = logging.getLogger(__name__)

#: Standard errors between what two takes ask for, beyond which a number is no common one.
APART = 4.0


def of_takes(problem: InverseProblem, found: Uncertainty) -> list[str]:
    """Say for which numbers the bars know how another take would differ, and how."""
    between, labels, takes = found.between, problem.labels(), [rows.name for rows in found.rows]
    has = np.array([(rows.slopes != 0.0).any(axis=0) for rows in found.rows]).reshape(len(takes), problem.n)
    shared = (has.sum(axis=0) >= 2) & np.isfinite(found.noise)
    lines = []
    if len(takes) < 2 or not shared.any():
        return ["Not in them: how another take would differ; that takes two takes or more."]
    if shared.sum() > MOST_SHARED:
        return [f"Not in them: how another take would differ, since takes share more than {MOST_SHARED} numbers."]
    varied = between.told & ~between.by_range
    if varied.any():
        lines.append(
            f"How {_listed(labels, varied)} var{_ies(varied)} from take to take is in the bars: the deviation of each "
            "take counts by what that take sees, and the 95 % intervals have the t quantile of so many takes."
        )
    if between.by_range.any():
        lines.append(
            f"Fewer than four takes see {_listed(labels, between.by_range)}: the range of what they ask for is in the "
            "bars in the place of a variance, and the interval is no 95 % but value ± range."
        )
    for k, take in enumerate(takes):
        alone = shared & ~between.told & (between.sees.sum(axis=0) == 1) & between.sees[k]
        if alone.any():
            lines.append(
                f"Of all takes '{take}' alone sees {_listed(labels, alone)}: how another take would differ is not in "
                "the bars of that."
            )
    rest = shared & ~between.told & (between.sees.sum(axis=0) != 1)
    if rest.any():
        lines.append(
            f"The takes see {_listed(labels, rest)} together only, none by itself: how another take would differ is "
            "not in the bars of that."
        )
    return lines


def changing(problem: InverseProblem, x: FloatArray, found: Uncertainty) -> list[dict[str, Any]]:
    """Return the shared numbers of which takes ask for values that are further apart than their bars allow."""
    between, labels = found.between, problem.labels()
    out = []
    for k in np.flatnonzero(between.bars_apart > APART):
        asked = {}
        for rows, sees, own in zip(found.rows, between.sees[:, k], between.own[:, k], strict=True):
            if sees:
                moved = x.copy()
                moved[k] += own
                asked[rows.name] = float(problem.values(moved)[k])
        ends = min(asked, key=lambda name: asked[name]), max(asked, key=lambda name: asked[name])
        bars = float(between.bars_apart[k])
        out.append(
            {
                "parameter": labels[k],
                "takes": asked,
                "bars_apart": bars,
                "text": f"{labels[k]} changes from take to take: '{ends[0]}' asks for {asked[ends[0]]:.4g}, "
                f"'{ends[1]}' for {asked[ends[1]]:.4g}, {bars:.2g} of their bars apart. Give each take its own "
                '("experiment" in parameters), or the model what makes it differ',
            }
        )
    return out


def too_wide(scene: Scene, problem: InverseProblem, x: FloatArray, found: Uncertainty) -> BoolArray:
    """Return which numbers that cannot be negative have a standard error above their value (n,), with a warning."""
    values = problem.values(x)
    positive = np.array([item.lower >= 0.0 or _not_negative(scene, item.name) for item in problem.parameters
                         for _ in range(item.n)], dtype=bool)  # fmt: skip
    with np.errstate(invalid="ignore"):
        wide = positive & (found.standard_errors > np.abs(values))
    if wide.any():
        _log.warning("%s", too_wide_text(problem.labels(), wide))
    return wide


def too_wide_text(labels: Sequence[str], wide: BoolArray) -> str:
    """Say that bars exceed their values."""
    return (
        f"The standard error of {_listed(labels, wide)} exceeds the value: the data do not tell it from zero, and "
        'there is no linear interval ("uncertainty": {"profile": [...]} finds one, another motion may show it better).'
    )


def _not_negative(scene: Scene, name: str) -> bool:
    path = name.partition("@")[0].partition("+")[0]
    return limits(scene, path).low >= 0.0


def _listed(labels: Sequence[str], chosen: BoolArray, most: int = 6) -> str:
    names = [label for label, taken in zip(labels, chosen, strict=True) if taken]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _ies(chosen: BoolArray) -> str:
    return "ies" if chosen.sum() == 1 else "y"
