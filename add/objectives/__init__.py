"""Objectives: numbers by which a run is judged."""

from add.objectives.base import LeastSquares, Objective, WeightedSum, total
from add.objectives.over_time import MeanOverTime, OneStep, SoftMinimum
from add.objectives.regularisers import Cauchy, Huber, Loss, Proximity, Roughness, Smoothness, SoftL1
from add.objectives.tracking import Tracking

__all__ = [
    "Cauchy",
    "Huber",
    "LeastSquares",
    "Loss",
    "MeanOverTime",
    "Objective",
    "OneStep",
    "Proximity",
    "Roughness",
    "Smoothness",
    "SoftL1",
    "SoftMinimum",
    "Tracking",
    "WeightedSum",
    "total",
]
