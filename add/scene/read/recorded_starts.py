"""Numbers of a scene that are taken from its recordings where they are not given: releases, and starts of flights.

An orientation has four numbers in the file and three degrees of freedom: its number is the rotation vector [rad]. A
direction has three and two: its number is the tilt [rad] away from the scene's own direction, about two axes across it.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from add.errors import InputError
from add.kernels.rotation import rotation_vector
from add.mocap import PoseRecording, Recording, Take, read_take, register, release_time, rigid_fit
from add.mocap.flights import flight_of_point, flight_spin
from add.mocap.recording import require_names
from add.objectives.base import Placement
from add.scene.read.paths import asked_for_by, get_value
from add.scene.spec.markers import PointMarkerSpec, RecordingSpec
from add.scene.spec.rigid import RigidBodySpec
from add.scene.spec.scene import SceneSpec
from add.ties import TiltedDirection, axes_across, tilt_between, unit_vector
from add.typing import FloatArray


def take_of(spec: RecordingSpec) -> Take:
    """Return what the file holds."""
    return read_take(spec.file, unit=spec.unit, up=spec.up, number_repeated=spec.number_repeated)


def markers_of(take: Take, spec: RecordingSpec) -> Recording:
    """Return the markers under the names of the file, in the scene's frame and true to scale."""
    recording = take.require_markers()
    recording = replace(recording, positions=spec.scale * recording.positions)
    require_names(list(spec.markers or ()), recording.names, source=recording.source)
    if spec.register_ is not None:
        first = float(recording.times[0])
        recording, _ = register(recording, spec.register_.markers, window=spec.register_.window or (first, first))
    return recording


def pose_of(take: Take, spec: RecordingSpec) -> PoseRecording:
    """Return the pose of the body that the scene names, true to scale."""
    assert spec.pose is not None
    pose = take.body(spec.pose.name)
    return pose.scaled(spec.scale)


def placed_markers(take: Take, spec: RecordingSpec) -> Recording:
    """Return `markers_of` where the scene's own numbers of `place` put them."""
    recording = markers_of(take, spec)
    return replace(recording, positions=_placed(np.asarray(recording.positions), spec))


def placed_pose(take: Take, spec: RecordingSpec) -> PoseRecording:
    """Return `pose_of` where the scene's own numbers of `place` put it."""
    pose, place = pose_of(take, spec), spec.place
    if place is None:
        return pose
    turn, about = Rotation.from_rotvec(place.turn).as_matrix(), np.array(place.about)
    return pose.scaled(place.scale).transformed(turn, about + place.move - place.scale * turn @ about)


def _placed(points: FloatArray, spec: RecordingSpec) -> FloatArray:
    """Return points (..., 3) where the scene's own numbers of `place` put them."""
    place = spec.place
    if place is None:
        return points
    numbers = np.array([*place.turn, *place.move, place.scale])
    return Placement(np.arange(3), np.arange(3, 6), 6, np.array(place.about)).places(points, numbers)


#: Digits that are written: far below what a recording knows.
_DIGITS = 9
_STATE = ("position", "orientation", "velocity", "angular_velocity")


def fill_in_starts(raw: dict[str, Any], spec: SceneSpec) -> SceneSpec:
    """Write what recordings say into a valid scene, where its numbers are not given, and return what it then says.

    The scene of a run holds the numbers, so that it says by itself what was simulated.

    Parameters
    ----------
    raw : the scene as JSON, changed in place
    spec : what it says

    Raises
    ------
    InputError
        Naming the place, if a recording cannot be read or does not show what is asked for.
    """
    before = spec
    for place, recording in before.recordings().items():
        section = get_value(raw, place)
        if recording.start is None or "time_offset" in section:
            continue
        with asked_for_by(f"{place}.start", of_scene=False):
            section["time_offset"] = found_release(recording)
            spec = SceneSpec.model_validate(raw)
    # Experiments have recordings and bodies of their own: each is filled in when it is read as a scene.
    for name, body in () if spec.experiments else before.bodies.items():
        lacking = [key for key in _STATE if key not in raw["bodies"][name]]
        if isinstance(body, RigidBodySpec) and body.start is not None and lacking:
            with asked_for_by(f"bodies.{name}.start", of_scene=False):
                state = _flight(spec, name, body)
                raw["bodies"][name] |= {key: state[key] for key in lacking if key in state}
                spec = SceneSpec.model_validate(raw)
    return spec


def found_release(spec: RecordingSpec) -> float:
    """Return the time at which the markers that the scene names are let go, as it is written into the scene [s]."""
    markers = take_of(spec).require_markers()
    names = list(spec.markers or ())
    require_names(names, markers.names, source=markers.source)
    return round(release_time(markers.select(names)), 6)


def _flight(spec: SceneSpec, name: str, body: RigidBodySpec) -> dict[str, list[float]]:
    """Return the state of a flying body at t = 0 as the scene writes it; of a body with one marker no rotation."""
    recording = spec.recording
    if recording is None:
        raise InputError("there is no recording to start from", expected="'recording' in the scene or the experiment")
    centre = _centre(body)
    take = take_of(recording)
    source, gravity = take.source, np.array(spec.gravity)
    if recording.pose is not None and recording.pose.body == name:
        pose = placed_pose(take, recording).with_origin(recording.time_offset)
    elif recording.markers is not None:
        seen = placed_markers(take, recording).with_origin(recording.time_offset)
        places = {
            file: np.array(marker.point)
            for file, scene in recording.markers.items()
            if isinstance(marker := spec.markers[scene], PointMarkerSpec) and marker.body == name
        }
        if len(places) < 3:
            return _flight_of_marker(seen, places, centre, gravity, body.start_window)
        pose = _pose(seen, places)
    else:
        raise InputError("the recording does not show this body", file=source, expected="its pose, or markers on it")
    path = pose.markers(centre[None], ["centre"]).positions[:, 0]
    flight, window = flight_of_point(pose.times, path, gravity, body.start_window, source)
    spin = flight_spin(pose.crop(*window))
    turn = PoseRecording(np.zeros(1), np.zeros((1, 3)), spin.quaternion[None]).rotations[0]
    return {
        "position": _written(flight.position - turn @ centre),
        "orientation": [float(x) for x in spin.quaternion],
        "velocity": _written(flight.velocity),
        "angular_velocity": _written(spin.angular_velocity),
    }


def _flight_of_marker(
    seen: Recording,
    places: dict[str, FloatArray],
    centre: FloatArray,
    gravity: FloatArray,
    window: tuple[float, float] | None,
) -> dict[str, list[float]]:
    """Return position and velocity of a body whose centre of mass is a marker."""
    name = next((file for file, place in places.items() if np.abs(place - centre).max() < 1e-9), None)
    if name is None:
        raise InputError(
            "too few markers for a pose", file=seen.source, found=f"{len(places)} points of the body",
            expected="3 or more that are not on a line, or one at its centre of mass",
        )  # fmt: skip
    column = seen.names.index(name)
    frames = seen.valid[:, column]
    flight, _ = flight_of_point(seen.times[frames], seen.positions[frames, column], gravity, window, seen.source)
    return {"position": _written(flight.position - centre), "velocity": _written(flight.velocity)}


def _pose(seen: Recording, places: dict[str, FloatArray]) -> PoseRecording:
    """Return the pose of a body from its markers, in the frames in which three of them are seen."""
    columns = [seen.names.index(name) for name in places]
    points = np.stack(list(places.values()))
    times, positions, turns = [], [], []
    for frame in range(seen.n_frames):
        valid = seen.valid[frame, columns]
        if valid.sum() >= 3 and seen.times[frame] >= -1e-9:
            fit = rigid_fit(points, np.where(valid[:, None], seen.positions[frame, columns], 0.0), valid.astype(float))
            times.append(seen.times[frame])
            positions.append(fit.t)
            turns.append(fit.R)
    if not times:
        raise InputError("no frame shows three markers of the body after t = 0", file=seen.source)
    identity = np.tile([1.0, 0.0, 0.0, 0.0], (len(times), 1))
    still = PoseRecording(np.array(times), np.array(positions), identity, source=seen.source)
    return still.turned(np.array(turns))


def _centre(body: RigidBodySpec) -> FloatArray:
    """Return the centre of mass in the body's frame [m]; that of a shape is its origin."""
    if body.center_of_mass is not None:
        return np.array(body.center_of_mass)
    if body.geometry is not None and getattr(body.geometry, "file", None) is not None:
        raise InputError("the centre of mass of a mesh is not known here", expected="'center_of_mass' of the body")
    return np.zeros(3)


def _written(values: FloatArray) -> list[float]:
    return [round(float(value), _DIGITS) for value in values]


def is_orientation(path: str) -> bool:
    """Whether a path names the orientation of a body or an obstacle, or of a joint or a loop within a body."""
    keys = path.split(".")
    return keys[0] in ("bodies", "obstacles") and keys[-1] == "orientation"


def is_direction(path: str) -> bool:
    """Whether a path names a direction that may change: a joint's axis, a marker's direction, the normal of a plane."""
    keys = path.split(".")
    return (keys[0], *keys[2:]) in {("couplings", "axis"), ("markers", "direction"), ("obstacles", "normal")}


def numbers_of(path: str, value: Any, scene_value: Any) -> FloatArray:
    """Return the numbers, flat, that stand for a value at a path.

    Parameters
    ----------
    path : str
    value : as in a scene file
    scene_value : what the scene has at this path; a direction counts from there
    """
    flat = np.ravel(np.asarray(value, dtype=float))
    if is_orientation(path):
        return np.asarray(rotation_vector(flat), dtype=float)
    if is_direction(path):
        start = unit_vector(np.array(scene_value))
        return np.zeros(2) if value == scene_value else tilt_between(start, unit_vector(flat))
    return flat


def file_value(path: str, numbers: FloatArray, scene_value: Any) -> Any:
    """Return the value, as in a scene file, that numbers stand for; see `numbers_of`."""
    if is_orientation(path):
        return Rotation.from_rotvec(numbers).as_quat(scalar_first=True).tolist()
    if is_direction(path):
        start = unit_vector(np.array(scene_value))
        row = np.concatenate([numbers, start, axes_across(start).ravel()])
        return TiltedDirection().value(row[None])[0].tolist()
    return np.reshape(numbers, -1 if isinstance(scene_value, dict) else np.shape(scene_value)).tolist()
