"""Rotations of robot files as matrices."""

import numpy as np

from add.typing import FloatArray

#: A place in a frame: position (3,), rotation (3, 3).
Place = tuple[FloatArray, FloatArray]


def here() -> Place:
    """Return the frame itself."""
    return np.zeros(3), np.eye(3)


def after(first: Place, second: Place) -> Place:
    """Return the place in the frame of `first` of a place that is given in the frame that `first` is."""
    return first[0] + first[1] @ second[0], first[1] @ second[1]


def inverse(place: Place) -> Place:
    """Return the place of the frame that a place is given in, in the frame of that place."""
    return -place[1].T @ place[0], place[1].T


def about(axis: FloatArray, angle: float) -> FloatArray:
    """Return the rotation by an angle about a unit axis (Rodrigues), (3, 3)."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * (cross @ cross)


def from_rpy(angles: FloatArray) -> FloatArray:
    """Return R = Rz(yaw) Ry(pitch) Rx(roll) of the angles (roll, pitch, yaw) of a URDF, (3, 3)."""
    x, y, z = np.eye(3)
    return about(z, angles[2]) @ about(y, angles[1]) @ about(x, angles[0])


def from_quaternion(wxyz: FloatArray) -> FloatArray:
    """Return the rotation of a quaternion of any length but zero, (3, 3)."""
    w, x, y, z = wxyz / np.linalg.norm(wxyz)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def plane_axes(normal: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return unit axes u, w of a plane, right-handed with its unit normal: u x w = normal.

    Of the coordinate axes, u is made from the one after that which the normal is closest to: x of a normal z.
    """
    u = np.eye(3)[(int(np.argmax(np.abs(normal))) + 1) % 3]
    u = u - (u @ normal) * normal
    u /= np.linalg.norm(u)
    return u, np.cross(normal, u)
