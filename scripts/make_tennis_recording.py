"""Make the synthetic recording of the tennis ball for `scenes/tennis_ball.json`, and say what world it is made in.

A ball of the size and the mass of a tennis ball falls on a table with backspin; six markers on it are recorded at
240 Hz with 0.5 mm of noise. The mesh is another one than that of the scene, with three times as many elements, and the
step is half of it. `scripts/reproduction/tennis_chain.py` plays its throws in the same world.

    python -m scripts.make_tennis_recording
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from add.geometry.mass_properties import mass_pairs
from add.mocap import Recording, write_csv
from add.scene import Scene, apply_overrides, scene_from_dict
from scripts.make_foam_recordings import sampled

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "data" / "recordings" / "tennis_ball.csv"
#: The ball and the table, which a laboratory does not know.
MATERIAL = {
    "bodies.ball.material.young": 4.0e5,
    "bodies.ball.material.viscosity": 400.0,
    "contact.friction": 0.25,
}
#: How the recorded ball was thrown.
THROW = {"bodies.ball.velocity": [3.6, 0.15, -1.6], "bodies.ball.angular_velocity": [4.0, -42.0, 6.0]}
NOISE, RATE, SEED = 5e-4, 240.0, 33
#: Time of the first frame [s]. At 0, the derivative by a clock would have a kink.
FIRST = 0.002
RADIUS, EDGE = 0.033, 0.012


def in_the_world(scene: Scene) -> Scene:
    """Return a scene of the ball with the true numbers, on the mesh and with the step of the recording.

    Its mesh is scaled up, so that it has the volume, and so the mass, of the sphere.
    """
    mesh = {"shape": "sphere", "radius": RADIUS, "edge": EDGE}
    world = apply_overrides(scene, {**MATERIAL, "bodies.ball.mesh": mesh, "bodies.ball.scale": 1.0})
    volume = mass_pairs(world.build().model.bodies[0].mesh, lumped=False).values.sum()
    scale = float((4.0 / 3.0 * np.pi * RADIUS**3 / volume) ** (1.0 / 3.0))
    return apply_overrides(world, {"bodies.ball.scale": scale, "time.dt": scene.time.dt / 2.0})


def main() -> None:
    """Simulate, sample, add noise, drop frames, write."""
    raw: dict[str, Any] = json.loads((ROOT / "scenes" / "tennis_ball.json").read_text(encoding="utf-8"))
    for key in ("recording", "objective", "parameters", "optimizer", "uncertainty", "check", "expect"):
        raw.pop(key, None)
    scene = apply_overrides(scene_from_dict(raw, folder=ROOT / "scenes"), THROW)
    built = in_the_world(scene).build()
    times = np.arange(FIRST, scene.time.end, 1.0 / RATE)
    rng = np.random.default_rng(SEED)
    positions = sampled(built, times)
    positions += NOISE * rng.normal(size=positions.shape)
    valid = np.ones(positions.shape[:2], dtype=bool)
    for marker in range(valid.shape[1]):
        first = rng.integers(0, times.size - 8)
        valid[first : first + 7, marker] = False
    write_csv(OUTPUT, Recording(built.marker_names, times, np.round(positions, 6), valid, "synthetic"))
    truth = {"parameters": MATERIAL | THROW, "noise_m": NOISE, "rate_Hz": RATE, "seed": SEED}
    OUTPUT.with_suffix(".json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    elements = built.model.bodies[0].mesh.n_elements
    print(f"{OUTPUT}: {times.size} frames, {valid.shape[1]} markers, from {elements} elements")


if __name__ == "__main__":
    main()
