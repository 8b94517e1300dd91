"""Runs and steps inside PyTorch; run by `make test-torch`, since its wheel is large."""

import numpy as np
import pytest
from support.pushed_ball import STEPS, own_values, pushed_ball, touching_steps

from add.errors import InputError, SolverError
from add.scene.build.built import BuiltScene

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch installs it and runs these")

NUMBERS = ("bodies.ball.mass", "contact.friction")


@pytest.fixture(scope="module")
def built() -> BuiltScene:
    return pushed_ball()


@pytest.fixture(scope="module")
def add_torch():
    import add.torch

    return add.torch


def own_inputs(built: BuiltScene) -> dict:
    """Numbers, controls, and the state that the run begins with."""
    first = built.run(n_steps=1).state(0)
    inputs = own_values(built) | {"state.q": first.q[0], "state.v": first.v[0]}
    return {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in inputs.items()}


def several(inputs: dict, rng: np.random.Generator, b: int = 3) -> dict:
    rows = {
        name: value.detach().numpy() * (1 + 0.01 * rng.normal(size=(b, *value.shape))) for name, value in inputs.items()
    }
    return {name: torch.tensor(value, requires_grad=True) for name, value in rows.items()}


def loss(states):
    return torch.sin(3.0 * states.q).sum() + torch.cos(states.v).sum()


def test_gradients_of_a_rollout(built, add_torch):
    """By parameters, controls and states, with contact made."""
    run, inputs = add_torch.rollout(built), own_inputs(built)
    assert touching_steps(built.run().records) > 4
    names = tuple(inputs)

    def function(*values):
        return loss(run(dict(zip(names, values, strict=True))))

    assert torch.autograd.gradcheck(function, tuple(inputs.values()), eps=1e-6, atol=1e-4, rtol=1e-4)
    expected = built.rollout({name: value.detach().numpy() for name, value in inputs.items()})
    found = run(inputs)
    assert np.array_equal(found.q.detach(), expected.q) and np.array_equal(found.v.detach(), expected.v)


@pytest.mark.parametrize("k", [0, 6])
def test_gradients_of_a_step(built, add_torch, k):
    """In contact and before it, with the state's history."""
    run = built.run()
    assert touching_steps([run.records[k]]) == (k > 0)
    take = add_torch.step(built, ("push", "twist"), NUMBERS)
    own = own_values(built, ("signals.push.values", "signals.twist.value", *NUMBERS))
    values = [run.state(k).q, run.state(k).v, own["signals.push.values"][k], own["signals.twist.value"]]
    values += [own[name] for name in NUMBERS]
    tensors = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in values]

    def function(q, v, push, twist, *numbers):
        return tuple(take((q, v), k, {"push": push, "twist": twist}, dict(zip(NUMBERS, numbers, strict=True))))

    assert np.array_equal(function(*tensors)[0].detach(), run.state(k + 1).q)
    assert torch.autograd.gradcheck(function, tensors, eps=1e-7, atol=1e-4, rtol=1e-4)


def test_a_loop_of_steps_is_the_rollout(built, add_torch):
    take = add_torch.step(built, ("push",))
    first = built.run(n_steps=1).state(0)
    rows = torch.tensor(own_values(built)["signals.push.values"], requires_grad=True)
    state = first.q, first.v
    for k in range(STEPS):
        state = take(state, k, {"push": rows[k]})
    state.q[0].sum().backward()
    run = built.rollout({"signals.push.values": rows.detach().numpy()})
    assert np.array_equal(state.q[0].detach(), run.q[-1])
    bar = np.zeros_like(run.q)
    bar[-1] = 1.0
    expected = run.vjp(bar)["signals.push.values"]
    assert np.allclose(rows.grad, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


def test_a_batch_is_a_loop_to_the_bit(built, add_torch, rng):
    run, inputs = add_torch.rollout(built), several(own_inputs(built), rng)
    found = run(inputs)
    assert found.q.shape == (3, STEPS + 1, 6)
    loss(found).backward()
    for k in range(3):
        one = {name: value[k].detach().clone().requires_grad_() for name, value in inputs.items()}
        alone = run(one)
        assert torch.equal(found.q[k], alone.q) and torch.equal(found.v[k], alone.v)
        loss(alone).backward()
        assert all(torch.equal(inputs[name].grad[k], one[name].grad) for name in inputs)


def test_two_rows_with_steps_behind_them_say_what_they_are(built, add_torch):
    """A batch of two states was taken for one state with a history, without a word."""
    run = built.run()
    q, v = (torch.tensor(x[[4, 3]]) for x in (run.q, run.v))
    with pytest.raises(InputError, match=r"state.q: with `step` these may be a state with its history"):
        add_torch.rollout(built, n_steps=3, step=4)({"state.q": q, "state.v": v})
    pair = add_torch.rollout(built, n_steps=3, step=4, history=True)({"state.q": q, "state.v": v})
    assert np.array_equal(pair.q, run.q[4:8])
    several = add_torch.rollout(built, n_steps=3, step=4, history=False)({"state.q": q, "state.v": v})
    free = add_torch.rollout(built, n_steps=3, step=4)
    for k in range(2):
        alone = free({"state.q": q[k], "state.v": v[k]})
        assert torch.equal(several.q[k], alone.q) and alone.q.shape == (4, 6)
    three = {"state.q": torch.cat([q, q[:1]]), "state.v": torch.cat([v, v[:1]])}
    assert torch.equal(free(three).q[:2], several.q), "three rows are members"
    assert torch.equal(free({"state.q": q[None], "state.v": v[None]}).q[0], pair.q), "three axes are histories"
    with pytest.raises(InputError, match="step: a state with a history has steps behind it"):
        add_torch.rollout(built, history=True)


def test_a_shared_input_has_the_sum_of_the_gradients(built, add_torch, rng):
    run, own = add_torch.rollout(built, n_steps=8), own_inputs(built)
    friction = torch.tensor([0.2, 0.3, 0.25], dtype=torch.float64)
    loss(run(own | {"contact.friction": friction})).backward()
    total = own["bodies.ball.velocity"].grad
    parts = []
    for x in friction:
        alone = own_inputs(built)
        loss(run(alone | {"contact.friction": x})).backward()
        parts.append(alone["bodies.ball.mass"].grad)
    assert own["bodies.ball.mass"].grad == pytest.approx(float(sum(parts)), rel=1e-12)
    assert not total.any()  # the given state replaces the scene's velocity


def test_a_batch_of_steps(built, add_torch, rng):
    take = add_torch.step(built, ("push",), ("bodies.ball.mass",))
    state = built.run().state(5)
    push = torch.tensor(rng.normal(size=(3, 3)), requires_grad=True)
    found = take((state.q, state.v), 5, {"push": push}, {"bodies.ball.mass": 0.8})
    assert found.q.shape == (3, 2, 6)
    loss(found).backward()
    for k in range(3):
        row = push[k].detach().clone().requires_grad_()
        alone = take((state.q, state.v), 5, {"push": row}, {"bodies.ball.mass": 0.8})
        assert torch.equal(alone.q, found.q[k])
        loss(alone).backward()
        assert torch.equal(row.grad, push.grad[k])


def test_failures_are_errors_or_nan(built, add_torch):
    rows = np.stack([own_values(built)["signals.push.values"]] * 2)
    rows[1] = 1e308
    inputs = {"signals.push.values": torch.tensor(rows, requires_grad=True)}
    with np.errstate(all="ignore"):
        with pytest.raises(SolverError, match="member 1: step 1"):
            add_torch.rollout(built, workers=1)(inputs)
        found = add_torch.rollout(built, workers=1, allow_failures=True)(inputs)
    assert found.q[0].isfinite().all() and found.q[1, 1:].isnan().all()
    found.q[0].sum().backward()
    assert inputs["signals.push.values"].grad.isfinite().all()


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"bodies.ball.colour": 1.0}, r"bodies.ball.colour: this number cannot be a parameter"),
        ({"bodies.ball.velocity": [1.0, 2.0]}, r"bodies.ball.velocity: the values of an input do not fit"),
        ({"bodies.ball.velocity": [1.0, np.nan, 0.0]}, r"bodies.ball.velocity: .* not a finite number"),
        ({"bodies.ball.mass": [1.0, -1.0]}, r"member 1: bodies.ball.mass: impossible value"),
        ({"bodies.ball.mass": [1.0, 2.0], "contact.friction": [0.1, 0.2, 0.3]}, r"batch axes differ"),
        ({}, r"a rollout is a function of its inputs"),
        ({"bodies.ball.mass": "heavy"}, r"bodies.ball.mass: these are no numbers"),
    ],
)
def test_bad_input_is_named(built, add_torch, inputs, words):
    with pytest.raises(InputError, match=words):
        add_torch.rollout(built, n_steps=1)(inputs)


def test_single_precision_is_refused(built, add_torch):
    with pytest.raises(InputError, match=r"bodies.ball.mass: .* double precision \(found torch.float32"):
        add_torch.rollout(built, n_steps=1)({"bodies.ball.mass": torch.tensor(1.0)})


def test_actions_outside_their_bounds_are_refused(built, add_torch):
    take, first = add_torch.step(built, ("push",), bounds={"push": (-1, 1)}), built.run(n_steps=1).state(0)
    take((first.q, first.v), 0, {"push": np.ones(3)})
    with pytest.raises(InputError, match=r"signals.push: an action is outside its bounds"):
        take((first.q, first.v), 0, {"push": np.full(3, 1.1)})


def test_bad_steps_are_named(built, add_torch):
    take = add_torch.step(built, ("push",))
    first = built.run(n_steps=1).state(0)
    with pytest.raises(InputError, match=r"signals.push: the values of an input do not fit"):
        take((first.q, first.v), 0, {"push": torch.zeros(2, dtype=torch.float64)})
    with pytest.raises(InputError, match=r"pull: this signal is no control of the step"):
        take((first.q, first.v), 0, {"pull": np.zeros(3)})
    with pytest.raises(InputError, match=r"signals.push: a control is not a finite number"):
        take((first.q, first.v), 0, {"push": np.full(3, np.nan)})
    with pytest.raises(InputError, match=r"k: a state has a whole number of steps behind it"):
        take((first.q, first.v), 1.5, {"push": np.zeros(3)})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t, _: t.rollout("scene.json"), r"built: wrong type \(found str 'scene.json'; expected a built scene"),
        (lambda t, _: t.step("scene.json"), r"built: wrong type"),
        (lambda t, built: t.rollout(built, n_steps=-1), "n_steps: impossible number"),
        (lambda t, built: t.rollout(built, workers=0), "workers: impossible number"),
        (
            lambda t, built: t.rollout(built, n_steps=2)([1.0]),
            r"inputs: wrong type \(found list",
        ),
        (lambda t, built: t.step(built, ("push",))(None, 0), r"state: wrong type \(found NoneType; expected States"),
        (
            lambda t, built: t.step(built, ("push",))((1.0,), 0),
            r"state: wrong type \(found tuple of 1",
        ),
    ],
)
def test_arguments_of_other_types(add_torch, built, call, words):
    with pytest.raises(InputError, match=words):
        call(add_torch, built)
