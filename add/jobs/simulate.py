"""`add simulate`: run a scene and keep what was computed, whatever ends the run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from add.errors import SolverError
from add.io.results import write_run
from add.io.runfolder import RESULT, SCENE, VERSIONS, CannotWrite, RunFolder, versions
from add.jobs.compiling import kernel_clock
from add.jobs.expect import checks_of
from add.jobs.folders import title
from add.jobs.output import run_data, summary
from add.kinematics import State
from add.scene.materialise import materialise
from add.scene.reader import Scene
from add.scene.sizes import in_scene, require_room_on_disk, require_room_to_run
from add.simulate import Trajectory
from add.steppers import Record

_log = logging.getLogger(__name__)

#: Seconds between two writes of an unfinished trajectory: what a kill can cost at most.
KEEP_EVERY = 20.0


class _Keeper:
    """Writes the unfinished trajectory now and then."""

    def __init__(self, write: Callable[[Trajectory], None], initial: Trajectory) -> None:
        self._write, self._initial = write, initial
        self._states: list[State] = []
        self._records: list[Record] = []
        self._last = time.monotonic()

    def __call__(self, state: State, record: Record) -> None:
        self._states.append(state)
        self._records.append(record)
        if time.monotonic() - self._last > KEEP_EVERY:
            first = self._initial
            partial = Trajectory(
                np.concatenate([first.t[:1], [s.t for s in self._states]]),
                np.stack([first.q[0], *(s.q[0] for s in self._states)]),
                np.stack([first.v[0], *(s.v[0] for s in self._states)]),
                first.start,
                list(self._records),
                first.initial,
            )
            _unless_full(lambda: self._write(partial))  # there may be room at the end
            self._last = time.monotonic()


def simulate_scene(
    scene: Scene, folder: RunFolder, *, progress: Callable[[State, Record], None] | None = None
) -> dict[str, Any]:
    """Run a scene and fill its run folder.

    Parameters
    ----------
    scene : Scene
    folder : RunFolder
    progress : called after every step

    Returns
    -------
    dict
        What ``result.json`` holds.

    Raises
    ------
    SolverError
        If a step fails; the folder then holds the steps before it and a result that says so.
    CannotWrite
        If there is no room for the trajectory; a result says so as far as there is room for that.
    MemoryError
        The steps before are kept as of a step that fails.

    Notes
    -----
    ``seconds`` is the wall time from the start to the last step; ``kernel_seconds`` of it went into compiling and
    loading kernels, in a step or two at the beginning.
    """
    scene = materialise(scene, folder.path)
    built = scene.build()
    every = scene.spec.output.every
    with in_scene(scene):
        require_room_to_run(built.simulation)
        require_room_on_disk(built.simulation, folder.path, every)
    folder.write_json(SCENE, scene.raw)
    folder.write_json(VERSIONS, versions())

    def keep(trajectory: Trajectory) -> None:
        write_run(folder.trajectory, run_data(built, trajectory, built.theta, every=every))

    head: dict[str, Any] = {"format": "add-result/1", "command": "simulate"}
    begin = time.perf_counter()
    trajectory: Trajectory | None = None
    with kernel_clock() as kernels:
        try:
            observers: list[Callable[[State, Record], None]] = [_Keeper(keep, built.run(n_steps=0))]
            if progress is not None:
                observers.append(progress)
            trajectory = built.run(observers=observers)
            spent = {"seconds": time.perf_counter() - begin, "kernel_seconds": kernels()}
            keep(trajectory)
        except (SolverError, KeyboardInterrupt, CannotWrite, MemoryError) as error:
            spent = {"seconds": time.perf_counter() - begin, "kernel_seconds": kernels()}
            made = trajectory or getattr(error, "trajectory", None)
            stopped = isinstance(error, KeyboardInterrupt)
            head |= {"status": "interrupted" if stopped else "failed", "message": str(error), "scene": title(scene)}
            if made is not None and (made.n_steps or not stopped):  # a start alone is not worth the wait
                head |= summary(built, made, built.theta)
                if not isinstance(error, CannotWrite):
                    _unless_full(lambda: keep(made))
            _unless_full(lambda: folder.write_json(RESULT, head | spent))
            raise
    result = head | {"status": "done", "scene": title(scene)} | summary(built, trajectory, built.theta) | spent
    folder.write_json(RESULT, result)
    result["checks"] = checks_of(scene, "simulate", result)
    folder.write_json(RESULT, result)
    return result


def _unless_full(write: Callable[[], object]) -> None:
    """Write what an unfinished run leaves; what ended it is said, whether there is room for that or not."""
    try:
        write()
    except CannotWrite as error:
        _log.warning("%s", error)
