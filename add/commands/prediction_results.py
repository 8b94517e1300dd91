"""Results of a prediction by samples: bands, how far a linear one holds, coverage by time, ends, and words for them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.commands.predict import STILL, Motion, moving, until
from add.commands.prediction_texts import goal, of_draws, of_linear, of_widths, verdict_on
from add.commands.report_texts import number
from add.commands.sampled_runs import Sampled
from add.errors import SolverError
from add.inverse.bands import (
    Bands,
    angle_bands,
    direction_bands,
    interval_score,
    levels,
    linear_holds,
    on_tangent,
    place_bands,
    rotation_bands,
    share_interval,
    widened,
)
from add.inverse.prediction import Prediction
from add.plot.prediction import Panel
from add.simulation import DifferentiableStepper
from add.typing import BoolArray, FloatArray

__all__ = ["Results", "ends_of", "results"]

_log = logging.getLogger(__name__)


@final
@dataclass(frozen=True, eq=False)
class Results:
    """What the runs of a prediction make.

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
    bands: dict[tuple[str, str, str], Bands]
    linear: dict[str, FloatArray]
    linear_sd: dict[str, FloatArray]
    recorded: dict[str, FloatArray]
    coverage: dict[str, list[float]] | None
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
    motion, at = sampled.motion, levels(level)
    view, directions = motion.view, motion.view.directions
    markers = sampled.stacked("markers")
    bands: dict[tuple[str, str, str], Bands] = {}
    for j, name in enumerate(view.names):
        make = direction_bands if directions[j] else place_bands
        bands[name, "rad" if directions[j] else "m", "xyz"] = make(markers[:, :, j], at)
    bodies, hinges = sampled.names
    centres, turns = place_bands(sampled.stacked("centres"), at), rotation_bands(sampled.stacked("turns"), at)
    for b, name in enumerate(bodies):
        for what, unit, found in ((f"centre of {name}", "m", centres), (f"rotation of {name}", "rad", turns)):
            bands[what, unit, "xyz"] = Bands(found.reference[:, b], found.quantiles[:, :, b])
    if hinges:
        found = angle_bands(sampled.stacked("angles"), at)
        for b, name in enumerate(hinges):
            bands[f"angle of {name}", "rad", "a"] = Bands(found.reference[:, [b]], found.quantiles[:, :, [b]])
    straight, why = _linear(motion)
    last = _trusted(sampled, markers, straight, level)
    kept = view.times <= last if straight is not None else np.zeros(view.times.size, bool)
    linear = np.full(markers.shape[1:], np.nan)
    linear_sd = np.full(markers.shape[1:], np.nan)
    if straight is not None:
        linear[kept], linear_sd[kept] = straight.positions[kept], straight.errors[kept]
        for m in np.flatnonzero(directions):  # on the tangent plane, as their bands
            about = bands[view.names[m], "rad", "xyz"].reference
            linear[kept, m] = on_tangent(straight.positions[kept, m], about[kept])
    said: dict[str, Any] = {"level": level, "left_behind": motion.numbers.left, "linear_until": last}
    texts = [*of_draws(sampled), of_linear(last, float(view.times[-1]), why, sampled, straight, level)]
    texts += of_widths(sampled, bands, level)
    coverage: dict[str, list[float]] | None = None
    recorded: dict[str, FloatArray] = {}
    if motion.recording is not None:
        coverage, recorded, said["coverage"], more = _covered(sampled, markers, bands, at, level)
        texts += more
    values = [seen.objective for seen in sampled.seen if seen.objective is not None]
    if values:
        said["objective"] = dict(zip((f"q{100 * a:g}" for a in at), np.quantile(values, at).tolist(), strict=True))
    said["texts"] = texts
    each = {name: linear[:, j] for j, name in enumerate(view.names)}
    each_sd = {name: linear_sd[:, j] for j, name in enumerate(view.names)}
    return Results(view.times, at, bands, each, each_sd, recorded, coverage, said)


def _linear(motion: Motion) -> tuple[Prediction | None, str]:
    """Return the linear prediction, or why there is none."""
    if not isinstance(motion.view.built.simulation.stepper, DifferentiableStepper):
        return None, "this contact has no derivatives"
    try:
        return motion.linear(), ""
    except SolverError as error:
        return None, f"the run at the fit's own numbers failed: {error}"


def _trusted(sampled: Sampled, markers: FloatArray, straight: Prediction | None, level: float) -> float:
    """Return until when the linear band holds [s]; 0 for not at all."""
    if straight is None:
        return 0.0
    moves = sampled.drawn.moves[sampled.kept]
    lines = straight.positions + np.einsum("fmci,ki->kfmc", straight.slopes, moves, optimize=True)
    floor = STILL * float(np.ptp(markers, axis=(0, 1)).max(initial=0.0))
    return until(linear_holds(markers, lines, floor, level), straight.times)


def _covered(
    sampled: Sampled, markers: FloatArray, bands: dict[tuple[str, str, str], Bands], at: FloatArray, level: float
) -> tuple[dict[str, list[float]], dict[str, FloatArray], dict[str, Any], list[str]]:
    """Return the coverage by time, the recorded coordinates, a summary and words.

    A recorded coordinate is compared with the band widened by the noise that the fit left over.
    """
    motion, view = sampled.motion, sampled.motion.view
    assert motion.recording is not None
    seen = motion.recording.valid
    targets = motion.recorded(np.median(markers[:, 0], axis=0))
    spread = markers.std(axis=0)
    moves = moving(motion, np.median(markers, axis=0), spread, targets, seen)
    # What is left over is shared by the coordinates that move: of a direction in a plane not all three.
    noise = motion.noise[:, None] * np.sqrt(3.0 / np.maximum(moves.sum(axis=1), 1))[:, None]
    counted = seen[:, :, None] & moves
    inside, low, high = {}, np.zeros(targets.shape), np.zeros(targets.shape)
    local, tracks = targets.copy(), {}
    for j, name in enumerate(view.names):
        unit = "rad" if view.directions[j] else "m"
        found = bands[name, unit, "xyz"]
        if view.directions[j]:
            local[:, j] = on_tangent(targets[:, j], found.reference)
        tracks[name] = np.where(seen[:, [j]], local[:, j], np.nan)
        wide = widened(found, at, noise[j])
        low[:, j], high[:, j] = wide[0], wide[-1]
        inner = wide[np.searchsorted(at, 0.25)], wide[np.searchsorted(at, 0.75)]
        inside[name] = (inner[0] <= local[:, j]) & (local[:, j] <= inner[1])
    of_half = np.stack([inside[name] for name in view.names], axis=1)
    of_level = (low <= local) & (local <= high)
    score = interval_score(low, high, local, level)
    some = counted.any(axis=(1, 2))
    width = f"within_{100 * level:g}"
    coverage = {
        "time_s": view.times[some].tolist(),
        "coordinates": counted[some].sum(axis=(1, 2)).tolist(),
        "within_50": _shares(of_half, counted)[some].tolist(),
        width: _shares(of_level, counted)[some].tolist(),
        "interval_score": _shares(score, counted)[some].tolist(),
    }
    if not some.any():
        return coverage, tracks, {}, ["No recorded coordinate moves: there is nothing to compare."]
    by_time = np.array(coverage[width])
    summary: dict[str, Any] = {
        "coordinates": int(counted.sum()), "within_50": float(of_half[counted].mean()),
        width: float(of_level[counted].mean()), "least": float(by_time.min()),
        "least_time": float(view.times[some][by_time.argmin()]),
        "interval_score": float(score[counted].mean()),
    }  # fmt: skip
    summary["verdict"] = said = verdict_on(summary[width], by_time, view.times[some], level)
    if summary[width] < goal(level)[0]:
        _log.warning("%s", said)
    return coverage, tracks, summary, [said]


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
        out.append(
            _end(
                f"{marker}: ends at {axis} > {value:g}",
                sum(bool(run.markers[-1, j, i] > value) for run in seen),
                len(seen),
            )
        )
    return out


def _end(text: str, count: int, total: int) -> dict[str, Any]:
    low, high = share_interval(count, total)
    return {"end": text, "count": count, "runs": total, "share": count / total, "lower": low, "upper": high}
