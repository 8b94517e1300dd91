"""Force families: one file each."""

from add.terms.anchor import Anchor
from add.terms.couplings import Coupling, DecidingCoupling
from add.terms.drive import AxisTorque, Motor, PointForce, Thrust
from add.terms.elastic import Elastic, ElementBatch
from add.terms.feature_points import FeaturePoints
from add.terms.features import FeatureKind, Features, LawValues
from add.terms.gravity import Gravity
from add.terms.inertia import Inertia
from add.terms.joint import AngleLimit, AngularDamping, FrozenAngleLimit, JointFriction, Slider
from add.terms.load import Load
from add.terms.rigid import RigidInertia
from add.terms.spring import Bond, Cable, FrozenCable, Spring
from add.terms.viscous import Viscous

__all__ = [
    "Anchor",
    "AngleLimit",
    "AngularDamping",
    "AxisTorque",
    "Bond",
    "Cable",
    "Coupling",
    "DecidingCoupling",
    "Elastic",
    "ElementBatch",
    "FeatureKind",
    "FeaturePoints",
    "Features",
    "FrozenAngleLimit",
    "FrozenCable",
    "Gravity",
    "Inertia",
    "JointFriction",
    "LawValues",
    "Load",
    "Motor",
    "PointForce",
    "RigidInertia",
    "Slider",
    "Spring",
    "Thrust",
    "Viscous",
]
