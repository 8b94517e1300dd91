"""Bodies, joints and obstacles together: the `System` that they make."""

from add.model.build import Model, build_model
from add.model.chambers import ChamberState, chamber_states, storing_chambers
from add.model.contact_terms import ContactModel, MeshModel, Obstacle, ShapeName
from add.model.joint_reactions import Reaction, reactions, tie_forces, tree_reactions
from add.model.mesh_terms import class_pairs, edge_lengths, half_thickness, meeting_meshes
