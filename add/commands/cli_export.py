"""`add export`: its arguments and what it says."""

import logging
from dataclasses import replace
from pathlib import Path

import click

from add.commands.console import Console, console_options, strict_option
from add.errors import InputError

_log = logging.getLogger(__name__)


@click.command(short_help="Write control signals, markers or the whole motion for other programs.")
@click.argument("source", type=click.Path())
@click.option("--controls", is_flag=True, help="Export signals: angles, torques, forces, given motions.")
@click.option("--markers", is_flag=True, help="Export the simulated markers of a run: .c3d, .trc or .csv.")
@click.option("--vtk", is_flag=True, help="Export the motion of a run for ParaView: .pvd, with VTU files in a folder.")
@click.option("--surfaces", is_flag=True, help="Export the surfaces of a run over time: .usdc, .usda, .glb, .obj.")
@click.option(
    "--rate", type=float, help="Samples a second [Hz], such as 125 [default, not of controls: the steps of the run]."
)
@click.option("--signal", "names", multiple=True, metavar="NAME", help="A signal to export [default: all].")
@click.option(
    "--limit", "limits", multiple=True, metavar="NAME=LOW:HIGH",
    help="Values that a signal must keep, in its unit [default, of a position servo: the joint's range].",
)  # fmt: skip
@click.option(
    "--max-rate",
    "rates",
    multiple=True,
    metavar="NAME=RATE",
    help="Largest change in a signal's unit a second [default, of a position servo: what the robot's file says].",
)
@click.option(
    "-o", "--output", required=True, type=click.Path(), help="File to write, such as controls.csv or controls.mcap."
)
@console_options
@strict_option
def export(
    console: Console,
    source: str,
    *,
    rate: float | None,
    names: tuple[str, ...],
    limits: tuple[str, ...],
    rates: tuple[str, ...],
    output: str,
    **asked: bool,
) -> None:
    """Write what SOURCE, a scene or a run folder, sends to its motors, or the motion of a run.

    --controls: `time_s`, then `name [unit]`; into .mcap messages of ROS 2: the signals, and joint states with efforts
    and poses, which are simulated. Limits that are not kept are warnings; with --strict nothing is written then.
    --markers: capture files that `add recording` and other programs read. --vtk: bodies with displacement, velocity,
    contact force, strain and stress. --surfaces: USD (.usdc, .usda), glTF with animation (.glb), or a folder of OBJ
    files, one a moment.
    """
    from add.commands.export import Limits, beyond_limits, limits_of_servos, motion_with, sampled_controls, scene_of
    from add.mocap.write import write_mcap, write_signals

    what = [kind for kind, wanted in asked.items() if wanted]
    if len(what) != 1:
        raise click.UsageError("Say what to export: one of --controls, --markers, --vtk and --surfaces.")
    if what != ["controls"]:
        if names or limits or rates:
            raise click.UsageError("--signal, --limit and --max-rate are for --controls.")
        _motion(console, source, Path(output), rate, what[0])
        return
    if rate is None:
        raise click.UsageError("--controls needs --rate.")
    built = scene_of(source).build()
    signals = sampled_controls(built, rate, names)
    own = limits_of_servos(built.scene)
    kept = {name: own[name] for name in {signal.name for signal in signals} & set(own)}
    for text in limits:
        name, value = _pair(text, "--limit")
        low, _, high = value.partition(":")
        found = _number(low, "--limit", text), _number(high, "--limit", text)
        if not found[0] < found[1]:
            raise InputError("the lower limit must be below the upper one", place="--limit", found=text)
        kept[name] = replace(kept.get(name, Limits()), lower=found[0], upper=found[1])
    for text in rates:
        name, value = _pair(text, "--max-rate")
        fastest = _number(value, "--max-rate", text)
        if fastest <= 0.0:
            raise InputError("a rate must be above 0", place="--max-rate", found=text)
        kept[name] = replace(kept.get(name, Limits()), rate=fastest)
    warnings = beyond_limits(signals, kept)
    for warning in warnings:
        _log.warning("%s", warning)
    console.heed(warnings)
    if Path(output).suffix.lower() == ".mcap":
        write_mcap(output, motion_with(built, signals))
    else:
        write_signals(Path(output), signals)
    console.say(f"{len(signals)} signals of {signals[0].times.size} samples at {rate:g} Hz: {output}")
    console.result({
        "file": output, "samples": int(signals[0].times.size), "rate": rate,
        "columns": [f"{signal.name} [{signal.unit}]" for signal in signals], "warnings": warnings,
    })  # fmt: skip


def _motion(console: Console, source: str, output: Path, rate: float | None, what: str) -> None:
    """Write the motion of a run."""
    from add.commands.export import export_markers, export_vtu
    from add.commands.export_surfaces import export_surfaces
    from add.commands.folders import to_view
    from add.io.runfolder import RunFolder
    from add.io.trajectory_file import read_run

    path = Path(source)
    if path.is_file() and path.suffix == ".json":
        raise InputError("a scene has no motion yet", file=path, expected="the folder of a run: `add simulate` first")
    if not output.parent.is_dir():
        raise InputError("no such folder", file=output.parent)
    if output.is_dir():
        raise InputError("this is a folder", file=output, expected="a file to write, such as motion.pvd")
    data = read_run(to_view(RunFolder(path, create=False)) if path.is_dir() else path)
    write = {"vtk": export_vtu, "surfaces": export_surfaces, "markers": export_markers}[what]
    n = write(data, output, rate)
    console.say(f"{n} moments: {output}")
    console.result({"file": str(output), "samples": n})


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError("this is no limit of a signal", place=option, found=text, expected="NAME=value")
    return name, value


def _number(text: str, option: str, whole: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError("a limit needs numbers", place=option, found=whole, expected="NAME=-1.5:1.5, NAME=3") from None
    if value != value:
        raise InputError("a limit is not a number", place=option, found=whole)
    return value
