"""What damps the silicone beam: laws fitted to the take under gravity alone, judged on it and on the one with a weight.

    ADD_DATA=... python -m scripts.silicone_beam_damping [CANDIDATE ...] [--recordings FOLDER]

On a coarse mesh with steps of 5 ms; Young's modulus, the sideways gravity and the release are fitted beside the numbers
of each candidate. A number pays where `COUNT` ln(misfit) falls by more than ln `COUNT` (Schwarz 1978). Errors of
frequency, decrement and sag are those of `scripts.silicone_beam_prediction`, of Tip 1; the rms is over the largest
displacement, after the best shift of time. First, what the envelopes of the recordings say without any model:
a_k = (a_0 + c) exp(-delta k/2) - c, with the decrement delta and the part c of the amplitude that dry friction takes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import least_squares, minimize_scalar
from scipy.signal import find_peaks

import add
from add.commands.optimize import optimize_scene
from add.errors import InputError
from add.io.runfolder import RunFolder
from scripts.recordings import SCENES, usual
from scripts.silicone_beam_prediction import TAKES, numbers, swing, takes

BEAM = "bodies.beam.material"
#: Coordinates of the take under gravity that count: what is left over hangs together (`add optimize` says how many).
COUNT = 48
#: Half periods of the envelopes: those behind are within the noise of the markers.
HALVES = {"gravity": 24, "load52": 20}


def _log(path: str, low: float, high: float) -> dict[str, Any]:
    return {"path": path, "transform": "log", "bounds": [low, high]}


VISCOSITY = [_log(f"{BEAM}.viscosity", 1, 1e4)]
EXPONENT = [{"path": f"{BEAM}.viscosity_exponent", "bounds": [1, 4]}]


def _branch(share: float, time: float) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    path = f"{BEAM}.relaxation.one"
    free = [{"path": f"{path}.share", "bounds": [0.001, 0.9]}, _log(f"{path}.time", 1e-3, 10)]
    return {"relaxation": {"one": {"share": share, "time": time}}}, free


def _band(low: float, high: float) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    changed = {"viscosity": 0.0, "relaxation": {"band": {"loss": 0.09, "frequencies": [low, high]}}}
    return changed, [_log(f"{BEAM}.relaxation.band.loss", 0.01, 0.5)]


#: How long the hand of "release" takes to let go [s], beside the tip in the place of 3/8 of the beam's weight [N].
HAND, HELD = 0.02, 0.354
FAST, SLOW = _branch(0.3, 0.01), _branch(0.08, 1.0)
#: A clamp that yields: springs and dashpots of the 9 nodes at the root.
CLAMP = "couplings.clamp"
#: Candidate -> what its material is, what is fitted, how many numbers more than viscosity alone has.
CANDIDATES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], int]] = {
    "viscosity": ({}, VISCOSITY, 0),
    "branch": (FAST[0] | {"viscosity": 0.0}, FAST[1], 1),
    "viscosity-and-branch": (SLOW[0], VISCOSITY + SLOW[1], 2),
    "rate": ({"viscosity_exponent": 2.1}, VISCOSITY + EXPONENT, 1),
    "rate-and-branch": (SLOW[0] | {"viscosity_exponent": 2.1}, VISCOSITY + EXPONENT + SLOW[1], 3),
    "band-4-10": (*_band(4.0, 10.0), 0),
    "band-3-30": (*_band(3.0, 30.0), 0),
    "release": (SLOW[0], VISCOSITY + SLOW[1], 3),
    "clamp": ({}, [*VISCOSITY, _log(f"{CLAMP}.stiffness", 10, 1e5), _log(f"{CLAMP}.damping", 1e-3, 1e2)], 2),
}


@dataclass(frozen=True)
class Recorded:
    """The fall of Tip 1 in a take, from where the beam is held."""

    name: str
    times: np.ndarray
    fall: np.ndarray

    def of(self, t: np.ndarray, z: np.ndarray, frequency: float) -> dict[str, float]:
        """Return errors of frequency, decrement, sag, first peak (shares), and the rms over the largest fall."""
        inside = (self.times > 0.15) & (self.times <= t[-1])
        found = numbers(*swing(t[t > 0.15], z[t > 0.15], frequency))
        seen = numbers(*swing(self.times[inside], self.fall[inside], frequency))
        model, largest = CubicSpline(t, z), np.abs(self.fall).max()

        def rms(shift: float) -> float:
            at = self.times[(self.times - shift > 0.0) & (self.times - shift < t[-1])]
            return float(np.sqrt(np.mean((model(at - shift) - np.interp(at, self.times, self.fall)) ** 2)) / largest)

        out = {key: a / b - 1.0 for key, a, b in zip(("f", "decrement", "sag"), found, seen, strict=True)}
        return out | {"peak": z.min() / self.fall.min() - 1.0, "rms": minimize_scalar(rms, (-0.01, 0.01)).fun}


def recorded(file: Path, name: str, window: tuple[float, float], release: float) -> Recorded:
    """Return a take in the frame of the beam."""
    markers = add.read_take(file).require_markers()
    markers = markers.rename({one: one.replace(" ", "") for one in markers.names})
    places = json.loads((SCENES / "silicone_beam.json").read_text(encoding="utf-8"))["recording"]["register"]["markers"]
    take, _ = add.register(markers, places, window=window)
    held = take.crop(*window).mean()[0, 2]
    seen = (take.times > release) & (take.times <= release + 2.0)
    return Recorded(name, take.times[seen] - release, 1e3 * (take.positions[seen, 0, 2] - held))


def envelope(take: Recorded) -> tuple[float, float, float]:
    """Return the decrement without friction, and decrement and dry part [mm] of the law with it."""
    t = np.arange(take.times[0], take.times[-1], 1e-3)
    z = CubicSpline(take.times, take.fall)(t)
    peaks = np.sort(np.concatenate([find_peaks(sign * z, distance=50, prominence=1e-2)[0] for sign in (1.0, -1.0)]))
    a = np.abs(np.diff(z[peaks]))[: HALVES[take.name]] / 2.0
    k = np.arange(a.size)

    def off(p: np.ndarray) -> np.ndarray:
        return np.log(np.maximum((p[0] + p[2]) * np.exp(-0.5 * p[1] * k) - p[2], 1e-6) / a)

    plain = least_squares(lambda p: off(np.array([*p, 0.0])), [a[0], 0.3])
    dry = least_squares(off, [*plain.x, 0.01])
    return plain.x[1], dry.x[1], dry.x[2]


def scene(candidate: str, file: Path) -> dict[str, Any]:
    """Return the scene of a candidate, to be fitted to a file."""
    changed, free, _ = CANDIDATES[candidate]
    raw = json.loads((SCENES / "silicone_beam.json").read_text(encoding="utf-8"))
    body = raw["bodies"]["beam"]
    body["mesh"]["divisions"], raw["time"]["dt"] = [8, 2, 2], 0.005
    body["material"] |= {"young": 280000, "viscosity": 450} | changed
    if candidate == "clamp":
        root = body.pop("pins")[0]["where"]
        raw["couplings"] = {"clamp": {"type": "attachment", "nodes": "beam", "where": root, "stiffness": 3000.0,
                                      "damping": 1.0}}  # fmt: skip
    if candidate == "release":
        table = {"type": "table", "times": [0, HAND], "values": [[0, 0, HELD], [0, 0, 0]]}
        raw["signals"] = {"hand": table}
        body["loads"] = [{"where": {"box": {"min": [0.05, None, None]}}, "force": {"signal": "hand"}}]
    raw["recording"] |= {"file": str(file), "time_offset": 0.7}
    raw["parameters"] = [one for one in raw["parameters"] if not one["path"].endswith("viscosity")] + free
    raw.pop("expect"), raw.pop("check")
    return raw


def fall(raw: dict[str, Any], mass: float) -> tuple[np.ndarray, np.ndarray]:
    """Return times [s] and the fall of Tip 1 [mm] of a scene, with a mass hung on the top edge by a string."""
    raw = json.loads(json.dumps(raw))
    for key in ("recording", "objective", "parameters", "optimizer"):
        raw.pop(key, None)
    if mass:
        edge = {"box": {"min": [0.05, None, 0.015]}}
        raw["bodies"]["beam"]["point_masses"] = [{"where": edge, "mass": mass, "inertia_axes": "z"}]
        for hand in raw.get("signals", {}).values():
            hand["values"][0][2] += 9.81 * mass
    built = add.scene_from_dict(raw).build()
    run = built.run()
    z = np.array([built.markers.points(run.kinematics(k), built.theta)[0][0, 2] for k in range(run.n_steps + 1)])
    return run.t, 1e3 * (z - z[0])


def row(candidate: str, file: Path, data: list[Recorded], reference: float | None) -> tuple[str, float]:
    """Return a candidate's row of the table, fitted to a file, and its misfit [m^2]."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        result = optimize_scene(add.scene_from_dict(scene(candidate, file)), RunFolder(run))
        fitted = json.loads((run / "fitted.json").read_text(encoding="utf-8"))
    misfit = float(result["objective"]["end"])
    score = COUNT * np.log((reference or misfit) / misfit) - CANDIDATES[candidate][2] * np.log(COUNT)
    found = {key.rpartition("material.")[2]: f"{one['value']:.4g}" for key, one in result["parameters"].items()}
    text = ", ".join(f"{key} {value}" for key, value in found.items())
    cells = [candidate, text, f"{1e8 * misfit:.2f}", f"{score:+.0f}"]
    for take, (_, mass, _, _, frequency) in zip(data, TAKES, strict=True):
        cells += [f"{100 * value:+.1f}" for value in take.of(*fall(fitted, mass), frequency).values()]
    return "| " + " | ".join(cells) + " |", misfit


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", nargs="*", metavar="CANDIDATE", help=", ".join(CANDIDATES))
    parser.add_argument("--recordings", type=Path, metavar="FOLDER", help="folder of the takes")
    asked = parser.parse_args()
    files = takes(asked.recordings or usual("soft", "csv", "silicone_beam"))
    data = [recorded(file, take[0], take[2], take[3]) for file, take in zip(files, TAKES, strict=True)]
    print("| take | decrement | with dry friction: decrement | of the amplitude [mm] |", "|---|---|---|---|", sep="\n")
    for take in data:
        print("| " + " | ".join([take.name, *(f"{x:.3f}" for x in envelope(take))]) + " |")
    head = [f"{name}: {key}" for name, *_ in TAKES for key in ("f", "decrement", "sag", "first peak", "rms")]
    print("| " + " | ".join(["damping", "found", "misfit [1e-8 m^2]", "score", *head]) + " |")
    reference = None
    for candidate in asked.candidates or CANDIDATES:
        text, misfit = row(candidate, files[0], data, reference)
        reference = misfit if reference is None else reference
        print(text, flush=True)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
