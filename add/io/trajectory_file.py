"""Reading and writing of trajectories, an HDF5 file each."""

import json
import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

import numpy as np

from add.equations.kinematics import NO_CARRY, Carry, State
from add.errors import InputError
from add.io.hdf5 import new_hdf5, opened_hdf5
from add.io.trajectory_data import PATH, TIMES, RunData
from add.io.trajectory_parts import BodyData, ContactData, Kept, Part
from add.materials import NAMES, formula_law, material

FORMAT = "add-trajectory/1"
P = TypeVar("P", bound=Part)
_EXPECTED = "a whole trajectory.h5 written by add"


#: Groups of parts that have names of their own, and of parts by name; those that all files have, old ones among them.
_FIELDS = {key: get_args(hint) for key, hint in get_type_hints(RunData).items()}
_LISTED: dict[str, Any] = {key: args[0] for key, args in _FIELDS.items() if args[1:] == (...,)}
_BY_NAME: dict[str, Any] = {
    key: args[1] for key, args in _FIELDS.items() if any(hasattr(arg, "GROUP") for arg in args[1:])
}
_ALWAYS = ("bodies", "obstacles")
#: Fields that are kept in other ways: names as those of groups, laws as `_write_law` does.
_ELSEWHERE = ("name", "formula", "moduli", "group")
#: Pairs of coordinates or velocities, and what is carried beside them.
_ROWS = Kept(("m", "n"))


class ResumePoint(NamedTuple):
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
        q, v = (_ROWS.brought(_array(group, key), {}, f"resume.{key}") for key in ("q", "v"))
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
    memory = _ROWS.brought(_array(carry, "memory"), {}, "carry.memory")
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
    _write_part(file, data)
    parts = {name: {part.name: part for part in getattr(data, name)} for name in _LISTED}
    for name, named in (parts | {name: getattr(data, name) for name in _BY_NAME}).items():
        if named or name in _ALWAYS:
            groups = file.create_group(name, track_order=True)
            for key, part in named.items():
                _write_part(groups.create_group(_key(key)), part)
    recorded, clocks = (file.create_group(name, track_order=True) for name in ("targets", "targets_time"))
    for name, (times, positions) in data.targets.items():
        _put(clocks, _key(name), times, TIMES.unit)
        _put(recorded, _key(name), positions, PATH.unit)
    if data.carry.marks or data.carry.memory.size:
        group = file.create_group("carry")
        _put(group, "memory", data.carry.memory)
        for k, mark in enumerate(data.carry.marks):
            _put(group, f"mark{k}", mark)
    if len(data.contacts.offsets):
        _write_part(file.create_group("contacts"), data.contacts)


def _write_part(group: Any, part: Part) -> None:
    """Write the plain fields and arrays of a part."""
    group.attrs.update({key: getattr(part, key) for key in part.PLAIN if key not in _ELSEWHERE})
    for key, how in part.KEPT.items():
        value = getattr(part, key)
        if how.named:
            named = group.create_group(key, track_order=True)
            for name, one in value.items():
                _put(named, _key(name), one, how.unit)
        elif how.attribute:
            group.attrs[key] = value
        elif key not in _ELSEWHERE and not (how.spare and not len(value)):
            _put(group, _path(key), value, how.unit)
    if isinstance(part, BodyData):
        _write_law(group, part)


def _path(key: str) -> str:
    """Return the way to a field in a file."""
    return key.replace("newton_", "newton/")


def _write_law(group: Any, body: BodyData) -> None:
    group.attrs["kind"] = "soft"
    if body.formula:
        group.attrs["formula"] = body.formula
    if len(body.moduli) > 1:
        _put(group, "moduli", body.moduli)
        _put(group, "group", body.group)
    else:
        for modulus, value in zip(body.law.parameters, body.moduli[0], strict=True):
            group.attrs[modulus.key] = value


def _read_law(group: Any) -> dict[str, Any]:
    """Read what `_write_law` wrote."""
    if _attribute(group, "kind") != "soft":
        raise InputError("unknown kind of body", place=group.name, found=repr(group.attrs["kind"]), expected="soft")
    formula, model = str(group.attrs.get("formula", "")), _attribute(group, "model")
    if "moduli" in group:
        return {"formula": formula, "moduli": _array(group, "moduli"), "group": _array(group, "group")}
    known = [formula_law(formula)] if formula else [material(model)] if model in NAMES else []
    return {"formula": formula, "moduli": [_attribute(group, one.key) for law in known for one in law.parameters]}


def _read_part(kind: type[P], group: Any, /, **others: Any) -> P:
    """Read what `_write_part` wrote."""
    values = {key: _attribute(group, key) for key in kind.PLAIN if key not in _ELSEWHERE}
    for key, how in kind.KEPT.items():
        if how.attribute:
            values[key] = _attribute(group, key)
        elif how.named:
            values[key] = _arrays(_part(group, key))
        elif key not in _ELSEWHERE and not (how.spare and key not in group):
            values[key] = _array(group, _path(key))
    return kind(**values, **others)


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
    times = _part(file, "targets_time")
    parts: dict[str, Any] = {
        "carry": _read_carry(file),
        "targets": {name: (_array(times, _key(name)), x) for name, x in _arrays(_part(file, "targets")).items()},
    }
    for name, kind in _LISTED.items():
        groups = _part(file, name).items() if name in file or name in _ALWAYS else ()
        parts[name] = tuple(
            _read_part(kind, group, name=_name(key), **(_read_law(group) if kind is BodyData else {}))
            for key, group in groups
        )
    for name, kind in _BY_NAME.items():
        groups = file[name].items() if name in file else ()
        parts[name] = {_name(key): _read_part(kind, group) for key, group in groups}
    if "contacts" in file:
        parts["contacts"] = _read_part(ContactData, file["contacts"])
    return _read_part(RunData, file, **parts)
