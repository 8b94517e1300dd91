"""Exact contact without penalties, forward only: the reference that penalty laws are compared with.

Complementarity of gaps and normal forces and Coulomb friction hold to solver tolerance at the end of every implicit
step: the constrained problem of Geilinger et al. 2020, section 4.1, solved by a semismooth Newton method on the
equations of Alart & Curnier 1991 instead of a sequence of quadratic programs.
"""

from add.hard.law import Branch
from add.hard.options import HardOptions, HardReport
from add.hard.pairs import ContactPairs, contact_terms
from add.hard.run import HardObserver, HardTrajectory, simulate_hard, stepper_of
from add.hard.stepper import HardContactStepper, HardRecord

__all__ = [
    "Branch",
    "ContactPairs",
    "HardContactStepper",
    "HardObserver",
    "HardOptions",
    "HardRecord",
    "HardReport",
    "HardTrajectory",
    "contact_terms",
    "simulate_hard",
    "stepper_of",
]
