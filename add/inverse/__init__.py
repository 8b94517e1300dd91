"""From an optimiser's x to theta, and the optimisers."""

from add.inverse.experiment import EvaluationRequest, Evaluator, Experiment, Jacobian, Residuals
from add.inverse.maps import DesignParameter, Prior
from add.inverse.optimizers import Starts
from add.inverse.optimizers.descent import LBFGSB, Adam, GradientDescent, RateSchedule
from add.inverse.optimizers.levenberg_marquardt import LevenbergMarquardt
from add.inverse.optimizers.phases import (
    EvaluationLog,
    LoggedEvaluation,
    MemoryLog,
    NumberOverride,
    OptimizationResult,
    Phase,
    PhasedOptimizer,
    PhaseResult,
    with_overrides,
)
from add.inverse.problem import InverseProblem

__all__ = [
    "LBFGSB",
    "Adam",
    "DesignParameter",
    "EvaluationLog",
    "EvaluationRequest",
    "Evaluator",
    "Experiment",
    "GradientDescent",
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
    "RateSchedule",
    "Residuals",
    "Starts",
    "with_overrides",
]
