"""A mesh as a picture: its boundary, the lengths of its edges, the shapes of its elements."""

from os import PathLike
from pathlib import Path

import numpy as np

from add.geometry import SoftMesh, boundary_faces
from add.geometry.mesh_check import mesh_quality
from add.plot._figure import BLUE, GREY, figure

#: Triangles beyond which every k-th edge is drawn without its outline.
MOST_OUTLINED = 20000


def plot_mesh(mesh: SoftMesh, path: str | PathLike[str]) -> Path:
    """Draw the boundary of a tetrahedral mesh with its quality.

    Parameters
    ----------
    mesh : SoftMesh of tetrahedra [m]
    path : .png or .svg
    """
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    quality = mesh_quality(mesh)
    faces = boundary_faces(mesh).faces[:, :3]
    corners = 1e3 * mesh.points[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    light = 0.55 + 0.45 * np.clip(normals @ np.array([0.4, -0.6, 0.7]), 0.0, 1.0)
    colours = light[:, None] * np.array([0.72, 0.82, 0.95])
    low, high = 1e3 * mesh.points.min(axis=0), 1e3 * mesh.points.max(axis=0)
    with figure(path, 9.0, 4.2) as (drawn, path):
        grid = drawn.add_gridspec(2, 2, width_ratios=[1.6, 1.0])
        space = drawn.add_subplot(grid[:, 0], projection="3d")
        outlined = len(faces) <= MOST_OUTLINED
        space.add_collection3d(
            Poly3DCollection(corners, facecolors=colours, edgecolors=GREY if outlined else "none", linewidths=0.3)
        )
        for name, a, b in zip("xyz", low, high, strict=True):
            getattr(space, f"set_{name}lim")(a, b)
            getattr(space, f"set_{name}label")(f"{name} [mm]")
        space.set_box_aspect(np.maximum(high - low, 0.05 * float((high - low).max())))
        space.set_title(f"{quality.elements} tetrahedra, {quality.nodes} nodes")
        for row, (values, label) in enumerate(
            ((1e3 * quality.edges, "edge [mm]"), (quality.shapes, "shape 3 r_in / r_circum [-]"))
        ):
            axis = drawn.add_subplot(grid[row, 1])
            axis.hist(values, bins=40, color=BLUE)
            axis.set_xlabel(label)
            axis.set_ylabel("elements" if row else "edges")
    return path
