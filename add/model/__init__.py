"""Bodies, links and obstacles as values, and the `System` they make together."""

from add.model.bodies import CarriedShape, NodalLoad, ParticleBody, Pin, PointAnchor, PointMass, RigidBody, SoftBody
from add.model.build import Model, build_model
from add.model.joint_reactions import Reaction, reactions
from add.model.obstacles import ContactModel, Obstacle
from add.model.parameters import Block, parameter_layout

__all__ = [
    "Block",
    "CarriedShape",
    "ContactModel",
    "Model",
    "NodalLoad",
    "Obstacle",
    "ParticleBody",
    "Pin",
    "PointAnchor",
    "PointMass",
    "Reaction",
    "RigidBody",
    "SoftBody",
    "build_model",
    "parameter_layout",
    "reactions",
]
