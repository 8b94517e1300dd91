"""Checks across the sections of a scene: names that refer to others, times inside the run, parameters that exist."""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any

from add.scene.build.coordinates import is_direction, is_orientation, numbers_of
from add.scene.build.numbers import met_shapes
from add.scene.read.exact_contact import check_exact_contact
from add.scene.read.expect_checks import check_expectations
from add.scene.read.paths import explain_missing, get_value, nearest
from add.scene.read.problems import Problem, one_of, shown
from add.scene.read.settled_numbers import check_frozen
from add.scene.spec.bodies import SoftBodySpec
from add.scene.spec.common import SignalReferenceSpec
from add.scene.spec.couplings import FixedSpec
from add.scene.spec.markers import DirectionMarkerSpec, PointMarkerSpec, RecordingSpec
from add.scene.spec.objective import (
    LineObjectiveSpec,
    MarkersObjectiveSpec,
    ParameterSpec,
    PointObjectiveSpec,
    PoseObjectiveSpec,
    PriorObjectiveSpec,
    ProximityObjectiveSpec,
    SmoothnessObjectiveSpec,
    TrackObjectiveSpec,
)
from add.scene.spec.rigid import KinematicBodySpec, ParticleBodySpec
from add.scene.spec.scene import SceneSpec, TimeSpec
from add.scene.spec.world import ConstantSignalSpec, SineSignalSpec

# Sections whose numbers are no physics, so that no derivative with respect to them exists.
#: Most problems, and names that might have been meant, that are worth looking for.
_LISTED = 200
_FIXED = ("time", "objective", "parameters", "optimizer", "experiments", "output", "check", "expect")


def check_world(spec: SceneSpec) -> list[Problem]:
    """Names and times of everything but the parameters."""
    parts = (_bodies, _couplings, _fixed_loops, _contact, check_exact_contact, _markers, _recordings, _objective)
    return list(islice((problem for part in parts for problem in part(spec)), _LISTED))


def _named(place: str, what: str, name: str, known: Collection[str]) -> Iterator[Problem]:
    if name not in known:
        known = list(islice(known, _LISTED))
        expected = f"one of {one_of(known)}" if known else f"a {what}, and the scene has none"
        yield Problem(place, f"there is no {what} of that name", f"'{name}'", expected, nearest(name, known))


def _twice(place: str, what: str, names: list[Any]) -> Iterator[Problem]:
    for k in repeated(names):
        yield Problem(place.format(k=k), f"{what} {shown(names[k])} appears twice", None, "different ones")


def repeated(names: Iterable[Any]) -> Iterator[int]:
    """Iterate over the places of those that were there before."""
    seen = set()
    for k, name in enumerate(names):
        item = tuple(name) if isinstance(name, list) else name
        if item in seen:
            yield k
        seen.add(item)


def _bodies(spec: SceneSpec) -> Iterator[Problem]:
    for name, body in spec.bodies.items():
        driven: list[tuple[str, object]] = []
        if isinstance(body, SoftBodySpec | ParticleBodySpec):
            driven += [(f"pins.{k}.motion", pin.motion) for k, pin in enumerate(body.pins)]
            driven += [(f"anchors.{k}.place", item.place) for k, item in enumerate(getattr(body, "anchors", ()))]
            driven += [(f"loads.{k}.force", load.force) for k, load in enumerate(body.loads)]
        elif isinstance(body, KinematicBodySpec):
            driven += [("translation", body.translation), ("rotation", body.rotation)]
        if name in spec.obstacles:
            yield Problem(f"bodies.{name}", "an obstacle has the same name", f"'{name}'", "different names")
        for place, value in driven:
            if isinstance(value, SignalReferenceSpec):
                yield from _named(f"bodies.{name}.{place}.signal", "signal", value.signal, spec.signals)
        for key in ("loads", "point_masses"):
            names = [item.name for item in getattr(body, key, ())]
            for k in repeated(names):
                if names[k] is not None:
                    yield Problem(
                        f"bodies.{name}.{key}.{k}.name", f"the name '{names[k]}' appears twice", None, "another"
                    )


def _couplings(spec: SceneSpec) -> Iterator[Problem]:
    for name, item in spec.couplings.items():
        at = f"couplings.{name}"
        ends = {"a": "a.body", "b": "b.body", "on": "on.body"}
        named = [(path, getattr(item, key).body) for key, path in ends.items() if hasattr(item, key)]
        named += [(key, getattr(item, key)) for key in ("body", "nodes") if hasattr(item, key)]
        for path, body in named:
            if body is not None:
                yield from _named(f"{at}.{path}", "body", body, spec.bodies)
        values = {"force": getattr(item, "force", None), "torque": getattr(item, "torque", None)}
        motor = getattr(item, "motor", None)
        if motor is not None:
            values["motor.angle"] = motor.angle
        for path, value in values.items():
            if isinstance(value, SignalReferenceSpec):
                yield from _named(f"{at}.{path}.signal", "signal", value.signal, spec.signals)


def _fixed_loops(spec: SceneSpec) -> Iterator[Problem]:
    """Fixed joints must not close a loop: one of them only fights the others, and their reactions have no answer."""
    group: dict[str | None, str | None] = {}

    def root(body: str | None) -> str | None:
        while group.get(body, body) != body:
            body = group[body]
        return body

    for name, item in spec.couplings.items():
        if isinstance(item, FixedSpec):
            a, b = root(item.a.body), root(item.b.body)
            if a == b:
                what = f"'{item.a.body}' and '{item.b.body}'".replace("'None'", "the world")
                yield Problem(
                    f"couplings.{name}", "fixed joints close a loop", f"{what} are fixed to each other already",
                    "no loop of fixed joints",
                )  # fmt: skip
            group[a] = b


def _contact(spec: SceneSpec) -> Iterator[Problem]:
    pairs = spec.contact.pairs
    shapes = dict.fromkeys(met_shapes(spec))
    for k, pair in enumerate(pairs):
        yield from _named(f"contact.pairs.{k}.body", "body", pair.body, spec.bodies)
        # A pair that cannot touch may be switched off, too: then nobody is warned of it.
        there = pair.obstacle in shapes or (not pair.enabled and pair.obstacle in spec.bodies)
        if there and pair.obstacle != pair.body:
            continue
        met = [name for name in shapes if name != pair.body]
        yield from _named(f"contact.pairs.{k}.obstacle", "obstacle or body with a shape", pair.obstacle, met)
    yield from _twice("contact.pairs.{k}", "the pair", [[pair.body, pair.obstacle] for pair in pairs])


def _markers(spec: SceneSpec) -> Iterator[Problem]:
    for name, marker in spec.markers.items():
        yield from _named(f"markers.{name}.body", "body", marker.body, spec.bodies)


def _recordings(spec: SceneSpec) -> Iterator[Problem]:
    recordings = [("recording", spec.recording)]
    recordings += [(f"experiments.{k}.recording", item.recording) for k, item in enumerate(spec.experiments)]
    for place, recording in recordings:
        if recording is None:
            continue
        yield from _followed(place, recording, spec)
        maskable = spec.markers if recording.markers is None else recording.markers
        for k, mask in enumerate(recording.mask):
            yield from _named(f"{place}.mask.{k}.marker", "recording marker", mask.marker, maskable)
        if not place.startswith("experiments") and _runs_itself(spec):
            yield from _inside(f"{place}.crop", recording.crop, spec)


def _followed(place: str, recording: RecordingSpec, spec: SceneSpec) -> Iterator[Problem]:
    """The markers that a recording names, and those of the bodies whose poses it holds."""
    for key, marker in (recording.markers or {}).items():
        yield from _named(f"{place}.markers.{key}", "scene marker", marker, spec.markers)
    for key, angle in (recording.angles or {}).items():
        yield from _named(f"{place}.angles.{key}.marker", "scene marker", angle.marker, spec.markers)
        turned = spec.markers.get(angle.marker)
        if turned is not None and not isinstance(turned, DirectionMarkerSpec):
            yield Problem(f"{place}.angles.{key}.marker", "an angle turns a direction", f"'{angle.marker}'",
                          "a marker with a 'direction'")  # fmt: skip
    if recording.pose is None:
        return
    bodies = {"body": recording.pose.body}
    if recording.pose.joint is not None:
        bodies["joint.body"] = recording.pose.joint.body
    for key, body in bodies.items():
        yield from _named(f"{place}.pose.{key}", "body", body, spec.bodies)
        own = [item for item in spec.markers.values() if item.body == body]
        if not any(isinstance(item, PointMarkerSpec | DirectionMarkerSpec) for item in own):
            yield Problem(f"{place}.pose.{key}", "no marker to follow on this body", f"'{body}'",
                          "scene markers with a 'point' or a 'direction' on it")  # fmt: skip


def _runs_itself(spec: SceneSpec) -> bool:
    """Whether anything that is fitted runs for the scene's own time; experiments are checked with the time of each."""
    times = [any(path.split(".")[0] == "time" for path in item.overrides) for item in spec.experiments]
    return not times or not all(times)


def _end(time: TimeSpec) -> float:
    """Return the end of a run; `duration` counts even where its last step ends later."""
    return max(time.end, time.duration or 0.0)


def _inside(
    place: str, times: tuple[float, ...] | None, spec: SceneSpec, end: float | None = None
) -> Iterator[Problem]:
    """Times have to lie in the run, that of the scene or one that ends at ``end``."""
    end = _end(spec.time) if end is None else end
    if times is not None and not (times[0] >= 0.0 and times[-1] <= end * (1.0 + 1e-9)):
        found = shown(list(times) if len(times) > 1 else times[0])
        yield Problem(place, "outside the simulated time", found, f"within [0, {end:g}] s")


def _objective(spec: SceneSpec) -> Iterator[Problem]:
    for k, item in enumerate(spec.objective):
        place = f"objective.{k}"
        if isinstance(item, MarkersObjectiveSpec) and spec.recording is None and not spec.experiments:
            yield Problem(place, "needs a recording", None, "'recording' in the scene or in every experiment")
        if isinstance(item, PointObjectiveSpec | LineObjectiveSpec | TrackObjectiveSpec):
            yield from _named(f"{place}.marker", "marker", item.marker, spec.markers)
        if isinstance(item, PoseObjectiveSpec):
            yield from _named(f"{place}.body", "body", item.body, spec.bodies)
        if isinstance(item, SmoothnessObjectiveSpec | ProximityObjectiveSpec):
            yield from _named(f"{place}.signal", "signal", item.signal, spec.signals)
            signal = spec.signals.get(item.signal)
            if isinstance(signal, ConstantSignalSpec | SineSignalSpec):
                kinds = "type control, table or spline"
                yield Problem(f"{place}.signal", "the signal has no rows over time", f"type {signal.type}", kinds)
        if not _runs_itself(spec):
            continue
        if isinstance(item, TrackObjectiveSpec):
            yield from _inside(f"{place}.times", item.times, spec)
        if isinstance(item, PointObjectiveSpec | LineObjectiveSpec | PoseObjectiveSpec):
            yield from _inside(f"{place}.window", item.window, spec)
            if item.time is not None and item.time != "end":
                yield from _inside(f"{place}.time", (item.time,), spec)


# --- parameters, phases, priors ----------------------------------------------------------------------------------


def check_design(spec: SceneSpec, full: dict[str, Any], experiments: dict[str, dict[str, Any]]) -> list[Problem]:
    """Parameters and what refers to them; `full` and `experiments` are whole scenes with their defaults."""
    ends = [_end(TimeSpec.model_validate(item["time"])) for item in experiments.values()] or [_end(spec.time)]
    problems = [*_parameters(spec, full, experiments), *_overlaps(spec, full), *_references(spec, max(ends))]
    return problems or list(check_expectations(spec, full, experiments, _labels(spec, full, experiments)))


def _labels(spec: SceneSpec, full: dict[str, Any], experiments: dict[str, dict[str, Any]]) -> list[str]:
    """Return the names of the design variables (see `add.inverse.InverseProblem.labels`)."""
    out = []
    for item in spec.parameters:
        name = "+".join(item.all_paths()) + (f"@{item.experiment}" if item.experiment else "")
        values, _ = _number(full if item.experiment is None else experiments[item.experiment], item.all_paths()[0], "")
        entries = item.components or tuple(range(len(values)))
        out += [name] if entries == (0,) else [f"{name}[{i}]" for i in entries]
    return out


def _references(spec: SceneSpec, end: float) -> Iterator[Problem]:
    """What phases and priors name is declared; windows lie in the longest run, which ends at ``end``."""
    declared = [path for item in spec.parameters for path in item.all_paths()]
    # A parameter of one experiment goes by its path, with all others of that path, or alone by path@experiment.
    declared += [
        f"{path}@{item.experiment}" for item in spec.parameters if item.experiment for path in item.all_paths()
    ]
    yield from _twice("optimizer.phases.{k}.name", "the name", [phase.name for phase in spec.optimizer.phases])
    for k, phase in enumerate(spec.optimizer.phases):
        place = f"optimizer.phases.{k}"
        for i, path in enumerate(phase.parameters or ()):
            yield from _named(f"{place}.parameters.{i}", "entry of `parameters`", path, declared)
        yield from _inside(f"{place}.window", phase.window, spec, end)
        yield from _inside(f"{place}.end_time", None if phase.end_time is None else (phase.end_time,), spec, end)
    for k, item in enumerate(spec.objective):
        if isinstance(item, PriorObjectiveSpec):
            yield from _named(f"objective.{k}.parameter", "entry of `parameters`", item.parameter, declared)
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
            yield from _named(f"{place}.experiment", "experiment", item.experiment, experiments)
            continue
        scene = full if item.experiment is None else experiments[item.experiment]
        values: list[list[float]] = []
        for i, path in enumerate(item.all_paths()):
            at = f"{place}.path" if item.path is not None else f"{place}.paths.{i}"
            value, problem = _number(scene, path, at)
            if problem is not None:
                yield problem
                continue
            values.append(value)
            yield from check_frozen(spec, path, at)
            if item.experiment is None:
                yield from _shadowed(spec, path, at)
        if len(values) == len(item.all_paths()):
            yield from _start(item, values, place)


def _number(scene: dict[str, Any], path: str, at: str) -> tuple[list[float], Problem | None]:
    """The numbers at a path, flattened, or why it has none that may change."""
    section = path.split(".")[0]
    if section in _FIXED:
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
    flat = _flat(value)
    if flat is None:
        return [], Problem(at, "is not a number", f"'{path}', {shown(value)}", "a number or a list of numbers")
    if any(isinstance(x, int) for x in flat):
        return [], Problem(at, "counts in whole numbers and cannot change smoothly", f"'{path}', {shown(value)}")
    return flat, None


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
    components = item.components if item.components is not None else tuple(range(n))
    if max(components) >= n:
        yield Problem(f"{place}.components", "there is no such entry", shown(list(components)), f"at most {n - 1}")
        return
    start = [values[0][i] for i in components]
    at = f"{place}.start"
    if isinstance(item.start, tuple):
        if len(item.start) != len(components):
            yield Problem(at, "wrong length", f"{len(item.start)} numbers", f"{len(components)}")
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


def _shadowed(spec: SceneSpec, path: str, at: str) -> Iterator[Problem]:
    """A shared parameter must not be overridden in an experiment: it would be unclear which of the two counts."""
    for item in spec.experiments:
        overrides = [*item.overrides, *(["recording"] if item.recording is not None else [])]
        for other in overrides:
            if _covers(path, other) or _covers(other, path):
                yield Problem(
                    at,
                    f"experiment '{item.name}' overrides '{other}', so this parameter is not shared",
                    f"'{path}'",
                    "'experiment' in the parameter, or no such override",
                )


def _covers(path: str, other: str) -> bool:
    return other == path or other.startswith(path + ".")


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
                if not (_covers(before, target) or _covers(target, before)):
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
