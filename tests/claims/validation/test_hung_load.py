"""A load on a string: a cable that pulls and never pushes, against the pendulum, its tension and a parabola."""

import numpy as np
import pytest
from scipy.special import ellipk

from add.scene import scene_from_dict

LENGTH, MASS, STIFFNESS, GRAVITY = 0.25, 0.052, 2e5, 9.81


def hung(place, velocity=(0.0, 0.0, 0.0), dt=1e-3, duration=1.0, **more):
    """A weight on a string from the world's origin."""
    return {
        "schema": "add-scene/1",
        "time": {"dt": dt, "duration": duration, "newton": {"atol": 1e-12, "rtol": 1e-10}},
        "bodies": {"weight": {"type": "particles", "mesh": {"points": [list(place)]}, "mass": MASS,
                              "velocity": list(velocity)}},
        "couplings": {"string": {"type": "cable", "a": {"body": None, "at": [0, 0, 0]},
                                 "b": {"body": "weight", "at": list(place)}, "stiffness": STIFFNESS,
                                 "damping": 5.0, "length": LENGTH}},
        "markers": {"weight": {"body": "weight", "nodes": [0]}},
    } | more  # fmt: skip


def path(raw):
    run = scene_from_dict(raw).build().run()
    return run.t, np.array([run.kinematics(k).q for k in range(run.n_steps + 1)])


@pytest.mark.slow
def test_pendulum_and_its_tension():
    """Period 4 sqrt(L/g) K(sin^2(angle/2)) of a swing of 60 degrees; tension m g (3 - 2 cos) at the bottom."""
    angle = np.pi / 3
    period = 4.0 * np.sqrt(LENGTH / GRAVITY) * ellipk(np.sin(angle / 2) ** 2)
    start = (LENGTH + MASS * GRAVITY * np.cos(angle) / STIFFNESS) * np.array([np.sin(angle), 0, -np.cos(angle)])
    t, q = path(hung(start, duration=0.9))
    (first, second) = np.flatnonzero(np.diff(np.sign(q[:, 0])))[:2]
    crossings = [t[k] + (t[k + 1] - t[k]) * q[k, 0] / (q[k, 0] - q[k + 1, 0]) for k in (first, second)]
    assert 2.0 * (crossings[1] - crossings[0]) == pytest.approx(period, rel=1e-3)
    tension = STIFFNESS * (np.linalg.norm(q, axis=1) - LENGTH)
    bottom = tension[first - 5 : first + 6].mean()
    assert bottom == pytest.approx(MASS * GRAVITY * (3.0 - 2.0 * np.cos(angle)), rel=5e-3)
    assert np.abs(np.linalg.norm(q[100:], axis=1) / LENGTH - 1.0).max() < 1e-4, "it hardly stretches"


def test_slack_string_leaves_a_parabola():
    """Thrown up from below, the weight flies freely until the string is taut again, and is then held."""
    start, velocity = np.array([0, 0, -LENGTH]), np.array([0.3, 0, 1.5])
    t, q = path(hung(start, velocity, duration=0.6))
    free = start + velocity * t[:, None] - 0.5 * GRAVITY * t[:, None] ** 2 * np.array([0, 0, 1])
    slack = np.linalg.norm(free, axis=1) < LENGTH
    taut = int(np.flatnonzero(~slack[1:])[0]) + 1
    assert 0.2 < t[taut] < 0.5
    assert np.abs(q[:taut] - free[:taut]).max() < 2e-5
    assert np.linalg.norm(q, axis=1).max() < 1.01 * LENGTH
    assert np.linalg.norm(free[-1]) > 1.2 * LENGTH, "without the string it would be gone"


def test_gradient_by_mass_and_length():
    """A weight that falls into its string below a soft block moves its marker; slack first, then taut."""
    raw = hung([0.05, 0, -0.2], dt=2e-3, duration=0.1)
    raw["bodies"]["block"] = {
        "type": "soft", "mesh": {"shape": "box", "size": [0.04, 0.02, 0.02], "divisions": [2, 1, 1]},
        "material": {"young": 5e4, "poisson": 0.3, "density": 1000, "viscosity": 20},
        "pins": [{"where": {"box": {"max": [-0.0199, None, None]}}}],
    }  # fmt: skip
    raw["couplings"]["string"] |= {"a": {"body": "block", "at": [0.02, 0, 0]}, "stiffness": 2e4, "length": 0.2}
    raw["markers"]["tip"] = {"body": "block", "point": [0.02, 0, 0]}
    raw["objective"] = [{"type": "point", "marker": "tip", "target": [0, 0, 0], "time": "end"},
                        {"type": "point", "marker": "weight", "target": [0, 0, 0], "time": 0.05}]  # fmt: skip
    raw["parameters"] = [{"path": "bodies.weight.mass", "transform": "log"}, {"path": "couplings.string.length"}]
    problem = scene_from_dict(raw).inverse_problem()
    _, runs = problem.value(problem.x0)
    run, built = runs["scene"], scene_from_dict(raw).build()
    names = [built.marker_names.index(name) for name in ("tip", "weight")]
    ends = np.array([built.markers.points(run.kinematics(k), built.theta)[0][names] for k in range(run.n_steps + 1)])
    taut = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1) > 0.2
    assert 5 <= taut.sum() < run.n_steps and taut[-1]
    _, gradient = problem.value_and_grad(problem.x0)[:2]
    h = 1e-5
    for k, step in enumerate(np.eye(2) * h):
        ends = [problem.value(problem.x0 + f * step)[0] for f in (-2, -1, 1, 2)]
        assert (8 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / (12 * h) == pytest.approx(gradient[k], rel=1e-5)
