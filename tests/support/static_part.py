"""A mesh that stands still in the world, as a part of a contact surface."""

import numpy as np

from add.contact.surfaces import SurfacePart
from add.equations.sites import NO_INDICES


def static_part(
    points: np.ndarray, faces: np.ndarray, contact_class: int, half_thickness: float, edges: np.ndarray | None = None
) -> SurfacePart:
    """Return the part of such a mesh."""
    none = np.zeros((0, 2), dtype=np.int64) if edges is None else edges
    return SurfacePart(points, faces, none, -1, None, NO_INDICES, contact_class, half_thickness)
