"""A cube lifted by a cloth that four handles move, and a cube carried by two sticks (Qiao et al., ICML 2020)."""

from __future__ import annotations

from typing import Any

import numpy as np

import add
from scripts.reproduction.cloth_impacts import crossing_pairs
from scripts.reproduction.drawing import figure, show
from scripts.reproduction.entry import Context, Entry, Outcome, Row, clock
from scripts.reproduction.running import picture

#: As published, of the cloth: step [s], steps, gravity [m/s^2], how far up the cube is to go and how far beside [m].
DT, STEPS, GRAVITY, UP, BESIDE = 0.04, 20, 2.0, 0.5, 0.05
#: Of the sticks: duration [s] and controls, as published; our step [s], and how far the target is at most [m].
DURATION, CONTROLS, FINE, REACH = 2.0, 20, 0.02, 0.3
#: Ours: targets, most runs with derivatives, what is near enough [m]; a side of the cube [m].
TARGETS, MOST, NEAR, SIDE = 5, 15, 1e-3, 0.1
#: Units of the controls [m], and weights of the squares of their steps [-]: little beside the distance, enough to
#: spread the way over time.
UNITS, SMOOTH = {"cloth": 0.1, "sticks": 0.05}, {"cloth": 1e-6, "sticks": 1e-3}


def controlled(names: list[str], rows: int, axes: tuple[int, ...], unit: float, up: float) -> dict[str, Any]:
    """Return signals of displacements, linear between rows of which the first stays zero, and their parameters.

    They begin as a smooth rise by ``up``.
    """
    rise = 0.5 * up * (1.0 - np.cos(np.linspace(0.0, np.pi, rows + 1)))
    signal = {"type": "control", "basis": "linear", "rows": rows + 1, "values": [[0, 0, float(z)] for z in rise]}
    free = [3 * k + axis for k in range(1, rows + 1) for axis in axes]
    return {
        "signals": dict.fromkeys(names, signal),
        "parameters": [{"path": f"signals.{name}.values", "components": free, "scale": unit} for name in names],
    }


def cube(mass: float, start: list[float]) -> dict[str, Any]:
    """Return the cube that is carried."""
    return {"type": "rigid", "geometry": {"shape": "box", "size": [SIDE] * 3}, "mass": mass, "position": start}


def asked(target: list[float], names: list[str], smooth: float) -> dict[str, Any]:
    """Return the cube's marker, its target, and how it is looked for."""
    return {
        "markers": {"cube": {"body": "cube", "center_of_mass": True}},
        "objective": [
            {"type": "point", "marker": "cube", "target": target, "time": "end"},
            *({"type": "smoothness", "signal": name, "weight": smooth} for name in names),
        ],
        "optimizer": {"method": "gauss-newton", "max_evaluations": MOST},
    }


def lifted(offset: Any) -> dict[str, Any]:
    """Return a cube on a sheet whose four corners are moved up and down, one by one, and where it is to go."""
    half, names = 0.5, [f"handle {k}" for k in range(4)]
    corners = [(x * half, y * half) for x in (-1, 1) for y in (-1, 1)]
    pins = [
        {"where": {"box": {"min": [x - 1e-3, y - 1e-3, None], "max": [x + 1e-3, y + 1e-3, None]}},
         "motion": {"signal": name}} for (x, y), name in zip(corners, names, strict=True)
    ]  # fmt: skip
    start = [0.0, 0.0, 0.5 * SIDE + 0.006]
    target = [float(a + b) for a, b in zip(start, (*offset[:2], UP + offset[2]), strict=True)]
    return {
        "schema": "add-scene/1",
        "time": {"dt": DT, "steps": STEPS, "integrator": "bdf1"},
        "gravity": [0, 0, -GRAVITY],
        "bodies": {
            "sheet": {
                "type": "cloth",
                "mesh": {"shape": "rectangle", "size": [1, 1], "cells": [8, 8], "diagonals": "irregular"},
                "material": {
                    "density": 0.05,
                    "thickness": 5e-4,
                    "membrane": {"model": "neo-hookean", "young": 2e5, "poisson": 0.3, "viscosity": 0.5},
                    "bending": {"model": "hinge", "stiffness": 1e-5, "damping": 1e-5},
                },
                "contact": {"thickness": 0.01},
                "pins": pins,
            },
            "cube": {
                "type": "rigid",
                "geometry": {"shape": "box", "size": [SIDE] * 3},
                "mass": 0.05,
                "position": start,
            },
        },
        "contact": {
            "friction": 0.5,
            "mesh": {"stiffness": 2e4, "onset": 0.002, "damping": 50},
            "pairs": [{"between": ["sheet", "cube"], "by_meshes": True}],
        },
        **controlled(names, STEPS, (2,), UNITS["cloth"], UP),
        **asked(target, names, SMOOTH["cloth"]),
    }


def carried(offset: Any) -> dict[str, Any]:
    """Return a cube between two sticks that press on it and move, one by one, and where it is to go."""
    thick, squeeze, names = 0.03, 1e-3, ["left", "right"]
    sides = {"left": -1.0, "right": 1.0}
    sticks = {
        name: {"type": "kinematic", "geometry": {"shape": "box", "size": [thick, 0.16, 0.16]},
               "position": [sign * (0.5 * (SIDE + thick) - squeeze), 0, 0.5 * SIDE], "translation": {"signal": name}}
        for name, sign in sides.items()
    }  # fmt: skip
    start = [0.0, 0.0, 0.5 * SIDE]
    return {
        "schema": "add-scene/1",
        "time": {"dt": FINE, "steps": round(DURATION / FINE), "integrator": "bdf1"},
        "gravity": [0, 0, -9.8],
        "bodies": {
            "cube": cube(0.1, start),
            **sticks,
        },
        "contact": {
            "friction": 0.8,
            "friction_law": "hybrid",
            "stiffness": 2000,
            "damping": 10,
            "damping_ramp": 1e-3,
            "onset": 1e-4,
        },
        **controlled(names, CONTROLS, (0, 1, 2), UNITS["sticks"], 0.0),
        **asked([float(a + b) for a, b in zip(start, offset, strict=True)], names, SMOOTH["sticks"]),
    }


def distance(kind: str, evaluation: Any) -> float:
    """Return how far the cube ends from its target, from the value of the objective."""
    n = 4 if kind == "cloth" else 2
    rows = UNITS[kind] * np.asarray(evaluation.x).reshape(n, CONTROLS, -1)
    steps = np.diff(rows, axis=1, prepend=np.zeros((n, 1, rows.shape[2])))
    return float(np.sqrt(max(evaluation.value - SMOOTH[kind] * (steps**2).sum(), 0.0)))


def targets(kind: str, rng: np.random.Generator) -> Any:
    """Return where the cube is to go, from where it is: around a place above it, or anywhere within reach above."""
    if kind == "cloth":
        return rng.uniform(-BESIDE, BESIDE, (TARGETS, 3))
    far = rng.normal(size=(TARGETS, 3))
    far[:, 2] = np.abs(far[:, 2])
    return REACH * rng.uniform(0.3, 1.0, (TARGETS, 1)) * far / np.linalg.norm(far, axis=1)[:, None]


def run(context: Context) -> Outcome:
    """Find controls for each target by Gauss-Newton."""
    rows, values = list[Row](), dict[str, Any]()
    with figure(context.image("cloth_carried.png"), 6.4, 2.6) as drawn:
        for axes, (kind, scene) in zip(drawn.subplots(1, 2), {"cloth": lifted, "sticks": carried}.items(), strict=True):
            needed, ends, starts, seconds = list[int](), list[float](), list[float](), 0.0
            for offset in targets(kind, np.random.default_rng(0))[: 1 if context.short else None]:
                of_file = add.scene_from_dict(scene(offset))
                problem, found = of_file.inverse_problem(), list[float]()
                problem.residuals_and_jacobian(problem.x0)
                with clock() as taken:
                    best = problem.optimize(progress=lambda one, _, k=kind, found=found: found.append(distance(k, one)))
                least = np.minimum.accumulate(found)
                ends.append(float(least[-1]))
                starts.append(float(found[0]))
                needed.append(int(np.argmax(least < NEAR)) + 1 if least[-1] < NEAR else -1)
                seconds += taken.seconds / len(found)
            name = "a cube lifted by a cloth" if kind == "cloth" else "a cube between two sticks"
            rows += [
                Row(f"{name}, {problem.n} numbers, {len(ends)} targets: distance at the start, mean [m]; at the end, "
                    "the largest [m]", f"{np.mean(starts):.3f}; {max(ends):.1g}"),
                Row(f"{name}: runs with derivatives to 1 mm, of each target; a run [s]",
                    f"{', '.join('not' if k < 0 else str(k) for k in needed)}; {seconds / len(ends):.2f}"),
            ]  # fmt: skip
            (trajectory,) = problem.value(best.x)[1].values()
            values[kind] = {"ends": ends, "starts": starts, "needed": needed}
            if kind == "cloth":
                values[kind]["crossing"] = crossing_pairs(of_file.build(), trajectory)
                rows.append(Row(f"{name}: pairs that cross, over {STEPS} steps, the last target",
                                str(values[kind]["crossing"])))  # fmt: skip
            theta, end = problem.theta(best.x, problem.experiments[0]), float(trajectory.t[-1])
            show(axes, picture(of_file.build(), trajectory, theta, end, (500, 400)), f"{name}: {end:.1f} s")
    return Outcome(tuple(rows), {"cloth_carried.png": "The last target's end."}, NOTES, values)


NOTES = (
    "Published are curves of loss against episodes, of networks that see where the cube is, beside DDPG; here controls "
    "are a table in time, found for each target anew. Of the cloth as published: gravity, step, number of steps, four "
    "numbers a step (taken for the heights of the handles), the way. Of the sticks: 2 s, twenty controls. Handles "
    "begin with a smooth rise by 0.5 m, in place of no motion: from there runs with a cube that is thrown into the air "
    "lie on the way, and some targets take more than 15. Sticks begin at rest. Squares of the steps of controls are "
    "added with a small weight: else the last control does most of the way, and sticks lose the cube.",
)

ENTRY = Entry(
    "cloth10",
    "Cloth: a cube lifted by a cloth, a cube between two sticks",
    "Four handles lift a cloth with a cube on it, and two sticks press on a cube and carry it: motions of handles and "
    "sticks over time that bring the cube to a place, by derivatives through contact (after Qiao, Liang, Koltun, Lin, "
    "ICML 2020).",
    run,
)
