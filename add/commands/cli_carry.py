"""`add carry`: its arguments and what it says."""

from __future__ import annotations

from pathlib import Path

import click

from add.commands.cli_runs import loaded_scene
from add.commands.console import Console, console_options, say_left_behind, strict_option
from add.errors import InputError


@click.command(short_help="Write the numbers of a fit into another scene.")
@click.argument("run", type=click.Path())
@click.argument("scene", type=click.Path())
@click.option("--parameter", "parameters", multiple=True, help="A number of the fit to use [default: all properties].")
@click.option("-o", "--output", required=True, type=click.Path(), help="Scene to write, such as throw_fitted.json.")
@click.option("--force", is_flag=True, help="Replace a scene that is already there.")
@console_options
@strict_option
def carry(console: Console, run: str, scene: str, *, parameters: tuple[str, ...], output: str, force: bool) -> None:
    """Write SCENE with the numbers that the fit or optimisation in RUN found, such as a material.

    What belongs to one motion stays behind, unless --parameter names it: starts, what drives bodies over time, numbers
    of a recording or of one take.
    """
    from add.commands.carry import carry as carried_into
    from add.io.runfolder import RunFolder

    path = Path(output)
    if path.exists() and not force:
        raise InputError("is already there", file=path, expected="another name, or --force")
    if not path.parent.is_dir():
        raise InputError("no such folder", file=path.parent)
    found, numbers, left = carried_into(loaded_scene(console, scene), RunFolder(run, create=False), parameters)
    for label, value in numbers.items():
        console.say(f"  {label} = {value:.6g}")
    say_left_behind(console, left)
    found.save(path)
    console.say(f"scene: {path}")
    console.result({"scene": str(path), "parameters": numbers, "left_behind": left})


@click.command(short_help="Run SCENE under several friction laws.")
@click.argument("scene", type=click.Path())
@click.option(
    "--laws",
    default="linear,tanh,hybrid,impulse,exact",
    show_default=True,
    metavar="LAW,LAW,...",
    help="Friction laws to run it under.",
)
@console_options
def compare(console: Console, scene: str, laws: str) -> None:
    """Run SCENE under several friction laws: where bodies end, the objective's gradient and times, side by side.

    A law that the scene cannot run under is named with the reason; the integrator is changed where a law asks for it.
    """
    from add.commands.compare import compare_laws, comparison_json, comparison_text, require_laws

    names = [law.strip() for law in laws.split(",") if law.strip()]
    require_laws(names)
    runs = compare_laws(loaded_scene(console, scene), names)
    console.say(comparison_text(runs))
    console.result(comparison_json(runs))
