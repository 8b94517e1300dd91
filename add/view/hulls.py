"""Points that enclose rigid bodies, for cameras and for ranges."""

import numpy as np

from add.geometry.shapes import BALL, shape_of
from add.io.trajectory import SolidData
from add.typing import FloatArray

_MOST = 400


def solid_hull(solid: SolidData) -> FloatArray:
    """Points on a rigid body that show its extent, (m, 3) in its frame [m]; the origin if it has no shape."""
    if solid.kind >= 0:
        return shape_of(solid.kind).hull(solid.size)
    if not len(solid.vertices):
        return np.zeros((1, 3))
    vertices = solid.vertices
    if len(vertices) <= _MOST:
        return vertices
    # the farthest along many directions
    directions = np.concatenate([BALL, np.random.default_rng(0).normal(size=(_MOST // 4, 3))])
    return vertices[np.unique(np.argmax(vertices @ directions.T, axis=0))]
