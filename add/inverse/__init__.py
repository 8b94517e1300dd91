"""From an optimiser's x to theta, and the optimisers."""

from add.inverse.experiment import EvaluationRequest, Evaluator, Experiment
from add.inverse.optimizers.levenberg_marquardt import LevenbergMarquardt
from add.inverse.optimizers.phases import (
    LBFGSB,
    EvaluationLog,
    LoggedEvaluation,
    MemoryLog,
    OptimizationResult,
    Phase,
    PhasedOptimizer,
    PhaseResult,
)
from add.inverse.overrides import NumberOverride, with_overrides
from add.inverse.parameters import DesignParameter, Prior
from add.inverse.problem import InverseProblem
from add.inverse.residuals import Jacobian, Residuals

__all__ = [
    "LBFGSB",
    "DesignParameter",
    "EvaluationLog",
    "EvaluationRequest",
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
