"""`add predict`: another motion with fitted numbers, and how uncertain they make it."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from add.commands.marker_fits import Samples
from add.errors import InputError
from add.inverse.prediction import Prediction, predict
from add.io.atomic import replacing
from add.io.runfolder import RESULT, RunFolder
from add.scene import Scene
from add.scene.build.placements import placed_positions
from add.scene.build.recordings import load_recording
from add.scene.build.write_back import labelled
from add.scene.spec.common import Role
from add.scene.spec.markers import DirectionMarkerSpec
from add.scene.spec.roles import paths_of_label, roles_of_label
from add.typing import BoolArray, FloatArray

__all__ = ["carried", "fit_of", "of_one_motion", "predict_scene", "write_prediction"]

_log = logging.getLogger(__name__)

#: Share of coordinates within the 95 % band from which on a fit holds; frames hang together, so that 95 % is its mean.
HOLDS = 0.85
#: Part of the largest motion below which a coordinate does not move.
STILL = 1e-6


def carried(result: dict[str, Any], paths: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """Return the numbers of a fit that hold for another motion: label -> value and errors.

    Parameters
    ----------
    result : of a fit
    paths : labels that are wanted, or paths of vectors, for all their components, or one of the paths that share a
        value; default: all that no take has for itself and that the format calls properties (`add.scene.spec.roles`)

    Raises
    ------
    InputError
        If a label is not among the fit's, or nothing is carried.
    """
    known: dict[str, dict[str, Any]] = result.get("parameters") or {}
    names = {
        label: {label, label.partition("[")[0], *(paths_of_label(label) if "@" not in label else ())} for label in known
    }
    asked = {path: [label for label in known if path in names[label]] for path in paths}
    missing = [path for path, labels in asked.items() if not labels]
    if missing:
        raise InputError("the fit has no such number", found=missing[0], expected=", ".join(known))
    if paths:
        return {label: known[label] for labels in asked.values() for label in labels}
    own = of_one_motion(known)
    chosen = {label: entry for label, entry in known.items() if label not in own}
    if not chosen:
        found = ", ".join(f"{label}: {why}" for label, why in own.items())
        raise InputError("no number of the fit holds for another motion", found=found, expected="--parameter PATH")
    return chosen


def of_one_motion(labels: Iterable[str]) -> dict[str, str]:
    """Return the numbers that belong to one motion or recording, with the reason in words."""
    out = {}
    for label in labels:
        roles = roles_of_label(label) - {Role.PROPERTY}
        if "@" in label:
            out[label] = "of one take"
        elif roles:
            out[label] = min(role.value for role in roles)
    return out


def fit_of(run: RunFolder) -> dict[str, Any]:
    """Return the result of the fit in a folder.

    Raises
    ------
    InputError
        If there is none.
    """
    if run.command != "optimize" or not run.result.is_file():
        raise InputError("there is no fit in this folder", file=run.path, expected="a run of `add optimize`")
    result: dict[str, Any] = run.read_json(RESULT)
    return result


def predict_scene(scene: Scene, run: RunFolder, paths: tuple[str, ...] = ()) -> tuple[Prediction, dict[str, Any]]:
    """Simulate a scene with the numbers of a fit.

    The parameters' covariance is that of `result.json`: the statistical part with its correlations, and the
    discretisation, which is off by one factor along what finer steps, and finer meshes, move together. Numbers that the
    fit gives no error are carried without one, with a warning.

    Returns
    -------
    The prediction at the times of the scene's recording, without one at its steps, and a summary: the numbers, the
    largest error, and where there is a recording the distances, how many of the coordinates that move lie within the
    95 % band, and what that means.

    Raises
    ------
    InputError
        If the folder has no fit, a number is not in the scene, or the scene has no markers.
    SolverError
        If the run fails.
    """
    result = fit_of(run)
    if not scene.markers:
        raise InputError("there is nothing to predict", file=scene.source, place="markers", expected="at least one")
    chosen = carried(result, paths)
    built = scene.build()
    numbers = built.numbers
    values: FloatArray = numbers.values.copy()
    shared = sp.lil_array((values.size, len(chosen)))  # a number of the fit -> those of the scene, which may share it
    for k, (label, entry) in enumerate(chosen.items()):
        index = labelled(numbers, label)
        values[index], shared[index, k] = entry["value"], 1.0
    theta = numbers.ties.forward(values)
    slopes = sp.csr_array(numbers.ties.jacobian(values) @ shared.tocsr())
    covariance, blank = _covariance(result, list(chosen))
    for label in blank:
        _log.warning("%s has no error in the fit: the band does not contain it", label)
    recording = None if scene.recording is None else load_recording(scene, "recording")
    steps = scene.time.dt * np.arange(scene.time.n_steps + 1, dtype=float)
    times: FloatArray = steps if recording is None else np.asarray(recording.times, dtype=float)
    names = built.marker_names if recording is None else recording.names
    points = built.markers.select(np.array([built.marker_names.index(name) for name in names]))
    found = predict(built.simulation, theta, points, times, slopes, covariance)
    said: dict[str, Any] = {
        "markers": list(names),
        "parameters": {label: entry["value"] for label, entry in chosen.items()},
        "left_behind": of_one_motion(label for label in result["parameters"] if label not in chosen),
        "without_error": blank,
    }
    directions = np.array([isinstance(scene.markers[name], DirectionMarkerSpec) for name in names])
    error = np.sqrt((found.errors**2).sum(axis=2))
    said["largest_error"] = float(error[:, ~directions].max(initial=0.0))
    if directions.any():
        said["largest_angle_error"] = float(error[:, directions].max())
    places = found.positions[:, ~directions].reshape(-1, 3)
    extent = float(np.linalg.norm(np.ptp(places, axis=0))) if places.size else 0.0
    if 1.96 * said["largest_error"] > extent > 0.0 or 1.96 * said.get("largest_angle_error", 0.0) > 1.0:
        _log.warning(
            "the 95 %% band is +- %.3g m wide, where the markers keep within %.3g m: it leaves the scene, so that "
            "errors carried over in a straight line say nothing. The widest of the numbers: %s",
            1.96 * said["largest_error"], extent, _widest(chosen),
        )  # fmt: skip
    if recording is not None:
        displaced = bool(scene.recording and scene.recording.displacement)
        recorded = placed_positions(scene, built.model.system.parameters, recording, theta)
        offset = found.positions[0] - recorded[0] if displaced else 0.0
        said |= _compared(found, recorded + offset, recording.valid, directions, _noise(result, directions))
    return found, said


def _compared(
    found: Prediction, recorded: FloatArray, seen: BoolArray, directions: BoolArray, noise: FloatArray
) -> dict[str, Any]:
    """Return how far a prediction is from a recording, and what share of the coordinates that move lies in the band.

    A coordinate moves if it is predicted to, if a number of the fit moves it, or if it was recorded to move beyond
    noise: others lie within any band.

    Parameters
    ----------
    recorded : (nf, nm, 3)
    seen : (nf, nm)
    directions : (nm,)
    noise : (nm,) of one coordinate in the fit [m, rad]
    """
    apart = found.positions - recorded
    values = Samples((), directions, found.times, apart, recorded, 0.0, 0.0).apart(apart)
    out: dict[str, Any] = {}
    for key, chosen in (("rms", ~directions), ("rms_angle", directions)):
        if chosen.any():
            squares = np.where(seen[:, chosen], values[:, chosen], 0.0) ** 2
            out[key] = float(np.sqrt(squares.sum() / max(seen[:, chosen].sum(), 1)))
    tracks = np.where(seen[:, :, None], recorded, np.nan)
    known = seen.any(axis=0)
    strayed = np.zeros(recorded.shape[1:])
    strayed[known] = np.nanmax(tracks[:, known], axis=0) - np.nanmin(tracks[:, known], axis=0)
    size = STILL * max(float(np.ptp(found.positions, axis=0).max(initial=0.0)), float(strayed.max(initial=0.0)))
    moves = (np.ptp(found.positions, axis=0) > size) | (found.errors.max(axis=0) > size)
    moves |= strayed > np.maximum(6.0 * noise[:, None], size)
    counted = seen[:, :, None] & moves
    band = 1.96 * np.hypot(found.errors, noise[:, None])
    if counted.any():
        out["within_band"] = float((np.abs(apart) <= band)[counted].mean())
        out["within_parameters"] = float((np.abs(apart) <= 1.96 * found.errors)[counted].mean())
        out["verdict"] = _verdict(out["within_band"])
        if out["within_band"] < HOLDS:
            _log.warning("%s", out["verdict"])
    out["coordinates"] = int(counted.sum())
    return out


def _verdict(share: float) -> str:
    said = f"{100.0 * share:.0f} % of the coordinates that move lie within the 95 % band"
    if share >= HOLDS:
        return f"{said}: the fit holds for this motion"
    if share >= 0.5:
        return f"{said}: the fit holds roughly, and its bars are too narrow for this motion"
    return f"{said}: the fit does not hold for this motion; the model, or a number that it did not fit, differs"


def _widest(chosen: dict[str, dict[str, Any]]) -> str:
    """Return the number of a fit whose standard error is largest beside its value, with both."""
    ratio = {
        label: entry["standard_error"] / max(abs(entry["value"]), 1e-300)
        for label, entry in chosen.items() if entry.get("standard_error") is not None
    }  # fmt: skip
    if not ratio:
        return "none has an error"
    label = max(ratio, key=lambda key: ratio[key])
    return f"{label} = {chosen[label]['value']:.4g} +- {chosen[label]['standard_error']:.2g}"


def _noise(result: dict[str, Any], directions: BoolArray) -> FloatArray:
    """Return the noise of a coordinate in the fit, of each marker (nm,), by the kinds of marker that it had."""
    fits = [item["fit"] for item in (result.get("experiments") or {}).values() if item.get("fit")]
    fits = fits or ([result["fit"]] if result.get("fit") else [])
    angles = [fit["rms"] if fit.get("unit") == "rad" else fit["rms_angle"] for fit in fits
              if fit.get("unit") == "rad" or "rms_angle" in fit]  # fmt: skip
    lengths = [fit["rms"] for fit in fits if fit.get("unit") != "rad"]
    means = [float(np.mean(values)) / np.sqrt(3.0) if values else 0.0 for values in (lengths, angles)]
    return np.where(directions, means[1], means[0])


def _covariance(result: dict[str, Any], labels: list[str]) -> tuple[FloatArray, list[str]]:
    """Return the covariance of some numbers of a fit, in physical units, and which have none."""
    known = (result.get("uncertainty") or {}).get("correlation") or {"labels": [], "matrix": []}
    of_known = {label: k for k, label in enumerate(known["labels"])}
    covariance: FloatArray = np.zeros((len(labels), len(labels)))
    blank = []
    sizes, steps = np.zeros(len(labels)), np.zeros(len(labels))
    for k, label in enumerate(labels):
        entry = result["parameters"][label]
        errors = entry.get("errors") or {}
        scatter = [value for key in ("noise", "correlated", "takes") if (value := errors.get(key)) is not None]
        if not scatter:
            blank.append(label)
            continue
        sizes[k], steps[k] = max(scatter), errors.get("discretisation") or 0.0
    for i, a in enumerate(labels):
        for j, b in enumerate(labels):
            value = 1.0 if i == j else 0.0
            if i != j and a in of_known and b in of_known:
                value = known["matrix"][of_known[a]][of_known[b]] or 0.0
            covariance[i, j] = value * sizes[i] * sizes[j]
    shifts = np.where([label in blank for label in labels], 0.0, _shifts(result, labels))
    # A folder of an older version has no shifts: there each number is off for itself.
    alone = np.zeros(len(labels)) if len(shifts) else steps**2
    return covariance + shifts.T @ shifts + np.diag(alone), blank


def _shifts(result: dict[str, Any], labels: list[str]) -> FloatArray:
    """Return by how much steps, and meshes, move the numbers together (kinds, n)."""
    known = (result.get("uncertainty") or {}).get("shifts") or {"labels": [], "vectors": []}
    of_known = {label: k for k, label in enumerate(known["labels"])}
    rows = [[row[of_known[label]] if label in of_known else 0.0 for label in labels] for row in known["vectors"]]
    return np.array(rows, dtype=float).reshape(len(rows), len(labels))


def write_prediction(found: Prediction, names: list[str], path: Any) -> None:
    """Write a prediction as a table: marker, time, places and standard deviations."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["marker", "time_s", "x_m", "y_m", "z_m", "sd_x_m", "sd_y_m", "sd_z_m"])
    for j, name in enumerate(names):
        for time, place, error in zip(found.times, found.positions[:, j], found.errors[:, j], strict=True):
            writer.writerow([name, repr(float(time)), *(f"{value:.9g}" for value in (*place, *error))])
    with replacing(path) as part:
        part.write_text(text.getvalue(), encoding="utf-8")
