"""Time stepping."""

from add.steppers.base import Linearised, Record, Stepper
from add.steppers.bdf import BDF, StartUp

__all__ = ["BDF", "Linearised", "Record", "StartUp", "Stepper"]
