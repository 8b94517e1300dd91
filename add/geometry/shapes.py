"""Simple shapes as values: how far away they are, how large, how they are drawn.

Kernels know a shape by its code (`add.kernels.distance`), results by code and size. Everything else that depends on the
kind of a shape stands here; a further kind is one value, given to `add_shape` before anything computes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from add.errors import InputError
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, MESH, PLANE, SPHERE, DistanceKernel, add_distance
from add.typing import FloatArray, IntArray

_CORNERS = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
_ANGLES = np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)
_CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES), np.zeros_like(_ANGLES)], axis=1)
#: Places on a unit ball.
BALL = np.concatenate([np.eye(3), -np.eye(3), _CORNERS / np.sqrt(3.0), _CIRCLE])
_Z = np.array([0.0, 0.0, 1.0])


@final
@dataclass(frozen=True)
class Shape:
    """One kind of shape; all functions take its size (3,) [m] first, or the row of a mesh.

    Attributes
    ----------
    name : str
    code : int
        In kernels and results.
    gaps : size, points (n, 3) -> (n,)
        Signed distances in the shape's frame [m]: those of the kernel, for many points at once.
    hull : size -> (m, 3)
        Places that show its extent [m]; the origin alone for a shape without end.
    surface : size -> vertices (n, 3), triangles (m, 3)
        What is drawn; None where the viewer has a way of its own (meshes are stored with what is drawn).
    outline : size -> paths (m_i, 3)
        Lines on the surface that show how it is turned; none without ``surface``.
    kernel : DistanceKernel or None
        Of a further shape.
    """

    name: str
    code: int
    gaps: Callable[[FloatArray, FloatArray], FloatArray]
    hull: Callable[[FloatArray], FloatArray]
    surface: Callable[[FloatArray], tuple[FloatArray, IntArray]] | None = None
    outline: Callable[[FloatArray], list[FloatArray]] | None = None
    kernel: DistanceKernel | None = None


def _norm(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(vectors, axis=1))


def _beyond(beyond: FloatArray) -> FloatArray:
    """Return the distance by how far beyond each pair of faces (n, k) points are."""
    return _norm(np.maximum(beyond, 0.0)) + np.minimum(beyond.max(axis=1), 0.0)


def _of_capsule(size: FloatArray, x: FloatArray) -> FloatArray:
    beyond = np.maximum(np.abs(x[:, 2]) - size[1], 0.0)
    return _norm(np.column_stack([x[:, :2], beyond])) - size[0]


def _of_cylinder(size: FloatArray, x: FloatArray) -> FloatArray:
    return _beyond(np.column_stack([_norm(x[:, :2]) - size[0], np.abs(x[:, 2]) - size[1]]))


def _ends(ring: FloatArray, half: float) -> FloatArray:
    return np.concatenate([ring + half * _Z, ring - half * _Z])


# Imported when asked for: kernels may be imported only after all shapes are known.
def _of_mesh(row: FloatArray, x: FloatArray) -> FloatArray:
    from add.geometry.triangle_surface import mesh_gaps

    return mesh_gaps(row, x)


def _mesh_hull(row: FloatArray) -> FloatArray:
    from add.geometry.triangle_surface import row_vertices

    return row_vertices(row)


_SHAPES = {
    shape.code: shape
    for shape in (
        Shape("plane", PLANE, lambda size, x: x[:, 2], lambda size: np.zeros((1, 3))),
        Shape("sphere", SPHERE, lambda size, x: _norm(x) - size[0], lambda size: size[0] * BALL),
        Shape("box", BOX, lambda size, x: _beyond(np.abs(x) - size), lambda size: size * _CORNERS),
        Shape("capsule", CAPSULE, _of_capsule, lambda size: _ends(size[0] * BALL, size[1])),
        Shape("cylinder", CYLINDER, _of_cylinder, lambda size: _ends(size[0] * _CIRCLE, size[1])),
        Shape("mesh", MESH, _of_mesh, _mesh_hull),
    )
}


def shape_of(code: int) -> Shape:
    """Return the shape of a code.

    Raises
    ------
    InputError
    """
    try:
        return _SHAPES[int(code)]
    except KeyError:
        names = ", ".join(f"{shape.code} ({shape.name})" for shape in _SHAPES.values())
        raise InputError("unknown kind of shape", found=code, expected=names) from None


def known_shapes() -> tuple[Shape, ...]:
    """Return all kinds of shapes."""
    return tuple(_SHAPES.values())


def add_shape(shape: Shape) -> None:
    """Add a kind of shape to this process, before anything computes; its kernels are compiled with it.

    Raises
    ------
    RuntimeError
        If the kernels were imported before.
    ValueError
        If the code is taken, or something is missing.
    """
    if shape.kernel is None or shape.kernel.code != shape.code or shape.surface is None:
        raise ValueError(f"the shape '{shape.name}' needs a kernel of its code and a surface")
    add_distance(shape.kernel)
    _SHAPES[shape.code] = shape
