"""Distances of simulated from recorded markers: of a run, of each marker, and sample by sample."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.inverse import Experiment
from add.io.runfolder import RESIDUALS, RunFolder
from add.simulation.run import Trajectory
from add.typing import FloatArray

__all__ = ["Samples", "fit_numbers", "samples", "write_residuals"]


@final
@dataclass(frozen=True, eq=False)
class Samples:
    """The comparison of one run with its recording.

    Attributes
    ----------
    names : (nm,) markers
    times : (nf,) on the simulation's clock [s]
    residuals : (nf, nm, 3) simulated - recorded, or of displacements, NaN where not seen [m]
    targets : (nf, nm, 3) what was recorded, NaN where not seen [m]
    end : of the run [s]
    dt : step [s]
    """

    names: tuple[str, ...]
    times: FloatArray
    residuals: FloatArray
    targets: FloatArray
    end: float
    dt: float


def samples(experiment: Experiment, trajectory: Trajectory, theta: FloatArray) -> Samples | None:
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
    return Samples(experiment.recording.names, times, found, targets, float(trajectory.t[-1]), dt)


def fit_numbers(found: Samples) -> dict[str, Any]:
    """Return how far simulated markers are from recorded ones, as ``result.json`` has it."""
    distance = np.linalg.norm(found.residuals, axis=2)
    seen = np.isfinite(distance)
    squares = np.where(seen, distance, 0.0) ** 2
    count = seen.sum(axis=0)
    peak = np.zeros(len(found.names))
    for k in range(len(found.names)):
        path = found.targets[seen[:, k], k]
        if len(path):
            peak[k] = np.linalg.norm(path - path[0], axis=1).max()
    # Within a step of the run a straight line is as good as the step.
    room = (1.0 + 1e-6) * found.dt
    outside = (found.times < -room) | (found.times > found.end + room)
    rms = np.sqrt(squares.sum(axis=0) / np.maximum(count, 1))
    together = float(np.sqrt(squares.sum() / max(count.sum(), 1)))
    return {
        "rms": together,
        "unit": "m",
        "samples": int(count.sum()),
        "frames_outside": int(outside.sum()),
        "peak_displacement": float(peak.max(initial=0.0)),
        "rms_over_peak": together / float(peak.max()) if peak.max(initial=0.0) > 0 else None,
        "per_marker": {
            name: {"rms": float(r), "peak_displacement": float(p), "samples": int(n)}
            for name, r, p, n in zip(found.names, rms, peak, count, strict=True)
        },
    }


def write_residuals(folder: RunFolder, runs: Mapping[str, tuple[str, Samples]]) -> None:
    """Write every sample: experiment, use, marker, time, what was recorded, simulated - recorded, distance.

    Parameters
    ----------
    folder : of the run
    runs : experiment -> (its use, its samples)
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["experiment", "use", "marker", "time_s", "x_m", "y_m", "z_m", "dx_m", "dy_m", "dz_m", "distance_m"]
    )
    for name, (use, found) in runs.items():
        for k, marker in enumerate(found.names):
            writer.writerows(_rows(name, use, marker, found, k))
    folder.write_text(RESIDUALS, text.getvalue())


def _rows(name: str, use: str, marker: str, found: Samples, k: int) -> Iterator[Sequence[Any]]:
    for time, target, residual in zip(found.times, found.targets[:, k], found.residuals[:, k], strict=True):
        if np.isfinite(residual).all():
            distance = float(np.linalg.norm(residual))
            yield [name, use, marker, repr(float(time)), *(f"{x:.9g}" for x in (*target, *residual, distance))]
