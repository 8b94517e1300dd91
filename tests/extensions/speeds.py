"""An objective of its own: the mean squared speed of a body's coordinates after a time."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from pydantic import Field

from add.errors import InputError
from add.extensions import Name, NonNegative, ObjectiveExtension
from add.objectives import Objective


@final
@dataclass(frozen=True)
class MeanSquaredSpeed(Objective):
    """w sum_k |v_k|^2 / n over the steps that end after a time, v of some coordinates."""

    rows: slice
    after: float
    n_steps: int

    def step_value(self, state, theta):
        """Return the share of a step."""
        v = state.v[0, self.rows]
        return float(v @ v) / self.n_steps if state.t > self.after else 0.0

    def step_pullback(self, state, theta, state_bar, theta_bar):
        """Add its gradient."""
        if state.t > self.after:
            state_bar.v[0, self.rows] += 2.0 * state.v[0, self.rows] / self.n_steps

    def off(self, run, theta):
        """Return the speeds, of which a report names the root mean square and the largest."""
        counting = run.t > self.after
        return run.t[counting], np.linalg.norm(run.v[counting, self.rows], axis=1)


class Calm(ObjectiveExtension):
    """The mean squared speed of a body after a time [m^2/s^2]."""

    unit: ClassVar[str] = "m^2/s^2"

    type: Literal["calm"] = Field("calm", description="kind of objective")
    body: Name = Field(description="name of a body")
    after: NonNegative = Field(0.0, description="time from which on it counts [s]")

    def objective(self, built, place):
        """Return the objective."""
        if self.body not in built.scene.bodies:
            raise InputError("there is no such body", place=f"{place}.body", found=f"'{self.body}'")
        entry = built.model.system.dofs[self.body]
        time = built.scene.time
        steps = np.arange(1, time.n_steps + 1) * time.dt
        return MeanSquaredSpeed(
            slice(entry.start, entry.start + entry.size), self.after, max(int((steps > self.after).sum()), 1)
        )
