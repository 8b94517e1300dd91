"""Checks across the sections of a scene: names that refer to others, times inside the run, parameters that exist."""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any

from add.scene.read.paths import nearest
from add.scene.read.problems import Problem, one_of, shown
from add.scene.read.section_checks import check_exact_contact, check_friction
from add.scene.spec import objective
from add.scene.spec.common import references
from add.scene.spec.contact import ContactPairSpec
from add.scene.spec.contact_classes import ContactClasses, may_have_mesh, met_shapes
from add.scene.spec.couplings import FixedSpec
from add.scene.spec.links import all_bodies, trees
from add.scene.spec.markers import DirectionMarkerSpec, PointMarkerSpec, RecordingSpec
from add.scene.spec.scene import SceneSpec, TimeSpec
from add.scene.spec.signals import ConstantSignalSpec, SineSignalSpec

#: Most problems, and names that might have been meant, that are worth looking for.
_LISTED = 200


def check_world(spec: SceneSpec) -> list[Problem]:
    """Names and times of everything but the parameters."""
    parts = (
        _names, _bodies, _fixed_loops, _contact, check_exact_contact, check_friction, _recordings, _uses, _objective,
    )  # fmt: skip
    return list(islice((problem for part in parts for problem in part(spec)), _LISTED))


def named(place: str, what: str, name: str, known: Collection[str]) -> Iterator[Problem]:
    """Refuse a name that is not known."""
    if name not in known:
        known = list(islice(known, _LISTED))
        expected = f"one of {one_of(known)}" if known else f"a {what}, and the scene has none"
        yield Problem(place, f"there is no {what} of that name", f"'{name}'", expected, nearest(name, known))


def twice(place: str, what: str, names: list[Any]) -> Iterator[Problem]:
    """Refuse names that appear twice; ``place`` has {k} for the position."""
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
        if name in spec.obstacles:
            yield Problem(f"bodies.{name}", "an obstacle has the same name", f"'{name}'", "different names")
        for key in ("loads", "point_masses"):
            names = [item.name for item in getattr(body, key, ())]
            for k in repeated(names):
                if names[k] is not None:
                    yield Problem(
                        f"bodies.{name}.{key}.{k}.name", f"the name '{names[k]}' appears twice", None, "another"
                    )


def _names(spec: SceneSpec) -> Iterator[Problem]:
    """Names that stand for a body, a signal, a marker or an obstacle, as the format says of each."""
    known: dict[str, Collection[str]] = {"body": all_bodies(spec), "signal": spec.signals}
    known |= {"marker": spec.markers, "obstacle": spec.obstacles}
    for section in ("bodies", "couplings", "markers", "objective"):
        for place, what, name in references(getattr(spec, section), section):
            yield from named(place, what, name, known[what])


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
    pairs, classes, bodies = spec.contact.pairs, ContactClasses.read(spec), all_bodies(spec)
    shapes = dict.fromkeys(met_shapes(spec))
    for label, members in classes.said.items():
        if (label in spec.bodies and label not in trees(spec)) or label in spec.obstacles:
            yield Problem(
                f"bodies.{members[0]}.contact.class", "a class has the name of a body or an obstacle", f"'{label}'",
                "another name",
            )  # fmt: skip
    for k, pair in enumerate(pairs):
        at = f"contact.pairs.{k}"
        several = any(side in classes.said or "/" in side for side in pair.sides)
        if pair.restitution is not None and several and spec.contact.friction_law != "impulse":
            yield Problem(
                f"{at}.restitution",
                "a restitution depends on two masses; a class has many, and a link's is that of its tree", None,
                "names of bodies, or 'damping', or the friction law 'impulse'",
            )  # fmt: skip
        if pair.between is not None:
            known = [*bodies, *spec.obstacles, *classes.said]
            unknown = [name for name in pair.between if name not in known]
            for name in unknown:
                yield from named(f"{at}.between", "body, obstacle or class", name, known)
            # A pair that cannot touch may be switched off, too: then nobody is warned of it.
            if not unknown and pair.enabled and not _meets(pair, classes, spec, shapes):
                found = " and ".join(f"'{name}'" for name in pair.between)
                yield Problem(
                    f"{at}.between", "none of these has points that can meet a shape of the other, nor a mesh", found,
                    "a body, and an obstacle or a body with a shape; or two bodies with meshes",
                )  # fmt: skip
            continue
        assert pair.body is not None and pair.obstacle is not None
        yield from named(f"{at}.body", "body", pair.body, [*bodies, *classes.said])
        there = pair.obstacle in shapes or (not pair.enabled and pair.obstacle in bodies)
        if pair.obstacle in classes.said or (there and pair.obstacle != pair.body):
            continue
        met = [name for name in shapes if name != pair.body]
        yield from named(f"{at}.obstacle", "obstacle or body with a shape", pair.obstacle, met)
    # A row for one way may well differ from an earlier one for both.
    for between in (True, False):
        sides: list[Any] = list(range(len(pairs)))
        for k, pair in enumerate(pairs):
            if (pair.between is not None) == between:
                sides[k] = sorted(pair.sides) if between else list(pair.sides)
        yield from twice("contact.pairs.{k}", "the pair", sides)


def _meets(pair: ContactPairSpec, classes: ContactClasses, spec: SceneSpec, shapes: Collection[str]) -> bool:
    """Whether points of a body on one side can meet a shape of another on the other side, or both have meshes."""
    a, b = (classes.members(side) for side in pair.sides)
    bodies = all_bodies(spec)
    if any(may_have_mesh(bodies.get(x)) and may_have_mesh(bodies.get(y)) and x != y for x in a for y in b):
        return True
    one_way = any(x in bodies and y in shapes and x != y for x in a for y in b)
    return one_way or any(x in bodies and y in shapes and x != y for x in b for y in a)


def _recordings(spec: SceneSpec) -> Iterator[Problem]:
    for place, recording in spec.recordings().items():
        yield from _followed(place, recording, spec)
        maskable = spec.markers if recording.markers is None else recording.markers
        for k, mask in enumerate(recording.mask):
            yield from named(f"{place}.mask.{k}.marker", "recording marker", mask.marker, maskable)
        if not place.startswith("experiments") and _runs_itself(spec):
            yield from inside(f"{place}.crop", recording.crop, spec)


def _uses(spec: SceneSpec) -> Iterator[Problem]:
    """Experiments that are predicted, and what is fitted of them alone."""
    if spec.experiments and all(item.use == "validate" for item in spec.experiments):
        yield Problem("experiments", "none of them is fitted", '"use": "validate" in each', 'one with "use": "fit"')
    for k, item in enumerate(spec.experiments):
        places = [j for j, parameter in enumerate(spec.parameters) if parameter.experiment == item.name]
        place = f"experiments.{k}.fit_window"
        if item.use == "fit" and item.fit_window is not None:
            yield Problem(place, 'goes with "use": "validate"', None, "phases, for an experiment that is fitted")
        elif item.use == "validate" and places and item.fit_window is None:
            at = f"parameters.{places[0]}.experiment"
            yield Problem(at, f"'{item.name}' is only validated", None, f"a {place}, over which this is fitted")
        elif item.fit_window is not None and not places:
            yield Problem(place, "there is nothing to fit", None, f'a parameter with "experiment": "{item.name}"')


def _followed(place: str, recording: RecordingSpec, spec: SceneSpec) -> Iterator[Problem]:
    """The markers that a recording names, and those of the bodies whose poses it holds."""
    for key, marker in (recording.markers or {}).items():
        yield from named(f"{place}.markers.{key}", "scene marker", marker, spec.markers)
    for key, angle in (recording.angles or {}).items():
        yield from named(f"{place}.angles.{key}.marker", "scene marker", angle.marker, spec.markers)
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
        yield from named(f"{place}.pose.{key}", "body", body, all_bodies(spec))
        markers = [item for item in spec.markers.values() if item.body == body]
        if not any(isinstance(item, PointMarkerSpec | DirectionMarkerSpec) for item in markers):
            yield Problem(f"{place}.pose.{key}", "no marker to follow on this body", f"'{body}'",
                          "scene markers with a 'point' or a 'direction' on it")  # fmt: skip


def _runs_itself(spec: SceneSpec) -> bool:
    """Whether anything that is fitted runs for the scene's own time; experiments are checked with the time of each."""
    times = [any(path.split(".")[0] == "time" for path in item.overrides) for item in spec.experiments]
    return not times or not all(times)


def end_of(time: TimeSpec) -> float:
    """Return the end of a run; `duration` counts even where its last step ends later."""
    return max(time.end, time.duration or 0.0)


def inside(place: str, times: tuple[float, ...] | None, spec: SceneSpec, end: float | None = None) -> Iterator[Problem]:
    """Times have to lie in the run, that of the scene or one that ends at ``end``."""
    end = end_of(spec.time) if end is None else end
    if times is not None and not (times[0] >= 0.0 and times[-1] <= end * (1.0 + 1e-9)):
        found = shown(list(times) if len(times) > 1 else times[0])
        yield Problem(place, "outside the simulated time", found, f"within [0, {end:g}] s")


def _objective(spec: SceneSpec) -> Iterator[Problem]:
    for k, item in enumerate(spec.objective):
        place = f"objective.{k}"
        if isinstance(item, objective.MarkersObjectiveSpec) and spec.recording is None and not spec.experiments:
            yield Problem(place, "needs a recording", None, "'recording' in the scene or in every experiment")
        if isinstance(item, objective.SmoothnessObjectiveSpec | objective.ProximityObjectiveSpec):
            signal = spec.signals.get(item.signal)
            if isinstance(signal, ConstantSignalSpec | SineSignalSpec):
                kinds = "type control, table or spline"
                yield Problem(f"{place}.signal", "the signal has no rows over time", f"type {signal.type}", kinds)
        if not _runs_itself(spec) or isinstance(item, objective.ObjectiveExtension):
            continue
        for key in ("times", "window"):
            yield from inside(f"{place}.{key}", getattr(item, key, None), spec)
        time = getattr(item, "time", None)
        if isinstance(time, float):
            yield from inside(f"{place}.time", (time,), spec)
