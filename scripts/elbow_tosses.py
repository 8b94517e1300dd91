"""Identify hinge and contact of the tossed elbow on some tosses, and predict the others from their first frames.

    ADD_DATA=... python -m scripts.elbow_tosses fit [RECORDING ...] [--result runs/elbow_tosses.json]
    ADD_DATA=... python -m scripts.elbow_tosses predict [RECORDING ...] [--result runs/elbow_tosses.json]

RECORDING is a CSV file or a folder of them; without any, those of the study's own folder. Of a folder every second
toss with a clean flight is fitted and the others are predicted; files that are named are all fitted, or all predicted.
The recordings are two sessions with the camera's frame at two leans, told apart by their number (`Session`); other
recordings say theirs by --up.

Fit: friction of the hinge, moments of inertia of the halves, friction, damping and stiffness of the contact are
shared; pose, velocities, angle of the hinge and its rate at the first frame belong to each toss. The first window ends
before anything touches: it sees hinge and inertia alone. Prediction: the start is fitted to the flight, and nothing
behind it is used but the height of the table: that of the last frames, in which the halves rest, and the mean lift of
the first bounce above it over the fitted tosses.

--table toss: height and lean of the table belong to each toss, too. A fit finds them from its windows; a prediction
from the flight and what follows within --seen seconds (0.04: the first bounce), and no last frame is used. --seen
alone lets the start see as much, on a table through the lowest point of the first bounce.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import numpy as np
from scipy.spatial.transform import Rotation

import add
from add.errors import InputError
from add.inverse import InverseProblem, LevenbergMarquardt, Phase
from add.mocap import read_pose_csv
from add.ties import axes_across
from scripts.recordings import arguments, marks, read_result, recordings, scene_of_study

ROOT = Path(__file__).parents[1]
#: Every second toss with a clean flight is fitted.
EVERY = 2
#: How long after the flight the fit looks [s], and how often it may simulate.
WINDOWS = ((0.0, 8), (0.03, 12), (0.08, 8))
#: The folder below ADD_DATA.
FOLDER = ("rigid", "csv", "elbow_dair_pll")
HALF = np.array([0.05, 0.025, 0.025])
#: Errors are told this long after the flight, and at the end [s].
SOON = 0.1
#: A lowest corner this near to the table ends the flight; poses that leave the parabola by this much are rough [m].
CLOSE, MISFIT, SHORTEST = 0.012, 0.002, 6
#: Last frames, in which the halves rest.
RESTING = 6
POSE = ("position", "orientation", "velocity", "angular_velocity")
OWN = (*(f"bodies.one.{key}" for key in POSE), "couplings.hinge.start.angle", "couplings.hinge.start.rate")
SCALES = (0.002, 0.02, 0.05, 0.5, 0.02, 0.5)
HINGE = ("couplings.hinge.friction.coulomb", "couplings.hinge.friction.viscous")
CONTACT = ("contact.friction", "contact.damping", "contact.stiffness")
#: Height and lean of the table under one toss: scale, and how far they are from the session's (standard deviation; the
#: spread of landings and of the halves at rest) [m], [rad].
TABLE = {"obstacles.table.point.2": (0.002, 0.003), "obstacles.table.normal": (0.01, 0.0087)}
#: One standard deviation of these counts as much as corners that are off by this much [m].
TRUST = 1e-3
INERTIA = tuple(f"bodies.one.inertia.{axis}" for axis in range(3))


@final
@dataclass(frozen=True)
class Session:
    """Recordings made with one position of the camera.

    Attributes
    ----------
    name : str
    up : (3,) unit vector
        The recorded frame's direction that is vertical: the boxes rest, and everything falls, along it.
    """

    name: str
    up: tuple[float, float, float]

    @property
    def normal(self) -> np.ndarray:
        """The vertical as an array of unit length (3,)."""
        return np.array(self.up) / np.linalg.norm(self.up)

    @property
    def gravity(self) -> np.ndarray:
        """Gravity in the recorded frame (3,) [m/s^2]."""
        return -9.81 * self.normal


#: Files up to number LEANING lean by 2.4 degrees, those after by 0.1 (medians of the normals in the last six frames).
LEANING = 322
LEANT, LEVEL = Session("leant", (-0.0305, 0.0285, 0.9991)), Session("level", (0.0019, 0.0016, 1.0))


def session_of(file: Path) -> Session:
    """Return the session of a file ``toss_<number>.csv``.

    Raises
    ------
    InputError
        If the name has no number.
    """
    number = file.stem.rpartition("_")[2]
    if not number.isdigit():
        raise InputError("the session of a toss is known by its number, or by --up", file=file, found=file.name,
                         expected="toss_<number>.csv")  # fmt: skip
    return LEANT if int(number) <= LEANING else LEVEL


def tosses() -> list[Path]:
    """Return the files of the study."""
    return list(recordings([], *FOLDER).files)


class Toss:
    """A recorded toss in true lengths: both halves, the frames of the flight, a first guess of the start."""

    def __init__(self, file: Path, base: add.Scene, session: Session | None = None) -> None:
        self.session = session or session_of(file)
        spec = base.recording
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
        self.low = np.minimum(self._lowest(self.position, self.turn), self._lowest(self.position_2, self.turn_2))
        near = self.low - self.resting < CLOSE
        self.frames = max(int(np.argmax(near)), SHORTEST)
        self.flight = float(self.times[self.frames - 1])

    def _lowest(self, position: np.ndarray, turn: Rotation) -> np.ndarray:
        """Return the height of a half's lowest corner in every frame."""
        up = self.session.normal
        return position @ up - np.abs(turn.as_matrix().transpose(0, 2, 1) @ up) @ HALF

    @property
    def landing(self) -> float:
        """Height of the lowest point of the first bounce along the normal [m]."""
        return float(self.low[: self.frames + 6].min())

    @property
    def resting(self) -> float:
        """Height of the lowest corner at rest, in the last frames [m]."""
        return float(np.median(self.low[-RESTING:]))

    def frame(self, height: float) -> dict[str, object]:
        """Return what of the scene is the recorded frame's: gravity, and the table at a height along the normal [m]."""
        return {
            "gravity": self.session.gravity.tolist(),
            "obstacles.table.normal": self.session.normal.tolist(),
            "obstacles.table.point": (height * self.session.normal).tolist(),
        }

    @property
    def table(self) -> list[np.ndarray]:
        """The table through the lowest point of the first bounce, as the numbers of `TABLE`."""
        return [np.array([self.landing * self.session.normal[2]]), np.zeros(2)]

    @property
    def clean(self) -> bool:
        """Whether the flight is long, and the centre of mass flies a parabola."""
        t = self.times[: self.frames, None]
        fallen = self.centre[: self.frames] - 0.5 * t**2 * self.session.gravity
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
    base: add.Scene,
    chosen: list[Toss],
    starts: list[list[np.ndarray]],
    ends: list[float],
    shared: tuple[str, ...],
    tables: list[list[np.ndarray]] | None = None,
) -> add.Scene:
    """Return a scene with one experiment a toss; with ``tables`` to start from, each finds its own, as `TABLE` says."""
    raw = json.loads(json.dumps(base.raw))
    recording = {**raw.pop("recording"), "time_offset": 0.0, "crop": None}
    raw["time"]["duration"] = max(ends)
    raw["parameters"], raw["experiments"] = [], []
    for path in shared:
        item: dict[str, object] = {"transform": "log", "scale": 0.2}
        if path in INERTIA:
            item |= {"paths": ["bodies.one.inertia", "bodies.two.inertia"], "components": [int(path[-1])]}
        else:
            item["path"] = path
        raw["parameters"].append(item)
    if tables is not None:
        raw["obstacles"]["table"]["adjustable"] = True
    for k, (toss, start, end) in enumerate(zip(chosen, starts, ends, strict=True)):
        name = toss.file.stem
        source = {**recording, "file": str(toss.file)}
        changed = {**overrides(start), **toss.frame(toss.landing), "time.duration": end}
        raw["experiments"].append({"name": name, "overrides": changed, "recording": source})
        for path, scale in zip(OWN, SCALES, strict=True):
            raw["parameters"].append({"path": path, "scale": scale, "experiment": name})
        if tables is None:
            continue
        expected = toss.table[0][0], 0.0
        for (path, (scale, sigma)), mean, first in zip(TABLE.items(), expected, tables[k], strict=True):
            raw["parameters"].append(
                {"path": path, "scale": scale, "experiment": name, "start": np.ravel(first).tolist()}
            )
            known = {"type": "prior", "parameter": f"{path}@{name}", "mean": mean, "sigma": sigma, "weight": TRUST**2}
            raw["objective"].append(known)
    return add.scene_from_dict(raw)


def minimise(problem: InverseProblem, evaluations: int) -> tuple[list[np.ndarray], float]:
    """Return the physical values of every parameter and the rms distance of the corners [m]."""
    end = max(experiment.simulation.n_steps * experiment.simulation.stepper.dt for experiment in problem.experiments)
    phase = Phase("all", None, (0.0, end), evaluations)
    found = LevenbergMarquardt((phase,), damping=1e-2, objective_tolerance=1e-4).run(problem)
    p = problem.values(found.x)
    value = replace(problem, priors=()).value(found.x)[0] if problem.priors else found.value
    return [p[item.slice] for item in problem.parameters], float(np.sqrt(value / len(problem.experiments)))


def fit(result: Path, named: Sequence[Path] = (), session: Session | None = None, own_table: bool = False) -> None:
    """Fit the chosen tosses and write what was found; with ``own_table`` each has a table of its own.

    Raises
    ------
    InputError
        If no toss with a clean flight is there.
    """
    given = recordings(named, *FOLDER)
    base = scene_of_study("elbow_toss", given.files[0])
    clean = [toss for toss in (Toss(file, base, session) for file in given.found) if toss.clean]
    chosen = [Toss(file, base, session) for file in given.named] + clean[::EVERY]
    if not chosen:
        raise InputError(f"none of {len(given.files)} recordings has a clean flight to fit")
    starts, tables = [toss.guess() for toss in chosen], [toss.table for toss in chosen]
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
        own_tables = tables if own_table and window else None
        scene = scene_of(with_values(base, values), chosen, starts, ends, shared, own_tables)
        found, rms = minimise(scene.inverse_problem(), evaluations)
        values |= {path: float(part[0]) for path, part in zip(shared, found, strict=False)}
        own, each = found[len(shared) :], len(OWN) + (len(TABLE) if own_tables else 0)
        starts = [own[each * k : each * k + len(OWN)] for k in range(len(chosen))]
        if own_tables:
            tables = [own[each * k + len(OWN) : each * (k + 1)] for k in range(len(chosen))]
            above = np.array(
                [1e3 * (table[0][0] - toss.table[0][0]) for table, toss in zip(tables, chosen, strict=True)]
            )
            lean = np.degrees([table[1] for table in tables])
            print(f"tables: {above.mean():.2f} +- {above.std():.2f} mm above the lowest point of the bounce, tilts "
                  f"{lean.mean(axis=0).round(2)} +- {lean.std(axis=0).round(2)} degrees")  # fmt: skip
        print(f"{window:.2f} s after the flight: corners within {1e3 * rms:.2f} mm rms, {json.dumps(values)}, "
              f"{time.perf_counter() - begin:.0f} s", flush=True)  # fmt: skip
    result.parent.mkdir(parents=True, exist_ok=True)
    # The poses at rest lie lower than the surface that the first bounce meets.
    lift = [toss.landing - toss.resting for toss in chosen]
    print(f"the first bounce is {1e3 * np.mean(lift):.2f} mm above the table at rest, +- {1e3 * np.std(lift):.2f} mm")
    whole = {**values, "lift": float(np.mean(lift)), "fitted": marks([toss.file for toss in chosen])}
    result.write_text(json.dumps(whole, indent=1), encoding="utf-8")


def found_table(toss: Toss, own: list[np.ndarray]) -> dict[str, object]:
    """Return the table that a toss found for itself as values of the scene."""
    frame, start = toss.frame(toss.landing), toss.session.normal
    normal = Rotation.from_rotvec(own[1] @ axes_across(start)).apply(start)
    point = [*frame["obstacles.table.point"][:2], float(own[0][0])]
    return {"obstacles.table.normal": normal.tolist(), "obstacles.table.point": point}


def predict(
    result: Path,
    named: Sequence[Path] = (),
    session: Session | None = None,
    own_table: bool = False,
    seen: float = 0.0,
) -> np.ndarray:
    """Print how far the tosses that were not fitted end from where they were seen.

    The start of each is fitted up to ``seen`` seconds after its flight, with ``own_table`` its table, too.
    """
    values, fitted = read_result(result)
    files = recordings(named, *FOLDER).unseen(fitted)
    lift = values.pop("lift")
    base = with_values(scene_of_study("elbow_toss", files[0]), values)
    rows, clean = [], []
    for file in files:
        toss = Toss(file, base, session)
        start, _ = minimise(scene_of(base, [toss], [toss.guess()], [toss.flight], ()).inverse_problem(), 10)
        table = toss.frame(toss.landing if seen else toss.resting + lift)
        if seen:
            end = min(toss.flight + seen, float(toss.times[-1]))
            tables = [toss.table] if own_table else None
            own, _ = minimise(scene_of(base, [toss], [start], [end], (), tables).inverse_problem(), 12)
            start = own[: len(OWN)]
            table |= found_table(toss, own[len(OWN) :]) if own_table else {}
        changed = {"time.duration": float(toss.times[-1]), **table}
        built = add.apply_overrides(base, {**overrides(start), **changed}).build()
        run = built.run()
        steps = np.minimum(np.rint(toss.times / built.scene.time.dt).astype(int), run.n_steps)
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
    level = np.array([(session or session_of(file)) is LEVEL for file in files])
    groups = {"all": np.ones_like(chosen), "clean flight": chosen, "clean flight, level session": chosen & level}
    for name, part in ((name, errors[kept]) for name, kept in groups.items() if kept.any()):
        for kind, row in (("median", np.median(part, axis=0)), ("mean", part.mean(axis=0))):
            print(
                f"| {name} ({len(part)}) | {kind} | " + " | ".join(f"{value:.1f}" for value in row) + " |", flush=True
            )
    return errors


def main() -> None:
    """Run what the command line asks for."""
    parser = arguments(__doc__, ROOT / "runs" / "elbow_tosses.json")
    parser.add_argument("--up", nargs=3, type=float, metavar=("X", "Y", "Z"), help="vertical of the recordings' frame")
    parser.add_argument("--table", choices=("session", "toss"), default="session", help="whose height and lean")
    parser.add_argument("--seen", type=float, default=0.0, metavar="S", help="time after the flight that a start sees")
    asked = parser.parse_args()
    own_table = asked.table == "toss"
    session = Session("given", tuple(asked.up)) if asked.up else None
    if asked.task == "fit":
        fit(asked.result, asked.recordings, session, own_table)
        if asked.recordings and not any(path.is_dir() for path in asked.recordings):
            return  # files that were named are all fitted
    predict(asked.result, asked.recordings, session, own_table, asked.seen or (0.04 if own_table else 0.0))


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
