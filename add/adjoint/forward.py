"""Direct sensitivities: tangents of the trajectory along a few directions of theta."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from threadpoolctl import threadpool_limits

from add.kinematics import StateTangent
from add.objectives.base import Objective
from add.simulate import Simulation, Trajectory
from add.typing import FloatArray


@final
@dataclass
class Tangents:
    """Tangents of all states along every direction.

    Attributes
    ----------
    q, v : (n_directions, k + 1, n)
    states : per step, per direction
    """

    q: FloatArray
    v: FloatArray
    states: list[list[StateTangent]]

    def derivative(
        self, objective: Objective, trajectory: Trajectory, theta: FloatArray, theta_dots: Sequence[FloatArray]
    ) -> FloatArray:
        """Return the objective's derivative along every direction (n_directions,)."""
        theta_bar = np.zeros_like(theta)
        objective.parameter_gradient(theta, theta_bar)
        out = np.zeros(len(theta_dots))
        for k, tangents in enumerate(self.states):
            bar = StateTangent(np.zeros_like(tangents[0].q), np.zeros_like(tangents[0].v))
            objective.step_pullback(trajectory.state(k), theta, bar, theta_bar)
            for i, dot in enumerate(tangents):
                out[i] += np.vdot(bar.q, dot.q) + np.vdot(bar.v, dot.v)
        return out + np.array([theta_bar @ theta_dot for theta_dot in theta_dots])


def forward_tangents(
    simulation: Simulation, trajectory: Trajectory, theta: FloatArray, theta_dots: Sequence[FloatArray]
) -> Tangents:
    """Push directions of theta through a finished run; one factorisation a step serves all of them.

    Parameters
    ----------
    simulation : Simulation
    trajectory : Trajectory
        The run, whose decisions are held.
    theta : (n_theta,)
    theta_dots : directions (n_theta,)
    """
    assembler = simulation.assembler()
    stepper = simulation.stepper
    with threadpool_limits(limits=1, user_api="blas"):
        starts = simulation.start.pushforward(assembler, trajectory.start, theta, theta_dots)
        tangents = [stepper.start_pushforward(q_dot, v_dot) for q_dot, v_dot in starts]
        history = [tangents]
        for record in trajectory.records:
            tangents = stepper.pushforward(assembler, record, theta, tangents, theta_dots)
            history.append(tangents)
    q = np.array([[dot.q[0] for dot in step] for step in history]).swapaxes(0, 1)
    v = np.array([[dot.v[0] for dot in step] for step in history]).swapaxes(0, 1)
    return Tangents(q, v, history)
