"""The numbers that an optimiser found, written into the scene that asked for them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from add.design import Experiment, InverseProblem
from add.errors import InputError
from add.scene._paths import get_value, set_value
from add.scene.coordinates import file_value
from add.scene.reader import Scene, experiment_scenes, scene_from_dict
from add.scene.spec_objective import ProximityObjectiveSpec
from add.typing import FloatArray


def with_values(scene: Scene, problem: InverseProblem, x: FloatArray) -> Scene:
    """Return the scene whose own numbers are those of ``x``: its inverse problem starts there, with the same objective.

    Numbers that experiments have for themselves become their overrides. Starts of parameters are dropped, since the
    scene's numbers are the starts then. A `proximity` without a value keeps the rows that it counted from.

    Parameters
    ----------
    scene : Scene
    problem : InverseProblem
        Of this scene.
    x : (n,)
        Design variables; physical values are kept within their bounds.

    Raises
    ------
    InputError
        If experiments give a signal other rows and a `proximity` counts from the rows of each.
    """
    raw = copy.deepcopy(scene.raw)
    full = scene.full()
    scenes = experiment_scenes(scene)
    _keep_proximity(scene, raw)
    for k, (experiment, item) in enumerate(zip(problem.experiments, scenes.values(), strict=True)):
        numbers = _numbers(problem, experiment, x)
        built = item.build()
        whole = item.full()
        for spec in scene.spec.parameters:
            if spec.experiment is not None and spec.experiment != experiment.name:
                continue
            for path in spec.all_paths():
                root = built.numbers.root(path)
                entry = built.numbers.layout[root]
                value = file_value(root, numbers[entry.indices.ravel()], get_value(whole, root))
                if spec.experiment is None:
                    set_value(raw, root, value, full)
                else:
                    _override(raw["experiments"][k], root, value)
    for entry in raw["parameters"]:
        entry.pop("start", None)
    written = scene_from_dict(raw)
    return Scene(written.spec, written.raw, scene.source)


def _numbers(problem: InverseProblem, experiment: Experiment, x: FloatArray) -> FloatArray:
    """Return the numbers of an experiment's scene at x."""
    _, placed, *_ = problem.map_of(experiment).maps
    lower = np.concatenate([np.full(item.n, item.lower) for item in problem.parameters])
    upper = np.concatenate([np.full(item.n, item.upper) for item in problem.parameters])
    # exp(log b) may exceed b by rounding.
    return placed.forward(np.clip(problem.values(x), lower, upper))


def _override(experiment: dict[str, Any], path: str, value: Any) -> None:
    section, _, rest = path.partition(".")
    if section == "recording" and experiment.get("recording") is not None:
        experiment["recording"][rest] = value
        return
    overrides = experiment.setdefault("overrides", {})
    overrides.pop(path, None)  # what comes last counts
    overrides[path] = value


def _keep_proximity(scene: Scene, raw: dict[str, Any]) -> None:
    """Write down the rows that a `proximity` without a value counts from: they are those of the scene as it was."""
    for k, item in enumerate(scene.spec.objective):
        if not isinstance(item, ProximityObjectiveSpec) or item.value is not None or item.rows is not None:
            continue
        path = f"signals.{item.signal}"
        for experiment in scene.spec.experiments:
            if any(other.startswith(path) for other in experiment.overrides):
                raise InputError(
                    f"experiment '{experiment.name}' has rows of its own, which this term counts from",
                    place=f"objective.{k}.rows",
                    expected="rows that all experiments share",
                )
        raw["objective"][k]["rows"] = get_value(scene.full(), f"{path}.values")
