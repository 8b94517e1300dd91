"""Coverage of the error bars: the share of 95 % intervals that hold the truth, and their widths.

Each repetition draws the true numbers, simulates them with a quarter of the step (and, for the beam, a mesh twice as
fine), adds noise, fits with the coarse scene, and looks at the intervals that `add optimize` prints. The discretisation
error in them is found once for each scene by what `add converge` does, at a fit to data of the coarse scene itself,
which knows no finer truth.

    python -m scripts.coverage                        # 200 repetitions of each scene; the time is printed first
    python -m scripts.coverage --scene block -n 50
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from add.commands.converge import Levels, converge_scene
from add.commands.convergence_file import with_finer_meshes, with_shorter_steps
from add.commands.error_bars import error_bars
from add.commands.optimize import optimize_scene
from add.io.runfolder import RunFolder
from add.mocap import Recording, write_csv
from add.objectives import Tracking
from add.scene import Scene, scene_from_dict
from add.scene.build.write_back import with_values
from add.typing import FloatArray

#: Spread of the true numbers about the scene's, as a standard deviation of their logarithm.
SPREAD = 0.1
FIT = {"method": "gauss-newton", "max_evaluations": 25, "objective_tolerance": 1e-9, "gradient_tolerance": 1e-9}

SPRING = {
    "time": {"dt": 0.01, "duration": 0.5},
    "gravity": [0, 0, 0],
    "bodies": {
        "p": {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.01}, "mass": 1.0, "position": [0.1, 0, 0]}
    },
    "couplings": {
        "s": {
            "type": "spring",
            "a": {"at": [-1, 0, 0]},
            "b": {"body": "p", "at": [0, 0, 0]},
            "stiffness": 144.0,
            "damping": 2.0,
            "length": 1.0,
        }
    },
    "markers": {"m": {"body": "p", "point": [0, 0, 0]}},
    "parameters": [
        {"path": "couplings.s.stiffness", "transform": "log"},
        {"path": "couplings.s.damping", "transform": "log"},
    ],
}
BLOCK = {
    "time": {"dt": 0.005, "duration": 0.4},
    "bodies": {
        "box": {
            "type": "rigid",
            "geometry": {"shape": "box", "size": [0.1, 0.1, 0.05]},
            "mass": 1.0,
            "position": [0, 0, 0.0246],
            "velocity": [1.2, 0, 0],
        }
    },
    "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
    "contact": {"stiffness": 6000.0, "friction": 0.35, "damping": 20.0, "onset": 2e-4},
    "markers": {"m": {"body": "box", "point": [0, 0, 0.025]}, "n": {"body": "box", "point": [0.05, 0, 0.025]}},
    "parameters": [
        {"path": "contact.friction", "transform": "log"},
        {"path": "bodies.box.velocity", "components": [0], "transform": "log"},
    ],
}
BEAM = {
    "time": {"dt": 0.005, "duration": 0.5},
    "bodies": {
        "beam": {
            "type": "soft",
            "mesh": {"shape": "box", "size": [0.1, 0.02, 0.02], "divisions": [4, 1, 1]},
            "element": "tet10",
            "material": {"young": 1e5, "poisson": 0.3, "density": 1000, "viscosity": 150.0},
            "pins": [{"where": {"box": {"max": [-0.05, None, None]}}}],
        }
    },
    "markers": {"tip": {"body": "beam", "point": [0.05, 0, 0.01]}, "middle": {"body": "beam", "point": [0, 0, 0.01]}},
    "parameters": [
        {"path": "bodies.beam.material.young", "transform": "log"},
        {"path": "bodies.beam.material.viscosity", "transform": "log"},
    ],
}
HANGING = {
    "time": {"dt": 0.005, "duration": 0.3},
    "bodies": {
        "bar": {
            "type": "soft",
            "mesh": {"shape": "box", "size": [0.02, 0.02, 0.1], "divisions": [1, 1, 4]},
            "element": "tet10",
            "material": {"young": 4e3, "poisson": 0.3, "density": 1000, "viscosity": 10.0},
            "pins": [{"where": {"box": {"min": [None, None, 0.05]}}}],
        }
    },
    "markers": {"tip": {"body": "bar", "point": [0, 0, -0.05]}, "middle": {"body": "bar", "point": [0, 0.01, 0]}},
    "parameters": [
        {"path": "bodies.bar.material.young", "transform": "log"},
        {"path": "bodies.bar.material.viscosity", "transform": "log"},
    ],
}
#: Scene, noise of a coordinate [m], whether the truth has a finer mesh, frames a second.
SCENES: dict[str, tuple[dict[str, Any], float, bool, float]] = {
    "spring": (SPRING, 2e-3, False, 120.0),
    "block": (BLOCK, 1e-3, False, 120.0),
    "beam": (BEAM, 1e-3, True, 120.0),
    "hanging": (HANGING, 3e-3, True, 120.0),
}


def scene_of(raw: dict[str, Any], folder: Path, **sections: Any) -> Scene:
    """Return a scene that follows the recording in a folder."""
    names = list(raw["markers"])
    recording = {"file": "r.csv", "markers": {name: name for name in names}}
    more = {"recording": recording, "objective": [{"type": "markers"}], "optimizer": FIT}
    return scene_from_dict({"schema": "add-scene/1", **raw, **more, **sections}, folder=folder)


def record(scene: Scene, rate: float, noise: float, rng: np.random.Generator, folder: Path) -> None:
    """Simulate a scene, sample its markers, add white noise and write the file."""
    built = scene.build()
    run = built.run()
    times = np.arange(1.0 / rate, scene.time.end, 1.0 / rate)
    shape = (times.size, len(built.marker_names))
    sampler = Tracking(built.markers, scene.time.dt, times, np.zeros((*shape, 3)), np.ones(shape), np.eye(3))
    places: FloatArray = np.zeros((*shape, 3))
    for state in run.states():
        for frame in sampler.frames(state, built.theta):
            places[frame] = sampler.observed(state, frame, built.theta)
    places += noise * rng.normal(size=places.shape)
    write_csv(folder / "r.csv", Recording(built.marker_names, times, places, np.ones(shape, dtype=bool), "synthetic"))


def bare(raw: dict[str, Any]) -> Scene:
    """Return the scene without what it is fitted to."""
    return scene_from_dict({"schema": "add-scene/1", **{k: v for k, v in raw.items() if k != "parameters"}})


def study(name: str, repetitions: int, seed: int = 1, seconds: float = np.inf) -> dict[str, Any]:
    """Return coverage and widths of one scene's intervals.

    Parameters
    ----------
    name : of `SCENES`
    repetitions : to be run
    seed : of the noise and the true numbers
    seconds : after which no further repetition begins
    """
    raw, noise, finer, rate = SCENES[name]
    rng = np.random.default_rng(seed)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        record(bare(raw), rate, noise, rng, folder)
        scene = scene_of(raw, folder)
        optimize_scene(scene, RunFolder(folder / "base"))
        converge_scene(scene, RunFolder(folder / "base", create=False), Levels(2, 2 if finer else 0))
        file = str(folder / "base" / "discretisation.json")
        scene = scene_of(raw, folder, uncertainty={"convergence": file, "candidates": False})
        labels = scene.inverse_problem().labels()
        nominal = scene.inverse_problem().values(scene.inverse_problem().x0)
        run = RunFolder(folder / "base", create=False)
        rows = []
        for _ in range(repetitions):
            if time.perf_counter() - begin > seconds:
                break
            truth = nominal * np.exp(SPREAD * rng.normal(size=nominal.size))
            known = scene.inverse_problem()
            exact = with_shorter_steps(with_values(scene, known, known.design.inverse(truth)), 4)
            if finer:
                exact, _ = with_finer_meshes(exact, folder)
            record(exact, rate, noise, rng, folder)
            problem = scene_of(raw, folder, uncertainty={"convergence": file, "candidates": False}).inverse_problem()
            x = problem.optimize().x
            bars = error_bars(scene, problem, x, run)
            assert bars is not None
            entries = [bars["parameters"][label] for label in labels]
            values = problem.values(x)
            keys = ("interval_lower", "interval_upper", "standard_error")
            rows.append(
                [
                    [v / t, *(e[key] / t for key in keys), e["errors"]["noise"] / t]
                    for v, t, e in zip(values, truth, entries, strict=True)
                ]
            )
    found = np.array(rows)
    out: dict[str, Any] = {"repetitions": len(rows), "seconds": time.perf_counter() - begin, "parameters": {}}
    for k, label in enumerate(labels):
        value, low, high, bar, white = found[:, k].T
        spread = np.diff(np.percentile(value, [2.5, 97.5]))[0]
        out["parameters"][label] = {
            "covered": float(np.mean((low <= 1.0) & (high >= 1.0))),
            "covered_by_noise_alone": float(np.mean(np.abs(value - 1.0) <= 1.97 * white)),
            "bias": float(value.mean() - 1.0),
            "spread_95": float(spread),
            "median_width": float(np.median(high - low)),
            "width_over_spread": float(np.median(high - low) / spread),
            "median_bar": float(np.median(bar)),
        }
    return out


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--repetitions", type=int, default=200)
    parser.add_argument("--scene", choices=SCENES, action="append")
    parser.add_argument(
        "--seconds", type=float, default=np.inf, help="for each scene; no further repetition begins then"
    )
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    for name in options.scene or SCENES:
        print(name, json.dumps(study(name, options.repetitions, seconds=options.seconds), indent=1), flush=True)


if __name__ == "__main__":
    main()
