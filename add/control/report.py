"""The outcome of an optimal control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from add.simulation.run import Trajectory
from add.summary import Summarised, Summary
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Iteration:
    """One iteration.

    Attributes
    ----------
    value : float
        The objective after it.
    decrease : float
        Of the objective (multiple shooting: of the merit), in this iteration.
    expected : float
        What the quadratic model expected at the whole step.
    share : float
        Of the step, by the line search; 0 where none was found.
    regularisation : float
        mu of the cost mu/2 |du|^2 of every stage.
    slope : float
        Largest entry of the gradient by controls that are not held by a limit.
    gap : float
        Largest gap between the pieces of a multiple shooting; 0 of iLQR.
    seconds : float
        Since the beginning.
    """

    value: float
    decrease: float
    expected: float
    share: float
    regularisation: float
    slope: float
    gap: float
    seconds: float


@final
@dataclass(frozen=True, repr=False)
class ControlResult(Summarised):
    """Controls, feedback and how they were found.

    Attributes
    ----------
    x : (n,)
        Variables of the problem, for `InverseProblem.values` and `InverseProblem.theta`.
    value : float
        The objective, of a run without gaps.
    converged : bool
    reason : str
    iterations : tuple of Iteration
    trajectory : Trajectory
    stages : for each stage, the variables that act in it (k,)
    feedback : for each stage, K (k, 2 m n)
        u = u* + K difference(state, state*) of `add.control.costs`, at the state that the stage begins with.
    """

    x: FloatArray
    value: float
    converged: bool
    reason: str
    iterations: tuple[Iteration, ...]
    trajectory: Trajectory
    stages: tuple[IntArray, ...]
    feedback: tuple[FloatArray, ...]

    @property
    def seconds(self) -> float:
        """Wall time."""
        return self.iterations[-1].seconds if self.iterations else 0.0

    def summary(self) -> Summary:
        """Return a few lines."""
        rows = [
            ("value", f"{self.value:.6g}"),
            ("iterations", f"{len(self.iterations)}, {self.seconds:.2f} s"),
            ("ended", f"{'converged: ' if self.converged else ''}{self.reason}"),
            ("stages", str(len(self.stages))),
        ]
        return Summary("ControlResult", tuple(rows))
