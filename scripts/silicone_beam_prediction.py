"""Predict the silicone beam with a weight from the material found without one, and compare with the recording.

    ADD_DATA=... python -m scripts.silicone_beam_prediction [runs/silicone_beam] [--recordings FOLDER]

Young's modulus, viscosity and the sideways gravity come from the run of `add optimize scenes/silicone_beam.json`;
nothing is fitted here.  Both recording and prediction are described by the same damped sinusoid over the same time,
from 0.15 s to 2 s after the release: its frequency, its logarithmic decrement, and its middle, the sag.

FOLDER holds the takes of `TAKES`; without one it is the study's own.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import curve_fit

import add
from add.errors import InputError
from scripts.recordings import scene_of_study, usual

ROOT = Path(__file__).parents[1]
#: Take, hung mass [kg], window in which the beam is held [s], release [s], frequency to start the fit from [Hz].
TAKES = (("gravity", 0.0, (0.2, 0.4), 0.7093, 7.7), ("load52", 0.052, (0.1, 0.35), 0.435, 4.3))


def swing(t: np.ndarray, z: np.ndarray, frequency: float) -> tuple[float, float, float]:
    """Return frequency [Hz], decay [1/s] and middle of a damped sinusoid fitted to z(t)."""

    def model(t, a, b, f, decay, middle):
        phase = 2.0 * np.pi * f * t
        return (a * np.cos(phase) + b * np.sin(phase)) * np.exp(-decay * t) + middle

    found, _ = curve_fit(model, t, z, [np.ptp(z) / 2.0, 0.0, frequency, 2.0, z.mean()], maxfev=20000)
    return found[2], found[3], found[4]


def predict(scene: add.Scene, values: dict[str, float], mass: float) -> tuple[np.ndarray, np.ndarray]:
    """Return times [s] and the fall of the three tip markers [mm]."""
    changes: dict[str, object] = {
        "bodies.beam.material.young": values["bodies.beam.material.young"],
        "bodies.beam.material.viscosity": values["bodies.beam.material.viscosity"],
        "gravity": [0.0, values["gravity"], -9.81],
    }
    if mass:
        # Hung on the top edge of the free end by a string: its inertia acts up and down only.
        edge = {"box": {"min": [0.05, None, 0.015]}}
        changes["bodies.beam.point_masses"] = [{"where": edge, "mass": mass, "inertia_axes": "z"}]
    built = add.apply_overrides(scene, changes).build()
    run = built.run()
    z = np.array([built.markers.points(run.kinematics(k), built.theta)[0][:, 2] for k in range(run.n_steps + 1)])
    return run.t, 1e3 * (z - z[0])


def takes(folder: Path) -> list[Path]:
    """Return the files of `TAKES`, CSV or C3D.

    Raises
    ------
    InputError
        If one is not there.
    """
    files = [folder / f"beam_{name}_V2_a.csv" for name, *_ in TAKES]
    if not files[0].is_file() and files[0].with_suffix(".c3d").is_file():
        files = [file.with_suffix(".c3d") for file in files]
    for file in files:
        if not file.is_file():
            raise InputError("no recording", file=file, expected=", ".join(file.name for file in files))
    return files


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path, default=ROOT / "runs" / "silicone_beam", help="folder of the fit")
    parser.add_argument("--recordings", type=Path, metavar="FOLDER", help="folder of the takes")
    asked = parser.parse_args()
    files = takes(asked.recordings or usual("soft", "csv", "silicone_beam"))
    result = asked.run / "result.json"
    if not result.is_file():
        raise InputError("no run of `add optimize scenes/silicone_beam.json`", file=result)
    parameters = json.loads(result.read_text(encoding="utf-8"))["parameters"]
    values = {name.partition("[")[0]: entry["value"] for name, entry in parameters.items()}
    scene = scene_of_study("silicone_beam", files[0])
    places = scene.raw["recording"]["register"]["markers"]
    head = [f"{what} {kind}" for what in ("f", "decrement", "sag") for kind in ("measured", "predicted", "error")]
    print("| " + " | ".join(["take", "marker", *head]) + " |", "|" + "---|" * 11, sep="\n")
    for file, (name, mass, window, release, frequency) in zip(files, TAKES, strict=True):
        markers = add.read_take(file).require_markers()
        markers = markers.rename({name: name.replace(" ", "") for name in markers.names})  # "Tip - 1" in a C3D
        recording, _ = add.register(markers, places, window=window)
        held = recording.crop(*window).mean()[:3, 2]
        seen = (recording.times > release + 0.15) & (recording.times <= release + 2.0)
        t, z = predict(scene, values, mass)
        for i in range(3):
            fall = 1e3 * (recording.positions[seen, i, 2] - held[i])
            measured = swing(recording.times[seen] - release, fall, frequency)
            found = swing(t[t > 0.15], z[t > 0.15, i], frequency)
            cells = []
            for digits, seen_value, value in zip((3, 3, 2), numbers(*measured), numbers(*found), strict=True):
                cells += [f"{seen_value:.{digits}f}", f"{value:.{digits}f}", f"{100 * (value / seen_value - 1):+.1f} %"]
            print("| " + " | ".join([name, recording.names[i], *cells]) + " |", flush=True)


def numbers(frequency: float, decay: float, middle: float) -> tuple[float, float, float]:
    """Return frequency [Hz], logarithmic decrement over a period [-] and middle [mm] of a swing."""
    return frequency, decay / frequency, middle


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
