"""Friction of rigid and soft bodies with hard contact against Coulomb's law."""

from dataclasses import replace

import numpy as np
import pytest
from support.hard_contact_cases import MASS, TIGHT, ball_on_plane, box_on_plane, check_contacts, down, run, soft_block
from support.rigid_cases import G, Rigid, box, box_moments
from support.setups import observed_orders, place
from support.tiers import long_case

from add.bodies import RigidBody
from add.contact import FrictionLaw
from add.hard_contact import Branch, ExactOptions
from add.kernels.shape_codes import PLANE, SPHERE
from add.model import ContactModel, Obstacle

C_F = 0.4
CRITICAL = float(np.arctan(C_F))


@pytest.mark.parametrize("order", [1, 2])
def test_sticks_below_the_critical_angle(order: int) -> None:
    """No creep: at 0.99 of the angle of friction nothing moves, not even a little."""
    setup = box_on_plane(0.99 * CRITICAL, C_F)
    found = run(setup, 0.005, 100, order)
    assert check_contacts(found, setup.theta) == 400
    for record in found.records:
        assert record.count(Branch.STICK) == 4
        assert np.linalg.norm(record.tangential_velocity, axis=1).max() < 1e-12
        np.testing.assert_allclose(record.force.sum(axis=0), [0.0, 0.0, MASS * G], atol=1e-9)
    assert np.abs(found.q[-1] - found.q[0]).max() < 1e-12


@pytest.mark.parametrize("order", [1, 2])
def test_slides_above_the_critical_angle(order: int) -> None:
    """The velocity is exact at every step; the place has the error of the integrator for a constant force."""
    angle = 1.01 * CRITICAL
    exact = G * (np.sin(angle) - C_F * np.cos(angle))
    assert exact > 0.03
    steps, errors = (0.02, 0.01, 0.005), []
    for dt in steps:
        setup = box_on_plane(angle, C_F)
        found = run(setup, dt, round(0.5 / dt), order)
        check_contacts(found, setup.theta)
        assert found.records[-1].count(Branch.SLIP) == 4
        along = found.v[:, :3] @ down(angle)[:, 0]
        np.testing.assert_allclose(along, exact * found.t, atol=1e-11)
        travelled = (found.q[:, :3] - found.q[0, :3]) @ down(angle)[:, 0]
        errors.append(float(np.abs(travelled - exact * found.t**2 / 2.0).max()))
    print(f"BDF{order}: errors of the place {errors} m")
    np.testing.assert_allclose(observed_orders(steps, errors), order, atol=0.1)


@pytest.mark.parametrize(("angle_share", "sticks"), [(0.99, True), (1.01, False)])
def test_soft_block_on_an_incline(angle_share: float, sticks: bool) -> None:
    """A soft block whose nodes touch one by one: at rest to round-off, or Coulomb's acceleration."""
    angle = angle_share * CRITICAL
    setup = soft_block(C_F, angle)
    place(setup, 0.0, angle)
    found = run(setup, 0.01, 150)
    assert check_contacts(found, setup.theta) > 900
    speed = setup.centres(found.v) @ down(angle)[:, 0]
    if sticks:
        assert found.records[-1].count(Branch.SLIP) + found.records[-1].count(Branch.STICK) == 9
        assert np.abs(found.v[-1]).max() < 1e-9
    else:
        assert found.records[-1].count(Branch.SLIP) == 9
        slope = (speed[-1] - speed[100]) / (found.t[-1] - found.t[100])
        assert slope == pytest.approx(G * (np.sin(angle) - C_F * np.cos(angle)), rel=1e-4)


@pytest.mark.parametrize("order", [1, long_case(2)])
def test_box_slides_to_rest(order: int) -> None:
    """Distance v^2 / (2 mu g), within O(dt) where the step of stopping is not resolved."""
    speed, errors, steps = 2.0, [], (0.01, 0.005, 0.0025)
    exact = speed**2 / (2.0 * C_F * G)
    for dt in steps:
        setup = box_on_plane(0.0, C_F, velocity=(speed, 0.0, 0.0))
        found = run(setup, dt, round(0.8 / dt), order)
        check_contacts(found, setup.theta)
        assert np.abs(found.v[-1]).max() < 1e-9
        # Which of four corners bear the load, and which are said to stick at no speed, hangs on rounding.
        last = found.records[-1]
        # Velocities below 1e-9 m/s are rest, and leave so much of the balance of forces.
        np.testing.assert_allclose(last.force.sum(axis=0), [0.0, 0.0, MASS * G], atol=MASS * 1e-9 / dt)
        errors.append(abs(found.q[-1, 0] - exact))
    print(f"BDF{order}: distance off by {errors} m of {exact:.4f} m")
    # BDF1: mu g dt t/2 and the last step; BDF2 only the last step, which it does not resolve either.
    limit = 0.6 * speed * np.array(steps) if order == 1 else 10.0 * np.array(steps) ** 2
    assert np.all(np.array(errors) < limit)


def test_box_thrown_flat() -> None:
    """Falling by h it lands without tipping over and slides v^2 / (2 mu g) + mu h: friction acts in the impact too."""
    speed, h, errors, steps = 2.0, 0.05, [], (0.01, 0.005, 0.0025)
    for dt in steps:
        setup = box_on_plane(0.0, C_F, velocity=(speed, 0.0, 0.0), above=h)
        found = run(setup, dt, round(1.0 / dt))
        check_contacts(found, setup.theta)
        assert np.abs(found.v[-1]).max() < 1e-9
        errors.append(abs(found.q[-1, 0] - speed**2 / (2.0 * C_F * G) - C_F * h))
    print(f"distance off by {errors} m")
    assert np.all(np.array(errors) < 1.1 * speed * np.array(steps))
    np.testing.assert_allclose(observed_orders(steps, errors), 1.0, atol=0.1)


@pytest.mark.parametrize("order", [1, 2])
def test_ball_slides_then_rolls(order: int) -> None:
    """It rolls from t = 2 v/(7 mu g) on, at 5/7 of its speed; the arm of the friction turns with the normal."""
    setup = ball_on_plane(0.2, velocity=(2.0, 0.0, 0.0))
    found = run(setup, 0.004, 125, order)
    check_contacts(found, setup.theta)
    rolls = 2.0 * 2.0 / (7.0 * 0.2 * G)
    speed = np.where(found.t < rolls, 2.0 - 0.2 * G * found.t, 10.0 / 7.0)
    # One step cannot be part sliding, part rolling.
    assert np.abs(found.v[:, 0] - speed).max() < 0.2 * G * 0.004
    assert found.v[-1, 0] == pytest.approx(10.0 / 7.0, rel=1e-10)
    kinds = [record.branch[0] for record in found.records]
    assert kinds[0] == Branch.SLIP
    assert kinds[-1] == Branch.STICK
    assert np.linalg.norm(found.records[-1].tangential_velocity) < 1e-12


def test_belt() -> None:
    """A box put on a moving belt is dragged along by mu g and then rides: obstacles move."""
    setup = Rigid.of(
        [box("box", (0.2, 0.2, 0.1))],
        [Obstacle("belt", PLANE, (0.0, 0.0, 0.0), np.eye(3), np.zeros(3), np.array([0.0, 0.5, 0.0]))],
        ContactModel(law=FrictionLaw.LINEAR),
    )
    setup.body("box", MASS, box_moments(MASS, (0.2, 0.2, 0.1)), position=(0, 0, 0.05))
    setup.view("contact.box.belt.c_f")[...] = 0.3
    found = run(setup, 0.005, 60)
    check_contacts(found, setup.theta)
    np.testing.assert_allclose(found.v[:, 1], np.minimum(0.3 * G * found.t, 0.5), atol=1e-9)


@pytest.mark.parametrize("order", [long_case(1), 2])
def test_leaves_a_dome(order: int) -> None:
    """A point let go near the top of a smooth sphere leaves it where z = 2/3 of its first height."""
    radius, start = 0.5, np.radians(10.0)
    rock = Obstacle("rock", SPHERE, (radius, 0.0, 0.0), np.eye(3), np.zeros(3), np.zeros(3))
    body = RigidBody("bead", np.zeros((1, 3)), np.zeros(1), np.ones(1))
    heights, steps = [], (4e-3, 2e-3)
    for dt in steps:
        setup = Rigid.of([body], [rock], ContactModel(law=FrictionLaw.NONE))
        setup.body("bead", 0.3, (1e-3,) * 3, position=radius * np.array([np.sin(start), 0.0, np.cos(start)]))
        # Ignored: the contact is frictionless.
        setup.view("contact.bead.rock.c_f")[...] = 0.7
        found = run(setup, dt, round(0.7 / dt), order)
        check_contacts(found, np.zeros_like(setup.theta))
        on = [record.touching.size for record in found.records]
        left = on.index(0)
        assert left > 0.3 / dt
        assert not any(on[left:])
        heights.append(found.q[left, 2] / (radius * np.cos(start)))
    errors = [abs(z - 2.0 / 3.0) for z in heights]
    print(f"BDF{order}: leaves at {heights} of its first height")
    # In a step the height changes by 1.35 m/s dt, 2.7 dt/s of the first height.
    limits = 3.0 * np.array(steps)
    assert np.all(errors < limits)


def test_tolerances_are_read() -> None:
    """Looser tolerances give looser contact: the options are read."""
    setup = box_on_plane(0.3, C_F, velocity=(0.3, 0.1, 0.0), above=0.01)
    loose = ExactOptions(newton=replace(TIGHT, atol=1e-3), gap=1e-4, speed=1e-3)
    tight, rough = run(setup, 0.005, 40), run(setup, 0.005, 40, options=loose)
    assert sum(r.report.iterations for r in rough.records) < sum(r.report.iterations for r in tight.records)
    assert np.abs(rough.q[-1] - tight.q[-1]).max() < 0.01
