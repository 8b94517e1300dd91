"""One step of many states at once: that of a loop, to the bit, in one compiled call."""

import numpy as np
import pytest
from support.pushed_ball import own_values, pushed_ball, touching_steps

from add.errors import InputError, SolverError
from add.scene import load_scene
from add.scene.build.step_batch import step_batch
from add.scene.build.steps import StepFunction

NUMBERS = ("bodies.ball.mass", "contact.friction")


def ball(law="linear"):
    contact = {"stiffness": 4000, "friction": 0.3, "friction_law": law, "damping": 2, "onset": 0.002}
    return pushed_ball(contact=contact)


def rows(function, rng, ks):
    """Controls and inputs of members."""
    built, arguments = function, function.arguments
    own = {name: arguments.numbers.values[place] for name, place in arguments.inputs.places.items()}
    control = {name: rng.normal(size=(len(ks), *place.shape)) for name, place in arguments.places(0).items()}
    inputs = {name: value * (1.0 + 0.05 * rng.random((len(ks), *value.shape))) for name, value in own.items()}
    return control, inputs, built


@pytest.mark.parametrize("numbers", [(), NUMBERS, ("bodies.ball.mass",)])
@pytest.mark.parametrize("law", ["linear", "tanh", "hybrid"])
def test_a_batch_is_a_loop_to_the_bit(law, numbers, rng):
    """Of members with different numbers of steps behind them: a start, in contact, where a chart changes."""
    built = ball(law)
    run = built.run()
    function = built.step_function(("push", "twist"), numbers)
    turns = [k for k, record in enumerate(run.records) if record.charts.size]
    ks = [0, 3, 12, 12, *turns]
    assert turns and touching_steps([run.records[12]]) == 1
    control, inputs, _ = rows(function, rng, ks)
    control = {name: 0.01 * value for name, value in control.items()}
    states = [run.state(k) for k in ks]
    q, v = np.stack([s.q for s in states]), np.stack([s.v for s in states])
    found = step_batch(function, q, v, np.array(ks), control, inputs)
    bars = rng.normal(size=(2, *q.shape))
    pulled = found.pullback(*bars)
    changed = 0
    for i, k in enumerate(ks):
        alone = function(states[i], {n: x[i] for n, x in control.items()}, {n: x[i] for n, x in inputs.items()})
        assert np.array_equal(found.q[i], alone.state.q) and np.array_equal(found.v[i], alone.state.v)
        one = found.step(i)
        assert one.state.step == k + 1 and one.state.t == alone.state.t
        assert np.array_equal(one.record.kin.a, alone.record.kin.a)
        assert one.record.report == alone.record.report
        changed += one.record.charts.size
        expected = alone.vjp(bars[0][i], bars[1][i])
        assert np.array_equal(pulled[0][i], expected.q) and np.array_equal(pulled[1][i], expected.v)
        for many, single in ((pulled[2], expected.control), (pulled[3], expected.inputs)):
            assert many.keys() == single.keys()
            assert all(np.array_equal(many[name][i], single[name]) for name in single)
    assert changed


def test_compiled_steps_need_no_single_ones(rng, monkeypatch):
    """No member is stepped or pulled back in Python where compiled steps exist; each has its own given motion."""
    built = load_scene("scenes/strings_cube.json").build()
    if built.simulation.by_terms:
        pytest.skip(built.simulation.by_terms)
    function = built.step_function(("left", "right"), ())
    run, k = built.run(n_steps=30), 30
    q, v = (np.repeat(x[None], 4, axis=0) for x in (run.state(k).q, run.state(k).v))
    control = {"left": 0.15 + 0.01 * rng.normal(size=(4, 3)), "right": 0.15 + 0.01 * rng.normal(size=(4, 3))}
    singles = [function(run.state(k), {name: row[i] for name, row in control.items()}) for i in range(4)]
    bars = rng.normal(size=(2, *q.shape))
    expected = [one.vjp(bars[0][i], bars[1][i]) for i, one in enumerate(singles)]

    def never(*arguments, **options):
        raise AssertionError("a step was taken alone")

    monkeypatch.setattr(StepFunction, "taken", never)
    found = step_batch(function, q, v, np.full(4, k), control, {})
    pulled = found.pullback(*bars)
    for i in range(4):
        assert np.array_equal(found.q[i], singles[i].state.q)
        assert np.array_equal(pulled[0][i], expected[i].q)
        assert all(np.array_equal(pulled[2][name][i], expected[i].control[name]) for name in control)
    assert any(np.any(bar) for bar in pulled[2].values())


def test_members_are_named():
    built = ball()
    function = built.step_function(("push",), ("bodies.ball.mass",), {"push": (-1, 1)})
    state = built.run(n_steps=4).state(3)
    q, v, k = (np.repeat(x[None], 2, axis=0) for x in (state.q, state.v, np.array(3)))
    push, mass = np.zeros((2, 3)), np.ones(2)

    def at(array, value):
        moved = array.copy()
        moved[1, ...] = value
        return moved

    for arguments, words in (
        ((at(q, np.nan), v, k, {"push": push}, {"bodies.ball.mass": mass}), r"member 1: state.q: the state is not fin"),
        ((q, v, at(k, -1), {"push": push}, {"bodies.ball.mass": mass}), r"member 1: step: a state has steps behind it"),
        ((q, v, k, {"push": at(push, 2)}, {"bodies.ball.mass": mass}), r"member 1: signals.push: an action is outside"),
        ((q, v, k, {"push": push}, {"bodies.ball.mass": at(mass, 0)}), r"member 1: bodies.ball.mass: impossible value"),
    ):
        with pytest.raises(InputError, match=words):
            step_batch(function, *arguments)
    wild = built.step_function(("push",))
    with np.errstate(all="ignore"), pytest.raises(SolverError, match="member 1: step 4"):
        step_batch(wild, q, v, k, {"push": at(push, 1e308)}, {})


def test_copies_are_the_ties():
    """Numbers that theta has as multiples are told from those that rules read."""
    from add.ties import copies_of

    numbers = ball().numbers
    places = {name: np.ravel(numbers.place(name)) for name in own_values(ball())}
    assert copies_of(numbers.ties, places["signals.push.values"]) is not None
    values = numbers.values.copy()
    values[places["signals.push.values"]] += 1.0
    theta = numbers.ties.forward(numbers.values)[None]
    copies_of(numbers.ties, places["signals.push.values"]).write(values[None], theta)
    assert np.array_equal(theta[0], numbers.ties.forward(values))
