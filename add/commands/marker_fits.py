"""Distances of simulated markers from recorded ones and from targets, and what a scatter of takes says of them."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from add.commands.report_texts import csv_text
from add.inverse import Experiment, InverseProblem
from add.inverse.between_takes import MOST_SHARED
from add.inverse.uncertainty import Uncertainty
from add.io.runfolder import RESIDUALS, RunFolder, plain
from add.objectives import Tracking
from add.scene import Scene
from add.scene.spec.objective import MarkersObjectiveSpec, PriorObjectiveSpec
from add.scene.spec.roles import limits
from add.simulation.run import Trajectory
from add.summary import few
from add.typing import BoolArray, FloatArray, IntArray


class Samples(NamedTuple):
    """The comparison of one run with its recording.

    Attributes
    ----------
    names : (nm,) markers
    directions : (nm,) bool
        Markers that are directions: what they are off is an angle.
    times : (nf,) on the simulation's clock [s]
    residuals : (nf, nm, 3) simulated - recorded, or of displacements, NaN where not seen [m], of directions [-]
    targets : (nf, nm, 3) what was recorded, NaN where not seen [m], directions [-]
    end : of the run [s]
    dt : step [s]
    """

    names: tuple[str, ...]
    directions: BoolArray
    times: FloatArray
    residuals: FloatArray
    targets: FloatArray
    end: float
    dt: float

    def apart(self, differences: FloatArray) -> FloatArray:
        """Return the lengths (..., nm) of differences (..., nm, 3) of places [m], the angles of those of directions."""
        length = np.linalg.norm(differences, axis=-1)
        return np.where(self.directions, 2.0 * np.arcsin(np.minimum(0.5 * length, 1.0)), length)


def samples(experiment: Experiment, trajectory: Trajectory, theta: FloatArray, scene: Scene) -> Samples | None:
    """Return all samples of a run; None where it follows no recording."""
    if experiment.recording is None or experiment.tracking is None:
        return None
    tracking = experiment.tracking.for_run()
    misfits = np.full(tracking.targets.shape, np.nan)
    for state in trajectory.states():
        for frame, difference in tracking.differences(state, theta):
            valid = tracking.weights[frame] > 0.0
            misfits[frame, valid] = difference[valid]
    seen = np.isfinite(misfits).all(axis=2)
    targets = np.where(seen[:, :, None], tracking.placed(slice(None), theta), np.nan)
    dt, times = experiment.simulation.stepper.dt, tracking.simulation_times(theta)
    times = np.where(np.isneginf(times), -dt, times)  # as load_recording has the frame at rest
    names = experiment.recording.names
    directions = np.array([scene.is_direction(name) for name in names])
    return Samples(names, directions, times, misfits, targets, float(trajectory.t[-1]), dt)


def fit_numbers(found: Samples) -> dict[str, Any]:
    """Return how far simulated markers are from recorded ones, as ``result.json`` has it.

    ``unit`` is that of the root mean square of all: m, or rad where all are directions; directions beside points have
    ``rms_angle``.
    """
    distance = found.apart(found.residuals)
    seen = np.isfinite(distance)
    squares = np.where(seen, distance, 0.0) ** 2
    count = seen.sum(axis=0)
    peak = np.zeros(len(found.names))
    for k in range(len(found.names)):
        path = found.targets[seen[:, k], k]
        if len(path):
            peak[k] = found.apart((found.targets - path[0])[seen[:, k]])[:, k].max()
    # Within a step of the run a straight line is as good as the step.
    room = (1.0 + 1e-6) * found.dt
    outside = (found.times < -room) | (found.times > found.end + room)
    # Nothing is off at the frame from which displacements count, wherever it is.
    outside &= np.nan_to_num(distance).any(axis=1)
    rms = np.sqrt(squares.sum(axis=0) / np.maximum(count, 1))
    of_kind = found.directions if found.directions.all() else ~found.directions
    peak_of_kind = float(peak[of_kind].max(initial=0.0))
    together = _rms(squares, count, of_kind)
    mixed = {"rms_angle": _rms(squares, count, ~of_kind)} if not of_kind.all() else {}
    units = np.where(found.directions, "rad", "m").tolist()
    numbers = {
        "rms": together,
        "unit": "rad" if found.directions.all() else "m",
        **mixed,
        "samples": count.sum(),
        "frames_outside": outside.sum(),
        "peak_displacement": peak_of_kind,
        "rms_over_peak": together / peak_of_kind if peak_of_kind > 0 else None,
        "per_marker": {
            name: {"rms": r, "unit": unit, "peak_displacement": p, "samples": n}
            for name, r, unit, p, n in zip(found.names, rms, units, peak, count, strict=True)
        },
    }
    return dict(plain(numbers))


def _unit(scene: Scene, item: Any, names: Sequence[str], followed: bool) -> str:
    """Return the unit of an entry of a scene's objective; ``followed``: markers count as places, not as deviations."""
    if isinstance(item, MarkersObjectiveSpec):
        kinds = {scene.is_direction(name) for name in names}
        return " and ".join("-" if kind else "m^2" for kind in sorted(kinds)) if followed else "-"
    return "-" if scene.is_direction(getattr(item, "marker", None)) else item.unit


def objective_text(scene: Scene, experiment: Experiment) -> str:
    """Return what a scene's objective is the sum of, such as ``8 x point [m^2] + 0.001 x smoothness [...]``."""
    counts, parts = Counter[tuple[float, str]](), iter(experiment.objective.objectives)
    names = experiment.recording.names if experiment.recording else ()
    for item in scene.objective:
        followed = isinstance(item, PriorObjectiveSpec) or isinstance(next(parts), Tracking)
        unit = _unit(scene, item, names, followed)
        if item.weight:
            counts[item.weight, f"{item.type}{f' [{unit}]' if unit else ''}"] += 1
    return " + ".join(
        f"{f'{n} x ' if n > 1 else ''}{'' if weight == 1.0 else f'{weight:g} x '}{what}"
        for (weight, what), n in counts.items()
    )


def target_fits(scene: Scene, experiment: Experiment, run: Trajectory, theta: FloatArray) -> list[dict[str, Any]]:
    """Return how far a run is off each target, as ``result.json`` has it: ``rms`` of its samples, ``worst`` of them."""
    out = []
    items = [(k, item) for k, item in enumerate(scene.objective) if not isinstance(item, PriorObjectiveSpec)]
    for (k, item), part in zip(items, experiment.objective.objectives, strict=True):
        times, off = part.off(run, theta)
        if not item.weight or part is experiment.tracking or not off.size:
            continue
        of, unit = getattr(item, "marker", getattr(item, "body", None)), item.unit.replace("^2", "")
        if scene.is_direction(of):
            off, unit = 2.0 * np.arcsin(np.minimum(0.5 * off, 1.0)), "rad"
        worst = int(np.argmax(off))
        out.append(
            {
                "objective": f"objective.{k}", "type": item.type, "unit": unit, "of": of,
                "rms": np.sqrt(np.mean(off**2)), "worst": off[worst],
                "time": times[worst],
            }
        )  # fmt: skip
    return list(plain(out))


def _rms(squares: FloatArray, count: IntArray, chosen: BoolArray) -> float:
    return float(np.sqrt(squares[:, chosen].sum() / max(count[chosen].sum(), 1)))


#: The columns of ``residuals.csv``.
_COLUMNS = "experiment use marker time_s x_m y_m z_m dx_m dy_m dz_m distance_m angle_rad".split()


def write_residuals(folder: RunFolder, runs: Mapping[str, tuple[str, Samples]]) -> None:
    """Write every sample: experiment, use, marker, time, what was recorded, simulated - recorded, distance.

    Of directions, which have no length, the angle stands in the place of the distance.

    Parameters
    ----------
    folder : of the run
    runs : experiment -> (its use, its samples)
    """
    rows = (
        row for name, (use, samples_of) in runs.items()
        for k, marker in enumerate(samples_of.names) for row in _rows(name, use, marker, samples_of, k)
    )  # fmt: skip
    folder.write_text(RESIDUALS, csv_text(_COLUMNS, rows))


def _rows(name: str, use: str, marker: str, found: Samples, k: int) -> Iterator[Sequence[Any]]:
    apart = found.apart(found.residuals)[:, k]
    columns = zip(found.times, found.targets[:, k], found.residuals[:, k], apart, strict=True)
    for time, target, residual, off in columns:
        if np.isfinite(residual).all():
            ends = ["", f"{off:.9g}"] if found.directions[k] else [f"{off:.9g}", ""]
            yield [name, use, marker, repr(float(time)), *(f"{x:.9g}" for x in (*target, *residual)), *ends]


# --- Sentences about the numbers and error bars of a fit, by its takes ------------------------------------------------


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
            f"How {_listed(labels, varied)} {'varies' if varied.sum() == 1 else 'vary'} from take to take is in the "
            "bars: the deviation of each take counts by what that take sees, and the 95 % intervals have the t "
            "quantile of so many takes."
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
    for k in np.flatnonzero(between.bars_apart > APART).tolist():
        takes = zip(found.rows, between.sees[:, k], between.own[:, k], strict=True)
        asked = {rows.name: problem.value_of(k, x[k] + number, x) for rows, sees, number in takes if sees}
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
    lowest = [limits(scene, item.name.partition("@")[0].partition("+")[0]).low for item in problem.parameters]
    signs = [max(low, item.lower) >= 0.0 for low, item in zip(lowest, problem.parameters, strict=True)]
    positive = np.repeat(np.array(signs, dtype=bool), [item.n for item in problem.parameters])
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


def _listed(labels: Sequence[str], chosen: BoolArray, most: int = 6) -> str:
    return few([label for label, taken in zip(labels, chosen, strict=True) if taken], most)
