"""Make the synthetic recording of one depth camera for `scenes/fig9_depth_ball.json`.

The throw of the foam ball (`scripts/make_foam_ball_recording.py`: finer mesh, half the step), seen by one camera at
30 frames a second from the side: points of the surface that faces it, at random, with 1.5 mm of noise along the ray;
the floor, a hand that lets go, and stray points, each with its colour. As in Fig. 9 of the ADD paper nothing says
which point is which.

    python -m scripts.make_depth_recording
"""

import json
from pathlib import Path

import numpy as np

from add.equations.points import NodePoints
from add.geometry import surface
from add.objectives import Tracking
from add.scene import apply_overrides, scene_from_dict
from scripts.make_foam_ball_recording import SCALE, STICK_STIFFNESS, TRUTH

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "data" / "recordings" / "depth_ball.npz"
CAMERA = np.array([0.6, -1.6, 0.5])
RATE, NOISE, SEED = 30.0, 1.5e-3, 9
POINTS, FLOOR, HAND, STRAY = 220, 120, 40, 12
"""Points a frame of the ball, the floor, the hand, and of nothing."""
YELLOW, GREY, SKIN = np.array([0.85, 0.75, 0.15]), np.array([0.5, 0.5, 0.52]), np.array([0.8, 0.6, 0.5])


def main() -> None:
    raw = json.loads((ROOT / "scenes" / "foam_ball.json").read_text(encoding="utf-8"))
    for key in ("recording", "objective", "parameters", "optimizer", "uncertainty", "expect"):
        raw.pop(key)
    scene = scene_from_dict(raw, folder=ROOT / "scenes")
    fine = {"bodies.ball.mesh": {"file": str(ROOT / "data" / "meshes" / "ball_fine.msh")}, "bodies.ball.scale": SCALE}
    steps = {"time.dt": scene.time.dt / 2.0, "contact.stick_stiffness": STICK_STIFFNESS}
    built = apply_overrides(scene, {**TRUTH, **fine, **steps}).build()
    run = built.run()
    times = np.arange(0.0, run.t[-1], 1.0 / RATE)
    outline = surface(built.model.bodies[0].mesh)
    points = built.model.lifted(NodePoints(outline.nodes))
    shape = (times.size, outline.nodes.size)
    sampler = Tracking(points, built.simulation.stepper.dt, times, np.zeros((*shape, 3)), np.ones(shape), np.eye(3))
    triangles = np.searchsorted(outline.nodes, outline.triangles)
    rng = np.random.default_rng(SEED)
    frames: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for state in run.states():
        for frame in sampler.frames(state, built.theta):
            corners = sampler.observed(state, int(frame), built.theta)[triangles]
            frames[int(frame)] = seen(corners, float(times[frame]), rng)
    clouds = [frames[k][0] for k in range(times.size)]
    colours = [frames[k][1] for k in range(times.size)]
    np.savez_compressed(
        OUTPUT, times=times, points=np.round(np.concatenate(clouds), 5).astype(np.float32),
        frame=np.repeat(np.arange(times.size), [len(c) for c in clouds]).astype(np.int16),
        colours=np.round(255.0 * np.clip(np.concatenate(colours), 0.0, 1.0)).astype(np.uint8),
    )  # fmt: skip
    print(f"{OUTPUT}: {times.size} frames, {sum(map(len, clouds))} points, {OUTPUT.stat().st_size} bytes")


def seen(corners: np.ndarray, time: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the points of one frame and their colours: the ball, then what is not the ball."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])  # twice the area
    rays = corners.mean(axis=1) - CAMERA
    facing = -np.einsum("ij,ij->i", normals, rays / np.linalg.norm(rays, axis=1)[:, None])
    chances = np.maximum(facing, 0.0)
    chosen = rng.choice(len(corners), POINTS, p=chances / chances.sum())
    ball = np.einsum("mi,mik->mk", rng.dirichlet([1.0, 1.0, 1.0], POINTS), corners[chosen])
    floor = np.column_stack([rng.uniform([-0.3, -0.5], [1.6, 0.6], size=(FLOOR, 2)), np.zeros(FLOOR)])
    hand = np.array([-0.06, -0.02, 0.22]) + 0.02 * rng.normal(size=(HAND, 3)) - [0.4 * time, 0.0, 0.0]
    stray = rng.uniform([-0.3, -0.5, 0.0], [1.6, 0.6, 0.5], size=(STRAY, 3))
    points = np.concatenate([ball, floor, hand, stray])
    away = points - CAMERA
    points = points + NOISE * rng.normal(size=(len(points), 1)) * away / np.linalg.norm(away, axis=1)[:, None]
    tints = [np.tile(colour, (n, 1)) for colour, n in ((YELLOW, POINTS), (GREY, FLOOR), (SKIN, HAND))]
    tints.append(rng.uniform(0.0, 1.0, size=(STRAY, 3)))
    return points, np.concatenate(tints) + 0.04 * rng.normal(size=(len(points), 3))


if __name__ == "__main__":
    main()
