"""`add recording`, `add mesh` and `add export`: files that come and go, their arguments and what is said."""

import functools
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from add.commands import console as shared
from add.commands.cli_runs import trajectory_of
from add.commands.console import Console, named_value, require_new, tell
from add.errors import InputError, naming
from add.summary import fields_of

_replace = click.option("--force", is_flag=True, help="Replace a file that is already there.")


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
@shared.strict
@_reading
def info(console: Console, take: Any) -> None:
    """Say what FILE holds: format, unit, rate, markers and their gaps, bodies, signals, events."""
    from add.commands.file_contents import contents, description

    for line in description(take):
        console.say(line)
    console.result(contents(take))


@recording.command(short_help="Write FILE as CSV or TRC.")
@shared.strict
@_reading
@click.argument("out", type=click.Path())
@click.option("--marker", "names", multiple=True, help="Write this marker; may be repeated [default: all].")
@click.option("--labelled", is_flag=True, help="Leave unlabelled tracks out.")
@click.option("--body", help="Write the pose of this body instead (.csv).")
@click.option("--signals", is_flag=True, help="Write the signals instead (.csv).")
@_replace
def convert(console: Console, take: Any, out: str, *, force: bool, **chosen: Any) -> None:
    """Write the markers of FILE to OUT, .csv or .trc, in metres with z up; missing samples are blank."""
    from add.commands.file_contents import convert as write

    require_new(Path(out), force)
    console.files(write(take, out, **chosen))


@recording.command(short_help="Draw FILE over time.")
@shared.strict
@_reading
@click.option("-o", "--output", type=click.Path())
@click.option("--track", "names", multiple=True)
def plot(console: Console, take: Any, output: str | None, names: tuple[str, ...]) -> None:
    """Draw when each track of FILE was seen, and its coordinates and signals over time.

    Options
    -------
    --output : Picture, .png or .svg [default: NAME.png here for the file NAME].
    --track : Draw this marker or signal; may be repeated [default: the first ten].
    """
    from add.plot.files import plot_take

    console.files([plot_take(take, output or f"{Path(take.source).stem}.png", names)])


_UNITS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}


def _length(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """Return a length with its unit, such as 5mm, in metres."""
    if value is None:
        return None
    match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(m|cm|mm)\s*", value)
    try:
        number = float(match.group(1)) if match else 0.0
    except ValueError:
        number = 0.0
    if match is None or not 0.0 < number < float("inf"):
        raise click.BadParameter("give a length with its unit, such as 5mm, 0.5cm or 0.005m", context, option)
    return number * _UNITS[match.group(2)]


@click.command(short_help="Fill a closed surface with tetrahedra.")
@click.argument("surface", type=click.Path())
@click.option("--edge", required=True, callback=_length, help="Length of the element edges, such as 5mm.")
@click.option("-o", "--output", required=True, type=click.Path(), help="Mesh file, such as specimen.msh, in metres.")
@click.option("--unit", type=click.Choice(list(_UNITS)), default="m", show_default=True)
@click.option("--tolerance", callback=_length, help="How far the boundary may move [default: 1/1000 of the diagonal].")
@click.option("--fill-holes", is_flag=True, help="Close holes of any size.")
@click.option("--picture", type=click.Path(), help="Draw the mesh and its quality (.png or .svg).")
@_replace
@shared.strict
def mesh(
    console: Console,
    surface: str,
    edge: float,
    output: str,
    unit: str,
    tolerance: float | None,
    fill_holes: bool,
    picture: str | None,
    force: bool,
) -> None:
    """Repair SURFACE (STL, OBJ, PLY, OFF), fill it with tetrahedra and say how good they are.

    Needs the extra: pip install 'add-sim[mesh]'.

    Options
    -------
    --unit : Of the surface's numbers.
    """
    from add.geometry import SoftMesh
    from add.geometry.boundary import mesh_quality
    from add.geometry.triangle_surface import repaired
    from add.io.lock import replacing
    from add.io.meshes import write_mesh
    from add.io.surfaces import fill, read_surface, require_mesher
    from add.plot.files import plot_mesh

    require_mesher()
    require_new(Path(output), force)
    scale = _UNITS[unit]
    with naming(file=surface):
        closed = repaired(read_surface(surface), fill=fill_holes)
        for note in closed.notes:
            console.say(f"  repaired: {note}")
        filled = fill(closed, edge / scale, None if tolerance is None else tolerance / scale)
    metres = SoftMesh(filled.points * scale, filled.cells, filled.family)
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
            **fields_of(quality, "nodes", "elements", "volume"),
            "volume_error": share,
            "worst_shape": float(quality.shapes.min()),
            "angles": [quality.smallest_angle, quality.largest_angle],
            "repairs": list(closed.notes),
        }
    )


_log = logging.getLogger(__name__)

_NO_LIMIT = "this is no limit of a signal"


@click.command(short_help="Write control signals, markers or the whole motion for other programs.")
@click.argument("source", type=click.Path())
@click.option("--controls", is_flag=True, help="Export signals: angles, torques, forces, given motions.")
@click.option("--markers", is_flag=True, help="Export the simulated markers of a run: .c3d, .trc or .csv.")
@click.option("--vtk", is_flag=True, help="Export the motion of a run for ParaView: .pvd, with VTU files in a folder.")
@click.option("--surfaces", is_flag=True, help="Export the surfaces of a run over time: .usdc, .usda, .glb, .obj.")
@click.option("--rate", type=float)
@click.option("--signal", "names", multiple=True, metavar="NAME", help="A signal to export [default: all].")
@click.option("--limit", "limits", multiple=True, metavar="NAME=LOW:HIGH")
@click.option("--max-rate", "rates", multiple=True, metavar="NAME=RATE")
@click.option("--experiment", metavar="NAME", help="Whose controls or motion [default: the first motion].")
@click.option("-o", "--output", required=True, type=click.Path())
@_replace
@shared.strict
def export(
    console: Console,
    source: str,
    *,
    rate: float | None,
    names: tuple[str, ...],
    limits: tuple[str, ...],
    rates: tuple[str, ...],
    experiment: str | None,
    output: str,
    force: bool,
    **asked: bool,
) -> None:
    """Write what SOURCE, a scene or a run folder, sends to its motors, or the motion of a run.

    --controls: `time_s`, then `name [unit]`; into .mcap messages of ROS 2: the signals, and joint states with efforts
    and poses, which are simulated. Limits that are not kept are warnings; with --strict nothing is written then.
    --markers: capture files that `add recording` and other programs read. --vtk: bodies with displacement, velocity,
    contact force, strain and stress. --surfaces: USD (.usdc, .usda), glTF with animation (.glb), or a folder of OBJ
    files, one a moment.

    Options
    -------
    --rate : Samples a second [Hz], such as 125 [default, not of controls: the steps of the run].
    --limit : Values that a signal must keep, in its unit [default, of a position servo: the joint's range].
    --max-rate : Largest change in a signal's unit a second [default, of a position servo: what the robot's file says].
    --output : File to write, such as controls.csv or controls.mcap.
    """
    from add.commands import export as exports
    from add.mocap.write import write_mcap, write_signals
    from add.scene.build.scene import build

    what = [kind for kind, wanted in asked.items() if wanted]
    if len(what) != 1:
        raise click.UsageError("Say what to export: one of --controls, --markers, --vtk and --surfaces.")
    if what != ["controls"]:
        if names or limits or rates:
            raise click.UsageError("--signal, --limit and --max-rate are for --controls.")
        _motion(console, shared.motion_of(console, source, experiment), Path(output), rate, what[0], force)
        return
    if rate is None:
        raise click.UsageError("--controls needs --rate.")
    require_new(Path(output), force)
    bag = Path(output).suffix.lower() == ".mcap"
    built = build(exports.scene_that_plays(exports.scene_of(source), experiment, whole=bag))
    signals = exports.sampled_controls(built, rate, names)
    servos = exports.limits_of_servos(built.scene)
    kept = {name: servos[name] for name in {signal.name for signal in signals} & set(servos)}
    for text in limits:
        name, value = named_value(text, "--limit", _NO_LIMIT, "NAME=value")
        low, _, high = value.partition(":")
        ends = _number(low, "--limit", text), _number(high, "--limit", text)
        if not ends[0] < ends[1]:
            raise InputError("the lower limit must be below the upper one", place="--limit", found=text)
        kept[name] = kept.get(name, exports.Limits())._replace(lower=ends[0], upper=ends[1])
    for text in rates:
        name, value = named_value(text, "--max-rate", _NO_LIMIT, "NAME=value")
        fastest = _number(value, "--max-rate", text)
        if fastest <= 0.0:
            raise InputError("a rate must be above 0", place="--max-rate", found=text)
        kept[name] = kept.get(name, exports.Limits())._replace(rate=fastest)
    warnings = exports.beyond_limits(signals, kept)
    for warning in warnings:
        _log.warning("%s", warning)
    console.heed(warnings)
    if bag:
        write_mcap(output, exports.motion_with(built, signals))
    else:
        write_signals(Path(output), signals)
    console.say(f"{len(signals)} signals of {signals[0].times.size} samples at {rate:g} Hz: {output}")
    console.result({
        "file": output, "samples": int(signals[0].times.size), "rate": rate,
        "columns": [f"{signal.name} [{signal.unit}]" for signal in signals], "warnings": warnings,
    })  # fmt: skip


def _motion(console: Console, path: Path, output: Path, rate: float | None, what: str, force: bool) -> None:
    """Write the motion of a run."""
    from add.commands.export import export_markers, export_vtu
    from add.commands.export_surfaces import export_surfaces

    if path.is_file() and path.suffix == ".json":
        raise InputError("a scene has no motion yet", file=path, expected="the folder of a run: `add simulate` first")
    if output.is_dir():
        raise InputError("this is a folder", file=output, expected="a file to write, such as motion.pvd")
    require_new(_written(output), force)
    data = trajectory_of(path)
    write = {"vtk": export_vtu, "surfaces": export_surfaces, "markers": export_markers}[what]
    n = write(data, output, rate)
    written = _written(output)
    console.say(f"{n} moments: {written}{'/' if written != output else ''}")
    if what == "markers" and (directions := _directions(path)):
        console.say(f"left out, since directions are no points: {', '.join(directions)}")
    console.result({"file": str(output), "samples": n})


def _written(output: Path) -> Path:
    """Return what an export writes: the file that the user names, or the folder of OBJ files, one a moment."""
    return output.with_suffix("") if output.suffix == ".obj" else output


def _directions(run: Path) -> list[str]:
    """Return the markers of a run's scene that are directions."""
    from add.io.runfolder import SCENE, RunFolder

    if not run.is_dir():
        return []
    scene = RunFolder(run, create=False).known(SCENE)
    return [name for name, marker in scene.get("markers", {}).items() if "direction" in marker]


def _number(text: str, option: str, whole: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError("a limit needs numbers", place=option, found=whole, expected="NAME=-1.5:1.5, NAME=3") from None
    if value != value:
        raise InputError("a limit is not a number", place=option, found=whole)
    return value
