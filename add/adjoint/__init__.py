"""Derivatives of whole runs: the reverse sweep (adjoint), the forward sweep (direct sensitivities), schedules."""

from add.adjoint.batch import Batch, BatchCotangents, rollout_batch
from add.adjoint.forward import Tangents, pushforward, sweep
from add.adjoint.reverse import Cotangents, Evaluation, evaluate, pullback, value_and_gradient
from add.adjoint.schedule import Checkpoints, Schedule, States, StoreAll

__all__ = [
    "Batch",
    "BatchCotangents",
    "Checkpoints",
    "Cotangents",
    "Evaluation",
    "Schedule",
    "States",
    "StoreAll",
    "Tangents",
    "evaluate",
    "pullback",
    "pushforward",
    "rollout_batch",
    "sweep",
    "value_and_gradient",
]
