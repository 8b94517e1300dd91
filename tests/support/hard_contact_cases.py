"""Bodies on obstacles for the tests of hard contact."""

from dataclasses import dataclass, replace

import numpy as np
from support.rigid_cases import Rigid, ball, box, box_moments, floor
from support.setups import block_on_plane

from add.bodies import CarriedShape, RigidBody
from add.contact import FrictionLaw
from add.geometry import HEX8, box_mesh
from add.hard_contact import ContactPairs, ContactState, ExactOptions, contact_term, with_exact_contact
from add.hard_contact.equations import ContactEquations
from add.kernels.rotation import rotation_matrix
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, PLANE, SPHERE
from add.model import ContactModel, Obstacle
from add.simulation import BDF, Record
from add.simulation.run import Simulation
from add.simulation.start import GivenStart
from add.solve.step_equations import NewtonOptions, StepEquations
from add.solve.step_matrix import Assembler

TIGHT = NewtonOptions(atol=1e-11, rtol=1e-13)
SIZE, MASS = (0.2, 0.2, 0.1), 1.0
LINEAR = ContactModel(law=FrictionLaw.LINEAR)


def down(angle: float) -> np.ndarray:
    """Axes of an incline: columns down the slope, across, away from it."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def box_on_plane(
    angle: float, c_f: float, *, velocity=(0.0, 0.0, 0.0), above: float = 0.0, orientation=None, spin=(0, 0, 0)
) -> Rigid:
    """A box on its flat side; velocity in the axes of the incline."""
    setup = Rigid.of([box("box", SIZE)], [floor(angle)], LINEAR)
    axes = down(angle)
    setup.body(
        "box",
        MASS,
        box_moments(MASS, SIZE),
        position=axes @ [0.0, 0.0, SIZE[2] / 2 + above],
        orientation=(0.0, angle, 0.0) if orientation is None else orientation,
        velocity=axes @ np.array(velocity, dtype=float),
        angular_velocity=spin,
    )
    setup.view("contact.box.floor.c_f")[...] = c_f
    return setup


def ball_on_plane(c_f: float, *, radius: float = 0.1, velocity=(0.0, 0.0, 0.0), above: float = 0.0) -> Rigid:
    setup = Rigid.of([ball("ball", radius)], [floor()], LINEAR)
    inertia = np.full(3, 0.4 * MASS * radius**2)
    setup.body("ball", MASS, inertia, position=(0, 0, radius + above), velocity=velocity)
    setup.view("contact.ball.floor.c_f")[...] = c_f
    return setup


@dataclass(frozen=True)
class Step:
    """A finished step: its record and, for whatever that does not have, its contacts."""

    record: Record
    contacts: ContactState

    @property
    def order(self) -> int:
        """Of the formula that the step used."""
        return len(self.record.alpha)

    def __getattr__(self, name: str):
        parts = self.record, self.contacts, self.contacts.touches
        return getattr(next((part for part in parts if hasattr(part, name)), self.record), name)


@dataclass(frozen=True)
class ExactRun:
    """A run with exact contact and the contacts of its steps."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    records: list[Step]
    pairs: ContactPairs


def exact(simulation: Simulation, *, n_steps: int | None = None, restart: bool = True, **options) -> ExactRun:
    """Run a simulation with its penalty contact replaced by exact contact."""
    simulation = with_exact_contact(simulation, **options)
    stepper = replace(simulation.stepper, restart=restart)
    found = replace(simulation, stepper=stepper).run(n_steps=n_steps)
    steps = [Step(record, stepper.contact_state(record, simulation.theta)) for record in found.records]
    return ExactRun(found.t, found.q, found.v, steps, stepper.pairs)


def run(
    setup,
    dt: float,
    n_steps: int,
    order: int = 1,
    *,
    options: ExactOptions | None = None,
    restart: bool = True,
) -> ExactRun:
    """Run a `Rigid` or a soft `Setup` with exact contact."""
    model = setup.model
    simulation = Simulation(model.system, GivenStart(model.initial), BDF(dt, order), n_steps, setup.theta)
    return exact(simulation, restart=restart, options=options or ExactOptions(newton=TIGHT))


def soft_block(c_f: float, angle: float = 0.0):
    return block_on_plane(
        box_mesh((0.1, 0.1, 0.05), (2, 2, 1), HEX8),
        young=2e4,
        density=500.0,
        k_n=1.0,
        k_d=0.0,
        k_t=1.0,
        c_f=c_f,
        law=FrictionLaw.LINEAR,
        angle=angle,
    )


def check_contacts(found: ExactRun, theta: np.ndarray) -> int:
    """Every law of contact at every step; return how often anything touched."""
    touched = 0
    for record in found.records:
        assert record.gap.min(initial=0.0) >= -1e-12
        normal, friction = record.normal_force, np.linalg.norm(record.friction, axis=1)
        c_f = found.pairs.friction(theta)[record.pair]
        assert normal.min(initial=0.0) >= 0.0
        assert np.all(friction <= c_f * normal * (1.0 + 1e-10) + 1e-14)
        assert np.abs(normal * record.gap).max(initial=0.0) < 1e-11
        sliding = record.tangential_velocity
        power = np.einsum("ki,ki->k", record.friction, sliding)
        assert power.max(initial=0.0) <= 1e-13 * (1.0 + normal.max(initial=0.0))
        # What slides has all the friction there is, straight against its velocity.
        speed = np.linalg.norm(sliding, axis=1)
        moving = (speed > 1e-9) & (normal > 0.0)
        full = -(c_f * normal / np.where(moving, speed, 1.0))[:, None] * sliding
        np.testing.assert_allclose(record.friction[moving], full[moving], atol=1e-9 + 1e-7 * normal.max(initial=0.0))
        touched += int(np.count_nonzero(normal))
    return touched


# --- single steps, for derivatives ------------------------------------------------------------------------------------

SHAPES = {
    "plane": (PLANE, (0.0, 0.0, 0.0), (0.05, -0.02, 0.04)),
    "sphere": (SPHERE, (0.3, 0.0, 0.0), (0.2, 0.1, 0.25)),
    "box-face": (BOX, (0.4, 0.3, 0.2), (0.05, 0.1, 0.22)),
    "box-edge": (BOX, (0.4, 0.3, 0.2), (0.45, 0.1, 0.24)),
    "box-corner": (BOX, (0.4, 0.3, 0.2), (0.43, 0.34, 0.24)),
    "capsule": (CAPSULE, (0.2, 0.3, 0.0), (0.15, 0.18, 0.1)),
    "cylinder-rim": (CYLINDER, (0.3, 0.2, 0.0), (0.24, 0.25, 0.23)),
}


@dataclass(frozen=True)
class OnePair:
    """A step of one body that is near one turned shape, which moves with the world or is carried by a second body."""

    step: ContactEquations
    u: np.ndarray

    @classmethod
    def of(cls, shape: str, *, rigid: bool, radius: float, rng: np.random.Generator, hosted: bool = False) -> "OnePair":
        kind, size, place = SHAPES[shape]
        turn, origin = rotation_matrix(np.array([0.3, -0.5, 0.2])), np.array([0.1, -0.2, 0.3])
        offset, centre, w = np.array([0.12, -0.07, 0.05]), np.array([0.02, 0.01, -0.03]), np.array([0.4, 0.9, -0.6])
        body = RigidBody("body", offset[None], np.full(1, radius), np.ones(1))
        dt, step = 0.01, 3
        t = step * dt
        host_centre, host_x, host_w = (
            np.array([0.03, -0.01, 0.02]),
            np.array([0.4, 0.1, -0.2]),
            np.array([-0.5, 0.3, 0.8]),
        )
        if hosted:
            rock = RigidBody(
                "rock", np.zeros((0, 3)), np.zeros(0), np.zeros(0), (CarriedShape(kind, size, turn, origin),)
            )
            setup = Rigid.of([body, rock], [], LINEAR)
            setup.body("rock", 1.1, (0.03, 0.02, 0.04), centre=host_centre)
            at = host_x + rotation_matrix(host_w) @ (turn @ np.array(place) + origin - host_centre)
        else:
            velocity = np.array([0.2, 0.1, -0.3])
            setup = Rigid.of([body], [Obstacle("rock", kind, size, turn, origin, velocity)], LINEAR)
            at = turn @ np.array(place) + origin + t * velocity
        setup.body("body", 0.8, (0.02, 0.03, 0.025), centre=centre)
        setup.view("contact.body.rock.c_f")[...] = 0.6
        q_star = np.concatenate([at - rotation_matrix(w) @ (offset - centre) if rigid else at, w])
        if hosted:
            q_star = np.concatenate([q_star, host_x, host_w])
        v_star = rng.normal(size=q_star.size)
        equations = StepEquations(q_star, v_star, 1.0 / dt, t, step, np.zeros(0))
        contact = contact_term(setup.model.system)[0]
        assert contact is not None
        if not rigid:  # the centre of mass taken for a node: three coordinates without a lever
            contact = replace(contact, rigid=np.zeros(1, dtype=bool), radius=np.zeros(1), arm=np.zeros((1, 3)))
        pairs = ContactPairs.of(contact)
        system = replace(setup.model.system, deciding=())
        work = ContactEquations(Assembler(system), equations, pairs, setup.theta, ExactOptions(newton=TIGHT))
        return cls(work, 1e-3 * rng.normal(size=q_star.size))

    @property
    def columns(self) -> np.ndarray:
        """Coordinates of the pair; the rows of its derivatives without those that a node or the world lacks."""
        return self.step.pairs.dofs()[0]

    def moving(self, rng: np.random.Generator) -> np.ndarray:
        """Return a direction that leaves out what no body has."""
        du = rng.normal(size=self.u.size)
        du[np.setdiff1d(np.arange(self.u.size), self.columns)] = 0.0
        return du
