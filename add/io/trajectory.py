"""The trajectory of a run in one HDF5 file: what `simulate` leaves and what viewers, plots and reports read."""

from add.io.trajectory_data import RunData, joined
from add.io.trajectory_file import FORMAT, ResumePoint, last_time, read_point, read_run, write_run
from add.io.trajectory_parts import (
    LINE_KINDS,
    BodyData,
    ContactData,
    GoalData,
    JointData,
    LineData,
    MassSpringData,
    ObstacleData,
    SolidData,
)

__all__ = [
    "FORMAT",
    "LINE_KINDS",
    "BodyData",
    "ContactData",
    "GoalData",
    "JointData",
    "LineData",
    "MassSpringData",
    "ObstacleData",
    "ResumePoint",
    "RunData",
    "SolidData",
    "joined",
    "last_time",
    "read_point",
    "read_run",
    "write_run",
]
