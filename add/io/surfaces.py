"""Surfaces of triangles in files, through trimesh; cloth with its nodes as numbered and its flat pattern; filled ones.

Tetrahedra inside a closed surface come from fTetWild (Hu et al. 2020), an extra; they are cached by content.
"""

import hashlib
import io
import logging
import os
import tempfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError, in_short, naming
from add.geometry import TET4, SoftMesh, validate, volume
from add.geometry.triangle_surface import Repaired, TriangleSurface, as_surface, repaired
from add.io.lock import replacing
from add.io.meshes import quiet, read_mesh, write_mesh
from add.machine.files import most_of_memory, read_regular, read_text, require_readable
from add.machine.foreign import little_memory, read_all_apart, read_apart
from add.typing import AnyArray, FloatArray, IntArray

#: Formats whose readers are known to end.
_AT_ONCE = (".stl", ".obj", ".ply", ".off")
_ARCHIVES = (".zip", ".gz", ".bz2", ".xz", ".tar", ".tgz", ".7z")
#: Memory that reading takes, in sizes of the file: triangles as Python objects, at worst.
_MEMORY = 40.0
_EXPECTED = "a surface in a format that trimesh knows, such as .stl, .obj or .ply"


def read_surface(path: str | PathLike[str]) -> TriangleSurface:
    """Read the triangles of a file and join the vertices that coincide.

    Parameters
    ----------
    path : .stl, .obj, .ply, .off and what else trimesh reads, in a process of its own that has to come to an end; no
        archives. Polygons are cut into triangles. Files that a file names, such as materials, are not read.

    Returns
    -------
    TriangleSurface, coordinates as in the file. Vertices with the same coordinates, bit by bit, become one: an STL
    repeats them in every triangle, an OBJ where the texture is cut. Triangles with fewer than three corners are dropped
    then, and vertices that nothing uses. Whether the surface is closed, `check_surface` says.

    Raises
    ------
    InputError
        naming the file: missing, no plain file, unreadable, without triangles, or with impossible numbers.
    """
    (surface,) = read_surfaces([path]).values()
    if isinstance(surface, InputError):
        raise surface
    return surface


def read_surfaces(paths: Iterable[str | PathLike[str]]) -> dict[Path, TriangleSurface | InputError]:
    """Read several files as `read_surface` does, those that take a process of their own in one.

    Returns
    -------
    dict
        For each file the surface, or the error that `read_surface` raises.
    """
    out: dict[Path, TriangleSurface | InputError] = {}
    apart: dict[Path, None] = {}
    for path in map(Path, paths):
        try:
            require_readable(path)
            if path.suffix.lower() in _ARCHIVES:
                raise InputError("an archive: unpack it first", file=path, expected=_EXPECTED)
            if path.suffix.lower() in _AT_ONCE:
                out[path] = _surface(path, _parsed(path))
            else:
                apart[path] = None
        except InputError as error:
            out[path] = error
    for path, parsed in zip(apart, read_all_apart(f"{__name__}:_parsed", list(apart)), strict=True):
        try:
            out[path] = parsed if isinstance(parsed, InputError) else _surface(path, parsed)
        except InputError as error:
            out[path] = error
    return out


def _surface(path: Path, found: Mapping[str, NDArray[np.generic]]) -> TriangleSurface:
    """Return the surface of what was read, its vertices joined."""
    if not len(found["triangles"]):
        raise InputError("no triangles in the file", file=path, expected=_EXPECTED)
    with naming(file=path):
        surface = as_surface(found["vertices"], found["triangles"])
    points, index = np.unique(surface.vertices + 0.0, axis=0, return_inverse=True)  # + 0.0: -0.0 is 0.0
    corners = index.reshape(-1)[surface.triangles]
    corners = corners[(corners != np.roll(corners, 1, axis=1)).all(axis=1)]
    if not len(corners):
        raise InputError("every triangle of the file is a line or a point", file=path, expected="a surface")
    used, corners = np.unique(corners, return_inverse=True)
    return TriangleSurface(points[used], corners.reshape(-1, 3).astype(np.int64))


def _parsed(path: Path) -> dict[str, NDArray[np.generic]]:
    """Read vertices and triangles, as trimesh gives them."""
    import trimesh  # half a second, and few scenes need it

    kind = path.suffix.lower().lstrip(".")
    try:
        content = read_regular(path, most=most_of_memory(_MEMORY))
        if kind == "stl":
            _check_stl(path, content)
        with quiet(), little_memory(len(content)):
            # From memory, so that nothing tells the reader where to look for other files.
            mesh = trimesh.load_mesh(io.BytesIO(content), file_type=kind, process=False)
            if isinstance(mesh, trimesh.Scene):  # of releases before 4.6, where the format holds several
                mesh = mesh.to_mesh()
        vertices, triangles = np.asarray(mesh.vertices, dtype=np.float64), np.asarray(mesh.faces, dtype=np.int64)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    except (Exception, SystemExit) as error:  # trimesh raises what its parsers happen to raise
        raise InputError(f"cannot be read as a surface: {in_short(error)}", file=path, expected=_EXPECTED) from error
    return {"vertices": vertices, "triangles": triangles}


def _check_stl(path: Path, content: bytes) -> None:
    """Refuse a binary STL that was cut: trimesh takes what is left for the whole."""
    if content.lstrip()[:5].lower() == b"solid" and b"facet" in content[:4096]:
        if b"endsolid" not in content[-4096:].lower():
            raise InputError("cannot be read as a surface: the text ends before its 'endsolid'", file=path)
        return
    count = int.from_bytes(content[80:84], "little")
    if len(content) != 84 + 50 * count or len(content) < 84:
        raise InputError(
            "cannot be read as a surface: the size does not fit the number of triangles",
            file=path,
            found=f"{len(content)} bytes" + (f" for {count} triangles" if len(content) >= 84 else ""),
            expected=f"{84 + 50 * count} bytes" if len(content) >= 84 else _EXPECTED,
        )


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
    lines = read_text(path, most=most_of_memory(_MEMORY), expected="a surface").splitlines()
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
    with naming(file=path):
        triangles = _index([[corner[0] for corner in face] for face in faces], len(points), "v")
        used = np.unique(triangles).size
        if used < len(points):
            raise InputError("nodes without triangles", found=f"{len(points) - used} of {len(points)}")
        try:
            surface = as_surface(np.array(points, dtype=float).reshape(len(points), -1), triangles)
            if not all(len(corner) > 1 and corner[1] for face in faces for corner in face):
                return Pattern(*surface, None)
            uv = np.array(pattern, dtype=float).reshape(len(pattern), -1)
        except ValueError:
            raise InputError("rows of different lengths") from None
        return Pattern(*surface, uv[_index([[corner[1] for corner in face] for face in faces], len(uv), "vt")])


def _index(numbers: list[list[int]], n: int, key: str) -> IntArray:
    """Return numbers from one, or from the end below zero, as indices."""
    given = np.array(numbers, dtype=np.int64)
    index = np.where(given > 0, given - 1, given + n)
    if not ((index >= 0) & (index < n) & (given != 0)).all():
        raise InputError(f"a face names a '{key}' that is not there", expected=f"1..{n}")
    return index


logger = logging.getLogger(__name__)

#: Processor time that the mesher may take [s].
PATIENCE = 1200.0
#: How far the volume may be from that of the surface before the mesh is refused [-].
VOLUME = 0.05
#: Tetrahedra of the given edge in a cube of that edge: 8 to 10 were measured on beams and a dogbone, and more where the
#: surface has details finer than the edge.
DENSITY = 8.0
#: Tetrahedra from which on the mesher is not asked: it would take longer than its patience.
MOST = 2e6
_MOST_BYTES = 2**31


def require_mesher() -> None:
    """Refuse to mesh where the mesher is not installed.

    Raises
    ------
    InputError
        With the command that installs it.
    """
    if find_spec("pytetwild") is None:
        raise InputError("filling a surface with tetrahedra needs fTetWild: pip install 'add-sim[mesh]'")


def fill(surface: Repaired, edge: float, tolerance: float | None = None) -> SoftMesh:
    """Fill a closed surface with tetrahedra.

    Parameters
    ----------
    surface : Repaired
    edge : of the tetrahedra, in the surface's unit
    tolerance : how far the boundary of the mesh may be from the surface; default: a thousandth of its diagonal

    Returns
    -------
    SoftMesh of tet4. The mesher draws random numbers: another call gives another mesh of the same kind.

    Raises
    ------
    InputError
        If the mesher is not installed or fails, the edge is too short for this volume or longer than the surface, or
        the mesh has another volume than the surface.
    """
    require_mesher()
    points, triangles = surface.surface
    extent = np.ptp(points, axis=0)
    if not 0.0 < edge <= extent.max():
        raise InputError("impossible edge of a mesh", found=edge, expected=f"above 0, at most {extent.max():.3g}")
    expected = DENSITY * (abs(surface.volume) ** (1.0 / 3.0) / edge) ** 3
    if expected > MOST:
        shortest = edge * (expected / MOST) ** (1.0 / 3.0)
        raise InputError(
            f"about {expected:.1g} tetrahedra with edges of {edge:.3g} in a surface that is {extent.max():.4g} across, "
            "both in the unit of its file",
            expected=f"at most {MOST:.0g} tetrahedra: edges of {shortest:.2g} or more in that unit, and a 'scale' "
            "(of `add mesh`: --unit) that says what the unit is",
        )
    logger.info("the mesher is asked for about %.1g tetrahedra ...", expected)
    diagonal = float(np.linalg.norm(extent))
    share = 1e-3 if tolerance is None else tolerance / diagonal
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "surface.npz"
        np.savez(path, points=points, triangles=triangles.astype(np.int32), edge=edge, tolerance=share)
        try:
            tetrahedra = read_apart(f"{__name__}:_tetrahedra", path, patience=PATIENCE)
        except InputError as error:
            raise InputError(f"the mesher failed: {error.message}") from error
    if not len(tetrahedra["cells"]):
        raise InputError("the mesher made no tetrahedra", expected="a smaller edge, or a surface without self-cuts")
    mesh = validate(SoftMesh(tetrahedra["points"].astype(np.float64), tetrahedra["cells"].astype(np.int64), TET4)).mesh
    filled_volume = volume(mesh)
    if abs(filled_volume - abs(surface.volume)) > VOLUME * abs(surface.volume):
        raise InputError(
            "the mesh has another volume than the surface: it cuts itself, or the edge is too long for its details",
            found=f"{filled_volume:.5g} of {abs(surface.volume):.5g}",
        )
    return mesh


def _tetrahedra(path: Path) -> dict[str, AnyArray]:
    """Call the mesher, in a process of its own: it is C++ that may end the program."""
    import pytetwild

    os.chdir(path.parent)  # it leaves a file of its own where it works
    with np.load(path) as given:
        points, cells = pytetwild.tetrahedralize(
            given["points"],
            given["triangles"],
            edge_length_abs=float(given["edge"]),
            epsilon=float(given["tolerance"]),
            num_threads=1,
            vtk_ordering=True,
        )
    return {"points": np.asarray(points), "cells": np.asarray(cells)}


def filled(path: str | PathLike[str], edge: float, tolerance: float | None = None, *, holes: bool = False) -> SoftMesh:
    """Return the tetrahedra of a surface file, from the cache if this content was meshed before.

    The cache is ``$XDG_CACHE_HOME/add/meshes``, by default ``~/.cache/add/meshes``: what is in there may be deleted.

    Raises
    ------
    InputError
        naming the file.
    """
    path = Path(path)
    surface = read_surface(path)
    key = hashlib.sha256()
    for part in (read_regular(path, most=_MOST_BYTES), f"{edge!r} {tolerance!r} {holes}".encode(), _version().encode()):
        key.update(hashlib.sha256(part).digest())
    kept = _cache() / f"{key.hexdigest()[:32]}.msh"
    if kept.is_file():
        return read_mesh(kept)
    with naming(file=path):
        closed = repaired(surface, fill=holes)
        mesh = fill(closed, edge, tolerance)
    for note in closed.notes:
        logger.warning("%s: %s", path, note)
    logger.info("%s: filled with %d tetrahedra", path, mesh.n_elements)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replacing(kept) as whole:
            write_mesh(whole, mesh)
    except (OSError, InputError) as error:  # the mesh itself is there
        logger.warning("the mesh of %s is not kept: %s", path, error)
        return mesh
    return read_mesh(kept)


def _version() -> str:
    try:
        return metadata.version("pytetwild")
    except metadata.PackageNotFoundError:
        return "none"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "add" / "meshes"
