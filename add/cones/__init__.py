"""Complementarity problems over the cones of contact, solved to round-off, with certificates and derivatives.

    u = G l + g,      K contains l  _|_  u + s(u) in K*

for half-lines (normal impulses), discs (friction at given normal impulses), Coulomb's cone, its pyramid, and free rows
(joints). G = J A^-1 J^T is Delassus's operator. The room knows no bodies: all is arrays.
"""

from add.cones.sensitivity import ConeCotangent, ConeKind, Cones, Sensitivity
from add.cones.solver import WEAK, ConeSolution, solve, solve_on_modes
from add.cones.step import (
    Certificate,
    ContactStep,
    DenseMetric,
    QCQPLayer,
    QPLayer,
    StepCotangent,
    StepSolution,
    certify,
)

__all__ = [
    "WEAK",
    "Certificate",
    "ConeCotangent",
    "ConeKind",
    "ConeSolution",
    "Cones",
    "ContactStep",
    "DenseMetric",
    "QCQPLayer",
    "QPLayer",
    "Sensitivity",
    "StepCotangent",
    "StepSolution",
    "certify",
    "solve",
    "solve_on_modes",
]
