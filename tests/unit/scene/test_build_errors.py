"""Errors of scenes that do not build name the file and the place."""

import json

import numpy as np
import pytest
from support.cube_scene import (
    BLOCK,
    FIT,
    MARKERS,
    POINT,
    TOP,
    built,
    edited,
    record,
)

from add.commands.optimize import check_optimization
from add.errors import InputError
from add.scene import load_scene

RECORDING = [
    ("markers", MARKERS),
    ("objective", [{"type": "markers"}]),
    ("parameters", [{"path": "gravity"}]),
    ("recording", {"file": "r.csv", "markers": {"A": "a", "B": "b"}}),
]
# edits, file of the error (None: the scene), its place, a word
ERRORS = {
    "impossible inertia of a link": (
        [
            (
                "bodies.bot",
                {
                    "type": "articulated",
                    "links": {"a": {"mass": 1.0, "inertia": [1, 1, 9, 0, 0, 0]}},
                    "joints": {"a": {}},
                },
            )
        ],
        None,
        "bodies.bot.links.a.inertia",
        "expected the largest <= 2",
    ),
    "pin nowhere": (
        [(f"{BLOCK}.pins", [{"where": {"all": True}}, {"where": {"box": {"min": [9, None, None]}}}])],
        None,
        f"{BLOCK}.pins.1.where",
        "holds no node",
    ),
    "cavity of cloth": (
        [
            ("bodies.flag", {"type": "cloth", "mesh": {"shape": "rectangle", "size": [1, 1], "cells": [1, 1]}}),
            (
                "bodies.flag.material",
                {"density": 1, "thickness": 1, "membrane": {"model": "stvk", "young": 1, "poisson": 0}},
            ),
            ("bodies.flag.chambers", {"air": {"type": "pressure", "pressure": 1, "cavity": 0}}),
        ],
        None,
        "bodies.flag.chambers.air.cavity",
        "no hollows to number",
    ),
    "no squares": (
        [
            *FIT,
            ("objective", [{"type": "nearest", "marker": "top", "target": [0, 0, 0]}]),
            ("optimizer", {"method": "gauss-newton"}),
        ],
        None,
        "objective",
        "needs sums of squares",
    ),
    "no such node": (
        [(f"{BLOCK}.loads", [{"where": {"nodes": [45]}, "force": [0, 0, 1]}])],
        None,
        f"{BLOCK}.loads.0.where.nodes",
        "0..44",
    ),
    "pinned twice": (
        [
            (
                f"{BLOCK}.pins",
                [{"where": {"nodes": [1]}, "axes": "xy"}, {"where": {"all": True}, "axes": "y", "motion": [0, 1, 0]}],
            )
        ],
        None,
        f"{BLOCK}.pins.1",
        "node 1 is already held along y",
    ),
    "moved, then held": (
        [
            (
                f"{BLOCK}.pins",
                [{"where": {"nodes": [1]}, "motion": [0, 1, 0]}, {"where": {"all": True}, "axes": "yz"}],
            )
        ],
        None,
        f"{BLOCK}.pins.1",
        "node 1 is already moved along y",
    ),
    "sheet moved twice": (
        [
            (
                "bodies.flag",
                {
                    "type": "mass-spring",
                    "mesh": {"shape": "sheet", "size": [1, 1], "divisions": [1, 1]},
                    "mass": 1,
                    "pins": [
                        {"where": {"nodes": [2]}, "motion": [0, 1, 0]},
                        {"where": {"all": True}, "motion": [1, 0, 0]},
                    ],
                },
            )
        ],
        None,
        "bodies.flag.pins.1",
        "node 2 is already held along x",
    ),
    "mass outside": (
        [(f"{BLOCK}.point_masses", [{"at": [1, 0, 0], "mass": 1}])],
        None,
        f"{BLOCK}.point_masses.0.at",
        "outside the body",
    ),
    "mass nowhere": (
        [(f"{BLOCK}.point_masses", [{"where": {"sphere": {"center": [0, 5, 0], "radius": 1}}, "mass": 1}])],
        None,
        f"{BLOCK}.point_masses.0.where",
        "holds no node",
    ),
    "marker outside": (
        [("markers", {"top": {"body": "block", "point": [0, 0, 0.15]}})],
        None,
        "markers.top.point",
        "0.05 m away",
    ),
    "marker nodes": (
        [("markers", {"top": {"body": "cube", "nodes": [3, 8]}})],
        None,
        "markers.top.nodes",
        "no such node",
    ),
    "marker inside": (
        [("markers", {"top": {"body": "block", "surface": {"sphere": {"center": [0, 0, 0], "radius": 0.01}}}})],
        None,
        "markers.top.surface",
        "no surface node",
    ),
    "mesh file": ([(f"{BLOCK}.mesh", {"file": "bad.msh"})], "bad.msh", f"{BLOCK}.mesh.file", "cannot be read"),
    "element of the file": (
        [(f"{BLOCK}.mesh", {"file": "tet.vtk"}), (f"{BLOCK}.element", "hex8")],
        "tet.vtk",
        f"{BLOCK}.mesh.file",
        "hex8",
    ),
    "nothing to minimise": ([("parameters", [{"path": "gravity"}])], None, "objective", "nothing to minimise"),
    "nothing to change": ([("objective", POINT), ("markers", TOP)], None, "parameters", "nothing to change"),
    "not differentiated": (
        [*FIT, ("contact.onset", 1e-3), ("parameters", [{"path": "contact.onset"}])],
        None,
        "parameters.0.path",
        "cannot be a parameter",
    ),
    "obstacle": (
        [*FIT, ("parameters", [{"path": "obstacles.ball.radius"}])],
        None,
        "parameters.0.path",
        "cannot be a parameter",
    ),
    "window between steps": (
        [*FIT, ("objective", [{k: v for k, v in POINT[0].items() if k != "time"} | {"window": [0.011, 0.019]}])],
        None,
        "objective.0.window",
        "no step ends",
    ),
    "pose of another mesh": (
        [*FIT, ("objective", [{"type": "pose", "body": "cube", "positions_file": "pose.csv", "time": "end"}])],
        "pose.csv",
        "objective.0.positions_file",
        "(2, 3)",
    ),
    "pose that is text": (
        [*FIT, ("objective", [{"type": "pose", "body": "cube", "positions_file": "bad.msh", "time": "end"}])],
        "bad.msh",
        "objective.0.positions_file",
        "not a table of numbers",
    ),
    "no recording": ([*RECORDING[:3]], None, "", "recording"),
    "phase sees nothing": (
        [*FIT, ("optimizer", {"phases": [{"name": "early", "end_time": 0.05}]})],
        None,
        "optimizer.phases",
        "lies in the window",
    ),
    "recording of others": (
        [*RECORDING, ("recording.markers", {"A": "a", "Z": "b"})],
        "r.csv",
        "recording",
        "Z",
    ),
    "recording before": (
        [*RECORDING, ("recording.time_offset", 50.0)],
        "r.csv",
        "recording.time_offset",
        "frames from -50 to -49.9 s on the clock of the simulation, with a time_offset of 50 s; expected one within "
        "[0, 0.1] s",
    ),
    "recording not in its window": (
        [*RECORDING, ("recording.crop", [0.01, 0.02])],
        "r.csv",
        "recording.crop",
        "no frame lies in this window",
    ),
    "no recording there": (
        [*RECORDING, ("recording.file", "bad.msh")],
        "bad.msh",
        "recording",
        "",
    ),
    "surface": (
        [("bodies.stone", {"type": "rigid", "mass": 1, "geometry": {"file": "bad.stl"}})],
        "bad.stl",
        "bodies.stone.geometry.file",
        "",
    ),
    "register others": (
        [*RECORDING, ("recording.register", {"markers": {"A": [0, 0, 0], "B": [1, 0, 0], "Z": [0, 1, 0]}})],
        "r.csv",
        "recording",
        "Z",
    ),
    "all masked": (
        [*RECORDING, ("recording.mask", [{"marker": m, "from": 0, "to": 1} for m in "AB"])],
        "r.csv",
        "recording",
        "no marker is seen",
    ),
    "displacement of a missing marker": (
        [*RECORDING, ("recording.displacement", True), ("recording.file", "hole.csv")],
        None,
        "recording",
        "no b",
    ),
}
VTK = """# vtk DataFile Version 3.0
tet
ASCII
DATASET UNSTRUCTURED_GRID
POINTS 4 double
0 0 0 1 0 0 0 1 0 0 0 1
CELLS 1 5
4 0 1 2 3
CELL_TYPES 1
10
"""


@pytest.fixture
def files(tmp_path):
    times = np.array([0.0, 0.05, 0.1])
    valid = np.ones((3, 4), dtype=bool)
    valid[0, 1] = False
    record(tmp_path, times, np.where(valid[:, :, None], 0.1, np.nan) * np.ones((3, 4, 3)), valid=valid)
    (tmp_path / "r.csv").rename(tmp_path / "hole.csv")
    record(tmp_path, times, np.random.default_rng(0).normal(size=(3, 4, 3)))
    (tmp_path / "bad.msh").write_text("this is no mesh")
    (tmp_path / "bad.stl").write_text("this is no surface")
    (tmp_path / "tet.vtk").write_text(VTK)
    (tmp_path / "pose.csv").write_text("1,2,3\n4,5,6\n")
    return tmp_path


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_file_and_place(files, case):
    edits, file, place, word = ERRORS[case]
    path = files / "scene.json"
    path.write_text(json.dumps(edited(*edits)))
    with pytest.raises(InputError) as caught:
        scene = load_scene(path)
        if {"objective", "parameters"} & {name for name, _ in edits}:
            check_optimization(scene)
        else:
            scene.build()
    error = caught.value
    assert str(error.file) == str(path), "the scene, whatever file it names"
    assert file is None or str(files / file) in error.message
    assert str(error.place or "").startswith(place)
    text = str(error)
    assert word in text and str(error.file) in text and place in text
    assert "\n" not in text


def test_errors_of_scenes_without_a_file():
    with pytest.raises(InputError, match=r"^bodies\.block\.pins\.0\.where: the selection holds no node"):
        built((f"{BLOCK}.pins", [{"where": {"box": {"min": [9, None, None]}}}]))
