"""`add predict`: its arguments and what it says."""

from __future__ import annotations

from pathlib import Path

import click

from add.commands.cli_runs import loaded_scene
from add.commands.console import Console, console_options, say_left_behind, strict_option
from add.commands.report_texts import how_far


@click.command(short_help="Predict another motion with the numbers of a fit.")
@click.argument("run", type=click.Path())
@click.argument("scene", type=click.Path())
@click.option("--parameter", "parameters", multiple=True, help="A number of the fit to use [default: all properties].")
@click.option("-o", "--output", required=True, type=click.Path(), help="Table to write, such as prediction.csv.")
@click.option("--picture", type=click.Path(), help="Draw the coordinates with their 95 % band (.png or .svg).")
@console_options
@strict_option
def predict(
    console: Console, run: str, scene: str, parameters: tuple[str, ...], output: str, picture: str | None
) -> None:
    """Simulate SCENE with the numbers that the fit in RUN found, with what their errors make of the markers' motion."""
    from add.commands.predict import predict_scene, write_prediction
    from add.io.runfolder import RunFolder
    from add.plot.prediction import plot_prediction
    from add.scene.spec.markers import DirectionMarkerSpec

    loaded = loaded_scene(console, scene)
    found, said = predict_scene(loaded, RunFolder(run, create=False), parameters)
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
