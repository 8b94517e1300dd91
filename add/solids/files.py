"""Surfaces of triangles in files, through trimesh."""

import contextlib
import io
from os import PathLike
from pathlib import Path

import numpy as np

from add.errors import InputError
from add.solids.surface import Surface, as_surface


def read_surface(path: str | PathLike[str]) -> Surface:
    """Read the triangles of a file and join the vertices that coincide.

    Parameters
    ----------
    path : .stl, .obj, .ply, .off and what else trimesh reads; polygons are cut into triangles

    Returns
    -------
    Surface, coordinates as in the file. Vertices with the same coordinates, bit by bit, become one: an STL repeats
    them in every triangle, an OBJ where the texture is cut. Triangles with fewer than three corners are dropped then,
    and vertices that nothing uses. Whether the surface is closed, `check_surface` says.

    Raises
    ------
    InputError
        naming the file: missing, unreadable, without triangles, or with impossible numbers.
    """
    path = Path(path)
    if not path.exists():
        raise InputError("no such file", file=path)
    if not path.is_file():
        raise InputError("not a file", file=path)
    surface = _load(path)
    points, index = np.unique(surface.vertices + 0.0, axis=0, return_inverse=True)  # + 0.0: -0.0 is 0.0
    corners = index.reshape(-1)[surface.triangles]
    corners = corners[(corners != np.roll(corners, 1, axis=1)).all(axis=1)]
    if not len(corners):
        raise InputError("every triangle of the file is a line or a point", file=path, expected="a surface")
    used, corners = np.unique(corners, return_inverse=True)
    return Surface(points[used], corners.reshape(-1, 3).astype(np.int64))


def _load(path: Path) -> Surface:
    """Read a file with trimesh; whatever goes wrong in there is one InputError."""
    import trimesh  # half a second, and few scenes need it

    expected = "a surface in a format that trimesh knows, such as .stl, .obj or .ply"
    try:
        path.open("rb").close()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            mesh = trimesh.load_mesh(path, process=False)
        vertices, triangles = np.asarray(mesh.vertices, dtype=np.float64), np.asarray(mesh.faces, dtype=np.int64)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    except (Exception, SystemExit) as error:  # trimesh raises what its parsers happen to raise
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"cannot be read as a surface: {reason}", file=path, expected=expected) from error
    if not len(triangles):
        raise InputError("no triangles in the file", file=path, expected=expected)
    try:
        return as_surface(vertices, triangles)
    except InputError as error:
        raise InputError(
            error.message, file=path, place=error.place, found=error.found, expected=error.expected
        ) from error
