"""`add recording` and `add mesh`: files of capture systems and of meshes, looked at and written anew."""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from add.commands.console import Console, console_options, strict_option, tell
from add.errors import naming


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
            if any('"mask"' in text for text in shown):
                tell("masks here count on the file's clock: of a scene with a time_offset `add check` says its own")
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
    from add.plot.files import plot_take

    path = plot_take(take, output or f"{Path(take.source).stem}.png", names)
    console.say(str(path))
    console.result([str(path)])


_UNITS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}


def _length(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """Return a length with its unit, such as 5mm, in metres."""
    if value is None:
        return None
    found = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(m|cm|mm)\s*", value)
    try:
        number = float(found.group(1)) if found else 0.0
    except ValueError:
        number = 0.0
    if found is None or not 0.0 < number < float("inf"):
        raise click.BadParameter("give a length with its unit, such as 5mm, 0.5cm or 0.005m", context, option)
    return number * _UNITS[found.group(2)]


@click.command(short_help="Fill a closed surface with tetrahedra.")
@click.argument("surface", type=click.Path())
@click.option("--edge", required=True, callback=_length, help="Length of the element edges, such as 5mm.")
@click.option("-o", "--output", required=True, type=click.Path(), help="Mesh file, such as specimen.msh, in metres.")
@click.option(
    "--unit", type=click.Choice(list(_UNITS)), default="m", show_default=True, help="Of the surface's numbers."
)
@click.option("--tolerance", callback=_length, help="How far the boundary may move [default: 1/1000 of the diagonal].")
@click.option("--fill-holes", is_flag=True, help="Close holes of any size.")
@click.option("--picture", type=click.Path(), help="Draw the mesh and its quality (.png or .svg).")
@console_options
@strict_option
def mesh(
    console: Console,
    surface: str,
    edge: float,
    output: str,
    unit: str,
    tolerance: float | None,
    fill_holes: bool,
    picture: str | None,
) -> None:
    """Repair SURFACE (STL, OBJ, PLY, OFF), fill it with tetrahedra and say how good they are.

    Needs the extra: pip install 'add-sim[mesh]'.
    """
    from add.geometry import SoftMesh
    from add.geometry.mesh_check import mesh_quality
    from add.geometry.triangle_surface import repaired
    from add.io.lock import replacing
    from add.io.meshes import write_mesh
    from add.io.surfaces import fill, read_surface, require_mesher
    from add.plot.files import plot_mesh

    require_mesher()
    scale = _UNITS[unit]
    with naming(file=surface):
        closed = repaired(read_surface(surface), fill=fill_holes)
        for note in closed.notes:
            console.say(f"  repaired: {note}")
        found = fill(closed, edge / scale, None if tolerance is None else tolerance / scale)
    metres = SoftMesh(found.points * scale, found.cells, found.family)
    with replacing(Path(output)) as part:
        write_mesh(part, metres)
    quality = mesh_quality(metres)
    for text in quality.lines():
        console.say(f"  {text}")
    share = quality.volume / (abs(closed.volume) * scale**3) - 1.0
    console.say(f"  volume against the surface's {100.0 * share:+.3f} %")
    if picture:
        console.say(str(plot_mesh(metres, picture)))
    console.say(f"mesh: {output}")
    console.result(
        {
            "mesh": output,
            "nodes": quality.nodes,
            "elements": quality.elements,
            "volume": quality.volume,
            "volume_error": share,
            "worst_shape": float(quality.shapes.min()),
            "angles": [quality.smallest_angle, quality.largest_angle],
            "repairs": list(closed.notes),
        }
    )
