"""Bodies, links and obstacles as values, and the `System` they make together."""

from add.model.bodies import (
    CarriedShape,
    Driven,
    NodalLoad,
    ParticleBody,
    Pin,
    PointAnchor,
    PointMass,
    RigidBody,
    SoftBody,
    constant,
)
from add.model.build import Model, build_model
from add.model.layout import Block, parameter_layout
from add.model.reactions import Reaction, reactions
from add.model.world import ContactModel, Obstacle

__all__ = [
    "Block",
    "CarriedShape",
    "ContactModel",
    "Driven",
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
    "constant",
    "parameter_layout",
    "reactions",
]
