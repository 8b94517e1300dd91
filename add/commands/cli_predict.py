"""`add predict`: its arguments and what it says."""

import math
from pathlib import Path
from typing import Any

import click

from add.commands.cli_runs import keeping, loaded_scene, workers_for, write_and_say_report
from add.commands.console import Console, console_options, samples_bar, say_left_behind, strict_option
from add.commands.report_texts import end_text, how_far


@click.command(short_help="Predict another motion with the numbers of a fit.")
@click.argument("run", type=click.Path())
@click.argument("scene", type=click.Path())
@click.option("--parameter", "parameters", multiple=True, help="A number of the fit to use [default: all properties].")
@click.option(
    "--start",
    type=click.Path(),
    metavar="RUN",
    help="A fit of where this motion starts, such as of its first moments: the start goes along with its errors.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="Table to write, such as prediction.csv; with --samples the run "
    "folder [default: runs/NAME_predicted for the file NAME.json].",
)
@click.option("--picture", type=click.Path(), help="Draw the coordinates with their 95 % band (.png or .svg).")
@click.option(
    "--samples",
    type=click.IntRange(min=2),
    help="Run SCENE with so many draws of the numbers: bands that need "
    "no straight line, and how likely the run ends one way or another.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Of the draws [default: 0].")
@click.option("--level", type=click.FloatRange(0.5, 0.999), help="Share that the wider band holds [default: 0.9].")
@click.option(
    "--side",
    "sides",
    multiple=True,
    metavar="MARKER.AXIS=VALUE",
    help="How likely a marker ends beyond a value [m], such as tip.x=0.3; may be repeated.",
)
@click.option("--discrepancy", is_flag=True, help="Widen the bands by what the fit left over, as a correlated misfit.")
@click.option("--jobs", type=click.IntRange(min=1), help="Number of processes [default: one a core].")
@click.option("--cluster", metavar="ADDRESS", help="Use the workers of this Dask scheduler, e.g. tcp://host:8786.")
@click.option("--force", is_flag=True, help="Replace a run folder that is already there.")
@console_options
@strict_option
def predict(
    console: Console, run: str, scene: str, *, parameters: tuple[str, ...], start: str | None, output: str | None,
    picture: str | None, samples: int | None, **sampling: Any,
) -> None:  # fmt: skip
    """Simulate SCENE with the numbers that the fit in RUN found, with what their errors make of the markers' motion.

    In a straight line, or with --samples from many runs; one of those that was interrupted goes on.
    """
    from add.io.runfolder import RunFolder

    loaded = loaded_scene(console, scene)
    fit, begun = RunFolder(run, create=False), None if start is None else RunFolder(start, create=False)
    if samples is not None:
        from add.commands.predict_samples import Asked

        if picture:
            raise click.UsageError("--picture is for the straight line: with --samples the pictures lie in the folder.")
        if output is not None and Path(output).suffix in (".csv", ".png", ".svg"):
            raise click.UsageError(f"with --samples -o is a run folder, and not a file such as {output}.")
        sides = tuple(_side(text) for text in sampling.pop("sides"))
        said: dict[str, Any] = {
            "seed": sampling.pop("seed") or 0,
            "level": sampling.pop("level") or 0.9,
            "sides": sides,
        }
        wanted = Asked(fit, parameters, begun, samples=samples, discrepancy=sampling.pop("discrepancy"), **said)
        folder = Path(output) if output else Path("runs") / f"{Path(scene).stem}_predicted"
        _say_sampled(console, loaded, scene, folder, wanted, **sampling)
        return
    if given := [name for name, value in sampling.items() if value is not None and value is not False and value != ()]:
        raise click.UsageError(f"--{'side' if given[0] == 'sides' else given[0]} needs --samples.")
    if output is None:
        raise click.UsageError("-o is needed: the table to write, such as prediction.csv.")
    _say_linear(console, loaded, fit, begun, parameters, output, picture)


def _say_linear(
    console: Console, loaded: Any, fit: Any, begun: Any, parameters: tuple[str, ...], output: str, picture: str | None
) -> None:
    """Predict in a straight line."""
    from add.commands.predict import predict_scene, write_prediction
    from add.plot.prediction import plot_prediction
    from add.scene.spec.markers import DirectionMarkerSpec

    found, said = predict_scene(loaded, fit, parameters, begun)
    for label, value in said["parameters"].items():
        console.say(f"  {label} = {value:.6g}")
    say_left_behind(console, said["left_behind"])
    for prefix, unit in (("", "m"), ("angle_", "rad")):
        if f"largest_{prefix}error" in said:
            error = how_far(said[f"largest_{prefix}error"], unit, 3)
            console.say(f"  largest standard deviation of a marker, from these numbers: {error}")
    if "rms" in said:
        console.say(f"  rms distance from the recording {how_far(said['rms'], digits=3)}")
    if "rms_angle" in said:
        console.say(f"  rms angle from the recording {how_far(said['rms_angle'], 'rad', 3)}")
    if "verdict" in said:
        console.say(f"  {said['verdict']} (by the parameters' errors alone {100 * said['within_parameters']:.0f} %)")
    write_prediction(found, said["markers"], Path(output))
    console.say(f"prediction: {output}")
    if picture:
        directions = [isinstance(loaded.markers[name], DirectionMarkerSpec) for name in said["markers"]]
        console.say(
            str(plot_prediction(found.times, found.positions, found.errors, said["markers"], picture, directions))
        )
    console.result(said)


def _say_sampled(
    console: Console, loaded: Any, scene: str, at: Path, wanted: Any, *,
    jobs: int | None, cluster: str | None, force: bool,
) -> None:  # fmt: skip
    """Predict by samples."""
    from add.commands.folders import clear
    from add.commands.predict_samples import predict_samples
    from add.io.runfolder import RunFolder

    workers = click.get_current_context().with_resource(workers_for(jobs, cluster))
    folder = RunFolder(at, overwrite=True)
    with folder.locked("predict"), keeping(folder, scene), samples_bar(console, "predict") as progress:
        if force or not folder.is_run:
            clear(folder, loaded)
        result = predict_samples(loaded, folder, wanted, workers=workers, progress=progress)
    found = result["prediction"]
    for label, item in result["parameters"].items():
        console.say(f"  {label} = {item['value']:.6g} {item['unit']}, from {item['drawn_from']}")
    say_left_behind(console, found["left_behind"])
    for text in found["texts"]:
        console.say(f"  {text}")
    for item in found["ends"]:
        console.say(f"  {item['end']}: {end_text(item)}")
    write_and_say_report(console, folder)
    console.result(result)


def _side(text: str) -> tuple[str, str, float]:
    """Return marker, axis and value of a text such as tip.x=0.3."""
    place, _, value = text.partition("=")
    marker, _, axis = place.rpartition(".")
    try:
        if marker and axis in ("x", "y", "z") and math.isfinite(float(value)):
            return marker, axis, float(value)
    except ValueError:
        pass
    raise click.BadParameter(f"give MARKER.AXIS=VALUE such as tip.x=0.3, and not {text!r}", param_hint="--side")
