"""`add new`: a scene from a template, by asking or by options; the questions have defaults."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from add.commands import console as shared
from add.commands.console import Console, named_value, require_new
from add.errors import InputError, require_known


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
    scene: Callable[[Mapping[str, Any]], dict[str, Any]]


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


def made(template: Template, answers: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the scene of the answers, checked, with masks for spikes and exchanges of recorded markers.

    Its files count from ``folder``.
    """
    from add.mocap.suspects import masks
    from add.scene import scene_from_dict
    from add.scene.build.recordings import load_recording, whole_recording

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


def _scene(name: str, answers: Mapping[str, Any]) -> dict[str, Any]:
    """Make the scene of a template, whose function has its name."""
    from add.commands import template_scenes

    made_of: Callable[[Mapping[str, Any]], dict[str, Any]] = getattr(template_scenes, name.replace("-", "_"))
    return made_of(answers)


def _question(name: str, text: str, default: str, kind: str = "", choice: Sequence[str] = (),
              optional: bool = False) -> Question:  # fmt: skip
    read = _choice(*choice) if choice else _KINDS[kind]
    return Question(name, text, default, (lambda text: read(text) if text else None) if optional else read)


#: Templates by name; their questions stand in `templates.json`.
TEMPLATES: dict[str, Template] = {
    name: Template(said["text"], tuple(_question(**one) for one in said["questions"]), partial(_scene, name))
    for name, said in json.loads(Path(__file__).with_name("templates.json").read_text(encoding="utf-8")).items()
}


# --- the command ------------------------------------------------------------------------------------------------------

SCHEMA = "add-scene-1.schema.json"


@click.command(short_help="Start a scene from a template.")
@click.argument("template", required=False)
@click.option("-o", "--output", type=click.Path(), help="Scene to write [default: TEMPLATE.json].")
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="An answer; may be repeated.")
@click.option("--defaults", is_flag=True, help="Ask nothing: what --set does not say has its default.")
@click.option("--list", "listed", is_flag=True, help="Say which templates there are, and their questions.")
@shared.replace
@shared.console
def new(
    console: Console,
    template: str | None,
    *,
    output: str | None,
    given: tuple[str, ...],
    defaults: bool,
    listed: bool,
    force: bool,
) -> None:
    """Start a scene from TEMPLATE: specimen, robot, two-bodies, throw, toss or chain.

    What is not said by --set is asked for. The scene is checked before it is written, and the format's JSON Schema is
    put beside it, so that editors complete its keys.
    """
    from add.io.lock import replacing
    from add.scene.spec.roles import schema_text

    if listed:
        _say_templates(console)
        return
    if template is None:
        if defaults:
            raise click.UsageError(f"Say which template: {', '.join(TEMPLATES)}.")
        template = click.prompt("template", type=click.Choice(list(TEMPLATES)), err=True)
    require_known([template], TEMPLATES, "there is no such template", place="TEMPLATE")
    path = Path(output or f"{template}.json")
    require_new(path, force)
    chosen = TEMPLATES[template]
    said = dict(named_value(text, "--set", "this is no answer") for text in given)
    answers = answered(chosen, said) if defaults else _asked(chosen, said)
    raw = {"$schema": f"./{SCHEMA}", **_beside(made(chosen, answers, Path()), path.parent)}
    with replacing(path) as temporary:
        temporary.write_text(_text(raw), encoding="utf-8")
    schema = path.parent / SCHEMA
    if not schema.exists():
        with replacing(schema) as temporary:
            temporary.write_text(schema_text(), encoding="utf-8")
    console.say(f"{path}: {raw['name']}")
    for mask in raw.get("recording", {}).get("mask", ()):
        console.say("  left out, as it looks mistaken (recording.mask): {marker} from {from} to {to} s".format(**mask))
    following = ["simulate", *(["optimize"] if "objective" in raw else [])]
    console.say("next: " + "; ".join(f"add {word} {path}" for word in ("check", *following)))
    console.result({"scene": str(path), "schema": str(schema), "template": template})


def _say_templates(console: Console) -> None:
    for name, template in TEMPLATES.items():
        console.say(f"{name}: {template.text}")
        for question in template.questions:
            console.say(f"  {question.name}: {question.text}" + (f" [{question.default}]" if question.default else ""))
    console.result({
        name: {question.name: {"text": question.text, "default": question.default} for question in template.questions}
        for name, template in TEMPLATES.items()
    })  # fmt: skip


def _asked(template: Template, said: dict[str, str]) -> dict[str, Any]:
    """Ask for what was not said, again where an answer is none."""
    said = dict(said)
    for question in template.questions:
        while question.name not in said:
            text = click.prompt(question.text, default=question.default, show_default=bool(question.default), err=True)
            try:
                question.answer(text)
            except InputError as error:
                click.echo(str(error), err=True)
                continue
            said[question.name] = text
    return answered(template, said)


def _beside(raw: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the scene with the files that answers named, which count from here, counted from its own folder."""
    from add.scene.read.paths import path_slots

    raw = json.loads(json.dumps(raw))
    for holder, key, _ in path_slots(raw):
        given = str(holder[key])
        if not os.path.isabs(given) and not given.startswith("${"):
            holder[key] = Path(os.path.relpath(given, folder)).as_posix()
    return raw


def _text(raw: dict[str, Any]) -> str:
    """Return the JSON of a scene: one key a line, small lists and objects on one."""

    def written(value: Any, indent: int) -> str:
        short = json.dumps(value)
        if not isinstance(value, dict) or (indent and len(short) < 100 - indent):
            return short
        pad = " " * (indent + 2)
        rows = ",\n".join(f"{pad}{json.dumps(key)}: {written(item, indent + 2)}" for key, item in value.items())
        return f"{{\n{rows}\n{' ' * indent}}}"

    return written(raw, 0) + "\n"
