"""`add converge`: what finer steps and meshes change of fitted numbers, as an error of the fit."""

import hashlib
import json
import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from add.commands import convergence_file
from add.commands.error_bars import error_bars
from add.commands.fitted_numbers import fit_of
from add.commands.folders import locking
from add.commands.optimize import check_optimization
from add.commands.report_texts import duration
from add.errors import InputError, SolverError
from add.inverse import InverseProblem
from add.inverse.fit_rows import FitRows
from add.inverse.refit import Refit, derivatives, extrapolated, first_step, refit
from add.io.runfolder import REFITS, RESULT, RunFolder
from add.scene import Scene
from add.scene.build.scene import build
from add.scene.build.write_back import with_values
from add.typing import FloatArray

_log = logging.getLogger(__name__)

#: Order of the error where one refinement alone says something: impacts make that of steps one, displacements of
#: elements are of second order.
ASSUMED = {"time": 1.0, "mesh": 2.0}
#: Highest order that steps are believed to have.
HIGHEST = 2.0
#: A coarser mesh has this many times the width, at least, to say anything.
COARSER = 1.2


class Levels(NamedTuple):
    """Refinements of a study.

    Attributes
    ----------
    time, mesh : how often steps and meshes are halved
    finer : files of overrides, each a finer mesh of the same bodies than the one before, instead of halved meshes
    """

    time: int = convergence_file.TIME_LEVELS
    mesh: int = convergence_file.MESH_LEVELS
    finer: tuple[str, ...] = ()


@locking("converge")
def converge_scene(
    scene: Scene, folder: RunFolder, levels: Levels, *, progress: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Fit the numbers of a finished fit again with shorter steps and finer meshes, and write what changes.

    Before anything is refined, a run with half the step and one with wider meshes say which of both matters more.
    Each refit takes a few simulations (`add.inverse.refit`), and is kept in the folder as it ends: a study that was
    stopped goes on. `discretisation.json` has the errors; `result.json` gets them into its standard errors.

    Returns
    -------
    dict
        What `discretisation.json` holds.

    Raises
    ------
    InputError
        If the folder has no finished fit of this scene, or nothing is refined.
    SolverError
        If no refined run succeeds.
    """
    say = progress or (lambda text: None)
    problem, x, result = fitted_problem(scene, folder)
    begin = time.perf_counter()
    refined = levels.time, len(levels.finer) or levels.mesh
    # The scene with the numbers found is that of every refinement: a clock that was fitted decides which frames count,
    # and directions count from where they were found.
    at_fit = with_values(scene, problem, x)
    found_there = at_fit.inverse_problem()
    kept = _Kept(
        folder,
        json.dumps([convergence_file.signature(scene), found_there.labels(), [value.hex() for value in x.tolist()]]),
    )
    rows = derivatives(found_there, found_there.x0)
    # A fit ends a little before its minimum: changes count from where steps of this kind end.
    say("as fitted ...")
    clock = time.perf_counter()
    base, before = kept.refit("as fitted", lambda: refit(found_there, found_there.x0, rows))
    each = (time.perf_counter() - clock) / base.runs
    say(f"as fitted: objective {base.value:.4g}")
    if not before:  # what was kept says nothing of this machine now
        rest = duration(convergence_file.rest(scene, each, *refined))
        say(f"about {rest} more, by the simulations made just now; a study that is stopped goes on")
    estimated = estimate(at_fit, found_there, base, rows)
    say(convergence_file.estimate_text(estimated))
    sequences: dict[str, tuple[float, list[Refit], list[str]]] = {}
    steps: list[tuple[str, Scene]] = [
        (f"dt {scene.time.dt / 2**k:g} s", convergence_file.with_shorter_steps(at_fit, 2**k))
        for k in range(1, levels.time + 1)
    ]
    if steps:
        sequences["time"] = (2.0, *_sequence(steps, kept, base, rows, say))
    with tempfile.TemporaryDirectory() as name:
        meshes = _meshes(at_fit, levels, Path(name))
        if meshes:
            count = [int(build(item).model.system.n) for item in (at_fit, *(item for _, item in meshes))]
            ratio = (count[-1] / count[0]) ** (1.0 / (3.0 * (len(count) - 1)))
            sequences["mesh"] = (ratio, *_sequence(meshes, kept, base, rows, say))
    if not any(refits for _, refits, _ in sequences.values()):
        if sequences:
            raise SolverError("no refinement has converged (the warnings say why): fit the scene as it is further")
        raise InputError("nothing was refined", file=scene.source, expected="--time-levels or --mesh-levels above 0")
    out = _summary(scene, found_there, base, sequences, rows) | {"estimate": estimated}
    out["doubts"] += convergence_file.left_over(out, scene)
    out["seconds"] = time.perf_counter() - begin
    out["runs"] = base.runs + sum(item.runs for _, refits, _ in sequences.values() for item in refits)
    folder.write_json(convergence_file.CONVERGENCE, out)
    bars = error_bars(scene, problem, x, folder)
    if bars is not None:
        for label, entry in bars.pop("parameters").items():
            result["parameters"][label] |= entry
        result["uncertainty"] = bars
        folder.write_json(RESULT, result)
    return out


def fitted_problem(scene: Scene, folder: RunFolder) -> tuple[InverseProblem, FloatArray, dict[str, Any]]:
    """Return the problem, where its fit ended, and the folder's result."""
    result = fit_of(folder)
    if result.get("status") != "done":
        raise InputError("the fit in this folder is not done", file=folder.path, found=str(result.get("status")))
    problem, _ = check_optimization(scene)
    parameters = result.get("parameters", {})
    missing = [label for label in problem.labels() if label not in parameters]
    if missing:
        raise InputError("this fit has other parameters", file=folder.path, found=f"no {missing[0]}")
    values = np.array([float(parameters[label]["value"]) for label in problem.labels()])
    return problem, np.clip(problem.design.inverse(values), *problem.bounds), result


def _meshes(scene: Scene, levels: Levels, folder: Path) -> list[tuple[str, Scene]]:
    if levels.finer:
        scenes = [convergence_file.overridden(scene, name) for name in levels.finer]
        # A file that has changed is another refinement.
        marks = [hashlib.sha256(json.dumps(item.raw).encode()).hexdigest()[:8] for item in scenes]
        names = [f"{Path(name).name} {mark}" for name, mark in zip(levels.finer, marks, strict=True)]
        return list(zip(names, scenes, strict=True))
    out: list[tuple[str, Scene]] = []
    finer = scene
    for k in range(levels.mesh):
        finer, bodies = convergence_file.with_finer_meshes(finer, folder)
        if bodies:
            out.append((f"mesh / {2 ** (k + 1)}", finer))
    return out


def estimate(at_fit: Scene, problem: InverseProblem, base: Refit, rows: list[FitRows]) -> dict[str, Any]:
    """Return how far steps and meshes move the numbers, by a few runs: kind -> errors and size, or what is not known.

    One has half the step, one meshes twice as wide. What they change of the residuals, the slopes of the fit turn into
    numbers v' (`add.inverse.refit.first_step`), and v - limit = (v - v') / (1 - (h'/h)^p). The order p is assumed for
    meshes; for steps a run with twice the step says it. The size is that of all errors together, in standard errors of
    noise, by which errors are ordered, too.
    """
    slopes = np.concatenate([item.slopes for item in rows])
    labels = problem.labels()
    deviation, noise = _noise(problem, base, slopes)
    others: dict[str, Scene | None] = {"time": convergence_file.with_shorter_steps(at_fit, 2)}
    if convergence_file.meshed(at_fit):
        others["mesh"] = convergence_file.with_coarser_meshes(at_fit)
    out: dict[str, Any] = {}
    for kind, other in others.items():
        try:
            if other is None:
                raise InputError("a mesh that is a file, hollow, or a cell thin, is not made coarser")
            counts = [float(build(item).model.system.n) for item in (at_fit, other)]
            width = 0.5 if kind == "time" else (counts[0] / counts[1]) ** (1.0 / 3.0)
            if kind == "mesh" and width < COARSER:
                raise InputError("the mesh is as coarse as can be")
            moved = base.x - first_step(other.inverse_problem(), base.x, rows)
            order = _order(at_fit, base, rows, slopes @ moved) if kind == "time" else ASSUMED[kind]
            off = moved / (1.0 - width**order)
        except (InputError, SolverError, ValueError) as error:
            out[kind] = {"unknown": str(error)}
            continue
        errors = np.abs(problem.values(base.x - off) - problem.values(base.x))
        most = np.argsort(-np.divide(errors, noise, out=errors.copy(), where=noise > 0.0), kind="stable")
        size = float(np.linalg.norm(slopes @ off) / deviation) if deviation > 0.0 else None
        out[kind] = {"errors": {labels[k]: float(errors[k]) for k in most}, "size": size}
    return out


def _order(at_fit: Scene, base: Refit, rows: list[FitRows], moved: FloatArray) -> float:
    """Return the order of the error of steps, from what half the step has ``moved`` and what twice the step does."""
    try:
        longer = convergence_file.with_shorter_steps(at_fit, 0.5).inverse_problem()
        before = np.concatenate([item.slopes for item in rows]) @ (first_step(longer, base.x, rows) - base.x)
    except (InputError, SolverError, ValueError):
        return ASSUMED["time"]
    # Along what half the step moves: what is left of other directions would make the ratio too large.
    ratio = float(before @ moved) / max(float(moved @ moved), 1e-300)
    return float(np.clip(np.log2(max(ratio, 1.0)), ASSUMED["time"], HIGHEST))


def _noise(problem: InverseProblem, base: Refit, slopes: FloatArray) -> tuple[float, FloatArray]:
    """Return the standard deviation of a residual, and the standard errors of the numbers by noise alone (n,)."""
    deviation = float(np.sqrt(base.value / max(len(slopes) - problem.n, 1)))
    spread = np.sqrt(np.diag(np.linalg.pinv(slopes.T @ slopes, rcond=1e-12, hermitian=True)))
    return deviation, np.abs(problem.design.pushforward(base.x, np.ones(problem.n))) * deviation * spread


class _Kept(NamedTuple):
    """The refits of a fit that its folder keeps.

    Attributes
    ----------
    folder : RunFolder
    fit : what the refits belong to: step, mesh and numbers of the fit
    """

    folder: RunFolder
    fit: str

    def refit(self, name: str, make: Callable[[], Refit]) -> tuple[Refit, bool]:
        """Return a refit, and whether it was kept; one that is made is kept before it is returned."""
        for line in self.folder.read_lines(REFITS):
            if (line["fit"], line["name"]) == (self.fit, name):
                x = np.array([float.fromhex(value) for value in line["x"]])
                return Refit(x, line["value"], line["runs"], line["converged"]), True
        made = make()
        self.folder.append_line(REFITS, {**made._asdict(), "fit": self.fit, "name": name,
                                         "x": [value.hex() for value in made.x.tolist()]})  # fmt: skip
        return made, False


def _sequence(
    scenes: Sequence[tuple[str, Scene]], kept: _Kept, base: Refit, rows: list[FitRows], say: Callable[[str], None]
) -> tuple[list[Refit], list[str]]:
    """Fit anew on one scene after the other, each from where the one before ended; stop where a run fails."""
    refits: list[Refit] = []
    names: list[str] = []
    for name, finer in scenes:
        begin = time.perf_counter()
        start = refits[-1].x if refits else base.x
        say(f"{name} ...")
        try:
            item, before = kept.refit(name, lambda finer=finer, start=start: refit(  # type: ignore[misc]
                finer.inverse_problem(), base.x, rows, start))  # fmt: skip
        except SolverError as error:
            _log.warning("%s: %s; the study ends before it", name, error)
            break
        took = "kept from before" if before else duration(time.perf_counter() - begin)
        say(f"{name}: objective {item.value:.4g}, {item.runs} simulations, {took}")
        if not item.converged:
            _log.warning("%s: the fit has not converged in %d simulations; the study ends before it", name, item.runs)
            break
        refits.append(item)
        names.append(name)
    return refits, names


def _summary(
    scene: Scene,
    problem: InverseProblem,
    base: Refit,
    sequences: dict[str, tuple[float, list[Refit], list[str]]],
    rows: list[FitRows],
) -> dict[str, Any]:
    labels, units = problem.labels(), problem.units()
    parameters: dict[str, dict[str, Any]] = {}
    _, noise = _noise(problem, base, np.concatenate([item.slopes for item in rows]))
    for k, (label, unit) in enumerate(zip(labels, units, strict=True)):
        entry: dict[str, Any] = {"value": float(problem.values(base.x)[k]), "unit": unit}
        squares = 0.0
        for kind, (ratio, refits, _) in sequences.items():
            if not refits:
                continue
            values = [entry["value"], *(float(problem.values(item.x)[k]) for item in refits)]
            said = extrapolated(values, ratio, ASSUMED[kind], smallest=0.1 * float(noise[k]))
            entry[kind] = {"values": values, **said._asdict()}
            squares += said.error**2
        entry["error"] = float(np.sqrt(squares))
        parameters[label] = entry
    return {
        "format": convergence_file.FORMAT,
        "scene": convergence_file.signature(scene),
        "levels": {
            kind: {"names": names, "ratio": ratio, "objectives": [base.value, *(item.value for item in refits)],
                   "converged": [item.converged for item in refits]}
            for kind, (ratio, refits, names) in sequences.items()
        },
        "parameters": parameters,
        "doubts": convergence_file.doubts(scene),
    }  # fmt: skip
