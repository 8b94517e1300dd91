"""Counts over the steps of a run, which go on where a run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from add.commands.depth_log import DepthLog
from add.commands.impact_log import ImpactLog
from add.commands.sunk_log import SunkLog
from add.commands.weak_contacts import WeakLog
from add.contact import BodyContact, MeshContact
from add.joints.law_term import DecidingJointLaw
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory
from add.typing import FloatArray

_KINDS = {"contact": (BodyContact, MeshContact), "couplings": (DecidingJointLaw,)}


@final
@dataclass
class Tally:
    """Counts over steps.

    Attributes
    ----------
    steps, iterations, most_iterations, factorizations, fallbacks, divided : int
    events : "contact" or "couplings" -> how often, over all steps, things touched, stuck, hung slack ...
    impacts : ImpactLog
    weak : WeakLog
    depths : DepthLog
    sunk : SunkLog
    """

    steps: int = 0
    iterations: int = 0
    most_iterations: int = 0
    factorizations: int = 0
    fallbacks: int = 0
    divided: int = 0
    events: dict[str, dict[str, int]] = field(default_factory=lambda: {key: {} for key in _KINDS})
    impacts: ImpactLog = field(default_factory=ImpactLog)
    weak: WeakLog = field(default_factory=WeakLog)
    depths: DepthLog = field(default_factory=DepthLog)
    sunk: SunkLog = field(default_factory=SunkLog)

    def add(self, built: BuiltScene, trajectory: Trajectory, theta: FloatArray) -> Tally:
        """Count the steps of a trajectory, too."""
        self.impacts.add(built, trajectory, theta)
        for record in trajectory.records:
            report = record.report
            self.steps += 1
            self.iterations += report.iterations
            self.most_iterations = max(self.most_iterations, report.iterations)
            self.factorizations += report.factorizations
            self.fallbacks += report.attempt > 0
            self.divided += len(record.inner) > 1
            self.depths.add(built, record, theta)
            self.sunk.add(built, record, theta)
            for term, decision in zip(built.simulation.system.deciding, record.decisions, strict=True):
                for key, kinds in _KINDS.items():
                    if isinstance(term, kinds):
                        self._count(key, term.describe(decision))
            solved = built.simulation.stepper.contact_forces(record, theta)
            if solved is not None:
                self._count("contact", solved.counts)
                self.weak.add(built, record.kin.t, solved)
        return self

    def _count(self, key: str, events: Mapping[str, int]) -> None:
        counts = self.events[key]
        for event, number in events.items():
            counts[event] = counts.get(event, 0) + int(number)

    def plain(self) -> dict[str, Any]:
        """Return the tally as JSON knows it."""
        return vars(self) | {
            "impacts": self.impacts.plain(),
            "weak": self.weak.plain(),
            "depths": self.depths.plain(),
            "sunk": self.sunk.plain(),
        }

    @classmethod
    def parsed(cls, found: Mapping[str, Any]) -> Tally:
        """Return the counts of which `plain` is the JSON.

        Raises
        ------
        ValueError, TypeError, KeyError
            If it is none.
        """
        events = {key: {str(event): int(n) for event, n in found["events"][key].items()} for key in _KINDS}
        return cls(
            int(found["steps"]),
            int(found["iterations"]),
            int(found["most_iterations"]),
            int(found["factorizations"]),
            int(found["fallbacks"]),
            int(found.get("divided", 0)),
            events,
            ImpactLog.parsed(found["impacts"]),
            WeakLog.parsed(found["weak"]),
            DepthLog.parsed(found["depths"]),
            SunkLog.parsed(found.get("sunk", [])),
        )
