"""Time stepping."""

from add.simulation.bdf import BDF
from add.simulation.derivative import Coupling, Instant, Linearised, NewtonSolve, Solution, linearise
from add.simulation.start import BDFFormula, StartUp, finished
from add.simulation.step_jacobians import Dynamics, InputJacobian, Step, StepDerivatives, StepJacobians
from add.simulation.step_operators import InputOperator, StepOperator, StepOperators
from add.simulation.stepper import ContactForces, DifferentiableStepper, Record, Stepper, WeakContact

__all__ = [
    "BDF",
    "BDFFormula",
    "ContactForces",
    "Coupling",
    "DifferentiableStepper",
    "Dynamics",
    "InputJacobian",
    "InputOperator",
    "Instant",
    "Linearised",
    "NewtonSolve",
    "Record",
    "Solution",
    "StartUp",
    "Step",
    "StepDerivatives",
    "StepJacobians",
    "StepOperator",
    "StepOperators",
    "Stepper",
    "WeakContact",
    "finished",
    "linearise",
]
