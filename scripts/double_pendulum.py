"""Identify the double pendulum on thirteen swings, and predict the other thirteen.

    ADD_DATA=... python -m scripts.double_pendulum fit [RECORDING ...] [--result runs/double_pendulum.json]
    ADD_DATA=... python -m scripts.double_pendulum predict [RECORDING ...] [--result runs/double_pendulum.json]

With ``--tree`` in joint coordinates, of `scenes/double_pendulum_tree.json`, else with stiff hinges between free bodies.

RECORDING is a CSV file or a folder of them; without any, those of the study's own folder. Of a folder every second
swing is fitted and the others are predicted; files that are named are all fitted, or all predicted.

Fit: mass and inertia of the upper arm, inertia of the lower one, viscous and dry friction of both hinges are shared;
the angles and rates at the start belong to each swing. Free swings tell masses only against one another, and an
inertia only with m a^2: the mass of the lower arm, the lengths, both centres of mass and g are held at what the source
reports.
Prediction: the start is fitted to the first 0.2 s, and the next 1.8 s are predicted from it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import add
from add.errors import InputError
from add.inverse import InverseProblem, LevenbergMarquardt, Phase
from add.mocap import read_angle_csv
from scripts.recordings import arguments, marks, read_result, recordings, scene_of_study

ROOT = Path(__file__).parents[1]
#: The folder below ADD_DATA, and which of its swings are fitted.
FOLDER, EVERY = ("rigid", "pendulum_mit", "double"), 2
HINGES = ("shoulder", "elbow")
#: Scene, and the numbers of its start.
STIFF = "double_pendulum", tuple(f"couplings.{hinge}.start.{key}" for hinge in HINGES for key in ("angle", "rate"))
TREE = (
    "double_pendulum_tree",
    tuple(f"bodies.pendulum.joints.{hinge}.{key}" for hinge in HINGES for key in ("value", "rate")),
)
SCALES = (0.01, 0.1, 0.01, 0.1)
#: Windows of the fit [s] and its simulations of all swings in each.
WINDOWS = ((0.25, 8), (1.0, 8), (2.0, 12))
#: What a prediction sees of a swing, and how far it goes [s].
SEEN, AHEAD = 0.2, 2.0


def swings() -> list[Path]:
    """Return the files of the study."""
    return list(recordings([], *FOLDER).files)


def start_of(scene: add.Scene) -> tuple[str, ...]:
    """Return the numbers of the start, of either scene."""
    return TREE[1] if "pendulum" in scene.bodies else STIFF[1]


def start(file: Path, offset: float) -> list[float]:
    """Return angle and rate of both hinges at the start, as recorded."""
    recording = read_angle_csv(file)
    frame = int(np.searchsorted(recording.times, offset))
    (first, second), (rate, rate_2) = recording.angles[frame], recording.rates[frame]
    return [float(value) for value in (first - np.pi, rate, second - first, rate_2 - rate)]


def scene_of(base: add.Scene, files: list[Path], starts: list[list[float]], values: dict[str, float]) -> add.Scene:
    """Return a scene with one experiment a swing; nothing is shared where ``values`` is empty."""
    names = start_of(base)
    raw = json.loads(json.dumps(base.raw))
    recording = raw.pop("recording")
    raw["parameters"] = [item for item in raw["parameters"] if item["path"] in values]
    for item in raw["parameters"]:
        item["start"] = values[item["path"]]
    raw["experiments"] = []
    for file, at in zip(files, starts, strict=True):
        overrides = dict(zip(names, at, strict=True))
        raw["experiments"].append(
            {"name": file.stem, "overrides": overrides, "recording": {**recording, "file": str(file)}}
        )
        for path, scale in zip(names, SCALES, strict=True):
            raw["parameters"].append({"path": path, "scale": scale, "experiment": file.stem})
    return add.scene_from_dict(raw)


def minimise(problem: InverseProblem, window: float, evaluations: int) -> tuple[dict[str, float], float]:
    """Return the physical values found and the root of the mean squared angle, over both angles and all swings."""
    phase = Phase("all", None, (0.0, window), evaluations)
    found = LevenbergMarquardt((phase,), damping=1e-3, objective_tolerance=1e-5).run(problem)
    values = problem.values(found.x)
    return dict(zip([p.name for p in problem.parameters], map(float, values), strict=True)), float(
        np.sqrt(found.value / len(problem.experiments))
    )


def fit(result: Path, named: Sequence[Path] = (), name: str = STIFF[0]) -> None:
    """Fit the chosen swings and write what was found."""
    given = recordings(named, *FOLDER)
    base = scene_of_study(name, given.files[0])
    names = start_of(base)
    offset, files = base.recording.time_offset, [*given.named, *given.found[::EVERY]]
    starts = [start(file, offset) for file in files]
    shared = {item["path"]: 0.0 for item in base.raw["parameters"] if item["path"] not in names}
    problem = base.inverse_problem()
    values = {p.name: float(p.start[0]) for p in problem.parameters if p.name in shared}
    # Far from the answer, so that the fit has something to find.
    values = {name: 1.3 * value for name, value in values.items()}
    for window, evaluations in WINDOWS:
        begin = time.perf_counter()
        problem = scene_of(base, files, starts, values).inverse_problem()
        found, rms = minimise(problem, window, evaluations)
        values = {name: found[name] for name in shared}
        starts = [[found[f"{path}@{file.stem}"] for path in names] for file in files]
        print(f"{window:.2f} s: {rms:.4f} rad rms, {json.dumps(values)}, {time.perf_counter() - begin:.0f} s",
              flush=True)  # fmt: skip
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text(json.dumps({**values, "fitted": marks(files)}, indent=1), encoding="utf-8")


def predict(result: Path, named: Sequence[Path] = (), name: str = STIFF[0]) -> list[float]:
    """Print and return the rms error of the angles of every swing that was not fitted [rad]."""
    values, fitted = read_result(result)
    files = recordings(named, *FOLDER).unseen(fitted)
    moments = {name: value for name, value in values.items() if name.endswith(".inertia")}
    scalars = {name: value for name, value in values.items() if name not in moments}
    scene = scene_of_study(name, files[0])
    names = start_of(scene)
    offset = scene.recording.time_offset
    full = {name: [value] * 3 + [0.0] * 3 for name, value in moments.items()}
    base = add.apply_overrides(scene, {**scalars, **full})
    errors = []
    print("| swing | rms over 2 s [rad] | largest [rad] |")
    print("|---|---|---|")
    for file in files:
        problem = scene_of(base, [file], [start(file, offset)], {}).inverse_problem()
        found, _ = minimise(problem, SEEN, 12)
        at = [found[f"{path}@{file.stem}"] for path in names]
        source = {**base.raw["recording"], "file": str(file)}
        built = add.apply_overrides(base, {**dict(zip(names, at, strict=True)), "recording": source}).build()
        run = built.run(n_steps=round(AHEAD / built.scene.time.dt))
        tips = np.array([built.markers.points(run.kinematics(k), built.theta)[0] for k in range(run.n_steps + 1)])
        angles = np.unwrap(np.arctan2(tips[:, :, 0], -tips[:, :, 2]), axis=0)
        recording = read_angle_csv(file)
        times = recording.times - offset
        kept = (times >= 0.0) & (times <= AHEAD)
        simulated = np.stack([np.interp(times[kept], run.t, angles[:, i]) for i in range(2)], axis=1)
        error = np.angle(np.exp(1j * (simulated - recording.angles[kept] + np.pi)))
        errors.append(float(np.sqrt(np.mean(error**2))))
        print(f"| {file.stem[-2:]} | {errors[-1]:.4f} | {np.abs(error).max():.4f} |", flush=True)
    print(f"rms over all {np.sqrt(np.mean(np.square(errors))):.4f} rad, worst swing {max(errors):.4f} rad")
    return errors


def main() -> None:
    """Run what the command line asks for."""
    parser = arguments(__doc__, ROOT / "runs" / "double_pendulum.json")
    parser.add_argument("--tree", action="store_true", help="in joint coordinates")
    asked = parser.parse_args()
    name = TREE[0] if asked.tree else STIFF[0]
    if asked.task == "fit":
        fit(asked.result, asked.recordings, name)
        if asked.recordings and not any(path.is_dir() for path in asked.recordings):
            return  # files that were named are all fitted
    predict(asked.result, asked.recordings, name)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
