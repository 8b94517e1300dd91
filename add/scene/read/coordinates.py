"""Orientations and directions: as they stand in a scene, and as the independent numbers that a parameter changes.

An orientation has four numbers in the file and three degrees of freedom: its number is the rotation vector [rad]. A
direction has three and two: its number is the tilt [rad] away from the scene's own direction, about two axes across it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from add.kernels.rotation import rotation_vector
from add.ties import TiltedDirection, axes_across, tilt_between, unit_vector
from add.typing import FloatArray


def is_orientation(path: str) -> bool:
    """Whether a path names the orientation of a body or an obstacle."""
    keys = path.split(".")
    return keys[0] in ("bodies", "obstacles") and keys[2:] == ["orientation"]


def is_direction(path: str) -> bool:
    """Whether a path names a direction that may change: a joint's axis, a marker's direction, the normal of a plane."""
    keys = path.split(".")
    return (keys[0], *keys[2:]) in {("couplings", "axis"), ("markers", "direction"), ("obstacles", "normal")}


def numbers_of(path: str, value: Any, scene_value: Any) -> FloatArray:
    """Return the numbers, flat, that stand for a value at a path.

    Parameters
    ----------
    path : str
    value : as in a scene file
    scene_value : what the scene has at this path; a direction counts from there
    """
    flat = np.ravel(np.asarray(value, dtype=float))
    if is_orientation(path):
        return np.asarray(rotation_vector(flat), dtype=float)
    if is_direction(path):
        start = unit_vector(np.array(scene_value))
        return np.zeros(2) if value == scene_value else tilt_between(start, unit_vector(flat))
    return flat


def file_value(path: str, numbers: FloatArray, scene_value: Any) -> Any:
    """Return the value, as in a scene file, that numbers stand for; see `numbers_of`."""
    if is_orientation(path):
        x, y, z, w = Rotation.from_rotvec(numbers).as_quat().tolist()
        return [w, x, y, z]
    if is_direction(path):
        start = unit_vector(np.array(scene_value))
        row = np.concatenate([numbers, start, axes_across(start).ravel()])
        return TiltedDirection().value(row[None])[0].tolist()
    return np.reshape(numbers, np.shape(scene_value)).tolist()
