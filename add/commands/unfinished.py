"""The remains of a run that did not come to its end, and how to go on."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from add.errors import InputError
from add.io.runfolder import DRAWN, DRAWS, EVALUATIONS, GRID, REPORT_HTML, RESULT, SAMPLES, RunFolder
from add.io.trajectory import last_time, read_point

#: Of a run without a result, or with that of an earlier part.
UNFINISHED = "not finished: killed, or cut by a crash"


@final
@dataclass(frozen=True)
class Remains:
    """A run that did not come to its end.

    Attributes
    ----------
    command : str or None
        None where it was cut before it left anything of its own.
    status : str
        "interrupted", "failed", `UNFINISHED`, or who works on it just now.
    kept : str
        What there is, such as "12 evaluations".
    advice : str
        What to do with it.
    """

    command: str | None
    status: str
    kept: str
    advice: str


def remains(folder: RunFolder, scene: str | None = None) -> Remains | None:
    """Return the remains of an unfinished run; None for one that is finished.

    Parameters
    ----------
    folder : RunFolder
    scene : the file it was begun with, for the advice; default: the folder's own
    """
    result = _result(folder)
    command = folder.command
    evaluations = len(folder.read_lines(EVALUATIONS))
    status = str(result.get("status", UNFINISHED))
    if command == "optimize" and evaluations > result.get("evaluations", 0):
        status = UNFINISHED  # the result is that of an earlier part
    holder = folder.holder
    if holder is not None and holder.pid != os.getpid():
        status = f"running: {holder}"
    elif status == "done":
        return None
    run, file = shlex.quote(str(folder.path)), shlex.quote(scene or str(folder.scene))
    again = f"`add {command} {file} -o {run} --force` begins anew"
    if command == "optimize":
        goes_on = f"`add optimize {file} -o {run} --resume` goes on"
        return Remains(command, status, _count(evaluations, "evaluation"), goes_on if folder.scene.is_file() else again)
    if command == "sweep":
        samples = len(folder.read_lines(SAMPLES))
        kept = f"{samples} of {_count(_grid_size(folder), 'sample')}"
        return Remains(command, status, kept, "the same `add sweep` again goes on")
    if command == "predict":
        drawn = len(folder.read_lines(DRAWN))
        kept = f"{drawn} of {_count(folder.read_json(DRAWS)['samples'], 'run')}"
        return Remains(command, status, kept, "the same `add predict` again goes on")
    if folder.trajectory.is_file():
        goes_on = f"`add simulate {file} -o {run} --resume` goes on" if _goes_on(folder) else again
        return Remains(command, status, _steps(folder, result), f"`add view {run}` shows it; {goes_on}")
    if command == "simulate":
        return Remains(command, status, "no step", again)
    return Remains(command, status, "nothing yet", "the same command with --force begins anew")


def kept_in(folder: RunFolder, scene: str) -> str:
    """Say what a run that was stopped just now leaves; see `remains`."""
    if not folder.is_run:
        return "nothing was begun"
    try:
        left = remains(folder, scene)
    except InputError as error:
        return str(error)
    if left is None:
        return f"the run in {folder.path} is complete"
    return f"kept in {folder.path}: {left.kept}; {left.advice}"


def _result(folder: RunFolder) -> dict[str, Any]:
    with contextlib.suppress(InputError):
        found = folder.read_json(RESULT)
        if isinstance(found, dict):
            return found
    return {}


def _steps(folder: RunFolder, result: dict[str, Any]) -> str:
    """Say how far a simulation came; one that was killed left states up to some time before."""
    if "steps" in result:
        return f"{_count(result['steps'], 'step')}, to t = {result['end_time']:g} s"
    return f"states up to t = {last_time(folder.trajectory):g} s"


def _goes_on(folder: RunFolder) -> bool:
    """Whether a simulation keeps a state to go on from."""
    with contextlib.suppress(InputError):
        return read_point(folder.trajectory) is not None
    return False


def _grid_size(folder: RunFolder) -> int:
    return math.prod(len(axis["values"]) for axis in folder.read_json(GRID))


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


def to_view(folder: RunFolder) -> Path:
    """Return the trajectory of a run.

    Raises
    ------
    InputError
        If there is none; says what can be looked at instead.
    """
    if folder.trajectory.is_file():
        return folder.trajectory
    run, scene = shlex.quote(str(folder.path)), shlex.quote(str(folder.scene))
    start = f"`add view {scene}` shows the scene as it starts" if folder.scene.is_file() else ""
    if folder.command == "sweep":
        why, instead = "a sweep keeps no trajectory", [f"`add plot {run}` draws it"]
    elif folder.command == "predict":
        why, instead = "a prediction by samples keeps no trajectory", [f"{REPORT_HTML} there has its pictures"]
    elif folder.command == "optimize":
        why = "a fit leaves its trajectory (trajectory.h5) at its end, which this one has not come to"
        left = remains(folder)
        instead = [left.advice] if left else []
        instead.append(f"`add plot {run}` draws its convergence")
    else:
        why, instead = "this run left no trajectory (trajectory.h5): it was cut before its first step was kept", []
    raise InputError(f"{why}; {', '.join([*instead, start]).rstrip(', ')}", file=folder.path)
