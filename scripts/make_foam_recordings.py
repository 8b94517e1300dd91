"""Make the synthetic recordings of the foam sphere and the foam cube (ADD, Figs. 7 and 8).

The paper's motion capture was never published. These stand in for it: bodies of the size, mass and material that the
paper found are thrown at a floor and a wall, and markers on their surface are recorded with noise. Mesh (finer, and
hexahedra for the cube), time step (half) and rate differ from those of the scenes that are fitted, and frames are
missing.

    python scripts/make_foam_recordings.py
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from add.mocap import Recording, write_csv
from add.objectives import Tracking
from add.scene import Scene, apply_overrides, scene_from_dict
from add.scene.build.built import BuiltScene

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "data" / "recordings"
NOISE = 5e-4
RATE = 120.0
#: Time of the first frame [s]. At 0, the derivative by the clock would have a kink there.
FIRST = 0.002


@final
@dataclass(frozen=True)
class Take:
    """A recording to be made.

    Attributes
    ----------
    scene : name of the scene that is fitted to it
    truth : path into the scene -> value that the fit has to find
    discretisation : path -> value
        What else differs from the scene.
    seed : int
    """

    scene: str
    truth: dict[str, Any]
    discretisation: dict[str, Any]
    seed: int


TAKES = {
    "foam_sphere": Take(
        "fig7_foam_sphere",
        {
            "bodies.sphere.material.mu": 1.5e4,
            "bodies.sphere.material.lambda": 3.5e3,
            "bodies.sphere.material.viscosity": 398.0,
            "contact.friction": 0.47,
            "contact.pairs.0.friction": 0.6,
            "bodies.sphere.position": [0.0, 0.0, 0.4],
            "bodies.sphere.orientation": [0.98, 0.1, -0.1, 0.14],
            "bodies.sphere.velocity": [1.5, 0.3, 0.5],
            "bodies.sphere.angular_velocity": [5.0, -20.0, 3.0],
        },
        {"bodies.sphere.mesh": {"shape": "sphere", "radius": 0.0495, "edge": 0.0118}, "bodies.sphere.scale": 1.0},
        7,
    ),
    "foam_cube": Take(
        "fig8_foam_cube",
        {
            "bodies.cube.material.mu": 7.0e3,
            "bodies.cube.material.lambda": 1.1e3,
            "bodies.cube.material.viscosity": 46.0,
            "contact.friction": 1.16,
            "contact.pairs.0.friction": 0.9,
            "bodies.cube.position": [0.0, 0.0, 0.3],
            "bodies.cube.orientation": [0.9, 0.3, -0.25, 0.19364916731037085],
            "bodies.cube.velocity": [1.2, 0.2, 0.8],
            "bodies.cube.angular_velocity": [3.0, -6.0, 2.0],
        },
        {
            "bodies.cube.mesh": {"shape": "box", "size": [0.0678, 0.0678, 0.0678], "divisions": [8, 8, 8]},
            "bodies.cube.element": "hex8",
        },
        8,
    ),
}


def true_scene(take: Take) -> Scene:
    """Return the scene that is recorded."""
    raw = json.loads((ROOT / "scenes" / f"{take.scene}.json").read_text(encoding="utf-8"))
    for key in ("recording", "objective", "parameters", "optimizer", "check"):
        raw.pop(key, None)
    scene = scene_from_dict(raw, folder=ROOT / "scenes")
    return apply_overrides(scene, take.truth | take.discretisation | {"time.dt": scene.time.dt / 2.0})


def sampled(built: BuiltScene, times: np.ndarray) -> np.ndarray:
    """Return the markers' places (k, m, 3) at the times of the frames [m]."""
    run, n = built.run(), len(built.marker_names)
    empty = np.zeros((times.size, n, 3))
    sampler = Tracking(built.markers, built.simulation.stepper.dt, times, empty, np.ones((times.size, n)), np.eye(3))
    positions = np.empty_like(empty)
    for state in run.states():
        for frame in sampler.frames(state, built.theta):
            positions[frame] = sampler.observed(state, frame, built.theta)
    return positions


def record(name: str, take: Take) -> None:
    """Simulate, sample, add noise, drop frames, write."""
    scene = true_scene(take)
    built = scene.build()
    times = np.arange(FIRST, scene.time.end, 1.0 / RATE)
    positions = sampled(built, times)
    rng = np.random.default_rng(take.seed)
    positions += NOISE * rng.normal(size=positions.shape)
    valid = np.ones(positions.shape[:2], dtype=bool)
    for marker in range(valid.shape[1]):
        first = rng.integers(0, times.size - 12)
        valid[first : first + 10, marker] = False
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.csv"
    write_csv(path, Recording(built.marker_names, times, np.round(positions, 6), valid, "synthetic"))
    truth = {"parameters": take.truth, "noise_m": NOISE, "rate_Hz": RATE, "seed": take.seed}
    path.with_suffix(".json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    centre = np.round(positions[-1].mean(axis=0), 4).tolist()
    print(f"{path}: {times.size} frames, {valid.shape[1]} markers, their mean ends at {centre}")


def main() -> None:
    """Make both."""
    for name, take in TAKES.items():
        record(name, take)


if __name__ == "__main__":
    main()
