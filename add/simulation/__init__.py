"""Time stepping."""

from add.simulation.bdf import BDF, StartUp
from add.simulation.stepper import Linearised, Record, Stepper

__all__ = ["BDF", "Linearised", "Record", "StartUp", "Stepper"]
