"""Doubts about the files of a scene: what recordings and robots say that it does not take."""

from collections.abc import Iterator
from itertools import permutations, product
from pathlib import Path

import numpy as np

from add.bodies import TreeBody
from add.equations.kinematics import Kinematics
from add.errors import InputError
from add.mocap import Recording
from add.mocap.clouds import read_clouds
from add.mocap.suspects import spikes, suspects
from add.scene.build.built import BuiltScene, size_of
from add.scene.build.default_contact import read_by_contact
from add.scene.build.inputs import range_of
from add.scene.build.link_contact import no_solid
from add.scene.build.mesh_contact import left_out
from add.scene.build.recordings import load_recording, placed_positions, recording_doubts, whole_recording
from add.scene.read.recorded_starts import found_release
from add.scene.robots.model import Robot
from add.scene.spec.articulated import ArticulatedBodySpec
from add.scene.spec.links import robot_of, trees
from add.scene.spec.markers import CloudObjectiveSpec, RecordingSpec
from add.summary import as_point, counted, few
from add.typing import FloatArray

#: A marker this many sizes of its body away from where it should be is in doubt; first seen late, it may have been
#: driven far.
FAR, FAR_LATE = 2.0, 100.0
#: Share of a run after which a first frame is late, and what stands for the size of a point [m].
LATE, POINT = 0.05, 0.1
#: Share of the frames of a take that lie within the run, below which that is in doubt.
FEWEST_INSIDE = 0.5
#: What markers are off from where the scene starts them, beside their extent, from which on other names and axes are
#: tried, and the part that must be left then.
OFF, EXPLAINED = 0.1, 0.2


def doubts_of_recording(built: BuiltScene) -> Iterator[str]:
    """Yield doubts of the file, and markers that are recorded far from where the scene puts them."""
    spec = built.scene.recording
    if spec is None:
        return
    try:
        recording = load_recording(built.scene, "recording")
        yield from (f"recording.file: {spec.file}: {text}" for text in recording_doubts(spec))
        yield from _file(built, recording)
        yield from _other_release(built, spec)
    except InputError as error:  # a run goes without it; what needs it stops
        yield f"the recording cannot be read: {str(error).splitlines()[0]}"
        return
    if any(path.startswith("recording.place") for path in built.scene.parameter_paths):
        return
    starts = _starts(built)
    positions = placed_positions(built.scene, built.model.system.parameters, recording, built.theta)
    yield from _other_names(built, recording, positions, starts)
    far = []
    for k, name in enumerate(recording.names):
        marker = built.scene.markers[name]
        frames = np.flatnonzero(recording.valid[:, k])
        if built.scene.is_direction(name) or not frames.size or _searched(built, marker.body):
            continue
        path, times = positions[frames, k], recording.times[frames]
        away, allowed, scaled = _apart(built, marker.body, path, times, *starts[name])
        if away > allowed:
            far.append((away, name, scaled <= allowed))
    if far:
        yield _far(spec, max(far), len(far))


def _other_release(built: BuiltScene, spec: RecordingSpec) -> Iterator[str]:
    """Yield that a release is not looked for, where the offset that is given is neither that nor a fit's start."""
    if spec.start is None or "recording.time_offset" in built.scene.parameter_paths:
        return
    try:
        release = found_release(spec)
    except InputError as error:
        found = f"which is not found: {str(error).splitlines()[0]}"
    else:
        if release == spec.time_offset:
            return
        found = f"which is at {release:g} s"
    yield (
        f"recording.start: nothing reads it: time_offset, {spec.time_offset:g} s, counts in place of the release, "
        f"{found}; leave one of both out"
    )


def _searched(built: BuiltScene, body: str) -> bool:
    """Whether the place of a body is a parameter: where the scene puts it then says little."""
    return any(path.startswith(f"bodies.{body}.position") for path in built.scene.parameter_paths)


def _apart(
    built: BuiltScene, body: str, path: FloatArray, times: FloatArray, place: FloatArray, speed: float
) -> tuple[float, float, float]:
    """Return how far a recorded path (n, 3) is from a marker's start, how far it may be, and how far if in mm [m]."""
    time, gravity = built.scene.time, float(np.linalg.norm(built.scene.gravity))
    size = size_of(built, body) or max(float(np.ptp(path, axis=0).max()), POINT)
    recording = built.scene.recording
    if recording is not None and recording.displacement:
        away, lasts, share = float(np.linalg.norm(path - path[0], axis=1).max()), float(times[-1]), FAR_LATE
        return away, share * size + speed * lasts + 0.5 * gravity * lasts**2, 1e-3 * away
    t = abs(float(times[0]))
    share = FAR if t <= LATE * time.end else FAR_LATE
    allowed = share * size + speed * t + 0.5 * gravity * t * t
    return float(np.linalg.norm(path[0] - place)), allowed, float(np.linalg.norm(1e-3 * path[0] - place))


def _far(spec: RecordingSpec, worst: tuple[float, str, bool], n: int) -> str:
    away, name, millimetres = worst
    if spec.displacement:
        text = f"recording: marker '{name}' moves by {away:.3g} m, a hundred times the size of its body"
    else:
        text = f"recording: marker '{name}' is first seen {away:.3g} m from where the scene starts it"
    text += "; are these millimetres? 'scale' takes 0.001 then" if millimetres else ""
    return text + (f" ({n - 1} more such {'marker' if n == 2 else 'markers'})" if n > 1 else "")


def _starts(built: BuiltScene) -> dict[str, tuple[FloatArray, float]]:
    """Return the place [m] and speed [m/s] with which each marker of the scene starts."""
    q, v = built.model.initial.evaluate(built.theta)
    points, rates = built.markers.points(Kinematics(q, v, np.zeros_like(v), t=0.0, step=0), built.theta)
    return {
        name: (point, float(np.linalg.norm(rate)))
        for name, point, rate in zip(built.marker_names, points, rates, strict=True)
    }


def _file(built: BuiltScene, recording: Recording) -> Iterator[str]:
    """Frames beyond the run, spikes, jumps and exchanges of markers."""
    spec, end = built.scene.recording, built.scene.time.end
    assert spec is not None
    at = f"recording.file: {spec.file}"
    whole = whole_recording(built.scene)
    times = whole.times
    if spec.crop is None:
        yield from _outside(at, times, end, "recording.crop")
    for k, mask in enumerate(spec.mask):
        if not ((times >= mask.from_) & (times <= mask.to)).any():
            yield (
                f"recording.mask.{k}: no frame lies between {mask.from_:g} and {mask.to:g} s: frames are from "
                f"{times[0]:g} to {times[-1]:g} s on the file's clock"
            )
    if spec.markers is not None:
        unseen = [f"'{name}'" for k, name in enumerate(whole.names) if not whole.valid[:, k].any()]
        if unseen:
            yield f"recording.markers: {', '.join(unseen)}: the file names them and no frame has them"
        within = whole.valid[(times >= -1e-9) & (times <= end + 1e-9)].any(axis=1)
        if not unseen and within.sum() < FEWEST_INSIDE * within.size:
            yield f"{at}: {within.sum()} of {within.size} frames of the run have a marker, the others are empty"
        of_file = {mine: theirs for theirs, mine in spec.markers.items()}
        yield from (f"{at}: {text}" for text in suspects(recording if spec.mask else whole, of_file))
    elif spec.pose is not None:  # frames in which a body was not seen are left out: times may jump
        yield from (f"{at}: {text}" for text in spikes(recording if spec.mask else whole))


def _outside(at: str, times: FloatArray, end: float, crop: str) -> Iterator[str]:
    """Frames of which fewer than half lie within the run, on its clock."""
    inside = int(((times >= -1e-9) & (times <= end + 1e-9)).sum())
    if inside >= FEWEST_INSIDE * times.size:
        return
    shorter = int(((1e-3 * times >= -1e-9) & (1e-3 * times <= end + 1e-9)).sum())
    milliseconds = shorter > FEWEST_INSIDE * times.size and inside <= 2 < times.size
    yield (
        f"{at}: {inside} of {times.size} frames lie within the run, 0 to {end:g} s; they are from {times[0]:g} to "
        f"{times[-1]:g} s on its clock"
        + ("; are these milliseconds? The columns of times are in s" if milliseconds else
           f": a longer time.duration counts more of them, {crop} says which are meant")
    )  # fmt: skip


def doubts_of_clouds(built: BuiltScene) -> Iterator[str]:
    """Yield a text for each point cloud whose rate nothing reads, or of which few frames lie within the run."""
    for k, item in enumerate(built.scene.objective):
        if isinstance(item, CloudObjectiveSpec) and item.rate is not None and not Path(item.file).is_dir():
            yield f"objective.{k}.rate: nothing reads this: the file has its own times"
        if isinstance(item, CloudObjectiveSpec) and item.crop is None:
            try:
                times = read_clouds(item.file, rate=item.rate).times - item.time_offset
            except InputError as error:
                yield f"objective.{k}: the cloud cannot be read: {str(error).splitlines()[0]}"
                continue
            yield from _outside(f"objective.{k}.file: {item.file}", times, built.scene.time.end, f"objective.{k}.crop")


def _other_names(
    built: BuiltScene, recording: Recording, positions: FloatArray, starts: dict[str, tuple[FloatArray, float]]
) -> Iterator[str]:
    """Markers that lie where the scene starts them once names are exchanged, or axes mirrored or turned.

    Two markers or more (for axes three) are compared with their places at the start, after the means are taken away:
    where a body is, may be a parameter. Positions of a body whose orientation is one say nothing.
    """
    spec, scene = built.scene.recording, built.scene
    assert spec is not None
    early = recording.times <= LATE * scene.time.end
    known = [
        k for k, name in enumerate(recording.names)
        if not scene.is_direction(name)
        and f"bodies.{scene.markers[name].body}.orientation" not in scene.parameter_paths
        and (recording.valid[:, k] & early).any()
    ]  # fmt: skip
    if len(known) < 2 or spec.displacement or spec.markers is None:
        return
    names = [recording.names[k] for k in known]
    first = [int(np.flatnonzero(recording.valid[:, k] & early)[0]) for k in known]
    seen = np.array([positions[frame, k] for frame, k in zip(first, known, strict=True)])
    meant = np.array([starts[name][0] for name in names])
    seen, meant = seen - seen.mean(axis=0), meant - meant.mean(axis=0)
    size, off = _rms(meant), _rms(seen - meant)
    if off <= OFF * size or not size:
        return
    from scipy.optimize import linear_sum_assignment

    apart = np.linalg.norm(seen[:, None] - meant, axis=2) ** 2
    _, order = linear_sum_assignment(apart)
    exchanged = _rms(seen - meant[order])
    if exchanged < EXPLAINED * off:
        pairs = [f"'{names[k]}' lies where '{names[l]}' should be" for k, l in enumerate(order) if k != l]
        yield (
            f"recording.markers: are names exchanged? At the start {', '.join(pairs[:4])}: the markers are then "
            f"{exchanged:.2g} m off, and {off:.2g} m as they are named"
        )
        return
    if len(known) < 3:
        return
    best, turned = min(
        ((_rms(seen @ turn.T - meant), k) for k, turn in enumerate(_TURNS)),
    )
    if best < EXPLAINED * off:
        turn = _TURNS[turned]
        axes = ", ".join("-+"[int(row.sum() > 0)] + "xyz"[int(np.abs(row).argmax())] for row in turn)
        flat = np.linalg.matrix_rank(meant, tol=1e-3 * size) < 3
        what = "turned or mirrored" if flat else "turned" if np.linalg.det(turn) > 0 else "mirrored"
        yield (
            f"recording: are its axes {what}? With ({axes}) in the place of (x, y, z) the markers start {best:.2g} m "
            f"off, and {off:.2g} m as they are; `up` and `register` turn a recording, its file alone can mirror it"
        )


def _rms(rows: FloatArray) -> float:
    return float(np.sqrt((rows**2).sum(axis=1).mean()))


#: Every way to exchange axes and turn them round (48, 3, 3).
_TURNS = np.array(
    [np.diag(sign)[list(order)] for order in permutations(range(3)) for sign in product((1.0, -1.0), repeat=3)]
)


_SHOWN = 4
#: A joint that starts farther from where it was said is told of [rad, m].
_MOVED = 1e-6


def servo_doubts(built: BuiltScene) -> Iterator[str]:
    """Yield servos that are sent beyond the stops of their joints, such as by degrees."""
    known = {entry.name: entry.indices.ravel() for entry in built.numbers.layout.entries}
    for name, body in trees(built.scene).items():
        for key, drive in body.drives.items():
            if drive.type != "position" or drive.joint is None:
                continue
            at = f"bodies.{name}.joints.{drive.joint}"
            stops = {end: known[f"{at}.{end}"] for end in ("lower", "upper") if f"{at}.{end}" in known}
            sent = dict(zip(("lower", "upper"), range_of(built.scene, drive.input), strict=True))
            for end, index in stops.items():
                stop = float(built.numbers.values[index[0]])
                beyond = stop - sent["lower"] if end == "lower" else sent["upper"] - stop
                if beyond > _MOVED:
                    yield (
                        f"bodies.{name}.drives.{key}.input: asks '{drive.joint}' for {sent[end]:.4g}, beyond its {end} "
                        f"stop at {stop:.4g} (rad, m)"
                    )


def robot_doubts(built: BuiltScene) -> Iterator[str]:
    """Yield a text for gravity, things that stand still, actuators and pairs of shapes of a file that are not used."""
    for name, body in trees(built.scene).items():
        yield from hull_doubts(robot_of(name, body), body, f"bodies.{name}")
        if body.model is None:
            continue
        robot, at = robot_of(name, body), f"bodies.{name}.model"
        if robot.doubts:
            more = f", and {len(robot.doubts) - _SHOWN} more; `add info` lists all" if robot.doubts[_SHOWN:] else ""
            yield f"{at}: left out, or read in one of several ways: {'; '.join(robot.doubts[:_SHOWN])}{more}"
        gravity = np.array(built.scene.gravity)
        if robot.gravity is not None and np.linalg.norm(robot.gravity - gravity) > 0.05 * np.linalg.norm(robot.gravity):
            yield (
                f"{at}: gravity is {as_point(robot.gravity)} there and {as_point(gravity)} m/s^2 in the scene, whose "
                "`gravity` counts; `up` turns a file"
            )
        still = [shape for shape in robot.static.collision if not body.static_shapes or shape.shape == "mesh"]
        if still:
            names = _listed([shape.name or shape.origin or shape.shape for shape in still])
            only_meshes = all(shape.shape == "mesh" for shape in still)
            yield (
                f"{at}: {names} of the file {'stand' if still[1:] else 'stands'} still and "
                f"{'touch' if still[1:] else 'touches'} nothing: write "
                + ("meshes as `obstacles`" if only_meshes else '"static_shapes": true, or `obstacles`')
            )
        yield from _actuators(robot, body, at)
        yield from _frictions(robot, built, at)
        kept = [pair for pair in robot.excluded_shapes if not (pair[0][0] and pair[1][0])]
        if body.static_shapes and kept:
            yield (
                f"{at}: the file keeps {counted(len(kept), 'pair')} of shapes apart, one shape of which stands still "
                "and the other is of a link that may touch otherwise; here they touch"
            )
    yield from _moved_starts(built)
    for name, body in trees(built.scene).items():
        shapes = {shape.shape for link in robot_of(name, body).links for shape in link.collision}
        if body.self_collision and body.spacing is None and shapes & {"box", "capsule"}:
            yield (
                f"bodies.{name}.self_collision: boxes meet by their corners and capsules by their ends; edges and axes "
                "that cross slip through each other without `spacing`"
            )
    for name, pairs in left_out(built.scene, built.model).items():
        if pairs:
            text = few([f"'{a}' and '{b}'" for a, b in pairs], _SHOWN)
            yield f"bodies.{name}.self_collision: these touch where they start and pass through each other: {text}"


def hull_doubts(robot: Robot, body: ArticulatedBodySpec, at: str) -> Iterator[str]:
    """Yield a text for each mesh that touches by its convex hull though the scene does not say so."""
    if body.meshes is not None:
        return
    for link in robot.links:
        for shape in link.collision:
            wrong = no_solid(shape) if shape.shape == "mesh" else None
            if wrong is not None:
                yield (
                    f"{at}.meshes: link '{link.name}' touches by the convex hull of its mesh "
                    f"'{shape.file or shape.name}': "
                    f'{wrong.message}, {wrong.found}; "hull" says that it is meant, "exact" refuses it'
                )


def _actuators(robot: Robot, body: ArticulatedBodySpec, at: str) -> Iterator[str]:
    acting = {item.actuator for item in body.drives.values()}
    idle = [item for item in robot.actuators if item.name not in acting]
    if not idle or body.actuators:
        return
    alone = [item.name for item in idle if any(item.bias)]
    text = f"{at}: actuators of the file are not simulated: {_listed([item.name for item in idle])}; "
    if alone:
        text += f"{_listed(alone)} would act without control, too; "
    yield text + 'write "actuators": true, or `drives` with an `actuator`'


def _frictions(robot: Robot, built: BuiltScene, at: str) -> Iterator[str]:
    """Yield a text where shapes that may touch have coefficients of friction that differ from the scene's."""
    shapes = [shape for link in (*robot.links, robot.static) for shape in link.collision if shape.friction is not None]
    mu = sorted({float(shape.friction or 0.0) for shape in shapes})
    scene = built.scene.contact.friction
    if len(shapes) and read_by_contact(built) and any(abs(value - scene) > 1e-6 for value in mu):
        values = ", ".join(f"{value:g}" for value in mu[:_SHOWN]) + (" ..." if len(mu) > _SHOWN else "")
        yield (
            f"{at}: shapes of the file have friction {values}, contact in the scene {scene:g}, which counts: "
            "`contact.friction`, `contact.pairs`"
        )


def _moved_starts(built: BuiltScene) -> Iterator[str]:
    """Yield a text for joints that start elsewhere than the scene says, since loops close there."""
    initial = built.model.initial
    if initial.assembly is None:
        return
    given, closed = initial.given(built.theta)[0], initial.evaluate(built.theta)[0]
    for tree in built.model.bodies:
        if isinstance(tree, TreeBody) and (tree.loops or tree.couplings):
            start = built.model.system.dofs[tree.name].start
            moved = []
            for first, joint in zip(tree.first, tree.joints, strict=True):
                part = slice(start + first, start + first + joint.n)
                if joint.n and np.abs(closed[part] - given[part]).max() > _MOVED:
                    moved.append(f"'{joint.name}' at {' '.join(f'{value:.6g}' for value in closed[part])}")
            if moved:
                yield f"bodies.{tree.name}.loops: joints start where loops close: {few(moved, _SHOWN)}"


def _listed(names: list[str]) -> str:
    return few([f"'{name}'" for name in names], _SHOWN)
