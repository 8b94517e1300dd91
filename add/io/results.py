"""The trajectory of a run in one HDF5 file: what `simulate` leaves and what viewers, plots and reports read."""

from add.io._results_data import RunData
from add.io._results_file import FORMAT, last_time, read_run, write_run
from add.io._results_parts import (
    LINE_KINDS,
    MODELS,
    OBSTACLE_KINDS,
    BodyData,
    ContactData,
    GoalData,
    JointData,
    LineData,
    ObstacleData,
    SheetData,
    SolidData,
)

__all__ = [
    "FORMAT",
    "LINE_KINDS",
    "MODELS",
    "OBSTACLE_KINDS",
    "BodyData",
    "ContactData",
    "GoalData",
    "JointData",
    "LineData",
    "ObstacleData",
    "RunData",
    "SheetData",
    "SolidData",
    "last_time",
    "read_run",
    "write_run",
]
