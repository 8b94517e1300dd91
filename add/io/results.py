"""The trajectory of a run in one HDF5 file: what `simulate` leaves and what viewers, plots and reports read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, final

import h5py
import numpy as np

from add.errors import InputError
from add.fem import FAMILIES, SoftMesh
from add.io._atomic import replacing
from add.typing import FloatArray, IntArray

FORMAT = "add-trajectory/1"
MODELS = ("neo-hookean", "neo-hookean-ciarlet")
"""Names of the forms 0 and 1 of `add.kernels.elastic`."""
OBSTACLE_KINDS = ("plane", "sphere", "box", "capsule", "cylinder")
"""Names of the codes 0 ... 4 of `add.kernels.distance`."""


def _floats(values: object, shape: tuple[int | None, ...], name: str) -> FloatArray:
    """C-ordered float64 of the expected shape (None: any length)."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, array.shape, strict=True)):
        raise InputError("wrong shape", place=name, found=array.shape, expected=_shape_text(shape))
    return array


def _nodes(values: object, width: int, n_nodes: int, name: str) -> IntArray:
    """C-ordered int64 (any, width) with entries in [0, n_nodes)."""
    array = np.ascontiguousarray(values, dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != width:
        raise InputError("wrong shape", place=name, found=array.shape, expected=_shape_text((None, width)))
    if array.size and (array.min() < 0 or array.max() >= n_nodes):
        raise InputError("names nodes that do not exist", place=name, found=f"{array.min()} ... {array.max()}",
                         expected=f"0 ... {n_nodes - 1}")  # fmt: skip
    return array


def _shape_text(shape: tuple[int | None, ...]) -> str:
    return "shape (" + ", ".join("any" if n is None else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"


def _choice(value: str, known: tuple[str, ...], name: str) -> None:
    if value not in known:
        raise InputError("unknown value", place=name, found=repr(value), expected=" or ".join(map(repr, known)))


@final
@dataclass(frozen=True, eq=False)
class BodyData:
    """A soft body: where it is in q, its rest mesh and its elastic law.

    Attributes
    ----------
    name : str
    start : int
        Its nodes are ``q[start:start + 3 n].reshape(n, 3)``.
    family : "tet4", "tet10" or "hex8"
    rest : (n, 3) rest positions [m]
    cells : (ne, nn) nodes of each element
    surface : (nt, 3) outward triangles
    mu, lam : float
        Lame parameters [Pa].
    model : "neo-hookean" or "neo-hookean-ciarlet"
    mean_dilatation : bool
    """

    name: str
    start: int
    family: str
    rest: FloatArray
    cells: IntArray
    surface: IntArray
    mu: float
    lam: float
    model: str = "neo-hookean"
    mean_dilatation: bool = False

    def __post_init__(self) -> None:
        """Bring to plain types and check that the parts fit."""
        place = f"bodies.{self.name}"
        _choice(self.family, tuple(FAMILIES), f"{place}.family")
        _choice(self.model, MODELS, f"{place}.model")
        rest = _floats(self.rest, (None, 3), f"{place}.rest")
        values = {
            "start": int(self.start),
            "rest": rest,
            "cells": _nodes(self.cells, FAMILIES[self.family].n_nodes, len(rest), f"{place}.cells"),
            "surface": _nodes(self.surface, 3, len(rest), f"{place}.surface"),
            "mu": float(self.mu),
            "lam": float(self.lam),
            "mean_dilatation": bool(self.mean_dilatation),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.rest)

    @property
    def entries(self) -> slice:
        """Its entries in q."""
        return slice(self.start, self.start + 3 * self.n_nodes)

    @property
    def form(self) -> int:
        """Volumetric form as in `add.kernels.elastic`."""
        return MODELS.index(self.model)

    @property
    def mesh(self) -> SoftMesh:
        """Its rest mesh."""
        return SoftMesh(self.rest, self.cells, FAMILIES[self.family])


@final
@dataclass(frozen=True, eq=False)
class ObstacleData:
    """A shape of the world, x = R X + p + t V.

    Attributes
    ----------
    name : str
    kind : int
        PLANE 0 (z >= 0 of its frame is free), SPHERE 1, BOX 2, CAPSULE 3, CYLINDER 4.
    size : (3,) [m]
        SPHERE: radius. BOX: half sizes. CAPSULE, CYLINDER: radius, half length; axis z of the frame.
    rotation : (3, 3)
    position : (3,) at t = 0 [m]
    velocity : (3,) [m/s]
    """

    name: str
    kind: int
    size: FloatArray
    rotation: FloatArray
    position: FloatArray
    velocity: FloatArray = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        """Bring to plain types and check shapes."""
        place = f"obstacles.{self.name}"
        if int(self.kind) not in range(len(OBSTACLE_KINDS)):
            raise InputError("unknown kind of obstacle", place=place, found=self.kind, expected="a code 0 ... 4")
        object.__setattr__(self, "kind", int(self.kind))
        for name, shape in (("size", (3,)), ("rotation", (3, 3)), ("position", (3,)), ("velocity", (3,))):
            object.__setattr__(self, name, _floats(getattr(self, name), shape, f"{place}.{name}"))


@final
@dataclass(frozen=True, eq=False)
class RunData:
    """All that is kept of a run; k states of n coordinates.

    Attributes
    ----------
    t : (k,) [s]
    q, v : (k, n) [m], [m/s]
    energy : name -> (k,) [J]
        Such as "kinetic", "elastic", "gravity", "contact".
    newton_iterations : (k - 1,)
    newton_residual : (k - 1,) [N]
    contact_force : (k, n)
        Force of all contacts on every node [N].
    bodies : tuple of BodyData
    obstacles : tuple of ObstacleData
    markers : name -> (k, 3)
        Simulated markers [m].
    targets : name -> ((m,), (m, 3))
        Times [s] and recorded places [m]; NaN where a marker was not seen.
    """

    t: FloatArray
    q: FloatArray
    v: FloatArray
    energy: Mapping[str, FloatArray]
    newton_iterations: IntArray
    newton_residual: FloatArray
    contact_force: FloatArray
    bodies: tuple[BodyData, ...]
    obstacles: tuple[ObstacleData, ...] = ()
    markers: Mapping[str, FloatArray] = field(default_factory=dict)
    targets: Mapping[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Bring to plain arrays and check that the shapes fit."""
        t = _floats(self.t, (None,), "t")
        k = len(t)
        if not k:
            raise InputError("a run has at least one state", place="t", found="none")
        q = _floats(self.q, (k, None), "q")
        n = q.shape[1]
        for body in self.bodies:
            if body.start < 0 or body.entries.stop > n:
                raise InputError("body outside of q", place=f"bodies.{body.name}.start", found=body.start,
                                 expected=f"0 ... {n - 3 * body.n_nodes}")  # fmt: skip
        targets = {}
        for name, (times, positions) in self.targets.items():
            times = _floats(times, (None,), f"targets_time.{name}")
            targets[name] = (times, _floats(positions, (len(times), 3), f"targets.{name}"))
        values = {
            "t": t,
            "q": q,
            "v": _floats(self.v, (k, n), "v"),
            "energy": {name: _floats(e, (k,), f"energy.{name}") for name, e in self.energy.items()},
            "newton_iterations": _floats(self.newton_iterations, (k - 1,), "newton.iterations").astype(np.int64),
            "newton_residual": _floats(self.newton_residual, (k - 1,), "newton.residual"),
            "contact_force": _floats(self.contact_force, (k, n), "contact_force"),
            "bodies": tuple(self.bodies),
            "obstacles": tuple(self.obstacles),
            "markers": {name: _floats(x, (k, 3), f"markers.{name}") for name, x in self.markers.items()},
            "targets": targets,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def n_states(self) -> int:
        """Number of states, the initial one included."""
        return len(self.t)

    def positions(self, body: BodyData, k: int) -> FloatArray:
        """Nodes of a body in state ``k``, (n, 3) [m]."""
        return self.q[k, body.entries].reshape(-1, 3)


def write_run(path: str | PathLike[str], data: RunData) -> None:
    """Write a run to an HDF5 file; a reader sees the old file or the whole new one, never a part.

    Raises
    ------
    InputError
        naming the file, if it cannot be written.
    """
    path = Path(path)
    try:
        with replacing(path) as temporary, h5py.File(temporary, "w", track_order=True) as file:
            _write(file, data)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=path) from error


def read_run(path: str | PathLike[str]) -> RunData:
    """Read what `write_run` wrote.

    Raises
    ------
    InputError
        naming the file: missing, not HDF5, truncated or damaged, of another format, or without a part of it.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError("no such file", file=path, expected="the trajectory.h5 of a finished `add simulate`")
    try:
        with path.open("rb") as raw:
            if raw.read(8) != b"\x89HDF\r\n\x1a\n":
                raise InputError("not an HDF5 file", file=path, expected="a trajectory.h5 written by add")
        with h5py.File(path, "r") as file:
            found = file.attrs.get("format")
            if found != FORMAT:
                raise InputError("another format of trajectory", file=path, found=repr(found), expected=repr(FORMAT))
            return _read(file)
    except InputError as error:
        raise InputError(
            error.message, file=path, place=error.place, found=error.found, expected=error.expected
        ) from error
    except (OSError, RuntimeError, ValueError, TypeError) as error:  # what h5py raises on damaged content
        text = " ".join(str(error).split())
        raise InputError(f"truncated or damaged: {text}", file=path, expected="a whole trajectory.h5") from error


def _key(name: str) -> str:
    """Name of a group: HDF5 gives "/" and "." a meaning."""
    quoted = name.replace("%", "%25").replace("/", "%2F")
    return quoted.replace(".", "%2E") if quoted.strip(".") == "" else quoted


def _name(key: str) -> str:
    return key.replace("%2E", ".").replace("%2F", "/").replace("%25", "%")


def _put(group: Any, key: str, values: Any, unit: str | None = None) -> None:
    """Write a dataset; large ones compressed, in chunks of whole rows so that one state is read quickly."""
    options: dict[str, Any] = {}
    if values.size > 1024:
        row = values.itemsize * max(1, values.size // len(values))
        rows = int(np.clip(2**18 // row, 1, len(values)))
        options = {"chunks": (rows, *values.shape[1:]), "compression": "gzip", "compression_opts": 1, "shuffle": True}
    dataset = group.create_dataset(key, data=values, **options)
    if unit is not None:
        dataset.attrs["unit"] = unit


def _write(file: Any, data: RunData) -> None:
    from add import __version__

    file.attrs["format"] = FORMAT
    file.attrs["add_version"] = __version__
    _put(file, "t", data.t, "s")
    _put(file, "q", data.q, "m")
    _put(file, "v", data.v, "m/s")
    _put(file, "contact_force", data.contact_force, "N")
    groups = {
        name: file.create_group(name, track_order=True)
        for name in ("energy", "newton", "bodies", "obstacles", "markers", "targets", "targets_time")
    }
    for name, values in data.energy.items():
        _put(groups["energy"], _key(name), values, "J")
    _put(groups["newton"], "iterations", data.newton_iterations)
    _put(groups["newton"], "residual", data.newton_residual, "N")
    for body in data.bodies:
        group = groups["bodies"].create_group(_key(body.name))
        group.attrs.update(
            {"kind": "soft", "start": body.start, "family": body.family, "mu": body.mu, "lambda": body.lam,
             "model": body.model, "mean_dilatation": body.mean_dilatation}
        )  # fmt: skip
        _put(group, "rest", body.rest, "m")
        _put(group, "cells", body.cells)
        _put(group, "surface", body.surface)
    for obstacle in data.obstacles:
        group = groups["obstacles"].create_group(_key(obstacle.name))
        group.attrs["kind"] = obstacle.kind
        for name in ("size", "rotation", "position", "velocity"):
            group.attrs[name] = getattr(obstacle, name)
    for name, values in data.markers.items():
        _put(groups["markers"], _key(name), values, "m")
    for name, (times, positions) in data.targets.items():
        _put(groups["targets_time"], _key(name), times, "s")
        _put(groups["targets"], _key(name), positions, "m")


def _part(group: Any, key: str) -> Any:
    if key not in group:
        raise InputError("missing from the file", place=f"{group.name}/{key}".replace("//", "/"))
    return group[key]


def _array(group: Any, key: str) -> Any:
    part = _part(group, key)
    if not isinstance(part, h5py.Dataset):
        raise InputError("not a dataset", place=part.name)
    return part[()]


def _arrays(group: Any) -> dict[str, Any]:
    return {_name(key): _array(group, key) for key in group}


def _attribute(group: Any, key: str) -> Any:
    if key not in group.attrs:
        raise InputError("attribute missing from the file", place=f"{group.name}.{key}")
    return group.attrs[key]


def _read(file: Any) -> RunData:
    bodies = []
    for key, group in _part(file, "bodies").items():
        if _attribute(group, "kind") != "soft":
            raise InputError("unknown kind of body", place=group.name, found=repr(group.attrs["kind"]), expected="soft")
        attributes = {name: _attribute(group, name) for name in ("start", "family", "mu", "model", "mean_dilatation")}
        arrays = {name: _array(group, name) for name in ("rest", "cells", "surface")}
        bodies.append(BodyData(_name(key), lam=_attribute(group, "lambda"), **attributes, **arrays))
    obstacles = [
        ObstacleData(
            _name(key),
            *(_attribute(group, name) for name in ("kind", "size", "rotation", "position", "velocity")),
        )
        for key, group in _part(file, "obstacles").items()
    ]
    times, newton = _part(file, "targets_time"), _part(file, "newton")
    targets = {name: (_array(times, _key(name)), x) for name, x in _arrays(_part(file, "targets")).items()}
    return RunData(
        t=_array(file, "t"),
        q=_array(file, "q"),
        v=_array(file, "v"),
        energy=_arrays(_part(file, "energy")),
        newton_iterations=_array(newton, "iterations"),
        newton_residual=_array(newton, "residual"),
        contact_force=_array(file, "contact_force"),
        bodies=tuple(bodies),
        obstacles=tuple(obstacles),
        markers=_arrays(_part(file, "markers")),
        targets=targets,
    )
