"""Derivatives of whole runs: the reverse sweep (adjoint), the forward sweep (direct sensitivities), schedules."""

from add.adjoint.forward import Tangents, forward_tangents, sweep
from add.adjoint.reverse import Evaluation, evaluate, value_and_gradient
from add.adjoint.schedule import Checkpoints, Schedule, StoreAll

__all__ = [
    "Checkpoints",
    "Evaluation",
    "Schedule",
    "StoreAll",
    "Tangents",
    "evaluate",
    "forward_tangents",
    "sweep",
    "value_and_gradient",
]
