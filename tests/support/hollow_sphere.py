"""Hollow spheres of hexahedra, and scenes that blow them up."""

from pathlib import Path
from typing import Any

import numpy as np

from add.geometry import HEX8, SoftMesh
from add.io.meshes import write_mesh


def hollow_sphere(inner: float, outer: float, across: int, layers: int) -> SoftMesh:
    """Return the shell between two spheres: six grids of the cube on the sphere, ``layers`` cells thick."""
    angle = np.tan(np.linspace(-0.25, 0.25, across + 1) * np.pi)
    u, v = np.meshgrid(angle, angle, indexing="ij")
    grids = []
    for axis in range(3):
        for sign in (1.0, -1.0):
            grid = np.empty((across + 1, across + 1, 3))
            grid[..., axis] = sign
            # So turned that the three axes are right-handed.
            grid[..., (axis + 1) % 3], grid[..., (axis + 2) % 3] = (u, v) if sign > 0.0 else (v, u)
            grids.append(grid)
    directions = np.stack(grids).reshape(-1, 3)
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    _, first, number = np.unique(np.round(directions, 9) + 0.0, axis=0, return_index=True, return_inverse=True)
    number = number.reshape(6, across + 1, across + 1)
    corners = [number[:, :-1, :-1], number[:, 1:, :-1], number[:, 1:, 1:], number[:, :-1, 1:]]
    quads = np.stack([corner.ravel() for corner in corners], axis=1)
    radii = np.linspace(inner, outer, layers + 1)
    points = (radii[:, None, None] * directions[first]).reshape(-1, 3)
    cells = np.concatenate([np.hstack([quads + k * first.size, quads + (k + 1) * first.size]) for k in range(layers)])
    return SoftMesh(points, cells, HEX8)


def inflated_sphere(
    folder: Path, mesh: SoftMesh, material: dict[str, Any], stretches: list[float], steps: int, dt: float
) -> dict[str, Any]:
    """Return a scene in which a liquid blows a hollow sphere up, so slowly that nothing but elasticity acts.

    Its inner radius grows by ``stretches`` of evenly spaced times.
    """
    file = folder / "sphere.vtu"
    write_mesh(file, mesh)
    radius = np.linalg.norm(mesh.points, axis=1).min()
    inside = mesh.points[np.abs(np.linalg.norm(mesh.points, axis=1) - radius) < 1e-9]
    assert inside.size
    along = [np.flatnonzero(np.abs(np.delete(mesh.points, axis, axis=1)).max(axis=1) < 1e-9) for axis in range(3)]
    pins = [
        {"where": {"nodes": nodes.tolist()}, "axes": "xyz".replace("xyz"[axis], "")} for axis, nodes in enumerate(along)
    ]
    times = np.linspace(0.0, steps * dt, len(stretches))
    from add.geometry import surface
    from add.kernels.air import enclosed_volume

    faces = surface(mesh).triangles[:, ::-1]
    hollow = np.ascontiguousarray(faces[(np.linalg.norm(mesh.points[faces], axis=2) < radius + 1e-9).all(axis=1)])
    rest = enclosed_volume(mesh.points.ravel(), hollow)
    return {
        "schema": "add-scene/1",
        "time": {"dt": dt, "steps": steps},
        "gravity": [0.0, 0.0, 0.0],
        "signals": {
            "content": {"type": "table", "times": times.tolist(), "values": [rest * x**3 for x in stretches]},
        },
        "bodies": {
            "shell": {
                "type": "soft",
                "mesh": {"file": str(file)},
                "mean_dilatation": True,
                "material": material,
                "pins": pins,
                "chambers": {"inside": {"type": "volume", "volume": {"signal": "content"}}},
            }
        },
    }
