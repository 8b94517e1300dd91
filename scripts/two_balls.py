"""Two equal balls meet head-on: gradients through a penalty impact against the exact ones, over step and phase.

Writes docs/two_balls.md and docs/images/two_balls.png, two_balls_control.png. Run it as ``python scripts/two_balls.py``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from add.adjoint import value_and_gradient
from add.contact import FrictionLaw
from add.kernels.distance import SPHERE
from add.kinematics import State, StateTangent
from add.model import CarriedShape, ContactModel, RigidBody, build_model
from add.newton import NewtonOptions
from add.objectives.base import Objective
from add.simulate import Simulation
from add.start import GivenStart
from add.steppers import BDF

MASS, RADIUS, STIFFNESS = 1.0, 0.1, 5e3  # kg, m, N/m
X, V, T = (0.0, 0.7), (1.0, 0.0), 1.0  # places and velocities along x at the start [m], [m/s]; duration [s]
OMEGA = np.sqrt(2.0 * STIFFNESS / MASS)  # of the two masses on the contact spring [1/s]
TAU = np.pi / OMEGA  # duration of the impact [s]

@dataclass(frozen=True)
class FinalPlace(Objective):
    """x of the second ball after the last step [m]."""

    index: int
    n_steps: int

    def step_value(self, state: State, theta: np.ndarray) -> float:
        return float(state.q[0][self.index]) if state.step == self.n_steps else 0.0

    def step_pullback(self, state: State, theta: np.ndarray, state_bar: StateTangent, theta_bar: np.ndarray) -> None:
        if state.step == self.n_steps:
            state_bar.q[0][self.index] += 1.0


def balls(dt: float, onset: float, *, order: int = 2, stiffness: float = STIFFNESS) -> Simulation:
    """Two balls without gravity and friction; the first has the contact point, the second the shape."""
    shape = CarriedShape(SPHERE, (RADIUS, 0.0, 0.0), np.eye(3), np.zeros(3))
    first = RigidBody("first", np.zeros((1, 3)), np.full(1, RADIUS), np.ones(1))
    second = RigidBody("second", np.zeros((0, 3)), np.zeros(0), np.zeros(0), (shape,))
    model = build_model(rigid=[first, second], contact=ContactModel(law=FrictionLaw.NONE, onset=onset))
    layout = model.system.parameters
    theta = np.zeros(layout.n)
    for k, name in enumerate(("first", "second")):
        layout.view(theta, f"bodies.{name}.mass")[...] = MASS
        layout.view(theta, f"bodies.{name}.inertia")[:3] = 0.4 * MASS * RADIUS**2
        layout.view(theta, f"bodies.{name}.position")[0] = X[k]
        layout.view(theta, f"bodies.{name}.velocity")[0] = V[k]
    layout.view(theta, "contact.first.second.k_n")[...] = stiffness
    stepper = BDF(dt, order, newton=NewtonOptions(atol=1e-11, rtol=0.0))
    return Simulation(model.system, GivenStart(model.initial), stepper, round(T / dt), theta)


def gradient(simulation: Simulation, phase: float) -> np.ndarray:
    """Return x2(T) and its derivatives by x1, x2, v1, v2; ``phase`` shifts the first contact by a part of a step."""
    layout, theta = simulation.system.parameters, simulation.theta.copy()
    layout.view(theta, "bodies.first.position")[0] -= phase * simulation.stepper.dt * (V[0] - V[1])
    index = simulation.system.dofs["second"].start
    found = value_and_gradient(simulation, FinalPlace(index, simulation.n_steps), theta)
    names = [f"bodies.{name}.{key}" for key in ("position", "velocity") for name in ("first", "second")]
    return np.array([found.value, *(layout.view(found.gradient, name)[0] for name in names)])
