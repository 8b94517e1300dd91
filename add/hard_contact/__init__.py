"""Exact contact without penalties, forward only: the reference that penalty laws are compared with.

Complementarity of gaps and normal forces and Coulomb friction hold to solver tolerance at the end of every implicit
step: the constrained problem of Geilinger et al. 2020, section 4.1, solved by a semismooth Newton method on the
equations of Alart & Curnier 1991 instead of a sequence of quadratic programs.
"""

from add.hard_contact.law import Branch
from add.hard_contact.options import HardOptions, HardReport
from add.hard_contact.pairs import ContactPairs, contact_terms
from add.hard_contact.run import HardObserver, HardTrajectory, simulate_hard, stepper_of
from add.hard_contact.stepper import HardContactStepper, HardRecord

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
