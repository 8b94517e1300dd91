"""Bodies, one file a kind."""

from add.bodies.base import Block, Body, CarriedShape, ContactMesh, ContactPoints, Family, Layouts, Part, Picture
from add.bodies.nodal import NodalBody, NodalLoad, NodeTie, Pin, PointAnchor, PointMass, Region
from add.bodies.rigid import LinkBody, ObstacleBody, RigidBody
from add.bodies.soft import SoftBody
from add.bodies.thin import Layer, MassSpringBody, NetBody, Seam, ThinBody
from add.bodies.tree import TreeBody
from add.bodies.tree_joints import Graft, TreeJoint
from add.bodies.tree_parts import TreeDrive
