"""Poses of a recording weighted by the covariances that its file gives."""

from __future__ import annotations

import numpy as np

from add.errors import InputError
from add.mocap import PoseRecording, Recording
from add.objectives import Tracking
from add.objectives.losses import Loss
from add.objectives.whitened import WhitenedTracking, whitening
from add.scene.read.recorded_starts import pose_of, take_of
from add.scene.spec.markers import DirectionMarkerSpec, RecordingSpec
from add.scene.spec.scene import SceneSpec
from add.typing import FloatArray


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
    directions = np.array([isinstance(spec.markers[name], DirectionMarkerSpec) for name in recording.names])
    matrices = _matrices(pose, source, recording, directions)
    count = int(matrices.any(axis=2).sum())
    return WhitenedTracking(
        Tracking(
            tracking.points,
            tracking.dt,
            tracking.times,
            np.nan_to_num(tracking.targets),
            np.ones(tracking.weights.shape),
            tracking.projector,
            clock=tracking.clock,
            clock_start=tracking.clock_start,
            last=tracking.last,
            placement=tracking.placement,
        ),
        matrices,
        1.0 / max(count, 1),
        loss,
    )


def _matrices(pose: PoseRecording, source: RecordingSpec, recording: Recording, directions: np.ndarray) -> FloatArray:
    """Return the whitening of every frame (n_frames, 6, 3 n_markers)."""
    own = pose.times - source.time_offset
    frames = np.abs(own[:, None] - recording.times).argmin(axis=0)
    assert pose.covariance is not None
    out = []
    for k, frame in enumerate(frames):
        arms = recording.positions[k] - np.where(directions, 0.0, 1.0)[:, None] * pose.position[frame]
        places = np.where(recording.valid[k], np.where(directions, 0.0, 1.0), np.nan)
        out.append(whitening(arms, places, pose.covariance[frame]))
    return np.array(out)
