"""The command that compares friction laws."""

from __future__ import annotations

import click

from add.commands.cli_runs import loaded_scene
from add.commands.console import Console, console_options


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
