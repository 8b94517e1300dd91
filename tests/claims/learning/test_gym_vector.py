"""Many environments at once: equal to single ones to the bit."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from support.compiled_runs import by_terms
from support.pushed_ball import STEPS, pushed_ball

from add.errors import InputError, SolverError
from add.gym import Env, VectorEnv
from add.scene import Scene, scene_from_dict

SEEN = ["time", "markers.centre", "bodies.ball.orientation", "bodies.ball.angular_velocity", "contact.ball"]
GOAL = {"type": "point", "marker": "centre", "target": [0.1, 0, 0.1], "window": [0.004, STEPS * 0.004]}
LOW, HIGH = np.array([-2.0, -2.0, -2.0]), np.array([2.0, 1.0, 3.0])
MODES = [mode.value for mode in AutoresetMode]


def scene(**changes) -> Scene:
    raw = pushed_ball().scene.model_dump(mode="json", by_alias=True)
    return scene_from_dict(raw | {"objective": [GOAL]} | changes)


@pytest.fixture(scope="module")
def pushed() -> Scene:
    return scene()


class Falling(Env):
    """Ends where the ball is low, with a reward of its own."""

    def reward(self, seen):
        return float(seen.state.q[0, 0])

    def terminated(self, seen):
        return bool(seen.state.q[0, 2] < 0.0995)


def environment(pushed: Scene, kind=Env, **options) -> Env:
    own = {"actions": {"push": (LOW, HIGH)}, "observations": SEEN, "randomise": {"bodies.ball.velocity": (-1, 1)}}
    return kind(pushed, **own | options)


def same(one, other) -> bool:
    """Whether two results of `reset` or `step` are equal to the bit, infos included."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, np.ndarray) and one.dtype.kind == "O":
        return all(same(a, b) if a is not None else b is None for a, b in zip(one, other, strict=True))
    return np.array_equal(one, other)


@pytest.mark.parametrize("kind", [Env, Falling])
@pytest.mark.parametrize("mode", MODES)
def test_members_are_single_environments_to_the_bit(pushed, kind, mode):
    """Through contact, changes of chart, several episodes and all that follows one; with Jacobians."""
    options = {"steps_per_action": 3, "jacobians": True}
    many = VectorEnv(environment(pushed, kind, **options), 3, autoreset_mode=mode)
    loop = SyncVectorEnv([lambda: environment(pushed, kind, **options)] * 3, autoreset_mode=mode)
    assert same(many.reset(seed=5), loop.reset(seed=5))
    rng, ended, touched = np.random.default_rng(2), 0, 0
    for _ in range(12):
        actions = rng.uniform(LOW, HIGH, (3, 3))
        expected, found = loop.step(actions), many.step(actions)
        assert same(found, expected)
        done = found[2] | found[3]
        ended, touched = ended + done.sum(), touched + np.count_nonzero(found[0][:, -1])
        if mode == "Disabled" and done.any():
            assert same(many.reset(options={"reset_mask": done}), loop.reset(options={"reset_mask": done}))
    assert ended >= 3 and (touched > 3 or mode == "SameStep")  # there a first observation takes the last one's place


def test_the_steps_of_the_terms_give_the_same_in_a_loop(pushed):
    env = environment(pushed)
    many = VectorEnv(env, 2)
    slow = environment(pushed)
    slow.built = replace(slow.built, simulation=by_terms(slow.built.simulation))
    slow.function = slow.built.step_function(("push",), (), {"push": (LOW, HIGH)})
    loop = VectorEnv(slow, 2)
    assert "solver" in loop.loop_reason
    found, expected = many.reset(seed=1)[0], loop.reset(seed=1)[0]
    assert np.array_equal(found, expected)
    for _ in range(8):
        found, expected = many.step(np.ones((2, 3))), loop.step(np.ones((2, 3)))
        assert np.allclose(found[0], expected[0], rtol=1e-9, atol=1e-9)
        assert np.allclose(found[1], expected[1], rtol=1e-9)


def test_a_step_of_ones_own_is_called(pushed):
    class Doubled(Env):
        def step(self, action):
            seen, reward, *rest = super().step(action)
            return seen, 2 * reward, *rest

    single, doubled = VectorEnv(environment(pushed), 2), VectorEnv(environment(pushed, Doubled), 2)
    assert doubled.loop_reason == "Doubled has a step of its own"
    single.reset(seed=0), doubled.reset(seed=0)
    actions = np.zeros((2, 3))
    assert np.array_equal(2 * single.step(actions)[1], doubled.step(actions)[1])


def test_wrappers_of_gymnasium_take_it(pushed):
    many = RecordEpisodeStatistics(VectorEnv(environment(pushed), 2))
    many.reset(seed=0)
    for _ in range(STEPS):
        *_, truncated, infos = many.step(np.zeros((2, 3)))
    assert truncated.all() and (infos["episode"]["l"] == STEPS).all()


def test_steps_that_fail(pushed):
    wild = {"actions": {"push": (-1e308, 1e308)}, "randomise": {}}
    actions = np.array([np.zeros(3), np.full(3, 1e308)])
    with np.errstate(all="ignore"):
        many = VectorEnv(environment(pushed, **wild), 2)
        many.reset()
        with pytest.raises(SolverError, match=r"^member 1: step 1"):
            many.step(actions)
        assert [env.seen.state.step for env in many.envs] == [0, 0]
        many = VectorEnv(environment(pushed, **wild, failure_reward=-5.0), 2)
        many.reset()
        _, rewards, terminated, _, infos = many.step(actions)
    assert rewards[1] == -5.0 and terminated.tolist() == [False, True]
    assert infos["error"][1].startswith("step 1") and infos["_error"].tolist() == [False, True]


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        (np.zeros((3, 3)), r"these are no actions \(found shape \(3, 3\); expected shape \(2, 3\)"),
        ([[0, 0, 0], [0, 2, 0]], r"member 1: signals.push: an action is outside its bounds"),
        ([[0, np.nan, 0], [0, 0, 0]], r"member 0: signals.push: a control is not a finite number"),
    ],
)
def test_bad_actions_are_named(pushed, actions, words):
    many = VectorEnv(environment(pushed), 2)
    with pytest.raises(InputError, match=r"begins with reset"):
        many.step(np.zeros((2, 3)))
    many.reset(seed=0)
    with pytest.raises(InputError, match=words):
        many.step(actions)
    assert [env.seen.state.step for env in many.envs] == [0, 0]


def test_bad_vectors_are_named(pushed):
    env = environment(pushed)
    with pytest.raises(InputError, match="num_envs: a vector environment has members"):
        VectorEnv(env, 0)
    with pytest.raises(InputError, match=r"no environment of add\.gym"):
        VectorEnv(SyncVectorEnv([lambda: env]), 2)
    with pytest.raises(ValueError, match="Sometimes"):
        VectorEnv(env, 2, autoreset_mode="Sometimes")
    many = VectorEnv(env, 2, autoreset_mode="Disabled")
    for arguments, words in (
        ({"seed": [1]}, "one seed a member"),
        ({"options": {"reset_mask": np.array([True, False])}}, "first reset is that of every member"),
        ({"options": {"reset_mask": np.array([1, 0])}}, "reset_mask says which members"),
        ({"options": {"wind": 1}}, "unknown options of reset"),
        ({"options": {"inputs": {"signals.push.values": 1}}}, "this signal is a control and an input"),
    ):
        with pytest.raises(InputError, match=words):
            many.reset(**arguments)
    many.reset(seed=0)
    for _ in range(STEPS):
        many.step(np.zeros((2, 3)))
    with pytest.raises(InputError, match="member 0: step: an episode has ended"):
        many.step(np.zeros((2, 3)))
