"""Identify the contact of the tossed cube on twenty tosses, and predict the others from their first frames.

    ADD_DATA=... python -m scripts.cube_tosses fit [RECORDING ...] [--law LAW] [--start FRICTION DAMPING STIFFNESS ...]
    ADD_DATA=... python -m scripts.cube_tosses predict [RECORDING ...] [--result FILE] [--beside FILE]

RECORDING is a CSV file or a folder of them; without any, those of the study's own folder. Of a folder every eleventh
toss is fitted, at most twenty, and the others are predicted; files that are named are all fitted, or all predicted.

Fit: friction, damping and stiffness of the contact are shared by the twenty tosses, the state at the first frame
belongs to each. LAW `static` adds a coefficient at rest and Stribeck's speed, `spin` torsional and rolling friction;
`--start` may give theirs behind the three. The windows grow, since whether a cube tumbles over an edge is no smooth
function of anything; `--windows N` takes the last N alone, from a start that is good enough.
Prediction: the state at the first frame comes from the frames before the first touch, where the motion is known in
closed form (the cube's inertia is the same about every axis); nothing behind them is used. Medians have 95 % intervals
from draws of the tosses; `--beside` another result, their differences do, too, both results on the same draws.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

import add
from add.errors import InputError, SolverError
from add.inverse import LevenbergMarquardt, Phase
from add.mocap import PoseRecording, read_pose_csv
from add.scene.build.built import BuiltScene
from scripts.recordings import arguments, marks, read_result, recordings, scene_of_study

ROOT = Path(__file__).parents[1]
#: The folder below ADD_DATA.
FOLDER = ("rigid", "csv", "cube_contactnets")
EDGE = 0.1048
CORNERS = 0.5 * EDGE * np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
#: A corner this close to the table may touch it at the next frame [m].
CLOSE = 0.004
#: Every one of these tosses is fitted, the others are predicted.
EVERY, COUNT = 11, 20
#: How long after the first touch the fit looks [s], and how often it may simulate.
WINDOWS = ((0.03, 8), (0.08, 8), (0.15, 8), (0.3, 8), (1.0, 12))
STATE = ("position", "orientation", "velocity", "angular_velocity")
START = (0.25, 30.0, 10000.0)
GRAVITY = np.array([0.0, 0.0, -9.81])
#: Draws of the tosses for the interval of a median, and where they begin.
DRAWS, SEED = 4000, 1
SHARED = ("contact.friction", "contact.damping", "contact.stiffness")
#: What a law of friction adds to the shared numbers, and where its fit begins.
LAWS: dict[str, dict[str, float]] = {
    "one": {},
    "static": {"contact.static_friction": 0.2, "contact.stribeck_speed": 0.3},
    "spin": {"contact.torsional_friction": 1e-3, "contact.rolling_friction": 3e-4},
}
State = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def tosses() -> list[Path]:
    """Return the files of the study."""
    return list(recordings([], *FOLDER).files)


def read(file: Path, scale: float) -> tuple[PoseRecording, int]:
    """Return a toss in true lengths and its number of frames before anything touches."""
    pose = read_pose_csv(file)
    pose = PoseRecording(pose.times, scale * pose.position, pose.quaternion, source=pose.source)
    lowest = (pose.position[:, None] + np.einsum("fij,mj->fmi", pose.rotations, CORNERS))[:, :, 2].min(axis=1)
    return pose, max(int(np.argmax(lowest < CLOSE)), 3)


def flight(pose: PoseRecording, frames: int) -> State:
    """Return the state at the first frame that fits the first frames best, in free flight."""
    t = pose.times[:frames]
    fallen = pose.position[:frames] - 0.5 * t[:, None] ** 2 * GRAVITY
    line = np.linalg.lstsq(np.stack([np.ones(frames), t], axis=1), fallen, rcond=None)[0]
    seen = Rotation.from_quat(pose.quaternion[:frames][:, [1, 2, 3, 0]])

    def misfit(p: np.ndarray) -> np.ndarray:
        turned = Rotation.from_rotvec(t[:, None] * p[3:]) * Rotation.from_rotvec(p[:3]) * seen[0]
        return (seen.inv() * turned).as_rotvec().ravel()

    spin = (seen[2] * seen[0].inv()).as_rotvec() / t[2]
    p = least_squares(misfit, np.concatenate([np.zeros(3), spin])).x
    return line[0], (Rotation.from_rotvec(p[:3]) * seen[0]).as_rotvec(), line[1], p[3:]


def scene_of(base: add.Scene, files: list[Path], states: list[State], ends: list[float], values: dict) -> add.Scene:
    """Return a scene with one experiment a toss."""
    raw = json.loads(json.dumps(base.raw))
    recording = raw.pop("recording")
    raw["time"]["duration"] = max(ends)
    raw["contact"].update({name.partition(".")[2]: value for name, value in values.items()})
    shared = [{"path": path, "transform": "log", "scale": 0.2} for path in values]
    own, experiments = [], []
    for file, state, end in zip(files, states, ends, strict=True):
        at = dict(zip(STATE, (part.tolist() for part in state), strict=True))
        at["orientation"] = Rotation.from_rotvec(state[1]).as_quat()[[3, 0, 1, 2]].tolist()
        overrides: dict[str, object] = {f"bodies.cube.{key}": value for key, value in at.items()}
        overrides["time.duration"] = end
        source = {**recording, "file": str(file)}
        experiments.append({"name": file.stem, "overrides": overrides, "recording": source})
        for key, scale in zip(STATE, (0.001, 0.01, 0.02, 0.2), strict=True):
            own.append({"path": f"bodies.cube.{key}", "scale": scale, "experiment": file.stem})
    raw["experiments"] = experiments
    raw["parameters"] = [*shared, *own]
    return add.scene_from_dict(raw)


def fit(
    result: Path,
    start: Sequence[float] = START,
    named: Sequence[Path] = (),
    law: str = "one",
    windows: int = len(WINDOWS),
) -> None:
    """Fit the chosen tosses and write what was found.

    Raises
    ------
    InputError
        If ``start`` has other numbers than the law, or than the three that all laws share.
    """
    given = recordings(named, *FOLDER)
    base = scene_of_study("cube_toss", given.files[0])
    files = [*given.named, *given.found[::EVERY][:COUNT]]
    paths = (*SHARED, *LAWS[law])
    if len(start) not in (len(SHARED), len(paths)):
        raise InputError("wrong --start", found=f"{len(start)} numbers", expected=", ".join(paths))
    values = dict(zip(SHARED, start, strict=False)) | LAWS[law] | dict(zip(paths, start, strict=False))
    recorded = [read(file, base.recording.scale) for file in files]
    states = [flight(pose, frames) for pose, frames in recorded]
    for window, evaluations in WINDOWS[-windows:]:
        begin = time.perf_counter()
        ends = [float(min(pose.times[-1], pose.times[frames] + window)) for pose, frames in recorded]
        problem = scene_of(base, files, states, ends, values).inverse_problem()
        phase = Phase("all", None, (0.0, max(ends)), evaluations)
        found = LevenbergMarquardt((phase,), damping=1e-2, objective_tolerance=1e-4).run(problem)
        p = problem.values(found.x)
        by_name = {item.name: p[item.slice] for item in problem.parameters}
        values = {name: float(by_name[name][0]) for name in values}
        states = [tuple(by_name[f"bodies.cube.{key}@{file.stem}"] for key in STATE) for file in files]
        rms = 1e3 * np.sqrt(found.value / len(files))
        print(f"{window:.2f} s after the touch: corners within {rms:.2f} mm rms, {json.dumps(values)}, "
              f"{found.evaluations} runs of all, {time.perf_counter() - begin:.0f} s", flush=True)  # fmt: skip
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text(json.dumps({**values, "fitted": marks(files)}, indent=1), encoding="utf-8")


def prediction_errors(built: BuiltScene, files: Sequence[Path], scale: float) -> np.ndarray:
    """Return position [% of edge] and rotation [deg] at the end, and their means over the frames, of each toss (n, 4).

    A toss whose step is not solved is as far off as one can be: infinitely.
    """
    dt = built.scene.time.dt
    rows = []
    for file in files:
        pose, frames = read(file, scale)
        numbers = built.numbers.values.copy()
        for key, value in zip(STATE, flight(pose, frames), strict=True):
            numbers[built.numbers.resolve(f"bodies.cube.{key}")[0]] = value
        steps = np.rint(pose.times / dt).astype(int)
        try:
            run = built.simulation.run(built.numbers.ties.forward(numbers), n_steps=int(steps[-1]))
        except SolverError as error:
            print(f"{file.name}: {error}", file=sys.stderr)
            rows.append((np.inf,) * 4)
            continue
        q = run.q[steps]
        away = 100 * np.linalg.norm(q[:, :3] - pose.position, axis=1) / EDGE
        seen = Rotation.from_quat(pose.quaternion[:, [1, 2, 3, 0]])
        turned = np.degrees((Rotation.from_rotvec(q[:, 3:6]).inv() * seen).magnitude())
        rows.append((away[-1], turned[-1], away.mean(), turned.mean()))
    return np.array(rows)


def median_intervals(errors: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
    """Return the 95 % interval of medians (n,) of errors (tosses, n) by draws of the tosses, (2, n).

    With the errors of ``others`` on the same tosses, that of the medians' difference: both see each draw.
    """
    drawn = np.random.default_rng(SEED).integers(0, len(errors), (DRAWS, len(errors)))
    medians = np.median(errors[drawn], axis=1)
    if others is not None:
        medians = medians - np.median(others[drawn], axis=1)
    return np.percentile(medians, (2.5, 97.5), axis=0)


def predict(
    result: Path, named: Sequence[Path] = (), changes: dict | None = None, beside: Path | None = None
) -> np.ndarray:
    """Print how far the tosses that were not fitted end from where they were seen; return (tosses, 4) errors."""
    values, fitted = read_result(result)
    files = recordings(named, *FOLDER).unseen(fitted)
    base = scene_of_study("cube_toss", files[0])

    def errors_of(numbers: dict) -> np.ndarray:
        return prediction_errors(add.apply_overrides(base, numbers).build(), files, base.recording.scale)

    errors = errors_of({**values, **(changes or {})})
    print(f"{len(errors)} tosses predicted from their frames before the first touch")
    print("| | position at the end [% of edge] | rotation at the end [deg] | position, mean over frames | rotation |")
    print("|---|---|---|---|---|")
    for name, row in (("median", np.median(errors, axis=0)), ("mean", errors.mean(axis=0))):
        print(f"| {name} | {row[0]:.1f} | {row[1]:.1f} | {row[2]:.1f} | {row[3]:.1f} |")
    said = {"median, 95 % by draws of the tosses": median_intervals(errors)}
    if beside is not None:
        others = errors_of(read_result(beside)[0])
        difference = np.median(errors, axis=0) - np.median(others, axis=0)
        print("| medians less those of the other | " + " | ".join(f"{value:+.1f}" for value in difference) + " |")
        said["their 95 %"] = median_intervals(errors, others)
    for name, (low, high) in said.items():
        print(f"| {name} | " + " | ".join(f"{a:.1f} to {b:.1f}" for a, b in zip(low, high, strict=True)) + " |")
    print(f"ends on the right face: {100 * np.mean(errors[:, 1] < 45):.0f} %", flush=True)
    return errors


def main() -> None:
    """Run what the command line asks for."""
    parser = arguments(__doc__, ROOT / "runs" / "cube_tosses.json")
    parser.add_argument("--start", nargs="+", type=float, default=START, help="friction, damping, stiffness, the law's")
    parser.add_argument("--law", choices=LAWS, default="one", help="what friction depends on (default %(default)s)")
    parser.add_argument("--windows", type=int, choices=range(1, len(WINDOWS) + 1), default=len(WINDOWS),
                        help="how many of the windows, the last ones (default all)")  # fmt: skip
    parser.add_argument("--beside", type=Path, help="result of another fit, to compare the medians with")
    asked = parser.parse_args()
    if asked.task == "fit":
        fit(asked.result, asked.start, asked.recordings, asked.law, asked.windows)
        if asked.recordings and not any(path.is_dir() for path in asked.recordings):
            return  # files that were named are all fitted
    predict(asked.result, asked.recordings, beside=asked.beside)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
