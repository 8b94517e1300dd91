"""Many runs of a scene, by the paths of its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from add.adjoint import Batch, rollout_batch
from add.equations.kinematics import State
from add.errors import InputError
from add.scene.build.numbers import SceneParameters
from add.simulation.run import Simulation
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class SceneBatch:
    """Runs of a scene with other numbers.

    Attributes
    ----------
    batch : Batch
    numbers : SceneParameters
    values : (b, n_s) the scene's numbers of every member
    inputs : path -> indices in s, shape of one member's value
    """

    batch: Batch
    numbers: SceneParameters
    values: FloatArray
    inputs: Mapping[str, tuple[IntArray, tuple[int, ...]]]

    def pullback(self, q_bar: FloatArray, v_bar: FloatArray) -> dict[str, FloatArray]:
        """Pull cotangents (b, k + 1, n) of all states back to the inputs, in the shapes that these had.

        Those of a member that failed are NaN.
        """
        theta_bars = self.batch.pullback(q_bar, v_bar).theta
        s_bars = np.stack([self.numbers.ties.pullback(s, bar) for s, bar in zip(self.values, theta_bars, strict=True)])
        b = self.values.shape[0]
        return {path: s_bars[:, index].reshape(b, *shape) for path, (index, shape) in self.inputs.items()}


def rollouts(
    simulation: Simulation,
    numbers: SceneParameters,
    inputs: Mapping[str, ArrayLike],
    states: Sequence[State] | None = None,
    *,
    n_steps: int | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
) -> SceneBatch:
    """Run a scene many times, with other numbers each time.

    Parameters
    ----------
    simulation : Simulation
    numbers : SceneParameters
        The scene's.
    inputs : path of a number of the scene -> its values, a row a member, (b,) or (b, ...)
        Any path that may be a parameter: ``bodies.cube.velocity``, ``signals.push.values``; all others keep the
        scene's values.
    states, n_steps, workers, executor : see `add.adjoint.batch.rollout_batch`

    Raises
    ------
    InputError
        If a path is none, or a shape does not fit.
    """
    found: dict[str, tuple[IntArray, tuple[int, ...]]] = {}
    arrays = {path: np.asarray(value, dtype=float) for path, value in inputs.items()}
    sizes = {path: array.shape[0] if array.ndim else 0 for path, array in arrays.items()}
    if len(set(sizes.values())) != 1 or not all(sizes.values()):
        raise InputError("every input has a row a member", found=f"rows: {sizes}", expected="equal numbers above zero")
    b = next(iter(sizes.values()))
    values = np.repeat(numbers.values[None], b, axis=0)
    for path, array in arrays.items():
        index, unit = numbers.resolve(path)
        if array[0].size != index.size:
            raise InputError(
                "the values of an input do not fit", place=path, found=f"{array.shape[1:]} a member",
                expected=f"{index.size} numbers [{unit}]",
            )  # fmt: skip
        values[:, index] = array.reshape(b, -1)
        found[path] = index, array.shape[1:]
    thetas = np.stack([numbers.ties.forward(row) for row in values])
    batch = rollout_batch(simulation, thetas, states, n_steps=n_steps, workers=workers, executor=executor)
    return SceneBatch(batch, numbers, values, found)
