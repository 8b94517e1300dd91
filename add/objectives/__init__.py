"""Objectives: numbers by which a run is judged."""

from add.objectives.base import LeastSquares, Objective, WeightedSum, total
from add.objectives.regularisers import Proximity, Smoothness
from add.objectives.tracking import Tracking

__all__ = ["LeastSquares", "Objective", "Proximity", "Smoothness", "Tracking", "WeightedSum", "total"]
