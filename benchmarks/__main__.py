"""`python -m benchmarks [--quick] [--output FILE]`."""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from add.fem import TET4, box_mesh
from add.jobs.gradient import probe
from add.model import ContactModel, Obstacle, SoftBody, build_model
from add.newton import NewtonOptions
from add.scene.reader import load_scene
from add.simulate import Simulation
from add.start import GivenStart
from add.steppers import BDF
from benchmarks.timing import time_simulation

ROOT = Path(__file__).parents[1]

#: Scenes, steps, and the seconds they took the original program (same meshes, 2.5 GHz, one thread) or its authors'
#: (Table 2 of the paper, 3.5 GHz, four cores; the scenes are ours, with their numbers of coordinates and steps).
SCENES = (
    ("fig2_cylinder_linear", 500, 43.9),
    ("fig2_cylinder_tanh", 500, 44.1),
    ("fig10a_ball_to_point", 250, 8.4),
    ("fig5_tori", 200, 81.0),
    ("strings_cube", 60, 0.044),
    ("sheet_flip", 120, 0.109),
    ("robot_rigid", 192, 0.550),
    ("robot_soft_feet", 144, 1.552),
)


def scenes(quick: bool) -> dict[str, dict[str, float]]:
    """Time the scenes of the original program and those of the paper's second table."""
    out = {}
    widths = {"ms/step": 9, "it/step": 9, "factor": 8, "solve": 7, "grad/fwd": 10, "grad/unit": 11, "original/ours": 15}
    print(f"{'scene':24}" + "".join(f"{name:>{width}}" for name, width in widths.items()))
    for name, steps, seconds in SCENES:
        built = load_scene(ROOT / "scenes" / f"{name}.json").build()
        n_steps = min(steps, 40) if quick else steps
        timing = time_simulation(built.simulation, probe(built, n_steps, 0), n_steps, 1 if quick else 3)
        row = timing.row | {
            "original_s": seconds,
            "original_over_ours": seconds / steps * n_steps / timing.forward,
        }
        out[name] = row
        print(
            f"{name:24}{row['ms_per_step']:9.2f}{row['iterations_per_step']:9.2f}{row['factorisation_share']:8.0%}"
            f"{row['solve_share']:7.0%}{row['gradient_over_forward']:10.2f}{row['gradient_over_unit']:11.2f}"
            f"{row['original_over_ours']:15.1f}",
            flush=True,
        )
    print(
        "original: the original C++ program at 2.5 GHz; from the cube on, the paper's times; other machines than this"
    )
    return out


def block(n_tets: int) -> Simulation:
    """Return a soft block of about ``n_tets`` tetrahedra that falls on a floor."""
    k = max(1, round((n_tets / 6.0) ** (1.0 / 3.0)))
    body = SoftBody("block", box_mesh((0.1, 0.1, 0.1), (k, k, k), TET4))
    floor = Obstacle("floor", 0, (0.0, 0.0, 0.0), np.eye(3), np.array([0.0, 0.0, -0.0505]), np.zeros(3))
    model = build_model([body], [floor], ContactModel(per_area=True))
    layout = model.system.parameters
    theta = np.zeros(layout.n)
    for name, value in (
        ("gravity", (0.5, 0.0, -9.81)),
        ("bodies.block.mu", 2e4),
        ("bodies.block.lambda", 3e4),
        ("bodies.block.density", 500.0),
        ("bodies.block.viscosity", 5.0),
        ("contact.block.floor.k_n", 1e6),
        ("contact.block.floor.k_t", 5e3),
        ("contact.block.floor.c_f", 0.4),
    ):
        layout.view(theta, name)[...] = value
    return Simulation(model.system, GivenStart(model.initial), BDF(0.005, newton=NewtonOptions(rtol=1e-8)), 12, theta)


def grow_one(n_tets: int) -> dict[str, float]:
    """Measure one size in this process."""
    simulation = block(n_tets)
    begin = time.perf_counter()
    simulation.run(n_steps=1)
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    trajectory = simulation.run()
    seconds = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    return {
        "tets": int(simulation.system.terms[2].batch.cells.shape[0]),  # type: ignore[attr-defined]
        "coordinates": simulation.system.n,
        "first_step_s": first,
        "ms_per_step": 1e3 * seconds / trajectory.n_steps,
        "peak_MiB": memory,
    }


def growth(quick: bool) -> dict[str, object]:
    """Measure time and memory over mesh sizes, each in a process of its own, and fit the exponents."""
    sizes = (1000, 3000) if quick else (1000, 3000, 10000, 30000)
    rows = []
    print(f"{'tets':>8}{'coordinates':>13}{'ms/step':>10}{'peak MiB':>10}")
    for size in sizes:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks", "--one", str(size)],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        rows.append(json.loads(done.stdout))
        row = rows[-1]
        print(f"{row['tets']:8}{row['coordinates']:13}{row['ms_per_step']:10.1f}{row['peak_MiB']:10.0f}", flush=True)
    tets = np.log([row["tets"] for row in rows])
    exponents = {
        "time": float(np.polyfit(tets, np.log([row["ms_per_step"] for row in rows]), 1)[0]),
        "memory": float(np.polyfit(tets, np.log([row["peak_MiB"] for row in rows]), 1)[0]),
    }
    print(f"growth with the number of tets: time ^{exponents['time']:.2f}, peak memory ^{exponents['memory']:.2f}")
    return {"sizes": rows, "exponents": exponents}


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few steps and small meshes: does it run?")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "latest.json")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(grow_one(arguments.one)))
        return
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False, cwd=ROOT)
    result = {
        "commit": commit.stdout.strip(),
        "machine": platform.platform(),
        "scenes": scenes(arguments.quick),
        "growth": growth(arguments.quick),
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"written: {arguments.output}")


if __name__ == "__main__":
    main()
