"""Force families of single bodies: one file each."""

from add.terms.elastic import Elastic, ElementBatch
from add.terms.gravity import Gravity
from add.terms.inertia import Inertia
from add.terms.joint_drives import JointDrive
from add.terms.joint_laws import BallLaws, JointLimits, JointResistance, JointSprings
from add.terms.nodal_force import NodalForce
from add.terms.point_constraint import PointConstraint
from add.terms.rigid_inertia import RigidInertia
from add.terms.tree_inertia import TreeInertia
from add.terms.viscous import Viscous

__all__ = [
    "BallLaws",
    "Elastic",
    "ElementBatch",
    "Gravity",
    "Inertia",
    "JointDrive",
    "JointLimits",
    "JointResistance",
    "JointSprings",
    "NodalForce",
    "PointConstraint",
    "RigidInertia",
    "TreeInertia",
    "Viscous",
]
