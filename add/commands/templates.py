"""Scenes to start from: questions with defaults, and the scene that their answers make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from add.errors import InputError
from add.scene import Scene, scene_from_dict
from add.scene.build.recordings import load_recording

__all__ = ["TEMPLATES", "Question", "Template", "answered", "made"]

Answers = Mapping[str, Any]


@final
@dataclass(frozen=True)
class Question:
    """One number, vector or text of a template.

    Attributes
    ----------
    name : str
        What ``--set NAME=VALUE`` calls it.
    text : str
        The question, with the unit.
    default : str
        What an empty answer means; "" = none.
    read : text -> value
        Raises `ValueError` with what is expected.
    """

    name: str
    text: str
    default: str
    read: Callable[[str], Any]

    def answer(self, text: str) -> Any:
        """Return the value of an answer.

        Raises
        ------
        InputError
            If the text is no such value.
        """
        try:
            return self.read(text.strip())
        except ValueError as error:
            raise InputError("this is no answer", place=self.name, found=repr(text), expected=str(error)) from None


@final
@dataclass(frozen=True)
class Template:
    """A kind of scene.

    Attributes
    ----------
    text : str
        What it is, in a line.
    questions : of it, in the order in which they are asked
    scene : answers by name -> the scene as a dictionary
    """

    text: str
    questions: tuple[Question, ...]
    scene: Callable[[Answers], dict[str, Any]]


def answered(template: Template, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the answers by name; a question that is not answered has its default.

    Raises
    ------
    InputError
        If an answer is to no question, or is no value of its kind.
    """
    names = [question.name for question in template.questions]
    for name in given:
        if name not in names:
            raise InputError("there is no such question", place="--set", found=name, expected=", ".join(names))
    return {
        question.name: question.answer(given.get(question.name, question.default)) for question in template.questions
    }


def made(template: Template, answers: Answers, folder: Path) -> Scene:
    """Return the scene of the answers, checked; its files count from ``folder``."""
    scene = scene_from_dict(template.scene(answers), folder=folder)
    scene.build()
    if scene.recording is not None:
        load_recording(scene, "recording")  # its markers are those of the file
    return scene


# --- answers ----------------------------------------------------------------------------------------------------------


def _number(low: float, high: float = float("inf")) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low < value < high:
            raise ValueError(f"a number above {low:g}" + ("" if high == float("inf") else f" and below {high:g}"))
        return value

    return read


def _friction(text: str) -> float:
    return 0.0 if text == "0" else _number(0.0)(text)


def _vector(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 3 or any(abs(value) == float("inf") or value != value for value in values):
        raise ValueError("three numbers, such as 0.1,0,0.2")
    return values


def _sizes(text: str) -> list[float]:
    values = _vector(text)
    if min(values) <= 0.0:
        raise ValueError("three numbers above 0, such as 0.1,0.03,0.03")
    return values


def _places(text: str) -> dict[str, list[float]]:
    """Read "name=x,y,z; name=x,y,z"."""
    out = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, place = part.partition("=")
        if not equals or not name.strip():
            raise ValueError("markers and their places, such as tip=0.1,0.015,0.03; base=0,0.015,0.03")
        out[name.strip()] = _vector(place)
    return out


def _required(text: str) -> str:
    if not text:
        raise ValueError("a file")
    return text


def _perhaps(text: str) -> str | None:
    return text or None


def _optional(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: read(text) if text else None


def _choice(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(" or ".join(words))
        return text

    return read


# --- scenes -----------------------------------------------------------------------------------------------------------

_FLOOR = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}
_LOG = {"transform": "log", "scale": 0.3}


def _specimen(given: Answers) -> dict[str, Any]:
    """A block clamped at x = 0, released from its unloaded shape; with a recording, what fits it."""
    length, width, height = given["size"]
    places = given["markers"] or {"tip": [length, 0.5 * width, height]}
    rest = {name: [x - 0.5 * length, y - 0.5 * width, z - 0.5 * height] for name, (x, y, z) in places.items()}
    across = [max(2, round(side / (0.5 * min(width, height)))) for side in (width, height)]
    scene: dict[str, Any] = {
        "schema": "add-scene/1",
        "name": "A specimen that is let go",
        "description": "A block of soft material, clamped at x = 0, is let go from its unloaded shape and rings down "
        "under gravity. Markers count from the clamped corner: x along the block, z up.",
        "time": {"dt": 0.005, "duration": given["duration"], "integrator": "bdf2"},
        "bodies": {
            "specimen": {
                "type": "soft",
                "mesh": {"shape": "box", "size": [length, width, height],
                         "divisions": [max(4, round(2.0 * length / max(width, height))), *across]},
                "element": "hex8",
                "mean_dilatation": True,
                "material": {"model": "neo-hookean", "young": given["young"], "poisson": given["poisson"],
                             "density": given["density"], "viscosity": given["viscosity"]},
                "position": [0.5 * length, 0.5 * width, 0.5 * height],
                "pins": [{"where": {"box": {"max": [-0.5 * length, None, None]}}}],
            }
        },
        "markers": {name: {"body": "specimen", "point": place} for name, place in rest.items()},
        "check": {"steps": 5},
    }  # fmt: skip
    if given["recording"] is not None:
        scene["recording"] = {
            "file": given["recording"], "time_offset": given["release"], "displacement": True,
            "crop": [0, given["duration"]], "markers": {name: name for name in places},
        }  # fmt: skip
        scene["objective"] = [{"type": "markers"}]
        scene["parameters"] = [
            {"path": "bodies.specimen.material.young", **_LOG},
            {"path": "bodies.specimen.material.viscosity", **_LOG},
        ]
        scene["optimizer"] = {"method": "gauss-newton", "max_evaluations": 30}
    return scene


def _robot(given: Answers) -> dict[str, Any]:
    """A robot from its file, on servos if its hand has a target, with what finds their motion."""
    from add.scene.robots import read_robot

    base = None if given["base"] == "file" else given["base"]
    # The scene counts the file from its own folder, where the command writes it; the names come from here.
    robot = read_robot(given["model"], base=base)
    if not robot.links:
        raise InputError("nothing moves in this robot", file=given["model"], expected="joints, or base=free")
    free = any(joint.kind == "free" for joint in robot.joints)
    place: dict[str, Any] = {"base": base} if base else {}
    if given["height"]:
        place["position"] = [0, 0, given["height"]]  # without one a robot stands where its file puts it
    hand = given["hand"] or robot.links[-1].name
    scene: dict[str, Any] = {
        "schema": "add-scene/1",
        "name": f"The robot {robot.name}",
        "description": "A robot from its file" + (
            ", whose servos bring its hand to a target; their angles over time are found." if given["target"] else "."
        ),
        "time": {"dt": 0.005, "duration": given["duration"], "integrator": "bdf2"},
        "bodies": {"robot": {"type": "articulated", "model": given["model"], **place}},
        "markers": {"hand": {"body": f"robot/{hand}", "point": given["point"]}},
        "check": {"steps": 20},
    }  # fmt: skip
    if free:
        scene["obstacles"] = _FLOOR
        scene["contact"] = {"friction": 0.6, "stiffness": 2e4, "damping": 50, "damping_ramp": 0.002, "onset": 0.002}
    if given["target"]:
        moved = [j for j in robot.joints if j.kind in ("hinge", "slide") and j.mimic is None]
        times = [given["duration"] * k / 4 for k in range(5)]
        stiffness, damping = given["servo"], 0.05 * given["servo"]
        scene["bodies"]["robot"]["drives"] = {
            j.name: {"joint": j.name, "type": "position", "input": {"signal": j.name}, "stiffness": stiffness,
                     "damping": damping}
            for j in moved
        }  # fmt: skip
        scene["signals"] = {j.name: {"type": "spline", "times": times, "values": [j.start] * 5} for j in moved}
        scene["objective"] = [{"type": "point", "marker": "hand", "target": given["target"], "time": "end"}]
        scene["parameters"] = [{"path": f"signals.{j.name}.values"} for j in moved]
        scene["optimizer"] = {"max_evaluations": 60}
    return scene


def _two_bodies(given: Answers) -> dict[str, Any]:
    """Two soft balls that fly at each other; the velocity of one is found, so that the other ends at a target."""
    radius, speed = given["radius"], given["speed"]
    edge, hardest = 0.6 * radius, max(given["young_left"], given["young_right"])

    def ball(side: float, young: float, size: float) -> dict[str, Any]:
        return {
            "type": "soft",
            "mesh": {"shape": "sphere", "radius": radius, "edge": size},
            "material": {"model": "neo-hookean", "young": young, "poisson": 0.3, "density": given["density"],
                         "viscosity": 2e-4 * young},
            "position": [side * 1.15 * radius, 0, 0],
            "velocity": [-side * speed, 0, 0],
        }  # fmt: skip

    return {
        "schema": "add-scene/1",
        "name": "Two soft bodies",
        "description": "Two soft balls fly at each other and bounce, their surfaces touch with friction. The velocity "
        "of the left one is to be found, so that the right one ends at a target.",
        "gravity": [0, 0, 0],
        "time": {"dt": 0.0005, "duration": given["duration"], "integrator": "bdf2"},
        "bodies": {"left": ball(-1.0, given["young_left"], edge), "right": ball(1.0, given["young_right"], 0.9 * edge)},
        "contact": {"friction": given["friction"],
                    "mesh": {"thickness": 0.12 * radius, "stiffness": 20.0 * hardest / radius, "onset": 0.06 * radius}},
        "markers": {"left": {"body": "left", "surface": {"all": True}},
                    "right": {"body": "right", "surface": {"all": True}}},
        "objective": [{"type": "point", "marker": "right", "target": given["target"], "time": "end"}],
        "parameters": [{"path": "bodies.left.velocity", "scale": 0.2}],
        "optimizer": {"method": "gauss-newton", "max_evaluations": 30},
        "check": {"steps": 20},
    }  # fmt: skip


def _throw(given: Answers) -> dict[str, Any]:
    """A soft ball thrown with a bounce to a target."""
    radius = given["radius"]
    return {
        "schema": "add-scene/1",
        "name": "A throw with a bounce",
        "description": "A soft ball is thrown on the floor; the velocity is to be found that ends it at a target.",
        "time": {"dt": 0.002, "duration": given["duration"], "integrator": "bdf2"},
        "bodies": {
            "ball": {
                "type": "soft",
                "mesh": {"shape": "sphere", "radius": radius, "edge": 0.6 * radius},
                "material": {"model": "neo-hookean", "young": given["young"], "poisson": 0.3,
                             "density": given["density"], "viscosity": 2.5e-4 * given["young"]},
                "position": [0, 0, 3.0 * radius],
                "velocity": [0.8, 0, 0],
            }
        },
        "obstacles": _FLOOR,
        "contact": {"stiffness": 1e6, "stiffness_per": "area", "friction": given["friction"], "onset": 0.003},
        "markers": {"centre": {"body": "ball", "surface": {"all": True}}},
        "objective": [{"type": "point", "marker": "centre", "target": given["target"], "time": "end"}],
        "parameters": [{"path": "bodies.ball.velocity"}],
        "check": {"steps": 90},
    }  # fmt: skip


_POSITIVE, _RATIO, _ANY = _number(0.0), _number(-1.0, 0.5), _number(float("-inf"))

#: Templates by name.
TEMPLATES: dict[str, Template] = {
    "specimen": Template(
        "a clamped block of soft material that rings down; with a recording, its stiffness and viscosity are fitted",
        (
            Question("size", "length, width, height of the block [m]", "0.1,0.03,0.03", _sizes),
            Question("density", "density [kg/m^3]", "1070", _POSITIVE),
            Question("poisson", "Poisson's ratio [-]", "0.49", _RATIO),
            Question("young", "first guess of Young's modulus [Pa]", "2e5", _POSITIVE),
            Question("viscosity", "first guess of the viscosity [Pa s]", "200", _POSITIVE),
            Question("duration", "seconds to simulate", "0.5", _POSITIVE),
            Question("markers", "markers and their places from the clamped corner [m]; empty = one at the tip", "",
                     _places),
            Question("recording", "file of the recording, such as take.c3d; empty = none", "", _perhaps),
            Question("release", "recording time at which the block is let go [s]", "0", _ANY),
        ),
        _specimen,
    ),
    "robot": Template(
        "a robot from its URDF or MJCF; with a target for its hand, servos whose motion is found",
        (
            Question("model", "file of the robot", "", _required),
            Question("base", "its base: as the file says, fixed or free", "file", _choice("file", "fixed", "free")),
            Question("height", "height of its base [m]", "0", _ANY),
            Question("hand", "link that is its hand; empty = the last one", "", _perhaps),
            Question("point", "the hand's point in the frame of that link [m]", "0,0,0", _vector),
            Question("target", "where the hand should be at the end [m]; empty = no servos", "", _optional(_vector)),
            Question("servo", "stiffness of the servos [N m/rad, N/m]", "100", _POSITIVE),
            Question("duration", "seconds to simulate", "0.6", _POSITIVE),
        ),
        _robot,
    ),
    "two-bodies": Template(
        "two soft balls that collide with friction; the velocity of one is found that brings the other to a target",
        (
            Question("radius", "radius of the balls [m]", "0.05", _POSITIVE),
            Question("density", "density [kg/m^3]", "1000", _POSITIVE),
            Question("young_left", "Young's modulus of the left one [Pa]", "2e5", _POSITIVE),
            Question("young_right", "Young's modulus of the right one [Pa]", "2e5", _POSITIVE),
            Question("friction", "friction between them [-]", "0.3", _friction),
            Question("speed", "speed of each [m/s]", "1", _POSITIVE),
            Question("target", "where the right one should be at the end [m]", "0.09,0.005,0", _vector),
            Question("duration", "seconds to simulate", "0.06", _POSITIVE),
        ),
        _two_bodies,
    ),
    "throw": Template(
        "a soft ball that is thrown with a bounce; the velocity is found that brings it to a target",
        (
            Question("radius", "radius of the ball [m]", "0.05", _POSITIVE),
            Question("density", "density [kg/m^3]", "150", _POSITIVE),
            Question("young", "Young's modulus [Pa]", "2e4", _POSITIVE),
            Question("friction", "friction with the floor [-]", "0.4", _friction),
            Question("target", "where it should be at the end [m]", "0.3,0.05,0.1", _vector),
            Question("duration", "seconds to simulate", "0.4", _POSITIVE),
        ),
        _throw,
    ),
}  # fmt: skip
