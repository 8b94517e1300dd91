"""The shortest impacts of a run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, final

import numpy as np

from add.contact import BodyContact, FrictionLaw
from add.equations.kinematics import Kinematics
from add.kernels.contact_pairs import ACTIVE, BITS, CLIPPED, PAIR
from add.kernels.rotation import left_jacobian
from add.model.impacts import Impact, names
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory
from add.typing import FloatArray, IntArray

#: Contacts that begin slower than this share of the pair's fastest are no impacts: bodies that come to rest tremble.
SLOW = 0.1
#: Pair of names -> steps of an impact -> the fastest approach of those that lasted so long [m/s].
Seen = dict[tuple[str, str], dict[int, float]]


class _Wanted:
    """The pairs of a term whose impacts count: points of rigid bodies, by the names of their bodies."""

    def __init__(self, term: BodyContact, owners: list[str], columns: list[str], pairs: set[tuple[str, str]]) -> None:
        self._term, self._owners, self._columns, self._pairs = term, owners, columns, pairs

    def names(self, point: int, shape: int) -> tuple[str, str]:
        """Return the names of body and what it meets."""
        return self._owners[self._term.owner[point]], self._columns[shape]

    def of(self, pairs: IntArray) -> IntArray:
        """Return the pairs that count."""
        points, shapes = np.divmod(pairs, self._term.n_shapes)
        kept = [self._term.rigid[i] and self.names(i, o) in self._pairs for i, o in zip(points, shapes, strict=True)]
        return pairs[np.array(kept, dtype=bool)]


@final
@dataclass
class ImpactLog:
    """Impacts of the points of rigid bodies, step by step; it goes on where a run goes on.

    An impact is that of one point: from the first step with a force to the last, both within the run. What touches in
    the first step is none.

    Attributes
    ----------
    steps : int
        Steps taken so far.
    touching : number of a contact term -> (point, shape) that touched in the last of them
    began : number of a contact term -> (point, shape) -> step and speed [m/s] with which its impact began
    seen : Seen
        Impacts that have ended.
    """

    steps: int = 0
    touching: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    began: dict[int, dict[tuple[int, int], tuple[int, float]]] = field(default_factory=dict)
    seen: Seen = field(default_factory=dict)

    def add(self, built: BuiltScene, trajectory: Trajectory, theta: FloatArray) -> None:
        """Follow the steps of a trajectory, too."""
        pairs = {(pair.body, pair.other) for pair in built.damped_pairs(theta)}
        owners, columns = names(built.model)
        layout = built.model.system.parameters
        gravity = float(np.linalg.norm(layout.view(theta, "gravity"))) if "gravity" in layout else 0.0
        slowest = 2.0 * built.simulation.stepper.dt * gravity
        for number, term in enumerate(built.simulation.system.deciding):
            if isinstance(term, BodyContact):
                self._follow(number, term, trajectory, theta, _Wanted(term, owners, columns, pairs), slowest)
        self.steps += trajectory.n_steps

    def _follow(
        self, number: int, term: BodyContact, trajectory: Trajectory, theta: FloatArray, wanted: _Wanted, slowest: float
    ) -> None:
        width = term.n_shapes
        before = np.array(sorted(i * width + o for i, o in self.touching.get(number, ())), dtype=np.int64)
        began = self.began.setdefault(number, {})
        for k, record in enumerate(trajectory.records):
            step = self.steps + k
            rows = record.decisions[number]
            now = wanted.of(rows[rows[:, BITS] & (ACTIVE | CLIPPED) == ACTIVE, PAIR])
            for i, o in zip(*np.divmod(np.setdiff1d(before, now), width), strict=True):
                if (i, o) in began:
                    first, speed = began.pop((i, o))
                    if speed > slowest:
                        speeds = self.seen.setdefault(wanted.names(i, o), {})
                        speeds[step - first] = max(speed, speeds.get(step - first, 0.0))
            fresh = np.setdiff1d(now, before)
            if fresh.size and step:
                began |= {key: (step, v) for key, v in _speeds(term, trajectory, k, theta, fresh)}
            before = now
        self.touching[number] = {(pair // width, pair % width) for pair in before.tolist()}

    def shortest(self, built: BuiltScene, theta: FloatArray) -> list[Impact]:
        """Return the shortest impact of every pair that has damping; slow ones of bodies that come to rest aside."""
        pairs = {(pair.body, pair.other): pair for pair in built.damped_pairs(theta)}
        out = []
        for name, speeds in self.seen.items():
            fastest = max(speeds.values())
            steps = min(steps for steps, speed in speeds.items() if speed >= SLOW * fastest)
            out.append(Impact(pairs[name], float(steps), built.simulation.stepper.dt, built.order, speeds[steps]))
        return out

    def plain(self) -> dict[str, Any]:
        """Return the log as JSON knows it."""
        return {
            "steps": self.steps,
            "touching": [[number, *place] for number, places in self.touching.items() for place in sorted(places)],
            "began": [[k, *place, *rest] for k, entries in self.began.items() for place, rest in entries.items()],
            "seen": [[*name, steps, v] for name, entries in self.seen.items() for steps, v in entries.items()],
        }

    @classmethod
    def parsed(cls, found: Mapping[str, Any]) -> Self:
        """Return the log of which `plain` is the JSON.

        Raises
        ------
        ValueError, TypeError, KeyError
            If it is none.
        """
        log = cls(int(found["steps"]))
        for number, i, o in found["touching"]:
            log.touching.setdefault(int(number), set()).add((int(i), int(o)))
        for number, i, o, step, speed in found["began"]:
            log.began.setdefault(int(number), {})[int(i), int(o)] = int(step), float(speed)
        for body, other, steps, speed in found["seen"]:
            log.seen.setdefault((str(body), str(other)), {})[int(steps)] = float(speed)
        return log


def impact_json(impact: Impact) -> dict[str, Any]:
    """Return an impact as it stands in ``result.json``."""
    pair = impact.pair
    return {
        "body": pair.body,
        "other": pair.other,
        "steps": impact.steps,
        "speed": impact.speed,
        "restitution": pair.restitution,
        "error": impact.error,
        "warning": pair.asked and impact.few,
        "text": impact.text(),
    }


def _speeds(
    term: BodyContact, trajectory: Trajectory, k: int, theta: FloatArray, fresh: IntArray
) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield the speed of approach before step ``k`` of the pairs that touch anew in it."""
    record, before = trajectory.records[k], trajectory.kinematics(k)
    decision = term.decide(record.kin, theta)
    places = replace(term, law=FrictionLaw.NONE).places(record.kin, theta, decision)
    for place, force, i, o in zip(places.place, places.force, places.point, places.shape, strict=True):
        size = float(np.linalg.norm(force))
        if i * term.n_shapes + o in fresh and size > 0.0:
            other = int(term.shape_carrier[o])
            there = _velocity(before, other, place) if other >= 0 else term.velocity[o]
            yield (int(i), int(o)), float(-(force / size) @ (_velocity(before, int(term.carrier[i]), place) - there))


def _velocity(kin: Kinematics, start: int, place: FloatArray) -> FloatArray:
    """Return the velocity of a rigid body at a place [m/s]."""
    x, w = kin.q[start : start + 6].reshape(2, 3)
    v, rate = kin.v[start : start + 6].reshape(2, 3)
    return np.asarray(v + np.cross(left_jacobian(w) @ rate, place - x))
