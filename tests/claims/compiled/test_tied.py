"""Compiled steps of tissue that is tied to rigid bodies and links, and of stress that relaxes, against the terms."""

from typing import Any

import numpy as np
import pytest
from compiled.test_compiled_steps import assert_same, assert_same_from_states, assert_same_tangents
from compiled.test_compiled_trees import built, held
from soft_robots.test_embedding import SECTIONS, by_multipliers, places, small_arm
from support.places import SCENES

import add.compiled.pack
from add.compiled import sparse_trees, tree_equations
from add.compiled.pack import MOST_DENSE
from add.compiled.structure import windows
from add.compiled.tree_equations import new_lifted
from add.compiled.walk import no_choices
from add.kernels.arena import Instant, Signals
from add.scene import apply_overrides, load_scene, scene_from_dict
from add.simulation.composed import Remembering
from add.simulation.run import Simulation, Trajectory

#: Fewer elements than 200 coordinates and multipliers take: matrices are dense.
FEW = {"bodies.tissue.mesh.divisions": [2, 2, 4]}


def simulation_of(name: str, **changed: Any) -> Simulation:
    return apply_overrides(load_scene(SCENES / f"{name}.json"), changed).build().simulation


@pytest.mark.parametrize("sparse", [True, False])
def test_stress_that_relaxes(sparse: bool) -> None:
    """Steps with a memory: each is a compiled one, and so are derivatives, also by the memory."""
    changed = {} if sparse else FEW
    simulation = simulation_of("tissue_on_peg", **changed)
    assert isinstance(simulation.stepper, Remembering) and simulation.packed.sparse is sparse
    found, expected = assert_same(simulation, 6 if sparse else 20)
    assert all(state.carry.memory.any() for state in list(found.states())[1:])
    mine, theirs = ([r.report.iterations for r in run.records] for run in (found, expected))
    assert mine == theirs
    assert_same_tangents(simulation, found)


@pytest.mark.parametrize(("links", "integrator"), [("free", "bdf1"), ("tree", "bdf2")])
def test_nodes_that_multipliers_hold(links: str, integrator: str) -> None:
    """On free rigid bodies, whose centres of mass are numbers, and on links."""
    scene = by_multipliers(small_arm(links, 12, integrator))
    scene["bodies"]["tissue"]["mesh"]["divisions"] = [6, 1, 1]
    simulation = scene_from_dict(scene).build().simulation
    assert not simulation.packed.sparse and simulation.packed.trees is (links == "tree")
    assert [kind.name for kind in simulation.packed.kinds][-2:] == ["tied_points"] * 2
    found, _ = assert_same(simulation, 12)
    assert_same_from_states(simulation, found)
    assert_same_tangents(simulation, found)


def assert_same_runs(simulation: Simulation, steps: int) -> Trajectory:
    """Runs, their reports, steps from states, derivatives both ways."""
    assert simulation.packed.sparse and simulation.packed.trees
    found, expected = assert_same(simulation, steps)
    mine, theirs = ([r.report for r in run.records] for run in (found, expected))
    assert [r.iterations for r in mine] == [r.iterations for r in theirs]
    assert np.allclose([r.tolerance for r in mine], [r.tolerance for r in theirs], rtol=1e-9, atol=0.0)
    assert_same_from_states(simulation, found)
    assert_same_tangents(simulation, found)
    return found


@pytest.mark.parametrize(
    ("links", "integrator", "law"), [("tree", "bdf2", "tanh"), ("free", "bdf1", "linear"), ("tree", "bdf1", "none")]
)
def test_nodes_that_follow_links(links: str, integrator: str, law: str) -> None:
    """Tied nodes touch the floor and slide, a point is anchored, and a signal bends the arm."""
    scene = small_arm(links, 16, integrator, anchors=[{"at": [0.09, 0.0, 0.0]}] if law == "linear" else [])
    if law == "linear":
        del scene["time"]["newton"]  # a tolerance by the largest force
    scene["obstacles"] = {"floor": {"shape": "plane", "point": [0, 0, -0.0203], "normal": [0, 0, 1]}}
    scene["contact"] = {"friction": 0.4, "friction_law": law, "stiffness": 500, "damping": 2, "damping_ramp": 0.002}
    arm = scene_from_dict(scene).build()
    found = assert_same_runs(arm.simulation, 16)
    tied = places(arm, found)[np.concatenate([tie.nodes for tie in arm.model.body("tissue").ties])]
    assert tied[:, 2].min() < -0.0203, "some of them touch"


def test_nodes_that_follow_a_given_motion_and_a_link() -> None:
    """One end is led and turned, the other hangs on a bone of a tree without a base."""
    scene = small_arm("tree", 16, "bdf2")
    scene["signals"] |= {
        "way": {"type": "table", "times": [0, 0.1], "values": [[0, 0, 0], [0.01, 0.02, -0.01]]},
        "turn": {"type": "table", "times": [0, 0.1], "values": [[0, 0, 0], [0.3, 0.1, 0.2]]},
    }
    scene["bodies"]["tool"] = {
        "type": "kinematic", "position": [0.05, 0, 0], "translation": {"signal": "way"}, "rotation": {"signal": "turn"},
    }  # fmt: skip
    scene["bodies"]["tissue"]["embedded"][0] = {"body": "tool", "where": {"box": SECTIONS[0]}}
    assert_same_runs(scene_from_dict(scene).build().simulation, 16)


def test_many_nodes_that_multipliers_hold_on_links() -> None:
    """Trees with sparse matrices, no row of X but those of links is another than a coordinate."""
    simulation = scene_from_dict(by_multipliers(small_arm("tree", 8, "bdf2"))).build().simulation
    assert simulation.system.n + simulation.system.n_multipliers > MOST_DENSE
    assert_same_runs(simulation, 8)


def test_boned_arm() -> None:
    assert_same_runs(simulation_of("boned_arm"), 5)


@pytest.mark.parametrize("law", ["linear", "tanh"])
def test_trees_with_sparse_matrices(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All kinds of joints, drives and limits, contact of links and a rigid body, as if there were many coordinates."""
    monkeypatch.setattr(add.compiled.pack, "MOST_DENSE", 10)
    assert_same_runs(built(law, "bdf2").simulation, 25)


def test_loops_with_sparse_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops and couplings of joints by multipliers beside tissue, and a crank that is led."""
    monkeypatch.setattr(add.compiled.pack, "MOST_DENSE", 10)
    simulation = held("hinge", "bdf2", "tanh", True).simulation
    assert simulation.packed.sparse and simulation.packed.trees
    found, _ = assert_same(simulation, 40)
    assert_same_tangents(simulation, found)


def test_what_signals_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    """The derivatives by coefficients of signals are those of full matrices."""
    found = []
    for most, equations in ((MOST_DENSE, tree_equations), (10, sparse_trees)):
        monkeypatch.setattr(add.compiled.pack, "MOST_DENSE", most)
        simulation = built("none", "bdf1").simulation
        arena, n, theta = simulation.packed.common[0], simulation.system.n, simulation.theta
        now = windows(simulation.packed.signals, np.array([0.1]))
        q, v, a = 0.1 * np.random.default_rng(4).normal(size=(3, n))
        at = Instant(0.1, q, v, a, theta, Signals(now.weights[0], now.table[0]))
        room, none = new_lifted(arena), no_choices(len(simulation.system.deciding))
        equations.residual(arena, at, room, True, none, 0, np.empty(n))
        entries, values = equations.inputs(arena, at, room, none, np.arange(theta.size + 1))
        found.append((entries, values))
    (mine, values), (theirs, expected) = found
    assert np.array_equal(mine, theirs) and mine.size > 3
    assert np.allclose(values, expected, rtol=0.0, atol=1e-13 * np.abs(expected).max())
