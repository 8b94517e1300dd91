"""Distances of simulated from recorded markers: of a run, of each marker, and sample by sample."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.inverse import Experiment
from add.io.runfolder import RESIDUALS, RunFolder
from add.scene import Scene
from add.scene.spec.markers import DirectionMarkerSpec
from add.simulation.run import Trajectory
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True, eq=False)
class Samples:
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
    found = np.full(tracking.targets.shape, np.nan)
    for state in trajectory.states():
        for frame, difference in tracking.differences(state, theta):
            valid = tracking.weights[frame] > 0.0
            found[frame, valid] = difference[valid]
    seen = np.isfinite(found).all(axis=2)
    targets = np.where(seen[:, :, None], tracking.placed(slice(None), theta), np.nan)
    times = tracking.simulation_times(theta)
    dt = experiment.simulation.stepper.dt
    names = experiment.recording.names
    directions = np.array([isinstance(scene.markers[name], DirectionMarkerSpec) for name in names])
    return Samples(names, directions, times, found, targets, float(trajectory.t[-1]), dt)


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
    rms = np.sqrt(squares.sum(axis=0) / np.maximum(count, 1))
    of_kind = found.directions if found.directions.all() else ~found.directions
    peak_of_kind = float(peak[of_kind].max(initial=0.0))
    together = _rms(squares, count, of_kind)
    mixed = {"rms_angle": _rms(squares, count, ~of_kind)} if not of_kind.all() else {}
    units = np.where(found.directions, "rad", "m").tolist()
    return {
        "rms": together,
        "unit": "rad" if found.directions.all() else "m",
        **mixed,
        "samples": int(count.sum()),
        "frames_outside": int(outside.sum()),
        "peak_displacement": peak_of_kind,
        "rms_over_peak": together / peak_of_kind if peak_of_kind > 0 else None,
        "per_marker": {
            name: {"rms": float(r), "unit": unit, "peak_displacement": float(p), "samples": int(n)}
            for name, r, unit, p, n in zip(found.names, rms, units, peak, count, strict=True)
        },
    }


def _rms(squares: FloatArray, count: IntArray, chosen: BoolArray) -> float:
    return float(np.sqrt(squares[:, chosen].sum() / max(count[chosen].sum(), 1)))


def write_residuals(folder: RunFolder, runs: Mapping[str, tuple[str, Samples]]) -> None:
    """Write every sample: experiment, use, marker, time, what was recorded, simulated - recorded, distance.

    Of directions, which have no length, the angle stands in the place of the distance.

    Parameters
    ----------
    folder : of the run
    runs : experiment -> (its use, its samples)
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            "experiment",
            "use",
            "marker",
            "time_s",
            "x_m",
            "y_m",
            "z_m",
            "dx_m",
            "dy_m",
            "dz_m",
            "distance_m",
            "angle_rad",
        ]
    )
    for name, (use, found) in runs.items():
        for k, marker in enumerate(found.names):
            writer.writerows(_rows(name, use, marker, found, k))
    folder.write_text(RESIDUALS, text.getvalue())


def _rows(name: str, use: str, marker: str, found: Samples, k: int) -> Iterator[Sequence[Any]]:
    apart = found.apart(found.residuals)[:, k]
    columns = zip(found.times, found.targets[:, k], found.residuals[:, k], apart, strict=True)
    for time, target, residual, off in columns:
        if np.isfinite(residual).all():
            ends = ["", f"{off:.9g}"] if found.directions[k] else [f"{off:.9g}", ""]
            yield [name, use, marker, repr(float(time)), *(f"{x:.9g}" for x in (*target, *residual)), *ends]
