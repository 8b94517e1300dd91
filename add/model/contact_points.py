"""Points of bodies in contact: what stands beside their places, and the lines of their shapes."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from add.bodies import Body, ContactPoints
from add.kernels.distance import fall_radius
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER
from add.typing import BoolArray, FloatArray, IntArray


def with_lines(body: Body, points: ContactPoints) -> tuple[ContactPoints, FloatArray]:
    """Return the points of a body, two more for each line of its shapes, and what `BodyContact.rims` says of these.

    They are the edges of boxes and the axes of capsules and cylinders. Shapes whose corners are not their only points
    (`collision.spacing`) have none: their points are on the edges.
    """
    arms: list[FloatArray] = []
    radii: list[float] = []
    areas: list[float] = []
    shapes: list[int] = []
    rows: list[list[float]] = []
    for number, shape in enumerate(body.shapes if body.has_frame and points.radii.size else ()):
        mine = shapes_of(points) == number
        few = {BOX: 8, CAPSULE: 2, CYLINDER: points.radii.size}.get(shape.kind, 0)
        if not 0 < np.count_nonzero(mine) <= few:
            continue
        size = np.array(shape.size)
        for axis, place, half in _lines(shape.kind, size):
            middle, way = shape.position + shape.rotation @ place, shape.rotation[:, axis]
            slender = fall_radius(BOX if shape.kind == BOX else CYLINDER, size) / half
            for slot in (-1.0, 1.0):
                arms.append(middle)
                rows.append([*middle, *way, slot, axis if shape.kind == BOX else 1, slender, half])
        count = len(arms) - len(radii)
        radii += [0.0 if shape.kind == BOX else size[0]] * count
        areas += [float(points.areas[mine].mean())] * count
        shapes += [number] * count
    if not rows:
        return points, np.zeros((0, 10))
    return ContactPoints(
        points.nodes,
        np.concatenate([points.arms, arms]),
        np.concatenate([points.radii, radii]),
        np.concatenate([points.areas, areas]),
        np.concatenate([shapes_of(points), shapes]).astype(np.int64),
    ), np.array(rows)


def _lines(kind: int, size: FloatArray) -> Iterator[tuple[int, FloatArray, float]]:
    """Yield axis, middle and half-length of the lines of a shape, in its frame."""
    if kind != BOX:
        yield 2, np.zeros(3), size[1]
        return
    for axis in range(3):
        for one, two in product((-1.0, 1.0), repeat=2):
            place = size * np.roll([0.0, one, two], axis)
            yield axis, place, size[axis]


def lined_shapes(
    bodies: Sequence[Body], found: Sequence[ContactPoints], lines: Sequence[FloatArray], n_obstacles: int
) -> BoolArray:
    """Return which shapes have lines."""
    out = [np.zeros(n_obstacles, dtype=bool)]
    for body, points, rows in zip(bodies, found, lines, strict=True):
        own = shapes_of(points)[points.radii.size - len(rows) :]
        out.append(np.isin(np.arange(len(body.shapes)), own))
    return np.concatenate(out)


def rims_of(
    bodies: Sequence[Body], found: Sequence[ContactPoints], lines: Sequence[FloatArray]
) -> tuple[IntArray, FloatArray]:
    """Return the row of each point on a rim of its cylinder, or for a line, -1 for others, and the rims (m, 10)."""
    numbers, rims = [np.zeros(0, np.int64)], np.zeros((0, 10))
    for body, points, rows in zip(bodies, found, lines, strict=True):
        numbers.append(np.full(points.radii.size, -1))
        numbers[-1][points.radii.size - len(rows) :] = len(rims) + np.arange(len(rows))
        rims = np.vstack([rims, rows])
        for k, shape in enumerate(body.shapes if body.has_frame else ()):
            if shape.kind != CYLINDER:
                continue
            local = (points.arms - shape.position) @ shape.rotation
            off = np.abs([np.hypot(local[:, 0], local[:, 1]) - shape.size[0], np.abs(local[:, 2]) - shape.size[1]])
            mine = (shapes_of(points) == k) & (points.radii == 0.0) & (off.max(axis=0) < 1e-9 * max(shape.size))
            for end in (mine & (local[:, 2] < 0.0), mine & (local[:, 2] > 0.0)):
                if end.any():
                    numbers[-1][end] = len(rims)
                    towards = shape.rotation[:, :2] @ local[end][0, :2] / np.hypot(*local[end][0, :2])
                    rims = np.vstack([rims, [*shape.position, *shape.rotation[:, 2], *towards, 0.0]])
    return np.concatenate(numbers), rims


def corners_of(bodies: Sequence[Body], found: Sequence[ContactPoints]) -> FloatArray:
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
