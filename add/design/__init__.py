"""From an optimiser's x to theta, and the optimisers."""

from add.design.optimize import (
    LBFGSB,
    EvaluationLog,
    LoggedEvaluation,
    MemoryLog,
    OptimizationResult,
    Phase,
    PhaseResult,
)
from add.design.problem import DesignParameter, Experiment, InverseProblem, Prior

__all__ = [
    "LBFGSB",
    "DesignParameter",
    "EvaluationLog",
    "Experiment",
    "InverseProblem",
    "LoggedEvaluation",
    "MemoryLog",
    "OptimizationResult",
    "Phase",
    "PhaseResult",
    "Prior",
]
