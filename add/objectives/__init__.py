"""Objectives: numbers by which a run is judged."""

from add.objectives.base import LeastSquares, Objective, WeightedSum, total
from add.objectives.losses import Cauchy, Huber, Loss, SoftL1
from add.objectives.one_step import OneStep
from add.objectives.regularisers import Proximity, Smoothness
from add.objectives.tracking import Tracking

__all__ = [
    "Cauchy",
    "Huber",
    "LeastSquares",
    "Loss",
    "Objective",
    "OneStep",
    "Proximity",
    "Smoothness",
    "SoftL1",
    "Tracking",
    "WeightedSum",
    "total",
]
