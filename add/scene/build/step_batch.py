"""The same step of many states, each with its own controls and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from add.errors import InputError, SolverError
from add.scene.build.steps import Step, StepFunction
from add.typing import FloatArray, IntArray

#: Name -> a row a member.
Rows = Mapping[str, FloatArray]


@final
@dataclass(frozen=True)
class StepBatch:
    """Steps that were taken, one a member.

    Attributes
    ----------
    steps : tuple of Step
    """

    steps: tuple[Step, ...]

    @property
    def q(self) -> FloatArray:
        """Coordinates of the pairs after the step (b, m, n)."""
        return np.stack([step.state.q for step in self.steps])

    @property
    def v(self) -> FloatArray:
        """Velocities of the pairs after the step (b, m, n)."""
        return np.stack([step.state.v for step in self.steps])

    def pullback(
        self, q_bar: FloatArray, v_bar: FloatArray
    ) -> tuple[FloatArray, FloatArray, dict[str, FloatArray], dict[str, FloatArray]]:
        """Pull cotangents (b, m, n) back to the pairs before (b, m, n), controls and inputs, a row a member."""
        found = [step.vjp(q, v) for step, q, v in zip(self.steps, q_bar, v_bar, strict=True)]
        return (
            np.stack([one.q for one in found]),
            np.stack([one.v for one in found]),
            {name: np.stack([one.control[name] for one in found]) for name in found[0].control},
            {name: np.stack([one.inputs[name] for one in found]) for name in found[0].inputs},
        )


def step_batch(
    function: StepFunction, q: FloatArray, v: FloatArray, k: IntArray, control: Rows, inputs: Rows
) -> StepBatch:
    """Take one step of many states.

    Parameters
    ----------
    function : StepFunction
    q, v : (b, m, n)
        Pairs of coordinates and velocities.
    k : (b,)
        Steps behind each state; of one with none, only the first pair counts.
    control, inputs : name -> (b, ...)

    Raises
    ------
    InputError, SolverError
        As the function; they name the member where there are several.
    """
    steps = []
    for i, behind in enumerate(k.tolist()):
        try:
            state = function.state(q[i], v[i], int(behind))
            given = ({name: value[i] for name, value in rows.items()} for rows in (control, inputs))
            steps.append(function(state, *given))
        except InputError as error:
            if k.size > 1:
                error.place = f"member {i}: {error.place}" if error.place else f"member {i}"
            raise
        except SolverError as error:
            if k.size > 1:
                raise SolverError(f"member {i}: {error}") from error
            raise
    return StepBatch(tuple(steps))
