"""One run of an inverse problem with its objective, and who evaluates it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from add.adjoint import Schedule
from add.adjoint.reverse import Evaluation
from add.errors import InputError
from add.inverse.maps import DesignMap
from add.mocap import Recording
from add.objectives import LeastSquares, Objective, Tracking, WeightedSum
from add.simulation.run import Simulation
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class Experiment:
    """One run of the inverse problem.

    Attributes
    ----------
    name : str
    simulation : Simulation
    objective : WeightedSum
    ties : DesignMap
        From the scene's numbers to theta.
    numbers : (n_s,)
        The scene's numbers where no parameter changes them.
    recording : Recording, optional
    tracking : Tracking, optional
        The part of the objective that follows the recording.
    schedule : Schedule, optional
        Of its reverse sweeps, where none is asked for.
    """

    name: str
    simulation: Simulation
    objective: WeightedSum
    ties: DesignMap
    numbers: FloatArray
    recording: Recording | None = None
    tracking: Tracking | None = None
    schedule: Schedule | None = None

    def within(self, window: tuple[float, float] | None) -> tuple[Objective, int]:
        """Return the objective of a time window and the steps it needs.

        Parameters
        ----------
        window : (start, stop) or None
            Simulation times that count, up to the end of this run [s]; None: the whole run.

        Raises
        ------
        InputError
            If no target or recorded frame lies in the window.
        """
        n_steps, objective = self.simulation.n_steps, self.objective
        if window is not None:
            n_steps = min(n_steps, int(np.ceil(window[1] / self.simulation.stepper.dt - 1e-9)))
            objective = objective.within(*window, last=n_steps)
        if objective.objectives and not objective.looks:
            place = "in the window" if window is not None else f"within its {self.simulation.n_steps} steps"
            raise InputError(
                f"no target or recorded frame of experiment '{self.name}' lies {place}",
                place="optimizer.phases",
                found=None if window is None else list(window),
            )
        return objective, n_steps

    def squares_within(self, window: tuple[float, float] | None) -> tuple[list[tuple[float, LeastSquares]], int]:
        """Return the objective's parts of a time window with the roots of their weights, and the steps they need.

        They are for one walk through one run (see `Objective.for_run`).

        Raises
        ------
        InputError
            If a part is no sum of squares, or its weight is negative.
        """
        objective, n_steps = self.within(window)
        try:
            parts = objective.for_run().as_squares()
        except TypeError as error:
            raise InputError(f"Gauss-Newton needs sums of squares: {error}", place="objective") from None
        if any(weight < 0.0 for weight, _ in parts):
            raise InputError("Gauss-Newton needs weights of at least 0", place="objective")
        return [(float(np.sqrt(weight)), part) for weight, part in parts], n_steps


@final
@dataclass(frozen=True, eq=False)
class EvaluationRequest:
    """One experiment to evaluate.

    Attributes
    ----------
    experiment : int
        Its number.
    theta : (n_theta,)
    window : (start, stop), optional
        Simulation times that count [s].
    schedule : Schedule, optional
        Of the reverse sweep.
    """

    experiment: int
    theta: FloatArray
    window: tuple[float, float] | None = None
    schedule: Schedule | None = None


class Evaluator(ABC):
    """Evaluates the experiments of a problem in another place than this process."""

    @abstractmethod
    def evaluate(self, asked: Sequence[EvaluationRequest]) -> list[Evaluation]:
        """Return value and gradient by theta of each experiment, as `InverseProblem.evaluate_experiment` does.

        Raises
        ------
        SolverError
            If a run fails; of several, that of the first experiment.
        """
