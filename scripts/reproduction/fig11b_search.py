"""Fig. 11b from many starts, and the landscape around the lowest end."""

from __future__ import annotations

from typing import Any

import numpy as np

from add.errors import SolverError
from add.inverse import InverseProblem, LoggedEvaluation
from add.scene import apply_overrides
from scripts.reproduction.bunny import bunny_scene
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import LONG_RUNS, Context, Entry, Outcome, Row
from scripts.reproduction.tasks import Tasks

#: Starts within these distances of the authors' (velocity [0.1 m/s], spin [rad/s]), and how many are gone on from.
COUNT, SPREAD, KEEP, SEED = 60, 0.5, 3, 0
#: Simulations of Gauss-Newton from each of those.
MOST = 60
#: Lines through the lowest end: half lengths over the parameters' scales, and samples on each.
HALF, SAMPLES = 0.1, 11
LABELS = ("$v_x$", "$v_y$", "$v_z$", r"$\omega_x$", r"$\omega_y$", r"$\omega_z$")
SHORT = {"time.steps": 12}


def value(problem: InverseProblem, x: np.ndarray) -> float:
    """Return the objective, infinite where the simulation fails."""
    try:
        return problem.value(x)[0]
    except SolverError:
        return float("inf")


def descent(problem: InverseProblem, x: np.ndarray) -> dict[str, Any]:
    """Return the objective of every simulation of Gauss-Newton from a start, and the place where it is lowest."""
    values: list[float] = []

    def note(evaluation: LoggedEvaluation, _: bool) -> None:
        values.append(evaluation.value)

    found = problem.optimize(x, progress=note)
    return {"values": values, "x": found.x.tolist()}


def run(context: Context) -> Outcome:
    """Simulate the starts, optimise from the lowest, and sample the lines through the lowest end."""
    count, keep, most, samples = (3, 1, 2, 3) if context.short else (COUNT, KEEP, MOST, SAMPLES)
    tasks = context.tasks("fig11b_search")
    folder = (context.images if context.short else LONG_RUNS) / "bunny"
    folder.mkdir(parents=True, exist_ok=True)
    base = bunny_scene(folder, SHORT if context.short else {}, 4 if context.short else 200, wall=True)
    base = apply_overrides(
        base, {"optimizer.method": "gauss-newton", "optimizer.max_evaluations": most, "optimizer.phases": []}
    )
    problem = base.inverse_problem()
    rng = np.random.default_rng(SEED)
    points = [problem.x0, *(rng.uniform(problem.x0 - SPREAD, problem.x0 + SPREAD) for _ in range(count - 1))]
    first = np.array([tasks(f"start {k}", lambda x=x: value(problem, x)) for k, x in enumerate(points)])
    # The authors' own start is gone on from, whatever its objective.
    chosen = [0, *(int(k) for k in np.argsort(first, kind="stable") if k)][: keep + 1]
    wanted = len(chosen)
    if context.partial:
        chosen = [k for k in chosen if f"descent {k}" in tasks.known]
    ends = {k: tasks(f"descent {k}", lambda k=k: descent(problem, points[k])) for k in chosen}
    lowest = min(ends, key=lambda k: min(ends[k]["values"]))
    place = np.linspace(-HALF, HALF, samples)
    end = np.array(ends[lowest]["x"])
    lines = sampled(problem, end, place, tasks, f"line {lowest}", partial=context.partial)
    name = "fig11b_search.png"
    draw(context, name, ends, place, lines)
    scale = first[0]
    rows = [Row("objective at the authors' start [m^2]", f"{scale:.2e}")]
    for k, end in ends.items():
        title = "the authors' start" if k == 0 else f"start {k}"
        rows += [Row(f"Gauss-Newton from {title}: Phi/Phi_0 there, at the end", f"{first[k] / scale:.2f}, "
                     f"{min(end['values']) / scale:.1e}", "fig11b.reduction" if k == 0 else None),
                 Row(f"Gauss-Newton from {title}: simulations", str(len(end["values"])))]  # fmt: skip
    total = count + sum(len(end["values"]) for end in ends.values())
    rows.append(Row("simulations in all, those of the starts with them", str(total), "fig11b.simulations"))
    below = np.count_nonzero(first[1:] < scale)
    rows.append(Row("drawn starts whose objective is below that of the authors'", f"{below} of {count - 1}"))
    if lines:
        middle = place.size // 2
        held = sum(line[middle] == line.min() for line in lines.values())
        rows.append(Row("lines through the lowest end on which no sample is lower", f"{held} of {len(lines)}"))
    for k, line in lines.items():
        rows.append(Row(f"line along {'xyz'[k % 3]} of the {'velocity' if k < 3 else 'spin'}: Phi/Phi_0 from, to",
                        f"{line.min() / scale:.1e}, {line.max() / scale:.1e}"))  # fmt: skip
    missing = f"{len(chosen)} of {wanted} descents are done: `make reproduce-long` goes on. " if context.partial else ""
    notes = (missing + noted(place),)
    values = {"starts": first.tolist(), "ends": {str(k): min(end["values"]) for k, end in ends.items()},
              "lines": {str(k): line.tolist() for k, line in lines.items()}}  # fmt: skip
    caption = "Objective over the simulations of each descent; lines through the lowest end along each number."
    return Outcome(tuple(rows), {name: caption}, notes, values)


def sampled(
    problem: InverseProblem, x: np.ndarray, place: np.ndarray, tasks: Tasks, name: str, *, partial: bool
) -> dict[int, np.ndarray]:
    """Return the objective on lines through x along each number; of a partial page those that are whole."""
    lines = {}
    for k in range(problem.n):
        names = [f"{name} {k} {j}" for j in range(place.size)]
        if partial and not set(names) <= tasks.known:
            continue
        unit = np.eye(problem.n)[k]
        lines[k] = np.array([tasks(name, lambda p=x + s * unit: value(problem, p)) for name, s in
                             zip(names, place, strict=True)])  # fmt: skip
    return lines


def draw(context: Context, name: str, ends: dict[int, Any], place: np.ndarray, lines: dict[int, np.ndarray]) -> None:
    """Draw the descents and the lines."""
    with figure(context.image(name), 8.2, 3.2) as drawn:
        left, right = drawn.subplots(1, 2)
        for k, end in ends.items():
            best = np.minimum.accumulate(end["values"])
            left.semilogy(np.arange(1, best.size + 1), best, label="the authors' start" if k == 0 else f"start {k}")
        left.set(xlabel="simulations of Gauss-Newton", ylabel=r"$\Phi$ [m$^2$], best so far")
        left.legend()
        for k, line in lines.items():
            right.semilogy(place, line, ".-", ms=3, lw=0.8, label=LABELS[k])
        right.set(xlabel="change over the scale (0.1 m/s, 1 rad/s)", ylabel=r"$\Phi$ [m$^2$]")
        right.locator_params(axis="x", nbins=5)
        if lines:
            right.legend(ncols=2)


def noted(place: np.ndarray) -> str:
    """Return how it was searched."""
    return (
        f"{COUNT} starts, the authors' and others drawn evenly within {0.1 * SPREAD:g} m/s and {SPREAD:g} rad/s of it "
        f"(seed {SEED}), are simulated once each with k_n = 1000 N/m; Gauss-Newton goes on from the authors' and from "
        f"the {KEEP} lowest, at most {MOST} simulations each (in a scene: `optimizer.starts` with `keep`). The lines "
        f"are sampled {0.1 * (place[1] - place[0]):.2g} m/s and {place[1] - place[0]:.2g} rad/s apart."
    )


ENTRY = Entry(
    "fig11b_search",
    "Fig. 11b from many starts",
    "How far the throw of the bunny can be optimised, and how rough its objective is.",
    run,
    long=True,
)
