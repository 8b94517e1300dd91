"""The states that a run folder keeps of an unfinished simulation, and the one from which it goes on."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from add.commands.run_summary import summary
from add.commands.step_counts import Tally
from add.equations.kinematics import Kinematics, State
from add.io.runfolder import CannotWrite
from add.io.trajectory import ResumePoint, RunData, joined, write_run
from add.scene.build.built import BuiltScene
from add.scene.build.run_data import run_data
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
@dataclass(frozen=True, eq=False)
class Earlier:
    """The part of a run that is kept; without a point there is none.

    Attributes
    ----------
    point : ResumePoint, optional
    data : RunData, optional
        Ends with the point's state.
    """

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


@final
@dataclass
class Kept:
    """A run as far as its folder keeps it; every step is looked at once.

    Attributes
    ----------
    built : BuiltScene
    path : Path
        Of ``trajectory.h5``.
    earlier : Earlier
        What is kept.
    spent : () -> seconds of the run so far, as in ``result.json``
    steps : int
        How many steps of this process are kept.
    """

    built: BuiltScene
    path: Path
    earlier: Earlier
    spent: Callable[[], dict[str, float]]
    steps: int = 0
    model: str = field(init=False)

    def __post_init__(self) -> None:
        """Note what the run depends on."""
        self.model = fingerprint(self.built)

    def keep(self, part: Trajectory) -> None:
        """Write the run so far; ``part`` begins where what is kept ends."""
        tally = self.earlier.tally.add(self.built, part, self.built.theta)
        point = ResumePoint(part.state(part.n_steps), tally.plain() | self.spent(), self.model)
        every = self.built.scene.output.every
        data = self.earlier.with_later(run_data(self.built, part, self.built.theta, every=every), every)
        write_run(self.path, data, point)
        self.earlier = Earlier(point, data)
        self.steps += part.n_steps

    def summary(self, part: Trajectory, start: Kinematics) -> dict[str, Any]:
        """Return the numbers of the run that ends with ``part`` and began at ``start``."""
        return summary(self.built, part, self.built.theta, before=self.earlier.tally, start=start)


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
        self._states: list[State] = []
        self._records: list[Record] = []
        self._last, self._wait = time.monotonic(), KEEP_EVERY

    def __call__(self, state: State, record: Record) -> None:
        """Note a step."""
        self._states.append(state)
        self._records.append(record)
        begin = time.monotonic()
        if begin - self._last > self._wait and state.step < self._kept.built.simulation.n_steps:
            states = [self._first, *self._states]
            part = Trajectory(
                np.array([s.t for s in states]),
                np.stack([s.q[0] for s in states]),
                np.stack([s.v[0] for s in states]),
                None,
                self._records,
                self._first,
            )
            if unless_full(lambda: self._kept.keep(part)):  # else there may be room at the end
                self._first, self._states, self._records = state, [], []
            self._last = time.monotonic()
            self._wait = max(KEEP_EVERY, KEEP_SHARE * (self._last - begin))


def unless_full(write: Callable[[], object]) -> bool:
    """Write what an unfinished run leaves, and return whether there was room; what ended it is said in any case."""
    try:
        write()
    except CannotWrite as error:
        _log.warning("%s", error)
        return False
    return True
