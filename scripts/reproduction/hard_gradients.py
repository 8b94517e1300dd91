"""Gradients that users ask about: take-off, a platform, a drone, two balls (Werling et al. 2021; their issue 97)."""

from __future__ import annotations

from typing import Any

import numpy as np

import add
from add.adjoint import value_and_gradient
from add.scene.build.inverse_problem import scene_objective
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row
from scripts.reproduction.hard_scenes import GRAVITY, MASS, cube, floor_scene


def slopes(raw: dict[str, Any], *paths: str) -> tuple[float, list[float]]:
    """Return the end of the objective's marker on its axis, and its derivatives: the objective is its square root."""
    scene = add.scene_from_dict(raw)
    built = scene.build()
    objective = scene_objective(scene, built, "scene", built.simulation.n_steps)
    assert objective is not None
    found = value_and_gradient(built.simulation, objective)
    root = float(np.sqrt(found.value))
    by_number = built.numbers.ties.pullback(built.numbers.values, found.gradient) / (2.0 * root)
    return root, [float(by_number[built.numbers.resolve(path)[0][0]]) for path in paths]


def pushed(force: float, **more: Any) -> dict[str, Any]:
    """Return a resting cube that a force pulls up; its height above -1 m at the end counts."""
    raw = floor_scene({"a": cube()}, 60) | more
    push = {"type": "force", "on": {"body": "a", "at": [0, 0, 0]}, "force": [0, 0, force]}
    raw["couplings"] = {"push": push}
    raw["objective"] = [{"type": "point", "marker": "a", "target": [0, 0, -1.0], "axes": "z", "time": "end"}]
    return raw


def two_balls(x: float, law: str, steps: int = 100) -> dict[str, Any]:
    """Return two equal elastic balls on a line; where the second one ends counts."""
    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1.0}
    bodies = {
        "a": ball | {"position": [0, 0, 0], "velocity": [1, 0, 0]},
        "b": ball | {"position": [x, 0, 0], "velocity": [0, 0, 0]},
    }
    pairs = [{"between": ["a", "b"], "restitution": 1.0, "friction": 0.0}]
    raw = floor_scene(bodies, steps, 1.0 / steps, between_bodies=True, impact_time=law, pairs=pairs)
    raw |= {"gravity": [0, 0, 0], "obstacles": {}}
    raw["objective"] = [{"type": "point", "marker": "b", "target": [-1.0, 0, 0], "axes": "x", "time": "end"}]
    return raw


STARTS = ("bodies.a.position.0", "bodies.b.position.0", "bodies.a.velocity.0", "bodies.b.velocity.0")


def run(context: Context) -> Outcome:
    """Differentiate all of them."""
    weight, time = MASS * GRAVITY, 60 * 0.005
    rows, values = [], {}
    exact = 0.5 * time * (time + 0.005) / MASS  # of implicit steps
    for label, share, truth in (("rests: half its weight", 0.5, 0.0), ("takes off: 1.2 times it", 1.2, exact)):
        _, (slope,) = slopes(pushed(share * weight), "couplings.push.force.2")
        rows.append(Row(f"cube that {label}; d height/d force [m/N], known {truth:.5g}", f"{slope:.6g}"))
        values[label] = slope
    # A drone: four thrusts at the corners, which a tie makes one; off the ground each counts a quarter.
    raw = pushed(0.0)
    raw["couplings"] = {
        f"rotor{k}": {"type": "force", "on": {"body": "a", "at": [x, y, 0.05]}, "force": [0, 0, 0.3 * weight]}
        for k, (x, y) in enumerate([(0.04, 0.04), (-0.04, 0.04), (-0.04, -0.04), (0.04, -0.04)])
    }
    _, drone = slopes(raw, *(f"couplings.rotor{k}.force.2" for k in range(4)))
    rows.append(Row("drone of four rotors, mean d height/d thrust [m/N], the same", f"{np.mean(drone):.6g}"))
    # A platform that lifts the cube: what pushes the cube down changes nothing.
    lifted = pushed(-1.0)
    lifted["obstacles"]["floor"]["velocity"] = [0, 0, 0.5]
    end, (slope,) = slopes(lifted, "couplings.push.force.2")
    rows.append(Row("platform at 0.5 m/s: height at the end [m], d height/d force [m/N], known 0.15, 0",
                    f"{end - 1.05:.6f}, {slope:.1e}"))  # fmt: skip
    phases = np.linspace(0.0, 1.0, 3 if context.short else 21)
    table = {
        law: np.array([slopes(two_balls(0.52 + 0.01 * phase, law), *STARTS)[1] for phase in phases])
        for law in ("step", "linear")
    }
    for law, found in table.items():
        wrong = np.abs(found - [1.0, 0.0, 1.0, 0.0]).max()
        published = "hard4.nimble" if law == "step" else None
        label = f"two balls, impact_time {law}: largest error of (1, 0, 1, 0) over {phases.size} phases"
        rows.append(Row(label, f"{wrong:.2g}", published))
    with figure(context.image("hard_gradients.png"), 5.0, 2.4) as drawn:
        axes = drawn.subplots()
        axes.plot(phases, table["step"][:, 0], "s-", ms=3, label="impact_time: step")
        axes.plot(phases, table["linear"][:, 0], "o-", ms=3, label="impact_time: linear")
        axes.set(xlabel="phase of the step at the impact", ylabel="d x_2(end)/d x_1")
        axes.legend()
    values["two_balls"] = {law: found.tolist() for law, found in table.items()}
    return Outcome(
        tuple(rows),
        {"hard_gradients.png": "Derivative of the second ball's end by the first one's start, which is 1."},
        (
            "A zero is the exact gradient of what rests: an optimiser that starts there needs another start, or one of "
            "the options of the backward pass.",
        ),
        values,
    )


ENTRY = Entry(
    "hard4",
    "Hard contact: take-off, drone, platform, two balls",
    "A resting cube is pulled up by less and by more than its weight, four rotors lift it, a platform carries it; two "
    "equal elastic balls meet at 21 phases of the step. All derivatives have known values.",
    run,
)
