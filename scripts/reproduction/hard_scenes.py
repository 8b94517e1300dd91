"""Scenes of the experiments with hard contact (Le Lidec et al. 2021): cubes of 0.1 m on a floor."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

import add
from add.typing import FloatArray

#: The published friction; mass and speed are our choice [kg], [m/s].
FRICTION, MASS, SPEED, GRAVITY = 0.2, 0.5, 2.0, 9.81

#: Noise of a recorded position [m], and seconds between two samples.
NOISE, SAMPLE = 1e-3, 0.01


def cube(x: float = 0.0, speed: float = 0.0, mass: float = MASS) -> dict[str, Any]:
    """Return a solid cube on the floor that moves along x."""
    geometry = {"shape": "box", "size": [0.1, 0.1, 0.1]}
    return {
        "type": "rigid", "geometry": geometry, "mass": mass, "position": [x, 0, 0.05], "velocity": [speed, 0, 0]
    }  # fmt: skip


def floor_scene(bodies: Mapping[str, Any], steps: int, dt: float = 0.005, **contact: Any) -> dict[str, Any]:
    """Return a scene of bodies on a floor with contact by impulses."""
    return {
        "schema": "add-scene/1",
        "time": {"dt": dt, "steps": steps, "integrator": "bdf1"},
        "gravity": [0, 0, -GRAVITY],
        "bodies": dict(bodies),
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"friction_law": "impulse", "friction": FRICTION} | contact,
        "markers": {name: {"body": name, "center_of_mass": True} for name in bodies},
    }


def tracked(raw: Mapping[str, Any], paths: Mapping[str, FloatArray], sample: float = SAMPLE) -> dict[str, Any]:
    """Return a scene that asks for recorded paths (k, 3) of bodies, the first sample one interval after t = 0."""
    out = copy.deepcopy(dict(raw))
    out["objective"] = [
        {"type": "track", "marker": name, "times": (sample * (1 + np.arange(len(path)))).round(12).tolist(),
         "values": path.tolist(), "axes": "x"} for name, path in paths.items()
    ]  # fmt: skip
    return out


def fit(raw: Mapping[str, Any], starts: Mapping[str, float], components: Mapping[str, int] | None = None) -> FloatArray:
    """Return what Gauss-Newton finds for numbers of a scene, from ``starts``: path -> value."""
    out = copy.deepcopy(dict(raw))
    out["parameters"] = [
        {"path": path, "start": start, "scale": 1.0, "bounds": [1e-3, None] if path != "bodies.a.velocity" else None}
        | ({"components": [components[path]]} if components and path in components else {})
        for path, start in starts.items()
    ]
    for item in out["parameters"]:
        if item["bounds"] is None:
            del item["bounds"]
    out["optimizer"] = {
        "method": "gauss-newton", "max_evaluations": 15, "objective_tolerance": 1e-13, "gradient_tolerance": 1e-14
    }  # fmt: skip
    scene = add.scene_from_dict(out)
    return np.asarray(scene.build_optimizer().run(scene.inverse_problem()).x)
