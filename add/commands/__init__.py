"""The commands: a scene in, a run folder out."""

from add.commands.check_gradient import GradientCheck, check_gradients
from add.commands.expectations import Expectation, check_expectations
from add.commands.optimize import check_optimization, optimize_scene
from add.commands.simulate import simulate_scene
from add.commands.sweep import check_sweep, sweep_scene

__all__ = [
    "Expectation",
    "GradientCheck",
    "check_expectations",
    "check_gradients",
    "check_optimization",
    "check_sweep",
    "optimize_scene",
    "simulate_scene",
    "sweep_scene",
]
