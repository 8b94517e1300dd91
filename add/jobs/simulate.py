"""`add simulate`: run a scene and keep what was computed, whatever ends the run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.errors import InputError, SolverError
from add.io.results import ResumePoint, RunData, joined, read_point, read_run, write_run
from add.io.runfolder import RESULT, SCENE, CannotWrite, RunFolder
from add.jobs.compiling import kernel_clock
from add.jobs.expect import checks_of
from add.jobs.folders import locking, note_versions, title
from add.jobs.optimize import require_same
from add.jobs.output import run_data, summary
from add.jobs.tally import Tally
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


@final
@dataclass(frozen=True, eq=False)
class _Earlier:
    """The part of a run before the one that goes on with it; without a point there is none."""

    point: ResumePoint | None = None
    data: RunData | None = None

    @property
    def tally(self) -> Tally:
        """A new tally that begins with what was counted."""
        return Tally() if self.point is None else Tally.parsed(self.point.tally)

    def spent(self, key: str) -> float:
        """Seconds that the part took, ``key`` being those of ``result.json``."""
        return 0.0 if self.point is None else float(self.point.tally.get(key, 0.0))

    def with_later(self, later: RunData, every: int) -> RunData:
        """Return the whole run so far."""
        if self.point is None or self.data is None:
            return later
        if later.n_states == 1:
            return self.data
        return joined(self.data, later, stays=self.point.state.step % every == 0)


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
    scene = materialise(scene, folder.path)
    built = scene.build()
    every = scene.spec.output.every
    with in_scene(scene):
        require_room_to_run(built.simulation)
        require_room_on_disk(built.simulation, folder.path, every)
    earlier = _earlier(scene, folder, built.model.system.n) if resume else _Earlier()
    folder.write_json(SCENE, scene.raw)
    note_versions(folder, resume=resume)
    begin = time.perf_counter()

    def data(trajectory: Trajectory) -> RunData:
        return earlier.with_later(run_data(built, trajectory, built.theta, every=every), every)

    def keep(trajectory: Trajectory) -> None:
        tally = earlier.tally.add(built, trajectory, built.theta)
        point = ResumePoint(trajectory.state(trajectory.n_steps), tally.plain() | spent())
        write_run(folder.trajectory, data(trajectory), point)

    def spent() -> dict[str, float]:
        return {
            "seconds": earlier.spent("seconds") + time.perf_counter() - begin,
            "kernel_seconds": earlier.spent("kernel_seconds") + kernels(),
        }

    def numbers(trajectory: Trajectory) -> dict[str, Any]:
        return summary(built, trajectory, built.theta, before=earlier.tally, start=start.kinematics(0))

    head: dict[str, Any] = {"format": "add-result/1", "command": "simulate"}
    trajectory: Trajectory | None = None
    with kernel_clock() as kernels:
        try:
            start = built.run(n_steps=0)
            first = start if earlier.point is None else built.run(n_steps=0, state=earlier.point.state)
            observers: list[Callable[[State, Record], None]] = [_Keeper(keep, first)]
            if progress is not None:
                observers.append(progress)
            trajectory = built.run(observers=observers, state=earlier.point.state if earlier.point else None)
            took = spent()
            write_run(folder.trajectory, data(trajectory))
        except (SolverError, KeyboardInterrupt, CannotWrite, MemoryError) as error:
            took = spent()
            made = trajectory or getattr(error, "trajectory", None)
            stopped = isinstance(error, KeyboardInterrupt)
            head |= {"status": "interrupted" if stopped else "failed", "message": str(error), "scene": title(scene)}
            if made is not None and (made.n_steps or not stopped):  # a start alone is not worth the wait
                head |= numbers(made)
                if not isinstance(error, CannotWrite):
                    _unless_full(lambda: keep(made))
            _unless_full(lambda: folder.write_json(RESULT, head | took))
            raise
    result = head | {"status": "done", "scene": title(scene)} | numbers(trajectory) | took
    folder.write_json(RESULT, result)
    result["checks"] = checks_of(scene, "simulate", result)
    folder.write_json(RESULT, result)
    return result


def _earlier(scene: Scene, folder: RunFolder, n: int) -> _Earlier:
    """Return what is kept of the folder's run.

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
        if before != scene.spec.output.every:
            raise InputError(
                "this run keeps other states: go on with the scene as it was, or begin anew in another folder",
                file=scene.source,
                place="output.every",
                found=scene.spec.output.every,
                expected=before,
            )
    if not folder.trajectory.is_file():
        return _Earlier()
    point = read_point(folder.trajectory)
    if point is None:
        raise InputError(
            "this run keeps no state to go on from: it ended, or an older version made it", file=folder.trajectory
        )
    try:
        Tally.parsed(point.tally)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"no tally of steps: {error!r}", file=folder.trajectory, place="resume") from error
    if point.state.q.shape[1] != n or point.state.step > scene.spec.time.n_steps:
        raise InputError("the kept state is none of this scene", file=folder.trajectory, place="resume")
    return _Earlier(point, read_run(folder.trajectory))


def _unless_full(write: Callable[[], object]) -> None:
    """Write what an unfinished run leaves; what ended it is said, whether there is room for that or not."""
    try:
        write()
    except CannotWrite as error:
        _log.warning("%s", error)
