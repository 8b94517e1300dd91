"""What is counted over the steps of a run; it goes on where a run goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from add.contact import BodyContact, PenaltyContact
from add.model import Model
from add.steppers import Record
from add.terms import DecidingCoupling

_KINDS = {"contact": (PenaltyContact, BodyContact), "couplings": (DecidingCoupling,)}


@final
@dataclass
class Tally:
    """Counts over steps.

    Attributes
    ----------
    steps, iterations, most_iterations, factorizations, fallbacks : int
    events : "contact" or "couplings" -> how often, over all steps, things touched, stuck, hung slack ...
    """

    steps: int = 0
    iterations: int = 0
    most_iterations: int = 0
    factorizations: int = 0
    fallbacks: int = 0
    events: dict[str, dict[str, int]] = field(default_factory=lambda: {key: {} for key in _KINDS})

    def add(self, model: Model, records: Sequence[Record]) -> Tally:
        """Count these steps, too."""
        for record in records:
            report = record.report
            self.steps += 1
            self.iterations += report.iterations
            self.most_iterations = max(self.most_iterations, report.iterations)
            self.factorizations += report.factorizations
            self.fallbacks += report.rung > 0
            for term, decision in zip(model.system.deciding, record.decisions, strict=True):
                for key, kinds in _KINDS.items():
                    if isinstance(term, kinds):
                        counts = self.events[key]
                        for event, number in term.describe(decision).items():
                            counts[event] = counts.get(event, 0) + int(number)
        return self

    @classmethod
    def parsed(cls, found: Mapping[str, Any]) -> Tally:
        """Return what `vars` of a tally was written as.

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
            events,
        )
