"""Make the synthetic recordings of the foam sphere and the foam cube (ADD, Figs. 7 and 8).

The paper's motion capture was never published. These stand in for it: bodies of the size, mass and material that the
paper found are thrown at a floor and a wall, and markers on their surface are recorded with noise. Mesh (finer, and
hexahedra for the cube), time step (half) and rate differ from those of the scenes that are fitted, and frames are
missing.

Each body is thrown twice more, along the wall, so that it slips where it touches: `..._sliding`, with clouds of points
on its surface, too, and `..._second`, whose bounces are to be predicted. There the mesh is the one that is fitted, cut
twice as fine, and the step again half.

    python -m scripts.make_foam_recordings [foam_sphere ...]
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from add.commands.convergence_file import with_finer_meshes
from add.equations.points import NodePoints, PointMap
from add.geometry import facets
from add.mocap import Recording, write_csv
from add.objectives import Tracking
from add.scene import Scene, apply_overrides, scene_from_dict
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "data" / "recordings"
NOISE = 5e-4
#: Points of a cloud, and clouds a second.
POINTS, CLOUDS = 150, 60.0
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
        What else differs from the scene; None for its own mesh, twice as fine.
    seed : int
    setting : path -> value
        What the scene is fitted with instead of its own.
    cloud : bool
        Whether points on the surface are recorded, too.
    """

    scene: str
    truth: dict[str, Any]
    discretisation: dict[str, Any] | None
    seed: int
    setting: dict[str, Any] = field(default_factory=dict)
    cloud: bool = False


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

#: Name of the body -> the step that its short, fast throws are fitted with [s]. With 2.5 ms a ball at 40 rad/s lags by
#: 3 mm in 0.4 s; with 1.25 ms its impact seems softer, by 12 % of E.
STEPS = {"sphere": 0.000625, "cube": 0.00125}
#: Name of the body -> the mesh that it is fitted with there.
MESHES: dict[str, dict[str, Any]] = {
    "sphere": {"mesh": {"shape": "sphere", "radius": 0.0495, "edge": 0.026}, "scale": 1.0, "element": "tet10"},
    "cube": {"mesh.divisions": [3, 3, 3], "element": "tet10"},
}
#: Name of the body -> kind of throw -> place [m], velocity [m/s], angular velocity [rad/s], duration [s].
THROWS: dict[str, dict[str, tuple[list[float], list[float], list[float], float]]] = {
    "sphere": {
        "sliding": ([0.55, 0.0, 0.2], [1.4, 4.2, -0.5], [30.0, 0.0, 40.0], 0.36),
        "second": ([0.45, 0.0, 0.2], [1.4, -2.0, 0.2], [-10.0, 15.0, 5.0], 0.42),
    },
    "cube": {
        "sliding": ([0.35, 0.0, 0.2], [1.0, 2.5, 0.0], [15.0, -3.0, 15.0], 0.46),
        "second": ([0.3, 0.0, 0.2], [1.1, -1.5, 0.1], [-8.0, 6.0, -10.0], 0.42),
    },
}


def thrown(body: str, kind: str, seed: int) -> Take:
    """Return another throw of a body, recorded on the mesh of the scene cut twice as fine."""
    first = TAKES[f"foam_{body}"]
    position, velocity, spin, duration = THROWS[body][kind]
    start = {"position": position, "velocity": velocity, "angular_velocity": spin}
    truth = first.truth | {f"bodies.{body}.{key}": value for key, value in start.items()}
    setting = {f"bodies.{body}.{key}": value for key, value in MESHES[body].items()}
    setting |= {"time.dt": STEPS[body], "time.duration": duration}
    return Take(first.scene, truth, None, seed, setting, cloud=kind == "sliding")


KINDS = [(body, kind) for body in THROWS for kind in THROWS[body]]
TAKES |= {f"foam_{body}_{kind}": thrown(body, kind, 17 + k) for k, (body, kind) in enumerate(KINDS)}


def true_scene(take: Take, folder: Path | None = None) -> Scene:
    """Return the scene that is recorded; a folder takes the meshes that are cut finer."""
    raw = json.loads((ROOT / "scenes" / f"{take.scene}.json").read_text(encoding="utf-8"))
    for key in ("recording", "objective", "parameters", "optimizer", "check"):
        raw.pop(key, None)
    scene = apply_overrides(scene_from_dict(raw, folder=ROOT / "scenes"), take.truth | take.setting)
    scene = apply_overrides(scene, {"time.dt": scene.time.dt / 2.0} | (take.discretisation or {}))
    if take.discretisation is not None:
        return scene
    if folder is None:
        raise ValueError("meshes that are cut finer need a folder")
    return with_finer_meshes(scene, folder)[0]


def observed(built: BuiltScene, run: Trajectory, points: PointMap, times: np.ndarray) -> np.ndarray:
    """Return the places (k, m, 3) of points of a run at the times of the frames [m]."""
    shape = (times.size, points.n_points)
    sampler = Tracking(points, built.simulation.stepper.dt, times, np.zeros((*shape, 3)), np.ones(shape), np.eye(3))
    positions = np.empty((*shape, 3))
    for state in run.states():
        for frame in sampler.frames(state, built.theta):
            positions[frame] = sampler.observed(state, int(frame), built.theta)
    return positions


def sampled(built: BuiltScene, times: np.ndarray) -> np.ndarray:
    """Return the markers' places (k, m, 3) at the times of the frames [m]."""
    return observed(built, built.run(), built.markers, times)


def record(name: str, take: Take) -> None:
    """Simulate, sample, add noise, drop frames, write."""
    with tempfile.TemporaryDirectory() as folder:
        built = true_scene(take, Path(folder)).build()
    run = built.run()
    times = np.arange(FIRST, run.t[-1], 1.0 / RATE)
    positions = observed(built, run, built.markers, times)
    rng = np.random.default_rng(take.seed)
    positions += NOISE * rng.normal(size=positions.shape)
    valid = np.ones(positions.shape[:2], dtype=bool)
    for marker in range(valid.shape[1]):
        first = rng.integers(0, times.size - 12)
        valid[first : first + 10, marker] = False
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.csv"
    write_csv(path, Recording(built.marker_names, times, np.round(positions, 6), valid, "synthetic"))
    if take.cloud:
        clouds(path.with_suffix(".npz"), built, run, rng)
    truth = {"parameters": take.truth, "noise_m": NOISE, "rate_Hz": RATE, "seed": take.seed}
    path.with_suffix(".json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    centre = np.round(positions[-1].mean(axis=0), 4).tolist()
    print(f"{path}: {times.size} frames, {valid.shape[1]} markers, their mean ends at {centre}", flush=True)


def clouds(path: Path, built: BuiltScene, run: Trajectory, rng: np.random.Generator) -> None:
    """Write points with noise from all over the surface, other ones in each frame."""
    outline = facets(built.model.bodies[0].mesh)
    times = np.arange(FIRST, run.t[-1], 1.0 / CLOUDS)
    frames = []
    for nodes in observed(built, run, built.model.lifted(NodePoints(outline.nodes)), times):
        corners = (outline.corners @ nodes)[outline.triangles]
        area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
        chosen = rng.choice(len(area), POINTS, p=area / area.sum())
        frames.append(np.einsum("mi,mik->mk", rng.dirichlet([1.0, 1.0, 1.0], POINTS), corners[chosen]))
    points = np.concatenate(frames)
    points += NOISE * rng.normal(size=points.shape)
    np.savez_compressed(
        path, times=times, points=np.round(points, 5).astype(np.float32),
        frame=np.repeat(np.arange(times.size), POINTS).astype(np.int16),
    )  # fmt: skip


def main(names: list[str]) -> None:
    """Make those that are named, or all."""
    for name in names or TAKES:
        record(name, TAKES[name])


if __name__ == "__main__":
    main(sys.argv[1:])
