"""Runs and steps inside JAX."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from support.pushed_ball import STEPS, own_values, pushed_ball, touching_steps

from add import scene_from_dict
from add.errors import InputError
from add.jax import States, rollout, step
from add.scene.build.built import BuiltScene

NUMBERS = ("bodies.ball.mass", "contact.friction")


@pytest.fixture(scope="module")
def built() -> BuiltScene:
    return pushed_ball()


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def own_inputs(built: BuiltScene) -> dict:
    """Numbers, controls, and the state that the run begins with."""
    first = built.run(n_steps=1).state(0)
    inputs = own_values(built) | {"state.q": first.q[0], "state.v": first.v[0]}
    return {name: jnp.asarray(value) for name, value in inputs.items()}


def several(inputs: dict, rng: np.random.Generator, b: int = 3) -> dict:
    return {name: value * (1.0 + 0.01 * rng.normal(size=(b, *value.shape))) for name, value in inputs.items()}


def loss(states: States) -> jax.Array:
    return jnp.sum(jnp.sin(3.0 * states.q)) + jnp.sum(jnp.cos(states.v))


def test_gradients_of_a_rollout(built):
    """By parameters, controls and states, with contact made."""
    run = rollout(built)
    inputs = own_inputs(built)
    assert touching_steps(built.run().records) > 4
    check_grads(lambda x: loss(run(x)), (inputs,), order=1, modes=["rev"], atol=1e-4, rtol=1e-5, eps=1e-6)
    expected = built.rollout({name: np.asarray(value) for name, value in inputs.items()})
    found = run(inputs)
    assert np.array_equal(found.q, expected.q) and np.array_equal(found.v, expected.v)
    bars = jax.grad(lambda s: loss(States(*s)))((found.q, found.v))
    pulled = expected.vjp(*(np.asarray(bar) for bar in bars))
    gradient = jax.jit(jax.grad(lambda x: loss(run(x))))(inputs)
    assert all(np.allclose(gradient[name], pulled[name], rtol=1e-12) for name in inputs)


def test_runs_are_kept_under_the_names_of_their_inputs(built):
    """The same number as another input is another run, also for the way back."""
    run, x = rollout(built, keep=2), jnp.asarray(0.7)
    for name in NUMBERS:
        found, expected = run({name: x}), built.rollout({name: 0.7})
        assert np.array_equal(found.q, expected.q)
        bars = jax.grad(lambda s: loss(States(*s)))(tuple(found))
        pulled = expected.vjp(*(np.asarray(bar) for bar in bars))[name]
        assert jax.grad(lambda value, name=name: loss(run({name: value})))(x) == pytest.approx(float(pulled), rel=1e-12)


def test_gradients_of_a_step(built):
    """In contact, with the state's history, and the number of the step traced."""
    run = built.run()
    assert touching_steps([run.records[6]]) == 1
    take = step(built, ("push", "twist"), NUMBERS)
    state = States(*(jnp.asarray(part) for part in (run.state(6).q, run.state(6).v)))
    own = own_values(built, ("signals.push.values", "signals.twist.value", *NUMBERS))
    control = {"push": jnp.asarray(own["signals.push.values"][6]), "twist": jnp.asarray(own["signals.twist.value"])}
    numbers = {name: jnp.asarray(own[name]) for name in NUMBERS}
    found = jax.jit(take)(state, 6, control, numbers)
    assert np.array_equal(found.q, run.state(7).q)
    check_grads(
        lambda *x: take(x[0], 6, *x[1:]),
        (state, control, numbers),
        order=1,
        modes=["rev"],
        atol=1e-4,
        rtol=1e-4,
        eps=1e-6,
    )


def test_steps_in_a_scan_are_the_rollout(built):
    """A loop of the framework around steps has the gradient of the rollout."""
    take = step(built, ("push",))
    first = built.run(n_steps=1).state(0)
    state = States(jnp.asarray(first.q), jnp.asarray(first.v))
    rows = jnp.asarray(own_values(built)["signals.push.values"])

    def last(rows):
        def body(carry, k):
            return take(carry, k, {"push": rows[k]}), None

        return jax.lax.scan(body, state, jnp.arange(STEPS))[0].q[0]

    found, pull = jax.vjp(last, rows)
    run = built.rollout({"signals.push.values": np.asarray(rows)})
    assert np.array_equal(found, run.q[-1])
    bar = np.zeros_like(run.q)
    bar[-1] = np.arange(6.0)
    expected = run.vjp(bar)["signals.push.values"]
    assert np.allclose(pull(jnp.arange(6.0))[0], expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("compiled", [False, True])
def test_vmap_is_a_loop_to_the_bit(built, compiled, rng):
    run, inputs = rollout(built), several(own_inputs(built), rng)
    value = jax.value_and_grad(lambda x: loss(run(x)))
    many = jax.vmap(run), jax.vmap(value)
    one = run, value
    if compiled:
        many, one = tuple(map(jax.jit, many)), tuple(map(jax.jit, one))
    members = [{name: part[k] for name, part in inputs.items()} for k in range(3)]
    found = many[0](inputs)
    assert found.q.shape == (3, STEPS + 1, 6)
    assert all(np.array_equal(found.q[k], one[0](x).q) for k, x in enumerate(members))
    _, gradients = many[1](inputs)
    for k, x in enumerate(members):
        gradient = one[1](x)[1]
        assert all(np.array_equal(gradients[name][k], gradient[name]) for name in inputs)


def test_nested_and_partial_maps(built, rng):
    """Of two axes, and where some inputs are shared: their gradient is the sum."""
    run, own = rollout(built, n_steps=8), own_inputs(built)
    friction = jnp.array([[0.2, 0.3], [0.25, 0.1]])
    rest = {name: value for name, value in own.items() if name != "contact.friction"}

    def value(friction, rest):
        return loss(run(rest | {"contact.friction": friction}))

    both = jax.vmap(jax.vmap(value, (0, None)), (0, None))
    found = both(friction, rest)
    assert all(found[i, j] == value(friction[i, j], rest) for i in range(2) for j in range(2))
    shared = jax.grad(lambda rest: jnp.sum(both(friction, rest)))(rest)
    alone = [jax.grad(value, 1)(x, rest) for x in friction.ravel()]
    for name in rest:
        assert np.allclose(shared[name], sum(one[name] for one in alone), rtol=1e-12, atol=1e-9)


def test_vmap_of_steps(built, rng):
    take = step(built, ("push",), ("bodies.ball.mass",))
    state = built.run().state(5)
    states = States(*(part + 1e-3 * rng.normal(size=(3, *part.shape)) for part in (state.q, state.v)))
    push, mass = rng.normal(size=(3, 3)), jnp.array([0.7, 0.8, 0.9])

    def value(q, v, push, mass):
        after = take((q, v), 5, {"push": push}, {"bodies.ball.mass": mass})
        return loss(after), after

    grad = jax.grad(value, argnums=(0, 1, 2, 3), has_aux=True)
    found = jax.vmap(grad)(*states, push, mass)
    for k in range(3):
        alone = grad(states.q[k], states.v[k], push[k], mass[k])
        same = jax.tree.map(lambda many, one, k=k: np.array_equal(many[k], one), found, alone)
        assert all(jax.tree.leaves(same))


def test_failures_are_errors_or_nan(built):
    rows = np.stack([own_values(built)["signals.push.values"]] * 2)
    rows[1] = 1e308
    inputs = {"signals.push.values": jnp.asarray(rows)}
    with np.errstate(all="ignore"):
        with pytest.raises(Exception, match="member 1: step 1"):
            jax.block_until_ready(jax.vmap(rollout(built, workers=1))(inputs))
        run = rollout(built, workers=1, allow_failures=True)
        found = jax.vmap(run)(inputs)
        assert np.isfinite(found.q[0]).all() and np.isnan(found.q[1, 1:]).all()
        gradient = jax.grad(lambda x: loss(States(*(part[0] for part in jax.vmap(run)(x)))))(inputs)
    assert np.isfinite(gradient["signals.push.values"]).all()


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"bodies.ball.colour": 1.0}, r"bodies.ball.colour: this number cannot be a parameter"),
        ({"bodies.ball.velocity": [1.0, 2.0]}, r"bodies.ball.velocity: the values of an input do not fit"),
        ({"bodies.ball.velocity": [1.0, np.nan, 0.0]}, r"bodies.ball.velocity: .* not a finite number"),
        ({"bodies.ball.mass": -1.0}, r"bodies.ball.mass: impossible value"),
    ],
)
def test_bad_input_is_named(built, inputs, words):
    """By the error of `add`, or inside compiled code by one of JAX that has its words."""
    inputs = {name: jnp.asarray(value) for name, value in inputs.items()}
    run = rollout(built, n_steps=1)
    with pytest.raises(InputError, match=words):
        run(inputs)
    with pytest.raises(Exception, match=words):
        jax.block_until_ready(jax.jit(run)(inputs))


def test_what_is_no_number_is_named(built):
    for value in ("heavy", 1j, jnp.asarray(1j)):
        with pytest.raises(InputError, match=r"bodies.ball.mass: these are no numbers"):
            rollout(built, n_steps=1)({"bodies.ball.mass": value})
    with pytest.raises(InputError, match="a rollout is a function of its inputs"):
        rollout(built, n_steps=1)({})
    first = built.run(n_steps=1).state(0)
    with pytest.raises(InputError, match=r"k: a state has a whole number of steps behind it \(found 1.5"):
        step(built, ("push",))((first.q, first.v), 1.5, {"push": jnp.zeros(3)})


def test_bad_steps_are_named(built):
    take = step(built, ("push",))
    first = built.run(n_steps=1).state(0)
    with pytest.raises(InputError, match=r"signals.push: the values of a control do not fit"):
        take(first_pairs := (first.q, first.v), 0, {"push": jnp.zeros(2)})
    with pytest.raises(InputError, match=r"pull: this signal is no control of the step"):
        take(first_pairs, 0, {"pull": jnp.zeros(3)})
    with pytest.raises(InputError, match=r"no pairs of coordinates"):
        take((first.q[0], first.v[0]), 0, {"push": jnp.zeros(3)})
    with pytest.raises(Exception, match=r"signals.push: a control is not a finite number"):
        jax.block_until_ready(take(first_pairs, 0, {"push": jnp.full(3, jnp.nan)}))


def test_actions_outside_their_bounds_are_refused(built):
    take, first = step(built, ("push",), bounds={"push": (-1.0, [1.0, 2.0, 1.0])}), built.run(n_steps=1).state(0)
    jax.block_until_ready(take((first.q, first.v), 0, {"push": jnp.array([0.5, 2.0, -1.0])}))
    with pytest.raises(Exception, match=r"signals.push: an action is outside its bounds"):
        jax.block_until_ready(jax.jit(take)((first.q, first.v), 0, {"push": jnp.array([0.5, 0.0, -1.1])}))
    with pytest.raises(InputError, match=r"signals.push: bounds do not fit"):
        step(built, ("push",), bounds={"push": ([0, 0], 1)})


def test_32_bits_are_refused(built):
    with jax.enable_x64(False), pytest.raises(InputError, match="jax_enable_x64"):
        rollout(built, n_steps=1)({"bodies.ball.mass": 1.0})


def test_a_step_that_carries_more_than_pairs_is_refused():
    built = pushed_ball(
        time={"dt": 0.004, "steps": 4, "integrator": "bdf1"}, contact={"friction": 0.3, "friction_law": "impulse"}
    )
    with pytest.raises(InputError, match="hand on more than coordinates"):
        step(built)
    gradient = jax.grad(lambda x: loss(rollout(built)({"bodies.ball.velocity": x})))(jnp.array([0.4, 0.1, -0.9]))
    assert np.isfinite(gradient).all()


def test_the_package_does_not_import_the_framework():
    code = "import sys, add; add.load_scene; print('jax' in sys.modules, 'torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda _: rollout("scene.json"), r"built: wrong type \(found str 'scene.json'; expected a built scene"),
        (lambda _: step("scene.json"), r"built: wrong type"),
        (lambda built: rollout(built, n_steps=-1), "n_steps: impossible number"),
        (lambda built: rollout(built, workers=0), "workers: impossible number"),
        (lambda built: rollout(built, n_steps=2)([1.0]), r"inputs: wrong type \(found list; expected a dictionary"),
        (lambda built: step(built, ("push",))(None, 0), r"state: wrong type \(found NoneType; expected States"),
        (lambda built: step(built, ("push",))((1.0,), 0), r"state: wrong type \(found tuple of 1; expected States"),
    ],
)
def test_arguments_of_other_types(built, call, words):
    with pytest.raises(InputError, match=words):
        call(built)


def test_a_state_elsewhere_than_its_given_motion_is_the_error_of_add_itself():
    link = {"mass": 1, "inertia": [0.01, 0.01, 0.01, 0, 0, 0]}
    slide = {"type": "slide", "axis": [1, 0, 0], "motion": {"signal": "x"}}
    tree = {"type": "articulated", "links": {"a": link}, "joints": {"a": slide}}
    signal = {"type": "table", "times": [0, 1], "values": [0, 1]}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 9}, "signals": {"x": signal}, "bodies": {"t": tree}}
    state = {"state.q": jnp.array([0.05]), "state.v": jnp.array([1.0])}
    built = scene_from_dict(raw).build()
    with pytest.raises(InputError, match=r"^state.q: .* has a given motion, and is elsewhere at t = 0 s"):
        rollout(built, n_steps=2)(state)
    assert rollout(built, n_steps=2, step=5)(state).q[-1, 0] == pytest.approx(0.07)
