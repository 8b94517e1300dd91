"""Points that enclose rigid bodies, for cameras and for ranges."""

import numpy as np

from add.io.trajectory import SolidData
from add.kernels.distance import BOX, CAPSULE, CYLINDER, PLANE, SPHERE
from add.typing import FloatArray

_CORNERS = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
_ANGLES = np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)
_CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES), np.zeros_like(_ANGLES)], axis=1)
_BALL = np.concatenate([np.eye(3), -np.eye(3), _CORNERS / np.sqrt(3.0), _CIRCLE])
_Z = np.array([0.0, 0.0, 1.0])
_MOST = 400


def solid_hull(solid: SolidData) -> FloatArray:
    """Points on a rigid body that show its extent, (m, 3) in its frame [m]; the origin if it has no shape."""
    if solid.kind == SPHERE:
        return solid.size[0] * _BALL
    if solid.kind == BOX:
        return solid.size * _CORNERS
    if solid.kind in (CAPSULE, CYLINDER):
        ring = solid.size[0] * (_BALL if solid.kind == CAPSULE else _CIRCLE)
        return np.concatenate([ring + solid.size[1] * _Z, ring - solid.size[1] * _Z])
    if solid.kind == PLANE or not len(solid.vertices):
        return np.zeros((1, 3))
    vertices = solid.vertices
    if len(vertices) <= _MOST:
        return vertices
    # the farthest along many directions
    directions = np.concatenate([_BALL, np.random.default_rng(0).normal(size=(_MOST // 4, 3))])
    return vertices[np.unique(np.argmax(vertices @ directions.T, axis=0))]
