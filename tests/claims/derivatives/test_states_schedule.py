"""Gradients from states and decisions alone: those of stored runs to the last bit, in memory that hardly grows."""

import time
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np
import pytest
from support.compiled_runs import by_terms
from support.processes import FORKS
from support.rigid_models import DT, NEWTON, PAIRS, linkage
from support.run_checks import events
from support.small_models import RoughObjective, hanging_block, two_bodies

from add.adjoint import States, StoreAll, value_and_gradient
from add.adjoint.schedule import StatesOfSteps
from add.contact import FrictionLaw
from add.geometry import HEX8, TET4
from add.hard_contact import with_impulse_contact
from add.scene import scene_from_dict
from add.simulation import BDF, StartUp
from add.simulation.run import Simulation

STEPPERS = {
    "bdf1": BDF(DT, 1, newton=NEWTON),
    "bdf2": BDF(DT, 2, newton=NEWTON),
    "bdf2-line": BDF(DT, 2, StartUp.STRAIGHT_LINE, NEWTON),
}


def soft(law: FrictionLaw, stepper: BDF) -> Simulation:
    mu = 8.0 if law is FrictionLaw.HYBRID else 0.3
    return two_bodies(HEX8, law=law, order=stepper.bdf_order, start_up=stepper.start_up, mu_slide=mu, n_steps=14)[1]


def assert_bit_equal(simulation: Simulation) -> None:
    objective = RoughObjective(np.random.default_rng(0).normal(size=simulation.system.n))
    stored = value_and_gradient(simulation, objective, schedule=StoreAll())
    kept = value_and_gradient(simulation, objective, schedule=States())
    assert kept.value == stored.value and np.abs(stored.gradient).max() > 0.0
    assert np.array_equal(kept.gradient, stored.gradient)


@pytest.mark.parametrize(("law", "key"), list(product(FrictionLaw, STEPPERS)))
@pytest.mark.parametrize("pair", ["rigid-on-world", pytest.param("rigid-on-moving", marks=pytest.mark.slow)])
def test_every_integrator_and_law(pair: str, law: FrictionLaw, key: str) -> None:
    """With impacts, stick, slip and changes of chart; the terms' own steps, and compiled ones where they are there."""
    simulation = PAIRS[pair](law, STEPPERS[key])[1]
    seen = events(simulation, simulation.run())
    assert seen["charts"] and seen["impacts"]
    assert_bit_equal(by_terms(simulation))
    assert_bit_equal(simulation)


@pytest.mark.parametrize("make", [
    lambda: soft(FrictionLaw.HYBRID, STEPPERS["bdf2"]),
    lambda: soft(FrictionLaw.LINEAR, STEPPERS["bdf1"]),
    lambda: hanging_block(TET4, mean_dilatation=False)[1],
    lambda: linkage(STEPPERS["bdf2"])[1],
    lambda: with_impulse_contact(PAIRS["rigid-on-rigid"](FrictionLaw.LINEAR, STEPPERS["bdf1"])[1]),
    lambda: with_impulse_contact(PAIRS["rigid-on-moving"](FrictionLaw.LINEAR, STEPPERS["bdf1"])[1]),
], ids=["soft-hybrid", "soft-linear", "equilibrium", "joints", "impulse", "impulse-moving"])  # fmt: skip
def test_other_runs(make) -> None:
    """Multipliers and prescribed nodes, starts from equilibrium, joints with branches, contact by impulses."""
    assert_bit_equal(make())


@pytest.mark.parametrize("impulses", [False, True])
def test_records_are_made_again(impulses: bool) -> None:
    """Everything that a derivative reads of a record comes back as it was, in runs longer than a group."""
    simulation = by_terms(PAIRS["rigid-on-world"](FrictionLaw.HYBRID, STEPPERS["bdf2"])[1])
    if impulses:
        simulation = with_impulse_contact(PAIRS["rigid-on-world"](FrictionLaw.LINEAR, STEPPERS["bdf1"])[1])
    trajectory = simulation.run(n_steps=150)
    kept = StatesOfSteps(trajectory.initial)
    for k, record in enumerate(trajectory.records):
        kept.append((trajectory.state(k + 1), record))
    groups = list(kept.backwards())
    assert len(groups) == 3
    again = [step for group in reversed(groups) for step in group]
    for k, (state, record) in enumerate(again):
        old, before = trajectory.records[k], trajectory.state(k + 1)
        for name in ("q", "v", "a", "t", "step"):
            assert np.array_equal(getattr(record.kin, name), getattr(old.kin, name)), name
        assert np.array_equal(state.q, before.q) and np.array_equal(state.v, before.v) and state.t == before.t
        assert record.c == old.c and record.alpha == old.alpha and np.array_equal(record.charts, old.charts)
        assert np.array_equal(record.mu, old.mu)
        pairs = [*zip(record.decisions, old.decisions, strict=True)]
        pairs += [(record.carry.memory, old.carry.memory), *zip(record.carry.marks, old.carry.marks, strict=True)]
        for new, wanted in pairs:
            assert np.array_equal(new, wanted) and new.dtype == wanted.dtype and new.shape == wanted.shape
        candidates = zip(record.solution.candidates, old.solution.candidates, strict=True)
        assert all(np.array_equal(a, b) for a, b in candidates)


def peak(simulation: Simulation, n_steps: int, schedule) -> float:
    """Return the peak of memory that one gradient takes [bytes]."""
    objective = RoughObjective(np.ones(simulation.system.n))
    value_and_gradient(simulation, objective, n_steps=2, schedule=schedule)
    tracemalloc.start()
    value_and_gradient(simulation, objective, n_steps=n_steps, schedule=schedule)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(found)


def boxes(n_steps: int) -> Simulation:
    """Three boxes that slide and turn on a floor: 18 coordinates."""
    body = {"type": "rigid", "geometry": {"shape": "box", "size": [0.2, 0.15, 0.1]}, "mass": 1.0,
            "angular_velocity": [0, 0, 1]}  # fmt: skip
    starts = [{"position": [0.5 * k, 0, 0.05], "velocity": [1.0, 0.1 * k, 0]} for k in range(3)]
    return scene_from_dict({
        "schema": "add-scene/1",
        "time": {"dt": 0.002, "steps": n_steps},
        "bodies": {f"b{k}": {**body, **start} for k, start in enumerate(starts)},
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"stiffness": 2e3, "friction": 0.3, "damping": 1.0, "friction_law": "tanh"},
    }).build().simulation  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("terms", [False, True], ids=["as-it-is", "terms"])
def test_long_runs_take_little(terms: bool) -> None:
    """Fifty to five thousand steps of 18 coordinates: 5 MB at most, and a step takes as long as ever."""
    simulation = by_terms(boxes(5000)) if terms else boxes(5000)
    objective = RoughObjective(np.ones(simulation.system.n))
    seconds = {}
    for n in (50, 500, 5000):
        value_and_gradient(simulation, objective, n_steps=n, schedule=States())
        begin = time.perf_counter()
        for _ in range(5000 // n if n > 500 else 5):
            value_and_gradient(simulation, objective, n_steps=n, schedule=States())
        seconds[n] = (time.perf_counter() - begin) / n / (5000 // n if n > 500 else 5)
    assert seconds[5000] < 1.1 * min(seconds[50], seconds[500])
    growth = peak(simulation, 5000, States()) - peak(simulation, 50, States())
    print(f"{growth / 1e6:.2f} MB, {1e3 * seconds[50]:.3f} to {1e3 * seconds[5000]:.3f} ms a step")
    assert growth < 5e6


def growths() -> list[float]:
    """Return by how much the peak of memory grows with each step [bytes], of `States` and of `StoreAll`."""
    simulation = by_terms(PAIRS["rigid-on-rigid"](FrictionLaw.LINEAR, STEPPERS["bdf2"])[1])
    found = []
    # Room that fills over the first hundreds of steps is no growth; beside whole records it does not show.
    for schedule, n in ((States(), 200), (StoreAll(), 60)):
        # What is made once, in whichever run comes first, is none, either. Watching memory takes twice as long.
        value_and_gradient(simulation, RoughObjective(np.ones(simulation.system.n)), n_steps=2 * n, schedule=schedule)
        longer, shorter = (peak(simulation, k, schedule) for k in (2 * n, n))
        found.append((longer - shorter) / n)
    return found


def test_memory_hardly_grows() -> None:
    """A fifth of what whole steps take, and by the numbers: twelve coordinates, two arrays, and decisions.

    In a process of its own: what other tests leave in one moves peaks by more than that.
    """
    with ProcessPoolExecutor(1, mp_context=FORKS) as pool:
        states, whole = pool.submit(growths).result()
    assert states < 2.0 * 2 * 8 * 12
    assert states < 0.2 * whole
