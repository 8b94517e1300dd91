"""`add optimize`: fit or optimise a scene, with a log that survives a kill."""

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from add.adjoint import Schedule
from add.commands.convergence_file import read_convergence
from add.commands.error_bars import error_bars
from add.commands.evaluation_log import SAME, FolderLog
from add.commands.folders import locking, note_begin, result_head, stopped_head
from add.commands.marker_fits import Samples, fit_numbers, objective_text, samples, target_fits, write_residuals
from add.commands.parallel.workers import Workers, evaluated_by, on_all_cores
from add.commands.run_summary import summary, write_checked
from add.errors import InputError, SolverError, naming
from add.inverse import InverseProblem, OptimizationResult, PhasedOptimizer
from add.inverse.optimizers.phases import LoggedEvaluation
from add.inverse.refit import fit_own, in_order
from add.io.lock import CannotWrite
from add.io.runfolder import EVALUATIONS, FITTED, RESULT, SCENE, RunFolder
from add.io.trajectory_file import write_run
from add.scene import Scene, experiment_scenes
from add.scene.build.run_data import run_data
from add.scene.build.scene import with_contact
from add.scene.build.selections import freeze_meshes
from add.scene.build.sizes import require_room_to_run
from add.scene.build.write_back import with_values
from add.scene.read.paths import within
from add.simulation.run import Trajectory

_log = logging.getLogger(__name__)


def check_optimization(scene: Scene) -> tuple[InverseProblem, PhasedOptimizer]:
    """Return the problem and the optimiser of a scene; every phase sees something and frees something.

    Raises
    ------
    InputError
        If not; names the file and the place.
    """
    if scene.uncertainty.convergence is not None:
        read_convergence(scene.uncertainty.convergence)  # before the fit, not after it
    problem = scene.inverse_problem()
    optimizer = problem.optimizer
    assert isinstance(optimizer, PhasedOptimizer)
    squares = scene.optimizer.method == "gauss-newton"
    with naming(file=scene.source):
        for phase in optimizer.phases:
            problem.index_of(phase.parameters)
            for experiment in problem.experiments:
                (experiment.squares_within if squares else experiment.within)(phase.window)
    last = scene.optimizer.phases[-1:]
    if any(phase.overrides for phase in last):
        _log.warning(
            "the last phase overrides numbers of the scene: what it finds is the optimum of another scene; "
            "end with a phase without overrides"
        )
    return problem, optimizer


def require_same(scene: Scene, folder: RunFolder) -> None:
    """Refuse to resume with another scene than the folder's, texts, checks, output and the evaluation limit aside."""
    here, there = (_essence(within(raw, folder.path)) for raw in (scene.raw, folder.read_json(SCENE)))
    contact = there.get("contact"), here.get("contact")
    # Contact comes last: where a scene gives none it follows from all else.
    place = _difference(there | {"contact": None}, here | {"contact": None}) or _difference(*contact, "contact")
    if place is not None:
        raise InputError(
            "this run was begun with another scene: resume with the scene as it was, or begin anew in another folder",
            file=scene.source,
            place=place,
        )


def _essence(raw: dict[str, Any]) -> dict[str, Any]:
    free = ("$schema", "name", "description", "output", "check", "expect", "uncertainty")
    essence = {key: value for key, value in raw.items() if key not in free}
    limits = essence.get("optimizer", {})
    if not isinstance(limits, dict):
        return essence
    return essence | {"optimizer": {key: value for key, value in limits.items() if key != "max_evaluations"}}


def _difference(old: Any, new: Any, place: str = "") -> str | None:
    """Return the path of the first difference."""
    if isinstance(old, dict) and isinstance(new, dict):
        pairs = [(key, old.get(key), new.get(key)) for key in {**old, **new}]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(str(k), a, b) for k, (a, b) in enumerate(zip(old, new, strict=True))]
    else:
        return None if old == new else place
    differences = (_difference(a, b, f"{place}.{key}" if place else key) for key, a, b in pairs)
    return next((item for item in differences if item is not None), None)


@locking("optimize")
def optimize_scene(
    scene: Scene,
    folder: RunFolder,
    *,
    resume: bool = False,
    progress: Callable[[LoggedEvaluation, bool], None] | None = None,
    schedule: Schedule | None = None,
    workers: Workers | None = None,
) -> dict[str, Any]:
    """Optimise a scene and fill its run folder.

    Parameters
    ----------
    scene : Scene
    folder : RunFolder
    resume : bool
        Go on from the folder's evaluations.
    progress : called after every evaluation
    schedule : Schedule, optional
    workers : Workers, optional
        Who evaluates the experiments; default: this process. The result does not depend on it.

    Returns
    -------
    dict
        What ``result.json`` holds; ``seconds`` is the wall time of all parts of a run that was resumed.

    Raises
    ------
    InputError
        Also where the folder's run cannot be resumed with this scene.
    SolverError
        If a simulation fails at the start of a phase; a result says so, as after an interruption or on a full disk.
    """
    if resume and folder.command not in (None, "optimize"):
        raise InputError(f"this is a run of `add {folder.command}`: there is nothing to resume", file=folder.path)
    scene = with_contact(freeze_meshes(scene, folder.path))
    problem, optimizer = check_optimization(scene)
    if resume:
        require_same(scene, folder)
    with naming(file=scene.source):
        for experiment in problem.experiments:
            require_room_to_run(experiment.simulation, schedule or experiment.schedule)
    before = _seconds_before(folder) if resume else 0.0
    note_begin(folder, scene, resume=resume)
    log = FolderLog(folder, problem, resume=resume)
    begin = time.perf_counter()

    def unfinished(error: BaseException) -> dict[str, Any]:
        return stopped_head(scene, "optimize", error) | {
            "evaluations": len(folder.read_lines(EVALUATIONS)),
            "seconds": before + time.perf_counter() - begin,
        }

    result: dict[str, Any] = {}
    try:
        here = contextlib.nullcontext(on_all_cores(problem))
        with evaluated_by(workers, scene, problem) if workers else here as shared:
            fit = optimizer.run(shared, log=log, progress=progress, schedule=schedule)
        fit = _fit_starts(scene, problem, optimizer, fit)
        result, runs, compared = _result(scene, problem, fit, folder)
        result["seconds"] = before + time.perf_counter() - begin
        result["replayed_evaluations"] = log.replayed
        _write_trajectories(scene, problem, fit, runs, folder)
        if compared:
            write_residuals(folder, compared)
        _write_fitted(scene, problem, fit, result["objective"]["end"], folder)
    except (SolverError, KeyboardInterrupt, CannotWrite, MemoryError) as error:
        with contextlib.suppress(CannotWrite):  # what ended the run is worth more
            folder.write_json(RESULT, result | unfinished(error))
        raise
    return write_checked(scene, "optimize", result, folder)


def _seconds_before(folder: RunFolder) -> float:
    """Return the wall time of the parts before this one [s]; of a part that was killed, that of its evaluations."""
    lines = folder.read_lines(EVALUATIONS)
    result = folder.known(RESULT)
    later = lines[result.get("evaluations", 0) :]
    return float(result.get("seconds", 0.0)) + sum(float(line["seconds"]) for line in later)


def _write_trajectories(
    scene: Scene, problem: InverseProblem, found: OptimizationResult, runs: dict[str, Trajectory], folder: RunFolder
) -> None:
    """Write the run of every experiment at the optimum."""
    scenes = experiment_scenes(scene)
    for k, (experiment, item) in enumerate(zip(in_order(problem, scenes), scenes.values(), strict=True)):
        path = folder.trajectory if k == 0 else folder.path / f"trajectory_{experiment.name}.h5"
        run, theta = runs[experiment.name], problem.theta(found.x, experiment)
        origin = None if experiment.tracking is None else experiment.tracking.origin_of(run.states(), theta)
        data = run_data(
            item.build(), run, theta, every=item.output.every, recording=experiment.recording, origin=origin
        )
        write_run(path, data)


def _write_fitted(
    scene: Scene, problem: InverseProblem, found: OptimizationResult, value: float, folder: RunFolder
) -> None:
    """Write the scene with the optimum's numbers; say where its objective is another, and why if it would be none."""
    try:
        fitted = with_values(scene, problem, found.x)
        again = fitted.inverse_problem()
        there = again.value(again.x0)[0]
    except (InputError, SolverError) as error:
        _log.warning("no %s is written: with the numbers found, the scene does not run: %s", FITTED, error)
        return
    if not np.isclose(there, value, rtol=SAME, atol=SAME**2):
        _log.warning(
            "%s: its objective is %.6g, and %.6g was found: with these numbers the scene counts other frames of a "
            "recording, or a prior counts from another chart of an orientation. The numbers are those found all the "
            "same; `add optimize` of this file fits them to the frames that it counts",
            FITTED, there, value,
        )  # fmt: skip
    folder.write_json(FITTED, within(fitted.raw, folder.path))


def _fit_starts(
    scene: Scene, problem: InverseProblem, optimizer: PhasedOptimizer, found: OptimizationResult
) -> OptimizationResult:
    """Fit what validated experiments have alone, such as the start of a throw, over their windows."""
    for item in scene.experiments:
        if item.use == "validate" and item.fit_window is not None:
            most = scene.optimizer.max_evaluations
            x, phase = fit_own(problem, optimizer, found.x, item.name, item.fit_window, most)
            found = replace(found, x=x, phases=(*found.phases, phase))
    return found


def _gradient_note(scene: Scene, problem: InverseProblem) -> str:
    """Return which derivatives of contact the optimiser went by, that are not those of the steps."""
    if scene.gradient.contact == "relaxed":
        return f"relaxed contact, kappa = {scene.gradient.relaxation:g}: not the exact one"
    tallies = {id(tally): tally for e in problem.experiments if (tally := getattr(e.simulation.stepper, "tally", None))}
    counts = "; ".join(str(tally) for tally in tallies.values() if tally.steps) or "counted in other processes"
    return f"complementarity-aware contact: not the exact one ({counts})"


def _result(
    scene: Scene, problem: InverseProblem, found: OptimizationResult, folder: RunFolder
) -> tuple[dict[str, Any], dict[str, Trajectory], dict[str, tuple[str, Samples]]]:
    """Return the numbers of the optimum, the runs there, and their samples."""
    value, runs = problem.value(found.x)
    predicted = {item.name: problem.predicting(item.name).value(found.x) for item in problem.validation}
    runs |= {name: more[name] for name, (_, more) in predicted.items()}
    begin = problem.value(problem.x0)[0]
    bars = error_bars(scene, problem, found.x, folder)
    of_numbers: dict[str, dict[str, Any]] = {} if bars is None else bars.pop("parameters")
    parameters: dict[str, dict[str, Any]] = {}
    physical, start = problem.values(found.x), problem.values(problem.x0)
    labels = problem.labels()
    units = problem.units()
    for parameter in problem.parameters:
        limits = parameter.lower, parameter.upper
        for k in range(parameter.first, parameter.first + parameter.n):
            # exp(log b) may exceed b by rounding, and the value is to be a valid start of another fit.
            clipped = float(np.clip(physical[k], *limits))
            entry = {"value": clipped, "unit": units[k], "start": float(start[k]), "standard_error": None}
            ends = {key: None if np.isinf(end) else end for key, end in zip(("lower", "upper"), limits, strict=True)}
            parameters[labels[k]] = entry | of_numbers.get(labels[k], {}) | ends
            for bound in limits:
                if np.isclose(physical[k], bound, rtol=1e-9):
                    _log.warning("%s ended on its bound %g", labels[k], bound)
    result = result_head(scene, "optimize", "done") | {
        "parameters": parameters,
        "objective": {"start": begin, "end": value, "of": objective_text(scene, problem.experiments[0])},
        "phases": [vars(phase) for phase in found.phases],
        "evaluations": found.evaluations,
        "experiments": {},
    }
    if scene.gradient.contact != "exact":
        result["gradient"] = _gradient_note(scene, problem)
    if bars is not None:
        result["uncertainty"] = bars
    scenes = experiment_scenes(scene)
    compared: dict[str, tuple[str, Samples]] = {}
    for experiment, item in zip(in_order(problem, scenes), scenes.values(), strict=True):
        theta = problem.theta(found.x, experiment)
        trajectory = runs[experiment.name]
        entry = summary(item.build(), trajectory, theta)
        use = "validate" if experiment.name in predicted else "fit"
        entry["use"] = use
        if targets := target_fits(item, experiment, trajectory, theta):
            entry["targets"] = targets
        seen = samples(experiment, trajectory, theta, item)
        if seen is not None:
            compared[experiment.name] = use, seen
            fit = entry["fit"] = fit_numbers(seen)
            if fit["frames_outside"]:
                _log.warning(
                    "experiment %s: the time offset has moved %d frames before the start or beyond the end of the run, "
                    "where the motion is only continued straight on: give the run a longer time.duration, and a crop",
                    experiment.name,
                    fit["frames_outside"],
                )
        result["experiments"][experiment.name] = entry
    if len(scenes) == 1:
        only = next(iter(result["experiments"].values()))
        contact = ("contact", "impacts", "weak_contacts", "mesh_depths", "sunk", "beyond_stops",
                   "contact_certificate")  # fmt: skip
        shown = ("steps", "bodies", "markers", *contact, "newton")
        result |= {key: only[key] for key in shown if key in only}
        if "fit" in only:
            result["fit"] = only["fit"]
    return result, runs, compared
