"""Time stepping."""

from add.simulation.bdf import BDF
from add.simulation.formula import BDFFormula, StartUp
from add.simulation.implicit_solve import ImplicitSolve, Linearised, NewtonSolve, Solution
from add.simulation.stepper import ContactForces, DifferentiableStepper, Record, Stepper, WeakContact

__all__ = [
    "BDF",
    "BDFFormula",
    "ContactForces",
    "DifferentiableStepper",
    "ImplicitSolve",
    "Linearised",
    "NewtonSolve",
    "Record",
    "Solution",
    "StartUp",
    "Stepper",
    "WeakContact",
]
