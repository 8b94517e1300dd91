"""Soft bodies that are to be at a point at the end: what their scenes share, by gradients and by CMA-ES, pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import meshio
import numpy as np

from add.geometry import SoftMesh
from add.inverse import InverseProblem
from add.typing import FloatArray
from scripts.reproduction.cma_search import search
from scripts.reproduction.entry import Context, Row, clock

#: First spread of CMA-ES, in units of x; bounds of controls are wider.
SPREAD = 0.3


class Task(NamedTuple):
    """A problem of a squared distance [m^2], and when it is solved.

    Attributes
    ----------
    problem : InverseProblem
    about : str
        What moves, with its size.
    way : float
        The distance to the point from where it lies [m].
    goal : float
        The share of the way that counts as reached.
    runs : int
        Of CMA-ES, at most.
    published : str
        Key of what was published.
    """

    problem: InverseProblem
    about: str
    way: float
    goal: float
    runs: int
    published: str


class Reached(NamedTuple):
    """Rows of the page, raw numbers, and the best run of the gradients."""

    rows: tuple[Row, ...]
    values: dict[str, float]
    trajectory: Any


def towards(marker: str, target: Sequence[float], axes: str, paths: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return what a scene has whose ``marker`` is to be at a place at the end, by the numbers at ``paths``."""
    return {
        "objective": [{"type": "point", "marker": marker, "target": list(target), "axes": axes, "time": "end"}],
        "parameters": [{"path": path} | own for path, own in paths.items()],
        "optimizer": {"method": "l-bfgs-b", "max_evaluations": most},
    }


def swimming(name: str, mesh: SoftMesh, file: Path, dt: float, steps: int, **body: Any) -> dict[str, Any]:
    """Return a scene of a soft body without weight in water, whose mean of the surface is a marker of its name.

    The mesh goes into a file; ``body`` is what the tissue has beside. Water is the law of the air with its density.
    """
    meshio.write_points_cells(file, mesh.points, [("tetra", mesh.cells)])
    tissue = {"young": 2e4, "poisson": 0.4, "density": 1000, "viscosity": 20}
    return {
        "schema": "add-scene/1",
        "time": {"dt": dt, "steps": steps},
        "gravity": [0, 0, 0],
        "contact": {"friction_law": "none"},
        "bodies": {name: {"type": "soft", "mesh": {"file": str(file)}, "material": tissue} | body},
        "couplings": {"water": {"type": "air", "body": name, "density": 1000, "coefficient": 1.0}},
        "markers": {name: {"body": name, "surface": {"all": True}}},
    }


def reach(context: Context, task: Task, axes: Any) -> Reached:
    """Go to the point by gradients, then by CMA-ES for as many runs and seconds; draw the distances that are left."""
    problem, way, goal = task.problem, task.way, task.goal
    start = float(np.sqrt(problem.value(problem.x0)[0]))
    problem.value_and_grad(problem.x0)
    values: list[float] = []
    with clock() as taken:
        found = problem.optimize(progress=lambda item, _: values.append(item.value))
    best = np.sqrt(np.minimum.accumulate(values))
    needed = int(np.argmax(best < goal * way)) + 1 if best[-1] < goal * way else -1
    after = f"distance after {best.size} runs [m] ({taken.seconds:.0f} s)"
    seen = str(needed) if needed > 0 else f"not in {best.size}"
    rows = [
        Row(f"{task.about}: way to the point, distance at first [m]", f"{way:.3f}, {start:.4f}"),
        Row(f"runs with gradient to {100 * goal:.2g} % of the way", seen),
        Row(after, f"{best[-1]:.2g}", task.published),
    ]
    axes.semilogy(np.arange(1, best.size + 1), best / way, "C0-", label="L-BFGS-B")
    for seed in (1,) if context.short else (1, 2, 3):
        most = 5 if context.short else task.runs
        other = search(problem, SPREAD, most, (goal * way) ** 2, seed, diagonal=problem.n > 2000)
        if other is None:
            break
        share = np.sqrt(other.best) / way
        as_many, seconds = min(best.size, share.size) - 1, int(np.searchsorted(other.seconds, taken.seconds))
        axes.semilogy(np.arange(1, share.size + 1), share, "C1-", lw=0.8, label="CMA-ES" if seed == 1 else None)
        text = f"{share[as_many]:.2g}, {share[min(seconds, share.size - 1)]:.2g}, {share[-1]:.2g}"
        spent = f"as many runs, as many seconds, {share.size} runs ({other.seconds[-1]:.0f} s)"
        rows.append(Row(f"CMA-ES, seed {seed}: distance over the way after {spent}", text))
    axes.set(xlabel="runs", ylabel="distance / way")
    axes.legend()
    (trajectory,) = problem.value(found.x)[1].values()
    return Reached(tuple(rows), {"needed": needed, "last": float(best[-1] / way)}, trajectory)


def draw_way(axes: Any, times: FloatArray, places: FloatArray, wanted: Sequence[float], what: str) -> None:
    """Draw three coordinates [m] over time, and where they are to end."""
    axes.plot(times, 1e3 * places, label=["x", "y", "z"])
    for axis, place in enumerate(wanted):
        axes.plot(times[-1], 1e3 * place, f"C{axis}x")
    axes.set(xlabel="time [s]", ylabel=f"{what} [mm]")
    axes.legend()
