"""Robot files: URDF and MJCF read into one neutral description. Words of the formats end here."""

from add.scene.robots.model import (
    Robot,
    RobotActuator,
    RobotGeometry,
    RobotJoint,
    RobotLink,
    RobotLoop,
    RobotTendon,
)
from add.scene.robots.read import read_mjcf, read_robot, read_urdf

__all__ = [
    "Robot",
    "RobotActuator",
    "RobotGeometry",
    "RobotJoint",
    "RobotLink",
    "RobotLoop",
    "RobotTendon",
    "read_mjcf",
    "read_robot",
    "read_urdf",
]
