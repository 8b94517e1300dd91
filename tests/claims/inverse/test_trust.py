"""The figure of trust in a gradient: growth of slopes along a run, and how far gradients nearby are a line."""

import numpy as np
import pytest

from add import scene_from_dict
from add.commands.check_gradient import GROWTH, STRAIGHT, GradientCheck, check_gradients, taylor_rates, trust
from add.commands.report_texts import gradient_text
from add.errors import SolverError


def pendulum(seconds):
    """A double pendulum of two rods on a tree, released at 2.5 rad."""
    rod = {"mass": 1.0, "inertia": [0.02, 0.02, 1e-4, 0, 0, 0], "center_of_mass": [0, 0, -0.25]}
    lower = {"parent": "upper", "axis": [0, 1, 0], "position": [0, 0, -0.5]}
    joints = {"upper": {"axis": [0, 1, 0], "value": 2.5}, "lower": lower}
    return scene_from_dict({
        "schema": "add-scene/1", "time": {"dt": 0.005, "duration": seconds, "integrator": "bdf2"},
        "bodies": {"p": {"type": "articulated", "links": {"upper": rod, "lower": rod}, "joints": joints}},
    }).build()  # fmt: skip


def found(built, path):
    """Return the trust in the gradient of the first coordinate at the end by a vector of numbers."""
    value = built.numbers.values[built.numbers.place(path)]

    def gradient(point):
        run = built.rollout({path: point})
        q_bar = np.zeros_like(run.q)
        q_bar[-1, 0] = 1.0
        return run.vjp(q_bar)[path]

    tangent, _ = built.rollout({path: value}).jvp({path: np.eye(value.size)[0]})
    return trust(tangent[None], gradient, value, gradient(value), np.full(value.size, np.abs(value).max()), 0)


def test_chaos_is_seen_and_flight_is_not():
    """In free flight slopes grow as time and are the same nearby; beyond the horizon of a pendulum neither holds."""
    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1, "velocity": [1.0, 0, 0]}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 100}, "bodies": {"b": ball}}
    growth, signal = found(scene_from_dict(raw).build(), "bodies.b.velocity")
    assert growth == pytest.approx(2.0, rel=1e-6) and signal > 1e6
    short, long = (found(pendulum(seconds), "bodies.p.joints.upper.value") for seconds in (1.0, 5.0))
    assert short[0] < 5.0 < GROWTH < long[0] and long[1] < STRAIGHT < 50.0 < short[1]
    said = [
        GradientCheck("p", 1, 1.0, 1.0, (), (2.0,), 0.0, {}, 1, growth=growth, signal=signal).warnings
        for growth, signal in (short, long)
    ]
    assert not said[0] and "to be trusted with care" in said[1][0]


def test_a_valley_is_no_chaos():
    """Gradients that change their sign at a minimum are a line; those of sin(1/x) near zero are none."""
    growing, one = np.ones((1, 3, 1)), np.ones(2)

    def signal(gradient, s):
        return trust(growing, gradient, s, gradient(s), one, 0)[1]

    assert signal(lambda s: 3.0 * s, np.zeros(2)) == np.inf
    assert signal(lambda s: 3.0 * s + s**2, np.zeros(2)) > 30.0
    assert signal(lambda s: np.sin(1e3 / (s + 1.0)), np.zeros(2)) < STRAIGHT
    assert np.isnan(signal(lambda s: s if s[0] == 0.0 else failing(), np.zeros(2)))


def test_numbers_at_their_limits_stay_within():
    """Below an armature of zero a wheel turns against what drives it: 1 % of a kilogram goes one way."""
    wheel = {"mass": 1e-3, "inertia": [1e-3] * 3 + [0] * 3}

    def scene(armature):
        body = {
            "type": "articulated", "links": {"w": wheel},
            "joints": {"w": {"axis": [0, 1, 0], "armature": armature}},
            "drives": {"d": {"joint": "w", "type": "torque", "input": 0.01}},
        }  # fmt: skip
        return scene_from_dict({
            "schema": "add-scene/1", "time": {"dt": 0.01, "steps": 10}, "bodies": {"b": body},
            "markers": {"m": {"body": "b/w", "point": [0.1, 0, 0]}},
            "objective": [{"type": "point", "marker": "m", "target": [0, 0, 0.1], "time": "end"}],
        })  # fmt: skip

    numbers = scene(0.0).build().numbers
    ways = [numbers.inward()[numbers.place(f"bodies.b.{path}")].max() for path in ("joints.w.armature", "links.w.mass")]
    assert ways == [1.0, 0.0]
    (check,) = check_gradients(scene(0.0))
    (armature,) = (p for p in check.parameters if p.name.endswith("armature"))
    (moved,) = check_gradients(scene(0.01 * armature.scale))
    assert armature.coarse == pytest.approx((moved.value - check.value) / 0.01, rel=1e-6)


def failing():
    """Fail as a run does."""
    raise SolverError("no solution")


def test_an_objective_that_nothing_moves_says_so():
    """An objective that is 0 and that no number moves is not confirmed, and it is said why."""
    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1}
    raw = {
        "schema": "add-scene/1", "time": {"dt": 0.01, "steps": 20}, "gravity": [0, 0, 0], "bodies": {"b": ball},
        "markers": {"m": {"body": "b", "point": [0, 0, 0]}},
        "objective": [{"type": "point", "marker": "m", "target": [0, 0, 0], "time": "end"}],
    }  # fmt: skip
    (check,) = check_gradients(scene_from_dict(raw), n_steps=20)
    assert check.passed and "nothing moves it" not in gradient_text(check)  # to second order it is moved
    assert "nothing moves it" in gradient_text(check._replace(taylor_rates=(np.nan, np.nan)))


def test_targets_drawn_for_a_check_are_said_to_be():
    """The objective of a scene without one is named as drawn, that of a scene with one is not."""
    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1}
    raw = {
        "schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"b": ball},
        "markers": {"m": {"body": "b", "point": [0, 0, 0]}},
    }  # fmt: skip
    judged = raw | {"objective": [{"type": "point", "marker": "m", "target": [1, 0, 0], "time": "end"}]}
    (drawn,), (own,) = (check_gradients(scene_from_dict(item)) for item in (raw, judged))
    assert drawn.drawn and "(of targets drawn for the check: the" in gradient_text(drawn)
    assert not own.drawn and "1 step, objective 1, contact" in gradient_text(own).replace("1.00000", "1")


def test_a_clock_that_reads_much_is_checked_by_moments(tmp_path):
    """A gradient by a time offset of minutes, of a swing of a tenth of a second, is confirmed."""
    rows = [f"{600 + 0.01 * k},{0.01 * np.sin(60 * 0.01 * k)},0,0" for k in range(21)]
    (tmp_path / "take.csv").write_text("\n".join(["time_s,m_x_m,m_y_m,m_z_m", *rows]))
    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1}
    spring = {"type": "spring", "a": {"at": [0, 0, 0]}, "b": {"body": "ball"}, "stiffness": 3600, "length": 0}
    raw = {
        "schema": "add-scene/1", "time": {"dt": 0.005, "steps": 30}, "gravity": [0, 0, 0],
        "bodies": {"ball": ball | {"velocity": [0.5, 0, 0]}}, "couplings": {"spring": spring},
        "markers": {"m": {"body": "ball", "point": [0, 0, 0]}}, "objective": [{"type": "markers"}],
        "recording": {"file": str(tmp_path / "take.csv"), "markers": {"m": "m"}, "time_offset": 600.003},
        "parameters": [{"path": "recording.time_offset"}],
    }  # fmt: skip
    (check,) = check_gradients(scene_from_dict(raw), free=False)
    assert check.passed and any(item.name == "recording.time_offset" and item.adjoint for item in check.parameters)


def test_links_that_are_turned_by_pi_have_no_targets_that_jump():
    """A rotation vector of pi and one a little further are a turn apart: a slope over 1 % saw 147 m^2 a radian."""
    rod = {"mass": 1.0, "inertia": [0.02, 0.02, 1e-4, 0, 0, 0], "center_of_mass": [0, 0, -0.25]}
    turned = {"axis": [0, 1, 0], "orientation": [0, 1, 0, 0]}
    joints = {"upper": turned, "lower": {"parent": "upper", "axis": [1, 0, 0], "position": [0.1, 0.2, -0.5]}}
    (found,) = check_gradients(scene_from_dict({
        "schema": "add-scene/1", "time": {"dt": 0.005, "steps": 4},
        "bodies": {"p": {"type": "articulated", "links": {"upper": rod, "lower": rod}, "joints": joints}},
    }))  # fmt: skip
    assert found.passed and found.drawn
    assert max(abs(p.coarse - p.adjoint) for p in found.parameters) < found.norm
    turns = [p.adjoint for p in found.parameters if p.name.startswith("bodies.p.joints.upper.orientation")]
    assert len(turns) == 3 and all(turns)


@pytest.mark.parametrize(("wrong", "order"), [(0.0, 2.0), (1e-3, 1.0)])
def test_orders_are_found_where_replayed_branches_end_early(wrong: float, order: float) -> None:
    """A stiff impact held 1e-5 away has no solution: the order is that of smaller steps, and a wrong slope is seen."""

    def value(h: float) -> float:
        if h > 4e-6:
            raise SolverError("no solution on this branch")
        return 1.0 + 2.0 * h + 3.0 * h * h

    assert taylor_rates(value, 1.0, 2.0 * (1.0 + wrong)) == pytest.approx((order, order), abs=0.02)
