"""Compiled steps of tissue that is tied to rigid bodies and links, and of stress that relaxes, against the terms."""

from typing import Any

import pytest
from compiled.test_compiled_steps import assert_same, assert_same_from_states, assert_same_tangents
from soft_robots.test_embedding import by_multipliers, small_arm
from support.places import SCENES

from add.scene import apply_overrides, load_scene, scene_from_dict
from add.simulation.composed import Remembering
from add.simulation.run import Simulation

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
