"""Make the synthetic recording of a tracked tag for `scenes/tagged_slide.json`.

The block with half the step at 60 Hz. The camera looks along the slide from behind: the error of a position is five
times as large along the line of sight as across it, and both grow with the square of the distance, as those of a tag
that becomes smaller do. Every fifth frame is lost, and a hand hides the tag for a moment.

    python -m scripts.make_tagged_slide_recording
"""

import json
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from add.scene import apply_overrides, scene_from_dict

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "data" / "recordings" / "tagged_slide.csv"
TRUTH = {
    "contact.friction": 0.25,
    "bodies.block.velocity": [1.3, 0.08, 0.0],
    "bodies.block.angular_velocity": [0.0, 0.0, 1.5],
}
CAMERA = np.array([-0.25, 0.05, 0.15])
RATE, SEED, HIDDEN = 60.0, 20, (0.30, 0.36)
ACROSS, ALONG, ANGLE = 5e-3, 2.5e-2, 5e-2
"""Standard deviations at a distance of 1 m, of positions across and along the line of sight [m] and of angles [rad]."""


def main() -> None:
    raw = json.loads((ROOT / "scenes" / "tagged_slide.json").read_text(encoding="utf-8"))
    for key in ("recording", "objective", "parameters", "optimizer", "uncertainty", "expect"):
        raw.pop(key, None)
    scene = scene_from_dict(raw)
    built = apply_overrides(scene, {**TRUTH, "time.dt": 0.5 / RATE / 8.0}).build()
    run = built.run()
    upper = np.triu_indices(6)
    names = [f"cov_{i + 1}{j + 1}" for i, j in zip(*upper, strict=True)]
    rng = np.random.default_rng(SEED)
    rows = [["time_s", "x_m", "y_m", "z_m", "qw", "qx", "qy", "qz", *names]]
    for frame, k in enumerate(range(0, run.n_steps + 1, 16)):
        state, time = run.kinematics(k), frame / RATE
        covariance = covariance_at(state.q[:3])
        error = np.linalg.cholesky(covariance) @ rng.normal(size=6)
        turn = (Rotation.from_rotvec(error[3:]) * Rotation.from_rotvec(state.q[3:6])).as_quat()[[3, 0, 1, 2]]
        if frame % 5 == 4 or HIDDEN[0] <= time <= HIDDEN[1]:
            rows.append([f"{time:.6f}", *[""] * 28])
            continue
        numbers = [*np.round(state.q[:3] + error[:3], 6), *np.round(turn, 7)]
        rows.append([f"{time:.6f}", *map(repr, map(float, numbers)), *(f"{x:.7g}" for x in covariance[upper])])
    OUTPUT.write_text("\n".join(",".join(row) for row in rows) + "\n", encoding="utf-8")
    print(f"{OUTPUT}: {len(rows) - 1} frames")


def covariance_at(place: np.ndarray) -> np.ndarray:
    """Return the covariance (6, 6) of a pose at a place."""
    sight = place - CAMERA
    distance = float(np.linalg.norm(sight))
    along = np.outer(sight, sight) / distance**2
    out = np.zeros((6, 6))
    out[:3, :3] = ACROSS**2 * np.eye(3) + (ALONG**2 - ACROSS**2) * along
    out[3:, 3:] = ANGLE**2 * np.eye(3)
    return distance**4 * out


if __name__ == "__main__":
    main()
