"""Files of recordings as a scene asks for them: unit, axes, scale and registration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from add.mocap import PoseRecording, Recording, Take, read_take, register
from add.mocap.recording import require_names
from add.objectives.placement import Placement
from add.scene.spec.markers import RecordingSpec
from add.typing import FloatArray

__all__ = ["markers_of", "placed_markers", "placed_pose", "pose_of", "take_of"]


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
    pose = pose_of(take, spec)
    if spec.place is None:
        return pose
    turned = Rotation.from_rotvec(spec.place.turn) * Rotation.from_quat(pose.quaternion[:, [1, 2, 3, 0]])
    return PoseRecording(
        pose.times, _placed(pose.position, spec), turned.as_quat()[:, [3, 0, 1, 2]], source=pose.source
    )


def _placed(points: FloatArray, spec: RecordingSpec) -> FloatArray:
    """Return points (..., 3) where the scene's own numbers of `place` put them."""
    place = spec.place
    if place is None:
        return points
    numbers = np.array([*place.turn, *place.move, place.scale])
    return Placement(np.arange(3), np.arange(3, 6), 6, np.array(place.about)).places(points, numbers)
