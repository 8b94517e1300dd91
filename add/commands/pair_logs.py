"""Logs of pairs of bodies over the steps of a run: depths of meshes, joints beyond their stops, shortest impacts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Self, TypeVar, final, get_type_hints

import numpy as np

from add.contact import BodyContact, FrictionLaw, MeshContact
from add.equations.kinematics import Kinematics
from add.equations.lifted import LiftedDecidingTerm
from add.kernels.contact_pairs import ACTIVE, BITS, CLIPPED, PAIR
from add.kernels.rotation import left_jacobian
from add.model.impacts import Impact, names
from add.scene.build.built import BuiltScene
from add.simulation import Record
from add.simulation.run import Trajectory
from add.summary import fields_of
from add.terms import BallLimits, JointLimits
from add.typing import FloatArray, IntArray

Seen = TypeVar("Seen")


@dataclass
class PairLog(Generic[Seen]):
    """Log of pairs of bodies over the steps of a run, entries of the type `KIND`; it goes on where a run goes on.

    Attributes
    ----------
    seen : (body, other) -> what is seen of them
    """

    KIND: ClassVar[type[Any]]
    seen: dict[tuple[str, str], Seen] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return the log as JSON knows it."""
        return {"seen": [[*pair, *vars(one).values()] for pair, one in self.seen.items()]}

    @classmethod
    def parsed(cls, found: Any) -> Self:
        """Return the log of which `plain` is the JSON.

        Raises
        ------
        ValueError, TypeError, KeyError
            If it is none.
        """
        kinds = get_type_hints(cls.KIND).values()
        return cls({
            (str(a), str(b)): cls.KIND(*(kind(value) for kind, value in zip(kinds, values, strict=False)))
            for a, b, *values in found["seen"]
        })  # fmt: skip


#: Share of the reach from which on a depth is too great for a penalty: a wall pushes, and little is left of the skins.
TOO_DEEP = 0.5


@final
@dataclass
class Depth:
    """The greatest depth of two bodies.

    Attributes
    ----------
    depth, reach : float
        [m]; the reach is half the sum of both thicknesses, of guards (`add.contact.surfaces`) their share of it.
    stiffness : float
        k_n [N/m^3].
    time : float
        [s]
    wall : bool
        Whether the scene asks for a law that pushes the more the deeper they are.
    """

    depth: float = 0.0
    reach: float = 1.0
    stiffness: float = 0.0
    time: float = 0.0
    wall: bool = False


@final
@dataclass
class DepthLog(PairLog[Depth]):
    """Greatest depths."""

    KIND = Depth

    def add(self, built: BuiltScene, record: Record, theta: FloatArray) -> None:
        """Take those at the end of a step."""
        for term, decision in zip(built.simulation.system.deciding, record.decisions, strict=True):
            inner = term.inner if isinstance(term, LiftedDecidingTerm) else term
            if not isinstance(inner, MeshContact) or not decision.size:
                continue
            depths = inner.depths(built.model.lift.kinematics(record.kin, theta), theta, decision)
            n = len(inner.names)
            pairs, which = np.unique(depths.bodies.min(axis=1) * n + depths.bodies.max(axis=1), return_inverse=True)
            share = depths.depth / depths.reach
            for k, pair in enumerate(pairs):
                row = int(np.argmax(np.where(which.ravel() == k, share, -np.inf)))
                key = inner.names[pair // n], inner.names[pair % n]
                known = self.seen.get(key)
                if known is None or share[row] > known.depth / known.reach:
                    depth, reach, stiffness = map(float, (depths.depth[row], depths.reach[row], depths.stiffness[row]))
                    wall = built.scene.contact.law != "penalty"
                    self.seen[key] = Depth(depth, reach, stiffness, float(record.kin.t), wall)

    def described(self) -> list[dict[str, Any]]:
        """Return the pairs for ``result.json``, the deepest first."""
        pairs = sorted(self.seen.items(), key=lambda item: -item[1].depth / item[1].reach)
        return [
            {
                "bodies": list(pair),
                **vars(deepest),
                "warning": deepest.depth > TOO_DEEP * deepest.reach and not deepest.wall,
                "text": f"{pair[0]} and {pair[1]}: {deepest.depth:.3g} m of a reach of {deepest.reach:.3g} m at "
                f"t = {deepest.time:.6g} s with k_n = {deepest.stiffness:.3g} N/m^3: a contact.mesh.stiffness of "
                f"{3.0 * deepest.stiffness * deepest.depth / deepest.reach:.2g}, or thicker skins, keep it below half",
            }
            for pair, deepest in pairs
        ]


#: How far a joint may go beyond its stop, and beyond where it starts, without a word: angle [rad], share of its way,
#: which is at most a metre, and twice the onset of the stop.
BEYOND_ANGLE, BEYOND = 0.05, 0.05


@final
@dataclass
class Beyond:
    """The way of a joint beyond its stop.

    Attributes
    ----------
    beyond, time : float
        The farthest [rad, m], and when [s].
    allowed : float
        What is not said [rad, m].
    unit : str
        "rad" or "m".
    """

    beyond: float
    time: float
    allowed: float
    unit: str


@final
@dataclass
class StopLog(PairLog[Beyond]):
    """Joints of trees that go far beyond stops that give way, under body and joint."""

    KIND = Beyond

    def add(self, built: BuiltScene, trajectory: Trajectory, theta: FloatArray) -> None:
        """Take the steps of a trajectory; of a joint that starts beyond its stop `add check` says so."""
        layout, start = built.simulation.system.parameters, built.model.initial.evaluate(theta)[0]
        q = np.concatenate([start[None], trajectory.q])
        for term in built.simulation.system.terms:
            if not isinstance(term, JointLimits | BallLimits) or (isinstance(term, JointLimits) and term.hard):
                continue
            beyond, way = _beyond(term, q, theta)
            at_start, most, steps = beyond[0], beyond[1:].max(axis=0), beyond[1:].argmax(axis=0)
            for side, k in np.argwhere(most > np.maximum(at_start, 0.0)):
                entry, far = layout.entry_of(int(term.stiffness[k])), float(most[side, k])
                unit = "rad" if entry.unit.endswith("rad") else "m"
                allowed = max(BEYOND_ANGLE if unit == "rad" else BEYOND * float(way[k]), 2.0 * float(term.onset[k]))
                body, _, joint = entry.name.removeprefix("bodies.").rpartition(".")[0].partition(".joints.")
                known = self.seen.get((body, joint))
                new = known is None or far > known.beyond
                if new and far > allowed + max(0.0, float(at_start[side, k])):
                    self.seen[body, joint] = Beyond(far, float(trajectory.t[steps[side, k]]), allowed, unit)

    def described(self) -> list[dict[str, Any]]:
        """Return the joints for ``result.json``, the farthest first."""
        pairs = sorted(self.seen.items(), key=lambda item: -item[1].beyond / item[1].allowed)
        return [
            {
                "bodies": [body],
                "joint": joint,
                **fields_of(one, "time", "beyond"),
                "warning": True,
                "text": f"{body}/{joint} goes {one.beyond:.3g} {one.unit} beyond its stop, at t = {one.time:.6g} s: a "
                "stiffer limit_stiffness (null: by weight) holds it",
            }
            for (body, joint), one in pairs
        ]


def _beyond(term: JointLimits | BallLimits, q: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how far (steps, sides, m) joints are beyond each stop [rad, m], and their ways, at most a metre."""
    upper = theta[term.upper]
    if isinstance(term, BallLimits):
        turned = np.linalg.norm(q[:, term.first[:, None] + np.arange(3)], axis=2)
        return (turned - upper)[:, None], upper
    at, lower = q[:, term.dof], theta[term.lower]
    return np.stack([at - upper, lower - at], axis=1), np.minimum(upper - lower, 1.0)


# --- The shortest impacts of a run ------------------------------------------------------------------------------------

#: Contacts that begin slower than this share of the pair's fastest are no impacts: bodies that come to rest tremble.
SLOW = 0.1
#: Pair of names -> steps of an impact -> the fastest approach of those that lasted so long [m/s].
Fastest = dict[tuple[str, str], dict[int, float]]


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
    seen : Fastest
        Impacts that have ended.
    """

    steps: int = 0
    touching: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    began: dict[int, dict[tuple[int, int], tuple[int, float]]] = field(default_factory=dict)
    seen: Fastest = field(default_factory=dict)

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
            if np.array_equal(now, before):
                continue
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
    said = {"warning": impact.pair.asked and impact.few, "text": impact.text()}
    return fields_of(impact.pair, "body", "other", "restitution") | fields_of(impact, "steps", "speed", "error") | said


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
