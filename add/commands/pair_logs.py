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
from add.terms import JointLimits
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


#: How far a joint may go beyond its stop without a word: angle [rad], and share of its way.
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
    stiffness : float
        Of the stop.
    unit : str
        Of the stiffness.
    """

    beyond: float
    time: float
    allowed: float
    stiffness: float
    unit: str


@final
@dataclass
class StopLog(PairLog[Beyond]):
    """Joints of trees that go far beyond stops that give way, under body and joint."""

    KIND = Beyond

    def add(self, built: BuiltScene, trajectory: Trajectory, theta: FloatArray) -> None:
        """Take the steps of a trajectory; of a joint that starts beyond its stop `add check` says so."""
        layout = built.simulation.system.parameters
        for term in built.simulation.system.terms:
            if not isinstance(term, JointLimits) or term.hard or not trajectory.n_steps:
                continue
            q, lower, upper = trajectory.q[:, term.dof], theta[term.lower], theta[term.upper]
            beyond = np.maximum(q - upper, lower - q)
            for k, step in enumerate(beyond.argmax(axis=0).tolist()):
                entry, most = layout.entry_of(int(term.stiffness[k])), float(beyond[step, k])
                allowed = BEYOND_ANGLE if entry.unit.endswith("rad") else BEYOND * float(upper[k] - lower[k])
                body, _, joint = entry.name.removeprefix("bodies.").rpartition(".")[0].partition(".joints.")
                known = self.seen.get((body, joint))
                if most > allowed and (beyond[0, k] <= allowed if known is None else most > known.beyond):
                    time, stiffness = float(trajectory.t[step]), float(theta[term.stiffness[k]])
                    self.seen[body, joint] = Beyond(most, time, allowed, stiffness, entry.unit)

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
                "text": f"{body}/{joint} goes {one.beyond:.3g} {'rad' if one.unit.endswith('rad') else 'm'} beyond its "
                f"stop, at t = {one.time:.6g} s: a stiffer limit_stiffness "
                f"({5.0 * one.stiffness * one.beyond / one.allowed:.1g} {one.unit}) holds it",
            }
            for (body, joint), one in pairs
        ]
