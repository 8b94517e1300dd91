"""The greatest depths of meshes in each other's skins in a run, by the names of the bodies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from add.contact import MeshContact
from add.equations.lifted import LiftedDecidingTerm
from add.scene.build.built import BuiltScene
from add.simulation import Record
from add.typing import FloatArray

#: Share of the reach from which on a depth is too great for a penalty: a wall pushes, and little is left of the skins.
TOO_DEEP = 0.5


@final
@dataclass
class Depth:
    """The greatest depth of two bodies.

    Attributes
    ----------
    depth, reach : float
        [m]; the reach is half the sum of both thicknesses, of guards (`add.contact.sides`) their share of it.
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
class DepthLog:
    """Greatest depths step by step; it goes on where a run goes on.

    Attributes
    ----------
    seen : (body, body) -> Depth
    """

    seen: dict[tuple[str, str], Depth] = field(default_factory=dict)

    def add(self, built: BuiltScene, record: Record, theta: FloatArray) -> None:
        """Take those at the end of a step."""
        for term, decision in zip(built.simulation.system.deciding, record.decisions, strict=True):
            inner = term.inner if isinstance(term, LiftedDecidingTerm) else term
            if not isinstance(inner, MeshContact) or not decision.size:
                continue
            found = inner.depths(built.model.lift.kinematics(record.kin, theta), theta, decision)
            n = len(inner.names)
            pairs, which = np.unique(found.bodies.min(axis=1) * n + found.bodies.max(axis=1), return_inverse=True)
            share = found.depth / found.reach
            for k, pair in enumerate(pairs):
                row = int(np.argmax(np.where(which.ravel() == k, share, -np.inf)))
                key = inner.names[pair // n], inner.names[pair % n]
                known = self.seen.get(key)
                if known is None or share[row] > known.depth / known.reach:
                    depth, reach, stiffness = map(float, (found.depth[row], found.reach[row], found.stiffness[row]))
                    wall = built.scene.contact.law != "penalty"
                    self.seen[key] = Depth(depth, reach, stiffness, float(record.kin.t), wall)

    def described(self) -> list[dict[str, Any]]:
        """Return the pairs for ``result.json``, the deepest first."""
        pairs = sorted(self.seen.items(), key=lambda item: -item[1].depth / item[1].reach)
        return [
            {
                "bodies": list(pair),
                **vars(found),
                "warning": found.depth > TOO_DEEP * found.reach and not found.wall,
                "text": f"{pair[0]} and {pair[1]}: {found.depth:.3g} m of a reach of {found.reach:.3g} m at "
                f"t = {found.time:.6g} s with k_n = {found.stiffness:.3g} N/m^3: a contact.mesh.stiffness of "
                f"{3.0 * found.stiffness * found.depth / found.reach:.2g}, or thicker skins, keep it below half",
            }
            for pair, found in pairs
        ]

    def plain(self) -> dict[str, Any]:
        """Return the log as JSON knows it."""
        return {"seen": [[*pair, *vars(found).values()] for pair, found in self.seen.items()]}

    @classmethod
    def parsed(cls, found: Mapping[str, Any]) -> DepthLog:
        """Return the log of which `plain` is the JSON.

        Raises
        ------
        ValueError, TypeError, KeyError
            If it is none.
        """
        seen = {}
        for a, b, depth, reach, stiffness, time, *wall in found["seen"]:
            seen[str(a), str(b)] = Depth(float(depth), float(reach), float(stiffness), float(time), any(wall))
        return cls(seen)
