"""Hybrid friction: what rests stays where it is, what is pushed too hard slides by Coulomb's law, and no reaction is
beyond the limit."""

import numpy as np
import pytest
from support.places import SCENES
from support.setups import G, Setup
from support.tiers import long_case

from add.adjoint import value_and_gradient
from add.bodies import RigidBody, SoftBody
from add.contact import BodyContact, FrictionLaw
from add.equations.kinematics import State
from add.equations.term import DecidingTerm
from add.geometry import HEX8, box_mesh
from add.kernels.contact_pairs import BITS, PAIR, STICKS
from add.kernels.shape_codes import PLANE
from add.model import ContactModel, Obstacle, build_model
from add.objectives.base import Objective
from add.scene import load_scene
from add.simulation import BDF
from add.simulation.run import Simulation, Trajectory
from add.simulation.start import GivenStart
from add.solve.step_equations import NewtonOptions

MASS, SIZE, C_F, K_N = 2.0, (0.3, 0.2, 0.1), 0.4, 2e4
CRITICAL = np.arctan(C_F)
NEWTON = NewtonOptions(atol=1e-12, rtol=0.0)


def grid(n: int) -> np.ndarray:
    """n x n points of the lower face."""
    x, y = (np.linspace(-s / 2, s / 2, n) for s in SIZE[:2])
    return np.array([[a, b, -SIZE[2] / 2] for a in x for b in y])


def box_on_slope(n: int, angle: float) -> Setup:
    """A box on n x n points; gravity is turned, the floor is level. It begins in static equilibrium."""
    points = grid(n)
    k_n = K_N / len(points)
    body = RigidBody("box", points, np.zeros(len(points)), np.full(len(points), 0.01))
    floor = Obstacle("floor", PLANE, (0.0, 0.0, 0.0), np.eye(3), np.zeros(3), np.zeros(3))
    model = build_model([body], obstacles=[floor], contact=ContactModel(law=FrictionLaw.HYBRID))
    # Friction at the floor, weight at the centre: the downhill points bear more, and the box leans.
    turn = MASS * G * np.sin(angle) * SIZE[2] / 2
    lean = turn / (k_n * (points[:, 0] ** 2).sum())
    setup = Setup(model, np.zeros(model.system.parameters.n)).put(
        gravity=(G * np.sin(angle), 0.0, -G * np.cos(angle)),
        bodies__box__mass=MASS,
        bodies__box__inertia=(*(MASS / 12 * (np.square(SIZE).sum() - np.square(SIZE))), 0.0, 0.0, 0.0),
        bodies__box__position=(0.0, 0.0, SIZE[2] / 2 - MASS * G * np.cos(angle) / K_N),
        bodies__box__orientation=(0.0, lean, 0.0),
        contact__box__floor__k_n=k_n,
        contact__box__floor__k_d=1e-2 * k_n,
        contact__box__floor__k_t=k_n,
        contact__box__floor__c_f=C_F,
    )
    return setup


def settle(setup: Setup, order: int, *, dt: float, n_steps: int, stiffer: float = 1.0) -> tuple[np.ndarray, Simulation]:
    """Return the equilibrium that a damped run ends in, and a simulation for what follows.

    A soft body that creeps under the linear law is never slow enough to be stopped so near the critical angle: while it
    comes to rest k_t is ``stiffer``.
    """
    theta = setup.theta.copy()
    for entry in setup.model.system.parameters.entries:
        if entry.name.endswith(".k_t"):
            theta[entry.slice] *= stiffer
    settling = Simulation(
        setup.model.system, GivenStart(setup.model.initial), BDF(dt, 1, newton=NEWTON), n_steps, theta
    )
    run = settling.run()
    assert np.abs(run.v[-1]).max() < 1e-11
    stepper = BDF(dt, order, newton=NEWTON)
    return run.q[-1], Simulation(setup.model.system, GivenStart(setup.model.initial), stepper, n_steps, setup.theta)


def go_on(simulation: Simulation, q: np.ndarray, n_steps: int) -> list[tuple[State, object]]:
    """Step from rest at ``q``."""
    assembler = simulation.assembler()
    state = simulation.stepper.start(q, np.zeros_like(q))
    out = []
    for _ in range(n_steps):
        state, record = simulation.stepper.step(assembler, state, simulation.theta)
        out.append((state, record))
    return out


def check_rest(setup: Setup, simulation: Simulation, q: np.ndarray, duration: float) -> None:
    (term,) = setup.model.system.deciding
    steps = go_on(simulation, q, round(duration / simulation.stepper.dt))
    drift = max(np.abs(state.q[0] - q).max() for state, _ in steps)
    fastest = max(np.abs(rows_of(term, record, simulation.theta)[0]).max() for _, record in steps)
    load = max(rows_of(term, record, simulation.theta)[1].max() for _, record in steps)
    most = max(record.report.iterations for _, record in steps)
    print(f"drift {drift:.1e} m, velocity at held points {fastest:.1e} m/s, load {load:.4f}, iterations <= {most}")
    assert drift < 1e-9
    assert fastest < 1e-12
    assert load <= 1.0
    assert all(record.report.attempt == 0 for _, record in steps)


def rows_of(term: DecidingTerm, record, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the velocities of the held points and their reactions in shares of Coulomb's limit."""
    hold = term.stick_constraint(record.decisions[0])
    assert hold is not None
    rows = np.zeros(hold.n_rows)
    hold.residual(record.kin, record.mu, theta, np.zeros_like(record.kin.q), rows)
    return rows, np.linalg.norm(record.mu.reshape(-1, 3), axis=1) / hold.limits(record.kin, theta)


@pytest.mark.parametrize(("n", "order"), [(2, 1), (10, 2), long_case(2, 2), long_case(10, 1)])
def test_box_rests_below_the_critical_angle(n: int, order: int) -> None:
    setup = box_on_slope(n, 0.99 * CRITICAL)
    q, simulation = settle(setup, order, dt=0.02, n_steps=200)
    check_rest(setup, simulation, q, 3.0)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("n", [2, 10])
def test_box_slides_above_the_critical_angle(n: int, order: int) -> None:
    angle = 1.01 * CRITICAL
    setup = box_on_slope(n, angle)
    dt, n_steps = 0.005, 400
    stepper = BDF(dt, order, newton=NEWTON)
    run = Simulation(setup.model.system, GivenStart(setup.model.initial), stepper, n_steps, setup.theta).run()
    exact = G * (np.sin(angle) - C_F * np.cos(angle))
    found = (run.v[-1, 0] - run.v[n_steps // 2, 0]) / (0.5 * n_steps * dt)
    print(f"{found:.8f} m/s2, exact {exact:.8f}")
    assert found == pytest.approx(exact, rel=1e-6)
    counts = setup.model.system.deciding[0].describe(run.records[-1].decisions[0])
    assert counts == {"touching": n * n, "sticking": 0, "slipping": n * n, "creeping": 0}


@pytest.mark.parametrize("order", [long_case(1), 2])
def test_soft_block_rests(order: int) -> None:
    """Nodes that share no coordinates: every reaction is what its own node needs."""
    angle = 0.95 * CRITICAL
    mesh = box_mesh((0.2, 0.2, 0.05), (3, 3, 2), HEX8)
    floor = Obstacle("floor", PLANE, (0.0, 0.0, 0.0), np.eye(3), np.array([0.0, 0.0, -0.025]), np.zeros(3))
    model = build_model([SoftBody("block", mesh)], [floor], ContactModel(law=FrictionLaw.HYBRID))
    setup = Setup(model, np.zeros(model.system.parameters.n)).put(
        gravity=(G * np.sin(angle), 0.0, -G * np.cos(angle)),
        bodies__block__mu=5e4, bodies__block__lambda=5e4, bodies__block__density=500.0, bodies__block__viscosity=50.0,
        contact__block__floor__k_n=2e3, contact__block__floor__k_d=5.0, contact__block__floor__k_t=40.0,
        contact__block__floor__c_f=C_F,
    )  # fmt: skip
    q, simulation = settle(setup, order, dt=0.02, n_steps=400, stiffer=100.0)
    assert any(isinstance(term, BodyContact) for term in model.system.deciding)
    check_rest(setup, simulation, q, 3.0)


def thrown_box(order: int = 2) -> tuple[Setup, Trajectory]:
    setup = box_on_slope(4, 0.3)
    setup.put(bodies__box__position=(0.0, 0.0, 0.09), bodies__box__orientation=(0.2, 0.1, 0.4),
              bodies__box__velocity=(0.5, -0.4, -0.5), contact__box__floor__k_d=2.0,
              contact__box__floor__k_t=20.0)  # fmt: skip
    stepper = BDF(0.002, order, newton=NEWTON)
    return setup, Simulation(setup.model.system, GivenStart(setup.model.initial), stepper, 500, setup.theta).run()


def test_coulomb_holds_at_the_end_of_every_step() -> None:
    """A box that lands on its corners, tumbles, slides and comes to rest."""
    setup, run = thrown_box()
    (term,) = setup.model.system.deciding
    assert isinstance(term, BodyContact)
    seen = {"sticking": 0, "slipping": 0}
    for record in run.records:
        counts = term.describe(record.decisions[0])
        for key in seen:
            seen[key] += counts[key]
        if not counts["touching"]:
            continue
        reactions = setup.model.system.on_branch(record.decisions).reactions(0, record.mu)
        places = term.places(record.kin, setup.theta, record.decisions[0], reactions)
        normal, friction = places.force[:, 2], np.linalg.norm(places.force[:, :2], axis=1)
        # The damping is no part of the limit; the elastic force is at least the normal force that is left.
        elastic = term.pairs.k_n  # indices
        depth = -places.place[:, 2]
        limit = C_F * setup.theta[elastic[0, 0]] * depth
        assert (friction <= limit * (1.0 + 1e-9) + 1e-12).all()
        assert (normal >= 0.0).all()
        if counts["sticking"]:
            rows, load = rows_of(term, record, setup.theta)
            assert np.abs(rows).max() < 1e-12
            assert load.max() <= 1.0
    assert seen["sticking"] > 100 and seen["slipping"] > 100


def test_few_released_points_creep_below_the_limit() -> None:
    """Fig. 2's cylinder: what moves is not always at Coulomb's limit (`docs/theory.md` has the numbers)."""
    built = load_scene(SCENES / "fig2_cylinder_hybrid.json").build()
    run = built.run(n_steps=46)
    system, touched, below, creeping, least = built.model.system, 0, [], 0, 1.0
    for k, record in enumerate(run.records):
        kin = run.kinematics(k + 1)
        force = system.on_branch(record.decisions).decided_forces(0, kin, record.mu, built.theta).reshape(-1, 3)
        on = force[:, 2] > 1e-9
        share = np.linalg.norm(force[on, :2], axis=1) / (built.scene.contact.friction * force[on, 2])
        moving = np.linalg.norm(kin.v.reshape(-1, 3)[on, :2], axis=1) > 1e-9
        assert (share <= 1.0 + 1e-9).all()
        touched += bool(on.any())
        below.append(int((moving & (share < 0.99)).sum()))
        creeping = max(creeping, system.deciding[0].describe(record.decisions[0])["creeping"])
        least = min([least, *share[moving]])
    assert sum(count > 0 for count in below) == pytest.approx(6, abs=2)
    assert max(below) == pytest.approx(8, abs=4)
    assert creeping == pytest.approx(17, abs=5)
    assert least == pytest.approx(0.91, abs=0.05)
    assert touched > 20


class _Place(Objective):
    """The place of the first coordinate after one step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def step_value(self, state, theta):
        return float(state.q[0][0]) if state.step == self.step else 0.0

    def step_pullback(self, state, theta, state_bar, theta_bar):
        if state.step == self.step:
            state_bar.q[0][0] += 1.0


def test_an_objective_may_end_while_points_are_held() -> None:
    """Behind its last step cotangents are zero: the gradient is that of the shorter run."""
    setup = box_on_slope(2, 0.8 * CRITICAL)
    simulation = Simulation(
        setup.model.system, GivenStart(setup.model.initial), BDF(0.02, 2, newton=NEWTON), 20, setup.theta
    )
    long = value_and_gradient(simulation, _Place(8))
    short = value_and_gradient(simulation, _Place(8), n_steps=8)
    assert np.linalg.norm(short.gradient) > 1e-3
    np.testing.assert_array_equal(long.gradient, short.gradient)


def _sticks(rows):
    """Return how many of the first four points are held on the only shape."""
    return int(((rows[:, BITS] & STICKS != 0) & (rows[:, PAIR] < 4)).sum())


def _light_and_heavy(mass: float) -> tuple[np.ndarray, list[int]]:
    """Return the way of a box of 1 kg that slides to rest on a slope, far from one of ``mass``; and what is held."""
    points, angle = grid(2), 0.5 * CRITICAL
    bodies = [RigidBody(name, points, np.zeros(4), np.full(4, 0.01)) for name in ("light", "heavy")]
    floor = Obstacle("floor", PLANE, (0.0, 0.0, 0.0), np.eye(3), np.zeros(3), np.zeros(3))
    model = build_model(bodies, obstacles=[floor], contact=ContactModel(law=FrictionLaw.HYBRID))
    setup = Setup(model, np.zeros(model.system.parameters.n))
    setup = setup.put(gravity=(G * np.sin(angle), 0.0, -G * np.cos(angle)))
    for name, m, speed, y in (("light", 1.0, 0.5, 0.0), ("heavy", mass, 3.0, 5.0)):
        k_n = K_N * m / 8
        lean = m * G * np.sin(angle) * SIZE[2] / 2 / (k_n * (points[:, 0] ** 2).sum())
        values = {
            f"bodies__{name}__mass": m,
            f"bodies__{name}__inertia": (*(m / 12 * (np.square(SIZE).sum() - np.square(SIZE))), 0.0, 0.0, 0.0),
            f"bodies__{name}__position": (0.0, y, SIZE[2] / 2 - m * G * np.cos(angle) / (4 * k_n)),
            f"bodies__{name}__orientation": (0.0, lean, 0.0),
            f"bodies__{name}__velocity": (speed, 0.0, 0.0),
        }
        contact = {"k_n": k_n, "k_d": 1e-2 * k_n, "k_t": k_n, "c_f": C_F}
        setup = setup.put(**values, **{f"contact__{name}__floor__{key}": value for key, value in contact.items()})
    stepper = BDF(0.02, 1, newton=NewtonOptions(atol=1e-9, rtol=1e-12))
    run = Simulation(model.system, GivenStart(model.initial), stepper, 25, setup.theta).run()
    return run.q[:, 0], [_sticks(record.decisions[0]) for record in run.records]


def test_a_heavy_body_says_nothing_about_a_light_one() -> None:
    """Who sticks, and who is let go, is judged body by body: a box slides and stops as it does alone."""
    way, held = _light_and_heavy(1.0)
    assert held[0] == 0 and held[-1] == 4
    for mass in (1e4, 1e6):
        beside, also = _light_and_heavy(mass)
        assert also == held
        assert np.abs(beside - way).max() < 1e-9
