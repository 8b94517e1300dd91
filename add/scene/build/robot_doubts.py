"""Doubts about robots' files: what a file says about the motion and a scene does not take from it."""

from collections.abc import Iterator

import numpy as np

from add.bodies import TreeBody
from add.scene.build.built import BuiltScene
from add.scene.build.link_contact import no_solid
from add.scene.build.mesh_contact import left_out
from add.scene.robots.model import Robot
from add.scene.spec.articulated import ArticulatedBodySpec
from add.scene.spec.links import robot_of, trees

_SHOWN = 4
#: A joint that starts farther from where it was said is told of [rad, m].
_MOVED = 1e-6


def robot_doubts(built: BuiltScene) -> Iterator[str]:
    """Yield a text for gravity, things that stand still, actuators and pairs of shapes of a file that are not used."""
    for name, body in trees(built.scene).items():
        yield from hull_doubts(robot_of(name, body), body, f"bodies.{name}")
        if body.model is None:
            continue
        robot, at = robot_of(name, body), f"bodies.{name}.model"
        if robot.doubts:
            more = f", and {len(robot.doubts) - _SHOWN} more; `add info` lists all" if robot.doubts[_SHOWN:] else ""
            yield f"{at}: left out, or read in one of several ways: {'; '.join(robot.doubts[:_SHOWN])}{more}"
        gravity = np.array(built.scene.gravity)
        if robot.gravity is not None and np.linalg.norm(robot.gravity - gravity) > 0.05 * np.linalg.norm(robot.gravity):
            yield (
                f"{at}: gravity is {_vector(robot.gravity)} there and {_vector(gravity)} m/s^2 in the scene, whose "
                "`gravity` counts; `up` turns a file"
            )
        still = [shape for shape in robot.static.collision if not body.static_shapes or shape.shape == "mesh"]
        if still:
            names = _listed([shape.name or shape.origin or shape.shape for shape in still])
            yield (
                f"{at}: {names} of the file stand still and touch nothing: write "
                + ("meshes as `obstacles`" if body.static_shapes else '"static_shapes": true, or `obstacles`')
            )
        yield from _actuators(robot, body, at)
        yield from _frictions(robot, built, at)
        kept = [pair for pair in robot.excluded_shapes if not (pair[0][0] and pair[1][0])]
        if body.static_shapes and kept:
            yield (
                f"{at}: the file keeps {len(kept)} pairs of shapes apart, one of which stands still and the other of "
                "a link that may touch otherwise; here they touch"
            )
    yield from _moved_starts(built)
    for name, body in trees(built.scene).items():
        shapes = {shape.shape for link in robot_of(name, body).links for shape in link.collision}
        if body.self_collision and body.spacing is None and shapes & {"box", "capsule"}:
            yield (
                f"bodies.{name}.self_collision: boxes meet by their corners and capsules by their ends; edges and axes "
                "that cross slip through each other without `spacing`"
            )
    for name, pairs in left_out(built.scene, built.model).items():
        if pairs:
            more = f" and {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else ""
            text = ", ".join(f"'{a}' and '{b}'" for a, b in pairs[:_SHOWN]) + more
            yield f"bodies.{name}.self_collision: these touch where they start and pass through each other: {text}"


def hull_doubts(robot: Robot, body: ArticulatedBodySpec, at: str) -> Iterator[str]:
    """Yield a text for each mesh that touches by its convex hull though the scene does not say so."""
    if body.meshes is not None:
        return
    for link in robot.links:
        for shape in link.collision:
            wrong = no_solid(shape) if shape.shape == "mesh" else None
            if wrong is not None:
                yield (
                    f"{at}.meshes: link '{link.name}' touches by the convex hull of its mesh "
                    f"'{shape.file or shape.name}': "
                    f'{wrong.message}, {wrong.found}; "hull" says that it is meant, "exact" refuses it'
                )


def _actuators(robot: Robot, body: ArticulatedBodySpec, at: str) -> Iterator[str]:
    acting = {item.actuator for item in body.drives.values()}
    idle = [item for item in robot.actuators if item.name not in acting]
    if not idle or body.actuators:
        return
    alone = [item.name for item in idle if any(item.bias)]
    text = f"{at}: actuators of the file are not simulated: {_listed([item.name for item in idle])}; "
    if alone:
        text += f"{_listed(alone)} would act without control, too; "
    yield text + 'write "actuators": true, or `drives` with an `actuator`'


def _frictions(robot: Robot, built: BuiltScene, at: str) -> Iterator[str]:
    """Yield a text where shapes that may touch have coefficients of friction that differ from the scene's."""
    shapes = [shape for link in (*robot.links, robot.static) for shape in link.collision if shape.friction is not None]
    found = sorted({float(shape.friction or 0.0) for shape in shapes})
    scene = built.scene.contact.friction
    if len(shapes) and built.model.system.deciding and any(abs(value - scene) > 1e-6 for value in found):
        values = ", ".join(f"{value:g}" for value in found[:_SHOWN]) + (" ..." if len(found) > _SHOWN else "")
        yield (
            f"{at}: shapes of the file have friction {values}, contact in the scene {scene:g}, which counts: "
            "`contact.friction`, `contact.pairs`"
        )


def _moved_starts(built: BuiltScene) -> Iterator[str]:
    """Yield a text for joints that start elsewhere than the scene says, since loops close there."""
    initial = built.model.initial
    if initial.assembly is None:
        return
    given, closed = initial.given(built.theta)[0], initial.evaluate(built.theta)[0]
    for tree in built.model.bodies:
        if isinstance(tree, TreeBody) and (tree.loops or tree.couplings):
            start = built.model.system.dofs[tree.name].start
            moved = []
            for first, joint in zip(tree.first, tree.joints, strict=True):
                part = slice(start + first, start + first + joint.n)
                if joint.n and np.abs(closed[part] - given[part]).max() > _MOVED:
                    moved.append(f"'{joint.name}' at {' '.join(f'{value:.6g}' for value in closed[part])}")
            if moved:
                more = f" and {len(moved) - _SHOWN} more" if len(moved) > _SHOWN else ""
                yield f"bodies.{tree.name}.loops: joints start where loops close: {', '.join(moved[:_SHOWN])}{more}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f"'{name}'" for name in names[:_SHOWN]) + more


def _vector(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{value + 0.0:.4g}" for value in values) + ")"
