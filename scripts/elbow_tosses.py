"""Identify hinge and contact of the tossed elbow on some tosses, and predict the others from their first frames.

    ADD_DATA=... python scripts/elbow_tosses.py fit [runs/elbow_tosses.json]
    ADD_DATA=... python scripts/elbow_tosses.py predict [runs/elbow_tosses.json]

Fit: friction of the hinge, moments of inertia of the halves, friction, damping and stiffness of the contact are
shared; pose, velocities, angle of the hinge and its rate at the first frame belong to each toss. The first window ends
before anything touches: it sees hinge and inertia alone. Prediction: the start is fitted to the flight, and nothing
behind it is used.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import add
from add.design import InverseProblem, LevenbergMarquardt, Phase
from add.mocap import read_pose_csv

ROOT = Path(__file__).parents[1]
#: Every second toss with a clean flight is fitted.
EVERY = 2
#: How long after the flight the fit looks [s], and how often it may simulate.
WINDOWS = ((0.0, 8), (0.03, 12), (0.08, 8))
#: The recorded frame leans: the boxes rest, and everything falls, along this direction.
UP = np.array([-0.0210, 0.0254, 0.9995]) / np.linalg.norm([-0.0210, 0.0254, 0.9995])
GRAVITY = -9.81 * UP
HALF = np.array([0.05, 0.025, 0.025])
#: Errors are told this long after the flight, and at the end [s].
SOON = 0.1
#: A lowest corner this near to the table ends the flight; poses that leave the parabola by this much are rough [m].
CLOSE, MISFIT, SHORTEST = 0.012, 0.002, 6
POSE = ("position", "orientation", "velocity", "angular_velocity")
OWN = (*(f"bodies.one.{key}" for key in POSE), "couplings.hinge.start.angle", "couplings.hinge.start.rate")
SCALES = (0.002, 0.02, 0.05, 0.5, 0.02, 0.5)
HINGE = ("couplings.hinge.friction.coulomb", "couplings.hinge.friction.viscous")
CONTACT = ("contact.friction", "contact.damping", "contact.stiffness")
INERTIA = tuple(f"bodies.one.inertia.{axis}" for axis in range(3))


def tosses() -> list[Path]:
    """Return the files."""
    return sorted((Path(os.environ["ADD_DATA"]) / "rigid" / "csv" / "elbow_dair_pll").glob("*.csv"))


class Toss:
    """A recorded toss in true lengths: both halves, the frames of the flight, a first guess of the start."""

    def __init__(self, file: Path, base: add.Scene) -> None:
        spec = base.spec.recording
        joint = spec.pose.joint
        pose = read_pose_csv(file)
        self.file, self.times = file, pose.times
        self.turn = Rotation.from_matrix(pose.rotations)
        self.angle = np.unwrap(pose.extra[joint.angle])
        self.position = spec.scale * pose.position
        swing = Rotation.from_rotvec(self.angle[:, None] * np.array(joint.axis))
        self.turn_2 = self.turn * swing
        arm = np.array(joint.at_a) - swing.apply(np.array(joint.at_b))
        self.position_2 = self.position + self.turn.apply(arm)
        self.centre = 0.5 * (self.position + self.position_2)
        low = np.minimum(self._lowest(self.position, self.turn), self._lowest(self.position_2, self.turn_2))
        near = low - float(np.array(self.position[-1] * [1.0, 1.0, 0.0]) @ UP) < CLOSE
        self.frames = max(int(np.argmax(near)), SHORTEST)
        self.flight = float(self.times[self.frames - 1])

    @staticmethod
    def _lowest(position: np.ndarray, turn: Rotation) -> np.ndarray:
        """Return the height of a half's lowest corner in every frame."""
        return position @ UP - np.abs(turn.as_matrix().transpose(0, 2, 1) @ UP) @ HALF

    def table(self, seen: bool) -> list[float]:
        """Return a point of the table.

        Every recording is shifted so that its lowest corner rests at z = 0, which places the leaning table at the
        landing only within millimetres. What is to be fitted may see the lowest point of the first bounce.
        """
        below = self.centre[self.frames - 1] * [1.0, 1.0, 0.0]
        if not seen:
            return below.tolist()
        low = np.minimum(self._lowest(self.position, self.turn), self._lowest(self.position_2, self.turn_2))
        return (low[: self.frames + 6].min() * UP).tolist()

    @property
    def clean(self) -> bool:
        """Whether the flight is long, and the centre of mass flies a parabola."""
        t = self.times[: self.frames, None]
        fallen = self.centre[: self.frames] - 0.5 * t**2 * GRAVITY
        lines = np.concatenate([np.ones_like(t), t], axis=1)
        misfit = lines @ np.linalg.lstsq(lines, fallen, rcond=None)[0] - fallen
        return self.frames >= 12 and bool(np.abs(misfit).max() < MISFIT)

    def guess(self) -> list[np.ndarray]:
        """Return what `OWN` names, from the first frames."""
        n, t = min(self.frames, 8), self.times[: min(self.frames, 8)]
        velocity = np.polyfit(t, self.position[:n], 2)[1]
        spin = np.polyfit(t, (self.turn[:n] * self.turn[0].inv()).as_rotvec(), 2)[1]
        rate = np.polyfit(t, self.angle[:n], 2)[1]
        start = (self.position[0], self.turn[0].as_rotvec(), velocity, spin, self.angle[:1], [rate])
        return [np.asarray(part, dtype=float) for part in start]


def overrides(start: list[np.ndarray]) -> dict[str, object]:
    """Return the start as values of the scene."""
    out: dict[str, object] = {path: part.tolist() for path, part in zip(OWN, start, strict=True)}
    out[OWN[1]] = Rotation.from_rotvec(start[1]).as_quat()[[3, 0, 1, 2]].tolist()
    # The orientation of `two` gives the one at angle zero.
    out["bodies.two.orientation"] = out[OWN[1]]
    return out | {path: float(part[0]) for path, part in zip(OWN[4:], start[4:], strict=True)}


def with_values(base: add.Scene, values: dict[str, float]) -> add.Scene:
    """Return the scene with the shared numbers."""
    moments = [values[path] for path in INERTIA] + [0.0] * 3
    rest = {path: values[path] for path in (*HINGE, *CONTACT)}
    return add.apply_overrides(base, {**rest, "bodies.one.inertia": moments, "bodies.two.inertia": moments})


def scene_of(
    base: add.Scene, chosen: list[Toss], starts: list[list[np.ndarray]], ends: list[float], shared: tuple[str, ...]
) -> add.Scene:
    """Return a scene with one experiment a toss."""
    raw = json.loads(json.dumps(base.raw))
    recording = {**raw.pop("recording"), "time_offset": 0.0}
    raw["time"]["duration"] = max(ends)
    raw["parameters"], raw["experiments"] = [], []
    for path in shared:
        item: dict[str, object] = {"transform": "log", "scale": 0.2}
        if path in INERTIA:
            item |= {"paths": ["bodies.one.inertia", "bodies.two.inertia"], "components": [int(path[-1])]}
        else:
            item["path"] = path
        raw["parameters"].append(item)
    for toss, start, end in zip(chosen, starts, ends, strict=True):
        name = toss.file.stem
        source = {**recording, "file": str(toss.file)}
        changed = {**overrides(start), "time.duration": end, "obstacles.table.point": toss.table(seen=True)}
        raw["experiments"].append({"name": name, "overrides": changed, "recording": source})
        for path, scale in zip(OWN, SCALES, strict=True):
            raw["parameters"].append({"path": path, "scale": scale, "experiment": name})
    return add.scene_from_dict(raw)


def minimise(problem: InverseProblem, evaluations: int) -> tuple[list[np.ndarray], float]:
    """Return the physical values of every parameter and the rms distance of the corners [m]."""
    end = max(experiment.simulation.n_steps * experiment.simulation.stepper.dt for experiment in problem.experiments)
    phase = Phase("all", None, (0.0, end), evaluations)
    found = LevenbergMarquardt((phase,), damping=1e-2, objective_tolerance=1e-4).run(problem)
    p = problem.values(found.x)
    return [p[item.slice] for item in problem.parameters], float(np.sqrt(found.value / len(problem.experiments)))


def fit(result: Path) -> None:
    """Fit the chosen tosses and write what was found."""
    base = add.load_scene(ROOT / "scenes" / "elbow_toss.json")
    chosen = [toss for toss in (Toss(file, base) for file in tosses()) if toss.clean][::EVERY]
    starts = [toss.guess() for toss in chosen]
    moments = base.raw["bodies"]["one"]["inertia"]
    values = dict(zip(INERTIA, moments, strict=False))
    values |= {
        path: float(base.build().numbers.values[base.build().numbers.resolve(path)[0]][0])
        for path in (*HINGE, *CONTACT)
    }
    for window, evaluations in WINDOWS:
        begin = time.perf_counter()
        shared = (*HINGE, *INERTIA) if window == 0.0 else (*HINGE, *CONTACT)
        ends = [float(min(toss.times[-1], toss.flight + window)) for toss in chosen]
        found, rms = minimise(
            scene_of(with_values(base, values), chosen, starts, ends, shared).inverse_problem(), evaluations
        )
        values |= {path: float(part[0]) for path, part in zip(shared, found, strict=False)}
        own = found[len(shared) :]
        starts = [own[len(OWN) * k : len(OWN) * (k + 1)] for k in range(len(chosen))]
        print(f"{window:.2f} s after the flight: corners within {1e3 * rms:.2f} mm rms, {json.dumps(values)}, "
              f"{time.perf_counter() - begin:.0f} s", flush=True)  # fmt: skip
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text(json.dumps({**values, "fitted": [toss.file.stem for toss in chosen]}, indent=1), encoding="utf-8")


def predict(result: Path) -> np.ndarray:
    """Print how far the tosses that were not fitted end from where they were seen."""
    values = json.loads(result.read_text(encoding="utf-8"))
    fitted = set(values.pop("fitted"))
    base = with_values(add.load_scene(ROOT / "scenes" / "elbow_toss.json"), values)
    rows, clean = [], []
    for file in [file for file in tosses() if file.stem not in fitted]:
        toss = Toss(file, base)
        start, _ = minimise(scene_of(base, [toss], [toss.guess()], [toss.flight], ()).inverse_problem(), 10)
        changed = {"time.duration": float(toss.times[-1]), "obstacles.table.point": toss.table(seen=False)}
        built = add.apply_overrides(base, {**overrides(start), **changed}).build()
        run = built.run()
        steps = np.minimum(np.rint(toss.times / built.scene.spec.time.dt).astype(int), run.n_steps)
        q = run.q[steps]
        centre = 0.5 * (q[:, :3] + q[:, 6:9])
        away = 100 * np.linalg.norm(centre - toss.centre, axis=1) / 0.1
        turn, turn_2 = Rotation.from_rotvec(q[:, 3:6]), Rotation.from_rotvec(q[:, 9:12])
        turned = np.degrees((turn.inv() * toss.turn).magnitude())
        hinge = np.degrees((toss.turn_2.inv() * toss.turn * (turn.inv() * turn_2)).magnitude())
        clean.append(toss.clean)
        soon = min(int(np.searchsorted(toss.times, toss.flight + SOON)), toss.times.size - 1)
        rows.append(tuple(part[k] for k in (soon, -1) for part in (away, turned, hinge)))
        print(file.stem, toss.frames, toss.clean, np.round(rows[-1], 1), flush=True)
    errors, chosen = np.array(rows), np.array(clean)
    print(f"| tosses | | {SOON} s after the flight: centre [% of half] | rotation [deg] | hinge | at the end: centre "
          "| rotation | hinge |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for name, part in (("all", errors), ("clean flight", errors[chosen])):
        for kind, row in (("median", np.median(part, axis=0)), ("mean", part.mean(axis=0))):
            print(
                f"| {name} ({len(part)}) | {kind} | " + " | ".join(f"{value:.1f}" for value in row) + " |", flush=True
            )
    return errors


if __name__ == "__main__":
    if sys.argv[1:2] not in (["fit"], ["predict"]):
        sys.exit(__doc__)
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "runs" / "elbow_tosses.json"
    if sys.argv[1] == "fit":
        fit(target)
    predict(target)
