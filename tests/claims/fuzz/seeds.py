"""What is damaged: small scenes of all kinds, the files they read, and the folders that runs of them left."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
from support import places

from add.commands.cli import main
from add.geometry import TET4, box_mesh
from add.io.meshes import write_mesh

#: Scenes of the repository that are built in a moment and read no files.
SCENES = ("bands_cubes", "bouncing_throw", "strings_cube", "sheet_flip", "robot_rigid")

_MATERIAL = {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 150, "viscosity": 0.8}
_FLOOR = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}

SOFT: dict[str, Any] = {
    "schema": "add-scene/1",
    "name": "soft",
    "time": {"dt": 0.01, "duration": 0.2},
    "bodies": {
        "markers": {
            "type": "soft",
            "mesh": {"file": "box.msh"},
            "material": _MATERIAL,
            "position": [0, 0, 0.06],
            "orientation": [0.8, 0.6, 0, 0],
            "pins": [{"where": {"nodes": [0]}, "axes": "xz", "motion": {"signal": "shake"}}],
            "loads": [{"where": {"surface": True}, "force": [0, 0, 1], "name": "lift"}],
            "point_masses": [{"at": [0, 0, 0.01], "mass": 0.01}, {"where": {"nodes": [1, 2]}, "mass": 0.002}],
        },
        "block": {
            "type": "soft",
            "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]},
            "element": "hex8",
            "material": {"model": "neo-hookean-ciarlet", "mu": 1e4, "lambda": 2e4, "density": 1000},
            "position": [0.4, 0, 0.2],
            "velocity": [1, 0, 0],
        },
    },
    "signals": {"shake": {"type": "table", "times": [0, 0.1, 0.2], "values": [[0, 0, 0], [0.01, 0, 0], [0, 0, 0]]}},
    "obstacles": _FLOOR | {"bar": {"shape": "capsule", "center": [1, 0, 0], "radius": 0.05, "half_length": 0.5}},
    "contact": {"stiffness": 2e3, "friction_law": "tanh", "pairs": [{"body": "block", "obstacle": "bar"}]},
    "markers": {"top": {"body": "markers", "point": [0, 0, 0.01]}, "mean": {"body": "block", "nodes": [0, 1]}},
    "recording": {"file": "markers.csv", "markers": {"M1": "top", "M2": "mean"}, "crop": [0, 0.15]},
    "objective": [{"type": "markers"}],
    "parameters": [
        {"path": "bodies.block.material.mu", "transform": "log", "bounds": [1e3, 1e6]},
        {"path": "bodies.block.velocity", "components": [0, 2]},
    ],
    "optimizer": {"max_evaluations": 3, "phases": [{"name": "all", "end_time": 0.1}]},
}
RIGID: dict[str, Any] = {
    "schema": "add-scene/1",
    "name": "rigid",
    "time": {"dt": 0.005, "steps": 12, "integrator": "bdf1"},
    "bodies": {
        "box": {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "density": 400,
                "position": [0, 0, 0.049], "velocity": [1, 0, 0]},
        "ball": {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.05}, "mass": 0.2,
                 "position": [0.3, 0, 0.3]},
        "expect": {"type": "rigid", "geometry": {"file": "cube.stl"}, "mass": 0.4, "position": [0.7, 0, 0.2]},
        "hand": {"type": "kinematic", "geometry": {"shape": "capsule", "radius": 0.02, "half_length": 0.1},
                 "position": [0, 0.5, 0.3], "translation": {"signal": "wave"}},
        "net": {"type": "particles", "mesh": {"shape": "sheet", "size": [0.2, 0.2], "divisions": [2, 2]}, "mass": 0.1,
                "stiffness": 50, "damping": 0.1, "position": [0, -0.5, 0.3], "pins": [{"where": {"nodes": [0, 2]}}]},
    },
    "signals": {"wave": {"type": "sine", "amplitude": [0, 0, 0.01], "frequency": 2}},
    "obstacles": _FLOOR,
    "couplings": {
        "rope": {"type": "cable", "a": {"body": "ball", "at": [0, 0, 0.05]}, "b": {"at": [0.3, 0, 0.6]},
                 "stiffness": 100},
        "pin": {"type": "hinge", "a": {"body": "expect"}, "b": {"at": [0.7, 0, 0.3]}, "axis": [0, 1, 0],
                "stiffness": 1e4, "angular_stiffness": 10},
    },
    "contact": {"stiffness": 1e4, "friction_law": "hybrid", "between_bodies": True},
    "markers": {"corner": {"body": "box", "point": [0.05, 0.05, 0.05]}},
    "objective": [{"type": "point", "marker": "corner", "target": [0.2, 0, 0.1], "time": "end"}],
    "parameters": [{"path": "bodies.box.velocity", "components": [0], "bounds": [-2, 2]}],
    "optimizer": {"method": "gauss-newton", "max_evaluations": 3},
    "experiments": [{"name": "slow"}, {"name": "fast", "overrides": {"bodies.ball.velocity": [2, 0, 0]}}],
    "expect": {"simulate": {"steps": {"min": 12, "max": 12}}},
}  # fmt: skip
SMALL: dict[str, Any] = {
    key: copy.deepcopy(RIGID[key]) for key in ("schema", "time", "obstacles", "markers", "objective", "parameters")
} | {
    "bodies": {"box": RIGID["bodies"]["box"]},
    "contact": {"stiffness": 1e4, "friction_law": "tanh"},
    "optimizer": {"max_evaluations": 2},
}


def write_files(folder: Path) -> None:
    """Write the files that the scenes name."""
    write_mesh(folder / "box.msh", box_mesh((0.1, 0.1, 0.1), (1, 1, 1), TET4))
    import trimesh

    for suffix in ("stl", "obj", "ply", "off"):
        trimesh.creation.box((0.1, 0.1, 0.1)).export(folder / f"cube.{suffix}")
    t = np.linspace(0.0, 0.2, 11)
    rows = [f"{x:.3f},{0.01 * x:.5f},0,0.06,0.4,{x:.4f},0.2" for x in t]
    head = ",".join(["time_s", *(f"{m}_{axis}_m" for m in ("M1", "M2") for axis in "xyz")])
    (folder / "markers.csv").write_text("\n".join([head, *rows, ""]))
    pose = [f"{x:.3f},{x:.4f},0,0.05,1,0,0,0" for x in t]
    (folder / "pose.csv").write_text("\n".join(["time_s,x_m,y_m,z_m,qw,qx,qy,qz", *pose, ""]))
    angle = [f"{x:.3f},{x:.4f}" for x in t]
    (folder / "angle.csv").write_text("\n".join(["time_s,knee_rad", *angle, ""]))


def scenes() -> dict[str, Any]:
    """Return all scenes by name."""
    found = {"soft": SOFT, "rigid": RIGID, "small": SMALL}
    return found | {name: json.loads((places.SCENES / f"{name}.json").read_text()) for name in SCENES}


def write_runs(folder: Path) -> None:
    """Leave a run of each command, and a sweep that was cut."""
    path = folder / "small.json"
    path.write_text(json.dumps(SMALL))
    axis = ["--parameter", "bodies.box.velocity.0=-1:1:3", "--jobs", "1"]
    for command, more in (("simulate", []), ("optimize", []), ("sweep", axis)):
        try:
            main([command, str(path), "-o", str(folder / command), "-q", *more])
        except SystemExit as end:
            assert not end.code, command
    cut = folder / "sweep_cut"
    cut.mkdir()
    for name in ("scene.json", "versions.json", "grid.json"):
        (cut / name).write_bytes((folder / "sweep" / name).read_bytes())
    lines = (folder / "sweep" / "samples.jsonl").read_bytes().splitlines(keepends=True)
    (cut / "samples.jsonl").write_bytes(b"".join(lines[:2]))
