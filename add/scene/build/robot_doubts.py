"""Doubts about robots' files: what a file says about the motion and a scene does not take from it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from add.scene.build.built import BuiltScene
from add.scene.robots.model import Robot
from add.scene.spec.links import robot_of, trees

_SHOWN = 4


def robot_doubts(built: BuiltScene) -> Iterator[str]:
    """Yield a text for gravity, things that stand still, actuators and pairs of shapes of a file that are not used."""
    for name, body in trees(built.scene).items():
        if body.model is None:
            continue
        robot, at = robot_of(name, body), f"bodies.{name}.model"
        gravity = np.array(built.scene.gravity)
        if robot.gravity is not None and np.linalg.norm(robot.gravity - gravity) > 0.05 * np.linalg.norm(robot.gravity):
            yield (
                f"{at}: gravity is {_vector(robot.gravity)} there and {_vector(gravity)} m/s^2 in the scene, whose "
                "`gravity` counts; `up` turns a file"
            )
        still = [shape.name or shape.origin or shape.shape for shape in robot.static.collision]
        if still:
            yield f"{at}: {_listed(still)} of the file stand still and touch nothing: write them as `obstacles`"
        yield from _actuators(robot, at)
        if body.self_collision and robot.excluded_shapes:
            yield (
                f"{at}: the file keeps {len(robot.excluded_shapes)} pairs of shapes apart whose links may touch "
                "otherwise; here they touch"
            )


def _actuators(robot: Robot, at: str) -> Iterator[str]:
    if not robot.actuators:
        return
    acting = [item.name for item in robot.actuators if any(item.bias)]
    text = f"{at}: actuators of the file are not simulated: {_listed([item.name for item in robot.actuators])}; "
    if acting:
        text += f"{_listed(acting)} would act without control, too; "
    yield text + "write `drives`"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f"'{name}'" for name in names[:_SHOWN]) + more


def _vector(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{value + 0.0:.4g}" for value in values) + ")"
