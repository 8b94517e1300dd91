"""Obstacles in a picture."""

from typing import Any, final

import numpy as np

from add.io.trajectory import ObstacleData
from add.kernels.distance import MESH, PLANE
from add.view.framing import framing_points, round_number
from add.view.parts import GRID_COLOUR, OBSTACLE_COLOUR, PLANE_COLOUR, Canvas, Moment, Part
from add.view.quantities import Quantity
from add.view.shapes import primitive, shaded


@final
class World(Part):
    """All obstacles; those with a velocity move."""

    def __init__(self, canvas: Canvas) -> None:
        self._obstacles = canvas.data.obstacles
        self._actors = [_obstacle(canvas, obstacle) for obstacle in self._obstacles]

    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Move them on."""
        for obstacle, actor in zip(self._obstacles, self._actors, strict=True):
            actor.position = tuple(obstacle.velocity * moment.time)


def _obstacle(canvas: Canvas, obstacle: ObstacleData) -> Any:
    style: dict[str, Any] = {"color": OBSTACLE_COLOUR, "smooth_shading": True, "ambient": 0.15}
    if obstacle.kind == PLANE:
        mesh = _plane(canvas, obstacle)
        # seen from its free side only, so that no wall stands before the camera
        style = {"color": PLANE_COLOUR, "show_edges": True, "edge_color": GRID_COLOUR,
                 "line_width": 0.8 * canvas.pixel, "culling": "back", "ambient": 0.6, "diffuse": 0.42}  # fmt: skip
    elif obstacle.kind == MESH:
        mesh = shaded(obstacle.vertices, obstacle.triangles)
    else:
        mesh = primitive(obstacle.kind, obstacle.size)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = obstacle.rotation, obstacle.position
    return canvas.add(mesh.transform(pose, inplace=False), f"obstacle {obstacle.name}", **style)


def _plane(canvas: Canvas, obstacle: ObstacleData) -> Any:
    """A square of the plane under the whole motion, on a grid of round numbers through its origin."""
    import pyvista

    local = (framing_points(canvas.data) - obstacle.position) @ obstacle.rotation
    low, high = local[:, :2].min(axis=0), local[:, :2].max(axis=0)
    margin = 0.35 * canvas.span + 0.6 * canvas.body_span
    low, high = low - margin, high + margin
    cell = round_number(float((high - low).max()) / 16.0)
    low, high = np.floor(low / cell), np.ceil(high / cell)
    counts = (high - low).astype(int)
    centre = 0.5 * (low + high) * cell
    # A little below: bodies at rest sink into the plane, and sheets lie in it.
    below = -2e-3 * canvas.span
    return pyvista.Plane(
        center=(*centre, below), direction=(0, 0, 1), i_size=counts[0] * cell, j_size=counts[1] * cell,
        i_resolution=int(counts[0]), j_resolution=int(counts[1]),
    )  # fmt: skip
