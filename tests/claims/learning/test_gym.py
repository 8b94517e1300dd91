"""Scenes as environments of Gymnasium."""

import sys
import time
from itertools import pairwise

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv
from support.pushed_ball import STEPS, pushed_ball

from add.errors import InputError, SolverError
from add.gym import Env, VectorEnv
from add.scene import Scene, experiment_scenes, scene_from_dict
from add.scene.build.observations import Seen, observations

SEEN = ["time", "markers.centre", "bodies.ball.orientation", "bodies.ball.angular_velocity", "contact.ball"]
GOAL = {"type": "point", "marker": "centre", "target": [0.1, 0, 0.1], "window": [0.004, STEPS * 0.004]}


def scene(**changes) -> Scene:
    raw = pushed_ball().scene.model_dump(mode="json", by_alias=True)
    return scene_from_dict(raw | {"objective": [GOAL]} | changes)


@pytest.fixture(scope="module")
def pushed() -> Scene:
    return scene()


def environment(pushed: Scene, **options) -> Env:
    return Env(pushed, **{"actions": {"push": (-2.0, [2.0, 1.0, 3.0])}, "observations": SEEN} | options)


@pytest.mark.filterwarnings("ignore:.*Box observation space.*:UserWarning")
@pytest.mark.filterwarnings("ignore:.*recommend using a symmetric and normalized space.*:UserWarning")
@pytest.mark.filterwarnings("ignore:.*not having a `spec`.*:UserWarning")
def test_gymnasium_approves(pushed):
    check_env(environment(pushed, randomise={"bodies.ball.velocity.0": (0.0, 1.0)}), skip_render_check=True)


@pytest.mark.filterwarnings("ignore")
def test_pictures(pushed):
    """Of a state (height, width, 3), by Gymnasium's checks; the ball moves in them, the camera does not."""
    pytest.importorskip("pyvista")
    env = environment(pushed, render_mode="rgb_array", steps_per_action=4)
    with pytest.raises(InputError, match="reset"):
        env.render()
    env.reset()
    frames = [env.render()]
    for _ in range(3):
        env.step(np.array([2.0, 0.0, 0.0]))
        frames.append(env.render())
    assert all(frame.shape == (480, 640, 3) and frame.dtype == np.uint8 for frame in frames)
    # The goal of the objective, a red cross, stands where it stood; the ball does not.
    red = [(frame[..., 0] > 180) & (frame[..., 1] < 90) & (frame[..., 2] < 90) for frame in frames]
    crosses = [np.argwhere(mask[100:]).mean(axis=0) for mask in red]
    np.testing.assert_allclose(crosses[-1], crosses[0], atol=3.0)
    assert np.any(frames[0] != frames[-1], axis=2).mean() > 0.02
    assert env.metadata["render_fps"] == round(1 / (4 * pushed.time.dt))
    assert environment(pushed).render() is None
    with pytest.raises(InputError, match="render_mode"):
        environment(pushed, render_mode="ansi")
    check_env(environment(pushed, render_mode="rgb_array"))


def test_a_window(pushed, monkeypatch):
    """Shown by `reset` and `step`, at the pace of the motion; an error without a display, or of many environments."""
    pyvista = pytest.importorskip("pyvista")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    env = environment(pushed, render_mode="human", steps_per_action=4)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(InputError, match=r"no display to open a window on; .*rgb_array"):
        env.reset()
    with pytest.raises(InputError, match="a window shows one environment"):
        VectorEnv(env, 2)
    # A plotter that draws off the screen stands for the window.
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(pyvista, "OFF_SCREEN", True)
    env.reset()
    plotter, first = env._camera.plotter, env._camera.plotter.camera.position
    pictures, begin = [plotter.screenshot(None, return_img=True)], time.monotonic()
    for _ in range(2):
        env.step(np.array([2.0, 0.0, 0.0]))
        pictures.append(plotter.screenshot(None, return_img=True))
    assert time.monotonic() - begin >= 2 * 4 * pushed.time.dt
    assert env._camera.plotter is plotter and plotter.camera.position == first
    assert all(np.any(a != b) for a, b in pairwise(pictures))
    assert env.render() is None
    env.close()
    assert plotter._closed
    env.close()


def test_an_episode_is_the_run(pushed):
    """The scene's own rows as actions: the states, and the objective as the negative sum of rewards."""
    env = environment(pushed, actions={"push": (-10.0, 10.0)})
    built = pushed.build()
    run, rows = built.run(), np.array(pushed.signals["push"].values)
    seen, _ = env.reset()
    assert np.array_equal(seen[env.observed.parts["markers.centre"]], run.q[0, :3])
    total, touched = 0.0, 0
    for k in range(STEPS):
        seen, reward, terminated, truncated, info = env.step(rows[k])
        total += reward
        assert np.array_equal(seen[env.observed.parts["markers.centre"]], run.q[k + 1, :3])
        assert info["time"] == pytest.approx(run.t[k + 1]) and not terminated
        touched += seen[env.observed.parts["contact.ball"]][2] > 0.0
    assert truncated and touched > 4
    problem = scene(parameters=[{"path": "signals.push.values"}]).inverse_problem()
    assert total == pytest.approx(-problem.value_and_grad(problem.x0)[0], rel=1e-9)


def test_seeds_and_options(pushed):
    env = environment(pushed, randomise={"bodies.ball.velocity": (-1.0, 1.0)}, observations=["bodies.ball.velocity"])
    first, again, other = (env.reset(seed=seed)[0] for seed in (3, 3, 4))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert np.array_equal(env.reset(options={"inputs": {"bodies.ball.velocity": [1, 2, 3]}})[0], [1, 2, 3])
    light = env.reset(seed=3, options={"inputs": {"bodies.ball.mass": 0.1}})[0]
    assert np.array_equal(light, first)
    moved = [env.step([1.0, 0.0, 0.0])[0][0] - light[0]]
    env.reset(seed=3)
    moved.append(env.step([1.0, 0.0, 0.0])[0][0] - first[0])
    assert moved[0] == pytest.approx(8 * moved[1], rel=1e-6)  # m dv = F dt, before the contact
    state = env.built.run(n_steps=1).state(0)
    given = {"state.q": state.q[0], "state.v": np.arange(6.0)}
    assert np.array_equal(env.reset(options={"inputs": given})[0], [0, 1, 2])


def test_an_action_is_held(pushed):
    one, four = environment(pushed), environment(pushed, steps_per_action=4)
    one.reset(), four.reset()
    action = np.array([1.0, -1.0, 0.5])
    for _ in range(4):
        expected = one.step(action)
    rewards = []
    one.reset()
    for _ in range(4):
        rewards.append(one.step(action)[1])
    found = four.step(action)
    assert np.array_equal(found[0], expected[0]) and found[1] == pytest.approx(sum(rewards))
    assert [four.step(action)[3] for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("held", [1, 3])
def test_jacobians_are_those_of_differences(pushed, held):
    """In contact; of an action that is held, through all its steps."""
    env = environment(pushed, jacobians=True, steps_per_action=held)
    env.reset()
    for _ in range(6 // held):
        env.step(np.zeros(3))
    before = env._seen
    action = np.array([0.5, 0.2, -0.3])
    found = env.step(action)[4]["jacobians"]
    assert found["state"].shape == (24, 24) and found["action"].shape == (24, 3)
    assert np.any(env.observed(env._seen)[env.observed.parts["contact.ball"]])

    def after(q, v, action):
        env._seen = before._replace(state=env.built.simulation.state(q, v, step=before.state.step))
        env._over = False
        env.step(action)
        return np.stack([env._seen.state.q, env._seen.state.v], axis=1).ravel()

    q, v, h = before.state.q, before.state.v, 1e-7
    for k in range(3):
        step = h * np.eye(3)[k]
        difference = (after(q, v, action + step) - after(q, v, action - step)) / (2 * h)
        assert np.allclose(found["action"][:, k], difference, rtol=1e-4, atol=1e-6)
    for k in (2, 8, 14, 16, 21):
        unit = h * np.eye(24)[k].reshape(2, 2, 6)
        moved = unit[:, 0], unit[:, 1]
        difference = (after(q + moved[0], v + moved[1], action) - after(q - moved[0], v - moved[1], action)) / (2 * h)
        assert np.allclose(found["state"][:, k], difference, rtol=1e-4, atol=1e-5 * np.abs(difference).max())


def test_environments_side_by_side(pushed):
    many = SyncVectorEnv([lambda: environment(pushed, randomise={"bodies.ball.velocity": (-1, 1)})] * 2)
    seen, _ = many.reset(seed=[1, 2])
    actions = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    seen, rewards, *_ = many.step(actions)
    for k in range(2):
        one = environment(pushed, randomise={"bodies.ball.velocity": (-1, 1)})
        one.reset(seed=k + 1)
        alone = one.step(actions[k])
        assert np.array_equal(alone[0], seen[k]) and alone[1] == rewards[k]


def test_actions_of_the_scenes_parameters():
    env = Env(scene(parameters=[{"path": "signals.push.values", "bounds": [-3, 4]}]))
    assert env.action_space.low.tolist() == [-3] * 3 and env.action_space.high.tolist() == [4] * 3
    assert list(env.observed.parts) == ["markers.centre", "markers.centre.velocity"]


def test_components_of_a_row_are_no_action():
    """What a scene lets vary of a row alone says no bounds for the rest of it."""
    part = [{"path": "signals.push.values", "components": [0], "bounds": [-1, 1]}]
    with pytest.raises(InputError, match="there is nothing to act with"):
        Env(scene(parameters=part))


def test_a_step_that_fails(pushed):
    wild = {"push": (-1e308, 1e308)}
    with np.errstate(all="ignore"):
        env = environment(pushed, actions=wild)
        env.reset()
        with pytest.raises(SolverError):
            env.step([1e308, 1e308, 1e308])
        env = environment(pushed, actions=wild, failure_reward=-5.0)
        env.reset()
        _, reward, terminated, _, info = env.step([1e308, 1e308, 1e308])
    assert (reward, terminated) == (-5.0, True) and info["error"].startswith("step 1")


def test_the_floor_carries_the_weight():
    """Physics: at rest the force of the contact is the weight, 0.8 kg times 9.81 m/s^2."""
    still = {"push": {"type": "constant", "value": [0, 0, 0]}, "twist": {"type": "constant", "value": [0, 0, 0]}}
    contact = {"stiffness": 4000, "friction": 0.3, "damping": 50, "damping_ramp": 0.002, "onset": 0.002}
    env = environment(
        scene(signals=still, contact=contact, time={"dt": 0.004, "steps": 300}), observations=["contact.ball"]
    )
    env.reset(options={"inputs": {"bodies.ball.velocity": [0, 0, 0], "bodies.ball.angular_velocity": [0, 0, 0]}})
    for _ in range(300):
        force = env.step(np.zeros(3))[0]
    assert force == pytest.approx([0, 0, 0.8 * 9.81], abs=1e-3)


def test_angles_of_hinges():
    """Of a swing from the world that turns over: the angle is that of its pose, the rate the slope of the angle."""
    rod = {
        "type": "rigid",
        "geometry": {"shape": "box", "size": [0.05, 0.05, 0.5]},
        "mass": 1,
        "position": [0, 0, -0.25],
    }
    swing = {
        "type": "hinge",
        "a": {"at": [0, 0, 0]},
        "b": {"body": "rod", "at": [0, 0, 0.25]},
        "axis": [0, 2, 0],
        "stiffness": 1e5,
        "angular_stiffness": 1e4,
        "start": {"angle": 0.5, "rate": 14.0},
    }
    built = scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.005, "steps": 150, "integrator": "bdf2"},
            "bodies": {"rod": rod},
            "couplings": {"swing": swing},
        }
    ).build()
    names = ["couplings.swing.angle", "couplings.swing.rate"]
    see = observations(built, names)
    run = built.run()

    def seen(k):
        return see(Seen(run.state(k), None, built.numbers.values, built.theta))

    angles, rates = np.array([seen(k) for k in range(151)]).T
    assert angles[0] == pytest.approx(0.5) and rates[0] == pytest.approx(14.0)
    assert np.ptp(angles) > 6.0 and np.abs(angles).max() <= np.pi  # over the top
    down = run.q[:, :3] / 0.25
    assert np.allclose(np.cos(angles), -down[:, 2], atol=1e-2) and np.allclose(np.sin(angles), -down[:, 0], atol=1e-2)
    slopes = np.gradient(np.unwrap(angles), run.t)
    assert np.allclose(slopes[2:-2], rates[2:-2], atol=0.05 * np.abs(rates).max())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"actions": {"pull": (0, 1)}}, r"signals.pull: there is no signal of this name"),
        ({"actions": {"push": (1, 0)}}, r"push: bounds are \(low, high\)"),
        ({"actions": {"push": ([0, 0], 1)}}, r"signals.push: bounds do not fit"),
        ({"actions": None}, r"actions: there is nothing to act with"),
        (
            {"observations": ["markers.tip"]},
            r"markers.tip: there is no marker of this name \(found 'tip'; expected one of 'centre'",
        ),
        ({"observations": ["bodies.ball.colour"]}, r"bodies.ball.colour: there is no such observation"),
        ({"observations": []}, r"nothing is observed"),
        ({"observations": ["couplings.push.angle"]}, r"couplings.push.angle: there is no hinge of this name"),
        ({"randomise": {"bodies.ball.colour": (0, 1)}}, r"bodies.ball.colour: this number cannot be a parameter"),
        ({"steps_per_action": 0}, r"steps_per_action.*found 0; expected a whole number from 1 to 16"),
        ({"steps_per_action": 17}, r"steps_per_action.*found 17"),
        ({"steps_per_action": 1.5}, r"steps_per_action.*found 1.5"),
        ({"max_steps": 17}, r"max_steps.*found 17; expected a whole number from 1 to 16"),
        ({"steps_per_action": 5, "max_steps": 4}, r"max_steps.*expected a whole number from 1 to 3"),
        ({"max_steps": 0}, r"max_steps.*found 0"),
        ({"randomise": {"bodies.ball.mass": 3}}, r"bodies.ball.mass: bounds are \(low, high\)"),
        ({"randomise": {"bodies.ball.mass": (0.5, np.inf)}}, r"bodies.ball.mass: bounds are .* finite"),
        ({"randomise": {"bodies.ball.velocity": ([0, 0], [1, 1])}}, r"bodies.ball.velocity: bounds do not fit"),
        ({"randomise": {"signals.push.values": (0, 1)}}, r"signals.push: this signal is a control and an input"),
        ({"failure_reward": np.nan}, r"failure_reward: a reward is finite"),
    ],
)
def test_bad_environments_are_named(pushed, options, words):
    with pytest.raises(InputError, match=words):
        environment(pushed, **options)


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ([0.0, 2.0, 0.0], r"signals.push: an action is outside its bounds.* \(found \[0.0, 2.0, 0.0\]; expected"),
        ([0.0, np.nan, 0.0], r"signals.push: a control is not a finite number"),
        ([0.0, 0.0], r"this is no action \(found shape \(2,\); expected shape \(3,\)"),
        ("forward", r"action: these are no numbers \(found 'forward'"),
    ],
)
def test_bad_actions_are_named(pushed, action, words):
    env = environment(pushed)
    with pytest.raises(InputError, match="begins with reset"):
        env.step(np.zeros(3))
    env.reset()
    with pytest.raises(InputError, match=words):
        env.step(action)
    with pytest.raises(InputError, match="unknown options of reset"):
        env.reset(options={"wind": 3})
    with pytest.raises(InputError, match=r"options: wrong type .found list; expected a dictionary"):
        env.reset(options=[1])
    with pytest.raises(InputError, match=r"bodies.ball.mass: these are no numbers"):
        env.reset(options={"inputs": {"bodies.ball.mass": "heavy"}})


def test_an_episode_that_has_ended_begins_anew(pushed):
    env = environment(pushed, max_steps=2)
    env.reset()
    assert [env.step(np.zeros(3))[3] for _ in range(2)] == [False, True]
    with pytest.raises(InputError, match=r"the episode has ended .*expected reset"):
        env.step(np.zeros(3))
    env.reset()
    env.step(np.zeros(3))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scene": "scene.json"}, r"scene: wrong type \(found str 'scene.json'; expected a scene: add.load_scene"),
        ({"actions": ["push"]}, r"actions: wrong type \(found list; expected a dictionary"),
        ({"randomise": ["gravity"]}, r"randomise: wrong type \(found list"),
        ({"observations": [3]}, r"observations: wrong type \(found int 3"),
        ({"failure_reward": "low"}, r"failure_reward: these are no numbers \(found 'low'"),
    ],
)
def test_arguments_of_other_types(pushed, options, words):
    with pytest.raises(InputError, match=words):
        Env(**({"scene": pushed, "actions": {"push": (-1.0, 1.0)}} | options))


def test_experiments_are_left_out_and_this_is_said(pushed, caplog):
    """An episode is one of the scene itself; the scenes of the experiments have what these override."""
    own = [{"name": "a"}, {"name": "b", "overrides": {"bodies.ball.velocity": [1.0, 0.0, 0.0]}}]
    with_experiments = scene(experiments=own)
    text = "the scene itself, without what experiments override: 'b'"
    for build in (environment, Scene.build):
        caplog.clear()
        build(with_experiments)
        assert text in caplog.text
        caplog.clear()
        build(pushed)
        build(experiment_scenes(with_experiments)["b"])
        assert not caplog.text
