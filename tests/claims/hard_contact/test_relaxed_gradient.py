"""Relaxed complementarity and the complementarity-aware choice: both see the way out of a contact that rests."""

import numpy as np
import pytest
from support.impulse_scenes import CUBE, scene

from add.adjoint import evaluate, pushforward, value_and_gradient
from add.commands.check_gradient import check_gradients
from add.commands.optimize import optimize_scene
from add.cones import Cones, Sensitivity, solve
from add.errors import InputError
from add.io.runfolder import RunFolder
from add.kernels.cone_modes import SEPARATE, SLIDE, STICK
from add.scene import scene_from_dict
from add.scene.build.inverse_problem import scene_objective

WEIGHT = 9.81


def pushed(force: float, steps: int = 30, **gradient) -> dict:
    """A cube of 1 kg that rests on the floor and is pulled up; it should be at 0.3 m."""
    raw = scene(CUBE, dt=0.01, steps=steps, friction=0.4)
    raw["couplings"] = {"push": {"type": "force", "on": {"body": "body", "at": [0, 0, 0]}, "force": [0, 0, force]}}
    raw["markers"] = {"c": {"body": "body", "center_of_mass": True}}
    raw["objective"] = [{"type": "point", "marker": "c", "target": [0, 0, 0.3], "axes": "z", "time": "end"}]
    raw["parameters"] = [{"path": "couplings.push.force", "components": [2], "scale": 1.0}]
    raw["optimizer"] = {"method": "l-bfgs-b", "max_evaluations": 60}
    return raw | ({"gradient": gradient} if gradient else {})


def slope(raw: dict) -> float:
    """Return the derivative of the objective by the force."""
    built = scene_from_dict(raw).build()
    objective = scene_objective(built.scene, built, "scene", built.simulation.n_steps)
    found = value_and_gradient(built.simulation, objective)
    by_number = built.numbers.ties.pullback(built.numbers.values, found.gradient)
    return float(by_number[built.numbers.resolve("couplings.push.force.2")[0][0]])


def test_resting_cube_sees_the_way_up() -> None:
    """Exactly zero without the option; with it, more force is better; less of it the smaller kappa is."""
    assert abs(slope(pushed(0.5 * WEIGHT))) < 1e-15
    found = [slope(pushed(0.5 * WEIGHT, contact="relaxed", relaxation=kappa)) for kappa in (1e-2, 1e-4, 1e-6)]
    assert found[0] < found[1] < found[2] < 0.0
    assert found[2] == pytest.approx(0.01 * found[1], rel=0.1)


def test_start_at_rest_takes_off(tmp_path) -> None:
    """Where the exact gradient is zero the optimiser stays; the result says which gradient it was."""
    exact = optimize_scene(scene_from_dict(pushed(0.9 * WEIGHT)), RunFolder(tmp_path / "a"))
    assert exact["objective"]["end"] == exact["objective"]["start"] and "gradient" not in exact
    raw = pushed(0.9 * WEIGHT, contact="relaxed", relaxation=0.1)
    relaxed = optimize_scene(scene_from_dict(raw), RunFolder(tmp_path / "b"))
    assert relaxed["objective"]["end"] < 0.01 * relaxed["objective"]["start"]
    assert "relaxed" in relaxed["gradient"]


def test_steps_are_the_same_and_both_modes_agree() -> None:
    """Through slip, stick and flight: forward = reverse, and not one bit of the motion differs."""
    raws = [pushed(0.0, 20), pushed(0.0, 20, contact="relaxed", relaxation=1e-2)]
    for raw in raws:
        raw["bodies"]["body"] |= {"position": [0, 0, 0.13], "velocity": [0.5, 0.2, -0.5], "angular_velocity": [1, 2, 0]}
    runs = [scene_from_dict(raw).build() for raw in raws]
    assert np.array_equal(runs[0].run().q, runs[1].run().q)
    simulation = runs[1].simulation
    objective = scene_objective(runs[1].scene, runs[1], "scene", simulation.n_steps)
    gradient = value_and_gradient(simulation, objective).gradient
    direction = np.random.default_rng(0).normal(size=simulation.theta.size)
    _, trajectory = evaluate(simulation, objective)
    found = pushforward(simulation, trajectory, simulation.theta, [direction])
    (forward,) = found.derivative(objective, trajectory, simulation.theta)
    assert forward == pytest.approx(gradient @ direction, rel=1e-9)


def test_the_limit_is_exact() -> None:
    """kappa -> 0, in every mode of the cone."""
    rng, seen = np.random.default_rng(2), set()
    for _ in range(20):
        root = rng.normal(size=(6, 9))
        G, g, cones = root @ root.T / 6, rng.normal(size=6), Cones.friction([0.5, 0.8])
        solution = solve(G, g, cones)
        seen |= set(solution.modes.tolist())
        if solution.margins.min() < 1e-2:
            continue
        exact = solution.sensitivity.pushforward(None, g)
        parts = (G, cones, solution.impulse, solution.velocity, solution.modes)
        errors = [np.abs(Sensitivity.at(*parts, kappa).pushforward(None, g) - exact).max() for kappa in (1e-7, 1e-9)]
        assert errors[1] <= 0.02 * errors[0] + 1e-12
    assert seen == {SEPARATE, STICK, SLIDE}


def test_the_check_is_of_the_exact_gradient() -> None:
    (found,) = check_gradients(scene_from_dict(pushed(0.5 * WEIGHT, steps=4, contact="relaxed")), free=False)
    assert found.passed


def test_other_laws_refuse() -> None:
    raw = pushed(1.0, contact="relaxed")
    raw["contact"]["friction_law"] = "linear"
    with pytest.raises(InputError, match="does not know this") as caught:
        scene_from_dict(raw)
    assert caught.value.place == "gradient.contact"


def test_explore_sees_the_way_up_and_takes_off(tmp_path) -> None:
    """Of contacts that the objective wants to open: the derivative by the force is that without a floor."""
    dt, steps = 0.01, 12
    free = 0.5 * steps * (steps + 1) * dt * dt  # dz/dF of 1 kg
    raw = pushed(0.5 * WEIGHT, steps, contact="explore")
    assert slope(raw) == pytest.approx(2.0 * (0.1 - 0.3) * free, rel=1e-9)
    # Below its weight more force lifts nothing: a line search gives up, a fixed rate goes on.
    raw["optimizer"] = {"method": "sgd", "rate": 160.0, "momentum": 0.0, "max_evaluations": 12}
    result = optimize_scene(scene_from_dict(raw), RunFolder(tmp_path / "c"))
    assert result["objective"]["end"] < 0.01 * result["objective"]["start"]
    assert "complementarity-aware" in result["gradient"]
    other, steps = (int(word) for word in result["gradient"].split(" in ")[1].split() if word.isdigit())
    assert 0 < other <= steps


def test_explore_is_exact_where_nothing_is_to_gain() -> None:
    """In flight to the last digit; zero where the objective presses the cube to the floor."""
    assert slope(pushed(1.5 * WEIGHT, contact="explore")) == slope(pushed(1.5 * WEIGHT))
    down = [pushed(0.5 * WEIGHT), pushed(0.5 * WEIGHT, contact="explore")]
    for raw in down:
        raw["objective"][0]["target"][2] = -0.3
    assert max(abs(slope(raw)) for raw in down) < 1e-15


def test_explore_has_no_tangents() -> None:
    """Refused where it is asked for by name: when the scene is read, and by forward mode."""
    raw = pushed(1.0, 4, contact="explore")
    simulation = scene_from_dict(raw).build().simulation
    with pytest.raises(InputError, match="it has no tangents"):
        pushforward(simulation, simulation.run(), simulation.theta, [np.ones(simulation.theta.size)])
    raw["optimizer"] = {"method": "gauss-newton"}
    with pytest.raises(InputError, match="no forward tangents") as caught:
        scene_from_dict(raw)
    assert caught.value.place == "gradient.contact"
