"""The scenes of ADD's Table 2 whose controls have a row a step."""

import importlib.util
import json

import numpy as np
import pytest
from support.places import ROOT, SCENES

from add.scene import apply_overrides, load_scene


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def scene(name):
    return load_scene(SCENES / f"{name}.json")


def test_the_script_writes_the_scenes_that_are_there():
    for name, raw in script("make_table2_scenes").scenes().items():
        assert json.loads((SCENES / f"{name}.json").read_text(encoding="utf-8")) == raw


@pytest.mark.parametrize(
    ("name", "coordinates", "parameters", "steps"),
    [
        ("strings_cube", 12, 6, 60),
        ("sheet_flip", 75, 6, 120),
        ("robot_rigid", 78, 12, 192),
        ("robot_soft_feet", 414, 12, 144),
    ],
)
def test_sizes_are_those_of_the_table(name, coordinates, parameters, steps):
    built = scene(name).build()
    assert built.model.system.n == coordinates
    assert built.simulation.n_steps == steps
    assert scene(name).inverse_problem().n == parameters * steps


@pytest.mark.parametrize(("name", "most"), [("strings_cube", 10), ("bands_cubes", 25)])
def test_a_few_iterations_do_most(name, most):
    """Gauss-Newton with forward tangents leaves little soon; cubes that meet on the way take longer."""
    short = apply_overrides(scene(name), {"optimizer.max_evaluations": most})
    problem = short.inverse_problem()
    found = problem.optimize()
    assert found.value < 0.02 * problem.residuals(problem.x0).value


def test_the_robot_on_the_spot_goes_where_it_is_asked_to():
    """Over the first 0.4 s, where a step of the optimiser is a second."""
    phase = {"name": "the first eighth", "end_time": 0.4, "max_evaluations": 6}
    short = apply_overrides(scene("robot_rigid"), {"optimizer.phases": [phase]})
    problem = short.inverse_problem()
    found = problem.optimize()
    built = short.build()
    trunk = built.model.system.dofs["trunk"].start
    run = built.run(problem.theta(found.x, problem.experiments[0]), n_steps=24)
    assert built.run(n_steps=24).q[-1, trunk] < 0.01
    assert run.q[-1, trunk] > 0.08
    assert [record.report.attempt for record in run.records] == [0] * 24


@pytest.mark.slow
def test_the_sheet_lies_upside_down_in_between_and_ends_moved_to_the_right():
    flip = scene("sheet_flip")
    problem = flip.inverse_problem()
    found = problem.optimize()
    built = flip.build()
    run = built.run(problem.theta(found.x, problem.experiments[0]))
    start, turned, back = (run.q[k].reshape(25, 3) for k in (0, 60, 120))
    wanted = start * [-1.0, 1.0, -1.0] + [0.45, 0.0, 0.0]
    # It is on its way to the right there, and does not stop.
    assert np.sqrt(((turned - wanted) ** 2).sum(axis=1).mean()) < 0.03
    right = np.array([0.2, 0.0, 0.0])
    assert np.sqrt(((back - start - right) ** 2).sum(axis=1).mean()) < 0.006
    assert run.q[:, 2::3].max() > 0.3
