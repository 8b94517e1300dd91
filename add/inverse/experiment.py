"""One run of an inverse problem with its objective, who evaluates it, and the rows of all."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from add.adjoint import Schedule
from add.adjoint.reverse import Evaluation
from add.errors import InputError
from add.inverse.maps import DesignMap
from add.mocap import Recording
from add.objectives import LeastSquares, Objective, Tracking, WeightedSum
from add.simulation.run import Simulation, Trajectory
from add.summary import counted
from add.typing import BoolArray, FloatArray


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
            place = "in the window" if window is not None else f"within its {counted(self.simulation.n_steps, 'step')}"
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
            text = f"Gauss-Newton needs sums of squares: {error}"
            raise InputError(text, place="objective", expected='"method": "l-bfgs-b" of the optimizer') from None
        if any(weight < 0.0 for weight, _ in parts):
            raise InputError("Gauss-Newton needs weights of at least 0", place="objective")
        return [(float(np.sqrt(weight)), part) for weight, part in parts], n_steps


class EvaluationRequest(NamedTuple):
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


# --- Residuals of an inverse problem at a point, their Jacobian, and their normal equations ---------------------------
# The normal equations are those of Gauss-Newton, J^T J s = -J^T rho with damping, whole or by their structure in time.


@final
@dataclass(frozen=True)
class Residuals:
    """rho with phi = rho . rho, and the runs that it was found on.

    Attributes
    ----------
    x : (n,)
    rho : (m,)
        Those of the runs first, then those of the parameters alone.
    runs : experiment name -> Trajectory
    window : (start, stop) or None
    of_runs : int
        How many are those of the runs.
    """

    x: FloatArray
    rho: FloatArray
    runs: Mapping[str, Trajectory]
    window: tuple[float, float] | None
    of_runs: int = 0

    @property
    def value(self) -> float:
        """The objective."""
        return float(self.rho @ self.rho)


@final
@dataclass(frozen=True)
class Jacobian:
    """d rho / dx: the rows of the runs are dense, those of the parameters alone sparse.

    Attributes
    ----------
    dense : (m_1, n)
    sparse : (m_2, n)
    """

    dense: FloatArray
    sparse: sp.csr_array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.dense.shape[0] + self.sparse.shape[0], self.dense.shape[1]

    def array(self) -> FloatArray:
        """Return the whole matrix."""
        return np.concatenate([self.dense, self.sparse.toarray()])

    def product(self, x_dot: FloatArray) -> FloatArray:
        """Return J x_dot."""
        return np.concatenate([self.dense @ x_dot, self.sparse @ x_dot])

    def transposed(self, rho_bar: FloatArray) -> FloatArray:
        """Return J^T rho_bar."""
        m = self.dense.shape[0]
        return self.dense.T @ rho_bar[:m] + self.sparse.T @ rho_bar[m:]

    def normal(self) -> FloatArray:
        """Return J^T J (n, n)."""
        # The rank-k update does half the work of the product and leaves one triangle.
        upper = scipy.linalg.blas.dsyrk(1.0, self.dense.T) if self.dense.size else np.zeros((self.shape[1],) * 2)
        out = np.triu(upper) + np.triu(upper, 1).T
        entries = (self.sparse.T @ self.sparse).tocoo()
        np.add.at(out, (entries.row, entries.col), entries.data)
        return out


class NormalEquations(ABC):
    """N = J^T J and J^T rho at a point, for n numbers.

    Attributes
    ----------
    slope : (n,)
        J^T rho.
    largest : float
        Largest diagonal entry of N.
    backward : bool
        Whether a sweep backward through the run made them.
    """

    slope: FloatArray
    largest: float
    backward: bool

    @abstractmethod
    def product(self, step: FloatArray) -> FloatArray:
        """Return N step (n,)."""

    @abstractmethod
    def solve(self, free: BoolArray, damping: float, b: FloatArray) -> FloatArray | None:
        """Return s (n,), zero where not ``free``, with N s + damping s = b in the free rows.

        None where round-off leaves the matrix without a Cholesky factor.
        """


@final
class WholeNormal(NormalEquations):
    """N as a matrix.

    Parameters
    ----------
    jacobian : Jacobian
    slope : (n,)
    backward : bool
    """

    def __init__(self, jacobian: Jacobian, slope: FloatArray, *, backward: bool = False) -> None:
        self.slope, self.matrix, self.backward = slope, jacobian.normal(), backward
        self.largest = float(self.matrix.diagonal().max(initial=0.0))

    def product(self, step: FloatArray) -> FloatArray:
        """Return N step."""
        return np.asarray(self.matrix @ step)

    def solve(self, free: BoolArray, damping: float, b: FloatArray) -> FloatArray | None:
        """Solve by one Cholesky factor; see `NormalEquations.solve`."""
        matrix, out = self.matrix[np.ix_(free, free)], np.zeros_like(b)
        matrix[np.diag_indices_from(matrix)] += damping
        try:
            factor = scipy.linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            return None
        out[free] = scipy.linalg.cho_solve(factor, b[free])
        return out
