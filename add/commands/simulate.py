"""`add simulate`: run a scene and keep what was computed, whatever ends the run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from add.commands.folders import locking, note_versions, title
from add.commands.kept_states import Earlier, Keeper, Kept, fingerprint, unless_full
from add.commands.optimize import require_same
from add.commands.run_summary import checks_of
from add.commands.step_counts import Tally
from add.commands.warm import kernel_clock
from add.equations.kinematics import State
from add.errors import InputError, SolverError
from add.io.runfolder import RESULT, SCENE, CannotWrite, RunFolder
from add.io.trajectory import read_point, read_run
from add.scene import Scene
from add.scene.build.built import BuiltScene
from add.scene.build.freeze_meshes import freeze_meshes
from add.scene.build.scene import with_contact
from add.scene.build.sizes import in_scene, require_room_on_disk, require_room_to_run
from add.simulation import Record
from add.simulation.run import Trajectory


@locking("simulate")
def simulate_scene(
    scene: Scene,
    folder: RunFolder,
    *,
    resume: bool = False,
    progress: Callable[[State, Record], None] | None = None,
) -> dict[str, Any]:
    """Run a scene and fill its run folder.

    Parameters
    ----------
    scene : Scene
    folder : RunFolder
    resume : bool
        Go on from the last state that the folder keeps; the result is that of a run that was never cut, to the bit.
    progress : called after every step

    Returns
    -------
    dict
        What ``result.json`` holds.

    Raises
    ------
    InputError
        If the folder's run is another one, or complete, or another process works there.
    SolverError
        If a step fails; the folder then holds the steps before it and a result that says so.
    CannotWrite
        If there is no room for the trajectory; a result says so as far as there is room for that.
    MemoryError
        The steps before are kept as of a step that fails.

    Notes
    -----
    ``seconds`` is the wall time from the start to the last step, of all parts of a run that was gone on with;
    ``kernel_seconds`` of it went into compiling and loading kernels, in a step or two at the beginning.
    """
    scene = with_contact(freeze_meshes(scene, folder.path))
    built = scene.build()
    every = scene.output.every
    with in_scene(scene):
        require_room_to_run(built.simulation)
        require_room_on_disk(built.simulation, folder.path, every)
    earlier = _earlier(scene, folder, built) if resume else Earlier()
    folder.write_json(SCENE, scene.raw)
    note_versions(folder, scene, resume=resume)
    begin = time.perf_counter()

    def spent() -> dict[str, float]:
        return {
            "seconds": earlier.spent("seconds") + time.perf_counter() - begin,
            "kernel_seconds": earlier.spent("kernel_seconds") + kernels(),
        }

    kept = Kept(built, folder.trajectory, earlier, spent)
    head: dict[str, Any] = {"format": "add-result/1", "command": "simulate"}
    trajectory: Trajectory | None = None
    with kernel_clock() as kernels:
        try:
            start = built.run(n_steps=0)
            begun = start.initial if earlier.point is None else earlier.point.state
            observers: list[Callable[[State, Record], None]] = [Keeper(kept, begun)]
            if progress is not None:
                observers.append(progress)
            trajectory = built.run(observers=observers, state=earlier.point.state if earlier.point else None)
            took = spent()
            kept.keep(trajectory.after(kept.steps))  # with its last state: a kill may come before the result
        except (SolverError, KeyboardInterrupt, CannotWrite, MemoryError) as error:
            took = spent()
            made = trajectory or getattr(error, "trajectory", None)
            stopped = isinstance(error, KeyboardInterrupt)
            head |= {"status": "interrupted" if stopped else "failed", "message": str(error), "scene": title(scene)}
            if made is not None and (made.n_steps or not stopped):  # a start alone is not worth the wait
                rest = made.after(kept.steps)
                head |= kept.summary(rest, start.kinematics(0))
                if not isinstance(error, CannotWrite):
                    unless_full(lambda: kept.keep(rest))
            unless_full(lambda: folder.write_json(RESULT, head | took))
            raise
    numbers = kept.summary(trajectory.after(kept.steps), start.kinematics(0))
    result = head | {"status": "done", "scene": title(scene)} | numbers | took
    folder.write_json(RESULT, result)
    result["checks"] = checks_of(scene, "simulate", result)
    folder.write_json(RESULT, result)
    return result


def _earlier(scene: Scene, folder: RunFolder, built: BuiltScene) -> Earlier:
    """Return the states kept of the folder's run.

    Raises
    ------
    InputError
        If it is none of this scene that could go on.
    """
    if folder.command not in (None, "simulate"):
        raise InputError(f"this is a run of `add {folder.command}`: no simulation to go on with", file=folder.path)
    if folder.result.is_file() and folder.read_json(RESULT).get("status") == "done":
        raise InputError("this run is complete: there is nothing to go on with", file=folder.path)
    if folder.scene.is_file():
        require_same(scene, folder)
        before = folder.read_json(SCENE).get("output", {}).get("every", 1)
        if before != scene.output.every:
            raise InputError(
                "this run keeps other states: go on with the scene as it was, or begin anew in another folder",
                file=scene.source,
                place="output.every",
                found=scene.output.every,
                expected=before,
            )
    if not folder.trajectory.is_file():
        return Earlier()
    point = read_point(folder.trajectory)
    if point is None:
        raise InputError("this run keeps no state to go on from: an older version made it", file=folder.trajectory)
    try:
        Tally.parsed(point.tally)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"no tally of steps: {error!r}", file=folder.trajectory, place="resume") from error
    system = built.model.system
    if point.model != fingerprint(built) or point.state.q.shape[1] != system.n:
        raise InputError(
            "this run was begun with other meshes or points: what it kept is of another model",
            file=folder.trajectory,
            place="resume",
        )
    return Earlier(point, read_run(folder.trajectory))
