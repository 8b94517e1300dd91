"""Impacts within a step: places and gradients that do not depend on the phase of the steps."""

import json

import numpy as np
import pytest
from support.impulse_scenes import CUBE, end_and_slopes, scene
from support.places import SPECS
from support.run_checks import check_gradient_of_run
from support.small_models import RoughObjective

import add
from add.errors import InputError
from add.hard_contact.impulse_coupling import CarriedImpulses


def two_balls(x, v, m=(1.0, 1.0), e=1.0, *, steps: int, end=1.0, radius=0.1, impact_time="linear") -> dict:
    """Balls on a line, without gravity."""
    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": radius}}
    raw = scene({}, dt=end / steps, steps=steps, friction=0.0, gravity=(0, 0, 0))
    raw["bodies"] = {
        name: ball | {"mass": m[k], "position": [x[k], 0, 0], "velocity": [v[k], 0, 0]} for k, name in enumerate("ab")
    }
    raw["obstacles"] = {}
    raw["contact"] |= {
        "between_bodies": True, "impact_time": impact_time, "pairs": [{"between": ["a", "b"], "restitution": e}]
    }  # fmt: skip
    return raw


STARTS = [f"bodies.{name}.{key}.0" for key in ("position", "velocity") for name in "ab"]


@pytest.mark.parametrize("steps", [20, 37, 64, 100])
@pytest.mark.parametrize("phase", [0.0, 0.3, 0.5, 0.99])
def test_two_elastic_balls(steps: int, phase: float) -> None:
    """The second ball ends where the first would have: (1, 0, 1, 0) by (x_1, x_2, v_1, v_2), whatever the steps."""
    x_2 = 0.52 + phase / steps
    x, slopes = end_and_slopes(two_balls((0.0, x_2), (1.0, 0.0), steps=steps), 6, *STARTS)
    assert x == pytest.approx(1.2, abs=1e-12)
    assert slopes == pytest.approx([1.0, 0.0, 1.0, 0.0], abs=1e-11)


def test_without_times_the_gradient_depends_on_the_phase() -> None:
    """On request: places of first order, and a gradient that is not (1, 0, 1, 0)."""
    x, slopes = end_and_slopes(two_balls((0.0, 0.523), (1.0, 0.0), steps=100, impact_time="step"), 6, *STARTS)
    assert x == pytest.approx(1.2, abs=0.02)
    assert np.abs(np.array(slopes) - [1.0, 0.0, 1.0, 0.0]).max() > 0.1


@pytest.mark.parametrize("steps", [29, pytest.param(100, marks=pytest.mark.slow)])
def test_reference_impacts(steps: int) -> None:
    """Two balls of other masses, speeds and restitutions: places and gradients of both."""
    path = SPECS / "articulated" / "reference" / "contact" / "impacts.json"
    if not path.exists():
        pytest.skip(f"no reference at {path}")
    cases = [case for case in json.loads(path.read_text()) if case["kind"].startswith("two balls")]
    assert len(cases) == 10
    for case in cases:
        raw = two_balls(
            (case["x1"], case["x2"]), (case["v0"], case["u0"]), (case["m1"], case["m2"]), case["restitution"],
            steps=steps, end=case["T"], radius=case["radius"],
        )  # fmt: skip
        for row, key in ((0, "x1_end"), (6, "x2_end")):
            x, slopes = end_and_slopes(raw, row, *STARTS)
            assert x == pytest.approx(case[key], abs=1e-11)
            assert slopes == pytest.approx(list(case[f"gradient_{key}"].values()), abs=1e-11)


def drop(case: dict, steps: int) -> np.ndarray:
    """A ball that is dropped and bounces: its height at the end, and the derivatives by height, speed, restitution."""
    ball = {
        "geometry": {"shape": "sphere", "radius": 0.05}, "mass": 0.2,
        "position": [0, 0, case["h"] + 0.05], "velocity": [0, 0, case["v"]],
    }  # fmt: skip
    pairs = [{"body": "body", "obstacle": "floor", "restitution": case["restitution"]}]
    raw = scene(ball, dt=case["T"] / steps, steps=steps, friction=0.0, gravity=(0, 0, -case["g"]), pairs=pairs)
    raw["contact"]["impact_time"] = "linear"
    x, slopes = end_and_slopes(
        raw, 2, "bodies.body.position.2", "bodies.body.velocity.2", "contact.pairs.0.restitution"
    )
    return np.array([x - 0.05, *slopes])


def test_reference_drops() -> None:
    """Under gravity the method is of order one, in its gradients, too; two runs together are better."""
    path = SPECS / "articulated" / "reference" / "contact" / "impacts.json"
    if not path.exists():
        pytest.skip(f"no reference at {path}")
    cases = [case for case in json.loads(path.read_text()) if case["kind"].startswith("ball dropped")]
    assert len(cases) == 6
    for case in cases:
        exact = np.array([case["height_end"], *case["gradient"].values()])
        coarse, fine = drop(case, 150), drop(case, 300)
        first, second = np.abs(coarse - exact).max(), np.abs(fine - exact).max()
        assert second < 0.06 and second < 0.75 * first
        assert np.abs(2.0 * fine - coarse - exact).max() < 0.02


def impacts(run) -> tuple[int, int]:
    """Return how many pairs bounced within a step, and how many at its beginning."""
    kept = [CarriedImpulses.of(record.carry).near for record in run.records]
    return sum(int(near.timed.sum()) for near in kept), sum(int((near.impact & ~near.timed).sum()) for near in kept)


def test_gradient_of_a_cube_that_lands_flat() -> None:
    """Four corners at one time are one impact."""
    body = CUBE | {"position": [0, 0, 0.1413], "velocity": [0.5, 0.2, -1.0]}
    raw = scene(body, dt=0.004, steps=40, pairs=[{"body": "body", "obstacle": "floor", "restitution": 0.6}])
    raw["contact"]["impact_time"] = "linear"
    built = add.scene_from_dict(raw).build()
    timed, at_once = impacts(built.run())
    assert timed == 4 and at_once == 0
    check_gradient_of_run(built.simulation, RoughObjective(np.random.default_rng(3).normal(size=6)))


def test_gradient_of_a_tumbling_cube() -> None:
    """Every number of theta, through timed impacts of single corners under gravity."""
    body = CUBE | {
        "position": [0, 0, 0.25], "orientation": [0.9621028, 0.2025480, 0.1519110, 0.1012740],
        "velocity": [0.8, 0.1, -0.5], "angular_velocity": [1, 5, 2],
    }  # fmt: skip
    raw = scene(
        body, dt=0.004, steps=110, friction=0.1, pairs=[{"body": "body", "obstacle": "floor", "restitution": 0.5}]
    )
    raw["bodies"]["body"]["geometry"] = {"shape": "box", "size": [0.2, 0.15, 0.1]}
    raw["contact"]["impact_time"] = "linear"
    built = add.scene_from_dict(raw).build()
    timed, _ = impacts(built.run())
    assert timed >= 2
    check_gradient_of_run(built.simulation, RoughObjective(np.random.default_rng(1).normal(size=6)))


def test_a_ball_rests_after_its_bounces() -> None:
    """Slow approaches come to rest at the end of the gap: no sinking in, no trembling."""
    ball = {"geometry": {"shape": "sphere", "radius": 0.05}, "mass": 0.2, "position": [0, 0, 0.15]}
    raw = scene(
        ball, dt=2e-3, steps=700, friction=0.3, pairs=[{"body": "body", "obstacle": "floor", "restitution": 0.4}]
    )
    raw["contact"]["impact_time"] = "linear"
    run = add.scene_from_dict(raw).build().run()
    height = run.q[:, 2] - 0.05
    assert height.min() > -1e-4
    assert abs(height[-1]) < 1e-9 and np.abs(run.v[-1]).max() < 1e-9
    # The run's picture is where the ball is, not where the step without its time would have left it.
    assert np.array_equal(run.kinematics(72).q, run.q[72])


@pytest.mark.parametrize(("key", "value"), [("impact_time", "step"), ("friction_cone", "pyramid")])
def test_other_laws_refuse(key: str, value: str) -> None:
    raw = scene(CUBE, dt=0.01, steps=3)
    raw["contact"] |= {"friction_law": "tanh", key: value}
    with pytest.raises(InputError, match="'tanh' does not know this") as caught:
        add.scene_from_dict(raw)
    assert caught.value.place == f"contact.{key}"
