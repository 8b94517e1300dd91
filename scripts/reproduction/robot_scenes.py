"""Scenes of the experiments with robots (Werling et al. 2021): models from files, with contact by impulses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.reproduction.entry import ROOT, Skipped

#: Beside the repository; `ADD_DATA` does not have them.
MODELS = ROOT.parent / "shared" / "specs" / "articulated" / "reference" / "models"


def model(name: str) -> Path:
    """Return a robot's file.

    Raises
    ------
    Skipped
        If it is not there.
    """
    path = MODELS / name
    if not path.is_file():
        raise Skipped(f"needs robots' files that are not part of the repository (no {path})")
    return path


def robot_scene(
    name: str,
    values: Mapping[str, float],
    *,
    dt: float,
    steps: int,
    up: str = "z",
    floor: float = 0.0,
    friction: float = 1.0,
    torques: Sequence[str] = (),
    **body: Any,
) -> dict[str, Any]:
    """Return a scene of one robot over a floor.

    Parameters
    ----------
    name : str
        Of the file.
    values : joint -> where it starts
    up : str
        The axis that points up, as in the file.
    floor : float
        Height of the floor [m].
    torques : joints with an actuator, whose torque is zero
    """
    axis = [1.0 * (letter == up) for letter in "xyz"]
    tree = {
        "type": "articulated", "model": str(model(name)), "limits": "hard",
        "joints": {joint: {"value": value} for joint, value in values.items()},
        "drives": {joint: {"joint": joint, "input": 0.0} for joint in torques}, **body,
    }  # fmt: skip
    return {
        "schema": "add-scene/1",
        "time": {"dt": dt, "steps": steps, "integrator": "bdf1"},
        "gravity": [-9.81 * share for share in axis],
        "bodies": {"robot": tree},
        "obstacles": {"floor": {"shape": "plane", "point": [floor * share for share in axis], "normal": axis}},
        "contact": {"friction_law": "impulse", "friction": friction, "between_bodies": False},
    }
