"""Bones: the picture of trees whose links have no shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from add.scene.robots.model import Robot, RobotLink
from add.typing import FloatArray, IntArray

#: Of a bone: half its width, and where it is widest, in lengths.
_WIDTH, _WIDEST = 0.08, 0.2
_FACES = np.array([[0, 2, 1], [0, 3, 2], [0, 4, 3], [0, 1, 4], [5, 1, 2], [5, 2, 3], [5, 3, 4], [5, 4, 1]])
_X, _Y, _Z = np.eye(3)


def bones_of(robot: Robot) -> dict[str, tuple[FloatArray, IntArray]]:
    """Return vertices (n, 3) and triangles (m, 3) in the frame of each link with a mass or a joint further out.

    A bone leads from the link's own joint to each joint that it carries, and to the centre of mass of a link that
    carries none. Where both coincide, an octahedron as wide as the link's gyration stands for it.
    """
    carried = {link.name: [j.position for j in robot.joints if j.parent == link.name] for link in robot.links}
    return {link.name: _bones(link, carried[link.name]) for link in robot.links}


def _bones(link: RobotLink, ends: Sequence[FloatArray]) -> tuple[FloatArray, IntArray]:
    ends = [end for end in (ends or [link.centre]) if np.linalg.norm(end) > 0.0]
    if ends:
        parts = [_bone(end) for end in ends]
    elif link.mass > 0.0:
        radius = np.sqrt(0.5 * np.trace(link.inertia) / link.mass)
        parts = [link.centre + radius * np.array([-_Z, _X, _Y, -_X, -_Y, _Z])] if radius > 0.0 else []
    else:
        parts = []
    faces = [_FACES + 6 * k for k in range(len(parts))]
    return np.concatenate([np.zeros((0, 3)), *parts]), np.concatenate([np.zeros((0, 3), dtype=np.int64), *faces])


def _bone(end: FloatArray) -> FloatArray:
    """Return the corners (6, 3) of an octahedron from the origin to ``end``: a corner, a ring of four, a corner."""
    length = np.linalg.norm(end)
    axis = end / length
    side = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    side *= _WIDTH * length / np.linalg.norm(side)
    other = np.cross(axis, side)
    middle = _WIDEST * end
    return np.array([np.zeros(3), middle + side, middle + other, middle - side, middle - other, end])
