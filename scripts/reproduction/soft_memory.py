"""Memory of a gradient over steps of 3072 tetrahedra, kept whole, as states, or by checkpoints (Qiao et al.)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import add
from benchmarks.sizes import peak_memory
from scripts.reproduction.entry import ROOT, Context, Entry, Outcome, Row

#: Numbers of steps, as published; cells along an edge, six tetrahedra each.
STEPS, CELLS = (10, 20, 100, 200), 8
#: What is kept of a run: name in scenes -> on the page, and what was published of the like.
SCHEDULES = {
    "all": ("every step kept", "soft2.stored"),
    "states": ("states kept", None),
    "checkpoints": ("checkpoints", "soft2.checkpoints"),
}


def scene(cells: int, steps: int, schedule: str) -> dict[str, Any]:
    """Return a soft cube that falls on a floor; its speed is the parameter."""
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.005, "steps": steps},
        "gradient": {"schedule": schedule},
        "bodies": {
            "cube": {
                "type": "soft",
                "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [cells] * 3},
                "position": [0, 0, 0.055],
                "material": {"young": 2e5, "poisson": 0.4, "density": 1000, "viscosity": 20},
            }
        },
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"stiffness": 1e6, "stiffness_per": "area", "friction": 0.1},
        "markers": {"centre": {"body": "cube", "surface": {"all": True}}},
        "objective": [{"type": "point", "marker": "centre", "target": [0.05, 0, 0.05], "time": "end"}],
        "parameters": [{"path": "bodies.cube.velocity"}],
    }


def measure(cells: int, steps: int, schedule: str) -> tuple[float, float]:
    """Return the peak memory of a gradient less that after import, and less that after a gradient of 6 tets [GB]."""
    before = [peak_memory()]
    for size, n in ((1, 2), (cells, steps)):
        problem = add.scene_from_dict(scene(size, n, schedule)).inverse_problem()
        problem.value_and_grad(problem.x0)
        before.append(peak_memory())
    imported, loaded, peak = before
    return (peak - imported) / 1e3, (peak - loaded) / 1e3


def run(context: Context) -> Outcome:
    """Each case in a process of its own."""
    cells, counts = (3, (5, 10)) if context.short else (CELLS, STEPS)
    rows, values = [], {}
    for schedule, (label, published) in SCHEDULES.items():
        found = []
        for steps in counts:
            command = [sys.executable, "-m", "scripts.reproduction.soft_memory", str(cells), str(steps), schedule]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
            found.append(json.loads(done.stdout))
        about = (f"{label}: memory at {', '.join(map(str, counts))} steps [GB]", f"{label}: without what six tets take")
        for k, quantity in enumerate(about):
            text = ", ".join(f"{both[k]:.3f}" for both in found)
            rows.append(Row(quantity, text, None if k else published))
        values[schedule] = found
    return Outcome(tuple(rows), {}, NOTES, values)


NOTES = (
    "The peak of the process less that after import, and less that after a gradient of six tetrahedra, which loads "
    "the same compiled code and libraries: of the 0.11 GB between them about 50 MB are modules of this program that "
    "load when first used, 30 MB what loads compiled code, 20 MB that code. Mesh, matrix and factors are nearly all "
    "of the figure for ten steps. Without checkpoints the published program keeps tapes of automatic differentiation, "
    "with them one checkpoint a step. Ours keeps every step; states alone, from which steps are made again without "
    "solving; or few states, with one more run.",
)

ENTRY = Entry(
    "soft2",
    "Soft bodies: memory of a gradient",
    "A soft cube of 3072 tetrahedra falls on a floor; the gradient of where it ends by its speed, over 10 to 200 steps "
    "(after Table 1 of Qiao, Liang, Koltun, Lin, NeurIPS 2021, whose mesh was not published).",
    run,
)

if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
