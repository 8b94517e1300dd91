"""Motion-capture recordings: markers, poses of bodies, angles of joints; readers, and the registration onto a model."""

from add.mocap.angles import AngleRecording
from add.mocap.body_csv import read_angle_csv, read_pose_csv
from add.mocap.csv import read_csv, write_csv
from add.mocap.poses import PoseRecording
from add.mocap.recording import Recording
from add.mocap.registration import RigidTransform, register, rigid_fit

__all__ = [
    "AngleRecording",
    "PoseRecording",
    "Recording",
    "RigidTransform",
    "read_angle_csv",
    "read_csv",
    "read_pose_csv",
    "register",
    "rigid_fit",
    "write_csv",
]
