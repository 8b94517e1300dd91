"""Points of bodies in contact: what stands beside their places, and the lines of their shapes."""

from collections.abc import Sequence
from itertools import product
from typing import Protocol

import numpy as np

from add.bodies import Body, CarriedShape, ContactPoints
from add.kernels.contact_arrays import SLOT
from add.kernels.distance import fall_radius
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER
from add.typing import BoolArray, FloatArray, IntArray

#: Middles of the edges of a box, four along each axis, in half-sizes.
EDGES = np.array([np.roll([0.0, *two], axis) for axis in range(3) for two in product((-1.0, 1.0), repeat=2)])


class Carrier(Protocol):
    """A body with shapes, or an obstacle."""

    @property
    def has_frame(self) -> bool: ...
    @property
    def shapes(self) -> Sequence[CarriedShape]: ...


def with_lines(body: Carrier, points: ContactPoints) -> tuple[ContactPoints, FloatArray]:
    """Return the points of a body, two more for each line of its shapes, and what `BodyContact.rims` says of these.

    They are the edges of boxes, the axes of capsules and cylinders, and the rims of these, with the axis outwards.
    Shapes whose corners are not their only points (`collision.spacing`) have none: their points are on the edges. Of
    obstacles, whose edges and axes bodies' lines cross, they are the rims.
    """
    rows, radii, areas, shapes = [np.zeros((0, 10))], [points.radii], [points.areas], [shapes_of(points)]
    for number, shape in enumerate(body.shapes if body.has_frame and points.radii.size else ()):
        mine = shapes[0] == number
        few = {BOX: 8, CAPSULE: 2, CYLINDER: points.radii.size}.get(shape.kind, 0)
        if not 0 < np.count_nonzero(mine) <= few:
            continue
        size, number_of = np.array(shape.size), np.array([1])
        directions, middles, width = np.eye(3)[2:], np.zeros((1, 3)), np.array([size[0]])
        if shape.kind == BOX:
            number_of, middles, width = np.repeat(np.arange(3), 4), EDGES * size, np.zeros(12)
            directions = np.eye(3)[number_of]
        elif shape.kind == CYLINDER:
            number_of, directions, width = np.array([1, 0, 0]), np.eye(3)[2] * [[1], [-1], [1]], size[0] * np.eye(3)[0]
            middles = size[1] * np.array([[0, 0, 0], [0, 0, -1], [0, 0, 1]])
        chosen = slice(None) if isinstance(body, Body) else number_of == (0 if shape.kind == CYLINDER else -1)
        number_of, directions, middles, width = (of[chosen] for of in (number_of, directions, middles, width))
        half = size[number_of]
        slender = fall_radius(BOX if shape.kind == BOX else CYLINDER, size) / half
        slots = np.where(number_of == 0, 2.0, 1.0) if shape.kind == CYLINDER else np.ones(half.size)
        columns = (
            shape.position + middles @ shape.rotation.T,
            directions @ shape.rotation.T,
            slots,
            number_of,
            slender,
            half,
        )
        rows.append(np.repeat(np.column_stack(columns), 2, axis=0))
        rows[-1][::2, SLOT] *= -1.0
        radii.append(np.repeat(width, 2))
        for values, value in ((areas, points.areas[mine].mean()), (shapes, number)):
            values.append(np.full(2 * half.size, value))
    if len(rows) == 1:
        return points, rows[0]
    lines = np.concatenate(rows)
    every = np.concatenate(shapes).astype(np.int64)
    arms = np.concatenate([points.arms, lines[:, :3]])
    return ContactPoints(points.nodes, arms, np.concatenate(radii), np.concatenate(areas), every), lines


def lined_shapes(
    bodies: Sequence[Body], found: Sequence[ContactPoints], lines: Sequence[FloatArray], n_obstacles: int
) -> BoolArray:
    """Return which shapes have lines."""
    out = [np.zeros(n_obstacles, dtype=bool)]
    for body, points, rows in zip(bodies, found, lines, strict=False):
        own = shapes_of(points)[points.radii.size - len(rows) :]
        out.append(np.isin(np.arange(len(body.shapes)), own))
    return np.concatenate(out)


def rims_of(
    bodies: Sequence[Carrier], found: Sequence[ContactPoints], lines: Sequence[FloatArray]
) -> tuple[IntArray, FloatArray]:
    """Return the row of each point on a rim of its cylinder, or for a line, -1 for others, and the rims (m, 10)."""
    numbers, rims, n = [np.zeros(0, np.int64)], [np.zeros((0, 10))], 0
    for body, points, rows in zip(bodies, found, lines, strict=True):
        numbers.append(np.full(points.radii.size, -1))
        numbers[-1][points.radii.size - len(rows) :] = n + np.arange(len(rows))
        rims.append(rows)
        n += len(rows)
        of_circles = shapes_of(points)[points.radii.size - len(rows) :][np.abs(rows[:, SLOT]) > 1.0]
        for k, shape in enumerate(body.shapes if body.has_frame else ()):
            if shape.kind != CYLINDER:
                continue
            local = (points.arms - shape.position) @ shape.rotation
            off = np.abs([np.hypot(local[:, 0], local[:, 1]) - shape.size[0], np.abs(local[:, 2]) - shape.size[1]])
            mine = (shapes_of(points) == k) & (points.radii == 0.0) & (off.max(axis=0) < 1e-9 * max(shape.size))
            for end in (mine & (local[:, 2] < 0.0), mine & (local[:, 2] > 0.0)):
                if end.any():
                    numbers[-1][end] = n
                    towards = shape.rotation[:, :2] @ local[end][0, :2] / np.hypot(*local[end][0, :2])
                    rims.append(np.array([[*shape.position, *shape.rotation[:, 2], *towards, -float(k in of_circles)]]))
                    n += 1
    return np.concatenate(numbers), np.concatenate(rims)


def corners_of(bodies: Sequence[Carrier], found: Sequence[ContactPoints]) -> FloatArray:
    """Return the sum of the normals of the faces that each point of a box or a cylinder is on, and `fall_radius`."""
    out = [np.zeros((0, 4))]
    for body, points in zip(bodies, found, strict=True):
        out.append(np.zeros((points.radii.size, 4)))
        for k, shape in enumerate(body.shapes if body.has_frame else ()):
            if shape.kind not in (BOX, CYLINDER):
                continue
            mine = (shapes_of(points) == k) & (points.radii == 0.0)
            half = np.array(shape.size)[[0, 1, 2] if shape.kind == BOX else [0, 0, 1]]
            away = (points.arms[mine] - shape.position) @ shape.rotation / half * (1.0 + 1e-9)
            normals = np.trunc(away)
            if shape.kind == CYLINDER:
                normals[:, :2] = away[:, :2] * np.trunc(np.hypot(away[:, 0], away[:, 1]))[:, None]
            out[-1][mine, :3] = normals @ shape.rotation.T
            out[-1][mine, 3] = fall_radius(shape.kind, np.array(shape.size, dtype=float))
    return np.concatenate(out)


def shapes_of(points: ContactPoints) -> IntArray:
    """Return the number of the shape that each point of a body is of."""
    return np.zeros(points.radii.size, dtype=np.int64) if points.shape is None else points.shape
