"""Figs. 7 and 8 with recordings from a mesh twice as fine, of throws that slip; then the bounces of a second throw."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from add.commands.cli import cli
from add.mocap import Recording
from add.scene import Scene, apply_overrides, scene_from_dict
from add.typing import FloatArray
from scripts.make_foam_recordings import TAKES
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import LONG_RUNS, ROOT, Context, Outcome, Row, clock
from scripts.reproduction.mocap import AXES, Recorded, marker_paths, young
from scripts.reproduction.running import scene

STARTS = ("position", "orientation", "velocity", "angular_velocity")
#: Where the start of each throw is guessed: off by centimetres, decimetres a second, radians a second.
OFF = {"position": (0.02, -0.02, 0.02), "velocity": (-0.2, -0.2, 0.2), "angular_velocity": (-4.0, 3.0, -4.0)}
RECORDINGS = ROOT / "data" / "recordings"
SHORT = {"time.duration": 0.05, "optimizer.phases": [{"name": "all", "max_evaluations": 2}]}


@final
@dataclass(frozen=True)
class Throws:
    """The throws of one body.

    Attributes
    ----------
    case : figure, scene, body
    flight, second_flight : time before the body touches anything, in the sliding and in the second throw [s]
    bounce : time at which it has left the floor again, in the sliding throw [s]
    finer : path -> value
        The finer mesh of `add converge`: not that of the recording, which a fit does not know.
    tolerance, points_tolerance : decrease that ends a phase, of the objective at its start, by markers, by points [-]
    """

    case: Recorded
    flight: float
    bounce: float
    second_flight: float
    finer: Mapping[str, Any]
    tolerance: float
    points_tolerance: float

    @property
    def material(self) -> str:
        """Path of the material."""
        return f"bodies.{self.case.body}.material"

    def take(self, kind: str) -> dict[str, Any]:
        """Return path -> true value of a throw."""
        return TAKES[f"{self.case.recording}_{kind}"].truth

    def true(self) -> dict[str, float]:
        """Return path -> true value of what is to be found besides the throw."""
        truth = self.take("sliding")
        mu, lame = truth[f"{self.material}.mu"], truth[f"{self.material}.lambda"]
        return {
            f"{self.material}.young": young(mu, lame),
            f"{self.material}.poisson": lame / (2.0 * (lame + mu)),
            f"{self.material}.viscosity": truth[f"{self.material}.viscosity"],
            "contact.friction": truth["contact.friction"],
            "contact.pairs.0.friction": truth["contact.pairs.0.friction"],
        }


NAMES = {
    "young": "E [Pa]",
    "poisson": "Poisson's ratio [-]",
    "viscosity": "viscosity [Pa s]",
    "contact.friction": "friction of the floor [-]",
    "contact.pairs.0.friction": "friction of the wall [-]",
}


def named(path: str) -> str:
    """Return how a number is called in the table."""
    return NAMES.get(path) or NAMES[path.rpartition(".")[2]]


def guess(throws: Throws, kind: str) -> dict[str, Any]:
    """Return overrides with the guess of a throw; orientations are guessed as they are."""
    body, truth = throws.case.body, throws.take(kind)
    start = {f"bodies.{body}.orientation": truth[f"bodies.{body}.orientation"]}
    for key, off in OFF.items():
        path = f"bodies.{body}.{key}"
        start[path] = [float(x) for x in np.round(np.array(truth[path]) + off, 4)]
    return start


def fitted(throws: Throws, short: bool) -> Scene:
    """Return the scene that is fitted to the markers of the sliding throw, in moduli E and nu."""
    case, material = throws.case, throws.material
    base = scene(case.scene)
    given = dict(base.raw["bodies"][case.body]["material"])
    mu, lame = given.pop("mu"), given.pop("lambda")
    given |= {"young": young(mu, lame), "poisson": lame / (2.0 * (lame + mu))}
    kept = [item for item in base.raw["parameters"] if item["path"].rpartition(".")[2] not in ("mu", "lambda")]
    moduli = [
        {"path": f"{material}.young", "transform": "log", "scale": 0.5, "bounds": [2e3, 2e6]},
        {"path": f"{material}.poisson", "scale": 0.1, "bounds": [-0.4, 0.45]},
    ]
    starts = [f"bodies.{case.body}.{key}" for key in STARTS]
    rest = [item["path"] for item in moduli + kept if item["path"] not in starts]
    phases = [
        {"name": "flight", "parameters": starts, "end_time": throws.flight, "max_evaluations": 8},
        {"name": "bounce", "parameters": rest, "end_time": throws.bounce, "max_evaluations": 8},
        {"name": "all"},
    ]
    setting = TAKES[f"{case.recording}_sliding"].setting
    changes = {
        f"bodies.{case.body}.material": given,
        "recording.file": str(RECORDINGS / f"{case.recording}_sliding.csv"),
        "parameters": kept + moduli,
        "optimizer.phases": phases,
        "optimizer.objective_tolerance": throws.tolerance,
        **guess(throws, "sliding"),
        **setting,
    }
    return apply_overrides(base, changes | SHORT if short else changes)


def seen_as_points(base: Scene, throws: Throws, short: bool) -> Scene:
    """Return the same fit of the points on the surface, without markers."""
    raw = json.loads(json.dumps(base.raw))
    raw.pop("recording")
    case = throws.case
    raw["objective"] = [{"type": "cloud", "body": case.body, "file": str(RECORDINGS / f"{case.recording}_sliding.npz"),
                         "every": 10 if short else 1}]  # fmt: skip
    raw["optimizer"]["objective_tolerance"] = throws.points_tolerance
    return scene_from_dict(raw, folder=base.source.parent if base.source else None)


def add(*arguments: object) -> None:
    """Run `add` as the command line does, with an error where that ends with one."""
    cli.main([*map(str, arguments), "-q"], standalone_mode=False)


def optimized(asked: Scene, folder: Path, name: str, finer: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the result of `add optimize`, and of `add converge` with a finer mesh; what is done already is kept."""
    run, path = folder / name, folder / f"{name}.json"
    if not (run / "result.json").is_file():
        asked.save(path)
        add("optimize", path, "-o", run, "--force")
    if finer and not (run / "discretisation.json").is_file():
        overrides = folder / "finer.json"
        overrides.write_text(json.dumps(dict(finer)), encoding="utf-8")
        add("converge", path, "-o", run, "--time-levels", 1, "--finer", overrides)
    found: dict[str, Any] = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return found


def distances(t: FloatArray, path: FloatArray, recording: Recording) -> FloatArray:
    """Return how far the recorded markers are from a run's (frames, markers), NaN where not seen [m]."""
    columns = path.reshape(len(t), -1)
    at = np.stack([np.interp(recording.times, t, column) for column in columns.T], axis=1)
    apart = np.linalg.norm(at.reshape(recording.positions.shape) - recording.positions, axis=2)
    return np.asarray(np.where(recording.valid, apart, np.nan))


def rms(apart: FloatArray) -> float:
    """Return the root mean square over the markers that were seen [mm]."""
    return float(1e3 * np.sqrt(np.nanmean(apart**2)))


def predicted(base: Scene, throws: Throws, numbers: Mapping[str, float], short: bool) -> dict[str, Any]:
    """Fit the flight of the second throw with given numbers, and go on with the run that it begins."""
    case = throws.case
    starts = [item for item in base.raw["parameters"] if item["path"].rpartition(".")[2] in STARTS]
    flight = {"name": "flight", "end_time": 0.02 if short else throws.second_flight, "max_evaluations": 12}
    setting = TAKES[f"{case.recording}_second"].setting
    changes = {
        **numbers,
        **guess(throws, "second"),
        **(setting if not short else {}),
        "recording.file": str(RECORDINGS / f"{case.recording}_second.csv"),
        "parameters": starts,
        "optimizer.phases": [flight],
    }
    asked = apply_overrides(base, changes)
    built, problem = asked.build(), asked.inverse_problem()
    with clock() as taken:
        found = problem.optimize()
    t, path, one = marker_paths(built.markers, problem, found.x)
    recording = problem.experiments[0].recording
    assert recording is not None
    apart, before = distances(t, path, recording), recording.times <= flight["end_time"]
    said = {"simulations": found.evaluations, "optimisation": taken.seconds, "seconds": one.seconds,
            "flight": rms(apart[before]), "bounces": rms(apart[~before])}  # fmt: skip
    return said | {"t": t, "path": path, "recording": recording}


def run(throws: Throws, context: Context) -> Outcome:
    """Fit markers and points, say how finer steps and meshes change that, and predict the second throw."""
    case, true = throws.case, throws.true()
    base = fitted(throws, context.short)
    by_points = seen_as_points(base, throws, context.short)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) if context.short else LONG_RUNS / f"{case.figure}_sliding"
        folder.mkdir(parents=True, exist_ok=True)
        markers = optimized(base, folder, "markers", None if context.short else throws.finer)
        points = optimized(by_points, folder, "points")
    rows = [number(path, x, markers, points) for path, x in true.items()]
    rows += [
        Row("markers: root mean square (noise: 0.87) [mm]", f"{1e3 * markers['fit']['rms']:.2f}"),
        Row("simulations: markers; points", f"{markers['evaluations']}; {points['evaluations']}"),
    ]
    found = {path: markers["parameters"][path]["value"] for path in true}
    materials = {"found": found, "guess": {}, "truth": true}
    said = {name: predicted(base, throws, numbers, context.short) for name, numbers in materials.items()}
    key = f"second.{case.body}"
    rows += [
        Row("second throw: simulations to fit the flight", str(said["found"]["simulations"]), f"{key}.simulations"),
        Row("second throw: one simulation [s]", f"{said['found']['seconds']:.2f}", f"{key}.seconds"),
        Row("second throw: optimisation [s]", f"{said['found']['optimisation']:.0f}", f"{key}.optimisation"),
    ]
    for name, text in (("found", "the numbers found"), ("guess", "those at the start of the fit"),
                       ("truth", "the true numbers")):  # fmt: skip
        rows.append(Row(
            f"second throw with {text}: markers, root mean square, flight (fitted); bounces (predicted) [mm]",
            f"{said[name]['flight']:.2f}; {said[name]['bounces']:.2f}",
        ))  # fmt: skip
    name = f"{case.figure}_second.png"
    draw(context, name, throws, said)
    errors = {path: {"markers": markers["parameters"][path]["value"] / x - 1.0,
                     "points": points["parameters"][path]["value"] / x - 1.0} for path, x in true.items()}  # fmt: skip
    values = {"errors": errors, "second": {name: {key: item[key] for key in ("flight", "bounces", "simulations")}
                                           for name, item in said.items()}}  # fmt: skip
    caption = "The second throw, marker 'east': recorded (dots), with the numbers found, and with the guess (dashed)."
    return Outcome(tuple(rows), {name: caption}, NOTES, values)


NOTES = (
    "The recordings are synthetic: a mesh twice as fine as the fitted one, half the step, 0.5 mm of noise, frames "
    "missing (`scripts/make_foam_recordings.py`). The throws are short, fast and spin, so that the bodies slip where "
    "they touch: friction beyond the one at which a bounce sticks leaves no trace. The guess of the material is the "
    "paper's; the throw is guessed 2 cm, 0.2 m/s and 4 rad/s off. Points: 60 clouds a second of 150 points all over "
    "the surface with the same noise, nothing else.",
    "The bar is one standard error: of the noise, and with `add converge` (half the step; a mesh finer by a third or "
    "more, not that of the recording) of the discretisation. Points: of the noise alone.",
    "Of the second throw only the flight is fitted; the bounces are the prediction. With the true numbers it shows "
    "the part of mesh and step.",
)


def number(path: str, true: float, markers: Mapping[str, Any], points: Mapping[str, Any]) -> Row:
    """Return the row of one number: from markers with its bars, and from points."""
    texts = []
    for source in (markers, points):
        entry = source["parameters"][path]
        bar = entry.get("standard_error")
        off = f"{100.0 * (entry['value'] / true - 1.0):+.1f} %"
        texts.append(f"{entry['value']:.4g}" + ("" if bar is None else f" +- {bar:.2g}") + f" ({off})")
    start = markers["parameters"][path]["start"]
    return Row(f"{named(path)}: start -> markers; points (truth)", f"{start:.4g} -> {'; '.join(texts)} ({true:.4g})")


def draw(context: Context, name: str, throws: Throws, said: Mapping[str, dict[str, Any]]) -> None:
    """Draw the way and the height of one marker of the second throw."""
    found, recording = said["found"], said["found"]["recording"]
    seen = recording.valid[:, 0]
    with figure(context.image(name), 6.4, 2.6) as drawn:
        panel = drawn.subplots()
        for axis in range(3):
            panel.plot(recording.times[seen], recording.positions[seen, 0, axis], ".", color=f"C{axis}", ms=3)
            panel.plot(found["t"], found["path"][:, 0, axis], f"C{axis}", lw=1.0, label=AXES[axis])
            panel.plot(said["guess"]["t"], said["guess"]["path"][:, 0, axis], f"C{axis}--", lw=0.8)
        panel.axvspan(0.0, throws.second_flight, color="0.92", lw=0)
        panel.set(xlabel="t [s]", ylabel="[m]", xlim=(0, found["t"][-1]), title=f"second throw, '{recording.names[0]}'")
        panel.legend()
