"""Contents of robots' and capture files, in words and as JSON: `add info robot.urdf`, `add recording`."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from add.errors import InputError
from add.mocap import Recording, Take, write_csv, write_pose_csv, write_signals, write_trc
from add.mocap.suspects import suspects
from add.scene import Scene
from add.scene.build.file_doubts import hull_doubts
from add.scene.read.reader import check_scene
from add.scene.robots import Robot, RobotJoint, RobotLink
from add.scene.robots.model import WORLD, RobotTendon
from add.scene.spec.links import robot_of, trees
from add.summary import as_point, counted, few, fields_of

_UNITS = {"hinge": "rad", "slide": "m", "ball": "rad", "free": ""}
_TORQUES = {"hinge": "N m", "slide": "N", "ball": "N m", "free": ""}


def robot_lines(robot: Robot, file: str) -> list[str]:
    """Return the tree with masses, limits and laws of joints, what else there is, and what is ignored."""
    free = any(joint.kind == "free" for joint in robot.joints)
    lines = [
        f"{file}: robot '{robot.name}', {'free' if free else 'fixed'} base: {counted(len(robot.links), 'link')}, "
        f"{counted(robot.n, 'coordinate')}, {robot.mass:.6g} kg"
    ]
    depth = {WORLD: 0}
    for link, joint in zip(robot.links, robot.joints, strict=True):
        depth[link.name] = depth[joint.parent] + 1
        mass = f"{link.mass:.6g} kg at {as_point(link.centre)}" if link.mass else "no mass"
        lines.append(f"{'  ' * depth[link.name]}{link.name}: {mass}; {_joint(joint)}{_shapes(link)}")
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
            lines.append(f"  {title}: {few(items, 20)}")
    if robot.excluded_shapes:
        lines.append(f"  further pairs of shapes that do not touch: {len(robot.excluded_shapes)}")
    if robot.gravity is not None:
        lines.append(f"  gravity {as_point(robot.gravity)} m/s^2")
    if robot.fluid is not None:
        wind = f", wind {as_point(robot.fluid.wind)} m/s" if robot.fluid.wind.any() else ""
        lines.append(f"  a fluid of {robot.fluid.density:g} kg/m^3, {robot.fluid.viscosity:g} Pa s{wind}")
    return lines + _left_out(robot)


def _left_out(robot: Robot) -> list[str]:
    """Return what is left out; of more than two texts that differ in names and numbers alone the first."""
    alike: dict[tuple[str, str], list[str]] = {}
    for text in robot.ignored:
        word = "doubt" if text in robot.doubts else "ignored"
        alike.setdefault((word, re.sub(r"'[^']*'|\d+", "", text)), []).append(text)
    lines = []
    for (word, _), texts in alike.items():
        shown = texts if len(texts) < 3 else [f"{texts[0]}; {len(texts) - 1} more alike (--json has all)"]
        lines += [f"  {word}: {text}" for text in shown]
    return lines


#: What is said of a joint beside its limits.
_OF_JOINTS = ("name", "kind", "parent", "child", "position", "rotation", "axis", "damping", "dry_friction",
              "stiffness", "reference", "armature", "effort", "velocity", "mimic", "start")  # fmt: skip


def robot_json(robot: Robot) -> dict[str, Any]:
    """Return the same as numbers."""
    return {
        "name": robot.name,
        "mass": robot.mass,
        "coordinates": robot.n,
        "links": [
            fields_of(link, "name", "mass", "centre", "inertia")
            | {"collision": len(link.collision), "visual": len(link.visual)}
            for link in robot.links
        ],
        "joints": [fields_of(joint, *_OF_JOINTS) | {"limits": [joint.lower, joint.upper]} for joint in robot.joints],
        "places": {
            name: {"link": link, "position": position, "rotation": rotation}
            for name, (link, position, rotation) in robot.frames.items()
        },
        "actuators": [item.name for item in robot.actuators],
        "tendons": [item.name for item in robot.tendons],
        "loops": [item.name for item in robot.loops],
    } | fields_of(robot, "excluded", "ignored", "doubts")


def robot_alone(robot: Robot, body: Mapping[str, Any], **more: Any) -> Scene:
    """Return a scene with nothing but a robot, an articulated ``body`` of these keys."""
    bodies = {"robot": {"type": "articulated", **body}}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": bodies, **more}
    return check_scene(raw, None, Scene, {"robot": robot})


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
    try:
        scene = robot_alone(robot, {"model": str(file)} | {key: value for key, value in options.items() if value})
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
    return f"{counted(len(tendon.segments), 'segment')}" + (f", {around} around geoms" if around else "")


def _joint(joint: RobotJoint) -> str:
    text = f"{joint.kind} {joint.name}"
    if joint.kind in ("hinge", "slide"):
        text += f" about {as_point(joint.axis)}" if joint.kind == "hinge" else f" along {as_point(joint.axis)}"
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
    counts = Counter(shape.shape for shape in link.collision)
    named = [f"{count} {kind}" if count > 1 else kind for kind, count in counts.items()]
    return f"; {', '.join(named)}" if named else ""


# --- Capture files ----------------------------------------------------------------------------------------------------

#: Formats to which markers are converted, by the name of the file.
WRITERS = {".csv": write_csv, ".trc": write_trc}


def contents(take: Take) -> dict[str, Any]:
    """Return what a file holds, for JSON; lengths in metres, times in seconds."""
    out: dict[str, Any] = {
        "file": take.source,
        "format": take.format,
        "unit": take.unit or None,
        "rate": take.rate,
        "up": take.up,
        "markers": {} if take.markers is None else _seen(take.markers, take.unlabelled),
        "bodies": {name: {"frames": pose.n_frames} | _span(pose.times) for name, pose in take.bodies.items()},
        "angles": [] if take.angles is None else list(take.angles.names),
        "signals": [
            fields_of(item, "name", "unit") | {"samples": len(item.times)} | _span(item.times) for item in take.signals
        ],
        "events": [fields_of(event, "name", "time") for event in take.events],
        "notes": list(take.notes),
        "warnings": [
            *take.doubts,
            *([take.frame] if take.frame else []),
            *(() if take.markers is None else suspects(take.markers)),
        ],
    }
    parts = (take.markers, *take.bodies.values(), take.angles, *take.signals)
    times = next((part.times for part in parts if part is not None), None)
    if times is not None:
        out |= {"frames": len(times)} | _span(times)
    return out


def _span(times: np.ndarray) -> dict[str, float]:
    return {"start": float(times[0]), "end": float(times[-1])}


def _seen(markers: Recording, unlabelled: Sequence[str]) -> dict[str, Any]:
    """Return, of each marker, the frames in which it was seen and the number of its gaps."""
    coverage = {}
    for k, name in enumerate(markers.names):
        valid = markers.valid[:, k]
        frames = np.flatnonzero(valid)
        inside = valid[frames[0] : frames[-1] + 1] if frames.size else valid[:0]
        gaps = int((np.diff(inside.astype(int)) == -1).sum())
        coverage[name] = {"seen": int(valid.sum()), "gaps": gaps, "labelled": name not in unlabelled}
    return coverage


def description(take: Take) -> list[str]:
    """Return what a file holds in lines for people."""
    content = contents(take)
    lines = [f"{take.source}: {take.format}"]
    if "frames" in content:
        rate = "" if take.rate is None else f", {take.rate:.6g} frames a second"
        unit = f", unit of the file {take.unit}" if take.unit else ""
        lines.append(f"  {content['frames']} frames from {content['start']:.6g} to {content['end']:.6g} s{rate}{unit}")
    labelled = {name: item for name, item in content["markers"].items() if item["labelled"]}
    if content["markers"]:
        whole = sum(item["seen"] == content["frames"] for item in labelled.values())
        seen = "all" if whole == len(labelled) else f"{whole} of them"
        lines.append(f"  {len(labelled)} markers, {seen} seen in every frame")
        lines += [f"    {name}: {_coverage(item, content['frames'])}" for name, item in labelled.items()]
    if take.unlabelled:
        lines.append(f"  {len(take.unlabelled)} unlabelled tracks, kept; a fit uses only what a scene names")
        lines += [f"    {name}: {_coverage(content['markers'][name], content['frames'])}" for name in take.unlabelled]
    for name, body in content["bodies"].items():
        lines.append(f"  body {name}: pose in {body['frames']} frames")
    if content["angles"]:
        lines.append(f"  angles: {', '.join(content['angles'])}")
    if take.signals:
        lines.append(f"  {len(take.signals)} signals")
        for item in content["signals"]:
            lines.append(
                f"    {item['name']}" + (f" [{item['unit']}]" if item["unit"] else "") + f": {item['samples']} samples"
            )
    lines += [f"  event at {event.time:.6g} s: {event.name}" for event in take.events]
    lines += [f"  note: {text}" for text in take.notes]
    return lines


def _coverage(item: dict[str, Any], frames: int) -> str:
    if item["seen"] == frames:
        return "every frame"
    return f"{item['seen']} of {frames} frames, {counted(item['gaps'], 'gap')} within"


def convert(
    take: Take,
    out: str,
    *,
    names: Sequence[str] = (),
    labelled: bool = False,
    body: str | None = None,
    signals: bool = False,
) -> list[Path]:
    """Write a capture file in another format, in metres with z up.

    Parameters
    ----------
    take : what was read
    out : file; .csv or .trc
    names : of the markers to write; default: all
    labelled : leave unlabelled tracks out
    body : write the pose of this body instead
    signals : write the signals instead

    Raises
    ------
    InputError
        If the format is unknown, nothing of the kind is there, or the file cannot be written.
    """
    target = Path(out)
    suffix = target.suffix.lower()
    if suffix not in WRITERS or (suffix != ".csv" and (body is not None or signals)):
        expected = ".csv" if body is not None or signals else " or ".join(WRITERS)
        raise InputError("cannot be written in this format", file=out, found=repr(target.suffix), expected=expected)
    if signals:
        return write_signals(target, take.signals)
    if body is not None or (take.markers is None and take.bodies and suffix == ".csv"):
        write_pose_csv(target, take.body(body))
        return [target]
    markers = take.require_markers()
    if names:
        markers = markers.select(list(names))
    elif labelled:
        chosen = [name for name in markers.names if name not in take.unlabelled]
        if not chosen:
            raise InputError("no track has a label", file=take.source, found=f"{markers.n_markers} unlabelled ones")
        markers = markers.select(chosen)
    WRITERS[suffix](target, markers)
    return [target]
