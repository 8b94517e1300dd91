"""Steps of contact in velocities in one compiled call, against those that Python takes from the same states."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numba import typeof
from support.impulse_scenes import CUBE, scene
from support.walker import walker

import add
from add.compiled import equations, impulses
from add.hard_contact import impulse_part
from add.hard_contact.geometry import touches
from add.hard_contact.impulse_coupling import CarriedImpulses
from add.kernels.caching import executable
from add.kernels.cone_modes import SEPARATE, SLIDE, STICK
from add.kernels.contact_arrays import Motion
from add.kernels.contact_rows import in_reach

SPINNING = {"position": [0, 0, 0.13], "velocity": [0.8, 0.1, -0.5], "angular_velocity": [1, 3, 2]}


def slid() -> dict[str, Any]:
    """A cube slides, and stops."""
    return scene(CUBE | {"velocity": [0.5, 0.1, 0]}, dt=0.005, steps=40)


def tumbled() -> dict[str, Any]:
    """A cube lands on its edges, one corner after the other, on a floor that moves, beside one that bounces."""
    raw = scene(CUBE | SPINNING, dt=0.005, steps=60, pairs=[{"body": "other", "obstacle": "floor", "restitution": 0.5}])
    raw["bodies"]["other"] = raw["bodies"]["body"] | {"position": [1, 0, 0.3]}
    raw["obstacles"]["floor"] |= {"velocity": [0.3, 0.2, 0]}
    return raw


def pushed() -> dict[str, Any]:
    """A cube lies on a soft block, whose upper half a signal takes along over the floor."""
    raw = scene(CUBE | {"position": [1, 0, 0.1]}, dt=0.005, steps=30)
    raw["bodies"]["block"] = {
        "type": "soft", "position": [0, 0, 0.05],
        "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 2]},
        "material": {"model": "neo-hookean", "density": 500, "young": 2e4, "poisson": 0.3},
        "pins": [{"where": {"box": {"min": [None, None, 0.04]}}, "motion": {"signal": "way"}}],
    }  # fmt: skip
    raw["signals"] = {"way": {"type": "sine", "amplitude": [0.02, 0.0, -0.002], "frequency": 5.0}}
    return raw


def walked() -> dict[str, Any]:
    """A trunk on two legs with stops falls to one side."""
    low = {"position": [0, 0, 0.4], "velocity": [0.3, 0.1, -0.2], "angular_velocity": [0.3, 0.2, -0.7]}
    raw = scene({}, dt=0.005, steps=60)
    raw["bodies"] = {"body": {"type": "articulated", **walker(), **low}, "cube": {"type": "rigid", **CUBE}}
    raw["bodies"]["cube"] |= {"position": [0.25, 0, 0.1]}
    return raw


@pytest.mark.parametrize("case", [slid, tumbled, pushed, walked])
def test_as_python_takes_them(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places, velocities, modes, forces and margins of every step; most steps are taken at once."""
    simulation = add.scene_from_dict(case()).build().simulation
    stepper, theta, taken = simulation.differentiable, simulation.theta, []
    whole = equations.take_impulses

    def counted(*arguments: Any) -> Any:
        found = whole(*arguments)
        taken.append(found[0])
        return found

    executable(whole, tuple(map(typeof, impulses.arguments())))  # where it has changed since `add warm`
    impulses.at_hand.cache_clear()
    monkeypatch.setattr(equations, "take_impulses", counted)
    trajectory = simulation.run()
    assert sum(taken) > 0.5 * trajectory.n_steps
    modes, assembler = Counter(), simulation.assembler()
    monkeypatch.setattr(impulse_part, "at_hand", lambda: False)
    for k, record in enumerate(trajectory.records):
        alone = stepper.step(assembler, trajectory.state(k), theta)[1]
        if not record.carry.marks:
            continue  # in flight
        np.testing.assert_allclose(record.kin.q, alone.kin.q, atol=1e-11)
        np.testing.assert_allclose(record.kin.v, alone.kin.v, atol=1e-9)
        for mine, theirs in zip(record.carry.marks, alone.carry.marks, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        mine, theirs = CarriedImpulses.of(record.carry), CarriedImpulses.of(alone.carry)
        np.testing.assert_allclose(mine.force, theirs.force, rtol=1e-7, atol=1e-7 * np.abs(theirs.force).max(initial=0))
        np.testing.assert_allclose(mine.margin, theirs.margin, rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(mine.near.slope, theirs.near.slope)
        modes.update(mine.modes.tolist())
    assert modes[STICK]
    assert modes[SLIDE] or modes[SEPARATE]


def test_contacts_without_load_are_weak() -> None:
    """A cube that touches a floor without any force: Python's steps say that its four corners may as well be apart."""
    simulation = add.scene_from_dict(scene(CUBE, dt=0.005, steps=2, gravity=(0, 0, 0))).build().simulation
    record = simulation.run().records[1]
    assert simulation.stepper.contact_forces(record, simulation.theta).counts["weakly_active"] == 4


def test_theta_of_any_layout() -> None:
    """Arrays of other programs may be read-only, or parts of larger ones."""
    simulation = add.scene_from_dict(scene(CUBE, dt=0.005, steps=2)).build().simulation
    frozen = simulation.theta.copy()
    frozen.flags.writeable = False
    strided = np.stack([frozen, frozen], 1)[:, 0]
    usual = simulation.run().q
    for theta in (frozen, strided):
        assert np.array_equal(simulation.run(theta).q, usual)


def test_what_is_out_of_reach_stays_away(rng: np.random.Generator) -> None:
    """Of random states, no pair that is left out comes near within the step, at the speeds of both its bodies."""
    simulation = add.scene_from_dict(walked()).build().simulation
    whole, dt, left_out, close = simulation.stepper.whole, 0.1, 0, 0
    pairs, theta = whole.possible, simulation.theta
    q = simulation.start.evaluate(simulation.assembler(), theta)[0]
    first = [simulation.system.dofs[name].start for name in ("body", "cube")]
    for k in range(300):
        place, v = q + rng.normal(0.0, 0.2, q.size), rng.normal(0.0, 1.0, q.size)
        if k % 2:  # all turns, and nothing else
            v *= 8.0
            v[np.add.outer(first, np.arange(3))] = 0.0
        rows = whole._beginning(place, v, 0.0, 0, theta).rows
        at = touches(whole.pairs, rows, theta, lowest=True)
        ahead = at.gap + dt * np.minimum((at.normal * at.velocity).sum(axis=1), 0.0)
        motion = Motion(0.0, rows.q, rows.v, theta)
        kept = in_reach(motion, pairs.packed, pairs.number, dt, 1.0, 0.0, 1e-3)
        away = np.setdiff1d(np.arange(ahead.size), kept)
        assert (ahead[away] > 1e-3).all()
        left_out, close = left_out + away.size, close + np.count_nonzero((ahead[kept] < 0.01) & (at.gap[kept] > 0.05))
    assert left_out > 5000 and close > 500
