"""Steps that are made of other steps: of those of another stepper, and of parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from add.equations.kinematics import Directions, StateTangent, StateTangents
from add.simulation.stepper import DifferentiableStepper, Pair, PushedStep, Record, StepPart, TakenStep, shifted
from add.solve.step_equations import NewtonOptions
from add.solve.step_matrix import Assembler
from add.typing import FloatArray


@dataclass(frozen=True)
class AroundSteps(DifferentiableStepper):
    """Steps of another stepper, begun or divided in another way.

    Attributes
    ----------
    inner : DifferentiableStepper
    """

    inner: DifferentiableStepper

    @property
    def needs_compiled(self) -> bool:
        """Whether the steps do."""
        return self.inner.needs_compiled

    @property
    def newton(self) -> NewtonOptions:  # type: ignore[override]
        """When a step counts as solved."""
        return self.inner.newton

    @property
    def order(self) -> int:
        """That of the steps."""
        return self.inner.order

    @property
    def dt(self) -> float:
        """Step [s]."""
        return self.inner.dt

    def solved_by(self, options: NewtonOptions) -> Self:
        """Return the stepper with other options of Newton's method."""
        return replace(self, inner=self.inner.solved_by(options))


class StepsInParts(DifferentiableStepper):
    """A stepper whose steps are whole or divided; derivatives go through the parts one after the other."""

    @abstractmethod
    def parts(self, record: Record) -> Sequence[tuple[StepPart, Record]]:
        """Return the parts of a step with their records, in their order: one, or several that each look back once."""

    def pull(self, step: TakenStep, bar: Pair, theta_bar: FloatArray) -> StateTangent:
        """Pull a cotangent back through the parts; see `StepPart.pull`."""
        record, linearised = step.record, step.linearised
        aside, before = _aside(step.assembler, record), StateTangent.zeros(self.n_history, bar[0].size)
        for part, own in reversed(self.parts(record)):
            before = part.pull(TakenStep(aside, own, step.theta, linearised), bar, theta_bar)
            bar, linearised = (before.q[0], before.v[0]), None
        return before

    def push(self, step: TakenStep, tangents: StateTangents, directions: Directions) -> PushedStep:
        """Push tangents forward through the parts; see `StepPart.push`."""
        record = step.record
        aside, parts, now = _aside(step.assembler, record), self.parts(record), tangents
        for part, own in parts[:-1]:
            now = shifted(*part.push(TakenStep(aside, own, step.theta), now, directions))
        part, own = parts[-1]
        linearised = None if record.inner else step.linearised
        now, q_dot, v_dot = part.push(TakenStep(aside, own, step.theta, linearised), now, directions)
        return tangents.including(now.index), q_dot, v_dot


def _aside(assembler: Assembler, record: Record) -> Assembler:
    """Return an assembler for the solves of a divided step: the other one may be at work in another thread."""
    return (assembler.copy() or assembler) if record.inner else assembler
