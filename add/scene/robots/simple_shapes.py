"""Boxes, balls, capsules, cylinders by their sizes [m]: half the edges of a box; radius and half-length of others."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from add.geometry import (
    MassProperties,
    box_points,
    box_solid,
    capsule_points,
    capsule_solid,
    cylinder_points,
    cylinder_solid,
    sphere_points,
    sphere_solid,
)
from add.kernels import distance
from add.typing import FloatArray

#: Codes of the kernels.
KINDS = {"box": distance.BOX, "sphere": distance.SPHERE, "capsule": distance.CAPSULE, "cylinder": distance.CYLINDER}


class Touching(NamedTuple):
    """Points (n, 3) by which a shape touches others, their radius, and the area of the surface."""

    points: FloatArray
    radius: float
    area: float


def simple_solid(shape: str, size: Sequence[float]) -> MassProperties:
    """Return the mass properties of a shape at density 1."""
    if shape == "box":
        return box_solid(2.0 * np.array(size))
    if shape == "sphere":
        return sphere_solid(*size)
    return capsule_solid(*size) if shape == "capsule" else cylinder_solid(size[0], 2.0 * size[1])


def simple_touching(shape: str, size: Sequence[float], spacing: float, on_rims: float) -> Touching:
    """Return the points of a shape, ``spacing`` [m] apart at most, of a cylinder ``on_rims``."""
    if shape == "box":
        a, b, c = (2.0 * half for half in size)
        return Touching(box_points((a, b, c), spacing), 0.0, 2.0 * (a * b + b * c + c * a))
    r = size[0]
    if shape == "sphere":
        return Touching(sphere_points(r), r, 4.0 * np.pi * r**2)
    if shape == "capsule":
        return Touching(capsule_points(r, size[1], spacing), r, 4.0 * np.pi * r * (r + size[1]))
    return Touching(cylinder_points(r, 2.0 * size[1], on_rims), 0.0, 2.0 * np.pi * r * (r + 2.0 * size[1]))
