"""The command line: arguments, progress, exit codes. No physics; what is said is in `add.commands.console`."""

import atexit
import contextlib
import gc
import sys
from typing import Any

import click

from add import __version__
from add.commands import cli_runs, console as shared
from add.commands.cli_files import export, mesh, recording
from add.commands.cli_fits import carry, compare, converge, next_take, predict
from add.commands.cli_runs import info, plot, view
from add.commands.templates import new
from add.errors import AddError, OutOfMemory
from add.machine.interrupts import Terminated, stops_are_interruptions
from add.summary import counted, described

_INTERRUPTED, _TERMINATED = 130, 143


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(version)s")
@shared.extension
def cli() -> None:
    """Differentiable simulation of soft bodies with frictional contact.

    Exit codes: 0 done, 2 bad input or a file that cannot be written, 3 the solver or optimiser failed or the memory was
    not enough, 130 interrupted (Ctrl-C), 143 terminated (SIGTERM, SIGHUP); what was done is kept.
    """


def _warnings(loaded: Any) -> list[str]:
    """Log and return what is probably not meant in a scene or in any of its experiments."""
    from add.scene import experiment_scenes
    from add.scene.build.doubts import warn
    from add.scene.build.scene import with_contact

    return warn({name: item.build() for name, item in experiment_scenes(with_contact(loaded)).items()})


def _require_one(resume: bool, force: bool) -> None:
    if resume and force:
        raise click.UsageError("--resume goes on with the run, --force throws it away: say one of them.")


#: Pairs whose shortest impacts are said.
SHOWN = 3


def _say_contacts(console: shared.Console, result: dict[str, Any]) -> None:
    """Say what was divided, the shortest impacts, contacts on a border of two modes, and skins that are too soft."""
    from add.commands.report_texts import impacts_of, warn_of_contacts

    divided = result.get("newton", {}).get("divided", 0)
    if divided:
        console.say(f"steps divided (docs/contact.md): {divided} of {result['steps']}")
    quiet = sorted((impact for impact in impacts_of(result) if not impact["warning"]), key=lambda item: item["steps"])
    for impact in quiet[:SHOWN]:
        console.say(impact["text"])
    if len(quiet) > SHOWN:
        console.say(f"{len(quiet) - SHOWN} more pairs with longer impacts: `impacts` in result.json")
    warn_of_contacts(result)


for command in (view, plot, info, recording, carry, compare, converge, mesh, new, next_take, predict, export):
    cli.add_command(command)


@cli.command()
@shared.scene
@shared.folder
@shared.force
@click.option("--resume", is_flag=True, help="Go on with a simulation that was interrupted or killed.")
@shared.strict
def simulate(console: shared.Console, scene: str, output: str | None, force: bool, resume: bool) -> None:
    """Run the forward simulation of SCENE."""
    from add.commands.ahead import compile_others
    from add.commands.folders import run_in
    from add.commands.simulate import simulate_scene
    from add.scene.build.doubts import warn
    from add.scene.build.scene import build

    _require_one(resume, force)
    loaded = cli_runs.loaded_scene(console, scene, runs=True)
    cli_runs.say_experiments(console, loaded)
    built = build(loaded)
    compile_others(built.simulation)
    console.heed(warn({"scene": built}))
    with run_in(loaded, cli_runs.run_path(scene, output), "simulate", force=force, resume=resume) as folder:
        with cli_runs.keeping(folder, scene), shared.steps_bar(console, loaded.time.n_steps) as progress:
            result = simulate_scene(loaded, folder, resume=resume, progress=progress)
        shared.say_simulation(console, result)
        _say_contacts(console, result)
        console.say(f"run: {folder.path}")
        console.result(result)


@cli.command()
@shared.scene
@shared.folder
@shared.force
@click.option("--resume", is_flag=True, help="Go on with an optimisation that was interrupted or killed.")
@click.option("--checkpoints", is_flag=True, help="Store few states and recompute: less memory, one more forward run.")
@click.option("--states", is_flag=True, help="Store states and decisions alone: less memory, for long runs.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes that share the experiments [default: none].")
@click.option("--cluster", metavar="ADDRESS", help="Share the experiments among the workers of this Dask scheduler.")
@click.option("--log/--no-log", default=None)
@click.option("--csv", "as_csv", is_flag=True, help="Write the evaluations to evaluations.csv in the run folder, too.")
@shared.strict
def optimize(
    console: shared.Console,
    scene: str,
    *,
    output: str | None,
    force: bool,
    resume: bool,
    jobs: int | None,
    cluster: str | None,
    log: bool | None,
    as_csv: bool,
    **kept: bool,
) -> None:
    """Fit or optimise what SCENE asks for.

    Options
    -------
    --log : A line for each evaluation [default: where standard error is no terminal].
    """
    from add.adjoint import Checkpoints, States
    from add.commands.evaluation_log import evaluations
    from add.commands.folders import run_in
    from add.commands.optimize import check_optimization, optimize_scene
    from add.commands.parallel.workers import require_shareable
    from add.commands.report_texts import one_by_one
    from add.io.runfolder import EVALUATIONS_CSV

    _require_one(resume, force)
    if kept["checkpoints"] and kept["states"]:
        raise click.UsageError("--checkpoints and --states are two ways to save memory: say one of them.")
    loaded = cli_runs.loaded_scene(console, scene, runs=jobs is None and cluster is None)
    problem, _ = check_optimization(loaded)
    console.heed(_warnings(loaded))
    workers = None
    if jobs is not None or cluster is not None:
        require_shareable(problem, loaded.source)
        workers = click.get_current_context().with_resource(cli_runs.workers_for(jobs, cluster))
    spec = loaded.optimizer
    most = sum(phase.max_evaluations or spec.max_evaluations for phase in spec.phases) or spec.max_evaluations
    with run_in(loaded, cli_runs.run_path(scene, output), "optimize", force=force, resume=resume) as folder:
        table = folder.path / EVALUATIONS_CSV if as_csv else None
        with cli_runs.keeping(folder, scene), evaluations(console, problem, most, log, table) as progress:
            result = optimize_scene(
                loaded,
                folder,
                resume=resume,
                progress=progress,
                schedule=Checkpoints() if kept["checkpoints"] else States() if kept["states"] else None,
                workers=workers,
            )
        shared.say_optimization(console, result, *one_by_one(result["parameters"]))
        _say_contacts(console, result)
        cli_runs.write_and_say_report(console, folder)
        console.result(result)


@cli.command()
@shared.scene
@click.option("--gradient", is_flag=True, help="Compare the gradient with finite differences.")
@click.option("--steps", type=click.IntRange(min=1), help="Length of the gradient check's window.")
@shared.strict
def check(console: shared.Console, scene: str, gradient: bool, steps: int | None) -> None:
    """Validate SCENE; --gradient checks its derivatives."""
    from add.commands.check_gradient import check_gradients
    from add.commands.optimize import check_optimization
    from add.commands.report_texts import gradient_json, gradient_text
    from add.errors import SolverError
    from add.model.impacts import worth_saying
    from add.scene.build.built import held_nodes, material_sources
    from add.scene.build.default_contact import said_numbers
    from add.scene.build.scene import build

    built = build(loaded := cli_runs.loaded_scene(console, scene))
    console.heed(warnings := _warnings(loaded))
    if loaded.objective and loaded.parameters:
        check_optimization(loaded)
    n, pins, sources = built.model.system.n, held_nodes(built), material_sources(built)
    console.say(
        f"{scene}: valid; {'1 body' if len(built.scene.bodies) == 1 else f'{len(built.scene.bodies)} bodies'}, "
        f"{counted(n, 'coordinate')}, {counted(built.simulation.n_steps, 'step')}, "
        f"{counted(built.numbers.layout.n, 'differentiable number')}"
    )
    for at, text in ({pin: f"holds {held} of {nodes} nodes" for pin, (held, nodes) in pins.items()} | sources).items():
        console.say(f"{at}: {text}")
    numbers, impacts = said_numbers(loaded, built), worth_saying(built.expected_impacts())
    # What is asked for and has few steps is a warning; the rest has been said where the numbers are ours.
    for text in numbers or (impact.text() for impact in impacts if not (impact.pair.asked and impact.few)):
        console.say(text)
    if not gradient:
        held_by = {pin: held for pin, (held, _) in pins.items()}
        said = {"impacts": [one.text() for one in impacts], "pins": held_by, "contact": numbers, "materials": sources}
        found = {key: value for key, value in said.items() if value}
        console.result({"valid": True, "coordinates": n, "warnings": warnings} | found)
        return
    with shared.counted_bar(console, "gradient", "number") as progress:
        checked = check_gradients(loaded, n_steps=steps, progress=progress)
    for item in checked:
        console.say(gradient_text(item))
    console.result([gradient_json(item) for item in checked])
    if not all(item.passed for item in checked):
        raise SolverError(f"{scene}: the gradient is not confirmed, see above")


@cli.command(short_help="Sample the objective of SCENE and its gradient on a grid.")
@shared.scene
@click.option("--parameter", "parameters", multiple=True, required=True, metavar="PATH[=LOW:HIGH[:N]]")
@click.option("-o", "--output", help="Run folder [default: runs/NAME_sweep for the file NAME.json].")
@shared.force
@shared.workers
@shared.strict
def sweep(
    console: shared.Console, scene: str, parameters: tuple[str, ...], output: str | None, force: bool, **by: Any
) -> None:
    """Sample the objective of SCENE and its gradient on a grid; a sweep that was interrupted goes on.

    Options
    -------
    --parameter : One of the scene's `parameters`, or a component of it as bodies.ball.velocity.0; once or twice.
        [default: from bound to bound, 21 values]
    """
    from add.commands.sweep import sweep_scene
    from add.scene.build.write_back import sweep_axes

    loaded = cli_runs.loaded_scene(console, scene)
    sweep_axes(loaded.inverse_problem(), parameters)  # wrong ones are an error before anything is begun
    console.heed(_warnings(loaded))
    workers = click.get_current_context().with_resource(cli_runs.workers_for(**by))
    at = cli_runs.run_path(scene, output, "_sweep")
    with cli_runs.sampling(console, loaded, scene, at, "sweep", force) as (folder, progress):
        result = sweep_scene(loaded, folder, parameters, workers=workers, progress=progress)
    shared.say_sweep(console, result)
    console.say(f"run: {folder.path}; draw it with `add plot {folder.path}`")
    console.result(result)


@cli.command()
@shared.console
def schema(console: shared.Console) -> None:
    """Print the JSON Schema of scene files."""
    from add.scene.spec.roles import schema_text

    console.write(schema_text())


@cli.command(short_help="Compile the steps of all scenes.")
@click.option("--times", is_flag=True, help="Say how many processor seconds each function took.")
@shared.console
def warm(console: shared.Console, times: bool) -> None:
    """Compile the steps, once for all scenes: minutes, after which small ones run several times faster.

    They are kept on disk until what they are made from changes. Without them such scenes run all the same.
    """
    from add.commands.ahead import warm, warmed
    from add.machine.files import cores

    if warmed():
        console.say("compiled steps are there")
        return
    console.say("compiling the steps, which takes some minutes")
    with shared.counted_bar(console, "warm", "function") as progress:
        seconds = warm(cores(), progress)
    if times:
        console.say("\n".join(f"{spent:8.1f} s  {name}" for name, spent in seconds.items()))
    console.say(f"done, in {sum(seconds.values()):.0f} s of processor time")


@cli.command()
@shared.console
def version(console: shared.Console) -> None:
    """Print the version."""
    from add.io.runfolder import versions

    console.say(__version__)
    console.result(versions())


def _take_help(group: click.Group) -> None:
    """Give options the help that stands in the docstrings of their commands, where it is longer than a line."""
    for command in group.commands.values():
        command.help, texts = described(command.help, "Options")
        for option in command.params:
            for flag in texts.keys() & option.opts:
                option.help = texts[flag]  # type: ignore[attr-defined]
        if isinstance(command, click.Group):
            _take_help(command)


_take_help(cli)


def _stopped(stop: BaseException | None, kept: str = "") -> int:
    """Say that the command was stopped; return the exit code."""
    terminated = isinstance(stop, Terminated)
    word = "terminated" if terminated else "interrupted"
    shared.tell(f"{word}; {kept}" if kept else word)
    return _TERMINATED if terminated else _INTERRUPTED


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    gc.set_threshold(100_000)  # a fifth of the start went into collecting modules, which stay
    atexit.register(gc.freeze)  # and half a second at the end, into what is about to go
    with stops_are_interruptions():
        code = _exit_code(arguments)
        shared.silence_broken_output()
    sys.exit(code)


def _exit_code(arguments: list[str] | None) -> int:
    """Run the command line; say what went wrong, and return the code to exit with."""
    try:
        cli.main(arguments, prog_name="add", standalone_mode=False)
    except cli_runs.Stopped as stopped:
        return _stopped(stopped.stop, stopped.message)
    except click.exceptions.Abort as error:  # click's word for an interruption
        return _stopped(error.__cause__)
    except KeyboardInterrupt as error:
        return _stopped(error)
    except click.ClickException as error:
        with contextlib.suppress(OSError, ValueError):
            error.show()
        return 2
    except AddError as error:
        shared.tell(f"error: {error}")
        return error.exit_code
    except MemoryError:
        shared.tell(f"error: {cli_runs.NO_MEMORY}")
        return OutOfMemory.exit_code
    except BrokenPipeError:
        return 0
    except OSError as error:
        from add.io.lock import FULL

        if error.errno is None:
            raise
        reason = FULL.get(error.errno) or f"cannot be used: {error.strerror}"
        shared.tell(f"error: {error.filename or 'a file'}: {reason}")
        return 2
    except Exception as error:
        from add.machine.foreign import failed_in

        place = failed_in(error)
        if place is None:
            raise
        shared.tell(f"error: {place}: the extension fails (found {type(error).__name__}: {error})")
        return 2
    return 0
