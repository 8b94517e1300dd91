"""Objectives: numbers by which a run is judged."""

from add.objectives.base import Objective, WeightedSum, total
from add.objectives.least_squares import LeastSquares
from add.objectives.regularisers import Proximity, Smoothness
from add.objectives.tracking import Tracking

__all__ = ["LeastSquares", "Objective", "Proximity", "Smoothness", "Tracking", "WeightedSum", "total"]
