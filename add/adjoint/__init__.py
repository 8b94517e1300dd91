"""Derivatives of whole runs: the reverse sweep (adjoint), the forward sweep (direct sensitivities), schedules."""

from add.adjoint.forward import Tangents, pushforward, sweep
from add.adjoint.reverse import Cotangents, Evaluation, evaluate, pullback, value_and_gradient
from add.adjoint.schedule import Checkpoints, Schedule, StoreAll

__all__ = [
    "Checkpoints",
    "Cotangents",
    "Evaluation",
    "Schedule",
    "StoreAll",
    "Tangents",
    "evaluate",
    "pullback",
    "pushforward",
    "sweep",
    "value_and_gradient",
]
