"""Meshes that a robot's file names, found by package or path, read and scaled; simple solids."""

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, final
from urllib.parse import unquote

import numpy as np

from add.errors import InputError
from add.geometry import (
    MassProperties,
    box_points,
    box_solid,
    capsule_points,
    capsule_solid,
    cylinder_points,
    cylinder_solid,
    sphere_points,
    sphere_solid,
)
from add.geometry.triangle_surface import TriangleSurface
from add.io.surfaces import read_surfaces
from add.kernels import distance
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class MeshFiles:
    """Files beside a robot's file.

    Parameters
    ----------
    file : the robot's
    packages : folders by the name of their package; others are looked for in the folders above the file, by each folder
        of their path that is one of these, and in the folders of the environment variable ROS_PACKAGE_PATH
    """

    file: Path
    packages: Mapping[str, str | os.PathLike[str]] = field(default_factory=dict)
    _read: dict[Path, TriangleSurface | InputError] = field(default_factory=dict, init=False, repr=False, compare=False)

    def read_ahead(self, names: Iterable[str]) -> None:
        """Read files that `read` will be asked for together: each alone may take a process of its own."""
        found = {path for name in names if (path := self.find(name)) is not None}
        self._read.update(read_surfaces(found - self._read.keys()))

    def find(self, name: str) -> Path | None:
        """Return the file of package://name/path, model://name/path, file:///path or a path; None if there is none."""
        for path in self._candidates(name):
            with contextlib.suppress(OSError, ValueError):  # such as a name that is too long
                if path.is_file():
                    return path
        return None

    def folder(self, package: str) -> Path | None:
        """Return the folder of a package; None if there is none."""
        above = self.file.resolve().parents
        found = [Path(self.packages[package])] if package in self.packages else []
        found += [place for folder in above for place in (folder / package, folder) if place.name == package]
        found += [Path(root) / package for root in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if root]
        return next((place for place in found if place.is_dir()), None)

    def _candidates(self, name: str) -> list[Path]:
        scheme, mark, rest = name.partition("://")
        if not mark:
            return [self.file.parent / name]
        if scheme == "file":
            return [Path(unquote(rest))]
        if scheme not in ("package", "model"):
            return []
        package, _, path = rest.partition("/")
        if package in self.packages:
            return [Path(self.packages[package]) / path]
        above = self.file.resolve().parents
        found = [folder / package / path for folder in above]
        parts = Path(rest).parts  # a folder of the path may be one above the file, whatever the package is called now
        found += [
            folder.joinpath(*parts[k + 1 :]) for k, part in enumerate(parts) for folder in above if folder.name == part
        ]
        roots = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
        return found + [Path(root) / package / path for root in roots if root]

    def read(self, name: str, scale: FloatArray) -> tuple[Path, TriangleSurface]:
        """Return the file and its surface, scaled; a scale that mirrors turns the triangles.

        Raises
        ------
        InputError
            If it is not found or cannot be read.
        """
        path = self.find(name)
        if path is None:
            raise InputError(f"mesh '{name}' is not found", expected=self._expected(name))
        self.read_ahead([name])
        surface = self._read[path]
        if isinstance(surface, InputError):
            raise surface
        triangles = surface.triangles[:, ::-1] if scale.prod() < 0.0 else surface.triangles
        return path, TriangleSurface(surface.vertices * scale, triangles)

    def _expected(self, name: str) -> str:
        scheme, mark, rest = name.partition("://")
        if not mark or scheme == "file":
            return f"a file {self._candidates(name)[0]}"
        if scheme not in ("package", "model"):
            return "a path, package://, model:// or file://"
        package = rest.partition("/")[0]
        return f"a folder '{package}' above the robot's file or in `packages`"


# --- Boxes, balls, capsules, cylinders by their sizes [m]: half the edges of a box; radius and half-length of others


#: Codes of the kernels.
KINDS = {"box": distance.BOX, "sphere": distance.SPHERE, "capsule": distance.CAPSULE, "cylinder": distance.CYLINDER}


class Touching(NamedTuple):
    """Points (n, 3) by which a shape touches others, their radius, and the area of the surface."""

    points: FloatArray
    radius: float
    area: float


def simple_solid(shape: str, size: Sequence[float]) -> MassProperties:
    """Return the mass properties of a shape at density 1."""
    if shape == "box":
        return box_solid(2.0 * np.array(size))
    if shape == "sphere":
        return sphere_solid(*size)
    return capsule_solid(*size) if shape == "capsule" else cylinder_solid(size[0], 2.0 * size[1])


def simple_touching(shape: str, size: Sequence[float], spacing: float, on_rims: float) -> Touching:
    """Return the points of a shape, ``spacing`` [m] apart at most, of a cylinder ``on_rims``."""
    if shape == "box":
        a, b, c = (2.0 * half for half in size)
        return Touching(box_points((a, b, c), spacing), 0.0, 2.0 * (a * b + b * c + c * a))
    r = size[0]
    if shape == "sphere":
        return Touching(sphere_points(r), r, 4.0 * np.pi * r**2)
    if shape == "capsule":
        return Touching(capsule_points(r, size[1], spacing), r, 4.0 * np.pi * r * (r + size[1]))
    return Touching(cylinder_points(r, 2.0 * size[1], on_rims), 0.0, 2.0 * np.pi * r * (r + 2.0 * size[1]))
