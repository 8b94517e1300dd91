"""Force families of single bodies: one file each."""

from add.terms.elastic import Elastic, ElementBatch
from add.terms.gravity import Gravity
from add.terms.inertia import Inertia
from add.terms.nodal_force import NodalForce
from add.terms.point_constraint import PointConstraint
from add.terms.rigid_inertia import RigidInertia
from add.terms.viscous import Viscous

__all__ = ["Elastic", "ElementBatch", "Gravity", "Inertia", "NodalForce", "PointConstraint", "RigidInertia", "Viscous"]
