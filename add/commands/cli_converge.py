"""`add converge`: its arguments and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from add.commands.cli_runs import loaded_scene, write_and_say_report
from add.commands.console import Console, console_options, strict_option, tell


@click.command(short_help="Say what finer steps and meshes change of a fit.")
@click.argument("scene", type=click.Path())
@click.option("-o", "--output", help="Run folder of the fit [default: runs/NAME for the file NAME.json].")
@click.option("--time-levels", type=click.IntRange(0, 6), default=2, show_default=True, help="Halvings of the step.")
@click.option(
    "--mesh-levels", type=click.IntRange(0, 4), default=1, show_default=True, help="Halvings of the mesh width."
)
@click.option(
    "--finer",
    multiple=True,
    type=click.Path(),
    help="A JSON file of overrides that give the same bodies a finer mesh, instead of halved meshes; may be repeated, "
    "each finer than the one before.",
)
@console_options
@strict_option
def converge(
    console: Console, scene: str, output: str | None, time_levels: int, mesh_levels: int, finer: tuple[str, ...]
) -> None:
    """Fit the numbers of SCENE again with finer steps and meshes, after `add optimize`.

    The change enters the error bars of the run: discretisation.json, result.json and the report of its folder. What
    it will take is said first; a study that was stopped goes on with the same command.
    """
    from add.commands.converge import Levels, converge_scene
    from add.io.runfolder import RunFolder

    loaded = loaded_scene(console, scene)
    folder = RunFolder(output or Path("runs") / Path(scene).stem, create=False)
    found = converge_scene(loaded, folder, Levels(time_levels, mesh_levels, finer), progress=tell)
    for text in convergence_lines(found):
        console.say(text)
    write_and_say_report(console, folder)
    console.result(found)


def convergence_lines(found: dict[str, Any]) -> list[str]:
    """Return what a study found, a line for each number."""
    lines = []
    for name, entry in found["parameters"].items():
        lines.append(f"  {name} = {entry['value']:.6g} {entry['unit']}, discretisation error {entry['error']:.2g}")
        for kind in ("time", "mesh"):
            if kind in entry:
                item = entry[kind]
                values = ", ".join(f"{value:.6g}" for value in item["values"])
                assumed = "" if len(item["values"]) > 2 else " (assumed)"
                order = f"order {item['order']:.2g}{assumed}" if item["converges"] else "DOES NOT CONVERGE"
                lines.append(f"    {kind}: {values}: {order}, error {item['error']:.2g}")
    return lines + [f"  note: {text}" for text in found["doubts"]]
