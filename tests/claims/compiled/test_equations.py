"""Forces and matrices of a state as one call, for solvers that decide in Python, against those of the terms."""

import numpy as np
import pytest
from support.places import SCENES

from add.compiled.equations import CompiledEquations
from add.equations.kinematics import Kinematics, Weights
from add.scene import load_scene
from add.simulation.run import Simulation
from add.solve.step_matrix import Assembler

#: Scenes with dense matrices: friction that holds, impulses, trees, loops, held coordinates, signals, springs.
DENSE = (
    "four_bar",
    "robot_rigid",
    "fading_brake",
    "strings_cube",
    "cube_stops_impulse",
    "cartpole_swing_up",
    "yeoh_strip",
)


def moved(simulation: Simulation, name: str) -> Kinematics:
    """A state of the run, stirred so that all terms act."""
    run = simulation.run(n_steps=4)
    kin, rng = run.records[-1].kin, np.random.default_rng(len(name))
    q, v, a = (x + 1e-3 * rng.normal(size=x.size) for x in (kin.q, kin.v, kin.a))
    return Kinematics(q, v, a, kin.t, kin.step)


@pytest.mark.parametrize("name", DENSE)
def test_one_call_gives_what_the_terms_give(name: str) -> None:
    simulation = load_scene(SCENES / f"{name}.json").build().simulation
    assembler, theta, system = simulation.assembler(), simulation.theta, simulation.system
    at_once = assembler.at_once
    assert at_once is not None, simulation.by_terms
    kin, mu = moved(simulation, name), np.random.default_rng(1).normal(size=system.n_multipliers)
    r, _, branch = system.residual(kin, mu, theta)
    size = np.abs(r).max()
    for given in (None, branch):
        found, _, same = assembler.residual(kin, mu, theta, given)
        assert np.abs(found - r).max() < 1e-12 * size
        assert all(np.array_equal(a, b) for a, b in zip(same.decisions, branch.decisions, strict=True))
    for order in (1, 2):
        scale = branch.force_scale(kin, theta, order)
        assert abs(assembler.force_scale(branch, kin, theta, order) - scale) < 1e-12 * scale > 0.0
    other = Assembler(system)
    assert other.at_once is None
    for weights in (Weights(1.0, 400.0, 160_000.0, 1.0), Weights(1.0, 0.0, 0.0, 1.0)):
        pattern, data = assembler.assemble(kin, mu, theta, weights, branch)
        _, expected = other.assemble(kin, mu, theta, weights, branch)
        full = pattern.matrix(data).toarray()
        assert np.abs(full - pattern.matrix(expected).toarray()).max() < 1e-12 * np.abs(full).max() > 0.0


def test_only_where_one_call_is_possible() -> None:
    soft = load_scene(SCENES / "ball_on_floor.json").build().simulation
    assert soft.packed is not None and CompiledEquations.of(soft.packed) is None
    assert CompiledEquations.of(None) is None
