"""The place and the name of a run; what is left of one that did not come to its end, and how to go on."""

import contextlib
import functools
import logging
import math
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from add.errors import InputError, require_known
from add.io import runfolder
from add.io.trajectory_file import last_time, read_point
from add.scene import Scene
from add.scene.read.paths import within
from add.scene.spec.extension import extension_versions
from add.scene.spec.links import strings_in
from add.summary import counted

_log = logging.getLogger(__name__)


def locking(command: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a job, a function of a scene and a run folder, keep other processes from the folder while it works."""

    def decorate(job: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(job)
        def wrapped(scene: Scene, folder: runfolder.RunFolder, *arguments: Any, **options: Any) -> Any:
            with folder.locked(command):
                return job(scene, folder, *arguments, **options)

        return wrapped

    return decorate


@contextmanager
def run_in(
    scene: Scene, path: Path, command: str, *, force: bool = False, resume: bool = False
) -> Iterator[runfolder.RunFolder]:
    """Give a locked run folder: an empty one, or one with a run to go on with.

    Parameters
    ----------
    scene : the one to be run; meshes that it reads stay where they are
    path : of the folder
    command : of `add`, to be named to others
    force : whether a run that is there already is thrown away
    resume : whether the run that is there goes on

    Raises
    ------
    InputError
        If there is a run, or something else, or another process works there, or the run cannot be removed.
    """
    folder = runfolder.RunFolder(path, create=False) if resume else runfolder.RunFolder(path, overwrite=force)
    with folder.locked(command):
        if not resume:
            clear(folder, scene)
        yield folder


def note_versions(folder: runfolder.RunFolder, scene: Scene, *, resume: bool) -> None:
    """Write with what a run is made; of one that goes on, say where that is something else than it was begun with."""
    now = runfolder.versions() | extension_versions(scene)
    if resume and folder.versions.is_file():
        before = folder.read_json(runfolder.VERSIONS)
        changed = [f"{key} {before.get(key, 'unknown')} -> {now[key]}" for key in now if before.get(key) != now[key]]
        if changed:
            _log.warning(
                "%s: this run was begun with other versions (%s): what follows may differ from what it would have been",
                folder.path,
                ", ".join(changed),
            )
    folder.write_json(runfolder.VERSIONS, now)


def note_begin(folder: runfolder.RunFolder, scene: Scene, *, resume: bool = False) -> None:
    """Write the scene of a run, and with what it is made; see `note_versions`."""
    folder.write_json(runfolder.SCENE, within(scene.raw, folder.path))
    note_versions(folder, scene, resume=resume)


def result_head(scene: Scene, command: str, status: str, **more: Any) -> dict[str, Any]:
    """Return what every ``result.json`` begins with."""
    return {"format": "add-result/1", "command": command, "status": status} | more | {"scene": title(scene)}


def stopped_head(scene: Scene, command: str, error: BaseException) -> dict[str, Any]:
    """Return the `result_head` of a run that an error or an interruption ended."""
    status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
    return result_head(scene, command, status, message=str(error))


def clear(folder: runfolder.RunFolder, scene: Scene) -> None:
    """Remove the run that is in a folder, but no mesh that the scene reads: it may be the scene of that very run."""
    folder.clear(keep=[Path(text) for text in strings_in(scene.raw) if text.endswith(".msh")])


def title(scene: Scene) -> str:
    """Return a scene's name; without one the file's, and the folder's for the ``scene.json`` of a run."""
    if scene.name or scene.source is None:
        return scene.name or ""
    path = scene.source.absolute()
    if path.name == runfolder.SCENE and (path.parent / runfolder.VERSIONS).is_file():
        return path.parent.name
    return path.stem


#: Of a run without a result, or with that of an earlier part.
UNFINISHED = "not finished: killed, or cut by a crash"


class Remains(NamedTuple):
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


def remains(folder: runfolder.RunFolder, scene: str | None = None) -> Remains | None:
    """Return the remains of an unfinished run; None for one that is finished.

    Parameters
    ----------
    folder : RunFolder
    scene : the file it was begun with, for the advice; default: the folder's own
    """
    result = _result(folder)
    command = folder.command
    evaluations = len(folder.read_lines(runfolder.EVALUATIONS))
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
        goes_on = f"`add optimize {file} -o {run} --resume` goes on" if folder.scene.is_file() else again
        kept, advice = counted(evaluations, "evaluation"), goes_on
    elif command == "sweep":
        samples = len(folder.read_lines(runfolder.SAMPLES))
        whole = math.prod(len(axis["values"]) for axis in folder.read_json(runfolder.GRID))
        kept = f"{samples} of {counted(whole, 'sample')}"
        advice = "the same `add sweep` again goes on"
    elif command == "predict":
        drawn = len(folder.read_lines(runfolder.DRAWN))
        kept = f"{drawn} of {counted(folder.read_json(runfolder.DRAWS)['samples'], 'run')}"
        advice = "the same `add predict` again goes on"
    elif folder.trajectory.is_file():
        goes_on = f"`add simulate {file} -o {run} --resume` goes on" if _goes_on(folder) else again
        kept, advice = _steps(folder, result), f"`add view {run}` shows it; {goes_on}"
    elif command == "simulate":
        kept, advice = "no step", again
    else:
        kept, advice = "nothing yet", "the same command with --force begins anew"
    return Remains(command, status, kept, advice)


def kept_in(folder: runfolder.RunFolder, scene: str) -> str:
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


def _result(folder: runfolder.RunFolder) -> dict[str, Any]:
    with contextlib.suppress(InputError):
        return folder.known(runfolder.RESULT)
    return {}


def _steps(folder: runfolder.RunFolder, result: dict[str, Any]) -> str:
    """Say how far a simulation came; one that was killed left states up to some time before."""
    if "steps" in result:
        return f"{counted(result['steps'], 'step')}, to t = {result['end_time']:g} s"
    return f"states up to t = {last_time(folder.trajectory):g} s"


def _goes_on(folder: runfolder.RunFolder) -> bool:
    """Whether a simulation keeps a state to go on from."""
    with contextlib.suppress(InputError):
        return read_point(folder.trajectory) is not None
    return False


def to_view(folder: runfolder.RunFolder) -> Path:
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
        why, instead = (
            "a prediction by samples keeps no trajectory",
            [f"{runfolder.REPORT_HTML} there has its pictures"],
        )
    elif folder.command == "optimize":
        why = "a fit leaves its trajectory (trajectory.h5) at its end, which this one has not come to"
        left = remains(folder)
        instead = [left.advice] if left else []
        instead.append(f"`add plot {run}` draws its convergence")
    else:
        why, instead = "this run left no trajectory (trajectory.h5): it was cut before its first step was kept", []
    raise InputError(f"{why}; {', '.join([*instead, start]).rstrip(', ')}", file=folder.path)


def motion_of(source: Path, experiment: str | None) -> tuple[Path, str]:
    """Return the folder of a run, whose trajectory is that of its first experiment, or the file of another one.

    Behind it stands what to say of the experiments that nobody chose among.
    """
    others = [path.stem.removeprefix("trajectory_") for path in sorted(source.glob("trajectory_*.h5"))]
    if not source.is_dir():
        if experiment is not None:
            raise InputError(
                "this holds no experiments", file=source, place="--experiment", found=experiment,
                expected="the folder of a run of `add optimize`",
            )  # fmt: skip
        return source, ""
    if experiment is None and not others:
        return source, ""
    folder = runfolder.RunFolder(source, create=False)
    first = next((item["name"] for item in folder.known(runfolder.SCENE).get("experiments") or []), "")
    if experiment is None:
        return source, f"this is the motion of experiment '{first}': --experiment for {', '.join(others)}"
    known = [name for name in (first, *others) if name]
    require_known((experiment,), known or ["no experiment"], "there is no such experiment", place="--experiment")
    return source if experiment == first else source / f"trajectory_{experiment}.h5", ""
