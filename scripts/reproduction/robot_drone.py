"""A ball on a vertical slide that rests on the ground and is wanted higher (Werling et al. 2021, Figs. 3, 4, 7)."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

import add
from add.inverse import InverseProblem
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row

#: As published: radius [m], mass [kg], goal [m], rate of descent [N^2/m^2], iterations; and our intervals of control.
RADIUS, MASS, GOAL, RATE, ITERATIONS, ROWS = 0.3, 0.1, 5.0, 10.0, 50, 500

#: kappa: so large that what rests gives way nearly wholly.
RELAXATION = 1e3


def drone(steps: int = 500, *, law: str = "impulse", **contact: Any) -> dict[str, Any]:
    """Return the scene; it starts 0.1 mm inside the ground, and all thrusts are zero."""
    ball = {"geometry": {"shape": "sphere", "radius": RADIUS}}
    rows = min(ROWS, steps)
    return {
        "schema": "add-scene/1",
        "time": {"dt": 1e-3, "steps": steps, "integrator": "bdf1"},
        "gravity": [0, 0, -9.81],
        "bodies": {"drone": {
            "type": "articulated", "links": {"ball": {"mass": MASS, "shapes": [ball]}},
            "joints": {"ball": {"type": "slide", "axis": [0, 0, 1], "value": RADIUS - 1e-4}},
            "drives": {"rotor": {"joint": "ball", "input": {"signal": "thrust"}}},
        }},
        "signals": {"thrust": {"type": "control", "basis": "constant", "rows": rows, "values": [0.0]}},
        "obstacles": {"ground": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"friction_law": law, "friction": 0.0} | contact,
        "markers": {"middle": {"body": "drone/ball", "point": [0, 0, 0]}},
        "objective": [{"type": "point", "marker": "middle", "target": [0, 0, GOAL], "axes": "z", "time": "end"}],
        "parameters": [{"path": "signals.thrust.values", "bounds": [-10, 10], "scale": 1.0}],
        "optimizer": {"method": "gauss-newton", "max_evaluations": 10},
    }  # fmt: skip


def relaxed(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the scene with relaxed contact in the backward pass, so much that what rests is as if it were free."""
    return copy.deepcopy(raw) | {"gradient": {"contact": "relaxed", "relaxation": RELAXATION}}


def explored(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the scene with the published choice in the backward pass: contacts that the objective wants open part."""
    return copy.deepcopy(raw) | {"gradient": {"contact": "explore"}, "optimizer": {"method": "sgd", "rate": RATE}}


def soft(steps: int) -> dict[str, Any]:
    """Return the scene with a penalty that begins smoothly."""
    return drone(steps, law="linear", stiffness=1e3, damping=1.0, onset=1e-3, damping_ramp=1e-3)


def platform(steps: int) -> dict[str, Any]:
    """Return a ball on a slide above a driven platform that it does not touch; the platform's force is the control."""
    raw = drone(steps)
    plate = {"geometry": {"shape": "box", "size": [1.0, 1.0, 0.1]}}
    raw["bodies"]["plate"] = {
        "type": "articulated", "links": {"plate": {"mass": 1.0, "shapes": [plate]}},
        "joints": {"plate": {"type": "slide", "axis": [0, 0, 1], "value": 0.05}},
        "drives": {"lift": {"joint": "plate", "input": {"signal": "thrust"}}},
    }  # fmt: skip
    del raw["bodies"]["drone"]["drives"]
    raw["bodies"]["drone"]["joints"]["ball"]["value"] = 2.0
    return raw


def descent(problem: InverseProblem, iterations: int, rate: float) -> list[float]:
    """Return the objective over iterations of gradient descent within the bounds; nothing follows a zero gradient."""
    lower, upper = problem.bounds
    x, values = problem.x0, []
    for _ in range(iterations):
        value, gradient = problem.value_and_grad(x)
        values.append(value)
        following = np.clip(x - rate * gradient, lower, upper)
        if np.abs(following - x).max() < 1e-12:
            return [*values, *[value] * (iterations + 1 - len(values))]
        x = following
    return [*values, problem.value(x)[0]]


def run(context: Context) -> Outcome:
    """Try gradient descent with three derivatives of contact, and Gauss-Newton with one of them and with a penalty."""
    steps, iterations = (60, 4) if context.short else (500, ITERATIONS)
    rate = RATE * (500 / steps) ** 2  # a short run takes a larger force
    raws = (drone(steps), relaxed(drone(steps)), explored(drone(steps)))
    plain, eased, choosing = (add.scene_from_dict(raw).inverse_problem() for raw in raws)
    rows, values, curves = [], {}, {}
    slope = float(np.abs(plain.value_and_grad(plain.x0)[1]).max())
    values["plain slope"] = slope
    rows.append(Row("at rest: largest entry of the exact gradient by thrust, known 0", f"{slope:.1e}"))
    still = add.scene_from_dict(platform(steps)).inverse_problem()
    values["platform slope"] = float(np.abs(still.value_and_grad(still.x0)[1]).max())
    rows.append(Row("platform that is never reached: the same", f"{values['platform slope']:.1e}"))
    ways = (("exact", plain, "robots2.plain"), ("relaxed", eased, None), ("explored", choosing, "robots2.explored"))
    for name, problem, published in ways:
        curves[name] = descent(problem, iterations, rate)
        rows.append(Row(f"gradient descent, {name} contact: objective first, last [m^2]",
                        f"{curves[name][0]:.3g}, {curves[name][-1]:.3g}", published))  # fmt: skip
    penalty = add.scene_from_dict(soft(steps)).inverse_problem()
    for name, problem in (("relaxed", eased), ("penalty with an onset", penalty)):
        result = problem.optimize()
        values[name] = {"evaluations": result.evaluations, "off": float(np.sqrt(problem.value(result.x)[0]))}
        rows.append(Row(f"Gauss-Newton, {name}: runs; off the goal [mm]",
                        f"{result.evaluations}; {1e3 * values[name]['off']:.3g}"))  # fmt: skip
    values["curves"] = curves
    with figure(context.image("robot_drone.png"), 5.0, 2.4) as drawn:
        axes = drawn.subplots()
        for name, curve in curves.items():
            axes.semilogy(np.maximum(curve, 1e-12), label=f"{name} contact")
        axes.set(xlabel="iteration", ylabel="objective [m$^2$]")
        axes.legend()
    caption = (
        "Gradient descent from rest at the published rate, with the exact, the relaxed and the explored derivative of "
        "contact."
    )
    return Outcome(tuple(rows), {"robot_drone.png": caption}, NOTES, values)


NOTES = (
    "Relaxed contact, kappa = 1000, has the right direction and a small slope: descent at the published rate does not "
    "take off within 50 iterations; Gauss-Newton, which does not ask for the size of the slope, does. The published "
    'escape, `"gradient": {"contact": "explore"}`, lets contacts part in the backward pass where the objective wants '
    "it, and takes off. No derivative sees the platform: what is apart has none.",
)

ENTRY = Entry(
    "robots2",
    "Robots: a drone on a slide, and a platform",
    "A ball of 0.1 kg on a vertical slide rests on the ground, 500 thrusts of 1 ms are to bring it to 5 m; the exact "
    "gradient of what rests is zero.",
    run,
)
