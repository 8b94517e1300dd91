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


def measure(cells: int, steps: int, schedule: str) -> list[float]:
    """Return the peak memory [GB]: with all modules, of a gradient of 6 tetrahedra, and of the one asked for."""
    add.Scene  # noqa: B018  `import add` alone loads next to nothing
    found = [peak_memory()]
    for size, n in ((1, 2), (cells, steps)):
        problem = add.scene_from_dict(scene(size, n, schedule)).inverse_problem()
        problem.value_and_grad(problem.x0)
        found.append(peak_memory())
    return [one / 1e3 for one in found]


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
        for before, quantity in enumerate(about):
            text = ", ".join(f"{one[2] - one[before]:.3f}" for one in found)
            rows.append(Row(quantity, text, None if before else published))
        values[schedule] = found
    whole = ", ".join(f"{one:.3f}" for one in values["all"][-1])
    rows.append(Row(f"the process with all modules, after six tets, after {counts[-1]} steps kept [GB]", whole))
    return Outcome(tuple(rows), {}, NOTES, values)


NOTES = (
    "The peak of the process less that after import of all modules (`import add` alone loads next to nothing, 26 MB "
    "with Python and NumPy; they come with the first scene), and less that after a gradient of six tetrahedra, which "
    "loads the same compiled code. Of what is between the two 30 MB are pages of the compiler's library that loading "
    "touches, the rest is that code. Without checkpoints the published program keeps tapes of automatic "
    "differentiation, with them one checkpoint a step. Ours keeps every step; states alone, from which steps are made "
    "again without solving; or few states, with one more run.",
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
