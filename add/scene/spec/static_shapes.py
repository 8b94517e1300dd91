"""Shapes of robots' files that stand still, as obstacles of the scene."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from add.scene.robots.model import Robot, RobotGeometry
from add.scene.spec.articulated import ArticulatedBodySpec
from add.scene.spec.links import robot_of, trees
from add.scene.spec.obstacles import BoxObstacleSpec, CapsuleSpec, CylinderSpec, ObstacleSpec, PlaneSpec, SphereSpec
from add.scene.spec.scene import SceneSpec
from add.typing import FloatArray


def add_static_shapes(spec: SceneSpec) -> None:
    """Add the shapes of robots that ask for it to the scene's obstacles, as ``<body> <shape>``; meshes are left out.

    Raises
    ------
    InputError
        Of the robots' files.
    """
    for name, body in trees(spec).items():
        if not body.static_shapes:
            continue
        robot = robot_of(name, body)
        rotation, position = _base(body, robot)
        known = dict(spec.obstacles)
        for k, shape in enumerate(robot.static.collision):
            made = _obstacle(shape, rotation, position)
            if made is None:
                continue
            label = f"{name} {shape.name or shape.origin or 'shape'}".replace("/", " ").replace(".", " ")
            while label in known and known[label] != made:  # a scene that was read before has them already
                label = f"{label} {k}"
            known[label] = made
        spec.obstacles.clear()
        spec.obstacles.update(known)


def _base(body: ArticulatedBodySpec, robot: Robot) -> tuple[FloatArray, FloatArray]:
    """Return the pose of what the file says stands still: the base's, unless the robot moves freely."""
    if robot.joints and robot.joints[0].kind == "free":
        return np.eye(3), np.zeros(3)
    w, x, y, z = body.orientation or (1.0, 0.0, 0.0, 0.0)
    return Rotation.from_quat([x, y, z, w]).as_matrix(), np.array(body.position or (0.0, 0.0, 0.0))


def _obstacle(shape: RobotGeometry, rotation: FloatArray, position: FloatArray) -> ObstacleSpec | None:
    turn, place = rotation @ shape.rotation, (position + rotation @ shape.position).tolist()
    x, y, z, w = (float(number) for number in Rotation.from_matrix(turn).as_quat())
    at = {"center": tuple(place), "orientation": (w, x, y, z)}
    if shape.shape == "plane":
        return PlaneSpec(point=tuple(place), normal=tuple(turn[:, 2].tolist()))
    if shape.shape == "sphere":
        return SphereSpec(center=tuple(place), radius=shape.size[0])
    if shape.shape == "box":
        return BoxObstacleSpec(half_size=(shape.size[0], shape.size[1], shape.size[2]), **at)
    if shape.shape in ("capsule", "cylinder"):
        kind = CapsuleSpec if shape.shape == "capsule" else CylinderSpec
        return kind(radius=shape.size[0], half_length=shape.size[1], **at)
    return None
