"""The command line: arguments, progress, exit codes. No physics; what is said is in `add.console`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from add import __version__
from add.console import (
    Console,
    console_options,
    evaluations_bar,
    gradient_json,
    gradient_text,
    numbers_bar,
    samples_bar,
    say_contents,
    say_optimization,
    say_simulation,
    say_sweep,
    steps_bar,
)
from add.errors import AddError

_INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Differentiable simulation of soft bodies with frictional contact.

    Exit codes: 0 done, 2 bad input, 3 the solver or optimiser failed, 130 interrupted (what was done is kept).
    """


def _load(console: Console, scene: str) -> Any:
    """Load a scene, and let the user know if the command then has to compile kernels."""
    from add.jobs.compiling import first_compilation
    from add.scene.reader import load_scene

    click.get_current_context().with_resource(first_compilation(console.compiling))
    return load_scene(scene)


def _folder(scene: str, output: str | None) -> Path:
    return Path(output) if output else Path("runs") / Path(scene).stem


def _new_run(scene: str, output: str | None, force: bool) -> Any:
    """Return an empty run folder."""
    from add.io.runfolder import RunFolder

    folder = RunFolder(_folder(scene, output), overwrite=force)
    folder.clear()
    return folder


@cli.command()
@click.argument("scene", type=click.Path())
@click.option("-o", "--output", help="Run folder [default: runs/NAME].")
@click.option("--force", is_flag=True, help="Replace a run folder that is already there.")
@console_options
def simulate(console: Console, scene: str, output: str | None, force: bool) -> None:
    """Run the forward simulation of SCENE."""
    from add.jobs import simulate_scene

    loaded = _load(console, scene)
    loaded.build()
    folder = _new_run(scene, output, force)
    with steps_bar(console, loaded.spec.time.n_steps) as progress:
        result = simulate_scene(loaded, folder, progress=progress)
    say_simulation(console, result)
    console.say(f"run: {folder.path}")
    console.result(result)


@cli.command()
@click.argument("scene", type=click.Path())
@click.option("-o", "--output", help="Run folder [default: runs/NAME].")
@click.option("--force", is_flag=True, help="Replace a run folder that is already there.")
@click.option("--resume", is_flag=True, help="Go on with an optimisation that was interrupted or killed.")
@click.option("--checkpoints", is_flag=True, help="Store few states and recompute: less memory, one more forward run.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes that share the experiments [default: none].")
@click.option("--cluster", metavar="ADDRESS", help="Share the experiments among the workers of this Dask scheduler.")
@console_options
def optimize(
    console: Console,
    scene: str,
    output: str | None,
    force: bool,
    resume: bool,
    checkpoints: bool,
    jobs: int | None,
    cluster: str | None,
) -> None:
    """Fit or optimise what SCENE asks for."""
    from add.adjoint import Checkpoints
    from add.io.runfolder import RunFolder
    from add.jobs import check_optimization, optimize_scene
    from add.jobs.experiments import require_shareable
    from add.report import one_by_one, write_report

    loaded = _load(console, scene)
    problem, _ = check_optimization(loaded)
    workers = None
    if jobs is not None or cluster is not None:
        require_shareable(problem)
        workers = click.get_current_context().with_resource(_workers(jobs, cluster))
    if resume:
        folder = RunFolder(_folder(scene, output), create=False)
    else:
        folder = _new_run(scene, output, force)
    spec = loaded.spec.optimizer
    most = sum(phase.max_evaluations or spec.max_evaluations for phase in spec.phases) or spec.max_evaluations
    with evaluations_bar(console, most) as progress:
        result = optimize_scene(
            loaded,
            folder,
            resume=resume,
            progress=progress,
            schedule=Checkpoints() if checkpoints else None,
            workers=workers,
        )
    say_optimization(console, result, *one_by_one(result["parameters"]))
    report = write_report(folder)
    console.say(f"report: {report}")
    console.result(result)


@cli.command()
@click.argument("scene", type=click.Path())
@click.option("--gradient", is_flag=True, help="Compare the gradient with finite differences.")
@click.option("--steps", type=click.IntRange(min=1), help="Length of the gradient check's window.")
@console_options
def check(console: Console, scene: str, gradient: bool, steps: int | None) -> None:
    """Validate SCENE; --gradient checks its derivatives."""
    from add.errors import SolverError
    from add.jobs import check_gradients, check_optimization

    loaded = _load(console, scene)
    built = loaded.build()
    if loaded.spec.objective and loaded.spec.parameters:
        check_optimization(loaded)
    system = built.model.system
    console.say(
        f"{scene}: valid; {len(built.scene.spec.bodies)} bodies, {system.n} coordinates, "
        f"{built.simulation.n_steps} steps, {built.numbers.layout.n} differentiable numbers"
    )
    if not gradient:
        console.result({"valid": True, "coordinates": system.n})
        return
    with numbers_bar(console) as progress:
        found = check_gradients(loaded, n_steps=steps, progress=progress)
    for item in found:
        console.say(gradient_text(item))
    console.result([gradient_json(item) for item in found])
    if not all(item.passed for item in found):
        raise SolverError(f"{scene}: the gradient is not confirmed, see above")


@cli.command()
@click.argument("scene", type=click.Path())
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    required=True,
    metavar="PATH[=LOW:HIGH[:N]]",
    help="One of the scene's `parameters`, or a component of it as bodies.ball.velocity.0; once or twice. "
    "[default: from bound to bound, 21 values]",
)
@click.option("-o", "--output", help="Run folder [default: runs/NAME_sweep].")
@click.option("--force", is_flag=True, help="Replace a run folder that is already there.")
@click.option("--jobs", type=click.IntRange(min=1), help="Number of processes [default: one a core].")
@click.option("--cluster", metavar="ADDRESS", help="Use the workers of this Dask scheduler, e.g. tcp://host:8786.")
@console_options
def sweep(
    console: Console,
    scene: str,
    parameters: tuple[str, ...],
    output: str | None,
    force: bool,
    jobs: int | None,
    cluster: str | None,
) -> None:
    """Sample the objective of SCENE and its gradient on a grid; a sweep that was interrupted goes on."""
    from add.io.runfolder import RunFolder
    from add.jobs import check_sweep, sweep_scene

    loaded = _load(console, scene)
    check_sweep(loaded, parameters)
    workers = click.get_current_context().with_resource(_workers(jobs, cluster))
    folder = RunFolder(output or Path("runs") / f"{Path(scene).stem}_sweep", overwrite=True)
    if force:
        folder.clear()
    with samples_bar(console) as progress:
        result = sweep_scene(loaded, folder, parameters, workers=workers, progress=progress)
    say_sweep(console, result)
    console.say(f"run: {folder.path}; draw it with `add plot {folder.path}`")
    console.result(result)


@contextmanager
def _workers(jobs: int | None, address: str | None) -> Iterator[Any]:
    """Yield who does the work: processes of this machine, or a cluster."""
    from add.jobs.workers import LocalProcesses, cluster, cores

    if address is None:
        yield LocalProcesses(jobs or cores())
        return
    if jobs is not None:
        raise click.UsageError("--jobs is for this machine: a cluster has as many workers as it has.")
    with cluster(address) as workers:
        yield workers


@cli.command()
@click.argument("run", type=click.Path())
@click.option(
    "--colour", "--color", type=click.Choice(["displacement", "speed", "stress", "contact"]), default="displacement"
)
@click.option("--screenshot", type=click.Path(), help="Write a picture instead of opening a window.")
@click.option("--movie", type=click.Path(), help="Write an mp4 or gif instead of opening a window.")
@click.option("--html", type=click.Path(), help="Write an interactive page instead of opening a window.")
@click.option("--time", "at", type=float, help="Time of the screenshot [s] [default: the end].")
@click.option("--fps", type=click.IntRange(min=1), default=30, help="Frames a second of the movie.")
@click.option("--speed", type=float, default=1.0, help="Playing speed of the movie; 0.1 is slow motion.")
@console_options
def view(
    console: Console,
    run: str,
    colour: str,
    screenshot: str | None,
    movie: str | None,
    html: str | None,
    at: float | None,
    fps: int,
    speed: float,
) -> None:
    """Look at RUN (a run folder), or at a scene file as it starts."""
    from add.view import export_html, show
    from add.view import movie as render_movie
    from add.view import screenshot as render_screenshot

    data = _run_data(console, run)
    written = []
    if screenshot:
        written.append(render_screenshot(data, screenshot, time=at, colour=colour))
    if movie:
        written.append(render_movie(data, movie, fps=fps, speed=speed, colour=colour))
    if html:
        written.append(export_html(data, html, colour=colour))
    for path in written:
        console.say(str(path))
    console.result([str(path) for path in written])
    if not (screenshot or movie or html):
        show(data, colour=colour)


def _run_data(console: Console, run: str) -> Any:
    """Read a run folder, or build a scene's first state."""
    from add.io.results import read_run
    from add.jobs.output import run_data

    path = Path(run)
    if path.is_file() and path.suffix == ".json":
        built = _load(console, run).build()
        return run_data(built, built.run(n_steps=0), built.theta)
    return read_run(path / "trajectory.h5" if path.is_dir() else path)


@cli.command()
@click.argument("run", type=click.Path())
@click.option("--format", "suffix", type=click.Choice(["png", "svg"]), default="png")
@click.option(
    "--log/--linear",
    "logarithmic",
    default=None,
    help="Scale of the objective over the grid of a sweep [default: --log where its range is wide].",
)
@console_options
def plot(console: Console, run: str, suffix: str, logarithmic: bool | None) -> None:
    """Draw convergence, energies and markers of RUN, or the objective over the grid of a sweep."""
    from add.io.runfolder import RunFolder
    from add.plot import plot_run

    paths = plot_run(RunFolder(run, create=False), format=suffix, logarithmic=logarithmic)
    for path in paths:
        console.say(str(path))
    console.result([str(path) for path in paths])


@cli.command()
@click.argument("run", type=click.Path())
@console_options
def info(console: Console, run: str) -> None:
    """Say what RUN holds."""
    from add.io.runfolder import RunFolder
    from add.report import one_by_one

    folder = RunFolder(run, create=False)
    result, versions = folder.read_json("result.json"), folder.read_json("versions.json")
    console.say(f"{folder.path}: {result['command']}, {result['status']}: {result.get('scene', '')}")
    say_contents(console, result, *one_by_one(result.get("parameters", {})))
    console.say("  " + ", ".join(f"{key} {value}" for key, value in versions.items()))
    console.result({"result": result, "versions": versions})


@cli.command()
@console_options
def schema(console: Console) -> None:
    """Print the JSON Schema of scene files."""
    from add.scene.schema import schema_text

    click.echo(schema_text())


@cli.command()
@console_options
def version(console: Console) -> None:
    """Print the version."""
    from add.io.runfolder import versions

    console.say(__version__)
    console.result(versions())


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    try:
        cli.main(arguments, prog_name="add", standalone_mode=False)
        code = 0
    except (click.exceptions.Abort, KeyboardInterrupt):  # click turns the second into the first
        click.echo("interrupted; what was finished is kept", err=True)
        code = _INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = 2
    except AddError as error:
        click.echo(f"error: {error}", err=True)
        code = error.exit_code
    except BrokenPipeError:
        code = 0
    sys.exit(code)
