"""Multiple shooting: the run in pieces that begin at states of their own, whose gaps close on the way.

The backward pass of iLQR sees the gaps d_k between the end of a piece and the state that the next one begins with; the
forward pass takes nonlinear steps and keeps 1 - a of every gap for a share a of the step, so that pieces never leave
the joints of the bodies (feasibility-driven DDP; Mastalli et al., Crocoddyl, ICRA 2020). Gaps are there only where a
guess of states brings them: without one this is iLQR. Solvers for general nonlinear programs (SciPy's SLSQP,
trust-constr) know neither stages, so that an iteration costs the cube of the run's length, nor rotations.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from add.control.costs import Policy, StageModel, backward, moved
from add.control.ilqr import GROWTH, ILQR, LEAST, MOST, ControlResult, Iteration, followed
from add.control.problem import ControlProblem, Rollout, Stage
from add.equations.kinematics import State
from add.errors import InputError
from add.typing import FloatArray


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
    end: ILQR = ILQR()  # noqa: RUF009

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
        model: tuple[list[Stage], list[StageModel], tuple[FloatArray, FloatArray]],
        policy: Policy,
        slack: float,
    ) -> tuple[Rollout, float, float] | None:
        """Return pieces with smaller gaps, the share of the step, and the decrease that was expected.

        The value may rise where the model says that closing gaps costs so much.
        """
        for share in self.shares:
            expected = _expected(model, policy, share)
            trial = _followed(problem, current, model[0], policy, share)
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


def _expected(
    model: tuple[list[Stage], list[StageModel], tuple[FloatArray, FloatArray]], policy: Policy, share: float
) -> float:
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


def _followed(
    problem: ControlProblem, current: Rollout, stages: list[Stage], policy: Policy, share: float
) -> Rollout | None:
    """Return the pieces under a policy, with what is left of the gaps; None where a step fails."""
    gaps = _gaps(problem, current)

    def onward(k: int, end: State) -> State | None:
        return moved(end, (share - 1.0) * gaps[k], problem.rotations) if k in gaps and share < 1.0 else None

    return followed(problem, current, stages, policy, share, onward)
