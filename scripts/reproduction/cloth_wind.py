"""Cloths in the wind: density, stretch and bending of each from how it moves (Liang, Lin, Koltun 2019)."""

from __future__ import annotations

from typing import Any

import numpy as np

import add
from add.inverse import InverseProblem
from add.typing import FloatArray
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row, clock

#: As published: wind [m/s], gravity [m/s^2].
WIND, GRAVITY = 5.0, 9.8
#: Our step [s] and steps; noise of a place [m]; cells along an edge; most evaluations a phase, ends of the phases [s].
DT, STEPS, NOISE, CELLS, MOST, ENDS = 0.0025, 120, 1e-3, 24, 8, (0.1, 0.3)
#: Cloths; ten were published.
MATERIALS = 10
#: Ranges: mass an area [kg/m^2]; stretch along warp, weft, shear [N/m]; its stiffening [N/m]; bending [N m].
RANGES = {
    "density": (0.12, 0.3),
    "warp": (20, 60),
    "weft": (20, 60),
    "shear": (15, 40),
    "stiffening": (20, 100),
    "bending": (3e-7, 1.3e-5),
}
PATHS = {"density": "density", "bending": "bending.stiffness"}
ENERGY = "(warp*(C11 - 1)**2 + weft*(C22 - 1)**2 + shear*C12**2)/8 + stiffening*((C11 - 1)**4 + (C22 - 1)**4)/64"


def scene(numbers: dict[str, float], dt: float, steps: int, diagonals: str) -> dict[str, Any]:
    """Return a square metre of cloth that hangs by two corners in the wind, with markers at 5 x 5 points."""
    corners = [{"min": [0.499, 0.499, None]}, {"min": [None, 0.499, None], "max": [-0.499, None, None]}]
    stretch = {name: numbers[name] for name in ("warp", "weft", "shear", "stiffening")}
    material = {
        "density": numbers["density"],
        "thickness": 1,
        "membrane": {"model": "formula", "energy": ENERGY, "numbers": stretch, "viscosity": 0.01},
        "bending": {"model": "hinge", "stiffness": numbers["bending"], "damping": 3e-7},
    }
    mesh = {"shape": "rectangle", "size": [1, 1], "cells": [CELLS, CELLS], "diagonals": diagonals}
    points = [[x, y, 0] for x in np.linspace(-0.5, 0.5, 5) for y in np.linspace(-0.5, 0.5, 5)]
    return {
        "schema": "add-scene/1",
        "time": {"dt": dt, "steps": steps},
        "gravity": [0, 0, -GRAVITY],
        "bodies": {
            "cloth": {
                "type": "cloth", "mesh": mesh, "material": material, "position": [0, 0, 1],
                "orientation": [0.707106781186548, 0.707106781186548, 0, 0],
                "pins": [{"where": {"box": box}} for box in corners],
            }
        },
        "couplings": {"air": {"type": "air", "body": "cloth", "density": 1.2, "friction": 0.02, "wind": [0, WIND, 0]}},
        "markers": {f"m{k}": {"body": "cloth", "point": point} for k, point in enumerate(points)},
    }  # fmt: skip


def paths(raw: dict[str, Any], every: int) -> FloatArray:
    """Return the places of the markers every so many steps (k, m, 3) [m]."""
    built = add.scene_from_dict(raw).build()
    run = built.run()
    ks = range(every, run.n_steps + 1, every)
    return np.array([built.markers.points(run.kinematics(k), built.theta)[0] for k in ks])


def problem_of(seen: FloatArray, steps: int) -> InverseProblem:
    """Return the fit of recorded places, from the middle of all ranges."""
    start = {name: float(np.sqrt(low * high)) for name, (low, high) in RANGES.items()}
    raw = scene(start, DT, steps, "irregular")
    times = (DT * np.arange(1, steps + 1)).round(12).tolist()
    raw["objective"] = [
        {"type": "track", "marker": name, "times": times, "values": seen[:, k].tolist(), "weight": 1 / seen.shape[1]}
        for k, name in enumerate(raw["markers"])
    ]
    raw["parameters"] = [
        {"path": f"bodies.cloth.material.{PATHS.get(name, f'membrane.numbers.{name}')}", "transform": "log",
         "bounds": [low / 10, high * 10]} for name, (low, high) in RANGES.items()
    ]  # fmt: skip
    phases = [{"name": f"to {1e3 * end:.0f} ms", "end_time": end} for end in ENDS if end <= DT * steps]
    raw["optimizer"] = {"method": "gauss-newton", "max_evaluations": MOST, "phases": phases}
    return add.scene_from_dict(raw).inverse_problem()


def run(context: Context) -> Outcome:
    """Fit every cloth."""
    steps, rng = (40 if context.short else STEPS), np.random.default_rng(1)
    errors: list[list[float]] = []
    apart, misfits, seconds, bars, weakest = [], [], [], [], []
    for _ in range(1 if context.short else MATERIALS):
        truth = {name: float(np.exp(rng.uniform(*np.log(ends)))) for name, ends in RANGES.items()}
        exact = paths(scene(truth, DT / 2, 2 * steps, "alternating"), 2)
        way = np.sqrt(((exact - exact[0]) ** 2).sum(axis=2).mean())
        seen = exact + NOISE * rng.normal(size=exact.shape)
        problem = problem_of(seen, steps)
        problem.residuals_and_jacobian(problem.x0)
        simulated: list[float] = []
        with clock() as taken:
            found = problem.optimize(progress=lambda item, _, to=simulated: to.append(item.value))
        numbers = dict(zip(RANGES, np.ravel(problem.values(found.x)), strict=True))
        rho, jacobian = problem.residuals_and_jacobian(found.x)
        bars.append(float(np.sqrt(np.linalg.inv(jacobian.normal())[-1, -1] * (rho @ rho))))
        again = paths(scene(numbers, DT, steps, "irregular"), 1)
        unit = np.sqrt(((again - seen) ** 2).sum(axis=2).mean() / (rho @ rho))  # a residual as a distance [m]
        least, directions = np.linalg.eigh(jacobian.normal())
        weakest.append([unit * np.sqrt(max(least[0], 0.0)) / way, abs(directions[-1, 0])])
        apart.append(float(np.sqrt(((again - exact) ** 2).sum(axis=2).mean()) / way))
        same = paths(scene(truth, DT, steps, "irregular"), 1)
        misfits.append(float(np.sqrt(((same - exact) ** 2).sum(axis=2).mean()) / way))
        seconds.append(taken.seconds / len(simulated) / steps)
        errors.append([numbers[name] / truth[name] - 1.0 for name in RANGES])
    by, ratios = dict(zip(RANGES, np.abs(errors).T, strict=True)), 1.0 + np.array(errors)[:, -1]
    by = {
        "density": by["density"],
        "linear stretch": np.mean([by[name] for name in ("warp", "weft", "shear")], axis=0),
        "non-linear stretch": by["stiffening"],
        "bending": by["bending"],
        "simulation": np.array(apart),
    }
    rows = [
        Row(f"{name}: error, median; mean and deviation of {len(errors)} cloths [%]",
            f"{np.median(values):.2g}; {values.mean():.2g} +- {values.std():.2g}", f"cloth4.{name}")
        for name, values in ((name, 100 * found) for name, found in by.items())
    ]  # fmt: skip
    rows += [
        Row("bending: least singular value by the logarithms of all, median [% of the way]; share of bending in it",
            f"{100 * np.median(weakest, axis=0)[0]:.2g}; {np.median(weakest, axis=0)[1]:.2f}"),
        Row("bending: found over true, least to largest; bar of its logarithm, median; errors within their bars",
            f"{ratios.min():.2g} to {ratios.max():.2g}; {np.median(bars):.2g}; "
            f"{(abs(np.log(ratios)) < bars).sum()} of {ratios.size}"),
        Row("the true numbers, simulated with the fit's step and triangles: apart from the recording, median [%]",
            f"{100 * np.median(misfits):.2g}"),
        Row("a step and iteration, derivatives included [s]", f"{np.mean(seconds):.3f}", "cloth4.seconds"),
    ]  # fmt: skip
    with figure(context.image("cloth_wind.png"), 4.4, 2.6) as drawn:
        axes = drawn.subplots()
        for k, values in enumerate(by.values()):
            axes.semilogy(np.full(values.size, k), 100 * values, "o", ms=3)
        axes.set(xticks=range(len(by)), ylabel="error [%]")
        axes.set_xticklabels(list(by), rotation=15)
    images = {"cloth_wind.png": "Errors of each cloth."}
    return Outcome(tuple(rows), images, NOTES, {name: values.tolist() for name, values in by.items()})


NOTES = (
    "The recording has half the step of the fit, another triangulation of as many cells, and 1 mm of white noise at 5 "
    "x 5 points; every fit begins in the middle of the ranges. Own cloths by formula, with a stiffening, for the "
    "measured fabrics, whose tables may not be passed on. Bounded: 0.3 s of motion with steps of "
    "2.5 ms, by 24 x 24 cells, for the published 1 s with steps of 20 ms: beyond that the cloth snaps over, and mesh "
    "and step, not the numbers, decide where its corners are. What is left of the errors are mesh and step as well. Of "
    "the first cloth, by its true numbers, the fit's mesh alone is apart from the recording's by 0.80 % of the way at "
    "12 x 12 cells and 0.27 % at 24 x 24, a step of 5 ms from one of 2.5 ms by 0.33 %, 2.5 ms from 1.25 ms by 0.14 %: "
    "with 12 x 12 cells and 5 ms errors of density and simulation are 0.55 % and 0.64 %.",
    "Bending of a woven cloth is not seen beside them: a factor of e in it, with all other numbers free, moves the "
    "points by the least singular value. Its bar is that of a misfit whose shape is the worst one, since what mesh and "
    "step leave is no noise: it says that the fit knows nothing of bending. Where bending ends is chance: after 12 "
    "evaluations a phase, in place of 8, that of the first cloth is 210 % off in place of 38 %. Bending is by hinges, "
    "as published.",
)

ENTRY = Entry(
    "cloth4",
    "Cloth: its material from its motion in the wind",
    "A square metre of cloth hangs by two corners in a wind of 5 m/s; density, stretch along warp, weft and in shear, "
    "its stiffening and bending are found from the places of 25 points, by Gauss-Newton (after Liang, Lin, Koltun, "
    "NeurIPS 2019).",
    run,
)
