"""Tangents through blocks of compiled steps in one call against those of the terms, step by step."""

import numpy as np
import pytest
import scipy.sparse as sp
from derivatives.test_trees import scene
from support.compiled_runs import by_terms
from support.places import SCENES

import add.simulation.bdf as bdf
from add.adjoint.forward import pushforward, stretches
from add.equations.kinematics import Directions, StretchTangents
from add.scene import load_scene, scene_from_dict
from add.simulation.run import Simulation


def assert_as_terms(simulation: Simulation, steps: int, most: int = 1) -> None:
    """Tangents along every number that is not zero, over a run of several blocks, are those of the terms to 1e-8."""
    terms = by_terms(simulation)
    assert simulation.packed is not None and terms.packed is None
    theta = simulation.theta
    chosen = np.flatnonzero(theta != 0.0)
    directions = Directions(sp.diags_array(np.where(theta != 0.0, np.abs(theta), 0.0), format="csr")[:, chosen])
    run = simulation.run(n_steps=steps)
    parts = list(stretches(simulation, run, theta, directions))
    several = [part.n for part in parts if isinstance(part, StretchTangents)]
    assert sum(several) == steps and max(several) >= most
    found = pushforward(simulation, run, theta, directions)
    wanted = pushforward(terms, run, theta, directions)
    for a, b in ((found.q, wanted.q), (found.v, wanted.v)):
        largest = np.abs(b).max(axis=(1, 2))
        assert (np.abs(a - b).max(axis=(1, 2)) <= 1e-8 * largest + 1e-12 * largest.max()).all()
        assert (largest > 0.0).sum() >= 5
    for a, b in zip(found.states, wanted.states, strict=True):  # older pairs, too
        x, y = (np.zeros((2, run.q.shape[1], directions.n)) for _ in range(2))
        x[:, :, a.index], y[:, :, b.index] = a.dot.q, b.dot.q
        assert np.abs(x - y).max() <= 1e-8 * np.abs(wanted.q).max()


@pytest.mark.parametrize("name", ["cartpole_swing_up", "reaching_arm"])
def test_drives(name: str) -> None:
    assert_as_terms(load_scene(SCENES / f"{name}.json").build().simulation, 90, 60)


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_trees_and_a_body_that_touch(integrator: str) -> None:
    raw = scene("tanh")
    raw["time"] = {"dt": 0.005, "steps": 30, "integrator": integrator}
    simulation = scene_from_dict(raw).build().simulation
    touching = [sum(d.shape[0] for d in r.decisions if d.ndim == 2) for r in simulation.run().records]
    assert max(touching) >= 4
    assert_as_terms(simulation, 30, 20)


def test_changes_of_chart_end_a_stretch() -> None:
    raw = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 120, "integrator": "bdf2"},
        "bodies": {"block": {"type": "rigid", "mass": 1.0, "geometry": {"shape": "box", "size": [0.1, 0.2, 0.3]},
                             "position": [0, 0, 1], "velocity": [0.1, 0, 1], "angular_velocity": [9, 3, -5]}},
    }  # fmt: skip
    simulation = scene_from_dict(raw).build().simulation
    turned = [record.charts.size for record in simulation.run().records]
    assert sum(turned) >= 2 and not turned[-1]
    assert_as_terms(simulation, 120, 10)


def test_stretches_have_bounded_room(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = load_scene(SCENES / "cartpole_swing_up.json").build().simulation
    whole = pushforward(simulation, simulation.run(n_steps=40), simulation.theta, np.eye(simulation.theta.size))
    monkeypatch.setattr(bdf, "MOST_TANGENTS", 7 * 4 * simulation.theta.size)
    run = simulation.run(n_steps=40)
    directions = Directions.of(np.eye(simulation.theta.size))
    parts = list(stretches(simulation, run, simulation.theta, directions))
    assert max(part.n for part in parts if isinstance(part, StretchTangents)) <= 7
    again = pushforward(simulation, run, simulation.theta, directions)
    assert np.array_equal(whole.q, again.q) and np.array_equal(whole.v, again.v)


def test_given_motions_go_step_by_step() -> None:
    simulation = load_scene(SCENES / "strings_cube.json").build().simulation
    run = simulation.run(n_steps=10)
    assert simulation.packed is not None
    parts = stretches(simulation, run, simulation.theta, Directions.of(np.eye(simulation.theta.size)[:, :3]))
    assert not any(isinstance(part, StretchTangents) for part in parts)
