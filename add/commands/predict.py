"""`add predict`: another motion with fitted numbers, and how uncertain they make it."""

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self, final

import numpy as np
import scipy.sparse as sp

from add.commands.fitted_numbers import Numbers, fit_of, numbers_for
from add.commands.marker_fits import Samples
from add.commands.report_texts import csv_text
from add.errors import InputError, SolverError
from add.inverse.intervals import Prediction, linear_holds, places, predict, sampler
from add.io.lock import replacing
from add.io.runfolder import RunFolder
from add.mocap import Recording
from add.objectives import Tracking
from add.scene import Scene
from add.scene.build.built import BuiltScene
from add.scene.build.numbers import CLOCK
from add.scene.build.recordings import load_recording, placed_positions
from add.scene.build.scene import build
from add.scene.build.write_back import labelled
from add.simulation.run import Trajectory
from add.typing import BoolArray, FloatArray

_log = logging.getLogger(__name__)

#: Share of coordinates within the 95 % band from which on a fit holds; frames hang together, so that 95 % is its mean.
HOLDS = 0.85
#: Part of the largest motion below which a coordinate does not move.
STILL = 1e-6


@final
@dataclass(frozen=True, eq=False)
class View:
    """A scene that is run with other values of some of its numbers, and what is seen of it.

    Attributes
    ----------
    built : BuiltScene
    targets : n lists of indices in the scene's numbers, which may share a value
    names : (nm,) markers
    times : (nf,) [s]
    """

    built: BuiltScene
    targets: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    times: FloatArray

    @cached_property
    def markers(self) -> Tracking:
        """The markers, on the clock of the scene's recording, which a start may have moved."""
        points = self.built.markers.select(np.array([self.built.marker_names.index(name) for name in self.names]))
        recording, layout = self.built.scene.recording, self.built.model.system.parameters
        clock = None if recording is None else (layout[CLOCK].start, float(recording.time_offset or 0.0))
        return sampler(self.built.simulation, points, self.times, clock)

    @property
    def directions(self) -> BoolArray:
        """Which markers (nm,) are directions."""
        return np.array([self.built.scene.is_direction(name) for name in self.names])

    def scene_numbers(self, values: FloatArray) -> FloatArray:
        """Return the scene's numbers (n_s,) with values (n,)."""
        out: FloatArray = self.built.numbers.values.copy()
        for index, value in zip(self.targets, values, strict=True):
            out[list(index)] = value
        return out

    def theta(self, values: FloatArray) -> FloatArray:
        """Return theta with values (n,)."""
        return self.built.numbers.ties.forward(self.scene_numbers(values))

    def places(self, run: Trajectory, theta: FloatArray) -> FloatArray:
        """Return where the markers are in a run (nf, nm, 3)."""
        return places(self.markers, run, theta)


class Motion(NamedTuple):
    """A motion that is predicted with the numbers of a fit.

    Attributes
    ----------
    view : View
        Of the markers that are recorded; without a recording of all.
    numbers : Numbers
    recording : Recording, optional
    noise : (nm,) of one coordinate in the fit [m, rad]
    """

    view: View
    numbers: Numbers
    recording: Recording | None
    noise: FloatArray

    @classmethod
    def of(
        cls, scene: Scene, run: RunFolder, paths: tuple[str, ...] = (), start: RunFolder | None = None,
        most: int | None = None,
    ) -> Self:  # fmt: skip
        """Return the motion of a scene with the numbers of a fit; see `numbers_for`.

        Parameters
        ----------
        most : times at most where there is no recording, evenly over the steps

        Raises
        ------
        InputError
            If a folder has no fit, a number is not in the scene, or the scene has no markers.
        """
        result = fit_of(run)
        if not scene.markers:
            raise InputError("there is nothing to predict", file=scene.source, place="markers", expected="at least one")
        built = build(scene)
        numbers = numbers_for(built, run, paths, start)
        recording = None if scene.recording is None else load_recording(scene, "recording")
        end = scene.time.n_steps
        steps = np.unique(np.rint(np.linspace(0, end, min(most or end + 1, end + 1)))) * scene.time.dt
        view = View(
            built,
            tuple(tuple(labelled(built.numbers, label)) for label in numbers.labels),
            tuple(built.marker_names if recording is None else recording.names),
            steps if recording is None else np.asarray(recording.times, dtype=float),
        )
        return cls(view, numbers, recording, noise_of(result, view.directions))

    def linear(self) -> Prediction:
        """Return the run at the values, with the covariance carried over in a straight line."""
        values = self.numbers.values
        view, scene = self.view, self.view.built.numbers
        shared = sp.lil_array((scene.values.size, values.size))
        for k, index in enumerate(view.targets):
            shared[list(index), k] = 1.0
        slopes = sp.csr_array(scene.ties.jacobian(view.scene_numbers(values)) @ shared.tocsr())
        return predict(view.built.simulation, view.theta(values), view.markers, slopes, self.numbers.covariance)

    def recorded(self, first: FloatArray) -> FloatArray:
        """Return the recorded places (nf, nm, 3); of displacements, counted from the places ``first`` (nm, 3)."""
        assert self.recording is not None
        scene, layout = self.view.built.scene, self.view.built.model.system.parameters
        positions = placed_positions(scene, layout, self.recording, self.view.theta(self.numbers.values))
        displaced = bool(scene.recording and scene.recording.displacement)
        return positions + (first - positions[0]) if displaced else positions


def predict_scene(
    scene: Scene, run: RunFolder, paths: tuple[str, ...] = (), start: RunFolder | None = None
) -> tuple[Prediction, dict[str, Any]]:
    """Simulate a scene with the numbers of a fit.

    The parameters' covariance is that of `result.json`: the statistical part with its correlations, and the
    discretisation, which is off by one factor along what finer steps, and finer meshes, move together. Numbers that the
    fit gives no error are carried without one, with a warning. Two more runs, one standard deviation either way along
    what moves the markers most, say how far a straight line holds.

    Parameters
    ----------
    scene : Scene
    run : folder of the fit
    paths, start : see `add.commands.fitted_numbers.numbers_for`

    Returns
    -------
    The prediction at the times of the scene's recording, without one at its steps, and a summary: the numbers, the
    largest error, until when the linear band holds, and where there is a recording the distances, how many of the
    coordinates that move lie within the 95 % band, and what that means.

    Raises
    ------
    InputError
        If a folder has no fit, a number is not in the scene, or the scene has no markers.
    SolverError
        If the run fails.
    """
    motion = Motion.of(scene, run, paths, start)
    numbers, directions = motion.numbers, motion.view.directions
    for label, why in numbers.held.items():
        _log.warning("%s is %s: the band does not contain its error", label, why)
    prediction = motion.linear()
    said: dict[str, Any] = {
        "markers": list(motion.view.names),
        "parameters": dict(zip(numbers.labels, numbers.values.tolist(), strict=True)),
        "standard_errors": dict(zip(numbers.labels, np.sqrt(np.diag(numbers.covariance)).tolist(), strict=True)),
        "units": {
            label: motion.view.built.numbers.layout.entry_of(places[0]).unit
            for label, places in zip(numbers.labels, motion.view.targets, strict=True)
        },
        "left_behind": numbers.left,
        "without_error": list(numbers.held),
    }
    error = np.sqrt((prediction.errors**2).sum(axis=2))
    said["largest_error"] = float(error[:, ~directions].max(initial=0.0))
    if directions.any():
        said["largest_angle_error"] = float(error[:, directions].max())
    at = prediction.positions[:, ~directions].reshape(-1, 3)
    extent = float(np.linalg.norm(np.ptp(at, axis=0))) if at.size else 0.0  # the box that all points keep within
    if 1.96 * said["largest_error"] > extent > 0.0 or 1.96 * said.get("largest_angle_error", 0.0) > 1.0:
        _log.warning(
            "the 95 %% band is +- %.3g m wide, where the markers keep within %.3g m: it leaves the scene, so that "
            "errors carried over in a straight line say nothing. The widest of the numbers: %s",
            1.96 * said["largest_error"], extent, _widest(numbers),
        )  # fmt: skip
    said["linear_until"] = _linear_until(motion, prediction)
    if said["linear_until"] < prediction.times[-1]:
        _log.warning(
            "the linear band holds until t = %.3g s of %.3g s: behind it, runs one standard deviation either way leave "
            "the straight line; add predict --samples 200 gives bands that do not need one",
            said["linear_until"], prediction.times[-1],
        )  # fmt: skip
    if motion.recording is not None:
        said |= _compared(motion, prediction)
    return prediction, said


def _linear_until(motion: Motion, found: Prediction) -> float:
    """Return until when two runs, one standard deviation either way, stay on the straight line [s].

    They move the numbers along what moves all coordinates most: the first singular vector of S L, cov = L L^T.
    """
    size, axes = np.linalg.eigh(motion.numbers.covariance)
    root = axes * np.sqrt(np.maximum(size, 0.0))
    _, _, along = np.linalg.svd(found.slopes.reshape(-1, size.size) @ root, full_matrices=False)
    if not len(along) or not found.errors.any():
        return float(found.times[-1])
    move = root @ along[0]
    straight = found.slopes @ move
    runs = [found.positions]
    for sign in (-1.0, 1.0):
        theta = motion.view.theta(motion.numbers.moved(sign * move))
        try:
            run = motion.view.built.simulation.run(theta)
        except SolverError as error:
            _log.warning("no run one standard deviation away: %s", error)
            return 0.0
        runs.append(motion.view.places(run, theta))
    lines = found.positions + np.stack([0.0 * straight, -straight, straight])
    still = STILL * float(np.ptp(found.positions, axis=0).max(initial=0.0))
    holds = linear_holds(np.stack(runs), lines, still, share=1.0)
    return until(holds, found.times)


def until(holds: BoolArray, times: FloatArray) -> float:
    """Return the last time before the first at which something no longer holds; 0 where it never did [s]."""
    failing = np.flatnonzero(~holds)
    return float(times[-1] if not failing.size else times[failing[0] - 1] if failing[0] else 0.0)


def moving(motion: Motion, positions: FloatArray, spread: FloatArray, recorded: FloatArray | None = None) -> BoolArray:
    """Return which coordinates (nm, 3) move: predicted to, by an error of a number, or recorded to beyond noise.

    Others lie within any band.

    Parameters
    ----------
    positions : (nf, nm, 3) predicted
    spread : (nf, nm, 3) standard deviation or half width of the prediction
    recorded : (nf, nm, 3), optional
    """
    strayed = np.zeros(spread.shape[1:])
    if recorded is not None and motion.recording is not None:
        seen = motion.recording.valid
        tracks, known = np.where(seen[:, :, None], recorded, np.nan)[:, seen.any(axis=0)], seen.any(axis=0)
        strayed[known] = np.nanmax(tracks, axis=0) - np.nanmin(tracks, axis=0)
    way = np.ptp(positions, axis=0)
    size = STILL * max(float(way.max(initial=0.0)), float(strayed.max(initial=0.0)))
    moves = (way > size) | (spread.max(axis=0) > size)
    return np.asarray(moves | (strayed > np.maximum(6.0 * motion.noise[:, None], size)))


def _compared(motion: Motion, found: Prediction) -> dict[str, Any]:
    """Return how far a prediction is from a recording, and what share of the coordinates that move lies in the band."""
    assert motion.recording is not None
    recorded, seen, directions = motion.recorded(found.positions[0]), motion.recording.valid, motion.view.directions
    apart = found.positions - recorded
    values = Samples((), directions, found.times, apart, recorded, 0.0, 0.0).apart(apart)
    out: dict[str, Any] = {}
    for key, chosen in (("rms", ~directions), ("rms_angle", directions)):
        if chosen.any():
            squares = np.where(seen[:, chosen], values[:, chosen], 0.0) ** 2
            out[key] = float(np.sqrt(squares.sum() / max(seen[:, chosen].sum(), 1)))
    moves = moving(motion, found.positions, found.errors, recorded)
    counted = seen[:, :, None] & moves
    band = 1.96 * np.hypot(found.errors, motion.noise[:, None])
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


def _widest(numbers: Numbers) -> str:
    """Return the number whose standard error is largest beside its value, with both."""
    errors, values = np.sqrt(np.diag(numbers.covariance)), numbers.values
    if not errors.any():
        return "none has an error"
    k = int(np.argmax(errors / np.maximum(np.abs(values), 1e-300)))
    return f"{numbers.labels[k]} = {values[k]:.4g} +- {errors[k]:.2g}"


def noise_of(result: dict[str, Any], directions: BoolArray) -> FloatArray:
    """Return the noise of a coordinate in what was fitted, of each marker (nm,), by the kinds of marker there."""
    takes = (result.get("experiments") or {}).values()
    fits = [item["fit"] for item in takes if item.get("fit") and item.get("use") != "validate"]
    fits = fits or ([result["fit"]] if result.get("fit") else [])
    angles = [fit["rms"] if fit.get("unit") == "rad" else fit["rms_angle"] for fit in fits
              if fit.get("unit") == "rad" or "rms_angle" in fit]  # fmt: skip
    lengths = [fit["rms"] for fit in fits if fit.get("unit") != "rad"]
    means = [float(np.mean(values)) / np.sqrt(3.0) if values else 0.0 for values in (lengths, angles)]
    return np.where(directions, means[1], means[0])


def write_prediction(found: Prediction, names: list[str], path: Any) -> None:
    """Write a prediction as a table: marker, time, places and standard deviations."""
    rows = (
        [name, repr(float(time)), *(f"{value:.9g}" for value in (*place, *error))]
        for j, name in enumerate(names)
        for time, place, error in zip(found.times, found.positions[:, j], found.errors[:, j], strict=True)
    )
    with replacing(path) as part:
        part.write_text(csv_text("marker time_s x_m y_m z_m sd_x_m sd_y_m sd_z_m".split(), rows), encoding="utf-8")
