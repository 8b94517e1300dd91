"""Make the synthetic recording of the foam ball scene.

A ball is thrown on a floor; six markers on its surface are recorded with 1 mm of noise.  Everything that
the fit could exploit is different from the scene that is fitted: the mesh is finer, the time step is two times
smaller, the clock of the recording is its own (120 Hz, not a multiple of either step), and some frames are missing.

    python scripts/make_foam_ball_recording.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from add.mocap import Recording, write_csv
from add.objectives import Tracking
from add.scene import apply_overrides, scene_from_dict

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "data" / "recordings" / "foam_ball.csv"

#: What was used, and what the fit has to find.
TRUTH = {
    "bodies.ball.material.young": 12000.0,
    "bodies.ball.material.viscosity": 6.0,
    "contact.friction": 0.25,
    "bodies.ball.velocity": [3.5, 0.5, -0.9],
}
#: k_t of the recording [N s/m^3]: that of its own step, half the one of the scene.
STICK_STIFFNESS = 1500.0
#: Flat faces cut off part of a ball: scaled up, the mesh has the volume, and so the mass, of the sphere of radius 0.05.
SCALE = 1.0123
NOISE = 1e-3
RATE = 120.0
SEED = 20200


def main() -> None:
    """Simulate, sample, add noise, drop frames, write."""
    raw = json.loads((ROOT / "scenes" / "foam_ball.json").read_text(encoding="utf-8"))
    # The recording does not exist yet, and nothing is fitted here.
    for key in ("recording", "objective", "parameters", "optimizer"):
        del raw[key]
    scene = scene_from_dict(raw, folder=ROOT / "scenes")
    fine = apply_overrides(
        scene,
        {
            **TRUTH,
            "bodies.ball.mesh": {"file": str(ROOT / "data" / "meshes" / "ball_fine.msh")},
            "bodies.ball.scale": SCALE,
            "time.dt": scene.time.dt / 2.0,
            "contact.stick_stiffness": STICK_STIFFNESS,
        },
    )
    built = fine.build()
    trajectory = built.run()
    times = np.arange(0.0, trajectory.t[-1], 1.0 / RATE)
    n = len(built.marker_names)
    sampler = Tracking(
        built.markers,
        built.simulation.stepper.dt,
        times,
        np.zeros((times.size, n, 3)),
        np.ones((times.size, n)),
        np.eye(3),
    )
    positions = np.empty((times.size, n, 3))
    for state in trajectory.states():
        for frame in sampler.frames(state, built.theta):
            positions[frame] = sampler.observed(state, frame, built.theta)
    rng = np.random.default_rng(SEED)
    positions += NOISE * rng.normal(size=positions.shape)
    # Markers are hidden now and then, in stretches, as they are in a laboratory.
    valid = np.ones((times.size, n), dtype=bool)
    for marker in range(n):
        first = rng.integers(0, times.size - 6)
        valid[first : first + 5, marker] = False
    recording = Recording(built.marker_names, times, np.round(positions, 6), valid, "synthetic")
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    write_csv(OUTPUT, recording)
    truth = {"parameters": TRUTH, "noise_m": NOISE, "rate_Hz": RATE, "seed": SEED, "mesh": "ball_fine.msh"}
    OUTPUT.with_suffix(".json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    print(f"{OUTPUT}: {times.size} frames, {n} markers, centre ends at {positions[-1].mean(axis=0)}")


if __name__ == "__main__":
    main()
