"""Numbers written into a scene: those that an optimiser found, and those along the axes of a sweep."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.errors import InputError, naming
from add.inverse import Experiment, InverseProblem
from add.inverse.maps import DesignParameter, Log
from add.inverse.refit import in_order
from add.objectives.beyond_markers import CloudTracking
from add.scene.build.numbers import CLOCK, SceneParameters
from add.scene.build.scene import build, with_contact
from add.scene.read.paths import get_value, meant, set_value
from add.scene.read.reader import S, check_scene, experiment_scenes, from_source
from add.scene.read.recorded_starts import file_value
from add.scene.spec.markers import CloudObjectiveSpec
from add.scene.spec.objective import PriorObjectiveSpec, ProximityObjectiveSpec
from add.scene.spec.roles import paths_of_label
from add.typing import FloatArray


def with_values(scene: S, problem: InverseProblem, x: FloatArray) -> S:
    """Return the scene whose own numbers are those of ``x``: its inverse problem starts there, with the same objective.

    Numbers that experiments have for themselves become their overrides. Starts of parameters are dropped, since the
    scene's numbers are the starts then. A `proximity` without a value keeps the rows that it counted from; a recording
    whose clock was found keeps the frames that counted, as far as they are within the run now.

    Parameters
    ----------
    scene : SceneSpec
    problem : InverseProblem
        Of this scene.
    x : (n,)
        Design variables; physical values are kept within their bounds.

    Raises
    ------
    InputError
        If experiments give a signal other rows and a `proximity` counts from the rows of each.
    """
    scene = with_contact(scene)
    raw = copy.deepcopy(scene.raw)
    full = scene.full()
    scenes = experiment_scenes(scene)
    _keep_proximity(scene, raw)
    for k, (experiment, item) in enumerate(zip(in_order(problem, scenes), scenes.values(), strict=True)):
        numbers = _numbers(problem, experiment, x)
        built = build(item)
        whole = item.full()
        for spec in scene.parameters:
            if spec.experiment is not None and spec.experiment != experiment.name:
                continue
            for path in spec.all_paths():
                root = built.numbers.root(path)
                entry = built.numbers.layout[root]
                value = file_value(root, numbers[entry.indices.ravel()], get_value(whole, root))
                raw_of = raw["experiments"][k] if scene.experiments else None
                taken = raw_of is not None and raw_of.get("recording") is not None and root.startswith("recording.")
                if spec.experiment is None and not taken:
                    set_value(raw, root, value, full)
                elif raw_of is not None:
                    _override(raw_of, root, value)
                if root.endswith("time_offset"):
                    section = root.rpartition(".")[0]
                    for name, moved in _moved_windows(experiment, item, root, float(value)).items():
                        if raw_of is None:
                            set_value(raw, f"{section}.{name}", moved, full)
                        else:
                            _override(raw_of, f"{section}.{name}", moved)
    for entry in raw["parameters"]:
        entry.pop("start", None)
    return from_source(check_scene(raw, None, type(scene)), scene.source)


def labelled(numbers: SceneParameters, label: str) -> list[int]:
    """Return the indices in s of a number by its label in a result, such as ``bodies.ball.velocity[2]``.

    They are several where paths share a value.

    Raises
    ------
    InputError
        If the scene has no such number, or no such component of it.
    """
    component = label.partition("[")[2]
    k = int(component.rstrip("]")) if component else 0
    out = []
    for path in paths_of_label(label):
        at, _ = numbers.resolve(path)
        if k >= at.size:
            raise InputError("there is no such component", place=path, found=k, expected=f"0 to {at.size - 1}")
        out.append(int(at[k]))
    return out


def with_numbers(scene: S, chosen: Mapping[str, float]) -> S:
    """Return a scene with some numbers replaced, by their labels in a result; starts of parameters that are, too.

    Raises
    ------
    InputError
        If the scene has no such number, or is no valid scene with it.
    """
    scene = with_contact(scene)
    numbers, raw = build(scene).numbers, copy.deepcopy(scene.raw)
    values = numbers.values.copy()
    for label, value in chosen.items():
        values[labelled(numbers, label)] = value
    whole = scene.full()
    roots = dict.fromkeys(numbers.root(path) for label in chosen for path in paths_of_label(label))
    for root in roots:
        value = file_value(root, values[numbers.layout[root].indices.ravel()], get_value(whole, root))
        set_value(raw, root, value, whole)
    for entry, spec in zip(raw.get("parameters", []), scene.parameters, strict=True):
        if any(numbers.root(path) in roots for path in spec.all_paths()):
            entry.pop("start", None)
    return from_source(check_scene(raw, None, type(scene)), scene.source)


def _numbers(problem: InverseProblem, experiment: Experiment, x: FloatArray) -> FloatArray:
    """Return the numbers of an experiment's scene at x."""
    _, placed, *_ = problem.map_of(experiment).maps
    # exp(log b) may exceed b by rounding.
    return placed.forward(np.clip(problem.values(x), *problem.physical_bounds))


def _moved_windows(experiment: Experiment, scene: S, clock: str, offset: float) -> dict[str, Any]:
    """Return crop and masks that leave the frames which counted before the clock at a path was moved."""
    moved: dict[str, Any] = {"crop": _crop(experiment, scene, clock, offset)}
    if clock == CLOCK and scene.recording is not None and scene.recording.mask:
        later = scene.recording.time_offset - offset
        moved["mask"] = [
            {"marker": mask.marker, "from": mask.from_ + later, "to": mask.to + later} for mask in scene.recording.mask
        ]
    return moved


def _crop(experiment: Experiment, scene: S, clock: str, offset: float) -> list[float]:
    """Return the times between which the frames lie that counted before the clock at a path was moved [s]."""
    if clock == CLOCK:
        recording, before = experiment.recording, scene.recording
        assert recording is not None and before is not None
        times = recording.times + before.time_offset - offset
    else:
        k = int(clock.split(".")[1])
        cloud = scene.objective[k]
        assert isinstance(cloud, CloudObjectiveSpec)
        of_runs = sum(not isinstance(other, PriorObjectiveSpec) for other in scene.objective[:k])
        part = experiment.objective.objectives[of_runs]
        assert isinstance(part, CloudTracking)
        times = part.surface.times + cloud.time_offset - offset
    end = scene.time.end
    # Half a frame more, for rounding, where there is a frame that shall not count.
    room = 0.5 * float(np.diff(times).min(initial=end))
    return [float(np.clip(t, 0.0, end)) for t in (times[0] - room, times[-1] + room)]


def _override(experiment: dict[str, Any], path: str, value: Any) -> None:
    section, _, rest = path.partition(".")
    if section == "recording" and experiment.get("recording") is not None:
        set_value(experiment["recording"], rest, value)
        return
    overrides = experiment.setdefault("overrides", {})
    overrides.pop(path, None)  # what comes last counts
    overrides[path] = value


def _keep_proximity(scene: S, raw: dict[str, Any]) -> None:
    """Write down the rows that a `proximity` without a value counts from: they are those of the scene as it was."""
    for k, item in enumerate(scene.objective):
        if not isinstance(item, ProximityObjectiveSpec) or item.value is not None or item.rows is not None:
            continue
        path = f"signals.{item.signal}"
        for experiment in scene.experiments:
            if any(other.startswith(path) for other in experiment.overrides):
                raise InputError(
                    f"experiment '{experiment.name}' has rows of its own, which this term counts from",
                    place=f"objective.{k}.rows",
                    expected="rows that all experiments share",
                )
        raw["objective"][k]["rows"] = get_value(scene.full(), f"{path}.values")


# --- The axes of a sweep: texts such as ``bodies.ball.velocity.0=-1:1:21`` become places in x and values --------------


#: Values of an axis that does not say how many.
SAMPLES = 21
#: Values of an axis, at most.
MOST_SAMPLES = 10_000
_FORM = "PATH, PATH=low:high or PATH=low:high:n"


@final
@dataclass(frozen=True)
class SweepAxis:
    """One design variable and the values that it takes.

    Attributes
    ----------
    name, unit : str
    index : int
        Its place in x.
    values : (n,)
        Physical values, increasing.
    logarithmic : bool
        Whether they are spaced by equal ratios: those of a parameter with a log transform are.
    """

    name: str
    unit: str
    index: int
    values: FloatArray
    logarithmic: bool


@naming("--parameter")
def sweep_axes(problem: InverseProblem, texts: Sequence[str]) -> tuple[SweepAxis, ...]:
    """Return the axes that the texts ask for.

    Parameters
    ----------
    problem : InverseProblem
    texts : one or two of the form PATH, PATH=low:high or PATH=low:high:n; PATH is one of the scene's parameters, or
        one component of it as ``bodies.ball.velocity.0``. An empty limit is the parameter's bound.

    Raises
    ------
    InputError
        naming the text that cannot be used.
    """
    if not 1 <= len(texts) <= 2:
        raise InputError("a sweep has one or two parameters", found=len(texts))
    axes = tuple(_axis(problem, text) for text in texts)
    if len({axis.index for axis in axes}) < len(axes):
        raise InputError("the parameter is given twice", found=f"'{axes[0].name}'")
    return axes


def _axis(problem: InverseProblem, text: str) -> SweepAxis:
    path, equals, given = text.partition("=")
    parameter, index = _find(problem, path)
    parts = given.split(":") if equals else ["", ""]
    if len(parts) not in (2, 3):
        raise InputError("not a range", found=f"'{text}'", expected=_FORM)
    low = _limit(parts[0], parameter.lower, text, "lower")
    high = _limit(parts[1], parameter.upper, text, "upper")
    n = _count(parts[2], text) if len(parts) == 3 else SAMPLES
    if not low < high:
        raise InputError("the lower limit must be below the upper one", found=f"'{text}'")
    name, unit = problem.labels()[index], problem.units()[index]
    logarithmic = isinstance(parameter.transform, Log)
    if not np.isfinite(parameter.transform.inverse(np.array([low]))).all():
        raise InputError("the transform of this parameter needs values above 0", found=f"'{text}'")
    values = np.geomspace(low, high, n) if logarithmic else np.linspace(low, high, n)
    return SweepAxis(name, unit, index, values, logarithmic)


def _find(problem: InverseProblem, path: str) -> tuple[DesignParameter, int]:
    """Return the parameter that a path names, and the place in x."""
    labels = problem.labels()
    names: dict[str, tuple[DesignParameter, int]] = {}
    for parameter in problem.parameters:
        name, at, experiment = parameter.name.partition("@")
        for k, entry in enumerate(parameter.entries):
            entry_of = parameter, parameter.first + k
            names[labels[entry_of[1]]] = entry_of
            for alias in {name, *name.split("+")}:
                names[f"{alias}.{entry}{at}{experiment}"] = entry_of
                if parameter.n == 1:
                    names[f"{alias}{at}{experiment}"] = entry_of
    if path in names:
        return names[path]
    whole = next((p for p in problem.parameters if path == p.name or path in p.name.split("+")), None)
    if whole is not None:
        components = ", ".join(f"'{whole.name}.{entry}'" for entry in whole.entries[:6])
        raise InputError("choose one component", found=f"'{path}'", expected=components)
    known = ", ".join(labels[:6]) + (" ..." if len(labels) > 6 else "")
    raise InputError(f"there is no such entry of `parameters`{meant(path, names)}", found=f"'{path}'", expected=known)


def _limit(text: str, bound: float, whole: str, side: str) -> float:
    if not text.strip():
        if not np.isfinite(bound):
            said = f"the parameter has no {side} bound: give a range"
            raise InputError(said, found=f"'{whole}'", expected="PATH=low:high:n")
        return bound
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise InputError("not a number", found=f"'{text}' in '{whole}'", expected=_FORM)
    return value


def _count(text: str, whole: str) -> int:
    count = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not 2 <= count <= MOST_SAMPLES:
        found = f"'{text[:40]}' in '{whole[:80]}'"
        raise InputError("not a number of values", found=found, expected=f"2 to {MOST_SAMPLES}")
    return count
