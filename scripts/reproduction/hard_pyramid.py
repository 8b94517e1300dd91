"""The cone is isotropic, the pyramid is not: friction over the direction of slip (Le Lidec 2021, Fig. 5)."""

from __future__ import annotations

import numpy as np

import add
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row
from scripts.reproduction.hard_scenes import FRICTION, SPEED, cube, floor_scene


def _along(cone: str, angle: float, friction: float, steps: int) -> float:
    """Return how far a cube slides along the direction of its first velocity [m]."""
    body = cube() | {"velocity": [SPEED * np.cos(angle), SPEED * np.sin(angle), 0]}
    raw = floor_scene({"a": body}, steps, friction_cone=cone, friction=friction)
    end = add.scene_from_dict(raw).build().run().q[-1]
    return float(end[0] * np.cos(angle) + end[1] * np.sin(angle))


def _estimate(angle: float, wanted: float, steps: int) -> float:
    """Return the friction with which the pyramid goes as far as the cone did, by secants."""
    a, b = 0.5 * FRICTION, FRICTION
    f_a, f_b = (_along("pyramid", angle, x, steps) - wanted for x in (a, b))
    for _ in range(8):
        if abs(f_b) < 1e-13 or f_a == f_b:
            break
        a, b, f_a = b, b - f_b * (b - a) / (f_b - f_a), f_b
        f_b = _along("pyramid", angle, b, steps) - wanted
    return float(b)


def run(context: Context) -> Outcome:
    """Slide in all directions."""
    steps = 20
    angles = np.radians(np.arange(0.0, 91.0, 45.0 if context.short else 7.5))
    ways = np.array([_along("round", angle, FRICTION, steps) for angle in angles])
    estimates = np.array([_estimate(angle, ways[0], steps) for angle in angles])
    wanted = FRICTION / (np.abs(np.cos(angles)) + np.abs(np.sin(angles)))
    # Along an axis one tangent does not slip, and the pyramid is the cone.
    middle = int(np.argmin(np.abs(angles - np.pi / 4)))
    rows = (
        Row("cone: spread of the way over the angle, relative", f"{np.ptp(ways) / ways[0]:.1e}"),
        Row("pyramid fitted to the cone's motion at 45 degrees: mu", f"{estimates[middle]:.5f}", "hard2.pyramid"),
        Row("largest distance from mu/(|cos| + |sin|)", f"{np.abs(estimates - wanted).max():.1e}"),
    )
    with figure(context.image("hard_pyramid.png"), 4.5, 2.6) as drawn:
        axes = drawn.subplots()
        degrees = np.degrees(angles)
        axes.plot(degrees, np.full(angles.size, FRICTION), label="cone")
        axes.plot(degrees, estimates, "o", ms=4, label="pyramid, fitted")
        axes.plot(degrees, wanted, lw=0.7, color="k", label="mu/(|cos| + |sin|)")
        axes.set(xlabel="direction of slip [degrees]", ylabel="friction found", ylim=(0.12, 0.21))
        axes.legend()
    values = {"angles": angles.tolist(), "estimates": estimates.tolist(), "ways": ways.tolist()}
    caption = "Friction that a model with a pyramid finds in the cone's motion."
    return Outcome(rows, {"hard_pyramid.png": caption}, (), values)


ENTRY = Entry(
    "hard2",
    "Hard contact: cone and pyramid",
    "The cube slides in directions from 0 to 90 degrees. The model with the boxed pyramid is fitted to how far the "
    "cone lets it go.",
    run,
)
