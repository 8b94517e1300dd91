"""A robot in words, as `add info robot.urdf` prints it, and as JSON."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from add.errors import InputError
from add.scene import Scene
from add.scene.build.file_doubts import hull_doubts
from add.scene.read.reader import check_scene
from add.scene.robots import Robot, RobotJoint, RobotLink
from add.scene.robots.model import WORLD, RobotTendon
from add.scene.spec.links import robot_of, trees

_UNITS = {"hinge": "rad", "slide": "m", "ball": "rad", "free": ""}
_TORQUES = {"hinge": "N m", "slide": "N", "ball": "N m", "free": ""}


def robot_lines(robot: Robot, file: str) -> list[str]:
    """Return the tree with masses, limits and laws of joints, what else there is, and what is ignored."""
    free = any(joint.kind == "free" for joint in robot.joints)
    lines = [
        f"{file}: robot '{robot.name}', {'free' if free else 'fixed'} base: {_count(len(robot.links), 'link')}, "
        f"{_count(robot.n, 'coordinate')}, {robot.mass:.6g} kg"
    ]
    depth = {WORLD: 0}
    for link, joint in zip(robot.links, robot.joints, strict=True):
        depth[link.name] = depth[joint.parent] + 1
        lines.append(f"{'  ' * depth[link.name]}{link.name}: {_mass(link)}; {_joint(joint)}{_shapes(link)}")
    if robot.static.collision or robot.static.visual:
        lines.append(f"  stands still{_shapes(robot.static)}")
    links = {link.name for link in robot.links}
    places = [f"{name} on {place[0] or 'the world'}" for name, place in robot.frames.items() if name not in links]
    parts: list[tuple[str, list[str]]] = [
        ("places", places),
        ("actuators", [f"{item.name} ({item.transmission} {item.target})" for item in robot.actuators]),
        ("tendons", [f"{item.name} ({_course(item)})" for item in robot.tendons]),
        ("loops", [f"{item.name} ({item.kind})" for item in robot.loops]),
        ("links that do not touch", [f"{a or 'world'} - {b or 'world'}" for a, b in robot.excluded]),
    ]
    for title, items in parts:
        if items:
            lines.append(f"  {title}: {_some(items)}")
    if robot.excluded_shapes:
        lines.append(f"  further pairs of shapes that do not touch: {len(robot.excluded_shapes)}")
    if robot.gravity is not None:
        lines.append(f"  gravity {_vector(robot.gravity)} m/s^2")
    if robot.fluid is not None:
        wind = f", wind {_vector(robot.fluid.wind)} m/s" if robot.fluid.wind.any() else ""
        lines.append(f"  a fluid of {robot.fluid.density:g} kg/m^3, {robot.fluid.viscosity:g} Pa s{wind}")
    lines += [f"  {'doubt' if text in robot.doubts else 'ignored'}: {text}" for text in robot.ignored]
    return lines


def robot_json(robot: Robot) -> dict[str, Any]:
    """Return the same as numbers; infinite limits are null."""
    return {
        "name": robot.name,
        "mass": robot.mass,
        "coordinates": robot.n,
        "links": [
            {
                "name": link.name,
                "mass": link.mass,
                "centre": link.centre.tolist(),
                "inertia": link.inertia.tolist(),
                "collision": len(link.collision),
                "visual": len(link.visual),
            }
            for link in robot.links
        ],
        "joints": [
            {
                "name": joint.name,
                "kind": joint.kind,
                "parent": joint.parent,
                "child": joint.child,
                "position": joint.position.tolist(),
                "rotation": joint.rotation.tolist(),
                "axis": joint.axis.tolist(),
                "limits": [_finite(joint.lower), _finite(joint.upper)],
                "damping": joint.damping,
                "dry_friction": joint.dry_friction,
                "stiffness": joint.stiffness,
                "reference": joint.reference,
                "armature": joint.armature,
                "effort": _finite(joint.effort),
                "velocity": _finite(joint.velocity),
                "mimic": joint.mimic,
                "start": joint.start,
            }
            for joint in robot.joints
        ],
        "places": {
            name: {"link": link, "position": position.tolist(), "rotation": rotation.tolist()}
            for name, (link, position, rotation) in robot.frames.items()
        },
        "actuators": [item.name for item in robot.actuators],
        "tendons": [item.name for item in robot.tendons],
        "loops": [item.name for item in robot.loops],
        "excluded": [list(pair) for pair in robot.excluded],
        "ignored": list(robot.ignored),
        "doubts": list(robot.doubts),
    }


def robot_problems(robot: Robot, file: Path, options: Mapping[str, Any]) -> list[str]:
    """Build a scene that holds nothing but the robot; return what is doubtful about it, not about a scene.

    Parameters
    ----------
    robot : what was read with these options
    file : of the robot
    options : keys of an articulated body, such as `base`

    Raises
    ------
    InputError
        If no such scene builds, though the file can be read.
    """
    body = {"type": "articulated", "model": str(file)} | {key: value for key, value in options.items() if value}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"robot": body}}
    try:
        scene = check_scene(raw, None, Scene, {"robot": robot})
        scene.build()
    except InputError as error:
        error.message = f"the file is read, but no scene with the robot builds: {error.message}"
        raise
    return [
        text
        for name, tree in trees(scene).items()
        for text in hull_doubts(robot_of(name, tree), tree, f"bodies.{name}")
    ]


def _course(tendon: RobotTendon) -> str:
    if not tendon.segments:
        return ", ".join(name for name, _ in tendon.joints)
    around = sum(bool(part.around) for part in tendon.segments)
    return f"{_count(len(tendon.segments), 'segment')}" + (f", {around} around geoms" if around else "")


def _mass(link: RobotLink) -> str:
    return f"{link.mass:.6g} kg at {_vector(link.centre)}" if link.mass else "no mass"


def _joint(joint: RobotJoint) -> str:
    text = f"{joint.kind} {joint.name}"
    if joint.kind in ("hinge", "slide"):
        text += f" about {_vector(joint.axis)}" if joint.kind == "hinge" else f" along {_vector(joint.axis)}"
    unit, torque = _UNITS[joint.kind], _TORQUES[joint.kind]
    if math.isfinite(joint.lower) or math.isfinite(joint.upper):
        lower = f"{joint.lower:.6g}" if math.isfinite(joint.lower) else ""
        text += f", {lower}..{joint.upper:.6g} {unit}"
    for value, word, letters in (
        (joint.damping, "damping", f"{torque} s/{unit}"),
        (joint.dry_friction, "dry friction", torque),
        (joint.stiffness, "spring", f"{torque}/{unit}"),
        (joint.armature, "armature", "kg" if joint.kind == "slide" else "kg m^2"),
    ):
        if value:
            text += f", {word} {value:.6g} {letters}"
    if joint.stiffness and joint.reference:
        text += f" at rest at {joint.reference:.6g} {unit}"
    if math.isfinite(joint.effort):
        text += f", at most {joint.effort:.6g} {torque}"
    if math.isfinite(joint.velocity):
        text += f" and {joint.velocity:.6g} {unit}/s"
    if joint.mimic is not None:
        name, factor, offset = joint.mimic
        text += f", mimics {name} times {factor:.6g}" + (f" plus {offset:.6g} {unit}" if offset else "")
    return text


def _shapes(link: RobotLink) -> str:
    counts: dict[str, int] = {}
    for shape in link.collision:
        counts[shape.shape] = counts.get(shape.shape, 0) + 1
    named = [f"{count} {kind}" if count > 1 else kind for kind, count in counts.items()]
    return f"; {', '.join(named)}" if named else ""


def _some(items: list[str], most: int = 20) -> str:
    return ", ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")


def _count(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")


def _vector(values: Any) -> str:
    return "(" + ", ".join(f"{float(value) + 0.0:.4g}" for value in np.asarray(values)) + ")"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
