"""Scenes to start from: questions with defaults, and the scene that their answers make."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from add.commands.template_scenes import Answers, chain, robot, specimen, throw, toss, two_bodies
from add.errors import InputError, require_known
from add.mocap.suspects import masks
from add.scene import scene_from_dict
from add.scene.build.recordings import load_recording, whole_recording


class Question(NamedTuple):
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


class Template(NamedTuple):
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
    require_known(given, names, "there is no such question", place="--set")
    return {
        question.name: question.answer(given.get(question.name, question.default)) for question in template.questions
    }


def made(template: Template, answers: Answers, folder: Path) -> dict[str, Any]:
    """Return the scene of the answers, checked, with masks for spikes and exchanges of recorded markers.

    Its files count from ``folder``.
    """
    raw = template.scene(answers)
    scene = scene_from_dict(raw, folder=folder)
    scene.build()
    if scene.recording is not None:
        load_recording(scene, "recording")  # its markers are those of the file
        own, end = scene.recording.markers or {}, scene.time.end
        found = masks(whole_recording(scene), {y: x for x, y in own.items()}) if own else []
        if kept := [item for item in found if item["marker"] in own and item["from"] < end and item["to"] > 0.0]:
            raw["recording"]["mask"] = kept
    return raw


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


def _list(expected: str, good: Callable[[list[float]], bool]) -> Callable[[str], list[float]]:
    """Return the reader of finite numbers with commas between them."""

    def read(text: str) -> list[float]:
        try:
            values = [_ANY(part) for part in text.split(",")]
        except ValueError:
            values = []
        if not values or not good(values):
            raise ValueError(expected)
        return values

    return read


def _pairs(text: str, expected: str) -> Iterator[tuple[str, str]]:
    """Iterate over the names and what is said of them in "name=...; name=..."."""
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, said = part.partition("=")
        if not equals or not name.strip():
            raise ValueError(expected)
        yield name.strip(), said


def _places(text: str) -> dict[str, list[float]]:
    """Read "name=x,y,z; name=x,y,z"."""
    expected = "markers and their places, such as tip=0.1,0.015,0.03; base=0,0.015,0.03"
    return {name: _vector(place) for name, place in _pairs(text, expected)}


def _on_links(text: str) -> dict[str, tuple[str, list[float]]]:
    """Read "name=link:x,y,z; name=x,y,z"."""
    out = {}
    for name, place in _pairs(text, "markers and their places on links, such as tip=fore:0,0,-0.4"):
        link, _, point = place.rpartition(":")
        out[name] = link.strip(), _vector(point)
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


def _required(text: str) -> str:
    if not text:
        raise ValueError("a file")
    return text


def _choice(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(" or ".join(words))
        return text

    return read


_POSITIVE, _RATIO, _ANY = _number(0.0), _number(-1.0, 0.5), _number(float("-inf"))
_vector = _list("three numbers, such as 0.1,0,0.2", lambda values: len(values) == 3)
_sizes = _list("three numbers above 0, such as 0.1,0.03,0.03", lambda values: len(values) == 3 and min(values) > 0.0)
_window = _list("two times, such as 0.2,0.4", lambda values: len(values) == 2 and values[0] < values[1])
_numbers = _list("numbers above 0, one an arm, such as 0.2,0.15", lambda values: min(values) > 0.0)
_values = _list("numbers, such as 1.1,-0.2", bool)

_KINDS: dict[str, Callable[[str], Any]] = {
    "positive": _POSITIVE, "ratio": _RATIO, "number": _ANY, "share": _number(0.0, 1.0),
    "friction": lambda text: 0.0 if text == "0" else _POSITIVE(text),
    "vector": _vector, "sizes": _sizes, "direction": _direction, "window": _window, "beyond": _beyond,
    "numbers": _numbers, "values": _values, "places": _places, "places on links": _on_links,
    "words": lambda text: [part.strip() for part in text.split(",") if part.strip()],
    "file": _required, "file or none": lambda text: text or None,
}  # fmt: skip
_SCENES = {
    "specimen": specimen, "robot": robot, "toss": toss, "chain": chain, "two-bodies": two_bodies, "throw": throw,
}  # fmt: skip


def _question(name: str, text: str, default: str, kind: str = "", choice: Sequence[str] = (),
              optional: bool = False) -> Question:  # fmt: skip
    read = _choice(*choice) if choice else _KINDS[kind]
    return Question(name, text, default, (lambda text: read(text) if text else None) if optional else read)


#: Templates by name; their questions stand in `templates.json`.
TEMPLATES: dict[str, Template] = {
    name: Template(said["text"], tuple(_question(**one) for one in said["questions"]), _SCENES[name])
    for name, said in json.loads(Path(__file__).with_name("templates.json").read_text(encoding="utf-8")).items()
}
