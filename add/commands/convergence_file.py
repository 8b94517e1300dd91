"""The file of `add converge`: discretisation errors of fitted numbers, and for which scene they hold."""

import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from add.commands.finer_scenes import meshed
from add.errors import InputError
from add.inverse import InverseProblem
from add.io.runfolder import EVALUATIONS, RunFolder
from add.machine.files import parse_json, read_regular
from add.scene import Scene, experiment_scenes
from add.typing import FloatArray

#: Name of the file in a run folder.
CONVERGENCE = "discretisation.json"
FORMAT = "add-convergence/1"
_MOST_BYTES = 2**24
#: How often steps and meshes are halved where nobody says it.
TIME_LEVELS, MESH_LEVELS = 2, 1
#: A refit takes about as long as so many evaluations of the fit, whose slopes it takes over.
REFIT = 4.0
#: Power of the number of coordinates with which the time of a step grows.
GROWS = 1.2


def signature(scene: Scene) -> dict[str, Any]:
    """Return the step and the number of coordinates of every experiment: what a discretisation error belongs to."""
    built = {name: item.build() for name, item in experiment_scenes(scene).items()}
    return {
        name: {"dt": item.scene.time.dt, "integrator": item.scene.time.integrator, "coordinates": item.model.system.n}
        for name, item in built.items()
    }


def cost(scene: Scene, folder: RunFolder, time: int = TIME_LEVELS, mesh: int = MESH_LEVELS) -> float | None:
    """Return about how long refinements of a fit take [s], by its evaluations; None where it has none.

    A halved step has twice the steps, a halved mesh eight times the coordinates.
    """
    lines = folder.read_lines(EVALUATIONS)
    if not lines:
        return None
    each = [float(line["seconds"]) for line in lines if line["phase"] == lines[-1]["phase"]]
    finer = [2.0**k for k in range(1, time + 1)]
    finer += [8.0 ** (GROWS * k) for k in range(1, mesh + 1) if meshed(scene)]
    return float(np.median(each)) * (1.0 + REFIT * (1.0 + sum(finer)))


def refined_text(found: Mapping[str, Any], scene: Scene) -> str:
    """Return what of the discretisation is in the bars, and what is not."""
    kinds = {kind for kind, level in found.get("levels", {}).items() if level.get("names")}
    for kind, other, words, finer in (("time", "mesh", "steps", "meshes"), ("mesh", "time", "meshes", "steps")):
        if kinds == {kind} and (other == "time" or meshed(scene)):
            return (
                f"Of the discretisation the {words} alone are in them: finer {finer} "
                f"were not tried, and may change more (`add converge --{other}-levels 1`)."
            )
    words = "steps" if kinds == {"time"} else "steps and meshes"
    return f"The discretisation is in them, as the change that finer {words} ask for (`add converge`)."


def read_convergence(path: str | PathLike[str]) -> dict[str, Any]:
    """Read the file of `add converge`.

    Raises
    ------
    InputError
        naming the file, if it is none.
    """
    path = Path(path)
    try:
        found = parse_json(read_regular(path, most=_MOST_BYTES).decode("utf-8"), path)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", file=path, expected="a file of `add converge`") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError("this is no file of `add converge`", file=path, place="format", expected=f'"{FORMAT}"')
    parameters = found.get("parameters")
    if not isinstance(parameters, dict):
        raise InputError("the parameters are missing", file=path, place="parameters", expected="an object")
    for name, entry in parameters.items():
        size = entry.get("error") if isinstance(entry, dict) else None
        if isinstance(size, bool) or not isinstance(size, int | float) or not math.isfinite(size) or size < 0.0:
            raise InputError(
                "no error",
                file=path,
                place=f"parameters.{name}.error",
                found=repr(size),
                expected="a number from 0 on",
            )
    return found


def errors_for(found: Mapping[str, Any], scene: Scene, problem: InverseProblem) -> tuple[FloatArray, str | None]:
    """Return the discretisation errors (n,) of a fit's numbers, NaN where the file has none, and why they do not count.

    Parameters
    ----------
    found : of `read_convergence`
    scene, problem : of the fit
    """
    nothing = np.full(problem.n, np.nan)
    here = signature(scene)
    if found.get("scene") != here:
        return nothing, f"was made with another step or mesh ({_brief(found.get('scene'))}; now {_brief(here)})"
    parameters = found["parameters"]
    values = [parameters[label]["error"] if label in parameters else math.nan for label in problem.labels()]
    missing = [label for label in problem.labels() if label not in parameters]
    return np.array(values), f"says nothing of {', '.join(missing)}" if missing else None


def shifts_for(found: Mapping[str, Any], labels: list[str]) -> list[list[float]]:
    """Return for steps and for meshes by how much the numbers are off together; their squares add up to the errors'.

    One refinement moves all numbers of a fit at once, some of them so that the motion hardly changes. Where a sequence
    has no limit, its last value gives the sign.
    """
    out = []
    for kind in ("time", "mesh"):
        shift = [0.0] * len(labels)
        for k, label in enumerate(labels):
            entry = found["parameters"].get(label, {}).get(kind)
            if entry:
                shift[k] = math.copysign(entry["error"], entry["values"][-1] - entry["values"][0])
        if any(shift):
            out.append(shift)
    return out


def _brief(scenes: Any) -> str:
    if not isinstance(scenes, dict):
        return "unknown"
    return "; ".join(
        f"{name}: dt {item.get('dt')} s, {item.get('coordinates')} coordinates"
        for name, item in scenes.items()
        if isinstance(item, dict)
    )
