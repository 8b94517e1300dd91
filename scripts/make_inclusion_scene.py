"""Make `scenes/stiff_inclusion.json`: a soft block with a stiff ball inside, and what 60 points on it show of that.

The block is pressed and pushed in five ways; the places of 60 points on its top and sides are known with 0.01 mm of
noise. They are made on the mesh of the scene, with the moduli that the scene asks for.

    python -m scripts.make_inclusion_scene
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from add.scene import scene_from_dict

OUTPUT = Path(__file__).resolve().parents[1] / "scenes" / "stiff_inclusion.json"
SIZE, DIVISIONS = (0.1, 0.1, 0.05), (10, 10, 5)
#: The ball: its middle, radius, and modulus; that of the block around it.
CENTRE, RADIUS, STIFF, SOFT = np.array([0.015, -0.01, 0.005]), 0.02, 1e5, 2e4
NOISE, SEED = 1e-5, 0
STEP, FORCE = 0.5, 25.0


def points() -> np.ndarray:
    """Return a grid of 36 points on the top and six on each side."""
    ticks = np.linspace(-0.04, 0.04, 6)
    top = [(x, y, 0.025) for x in ticks for y in ticks]
    sides = [row for a in ticks for row in ((a, -0.05, 0.0), (a, 0.05, 0.0), (-0.05, a, 0.0), (0.05, a, 0.0))]
    return np.array(top + sides)


def scene() -> dict[str, Any]:
    """Return the scene without its objective."""
    nothing = [0.0, 0.0, 0.0]
    parts = {"all": {"min": [None, None, 0.0249]}, "right": {"min": [0.0, None, 0.0249]},
             "back": {"min": [None, 0.0, 0.0249]}}  # fmt: skip
    forces = {
        "all": [[0.0, 0.0, -FORCE], [FORCE / 2, 0.0, 0.0], [0.0, FORCE / 2, 0.0], nothing, nothing],
        "right": [nothing, nothing, nothing, [0.0, 0.0, -0.6 * FORCE], nothing],
        "back": [nothing, nothing, nothing, nothing, [0.0, 0.0, -0.6 * FORCE]],
    }
    signal = {"type": "control", "basis": "constant", "rows": 5, "end": 10 * STEP}
    material = {"model": "neo-hookean", "young": {"each": SOFT}, "poisson": 0.3, "density": 1000.0}
    return {
        "$schema": "../docs/add-scene-1.schema.json",
        "schema": "add-scene/1",
        "name": "A stiff ball in a soft block, found from outside",
        "description": "A soft block is pressed and pushed in five ways; the places of 60 points on its top and sides "
        "are known with 0.01 mm of noise. Young's modulus of each of its 3000 elements is found: the total variation "
        "beside the points tells the fields apart that show the same. There is a ball of five times the stiffness "
        "inside, of 4 cm diameter: it comes out 2.4 mm off its place, with 4.8 times the stiffness "
        "(`python -m scripts.make_inclusion_scene` makes the places).",
        "gravity": nothing,
        "time": {"dt": STEP, "duration": 10 * STEP, "integrator": "bdf1"},
        "signals": {f"on_{part}": signal | {"values": rows} for part, rows in forces.items()},
        "bodies": {
            "block": {
                "type": "soft",
                "mesh": {"shape": "box", "size": list(SIZE), "divisions": list(DIVISIONS)},
                "material": material,
                "pins": [{"where": {"box": {"max": [None, None, -0.0249]}}}],
                "loads": [{"where": {"box": box}, "force": {"signal": f"on_{part}"}} for part, box in parts.items()],
            }
        },
        "markers": {f"m{i}": {"body": "block", "point": row.round(6).tolist()} for i, row in enumerate(points())},
    }


def main() -> None:
    raw = scene()
    mesh = scene_from_dict(raw).build().model.body("block").mesh
    middles = mesh.points[mesh.cells].mean(axis=1)
    inside = np.linalg.norm(middles - CENTRE, axis=1) < RADIUS
    true = json.loads(json.dumps(raw))
    true["bodies"]["block"]["material"]["young"] = np.where(inside, STIFF, SOFT).tolist()
    built = scene_from_dict(true).build()
    run = built.run()
    seen = np.array([built.markers.gather(run.q[k]).reshape(-1, 3) for k in (2, 4, 6, 8, 10)])
    seen += NOISE * np.random.default_rng(SEED).normal(size=seen.shape)
    n = seen.shape[1]
    times, weight = [2 * k * STEP for k in range(1, 6)], float(f"{1.0 / (n * NOISE**2):.6g}")
    raw["objective"] = [
        {"type": "track", "marker": f"m{i}", "times": times, "values": seen[:, i].round(7).tolist(), "weight": weight}
        for i in range(n)
    ]
    raw["objective"].append({"type": "roughness", "field": "bodies.block.material.young", "norm": "variation"})
    raw["parameters"] = [{"path": "bodies.block.material.young", "transform": "log", "bounds": [2e3, 1e6]}]
    raw["optimizer"] = {"method": "l-bfgs-b", "history": 30, "max_evaluations": 250, "objective_tolerance": 1e-7}
    start = {"value": [-0.040108, -0.038309, 0.025241], "abs_tol": 1e-5}
    raw["expect"] = {"simulate": {"markers.m0.final": start}, "optimize": {"objective.end": {"max": 5.0}}}
    OUTPUT.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
