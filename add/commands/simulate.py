"""`add simulate`: run a scene and keep what was computed, also the states from which an unfinished run goes on."""

import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from add.commands.ahead import kernel_clock
from add.commands.folders import locking, note_begin, result_head, stopped_head
from add.commands.optimize import require_same
from add.commands.run_summary import Tally, summary, write_checked
from add.commands.whole_run import gained, tumbled, unstable
from add.equations.kinematics import Kinematics, State
from add.errors import InputError, SolverError, naming
from add.io.lock import CannotWrite
from add.io.runfolder import RESULT, SCENE, RunFolder
from add.io.trajectory_data import RunData, joined
from add.io.trajectory_file import ResumePoint, read_point, read_run, write_run
from add.scene import Scene
from add.scene.build.built import BuiltScene
from add.scene.build.run_data import run_data
from add.scene.build.scene import build, with_contact
from add.scene.build.selections import freeze_meshes
from add.scene.build.sizes import require_room_on_disk, require_room_to_run
from add.simulation import Record
from add.simulation.run import Trajectory

_log = logging.getLogger(__name__)

#: Seconds between two writes of an unfinished trajectory, at least ...
KEEP_EVERY = 20.0
#: ... and this many times what the last one took.
KEEP_SHARE = 10.0


def fingerprint(built: BuiltScene) -> str:
    """Return a hash of what a run depends on beside the steps: numbers, start, meshes and points of contact."""
    digest = hashlib.sha256()
    model = built.model
    parts: list[Any] = [built.theta, *model.initial.evaluate(built.theta)]
    for body in model.bodies:
        parts += body.fingerprint()
    for part in parts:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype} {array.shape} ".encode() + array.tobytes())
    return digest.hexdigest()


@final
@dataclass
class Kept:
    """A run as far as its folder keeps it; every step is looked at once.

    Attributes
    ----------
    built : BuiltScene
    path : Path
        Of ``trajectory.h5``.
    spent : () -> seconds of the run so far, as in ``result.json``
    point : ResumePoint, optional
        Up to which it is kept; none: nothing is.
    data : RunData, optional
        Ends with the point's state.
    steps : int
        How many steps of this process are kept.
    """

    built: BuiltScene
    path: Path
    spent: Callable[[], dict[str, float]]
    point: ResumePoint | None = None
    data: RunData | None = None
    steps: int = 0
    model: str = field(init=False)

    def __post_init__(self) -> None:
        """Note what the run depends on."""
        self.model = fingerprint(self.built)

    def keep(self, part: Trajectory) -> None:
        """Write the run so far; ``part`` begins where what is kept ends."""
        tally = self.tally.add(self.built, part, self.built.theta)
        every = self.built.scene.output.every
        data = run_data(self.built, part, self.built.theta, every=every)
        if self.point is not None and self.data is not None:
            stays = self.point.state.step % every == 0
            data = self.data if data.n_states == 1 else joined(self.data, data, stays=stays)
        point = ResumePoint(part.state(part.n_steps), tally.plain() | self.spent(), self.model)
        write_run(self.path, data, point)
        self.point, self.data = point, data
        self.steps += part.n_steps

    @property
    def tally(self) -> Tally:
        """A new tally that begins with what was counted."""
        return Tally() if self.point is None else Tally.parsed(self.point.tally)

    def summary(self, part: Trajectory, start: Kinematics) -> dict[str, Any]:
        """Return the numbers of the run that ends with ``part`` and began at ``start``."""
        return summary(self.built, part, self.built.theta, before=self.tally, start=start)


@final
class Keeper:
    """An observer of steps that keeps the run now and then.

    Parameters
    ----------
    kept : Kept
    first : State
        From which the steps begin.
    """

    def __init__(self, kept: Kept, first: State) -> None:
        self._kept, self._first = kept, first
        self._steps: list[tuple[State, Record]] = []
        self._last, self._wait = time.monotonic(), KEEP_EVERY

    def __call__(self, state: State, record: Record) -> None:
        """Note a step."""
        self._steps.append((state, record))
        begin = time.monotonic()
        if begin - self._last > self._wait and state.step < self._kept.built.simulation.n_steps:
            if unless_full(lambda: self._kept.keep(self.rest())):  # else there may be room at the end
                self._first, self._steps = state, []
            self._last = time.monotonic()
            self._wait = max(KEEP_EVERY, KEEP_SHARE * (self._last - begin))

    def rest(self) -> Trajectory:
        """Return the steps that are not kept, with their records as they were noted: a run would make them anew."""
        states = [self._first, *(state for state, _ in self._steps)]
        t, q, v = (np.array(rows) for rows in zip(*((s.t, s.q[0], s.v[0]) for s in states), strict=True))
        return Trajectory(t, q, v, None, [record for _, record in self._steps], self._first)


def unless_full(write: Callable[[], object]) -> bool:
    """Write what an unfinished run leaves, and return whether there was room; what ended it is said in any case."""
    try:
        write()
    except CannotWrite as error:
        _log.warning("%s", error)
        return False
    return True


# --- `add simulate`: run a scene and keep what was computed, whatever ends the run ------------------------------------


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
    built = build(scene)
    every = scene.output.every
    with naming(file=scene.source):
        require_room_to_run(built.simulation)
        require_room_on_disk(built.simulation, folder.path, every)
    point, data = _earlier(scene, folder, built) if resume else (None, None)
    before = {key: float(point.tally.get(key, 0.0)) if point else 0.0 for key in ("seconds", "kernel_seconds")}
    note_begin(folder, scene, resume=resume)
    begin = time.perf_counter()

    def spent() -> dict[str, float]:
        return {
            "seconds": before["seconds"] + time.perf_counter() - begin,
            "kernel_seconds": before["kernel_seconds"] + kernels(),
        }

    kept = Kept(built, folder.trajectory, spent, point, data)
    keeper: Keeper | None = None
    with kernel_clock() as kernels:
        try:
            start = built.run(n_steps=0)
            begun = start.initial if point is None else point.state
            keeper = Keeper(kept, begun)
            observers: list[Callable[[State, Record], None]] = [keeper] if progress is None else [keeper, progress]
            trajectory = built.run(observers=observers, state=point.state if point else None)
            took = spent()
            kept.keep(keeper.rest())  # with its last state: a kill may come before the result
        except (SolverError, KeyboardInterrupt, CannotWrite, MemoryError) as error:
            took = spent()
            head = stopped_head(scene, "simulate", error)
            stopped = isinstance(error, KeyboardInterrupt)
            rest = None if keeper is None else keeper.rest()
            if rest is not None and (rest.n_steps or kept.steps or not stopped):  # a start alone is not worth the wait
                head |= kept.summary(rest, start.kinematics(0))
                if not isinstance(error, CannotWrite):
                    unless_full(lambda: kept.keep(rest))
            unless_full(lambda: folder.write_json(RESULT, head | took))
            raise
    numbers = kept.summary(trajectory.after(kept.steps), start.kinematics(0)) | unstable(built, start)
    if kept.data is not None:
        numbers |= gained(built, start, kept.data) | tumbled(built, kept.data, kept.tally.parts)
    result = result_head(scene, "simulate", "done") | numbers | took
    return write_checked(scene, "simulate", result, folder)


def _earlier(scene: Scene, folder: RunFolder, built: BuiltScene) -> tuple[ResumePoint | None, RunData | None]:
    """Return the states kept of the folder's run.

    Raises
    ------
    InputError
        If it is none of this scene that could go on.
    """
    if folder.command not in (None, "simulate"):
        raise InputError(f"this is a run of `add {folder.command}`: no simulation to go on with", file=folder.path)
    if folder.known(RESULT).get("status") == "done":
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
        return None, None
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
            "this run was begun with other meshes or points, or by another version: what it kept is of another model",
            file=folder.trajectory,
            place="resume",
        )
    return point, read_run(folder.trajectory)
