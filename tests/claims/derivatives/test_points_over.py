"""Points, and the frames of a recording, in many states at once against one state after the other."""

from dataclasses import replace

import numpy as np
import pytest
from derivatives.test_lift import crowd, joint_sites, lifted
from derivatives.test_point_maps import POINT_MAPS
from derivatives.test_trees import scene

from add.equations.kinematics import (
    Columns,
    Directions,
    Kinematics,
    StateTangent,
    StateTangents,
    StretchTangents,
    generic,
)
from add.equations.points import Along, LiftedPoints, PointMap
from add.equations.sites import SitePoints
from add.objectives import Cauchy, Tracking
from add.objectives.base import Placement
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene


def assert_as_one_by_one(points: PointMap, q: np.ndarray, v: np.ndarray, theta: np.ndarray, seed: int) -> None:
    """Places, rates and their tangents along three directions, and the numbers that they depend on."""
    rng = np.random.default_rng(seed)
    (k, n), c = q.shape, 3
    q_dot, v_dot, theta_dot = rng.normal(size=(k, c, n)), rng.normal(size=(k, c, n)), rng.normal(size=(c, theta.size))
    found, moved = points.points_over(q, v, theta), points.jvp_over(Along(q, v, theta), Along(q_dot, v_dot, theta_dot))
    assert max(np.abs(part).max() for part in moved) > 0.0
    for j in range(k):
        kin = Kinematics(q[j], v[j], v[j], 0.0, 0)
        one = Along(q[j : j + 1], v[j : j + 1], theta)
        wanted = points.jvp_over(one, Along(q_dot[j : j + 1], v_dot[j : j + 1], theta_dot))
        for a, b, a_dot, b_dot in zip(found, points.points(kin, theta), moved, wanted, strict=True):
            np.testing.assert_allclose(a[j], b, rtol=1e-13, atol=1e-13)
            np.testing.assert_allclose(a_dot[j], b_dot[0], rtol=1e-12, atol=1e-12)
        bar, by_q, by_v, by_theta = generic(3 * points.n_points).reshape(-1, 3), *np.zeros((2, n)), np.zeros(theta.size)
        points.vjp(kin, theta, bar, bar, Along(by_q, by_v, by_theta))
        assert set(np.flatnonzero(by_theta)) <= set(points.numbers.tolist())


@pytest.mark.parametrize("name", POINT_MAPS)
def test_points_on_nodes(name: str, rng: np.random.Generator) -> None:
    assert_as_one_by_one(POINT_MAPS[name], rng.normal(size=(4, 18)), rng.normal(size=(4, 18)), rng.normal(size=5), 1)


def test_points_on_bodies_and_links(rng: np.random.Generator) -> None:
    """On a free body and on links of two trees, with balls; every placement is a number of theta."""
    raw = scene()
    raw["markers"]["corner"] = {"body": "block", "point": [0.1, 0.1, 0.1]}
    built = scene_from_dict(raw).build()
    q, v = built.model.initial.evaluate(built.theta)
    many = q + 0.3 * rng.normal(size=(4, q.size)), v + rng.normal(size=(4, q.size))
    assert built.markers.numbers.size > 20
    assert_as_one_by_one(built.markers, *many, built.theta, 2)


def test_points_on_rows_of_any_embedding(rng: np.random.Generator) -> None:
    lift, kin = lifted(rng, crowd(seed=5).kin)
    many = kin.q + 0.1 * rng.normal(size=(3, kin.q.size)), kin.v + rng.normal(size=(3, kin.q.size))
    assert_as_one_by_one(LiftedPoints(SitePoints(joint_sites()), lift), *many, rng.normal(size=6), 3)


def swinging() -> BuiltScene:
    """Two links, with markers on one of them."""
    link = {"mass": 0.7, "center_of_mass": [0.02, -0.03, -0.1], "inertia": [0.02, 0.03, 0.025, 0.001, -0.002, 0.003]}
    raw = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 9},
        "bodies": {"arm": {
            "type": "articulated", "links": {"upper": link, "lower": link},
            "joints": {"upper": {"axis": [0, 1, 0], "rate": 3.0},
                       "lower": {"parent": "upper", "position": [0.1, 0, -0.2], "axis": [1, 1, 0], "rate": -5.0}},
        }},
        "markers": {"tip": {"body": "arm/lower", "point": [0, 0, -0.2]},
                    "along": {"body": "arm/upper", "direction": [0, 0.6, 0.8]}},
    }  # fmt: skip
    return scene_from_dict(raw).build()


@pytest.mark.parametrize(
    ("loss", "clock", "place"), [(None, None, False), (Cauchy(0.05), None, True), (Cauchy(0.05), 3, True)]
)
def test_frames_of_several_steps(loss: Cauchy | None, clock: int | None, place: bool, rng: np.random.Generator) -> None:
    """Frames at their own rate, some of them missing, one at the start, some beyond the end, seen in one plane.

    With a clock, an entry of theta that nothing else reads here, those beyond the end see the last state. Entries of
    theta that place the recording stand for their like; they turn, move and scale what was recorded.
    """
    built = swinging()
    theta, run, n = built.theta, built.run(), 2
    times = np.concatenate([[0.0], np.arange(1, 25) * 0.0041])
    shape = (times.size, built.markers.n_points)
    weights = rng.uniform(0.5, 1.5, shape) * (rng.uniform(size=shape) > 0.3)
    tracking = Tracking(
        built.markers, built.simulation.stepper.dt, times, rng.normal(size=(*shape, 3)), weights,
        np.diag([1.0, 0.0, 1.0]), loss=loss, clock=clock, clock_start=0.0 if clock is None else theta[clock] - 2e-3,
        last=run.n_steps, placement=Placement(np.arange(4, 7), np.arange(7, 10), 10, np.ones(3)) if place else None,
    )  # fmt: skip
    by_step = [tracking.step_residuals(run.state(k), theta) for k in range(10)]
    assert sum(part.size for part in by_step) == 3 * np.count_nonzero(
        weights if clock else weights[times <= 0.09 + 1e-9]
    )
    np.testing.assert_allclose(tracking.run_residuals(run, theta), np.concatenate(by_step), atol=1e-14)
    # States 6 to 9, whose first one's interval begins at state 5; direction 2 moves theta alone.
    directions = Directions.of(rng.normal(size=(theta.size, 3)) * (rng.uniform(size=(theta.size, 1)) > 0.5))
    q, v = rng.normal(size=(2, 5, 2, n))
    last = StateTangents(np.array([0, 1]), StateTangent(q[[4, 3]].transpose(0, 2, 1), v[[4, 3]].transpose(0, 2, 1)))
    stretch = StretchTangents(np.array([0, 1]), q, v, last)
    assert stretch.n == 4
    steps = [
        tracking.step_residual_tangents(run.state(6 + k), theta, dot, directions)
        for k, dot in enumerate(stretch.states())
    ]
    found = tracking.stretch_residual_tangents(run, 6, theta, stretch, directions)
    wanted = np.concatenate([part.values for part in steps])
    assert wanted.shape[0] >= 20 and np.array_equal(found.index, [0, 1, 2]) and np.abs(wanted[:, 2]).max() > 0.1
    np.testing.assert_allclose(found.values, wanted, rtol=1e-10, atol=1e-12 * np.abs(wanted).max())
    plain: Columns = super(Tracking, tracking).stretch_residual_tangents(run, 6, theta, stretch, directions)
    np.testing.assert_array_equal(plain.values, wanted)


def test_displacements_are_looked_at_state_by_state(rng: np.random.Generator) -> None:
    built = swinging()
    shape = (3, built.markers.n_points)
    positions = Tracking(
        built.markers, built.simulation.stepper.dt, np.array([0.01, 0.015, 0.03]), rng.normal(size=(*shape, 3)),
        np.ones(shape), np.eye(3),
    )  # fmt: skip
    tracking, run = replace(positions, reference=0.005).for_run(), built.run()
    found = tracking.run_residuals(run, built.theta)
    again = replace(positions, reference=0.005).for_run()
    wanted = np.concatenate([again.step_residuals(state, built.theta) for state in run.states()])
    np.testing.assert_array_equal(found, wanted)
    assert found.size == 18 and np.abs(found - positions.run_residuals(run, built.theta)).max() > 0.1
