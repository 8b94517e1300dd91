"""Recordings of a scene: read, registered, cropped, placed by numbers of parameters, weighted by covariances."""

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from add.equations.layout import ParameterLayout
from add.equations.points import NodePoints
from add.errors import InputError
from add.geometry import facets
from add.mocap import AngleRecording, PoseRecording, Recording
from add.mocap.clouds import read_clouds
from add.mocap.recording import require_names
from add.objectives import Loss, Tracking
from add.objectives.base import Placement
from add.objectives.beyond_markers import CloudTracking, WhitenedTracking, whitening
from add.objectives.regularisers import Cauchy, Huber, SoftL1
from add.scene.build.built import BuiltScene
from add.scene.build.selections import body_mesh
from add.scene.build.ties import SceneParts
from add.scene.read.paths import asked_for_by
from add.scene.read.recorded_starts import markers_of, pose_of, take_of
from add.scene.spec import markers
from add.scene.spec.bodies import SoftBodySpec
from add.scene.spec.scene import SceneSpec
from add.ties import unit_vector
from add.typing import FloatArray

_LOSSES: dict[str, type[Loss]] = {"huber": Huber, "soft-l1": SoftL1, "cauchy": Cauchy}
_RECORDING, _PLACED = "recording.place", ("turn", "move", "scale")


def placement_numbers(spec: SceneSpec, parts: SceneParts) -> None:
    """Add the numbers of placements and the clocks of clouds."""
    if spec.recording is not None and spec.recording.place is not None:
        parts.numbers_of(_RECORDING, spec.recording.place, *_PLACED)
    for k, item in enumerate(spec.objective):
        if isinstance(item, markers.CloudObjectiveSpec):
            parts.numbers_of(f"objective.{k}", item, "time_offset")
            if item.place is not None:
                parts.numbers_of(f"objective.{k}.place", item.place, *_PLACED)


def recording_placement(spec: SceneSpec, layout: ParameterLayout, names: tuple[str, ...]) -> Placement | None:
    """Return where the recording of some markers lies; None where the scene's `recording` has no `place`."""
    recording = spec.recording
    if recording is None or recording.place is None:
        return None
    scales = np.where([spec.is_direction(name) for name in names], 0.0, 1.0)
    moves = np.zeros(len(names)) if recording.displacement else scales
    return _placement(_RECORDING, recording.place, layout, moves, scales)


def placed_positions(spec: SceneSpec, layout: ParameterLayout, recording: Recording, theta: FloatArray) -> FloatArray:
    """Return the recorded positions (n_frames, n_markers, 3) where theta puts them [m]."""
    placement = recording_placement(spec, layout, recording.names)
    positions = np.asarray(recording.positions)
    return positions if placement is None else placement.places(positions, theta)


def _placement(
    path: str, place: markers.PlacementSpec, layout: ParameterLayout, moves: FloatArray, scales: FloatArray
) -> Placement:
    turn, move = (layout[f"{path}.{key}"].indices for key in ("turn", "move"))
    return Placement(turn, move, layout[f"{path}.scale"].start, np.array(place.about), moves, scales)


def whole_recording(scene: SceneSpec) -> Recording:
    """Return all frames of a scene's recording in its frame and clock, nothing cropped or masked."""
    assert scene.recording is not None
    return _read(scene.recording, scene).with_origin(scene.recording.time_offset)


def load_recording(scene: SceneSpec, place: str) -> Recording:
    """Return a scene's recording in its frame and clock, with the scene's markers only.

    Frames after the end of the simulation are dropped.

    Parameters
    ----------
    scene : SceneSpec
        With a recording.
    place : str
        JSON path of the section, for errors.

    Raises
    ------
    InputError
        If names do not match or nothing is left.
    """
    spec, end = scene.recording, scene.time.end
    assert spec is not None
    with asked_for_by(place):
        recording = whole_recording(scene)
        start, stop = spec.crop or (0.0, end)
        room = 1e-9 * max(1.0, abs(stop))
        times = recording.times
        if not ((times >= start - room) & (times <= stop + room)).any():
            raise InputError(
                f"{spec.file}: no frame "
                + ("lies in this window" if spec.crop else "is seen while the simulation runs"),
                place=f"{place}.crop" if spec.crop else f"{place}.time_offset",
                found=f"frames from {times[0]:g} to {times[-1]:g} s on the clock of the simulation, with a time_offset "
                f"of {spec.time_offset:g} s",
                expected=f"one within [{start:g}, {stop:g}] s",
            )
        recording = recording.crop(start - room, stop + room)
        for mask in spec.mask:
            name = mask.marker if spec.markers is None else spec.markers[mask.marker]
            recording = recording.mask([name], mask.from_, mask.to)
        if not recording.valid.any():
            raise InputError("no marker is seen while the simulation runs", file=spec.file)
        if spec.rest is not None and spec.displacement:
            recording = _after_rest(recording, scene)
    # A frame a rounding error before the start belongs to the start.
    return replace(recording, times=np.where(np.abs(recording.times) < room, 0.0, recording.times))


def _after_rest(recording: Recording, scene: SceneSpec) -> Recording:
    """Return a recording whose first frame has the mean places of its markers at rest, a step before t = 0."""
    spec, whole = scene.recording, whole_recording(scene)
    assert spec is not None and spec.rest is not None
    low, high = np.array(spec.rest) - spec.time_offset
    still = (whole.times >= low) & (whole.times <= high)
    seen = whole.valid[still]
    if not seen.any(axis=0).all():
        missing = [name for name, ok in zip(whole.names, seen.any(axis=0), strict=True) if not ok]
        raise InputError("these markers are not seen at rest", place="recording.rest", found=", ".join(missing))
    sums = np.where(seen[:, :, None], whole.positions[still], 0.0).sum(axis=0)
    # The run stands still before its start: wherever a fit moves the clock, this frame sees the start.
    time = np.array([-scene.time.dt])
    mean = (sums / seen.sum(axis=0)[:, None])[None]
    return replace(
        recording,
        times=np.concatenate([time, recording.times]),
        positions=np.concatenate([mean, recording.positions]),
        valid=np.concatenate([np.ones_like(seen[:1]), recording.valid]),
    )


def recording_doubts(spec: markers.RecordingSpec) -> tuple[str, ...]:
    """Return what is in doubt about a recording's file: its frames, and which axis points up where that matters."""
    take = take_of(spec)
    return take.doubts + ((take.frame,) if take.frame and spec.up is None and spec.register_ is None else ())


def _read(spec: markers.RecordingSpec, scene: SceneSpec) -> Recording:
    """Return the recording under the names of the scene's markers."""
    take = take_of(spec)
    if spec.markers is not None:
        return markers_of(take, spec).select(list(spec.markers)).rename(dict(spec.markers))
    if spec.angles is not None:
        return _angles(take.require_angles(), spec.angles)
    assert spec.pose is not None
    pose = pose_of(take, spec)
    recording = _on_body(pose, scene, spec.pose.body)
    if spec.pose.joint is None:
        return recording
    second = _on_body(_second_pose(pose, spec.pose.joint), scene, spec.pose.joint.body)
    return replace(
        recording,
        names=recording.names + second.names,
        positions=np.concatenate([recording.positions, second.positions], axis=1),
        valid=np.concatenate([recording.valid, second.valid], axis=1),
    )


def _angles(recording: AngleRecording, angles: dict[str, markers.AngleSourceSpec]) -> Recording:
    """Return directions exp(angle [axis]x) zero as positions on the unit sphere [-]."""
    require_names(list(angles), recording.names, source=recording.source)
    tips = []
    for name, item in angles.items():
        turn = _turns(recording.angles[:, recording.names.index(name)], item.axis)
        tips.append(turn.apply(unit_vector(np.array(item.zero))))
    seen = np.ones((recording.n_frames, len(angles)), dtype=bool)
    names = tuple(item.marker for item in angles.values())
    return Recording(names, recording.times, np.stack(tips, axis=1), seen, recording.source)


def _turns(angles: FloatArray, axis: tuple[float, float, float]) -> Rotation:
    return Rotation.from_rotvec(angles[:, None] * unit_vector(np.array(axis)))


def _on_body(pose: PoseRecording, scene: SceneSpec, body: str) -> Recording:
    """Return the trajectories of the points x + R X and directions R d of a scene's markers on a body."""
    points: dict[str, FloatArray] = {}
    origins = []
    for name, marker in scene.markers.items():
        if marker.body != body:
            continue
        if isinstance(marker, markers.PointMarkerSpec):
            points[name] = np.array(marker.point)
            origins.append(1.0)
        elif isinstance(marker, markers.DirectionMarkerSpec):
            points[name] = unit_vector(np.array(marker.direction))
            origins.append(0.0)
    recording = pose.markers(np.stack(list(points.values())), list(points))
    # A direction turns with the body, but stays where it is.
    shift = (np.array(origins) - 1.0)[:, None] * pose.position[:, None]
    return replace(recording, positions=recording.positions + shift)


def _second_pose(pose: PoseRecording, joint: markers.JointAngleSpec) -> PoseRecording:
    """Return the pose of the body behind a hinge: x + R (at_a - turn at_b), R turn."""
    if joint.angle not in pose.extra:
        raise InputError(
            "there is no such column", file=pose.source, found=repr(joint.angle), expected=", ".join(pose.extra)
        )
    turn = _turns(pose.extra[joint.angle], joint.axis)
    arm = np.array(joint.at_a) - turn.apply(np.array(joint.at_b))
    position = pose.position + np.einsum("fij,fj->fi", pose.rotations, arm)
    quaternion = (Rotation.from_matrix(pose.rotations) * turn).as_quat(scalar_first=True)
    return PoseRecording(pose.times, position, quaternion, source=pose.source)


def loss_of(item: markers._RobustSpec) -> Loss | None:
    """Return what a sample counts; None of its square."""
    return None if item.loss_scale is None else _LOSSES[item.loss](item.loss_scale)


def cloud_tracking(item: markers.CloudObjectiveSpec, built: BuiltScene, k: int) -> CloudTracking:
    """Return the objective of a point cloud, entry k of the scene's.

    Raises
    ------
    InputError
        If the body is not soft, the file is damaged, or no point counts.
    """
    place = f"objective.{k}"
    body = built.scene.bodies.get(item.body)
    if not isinstance(body, SoftBodySpec):
        raise InputError("a cloud needs the surface of a soft body", place=f"{place}.body", found=f"'{item.body}'")
    with asked_for_by(f"{place}.file"):
        clouds = read_clouds(item.file, rate=item.rate, scale=item.scale)
    time = built.scene.time
    clouds = clouds.shifted(item.time_offset).cropped(*(item.crop or (0.0, time.end))).cropped(0.0, time.end)
    placement, layout = None, built.model.system.parameters
    if item.place is not None:
        placement = _placement(f"{place}.place", item.place, layout, np.ones(1), np.ones(1))
        clouds = clouds.moved(lambda points: placement.places(points, built.theta))
    if item.box is not None:
        clouds = clouds.in_box(*item.box.corners)
    if item.colour is not None:
        if not clouds.colours:
            raise InputError("the points of this cloud have no colours", file=item.file, place=f"{place}.colour")
        clouds = clouds.of_colour(*item.colour.corners)
    if item.plane is not None:
        clouds = clouds.above(np.array(item.plane.point), unit_vector(np.array(item.plane.normal)))
    clouds = clouds.every(item.every)
    if placement is not None:
        clouds = clouds.moved(lambda points: placement.recorded(points, built.theta))
    if not clouds.n_points:
        raise InputError("no recorded point lies within the run and the filters", place=place, expected="at least one")
    outline = facets(body_mesh(body, f"bodies.{item.body}"))
    nodes = outline.nodes + built.model.layouts.rows[item.body].start // 3
    shape = (clouds.times.size, nodes.size)
    sampler = Tracking(
        built.model.lifted(NodePoints(nodes)),
        time.dt,
        clouds.times,
        np.zeros((*shape, 3)),
        np.ones(shape),
        np.eye(3),
        clock=layout[f"{place}.time_offset"].start,
        clock_start=item.time_offset,
        last=time.n_steps,
    )
    share = 1.0 / clouds.n_points
    return CloudTracking(sampler, outline.corners, outline.triangles, clouds.points, share, loss_of(item), placement)


def whitened(
    spec: SceneSpec, recording: Recording, tracking: Tracking, loss: Loss | None, place: str
) -> WhitenedTracking | None:
    """Return the objective of a recording of poses with covariances; None where frames count alike.

    Parameters
    ----------
    spec : SceneSpec
        With a recording.
    recording : as `load_recording` gives it
    tracking : of its markers
    loss : of the distance in standard deviations
    place : JSON path of the recording, for errors

    Raises
    ------
    InputError
        If displacements, or a second body behind a hinge, are to be weighted so.
    """
    source = spec.recording
    if source is None or source.pose is None or not source.pose.covariances:
        return None
    pose = pose_of(take_of(source), source)
    if pose.covariance is None:
        return None
    for key, asked in (("displacement", source.displacement), ("pose.joint", source.pose.joint is not None)):
        if asked:
            raise InputError(
                "covariances of poses weight positions of one body",
                place=f"{place}.{key}",
                expected='"covariances": false in `pose`, to count all frames alike',
            )
    directions = np.array([spec.is_direction(name) for name in recording.names])
    matrices = _matrices(pose, source, recording, directions)
    count = int(matrices.any(axis=2).sum())
    return WhitenedTracking(
        replace(tracking, targets=np.nan_to_num(tracking.targets), weights=np.ones(tracking.weights.shape)),
        matrices,
        1.0 / max(count, 1),
        loss,
    )


def _matrices(
    pose: PoseRecording, source: markers.RecordingSpec, recording: Recording, directions: np.ndarray
) -> FloatArray:
    """Return the whitening of every frame (n_frames, 6, 3 n_markers)."""
    times = pose.times - source.time_offset
    frames = np.abs(times[:, None] - recording.times).argmin(axis=0)
    assert pose.covariance is not None
    out = []
    for k, frame in enumerate(frames):
        arms = recording.positions[k] - np.where(directions, 0.0, 1.0)[:, None] * pose.position[frame]
        places = np.where(recording.valid[k], np.where(directions, 0.0, 1.0), np.nan)
        out.append(whitening(arms, places, pose.covariance[frame]))
    return np.array(out)
