"""Ten cloths in the wind: density, stretch and bending of each from how it moves (Liang, Lin, Koltun 2019)."""

from __future__ import annotations

from typing import Any

import numpy as np

import add
from add.inverse import InverseProblem
from add.typing import FloatArray

#: As published: step and length [s], wind [m/s], gravity [m/s^2].
DT, STEPS, WIND, GRAVITY = 0.02, 50, 5.0, 9.8
#: Noise of a node [m]; cells along an edge; most evaluations a phase and the ends of the phases [s].
NOISE, CELLS, MOST, ENDS = 1e-3, 8, 12, (0.2, 0.5, 1.0)
#: Ranges: mass an area [kg/m^2]; stretch along warp, weft, shear [N/m]; its stiffening [N/m]; bending [N m].
RANGES = {
    "density": (0.12, 0.3),
    "warp": (20, 60),
    "weft": (20, 60),
    "shear": (15, 40),
    "stiffening": (20, 100),
    "bending": (1e-6, 4e-5),
}
PATHS = {"density": "density", "bending": "bending.rigidity"}
ENERGY = "(warp*(C11 - 1)**2 + weft*(C22 - 1)**2 + shear*C12**2)/8 + stiffening*((C11 - 1)**4 + (C22 - 1)**4)/64"


def scene(numbers: dict[str, float], dt: float, steps: int, diagonals: str) -> dict[str, Any]:
    """Return a square metre of cloth that hangs by two corners in the wind, with markers at 5 x 5 points."""
    corners = [{"min": [0.499, 0.499, None]}, {"min": [None, 0.499, None], "max": [-0.499, None, None]}]
    stretch = {name: numbers[name] for name in ("warp", "weft", "shear", "stiffening")}
    material = {
        "density": numbers["density"],
        "thickness": 1,
        "membrane": {"model": "formula", "energy": ENERGY, "numbers": stretch, "viscosity": 0.01},
        "bending": {"model": "plate", "rigidity": numbers["bending"], "poisson": 0.2, "damping": 1e-6},
    }
    mesh = {"shape": "rectangle", "size": [1, 1], "cells": [CELLS, CELLS], "diagonals": diagonals}
    points = [[x, y, 0] for x in np.linspace(-0.5, 0.5, 5) for y in np.linspace(-0.5, 0.5, 5)]
    return {
        "schema": "add-scene/1",
        "time": {"dt": dt, "steps": steps},
        "gravity": [0, 0, -GRAVITY],
        "bodies": {
            "cloth": {
                "type": "cloth", "mesh": mesh, "material": material, "position": [0, 0, 1],
                "orientation": [0.707106781186548, 0.707106781186548, 0, 0],
                "pins": [{"where": {"box": box}} for box in corners],
            }
        },
        "couplings": {"air": {"type": "air", "body": "cloth", "density": 1.2, "friction": 0.02, "wind": [0, WIND, 0]}},
        "markers": {f"m{k}": {"body": "cloth", "point": point} for k, point in enumerate(points)},
    }  # fmt: skip


def paths(raw: dict[str, Any], every: int) -> FloatArray:
    """Return the places of the markers every so many steps (k, m, 3) [m]."""
    built = add.scene_from_dict(raw).build()
    run = built.run()
    ks = range(every, run.n_steps + 1, every)
    return np.array([built.markers.points(run.kinematics(k), built.theta)[0] for k in ks])


def problem_of(seen: FloatArray, steps: int) -> InverseProblem:
    """Return the fit of recorded places, from the middle of all ranges."""
    start = {name: float(np.sqrt(low * high)) for name, (low, high) in RANGES.items()}
    raw = scene(start, DT, steps, "irregular")
    times = (DT * np.arange(1, steps + 1)).round(12).tolist()
    raw["objective"] = [
        {"type": "track", "marker": name, "times": times, "values": seen[:, k].tolist(), "weight": 1 / seen.shape[1]}
        for k, name in enumerate(raw["markers"])
    ]
    raw["parameters"] = [
        {"path": f"bodies.cloth.material.{PATHS.get(name, f'membrane.numbers.{name}')}", "transform": "log",
         "bounds": [low / 10, high * 10]} for name, (low, high) in RANGES.items()
    ]  # fmt: skip
    phases = [{"name": f"to {1e3 * end:.0f} ms", "end_time": end} for end in ENDS if end <= DT * steps]
    raw["optimizer"] = {"method": "gauss-newton", "max_evaluations": MOST, "phases": phases}
    return add.scene_from_dict(raw).inverse_problem()
