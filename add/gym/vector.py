"""Many episodes of one scene at once, whose steps are taken in one compiled call."""

from collections.abc import Sequence
from typing import Any, final

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from add.errors import InputError, SolverError
from add.gym.env import Env, HeldAction
from add.scene.build.inputs import of_member
from add.scene.build.step_batch import steps_of
from add.simulation import BDF
from add.simulation.substeps import whole_steps
from add.typing import BoolArray, FloatArray, as_numbers

#: As `Env.step` returns it.
Outcome = tuple[FloatArray, float, bool, bool, dict[str, Any]]


@final
class VectorEnv(gymnasium.vector.VectorEnv):  # type: ignore[misc]
    """Copies of an environment whose episodes run side by side; their numbers are those of single ones, to the bit.

    Steps are taken together in one compiled call. Where that cannot be, they are taken one after the other, and
    `loop_reason` says why. Spaces, infos and what follows an episode are those of `gymnasium.vector.SyncVectorEnv`.

    Parameters
    ----------
    env : Env
        Of this class, or one with its own `Env.reward` and `Env.terminated`; it is copied and keeps its own episode.
    num_envs : int
    autoreset_mode : AutoresetMode or its value
        When a member whose episode has ended begins its next one: in the next step, whose action it ignores, in the
        same step, or not before `reset`.

    Attributes
    ----------
    envs : tuple of Env
        The members.
    loop_reason : str
        Why the steps are a loop; empty where they are one call.

    Raises
    ------
    InputError
        If it is no environment of this package, or draws in a window, or there are no members. `step` refuses actions
        outside of their space, and names the member.
    """

    def __init__(
        self, env: Env, num_envs: int, *, autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP
    ) -> None:
        if not isinstance(env, Env):
            raise InputError(
                "this is no environment of add.gym", place="env", found=type(env).__name__,
                expected="an Env without wrappers: wrap the vector environment",
            )  # fmt: skip
        if not isinstance(num_envs, (int, np.integer)) or num_envs < 1:
            raise InputError("a vector environment has members", place="num_envs", found=num_envs, expected="1 or more")
        if env.render_mode == "human":
            raise InputError("a window shows one environment", place="env", found="render_mode 'human'")
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**env.metadata, "autoreset_mode": self.autoreset_mode}
        self.num_envs, self.render_mode = num_envs, env.render_mode
        self.single_action_space, self.single_observation_space = env.action_space, env.observation_space
        self.action_space = batch_space(env.action_space, num_envs)
        self.observation_space = batch_space(env.observation_space, num_envs)
        self.envs = tuple(env.again() for _ in range(num_envs))
        self._ended: BoolArray = np.zeros(num_envs, dtype=bool)
        self._seen: FloatArray = np.zeros((num_envs, env.observed.size))
        self._begun = False
        self._own_steps = type(env).step is not Env.step
        reason = f"{type(env).__name__} has a step of its own" if self._own_steps else ""
        simulation = env.built.simulation
        stepper = whole_steps(simulation.stepper)
        alone = "" if isinstance(stepper, BDF) else f"steps of {type(stepper).__name__}"
        self.loop_reason = reason or simulation.by_terms or alone

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Begin an episode of every member.

        Parameters
        ----------
        seed : int or one a member, optional
            Of what `Env` draws; an integer is that of the first member, the next one has the next integer.
        options : dict, optional
            Those of `Env.reset`, for every member; ``reset_mask`` (num_envs,) bool begins those episodes alone.
        """
        if isinstance(seed, int):
            seed = [seed + i for i in range(self.num_envs)]
        seeds = list(seed or [None] * self.num_envs)
        if len(seeds) != self.num_envs:
            raise InputError("one seed a member", place="seed", found=f"{len(seeds)}", expected=f"{self.num_envs}")
        given = dict(options or {})
        mask = np.asarray(given.pop("reset_mask", np.ones(self.num_envs, dtype=bool)))
        if mask.shape != (self.num_envs,) or mask.dtype != bool or not mask.any():
            raise InputError(
                "reset_mask says which members begin anew", place="options",
                found=f"shape {mask.shape} of {mask.dtype}, {np.count_nonzero(mask)} of them",
                expected=f"shape ({self.num_envs},) of bool, one of them at least",
            )  # fmt: skip
        if not (self._begun or mask.all()):
            raise InputError("the first reset is that of every member", place="options", found="a reset_mask")
        infos: dict[str, Any] = {}
        for i in np.flatnonzero(mask).tolist():
            self._seen[i], info = self.envs[i].reset(seed=seeds[i], options=given or None)
            infos = self._add_info(infos, info, i)
        self._ended[mask], self._begun = False, True
        return self._seen.copy(), infos

    def step(self, actions: Any) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """Hold an action a member for its steps.

        Raises
        ------
        InputError
            If an action is not in its space, or a member's episode has ended and no mode begins the next.
        SolverError
            If a step fails, and the environment has no `failure_reward`; every episode stays before that step.
        """
        given = as_numbers("actions", actions)
        if given.shape != self.action_space.shape:
            raise InputError(
                "these are no actions", found=f"shape {given.shape}", expected=f"shape {self.action_space.shape}"
            )
        if not self._begun:
            raise InputError("an episode begins with reset()")
        waiting = self._ended.copy()
        if waiting.any() and self.autoreset_mode is AutoresetMode.DISABLED:
            raise InputError(
                "an episode has ended", place=of_member(int(np.flatnonzero(waiting)[0]), 2, "step"),
                expected="reset(options={'reset_mask': ...}) before its next action",
            )  # fmt: skip
        outcomes = self._outcomes(given, np.flatnonzero(~waiting).tolist())
        rewards: FloatArray = np.zeros(self.num_envs)
        infos: dict[str, Any] = {}
        terminated, truncated = np.zeros(self.num_envs, dtype=bool), np.zeros(self.num_envs, dtype=bool)
        for i, env in enumerate(self.envs):
            if waiting[i]:
                self._seen[i], info = env.reset()
            else:
                self._seen[i], rewards[i], terminated[i], truncated[i], info = outcomes[i]
                if self.autoreset_mode is AutoresetMode.SAME_STEP and (terminated[i] or truncated[i]):
                    infos = self._add_info(infos, {"final_obs": self._seen[i].copy(), "final_info": info}, i)
                    self._seen[i], info = env.reset()
            infos = self._add_info(infos, info, i)
        self._ended = terminated | truncated
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            self._ended = np.zeros(self.num_envs, dtype=bool)
        return self._seen.copy(), rewards, terminated, truncated, infos

    def _outcomes(self, actions: FloatArray, acting: list[int]) -> dict[int, Outcome]:
        """Return what the steps of some members bring."""
        if self._own_steps:
            return {i: self.envs[i].step(actions[i]) for i in acting}
        first = self.envs[0]
        control = first.controls(actions)
        # A member that waits has an action that counts not.
        for name, (low, _) in first.function.arguments.bounds.items():
            control[name][[i for i in range(self.num_envs) if i not in acting]] = low
        held = {i: HeldAction({}) for i in acting}
        for _ in range(first.steps_per_action):
            members = [i for i in acting if not held[i].done]
            if members:
                self._step(members, control, held)
        return {i: self.envs[i].end(held[i]) for i in acting}

    def _step(self, members: list[int], control: dict[str, FloatArray], held: dict[int, HeldAction]) -> None:
        """Take one step of some members; the controls are those of all."""
        function = self.envs[0].function
        values, thetas = (np.concatenate(part) for part in zip(*(env.numbers for env in self.envs), strict=True))
        states = [env.seen.state for env in self.envs]
        function.arguments.drive(values, thetas, np.array([state.step for state in states]), control)
        batch = steps_of(function, [states[i] for i in members], values[members], thetas[members])
        for k, error in batch.failures.items():
            if self.envs[members[k]].failure_reward is None:
                raise SolverError(f"member {members[k]}: {error}") from error
        for k, i in enumerate(members):
            if k in batch.failures:
                self.envs[i].fail(held[i], batch.failures[k])
            else:
                self.envs[i].take(held[i], batch.step(k))
