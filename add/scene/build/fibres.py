"""Directions of fibres in the elements of a mesh."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from add.errors import InputError
from add.geometry import SoftMesh
from add.scene.spec.actuation import FibresSpec, FileFibresSpec, StraightFibresSpec
from add.typing import FloatArray


def fibre_directions(spec: FibresSpec, mesh: SoftMesh, place: str) -> FloatArray:
    """Return a unit vector for each element (ne, 3), in the rest frame.

    Raises
    ------
    InputError
        If a file has other than three numbers an element, or an element has no direction.
    """
    n = mesh.n_elements
    if isinstance(spec, StraightFibresSpec):
        out = np.tile(np.array(spec.direction), (n, 1))
    elif isinstance(spec, FileFibresSpec):
        out = _read(spec.file, n, place)
    else:
        axis = np.array(spec.axis) / np.linalg.norm(spec.axis)
        arms = mesh.points[mesh.cells].mean(axis=1) - np.array(spec.point)
        around = np.cross(axis, arms)
        sizes = np.linalg.norm(around, axis=1)[:, None]
        # An element whose centre is on the axis has no way round it.
        apart = sizes > 1e-9 * np.ptp(mesh.points, axis=0).max()
        around = np.divide(around, sizes, out=np.zeros_like(around), where=apart)
        out = np.cos(spec.angle) * around + np.sin(spec.angle) * np.where(apart, axis, 0.0)
    lengths = np.linalg.norm(out, axis=1)
    if not (lengths > 0.0).all():
        element = int(np.flatnonzero(~(lengths > 0.0))[0])
        raise InputError("a fibre has no direction", place=place, found=f"element {element}, {out[element].tolist()}",
                         expected="a vector with a length above 0")  # fmt: skip
    return out / lengths[:, None]


def _read(file: str, n: int, place: str) -> FloatArray:
    path = Path(file)
    try:
        if path.suffix == ".npy":
            found = np.load(path, allow_pickle=False)
        else:
            text = path.read_text(encoding="utf-8")
            found = np.loadtxt(text.replace(",", " ").splitlines(), ndmin=2)
        found = np.asarray(found, dtype=float)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"the fibres cannot be read: {error}", file=file, place=f"{place}.file") from None
    if found.shape != (n, 3) or not np.isfinite(found).all():
        raise InputError("these are not the fibres of this mesh", file=file, place=f"{place}.file",
                         found=f"an array of shape {found.shape}", expected=f"({n}, 3), finite")  # fmt: skip
    return found
