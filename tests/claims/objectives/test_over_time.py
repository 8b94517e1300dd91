"""Soft minima and means over time, and the scenes that ask for them."""

from dataclasses import replace

import numpy as np
import pytest

from add.adjoint import Checkpoints, evaluate, value_and_gradient
from add.errors import InputError, SolverError
from add.scene import scene_from_dict
from add.scene.build.scene import build

BOUNCE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.004, "steps": 90, "integrator": "bdf2"},
    "bodies": {
        "ball": {
            "type": "rigid",
            "geometry": {"shape": "sphere", "radius": 0.05},
            "mass": 0.3,
            "position": [0, 0, 0.12],
            "velocity": [1.0, 0.2, -0.6],
            "angular_velocity": [0, 4, 0],
        }
    },
    "obstacles": {
        "floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]},
        "post": {
            "shape": "capsule",
            "center": [0.2, 0.3, 0.2],
            "orientation": [1, 0, 0, 0],
            "radius": 0.04,
            "half_length": 0.1,
        },
    },
    "contact": {"stiffness": 3000, "friction": 0.3, "damping": 1, "damping_ramp": 0.002, "onset": 0.003},
    "markers": {"centre": {"body": "ball", "center_of_mass": True}},
    "parameters": [{"path": "bodies.ball.velocity"}, {"path": "contact.friction"}],
}
NEAREST = {"type": "nearest", "marker": "centre", "target": [0.22, 0.05, 0.1], "softness": 0.03}
TOUCH = {"type": "contact", "marker": "centre", "obstacle": "post", "radius": 0.05}
KINDS = {
    "nearest": NEAREST,
    "on its way down": NEAREST | {"moving": [0, 0, -2]},
    "in a window": NEAREST | {"window": [0.1, 0.3], "axes": "xz"},
    "contact wanted": TOUCH,
    "contact not wanted": TOUCH | {"wanted": False, "margin": 0.25},
}


def problem(*entries: dict, **changes):
    return scene_from_dict(BOUNCE | {"objective": list(entries)} | changes).inverse_problem()


def distances(built, target) -> tuple[np.ndarray, np.ndarray]:
    run = built.run()
    return ((run.q[:, :3] - target) ** 2).sum(axis=1), run.v[:, 2]


@pytest.mark.parametrize("kind", list(KINDS))
def test_gradients_are_those_of_differences(kind):
    """Through the bounce, with each branch active: decisions free, along every parameter."""
    made = problem(KINDS[kind])
    run = made.experiments[0].simulation.run()
    assert 2 < sum(any(np.size(d) for d in record.decisions) for record in run.records) < 80
    value, gradient = made.value_and_grad(made.x0)
    assert value > 0.0 and np.count_nonzero(gradient) == 4
    for k in range(made.n):
        h = 1e-6 * np.eye(made.n)[k]
        difference = (made.value_and_grad(made.x0 + h)[0] - made.value_and_grad(made.x0 - h)[0]) / 2e-6
        assert gradient[k] == pytest.approx(difference, rel=2e-5, abs=2e-7 * np.abs(gradient).max())


def test_the_value_is_the_formula():
    target, tau = np.array(NEAREST["target"]), 0.03**2
    built = build(scene_from_dict(BOUNCE))
    d, rate = distances(built, target)
    expected = -tau * np.log(np.exp(-d / tau).mean())
    assert problem(NEAREST).value_and_grad(problem(NEAREST).x0)[0] == pytest.approx(expected, rel=1e-12)
    assert d.min() < expected < d.mean()
    down = d[rate < 0.0]
    assert 10 < down.size < d.size - 10
    made = problem(KINDS["on its way down"])
    assert made.value_and_grad(made.x0)[0] == pytest.approx(-tau * np.log(np.exp(-down / tau).mean()), rel=1e-12)


def test_contact_counts_until_it_is_made():
    """The floor is touched: nothing is left to want. The post's capsule is as far as its axis says."""
    floor = problem(TOUCH | {"obstacle": "floor", "softness": 1e-4})
    value, gradient = floor.value_and_grad(floor.x0)
    # Zero at touch, and the soft minimum is that of the share of steps that touch.
    assert 0.0 <= value < 1e-7 and np.abs(gradient).max() < 1e-6
    run = build(scene_from_dict(BOUNCE)).run()
    axis = run.q[:, :3] - [0.2, 0.3, 0.2]
    axis[:, 2] -= np.clip(axis[:, 2], -0.1, 0.1)
    gap = np.linalg.norm(axis, axis=1) - 0.04 - 0.05
    assert gap.min() > 0.0
    made = problem(TOUCH | {"wanted": False, "margin": 0.25})
    expected = (np.maximum(0.25 - gap, 0.0) ** 2).mean()
    assert made.value_and_grad(made.x0)[0] == pytest.approx(expected, rel=1e-12)
    made, tau = problem(TOUCH), 0.05**2
    expected = -tau * np.log(np.exp(-(gap**2) / tau).mean())
    assert made.value_and_grad(made.x0)[0] == pytest.approx(expected, rel=1e-12)


def test_a_moving_obstacle_is_where_it_has_moved_to():
    post = BOUNCE["obstacles"]["post"]
    moving = BOUNCE["obstacles"] | {"post": post | {"velocity": [0.5, 0, 0]}}
    made = problem(TOUCH | {"window": [0.358, 0.36]}, obstacles=moving)
    run = made.experiments[0].simulation.run()
    axis = run.q[-1, :3] - [0.2 + 0.5 * 0.36, 0.3, 0.2]
    axis[2] -= np.clip(axis[2], -0.1, 0.1)
    assert made.value_and_grad(made.x0)[0] == pytest.approx((np.linalg.norm(axis) - 0.09) ** 2, rel=1e-9)


def test_checkpoints_and_values_agree():
    made = problem(*KINDS.values())
    experiment = made.experiments[0]
    whole = value_and_gradient(experiment.simulation, experiment.objective)
    kept = value_and_gradient(experiment.simulation, experiment.objective, schedule=Checkpoints(4))
    assert whole.value == kept.value
    assert np.allclose(whole.gradient, kept.gradient, rtol=1e-10, atol=1e-14)
    assert evaluate(experiment.simulation, experiment.objective)[0] == pytest.approx(whole.value, rel=1e-12)


def test_a_phase_sees_its_window():
    made = problem(NEAREST)
    windowed = problem(NEAREST | {"window": [0.1, 0.2]})
    found = made.value_and_grad(made.x0, window=(0.1, 0.2))
    assert found[0] == pytest.approx(windowed.value_and_grad(made.x0)[0], rel=1e-12)


def test_a_throw_passes_its_target():
    """Fitted from afar, the ball passes through the point on its way down after the bounce."""
    entry = NEAREST | {"target": [0.3, 0.0, 0.1], "moving": [0, 0, -1], "softness": 0.05}
    settings = {"method": "adam", "rate": 0.1, "decay": 0.7, "decay_every": 8, "max_evaluations": 50}
    made = problem(entry, parameters=[{"path": "bodies.ball.velocity", "scale": 1.0}], optimizer=settings)
    found = made.optimizer.run(made)
    built = build(scene_from_dict(BOUNCE))
    run = built.rollout({"bodies.ball.velocity": made.values(found.x)})
    missed = np.sqrt(((run.q[:, :3] - [0.3, 0.0, 0.1]) ** 2).sum(axis=1))[run.v[:, 2] < 0.0].min()
    assert missed < 0.01


def test_a_run_that_never_moves_so_is_an_error():
    made = problem(NEAREST | {"moving": [0, -1, 0]})
    with pytest.raises(SolverError, match="the point never moves along"):
        made.value_and_grad(made.x0)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (NEAREST | {"marker": "tip"}, "objective.0.marker: there is no marker of that name"),
        (TOUCH | {"obstacle": "wall"}, "objective.0.obstacle: there is no obstacle of that name"),
        (NEAREST | {"window": [0.1, 3.0]}, "objective.0.window: outside the simulated time"),
        (NEAREST | {"softness": 0}, "objective.0.softness"),
        (NEAREST | {"moving": [0, 0, 0]}, "objective.0.moving"),
    ],
)
def test_bad_entries_are_named(entry, words):
    with pytest.raises(InputError, match=words.replace(".", r"\.")):
        problem(entry)


def test_gauss_newton_refuses_them():
    made = problem(NEAREST, optimizer={"method": "gauss-newton"})
    with pytest.raises(InputError, match="Gauss-Newton needs sums of squares: SoftMinimum is not"):
        made.optimizer.run(made)


def test_without_a_run_it_says_so():
    part = problem(NEAREST).experiments[0].objective.objectives[0]
    with pytest.raises(ValueError, match="remembers its run"):
        replace(part).step_value(build(scene_from_dict(BOUNCE)).run(n_steps=1).state(0), np.zeros(0))
