"""One scene as an environment of Gymnasium.

The reward of a step is what it adds to the scene's objective, negative; override `reward` and `terminated` for others.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, final

import gymnasium
import numpy as np

from add.errors import InputError, SolverError
from add.scene.build.built import BuiltScene
from add.scene.build.inverse_problem import scene_objective
from add.scene.build.observations import Seen, observations as _observations
from add.scene.build.step_arguments import Bounds
from add.scene.build.steps import Step
from add.scene.read.reader import experiment_scenes
from add.scene.scene import Scene
from add.simulation import Record
from add.typing import FloatArray


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
        In the unit of what it drives, see `add.scene.build.steps.StepFunction`. Default: the signals whose rows are
        among the scene's `parameters`, with their bounds.
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

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  as Gymnasium declares it

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
    ) -> None:
        self.built: BuiltScene = scene.build()
        if jacobians:
            self.built.simulation.differentiable  # noqa: B018  refused before the first step
        self._bounds = dict(actions or _declared(scene))
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
        if steps_per_action < 1:
            raise InputError("an action is held for a step at least", place="steps_per_action", found=steps_per_action)
        self.steps_per_action, steps = steps_per_action, self.built.simulation.n_steps
        self._most = steps // steps_per_action if max_steps is None else max_steps
        self._objective = (
            scene_objective(scene, self.built, next(iter(experiment_scenes(scene))), steps) if scene.objective else None
        )
        self._randomise = {path: _pair(path, pair) for path, pair in (randomise or {}).items()}
        self.function.arguments.require_apart(self._randomise)
        self.failure_reward, self._jacobians = failure_reward, jacobians
        self._values = self._theta = np.zeros(0)
        self._seen: Seen | None = None
        self._taken = 0

    def again(self) -> Self:
        """Return an environment like this one, without an episode.

        Both share what is built, and are for one thread; a subclass makes what it keeps of an episode in `reset`.
        """
        other = copy.copy(self)
        other._np_random, other._np_random_seed, other._seen = None, None, None
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
        given = dict(options or {})
        inputs = dict(given.pop("inputs", {}))
        if given:
            raise InputError("unknown options of reset", found=", ".join(map(str, given)), expected="inputs")
        drawn = {
            path: self.np_random.uniform(low, high, self.built.numbers.place(path).shape)
            for path, (low, high) in self._randomise.items()
        }
        values = {name: np.asarray(value, dtype=float) for name, value in {**drawn, **inputs}.items()}
        self.function.arguments.require_apart(values)
        start = self.built.rollout(values, n_steps=0)
        self._values = start.runs.values[0]
        self._theta = self.built.numbers.ties.forward(self._values)
        self._seen, self._taken = Seen(start.trajectory.initial, None, self._values, self._theta), 0
        if self._objective is not None:
            self._objective = self._objective.for_run()
            self._objective.step_value(self._seen.state, self._theta)
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
        return HeldAction(self._control(action))

    def take(self, held: HeldAction, step: Step) -> None:
        """Go on by one of the steps that an action is held for."""
        self._seen = Seen(step.state, step.record, step.values, step.theta)
        held.reward += self.reward(self._seen)
        if self._jacobians:
            held.jacobians = _chained(held.jacobians, step)
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
        held.info["time"] = self.seen.state.t
        if held.jacobians is not None:
            held.info["jacobians"] = {"state": held.jacobians[0], "action": held.jacobians[1]}
        return self.observed(self.seen), float(held.reward), held.done, self._taken >= self._most, held.info

    def reward(self, seen: Seen) -> float:
        """Return the reward of one step of the simulation; here what it adds to the scene's objective, negative."""
        return 0.0 if self._objective is None else -float(self._objective.step_value(seen.state, seen.theta))

    def terminated(self, seen: Seen) -> bool:
        """Return whether the episode ends here for a reason of its own; here never."""
        return False

    @property
    def record(self) -> Record | None:
        """The record of the last step."""
        return None if self._seen is None else self._seen.record

    def _control(self, action: Any) -> dict[str, FloatArray]:
        """Return the rows of the controls (1, ...)."""
        values = np.asarray(action, dtype=float)
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


def _pair(name: str, pair: Any) -> Bounds:
    if len(pair) != 2 or not np.all(np.asarray(pair[0]) < np.asarray(pair[1])):
        raise InputError("bounds are (low, high)", place=name, found=f"{pair}", expected="low below high")
    return tuple(pair)


def _declared(scene: Scene) -> dict[str, Bounds]:
    """Return the bounds of signals whose rows are parameters of the scene."""
    out: dict[str, Bounds] = {}
    for item in scene.parameters:
        for path in item.all_paths():
            kind, *keys = path.split(".")
            if kind == "signals" and keys[1:] in (["values"], ["value"]) and item.bounds:
                low, high = item.bounds
                if low is not None and high is not None:
                    out[keys[0]] = low, high
    return out


def _chained(before: tuple[FloatArray, FloatArray] | None, step: Step) -> tuple[FloatArray, FloatArray]:
    by_state, by_action = step.jacobians()
    return (by_state, by_action) if before is None else (by_state @ before[0], by_state @ before[1] + by_action)
