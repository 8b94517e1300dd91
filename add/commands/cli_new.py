"""`add new`: a scene from a template, by asking or by options."""

import json
import os
from pathlib import Path
from typing import Any

import click

from add.commands import console as shared
from add.commands.console import Console, named_value, require_new
from add.errors import InputError, require_known

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
    from add.commands.templates import TEMPLATES, answered, made
    from add.io.lock import replacing
    from add.scene.spec.roles import schema_text

    if listed:
        _list(console, TEMPLATES)
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


def _list(console: Console, templates: dict[str, Any]) -> None:
    for name, template in templates.items():
        console.say(f"{name}: {template.text}")
        for question in template.questions:
            console.say(f"  {question.name}: {question.text}" + (f" [{question.default}]" if question.default else ""))
    console.result({
        name: {question.name: {"text": question.text, "default": question.default} for question in template.questions}
        for name, template in templates.items()
    })  # fmt: skip


def _asked(template: Any, said: dict[str, str]) -> dict[str, Any]:
    """Ask for what was not said, again where an answer is none."""
    from add.commands.templates import answered

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
