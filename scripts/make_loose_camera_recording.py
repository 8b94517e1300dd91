"""Make the synthetic recordings of two takes of a beam for `scenes/loose_camera.json`.

The beam with twice the elements in each direction and half the step, its markers at 100 Hz with 0.2 mm of noise, as a
capture system writes them whose frame is turned and shifted, another way in each take, whose lengths are 2 % short,
and whose clock runs before the release.

    python -m scripts.make_loose_camera_recording
"""

import json
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from add.mocap import Recording, write_csv
from add.objectives import Tracking
from add.scene import apply_overrides, scene_from_dict

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "data" / "recordings"
TRUTH = {"bodies.beam.material.young": 280000.0, "bodies.beam.material.viscosity": 450.0}
SCALE, RATE, NOISE, SEED = 1.02, 100.0, 2e-4, 14
#: Take -> mass at the end [kg], rotation vector [rad] and translation [m] of its recording, release on its clock [s].
TAKES = {
    "light": (0.005, (0.12, -0.08, 0.20), (0.013, -0.008, 0.005), 0.4137),
    "heavy": (0.03, (0.15, -0.02, 0.17), (0.004, 0.011, 0.009), 0.2561),
}


def main() -> None:
    raw = json.loads((ROOT / "scenes" / "loose_camera.json").read_text(encoding="utf-8"))
    for key in ("experiments", "objective", "parameters", "optimizer", "uncertainty", "expect"):
        raw.pop(key, None)
    scene = scene_from_dict(raw)
    fine = {"bodies.beam.mesh.divisions": [16, 4, 4], "time.dt": scene.time.dt / 2.0}
    rng = np.random.default_rng(SEED)
    for take, (mass, turn, move, release) in TAKES.items():
        built = apply_overrides(scene, {**TRUTH, **fine, "bodies.beam.point_masses.0.mass": mass}).build()
        times = np.arange(0.0, scene.time.end, 1.0 / RATE)
        shape = (times.size, len(built.marker_names))
        sampler = Tracking(
            built.markers, built.simulation.stepper.dt, times, np.zeros((*shape, 3)), np.ones(shape), np.eye(3)
        )
        places = np.zeros((*shape, 3))
        for state in built.run().states():
            for frame in sampler.frames(state, built.theta):
                places[frame] = sampler.observed(state, int(frame), built.theta)
        recorded = (places - move) @ Rotation.from_rotvec(turn).as_matrix() / SCALE
        # At rest before the release, as every take is.
        before = -np.arange(5, 0, -1) / RATE
        recorded = np.concatenate([np.repeat(recorded[:1], before.size, axis=0), recorded])
        recorded = np.round(recorded + NOISE * rng.normal(size=recorded.shape), 6)
        stamps = np.round(np.concatenate([before, times]) + release, 6)
        seen = np.ones(recorded.shape[:2], dtype=bool)
        file = FOLDER / f"loose_camera_{take}.csv"
        write_csv(file, Recording(tuple(built.marker_names), stamps, recorded, seen, take))
        print(file)


if __name__ == "__main__":
    main()
