"""Places between two steps: the cubic through positions and velocities, and straight on beyond the ends of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

#: Weights of (x_0, v_0, x_1, v_1): positions and velocities at the beginning and at the end of a step.
StepWeights = tuple[float, float, float, float]


def hermite(s: float, dt: float) -> StepWeights:
    """Return the cubic Hermite weights of (x_0, v_0, x_1, v_1) at the fraction ``s`` of a step that ends in x_1."""
    return (
        (1.0 + 2.0 * s) * (1.0 - s) ** 2,
        dt * s * (1.0 - s) ** 2,
        s * s * (3.0 - 2.0 * s),
        dt * s * s * (s - 1.0),
    )


@final
@dataclass(frozen=True)
class Interpolant:
    """Weights of the two states around a time.

    Attributes
    ----------
    dt : float
        Step [s].
    last : int or None
        The step that ends the run, beyond which things go straight on; None: no time lies there.
    """

    dt: float
    last: int | None

    def _outside(self, step: int, time: float) -> float | None:
        """Return how long after step ``step`` a time lies that is not within the run, None if it is within [s]."""
        beyond = time - step * self.dt
        if step == 0 and beyond <= 0.0:
            return beyond
        return beyond if step == self.last and beyond > 0.0 else None

    def _fraction(self, step: int, time: float) -> float:
        return float(min(max((time - (step - 1) * self.dt) / self.dt, 0.0), 1.0))

    def weights(self, step: int, time: float) -> StepWeights:
        """Return the weights of (x_0, v_0, x_1, v_1) at a time of the interval that ends with ``step``."""
        outside = self._outside(step, time)
        if outside is not None:
            # Straight on, so that a frame that the clock moves through an end of the run meets no kink.
            return 0.0, 0.0, 1.0, outside
        return hermite(self._fraction(step, time), self.dt) if step else (0.0, 0.0, 1.0, 0.0)

    def slopes(self, step: int, time: float) -> StepWeights:
        """Return the derivative of `weights` by the time."""
        if step == 0 or self._outside(step, time) is not None:
            return 0.0, 0.0, 0.0, 1.0
        s, dt = self._fraction(step, time), self.dt
        return 6.0 * s * (s - 1.0) / dt, (1.0 - s) * (1.0 - 3.0 * s), 6.0 * s * (1.0 - s) / dt, s * (3.0 * s - 2.0)
