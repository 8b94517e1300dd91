"""Whole runs with hard contact: laws at every step, momentum, impacts, the projections, errors."""

import numpy as np
import pytest
from support.hard_contact_cases import (
    LINEAR,
    TIGHT,
    ball_on_plane,
    box_on_plane,
    check_contacts,
    down,
    exact,
    run,
    soft_block,
)
from support.rigid_cases import G, Rigid, box, box_moments, floor
from support.setups import place
from support.tiers import long_case

from add.bodies import SoftBody
from add.errors import SolverError
from add.geometry import HEX8, box_mesh
from add.hard_contact import ExactOptions, contact_term, with_exact_contact
from add.kernels.rotation import rotation_matrix
from add.kernels.shape_codes import BOX, PLANE
from add.model import Obstacle, build_model
from add.scene import scene_from_dict
from add.simulation import BDF
from add.simulation.run import Simulation
from add.simulation.start import GivenStart


def tumbling(seed: int) -> Rigid:
    rng = np.random.default_rng(seed)
    return box_on_plane(
        0.0, 0.5, velocity=(0.5, 0.0, 0.0), above=0.15, orientation=rng.normal(size=3), spin=3.0 * rng.normal(size=3)
    )


@pytest.mark.parametrize(
    ("seed", "order"),
    [(pytest.param if (seed + order) % 2 else long_case)(seed, order) for seed in range(4) for order in (1, 2)],
)
def test_tumbling_boxes(seed: int, order: int) -> None:
    """Long steps, many impacts on corners and edges: every law holds at every step, and the box comes to rest."""
    setup = tumbling(seed)
    found = run(setup, 1.0 / 60.0, 120, order)
    assert check_contacts(found, setup.theta) > 100
    assert np.abs(found.v[-1]).max() < 1e-6
    for state, record in zip(found.v[1:], found.records, strict=True):
        assert np.array_equal(state, record.kin.v) or np.linalg.norm(record.kin.q[3:]) > np.pi
        # Newton's second law for the centre of mass.
        np.testing.assert_allclose(record.kin.a[:3] - record.force.sum(axis=0), [0.0, 0.0, -G], atol=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_no_impact_adds_energy(seed: int) -> None:
    """With BDF1 an impact takes energy, whichever corner it is on, until the box lies flat."""
    setup = tumbling(seed)
    found = run(setup, 0.01, 100)
    energies = [setup.energies(q, v) for q, v in zip(found.q, found.v, strict=True)]
    total = np.array([e["kinetic"] + e["gravity"] for e in energies])
    touched = np.array([record.touching.size > 0 for record in found.records])
    assert np.diff(total)[touched].min() < -0.1 * total[0]
    assert np.diff(total)[touched].max() < 1e-3 * total[0]
    assert total[-1] == pytest.approx(G * 0.05, rel=1e-6)


def test_cables_stay() -> None:
    """A box hangs on a cable above the floor, whose branch is decided as ever."""
    scene = scene_from_dict({
        "schema": "add-scene/1",
        "name": "hanging box",
        "time": {"dt": 0.01, "steps": 100, "integrator": "bdf1"},
        "gravity": [0, 0, -G],
        "bodies": {"box": {"type": "rigid", "geometry": {"shape": "box", "size": [0.2, 0.2, 0.1]}, "mass": 1.0,
                           "position": [0, 0, 0.1]}},
        "couplings": {"rope": {"type": "cable", "a": {"at": [0, 0, 1.05]}, "b": {"body": "box", "at": [0, 0, 0.05]},
                               "length": 0.9, "stiffness": 100.0, "damping": 5.0}},
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"stiffness": 1.0, "friction": 0.3},
    })  # fmt: skip
    built = scene.build()
    contact, system = contact_term(built.simulation.system)
    assert contact is not None
    assert len(system.deciding) == 1
    found = exact(built.simulation)
    check_contacts(found, built.theta)
    # It lies on the floor, from which the taut cable takes 5 N.
    assert found.q[-1, 2] == pytest.approx(0.05, abs=1e-9)
    assert found.records[-1].normal_force.sum() == pytest.approx(G - 5.0, rel=1e-3)


@pytest.mark.parametrize("order", [1, 2])
def test_soft_block(order: int) -> None:
    """A soft block thrown on the floor: laws at every step, and the momentum of all nodes."""
    setup = soft_block(0.3)
    place(setup, 0.02)
    setup.put(bodies__block__velocity=(0.6, 0.2, 0.0))
    found = run(setup, 0.005, 80, order)
    assert check_contacts(found, setup.theta) > 100
    mass = setup.nodal_masses()
    for record in found.records:
        change = mass @ record.kin.a.reshape(-1, 3)
        outer = mass.sum() * np.array([0.0, 0.0, -G]) + record.force.sum(axis=0)
        np.testing.assert_allclose(change, outer, atol=1e-9)


@pytest.mark.parametrize("above", [0.0503, 0.0511])
def test_impact(above: float) -> None:
    """A ball closes its gap in the step of the impact, whatever that speed is, and rests from the next step on."""
    dt = 0.002
    for order in (1, 2):
        found = run(ball_on_plane(0.0, above=above), dt, 150, order)
        k = next(k for k, record in enumerate(found.records) if record.touching.size)
        assert found.v[k, 2] < -0.9
        gap = found.q[k, 2] - 0.1
        assert found.records[k].order == 1
        assert found.v[k + 1, 2] == pytest.approx(-gap / dt, rel=1e-9)
        assert np.abs(found.v[k + 2 :]).max() < 1e-9
        assert found.records[-1].order == order
        # Impulse: what it came with and the weight meanwhile.
        impulse = dt * sum(record.force.sum() for record in found.records[k : k + 2])
        assert impulse == pytest.approx(-found.v[k, 2] + 2.0 * G * dt, rel=1e-9)


def test_plain_bdf2_throws_back() -> None:
    """Without the restart the second difference of BDF2 returns an impact's speed: why there is one."""
    found = run(ball_on_plane(0.0, above=0.0511), 0.002, 150, 2, restart=False)
    k = next(k for k, record in enumerate(found.records) if record.touching.size)
    # Higher than it fell from.
    assert found.q[k:, 2].max() - 0.1 > 0.06


@pytest.mark.parametrize("seed", range(3))
def test_projections_find_the_same_steps(seed: int) -> None:
    """Steps that begin with projections end where Newton alone ends; forces may share out otherwise."""
    setup = tumbling(seed)
    newton = run(setup, 1.0 / 60.0, 60)
    rescued = run(setup, 1.0 / 60.0, 60, options=ExactOptions(newton=TIGHT, max_iterations=0))
    rounds = [record.report.attempt for record in rescued.records]
    assert sum(r > 0 for r in rounds) > 5
    check_contacts(rescued, setup.theta)
    np.testing.assert_allclose(rescued.q[:, :3], newton.q[:, :3], atol=1e-7)
    for a, b in zip(rescued.q, newton.q, strict=True):  # rotation vectors of length pi have two signs
        np.testing.assert_allclose(rotation_matrix(a[3:]), rotation_matrix(b[3:]), atol=1e-6)


def test_box_in_a_corner() -> None:
    """Floor, wall and a step of a box: points that touch two obstacles, edges of shapes, redundant contacts."""
    wall = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    world = [
        floor(),
        Obstacle("wall", PLANE, (0.0, 0.0, 0.0), wall, np.array([0.5, 0.0, 0.0]), np.zeros(3)),
        Obstacle("step", BOX, (0.1, 0.3, 0.03), np.eye(3), np.array([0.4, 0.0, 0.03]), np.zeros(3)),
    ]
    setup = Rigid.of([box("box", (0.2, 0.2, 0.1))], world, LINEAR)
    setup.body("box", 1.0, box_moments(1.0, (0.2, 0.2, 0.1)), position=(0.1, 0, 0.16), velocity=(3.0, 0.0, 0.0),
               orientation=(0.1, 0.5, -0.2))  # fmt: skip
    for name in ("floor", "wall", "step"):
        setup.view(f"contact.box.{name}.c_f")[...] = 0.3
    found = run(setup, 0.005, 200)
    assert check_contacts(found, setup.theta) > 300
    touched = {int(shape) for record in found.records for shape in found.pairs.shape[record.touching]}
    print("touched", touched, "ends at", found.q[-1])
    assert len(touched) == 3
    assert np.abs(found.v[-1]).max() < 1e-6


@pytest.mark.parametrize("order", [long_case(1), 2])
def test_two_bodies_collide(order: int) -> None:
    """Boxes meet off-centre in free space: momentum to round-off, angular momentum to the order of the impact, one."""
    drifts = []
    for dt in (0.004, 0.002):
        bodies = [box("a", (0.2, 0.2, 0.2), shape=True), box("b", (0.3, 0.3, 0.2), shape=True)]
        setup = Rigid.of(bodies, [], LINEAR, gravity=(0, 0, 0))
        setup.body("a", 1.0, box_moments(1.0, (0.2, 0.2, 0.2)), position=(0, 0, 0), velocity=(1, 0, 0),
                   orientation=(0.2, -0.3, 0.4))  # fmt: skip
        setup.body("b", 2.0, box_moments(2.0, (0.3, 0.3, 0.2)), position=(0.4, 0.08, 0.05))
        setup.view("contact.a.b.c_f")[...] = 0.4
        setup.view("contact.b.a.c_f")[...] = 0.4
        found = run(setup, dt, round(0.6 / dt), order)
        assert check_contacts(found, setup.theta) >= 2
        first, *others = (setup.momentum(q, v) for q, v in zip(found.q, found.v, strict=True))
        assert max(np.abs(p - first)[:3].max() for p in others) < 1e-12
        assert abs(found.v[-1, 6]) > 0.2
        drifts.append(float(np.abs(others[-1] - first)[3:].max()))
    print(f"BDF{order}: angular momentum drifts by {drifts} kg m2/s")
    assert drifts[1] < 0.7 * drifts[0]
    assert drifts[1] < 2e-3


def test_box_on_box() -> None:
    """On an incline that the lower of two boxes sticks to and the upper slides on."""
    angle, axes = np.radians(25.0), down(np.radians(25.0))
    bodies = [box("low", (0.6, 0.4, 0.1), shape=True), box("top", (0.2, 0.2, 0.1))]
    setup = Rigid.of(bodies, [floor(angle)], LINEAR)
    for name, size, height, c_f, other in (
        ("low", (0.6, 0.4, 0.1), 0.05, 0.8, "floor"),
        ("top", (0.2, 0.2, 0.1), 0.15, 0.3, "low"),
    ):
        pose = {"position": axes @ [0.0 if name == "low" else -0.1, 0.0, height], "orientation": (0.0, angle, 0.0)}
        setup.body(name, 1.0, box_moments(1.0, size), **pose)
        setup.view(f"contact.{name}.{other}.c_f")[...] = c_f
    found = run(setup, 0.01, 30)
    assert check_contacts(found, setup.theta) == 8 * 30
    assert np.abs(found.v[:, :6]).max() < 1e-10
    speed = found.v[:, 6:9] @ axes[:, 0]
    np.testing.assert_allclose(speed, G * (np.sin(angle) - 0.3 * np.cos(angle)) * found.t, atol=1e-9)


def test_soft_block_on_a_plate() -> None:
    """Nodes on a rigid plate that lies on the floor: the plate bears the block, the floor bears both."""
    mesh = box_mesh((0.1, 0.1, 0.05), (1, 1, 1), HEX8)
    plate = box("plate", (0.3, 0.3, 0.02), shape=True)
    model = build_model([SoftBody("block", mesh), plate], [floor()], LINEAR)
    setup = Rigid(model, np.zeros(model.system.parameters.n)).put(gravity=(0, 0, -G))
    setup.body("plate", 0.5, box_moments(0.5, (0.3, 0.3, 0.02)), position=(0, 0, 0.01))
    setup.put(bodies__block__mu=1e4, bodies__block__density=500.0, bodies__block__position=(0, 0, 0.05))
    setup.put(bodies__block__velocity=(0.3, 0.1, 0.0), contact__block__plate__c_f=0.5, contact__plate__floor__c_f=0.9)
    found = run(setup, 0.005, 150)
    assert check_contacts(found, setup.theta) > 800
    last = found.records[-1]
    hosted = found.pairs.hosted[last.pair]
    assert hosted.sum() == 4
    np.testing.assert_allclose(last.force[hosted].sum(axis=0), [0, 0, 0.25 * G], atol=1e-6)
    np.testing.assert_allclose(last.force[~hosted].sum(axis=0), [0, 0, 0.75 * G], atol=1e-6)
    assert np.abs(found.v[-1]).max() < 1e-6


def test_failure_keeps_what_was_done() -> None:
    setup = box_on_plane(0.0, 0.4, above=0.02)
    model = setup.model
    simulation = Simulation(model.system, GivenStart(model.initial), BDF(0.005, 1), 60, setup.theta)
    hopeless = with_exact_contact(simulation, ExactOptions(newton=TIGHT, max_iterations=0, projections=0))
    with pytest.raises(SolverError, match=r"step 1 .*exact contact") as caught:
        hopeless.run()
    assert caught.value.trajectory.q.shape[0] == 1
    found = exact(simulation, n_steps=5)
    assert found.q.shape == (6, 6)
