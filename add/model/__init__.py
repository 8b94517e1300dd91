"""Bodies, joints and obstacles together: the `System` that they make."""

from add.model.build import Model, build_model
from add.model.contact_terms import ContactModel, MeshModel, Obstacle, ShapeName
from add.model.mesh_terms import class_pairs, edge_lengths, half_thickness, meeting_meshes
from add.model.readouts import (
    ChamberState,
    Reaction,
    chamber_states,
    reactions,
    storing_chambers,
    tie_forces,
    tree_reactions,
)
