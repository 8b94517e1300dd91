"""`add next`: its arguments and what it says."""

from __future__ import annotations

from pathlib import Path

import click

from add.commands.cli_runs import loaded_scene
from add.commands.console import Console, console_options, strict_option


@click.command("next", short_help="Say which motion to record next.")
@click.argument("run", type=click.Path())
@click.argument("scenes", nargs=-1, required=True, type=click.Path())
@click.option(
    "--vary",
    "variations",
    multiple=True,
    metavar="PATH=A,B,...",
    help="Try each scene with these values of a number, such as bodies.block.position.2=0.1,0.3.",
)
@click.option("--parameter", "parameters", multiple=True, help="A number of the fit to look at [default: all].")
@click.option("--for", "number", metavar="LABEL", help="Sort by this number alone.")
@console_options
@strict_option
def next_take(
    console: Console, run: str, scenes: tuple[str, ...], *, variations: tuple[str, ...], parameters: tuple[str, ...],
    number: str | None,
) -> None:  # fmt: skip
    """Say which of SCENES, recorded, would narrow the numbers of the fit in RUN most.

    Each is run once with the fitted numbers. From the slopes of its markers, the noise that the fit left over and the
    errors of the fit follow the errors of both together; where a motion starts is taken as known, and what steps and
    meshes are off is left out: no recording narrows it.
    """
    from add.commands.next_take import next_takes
    from add.io.runfolder import RunFolder
    from add.scene import apply_overrides

    candidates = []
    for file in scenes:
        scene = loaded_scene(console, file)
        cases = [(Path(file).stem, scene)]
        for text in variations:
            path, _, values = text.partition("=")
            try:
                numbers = [float(value) for value in values.split(",")]
            except ValueError:
                raise click.UsageError(f"--vary {text}: a path, '=', and numbers with commas between them") from None
            cases = [
                (f"{name}, {path} = {value:g}", apply_overrides(one, {path: value}))
                for name, one in cases
                for value in numbers
            ]
        candidates += cases
    found = next_takes(candidates, RunFolder(run, create=False), parameters, number)
    for one in found:
        console.say(f"{one.name}: errors x {one.narrowing:.3g}")
        for label, before, after in zip(one.labels, one.before, one.after, strict=True):
            console.say(f"  {label} +- {before:.3g} -> {after:.3g}")
    console.result([one.summary() for one in found])
