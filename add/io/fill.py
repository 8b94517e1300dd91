"""Tetrahedra inside a closed surface, through fTetWild (Hu et al. 2020), an extra; cached by content."""

import hashlib
import logging
import os
import tempfile
from importlib import metadata
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError, naming
from add.geometry import TET4, SoftMesh, validate, volume
from add.geometry.triangle_surface import Repaired, repaired
from add.io.atomic import replacing
from add.io.meshes import read_mesh, write_mesh
from add.io.surfaces import read_surface
from add.machine.files import read_regular
from add.machine.foreign_readers import read_apart

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
            found = read_apart(f"{__name__}:_tetrahedra", path, patience=PATIENCE)
        except InputError as error:
            raise InputError(f"the mesher failed: {error.message}") from error
    if not len(found["cells"]):
        raise InputError("the mesher made no tetrahedra", expected="a smaller edge, or a surface without self-cuts")
    mesh = validate(SoftMesh(found["points"].astype(np.float64), found["cells"].astype(np.int64), TET4)).mesh
    filled_volume = volume(mesh)
    if abs(filled_volume - abs(surface.volume)) > VOLUME * abs(surface.volume):
        raise InputError(
            "the mesh has another volume than the surface: it cuts itself, or the edge is too long for its details",
            found=f"{filled_volume:.5g} of {abs(surface.volume):.5g}",
        )
    return mesh


def _tetrahedra(path: Path) -> dict[str, NDArray[Any]]:
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
