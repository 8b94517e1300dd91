"""A scene with a soft cube, edited and built."""

import copy

import numpy as np

from add.mocap import Recording, write_csv
from add.scene import scene_from_dict
from add.scene.build.scene import build

HALF = [2**-0.5, 0, 0, 2**-0.5]  # a quarter turn about z
SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 10},
    "bodies": {
        "block": {
            "type": "soft",
            "mesh": {"shape": "box", "size": [0.4, 0.2, 0.2], "divisions": [4, 2, 2]},
            "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.25, "density": 100},
            "position": [1.0, 2.0, 3.0],
            "orientation": HALF,
        },
        "cube": {
            "type": "soft",
            "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]},
            "element": "hex8",
            "scale": 2.0,
            "mass": "lumped",
            "mean_dilatation": True,
            "material": {"model": "neo-hookean-ciarlet", "mu": 1e4, "lambda": 2e4, "density": 50, "viscosity": 3},
        },
    },
    "obstacles": {
        "floor": {"shape": "plane", "point": [0, 0, -1], "normal": [0, 0, 5]},
        "ball": {"shape": "sphere", "center": [5, 0, 0], "radius": 0.5, "velocity": [0.1, 0, 0]},
    },
}
BLOCK, CUBE = "bodies.block", "bodies.cube"


def edited(*edits):
    raw = copy.deepcopy(SCENE)
    for path, value in edits:
        *parents, last = path.split(".")
        node = raw
        for key in parents:
            node = node[int(key)] if isinstance(node, list) else node.setdefault(key, {})
        node[last] = copy.deepcopy(value)
    return raw


def built(*edits, folder="."):
    return build(scene_from_dict(edited(*edits), folder=folder))


def value(scene, name):
    return scene.model.system.parameters.view(scene.theta, name)


TOP = {"top": {"body": "cube", "point": [0, 0, 0.1]}}
POINT = [{"type": "point", "marker": "top", "target": [0, 0, 0], "time": "end"}]
FIT = [("markers", TOP), ("objective", POINT), ("parameters", [{"path": "gravity"}])]


def record(folder, times, positions, names=("A", "B", "C", "D"), valid=None):
    positions = np.asarray(positions, dtype=float)
    valid = np.ones(positions.shape[:2], dtype=bool) if valid is None else valid
    write_csv(folder / "r.csv", Recording(tuple(names), np.asarray(times, float), positions, valid, ""))


MARKERS = {"a": {"body": "cube", "nodes": [0]}, "b": {"body": "cube", "nodes": [6]}}


def with_recording(folder, **options):
    recording = {"file": "r.csv", "markers": {"A": "a", "B": "b"}, **options}
    return scene_from_dict(
        edited(
            ("markers", MARKERS),
            ("recording", recording),
            ("objective", [{"type": "markers"}]),
            ("parameters", [{"path": "gravity"}]),
        ),
        folder=folder,
    )
