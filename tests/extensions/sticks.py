"""A format of robot files of its own: lines `name length mass` of sticks that hang from each other on hinges."""

from typing import ClassVar

import numpy as np

from add.errors import InputError
from add.extensions import Robot, RobotFormat
from add.scene.robots.model import WORLD, RobotJoint, RobotLink


class Sticks(RobotFormat):
    """The first line is `#sticks 1`; each further one a stick, below the one before."""

    name: ClassVar[str] = "chain of sticks"

    def recognises(self, path):
        """Return whether the first line says so."""
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline().startswith("#sticks 1")

    def read(self, path, base, turn, ignore):
        """Return thin sticks, on hinges about y."""
        links, joints, above, place = [], [], WORLD, np.zeros(3)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()[1:], start=2):
            try:
                name, length, mass = line.split()
                l, m = float(length), float(mass)
            except ValueError:
                raise InputError("not a stick", file=path, place=f"line {number}", found=line) from None
            links.append(RobotLink(name, m, np.array([0, 0, -0.5 * l]), m * l**2 / 12.0 * np.diag([1.0, 1.0, 0.1])))
            rotation = np.eye(3) if joints else turn
            joints.append(RobotJoint(f"to_{name}", "hinge", above, name, place, rotation, np.array([0.0, 1.0, 0.0])))
            above, place = name, np.array([0.0, 0.0, -l])
        return Robot(path.stem, tuple(links), tuple(joints))
