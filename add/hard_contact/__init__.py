"""Exact contact without penalties: the reference that penalty laws are compared with.

Complementarity of gaps and normal forces and Coulomb friction hold to solver tolerance at the end of every implicit
step: the constrained problem of Geilinger et al. 2020, section 4.1, solved by a semismooth Newton method on the
equations of Alart & Curnier 1991 instead of a sequence of quadratic programs. ``contact.friction_law: "exact"`` in a
scene, or `with_exact_contact`.
"""

from add.hard_contact.exact_coupling import CarriedContacts, ContactState
from add.hard_contact.geometry import ContactPairs, contact_term
from add.hard_contact.impulse_stepper import ImpulseContact, with_impulse_contact
from add.hard_contact.law import Branch, ExactOptions, ImpulseOptions
from add.hard_contact.stepper import ExactContact, with_exact_contact

__all__ = [
    "Branch",
    "CarriedContacts",
    "ContactPairs",
    "ContactState",
    "ExactContact",
    "ExactOptions",
    "ImpulseContact",
    "ImpulseOptions",
    "contact_term",
    "with_exact_contact",
    "with_impulse_contact",
]
