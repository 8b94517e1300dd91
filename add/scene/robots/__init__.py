"""Robot files: URDF, SDF and MJCF read into one neutral description. Words of the formats end here."""

from add.scene.robots.model import (
    Robot,
    RobotActuator,
    RobotGeometry,
    RobotJoint,
    RobotLink,
    RobotLoop,
    RobotTendon,
)
from add.scene.robots.read import read_robot
