"""Cloth in files: triangles with the nodes as they are numbered, and the flat pattern in texture coordinates."""

from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from add.errors import InputError
from add.geometry.triangle_surface import as_surface
from add.io.surfaces import read_surface
from add.machine.files import most_of_memory, read_regular
from add.typing import FloatArray, IntArray

_MEMORY = 40.0
#: Numbers of nodes beyond this are none.
_MOST = 2**31


class Pattern(NamedTuple):
    """Points (n, 3) and triangles, and places (nt, 3, 2) of the corners in the flat pattern, None without."""

    points: FloatArray
    triangles: IntArray
    uv: FloatArray | None


def read_pattern(path: str | PathLike[str]) -> Pattern:
    """Read a cloth.

    Of an .obj nodes keep their numbers and corners their texture coordinates; where a pattern is cut, a node has
    several. Other formats are read as surfaces are (`add.io.surfaces.read_surface`), which numbers nodes anew.

    Raises
    ------
    InputError
        naming the file, and the line that is no OBJ.
    """
    path = Path(path)
    if path.suffix.lower() != ".obj":
        return Pattern(*read_surface(path), None)
    try:
        lines = read_regular(path, most=most_of_memory(_MEMORY)).decode("utf-8").splitlines()
    except FileNotFoundError:
        raise InputError("no such file", file=path) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", file=path) from None
    points: list[list[float]] = []
    pattern: list[list[float]] = []
    faces: list[list[list[int]]] = []
    for number, line in enumerate(lines, start=1):
        key, *words = line.split() or [""]
        try:
            if key == "v":
                points.append([float(word) for word in words[:3]])
            elif key == "vt":
                pattern.append([float(word) for word in words[:2]])
            elif key == "f":
                corners = [[int(part or 0) for part in word.split("/")[:2]] for word in words]
                if len(corners) < 3 or max(abs(part) for corner in corners for part in corner) > _MOST:
                    raise ValueError
                faces += [[corners[0], corners[k], corners[k + 1]] for k in range(1, len(corners) - 1)]
        except ValueError:
            raise InputError("no line of an .obj file", file=path, place=f"line {number}", found=line[:60]) from None
    if not faces:
        raise InputError("no triangles in the file", file=path, expected="a surface")
    try:
        triangles = _index([[corner[0] for corner in face] for face in faces], len(points), "v")
        used = np.unique(triangles).size
        if used < len(points):
            raise InputError("nodes without triangles", found=f"{len(points) - used} of {len(points)}")
        found = as_surface(np.array(points, dtype=float).reshape(len(points), -1), triangles)
        if not all(len(corner) > 1 and corner[1] for face in faces for corner in face):
            return Pattern(*found, None)
        uv = np.array(pattern, dtype=float).reshape(len(pattern), -1)
        return Pattern(*found, uv[_index([[corner[1] for corner in face] for face in faces], len(uv), "vt")])
    except (InputError, ValueError) as error:
        message = error.message if isinstance(error, InputError) else "rows of different lengths"
        raise InputError(message, file=path, place=getattr(error, "place", None), found=getattr(error, "found", None),
                         expected=getattr(error, "expected", None)) from None  # fmt: skip


def _index(numbers: list[list[int]], n: int, key: str) -> IntArray:
    """Return numbers from one, or from the end below zero, as indices."""
    given = np.array(numbers, dtype=np.int64)
    index = np.where(given > 0, given - 1, given + n)
    if not ((index >= 0) & (index < n) & (given != 0)).all():
        raise InputError(f"a face names a '{key}' that is not there", expected=f"1..{n}")
    return index
