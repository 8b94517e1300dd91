"""Bodies, one file a kind."""

from add.bodies.base import Block, Body, CarriedShape, ContactMesh, ContactPoints, Family, Layouts, Part, Picture
from add.bodies.mass_spring import MassSpringBody
from add.bodies.nodal import NodalBody, NodalLoad, Pin
from add.bodies.rigid import RigidBody
from add.bodies.soft import PointAnchor, PointMass, SoftBody

__all__ = [
    "Block",
    "Body",
    "CarriedShape",
    "ContactMesh",
    "ContactPoints",
    "Family",
    "Layouts",
    "MassSpringBody",
    "NodalBody",
    "NodalLoad",
    "Part",
    "Picture",
    "Pin",
    "PointAnchor",
    "PointMass",
    "RigidBody",
    "SoftBody",
]
