"""Logs of pairs of bodies over the steps of a run: their base, depths of meshes, and joints beyond their stops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar, final, get_type_hints

import numpy as np

from add.contact import MeshContact
from add.equations.lifted import LiftedDecidingTerm
from add.scene.build.built import BuiltScene
from add.simulation import Record
from add.simulation.run import Trajectory
from add.terms import BallLimits, JointLimits
from add.typing import FloatArray

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
                "time": one.time,
                "beyond": one.beyond,
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
