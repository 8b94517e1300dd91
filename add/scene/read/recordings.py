"""Files of recordings as a scene asks for them: unit, axes, scale and registration."""

from __future__ import annotations

from dataclasses import replace

from add.mocap import PoseRecording, Recording, Take, read_take, register
from add.mocap.recording import require_names
from add.scene.spec.markers import RecordingSpec

__all__ = ["markers_of", "pose_of", "take_of"]


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
    return replace(pose, position=spec.scale * pose.position)
