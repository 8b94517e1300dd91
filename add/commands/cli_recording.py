"""The commands on capture files: `add recording info`, `convert`, `plot`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from add.commands.console import Console, console_options, strict_option, tell


@click.group()
def recording() -> None:
    """Look into the files of capture systems.

    C3D, TRC, CSV of Motive and Vicon, TSV of Qualisys, plain CSV, JSON of poses,
    MCAP.
    """


def _reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the file, and the choices that the file may leave open; warn of what is in doubt."""

    @click.argument("file", type=click.Path())
    @click.option(
        "--unit", type=click.Choice(["m", "cm", "mm"]), help="Unit of length of a file that does not say its own."
    )
    @click.option("--up", type=click.Choice(["x", "y", "z"]), help="The file's axis that points up; it becomes z.")
    @click.option("--number-repeated", is_flag=True, help="Call tracks that share a name NAME#1, NAME#2.")
    @functools.wraps(command)
    def wrapped(
        console: Console, file: str, unit: str | None, up: str | None, number_repeated: bool, **others: Any
    ) -> Any:
        from add.mocap import read_take

        take = read_take(file, unit=unit, up=up, number_repeated=number_repeated)
        from add.mocap.suspects import suspects

        doubts = [*take.doubts, *(() if take.markers is None else suspects(take.markers))]
        shown = [*doubts, *([take.frame] if take.frame and up is None else [])]
        if not console.quiet:
            for text in shown:
                tell(f"WARNING: {file}: {text}")
        console.heed(doubts)
        return command(console, take, **others)

    return wrapped


@recording.command()
@console_options
@strict_option
@_reading
def info(console: Console, take: Any) -> None:
    """Say what FILE holds: format, unit, rate, markers and their gaps, bodies, signals, events."""
    from add.commands.recording import contents, description

    for line in description(take):
        console.say(line)
    console.result(contents(take))


@recording.command(short_help="Write FILE as CSV or TRC.")
@console_options
@strict_option
@_reading
@click.argument("out", type=click.Path())
@click.option("--marker", "names", multiple=True, help="Write this marker; may be repeated [default: all].")
@click.option("--labelled", is_flag=True, help="Leave unlabelled tracks out.")
@click.option("--body", help="Write the pose of this body instead (.csv).")
@click.option("--signals", is_flag=True, help="Write the signals instead (.csv).")
@click.option("--force", is_flag=True, help="Replace a file that is already there.")
def convert(
    console: Console,
    take: Any,
    out: str,
    names: tuple[str, ...],
    labelled: bool,
    body: str | None,
    signals: bool,
    force: bool,
) -> None:
    """Write the markers of FILE to OUT, .csv or .trc, in metres with z up; missing samples are blank."""
    from add.commands.recording import convert as write
    from add.errors import InputError

    if Path(out).exists() and not force:
        raise InputError("is already there", file=out, expected="another name, or --force")
    written = write(take, out, names=names, labelled=labelled, body=body, signals=signals)
    for path in written:
        console.say(str(path))
    console.result([str(path) for path in written])


@recording.command(short_help="Draw FILE over time.")
@console_options
@strict_option
@_reading
@click.option(
    "-o", "--output", type=click.Path(), help="Picture, .png or .svg [default: NAME.png here for the file NAME]."
)
@click.option(
    "--track", "names", multiple=True, help="Draw this marker or signal; may be repeated [default: the first ten]."
)
def plot(console: Console, take: Any, output: str | None, names: tuple[str, ...]) -> None:
    """Draw when each track of FILE was seen, and its coordinates and signals over time."""
    from add.plot.recording import plot_take

    path = plot_take(take, output or f"{Path(take.source).stem}.png", names)
    console.say(str(path))
    console.result([str(path)])
