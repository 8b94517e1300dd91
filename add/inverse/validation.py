"""Runs that are predicted: only their own numbers, such as a start, are fitted, to their beginning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from add.errors import InputError
from add.inverse.experiment import Experiment
from add.inverse.optimizers.phases import Phase, PhasedOptimizer, PhaseResult
from add.inverse.optimizers.starts import ONE_START
from add.inverse.problem import InverseProblem
from add.typing import FloatArray


def in_order(problem: InverseProblem, names: Iterable[str]) -> list[Experiment]:
    """Return the experiments of a problem, fitted and validated, in the order of names."""
    every = {experiment.name: experiment for experiment in (*problem.experiments, *problem.validation)}
    return [every[name] for name in names]


def fit_own(
    problem: InverseProblem,
    optimizer: PhasedOptimizer,
    x: FloatArray,
    name: str,
    window: tuple[float, float],
    max_evaluations: int,
) -> tuple[FloatArray, PhaseResult]:
    """Fit the parameters that one experiment has alone over a window of its recording; all others are held.

    Parameters
    ----------
    problem : with the experiment among those of its fit or its validation
    optimizer : whose method is used
    x : (n,) where the fit ended
    name : of the experiment
    window : simulation times that count [s]
    max_evaluations : limit

    Returns
    -------
    x with the entries of those parameters changed, and how the fit ended.

    Raises
    ------
    InputError
        If the experiment has no parameter of its own, or no frame lies in the window.
    SolverError
        If the run fails at x.
    """
    alone = problem.predicting(name)
    own = tuple(parameter.name for parameter in alone.parameters if set(parameter.targets) == {name})
    if not own:
        raise InputError("no parameter belongs to this experiment alone", found=f"'{name}'")
    phase = Phase(f"start of {name}", own, window, max_evaluations)
    found = replace(optimizer, phases=(phase,), starts=ONE_START).run(alone, x)  # type: ignore[type-var]
    return found.x, found.phases[0]
