"""Motion-capture recordings: markers, poses of bodies, angles of joints; readers, and the registration onto a model."""

from add.mocap.flights import first_touch, release_time
from add.mocap.formats import read_take
from add.mocap.formats.plain import read_angle_csv, read_csv, read_pose_csv
from add.mocap.recording import Recording, RigidTransform, register, rigid_fit
from add.mocap.take import AngleRecording, Event, PoseRecording, Signal, Take
from add.mocap.write import write_csv, write_pose_csv, write_signals, write_trc

__all__ = [
    "AngleRecording",
    "Event",
    "PoseRecording",
    "Recording",
    "RigidTransform",
    "Signal",
    "Take",
    "first_touch",
    "read_angle_csv",
    "read_csv",
    "read_pose_csv",
    "read_take",
    "register",
    "release_time",
    "rigid_fit",
    "write_csv",
    "write_pose_csv",
    "write_signals",
    "write_trc",
]
