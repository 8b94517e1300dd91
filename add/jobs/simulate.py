"""`add simulate`: run a scene and keep what was computed, whatever ends the run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from add.errors import SolverError
from add.io.results import write_run
from add.io.runfolder import RunFolder, versions
from add.jobs.expect import checks_of
from add.jobs.output import run_data, summary
from add.kinematics import State
from add.scene.materialise import materialise
from add.scene.reader import Scene
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
            self._write(partial)
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
    """
    scene = materialise(scene, folder.path)
    built = scene.build()
    every = scene.spec.output.every
    folder.write_json("scene.json", scene.raw)
    folder.write_json("versions.json", versions())

    def keep(trajectory: Trajectory) -> None:
        write_run(folder.path / "trajectory.h5", run_data(built, trajectory, built.theta, every=every))

    begin = time.perf_counter()
    try:
        observers: list[Callable[[State, Record], None]] = [_Keeper(keep, built.run(n_steps=0))]
        if progress is not None:
            observers.append(progress)
        trajectory = built.run(observers=observers)
    except (SolverError, KeyboardInterrupt) as error:
        partial: Trajectory | None = getattr(error, "trajectory", None)
        status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        result: dict[str, Any] = {"format": "add-result/1", "command": "simulate", "status": status}
        if partial is not None:
            keep(partial)
            result |= summary(built, partial, built.theta)
        result |= {"message": str(error), "scene": scene.spec.name or "", "seconds": time.perf_counter() - begin}
        folder.write_json("result.json", result)
        raise
    seconds = time.perf_counter() - begin
    keep(trajectory)
    result = {"format": "add-result/1", "command": "simulate", "status": "done", "scene": scene.spec.name or ""}
    result |= summary(built, trajectory, built.theta)
    result["seconds"] = seconds
    folder.write_json("result.json", result)
    result["checks"] = checks_of(scene, "simulate", result)
    folder.write_json("result.json", result)
    return result
