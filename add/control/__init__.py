"""Optimal control: iLQR and multiple shooting over the derivatives of single steps."""

from add.control.costs import CoordinateCost
from add.control.ilqr import ILQR, ControlResult, Iteration, MultipleShooting
from add.control.problem import ControlProblem

__all__ = ["ILQR", "ControlProblem", "ControlResult", "CoordinateCost", "Iteration", "MultipleShooting"]
