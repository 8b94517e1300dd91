"""Coverage of the error bars of point clouds: the share of 95 % intervals that hold the truth, and their widths.

A soft ball flies, pulled apart by a load, in front of a camera that sees one side of it: 12 frames of 120 points. Its
velocity and its modulus are fitted. The errors of the points are independent, or hang together: a smooth field over the
ball with a length of 2 cm, which from frame to frame keeps 0.7 of itself, as the errors of depth cameras do.

    python -m scripts.cloud_coverage -n 20
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from add.commands.error_bars import error_bars
from add.io.runfolder import RunFolder
from add.objectives.beyond_markers import CloudTracking
from add.scene import Scene, scene_from_dict
from add.typing import FloatArray

FRAMES, POINTS, STEP = 12, 120, 0.01
#: Standard deviation of an error [m]; share and length of the part that hangs together, what a frame keeps of it.
NOISE, SHARE, LENGTH, KEPT = 5e-4, 0.8, 0.02, 0.7
BALL: dict[str, Any] = {
    "schema": "add-scene/1",
    "time": {"dt": STEP, "steps": FRAMES + 1, "newton": {"atol": 1e-10}},
    "bodies": {
        "ball": {
            "type": "soft",
            "mesh": {"shape": "sphere", "radius": 0.05, "edge": 0.03},
            "material": {"young": 3e3, "poisson": 0.3, "density": 200, "viscosity": 1.0},
            "velocity": [0.5, 0.2, 0.0],
            "loads": [{"where": {"box": {"min": [0.02, None, None]}}, "force": [0.3, 0, 0]}],
        }
    },
    "objective": [{"type": "cloud", "body": "ball", "file": "cloud.npz"}],
    "parameters": [
        {"path": "bodies.ball.velocity"},
        {"path": "bodies.ball.material.young", "transform": "log"},
    ],
    "optimizer": {"method": "gauss-newton", "max_evaluations": 25, "objective_tolerance": 1e-9},
}


def with_cloud(frames: list[FloatArray], folder: Path) -> Scene:
    """Return the scene that is fitted to clouds."""
    number = np.repeat(np.arange(len(frames)), [len(points) for points in frames])
    times = STEP * np.arange(1, len(frames) + 1)
    np.savez(folder / "cloud.npz", times=times, points=np.concatenate(frames), frame=number)
    return scene_from_dict(BALL, folder=folder)


def seen(scene: Scene, rng: np.random.Generator) -> tuple[list[FloatArray], list[FloatArray], list[FloatArray]]:
    """Return points (n, 3) of each frame on the side towards +y, their normals, and their places on the ball at rest.

    The run is that of the scene's own numbers.
    """
    problem = scene.inverse_problem()
    (experiment,) = problem.experiments
    cloud = experiment.objective.objectives[0]
    assert isinstance(cloud, CloudTracking)
    theta = problem.theta(problem.x0, experiment)
    run = experiment.simulation.run(theta)
    rest = (cloud.corners @ cloud.surface.points.points(run.kinematics(0), theta)[0])[cloud.triangles]
    points, normals, places = [], [], []
    for state in run.states():
        for frame in cloud.frames(state, theta):
            corners = (cloud.corners @ cloud.surface.observed(state, int(frame), theta))[cloud.triangles]
            normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            area = np.where(normal[:, 1] > 0.0, np.linalg.norm(normal, axis=1), 0.0)
            chosen = rng.choice(len(area), POINTS, p=area / area.sum())
            weights = rng.dirichlet([1.0, 1.0, 1.0], size=POINTS)
            points.append(np.einsum("mi,mik->mk", weights, corners[chosen]))
            places.append(np.einsum("mi,mik->mk", weights, rest[chosen]))
            normals.append(normal[chosen] / np.linalg.norm(normal[chosen], axis=1)[:, None])
    return points, normals, places


def errors(places: list[FloatArray], share: float, rng: np.random.Generator) -> list[FloatArray]:
    """Return errors along the normals [m]: a share is a smooth field that changes slowly, the rest is white."""
    every = np.concatenate(places)
    frame = np.repeat(np.arange(len(places)), [len(item) for item in places])
    near = np.exp(-cdist(every, every) / LENGTH) * KEPT ** np.abs(frame[:, None] - frame)
    field = np.linalg.cholesky(near + 1e-9 * np.eye(len(every))) @ rng.normal(size=len(every))
    total = NOISE * (np.sqrt(share) * field + np.sqrt(1.0 - share) * rng.normal(size=len(every)))
    return np.split(total, np.cumsum([len(item) for item in places])[:-1])


def study(share: float, repetitions: int, seed: int = 3) -> dict[str, Any]:
    """Return coverage, bars and spread of each number.

    Parameters
    ----------
    share : of the errors that hang together [-]
    repetitions : clouds that are drawn and fitted
    seed
    """
    rng = np.random.default_rng(seed)
    rows, worth = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        empty = with_cloud([np.zeros((1, 3))] * FRAMES, folder)
        truth = empty.inverse_problem().values(empty.inverse_problem().x0)
        for _ in range(repetitions):
            points, normals, places = seen(empty, rng)
            moved = [p + e[:, None] * n for p, e, n in zip(points, errors(places, share, rng), normals, strict=True)]
            scene = with_cloud(moved, folder)
            problem = scene.inverse_problem()
            x = problem.optimize().x
            bars = error_bars(scene, problem, x, RunFolder(folder / "run", overwrite=True))
            assert bars is not None
            entries = [bars["parameters"][label] for label in problem.labels()]
            worth.append(bars["residuals"]["scene"]["effective"])
            rows.append([
                (value, entry["interval_lower"], entry["interval_upper"], entry["errors"]["noise"])
                for value, entry in zip(problem.values(x), entries, strict=True)
            ])  # fmt: skip
            labels = problem.labels()
    found = np.array(rows)
    out: dict[str, Any] = {"effective": float(np.median(worth)), "points": FRAMES * POINTS, "parameters": {}}
    for k, label in enumerate(labels):
        value, low, high, noise = found[:, k].T
        spread = 2.0 * 1.96 * value.std(ddof=1)
        out["parameters"][label] = {
            "covered": float(np.mean((low <= truth[k]) & (truth[k] <= high))),
            "covered_by_noise_alone": float(np.mean(np.abs(value - truth[k]) <= 1.96 * noise)),
            "width_over_spread": float(np.median(high - low) / spread),
        }
    return out


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", "--repetitions", type=int, default=20)
    options = parser.parse_args()
    for share, text in ((0.0, "independent errors"), (SHARE, "errors that hang together")):
        found = study(share, options.repetitions)
        print(f"{text}: {found['points']} points count for {found['effective']:.0f}", flush=True)
        for label, item in found["parameters"].items():
            print(f"  {label}: {100 * item['covered']:.0f} % of the intervals hold the truth, of noise alone "
                  f"{100 * item['covered_by_noise_alone']:.0f} %, width over spread {item['width_over_spread']:.1f}",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
