"""What a run is judged by."""

from add.objectives.base import Objective, WeightedSum, total
from add.objectives.tracking import Tracking

__all__ = ["Objective", "Tracking", "WeightedSum", "total"]
