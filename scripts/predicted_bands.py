"""Coverage of sampled predictions on recordings that were not fitted: cubes, elbows, double pendulums.

    ADD_DATA=... python -m scripts.predicted_bands cube|elbow|pendulum [--fitted 10] [--predicted 20] [--samples 100]

Fits the numbers that takes share on every n-th take, starts included, as `add optimize` does; then, for takes that
were not fitted, fits the start to the first moments alone and predicts the rest as `add predict --samples --start`
does, with the errors of both. Prints coverage by time, and how often bodies end on the side that was likely.
"""

from __future__ import annotations

import argparse
import csv
import json
import logging
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

import add
from add.commands.optimize import optimize_scene
from add.commands.other_motions import Asked, carry, predict_samples
from add.commands.parallel.workers import LocalProcesses
from add.commands.sampled_runs import side_up
from add.errors import AddError
from add.inverse.intervals import interval_score
from add.io.runfolder import BANDS, RESULT, RunFolder
from add.mocap import read_angle_csv
from add.scene.build.recordings import load_recording
from scripts import cube_tosses, double_pendulum, elbow_tosses
from scripts.recordings import recordings, scene_of_study

ROOT = Path(__file__).parents[1]
#: Where the fits begin: near what the studies found (docs/studies/rigid-recordings.md).
CUBE = {"contact.friction": 0.179, "contact.damping": 65.0, "contact.stiffness": 15400.0}
#: The table of a toss is as uncertain as the first bounces of the fitted ones are apart.
HEIGHT = "obstacles.table.point.2"
#: Ends of the growing windows of the fits [s]; whether a cube tumbles over an edge is no smooth function of anything.
WINDOWS = {"cube": (0.13, 0.18, 0.25, 0.4), "elbow": (0.1,), "pendulum": (0.25, 1.0)}
#: Times after what the start has seen between which coverage is told, and when widths are [s].
SOON = 0.1
EDGES = (-1.0, 0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)


class Take(NamedTuple):
    """A take that is predicted.

    Attributes
    ----------
    name : str
    start : fits where it starts to its first moments
    whole : predicts it
    seen : what the start has seen of it [s]
    ends : body -> side that was up at the end, as recorded
    """

    name: str
    start: add.Scene
    whole: add.Scene
    seen: float
    ends: dict[str, str]


def _alone(scene: add.Scene, base: add.Scene, changed: dict[str, object], file: Path) -> tuple[add.Scene, add.Scene]:
    """Return a scene of one experiment with Gauss-Newton, and the scene of the same take without experiments."""
    raw = {**json.loads(json.dumps(scene.raw)), "optimizer": {"method": "gauss-newton", "max_evaluations": 12}}
    whole = add.apply_overrides(base, changed)
    there = json.loads(json.dumps(whole.raw))
    there["recording"]["file"] = str(file)
    return add.scene_from_dict(raw), add.scene_from_dict(there)


def validated(scene: add.Scene, n_fitted: int, seen: Sequence[float]) -> add.Scene:
    """Return a fit that predicts its takes behind the first ones, their starts fitted to what was ``seen`` [s]."""
    raw = json.loads(json.dumps(scene.raw))
    for item, end in zip(raw["experiments"][n_fitted:], seen[n_fitted:], strict=True):
        item |= {"use": "validate", "fit_window": [0.0, end]}
    return add.scene_from_dict(raw)


def cube(n_fitted: int, n_validated: int, n_predicted: int, first: int = 0) -> tuple[add.Scene, list[Take]]:
    """Return the fit of some tosses, with some that it predicts, and others to predict."""
    files = cube_tosses.tosses()
    base = scene_of_study("cube_toss", files[0])
    scale = base.recording.scale
    fitted = files[first :: cube_tosses.EVERY][:n_fitted]
    fitted += [file for file in files if file not in fitted][5 :: cube_tosses.EVERY][:n_validated]
    read = [cube_tosses.read(file, scale) for file in fitted]
    ends = [float(pose.times[-1]) for pose, _ in read]
    fit = cube_tosses.scene_of(base, fitted, [cube_tosses.flight(*item) for item in read], ends, CUBE)
    fit = validated(fit, n_fitted, [float(pose.times[frames - 1]) for pose, frames in read])
    left = [file for file in files if file not in fitted]
    takes = []
    for file in left[:: max(1, len(left) // n_predicted)][:n_predicted]:
        pose, frames = cube_tosses.read(file, scale)
        state, seen = cube_tosses.flight(pose, frames), float(pose.times[frames - 1])
        changed: dict[str, object] = {
            f"bodies.cube.{key}": part.tolist() for key, part in zip(cube_tosses.STATE, state, strict=True)
        }
        changed["bodies.cube.orientation"] = Rotation.from_rotvec(state[1]).as_quat()[[3, 0, 1, 2]].tolist()
        changed["time.duration"] = float(pose.times[-1])
        start = cube_tosses.scene_of(base, [file], [state], [seen], {})
        up = side_up(Rotation.from_quat(pose.quaternion[-1][[1, 2, 3, 0]]).as_rotvec(), np.array([0.0, 0.0, 1.0]))
        takes.append(Take(file.stem, *_alone(start, base, changed, file), seen, {"cube": up}))
    return fit, takes


def elbow(n_fitted: int, n_validated: int, n_predicted: int, first: int = 0) -> tuple[add.Scene, list[Take]]:
    """Return the fit of some tosses, each with a table of its own, and others to predict.

    Hinge and moments of inertia are fitted with the contact. A prediction lays the table as far above the halves at
    rest as the first bounces of the fitted tosses are in the mean, and draws its height.
    """
    study = elbow_tosses
    files = study.tosses()
    base = scene_of_study("elbow_toss", files[0])
    tosses = [study.Toss(file, base) for file in files]
    fitted = [toss for toss in tosses if toss.clean][first :: study.EVERY][:n_fitted]
    lifts = [toss.landing - toss.resting for toss in fitted]
    lift = float(np.mean(lifts))
    others = [toss for toss in tosses if toss not in fitted]
    known = others[:: max(1, len(others) // max(n_validated, 1))][:n_validated]
    ends = [float(min(toss.times[-1], toss.flight + 0.08)) for toss in fitted]
    ends += [float(toss.times[-1]) for toss in known]
    shared, chosen = (*study.HINGE, *study.INERTIA, *study.CONTACT), [*fitted, *known]
    fit = study.scene_of(base, chosen, [toss.guess() for toss in chosen], ends, shared, [toss.table for toss in chosen])
    raw = json.loads(json.dumps(fit.raw))
    names = {toss.file.stem for toss in known}
    raw["parameters"] = [
        item for item in raw["parameters"] if item.get("experiment") not in names or item["path"] not in study.TABLE
    ]
    raw["objective"] = [item for item in raw["objective"] if item.get("parameter", "").partition("@")[2] not in names]
    for toss, item in zip(known, raw["experiments"][n_fitted:], strict=True):
        item["overrides"] |= toss.frame(toss.resting + lift)
    fit = validated(add.scene_from_dict(raw), n_fitted, [toss.flight for toss in chosen])
    left = [toss for toss in others if toss not in known]
    takes = []
    for toss in left[:: max(1, len(left) // n_predicted)][:n_predicted]:
        changed = {**study.overrides(toss.guess()), **toss.frame(toss.resting + lift)}
        changed["time.duration"] = float(toss.times[-1])
        start = study.scene_of(base, [toss], [toss.guess()], [toss.flight], ())
        flown, whole = _alone(start, base, changed, toss.file)
        raw = json.loads(json.dumps(whole.raw))
        raw["recording"]["time_offset"] = 0.0
        raw["recording"].pop("crop", None)
        raw["obstacles"]["table"]["adjustable"] = True
        raw["parameters"].append({"path": HEIGHT, "scale": study.TABLE[HEIGHT][0]})
        raw["objective"].append({"type": "prior", "parameter": HEIGHT, "mean": lift, "sigma": float(np.std(lifts))})
        turns = {"one": toss.turn[-1], "two": toss.turn_2[-1]}
        ends = {name: side_up(turn.as_rotvec(), toss.session.normal) for name, turn in turns.items()}
        takes.append(Take(toss.file.stem, flown, add.scene_from_dict(raw), toss.flight, ends))
    return fit, takes


def pendulum(n_fitted: int, n_validated: int, n_predicted: int, first: int = 0) -> tuple[add.Scene, list[Take]]:
    """Return the fit of some swings, in joint coordinates, and others to predict."""
    study = double_pendulum
    given = recordings([], *study.FOLDER)
    base = scene_of_study(study.TREE[0], given.files[0])
    offset, fitted = base.recording.time_offset, list(given.found[first :: study.EVERY][: n_fitted + n_validated])
    names = study.start_of(base)
    values = {p.name: float(p.start[0]) for p in base.inverse_problem().parameters if p.name not in names}
    fit = study.scene_of(base, fitted, [study.start(file, offset) for file in fitted], values)
    fit = validated(fit, n_fitted, [study.SEEN] * len(fitted))
    left = [file for file in given.found if file not in given.found[first :: study.EVERY]]
    takes = []
    for file in left[:n_predicted]:
        at = study.start(file, offset)
        times = read_angle_csv(file).times
        changed: dict[str, object] = dict(zip(names, at, strict=True))
        flown = add.apply_overrides(study.scene_of(base, [file], [at], {}), {"time.duration": study.SEEN})
        takes.append(Take(file.stem, *_alone(flown, base, changed, file), study.SEEN, {}))
        assert times[-1] > study.AHEAD
    return fit, takes


STUDIES: dict[str, Callable[[int, int, int, int], tuple[add.Scene, list[Take]]]] = {
    "cube": cube, "elbow": elbow, "pendulum": pendulum,
}  # fmt: skip


def fitted(scene: add.Scene, folder: Path, evaluations: int, windows: Sequence[float] = ()) -> RunFolder:
    """Return the folder of a fit over growing windows, made if it is not there."""
    run = RunFolder(folder, overwrite=True)
    if not run.result.is_file() or run.read_json(RESULT)["status"] != "done":
        raw = json.loads(json.dumps(scene.raw)) | {
            "optimizer": {"method": "gauss-newton", "max_evaluations": evaluations, "objective_tolerance": 1e-4}
        }
        if windows:
            phases: list[dict[str, object]] = [{"name": f"{1000 * end:.0f} ms", "end_time": end} for end in windows]
            raw["optimizer"]["phases"] = [*phases, {"name": "whole"}]
        raw["uncertainty"] = {"candidates": False, "bootstrap": 400}
        begin = time.perf_counter()
        result = optimize_scene(add.scene_from_dict(raw), run)
        print(f"{folder}: objective {result['objective']}, {time.perf_counter() - begin:.0f} s", flush=True)
    return run


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--fitted", type=int, default=10, help="takes that are fitted (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first of them, from 0: others are fitted then")
    parser.add_argument("--validated", type=int, default=0, help="takes that the fit predicts (default %(default)s)")
    parser.add_argument("--predicted", type=int, default=20, help="takes that are predicted (default %(default)s)")
    parser.add_argument("--samples", type=int, default=100, help="draws for each (default %(default)s)")
    parser.add_argument("--evaluations", type=int, default=12, help="of the fit (default %(default)s)")
    parser.add_argument("--discrepancy", action="store_true", help="widen the bands by what the fit left over")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default %(default)s)")
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "predicted_bands", help="(default %(default)s)")
    asked = parser.parse_args()
    logging.getLogger("add").setLevel(logging.ERROR)
    scene, takes = STUDIES[asked.study](asked.fitted, asked.validated, asked.predicted, asked.first)
    place = asked.folder / asked.study
    run = fitted(scene, place / "fit", asked.evaluations, WINDOWS[asked.study])
    shared = {label: item for label, item in run.read_json(RESULT)["parameters"].items() if "@" not in label}
    for label, item in shared.items():
        print(f"  {label} = {item['value']:.4g} +- {item['standard_error'] or np.nan:.2g}")
    rows, odds, tracks, halves = [], [], {}, {}
    for take in takes:
        try:
            start = fitted(carry(take.start, run)[0], place / f"start_{take.name}", 12)
            folder = RunFolder(place / take.name, overwrite=True)
            wanted = Asked(run, start=start, samples=asked.samples, discrepancy=asked.discrepancy)
            begin = time.perf_counter()
            found = predict_samples(take.whole, folder, wanted, workers=LocalProcesses(asked.jobs))
        except AddError as error:
            print(f"{take.name}: {error}")
            continue
        said = found["prediction"]["coverage"]
        shares = {item["end"]: item["share"] for item in found["prediction"]["ends"]}
        for body, side in take.ends.items():
            for k in (f"{sign}{axis} up" for sign in "+-" for axis in "xyz"):
                odds.append((shares.get(f"{body}: {k}", 0.0), k == side))
        table = np.genfromtxt(folder.path / "coverage.csv", delimiter=",", skip_header=1)
        rows.append(np.column_stack([table, table[:, 0] - take.seen]))
        recording = load_recording(take.whole, "recording")
        tracks[take.name] = (recording.times - take.seen, recording.positions)
        halves[take.name] = _half_widths(folder, recording.names)
        print(f"{take.name}: within 90 % {said['within_90']:.2f}, 50 % {said['within_50']:.2f}, failed "
              f"{found['failed']}, linear until {found['prediction']['linear_until']:.2f} s, seen {take.seen:.2f} s, "
              f"{time.perf_counter() - begin:.0f} s", flush=True)  # fmt: skip
    _bands(np.concatenate(rows), tracks, halves)
    if odds:
        _reliability(np.array(odds, dtype=float))


Tracks = dict[str, tuple[np.ndarray, np.ndarray]]


def _half_widths(folder: RunFolder, names: Sequence[str]) -> np.ndarray:
    """Return the median half width of the 90 % band over the coordinates of the markers at each time (nf,)."""
    with (folder.path / BANDS).open(encoding="utf-8", newline="") as file:
        found = [
            0.5 * (float(row["q95"]) - float(row["q5"])) for row in csv.DictReader(file) if row["quantity"] in names
        ]
    return np.median(np.reshape(found, (3 * len(names), -1)), axis=0)


def climatology(tracks: Tracks, name: str, *, from_here: bool) -> np.ndarray:
    """Return the interval score (nf,) of a take by the 90 % of all other takes at the same time after what was seen.

    With ``from_here`` places count from the mean of the markers where the start ends, and else from the origin.
    """
    level = 0.9

    def told(key: str) -> tuple[np.ndarray, np.ndarray]:
        times, places = tracks[key]
        return times, places - places[np.abs(times).argmin()].mean(axis=0) if from_here else places

    times, seen = told(name)
    near = [np.abs(t[:, None] - times).argmin(axis=0) for t, _ in (told(key) for key in tracks if key != name)]
    others = [places[k] for (_, places), k in zip((told(key) for key in tracks if key != name), near, strict=True)]
    low, high = np.quantile(others, (0.5 - 0.5 * level, 0.5 + 0.5 * level), axis=0)
    return interval_score(low, high, seen, level).mean(axis=(1, 2))


def _bands(rows: np.ndarray, tracks: Tracks, halves: dict[str, np.ndarray]) -> None:
    """Print coverage, widths and scores by the time after what was seen; rows (n, 6) as in ``coverage.csv``."""
    _, count, half, most, score, since = rows.T
    others = [np.concatenate([climatology(tracks, name, from_here=here) for name in tracks]) for here in (False, True)]
    times, wide = np.concatenate([t for t, _ in tracks.values()]), np.concatenate(list(halves.values()))
    print("| time after what was seen [s] | coordinates | within 50 % | within 90 % | half width, median | interval "
          "score | of the other takes | of the other takes from here |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for low, high in (*pairwise(EDGES), (EDGES[0], EDGES[-1])):
        part, own = (since > low) & (since <= high), (times > low) & (times <= high)
        if part.any():
            mean = [float(np.average(x[part], weights=count[part])) for x in (half, most, score)]
            beside = " | ".join(f"{item[own].mean():.4f}" for item in others)
            print(f"| {low:g} to {high:g} | {count[part].sum():.0f} | {100 * mean[0]:.0f} % | {100 * mean[1]:.0f} % "
                  f"| {np.median(wide[own]):.4f} | {mean[2]:.4f} | {beside} |")  # fmt: skip
    soon = [halves[name][np.abs(t - SOON).argmin()] for name, (t, _) in tracks.items()]
    print(f"half width, median over takes: {np.median(soon):.4f} at {SOON:g} s, "
          f"{np.median([item[-1] for item in halves.values()]):.4f} at the end")  # fmt: skip


def _reliability(odds: np.ndarray) -> None:
    """Print how often sides were up that were said to be with some probability; odds (n, 2)."""
    said, came = odds.T
    print("| said | sides | mean of what was said | came |")
    print("|---|---|---|---|")
    for low, high in pairwise((-0.01, 0.0, 0.2, 0.8, 0.99, 1.0)):
        part = (said > low) & (said <= high)
        if part.any():
            print(f"| {100 * max(low, 0):.0f} to {100 * high:.0f} % | {part.sum()} | {100 * said[part].mean():.0f} % "
                  f"| {100 * came[part].mean():.0f} % |")  # fmt: skip
    print(f"Brier score {((said - came) ** 2).mean():.3f}, of one side in six each {5 / 36:.3f}")


if __name__ == "__main__":
    main()
