"""What a gradient means where points begin to stick: a box slides to rest, over the coefficient of friction.

Writes `docs/images/hybrid_gradient.png` and prints the table of `docs/contact.md`.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np

from add.adjoint import value_and_gradient
from add.bodies import RigidBody
from add.contact import FrictionLaw
from add.kernels.shape_codes import PLANE
from add.model import ContactModel, Obstacle, build_model
from add.objectives.base import Objective
from add.simulation import BDF
from add.simulation.run import Simulation
from add.simulation.start import GivenStart
from add.solve.step_equations import NewtonOptions

matplotlib.use("Agg")
from matplotlib import pyplot as plt

G, SPEED, DURATION = 9.81, 1.0, 0.6
SIZE = (0.3, 0.2, 0.1)


class EndPlace(Objective):
    """The first coordinate at the end."""

    def __init__(self, n_steps: int) -> None:
        self.n_steps = n_steps

    def step_value(self, state, theta):  # type: ignore[no-untyped-def]
        return float(state.q[0, 0]) if state.step == self.n_steps else 0.0

    def step_pullback(self, state, theta, state_bar, theta_bar):  # type: ignore[no-untyped-def]
        if state.step == self.n_steps:
            state_bar.q[0, 0] += 1.0


def sliding_box(law: FrictionLaw, dt: float) -> tuple[Simulation, int]:
    """Return a box that slides on a floor from its rest depth, and the index of c_f."""
    corners = np.array([[x, y, -SIZE[2]] for x in (-SIZE[0], SIZE[0]) for y in (-SIZE[1], SIZE[1])]) / 2.0
    body = RigidBody("box", corners, np.zeros(4), np.full(4, 0.01))
    floor = Obstacle("floor", PLANE, (0.0, 0.0, 0.0), np.eye(3), np.zeros(3), np.zeros(3))
    model = build_model([body], obstacles=[floor], contact=ContactModel(law=law))
    layout = model.system.parameters
    theta = np.zeros(layout.n)
    mass, k_n = 1.0, 5e4
    values = {
        "gravity": (0.0, 0.0, -G),
        "bodies.box.mass": mass,
        "bodies.box.inertia": (*(mass / 12.0 * (np.square(SIZE).sum() - np.square(SIZE))), 0.0, 0.0, 0.0),
        "bodies.box.position": (0.0, 0.0, SIZE[2] / 2.0 - mass * G / (4.0 * k_n)),
        "bodies.box.velocity": (SPEED, 0.0, 0.0),
        "contact.box.floor.k_n": k_n,
        "contact.box.floor.k_d": 50.0,
        "contact.box.floor.k_t": 200.0,
    }
    for name, value in values.items():
        layout.view(theta, name)[...] = value
    stepper = BDF(dt, 1, newton=NewtonOptions(atol=1e-11, rtol=0.0))
    simulation = Simulation(model.system, GivenStart(model.initial), stepper, round(DURATION / dt), theta)
    return simulation, layout["contact.box.floor.c_f"].start


def sample(law: FrictionLaw, dt: float, friction: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[bytes]]:
    """Return end places, gradients and all decisions, for every coefficient."""
    simulation, index = sliding_box(law, dt)
    objective = EndPlace(simulation.n_steps)
    out = np.empty((2, friction.size))
    decisions = []
    for k, c_f in enumerate(friction):
        theta = simulation.theta.copy()
        theta[index] = c_f
        found = value_and_gradient(simulation, objective, theta)
        run = simulation.run(theta)
        decisions.append(b"".join(record.decisions[0].tobytes() for record in run.records))
        out[:, k] = found.value, found.gradient[index]
    return out[0], out[1], decisions


def main() -> None:
    """Sample, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/images/hybrid_gradient.png"))
    parser.add_argument("--samples", type=int, default=41)
    options = parser.parse_args()
    friction = np.linspace(0.29, 0.31, options.samples)
    exact, slope = SPEED**2 / (2.0 * G * friction), -(SPEED**2) / (2.0 * G * friction**2)
    figure, axes = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained")
    axes[0].plot(friction, 1e3 * exact, "k--", label="exact, rigid contact")
    axes[1].plot(friction, slope, "k--", label="exact, rigid contact")
    print("| dt [s] | mean error of the place [mm] | mean error of the gradient | within a branch | changes |")
    print("|---|---|---|---|---|")
    for dt, colour in ((0.01, "C0"), (0.005, "C1"), (0.0025, "C2")):
        place, gradient, decisions = sample(FrictionLaw.HYBRID, dt, friction)
        same = np.array([a == b for a, b in pairwise(decisions)])
        differences = np.diff(place) / np.diff(friction)
        between = 0.5 * (gradient[1:] + gradient[:-1])
        within = np.abs(differences - between)[same].max(initial=0.0) / np.abs(slope).mean()
        error = np.abs(gradient - slope).mean() / np.abs(slope).mean()
        print(
            f"| {dt:g} | {1e3 * np.abs(place - exact).mean():.3f} | {100 * error:.2f} % | {within:.1e} | "
            f"{int((~same).sum())} |"
        )
        axes[0].plot(friction, 1e3 * place, colour, label=f"hybrid, dt = {1e3 * dt:g} ms")
        axes[1].plot(friction, gradient, colour, label=f"hybrid, dt = {1e3 * dt:g} ms")
    axes[0].set(xlabel="friction coefficient", ylabel="place at rest [mm]")
    axes[1].set(xlabel="friction coefficient", ylabel="its derivative by the coefficient [m]")
    for axis in axes:
        axis.legend(frameon=False)
        axis.locator_params(axis="x", nbins=5)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.output, dpi=110)


if __name__ == "__main__":
    main()
