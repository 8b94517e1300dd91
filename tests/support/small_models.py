"""Small systems that show every term at once: two bodies, pins that move, loads, masses, anchors, contact."""

from dataclasses import dataclass

import numpy as np

from add.bodies import NodalLoad, Pin, PointAnchor, PointMass, SoftBody
from add.contact import FrictionLaw
from add.equations.kinematics import State, StateTangent
from add.equations.signals import SignalParameter, Sine, Spline, Table
from add.geometry import ElementFamily, SoftMesh, box_mesh, locate
from add.materials import NEO_HOOKEAN, NEO_HOOKEAN_CIARLET, Material
from add.model import ContactModel, Model, Obstacle, build_model
from add.objectives.base import Objective
from add.simulation import BDF, StartUp
from add.simulation.run import Simulation
from add.simulation.start import EquilibriumStart, GivenStart
from add.solve.step_equations import NewtonOptions

TIGHT = NewtonOptions(atol=1e-12, rtol=0.0, max_iterations=80)


@dataclass(frozen=True)
class RoughObjective(Objective):
    """A smooth function of everything a state holds, history included."""

    w: np.ndarray

    def step_value(self, state: State, theta: np.ndarray) -> float:
        return float(self.w @ state.q[0] + 0.1 * (state.v[0] @ state.v[0]) + (self.w * state.q[1]) @ state.q[1])

    def step_pullback(self, state, theta, state_bar: StateTangent, theta_bar) -> None:
        state_bar.q[0] += self.w
        state_bar.v[0] += 0.2 * state.v[0]
        state_bar.q[1] += 2.0 * self.w * state.q[1]


def two_bodies(
    family: ElementFamily,
    *,
    mean_dilatation: bool = False,
    law: FrictionLaw = FrictionLaw.LINEAR,
    order: int = 2,
    start_up: StartUp = StartUp.BDF1,
    onset: float = 0.0,
    ramp: float = 0.002,
    n_steps: int = 12,
    mu_slide: float = 0.3,
    elastic: tuple[Material, Material] = (NEO_HOOKEAN_CIARLET, NEO_HOOKEAN),
) -> tuple[Model, Simulation]:
    """A held, shaken, loaded block and a tumbling cube that falls on a floor and against a moving ball."""
    rng = np.random.default_rng(1)
    mesh = box_mesh((0.1, 0.08, 0.06), (2, 2, 1), family)
    mesh = SoftMesh(mesh.points + 0.002 * rng.normal(size=mesh.points.shape), mesh.cells, mesh.family)
    left = np.flatnonzero(mesh.points[:, 0] < -0.04)
    right = np.flatnonzero(mesh.points[:, 0] > 0.04)
    inside = locate(mesh, np.array([0.01, 0.01, 0.0]))
    held = SoftBody(
        "held",
        mesh,
        law=elastic[0],
        mean_dilatation=mean_dilatation,
        pins=(Pin(left, (0, 1, 2), SignalParameter(Sine(3.0, 0.3), "shake")),),
        loads=(
            NodalLoad(
                right,
                np.full(right.size, 1.0 / right.size),
                SignalParameter(Spline(np.array([0, 0.02, 0.04, 0.2])), "load"),
            ),
        ),
        masses=(PointMass(inside.nodes, inside.weights, "mass"),),
        anchors=(
            PointAnchor(inside.nodes, inside.weights, SignalParameter(Table(np.array([0.0, 0.05, 0.2])), "anchor")),
        ),
    )
    cube = SoftBody("cube", box_mesh((0.05, 0.05, 0.05), (1, 1, 1), family), law=elastic[1], lumped=True)
    floor = Obstacle("floor", 0, (0, 0, 0), np.eye(3), np.array([0, 0, -0.031]), np.zeros(3))
    ball = Obstacle("ball", 1, (0.1, 0, 0), np.eye(3), np.array([0.2, 0, -0.122]), np.array([0.1, 0, 0]))
    contact = ContactModel(law=law, ramp=ramp, onset=onset, per_area=True, total_normal=True)
    model = build_model([held, cube], [floor, ball], contact)
    layout = model.system.parameters
    theta = np.zeros(layout.n)

    def put(name: str, value) -> None:
        layout.view(theta, name)[...] = value

    put("gravity", (0.5, 0.2, -9.2184))
    moduli = {"mu": 1.1e4, "lambda": 3e4, "c10": 4e3, "c01": 1.5e3, "kappa": 3.7e4}
    for body, elastic_law in zip(("held", "cube"), elastic, strict=True):
        for key, value in (
            *((modulus.key, moduli[modulus.key]) for modulus in elastic_law.parameters),
            ("density", 150.0),
            ("viscosity", 3.0),
            ("rayleigh_mass", 0.3),
            ("rayleigh_stiffness", 0.002),
        ):
            put(f"bodies.{body}.{key}", value)
        for obstacle in ("floor", "ball"):
            for key, value in (("k_n", 2e6), ("k_t", 2e4), ("c_f", mu_slide), ("k_d", 2e3)):
                put(f"contact.{body}.{obstacle}.{key}", value)
    put("bodies.cube.position", (0.2, 0.0, 0.004))
    put("bodies.cube.orientation", (0.3, 0.2, -0.1))
    put("bodies.cube.velocity", (0.7, 0.1, -0.3))
    put("bodies.cube.angular_velocity", (1.0, 2.0, 3.0))
    put("bodies.held.orientation", (0.02, 0.01, -0.01))
    put("shake", [[0.001, 0, 0], [0.002, 0.001, 0.003]])
    put("load", [[0, 0, 0], [0.1, 0.2, -0.3], [0.1, 0.2, -0.3], [0.1, 0.2, -0.3]])
    put("mass", 0.05)
    put("anchor", [[0.01, 0.01, 0], [0.01, 0.01, 0.002], [0.01, 0.01, 0.01]])
    simulation = Simulation(model.system, GivenStart(model.initial), BDF(0.005, order, start_up, TIGHT), n_steps, theta)
    return model, simulation


def hanging_block(family: ElementFamily, *, mean_dilatation: bool, n_steps: int = 6) -> tuple[Model, Simulation]:
    """A pinned block that starts in static equilibrium under a load that is then let go."""
    mesh = box_mesh((0.1, 0.04, 0.04), (3, 1, 1), family)
    left = np.flatnonzero(mesh.points[:, 0] < -0.04)
    right = np.flatnonzero(mesh.points[:, 0] > 0.04)
    load = NodalLoad(
        right, np.full(right.size, 1.0 / right.size), SignalParameter(Table(np.array([0.0, 0.01])), "load")
    )
    body = SoftBody("block", mesh, mean_dilatation=mean_dilatation, pins=(Pin(left),), loads=(load,))
    floor = Obstacle("floor", 0, (0, 0, 0), np.eye(3), np.array([0, 0, -0.021]), np.zeros(3))
    model = build_model([body], [floor], ContactModel(per_area=True))
    layout = model.system.parameters
    theta = np.zeros(layout.n)
    for name, value in (
        ("gravity", (0.0, 0.1, -9.81)),
        ("bodies.block.mu", 1e4),
        ("bodies.block.lambda", 4e4),
        ("bodies.block.density", 300.0),
        ("bodies.block.viscosity", 2.0),
        ("bodies.block.rayleigh_stiffness", 1e-3),
        ("load", [[0.0, 0.0, -0.3], [0.0, 0.0, 0.0]]),
        ("contact.block.floor.k_n", 1e6),
        ("contact.block.floor.k_t", 1e4),
        ("contact.block.floor.c_f", 0.3),
    ):
        layout.view(theta, name)[...] = value
    start = EquilibriumStart(model.initial, TIGHT)
    return model, Simulation(model.system, start, BDF(0.005, 2, StartUp.BDF1, TIGHT), n_steps, theta)
