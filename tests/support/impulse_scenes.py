"""Scenes of a rigid body over a plane with contact in velocities, and derivatives of where they end."""

from dataclasses import dataclass

import numpy as np

import add
from add.adjoint import value_and_gradient
from add.equations.kinematics import State, StateTangent
from add.objectives.base import Objective

G = 9.81

CUBE = {"geometry": {"shape": "box", "size": [0.2, 0.2, 0.2]}, "mass": 1.0, "position": [0, 0, 0.1]}


def scene(body: dict, *, dt: float, steps: int, friction: float = 0.4, gravity=(0, 0, -G), **more) -> dict:
    """A rigid body over a plane."""
    pairs = more.pop("pairs", [])
    return {
        "schema": "add-scene/1",
        "time": {"dt": dt, "steps": steps, "integrator": "bdf1", "newton": {"atol": 1e-12, "rtol": 1e-13}},
        "gravity": list(gravity),
        "bodies": {"body": {"type": "rigid", **body}},
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"friction_law": "impulse", "friction": friction, "pairs": pairs},
        **more,
    }


@dataclass(frozen=True)
class EndCoordinate(Objective):
    """A coordinate of the last state."""

    row: int
    n_steps: int

    def step_value(self, state: State, theta: np.ndarray) -> float:
        return float(state.q[0, self.row]) if state.step == self.n_steps else 0.0

    def step_pullback(self, state: State, theta: np.ndarray, state_bar: StateTangent, theta_bar: np.ndarray) -> None:
        if state.step == self.n_steps:
            state_bar.q[0, self.row] += 1.0


def end_and_slopes(raw: dict, row: int, *paths: str) -> tuple[float, list[float]]:
    """Return a coordinate of the last state and its derivatives by numbers of the scene."""
    built = add.scene_from_dict(raw).build()
    found = value_and_gradient(built.simulation, EndCoordinate(row, raw["time"]["steps"]))
    by_number = built.numbers.ties.pullback(built.numbers.values, found.gradient)
    return found.value, [float(by_number[built.numbers.resolve(path)[0][0]]) for path in paths]
