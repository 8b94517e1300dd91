"""Words for a prediction by samples: what was drawn, how far a linear band holds, how wide, whether it holds."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from add.commands.report_texts import how_far
from add.commands.sampled_runs import Sampled
from add.inverse.bands import NARROWEST, WIDEST, Bands
from add.typing import FloatArray

__all__ = ["goal", "of_draws", "of_linear", "of_widths", "verdict_on"]

_log = logging.getLogger(__name__)

#: A share of failed runs beyond which the bands are doubtful.
FAILED = 0.05
#: Shares of coordinates within a 90 % band that speak for it.
GOAL = (0.80, 0.97)


def goal(level: float) -> tuple[float, float]:
    """Return between which shares of coordinates a band that is to hold ``level`` does."""
    return GOAL[0] * level / 0.9, 1.0 - (1.0 - GOAL[1]) * (1.0 - level) / 0.1


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def of_draws(sampled: Sampled) -> list[str]:
    """Say from what numbers were drawn, which were not, and how many runs failed."""
    numbers, drawn = sampled.motion.numbers, sampled.drawn
    number = len(numbers.sources)
    out = [f"{len(sampled.seen)} runs, each with a draw of {number} number{_s(number)}."]
    for source in dict.fromkeys(numbers.sources.values()):
        labels = [label for label, of in numbers.sources.items() if of == source]
        out.append(f"Drawn from {source}: {', '.join(labels)}.")
    for why in dict.fromkeys(numbers.held.values()):
        labels = [label for label, of in numbers.held.items() if of == why]
        out.append(f"Held, so that the bands do not contain their errors ({why}): {', '.join(labels)}.")
    for k in np.flatnonzero(drawn.outside > 0.0):
        out.append(f"{100 * drawn.outside[k]:.3g} % of the draws of {numbers.labels[k]} left its bounds: drawn again.")
    if drawn.held:
        out.append(f"{100 * drawn.held:.3g} % of the draws left their bounds again and again, and were held there.")
    failed = [run for run in sampled.runs.values() if run.seen is None]
    if failed:
        share = len(failed) / len(sampled.runs)
        text = f"{len(failed)} of {len(sampled.runs)} runs failed and are in no band; the first: {failed[0].failed}"
        out.append(text)
        if share > FAILED:
            _log.warning("%s: the bands are those of the others", text)
    return out


def of_linear(last: float, end: float, why: str, there: bool, level: float) -> str:
    """Say how far the linear band may be believed."""
    if not there:
        return f"There is no linear band: {why}."
    band = f"{100 * level:g} % band"
    if last >= end:
        return f"The linear {band} is that of the samples up to the end, {end:.3g} s."
    text = "is not that of the samples at any time" if last <= 0.0 else f"is that of the samples until t = {last:.3g} s"
    return (
        f"The linear {band} {text}: behind it its width is not within {NARROWEST:g} to {WIDEST:g} times theirs, or "
        "its centre is off by a quarter of it: the motion does not follow the numbers in a straight line. It is not "
        "offered there."
    )


def of_discrepancy(sampled: Sampled, misfit: FloatArray) -> list[str]:
    """Say that a misfit widens the bands, by how much, and for what it holds; ``misfit`` (nf, nm, 3)."""
    out = []
    for of_directions, found in (sampled.discrepancies or {}).items():
        chosen = sampled.motion.view.directions == of_directions
        if not chosen.any():
            continue
        sizes = [how_far(float(part[chosen].max()), "rad" if of_directions else "m", 2) for part in misfit[[0, -1]]]
        once = ", less what the samples spread by themselves" if found.predicted else ""
        takes = f"{found.takes} take{_s(found.takes)}{' that it predicted' if found.predicted else ''}"
        out.append(
            f"The bands of {'directions' if of_directions else 'markers'} are widened by what the fit left over in "
            f"{takes}{once}, as a correlated misfit of the model: one standard deviation {sizes[0]} at the start, "
            f"{sizes[1]} at the end, correlated over {found.correlation_time:.2g} s. That holds for motions of the "
            "same kind as those fitted; poses, angles and ends are not widened."
        )
    return out


def of_widths(bands: dict[tuple[str, str, str], Bands], names: Sequence[str], level: float) -> list[str]:
    """Say how wide the bands of markers are in the middle and at the end of the run."""
    out = []
    for unit in ("m", "rad"):
        halves = [
            0.5 * (found.quantiles[-1] - found.quantiles[0])
            for (name, own, _), found in bands.items() if own == unit and name in names
        ]  # fmt: skip
        if halves:
            sizes = np.array(halves).max(axis=2)  # of each marker its widest coordinate
            middle, end = np.median(sizes[:, sizes.shape[1] // 2]), np.median(sizes[:, -1])
            kind = "markers" if unit == "m" else "directions"
            out.append(
                f"Half width of the {100 * level:g} % band, median over {kind}: "
                f"{how_far(float(middle), unit, 3)} half way, {how_far(float(end), unit, 3)} at the end."
            )
    return out


def verdict_on(share: float, by_time: FloatArray, times: FloatArray, level: float) -> str:
    """Say whether the band holds what was recorded, and from when on it does not."""
    low, high = goal(level)
    said = f"{100 * share:.0f} % of the recorded coordinates that move lie within the {100 * level:g} % band"
    said += f", at the worst time {100 * by_time.min():.0f} %"
    if share < low:
        first = times[np.flatnonzero(by_time < low)[0]]
        return (
            f"{said}: it is too narrow, from t = {first:.3g} s on; the model, or a number that was not fitted, differs"
        )
    if by_time.min() < low:
        return f"{said}: it holds in the mean and not at every time (first at t = {times[by_time < low][0]:.3g} s)"
    if share > high:
        return f"{said}: it holds, and is wider than it need be"
    return f"{said}: it holds"
