"""A marble on a held sheet, pushed to a place: by gradients and by CMA-ES (Qiao et al., ICML 2020)."""

from __future__ import annotations

from typing import Any

import numpy as np

import add
from scripts.reproduction.cma_search import search
from scripts.reproduction.drawing import figure, show
from scripts.reproduction.entry import Context, Entry, Outcome, Row, clock
from scripts.reproduction.running import picture

#: As published: gravity [m/s^2], step [s]; the slides' hundred numbers are two for each of 50 steps.
GRAVITY, DT, STEPS = 4.0, 0.04, 50
#: Ours: target [m], scale of a force [N], most evaluations, runs of CMA-ES and its first spread, in units of x.
TARGET, SCALE, MOST, CMA_RUNS, SPREAD = (0.25, 0.2, 0.0), 0.05, 10, 1000, 0.3


def held(size: float) -> list[dict[str, Any]]:
    """Return pins of the four corners of a square."""
    end = 0.5 * size - 1e-6
    sides = ({"min": end}, {"max": -end})
    corners = [{k: [a.get(k), b.get(k), None] for k in ("min", "max")} for a in sides for b in sides]
    return [{"where": {"box": box}} for box in corners]


def scene(steps: int = STEPS) -> dict[str, Any]:
    """Return a marble of 50 g on a sheet of 20 g that its corners hold, with a force in the plane for each step."""
    return {
        "schema": "add-scene/1",
        "time": {"dt": DT, "steps": steps, "integrator": "bdf1"},
        "gravity": [0, 0, -GRAVITY],
        "bodies": {
            "sheet": {
                "type": "cloth",
                "mesh": {"shape": "rectangle", "size": [1, 1], "cells": [8, 8], "diagonals": "irregular"},
                "material": {
                    "density": 0.02,
                    "thickness": 5e-4,
                    "membrane": {"model": "neo-hookean", "young": 2e5, "poisson": 0.3, "viscosity": 0.05},
                    "bending": {"model": "hinge", "stiffness": 1e-5},
                },
                "contact": {"thickness": 0.01},
                "pins": held(1.0),
            },
            "marble": {
                "type": "rigid",
                "geometry": {"shape": "sphere", "radius": 0.06},
                "mass": 0.05,
                "position": [-0.2, -0.15, 0.066],
            },
        },
        "contact": {
            "friction": 0.1,
            "mesh": {"stiffness": 2e4, "onset": 0.002, "damping": 50},
            "pairs": [{"between": ["sheet", "marble"], "by_meshes": True}],
        },
        "signals": {"push": {"type": "control", "basis": "constant", "rows": steps, "values": [[0, 0, 0]]}},
        "couplings": {"push": {"type": "force", "on": {"body": "marble"}, "force": {"signal": "push"}}},
        "markers": {"marble": {"body": "marble", "center_of_mass": True}},
        "objective": [{"type": "point", "marker": "marble", "target": TARGET, "axes": "xy", "time": "end"}],
        "parameters": [
            {
                "path": "signals.push.values",
                "components": [3 * k + a for k in range(steps) for a in (0, 1)],
                "scale": SCALE,
            }
        ],
        "optimizer": {"method": "gauss-newton", "max_evaluations": MOST},
    }


def run(context: Context) -> Outcome:
    """Find the pushes by Gauss-Newton, then by CMA-ES with three seeds."""
    asked = add.scene_from_dict(scene(10 if context.short else STEPS))
    problem = asked.inverse_problem()
    problem.residuals_and_jacobian(problem.x0)
    values: list[float] = []
    with clock() as taken:
        found = problem.optimize(progress=lambda item, _: values.append(item.value))
    best = np.sqrt(np.minimum.accumulate(values))
    rows = [
        Row(f"{problem.n} numbers: distance at the start [m]; after {best.size} runs with derivatives [m] "
            f"({taken.seconds:.1f} s)", f"{best[0]:.3f}; {best[-1]:.1g}"),
        Row("runs with derivatives to 1 mm", str(int(np.argmax(best < 1e-3)) + 1) if best[-1] < 1e-3 else "not"),
    ]  # fmt: skip
    reached = {}
    with figure(context.image("cloth_marble.png"), 6.4, 2.6) as drawn:
        left, right = drawn.subplots(1, 2)
        left.loglog(np.arange(1, best.size + 1), best, "C0-", label="Gauss-Newton")
        for seed in (1,) if context.short else (1, 2, 3):
            other = search(problem, SPREAD, 20 if context.short else CMA_RUNS, 0.0, seed)
            if other is None:
                break
            there, seconds = np.sqrt(other.best), int(np.searchsorted(other.seconds, taken.seconds))
            reached[seed] = int(np.argmax(best <= there[-1])) + 1 if best[-1] <= there[-1] else -1
            left.loglog(np.arange(1, there.size + 1), there, "C1-", lw=0.8, label="CMA-ES" if seed == 1 else None)
            rows.append(
                Row(f"CMA-ES, seed {seed}: distance after as many seconds, {there.size} runs ({other.seconds[-1]:.0f} "
                    "s) [m]; runs with derivatives until there",
                    f"{there[min(seconds, there.size - 1)]:.2g}, {there[-1]:.2g}; {reached[seed]}", "cloth1.runs")
            )  # fmt: skip
        left.set(xlabel="runs", ylabel="distance at the end [m]")
        left.legend()
        (trajectory,) = problem.value(found.x)[1].values()
        theta, end = problem.theta(found.x, problem.experiments[0]), float(trajectory.t[-1])
        show(right, picture(asked.build(), trajectory, theta, end, (500, 400)), f"found: {end:.1f} s")
    return Outcome(
        tuple(rows), {"cloth_marble.png": "Distance against runs; the end."}, NOTES, {"last": float(best[-1])}
    )


NOTES = (
    "Published are curves alone, and the demo's forty numbers (20 steps) where the slides say a hundred. A sheet of 8 "
    "x 8 cells and 1 m; forces, not changes of velocity; no weight on the norm of the controls, which makes it easier "
    "for CMA-ES, too. A run of CMA-ES has no derivatives; one of Gauss-Newton has those of both coordinates.",
)

ENTRY = Entry(
    "cloth1",
    "Cloth: a marble on a sheet",
    "A marble falls on a sheet that four corners hold; forces on it at each of 50 steps are to bring it to a place "
    "0.57 m away; by derivatives through contact, and by CMA-ES, three seeds (after Qiao, Liang, Koltun, Lin, "
    "*Scalable differentiable physics for learning and control*, ICML 2020).",
    run,
)
