"""Checks of the `expect` section: every path names a number that a result of its command has."""

from collections.abc import Iterator
from typing import Any

from add.scene.read.paths import nearest
from add.scene.read.problems import Problem, one_of
from add.scene.spec.objective import MarkersObjectiveSpec
from add.scene.spec.scene import SceneSpec

#: Results that are checked against expectations.
COMMANDS = ("simulate", "optimize")
#: Numbers of a body by its type; the length of a vector, 0 for a scalar.
_MOVING = {"centre": 3, "velocity": 3, "speed": 0}
_BODIES = {
    "soft": {**_MOVING, "mass": 0, "nodes": 0, "elements": 0},
    **{key: {**_MOVING, "mass": 0, "nodes": 0} for key in ("mass-spring", "cloth", "rod")},
    "rigid": {**_MOVING, "mass": 0, "orientation": 4, "angular_velocity": 3},
    "kinematic": {**_MOVING, "orientation": 4, "angular_velocity": 3},
    "articulated": {**_MOVING, "mass": 0},
}
_RUN = {
    "steps": 0,
    "end_time": 0,
    "newton": dict.fromkeys(("iterations_per_step", "most_iterations", "factorizations", "fallbacks", "divided"), 0),
    "energy": dict.fromkeys(("kinetic", "elastic", "gravity", "coupling", "chambers", "muscles", "contact"), 0),
    "contact": dict.fromkeys(("touching", "sticking", "slipping", "creeping"), 0),
    "couplings": dict.fromkeys(("taut", "slack", "clipped", "below", "above"), 0),
}
_ENDS = dict.fromkeys(("standard_error", "lower", "upper"), 0)
_PARAMETER = {
    **dict.fromkeys(("value", "start", "interval_lower", "interval_upper", "profile_evaluations"), 0),
    **_ENDS,
    "errors": dict.fromkeys(("noise", "correlated", "takes", "discretisation"), 0),
    "bootstrap": _ENDS,
}
#: Combinations that are hardly seen, and candidates for each, that a result may have.
_MOST_WEAK, _MOST_CANDIDATES = 5, 20
_PHASE = dict.fromkeys(("success", "start", "end", "evaluations"), 0)
_FIT = dict.fromkeys(("rms", "samples", "frames_outside", "peak_displacement", "rms_over_peak"), 0)
_FIT_OF_MARKER = dict.fromkeys(("rms", "peak_displacement", "samples"), 0)


def check_expectations(
    spec: SceneSpec, full: dict[str, Any], experiments: dict[str, dict[str, Any]], labels: list[str]
) -> Iterator[Problem]:
    """Commands and paths that exist.

    Parameters
    ----------
    spec, full : the scene, and the scene as a dictionary with its defaults
    experiments : experiment name -> its scene as a dictionary with its defaults
    labels : names of the design variables, as a result has them
    """
    for command, items in spec.expect.items():
        if command not in COMMANDS:
            close = nearest(command, COMMANDS)
            yield Problem(
                f"expect.{command}", "no result of this name is checked", f"'{command}'", one_of(COMMANDS), close
            )
            continue
        known = dict(_flat(_simulated(full) if command == "simulate" else _optimized(spec, full, experiments, labels)))
        for path in items:
            if not _names(path, known):
                near = nearest(path, known)
                message = f"the result of `add {command}` has no such number"
                yield Problem(f"expect.{command}.{path}", message, f"'{path}'", None, near)


def _names(path: str, known: dict[str, int]) -> bool:
    """Whether a path is a number or a vector that is known, or an entry of a vector."""
    parent, _, entry = path.rpartition(".")
    return path in known or (entry.isascii() and entry.isdigit() and int(entry) < known.get(parent, 0))


def _flat(node: dict[str, Any], at: str = "") -> Iterator[tuple[str, int]]:
    for key, item in node.items():
        if isinstance(item, dict):
            yield from _flat(item, f"{at}{key}.")
        else:
            yield f"{at}{key}", item


def _summary(full: dict[str, Any]) -> dict[str, Any]:
    bodies = {name: _BODIES[body["type"]] for name, body in full["bodies"].items()}
    markers = {name: {"final": 3, "displacement": 3} for name in full["markers"]}
    chambers = {
        f"{name}/{key}": {"pressure": 0, "volume": 0}
        for name, body in full["bodies"].items()
        for key, item in body.get("chambers", {}).items()
        if item["type"] != "joined"
    }
    ties = {
        f"{name}/{item['body']}": {"force": 3, "torque": 3}
        for name, body in full["bodies"].items()
        for item in body.get("embedded", ())
        if item["by"] == "multipliers"
    }
    return {**_RUN, "bodies": bodies, "markers": markers, "chambers": chambers, "ties": ties}


def _simulated(full: dict[str, Any]) -> dict[str, Any]:
    return {**_summary(full), "seconds": 0, "kernel_seconds": 0}


def _optimized(
    spec: SceneSpec, full: dict[str, Any], experiments: dict[str, dict[str, Any]], labels: list[str]
) -> dict[str, Any]:
    runs = {name: _summary(item) for name, item in (experiments or {"scene": full}).items()}
    if any(isinstance(item, MarkersObjectiveSpec) for item in spec.objective):
        for run in runs.values():
            run["fit"] = {**_FIT, "per_marker": dict.fromkeys(run["markers"], _FIT_OF_MARKER)}
    result = {
        "parameters": dict.fromkeys(labels, _PARAMETER),
        "objective": {"start": 0, "end": 0},
        "phases": {str(k): _PHASE for k in range(len(spec.optimizer.phases) or 1)},
        "evaluations": 0,
        "seconds": 0,
        "replayed_evaluations": 0,
        "experiments": runs,
    }
    result["uncertainty"] = _uncertainty(full, list(runs), labels)
    if len(runs) == 1:  # a single run is the result's own, too
        only = next(iter(runs.values()))
        result |= {key: only[key] for key in ("bodies", "markers", "contact", "newton", "fit") if key in only}
    return result


def _uncertainty(full: dict[str, Any], runs: list[str], labels: list[str]) -> dict[str, Any]:
    """Return the numbers on the errors of a fit."""
    counts = ("frames", "coordinates", "effective", "p_value", "frames_per_independent")
    take = {**dict.fromkeys(counts, 0), "per_marker": dict.fromkeys(full["markers"], 0)}
    weak = {
        "spread": 0,
        "singular_value": 0,
        "parameters": dict.fromkeys(labels, 0),
        "candidates": {str(j): {"spread": 0} for j in range(_MOST_CANDIDATES)},
    }
    return {
        "residuals": dict.fromkeys(runs, take),
        "correlation": {"matrix": {str(k): len(labels) for k in range(len(labels))}},
        "tied": {str(k): {"correlation": 0} for k in range(len(labels))},
        "weak": {str(k): weak for k in range(_MOST_WEAK)},
        "bootstrap": {"blocks": 0, "draws": 0},
    }
