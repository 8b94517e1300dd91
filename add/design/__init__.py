"""From an optimiser's x to theta, and the optimisers."""

from add.design.experiment import Asked, Evaluator, Experiment
from add.design.levenberg import LevenbergMarquardt
from add.design.optimize import (
    LBFGSB,
    EvaluationLog,
    LoggedEvaluation,
    MemoryLog,
    OptimizationResult,
    Phase,
    PhasedOptimizer,
    PhaseResult,
)
from add.design.overrides import NumberOverride, with_overrides
from add.design.parameters import DesignParameter, Prior
from add.design.problem import InverseProblem
from add.design.residuals import Jacobian, Residuals

__all__ = [
    "LBFGSB",
    "Asked",
    "DesignParameter",
    "EvaluationLog",
    "Evaluator",
    "Experiment",
    "InverseProblem",
    "Jacobian",
    "LevenbergMarquardt",
    "LoggedEvaluation",
    "MemoryLog",
    "NumberOverride",
    "OptimizationResult",
    "Phase",
    "PhaseResult",
    "PhasedOptimizer",
    "Prior",
    "Residuals",
    "with_overrides",
]
