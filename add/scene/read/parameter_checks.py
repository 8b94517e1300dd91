"""Checks of what is fitted: parameters that exist and differ, what refers to them, and what is settled at build."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from add.scene.read.checks import end_of, inside, named, twice
from add.scene.read.paths import entries, explain_missing, get_value
from add.scene.read.problems import Problem, shown
from add.scene.read.recorded_starts import is_direction, is_orientation, numbers_of
from add.scene.read.section_checks import check_expectations
from add.scene.spec.bodies import SoftBodySpec
from add.scene.spec.nets import NetSpec
from add.scene.spec.objective import ParameterSpec, PriorObjectiveSpec
from add.scene.spec.scene import SceneSpec, TimeSpec
from add.summary import counted


def check_frozen(spec: SceneSpec, path: str, at: str) -> Iterator[Problem]:
    """Refuse a parameter that a choice of nodes, or the targets of a recording of poses, would have to follow.

    Every other default that depends on numbers follows them by the ties of theta.

    Parameters
    ----------
    spec : SceneSpec
    path : of the parameter
    at : where the scene names it
    """
    section, name, key, *_ = [*path.split("."), "", ""]
    if section == "bodies" and key in ("position", "orientation"):
        yield from _chosen_nodes(spec, name, path, at)
    if section == "recording" and name == "place":
        yield from _unseen(spec, key, path, at)
    if section == "markers" and key in ("point", "direction"):
        yield from _recorded(spec, name, path, at)


def _chosen_nodes(spec: SceneSpec, body: str, path: str, at: str) -> Iterator[Problem]:
    for coupling, item in spec.couplings.items():
        ends = {key: getattr(item, key) for key in ("a", "b") if hasattr(item, key)}
        for key, end in ends.items():
            if end.at is None and body in [other.body for other in ends.values()] and _takes_nodes(spec, end.body):
                yield Problem(
                    at,
                    f"the nodes of couplings.{coupling}.{key} are those where the other end starts, and would have to "
                    "change with this number",
                    f"'{path}'",
                    f"a place at couplings.{coupling}.{key}.at",
                )


def _takes_nodes(spec: SceneSpec, body: str | None) -> bool:
    """Whether a place on a body is a choice among its nodes; the only node of a handle is none."""
    item = spec.bodies.get(body or "")
    if isinstance(item, NetSpec):
        return not item.is_handle
    return isinstance(item, SoftBodySpec)


def _unseen(spec: SceneSpec, key: str, path: str, at: str) -> Iterator[Problem]:
    """A place that no sample of the recording depends on."""
    for recording in spec.recordings().values():
        if recording.place is None:
            continue
        if key == "move" and recording.displacement:
            yield Problem(
                at, "displacements do not tell where the recording lies", f"'{path}'", '"displacement": false'
            )
        if key in ("move", "scale") and recording.angles is not None:
            yield Problem(at, "angles turn with the recording, but do not move", f"'{path}'", "recording.place.turn")


def _recorded(spec: SceneSpec, marker: str, path: str, at: str) -> Iterator[Problem]:
    for recording in spec.recordings().values():
        if recording.pose is None:
            continue
        joint = recording.pose.joint
        if spec.markers[marker].body in (recording.pose.body, joint.body if joint else None):
            yield Problem(
                at,
                "a recording of poses gives the path of this marker, and its targets would have to change with this "
                "number",
                f"'{path}'",
                "a marker of a body without such a recording",
            )


#: Sections whose numbers are no physics, so that no derivative with respect to them exists.
_FIXED = ("time", "objective", "parameters", "optimizer", "uncertainty", "experiments", "output", "check", "expect")

#: Keys of a cloud that experiments may override, and those whose numbers are parameters.
OWN_OF_CLOUDS = ("file", "rate", "scale", "time_offset", "place", "crop", "box", "plane", "colour", "every")
_NUMBERS_OF_CLOUDS = ("time_offset", "place")


def check_design(spec: SceneSpec, full: dict[str, Any], experiments: dict[str, dict[str, Any]]) -> list[Problem]:
    """Parameters and what refers to them; `full` and `experiments` are whole scenes with their defaults."""
    ends = [end_of(TimeSpec.model_validate(item["time"])) for item in experiments.values()] or [end_of(spec.time)]
    problems = [*_parameters(spec, full, experiments), *_overlaps(spec, full), *_references(spec, max(ends))]
    return problems or list(check_expectations(spec, full, experiments, _labels(spec, full, experiments)))


def expanded(raw: dict[str, Any], spec: SceneSpec) -> SceneSpec:
    """Return the scene with a parameter for each number that a path with a * names; ``raw`` is changed with it.

    `path` makes a parameter of each, `paths` one value that all of them share.
    """
    if not any("*" in path for path in spec.parameter_paths):
        return spec
    full, items = spec.full(), []
    for given, item in zip(raw["parameters"], spec.parameters, strict=True):
        named = [one for path in item.all_paths() for one in ([path] if "*" not in path else _matching(full, path))]
        items += [given | {"path": path} for path in named] if item.path else [given | {"paths": named}]
    raw["parameters"] = items
    return spec.model_copy(update={"parameters": tuple(ParameterSpec.model_validate(item) for item in items)})


def _matching(node: Any, path: str) -> list[str]:
    """Return the paths that one with * for names, or places in lists, stands for: itself if it stands for none."""
    nodes = [("", node)]
    for key in path.split("."):
        nodes = [
            (f"{at}.{word}".lstrip("."), part)
            for at, whole in nodes
            for word, part in entries(whole)
            if key in ("*", str(word))
        ]
    return [at for at, value in nodes if value is not None] or [path]


def _labels(spec: SceneSpec, full: dict[str, Any], experiments: dict[str, dict[str, Any]]) -> list[str]:
    """Return the names of the design variables (see `add.inverse.InverseProblem.labels`)."""
    out = []
    for item in spec.parameters:
        name = "+".join(item.all_paths()) + (f"@{item.experiment}" if item.experiment else "")
        values, _ = number_at(_whole(item, full, experiments), item.all_paths()[0], "")
        entries = item.components or tuple(range(len(values)))
        out += [name] if entries == (0,) else [f"{name}[{i}]" for i in entries]
    return out


def _whole(item: ParameterSpec, full: dict[str, Any], experiments: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the scene, with its defaults, whose numbers a parameter names first."""
    if item.experiment is not None:
        return experiments[item.experiment]
    if full.get("recording") is None and item.all_paths()[0].startswith("recording."):
        return next(iter(experiments.values()), full)  # each has its own, and all share this number
    return full


def _references(spec: SceneSpec, end: float) -> Iterator[Problem]:
    """Names in phases and priors are declared; windows lie in the longest run, which ends at ``end``."""
    # A parameter of one experiment goes by its path, with all others of that path, or alone by path@experiment.
    own = [item for item in spec.parameters if item.experiment]
    declared = spec.parameter_paths + [f"{path}@{item.experiment}" for item in own for path in item.all_paths()]
    yield from twice("optimizer.phases.{k}.name", "the name", [phase.name for phase in spec.optimizer.phases])
    for k, phase in enumerate(spec.optimizer.phases):
        place = f"optimizer.phases.{k}"
        for i, path in enumerate(phase.parameters or ()):
            yield from named(f"{place}.parameters.{i}", "entry of `parameters`", path, declared)
        yield from inside(f"{place}.window", phase.window, spec, end)
        yield from inside(f"{place}.end_time", None if phase.end_time is None else (phase.end_time,), spec, end)
    for i, path in enumerate(spec.uncertainty.profile):
        yield from named(f"uncertainty.profile.{i}", "entry of `parameters`", path, declared)
    for k, item in enumerate(spec.objective):
        if isinstance(item, PriorObjectiveSpec) and spec.parameters:  # one run of experiments has none
            yield from named(f"objective.{k}.parameter", "entry of `parameters`", item.parameter, declared)
            if is_direction(".".join(item.parameter.split(".")[:3])):
                yield Problem(
                    f"objective.{k}.parameter",
                    "a direction's numbers count from the scene's direction, so that a prior would move with it",
                    f"'{item.parameter}'",
                    "bounds of the parameter",
                )


def _parameters(spec: SceneSpec, full: dict[str, Any], experiments: dict[str, dict[str, Any]]) -> Iterator[Problem]:
    for k, item in enumerate(spec.parameters):
        place = f"parameters.{k}"
        if item.experiment is not None and item.experiment not in experiments:
            yield from named(f"{place}.experiment", "experiment", item.experiment, experiments)
            continue
        scene = _whole(item, full, experiments)
        values: list[list[float]] = []
        for i, path in enumerate(item.all_paths()):
            at = f"{place}.path" if item.path is not None else f"{place}.paths.{i}"
            value, problem = number_at(scene, path, at)
            if problem is not None:
                yield problem
                continue
            values.append(value)
            yield from check_frozen(spec, path, at)
            if item.experiment is None:
                yield from _shadowed(spec, path, at, experiments)
        if len(values) == len(item.all_paths()):
            yield from _start(item, values, place)


def number_at(scene: dict[str, Any], path: str, at: str) -> tuple[list[float], Problem | None]:
    """The numbers at a path, flattened, or why it has none that may change."""
    section = path.split(".")[0]
    if section in _FIXED and not of_cloud(scene, path, _NUMBERS_OF_CLOUDS):
        return [], Problem(at, f"numbers in '{section}' cannot be parameters", f"'{path}'")
    message, close = explain_missing(scene, path)
    if message != "is there":
        return [], Problem(at, f"no such path: {message}", f"'{path}'", None, close)
    value = get_value(scene, path)
    keys = path.split(".")
    whole = ".".join(keys[:3])
    if is_orientation(whole) or is_direction(whole):
        numbers = numbers_of(whole, get_value(scene, whole), get_value(scene, whole)).tolist()
        if len(keys) == 3:
            return numbers, None
        if int(keys[3]) >= len(numbers):
            what = "an orientation has three parameters, its rotation vector"
            if is_direction(whole):
                what = "a direction has two parameters, the angles by which it tilts away from the scene's"
            return [], Problem(at, what, f"'{path}'", " or ".join(str(i) for i in range(len(numbers))))
        return [numbers[int(keys[3])]], None
    if value is None:
        return [], Problem(at, "has no value in the scene; give it one there", f"'{path}', null", "a number")
    if isinstance(value, dict) and {"each", "cell_data", "file"} & set(value):
        return [], None  # a field, whose numbers are known as the mesh is
    flat = _flat(value)
    if flat is None:
        return [], Problem(at, "is not a number", f"'{path}', {shown(value)}", "a number or a list of numbers")
    if any(isinstance(x, int) for x in flat):
        return [], Problem(at, "counts in whole numbers and cannot change smoothly", f"'{path}', {shown(value)}")
    return flat, None


def of_cloud(scene: dict[str, Any], path: str, among: tuple[str, ...]) -> bool:
    """Return whether a path names one of these keys of an objective that is a cloud, or what is below."""
    section, number, key, *_ = [*path.split("."), "", ""]
    items = scene.get("objective") or ()
    known = section == "objective" and number.isdigit() and int(number) < len(items)
    return known and key in among and items[int(number)]["type"] == "cloud"


def _flat(value: Any) -> list[float] | None:
    if isinstance(value, list | tuple) and value:
        parts = [_flat(item) for item in value]
        return None if any(part is None for part in parts) else [x for part in parts if part is not None for x in part]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else None


def _start(item: ParameterSpec, values: list[list[float]], place: str) -> Iterator[Problem]:
    """Components in range, shared values of one shape, a start that bounds and transform allow."""
    if any(len(value) != len(values[0]) for value in values):
        yield Problem(f"{place}.paths", "share one value, but have different lengths", shown([len(v) for v in values]))
        return
    n = len(values[0])
    if not n:
        return
    components = item.components if item.components is not None else tuple(range(n))
    if max(components) >= n:
        yield Problem(f"{place}.components", "there is no such entry", shown(list(components)), f"at most {n - 1}")
        return
    start = [values[0][i] for i in components]
    at = f"{place}.start"
    if isinstance(item.start, tuple):
        if len(item.start) != len(components):
            yield Problem(at, "wrong length", counted(len(item.start), "number"), f"{len(components)}")
            return
        start = list(item.start)
    elif item.start is not None:
        start = [item.start] * len(components)
    elif any([value[i] for i in components] != start for value in values):
        yield Problem(at, "the paths share one value, but the scene's differ", shown(values), "a 'start'")
        return
    else:
        at += " (the scene's value)"
    low, high = item.bounds if item.bounds is not None else (None, None)
    for x in start:
        if item.transform != "linear" and not x > 0.0:
            yield Problem(at, f"a {item.transform} transform needs a positive value", f"{x:g}", "above 0")
            return
        if (low is not None and x < low) or (high is not None and x > high):
            yield Problem(at, "outside the bounds", f"{x:g}", f"within {shown(list(item.bounds or ()))}")
            return


def _shadowed(spec: SceneSpec, path: str, at: str, experiments: dict[str, dict[str, Any]]) -> Iterator[Problem]:
    """A shared parameter must not be overridden in an experiment: it would be unclear which of the two counts.

    Numbers of recordings may be shared by experiments with recordings of their own where all have the same there.
    """
    if path.startswith("recording."):
        values = {name: number_at(scene, path, at) for name, scene in experiments.items()}
        for name, (value, problem) in values.items():
            if problem is not None:
                yield replace(problem, message=f"in experiment '{name}', {problem.message}")
            elif value != next(iter(values.values()))[0]:
                text = f"the experiments share this number, but theirs differ: see '{name}'"
                yield Problem(at, text, f"'{path}', {shown(value)}", "'experiment' in the parameter, or one value")
        return
    for item in spec.experiments:
        for other in item.overrides:
            if related(path, other):
                yield Problem(
                    at,
                    f"experiment '{item.name}' overrides '{other}', so this parameter is not shared",
                    f"'{path}'",
                    "'experiment' in the parameter, or no such override",
                )


def related(path: str, other: str) -> bool:
    """Return whether of two paths one is the other or contains it."""
    return f"{path}.".startswith(f"{other}.") or f"{other}.".startswith(f"{path}.")


def _overlaps(spec: SceneSpec, full: dict[str, Any]) -> Iterator[Problem]:
    """No number may belong to two parameters."""
    seen: list[tuple[str, frozenset[int] | None, str | None]] = []
    for k, item in enumerate(spec.parameters):
        chosen = None if item.components is None else frozenset(item.components)
        for i, path in enumerate(item.all_paths()):
            at = f"parameters.{k}.path" if item.path is not None else f"parameters.{k}.paths.{i}"
            target, picked = _vector_entry(full, path, chosen)
            for before, others, experiment in seen:
                if experiment is not None and item.experiment is not None and experiment != item.experiment:
                    continue
                if not related(before, target):
                    continue
                if before == target and others is not None and picked is not None and not others & picked:
                    continue
                yield Problem(at, "this number already belongs to another parameter", f"'{path}'", "another path")
                break
            seen.append((target, picked, item.experiment))


def _vector_entry(full: dict[str, Any], path: str, chosen: frozenset[int] | None) -> tuple[str, frozenset[int] | None]:
    """`gravity.2` is component 2 of `gravity`."""
    parent, _, last = path.rpartition(".")
    if parent and last.isdigit() and chosen is None and explain_missing(full, parent)[0] == "is there":
        row = get_value(full, parent)
        if isinstance(row, list | tuple) and not any(isinstance(x, list | tuple | dict) for x in row):
            return parent, frozenset((int(last),))
    return path, chosen


def check_phase_overrides(spec: SceneSpec, full: dict[str, Any], k: int) -> Iterator[Problem]:
    """Overrides of phase k: numbers that the scene has, in no experiment another.

    Parameters
    ----------
    spec, full : the scene, and the scene as a dictionary with its defaults
    k : int
    """
    for path, value in spec.optimizer.phases[k].overrides.items():
        at = f"optimizer.phases.{k}.overrides.{path}"
        _, problem = number_at(full, path, at)
        if problem is not None:
            yield problem
            continue
        whole = ".".join(path.split(".")[:3])
        if path != whole and (is_orientation(whole) or is_direction(whole)):
            yield Problem(at, "an entry by itself says nothing of a rotation or a direction", f"'{path}'", f"'{whole}'")
            continue
        if _flat(value) is None:
            yield Problem(at, "is not a number", shown(value), "a number or a list of numbers")
        for item in spec.experiments:
            for other in item.overrides:
                if related(path, other):
                    yield Problem(at, f"experiment '{item.name}' overrides '{other}': which counts?", f"'{path}'")
