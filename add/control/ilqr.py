"""Iterative linear-quadratic regulator: Gauss-Newton on controls, one backward pass over the steps an iteration.

Li & Todorov, Iterative linear quadratic regulator design, ICINCO 2004; with the regularisation and the limits of Tassa,
Erez & Todorov (IROS 2012), Tassa, Mansard & Todorov (ICRA 2014).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from add.control.costs import Policy, StageModel, backward, moved
from add.control.problem import ControlProblem, Models, Rollout, Stage
from add.equations.kinematics import State
from add.errors import InputError, SolverError
from add.simulation.run import Trajectory
from add.summary import Summarised, Summary
from add.typing import FloatArray, IntArray

# --- The outcome of an optimal control --------------------------------------------------------------------------------


class Iteration(NamedTuple):
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


# ----------------------------------------------------------------------------------------------------------------------

#: Factors of the regularisation, its least value above zero, and where it gives up.
GROWTH, LEAST, MOST = 4.0, 1e-8, 1e10


@final
@dataclass(frozen=True)
class ILQR:
    """Minimise over controls with feedback along the way.

    Attributes
    ----------
    max_iterations : int
    tolerance : float
        Ends where an iteration gains less than this share of the value.
    slope : float
        Ends where the gradient by every control that no limit holds is smaller.
    regularisation : float
        mu to begin with.
    shares : tuple of float
        Of the step, that the line search tries.
    """

    max_iterations: int = 100
    tolerance: float = 1e-7
    slope: float = 1e-9
    regularisation: float = 1e-6
    shares: tuple[float, ...] = tuple(0.5**k for k in range(11))

    def run(
        self,
        problem: ControlProblem,
        x0: FloatArray | None = None,
        *,
        progress: Callable[[Iteration], None] | None = None,
        before: tuple[tuple[Iteration, ...], float] | None = None,
    ) -> ControlResult:
        """Return controls at which the value no longer falls.

        Parameters
        ----------
        problem : ControlProblem
        x0 : (n,), optional
            Default: the start of the problem.
        progress : called after every iteration
        before : iterations of another method that ended in x0, and the reading of the clock when that began

        Raises
        ------
        SolverError
            If the run with x0 fails.
        InputError
            If controls act in several stages, or a cost couples stages.
        """
        earlier, begin = before or ((), time.perf_counter())
        lower, upper = problem.problem.bounds
        x0 = problem.problem.x0 if x0 is None else np.asarray(x0, dtype=float)
        current = problem.run(np.clip(x0, lower, upper))
        mu, log, reason, converged = self.regularisation, list(earlier), "iteration limit reached", False
        stages, models, last = problem.models(current, None)
        policy: Policy | None = None
        for _ in range(self.max_iterations):
            improved, policy, mu = self._improved(problem, current, stages, models, last, mu)
            slope = policy.slope if policy else np.nan
            expected = policy.expected(1.0) if policy else 0.0
            rollout, share = improved if improved is not None else (current, 0.0)
            decrease = current.value - rollout.value
            log.append(Iteration(rollout.value, decrease, expected, share, mu, slope, 0.0, time.perf_counter() - begin))
            if progress is not None:
                progress(log[-1])
            if policy is not None and slope <= self.slope:
                reason, converged = "the gradient vanishes", True
            elif improved is None:
                reason = "no step decreases the value"
                converged = expected <= self.tolerance * abs(current.value)
            elif decrease <= self.tolerance * abs(current.value):
                reason, converged = "the value no longer falls", True
            current = rollout
            if reason != "iteration limit reached":
                break
            stages, models, last = problem.models(current, stages)
        gains = policy.K if policy else ()
        indices = tuple(stage.index for stage in stages)
        return ControlResult(
            current.x, current.value, converged, reason, tuple(log), current.trajectory, indices, gains
        )

    def _improved(
        self,
        problem: ControlProblem,
        current: Rollout,
        stages: list[Stage],
        models: list[StageModel],
        last: tuple[FloatArray, FloatArray],
        mu: float,
    ) -> tuple[tuple[Rollout, float] | None, Policy | None, float]:
        """Return a better run with the share of its step, the policy and the regularisation from here on."""
        policy: Policy | None = None
        while mu <= MOST:
            policy = backward(models, last, mu)
            if policy is not None:
                if policy.slope <= self.slope:
                    return None, policy, mu
                for share in self.shares:
                    trial = followed(problem, current, stages, policy, share)
                    if trial is not None and current.value - trial.value > 1e-4 * policy.expected(share) > 0.0:
                        return (trial, share), policy, max(mu / GROWTH, LEAST)
                if policy.expected(1.0) <= self.tolerance * abs(current.value):
                    return None, policy, mu
            mu = max(GROWTH * mu, LEAST)
        return None, policy, mu


def followed(
    problem: ControlProblem,
    current: Rollout,
    stages: list[Stage],
    policy: Policy,
    share: float,
) -> Rollout | None:
    """Return the run under a policy, with what is left of gaps; None where a step fails or the value is not finite."""
    lower, upper = problem.problem.bounds
    gaps = _gaps(problem, current)

    def feedback(k: int, state: State) -> FloatArray:
        stage = stages[k]
        nominal = current.x[stage.index]
        change = share * policy.k[k] + policy.K[k] @ problem.change(state, current.steps[stage.first].before)
        return np.clip(nominal + change, lower[stage.index], upper[stage.index]) - nominal

    def onward(k: int, end: State) -> State | None:
        return moved(end, (share - 1.0) * gaps[k], problem.rotations) if k in gaps and share < 1.0 else None

    try:
        rollout = problem.run(current.x, stages, feedback, onward)
    except SolverError:
        return None
    return rollout if np.isfinite(rollout.value) else None


# --- Multiple shooting ------------------------------------------------------------------------------------------------
# The run in pieces that begin at states of their own, whose gaps close on the way. The backward pass of iLQR sees the
# gaps d_k between the end of a piece and the state that the next one begins with; the forward pass takes nonlinear
# steps and keeps 1 - a of every gap for a share a of the step, so that pieces never leave the joints of the bodies
# (feasibility-driven DDP; Mastalli et al., Crocoddyl, ICRA 2020). Gaps are there only where a guess of states brings
# them: without one this is iLQR. Solvers for general nonlinear programs (SciPy's SLSQP, trust-constr) know neither
# stages, so that an iteration costs the cube of the run's length, nor rotations.


@final
@dataclass(frozen=True)
class MultipleShooting:
    """Minimise over controls from a guess of states that no controls need to reach.

    Attributes
    ----------
    max_iterations : int
    regularisation : float
        mu to begin with.
    gap : float
        Where all gaps are smaller they are closed, and iLQR goes on.
    slack : float
        By how much more than the model says the value may rise while gaps close, as a share of that of the run with
        x0 and no gaps.
    shares : tuple of float
        Of the step, that the line search tries.
    end : ILQR
        The iterations without gaps.
    """

    max_iterations: int = 100
    regularisation: float = 1e-6
    gap: float = 1e-9
    slack: float = 0.01
    shares: tuple[float, ...] = tuple(0.5**k for k in range(7))
    end: ILQR = ILQR()

    def run(
        self,
        problem: ControlProblem,
        guess: Mapping[int, State],
        x0: FloatArray | None = None,
        *,
        progress: Callable[[Iteration], None] | None = None,
    ) -> ControlResult:
        """Return controls at which the value no longer falls, by a run without gaps.

        Parameters
        ----------
        problem : ControlProblem
        guess : number of a step -> the state that it begins with, as `Simulation.state` makes it
            At as many steps, from the second on, as are known.
        x0 : (n,), optional
            Default: the start of the problem.
        progress : called after every iteration

        Raises
        ------
        SolverError
            If the run or a piece with x0 fails.
        InputError
            If a step of the guess is not in the run, controls act in several stages, or a cost couples stages.
        """
        begin = time.perf_counter()
        simulation = problem.experiment.simulation
        wrong = [k for k in guess if not 0 < k < simulation.n_steps]
        if wrong:
            raise InputError(
                "a guess of a state is at no step of the run", found=f"step {wrong[0]}",
                expected=f"1 to {simulation.n_steps - 1}",
            )  # fmt: skip
        lower, upper = problem.problem.bounds
        x0 = np.clip(problem.problem.x0 if x0 is None else np.asarray(x0, dtype=float), lower, upper)
        slack = self.slack * problem.run(x0).value
        current = problem.run(x0, onward=lambda k, end: guess.get(k))
        mu, log = self.regularisation, list[Iteration]()
        stages: list[Stage] | None = None
        for _ in range(self.max_iterations):
            gaps = _gaps(problem, current)
            if max((float(np.abs(gap).max()) for gap in gaps.values()), default=0.0) <= self.gap:
                break
            stages, models, last = problem.models(current, stages, gaps)
            policy, taken = None, None
            while mu <= MOST and taken is None:
                policy = backward(models, last, mu)
                if policy is not None:
                    taken = self._searched(problem, current, (stages, models, last), policy, slack)
                mu = max(GROWTH * mu, LEAST) if taken is None else max(mu / GROWTH, LEAST)
            if taken is None or policy is None:
                break
            rollout, share, expected = taken
            left = max((float(np.abs(gap).max()) for gap in _gaps(problem, rollout).values()), default=0.0)
            seconds = time.perf_counter() - begin
            log.append(
                Iteration(
                    rollout.value, current.value - rollout.value, expected, share, mu, policy.slope, left, seconds
                )
            )
            if progress is not None:
                progress(log[-1])
            current = rollout
        return self.end.run(problem, current.x, progress=progress, before=(tuple(log), begin))

    def _searched(
        self,
        problem: ControlProblem,
        current: Rollout,
        model: Models,
        policy: Policy,
        slack: float,
    ) -> tuple[Rollout, float, float] | None:
        """Return pieces with smaller gaps, the share of the step, and the decrease that was expected.

        The value may rise where the model says that closing gaps costs so much.
        """
        for share in self.shares:
            expected = _expected(model, policy, share)
            trial = followed(problem, current, model[0], policy, share)
            if trial is None:
                continue
            decrease = current.value - trial.value
            if decrease >= (0.1 * expected if expected > 0.0 else 2.0 * expected) - slack:
                return trial, share, expected
        return None


def _gaps(problem: ControlProblem, rollout: Rollout) -> dict[int, FloatArray]:
    """Return the gaps of a run before those steps that do not begin where the last one ended."""
    steps = rollout.steps
    return {
        k: problem.change(steps[k - 1].after, steps[k].before)
        for k in range(1, len(steps))
        if steps[k - 1].after is not steps[k].before
    }


def _expected(model: Models, policy: Policy, share: float) -> float:
    """Return the decrease of the quadratic model along a share of the step and of the gaps."""
    _, models, last = model
    dx, change = np.zeros(models[0].steps[0].A.shape[0]), 0.0
    for k, stage in enumerate(models):
        du = share * policy.k[k] + policy.K[k] @ dx
        change += float(stage.gradient @ du + 0.5 * du @ stage.hessian @ du)
        for step in stage.steps:
            change += float(step.gradient @ dx + 0.5 * dx @ step.hessian @ dx)
            dx = step.A @ dx + step.B @ du + (0.0 if step.gap is None else share * step.gap)
    return -change - float(last[0] @ dx + 0.5 * dx @ last[1] @ dx)
