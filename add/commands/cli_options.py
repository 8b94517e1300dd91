"""Arguments and options that several commands have, each a decorator."""

import functools
import logging
import sys
from collections.abc import Callable
from logging.handlers import BufferingHandler
from typing import Any

import click

from add.commands.console import Console


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
    from add.machine.extensions import load_file

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
