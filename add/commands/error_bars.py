"""Error bars of a fit as `result.json` has them: intervals, what they contain, what the data do not see."""

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from add.commands import convergence_file
from add.commands.marker_fits import changing, of_takes, too_wide, too_wide_text
from add.errors import InputError, SolverError
from add.inverse import InverseProblem, uncertainty as uncertain
from add.inverse.between_takes import CloudCorrelation
from add.inverse.fit_rows import FitRows, fit_rows
from add.inverse.intervals import profile
from add.inverse.refit import bootstrap
from add.inverse.uncertainty import Uncertainty, Weak
from add.io.runfolder import RunFolder, plain
from add.objectives import Tracking
from add.objectives.beyond_markers import CloudTracking, WhitenedTracking
from add.scene import Scene, experiment_scenes
from add.scene.build.recordings import recording_placement
from add.summary import fields_of
from add.typing import FloatArray

_log = logging.getLogger(__name__)

_NO_BARS_OF_OTHERS = "No error bars: a part of the objective is no sum of squares."
_NO_BARS = "No error bars: the objective has terms that are no samples of markers frame by frame."
_NO_BARS_OF_BOTH = "No error bars: markers and point clouds in one objective, whose errors do not compare."
_TOO_FEW = "No error bars: there are no more recorded coordinates than numbers to find, which any noise then fits."
#: Numbers of which correlations and replicates are kept, at most.
MOST_TOGETHER = 60
#: Pairs of parameters whose errors are correlated beyond this are named.
TIED = 0.95
#: A candidate is worth a sentence if it lowers the spread along a weak direction at least so many times.
WORTH = 2.0
#: Bars this much wider than those of coordinates whose noise is each one's own are said to be.
UNEQUAL = 1.3
#: A fit that another step would move by more than this share of the noise's standard error has not ended.
UNFINISHED = 0.5
#: Its steps are cut to so many typical changes, and not told where they are so small beside the number.
LONGEST, ROUNDING = 10.0, 1e-7


def error_bars(scene: Scene, problem: InverseProblem, x: FloatArray, folder: RunFolder) -> dict[str, Any] | None:
    """Return what is known of the errors of a fit; None where there is no least-squares fit to a recording.

    Returns
    -------
    dict
        parameters : label -> standard_error, interval_lower, interval_upper, interval_by, errors by source, at_bound;
        correlation : labels and matrix; shifts : labels and vectors, the discretisation of all numbers together;
        residuals : of each take; weak : combinations; changing : numbers of which takes ask for different values;
        contains : sentences.
    """
    try:
        parts = [part for item in problem.experiments for _, part in item.objective.as_squares() if part.looks]
    except TypeError:  # a part that is no sum of squares
        fitted = any(item.recording is not None for item in problem.experiments)
        return {"parameters": {}, "contains": [_NO_BARS_OF_OTHERS]} if fitted else None
    if any(not isinstance(part, Tracking | WhitenedTracking | CloudTracking) for part in parts):
        return {"parameters": {}, "contains": [_NO_BARS]}
    if 0 < sum(isinstance(part, CloudTracking) for part in parts) < len(parts):
        return {"parameters": {}, "contains": [_NO_BARS_OF_BOTH]}
    bars = uncertain.uncertainty(problem, x)
    if bars is None:
        compared = any(item.tracking is not None for item in problem.experiments)
        return {"parameters": {}, "contains": [_TOO_FEW]} if compared else None
    bars, said, shifts = _discretised(scene, problem, bars, folder)
    wide = too_wide(scene, problem, x, bars)
    entries = {label: _entry(problem, x, bars, k, interval=not wide[k]) for k, label in enumerate(problem.labels())}
    out: dict[str, Any] = {"parameters": entries, "residuals": _residuals(bars)}
    labels = problem.labels()
    kept = _kept(labels)
    if kept:
        matrix = bars.correlation_matrix[np.ix_(kept, kept)]
        names = [labels[k] for k in kept]
        out["correlation"] = {"labels": names, "matrix": matrix}
        out["tied"] = _tied(names, matrix)
    if shifts:
        out["shifts"] = {"labels": labels, "vectors": shifts}
    out["weak"] = _weak(scene, problem, x, bars)
    profiled = _profiles(scene, problem, x, bars, entries)
    drawn = None
    if scene.uncertainty.bootstrap is not None:
        drawn = bootstrap(problem, x, bars, scene.uncertainty.bootstrap)
        for k, label in enumerate(labels):
            entries[label]["bootstrap"] = {
                "standard_error": drawn.standard_errors[k],
                "lower": drawn.lower[k],
                "upper": drawn.upper[k],
            }
        out["bootstrap"] = {
            "over": drawn.over, "blocks": drawn.blocks, "draws": scene.uncertainty.bootstrap,
            "labels": [labels[k] for k in kept],
            "replicates": drawn.values[:, kept],
        }  # fmt: skip
    if wide.any():
        said = [*said, too_wide_text(labels, wide)]
    out["changing"] = changing(problem, x, bars)
    out["contains"] = [*_contents(bars), *of_takes(problem, bars), *_unfinished(problem, x, bars), *said, *profiled]
    return dict(plain(out))


def _kept(labels: Sequence[str]) -> list[int]:
    """Return the numbers whose errors are kept together: all of few, else those that takes share; none of too many."""
    every = list(range(len(labels)))
    chosen = every if len(labels) <= MOST_TOGETHER else [k for k in every if "@" not in labels[k]]
    return chosen if len(chosen) <= MOST_TOGETHER else []


def _discretised(
    scene: Scene, problem: InverseProblem, found: Uncertainty, folder: RunFolder
) -> tuple[Uncertainty, list[str], list[list[float]]]:
    """Return the uncertainty with the discretisation of the scene's file or the folder's, a sentence, the shifts."""
    path = folder.path / convergence_file.CONVERGENCE
    given = scene.uncertainty.convergence
    if given is None and not path.is_file():
        command = f"add converge {scene.source or 'SCENE'} -o {folder.path}"
        text = (
            f"Not in them: the discretisation. `{command}` says what finer steps and meshes change, and adds it, in "
            f"the time of about {convergence_file.evaluations(scene)} of the fit's evaluations, mostly less."
        )
        return found, [text], []
    name = given or str(path)
    study = convergence_file.read_convergence(name)
    errors, why = convergence_file.errors_for(study, scene, problem)
    if why is not None:
        _log.warning("%s %s", name, why)
    if not np.isfinite(errors).any():
        return found, [f"Not in them: the discretisation, since {name} {why}."], []
    texts = [convergence_file.refined_text(study, scene)]
    if "estimate" in study:
        texts.append(convergence_file.estimate_text(study["estimate"]))
    texts += [f"{text[:1].upper()}{text[1:]}." for text in convergence_file.left_over(study, scene)]
    return uncertain.with_discretisation(found, errors), texts, convergence_file.shifts_for(study, problem.labels())


def _entry(problem: InverseProblem, x: FloatArray, found: Uncertainty, k: int, *, interval: bool) -> dict[str, Any]:
    """Return the error of one number and, if asked, its 95 % interval, symmetric in the variable that was fitted."""
    error = found.standard_errors[k]
    slope = abs(float(problem.design.pushforward(x, np.ones(problem.n))[k]))
    ends: list[float | None] = [None, None]
    if interval and np.isfinite(error) and slope > 0.0:
        limits = [bound[k] for bound in problem.bounds]
        for i, sign in enumerate((-1.0, 1.0)):
            end = np.clip(x[k] + sign * found.half_widths[k] / slope, *limits)
            ends[i] = problem.value_of(k, end, x)
    sources = {name: getattr(found, name) for name in ("noise", "correlated", "takes", "discretisation")}
    varied = found.between.told[k] and not found.between.by_range[k]
    return {
        "standard_error": error,
        "interval_lower": ends[0],
        "interval_upper": ends[1],
        "interval_by": "range of takes" if found.by_range[k] else "standard error",
        "errors": {key: values[k] for key, values in sources.items()},
        "between_takes": slope * np.sqrt(found.between.variance[k]) if varied else None,
        "at_bound": found.at_bound[k],
        "freedom": found.freedom[k],
    }


def _residuals(found: Uncertainty) -> dict[str, Any]:
    """Return for each take how white its residuals are and how many samples they are worth."""
    out = {}
    for rows, looked in zip(found.rows, found.correlations, strict=True):
        said: dict[str, Any] = {
            "frames": looked.n_frames,
            "coordinates": looked.n_samples,
            "effective": looked.effective,
            "white": looked.is_white if looked.tested else None,
            "p_value": looked.p_value,
            "frames_per_independent": looked.time,
        }
        if isinstance(looked, CloudCorrelation):
            out[rows.name] = said | fields_of(looked, "share", "length")
        else:
            series = np.unique(rows.series // 3)
            names = [rows.markers[k] if k < len(rows.markers) else f"target {k}" for k in series]
            out[rows.name] = said | {"per_marker": dict(zip(names, looked.per_marker.tolist(), strict=True))}
    return out


def _contents(found: Uncertainty) -> list[str]:
    """Say what the bars contain."""
    lines = ["± is one standard error: the noise that is left over, as if the model were right."]
    pairs = list(zip(found.rows, found.correlations, strict=True))
    untested = [rows.name for rows, looked in pairs if not looked.tested]
    texts = [
        f"{rows.name}: {looked.n_samples} {'points' if rows.of_clouds else 'coordinates'} count for "
        f"{looked.effective:.3g}"
        for rows, looked in pairs
        if not looked.is_white
    ]
    if texts:
        lines.append(
            "The residuals are no white noise, so that they count for fewer (" + "; ".join(texts) + "); the bars are "
            "wider by that. Something in the model, the step, the mesh or the markers is not as recorded, or the fit "
            "ended in another minimum: try other starts."
        )
    elif (found.correlated > UNEQUAL * found.noise).any():
        lines.append(
            "Coordinates share their noise, as those of an angle or a pose do, or it grows and falls: they count by "
            "frames, and the bars are wider by that."
        )
    if untested:
        lines.append(f"Too few frames to tell whether the residuals are white: {', '.join(untested)}.")
    if found.at_bound.any():
        lines.append("Numbers on a bound have no ±; those of the others hold for these values.")
    return lines


def _unfinished(problem: InverseProblem, x: FloatArray, found: Uncertainty) -> list[str]:
    """Say which numbers another step of Gauss-Newton would still move by more than a good part of their error."""
    followed = sum(item.objective.looks for item in problem.experiments)
    squares = [part for item in problem.experiments for _, part in item.objective.as_squares() if not part.looks]
    if problem.priors or squares or followed != len(found.rows):
        return []
    slopes = np.concatenate([rows.slopes for rows in found.rows])
    step = -np.linalg.lstsq(slopes, np.concatenate([rows.residual for rows in found.rows]), rcond=1e-12)[0]
    step *= min(1.0, LONGEST / max(np.abs(step).max(initial=0.0), LONGEST))
    lower, upper = problem.bounds
    values = problem.values(x)
    moved = problem.values(np.clip(x + step, lower, upper)) - values
    least = np.maximum(UNFINISHED * found.noise, ROUNDING * np.abs(values))
    far = [k for k in range(problem.n) if np.abs(moved[k]) > least[k]]
    labels = problem.labels()
    texts = [f"{labels[k]} by {moved[k]:+.2g}" for k in far]
    if not texts:
        return []
    here, there = problem.value(x)[0], []
    # Where slopes change along the step a part of it leads down, at a kink none does.
    for share in (1.0, 1 / 4, 1 / 16, 1 / 64):
        there.append(np.inf)
        with contextlib.suppress(SolverError, InputError):
            there[-1] = problem.value(np.clip(x + share * step, lower, upper))[0]
        if there[-1] < here:
            return [
                f"The fit ended before its minimum: another step would move {', '.join(texts)} (give it more "
                "evaluations or a lower tolerance)."
            ]
    return [
        f"The slopes ask for a step of {', '.join(texts)}, and the objective is no lower there ({here:.6g} here, "
        f"{there[0]:.6g} there): the fit stands at a kink, as where an impact falls into one step or the next, and has "
        "more than one end. A lower tolerance changes nothing, a smaller time.dt does; the bars do not know the other."
    ]


def _tied(labels: Sequence[str], matrix: FloatArray) -> list[dict[str, Any]]:
    """Return the pairs whose errors go together."""
    pairs = np.argwhere(np.triu(np.abs(np.nan_to_num(matrix)) > TIED, 1))[: len(labels)]
    return [{"a": labels[i], "b": labels[j], "correlation": matrix[i, j]} for i, j in pairs]


def _weak(scene: Scene, problem: InverseProblem, x: FloatArray, found: Uncertainty) -> list[dict[str, Any]]:
    """Return the combinations that the data hardly see, in words, and what would show them."""
    directions = uncertain.weak_directions(found)[:5]
    if not directions:
        return []
    # A marker more has a noise in metres, to which residuals in standard deviations do not compare.
    in_metres = all(isinstance(p, Tracking) for item in problem.experiments for _, p in item.objective.as_squares())
    candidates = _candidates(scene, problem, x) if scene.uncertainty.candidates and in_metres else {}
    labels, slope = problem.labels(), problem.design.pushforward(x, np.ones(problem.n))
    values = problem.values(x)
    out = []
    for weak in directions:
        members = weak.members()
        size = 1.0 if np.isinf(weak.spread) else weak.spread
        parts = []
        for k in members:
            change = float(slope[k] * weak.direction[k] * size)
            relative = abs(change / values[k]) if values[k] else np.inf
            parts.append(
                f"{labels[k]} by {100 * change / abs(values[k]):+.2g} %"
                if relative < 10.0
                else f"{labels[k]} by {change:+.2g}"
            )
        text = (
            f"The data do not see {labels[members[0]]}"
            if np.isinf(weak.spread) and len(members) == 1
            else ("The data do not see" if np.isinf(weak.spread) else "The data hardly see")
            + f" {' with '.join(parts)}"
        )
        best = uncertain.remedies(weak, candidates, max(found.rms, 1e-9))
        out.append(
            {
                "parameters": {labels[k]: float(weak.direction[k]) for k in members},
                "spread": weak.spread,
                "singular_value": weak.singular_value,
                "candidates": [{"name": name, "spread": value} for name, value in best],
                "text": f"{text}: {_remedy(weak, best, labels[members[0]], len(members))}",
            }
        )
    return out


def _remedy(weak: Weak, best: list[tuple[str, float]], label: str, members: int) -> str:
    """Say which candidate would show a combination, and how well."""
    if best and best[0][1] * WORTH < weak.spread:
        before = "" if np.isinf(weak.spread) else f" from {weak.spread:.2g}"
        return f"{best[0][0]} would lower the spread along it{before} to {best[0][1]:.2g} typical changes"
    others = "the others follow" if members > 1 else "the motion does not tell"
    tried = "none of the takes and markers of the scene would; " if best else ""
    return f"{tried}measure {label} by itself ({others}), or record a motion that depends on it"


def _candidates(scene: Scene, problem: InverseProblem, x: FloatArray) -> dict[str, FitRows]:
    """Return the rows of takes that are only predicted, and of markers of the scene that were not recorded."""
    scenes = experiment_scenes(scene)
    out = {}
    for experiment in (*problem.experiments, *problem.validation):
        tracking, recording = experiment.tracking, experiment.recording
        if tracking is None or recording is None:
            continue
        fitted = any(item is experiment for item in problem.experiments)
        built = scenes[experiment.name].build()
        others = [name for name in built.marker_names if name not in recording.names]
        options: list[tuple[str, Tracking, FloatArray | None]] = []
        if not fitted:
            options.append((f"take '{experiment.name}'", tracking, None))
        if others:
            index = np.array([built.marker_names.index(name) for name in others])
            shape = (tracking.times.size, len(others))
            more = replace(
                tracking,
                points=built.markers.select(index),
                targets=np.zeros((*shape, 3)),
                weights=np.ones(shape),
                placement=recording_placement(built.scene, built.model.system.parameters, tuple(others)),
            )
            theta = problem.theta(x, experiment)
            options.append((f"recording {', '.join(others)} in '{experiment.name}'", more, theta))
        for name, chosen, theta_seen in options:
            try:
                out[name] = fit_rows(problem, x, uncertain.as_candidate(experiment, chosen, theta_seen))
            except (SolverError, InputError) as error:
                _log.info("%s is not tried: %s", name, error)
    return out


def _profiles(
    scene: Scene, problem: InverseProblem, x: FloatArray, found: Uncertainty, entries: dict[str, dict[str, Any]]
) -> list[str]:
    """Replace intervals by those of the profile likelihood, with the discretisation added; say for which."""
    if not scene.uncertainty.profile:
        return []
    labels = problem.labels()
    slope = np.abs(problem.design.pushforward(x, np.ones(problem.n)))
    lower, upper = problem.bounds
    # A number without an error has that of the others, in the mean, or that of white noise.
    count = sum(rows.residual.size for rows in found.rows)
    white = problem.value(x)[0] / max(count - problem.n, 1)
    usual = float(np.nanmedian(found.rise)) if np.isfinite(found.rise).any() else white
    for k in problem.index_of(scene.uncertainty.profile):
        scatter = found.statistical[k]
        known = np.isfinite(scatter) and scatter > 0.0
        room = upper[k] - lower[k]
        step = 2.0 * scatter / slope[k] if known else (0.1 * room if np.isfinite(room) else 0.1)
        rise = float(found.rise[k]) if known else usual
        interval = profile(problem, x, int(k), step=float(step), freedom=float(found.freedom[k]), rise=rise)
        value = float(problem.values(x)[k])
        more = 2.0 * float(np.nan_to_num(found.discretisation[k]))
        ends = [value - np.hypot(value - interval.lower, more), value + np.hypot(interval.upper - value, more)]
        ends = np.clip(ends, *(bound[k] for bound in problem.physical_bounds)).tolist()
        entries[labels[k]] |= {
            "interval_lower": ends[0],
            "interval_upper": ends[1],
            "interval_by": "profile likelihood",
            "interval_open": [interval.lower_open, interval.upper_open],
            "profile_evaluations": interval.evaluations,
        }
    return [f"95 % intervals by profile likelihood: {', '.join(scene.uncertainty.profile)}."]
