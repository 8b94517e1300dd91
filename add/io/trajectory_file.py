"""Reading and writing of trajectories, an HDF5 file each."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, final

import numpy as np

from add.equations.kinematics import NO_CARRY, Carry, State
from add.errors import InputError
from add.io.hdf5 import new_hdf5, opened_hdf5
from add.io.trajectory_data import RunData
from add.io.trajectory_parts import (
    BodyData,
    ContactData,
    GoalData,
    JointData,
    LineData,
    MassSpringData,
    ObstacleData,
    SolidData,
    floats,
)
from add.materials import NAMES, formula_law, material

FORMAT = "add-trajectory/1"
P = TypeVar("P")
_EXPECTED = "a whole trajectory.h5 written by add"


class _Form(NamedTuple):
    """The names of what is kept of a part of a run: attributes, arrays with units, and arrays that may be left out."""

    attributes: tuple[str, ...]
    arrays: dict[str, str | None]
    spare: Mapping[str, str | None] = MappingProxyType({})


_FORMS = {
    ObstacleData: _Form(("kind", "size", "rotation", "position", "velocity"), {}, {"vertices": "m", "triangles": None}),
    MassSpringData: _Form(("start",), {"rest": "m", "edges": None, "triangles": None}, {"gradients": "1/m"}),
    SolidData: _Form(("start", "kinematic", "centre", "kind", "size"), {"vertices": "m", "triangles": None}),
    LineData: _Form(("kind",), {"ends": "m", "tension": "N"}),
    JointData: _Form((), {"place": "m", "axis": None}),
    GoalData: _Form(("body", "rotation", "position"), {"points": "m"}),
    ContactData: _Form((), {"offsets": None, "places": "m", "forces": "N"}, {"modes": None, "margins": None}),
}
# Groups that files of runs without such things do not have, old ones among them: of parts with names of their own, and
# of parts by name.
_LISTED = {"sheets": MassSpringData, "solids": SolidData}
_NAMED = {"lines": LineData, "joints": JointData, "goals": GoalData}


@final
@dataclass(frozen=True, eq=False)
class ResumePoint:
    """From where an unfinished run goes on.

    Attributes
    ----------
    state : State
        After the last step, with its history.
    tally : Mapping
        What was counted so far, as JSON knows it.
    model : str
        A hash of what the run depends on.
    """

    state: State
    tally: Mapping[str, Any]
    model: str = ""


def write_run(path: str | PathLike[str], data: RunData, point: ResumePoint | None = None) -> None:
    """Write a run to an HDF5 file; a reader sees the old file or the whole new one, never a part.

    Parameters
    ----------
    path : of the file
    data : RunData
    point : ResumePoint, optional
        Of a run that is not finished; ``data`` ends with its state, and has what that carries.

    Raises
    ------
    CannotWrite
        naming the file.
    """
    with new_hdf5(Path(path)) as file:
        _write(file, data)
        if point is not None:
            group = file.create_group("resume")
            group.attrs.update({"t": point.state.t, "step": point.state.step, "model": point.model})
            _put(group, "tally", np.frombuffer(json.dumps(dict(point.tally)).encode(), dtype=np.uint8))
            _put(group, "q", point.state.q)
            _put(group, "v", point.state.v)


def read_point(path: str | PathLike[str]) -> ResumePoint | None:
    """Return from where the run in a file goes on; None for a finished one.

    Raises
    ------
    InputError
        As `read_run`.
    """
    with opened_hdf5(Path(path), expected=_EXPECTED) as file:
        if "resume" not in file:
            return None
        group = file["resume"]
        q, v = (floats(_array(group, key), (None, None), f"resume.{key}") for key in ("q", "v"))
        tally = json.loads(bytes(_array(group, "tally").astype(np.uint8)).decode())
        model = str(_attribute(group, "model"))
        t, step = float(_attribute(group, "t")), int(_attribute(group, "step"))
        if q.shape != v.shape or not isinstance(tally, dict) or not (math.isfinite(t) and step >= 0):
            raise InputError("no state to go on from", place="resume")
        return ResumePoint(State(t, step, q, v, _read_carry(file)), tally, model)


def _read_carry(file: Any) -> Carry:
    """Read what the last state carries beside coordinates and velocities: nothing in most files and in old ones."""
    if "carry" not in file:
        return NO_CARRY
    carry = file["carry"]
    memory = floats(_array(carry, "memory"), (None, None), "carry.memory")
    marks = [_array(carry, f"mark{k}") for k in range(len(carry) - 1)]
    return Carry(memory, tuple(np.ascontiguousarray(mark, dtype=np.int64) for mark in marks))


def read_run(path: str | PathLike[str]) -> RunData:
    """Read what `write_run` wrote.

    Raises
    ------
    InputError
        naming the file: missing, not HDF5, truncated or damaged, of another format, without a part of it, or with parts
        that lie in other files.
    """
    with opened_hdf5(Path(path), expected=_EXPECTED) as file:
        written = file.attrs.get("format")
        if not isinstance(written, str) or written != FORMAT:
            raise InputError("another format of trajectory", found=repr(written)[:80], expected=repr(FORMAT))
        return _read(file)


def last_time(path: str | PathLike[str]) -> float:
    """Return the time of the last state in a file that `write_run` wrote, without reading the rest [s].

    Raises
    ------
    InputError
        naming the file, if it has none.
    """
    with opened_hdf5(Path(path), expected=_EXPECTED) as file:
        return float(file["t"][-1])


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
            {"kind": "soft", "start": body.start, "family": body.family, "model": body.model,
             "mean_dilatation": body.mean_dilatation}
        )  # fmt: skip
        if body.formula:
            group.attrs["formula"] = body.formula
        if len(body.moduli) > 1:
            _put(group, "moduli", body.moduli)
            _put(group, "group", body.group)
        else:
            for modulus, value in zip(body.law.parameters, body.moduli[0], strict=True):
                group.attrs[modulus.key] = value
        _put(group, "rest", body.rest, "m")
        _put(group, "cells", body.cells)
        _put(group, "surface", body.surface)
    for obstacle in data.obstacles:
        _write_part(groups["obstacles"].create_group(_key(obstacle.name)), obstacle)
    for name, values in data.markers.items():
        _put(groups["markers"], _key(name), values, "m")
    for name, (times, positions) in data.targets.items():
        _put(groups["targets_time"], _key(name), times, "s")
        _put(groups["targets"], _key(name), positions, "m")
    _write_optional(file, data)


def _write_optional(file: Any, data: RunData) -> None:
    """Write rigid bodies, sheets, links, contacts, goals and what the last state carries, as far as there are any."""
    parts = {name: {part.name: part for part in getattr(data, name)} for name in _LISTED}
    for name, named in (parts | {name: getattr(data, name) for name in _NAMED}).items():
        if named:
            group = file.create_group(name, track_order=True)
            for key, part in named.items():
                _write_part(group.create_group(_key(key)), part)
    if data.carry.marks or data.carry.memory.size:
        group = file.create_group("carry")
        _put(group, "memory", data.carry.memory)
        for k, mark in enumerate(data.carry.marks):
            _put(group, f"mark{k}", mark)
    if len(data.contacts.offsets):
        _write_part(file.create_group("contacts"), data.contacts)


def _write_part(group: Any, part: Any) -> None:
    """Write what `_FORMS` names of a part."""
    form = _FORMS[type(part)]
    for key in form.attributes:
        group.attrs[key] = getattr(part, key)
    spare = {key: unit for key, unit in form.spare.items() if len(getattr(part, key))}
    for key, unit in (form.arrays | spare).items():
        _put(group, key, getattr(part, key), unit)


def _read_part(kind: type[P], group: Any, *name: str) -> P:
    """Read what `_FORMS` names of a part."""
    form = _FORMS[kind]
    arrays = [*form.arrays, *(key for key in form.spare if key in group)]
    values = {key: _attribute(group, key) for key in form.attributes} | {key: _array(group, key) for key in arrays}
    return kind(*name, **values)


def _part(group: Any, key: str) -> Any:
    if key not in group:
        raise InputError("missing from the file", place=f"{group.name}/{key}".replace("//", "/"))
    return group[key]


def _array(group: Any, key: str) -> Any:
    import h5py

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
        attributes = {name: _attribute(group, name) for name in ("start", "family", "model", "mean_dilatation")}
        formula = str(group.attrs.get("formula", ""))
        model = attributes["model"]
        known = [formula_law(formula)] if formula else [material(model)] if model in NAMES else []
        arrays = {name: _array(group, name) for name in ("rest", "cells", "surface")}
        if "moduli" in group:
            arrays |= {name: _array(group, name) for name in ("moduli", "group")}
        else:
            arrays["moduli"] = np.array([_attribute(group, modulus.key) for law in known for modulus in law.parameters])
        bodies.append(BodyData(_name(key), formula=formula, **attributes, **arrays))
    obstacles = [_read_part(ObstacleData, group, _name(key)) for key, group in _part(file, "obstacles").items()]
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
        **_read_optional(file),
    )


def _read_optional(file: Any) -> dict[str, Any]:
    """Read what only some files have."""
    out: dict[str, Any] = {"carry": _read_carry(file)}
    for name, kind in _LISTED.items():
        groups = file[name].items() if name in file else ()
        out[name] = tuple(_read_part(kind, group, _name(key)) for key, group in groups)
    for name, of_name in _NAMED.items():
        groups = file[name].items() if name in file else ()
        out[name] = {_name(key): _read_part(of_name, group) for key, group in groups}
    return out | ({"contacts": _read_part(ContactData, file["contacts"])} if "contacts" in file else {})
