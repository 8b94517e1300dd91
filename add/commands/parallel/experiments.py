"""The experiments of an inverse problem, evaluated by workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from add.adjoint import Evaluation
from add.commands.parallel.workers import Session, Work, Workers
from add.errors import InputError, SolverError
from add.inverse import EvaluationRequest, Evaluator, InverseProblem
from add.scene import Scene, scene_from_dict


def require_shareable(problem: InverseProblem, file: Path | None = None) -> None:
    """Refuse workers that would have nothing to do.

    Parameters
    ----------
    problem : InverseProblem
    file : of its scene, for the message

    Raises
    ------
    InputError
        If there is one experiment only, or an optimiser that needs whole runs.
    """
    if len(problem.experiments) < 2:
        raise InputError(
            "workers (--jobs, --cluster) share the experiments of a scene: this one has a single one",
            file=file,
            place="experiments",
        )
    if problem.optimizer is None or not problem.optimizer.shares_experiments:
        raise InputError(
            "workers evaluate experiments for gradients only: Gauss-Newton needs the runs themselves",
            file=file,
            place="optimizer.method",
            expected="'l-bfgs-b', 'adam' or 'sgd'",
        )


@contextmanager
def evaluated_by(workers: Workers, scene: Scene, problem: InverseProblem) -> Iterator[InverseProblem]:
    """Yield the problem with its experiments evaluated by workers: the same values and gradients to the last bit."""
    with workers.session(_Evaluating(scene.raw)) as session:
        yield replace(problem, evaluator=_BySession(session))


@final
@dataclass(frozen=True)
class _Evaluating(Work[EvaluationRequest, Evaluation | SolverError]):
    """Evaluates one experiment. An optimiser goes on after a run that failed: that is a result here."""

    raw: dict[str, Any]

    def prepare(self) -> Callable[[EvaluationRequest], Evaluation | SolverError]:
        problem = scene_from_dict(self.raw).inverse_problem()

        def evaluate(asked: EvaluationRequest) -> Evaluation | SolverError:
            try:
                return problem.evaluate_experiment(asked)
            except SolverError as error:
                return SolverError(str(error))  # without the steps that it made

        return evaluate


@final
class _BySession(Evaluator):
    def __init__(self, session: Session[EvaluationRequest, Evaluation | SolverError]) -> None:
        self._session = session

    def evaluate(self, asked: Sequence[EvaluationRequest]) -> list[Evaluation]:
        answers = {task.experiment: answer for task, answer in self._session.spread(asked)}
        found = []
        for item in asked:
            answer = answers[item.experiment]
            if isinstance(answer, SolverError):
                raise answer
            found.append(answer)
        return found
