"""Scenes, laws, pictures: what several entries need."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.image import imread

from add.errors import InputError
from add.scene import Scene, apply_overrides, load_scene
from add.scene.build.built import BuiltScene
from add.scene.build.run_data import run_data
from add.simulation.run import Trajectory
from scripts.reproduction.entry import SCENES, Skipped

#: The friction laws of the paper, in its order.
LAWS = ("linear", "tanh", "hybrid")
COLOURS = {"linear": "C0", "tanh": "C1", "hybrid": "C2"}


def scene(name: str, changes: Mapping[str, Any] | None = None) -> Scene:
    """Return a scene of the repository with some of its values replaced."""
    return apply_overrides(load_scene(SCENES / f"{name}.json"), changes or {})


def with_law(base: Scene, law: str) -> Scene | None:
    """Return the scene with another friction law, None where this version of `add` does not have the law."""
    try:
        return apply_overrides(base, {"contact.friction_law": law})
    except InputError:
        return None


def missing_law(law: str) -> str:
    """Return the note for a law that the scene format rejects."""
    return f"Friction law '{law}' is not in the scene format of this version: left out."


def iterations(run: Trajectory, n_steps: int | None = None) -> float:
    """Return Newton's mean number of iterations a step."""
    return float(np.mean([record.report.iterations for record in run.records[:n_steps]]))


def fallbacks(run: Trajectory) -> int:
    """Return the number of steps that needed more than Newton's normal path."""
    return sum(record.report.attempt > 0 for record in run.records)


def centre_path(built: BuiltScene, run: Trajectory, marker: int = 0) -> np.ndarray:
    """Return a marker's places (k + 1, 3) over a run [m]."""
    return np.array([built.markers.points(run.kinematics(k), built.theta)[0][marker] for k in range(run.n_steps + 1)])


def touching(built: BuiltScene, run: Trajectory) -> np.ndarray:
    """Return how many contact points touch after each step (k,)."""
    counts = np.zeros(run.n_steps, dtype=int)
    for k, record in enumerate(run.records):
        for term, decision in zip(built.model.system.deciding, record.decisions, strict=True):
            counts[k] += term.describe(decision).get("touching", 0)
    return counts


def bounces(built: BuiltScene, run: Trajectory) -> int:
    """Return how often a run lands: steps after which something touches and nothing did before."""
    touch = touching(built, run) > 0
    return int((touch[1:] & ~touch[:-1]).sum()) + int(touch[0])


def picture(built: BuiltScene, run: Trajectory, theta: np.ndarray, time: float, size: tuple[int, int]) -> np.ndarray:
    """Return a rendered moment as pixels (h, w, 3)."""
    from add.view import screenshot

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "moment.png"
        screenshot(run_data(built, run, theta), path, time, size=size)
        return np.asarray(imread(path))[..., :3]


def data_folder() -> Path:
    """Return the folder of public meshes and recordings: `ADD_DATA`, or shared/data beside the repository.

    Raises
    ------
    Skipped
        If there is none.
    """
    import os

    beside = SCENES.parent.parent / "shared" / "data"
    folder = Path(os.environ.get("ADD_DATA") or beside)
    if not folder.is_dir():
        raise Skipped(f"needs public meshes that are not part of the repository: set ADD_DATA (no folder {folder})")
    os.environ.setdefault("ADD_DATA", str(folder))
    return folder
