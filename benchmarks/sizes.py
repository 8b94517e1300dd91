"""Time and memory over mesh sizes, each in a process of its own: `python -m benchmarks.sizes TETS STEPS`."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from add.bodies import SoftBody
from add.equations.kinematics import State
from add.geometry import TET4, box_mesh
from add.linalg import Factorization, factorization_for, one_blas_thread
from add.model import ContactModel, Obstacle, build_model
from add.simulation import BDF, Record
from add.simulation.run import Simulation
from add.simulation.start import GivenStart
from add.solve.step_equations import NewtonOptions
from benchmarks.backends import DefaultLU, Timed
from benchmarks.timing import Row

ROOT = Path(__file__).parents[1]

SIZES = (1000, 3000, 10000, 30000, 100000)

#: From free fall into contact; the first is not counted.
STEPS = 6

#: SuperLU takes minutes beyond.
SUPERLU_LIMIT = 12000


def block(n_tets: int) -> Simulation:
    """Return a soft block of about ``n_tets`` tetrahedra that falls on a floor, half a millimetre below it."""
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
    return Simulation(
        model.system, GivenStart(model.initial), BDF(0.005, newton=NewtonOptions(rtol=1e-8)), STEPS, theta
    )


def one(n_tets: int, steps: int) -> Row:
    """Measure one size in this process."""
    block(6).run(n_steps=steps)  # compiles
    simulation = block(n_tets)
    best = min((steady(simulation, steps) for _ in range(3 if n_tets <= SUPERLU_LIMIT else 1)), key=_seconds)
    row = {"tets": n_tets, "coordinates": simulation.system.n, "steps": steps - 1, **best, "peak_MB": peak_memory()}
    if n_tets <= SUPERLU_LIMIT:
        slow = steady(simulation, steps, lambda n: DefaultLU())
        row["superlu_over_ours"] = slow["ms_per_step"] / best["ms_per_step"]
        row["superlu_ms_per_factorization"] = slow["ms_per_factorization"]
    return row


def steady(simulation: Simulation, steps: int, back_end: Callable[[int], Factorization] = factorization_for) -> Row:
    """Time the steps after the first, which also finds the pattern and its analysis."""
    clock = Timed(back_end(simulation.system.n_unknowns))
    marks: list[tuple[float, int, float]] = []

    def mark(state: State, record: Record) -> None:
        marks.append((time.process_time(), len(clock.factoring), clock.solving))

    begin = time.process_time()
    trajectory = replace(simulation, solver=lambda n: clock).run(n_steps=steps, observers=[mark])
    seconds = marks[-1][0] - marks[0][0]
    factoring = clock.factoring[marks[0][1] :]
    return {
        "first_step_ms": 1e3 * (marks[0][0] - begin),
        "ms_per_step": 1e3 * seconds / (steps - 1),
        "iterations_per_step": sum(r.report.iterations for r in trajectory.records[1:]) / (steps - 1),
        "ms_per_factorization": 1e3 * float(np.median(factoring)),
        "linear_share": (sum(factoring) + marks[-1][2] - marks[0][2]) / seconds,
    }


def peak_memory() -> float:
    """Return the peak resident memory of this process [MB].

    On Linux not by `getrusage`, which begins with what the parent of the process had.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text(encoding="utf-8").splitlines() if x.startswith("VmHWM"))
        return float(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def _seconds(row: Row) -> float:
    return row["ms_per_step"]


def sizes(small: bool) -> dict[str, object]:
    """Measure all sizes and fit the exponents."""
    rows = []
    print(
        f"{'tets':>8}{'coordinates':>13}{'ms/step':>11}{'it/step':>9}{'ms/fac':>10}{'factor+solve':>14}{'peak MB':>9}"
    )
    for size in SIZES[:2] if small else SIZES:
        k = round((size / 6.0) ** (1.0 / 3.0))
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.sizes", str(6 * k**3), str(STEPS)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            cwd=ROOT,
        )
        row = json.loads(done.stdout)
        rows.append(row)
        print(
            f"{row['tets']:8}{row['coordinates']:13}{row['ms_per_step']:11.1f}{row['iterations_per_step']:9.2f}"
            f"{row['ms_per_factorization']:10.2f}{row['linear_share']:14.0%}{row['peak_MB']:9.0f}",
            flush=True,
        )
    tets = np.log([row["tets"] for row in rows])

    def slope(name: str) -> float:
        return float(np.polyfit(tets, np.log([row[name] for row in rows]), 1)[0])

    exponents = {name: slope(name) for name in ("ms_per_step", "ms_per_factorization", "peak_MB")}
    print("exponents: " + ", ".join(f"{name} {value:.2f}" for name, value in exponents.items()))
    return {"rows": rows, "exponents": exponents}


if __name__ == "__main__":
    with one_blas_thread():
        print(json.dumps(one(int(sys.argv[1]), int(sys.argv[2]))))
