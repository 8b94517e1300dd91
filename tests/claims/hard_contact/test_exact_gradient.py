"""Derivatives of steps with contact in positions: reverse, forward and replayed differences, through stick and slip."""

from collections import Counter

import numpy as np
import pytest
from support.impulse_scenes import CUBE, G, end_and_slopes, scene
from support.rigid_models import DT, NEWTON, PAIRS
from support.run_checks import check_gradient_of_run
from support.small_models import RoughObjective

import add
from add.contact import FrictionLaw
from add.hard_contact import with_exact_contact
from add.hard_contact.exact_coupling import CarriedContacts
from add.hard_contact.law import Branch
from add.simulation import BDF
from add.simulation.run import Trajectory

SLOW = pytest.mark.slow


def exact(body: dict, integrator: str = "bdf1", **more) -> dict:
    """A body over a plane with contact in positions."""
    raw = scene(body, **more)
    raw["contact"]["friction_law"] = "exact"
    raw["time"]["integrator"] = integrator
    return raw


def branches(trajectory: Trajectory) -> tuple[Counter, int]:
    """Return how often each branch holds, and how often a pair changes its own between two steps."""
    seen, before, switches = Counter(), {}, 0
    for record in trajectory.records:
        kept = CarriedContacts.of(record.carry)
        now = dict(zip(kept.pair.tolist(), kept.branch.tolist(), strict=True))
        seen.update(now.values())
        pairs = {*before, *now}
        switches += sum(before.get(p, Branch.SEPARATE) != now.get(p, Branch.SEPARATE) for p in pairs)
        before = now
    return seen, switches


@SLOW
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("pair", PAIRS)
def test_gradient_of_run(pair: str, order: int) -> None:
    """Nodes and rigid bodies on the world, on rigid bodies, on moving ones."""
    model, simulation = PAIRS[pair](FrictionLaw.LINEAR, BDF(DT, order, newton=NEWTON))
    simulation = with_exact_contact(simulation)
    seen, switches = branches(simulation.run())
    assert seen[Branch.SLIP] + seen[Branch.STICK] and switches
    check_gradient_of_run(simulation, RoughObjective(np.random.default_rng(0).normal(size=model.system.n)))


@SLOW
@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_gradient_of_a_tumbling_cube(integrator: str) -> None:
    """Impacts of corners and edges, slip and stick."""
    body = CUBE | {
        "position": [0, 0, 0.25], "orientation": [0.9621028, 0.2025480, 0.1519110, 0.1012740],
        "velocity": [0.8, 0.1, -0.5], "angular_velocity": [1, 3, 2],
    }  # fmt: skip
    built = add.scene_from_dict(exact(body, integrator, dt=0.005, steps=70, friction=0.3)).build()
    seen, switches = branches(built.run())
    assert seen[Branch.SLIP] and seen[Branch.STICK] and switches >= 4
    check_gradient_of_run(built.simulation, RoughObjective(np.random.default_rng(1).normal(size=6)))


@pytest.mark.parametrize("integrator", ["bdf1", pytest.param("bdf2", marks=SLOW)])
def test_gradient_of_a_ball(integrator: str) -> None:
    """It falls, slides and turns."""
    ball = {
        "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1.0, "position": [0, 0, 0.115],
        "velocity": [0.8, 0.1, -0.3], "angular_velocity": [1, 2, 0.5],
    }  # fmt: skip
    built = add.scene_from_dict(exact(ball, integrator, dt=0.01, steps=9, friction=0.2)).build()
    seen, switches = branches(built.run())
    assert seen[Branch.SLIP] and switches
    check_gradient_of_run(built.simulation, RoughObjective(np.random.default_rng(3).normal(size=6)))


def test_a_cube_slides_to_rest() -> None:
    """The discrete answer: v_k = v_0 - k mu g h while positive, then zero; with its derivatives, and zeros as zeros."""
    mu, speed, dt, steps = 0.4, 0.5, 0.01, 20
    raw = exact(CUBE | {"velocity": [speed, 0, 0]}, dt=dt, steps=steps, friction=mu)
    run = add.scene_from_dict(raw).build().run()
    seen, _ = branches(run)
    assert seen[Branch.SLIP] and seen[Branch.STICK]
    speeds = np.maximum(speed - np.arange(1, steps + 1) * mu * G * dt, 0.0)
    np.testing.assert_allclose(run.v[1:, 0], speeds, atol=1e-10)
    moving = np.flatnonzero(speeds > 0.0) + 1
    x, by = end_and_slopes(raw, 0, "contact.friction", "bodies.body.velocity.0", "bodies.body.mass")
    assert x == pytest.approx(dt * speeds.sum(), abs=1e-10)
    assert by == pytest.approx([-G * dt * dt * moving.sum(), dt * moving.size, 0.0], abs=1e-8)
    # What rests does not feel its friction.
    still = exact(CUBE, dt=dt, steps=5, friction=mu)
    assert end_and_slopes(still, 0, "contact.friction")[1] == [0.0]
