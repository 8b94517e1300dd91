"""Cases with known answers for rigid bodies: what `rigid_validation.py` shows and the tests in tests/validation check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.integrate import solve_ivp

from add.contact import FrictionLaw
from add.kernels.distance import BOX, PLANE, SPHERE
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.kinematics import Kinematics
from add.model import CarriedShape, ContactModel, Model, Obstacle, RigidBody, build_model
from add.newton import NewtonOptions
from add.simulate import Simulation, Trajectory
from add.start import GivenStart
from add.steppers import BDF, StartUp
from add.terms import RigidInertia

G = 9.81
NEWTON = NewtonOptions(atol=1e-11, rtol=1e-13, max_iterations=80)


@dataclass(frozen=True)
class Rigid:
    """A model of rigid bodies with values of its parameters."""

    model: Model
    theta: np.ndarray

    @classmethod
    def of(
        cls,
        bodies: Sequence[RigidBody],
        obstacles: Sequence[Obstacle] = (),
        contact: ContactModel | None = None,
        gravity: Sequence[float] = (0.0, 0.0, -G),
    ) -> Rigid:
        model = build_model(rigid=bodies, obstacles=obstacles, contact=contact)
        return cls(model, np.zeros(model.system.parameters.n)).put(gravity=gravity)

    def view(self, name: str) -> np.ndarray:
        return self.model.system.parameters.view(self.theta, name)

    def put(self, **values) -> Rigid:
        """Set parameters; ``__`` stands for a point in their names."""
        for name, value in values.items():
            self.view(name.replace("__", "."))[...] = value
        return self

    def body(self, name: str, mass: float, moments: Sequence[float], **pose) -> Rigid:
        """Set mass, principal moments and pose of a body."""
        self.view(f"bodies.{name}.inertia")[:3] = moments
        return self.put(**{f"bodies__{name}__{key}": value for key, value in {"mass": mass, **pose}.items()})

    def run(
        self, dt: float, n_steps: int, order: int = 2, start: StartUp = StartUp.BDF1, newton: NewtonOptions = NEWTON
    ) -> Trajectory:
        model = self.model
        stepper = BDF(dt, order, start, newton)
        return Simulation(model.system, GivenStart(model.initial), stepper, n_steps, self.theta).run()

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Momentum and angular momentum about the origin (6,), as `add` gives them."""
        (inertia,) = self.model.term(RigidInertia)
        return inertia.momentum(Kinematics(q, v, np.zeros_like(q), 0.0, 0), self.theta)

    def energies(self, q: np.ndarray, v: np.ndarray) -> dict[str, float]:
        """Kinetic, gravitational and contact energy of one state [J], written out here."""
        kin = Kinematics(q, v, np.zeros_like(q), 0.0, 0)
        kinetic = gravity = 0.0
        for body in self.model.rigid:
            first = self.model.system.dofs[body.name].start
            mass, moments = float(self.view(f"bodies.{body.name}.mass")), self.view(f"bodies.{body.name}.inertia")[:3]
            spin = body_rates(q[first : first + 6], v[first : first + 6])
            kinetic += 0.5 * mass * float(v[first : first + 3] @ v[first : first + 3]) + 0.5 * float(moments @ spin**2)
            gravity -= mass * float(self.view("gravity") @ q[first : first + 3])
        contact = sum(term.energy(kin, self.theta) for term in self.model.system.deciding)
        return {"kinetic": kinetic, "gravity": gravity, "contact": float(contact)}


def body_rates(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Angular velocity in body axes of one body's coordinates (6,) [rad/s]."""
    return rotation_matrix(q[3:]).T @ left_jacobian(q[3:]) @ v[3:]


def chart_changes(run: Trajectory) -> int:
    return sum(record.charts.size for record in run.records)


# --- shapes -----------------------------------------------------------------------------------------------------------


def box(name: str, size: Sequence[float], *, shape: bool = False) -> RigidBody:
    """A box with a contact point at every corner."""
    half = np.array(size) / 2.0
    points = np.array(list(product(*((-h, h) for h in half))))
    shapes = (CarriedShape(BOX, tuple(half), np.eye(3), np.zeros(3)),) if shape else ()
    return RigidBody(name, points, np.zeros(8), np.ones(8), shapes)


def box_moments(mass: float, size: Sequence[float]) -> np.ndarray:
    squares = np.array(size) ** 2
    return mass / 12.0 * (squares.sum() - squares)


def ball(name: str, radius: float, *, shape: bool = False) -> RigidBody:
    """A ball that meets planes with its one point, and other bodies with its shape."""
    shapes = (CarriedShape(SPHERE, (radius, 0.0, 0.0), np.eye(3), np.zeros(3)),) if shape else ()
    return RigidBody(name, np.zeros((1, 3)), np.full(1, radius), np.ones(1), shapes)


def floor(angle: float = 0.0) -> Obstacle:
    """A plane through the origin that falls by ``angle`` towards +x."""
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    return Obstacle("floor", PLANE, (0.0, 0.0, 0.0), turn, np.zeros(3), np.zeros(3))


# --- free tumbling ----------------------------------------------------------------------------------------------------

MOMENTS = (1.0, 2.0, 3.0)
#: Rates at the start in body axes: nearly about the middle axis (the table's), and a broad tumble.
NEAR_MIDDLE, BROAD = (0.01, 1.0, 0.01), (0.3, 1.0, 0.2)


def euler_equations(rates: Sequence[float], t: np.ndarray) -> np.ndarray:
    """Rates in body axes (k, 3) of a free body by Euler's equations (DOP853, 1e-13)."""
    a, b, c = MOMENTS

    def f(_: float, w: np.ndarray) -> list[float]:
        return [(b - c) * w[1] * w[2] / a, (c - a) * w[2] * w[0] / b, (a - b) * w[0] * w[1] / c]

    return solve_ivp(f, (0.0, t[-1]), rates, method="DOP853", rtol=1e-13, atol=1e-14, t_eval=t).y.T


@dataclass(frozen=True)
class Tumble:
    """A run of a free body: times, rates in body axes (k, 3), momenta (k, 3), and how often its chart changed."""

    t: np.ndarray
    rates: np.ndarray
    momentum: np.ndarray
    changes: int

    @property
    def drift(self) -> float:
        """Largest change of the angular momentum over its size."""
        return float(np.linalg.norm(self.momentum - self.momentum[0], axis=1).max() / np.linalg.norm(self.momentum[0]))


def tumble(dt: float, n_steps: int, rates: Sequence[float], order: int = 2, every: int = 1) -> Tumble:
    """Let a free body tumble; look at every ``every``-th state."""
    setup = Rigid.of([RigidBody("body", np.zeros((0, 3)), np.zeros(0), np.zeros(0))], gravity=(0, 0, 0))
    setup.body("body", 1.0, MOMENTS, angular_velocity=rates)
    run = setup.run(dt, n_steps, order)
    at = range(0, n_steps + 1, every)
    found = np.array([body_rates(run.q[k], run.v[k]) for k in at])
    momenta = np.array([setup.momentum(run.q[k], run.v[k])[3:] for k in at])
    return Tumble(run.t[::every], found, momenta, chart_changes(run))
