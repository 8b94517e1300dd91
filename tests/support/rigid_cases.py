"""Cases with known answers for rigid bodies: `rigid_validation.py` shows them, tests in tests/validation check them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import ellipk

from add.bodies import CarriedShape, RigidBody
from add.contact import FrictionLaw
from add.equations.kinematics import Kinematics
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.kernels.shape_codes import BOX, PLANE, SPHERE
from add.model import ContactModel, Model, Obstacle, build_model
from add.scene import scene_from_dict
from add.simulation import BDF, StartUp
from add.simulation.run import Simulation, Trajectory
from add.simulation.start import GivenStart
from add.solve.step_equations import NewtonOptions
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
        model = build_model(bodies, obstacles=obstacles, contact=contact)
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
        for body in self.model.bodies:
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


def tumble_period(rates: Sequence[float]) -> float:
    """Period of the rates in body axes [s], by the elliptic integral."""
    moments, w = np.array(MOMENTS), np.array(rates)
    a, b, c = MOMENTS
    energy, momentum = float(moments @ w**2), float(moments**2 @ w**2)
    small, large = sorted(((b - a) * (energy * c - momentum), (c - b) * (momentum - energy * a)))
    return 4.0 * float(ellipk(small / large)) / np.sqrt(large / (a * b * c))


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


# --- linkages ---------------------------------------------------------------------------------------------------------


def _loose(stiffness: float) -> dict[str, float]:
    """A tolerance above the round-off of stiff joints (stiffness times that of coordinates); forces are 1 to 100 N."""
    return {"atol": max(1e-8, 1e-14 * stiffness), "rtol": 0.0}


@dataclass(frozen=True)
class Path:
    """Times and places (k, 2) of a point in a plane [m]."""

    t: np.ndarray
    place: np.ndarray


def pendulum(dt: float, duration: float, stiffness: float, order: int = 2) -> Path:
    """IFToMM A01: 1 kg on a massless rod of 1 m, let go when level; the rod is a stiff joint to the body's frame."""
    scene = scene_from_dict({
        "schema": "add-scene/1",
        "name": "pendulum",
        "time": {"dt": dt, "steps": round(duration / dt), "integrator": f"bdf{order}", "newton": _loose(stiffness)},
        "gravity": [0, -G, 0],
        # A point mass that turns with its rod: no inertia to speak of about its own centre.
        "bodies": {"bob": {"type": "rigid", "mass": 1.0, "inertia": [1e-6, 1e-6, 1e-6, 0, 0, 0],
                           "position": [-1, 0, 0]}},
        "couplings": {"pivot": {"type": "hinge", "a": {"at": [0, 0, 0]}, "b": {"body": "bob"}, "axis": [0, 0, 1],
                                "stiffness": stiffness, "angular_stiffness": stiffness}},
    })  # fmt: skip
    built = scene.build()
    run = built.run()
    return Path(run.t, run.q[:, :2])


def pendulum_answer(t: np.ndarray) -> np.ndarray:
    """Return the exact path (k, 2)."""
    found = solve_ivp(lambda _, y: [y[1], -G * np.cos(y[0])], (0.0, t[-1]), [np.pi, 0.0], method="DOP853",
                      rtol=1e-12, atol=1e-12, t_eval=t)  # fmt: skip
    return np.stack([np.cos(found.y[0]), np.sin(found.y[0])], axis=1)


def four_bars(n: int, dt: float, duration: float, stiffness: float, order: int = 2) -> Path:
    """IFToMM A02: n four-bar linkages of rods (1 m, 1 kg) in a row, pushed over; the path of the first crank's end.

    The cranks are upright and move at 1 m/s to the right at the start.
    """
    rod = {"type": "rigid", "mass": 1.0, "inertia": [1e-4, 1 / 12, 1 / 12, 0, 0, 0]}
    upright = [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]
    joint = {"type": "hinge", "axis": [0, 0, 1], "stiffness": stiffness, "angular_stiffness": stiffness}
    bodies, couplings = {}, {}
    for k in range(n + 1):
        bodies[f"crank{k}"] = rod | {"position": [k, 0.5, 0], "orientation": upright, "velocity": [0.5, 0, 0],
                                     "angular_velocity": [0, 0, -1]}  # fmt: skip
        couplings[f"ground{k}"] = joint | {"a": {"at": [k, 0, 0]}, "b": {"body": f"crank{k}"}}
    for k in range(n):
        bodies[f"coupler{k}"] = rod | {"position": [k + 0.5, 1, 0], "velocity": [1, 0, 0]}
        couplings[f"left{k}"] = joint | {"a": {"body": f"crank{k}", "at": [0.5, 0, 0]}, "b": {"body": f"coupler{k}"}}
        couplings[f"right{k}"] = joint | {
            "a": {"body": f"crank{k + 1}", "at": [0.5, 0, 0]},
            "b": {"body": f"coupler{k}"},
        }
    scene = scene_from_dict({
        "schema": "add-scene/1",
        "name": "four bars",
        "time": {"dt": dt, "steps": round(duration / dt), "integrator": f"bdf{order}", "newton": _loose(stiffness)},
        "gravity": [0, -G, 0],
        "bodies": bodies,
        "couplings": couplings,
    })  # fmt: skip
    built = scene.build()
    run = built.run()
    q = run.q[:, built.model.system.dofs["crank0"].slice]
    tips = q[:, :3] + np.array([rotation_matrix(w)[:, 0] * 0.5 for w in q[:, 3:]])
    return Path(run.t, tips[:, :2])


def four_bars_answer(n: int, t: np.ndarray) -> np.ndarray:
    """Return the exact path (k, 2): n + 1 turning rods, n rods that move along, one angle."""
    inertia, weight = (n + 1) / 3.0 + n, (n + 1) / 2.0 + n
    found = solve_ivp(lambda _, y: [y[1], -weight * G * np.cos(y[0]) / inertia], (0.0, t[-1]), [np.pi / 2.0, -1.0],
                      method="DOP853", rtol=1e-12, atol=1e-12, t_eval=t)  # fmt: skip
    return np.stack([np.cos(found.y[0]), np.sin(found.y[0])], axis=1)


def largest_error(found: Path, exact: np.ndarray) -> float:
    """Largest distance from the exact path [m]."""
    return float(np.linalg.norm(found.place - exact, axis=1).max())


#: Andrews' squeezer: lengths [m], masses [kg], moments about z [kg m^2] as in Hairer and Wanner, section VII.7.
_A, _B, _C = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)
SQUEEZER_START = (-0.0617138900142764, 0.0, 0.4552798191630704, 0.2226683901658859, 0.4873649795438426,
                  -0.2226683901658859, 1.230547444549821)  # fmt: skip


@dataclass(frozen=True)
class SqueezerBody:
    """A body of the squeezer: mass, moment, angle of its axes, and places along them from the centre of mass."""

    mass: float
    moment: float
    angle: float
    centre: np.ndarray
    places: dict[str, np.ndarray]


def _squeezer_bodies(angles: Sequence[float]) -> dict[str, SqueezerBody]:
    """Return the seven bodies at angles beta, Theta, gamma, Phi, delta, Omega, epsilon; E, F, G, H are their joints."""
    beta, theta, gamma, phi, delta, omega, epsilon = angles
    a, b = np.array(_A), np.array(_B)

    def turned(angle: float, x: float, y: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([c * x - s * y, s * x + c * y])

    # Name: mass, moment, angle, origin in the plane, centre of mass and joints in the body's axes from the origin.
    o = np.zeros(2)
    e = turned(beta, 0.007, 0.0)
    g, h = a + turned(delta, 0.04, 0.0), a + turned(epsilon, 0.0, -0.04)
    table = {
        "K1": (0.04325, 2.194e-6, beta, o, (0.00092, 0.0), {"O": (0.0, 0.0), "E": (0.007, 0.0)}),
        "K2": (0.00365, 4.410e-7, beta + theta, e, (-0.0115, 0.0), {"E": (0.0, 0.0), "F": (-0.028, 0.0)}),
        "K3": (0.02373, 5.255e-6, gamma, b, (0.01043, -0.01874),
               {"B": (0.0, 0.0), "F": (0.0, -0.035), "D": (0.02, -0.018)}),
        "K4": (0.00706, 5.667e-7, phi + delta, g, (0.0, -0.00579), {"G": (0.0, 0.0), "F": (0.0, -0.02)}),
        "K5": (0.07050, 1.169e-5, delta, a, (0.02308, 0.00916), {"A": (0.0, 0.0), "G": (0.04, 0.0)}),
        "K6": (0.00706, 5.667e-7, omega + epsilon, h, (0.00579, 0.0), {"H": (0.0, 0.0), "F": (0.02, 0.0)}),
        "K7": (0.05498, 1.912e-5, epsilon, a, (-0.00449, -0.01228), {"A": (0.0, 0.0), "H": (0.0, -0.04)}),
    }  # fmt: skip
    return {
        name: SqueezerBody(
            mass,
            moment,
            angle,
            origin + turned(angle, *centre),
            {key: np.array(place) - np.array(centre) for key, place in places.items()},
        )
        for name, (mass, moment, angle, origin, centre, places) in table.items()
    }


def squeezer(dt: float, duration: float, stiffness: float) -> tuple[np.ndarray, np.ndarray]:
    """IFToMM A03: Andrews' squeezer under 0.033 N m; return the seven angles and their rates after ``duration``.

    Angles come out in the order of `SQUEEZER_START`, up to whole turns.
    """
    parts = _squeezer_bodies(SQUEEZER_START)
    bodies = {
        name: {
            "type": "rigid",
            "mass": part.mass,
            "inertia": [part.moment] * 3 + [0.0] * 3,
            "position": [*part.centre, 0.0],
            "orientation": [float(np.cos(part.angle / 2)), 0.0, 0.0, float(np.sin(part.angle / 2))],
        }
        for name, part in parts.items()
    }

    def end(name: str, key: str) -> dict:
        return {"body": name, "at": [*parts[name].places[key], 0.0]}

    joint = {"type": "hinge", "axis": [0, 0, 1], "stiffness": stiffness, "angular_stiffness": 1e-4 * stiffness}
    ground = {"O": (0.0, 0.0), "A": _A, "B": _B}
    pairs = [("K1", "O"), ("K3", "B"), ("K5", "A"), ("K7", "A")]
    couplings = {f"{n}{p}": joint | {"a": {"at": [*ground[p], 0.0]}, "b": end(n, p)} for n, p in pairs}
    for name, other, key in (("K1", "K2", "E"), ("K2", "K3", "F"), ("K2", "K4", "F"), ("K2", "K6", "F"),
                             ("K4", "K5", "G"), ("K6", "K7", "H")):  # fmt: skip
        couplings[f"{name}{other}"] = joint | {"a": end(name, key), "b": end(other, key)}
    couplings["spring"] = {"type": "spring", "a": end("K3", "D"), "b": {"at": [*_C, 0.0]}, "stiffness": 4530.0,
                           "length": 0.07785}  # fmt: skip
    couplings["drive"] = {"type": "torque", "body": "K1", "torque": [0.0, 0.0, 0.033]}
    scene = scene_from_dict({
        "schema": "add-scene/1",
        "name": "squeezer",
        "time": {"dt": dt, "steps": round(duration / dt), "newton": {"atol": 1e-16 * stiffness, "rtol": 0.0}},
        "gravity": [0, 0, 0],
        "bodies": bodies,
        "couplings": couplings,
    })  # fmt: skip
    built = scene.build()
    run = built.run()
    turn, rate = {}, {}
    for name in parts:
        first = built.model.system.dofs[name].start
        q, v = run.q[-1, first : first + 6], run.v[-1, first : first + 6]
        matrix = rotation_matrix(q[3:])
        turn[name], rate[name] = np.arctan2(matrix[1, 0], matrix[0, 0]), (left_jacobian(q[3:]) @ v[3:])[2]
    return tuple(
        np.array([x["K1"], x["K2"] - x["K1"], x["K3"], x["K4"] - x["K5"], x["K5"], x["K6"] - x["K7"], x["K7"]])
        for x in (turn, rate)
    )  # type: ignore[return-value]


def angle_errors(found: np.ndarray, exact: Sequence[float]) -> np.ndarray:
    """Differences of angles, whole turns taken out [rad]."""
    d = found - np.array(exact)
    return (d + np.pi) % (2.0 * np.pi) - np.pi


# --- contact ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Roll:
    """A ball that slides and then rolls: times, places and speeds along x, rate about y, and the exact two."""

    t: np.ndarray
    place: np.ndarray
    speed: np.ndarray
    rate: np.ndarray
    exact_place: np.ndarray
    exact_speed: np.ndarray
    rolls_at: float


ROLL_SPEED, ROLL_FRICTION, ROLL_RADIUS = 2.0, 0.2, 0.1


def slide_to_roll(dt: float, duration: float = 0.6, order: int = 2, *, shell: bool = False) -> Roll:
    """A ball starts to slide at 2 m/s without spin, slowed by mu g until it rolls at 5/7 (a shell: 3/5) of that."""
    k_n, share = 1e5, 2.0 / 3.0 if shell else 2.0 / 5.0
    setup = Rigid.of([ball("ball", ROLL_RADIUS)], [floor()], ContactModel(law=FrictionLaw.LINEAR))
    setup.body("ball", 1.0, [share * ROLL_RADIUS**2] * 3, position=(0.0, 0.0, ROLL_RADIUS - G / k_n),
               velocity=(ROLL_SPEED, 0.0, 0.0))  # fmt: skip
    setup.put(contact__ball__floor__k_n=k_n, contact__ball__floor__k_t=1e4, contact__ball__floor__c_f=ROLL_FRICTION)
    run = setup.run(dt, round(duration / dt), order)
    slows = ROLL_FRICTION * G
    rolls = share / (1.0 + share) * ROLL_SPEED / slows
    sliding = np.minimum(run.t, rolls)
    speed = ROLL_SPEED - slows * sliding
    place = ROLL_SPEED * sliding - 0.5 * slows * sliding**2 + speed * (run.t - sliding)
    rate = np.array([(left_jacobian(q[3:]) @ v[3:])[1] for q, v in zip(run.q, run.v, strict=True)])
    return Roll(run.t, run.q[:, 0], run.v[:, 0], rate, place, speed, rolls)


def box_on_incline(degrees: float, friction: float, dt: float = 1e-3, duration: float = 1.0) -> tuple[float, float]:
    """Acceleration down the incline over the second half of the run, and the speed at its end.

    A box on its four lower corners, which feel different weights; it starts without speed where the planes carry it.
    """
    angle, size, mass, k_n, k_t = np.radians(degrees), (0.2, 0.2, 0.1), 1.0, 1e5, 1e4
    setup = Rigid.of([box("box", size)], [floor(angle)], ContactModel(law=FrictionLaw.LINEAR, ramp=1e-5))
    up, along = np.array([np.sin(angle), 0.0, np.cos(angle)]), np.array([np.cos(angle), 0.0, -np.sin(angle)])
    depth = mass * G * np.cos(angle) / (4.0 * k_n)
    setup.body("box", mass, box_moments(mass, size), position=up * (size[2] / 2.0 - depth), orientation=(0, angle, 0))
    for key, value in (("k_n", k_n), ("k_d", 150.0), ("k_t", k_t), ("c_f", friction)):
        setup.view(f"contact.box.floor.{key}")[...] = value
    n = round(duration / dt)
    run = setup.run(dt, n)
    speed = run.v[:, :3] @ along
    return float((speed[-1] - speed[n // 2]) / (run.t[-1] - run.t[n // 2])), float(speed[-1])


def restitution(
    k_d: float, steps_per_impact: int = 400, *, edge: bool = False, adhesive_damping: bool = False
) -> float:
    """Return the speed after over the speed before of a ball (``edge``: a flat box on four corners) and a floor.

    Mass 0.5 kg, k_n = 2000 N/m in all, no gravity; ``k_d`` of all points together; with ``adhesive_damping``
    it may pull.
    """
    mass, k_n = 0.5, 2000.0
    n = 4 if edge else 1
    solid = box("body", (0.1, 0.1, 0.1)) if edge else ball("body", 0.05)
    setup = Rigid.of(
        [solid], [floor()], ContactModel(law=FrictionLaw.NONE, adhesive_damping=adhesive_damping), gravity=(0, 0, 0)
    )
    period = np.pi * np.sqrt(mass / k_n)
    dt = period / steps_per_impact
    setup.body("body", mass, [1e-3] * 3, position=(0, 0, 0.05 + 0.37 * dt), velocity=(0, 0, -1.0))
    setup.put(contact__body__floor__k_n=k_n / n, contact__body__floor__k_d=k_d / n)
    run = setup.run(dt, round(3.0 * steps_per_impact), newton=NewtonOptions(atol=1e-10, rtol=0.0))
    assert not run.records[-1].decisions[0].any()
    return float(run.v[-1, 2])


@dataclass(frozen=True)
class Bounce:
    """A bouncing cube: times, energies, and the energy at each apex over the first (counted from lying still)."""

    t: np.ndarray
    kinetic: np.ndarray
    gravity: np.ndarray
    contact: np.ndarray
    apexes: np.ndarray


def bouncing_cube(
    omega_dt: float, dt: float = 1.0 / 60.0, duration: float = 6.0, order: int = 2, *, tilted: bool = False,
    damping_ratio: float = 0.0, adhesive_damping: bool = False, ramp: float = 0.0,
) -> Bounce:  # fmt: skip
    """A cube of 1 m and 1 kg dropped from 1 m, without friction; flat or tilted.

    omega = sqrt(4 k_n / m) is that of the cube on four corners, and ``damping_ratio`` zeta = 4 k_d / (2 m omega);
    ``adhesive_damping``: the damping may pull, as in Eq. 22; it sets in over ``ramp`` [m].
    """
    size, mass, height = (1.0, 1.0, 1.0), 1.0, 1.0
    setup = Rigid.of(
        [box("cube", size)], [floor()], ContactModel(law=FrictionLaw.NONE, adhesive_damping=adhesive_damping, ramp=ramp)
    )
    pose: dict[str, Sequence[float]] = {"position": (0, 0, 0.5 + height)}
    if tilted:
        pose |= {"orientation": (0.3, 0.2, 0.1), "angular_velocity": (0.5, 1.0, 0.3), "velocity": (0.3, 0, 0)}
    setup.body("cube", mass, box_moments(mass, size), **pose)
    omega = omega_dt / dt
    setup.put(contact__cube__floor__k_n=0.25 * mass * omega**2)
    setup.put(contact__cube__floor__k_d=0.5 * damping_ratio * mass * omega)
    run = setup.run(dt, round(duration / dt), order)
    parts = [setup.energies(q, v) for q, v in zip(run.q, run.v, strict=True)]
    kinetic, gravity, contact = (np.array([p[key] for p in parts]) for key in ("kinetic", "gravity", "contact"))
    gravity -= 0.5 * mass * G * size[2]
    rising = run.v[:, 2]
    at = np.concatenate([[0], np.flatnonzero((rising[:-1] > 0.0) & (rising[1:] <= 0.0)) + 1])
    total = kinetic + gravity + contact
    return Bounce(run.t, kinetic, gravity, contact, total[at] / total[0])


@dataclass(frozen=True)
class Collision:
    """Two boxes that collide in free space: relative drifts of momentum and angular momentum, and what happened."""

    momentum: float
    angular: float
    turned: float
    touched: int


def collision(dt: float, duration: float = 0.5, order: int = 2, law: FrictionLaw = FrictionLaw.LINEAR) -> Collision:
    """Two boxes meet off-centre, with damping and friction, without gravity."""
    size = (0.1, 0.08, 0.06)
    model = ContactModel(law=law, ramp=1e-3)
    setup = Rigid.of([box("a", size, shape=True), box("b", size, shape=True)], contact=model, gravity=(0, 0, 0))
    setup.body("a", 0.1, box_moments(0.1, size), orientation=(0.3, 0.2, 0.1), velocity=(1.0, 0.1, 0.0),
               angular_velocity=(1.0, 2.0, 3.0))  # fmt: skip
    setup.body("b", 0.2, box_moments(0.2, size), position=(0.2, 0.05, 0.02), orientation=(0.1, -0.4, 0.5),
               velocity=(-0.5, 0.0, 0.0))  # fmt: skip
    for name in ("a.b", "b.a"):
        for key, value in (("k_n", 3000.0), ("k_d", 1.0), ("k_t", 10.0), ("c_f", 0.4)):
            setup.view(f"contact.{name}.{key}")[...] = value
    run = setup.run(dt, round(duration / dt), order)
    p = np.array([setup.momentum(q, v) for q, v in zip(run.q, run.v, strict=True)])
    scale = 0.1 * np.linalg.norm(run.v[0, :3]), np.linalg.norm(p[0, 3:])
    spin = setup.momentum(np.concatenate([run.q[-1, :6], np.zeros(6)]), np.concatenate([run.v[-1, :6], np.zeros(6)]))
    start = setup.momentum(np.concatenate([run.q[0, :6], np.zeros(6)]), np.concatenate([run.v[0, :6], np.zeros(6)]))
    touched = sum(int((record.decisions[0] != 0).any()) for record in run.records)
    return Collision(
        float(np.abs(p[:, :3] - p[0, :3]).max() / scale[0]),
        float(np.abs(p[:, 3:] - p[0, 3:]).max() / scale[1]),
        float(np.linalg.norm(spin - start)),
        touched,
    )


def free_fall(dt: float, duration: float, order: int, start: StartUp = StartUp.BDF1) -> tuple[float, float]:
    """Errors of height [m] and speed [m/s] after ``duration`` of a thrown, spinning ball."""
    setup = Rigid.of([ball("ball", 0.1)])
    setup.body("ball", 0.7, [0.01] * 3, velocity=(1.0, 0.0, 3.0), angular_velocity=(0.0, 7.0, 0.0))
    run = setup.run(dt, round(duration / dt), order, start)
    t = run.t[-1]
    return float(run.q[-1, 2] - (3.0 * t - 0.5 * G * t * t)), float(run.v[-1, 2] - (3.0 - G * t))
