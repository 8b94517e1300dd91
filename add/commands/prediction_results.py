"""Results of a prediction by samples: bands, how far a linear one holds, coverage by time, ends, and words for them."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from add.commands.predict import STILL, Motion, View, moving, until
from add.commands.report_texts import by_reason, how_far, number
from add.commands.sampled_runs import Sampled
from add.errors import SolverError
from add.inverse import intervals
from add.plot.run import Panel
from add.simulation import DifferentiableStepper
from add.summary import counted
from add.typing import AnyArray, BoolArray, FloatArray

# --- Words for a prediction by samples: what was drawn, how far a linear band holds, how wide, whether it holds -------

_log = logging.getLogger(__name__)

#: A share of failed runs beyond which the bands are doubtful.
FAILED = 0.05
#: Shares of coordinates within a 90 % band that speak for it.
GOAL = (0.80, 0.97)


def goal(level: float) -> tuple[float, float]:
    """Return between which shares of coordinates a band that is to hold ``level`` does."""
    return GOAL[0] * level / 0.9, 1.0 - (1.0 - GOAL[1]) * (1.0 - level) / 0.1


def of_draws(sampled: Sampled) -> list[str]:
    """Say from what numbers were drawn, which were not, and how many runs failed."""
    numbers, drawn = sampled.motion.numbers, sampled.drawn
    out = [f"{len(sampled.seen)} runs, each with a draw of {counted(len(numbers.sources), 'number')}."]
    out += [f"Drawn from {source}: {labels}." for source, labels in by_reason(numbers.sources).items()]
    for why, labels in by_reason(numbers.held).items():
        out.append(f"Held, so that the bands do not contain their errors ({why}): {labels}.")
    for k in np.flatnonzero(drawn.outside > 0.0):
        out.append(
            f"{100 * drawn.outside[k]:.3g} % of the draws of {numbers.labels[k]} left its bounds: it is held there."
        )
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
    never = last <= 0.0
    text = "is not that of the samples at any time" if never else f"is that of the samples until t = {last:.3g} s"
    return (
        f"The linear {band} {text}: {'from the start' if never else 'behind it'} its width is not within "
        f"{intervals.NARROWEST:g} to {intervals.WIDEST:g} times theirs, or its centre is off by a quarter of it: "
        f"the motion does not follow the numbers in a straight line. It is not offered{'' if never else ' there'}."
    )


def of_discrepancy(sampled: Sampled, misfit: FloatArray) -> list[str]:
    """Say that a misfit widens the bands, by how much, and for what it holds; ``misfit`` (nf, nm, 3)."""
    out = []
    for of_directions, left_over in (sampled.discrepancies or {}).items():
        chosen = sampled.motion.view.directions == of_directions
        if not chosen.any():
            continue
        sizes = [how_far(float(part[chosen].max()), "rad" if of_directions else "m", 2) for part in misfit[[0, -1]]]
        once = ", less what the samples spread by themselves" if left_over.predicted else ""
        takes = f"{counted(left_over.takes, 'take')}{' that it predicted' if left_over.predicted else ''}"
        out.append(
            f"The bands of {'directions' if of_directions else 'markers'} are widened by what the fit left over in "
            f"{takes}{once}, as a correlated misfit of the model: one standard deviation {sizes[0]} at the start, "
            f"{sizes[1]} at the end, correlated over {left_over.correlation_time:.2g} s. That holds for motions of the "
            "same kind as those fitted; poses, angles and ends are not widened."
        )
    return out


def of_widths(bands: dict[tuple[str, str, str], intervals.Bands], names: Sequence[str], level: float) -> list[str]:
    """Say how wide the bands of markers are in the middle and at the end of the run."""
    out = []
    for unit in ("m", "rad"):
        halves = [
            0.5 * (band.quantiles[-1] - band.quantiles[0])
            for (name, unit_of, _), band in bands.items() if unit_of == unit and name in names
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


# ----------------------------------------------------------------------------------------------------------------------


class Results(NamedTuple):
    """The bands, ends and coverage that the runs of a prediction make.

    Attributes
    ----------
    times : (nf,) [s]
    at : (n_levels,) levels of the quantiles
    bands : (quantity, unit, coordinates) -> Bands of (nf, c)
    linear, linear_sd : marker -> (nf, 3), NaN where the linear band is not to be believed
    recorded : marker -> (nf, 3)
    coverage : column -> values, optional
    said : for ``result.json``
    """

    times: FloatArray
    at: FloatArray
    bands: dict[tuple[str, str, str], intervals.Bands]
    linear: dict[str, FloatArray]
    linear_sd: dict[str, FloatArray]
    recorded: dict[str, FloatArray]
    coverage: dict[str, AnyArray] | None
    said: dict[str, Any]

    def rows(self) -> Iterator[list[Any]]:
        """Return the table of all bands, a row for each quantity, coordinate and time."""
        for (name, unit, axes), bands in self.bands.items():
            for i, axis in enumerate(axes):
                for f, t in enumerate(self.times):
                    straight = [part[name][f, i] if name in part else np.nan for part in (self.linear, self.linear_sd)]
                    known = ["" if np.isnan(value) else float(value) for value in straight]
                    values = [float(value) for value in bands.quantiles[:, f, i]]
                    yield [name, axis, unit, repr(float(t)), float(bands.reference[f, i]), *values, *known]

    def picture(self) -> list[Panel]:
        """Return what is drawn: the markers."""
        none = np.zeros(0)
        panels = []
        for (name, unit, _), bands in self.bands.items():
            if name in self.linear:
                parts = (self.linear[name], self.linear_sd[name], self.recorded.get(name, none))
                panels.append(Panel(name, unit, self.times, self.at, bands.quantiles, *parts))
        return panels


def results(sampled: Sampled, level: float) -> Results:
    """Return bands, trust in the linear one, coverage and words.

    Parameters
    ----------
    sampled : at least two finished runs
    level : share that the wider band holds
    """
    motion, at = sampled.motion, intervals.levels(level)
    view, directions = motion.view, motion.view.directions
    markers = sampled.stacked("markers")
    middle = np.median(markers, axis=0)
    recorded = None if motion.recording is None else motion.recorded(middle[0])
    moves = moving(motion, middle, markers.std(axis=0), recorded)
    # What is left over is shared by the coordinates that move: of a direction in a plane not all three.
    share = moves * np.sqrt(3.0 / np.maximum(moves.sum(axis=1), 1))[:, None]
    misfit, noise = sampled.misfit(view.times, moves)
    misfit, noise = misfit[:, :, None] * share, noise[:, None] * share
    of_motion, turned = intervals.place_bands(markers, at), intervals.direction_bands(markers[:, :, directions], at)
    of_motion.reference[:, directions], of_motion.quantiles[:, :, directions] = turned.reference, turned.quantiles
    of_markers = intervals.Bands(of_motion.reference, intervals.widened(of_motion, at, misfit))
    bands: dict[tuple[str, str, str], intervals.Bands] = {}
    for j, name in enumerate(view.names):
        found = intervals.Bands(of_markers.reference[:, j], of_markers.quantiles[:, :, j])
        bands[name, "rad" if directions[j] else "m", "xyz"] = found
    bodies, hinges = sampled.names
    centres, turns = (
        intervals.place_bands(sampled.stacked("centres"), at),
        intervals.rotation_bands(sampled.stacked("turns"), at),
    )
    for b, name in enumerate(bodies):
        for what, unit, found in ((f"centre of {name}", "m", centres), (f"rotation of {name}", "rad", turns)):
            bands[what, unit, "xyz"] = intervals.Bands(found.reference[:, b], found.quantiles[:, :, b])
    if hinges:
        found = intervals.angle_bands(sampled.stacked("angles"), at)
        for b, name in enumerate(hinges):
            bands[f"angle of {name}", "rad", "a"] = intervals.Bands(found.reference[:, [b]], found.quantiles[:, :, [b]])
    straight, why = _linear(motion)
    last, straight_sd = _trusted(sampled, markers, straight, level)
    linear, linear_sd = np.full((2, *middle.shape), np.nan)
    if straight is not None:
        kept = view.times <= last
        linear[kept], linear_sd[kept] = straight.positions[kept], np.hypot(straight_sd, misfit)[kept]
        on = kept[:, None] & directions  # on the tangent plane, as their bands
        linear[on] = intervals.on_tangent(straight.positions[on], of_markers.reference[on])
    said: dict[str, Any] = {"level": level, "left_behind": motion.numbers.left, "linear_until": last}
    texts = [*of_draws(sampled), of_linear(last, float(view.times[-1]), why, straight is not None, level)]
    texts += of_discrepancy(sampled, misfit)
    texts += of_widths(bands, view.names, level)
    coverage: dict[str, AnyArray] | None = None
    tracks: dict[str, FloatArray] = {}
    if motion.recording is not None and recorded is not None:
        local = recorded.copy()
        local[:, directions] = intervals.on_tangent(recorded[:, directions], of_markers.reference[:, directions])
        counted = motion.recording.valid[:, :, None] & moves
        coverage, said["coverage"] = _covered(view, local, counted, of_markers, at, noise, level)
        texts.append(said["coverage"]["verdict"])
        tracks = {
            name: np.where(motion.recording.valid[:, [j]], local[:, j], np.nan) for j, name in enumerate(view.names)
        }
    values = [run.objective for run in sampled.seen if run.objective is not None]
    if values:
        said["objective"] = dict(zip((f"q{100 * a:g}" for a in at), np.quantile(values, at), strict=True))
    said["texts"] = texts
    each, each_sd = ({name: part[:, j] for j, name in enumerate(view.names)} for part in (linear, linear_sd))
    return Results(view.times, at, bands, each, each_sd, tracks, coverage, said)


def _linear(motion: Motion) -> tuple[intervals.Prediction | None, str]:
    """Return the linear prediction, or why there is none."""
    if not isinstance(motion.view.built.simulation.stepper, DifferentiableStepper):
        return None, "this contact has no derivatives"
    try:
        return motion.linear(), ""
    except SolverError as error:
        return None, f"the run at the fit's own numbers failed: {error}"


def _trusted(
    sampled: Sampled, markers: FloatArray, straight: intervals.Prediction | None, level: float
) -> tuple[float, FloatArray]:
    """Return until when the linear band of the draws holds [s], 0 for not at all, and its standard deviations."""
    if straight is None:
        return 0.0, np.zeros(markers.shape[1:])
    moves = sampled.drawn.moves[sampled.kept]
    lines = np.einsum("fmci,ki->kfmc", straight.slopes, moves, optimize=True)
    floor = STILL * float(np.ptp(markers, axis=(0, 1)).max(initial=0.0))
    holds = intervals.linear_holds(markers, straight.positions + lines, floor, level)
    return until(holds, straight.times), np.sqrt((lines**2).mean(axis=0))


def _covered(
    view: View,
    local: FloatArray,
    counted: BoolArray,
    bands: intervals.Bands,
    at: FloatArray,
    noise: FloatArray,
    level: float,
) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Return the coverage by time, and a summary with a verdict.

    Those of the recorded coordinates ``local`` (nf, nm, 3) that are ``counted`` are compared with the band widened by
    the noise (nm, 3) that the fit left over. Scores are those of places; where all markers are directions, theirs.
    """
    wide = intervals.widened(bands, at, noise)
    inside = {}
    for share, (low, high) in ((0.5, np.searchsorted(at, (0.25, 0.75))), (level, (0, at.size - 1))):
        inside[f"within_{100 * share:g}"] = (wide[low] <= local) & (local <= wide[high])
    score = intervals.interval_score(wide[0], wide[-1], local, level)
    scored = counted & (view.directions if view.directions.all() else ~view.directions)[:, None]
    some = counted.any(axis=(1, 2))
    coverage = {"time_s": view.times[some], "coordinates": counted[some].sum(axis=(1, 2))}
    coverage |= {key: _shares(values, counted)[some] for key, values in inside.items()}
    coverage["interval_score"] = _shares(score, scored)[some]
    if not some.any():
        return coverage, {"coordinates": 0, "verdict": "no recorded coordinate moves: there is nothing to compare"}
    by_time = coverage[f"within_{100 * level:g}"]
    summary: dict[str, Any] = {key: values[counted].mean() for key, values in inside.items()} | {
        "coordinates": counted.sum(), "least": by_time.min(),
        "least_time": view.times[some][by_time.argmin()],
        "interval_score": score[scored].mean() if scored.any() else None,
    }  # fmt: skip
    held = summary[f"within_{100 * level:g}"]
    summary["verdict"] = verdict_on(held, by_time, view.times[some], level)
    if held < goal(level)[0]:
        _log.warning("%s", summary["verdict"])
    return coverage, summary


def _shares(values: FloatArray | BoolArray, counted: BoolArray) -> FloatArray:
    """Return the means (nf,) over what counts at each time; 0 where nothing does."""
    total = np.where(counted, values, 0.0).sum(axis=(1, 2))
    return np.asarray(total / np.maximum(counted.sum(axis=(1, 2)), 1))


def ends_of(sampled: Sampled, sides: Sequence[tuple[str, str, float]] = ()) -> list[dict[str, Any]]:
    """Return the probabilities of discrete ends with 95 % intervals: sides up, contacts, places beyond a value."""
    seen, names = sampled.seen, sampled.motion.view.names
    out = []
    for body in seen[0].ends:
        for side, count in Counter(run.ends[body] for run in seen).most_common():
            out.append(_end(f"{body}: {side}", count, len(seen)))
    for body in seen[0].touches:
        times = [t for run in seen if (t := run.touches[body]) is not None]
        text = f"{body}: touches something"
        if times:
            text += f", first at {number(float(np.median(times)), 3)} s (median)"
        out.append(_end(text, len(times), len(seen)))
    for marker, axis, value in sides:
        j, i = names.index(marker), "xyz".index(axis)
        beyond = sum(bool(run.markers[-1, j, i] > value) for run in seen)
        out.append(_end(f"{marker}: ends at {axis} > {value:g}", beyond, len(seen)))
    return out


def _end(text: str, count: int, total: int) -> dict[str, Any]:
    low, high = intervals.share_interval(count, total)
    return {"end": text, "count": count, "runs": total, "share": count / total, "lower": low, "upper": high}
