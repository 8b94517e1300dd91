"""Scenes to start from: questions with defaults, and the scene that their answers make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from add.commands.template_scenes import Answers, chain, robot, specimen, throw, toss, two_bodies
from add.errors import InputError
from add.scene import Scene, scene_from_dict
from add.scene.build.recordings import load_recording

__all__ = ["TEMPLATES", "Question", "Template", "answered", "made"]


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


def _on_links(text: str) -> dict[str, tuple[str, list[float]]]:
    """Read "name=link:x,y,z; name=x,y,z"."""
    out = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, place = part.partition("=")
        link, _, point = place.rpartition(":")
        if not equals or not name.strip():
            raise ValueError("markers and their places on links, such as tip=fore:0,0,-0.4")
        out[name.strip()] = link.strip(), _vector(point)
    return out


def _beyond(text: str) -> tuple[int, str, float]:
    side = ">" if ">" in text else "<"
    axis, _, end = (part.strip() for part in text.partition(side))
    try:
        return "xyz".index(axis or "?"), side, float(end)
    except ValueError:
        raise ValueError("an axis and an end, such as z>0.095 or x<0.001") from None


def _direction(text: str) -> list[float]:
    values = _vector(text)
    length = sum(value**2 for value in values) ** 0.5
    if length == 0.0:
        raise ValueError("a direction, such as 0,0,1")
    return [value / length for value in values]


def _window(text: str) -> list[float]:
    try:
        begin, end = (float(part) for part in text.split(","))
    except ValueError:
        begin = end = 0.0
    if not begin < end:
        raise ValueError("two times, such as 0.2,0.4")
    return [begin, end]


def _numbers(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(0.0 < value < float("inf") for value in values):
        raise ValueError("numbers above 0, one an arm, such as 0.2,0.15")
    return values


def _values(text: str) -> list[float]:
    try:
        return [_ANY(part) for part in text.split(",")]
    except ValueError:
        raise ValueError("numbers, such as 1.1,-0.2") from None


def _words(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


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


_POSITIVE, _RATIO, _ANY = _number(0.0), _number(-1.0, 0.5), _number(float("-inf"))

#: Templates by name.
TEMPLATES: dict[str, Template] = {
    "specimen": Template(
        "a clamped body of soft material that rings down; with a recording, its stiffness and viscosity are fitted",
        (
            Question("size", "length, width, height of the block [m]", "0.1,0.03,0.03", _sizes),
            Question("surface", "its own shape, such as body.stl or body.msh; empty = the block", "",
                     _perhaps),
            Question("scale", "unit of that file [m]", "1", _POSITIVE),
            Question("edge", "length of the elements that fill a surface [m]", "0.01", _POSITIVE),
            Question("clamp", "where that shape is held, in its own frame [m], such as z>0.095",
                     "", _optional(_beyond)),
            Question("up", "which way is up, in the frame of block or shape", "0,0,1", _direction),
            Question("density", "density [kg/m^3]", "1070", _POSITIVE),
            Question("poisson", "Poisson's ratio [-]", "0.49", _RATIO),
            Question("young", "first guess of Young's modulus [Pa]", "2e5", _POSITIVE),
            Question("viscosity", "first guess of the viscosity [Pa s]", "200", _POSITIVE),
            Question("duration", "seconds to simulate", "0.5", _POSITIVE),
            Question("markers", "markers and their places from the clamped corner, or in the shape's frame [m]; "
                     "empty = one at the tip", "", _places),
            Question("mount", "markers that stay where they are, and their places; they register the recording", "",
                     _places),
            Question("rest", "recording times between which all markers rest at these places, such as 0.2,0.4; empty = "
                     "the recording has the scene's axes", "", _optional(_window)),
            Question("recording", "file of the recording, such as take.c3d; empty = none", "", _perhaps),
            Question("release", "recording time at which the block is let go [s]", "0", _ANY),
        ),
        specimen,
    ),
    "robot": Template(
        "a robot from its URDF or MJCF; with a target for its hand, servos whose motion is found; with a recording of "
        "markers, the dampings of its joints",
        (
            Question("model", "file of the robot", "", _required),
            Question("base", "its base: as the file says, fixed or free", "file", _choice("file", "fixed", "free")),
            Question("height", "height of its base [m]", "0", _ANY),
            Question("hand", "link that is its hand; empty = the last one", "", _perhaps),
            Question("point", "the hand's point in the frame of that link [m]", "0,0,0", _vector),
            Question("target", "where the hand should be at the end [m]; empty = no servos", "", _optional(_vector)),
            Question("servo", "stiffness of the servos [N m/rad, N/m]; empty = by the effort that each joint's limit "
                     "names, else 100", "", _optional(_POSITIVE)),
            Question("markers", "markers that were recorded and their places on links [m], such as "
                     "tip=fore:0,0,-0.4", "", _on_links),
            Question("recording", "file of the recording; empty = none", "", _perhaps),
            Question("release", "recording time at which the simulation starts [s]", "0", _ANY),
            Question("start", "about where the joints are then [rad, m]; empty = as the file says", "",
                     _optional(_values)),
            Question("duration", "seconds to simulate", "0.6", _POSITIVE),
        ),
        robot,
    ),
    "toss": Template(
        "a rigid body tossed on a table, contact by impulses; with a recording, its start, friction and restitution",
        (
            Question("size", "edges of the box [m]", "0.1,0.1,0.1", _sizes),
            Question("surface", "its closed surface in metres, such as body.stl; empty = the box", "", _perhaps),
            Question("mass", "mass [kg]", "0.4", _POSITIVE),
            Question("markers", "markers and their places from the middle of the box, or in the surface's frame [m]; "
                     "empty = two corners", "", _places),
            Question("table", "height of the table [m]", "0", _ANY),
            Question("friction", "first guess of the friction with the table [-]", "0.2", _POSITIVE),
            Question("restitution", "first guess of the restitution [-]", "0.2", _number(0.0, 1.0)),
            Question("recording", "file of the recording, such as toss.c3d; empty = none", "", _perhaps),
            Question("release", "recording time at which the body flies free [s]", "0", _ANY),
            Question("duration", "seconds to simulate", "0.5", _POSITIVE),
        ),
        toss,
    ),
    "chain": Template(
        "a pendulum of any number of arms; with a recording of its angles, start, dampings and inertias are fitted",
        (
            Question("lengths", "lengths of the arms from the pivot on [m]", "0.2,0.15", _numbers),
            Question("masses", "masses of the arms [kg]", "0.1,0.1", _numbers),
            Question("recording", "file with the angles of the arms; empty = none", "", _perhaps),
            Question("angles", "names of their angles in the file, from the pivot on; empty = all, as they come", "",
                     _words),
            Question("zero", "where an arm points at an angle of 0; angles count from the vertical", "down",
                     _choice("down", "up")),
            Question("release", "recording time at which the simulation starts [s]", "0", _ANY),
            Question("duration", "seconds to simulate", "2", _POSITIVE),
        ),
        chain,
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
        two_bodies,
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
        throw,
    ),
}  # fmt: skip
