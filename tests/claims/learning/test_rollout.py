"""One run as a differentiable function of named inputs."""

import numpy as np
import pytest
from support.places import SCENES
from support.pushed_ball import STEPS, own_values, pushed_ball, touching_steps

from add import load_scene, scene_from_dict
from add.adjoint import Cotangents, pullback
from add.errors import InputError, SolverError
from add.scene.build.built import BuiltScene


@pytest.fixture(scope="module")
def built() -> BuiltScene:
    return pushed_ball()


def state_inputs(built: BuiltScene, pairs: bool) -> dict[str, np.ndarray]:
    """The inputs with a state to begin with: of the start, or with its history from the middle, in contact."""
    state = built.run().state(3 if pairs else 0)
    part = slice(None) if pairs else 0
    return own_values(built) | {"state.q": state.q[part], "state.v": state.v[part]}


def test_states_are_those_of_the_run(built):
    found = built.rollout(own_values(built))
    run = built.run()
    assert np.array_equal(found.q, run.q) and np.array_equal(found.v, run.v) and np.array_equal(found.t, run.t)
    assert found.q.shape == (STEPS + 1, 6)
    assert 4 < touching_steps(run.records) < STEPS


@pytest.mark.parametrize("law", ["linear", "tanh"])
@pytest.mark.parametrize("pairs", [None, False, True])
def test_both_derivatives_are_those_of_differences(law, pairs, rng):
    """Of parameters, controls and initial states (at a start, and with a history), with contact made."""
    contact = {"stiffness": 4000, "friction": 0.3, "friction_law": law, "damping": 2, "onset": 0.002}
    built = pushed_ball(contact=contact)
    inputs = own_values(built) if pairs is None else state_inputs(built, pairs)
    step, n_steps = (3, 12) if pairs else (None, STEPS)
    runs = built.rollout(inputs, n_steps=n_steps, step=step)
    assert touching_steps(runs.trajectory.records) > 4
    bars = rng.normal(size=(2, *runs.q.shape))
    pulled = runs.vjp(*bars)
    for name, value in inputs.items():
        dot = rng.normal(size=value.shape) * np.maximum(np.abs(value).max(), 0.1)
        h = 1e-6
        ends = [built.rollout(inputs | {name: value + s * h * dot}, n_steps=n_steps, step=step) for s in (1, -1)]
        differences = [(a - b) / (2 * h) for a, b in ((ends[0].q, ends[1].q), (ends[0].v, ends[1].v))]
        pushed = runs.jvp({name: dot})
        for found, expected in zip(pushed, differences, strict=True):
            assert np.allclose(found, expected, rtol=1e-5, atol=2e-6 * max(np.abs(expected).max(), 1e-3)), name
        slope = float((pulled[name] * dot).sum())
        assert slope == pytest.approx(sum(float((b * d).sum()) for b, d in zip(bars, pushed, strict=True)), rel=1e-9)
        assert pulled[name].shape == value.shape
        # Given coordinates replace the velocity that the scene says: nothing depends on it.
        assert (abs(slope) > 1e-6) != (pairs is not None and name == "bodies.ball.velocity"), name


def test_the_pull_back_is_that_of_theta(built, rng):
    inputs = own_values(built)
    runs = built.rollout(inputs)
    bars = rng.normal(size=(2, *runs.q.shape))
    theta_bar = pullback(built.simulation, runs.trajectory, built.theta, Cotangents(*bars))
    s_bar = built.numbers.ties.pullback(built.numbers.values, theta_bar)
    for name, bar in runs.vjp(*bars).items():
        assert np.array_equal(bar, s_bar[built.numbers.place(name)])


def test_entries_and_rows_are_inputs(built):
    whole = own_values(built)["signals.push.values"]
    moved = whole.copy()
    moved[3, 0] += 0.5
    one = built.rollout({"signals.push.values.3.0": moved[3, 0]})
    assert np.array_equal(one.q, built.rollout({"signals.push.values": moved}).q)
    bars = np.ones_like(one.q)
    assert one.vjp(bars)["signals.push.values.3.0"].shape == ()


def test_a_batch_is_a_loop_to_the_bit(built, rng):
    inputs = {
        name: value * (1.0 + 0.01 * rng.normal(size=(3, *value.shape)))
        for name, value in state_inputs(built, False).items()
    }
    runs = built.rollouts(inputs, workers=2)
    bars = rng.normal(size=(2, *runs.batch.q.shape))
    dots = {name: rng.normal(size=value.shape) for name, value in inputs.items()}
    pulled, pushed = runs.pullback(*bars), runs.pushforward(dots)
    for k in range(3):
        one = built.rollout({name: value[k] for name, value in inputs.items()})
        assert np.array_equal(one.q, runs.batch.q[k])
        alone = one.vjp(*bars[:, k])
        assert all(np.array_equal(alone[name], pulled[name][k]) for name in inputs)
        for found, expected in zip(one.jvp({name: dot[k] for name, dot in dots.items()}), pushed, strict=True):
            assert np.array_equal(found, expected[k])


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"bodies.ball.colour": 1.0}, "bodies.ball.colour: this number cannot be a parameter"),
        ({"time.dt": 0.1}, "time.dt: this number cannot be a parameter"),
        (
            {"bodies.ball.velocity": [1.0, 2.0]},
            r"bodies.ball.velocity: the values of an input do not fit \(found shape",
        ),
        ({"bodies.ball.velocity.7": 1.0}, "bodies.ball.velocity.7: there is no such entry"),
        (
            {"bodies.ball.velocity": [1.0, np.nan, 0.0]},
            r"bodies.ball.velocity: .* not a finite number \(found nan at \[1\]",
        ),
        ({"bodies.ball.mass": -1.0}, r"bodies.ball.mass: impossible value \(found -1; expected > 0\)"),
        ({"contact.friction": -0.1}, r"contact.friction: impossible value \(found -0.1; expected >= 0\)"),
        ({"bodies.ball.velocity": [0, 0, 0], "bodies.ball.velocity.1": 0}, "two inputs set one number"),
        ({"state.q": np.zeros(6)}, "state.v: an initial state is coordinates and velocities"),
        ({"state.q": np.zeros(5), "state.v": np.zeros(5)}, r"state.q: these are no coordinates .* expected \(6,\)"),
        ({"state.q": np.full(6, np.inf), "state.v": np.zeros(6)}, "state.q: an input is not a finite number"),
        ({"bodies.ball.mass": "heavy"}, r"bodies.ball.mass: these are no numbers \(found 'heavy'"),
        ({"bodies.ball.mass": 1j}, r"bodies.ball.mass: these are no numbers"),
        ({"bodies.ball.velocity": [[1], [2, 3]]}, r"bodies.ball.velocity: these are no numbers"),
        ({3: 1.0}, r"an input is named by its path \(found 3"),
    ],
)
def test_bad_inputs_are_named(built, inputs, words):
    with pytest.raises(InputError, match=words):
        built.rollout(inputs)


def test_members_of_a_batch_are_named(built):
    with pytest.raises(InputError, match=r"member 1: bodies.ball.mass: impossible value"):
        built.rollouts({"bodies.ball.mass": [1.0, 0.0]})


@pytest.mark.parametrize("step", [None, 0])
def test_a_state_with_a_history_has_steps_behind_it(built, step):
    """Without their number its time is not known, which signals are functions of."""
    with pytest.raises(InputError, match=r"step: a state with a history has steps behind it \(found"):
        built.rollout(state_inputs(built, True), step=step)
    with pytest.raises(InputError, match=r"step: impossible number \(found -1"):
        built.rollout(state_inputs(built, True), step=-1)


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2", "exact"])
def test_coordinates_of_one_time_may_have_steps_behind_them(integrator, rng):
    """Signals are then at their time, and BDF2 begins with one step of BDF1; exact contact makes a straight history."""
    contact: dict[str, object] = {}
    if integrator == "exact":  # without a touch
        contact["contact"] = {"friction_law": "exact", "friction": 0.3}
        contact["obstacles"] = {"floor": {"shape": "plane", "point": [0, 0, -1], "normal": [0, 0, 1]}}
    time = {"dt": 0.004, "steps": STEPS, "integrator": "bdf2" if contact else integrator}
    built = pushed_ball(time=time, **contact)
    whole, step, n_steps = built.run(), 3, 8
    given = own_values(built) | {"state.q": whole.q[step], "state.v": whole.v[step]}
    runs = built.rollout(given, n_steps=n_steps, step=step)
    late = built.rollout(given, n_steps=n_steps)
    assert np.array_equal(runs.t, whole.t[step : step + n_steps + 1]) and not np.allclose(runs.q, late.q, atol=1e-6)
    if integrator == "bdf1":  # which does not look back
        assert np.allclose(runs.q, whole.q[step : step + n_steps + 1], atol=1e-15)
    q_bar, v_bar = rng.standard_normal((2, *runs.q.shape))
    bars, h = runs.vjp(q_bar, v_bar), 1e-6
    for name in ("state.q", "state.v"):
        dot = rng.standard_normal(given[name].shape)
        ends = [built.rollout(given | {name: given[name] + s * h * dot}, n_steps=n_steps, step=step) for s in (1, -1)]
        slope = sum(np.vdot(bar, getattr(ends[0], x) - getattr(ends[1], x)) for x, bar in (("q", q_bar), ("v", v_bar)))
        q_dot, v_dot = runs.jvp({name: dot})
        assert np.vdot(bars[name], dot) == pytest.approx(slope / (2 * h), rel=1e-6)
        assert np.vdot(q_bar, q_dot) + np.vdot(v_bar, v_dot) == pytest.approx(np.vdot(bars[name], dot), rel=1e-12)


@pytest.mark.parametrize("substeps", ["auto", "off"])
@pytest.mark.parametrize("body", ["pendulum", "box", "cube"])
def test_steps_behind_a_state_change_no_motion(body, substeps):
    """Where nothing depends on time: a straight history cost a third of the weight's work of one step, 0.03 m/s."""
    bodies = {
        "pendulum": {
            "type": "articulated", "joints": {"a": {"axis": [0, 1, 0]}},
            "links": {"a": {"mass": 1, "inertia": [0.01] * 3 + [0] * 3, "center_of_mass": [1, 0, 0]}},
        },
        "box": {"type": "rigid", "mass": 1.0, "geometry": {"shape": "box", "size": [0.1, 0.2, 0.3]},
                "angular_velocity": [1, 2, 3]},
        "cube": {"type": "soft", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]},
                 "material": {"young": 2e4, "poisson": 0.3, "density": 1e3},
                 "pins": [{"where": {"box": {"max": [-0.04, 1, 1]}}}]},
    }  # fmt: skip
    time = {"dt": 0.01, "steps": 8, "substeps": substeps}
    built = scene_from_dict({"schema": "add-scene/1", "time": time, "bodies": {"b": bodies[body]}}).build()
    run, (q_bar, v_bar) = built.run(), np.random.default_rng(1).normal(size=(2, 9, built.simulation.system.n))
    given = {"state.q": run.q[0], "state.v": run.v[0]}
    late, first = (built.rollout(given, n_steps=8, **more) for more in ({"step": 7}, {}))
    assert np.array_equal(first.q, run.q) and np.allclose(late.q, run.q, rtol=0, atol=1e-12)
    assert np.allclose(late.v, run.v, rtol=0, atol=1e-10)
    assert np.abs(run.v[1] - run.v[0]).max() > 0.01, "something is pulled"
    bars = [runs.vjp(q_bar, v_bar) for runs in (late, first)]
    for name in given:
        assert np.allclose(bars[0][name], bars[1][name], rtol=1e-8, atol=1e-8 * np.abs(bars[1][name]).max())
    tangents = [runs.jvp({"state.v": np.ones(run.q.shape[1])}) for runs in (late, first)]
    assert np.allclose(tangents[0], tangents[1], rtol=1e-8, atol=1e-8 * np.abs(tangents[1]).max())


def test_a_state_is_where_given_motions_are_at_its_time():
    """A slide that had gone 0.2 m went back to its start in one step, at 20 m/s, if nothing said when the state is."""
    link = {"mass": 1, "inertia": [0.01, 0.01, 0.01, 0, 0, 0]}
    joints = {
        "a": {"type": "slide", "axis": [1, 0, 0], "motion": {"signal": "x"}},
        "b": {"type": "slide", "parent": "a", "axis": [1, 0, 0], "stiffness": 100},
    }
    raw = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 30},
        "signals": {"x": {"type": "table", "times": [0, 1], "values": [0, 1]}},
        "bodies": {"t": {"type": "articulated", "links": {"a": link, "b": link}, "joints": joints}},
    }
    built = scene_from_dict(raw).build()
    run = built.run()
    inputs = {"state.q": run.q[20], "state.v": run.v[20]}
    with pytest.raises(InputError, match=r"state.q: t/.* has a given motion, and is elsewhere at t = 0 s \(found 0.2"):
        built.rollout(inputs, n_steps=2)
    with pytest.raises(InputError, match=r"t/.* has a given motion, and is elsewhere at t = 0 s \(found 0.2"):
        built.simulation.state(run.q[20], run.v[20])
    built.simulation.state(run.q[20], run.v[20], step=20)
    assert np.array_equal(built.rollout(inputs, n_steps=2, step=20).q[0], run.q[20])
    built.rollout({"state.q": run.q[[20, 19]], "state.v": run.v[[20, 19]]}, n_steps=2, step=20)
    with pytest.raises(InputError, match=r"member 1: state\.q"):
        rows = {name: np.stack([getattr(run, name[-1])[k] for k in (0, 20)]) for name in inputs}
        built.rollouts(rows, n_steps=2)


def test_a_state_with_open_loops_is_refused():
    """A coupler 0.3 rad beside its place closed in one step, at 99 rad/s."""
    built = load_scene(SCENES / "four_bar.json").build()
    run = built.run(n_steps=12)
    q = run.q[10] + np.array([0.0, 0.3, 0.0])
    with pytest.raises(InputError, match=r"state.q: loops, or equations between joints, are open .* \(found 0"):
        built.rollout({"state.q": q, "state.v": run.v[10]}, n_steps=2, step=10)
    with pytest.raises(InputError, match=r"loops, or equations between joints, are open in this state \(found 0"):
        built.simulation.state(q, run.v[10], step=10)
    q, v = built.simulation.start.initial.closed(built.theta, (q, run.v[10]))
    found = built.rollout({"state.q": q, "state.v": v}, n_steps=2, step=10)
    assert np.abs(found.v[1] - run.v[11]).max() < 0.1


def test_bad_tangents_are_named(built):
    runs = built.rollout({"bodies.ball.mass": 0.8}, n_steps=2)
    with pytest.raises(InputError, match=r"contact.friction: this is no input of the rollout"):
        runs.jvp({"contact.friction": 1.0})
    with pytest.raises(InputError, match=r"bodies.ball.mass: the values of an input do not fit"):
        runs.jvp({"bodies.ball.mass": [1.0, 2.0]})
    with pytest.raises(InputError, match="one cotangent a coordinate"):
        runs.vjp(np.zeros((2, 6)))
    with pytest.raises(InputError, match="a cotangent of its states is not finite"):
        runs.vjp(np.full_like(runs.q, np.nan))
    with pytest.raises(InputError, match="a tangent is not finite"):
        runs.jvp({"bodies.ball.mass": np.nan})


@pytest.mark.parametrize("n_steps", [-1, 1.5])
def test_a_run_has_a_whole_number_of_steps(built, n_steps):
    with pytest.raises(InputError, match=r"n_steps: impossible number .*; expected a whole number from 0 on"):
        built.rollout({"bodies.ball.mass": 0.8}, n_steps=n_steps)


def test_a_step_that_fails_is_the_solvers_own_error(built):
    with np.errstate(all="ignore"), pytest.raises(SolverError, match=r"^step 1"):
        built.rollout({"signals.push.values": np.full((STEPS, 3), 1e308)})


def test_bodies_of_many_nodes_by_the_terms(rng):
    """A soft body that lands under hybrid friction: by its material, its throw and the contact."""
    from support.cube_scene import SCENE

    bodies = {"cube": SCENE["bodies"]["cube"] | {"position": [0, 0, -0.899], "velocity": [0.3, 0, -0.6]}}
    obstacles = {"floor": SCENE["obstacles"]["floor"]}
    contact = {"stiffness": 2e3, "friction": 0.3, "friction_law": "hybrid", "damping": 1}
    built = pushed_ball(bodies=bodies, obstacles=obstacles, contact=contact, signals={}, couplings={}, markers={})
    inputs = own_values(built, ("bodies.cube.material.mu", "bodies.cube.velocity", "contact.friction"))
    runs = built.rollout(inputs)
    assert touching_steps(runs.trajectory.records) > 4
    bars = rng.normal(size=(2, *runs.q.shape))
    pulled = runs.vjp(*bars)
    dots = {name: rng.normal(size=value.shape) for name, value in inputs.items()}
    pushed = runs.jvp(dots)
    slope = sum(float((pulled[name] * dots[name]).sum()) for name in inputs)
    assert slope == pytest.approx(float((bars[0] * pushed[0]).sum() + (bars[1] * pushed[1]).sum()), rel=1e-8)
    h = 1e-6
    ends = [built.rollout({n: v + s * h * dots[n] * max(np.max(v), 1.0) for n, v in inputs.items()}) for s in (1, -1)]
    difference = sum(
        float((b * (x - y)).sum()) for b, x, y in zip(bars, (ends[0].q, ends[0].v), (ends[1].q, ends[1].v), strict=True)
    ) / (2 * h)
    scaled = sum(float((pulled[n] * dots[n]).sum()) * max(np.max(v), 1.0) for n, v in inputs.items())
    assert scaled == pytest.approx(difference, rel=1e-4)
