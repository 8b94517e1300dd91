"""Parts of reports in words."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from math import floor, isfinite, log10
from typing import Any

import numpy as np

from add.inverse import InverseProblem
from add.inverse.between_takes import MOST_SHARED
from add.inverse.uncertainty import Uncertainty
from add.scene import Scene
from add.scene.spec.limits import limits
from add.typing import BoolArray, FloatArray

__all__ = [
    "changing",
    "duration",
    "end_text",
    "how_far",
    "number",
    "of_takes",
    "one_by_one",
    "one_line",
    "too_wide",
    "too_wide_text",
    "with_error",
]


#: An array of parameters with more entries is one row of a table.
MOST_ROWS = 12


def number(value: object, digits: int = 5) -> str:
    """Write a number for a table; a dash for none.

    Examples
    --------
    >>> number(20483.217), number(0.000123456), number(None), number(12), number(3.0)
    ('20483', '0.00012346', '–', '12', '3')
    """
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return one_line(value)
    if isinstance(value, int):
        return str(value)
    if 0.0 < abs(value) < 1e-4 or abs(value) >= 1e6:
        text = f"{value:.{digits}g}"
        if "e" in text:
            mantissa, exponent = text.split("e")
            return f"{mantissa}e{int(exponent)}"
        return text
    rounded = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e" in rounded else rounded


def with_error(value: object, error: object) -> str:
    """Write a value to two digits of its standard error.

    Examples
    --------
    >>> with_error(20483.217, 131.2), with_error(0.41337, 0.0021), with_error(3.0, None)
    ('20480 ± 130', '0.4134 ± 0.0021', '3')
    """
    if not isinstance(value, int | float) or not isinstance(error, int | float) or not isfinite(error) or error <= 0:
        return number(value)
    places = 1 - floor(log10(error))
    if not -5 <= places <= 8:
        return f"{value:.6g} ± {error:.2g}"
    if places <= 0:
        return f"{round(value, places):.0f} ± {round(error, places):.0f}"
    return f"{value:.{places}f} ± {error:.{places}f}"


def how_far(value: object, unit: object = "m", digits: int = 4) -> str:
    """Write how far something is off: a length in mm, an angle in rad.

    Examples
    --------
    >>> how_far(0.0123), how_far(0.0123, "rad"), how_far(None)
    ('12.3 mm', '0.0123 rad', '–')
    """
    if unit == "rad" or not isinstance(value, int | float):
        return f"{number(value, digits)} rad" if isinstance(value, int | float) else "–"
    return f"{number(1e3 * value, digits)} mm"


def duration(seconds: float) -> str:
    """Write a time for people.

    Examples
    --------
    >>> duration(3.21), duration(754.0), duration(7400.0)
    ('3.2 s', '12 min 34 s', '2 h 03 min')
    """
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def end_text(item: Mapping[str, Any]) -> str:
    """Write how often the runs of a prediction ended one way.

    Examples
    --------
    >>> end_text({"count": 5, "runs": 10, "share": 0.5, "lower": 0.187, "upper": 0.813})
    '50 % (5 of 10 runs; 95 % interval 18.7 to 81.3 %)'
    """
    return (
        f"{100 * item['share']:.3g} % ({item['count']} of {item['runs']} runs; 95 % interval "
        f"{100 * item['lower']:.3g} to {100 * item['upper']:.3g} %)"
    )


def one_by_one(
    parameters: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, Mapping[str, Any]], dict[str, list[Mapping[str, Any]]]]:
    """Split parameters into those that are named each and long arrays, such as the values of a control.

    Examples
    --------
    >>> few, many = one_by_one({f"p[{i}]": {"value": i} for i in range(20)} | {"mass": {"value": 1.0}})
    >>> list(few), {name: len(items) for name, items in many.items()}
    (['mass'], {'p': 20})
    """
    arrays: dict[str, list[Mapping[str, Any]]] = {}
    for path, entry in parameters.items():
        arrays.setdefault(path.partition("[")[0], []).append(entry)
    many = {name: entries for name, entries in arrays.items() if len(entries) > MOST_ROWS}
    return {path: entry for path, entry in parameters.items() if path.partition("[")[0] not in many}, many


def one_line(value: object) -> str:
    """Write a value as one line of printable letters."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(value))
    return text.encode("utf-8", errors="replace").decode("utf-8")


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
