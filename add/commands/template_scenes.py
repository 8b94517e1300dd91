"""The scenes that templates make of their answers, and joint values at which a search for a motion begins."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from add.errors import InputError
from add.mocap import read_take
from add.scene.robots.model import Robot, RobotJoint
from add.summary import few
from add.typing import FloatArray

Answers = Mapping[str, Any]

#: Parts of scenes by name; in them `$name` stands for an answer, or for what follows from the answers.
_PARTS = json.loads(Path(__file__).with_name("template_scenes.json").read_text(encoding="utf-8"))
_LOG = {"transform": "log", "scale": 0.3}
#: A servo gives what its joint can at this error [rad, m]; a first guess of a damping that a file does not say.
AT_EFFORT, DAMPING = 0.1, 0.01
#: Friction of what a robot touches, where its file says none, or several.
FRICTION = 0.6


def _made(part: str, *values: Mapping[str, Any], **own: Any) -> Any:
    """Return a part with values in the places of their names."""
    known = {key: value for of in (*values, own) for key, value in of.items()}

    def filled(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: filled(item) for key, item in node.items()}
        if isinstance(node, list):
            return [filled(item) for item in node]
        if isinstance(node, str):
            return known[node[1:]] if node[1:] in known else Template(node).substitute(known)
        return node

    return filled(_PARTS[part])


def _fit(scene: dict[str, Any], given: Answers, parameters: Sequence[Any], most: int = 30, **recording: Any) -> None:
    """Let a scene fit numbers to the recording, by at most so many evaluations."""
    base = {"file": given["recording"], "time_offset": given["release"]}
    scene["recording"] = base | {"crop": [0, given["duration"]]} | recording
    scene["objective"] = [{"type": "markers"}]
    scene["parameters"] = list(parameters)
    scene["optimizer"] = {"method": "gauss-newton", "max_evaluations": most}


def specimen(given: Answers) -> dict[str, Any]:
    """A clamped block, or a body of its own shape, released from its unloaded shape; with a recording, what fits it."""
    size, surface, places = given["size"], given["surface"], given["markers"]
    if surface is not None and not (places and given["clamp"]):
        raise InputError("a body of its own shape needs this", place="clamp" if places else "markers", found="nothing")
    _require("clamp", given, surface is not None, "a shape of its own (surface)")
    _require("mount", given, bool(given["rest"]), "times at which all markers rest (rest)")
    _require("rest", given, given["recording"] is not None, "a recording")
    middle = [0.0, 0.0, 0.0] if surface else [0.5 * edge for edge in size]
    places = places or {"tip": [size[0], middle[1], size[2]]}
    if surface:
        filled = surface.rpartition(".")[2].lower() in ("stl", "obj", "ply", "off")
        axis, side, end = given["clamp"]
        shape = _made(
            "specimen of its own shape",
            given,
            mesh={"surface": surface, "edge": given["edge"]} if filled else {"file": surface},
            held={"min" if side == ">" else "max": [end if k == axis else None for k in range(3)]},
        )
    else:
        across = [max(2, round(side / (0.5 * min(size[1:])))) for side in size[1:]]
        cells = [max(4, round(2.0 * size[0] / max(size[1:]))), *across]
        shape = _made("specimen as a block", size=size, cells=cells, end=-middle[0])
    rest = {name: [a - b for a, b in zip(place, middle, strict=True)] for name, place in places.items()}
    scene: dict[str, Any] = _made(
        "specimen",
        given,
        middle=middle,
        origin="the surface's origin." if surface else "the clamped corner: x along the block.",
        gravity=[0.0 - 9.81 * part for part in given["up"]],
        markers={name: {"body": "specimen", "point": place} for name, place in rest.items()},
    )
    scene["bodies"]["specimen"] |= shape
    if given["recording"] is not None:
        moduli = [{"path": f"bodies.specimen.material.{key}", **_LOG} for key in ("young", "viscosity")]
        clock = [{"path": "recording.time_offset", "scale": 0.01}] if given["release"] else []
        _fit(scene, given, moduli + clock, displacement=True, markers={name: name for name in places})
        if given["rest"]:
            scene["recording"]["register"] = {"window": given["rest"], "markers": places | given["mount"]}
            scene["recording"]["rest"] = given["rest"]
    return scene


def _require(name: str, given: Answers, has: bool, what: str) -> None:
    """Refuse an answer that would do nothing."""
    if given[name] and not has:
        raise InputError("this needs more", place=name, found=str(given[name]), expected=what)


#: Seconds to simulate a robot, at the least and at the most, and the turn that they are to be enough for [rad].
DURATION, LONGEST, REACH = 0.6, 5.0, 4.0


def robot(given: Answers) -> dict[str, Any]:
    """A robot from its file, on servos if its hand has a target; with a recording, its dampings and where it starts."""
    from add.scene.robots import read_robot

    base = None if given["base"] == "file" else given["base"]
    # The scene counts the file from its own folder, where the command writes it; the names come from here.
    model = read_robot(given["model"], base=base)
    if not model.links:
        raise InputError("nothing moves in this robot", file=given["model"], expected="joints, or base=free")
    moved = [joint for joint in model.joints if joint.kind in ("hinge", "slide") and joint.mimic is None]
    body: dict[str, Any] = {"type": "articulated", "model": given["model"]} | ({"base": base} if base else {})
    if given["duration"] is None:
        rates = [
            joint.velocity for joint in moved if given["target"] and joint.kind == "hinge" and joint.velocity > 0.0
        ]
        given = {**given, "duration": min(max(DURATION, round(REACH / min(rates, default=np.inf), 1)), LONGEST)}
    _require("start", given, given["recording"] is not None or given["target"] is not None, "a recording or a target")
    # The file may pose joints beyond their stops.
    posed = given["start"] or [float(np.clip(joint.start, joint.lower, joint.upper)) for joint in moved]
    if len(posed) != len(moved):
        raise InputError("a value for each joint", place="start", found=f"{len(posed)}",
                         expected=", ".join(joint.name for joint in moved))  # fmt: skip
    starts = {joint.name: value for joint, value in zip(moved, posed, strict=True)}
    if turned := {joint.name: {"value": starts[joint.name]} for joint in moved if starts[joint.name] != joint.start}:
        body["joints"] = turned
    if given["height"]:
        body["position"] = [0, 0, given["height"]]  # without one a robot stands where its file puts it
    hand = given["hand"] or model.links[-1].name
    aim = ", whose servos bring its hand to a target; their angles over time are found." if given["target"] else "."
    scene: dict[str, Any] = _made("robot", given, robot=model.name, aim=aim, body=body, link=hand)
    free = any(joint.kind == "free" for joint in model.joints)
    standing = [shape for shape in model.static.collision if shape.shape != "mesh"]
    if free or standing:
        mu = {shape.friction for link in (*model.links, model.static) for shape in link.collision} - {None}
        scene["contact"] = {"friction": mu.pop() if len(mu) == 1 else FRICTION}
    if standing:
        body["static_shapes"] = True
    if free and not standing:
        scene |= _made("robot on a floor")
    if model.gravity is not None and not np.allclose(model.gravity, [0, 0, -9.81]):
        scene["gravity"] = [float(x) for x in model.gravity]
    if given["target"]:
        body["drives"] = {}
        for joint in moved:
            limited = 0.0 < joint.effort < np.inf
            effort = joint.effort / AT_EFFORT if limited else 100.0
            servo: dict[str, Any] = {"joint": joint.name, "type": "position", "input": {"signal": joint.name}}
            servo |= {"stiffness": given["servo"] or effort, "damping": 0.05 * (given["servo"] or effort)}
            body["drives"][joint.name] = servo | ({"limit": "file"} if limited else {})
        ends = starts if free else starts | _reached(model, hand, given, starts)
        share, values = np.linspace(0.0, 1.0, 5), {}
        for name, first in starts.items():
            # Beginning where it starts, to the bit: that may be a stop, which bounds it.
            values[name] = [first + round(float(x), 6) for x in (ends[name] - first) * share**2 * (3.0 - 2.0 * share)]
        times = [given["duration"] * k / 4 for k in range(5)]
        signals = {name: {"type": "spline", "times": times, "values": own} for name, own in values.items()}
        # Joints that do not lead to the hand, such as a gripper's fingers, hold still.
        leading = {joint.name for joint in _leading(model, model.place(hand)[0])}
        # A joint counts by the radian wherever it starts, and no command is beyond its stops.
        parameters = [
            {"path": f"signals.{j.name}.values"}
            | ({"scale": 1.0} if j.kind == "hinge" else {})
            | ({"bounds": [j.lower, j.upper]} if np.isfinite([j.lower, j.upper]).all() else {})
            for j in moved
            if free or j.name in leading
        ]
        if not parameters:
            raise InputError("no joint with a servo moves this link", place="hand", found=hand,
                             expected=few([joint.child for joint in moved], 12))  # fmt: skip
        scene |= _made("robot on servos", given, signals=signals, parameters=parameters)
    _require("markers", given, given["recording"] is not None, "a recording")
    if given["recording"] is not None:
        if given["target"] or not given["markers"]:
            raise InputError("a recording is of markers on a robot without servos", place="target" if given["target"]
                             else "markers", found=str(given["target"] or "nothing"))  # fmt: skip
        places = {name: (link or hand, point) for name, (link, point) in given["markers"].items()}
        scene["markers"] = {name: {"body": f"robot/{link}", "point": point} for name, (link, point) in places.items()}
        body["joints"] = {j.name: {"value": starts[j.name], "damping": j.damping or DAMPING} for j in moved}
        dampings = [{"path": f"bodies.robot.joints.{joint.name}.damping", **_LOG} for joint in moved]
        angles = [{"path": f"bodies.robot.joints.{joint.name}.value", "scale": 0.05} for joint in moved]
        _fit(scene, given, dampings + angles, 40, markers={name: name for name in places})
    return scene


def _reached(model: Robot, hand: str, given: Answers, starts: dict[str, float]) -> dict[str, float]:
    """Return joints at which the hand is next to its target, where the search for the motion begins."""
    link, at, turn = model.place(hand)
    place = np.array(given["target"]) - [0.0, 0.0, given["height"] or 0.0]
    return reaching(model, link, at + turn @ np.array(given["point"] or np.zeros(3)), place, starts)


def _leading(robot: Robot, link: str) -> list[RobotJoint]:
    """Return the joints between a link and the base, the link's own first."""
    above, chain = {joint.child: joint for joint in robot.joints}, []
    while link in above:
        chain.append(above[link])
        link = above[link].parent
    return chain


def two_bodies(given: Answers) -> dict[str, Any]:
    """Two soft balls that fly at each other; the velocity of one is found, so that the other ends at a target."""
    radius = given["radius"]

    def ball(side: float, young: float, edge: float) -> Any:
        x, speed = side * 1.15 * radius, -side * given["speed"]
        return _made("ball of two", given, young=young, edge=edge, viscosity=2e-4 * young, x=x, speed=speed)

    left = ball(-1.0, given["young_left"], 0.6 * radius)
    right = ball(1.0, given["young_right"], 0.9 * (0.6 * radius))
    stiffness = 20.0 * max(given["young_left"], given["young_right"]) / radius
    skin = {"thickness": 0.12 * radius, "stiffness": stiffness, "onset": 0.06 * radius}
    return dict(_made("two-bodies", given, skin, left=left, right=right))


def throw(given: Answers) -> dict[str, Any]:
    """A soft ball thrown with a bounce to a target."""
    radius = given["radius"]
    viscosity = 2.5e-4 * given["young"]
    return dict(_made("throw", given, edge=0.6 * radius, height=3.0 * radius, viscosity=viscosity))


def toss(given: Answers) -> dict[str, Any]:
    """A rigid body that flies onto a table; with a recording, its start is that of the flight."""
    size, table = given["size"], given["table"]
    corner = [0.5 * edge for edge in size]
    places = given["markers"] or {"top": corner, "other": [-corner[0], -corner[1], corner[2]]}
    body: dict[str, Any] = {"type": "rigid", "mass": given["mass"]}
    body["geometry"] = {"file": given["surface"]} if given["surface"] else {"shape": "box", "size": size}
    markers = {name: {"body": "thing", "point": place} for name, place in places.items()}
    scene: dict[str, Any] = _made("toss", given, body=body, markers=markers)
    if given["recording"] is None:
        body |= {"position": [0, 0, table + 1.5 * max(size)], "velocity": [0.8, 0.2, 0], "angular_velocity": [2, 3, 0]}
        return scene
    body["start"] = "recording"
    poses = read_take(given["recording"]).markers is None
    seen: dict[str, Any] = {"pose": {"body": "thing"}} if poses else {"markers": {name: name for name in places}}
    _fit(scene, given, _made("parameters of a toss"), **seen)
    return scene


def chain(given: Answers) -> dict[str, Any]:
    """Arms on hinges about one horizontal axis; their first angles and rates are those of the recording."""
    lengths, masses = given["lengths"], given["masses"]
    if len(lengths) != len(masses):
        raise InputError(
            "an arm has a length and a mass", place="masses", found=f"{len(masses)}", expected=f"{len(lengths)} numbers"
        )
    n, zero = len(lengths), 1.0 if given["zero"] == "up" else -1.0
    values, rates, names = np.full(n, 0.5), np.zeros(n), list(given["angles"])
    if given["recording"] is None and (names or given["zero"] != "down"):
        key = "angles" if names else "zero"
        raise InputError("this is said of the angles of a recording", place=key, found="no recording")
    if given["recording"] is not None:
        values, rates, names = _first_angles(given, n)
        # Joints count from the arm before, the first one from where the arms hang.
        values, rates = (np.diff(x, prepend=0.0) for x in (values, rates))
        values[0] += np.pi if given["zero"] == "up" else 0.0
    links, joints, markers = {}, {}, {}
    for k, (length, mass) in enumerate(zip(lengths, masses, strict=True)):
        link, most = f"arm{k + 1}", mass * length**2
        # A swing in a plane feels the moment about the hinges alone; beside these any up to m l^2 is that of a body.
        links[link] = _made("arm", mass=mass, middle=-0.5 * length, across=most / 12.0, beside=0.5 * most)
        start = {"value": round(float(values[k]), 6), "rate": round(float(rates[k]), 6)}
        joints[f"joint{k + 1}"] = _made("hinge", start, link=link, damping=1e-4 * mass * length)
        if k:
            joints[f"joint{k + 1}"] |= {"parent": f"arm{k}", "position": [0, 0, -lengths[k - 1]]}
        markers[link] = {"body": f"chain/{link}", "direction": [0, 0, -1]}
    scene: dict[str, Any] = _made("chain", given, n=n, links=links, joints=joints, markers=markers)
    if given["recording"] is None:
        return scene
    seen = {
        name: {"marker": link, "axis": [0, -1, 0], "zero": [0, 0, zero]}
        for name, link in zip(names, links, strict=True)
    }
    parameters = [
        item
        for joint, link, mass, length in zip(joints, links, masses, lengths, strict=True)
        for item in _made(
            "parameters of an arm", joint=joint, link=link, bounds=[1e-3 * mass * length**2, mass * length**2]
        )
    ]
    _fit(scene, given, parameters, 40, angles=seen)
    return scene


def _first_angles(given: Answers, n: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return angles and rates of the arms at the start, and their names in the file."""
    recorded = read_take(given["recording"]).require_angles()
    names = list(given["angles"] or recorded.names)
    missing = [name for name in names if name not in recorded.names]
    if missing or len(names) != n or len(set(names)) < n:
        raise InputError(
            "one angle an arm", place="angles", file=given["recording"], found=", ".join(missing or names),
            expected=f"{n} of {', '.join(recorded.names)}",
        )  # fmt: skip
    columns = np.array([recorded.names.index(name) for name in names])
    near = np.sort(np.argsort(np.abs(recorded.times - given["release"]))[:5])
    if near.size < 3:
        raise InputError("too few frames to tell rates by", place="recording", file=given["recording"],
                         found=f"{near.size}", expected="three about the start, or more")  # fmt: skip
    # A parabola through the frames about the start: its value and slope there. Angles may jump by a turn.
    seen = np.unwrap(recorded.angles[np.ix_(near, columns)], axis=0)
    lines = np.polyfit(recorded.times[near] - given["release"], seen, 2)
    return lines[2], lines[1], names


#: Weight of a joint's way beside the distance of the point [m/rad, m/m], and distance at which a place is reached [m].
_WAY, REACHED = 0.01, 2e-3
#: Share of its way by which a joint stays off its stops; places from which the search begins, beside the start.
_OFF, _STARTS = 0.02, 12


def reaching(
    robot: Robot, link: str, point: FloatArray, target: FloatArray, start: Mapping[str, float]
) -> dict[str, float]:
    """Return the values of the joints that lead to a link, by name, at which its point is next to a target.

    Of several, those that are nearest to the start. Joints that mimic one of them follow; the base stands still.

    Parameters
    ----------
    robot : Robot
    link : name of a link that a joint carries
    point : (3,) in the link's frame [m]
    target : (3,) in the frame that the robot's base stands in [m]
    start : name -> value of the joints [rad, m]
    """
    from scipy.optimize import least_squares

    chain = _leading(robot, link)
    own = [joint for joint in reversed(chain) if joint.kind in ("hinge", "slide") and joint.mimic is None]
    if not own:
        return {}
    number = {joint.name: k for k, joint in enumerate(own)}
    first = np.array([np.clip(start[joint.name], joint.lower, joint.upper) for joint in own])

    def place(q: FloatArray) -> FloatArray:
        out = np.asarray(point, dtype=float)
        for joint in chain:
            name, factor, offset = joint.mimic or (joint.name, 1.0, 0.0)
            value = factor * (q[number[name]] if name in number else start.get(name, 0.0)) + offset
            if joint.kind == "slide":
                out = out + value * joint.axis
            elif joint.kind == "hinge":
                out = Rotation.from_rotvec(value * joint.axis).apply(out) + joint.pitch * value * joint.axis
            out = joint.rotation @ out + joint.position
        return out

    def misses(q: FloatArray) -> FloatArray:
        return np.concatenate([place(q) - target, _WAY * (q - first)])

    # A joint without stops turns by half a turn either way, at the most.
    limits = np.array([(joint.lower, joint.upper) for joint in own]).T
    lower, upper = np.maximum(limits[0], first - np.pi), np.minimum(limits[1], first + np.pi)
    off = _OFF * (upper - lower)
    low, high = lower + off, upper - off
    begin = [np.clip(first, low, high), *np.random.default_rng(0).uniform(low, high, (_STARTS, len(own)))]
    # What is out of reach is approached along stops, by ever less a step.
    ends = [least_squares(misses, q, bounds=(low - 0.1 * off, high + 0.1 * off), max_nfev=60).x for q in begin]
    found = min(ends, key=lambda q: (max(float(np.linalg.norm(place(q) - target)), REACHED), np.abs(q - first).max()))
    return {joint.name: float(value) for joint, value in zip(own, found, strict=True)}
