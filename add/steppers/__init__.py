"""Time stepping."""

from add.steppers.base import Record, Stepper
from add.steppers.bdf import BDF, StartUp

__all__ = ["BDF", "Record", "StartUp", "Stepper"]
