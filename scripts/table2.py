"""Run the scenes of ADD's Table 2 and its neighbours, and print a table beside the paper's: python scripts/table2.py.

    python scripts/table2.py [--write] [SCENE ...]

A scene is simulated as it starts, timed without compilation, and optimised. ``--write`` puts the rows of these scenes
into the table of docs/studies/table2.md, beside those of the others, and pictures into docs/studies/images.
A few minutes, most of them for the soft feet.
"""

from __future__ import annotations

import argparse
import platform
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from add.scene import load_scene
from add.scene.build.inverse_problem import inverse_problem, optimizer
from add.scene.build.run_data import run_data

ROOT = Path(__file__).resolve().parents[1]
#: Shortest time over which simulations are repeated [s].
REPEAT = 2.0


@final
@dataclass(frozen=True)
class Published:
    """What the paper gives: one simulation and the optimisation [s], iterations, beta."""

    simulation: float
    optimisation: float
    iterations: int
    beta: str


PUBLISHED = {
    "strings_cube": Published(0.044, 3.3, 20, "1e-2"),
    "sheet_flip": Published(0.109, 54.0, 25, "1"),
    "robot_rigid": Published(0.550, 1161.0, 60, "1e-3"),
    "robot_soft_feet": Published(1.552, 1674.0, 17, "1e-3"),
    "bands_cubes": None,
    "rigid_ball_throw": None,
}
#: Of the pictures [pixels].
SIZE = (640, 400)
#: Times of the pictures [s].
PICTURES = {
    "strings_cube": 0.8,
    "sheet_flip": 0.6,
    "robot_rigid": 1.6,
    "robot_soft_feet": 1.6,
    "bands_cubes": 1.2,
    "rigid_ball_throw": 1.2,
}


@final
@dataclass(frozen=True)
class Row:
    """What was measured on one scene.

    ``newton`` iterations a step; processor times of one simulation and of the optimisation [s]; the objective at
    ``start`` and ``end``; ``fallbacks``, steps of the first and last simulation that needed Newton's ladder.
    """

    name: str
    coordinates: int
    parameters: int
    steps: int
    newton: float
    simulation: float
    evaluations: int
    optimisation: float
    start: float
    end: float
    fallbacks: int

    def cells(self) -> list[str]:
        """Return the row as text."""
        each = self.parameters // self.steps
        paper = PUBLISHED[self.name]
        return [
            self.name,
            str(self.coordinates),
            str(each) if each else f"{self.parameters} in all",
            str(self.steps),
            f"{self.newton:.1f}",
            f"{1e3 * self.simulation / self.steps:.2f}",
            f"{1e3 * paper.simulation / self.steps:.2f}" if paper else "",
            f"{self.simulation:.3f}",
            f"{paper.simulation:.3f}" if paper else "",
            str(self.evaluations),
            str(paper.iterations) if paper else "",
            f"{self.optimisation:.1f}",
            f"{paper.optimisation:.1f}" if paper else "",
            f"{self.start:.3g} -> {self.end:.3g}",
            str(self.fallbacks),
        ]


HEADER = [
    "scene",
    "coordinates",
    "parameters a step",
    "steps",
    "Newton iterations a step",
    "a step [ms]",
    "paper",
    "a simulation [s]",
    "paper",
    "simulations",
    "paper",
    "optimisation [s]",
    "paper",
    "objective",
    "fallbacks",
]


def measure(name: str, pictures: Path | None = None) -> Row:
    """Simulate and optimise one scene; draw a moment of what was found."""
    scene = load_scene(ROOT / "scenes" / f"{name}.json")
    built = scene.build()
    first = built.run()  # compiles what is not compiled
    best, begin = np.inf, time.perf_counter()
    while time.perf_counter() - begin < REPEAT:
        start = time.process_time()
        built.run()
        best = min(best, time.process_time() - start)
    problem = inverse_problem(scene)
    # Once for nothing: the derivatives compile too.
    problem.normal_equations(problem.residuals(problem.x0), np.arange(problem.n))
    start = time.process_time()
    found = optimizer(scene).run(problem)
    elapsed = time.process_time() - start
    last = problem.residuals(found.x)
    runs = [first, *last.runs.values()]
    row = Row(
        name,
        built.model.system.n,
        problem.n,
        built.simulation.n_steps,
        float(np.mean([record.report.iterations for record in first.records])),
        best,
        found.evaluations,
        elapsed,
        problem.residuals(problem.x0).value,
        found.value,
        sum(record.report.attempt > 0 for run in runs for record in run.records),
    )
    if pictures is not None:
        from add.view import screenshot

        (run,), theta = last.runs.values(), problem.theta(found.x, problem.experiments[0])
        screenshot(run_data(built, run, theta), pictures / f"{name}.png", PICTURES[name], size=SIZE)
    return row


def table(rows: list[Row]) -> str:
    """Return the rows in Markdown."""
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    return "\n".join([*lines, *("| " + " | ".join(row.cells()) + " |" for row in rows)])


def machine() -> str:
    """Return what the table was measured on."""
    return f"Measured by scripts/table2.py on {platform.machine()}, two cores, Python {platform.python_version()}."


def write(rows: list[Row]) -> None:
    """Replace the rows of these scenes in the table of docs/studies/table2.md; the others stay."""
    path = ROOT / "docs" / "studies" / "table2.md"
    old = path.read_text(encoding="utf-8")
    marks = "<!-- table -->\n", "<!-- end -->"
    written = {line.split(" | ")[0].removeprefix("| "): line for line in table(rows).splitlines()[2:]}
    for line in old.partition(marks[0])[2].partition(marks[1])[0].splitlines():
        name = line.split(" | ")[0].removeprefix("| ")
        if name in PUBLISHED:
            written.setdefault(name, line)
    lines = [*table([]).splitlines(), *(written[name] for name in PUBLISHED if name in written)]
    new = "\n".join([marks[0], machine(), "", *lines, "", marks[1]])
    path.write_text(re.sub(f"{marks[0]}.*?{marks[1]}", lambda _: new, old, flags=re.DOTALL), encoding="utf-8")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=f"default: {' '.join(PUBLISHED)}")
    parser.add_argument("--write", action="store_true", help="write table and pictures into docs/studies/")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.scenes or PUBLISHED:
        rows.append(measure(name, ROOT / "docs" / "studies" / "images" if arguments.write else None))
        print(table(rows).splitlines()[-1], flush=True)
    print(machine(), table(rows), sep="\n\n")
    if arguments.write:
        write(rows)


if __name__ == "__main__":
    main()
