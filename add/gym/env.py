"""One scene as an environment of Gymnasium.

The reward of a step is what it adds to the scene's objective, negative; override `reward` and `terminated` for others.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Self, final

import gymnasium
import numpy as np
from numpy.typing import NDArray

from add.errors import InputError, SolverError
from add.scene import Scene
from add.scene.build.built import BuiltScene
from add.scene.build.inverse_problem import scene_objective
from add.scene.build.observations import Seen, observations as _observations
from add.scene.build.run_data import run_data
from add.scene.build.step_arguments import Bounds
from add.scene.build.steps import Step
from add.scene.read.reader import experiment_scenes
from add.simulation import Record
from add.simulation.run import Trajectory
from add.typing import NAMED, SCENE, FloatArray, as_numbers, require_kind


@final
@dataclass
class HeldAction:
    """An action while it is held.

    Attributes
    ----------
    control : name of a signal -> its row (1, ...)
    reward : sum over the steps so far
    done : whether the episode has ended for a reason of its own
    jacobians : of the state so far by the one at the beginning and by the action, or None
    info : dict
    """

    control: dict[str, FloatArray]
    reward: float = 0.0
    done: bool = False
    jacobians: tuple[FloatArray, FloatArray] | None = None
    info: dict[str, Any] = field(default_factory=dict)


class Env(gymnasium.Env):  # type: ignore[misc]
    """An episode of a scene, step by step.

    Actions and observations are vectors of double precision. An episode ends, `truncated`, with the scene's run.

    Parameters
    ----------
    scene : Scene
    actions : name of a signal -> (low, high), optional
        In the unit of what it drives, see `add.scene.build.steps.StepFunction`. Default: the signals whose whole rows
        are among the scene's `parameters`, with their bounds.
    observations : names, optional
        See `add.scene.build.observations.observations`. Default: all markers with their velocities.
    steps_per_action : int
        Steps of the simulation that an action is held for.
    max_steps : int, optional
        Actions of an episode; default: as many as the scene's run has room for.
    randomise : path -> (low, high), optional
        Numbers of the scene that `reset` draws anew, evenly, such as ``{"bodies.cart.position.0": (-0.1, 0.1)}``.
    failure_reward : float, optional
        Where a step fails: the reward, and the episode ends, `terminated`. Default: the error is raised.
    render_mode : "rgb_array" or "human", optional
        What `render` draws: a picture, or a window that `reset` and `step` draw into, no faster than the motion is.
        Default: nothing.
    jacobians : bool
        Whether ``info["jacobians"]`` has the derivatives of the state after a step by the one before and by the action,
        as `Step.jacobians` orders them.

    Attributes
    ----------
    observed : Observations
        Which part of the vector is what.

    Raises
    ------
    InputError
        If a name is none, or bounds do not fit. `step` refuses an action outside of its space, `reset` options that
        it does not know.
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array"]}  # noqa: RUF012  as Gymnasium declares it

    def __init__(
        self,
        scene: Scene,
        *,
        actions: Mapping[str, Bounds] | None = None,
        observations: Sequence[str] | None = None,
        steps_per_action: int = 1,
        max_steps: int | None = None,
        randomise: Mapping[str, Bounds] | None = None,
        failure_reward: float | None = None,
        jacobians: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise InputError(
                "unknown way to draw", place="render_mode", found=render_mode, expected="'rgb_array' or 'human'"
            )
        require_kind(scene, Scene, "scene", SCENE)
        self.built: BuiltScene = scene.build()
        self.render_mode = render_mode
        if jacobians:
            self.built.simulation.differentiable  # noqa: B018  refused before the first step
        self._bounds = _mapping("actions", actions) or dict(_declared(scene))
        if not self._bounds:
            raise InputError(
                "there is nothing to act with", place="actions",
                expected="signals with bounds, or `parameters` of the scene that are rows of signals and have bounds",
            )  # fmt: skip
        self.function = self.built.step_function(tuple(self._bounds), (), self._bounds)
        arguments = self.function.arguments
        self._shapes = {name: place.shape for name, place in arguments.places(0).items()}
        low, high = (np.concatenate([pair[k].ravel() for pair in arguments.bounds.values()]) for k in (0, 1))
        self.action_space = gymnasium.spaces.Box(low, high, dtype=np.float64)
        names = [f"markers.{name}{rate}" for name in self.built.marker_names for rate in ("", ".velocity")]
        self.observed = _observations(self.built, names if observations is None else observations)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (self.observed.size,), dtype=np.float64)
        steps = self.built.simulation.n_steps
        self.steps_per_action = _count("steps_per_action", steps_per_action, steps)
        most = steps // steps_per_action
        self._most = most if max_steps is None else _count("max_steps", max_steps, most)
        if failure_reward is not None and not np.isfinite(as_numbers("failure_reward", failure_reward)).all():
            raise InputError("a reward is finite", place="failure_reward", found=failure_reward)
        self._objective = (
            scene_objective(scene, self.built, next(iter(experiment_scenes(scene))), steps) if scene.objective else None
        )
        drawn = _mapping("randomise", randomise)
        self.function.arguments.require_apart(drawn)
        self._randomise = {
            path: _pair(path, pair, self.built.numbers.place(path).shape) for path, pair in drawn.items()
        }
        self.failure_reward, self._jacobians = failure_reward, jacobians
        self.metadata = self.metadata | {"render_fps": max(1, round(1.0 / (steps_per_action * scene.time.dt)))}
        self._camera: Any = None
        self._values = self._theta = np.zeros(0)
        self._seen: Seen | None = None
        self._taken, self._over = 0, False

    def again(self) -> Self:
        """Return an environment like this one, without an episode.

        Both share what is built, and are for one thread; a subclass makes what it keeps of an episode in `reset`.
        """
        other = copy.copy(self)
        other._np_random, other._np_random_seed, other._seen, other._camera = None, None, None, None
        return other

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Begin an episode.

        Parameters
        ----------
        seed : int, optional
            Of what `randomise` draws.
        options : {"inputs": {path: value}}, optional
            Numbers of the scene for this episode, over those drawn, and ``state.q`` and ``state.v`` (n,) to begin with.
        """
        super().reset(seed=seed)
        given = _mapping("options", options)
        inputs = _mapping("options.inputs", given.pop("inputs", None))
        if given:
            raise InputError("unknown options of reset", found=", ".join(map(str, given)), expected="inputs")
        drawn = {
            path: self.np_random.uniform(low, high, self.built.numbers.place(path).shape)
            for path, (low, high) in self._randomise.items()
        }
        values = {name: as_numbers(name, value) for name, value in {**drawn, **inputs}.items()}
        self.function.arguments.require_apart(values)
        start = self.built.rollout(values, n_steps=0)
        self._values = start.runs.values[0]
        self._theta = self.built.numbers.ties.forward(self._values)
        self._seen = Seen(start.trajectory.initial, None, self._values, self._theta)
        self._taken, self._over = 0, False
        if self._objective is not None:
            self._objective = self._objective.for_run()
            self._objective.step_value(self._seen.state, self._theta)
        if self.render_mode == "human":
            self.render()
        return self.observed(self._seen), {"time": 0.0}

    def step(self, action: Any) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """Hold an action for its steps.

        Raises
        ------
        InputError
            If the action is not in the action space.
        SolverError
            If a step fails, and the environment has no `failure_reward`.
        """
        held = self.begin(action)
        for _ in range(self.steps_per_action):
            values, thetas = self.numbers
            self.function.arguments.drive(values, thetas, np.array([self.seen.state.step]), held.control)
            try:
                self.take(held, self.function.taken(self.seen.state, values[0], thetas[0]))
            except SolverError as error:
                self.fail(held, error)
            if held.done:
                break
        if self.render_mode == "human":
            self.render()
        return self.end(held)

    @property
    def seen(self) -> Seen:
        """The state of the episode.

        Raises
        ------
        InputError
            If none has begun.
        """
        if self._seen is None:
            raise InputError("an episode begins with reset()")
        return self._seen

    @property
    def numbers(self) -> tuple[FloatArray, FloatArray]:
        """The episode's numbers (1, n_s) and theta (1, n_theta), for `StepArguments.drive`: copies."""
        return self._values[None].copy(), self._theta[None].copy()

    def begin(self, action: Any) -> HeldAction:
        """Return an action that is to be held."""
        _ = self.seen
        if self._over:
            raise InputError("the episode has ended", expected="reset() before the next action")
        return HeldAction(self._control(action))

    def take(self, held: HeldAction, step: Step) -> None:
        """Go on by one of the steps that an action is held for."""
        self._seen = Seen(step.state, step.record, step.values, step.theta)
        held.reward += self.reward(self._seen)
        if self._jacobians:
            by_state, by_action = step.jacobians()
            if held.jacobians is not None:
                before, own = held.jacobians
                by_state, by_action = by_state @ before, by_state @ own + by_action
            held.jacobians = by_state, by_action
        held.done = self.terminated(self._seen)

    def fail(self, held: HeldAction, error: SolverError) -> None:
        """End the episode at a step that failed; the error is raised unless there is a `failure_reward`."""
        if self.failure_reward is None:
            raise error
        held.info["error"] = str(error)
        held.reward += self.failure_reward
        held.done = True

    def end(self, held: HeldAction) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """Return the outcome of `step` when an action has been held."""
        self._taken += 1
        truncated = self._taken >= self._most
        self._over = held.done or truncated
        held.info["time"] = self.seen.state.t
        if held.jacobians is not None:
            held.info["jacobians"] = {"state": held.jacobians[0], "action": held.jacobians[1]}
        return self.observed(self.seen), float(held.reward), held.done, truncated, held.info

    def reward(self, seen: Seen) -> float:
        """Return the reward of one step of the simulation; here what it adds to the scene's objective, negative."""
        return 0.0 if self._objective is None else -float(self._objective.step_value(seen.state, seen.theta))

    def terminated(self, seen: Seen) -> bool:
        """Return whether the episode ends here for a reason of its own; here never."""
        return False

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        """Return a picture (480, 640, 3) of the state, from where the first one was seen; None of a window.

        Raises
        ------
        InputError
            If no episode has begun, PyVista is not installed, or there is no display for a window.
        """
        if self.render_mode is None:
            return None
        state = self.seen.state
        run = Trajectory(np.array([state.t]), state.q[:1], state.v[:1], None, [], state)
        data = run_data(self.built, run, self.seen.theta)
        human = self.render_mode == "human"
        if self._camera is None:
            from add.view import Camera, Look, Screen

            look = Look(plain=True)
            self._camera = Screen(1.0 / self.metadata["render_fps"], look) if human else Camera(look)
        if human:
            self._camera.show(data)
            return None
        picture: NDArray[np.uint8] = self._camera.picture(data)
        return picture

    def close(self) -> None:
        """Close the window, where there is one."""
        if self.render_mode == "human" and self._camera is not None:
            self._camera.close()
        self._camera = None

    @property
    def record(self) -> Record | None:
        """The record of the last step."""
        return None if self._seen is None else self._seen.record

    def _control(self, action: Any) -> dict[str, FloatArray]:
        """Return the rows of the controls (1, ...)."""
        values = as_numbers("action", action)
        space = self.action_space
        if values.shape != space.shape:
            raise InputError("this is no action", found=f"shape {values.shape}", expected=f"shape {space.shape}")
        return self.controls(values[None])

    def controls(self, actions: FloatArray) -> dict[str, FloatArray]:
        """Return the rows of the controls (b, ...) of b actions."""
        out, start = {}, 0
        for name, shape in self._shapes.items():
            part = slice(start, start + int(np.prod(shape, dtype=int)))
            out[name] = actions[:, part].reshape(-1, *shape).copy()
            start = part.stop
        return out


def _count(name: str, value: Any, most: int) -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not 1 <= value <= most:
        raise InputError(
            "this is no number of steps that the scene's run has room for", place=name, found=f"{value}",
            expected=f"a whole number from 1 to {most}",
        )  # fmt: skip
    return int(value)


def _mapping(name: str, value: Any) -> dict[str, Any]:
    require_kind(value, (Mapping, NoneType), name, NAMED)
    return dict(value or {})


def _pair(name: str, pair: Any, shape: tuple[int, ...]) -> Bounds:
    """Return bounds of a number that is drawn."""
    if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
        raise InputError("bounds are (low, high)", place=name, found=f"{pair}", expected="low below high")
    low, high = (as_numbers(name, bound) for bound in pair)
    if not np.all(low < high) or not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise InputError("bounds are (low, high)", place=name, found=f"{pair}", expected="low below high, finite")
    if any(bound.shape not in ((), shape) for bound in (low, high)):
        raise InputError(
            "bounds do not fit the number", place=name, found=f"{pair}", expected=f"numbers, or of shape {shape}"
        )
    return low, high


def _declared(scene: Scene) -> dict[str, Bounds]:
    """Return the bounds of signals whose rows are parameters of the scene."""
    out: dict[str, Bounds] = {}
    for item in scene.parameters:
        if item.components is not None:  # of the others the scene says no bounds
            continue
        for path in item.all_paths():
            kind, *keys = path.split(".")
            if kind == "signals" and keys[1:] in (["values"], ["value"]) and item.bounds:
                low, high = item.bounds
                if low is not None and high is not None:
                    out[keys[0]] = low, high
    return out
