"""`add carry`, `add compare`, `add converge`, `add next`, `add predict`: their arguments and what they say."""

import math
from pathlib import Path
from typing import Any

import click

from add.commands import cli_runs, console as shared
from add.commands.console import Console, require_new, say_left_behind, tell
from add.commands.report_texts import end_text, how_far, with_bar


@click.command(short_help="Write the numbers of a fit into another scene.")
@shared.run
@shared.scene
@shared.numbers
@click.option("-o", "--output", required=True, type=click.Path(), help="Scene to write, such as throw_fitted.json.")
@shared.replace
@shared.strict
def carry(console: Console, run: str, scene: str, *, parameters: tuple[str, ...], output: str, force: bool) -> None:
    """Write SCENE with the numbers that the fit or optimisation in RUN found, such as a material.

    What belongs to one motion stays behind, unless --parameter names it: starts, what drives bodies over time, numbers
    of a recording or of one take.
    """
    from add.commands.fitted_numbers import fit_of
    from add.commands.other_motions import carry as carried_into

    path = Path(output)
    require_new(path, force)
    fit = cli_runs.existing(run)
    found, numbers, left = carried_into(cli_runs.loaded_scene(console, scene), fit, parameters)
    for label in numbers:
        console.say(f"  {label} = {with_bar(fit_of(fit)['parameters'][label])}")
    say_left_behind(console, left)
    found.save(path)
    console.say(f"scene: {path}")
    console.result({"scene": str(path), "parameters": numbers, "left_behind": left})


@click.command(short_help="Run SCENE under several friction laws.")
@shared.scene
@click.option("--laws", default="linear,tanh,hybrid,impulse,exact", show_default=True, metavar="LAW,LAW,...")
@shared.console
def compare(console: Console, scene: str, laws: str) -> None:
    """Run SCENE under several friction laws: where bodies end, the objective's gradient and times, side by side.

    A law that the scene cannot run under is named with the reason; the integrator is changed where a law asks for it.

    Options
    -------
    --laws : Friction laws to run it under.
    """
    from add.commands.compare import compare_laws, comparison_text, require_laws

    names = [law.strip() for law in laws.split(",") if law.strip()]
    require_laws(names)
    runs = compare_laws(cli_runs.loaded_scene(console, scene), names)
    console.say(comparison_text(runs))
    console.result([vars(run) for run in runs])


# --- `add converge`: its arguments and what it says -------------------------------------------------------------------


@click.command(short_help="Say what finer steps and meshes change of a fit.")
@shared.scene
@click.option("-o", "--output", help="Run folder of the fit [default: runs/NAME for the file NAME.json].")
@click.option("--time-levels", type=click.IntRange(0, 6), default=2, show_default=True, help="Halvings of the step.")
@click.option("--mesh-levels", type=click.IntRange(0, 4), default=1, show_default=True)
@click.option("--finer", multiple=True, type=click.Path())
@shared.strict
def converge(
    console: Console, scene: str, output: str | None, time_levels: int, mesh_levels: int, finer: tuple[str, ...]
) -> None:
    """Fit the numbers of SCENE again with finer steps and meshes, after `add optimize`.

    The change enters the error bars of the run: discretisation.json, result.json and the report of its folder. What
    it will take is said once a run was timed; a study that was stopped goes on with the same command.

    Options
    -------
    --mesh-levels : Halvings of the mesh width.
    --finer : A JSON file of overrides that give the same bodies a finer mesh, instead of halved meshes; may be
        repeated, each finer than the one before.
    """
    from add.commands.converge import Levels, converge_scene

    loaded = cli_runs.loaded_scene(console, scene)
    folder = cli_runs.existing(cli_runs.run_path(scene, output))
    result = converge_scene(loaded, folder, Levels(time_levels, mesh_levels, finer), progress=tell)
    for text in convergence_lines(result):
        console.say(text)
    cli_runs.write_and_say_report(console, folder)
    console.result(result)


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


# --- `add next`: its arguments and what it says -----------------------------------------------------------------------


@click.command("next", short_help="Say which motion to record next.")
@shared.run
@click.argument("scenes", nargs=-1, required=True, type=click.Path())
@click.option("--vary", "variations", multiple=True, metavar="PATH=A,B,...")
@click.option("--parameter", "parameters", multiple=True, help="A number of the fit to look at [default: all].")
@click.option("--for", "number", metavar="LABEL", help="Sort by this number alone.")
@shared.strict
def next_take(
    console: Console, run: str, scenes: tuple[str, ...], *, variations: tuple[str, ...], parameters: tuple[str, ...],
    number: str | None,
) -> None:  # fmt: skip
    """Say which of SCENES, recorded, would narrow the numbers of the fit in RUN most.

    Each is run once with the fitted numbers. From the slopes of its markers, the noise that the fit left over and the
    errors of the fit follow the errors of both together; where a motion starts is taken as known, and what steps and
    meshes are off is left out: no recording narrows it.

    Options
    -------
    --vary : Try each scene with these values of a number, such as bodies.block.position.2=0.1,0.3.
    """
    from add.commands.other_motions import next_takes
    from add.scene import apply_overrides

    candidates = []
    for file in scenes:
        scene = cli_runs.loaded_scene(console, file)
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
    ranked = next_takes(candidates, cli_runs.existing(run), parameters, number)
    for one in ranked:
        console.say(f"{one.name}: errors x {one.narrowing:.3g}")
        for label, before, after in zip(one.labels, one.before, one.after, strict=True):
            console.say(f"  {label} +- {before:.3g} -> {after:.3g}")
    console.result([one.summary() for one in ranked])


# --- `add predict` ----------------------------------------------------------------------------------------------------


@click.command(short_help="Predict another motion with the numbers of a fit.")
@shared.run
@shared.scene
@shared.numbers
@click.option("--start", type=click.Path(), metavar="RUN")
@click.option("-o", "--output", type=click.Path())
@click.option("--picture", type=click.Path(), help="Draw the coordinates with their 95 % band (.png or .svg).")
@click.option("--samples", type=click.IntRange(min=2))
@click.option("--seed", type=click.IntRange(min=0), help="Of the draws [default: 0].")
@click.option("--level", type=click.FloatRange(0.5, 0.999), help="Share that the wider band holds [default: 0.9].")
@click.option("--side", "sides", multiple=True, metavar="MARKER.AXIS=VALUE")
@click.option("--discrepancy", is_flag=True, help="Widen the bands by what the fit left over, as a correlated misfit.")
@shared.workers
@shared.force
@shared.strict
def predict(
    console: Console, run: str, scene: str, *, parameters: tuple[str, ...], start: str | None, output: str | None,
    picture: str | None, samples: int | None, **sampling: Any,
) -> None:  # fmt: skip
    """Simulate SCENE with the numbers that the fit in RUN found, with what their errors make of the markers' motion.

    In a straight line, or with --samples from many runs; one of those that was interrupted goes on.

    Options
    -------
    --start : A fit of where this motion starts, such as of its first moments: the start goes along with its errors.
    --output : Table to write, such as prediction.csv; with --samples the run folder [default: runs/NAME_predicted for
        the file NAME.json].
    --samples : Run SCENE with so many draws of the numbers: bands that need no straight line, and how likely the run
        ends one way or another.
    --side : How likely a marker ends beyond a value [m], such as tip.x=0.3; may be repeated.
    """
    loaded = cli_runs.loaded_scene(console, scene)
    cli_runs.say_experiments(console, loaded)
    fit, begun = cli_runs.existing(run), None if start is None else cli_runs.existing(start)
    if samples is not None:
        from add.commands.other_motions import Asked

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
        _say_sampled(console, loaded, scene, cli_runs.run_path(scene, output, "_predicted"), wanted, **sampling)
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
    from add.plot.run import plot_prediction

    bands, said = predict_scene(loaded, fit, parameters, begun)
    for label, value in said["parameters"].items():
        error = None if label in said["without_error"] else said["standard_errors"][label]
        console.say(f"  {label} = {with_bar({'value': value, 'standard_error': error, 'unit': said['units'][label]})}")
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
    write_prediction(bands, said["markers"], Path(output))
    console.say(f"prediction: {output}")
    if picture:
        directions = [loaded.is_direction(name) for name in said["markers"]]
        console.say(
            str(plot_prediction(bands.times, bands.positions, bands.errors, said["markers"], picture, directions))
        )
    console.result(said)


def _say_sampled(console: Console, loaded: Any, scene: str, at: Path, wanted: Any, *, force: bool, **by: Any) -> None:
    """Predict by samples."""
    from add.commands.other_motions import predict_samples

    workers = click.get_current_context().with_resource(cli_runs.workers_for(**by))
    with cli_runs.sampling(console, loaded, scene, at, "predict", force) as (folder, progress):
        result = predict_samples(loaded, folder, wanted, workers=workers, progress=progress)
    prediction = result["prediction"]
    for label, item in result["parameters"].items():
        console.say(f"  {label} = {item['value']:.6g} {item['unit']}, from {item['drawn_from']}")
    say_left_behind(console, prediction["left_behind"])
    for text in prediction["texts"]:
        console.say(f"  {text}")
    for item in prediction["ends"]:
        console.say(f"  {item['end']}: {end_text(item)}")
    cli_runs.write_and_say_report(console, folder)
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
