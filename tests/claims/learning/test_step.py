"""One step as a differentiable function of state, controls and named inputs."""

import numpy as np
import pytest
from support.compiled_runs import by_terms
from support.pushed_ball import STEPS, own_values, pushed_ball, touching_steps

from add.errors import InputError
from add.scene.build.built import BuiltScene
from add.scene.build.steps import StepFunction

NUMBERS = ("bodies.ball.mass", "contact.friction")


@pytest.fixture(scope="module")
def built() -> BuiltScene:
    return pushed_ball()


def rows(built: BuiltScene, k: int) -> dict[str, np.ndarray]:
    """The controls of step k + 1."""
    own = own_values(built, ("signals.push.values", "signals.twist.value"))
    return {"push": own["signals.push.values"][k], "twist": own["signals.twist.value"]}


def test_steps_by_their_controls_are_the_run(built):
    """Each row sets the step that it drives; steps taken one by one are those of the run, to the bit."""
    run = built.run()
    step = built.step_function(("push", "twist"), NUMBERS)
    state = run.state(0)
    for k in range(STEPS):
        state = step(state, rows(built, k), own_values(built, NUMBERS)).state
        assert np.array_equal(state.q, run.state(k + 1).q) and np.array_equal(state.v, run.state(k + 1).v)
    assert touching_steps(run.records) > 4


def test_a_control_replaces_the_row_of_its_step(built):
    push = rows(built, 5)["push"] + 1.0
    state = built.run().state(5)
    moved = own_values(built)["signals.push.values"].copy()
    moved[5] = push
    expected = built.rollout({"signals.push.values": moved}, n_steps=6)
    assert np.array_equal(built.step(state, {"push": push}).state.q[0], expected.q[6])


@pytest.mark.parametrize("terms", [False, True])
@pytest.mark.parametrize("k", [0, 3, 12])
def test_both_derivatives_are_those_of_differences(built, k, terms, rng):
    """Before the contact and in it: slipping, and through a change of chart."""
    simulation = by_terms(built.simulation) if terms else built.simulation
    function = StepFunction(built.scene, simulation, built.numbers, ("push", "twist"), NUMBERS)
    run = built.run()
    before = run.state(k)
    control, inputs = rows(built, k), own_values(built, NUMBERS)
    step = function(before, control, inputs)
    assert touching_steps([step.record]) == (k > 0)
    bars = rng.normal(size=(2, 2, 6))
    found = step.vjp(*bars)
    rows_moved = 2 if k else 1  # a start has no history
    q_dot, v_dot = rng.normal(size=(2, 2, 6))
    q_dot[rows_moved:] = v_dot[rows_moved:] = 0.0
    dots = {name: rng.normal(size=np.shape(value)) for name, value in {**control, **inputs}.items()}
    controls = {name: dots[name] for name in control}
    numbers = {name: dots[name] for name in inputs}
    pushed = step.jvp(q_dot, v_dot, controls, numbers)
    slope = float((found.q * q_dot).sum() + (found.v * v_dot).sum())
    slope += sum(float((found.control[n] * d).sum()) for n, d in controls.items())
    slope += sum(float((found.inputs[n] * d).sum()) for n, d in numbers.items())
    assert slope == pytest.approx(sum(float((b * d).sum()) for b, d in zip(bars, pushed, strict=True)), rel=1e-9)

    def after(h):
        q, v = before.q + h * q_dot, before.v + h * v_dot
        state = simulation.state(q, v, step=k) if k else simulation.state(q[0], v[0])
        moved = function(
            state,
            {n: control[n] + h * d for n, d in controls.items()},
            {n: inputs[n] + h * d for n, d in numbers.items()},
        ).state
        return moved.q, moved.v

    h = 1e-7
    for dot, plus, minus in zip(pushed, after(h), after(-h), strict=True):
        expected = (plus - minus) / (2 * h)
        assert np.allclose(dot, expected, rtol=2e-5, atol=2e-6 * np.abs(expected).max())
    for name, bar in {**found.control, **found.inputs}.items():
        assert np.any(bar) == (k > 0 or name != "contact.friction"), name


def test_a_chart_changes_in_the_run(built):
    assert any(record.charts.size for record in built.run().records)


def test_cotangents_chain_to_those_of_the_run(built, rng):
    """Steps pulled back one after the other give the gradient of the rollout."""
    inputs = own_values(built)
    runs = built.rollout(inputs)
    q_bar = np.zeros_like(runs.q)
    q_bar[-1] = rng.normal(size=6)
    expected = runs.vjp(q_bar)
    function = built.step_function(("push",), NUMBERS)
    state, steps = runs.trajectory.state(0), []
    for k in range(STEPS):
        steps.append(function(state, {"push": inputs["signals.push.values"][k]}, own_values(built, NUMBERS)))
        state = steps[-1].state
    bar_q, bar_v = np.zeros((2, 6)), np.zeros((2, 6))
    bar_q[0] = q_bar[-1]
    push, numbers = [], dict.fromkeys(NUMBERS, 0.0)
    for step in reversed(steps):
        bar_q, bar_v, control, by_number = step.vjp(bar_q, bar_v)
        push.append(control["push"])
        numbers = {name: numbers[name] + by_number[name] for name in NUMBERS}
    scale = np.abs(expected["signals.push.values"]).max()
    assert np.allclose(push[::-1], expected["signals.push.values"], rtol=1e-9, atol=1e-12 * scale)
    assert numbers["contact.friction"] == pytest.approx(float(expected["contact.friction"]), rel=1e-9)
    assert np.allclose(bar_v[0] @ np.eye(6)[:, :3], expected["bodies.ball.velocity"], rtol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"control": {"pull": [0, 0, 0]}},
            r"there is no signal of this name .* expected one of .push., .twist., .ramp.\)",
        ),
        ({"control": {"twits": [0, 0, 0]}}, r"signals.twits: there is no signal of this name; did you mean 'twist'\?"),
        ({"inputs": {"bodies.ball.mas": 1.0}}, r"bodies.ball.mas: .*; did you mean 'bodies.ball.mass'\?"),
        ({"control": {"ramp": [0, 0, 0]}}, "signals.ramp: this signal has no row for a step"),
        ({"control": {"push": [0, 0]}}, r"signals.push: the values of a control do not fit \(found shape \(2,\)"),
        ({"control": {"push": [0, np.nan, 0]}}, "signals.push: a control is not a finite number"),
        ({"control": {"push": "left"}}, "signals.push: these are no numbers"),
        ({"inputs": {"state.q": np.zeros(6)}}, "state.q: the state is an argument of a step of its own"),
        ({"inputs": {"bodies.ball.mass": 0.0}}, "bodies.ball.mass: impossible value"),
        ({"inputs": {"bodies.ball.mass": [1.0, 2.0]}}, "bodies.ball.mass: the values of an input do not fit"),
        (
            {"control": {"push": [0, 0, 0]}, "inputs": {"signals.push.values.3": [0, 0, 0]}},
            "signals.push: this signal is a control and an input",
        ),
    ],
)
def test_bad_input_is_named(arguments, words):
    ramp = {"type": "table", "times": [0, 1], "values": [[0, 0, 0], [1, 0, 0]]}
    plain = pushed_ball()
    built = pushed_ball(signals=plain.scene.model_dump()["signals"] | {"ramp": ramp})
    with pytest.raises(InputError, match=words):
        built.step(built.run(n_steps=1).state(0), **arguments)


def test_a_function_takes_what_it_was_made_with(built):
    state = built.run(n_steps=1).state(0)
    function = built.step_function(("push",), ("bodies.ball.mass",))
    with pytest.raises(InputError, match="not the inputs that the step was made with"):
        function(state, {"push": [0, 0, 0]})
    with pytest.raises(InputError, match="twist: this signal is no control of the step"):
        function(state, {"twist": [0, 0, 0]}, {"bodies.ball.mass": 1.0})
    step = function(state, {}, {"bodies.ball.mass": 1.0})
    with pytest.raises(InputError, match="one number a coordinate and pair"):
        step.vjp(np.zeros(5))
