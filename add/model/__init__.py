"""Bodies, joints and obstacles together: the `System` that they make."""

from add.model.build import Model, build_model
from add.model.joint_reactions import Reaction, reactions
from add.model.obstacles import ContactModel, Obstacle
from add.model.parameters import parameter_layout

__all__ = ["ContactModel", "Model", "Obstacle", "Reaction", "build_model", "parameter_layout", "reactions"]
