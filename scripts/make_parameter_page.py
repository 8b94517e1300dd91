"""Write `docs/parameters.md`: every number of a scene that can be a parameter, with its unit.

The numbers are those of the scenes in `scenes/` and of `REST`, a scene that is never run and has what they lack; the
words are those of the scene format.
"""

import os
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from add import load_scene, scene_from_dict
from add.scene.spec.roles import json_schema

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "parameters.md"
HEAD = """# Parameters and units

Every number of this page can be fitted, optimised, swept and differentiated: as `path` in `parameters` of a scene
([reference](scene-reference.md#parameter)), in `add sweep --parameter`, in `built.numbers.values` of Python. This page
is written by `scripts/make_parameter_page.py` from the scenes of the repository; do not edit it.

Names of a scene's own things stand between angle brackets, `<k>` is a number in a list, from 0. A vector has as many
entries as the table says; one of them is `bodies.ball.velocity.2`. Units are SI. An `orientation` is its rotation
vector, a direction (`axis`, `direction`, `normal`) two tilts from that of the scene. A material has `young` and
`poisson`, or the moduli of its law, as the scene says it.

"""
TAIL = """
## Units

| quantity | unit | |
|---|---|---|
| length, time, mass | m, s, kg | a recording's own unit is turned into metres as it is read |
| angle, angular velocity | rad, rad/s | |
| force, torque, pressure | N, N m, Pa | |
| stiffness of contact | N/m at a point, N/m/m^2 with `"stiffness_per": "area"` | a pressure for each metre of depth |
| damping, stiffness of sticking | N s/m, N s/m/m^2 | |
| viscosity of a soft body | Pa s | of Eq. 19 of the [theory](theory.md) |
| friction, restitution, Poisson's ratio | - | |
| objectives of markers, points, lines, clouds | m^2 | mean squared distances |
"""

_SOFT = {
    "type": "soft",
    "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]},
    "material": {"young": 1e4, "poisson": 0.3, "density": 100},
}
_FIBRES = {"activation": 0.5, "fibres": {"direction": [1, 0, 0]}}
_CUBE = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}}
_ENDS = {"a": {"body": "cube", "at": [0, 0, 0]}, "b": {"body": "stone", "at": [0, 0, 0]}}
_HINGE = {**_ENDS, "axis": [0, 0, 1], "stiffness": 10, "angular_stiffness": 1}
REST: dict[str, Any] = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 1},
    "bodies": {
        "block": _SOFT | {
            "position": [0, 0, 1],
            "point_masses": [{"where": {"box": {"min": [0, None, None]}}, "mass": 0.1}],
            "loads": [{"where": {"box": {"min": [0, None, None]}}, "force": [0, 0, 1]}],
            "anchors": [{"at": [0, 0, 0], "place": [0, 0, 1]}],
        },
        "held": _SOFT | {"position": [1, 0, 1],
                         "pins": [{"where": {"box": {"max": [0, None, None]}}, "motion": [0, 0, 0]}]},
        "silicone": _SOFT | {"position": [5, 0, 1], "material": {"model": "yeoh", "c10": 1e4, "c20": 1e3, "kappa": 1e6,
                                                                 "density": 1e3}},
        "jelly": _SOFT | {"position": [7, 0, 1], "material": _SOFT["material"] | {
            "viscosity": {"dissipation": "nu/2*DD", "numbers": {"nu": 1}}}},
        "rubber": _SOFT | {"position": [6, 0, 1], "material": {"model": "gent", "mu": 1e5, "limit": 30, "kappa": 1e6,
                                                               "density": 1e3, "relaxation": {
                                                                   "band": {"loss": 0.1, "frequencies": [1, 9]}}}},
        "finger": _SOFT | {
            "position": [20, 0, 1],
            "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [5, 3, 3],
                     "hollows": [[[1, 1, 1], [2, 2, 2]], [[3, 1, 1], [4, 2, 2]]]},
            "chambers": {"air": {"type": "gas", "cavity": 0}, "water": {"type": "volume", "cavity": 1},
                         "pressed": {"type": "pressure", "pressure": 10.0, "where": {"all": True}}},
            "muscles": {"active": {"type": "active-stress", "strength": 10, **_FIBRES},
                        "spring": {"type": "quadratic-fibre", "stiffness": 10, **_FIBRES},
                        "hill": {"type": "hill", "strength": 10, **_FIBRES},
                        "cells": {"type": "volumetric-actuator", "stiffness": 10, "volume": 1.0}},
        },
        "cube": _CUBE | {"position": [2, 0, 1], "mass": 1.0, "center_of_mass": [0, 0, 0],
                         "inertia": [1e-3, 1e-3, 1e-3, 0, 0, 0], "angular_velocity": [0, 0, 0]},
        "sewn": {"type": "cloth", "mesh": {"shape": "rectangle", "size": [0.1, 0.1], "cells": [2, 2]},
                 "position": [7, 0, 1],
                 "material": {"density": 0.2, "membrane": {"model": "baraff-witkin", "k_u": 1, "k_v": 1, "k_s": 1},
                              "bending": {"model": "plate", "rigidity": 1e-5}},
                 "seams": [{"a": [0], "b": [8], "stiffness": 1}]},
        "stone": _CUBE | {"position": [3, 0, 1], "density": 500},
        "cart": {
            "type": "articulated", "position": [4, 0, 1],
            "links": {"slide": {"mass": 1.0, "inertia": [1e-3, 1e-3, 1e-3, 0, 0, 0]},
                      "arm": {"mass": 1.0, "inertia": [1e-3, 1e-3, 1e-3, 0, 0, 0]}},
            "joints": {"slide": {"type": "slide", "axis": [1, 0, 0], "lower": -1, "upper": 1},
                       "arm": {"parent": "slide", "lower": -1, "upper": 1}},
            "tendons": {"cord": {"joints": {"slide": 1.0, "arm": 0.1}, "stiffness": 1, "damping": 1, "dry_friction": 1,
                                 "lower": -1, "upper": 1}},
            "drives": {"servo": {"joint": "arm", "type": "position", "input": 0.0, "stiffness": 1, "damping": 1,
                                 "limit": 5},
                       "push": {"tendon": "cord", "type": "velocity", "input": 0.0, "damping": 1}},
        },
    },
    "obstacles": {
        "floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1], "adjustable": True},
        "box": {"shape": "box", "half_size": [0.1, 0.1, 0.1], "center": [9, 0, 0], "adjustable": True},
    },
    "contact": {"stiffness": 1e3, "friction": 0.3, "damping": 1.0, "stick_stiffness": 1.0,
                "pairs": [{"body": "cube", "obstacle": "floor", "friction": 0.2, "stiffness": 1e3, "damping": 1.0,
                           "stick_stiffness": 1.0}]},
    "markers": {"corner": {"body": "cube", "point": [0.05, 0.05, 0.05]}},
    "recording": {"file": "data/recordings/foam_ball.csv", "markers": {"corner": "corner"}, "place": {}},
    "objective": [{"type": "cloud", "body": "block", "file": "data/recordings/depth_ball.npz", "place": {}}],
    "couplings": {
        "spring": {"type": "spring", **_ENDS, "stiffness": 10, "damping": 1, "length": 0.1},
        "chain": {"type": "formula", **_ENDS, "energy": "k/2*l**2", "numbers": {"k": 10}},
        "cable": {"type": "cable", **_ENDS, "stiffness": 10, "length": 0.1},
        "ball": {"type": "ball", **_ENDS, "stiffness": 10},
        "hinge": {"type": "hinge", **_HINGE, "limits": {"lower": -1, "upper": 1, "stiffness": 1},
                  "formula": {"energy": "k/2*angle**2", "numbers": {"k": 1}},
                  "motor": {"angle": 0.0, "stiffness": 1.0}, "torque": 0.0},
        "fixed": {"type": "fixed", **_ENDS, "stiffness": 10, "angular_stiffness": 1},
        "slider": {"type": "slider", **_HINGE},
        "force": {"type": "force", "on": {"body": "cube", "at": [0, 0, 0]}, "force": [0, 0, 1]},
        "torque": {"type": "torque", "body": "cube", "torque": [0, 0, 1]},
    },
}  # fmt: skip

#: Keys whose values are things by name, and what the page calls such a name.
NAMED = {
    "bodies": "body", "signals": "signal", "couplings": "coupling", "obstacles": "obstacle", "markers": "marker",
    "numbers": "number", "joints": "joint", "links": "link", "loops": "loop", "tendons": "tendon", "drives": "drive",
    "relaxation": "branch", "chambers": "chamber", "muscles": "muscle",
}  # fmt: skip


def pattern(path: str) -> str:
    """Return a path with the scene's own names and numbers replaced."""
    keys = path.split(".")
    out = [keys[0]]
    for before, key in pairwise(keys):
        out.append("<k>" if key.isdecimal() else f"<{NAMED[before]}>" if before in NAMED else key)
    return ".".join(out)


def numbers() -> dict[str, tuple[set[str], set[str]]]:
    """Return units and sizes of all numbers, by the pattern of their paths."""
    os.environ.setdefault("ADD_DATA", str(ROOT.parent / "shared/data"))  # whose files scenes must find
    scenes = [load_scene(path) for path in sorted((ROOT / "scenes").glob("*.json"))]
    found: dict[str, tuple[set[str], set[str]]] = {}
    for scene in (*scenes, scene_from_dict(REST, folder=ROOT)):
        for entry in scene.build().numbers.layout.entries:
            units, sizes = found.setdefault(pattern(entry.name), (set(), set()))
            units.add(entry.unit)
            shape = entry.indices.shape
            sizes.add("rows" if ".values" in entry.name else "1" if shape in ((), (1,)) else str(shape[0]))
    return found


def words(path: str) -> str:
    """Return what the scene format says of a number."""
    schema = json_schema()

    def branches(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if "$ref" in node:
            yield from branches(schema["$defs"][node["$ref"].rsplit("/", 1)[-1]])
            return
        options = [*node.get("anyOf", ()), *node.get("oneOf", ())]
        if not options:
            yield node
        for option in options:
            yield from branches(option)

    def below(node: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
        for branch in branches(node):
            if key == "<k>" and "items" in branch:
                yield branch["items"]
            elif key.startswith("<"):
                values = [*branch.get("patternProperties", {}).values(), branch.get("additionalProperties")]
                yield from (value for value in values if isinstance(value, dict))
            elif key in branch.get("properties", {}):
                yield branch["properties"][key]

    nodes: list[dict[str, Any]] = [schema]
    for key in path.split("."):
        if key.startswith("<") and path.endswith(key) and any("description" in node for node in nodes):
            break  # a number under a name: what is said of all of them
        nodes = [found for node in nodes for found in below(node, key)]
    words = [node for node in nodes if not all(isinstance(item, str) for item in node.get("enum", [0]))]
    said = dict.fromkeys(node["description"] for node in words if "description" in node)
    return "; or: ".join(re.sub(r"; null = .*| \[[^\]]*\](?=$|;)", "", text) for text in said)


def table(rows: Iterable[tuple[str, set[str], set[str]]]) -> str:
    """Return rows (path, units, sizes) as a table."""
    lines = ["| path | entries | unit | |", "|---|---|---|---|"]
    for path, units, sizes in rows:
        unit = ", ".join(sorted(units)) or "of what it drives"
        about = words(path).replace("|", "\\|")
        if not about:
            raise SystemExit(f"{path}: the scene format says nothing of it")
        lines.append(f"| `{path}` | {', '.join(sorted(sizes))} | {unit} | {about} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the page."""
    found = numbers()
    titles = {"gravity": "The whole scene", "bodies": "Bodies", "couplings": "Couplings", "contact": "Contact",
              "obstacles": "Obstacles", "signals": "Signals", "markers": "Markers and recordings"}  # fmt: skip
    home = {"recording": "markers", "objective": "markers"}
    parts = []
    for key, title in titles.items():
        rows = [(p, *found[p]) for p in sorted(found) if home.get(p.split(".")[0], p.split(".")[0]) == key]
        parts.append(f"## {title}\n\n{table(rows)}")
    left = {p.split(".")[0] for p in found} - set(titles) - set(home)
    if left:
        raise SystemExit(f"no section for {', '.join(sorted(left))}")
    return HEAD + "\n".join(parts) + TAIL


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
