"""Continuation: numbers of the scene that hold during a phase of the optimiser only."""

import copy

import numpy as np
import pytest
from inverse.test_problem import SCENE, VELOCITY, check
from support.tiers import long_case

from add.commands.optimize import check_optimization, optimize_scene
from add.errors import InputError
from add.inverse import MemoryLog, with_overrides
from add.io.runfolder import RunFolder
from add.scene import apply_overrides, scene_from_dict

SOFT, SHAPE = {"contact.stiffness": 500.0}, {"bodies.box.orientation": [0.5**0.5, 0, 0, 0.5**0.5]}
PHASES = [
    {"name": "soft", "overrides": SOFT, "end_time": 0.04},
    {"name": "less soft", "overrides": {"contact.stiffness": 1e3, "gravity": [0, 0, -5], "contact.friction": 0.1}},
    {"name": "as it is"},
]
PARAMETERS = [{"path": VELOCITY, "components": [0, 2]}]


def scene_of(phases=PHASES, method="l-bfgs-b", most=4, **sections):
    optimizer = {"method": method, "max_evaluations": most, "phases": phases}
    raw = {**copy.deepcopy(SCENE), "parameters": PARAMETERS, "optimizer": optimizer, **sections}
    return scene_from_dict(raw)


def plain(overrides):
    """The problem of the scene that has the values itself."""
    return apply_overrides(scene_of([]), overrides).inverse_problem()


@pytest.mark.parametrize("overrides", [SOFT, SHAPE, PHASES[1]["overrides"], {"gravity.2": -3.0}])
def test_overrides_are_the_scene_with_other_numbers(overrides):
    """Value and gradient to the bit, the stick stiffness that follows from the stiffness included."""
    scene = scene_of([{"name": "one", "overrides": overrides}, {"name": "end"}])
    problem = scene.inverse_problem()
    (item,) = problem.experiments
    changed = with_overrides(problem, problem.optimizer.phases[0].overrides)
    other = plain(overrides)
    assert np.array_equal(
        changed.theta(problem.x0, changed.experiments[0]), other.theta(other.x0, other.experiments[0])
    )
    value, gradient = changed.value_and_grad(problem.x0)
    assert value == other.value_and_grad(other.x0)[0] != problem.value(problem.x0)[0]
    assert np.array_equal(gradient, other.value_and_grad(other.x0)[1])
    assert changed.experiments[0].simulation is item.simulation
    assert with_overrides(problem, ()) is problem


def test_gradient():
    problem = scene_of().inverse_problem()
    check(with_overrides(problem, problem.optimizer.phases[0].overrides), problem.x0)


@pytest.mark.parametrize("method", ["l-bfgs-b", "gauss-newton"])
def test_phases_see_their_numbers(method):
    problem = scene_of(method=method).inverse_problem()
    log = MemoryLog()
    result = problem.optimize(log=log)
    x = problem.x0
    for phase in PHASES:
        evaluations = [e for e in log.evaluations if e.phase == phase["name"]]
        window = (0.0, phase["end_time"]) if "end_time" in phase else None
        assert np.array_equal(evaluations[0].x, x)
        for e in evaluations[:2]:
            expected = plain(phase.get("overrides", {})).value(e.x, window=window)[0]
            assert e.value == pytest.approx(expected, rel=1e-12)
        x = min(evaluations, key=lambda e: e.value).x
    assert result.value == pytest.approx(problem.value(result.x)[0], rel=1e-12)


@pytest.mark.parametrize(
    ("method", "ended"),
    [("l-bfgs-b", 1), ("gauss-newton", 0), long_case("l-bfgs-b", 0), long_case("gauss-newton", 1)],
)
def test_resume(tmp_path, method, ended):
    """A log that ends in the first or the second phase goes on bit by bit; the result is the scene's own."""
    scene = scene_of(method=method)
    whole, cut = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "cut")
    first = optimize_scene(scene, whole)
    cut.write_json("scene.json", scene.raw)
    lines = whole.read_lines("evaluations.jsonl")
    kept = 1 + [line["phase"] for line in lines].index(PHASES[ended]["name"])
    for line in lines[:kept]:
        cut.append_line("evaluations.jsonl", line)
    again = optimize_scene(scene, cut, resume=True)
    assert again["replayed_evaluations"] == kept
    for key in ("parameters", "objective", "phases", "evaluations"):
        assert again[key] == first[key], key
    without = [{k: v for k, v in line.items() if k != "seconds"} for line in cut.read_lines("evaluations.jsonl")]
    assert without == [{k: v for k, v in line.items() if k != "seconds"} for line in lines]
    problem = scene.inverse_problem()
    best = min((e for e in lines if e["phase"] == "as it is"), key=lambda e: float.fromhex(e["value"]))
    x = np.array([float.fromhex(number) for number in best["x"]])
    assert first["objective"]["end"] == pytest.approx(problem.value(x)[0], rel=1e-12)
    other = scene_of([{**PHASES[0], "overrides": {"contact.stiffness": 501.0}}, *PHASES[1:]], method)
    with pytest.raises(InputError, match="another scene"):
        optimize_scene(other, cut, resume=True)


def test_an_override_in_the_last_phase_is_said(caplog):
    check_optimization(scene_of())
    assert not caplog.records
    check_optimization(scene_of(PHASES[:1]))
    assert "another scene" in caplog.text


@pytest.mark.parametrize(
    ("overrides", "place", "text"),
    [
        ({"contact.stifness": 100}, "contact.stifness", "did you mean 'contact.stiffness'"),
        ({"contact.stiffness": -1}, "", "contact.stiffness"),
        ({"contact.stiffness": "soft"}, "contact.stiffness", "is not a number"),
        ({"contact.stick_stiffness": 1.0}, "contact.stick_stiffness", "no value in the scene"),
        ({"contact.onset": 1e-4}, "contact.onset", "no value in the scene"),
        ({"obstacles.floor.adjustable": 1}, "obstacles.floor.adjustable", "is not a number"),
        ({"contact.friction_law": "tanh"}, "contact.friction_law", "is not a number"),
        ({"time.dt": 0.01}, "time.dt", "'time'"),
        ({"bodies.box.mesh.divisions": [2, 2, 2]}, "bodies.box.mesh.divisions", "whole numbers"),
        ({"bodies.box.material.poisson": 0.7}, "", "Poisson"),
        ({"gravity": -9.81}, "", "gravity"),
        ({VELOCITY: [0, 0, 0]}, VELOCITY, "belongs to a parameter"),
        ({f"{VELOCITY}.2": 0.0}, f"{VELOCITY}.2", "belongs to a parameter"),
    ],
)
def test_impossible_overrides(overrides, place, text):
    with pytest.raises(InputError) as error:
        scene_of([{"name": "one", "overrides": overrides}]).inverse_problem()
    assert error.value.place == ".".join(["optimizer.phases.0.overrides", *([place] if place else [])])
    assert text in str(error.value)


def test_free_components_of_a_vector_may_be_overridden():
    scene_of([{"name": "one", "overrides": {f"{VELOCITY}.1": 0.0}}]).inverse_problem()


def test_an_experiment_that_overrides_the_same_is_refused():
    experiments = [{"name": "light", "overrides": {"gravity": [0, 0, -5.0]}}, {"name": "normal"}]
    with pytest.raises(InputError, match="which counts"):
        scene_of([{"name": "one", "overrides": {"gravity.2": -1.0}}], experiments=experiments)
    changed = scene_of(PHASES[:1], experiments=experiments).build_optimizer().phases[0].overrides
    assert [item.experiment for item in changed] == ["light", "normal"]
