"""The file of `add converge`, for which scene it holds, and its scenes: the same physics with finer steps or meshes."""

import copy
import json
import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from add.errors import InputError
from add.geometry.mesh_box import refined
from add.inverse import InverseProblem
from add.io.meshes import write_mesh
from add.machine.files import read_json
from add.scene import Scene, apply_overrides, experiment_scenes, scene_from_dict
from add.scene.build.scene import with_contact
from add.scene.build.selections import body_mesh
from add.scene.spec.bodies import BoxMeshSpec, FileMeshSpec, SoftBodySpec
from add.scene.spec.common import NodesSelectorSpec, objects_in
from add.scene.spec.markers import NodesMarkerSpec
from add.typing import FloatArray


def meshed(scene: Scene) -> dict[str, SoftBodySpec]:
    """Return the bodies whose meshes are refined, by name: not those of which nodes are selected by number."""
    bodies = {name: body for name, body in scene.bodies.items() if isinstance(body, SoftBodySpec)}
    return {name: body for name, body in bodies.items() if name not in _unrefined(scene)}


#: Ends of paths to a body or its mesh that say its cells.
_CELLS: tuple[list[str], ...] = ([], ["divisions"], ["edge"], ["hollows"], ["file"])


def _unrefined(scene: Scene) -> dict[str, str]:
    """Return bodies whose nodes are selected by number, others in a finer mesh, or whose mesh differs, and why."""
    out: dict[str, str] = {}
    for place, item in objects_in(scene, ""):
        name = place.split(".")[1] if "." in place else ""
        why = f"{place} selects nodes by number, which are others in a finer mesh; select them by where they are"
        if isinstance(item, NodesSelectorSpec):
            out.setdefault(getattr(scene.couplings.get(name), "nodes", name), why)
        elif isinstance(item, NodesMarkerSpec):
            out.setdefault(item.body, why)
    for experiment in scene.experiments:
        for key in (path.split(".") for path in experiment.overrides):
            if key[0] == "bodies" and key[2:3] in ([], ["mesh"]) and key[3:] in _CELLS:
                out.setdefault(key[1], f"experiment '{experiment.name}' has a mesh of its own")
    return out


def with_shorter_steps(scene: Scene, factor: float) -> Scene:
    """Return the scene with its step, and those of its experiments, divided by ``factor``: below one they are longer.

    k_t of friction, which is k_n dt where the scene does not say it, stays what it was: the law is not to change with
    the step.
    """
    scene = with_contact(scene)
    raw = copy.deepcopy(scene.raw)
    time = raw["time"]
    before = scene.time.dt
    time["dt"] = before / factor
    if time.get("steps") is not None:
        time["steps"] = round(time["steps"] * factor)
    for item in raw.get("experiments", []):
        overrides = item.get("overrides", {})
        if "time.dt" in overrides:
            overrides["time.dt"] /= factor
        if overrides.get("time.steps") is not None:
            overrides["time.steps"] = round(overrides["time.steps"] * factor)
        if any(key == "time" or key == "contact" for key in overrides):
            raise InputError(
                "an experiment overrides a whole section, which a convergence study cannot change",
                file=scene.source,
                found="'time' or 'contact'",
                expected="paths such as 'time.dt'",
            )
    for item, own in zip(raw.get("experiments", []), experiment_scenes(scene).values(), strict=False):
        if own.time.dt != before or any(key.startswith("contact.") for key in item.get("overrides", {})):
            item["overrides"] |= _sticks(own)
    finer = scene_from_dict(json.loads(json.dumps(raw)), folder=scene.source.parent if scene.source else None)
    sticks = _sticks(scene)
    return apply_overrides(finer, sticks) if sticks else finer


def _sticks(scene: Scene) -> dict[str, Any]:
    """Return k_t of friction by path where the scene leaves it to its step."""
    contact, time = scene.contact, scene.time
    if contact.friction_law not in ("linear", "tanh", "hybrid"):
        return {}
    rule = 2.0 / 3.0 if contact.stick_stiffness_rule == "effective-dt" and time.integrator == "bdf2" else 1.0
    parts: dict[str, Any] = {"contact": contact}
    if contact.stick_stiffness is None:
        parts |= {"contact.nodes": contact.nodes, "contact.mesh": contact.mesh}
    parts |= {f"contact.pairs.{k}": pair for k, pair in enumerate(contact.pairs)}
    return {
        f"{place}.stick_stiffness": part.stiffness * rule * time.dt
        for place, part in parts.items()
        if part.stiffness is not None and part.stick_stiffness is None  # which none has where nothing can touch
    }


def with_finer_meshes(scene: Scene, folder: Path) -> tuple[Scene, tuple[str, ...]]:
    """Return the scene with every soft body's mesh half as wide, and the names of those bodies.

    Shapes that the scene meshes are meshed anew, with their true surface; the elements of a file are cut into eight,
    its boundary stays as it is.

    Parameters
    ----------
    scene : Scene
    folder : where meshes are written
    """
    scene = with_contact(scene)
    overrides: dict[str, Any] = {}
    for name, body in meshed(scene).items():
        place, mesh = f"bodies.{name}.mesh", body.mesh
        if isinstance(mesh, BoxMeshSpec):
            overrides[f"{place}.divisions"] = [2 * n for n in mesh.divisions]
            if mesh.hollows:
                overrides[f"{place}.hollows"] = (2 * np.array(mesh.hollows)).tolist()
        elif isinstance(mesh, FileMeshSpec):
            path = folder / f"{name}_{len(list(folder.glob('*.msh')))}.msh"
            write_mesh(path, refined(body_mesh(body.model_copy(update={"scale": 1.0}), f"bodies.{name}")))
            overrides[place] = {"file": str(path)}
        else:
            overrides[f"{place}.edge"] = 0.5 * mesh.edge
    return (apply_overrides(scene, overrides) if overrides else scene), tuple(meshed(scene))


def with_coarser_meshes(scene: Scene) -> Scene | None:
    """Return the scene with every soft body's mesh twice as wide; None where one is a file, hollow, or a cell thin."""
    scene = with_contact(scene)
    overrides: dict[str, Any] = {}
    for name, body in meshed(scene).items():
        place, mesh = f"bodies.{name}.mesh", body.mesh
        if isinstance(mesh, FileMeshSpec):
            return None
        if isinstance(mesh, BoxMeshSpec):
            if min(mesh.divisions) < 2 or mesh.hollows:
                return None
            overrides[f"{place}.divisions"] = [(n + 1) // 2 for n in mesh.divisions]
        else:
            overrides[f"{place}.edge"] = 2.0 * mesh.edge
    return apply_overrides(scene, overrides)


def overridden(scene: Scene, path: str | Path) -> Scene:
    """Return the scene with the overrides of a JSON file, whose file paths count from that file's folder.

    Raises
    ------
    InputError
        naming the file.
    """
    path = Path(path)
    overrides = read_json(path, most=2**20, expected="a JSON object of overrides")
    if not isinstance(overrides, dict) or not overrides:
        raise InputError("no overrides", file=path, expected='such as {"bodies.ball.mesh": {"file": "fine.msh"}}')
    return apply_overrides(scene, {key: _absolute(value, path.absolute().parent) for key, value in overrides.items()})


def doubts(scene: Scene) -> list[str]:
    """Return what a finer mesh changes besides the mesh."""
    soft, reasons = meshed(scene), _unrefined(scene)
    texts = [
        f"the mesh of '{name}' is not refined by itself: {why}"
        for name, why in reasons.items()
        if isinstance(scene.bodies.get(name), SoftBodySpec)
    ]
    touching = bool(scene.obstacles) or len(scene.bodies) > 1
    if soft and touching and scene.contact.stiffness_per == "node" and scene.contact.friction_law != "exact":
        texts.append(
            "contact.stiffness counts per node: a finer mesh is a stiffer floor, which is no error of the mesh; "
            '"stiffness_per": "area" does not change with it'
        )
    files = [name for name, body in soft.items() if isinstance(body.mesh, FileMeshSpec)]
    if files:
        texts.append(
            f"the mesh of {', '.join(files)} is a file: its elements are cut, its boundary stays what it is; what a "
            "rounder boundary would change is only seen with a finer mesh of the same body (`--finer`)"
        )
    return texts


def _absolute(value: Any, folder: Path) -> Any:
    if isinstance(value, Mapping):
        return {
            key: str(folder / item)
            if key == "file" and isinstance(item, str) and "${" not in item
            else _absolute(item, folder)
            for key, item in value.items()
        }
    return value


#: Name of the file in a run folder.
CONVERGENCE = "discretisation.json"
FORMAT = "add-convergence/1"
#: How often steps and meshes are halved where nobody says it.
TIME_LEVELS, MESH_LEVELS = 2, 1
#: A refit takes about as long as so many evaluations of the fit, which are mostly slopes: those it takes over.
REFIT = 1.5
#: Simulations of a refit, mostly; up to six.
RUNS = 3.0
#: Simulations of the fit that take as long as the estimate: one with half the step, one with twice.
ESTIMATE = 2.5
#: Power of the number of coordinates with which the time of a step grows.
GROWS = 1.2


def signature(scene: Scene) -> dict[str, Any]:
    """Return the step and the number of coordinates of every experiment: what a discretisation error belongs to."""
    built = {name: item.build() for name, item in experiment_scenes(scene).items()}
    return {
        name: {"dt": item.scene.time.dt, "integrator": item.scene.time.integrator, "coordinates": item.model.system.n}
        for name, item in built.items()
    }


def evaluations(scene: Scene) -> int:
    """Return about how many evaluations of a fit take as long as its refinements, at most.

    The clock of the evaluations would not do: what else ran beside them is in it.
    A halved step has twice the steps, a halved mesh eight times the coordinates.
    """
    return round(1.0 + REFIT * (1.0 + _longer(scene, TIME_LEVELS, MESH_LEVELS)))


def _longer(scene: Scene, time: int, mesh: int) -> float:
    """Return how long one simulation with each refinement takes, all together, in those of the fit."""
    finer = [2.0**k for k in range(1, time + 1)]
    return sum(finer + [8.0 ** (GROWS * k) for k in range(1, mesh + 1) if meshed(scene)])


def rest(scene: Scene, each: float, time: int, mesh: int) -> float:
    """Return about how long estimate and refinements take [s] where a simulation of the fit has taken ``each`` [s]."""
    return each * (ESTIMATE + RUNS * _longer(scene, time, mesh))


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


#: One kind dominates where it moves the numbers this many times as far as the other.
DOMINATES = 2.0
#: Numbers whose estimated errors a sentence names, at most.
MOST_NAMED = 6


def estimate_text(found: Mapping[str, Any]) -> str:
    """Return how far step and mesh were estimated to move the numbers before anything was refined, and which more."""
    words = {"time": "the step", "mesh": "the mesh"}
    known = {kind: item for kind, item in found.items() if "errors" in item}
    parts = [
        f"{words[kind]} moves {', '.join(f'{name} by {value:.2g}' for name, value in _named(item['errors']))}"
        + ("" if item["size"] is None else f" ({item['size']:.2g} standard errors of noise in all)")
        for kind, item in known.items()
    ]
    parts += [
        f"nothing is known of {words[kind]}: {item['unknown']}" for kind, item in found.items() if kind not in known
    ]
    text = f"Estimated from a run or two each: {'; '.join(parts)}"
    sizes = {kind: item["size"] for kind, item in known.items()}
    if len(sizes) == 2 and None not in sizes.values():
        more, less = sorted(sizes, key=lambda kind: sizes[kind], reverse=True)
        if sizes[more] >= DOMINATES * sizes[less]:
            return f"{text}. {words[more].capitalize()} dominates (`--{less}-levels 0` leaves out the other)."
        return f"{text}. Step and mesh matter alike."
    return f"{text}."


#: Share of the objective that a finer step or mesh takes away from which on that is most of what a fit leaves over.
FALLS = 0.5


def left_over(found: Mapping[str, Any], scene: Scene) -> list[str]:
    """Return which kinds of refinement take away most of what the fit leaves over.

    A motion that the step bends in a way that no number makes up for: the amplitude of a vibration falls by itself, by
    the share omega^2 dt / 2 a second under BDF1, omega^4 dt^3 / 4 under BDF2 (from their roots at i omega dt). Where
    that is more than the damping there is, one that is fitted ends at zero, and bars of noise know nothing of it.
    """
    texts = []
    for kind, level in found.get("levels", {}).items():
        objectives = level.get("objectives", [])
        if len(objectives) < 2 or objectives[-1] >= FALLS * objectives[0]:
            continue
        first, last = objectives[0], objectives[-1]
        text = (
            f"with {level['names'][-1]} the objective falls from {first:.3g} to {last:.3g}: most of what the fit "
            f"leaves over is the {'step' if kind == 'time' else 'mesh'}'s, and a number that it drives to zero or to a "
            f"bound stays there in this study; fit again with a {'shorter step' if kind == 'time' else 'finer mesh'}"
        )
        share = {"bdf1": "w^2 dt / 2", "bdf2": "w^4 dt^3 / 4"}.get(str(scene.time.integrator))
        if kind == "time" and share is not None:
            text += (
                f'. "{scene.time.integrator}" itself damps a vibration of angular frequency w, by {share} a second: a '
                "damping that is found is what is left of that of the motion"
            )
        texts.append(text)
    return texts


def _named(errors: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the errors of the numbers that takes share, and of starts where there are no others."""
    shared = [item for item in errors.items() if "@" not in item[0]] or list(errors.items())
    return shared[:MOST_NAMED]


def read_convergence(path: str | PathLike[str]) -> dict[str, Any]:
    """Read the file of `add converge`.

    Raises
    ------
    InputError
        naming the file, if it is none.
    """
    path = Path(path)
    convergence = read_json(path, most=2**24, expected="a file of `add converge`")
    if not isinstance(convergence, dict) or convergence.get("format") != FORMAT:
        raise InputError("this is no file of `add converge`", file=path, place="format", expected=f'"{FORMAT}"')
    parameters = convergence.get("parameters")
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
    return convergence


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
