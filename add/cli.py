"""The command line: arguments, progress, exit codes. No physics."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from add import __version__
from add.errors import AddError

_INTERRUPTED = 130

#: Said before numba compiles something that is not in its cache.
COMPILING = "compiling kernels (once after installation; this may take a minute) ..."


class _Context:
    """Options of every command."""

    def __init__(self, as_json: bool, quiet: bool) -> None:
        self.json, self.quiet = as_json, quiet

    def say(self, text: str) -> None:
        """Print for people."""
        if not (self.json or self.quiet):
            click.echo(text)

    def result(self, value: Any) -> None:
        """Print for machines."""
        if self.json:
            click.echo(json.dumps(value, indent=1))

    def compiling(self) -> None:
        """Say why nothing moves for a while."""
        if not (self.json or self.quiet):
            tqdm.write(COMPILING, file=sys.stderr)

    @property
    def bars(self) -> bool:
        """Whether progress bars are drawn."""
        return not (self.json or self.quiet) and sys.stderr.isatty()


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add -v, -q and --json to a command."""

    @click.option("-v", "--verbose", count=True, help="Say more; twice for debugging.")
    @click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
    @click.option(
        "--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else, to standard output."
    )
    @click.pass_context
    def wrapped(ctx: click.Context, verbose: int, quiet: bool, as_json: bool, **arguments: Any) -> Any:
        level = logging.ERROR if quiet else (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
        logging.basicConfig(level=level, format="%(levelname)s: %(message)s", stream=sys.stderr)
        return ctx.invoke(command, _Context(as_json, quiet), **arguments)

    wrapped.__name__ = command.__name__
    wrapped.__doc__ = command.__doc__
    wrapped.__click_params__ = [*getattr(wrapped, "__click_params__", []), *getattr(command, "__click_params__", [])]  # type: ignore[attr-defined]
    return wrapped


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Differentiable simulation of soft bodies with frictional contact.

    Exit codes: 0 done, 2 bad input, 3 the solver or optimiser failed, 130 interrupted (what was done is kept).
    """


def _load(context: _Context, scene: str) -> Any:
    """Load a scene, and let the user know if the command then has to compile kernels."""
    from add.jobs.compiling import first_compilation
    from add.scene.reader import load_scene

    click.get_current_context().with_resource(first_compilation(context.compiling))
    return load_scene(scene)


def _folder(scene: str, output: str | None) -> Path:
    return Path(output) if output else Path("runs") / Path(scene).stem


def _new_run(scene: str, output: str | None, force: bool) -> Any:
    """Return an empty run folder."""
    from add.io.runfolder import RunFolder

    folder = RunFolder(_folder(scene, output), overwrite=force)
    folder.clear()
    return folder


@contextmanager
def _steps_bar(context: _Context, total: int, label: str) -> Iterator[Callable[[Any, Any], Any]]:
    """Yield a step observer that moves a progress bar."""
    with tqdm(total=total, unit="step", desc=label, disable=not context.bars, file=sys.stderr) as bar:
        yield lambda state, record: bar.update(1)


def _report_checks(context: _Context, result: dict[str, Any]) -> None:
    for name, check in result.get("checks", {}).items():
        mark = "ok  " if check["passed"] else "FAIL"
        context.say(f"  {mark} {name} = {check['value']} (expected {check['expected']})")


@cli.command()
@click.argument("scene", type=click.Path())
@click.option("-o", "--output", help="Run folder [default: runs/NAME].")
@click.option("--force", is_flag=True, help="Replace a run folder that is already there.")
@_options
def simulate(context: _Context, scene: str, output: str | None, force: bool) -> None:
    """Run the forward simulation of SCENE."""
    from add.jobs import simulate_scene

    loaded = _load(context, scene)
    loaded.build()
    folder = _new_run(scene, output, force)
    with _steps_bar(context, loaded.spec.time.n_steps, "simulate") as bar:
        result = simulate_scene(loaded, folder, progress=bar)
    per_step = 1e3 * result["seconds"] / max(result["steps"], 1)
    context.say(
        f"{result['steps']} steps to t = {result['end_time']:g} s in {result['seconds']:.2f} s "
        f"({per_step:.2f} ms a step, {result['newton']['iterations_per_step']:.2f} Newton iterations)"
    )
    _report_checks(context, result)
    context.say(f"run: {folder.path}")
    context.result(result)


@cli.command()
@click.argument("scene", type=click.Path())
@click.option("-o", "--output", help="Run folder [default: runs/NAME].")
@click.option("--force", is_flag=True, help="Replace a run folder that is already there.")
@click.option("--resume", is_flag=True, help="Go on with an optimisation that was interrupted or killed.")
@click.option("--checkpoints", is_flag=True, help="Store few states and recompute: less memory, one more forward run.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes that share the experiments [default: none].")
@click.option("--cluster", metavar="ADDRESS", help="Share the experiments among the workers of this Dask scheduler.")
@_options
def optimize(
    context: _Context,
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

    loaded = _load(context, scene)
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
    with tqdm(total=most, unit="run", desc="optimize", disable=not context.bars, file=sys.stderr) as bar:

        def progress(evaluation: Any, better: bool) -> None:
            bar.update(1)
            if better:
                bar.set_postfix(phase=evaluation.phase, objective=f"{evaluation.value:.4g}")

        result = optimize_scene(
            loaded,
            folder,
            resume=resume,
            progress=progress,
            schedule=Checkpoints() if checkpoints else None,
            workers=workers,
        )
    context.say(f"objective {result['objective']['start']:.4g} -> {result['objective']['end']:.4g}")
    context.say(f"{result['evaluations']} evaluations in {result['seconds']:.1f} s")
    for phase in result["phases"]:
        context.say(f"  phase {phase['name']}: {phase['evaluations']} evaluations, {phase['status']}")
    few, many = one_by_one(result["parameters"])
    _say_arrays(context, many)
    for name, item in few.items():
        error = "" if item["standard_error"] is None else f" +- {item['standard_error']:.2g}"
        context.say(f"  {name} = {item['value']:.6g}{error} {item['unit']} (from {item['start']:.6g})")
    if "fit" in result:
        context.say(f"  markers: rms {1e3 * result['fit']['rms']:.3f} mm over {result['fit']['samples']} samples")
    _report_checks(context, result)
    report = write_report(folder)
    context.say(f"report: {report}")
    context.result(result)


@cli.command()
@click.argument("scene", type=click.Path())
@click.option("--gradient", is_flag=True, help="Compare the gradient with finite differences.")
@click.option("--steps", type=click.IntRange(min=1), help="Length of the gradient check's window.")
@_options
def check(context: _Context, scene: str, gradient: bool, steps: int | None) -> None:
    """Validate SCENE; --gradient checks its derivatives."""
    from add.errors import SolverError
    from add.jobs import check_gradients, check_optimization

    loaded = _load(context, scene)
    built = loaded.build()
    if loaded.spec.objective and loaded.spec.parameters:
        check_optimization(loaded)
    system = built.model.system
    context.say(
        f"{scene}: valid; {len(built.scene.spec.bodies)} bodies, {system.n} coordinates, "
        f"{built.simulation.n_steps} steps, {built.numbers.layout.n} differentiable numbers"
    )
    if not gradient:
        context.result({"valid": True, "coordinates": system.n})
        return
    with tqdm(unit="number", desc="gradient", disable=not context.bars, file=sys.stderr) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(1)

        found = check_gradients(loaded, n_steps=steps, progress=progress)
    for item in found:
        context.say(_gradient_text(item))
    context.result([_gradient_json(item) for item in found])
    if not all(item.passed for item in found):
        raise SolverError(f"{scene}: the gradient is not confirmed, see above")


def _gradient_text(item: Any) -> str:
    """Lay out one experiment's check as a table."""
    contact = ", ".join(f"{count} {key}" for key, count in item.decisions.items()) or "no contact"
    lines = [
        f"experiment {item.experiment}: {item.n_steps} steps, objective {item.value:.6g}, contact decisions: {contact}",
        f"{'number':44} {'adjoint':>12} {'held diff.':>12} {'error/norm':>10} {'free diff.':>12} {'error/norm':>10} "
        f"{'slope 1 %':>12} changed",
    ]
    for p in item.parameters:
        lines.append(
            f"{p.name:44} {p.adjoint:12.5e} {p.replayed:12.5e} {p.replayed_error:10.1e} {p.free:12.5e} "
            f"{p.free_error:10.1e} {p.coarse:12.5e} {p.changed}"
        )
    lines.append("(derivatives by relative size: d phi / d ln s, or by a typical size where s = 0)")
    if len(item.parameters) < item.n_numbers:
        lines.append(
            f"({len(item.parameters)} of {item.n_numbers} numbers one by one: of large blocks, such as controls, those "
            "of the largest derivatives and some drawn; all along the directions of the next line)"
        )
    lines.append(
        f"worst error {item.worst:.1e} of the norm {item.norm:.4g}; Taylor rates "
        f"{', '.join(f'{rate:.3f}' for rate in item.taylor_rates)}; "
        f"forward against reverse mode {item.forward_error:.1e}: {'passed' if item.passed else 'FAILED'}"
    )
    if item.decisions and not item.decisions.get("touching"):
        lines.append("note: nothing touches within the window; a longer one (--steps) would check the contact as well")
    lines += [f"note: {text}" for text in item.warnings]
    return "\n".join(lines)


def _gradient_json(item: Any) -> dict[str, Any]:
    return {
        "experiment": item.experiment,
        "steps": item.n_steps,
        "passed": item.passed,
        "worst": item.worst,
        "norm": item.norm,
        "taylor_rates": list(item.taylor_rates),
        "forward_error": item.forward_error,
        "decisions": item.decisions,
        "warnings": item.warnings,
        "parameters": [vars(p) for p in item.parameters],
    }


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
@_options
def sweep(
    context: _Context,
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

    loaded = _load(context, scene)
    check_sweep(loaded, parameters)
    workers = click.get_current_context().with_resource(_workers(jobs, cluster))
    folder = RunFolder(output or Path("runs") / f"{Path(scene).stem}_sweep", overwrite=True)
    if force:
        folder.clear()
    with tqdm(unit="run", desc="sweep", disable=not context.bars, file=sys.stderr) as bar:

        def progress(done: int, total: int) -> None:
            if bar.total is None:
                bar.reset(total)
                bar.initial = done
            bar.update(done - bar.n)

        result = sweep_scene(loaded, folder, parameters, workers=workers, progress=progress)
    context.say(f"{result['samples']} samples, {result['failed']} failed, in {result['seconds']:.1f} s")
    if result["objective"]:
        context.say(f"lowest objective {result['objective']['minimum']:.6g} at")
        for name, item in result["parameters"].items():
            context.say(f"  {name} = {item['value']:.6g} {item['unit']}")
    context.say(f"run: {folder.path}; draw it with `add plot {folder.path}`")
    context.result(result)


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
@_options
def view(
    context: _Context,
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

    data = _run_data(context, run)
    written = []
    if screenshot:
        written.append(render_screenshot(data, screenshot, time=at, colour=colour))
    if movie:
        written.append(render_movie(data, movie, fps=fps, speed=speed, colour=colour))
    if html:
        written.append(export_html(data, html, colour=colour))
    for path in written:
        context.say(str(path))
    context.result([str(path) for path in written])
    if not (screenshot or movie or html):
        show(data, colour=colour)


def _run_data(context: _Context, run: str) -> Any:
    """Read a run folder, or build a scene's first state."""
    from add.io.results import read_run
    from add.jobs.output import run_data

    path = Path(run)
    if path.is_file() and path.suffix == ".json":
        built = _load(context, run).build()
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
@_options
def plot(context: _Context, run: str, suffix: str, logarithmic: bool | None) -> None:
    """Draw convergence, energies and markers of RUN, or the objective over the grid of a sweep."""
    from add.io.runfolder import RunFolder
    from add.plot import plot_run

    paths = plot_run(RunFolder(run, create=False), format=suffix, logarithmic=logarithmic)
    for path in paths:
        context.say(str(path))
    context.result([str(path) for path in paths])


def _say_arrays(context: _Context, many: dict[str, Any]) -> None:
    """Say the range of each long array of parameters."""
    for name, items in many.items():
        values = [item["value"] for item in items]
        context.say(f"  {name}: {len(items)} numbers, {min(values):.6g} to {max(values):.6g} {items[0]['unit']}")


@cli.command()
@click.argument("run", type=click.Path())
@_options
def info(context: _Context, run: str) -> None:
    """Say what RUN holds."""
    from add.io.runfolder import RunFolder
    from add.report import one_by_one

    folder = RunFolder(run, create=False)
    result, versions = folder.read_json("result.json"), folder.read_json("versions.json")
    context.say(f"{folder.path}: {result['command']}, {result['status']}: {result.get('scene', '')}")
    for key in ("steps", "end_time", "evaluations", "seconds"):
        if key in result:
            context.say(f"  {key}: {result[key]}")
    few, many = one_by_one(result.get("parameters", {}))
    _say_arrays(context, many)
    for name, item in few.items():
        if item["value"] is not None:  # of a sweep all samples may have failed
            context.say(f"  {name} = {item['value']:.6g} {item['unit']}")
    for name, body in result.get("bodies", {}).items():
        parts = [f"{body['elements']} elements"] if "elements" in body else []
        parts += [f"mass {body['mass']:.4g} kg"] if "mass" in body else []
        place = ", ".join(f"{x:.5g}" for x in body["centre"])
        context.say(f"  body {name}: {', '.join([*parts, f'centre ({place}) m'])}")
    context.say("  " + ", ".join(f"{key} {value}" for key, value in versions.items()))
    context.result({"result": result, "versions": versions})


@cli.command()
@_options
def schema(context: _Context) -> None:
    """Print the JSON Schema of scene files."""
    from add.scene.schema import schema_text

    click.echo(schema_text())


@cli.command()
@_options
def version(context: _Context) -> None:
    """Print the version."""
    from add.io.runfolder import versions

    context.say(__version__)
    context.result(versions())


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
