"""The output of commands: text for people, JSON for machines, progress bars; and the options that choose among them."""

import contextlib
import functools
import io
import json
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from add.commands.report_texts import by_reason, how_far, targets_left, with_bar
from add.errors import InputError
from add.summary import counted

#: Said before numba compiles something that is not in its cache.
COMPILING = "compiling kernels (once for each new kind of scene; this may take a minute) ..."

#: Seconds between two lines of progress where there is no terminal for a bar.
LINE_EVERY = 20.0


class Console:
    """Options of every command."""

    def __init__(self, as_json: bool, quiet: bool, strict: bool = False) -> None:
        self.json, self.quiet, self.strict = as_json, quiet, strict
        self._broken: OSError | ValueError | None = None

    def heed(self, warnings: list[str]) -> None:
        """Fail after warnings that were logged, if the user said --strict.

        Raises
        ------
        InputError
        """
        if self.strict and warnings:
            raise InputError("; ".join([*warnings, "--strict makes warnings errors"]))

    def say(self, text: str) -> None:
        """Print for people."""
        if not (self.json or self.quiet):
            self.write(text)

    def result(self, value: Any) -> None:
        """Print for machines."""
        from add.io.runfolder import plain

        if self.json:
            self.write(json.dumps(plain(value), indent=1))

    def files(self, paths: Iterable[Path]) -> None:
        """Print the paths of what was written."""
        names = [str(path) for path in paths]
        for name in names:
            self.say(name)
        self.result(names)

    def write(self, text: str) -> None:
        """Print to standard output; where that cannot be, go on in silence, since the work is worth more."""
        if self._broken is None:
            try:
                click.echo(text)
            except (OSError, ValueError) as error:  # a full disk, a reader that left, a closed stream
                self._broken = error

    def require_printed(self) -> None:
        """Say that not everything could be printed; a reader that left, as `head` does, did not want it.

        Raises
        ------
        InputError
        """
        if self._broken is not None and not isinstance(self._broken, BrokenPipeError):
            reason = getattr(self._broken, "strerror", None) or self._broken
            raise InputError(f"standard output: {reason}; the command itself came to its end")

    def compiling(self) -> None:
        """Say why nothing moves for a while."""
        if not (self.json or self.quiet):
            with contextlib.suppress(OSError, ValueError):
                tqdm.write(COMPILING, file=sys.stderr or io.StringIO())

    @property
    def bars(self) -> bool:
        """Whether progress bars are drawn."""
        return not (self.json or self.quiet) and sys.stderr is not None and sys.stderr.isatty()


def require_new(path: Path, force: bool) -> None:
    """Refuse to write a file that is already there, unless the user said --force, or in no folder."""
    if path.exists() and not force:
        raise InputError("is already there", file=path, expected="another name, or --force")
    if not path.parent.is_dir():
        raise InputError("no such folder", file=path.parent)


def motion_of(console: Console, source: str, experiment: str | None) -> Path:
    """Return where the motion of a run is; see `add.commands.folders.motion_of`. Warn where nobody chose."""
    from add.commands.folders import motion_of as found

    path, warning = found(Path(source), experiment)
    if warning:
        logging.getLogger(__name__).warning("%s", warning)
        console.heed([warning])
    return path


def named_value(text: str, option: str, message: str, expected: str = "NAME=VALUE") -> tuple[str, str]:
    """Return name and value of a text of an option."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(message, place=option, found=text, expected=expected)
    return name, value


def tell(text: str) -> None:
    """Print to standard error, if there is one."""
    with contextlib.suppress(OSError, ValueError):
        click.echo(text, err=True)


def silence_broken_output() -> None:
    """Flush standard output and error; where that fails, let Python's own flush at its end go nowhere."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)


@contextmanager
def steps_bar(console: Console, total: int) -> Iterator[Callable[[Any, Any], Any]]:
    """Yield a step observer that moves a progress bar."""
    with tqdm(total=total, unit="step", desc="simulate", disable=not console.bars, file=sys.stderr) as bar:
        yield lambda state, record: bar.update(1)


@contextmanager
def counted_bar(console: Console, work: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Yield what work of minutes calls after each of its units, with how many are done and how many there are.

    Without a terminal it says so now and then in a line.
    """
    lines = not (console.bars or console.json or console.quiet)
    begin = said = time.monotonic()
    with tqdm(unit=unit, desc=work, disable=not console.bars, file=sys.stderr) as bar:

        def progress(done: int, total: int) -> None:
            nonlocal said
            bar.total = total
            bar.update(1)
            now = time.monotonic()
            if lines and now - said >= LINE_EVERY:
                said = now
                tell(f"{work}: {done} of {counted(total, unit)} in {now - begin:.0f} s")

        yield progress


@contextmanager
def samples_bar(console: Console, work: str) -> Iterator[Callable[[int, int], None]]:
    """Yield what is called with how many runs are done and how many there are; the first may be resumed ones."""
    with tqdm(unit="run", desc=work, disable=not console.bars, file=sys.stderr) as bar:

        def progress(done: int, total: int) -> None:
            if bar.total is None:
                bar.reset(total)
                bar.initial = done
            bar.update(done - bar.n)

        yield progress


def say_simulation(console: Console, result: dict[str, Any]) -> None:
    """Say how far a simulation went, what it cost, and its checks; a step costs what it does with kernels at hand."""
    kernels = result["kernel_seconds"]
    per_step = 1e3 * (result["seconds"] - kernels) / max(result["steps"], 1)
    share = f", {kernels:.2f} s of it for compiling or loading kernels" if kernels > 0.05 * result["seconds"] else ""
    console.say(
        f"{counted(result['steps'], 'step')} to t = {result['end_time']:g} s in {result['seconds']:.2f} s{share} "
        f"({per_step:.2f} ms a step, {result['newton']['iterations_per_step']:.2f} Newton iterations)"
    )
    _say_checks(console, result)


def say_optimization(console: Console, result: dict[str, Any], few: dict[str, Any], many: dict[str, Any]) -> None:
    """Say what an optimisation found: ``few`` parameters one by one, those of ``many`` by their range."""
    fall = result["objective"]
    console.say(f"objective {fall['start']:.4g} -> {fall['end']:.4g}, of {fall['of']}")
    console.say(f"{counted(result['evaluations'], 'evaluation')} in {result['seconds']:.1f} s")
    _say_phases(console, result)
    _say_arrays(console, many)
    for name, item in few.items():
        low, high = item.get("interval_lower"), item.get("interval_upper")
        what = "range" if item.get("interval_by") == "range of takes" else "95 %"
        interval = "" if low is None or high is None else f", {what}: {low:.6g} to {high:.6g}"
        bound = ", on its bound" if item.get("at_bound") else ""
        console.say(f"  {name} = {with_bar(item)}{interval} (from {item['start']:.6g}){bound}")
    say_uncertainty(console, result)
    _say_fits(console, result)
    _say_checks(console, result)


def say_uncertainty(console: Console, result: dict[str, Any]) -> None:
    """Say what the error bars of a fit contain, and what the data do not see."""
    known = result.get("uncertainty") or {}
    for text in known.get("contains", []):
        console.say(f"  {text}")
    for pair in known.get("tied", []):
        console.say(f"  errors of {pair['a']} and {pair['b']} go together: correlation {pair['correlation']:+.3f}")
    for item in (*known.get("weak", []), *known.get("changing", [])):
        console.say(f"  {item['text']}")


def say_left_behind(console: Console, left: dict[str, str]) -> None:
    """Say which numbers of a fit do not go into another motion, one line for each reason."""
    for why, names in by_reason(left).items():
        console.say(f"  stays behind, {why}: {names} (--parameter takes it along)")


def say_sweep(console: Console, result: dict[str, Any]) -> None:
    """Say where the objective of a sweep was lowest."""
    console.say(f"{counted(result['samples'], 'sample')}, {result['failed']} failed, in {result['seconds']:.1f} s")
    if result["objective"]:
        console.say(f"lowest objective {result['objective']['minimum']:.6g} at")
        for name, item in result["parameters"].items():
            console.say(f"  {name} = {item['value']:.6g} {item['unit']}")


def say_contents(console: Console, result: dict[str, Any], few: dict[str, Any], many: dict[str, Any]) -> None:
    """Say what a run folder holds; ``few`` and ``many`` as in `say_optimization`."""
    for key in ("steps", "end_time", "evaluations", "seconds"):
        if key in result:
            console.say(f"  {key}: {result[key]}")
    _say_phases(console, result)
    _say_arrays(console, many)
    for name, item in few.items():
        if item["value"] is not None:  # of a sweep all samples may have failed
            console.say(f"  {name} = {with_bar(item)}")
    _say_fits(console, result)
    for name, body in result.get("bodies", {}).items():
        parts = [counted(body["elements"], "element")] if "elements" in body else []
        parts += [f"mass {body['mass']:.4g} kg"] if "mass" in body else []
        place = ", ".join(f"{x:.5g}" for x in body["centre"])
        console.say(f"  body {name}: {', '.join([*parts, f'centre ({place}) m'])}")


def _say_fits(console: Console, result: dict[str, Any]) -> None:
    """Say how far simulated markers are from recorded ones: of several experiments, of each."""
    runs = result.get("experiments", {})
    said = {"validate": "markers of {}, predicted", "fit": "markers of {}"}
    fits = {said[run.get("use", "fit")].format(name): run["fit"] for name, run in runs.items() if run.get("fit")}
    if len(runs) < 2:
        fits = {"markers": result["fit"]} if result.get("fit") else {}
    for what, fit in fits.items():
        angle = f", of directions {how_far(fit['rms_angle'], 'rad')}" if "rms_angle" in fit else ""
        console.say(f"  {what}: rms {how_far(fit['rms'], fit['unit'])}{angle} over {counted(fit['samples'], 'sample')}")
    for text in targets_left(result):
        console.say(f"  {text}")


def _say_phases(console: Console, result: dict[str, Any]) -> None:
    """Say how each phase of an optimisation ended."""
    for phase in result.get("phases", []):
        console.say(f"  phase {phase['name']}: {counted(phase['evaluations'], 'evaluation')}, {phase['status']}")


def _say_checks(console: Console, result: dict[str, Any]) -> None:
    for name, check in result.get("checks", {}).items():
        mark = "ok  " if check["passed"] else "FAIL"
        console.say(f"  {mark} {name} = {check['value']} (expected {check['expected']})")


def _say_arrays(console: Console, many: dict[str, Any]) -> None:
    """Say the range of each long array of parameters."""
    for name, items in many.items():
        values = [item["value"] for item in items if item["value"] is not None] or [math.nan]
        console.say(f"  {name}: {len(items)} numbers, {min(values):.6g} to {max(values):.6g} {items[0]['unit']}")


# --- Arguments and options that several commands have, each a decorator -----------------------------------------------


def console(command: Callable[..., Any]) -> Callable[..., Any]:
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
        # Of the mesher, which may take minutes, one is told without --verbose, too.
        logging.getLogger("add.io.surfaces").setLevel(level if quiet else min(level, logging.INFO))
        screen = Console(as_json, quiet)
        result = ctx.invoke(command, screen, **arguments)
        screen.require_printed()
        return result

    wrapped.__name__ = command.__name__
    wrapped.__doc__ = command.__doc__
    wrapped.__click_params__ = [*getattr(wrapped, "__click_params__", []), *getattr(command, "__click_params__", [])]  # type: ignore[attr-defined]
    return wrapped


def _import_extensions(context: click.Context, option: click.Parameter, files: tuple[str, ...]) -> None:
    from add.machine.foreign import load_file

    for file in files:
        load_file(file)


#: Extensions are imported before a command reads anything.
extension = click.option(
    "--extension", multiple=True, metavar="FILE", expose_value=False, is_eager=True, callback=_import_extensions,
    help="Import a Python file that defines extensions; give it before the command.",
)  # fmt: skip


def _strict(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --strict to a command: what it warned of before it began stops it, what comes later fails it at its end."""

    @click.option("--strict", is_flag=True, help="Make warnings errors (exit code 2); results are kept.")
    @functools.wraps(command)
    def wrapped(console: Console, *, strict: bool, **arguments: Any) -> Any:
        console.strict = strict
        kept = BufferingHandler(sys.maxsize)
        kept.setLevel(logging.WARNING)
        logging.getLogger("add").addHandler(kept)
        try:
            result = command(console, **arguments)
        finally:
            logging.getLogger("add").removeHandler(kept)
        console.heed([record.getMessage() for record in kept.buffer])
        return result

    return wrapped


def strict(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add -v, -q, --json and --strict to a command."""
    return console(_strict(command))


#: Arguments and options that several commands have.
scene, run = (click.argument(name, type=click.Path()) for name in ("scene", "run"))
folder = click.option("-o", "--output", help="Run folder [default: runs/NAME for the file NAME.json].")
force = click.option("--force", is_flag=True, help="Replace a run folder that is already there.")
numbers = click.option(
    "--parameter", "parameters", multiple=True, help="A number of the fit to use [default: all properties]."
)
replace = click.option("--force", is_flag=True, help="Replace a scene that is already there.")


def workers(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --jobs and --cluster to a command."""
    where = "Use the workers of this Dask scheduler, e.g. tcp://host:8786."
    command = click.option("--cluster", metavar="ADDRESS", help=where)(command)
    what = "Number of processes [default: one a core]."
    return click.option("--jobs", type=click.IntRange(min=1), help=what)(command)


def robot(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --base and --ignore to a command."""
    what = "Of a robot: a thing to leave out, as its error says."
    command = click.option("--ignore", multiple=True, metavar="WORD", help=what)(command)
    what = "Of a robot: whether its first link stands still."
    return click.option("--base", type=click.Choice(["fixed", "free"]), help=what)(command)
