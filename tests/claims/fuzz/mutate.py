"""Damage: what a hostile user, a full disk or a slip of the hand makes of scenes, bytes, tables and trajectories."""

from __future__ import annotations

import copy
import os
import random
import re
from typing import Any

import h5py
import numpy as np

#: Values that no place of a scene expects, or each of them only at its edge.
VALUES: tuple[Any, ...] = (
    None, True, False, "", "x", "<script>alert(1)</script>", "|a|b", "a.b", "a/../../b", "\ud800", "é" * 90, "a" * 3000,
    0, 1, -1, 2, 3, 1e-300, 1e300, -1e300, 5e-324, 1.7e308, 1e-9, 10**9, 10**30, -(10**30), 0.5, 1e9, [], {}, [[]],
    [0, 0, 0], [1, 0, 0], [0, 0, 1e300], [1e-200, 0, 0], [1, 2], [None, None], ["a", "b"], [[0, 0, 0]] * 3, {"a": 1},
    {"signal": "shake"}, {"signal": "none"}, {"file": "/dev/zero"}, {"file": "pipe"}, {"all": True}, {"nodes": [0, 0]},
    {"box": {}}, "/dev/zero", "/dev/stdin", "pipe", "/etc/passwd", "${HOME}", "${NOT_SET_ANYWHERE}", "..", "end", "box",
    "soft", "rigid", "particles", "kinematic", "linear", "tanh", "hybrid", "none", "bdf1", "bdf2", "tet10", "hex8",
)  # fmt: skip
NAMES = ("markers", "expect", "parameters", "optimizer", "file", "mesh", "a b", "x" * 100, "ä", "a.b", "<b>", "", "1")
TOKENS = (b"0", b"-1", b"7", b"99999999999", b"1000000000", b"nan", b"inf", b"1e400", b"", b"x", b"1_0", b"\xff", b"\0",
          b"1e300", b"--", b'"')  # fmt: skip


def deep(levels: int) -> Any:
    """Return lists within each other."""
    found: Any = 0
    for _ in range(levels):
        found = [found]
    return found


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all that a value of JSON holds."""
    items = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    if len(path) > 20:  # of what was nested deeply before
        return []
    return [at for key, item in items for at in ((*path, key), *places(item, (*path, key)))]


def at(node: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        node = node[key]
    return node


def mutated_json(rng: random.Random, raw: Any) -> tuple[Any, list[str]]:
    """Return a copy with one to three changes, and what they are."""
    raw, said = copy.deepcopy(raw), []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        paths = places(raw)
        if not paths:
            break
        path = rng.choice(paths)
        parent, key = at(raw, path[:-1]), path[-1]
        kind = rng.choice(
            ("value", "value", "scale", "scale", "nudge", "nudge", "nudge", "delete", "swap", "copy", "rename",
             "extend", "deep")
        )  # fmt: skip
        if kind in ("scale", "nudge") and isinstance(parent[key], int | float) and not isinstance(parent[key], bool):
            parent[key] = _scaled(rng, parent[key], 12.0 if kind == "scale" else 2.0)
        elif kind == "delete":
            del parent[key]
        elif kind == "swap":
            other = rng.choice(paths)
            parent[key] = copy.deepcopy(at(raw, other)) if _is_there(raw, other) else None
        elif kind == "copy" and isinstance(parent, dict):
            parent[rng.choice(NAMES)] = copy.deepcopy(parent[key])
        elif kind == "rename" and isinstance(parent, dict):
            parent[rng.choice(NAMES)] = parent.pop(key)
        elif kind == "extend" and isinstance(parent, list):
            parent.extend(copy.deepcopy(parent[key]) for _ in range(rng.choice((1, 2, 50))))
        elif kind == "deep":
            parent[key] = deep(rng.choice((5, 70, 200)))
        else:
            parent[key] = copy.deepcopy(rng.choice(VALUES))
        said.append(f"{kind} {'.'.join(map(str, path))[:80]}")
    return raw, said


def _scaled(rng: random.Random, number: float, decades: float) -> float:
    """Return a number some decades away; of zero, another one of that size. Whole numbers stay whole."""
    found = (number or 1.0) * 10.0 ** rng.uniform(-decades, decades) * rng.choice((1, 1, 1, -1))
    return round(found) if isinstance(number, int) and rng.random() < 0.8 else found


def _is_there(raw: Any, path: tuple[Any, ...]) -> bool:
    try:
        at(raw, path)
    except (KeyError, IndexError, TypeError):
        return False
    return True


def mutated_bytes(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """Return content that was cut, flipped, filled with noise, or had a number or a line changed."""
    kind = rng.choice(("cut", "flip", "line", "token", "token", "token", "zero", "empty", "noise", "repeat", "join"))
    if not content or kind == "empty":
        return b"", "empty"
    data = bytearray(content)
    where = rng.randrange(len(data))
    if kind == "cut":
        return bytes(data[:where]), kind
    if kind == "flip":
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif kind == "zero":
        data[where : where + rng.randrange(1, 200)] = b"\0" * rng.randrange(1, 200)
    elif kind == "noise":
        data[where:where] = rng.randbytes(rng.randrange(1, 300))
    elif kind == "repeat":
        data += data[where:] * rng.randrange(1, 4)
    elif kind == "join":
        data = bytearray(bytes(data).replace(b"\n", b" ", rng.randrange(1, 9)))
    elif kind == "line":
        lines = bytes(data).split(b"\n")
        i = rng.randrange(len(lines))
        lines[i : i + 1] = rng.choice(([], [lines[i]] * 3, [b""], [b"#" + lines[i]]))
        data = bytearray(b"\n".join(lines))
    else:
        numbers = list(re.finditer(rb"[-+0-9.eE]+", bytes(data[:20000])))
        if numbers:
            hit = rng.choice(numbers)
            data[hit.start() : hit.end()] = rng.choice(TOKENS)
    return bytes(data), kind


def mutated_hdf5(rng: random.Random, path: str) -> str:
    """Change what an HDF5 file holds, in place, by its own library."""
    names: list[str] = []
    with h5py.File(path, "a") as file:
        file.visit(names.append)
        name = rng.choice(names)
        kind = rng.choice(
            ("delete", "external", "soft", "raw", "virtual", "giant", "sparse", "text", "nan", "huge", "shape", "attrs",
             "circle", "name")
        )  # fmt: skip
        item = file[name]
        if kind == "attrs" and len(item.attrs):
            key = rng.choice(list(item.attrs))
            item.attrs[key] = rng.choice(("x", 1e300, -1, np.nan, [1, 2, 3], 2**62, "<b>"))
            return f"{kind} {name}.{key}"
        shape, values = getattr(item, "shape", (3,)), np.zeros(3)
        if isinstance(item, h5py.Dataset) and item.size and item.dtype.kind in "if":
            values = item[()].astype(float)
        if kind == "circle":
            file[f"{name}_again" if isinstance(item, h5py.Dataset) else f"{name}/again"] = file["/"]
            return kind
        if kind == "name":
            file.copy(item, rng.choice(("markers/$\\frac{1", "bodies/<script>", "energy/|a|b", "markers/" + "x" * 300)))
            return kind
        del file[name]
        if kind == "external":
            file[name] = h5py.ExternalLink("other.h5", "/t")
        elif kind == "soft":
            file[name] = h5py.SoftLink("/t")
        elif kind == "raw":
            file.create_dataset(name, (4,), "f8", external=[("/etc/passwd", 0, 32)])
        elif kind == "virtual":
            layout = h5py.VirtualLayout((4,), "f8")
            layout[:] = h5py.VirtualSource("other.h5", "t", (4,))
            file.create_virtual_dataset(name, layout)
        elif kind == "giant":
            file.create_dataset(name, (10**12,), "f8", chunks=(2**16,), compression="gzip")
        elif kind == "sparse":
            file.create_dataset(name, (10**6, 10**6), "f8", chunks=(64, 64))
        elif kind == "text":
            file[name] = "text"
        elif kind == "nan":
            file[name] = values * np.nan
        elif kind == "huge":
            with np.errstate(all="ignore"):
                file[name] = values * 1e305
        elif kind == "shape":
            file[name] = np.zeros(rng.choice(((), (0,), (1, 1, 1), (*shape, 2))))
        return f"{kind} {name}"


def replaced(rng: random.Random, path: str) -> str:
    """Put something else in a file's place: a link, a folder, a pipe, a giant without content, nothing."""
    kind = rng.choice(("link", "folder", "pipe", "giant", "nothing", "dangling"))
    os.unlink(path)
    if kind == "link":
        os.symlink("/etc/passwd", path)
    elif kind == "dangling":
        os.symlink("nowhere", path)
    elif kind == "folder":
        os.mkdir(path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "giant":
        with open(path, "wb") as file:
            file.truncate(10**12)
    return kind
