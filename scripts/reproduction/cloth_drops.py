"""A fine cloth falls over a ball, and upright onto itself: whether any of it passes through anything."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from trimesh.creation import icosphere

import add
from add.contact import MeshContact
from add.linalg import one_blas_thread
from scripts.reproduction.cloth_impacts import crossing_pairs
from scripts.reproduction.cloth_pyramid import cloth, scene
from scripts.reproduction.drawing import figure, show
from scripts.reproduction.entry import Context, Entry, Outcome, Row, clock
from scripts.reproduction.running import fallbacks, iterations, picture

#: Cells along an edge; steps, after which what moves is slow.
CELLS, STEPS = 64, 200
#: Radius of the ball [m].
RADIUS = 0.2


def about_x(degrees: float) -> list[float]:
    """Return the quaternion of a turn about x."""
    half = np.deg2rad(0.5 * degrees)
    return [float(np.cos(half)), float(np.sin(half)), 0, 0]


def drops(cells: int, steps: int, ball: Path) -> dict[str, dict[str, Any]]:
    """Return a cloth above a ball on a floor, and one that stands over a floor, nearly upright."""
    slab = {"shape": "box", "size": [1.6, 1.6, 0.1]}
    floor = {"floor": {"type": "kinematic", "geometry": slab, "position": [0, 0, -0.05]}}
    held = {"type": "kinematic", "geometry": {"file": str(ball)}, "position": [0, 0, RADIUS]}
    over = cloth(cells, position=[0.02, 0.01, 0.44], orientation=about_x(10))
    upright = cloth(cells, position=[0, 0, 0.55], orientation=about_x(84))
    return {
        "over a ball": scene({"cloth": over, "ball": held, **floor}, steps),
        "onto itself": scene({"cloth": upright, **floor}, steps),
    }


def run(context: Context) -> Outcome:
    """Both falls."""
    cells, steps = (8, 60) if context.short else (CELLS, STEPS)
    rows, values, pixels = list[Row](), dict[str, Any](), []
    with tempfile.TemporaryDirectory() as folder, one_blas_thread():
        ball = Path(folder) / "ball.obj"
        icosphere(subdivisions=2 if context.short else 4, radius=RADIUS).export(ball)
        scenes = drops(cells, steps, ball)
        for name, raw in scenes.items():
            built = add.scene_from_dict(raw).build()
            with clock() as taken:
                found = built.run()
            (term,) = built.model.term(MeshContact)
            number = built.simulation.system.deciding.index(term)
            touching = max(term.describe(record.decisions[number])["touching"] for record in found.records)
            crossing = crossing_pairs(built, found)
            rows += [
                Row(f"{name}, {(cells + 1) ** 2} nodes: pairs that cross, over {steps} steps; most pairs that touch",
                    f"{crossing}; {touching}"),
                Row(f"{name}: a step [ms]; iterations a step; steps beyond Newton's normal path",
                    f"{1e3 * taken.seconds / steps:.0f}; {iterations(found):.1f}; {fallbacks(found)}"),
            ]  # fmt: skip
            values[name] = {"crossing": crossing, "touching": touching, "seconds": taken.seconds}
            pixels += [picture(built, found, built.theta, t * found.t[-1], (420, 330)) for t in (0.45, 1.0)]
    with figure(context.image("cloth_drops.png"), 5.4, 4.2) as drawn:
        for axes, shown in zip(drawn.subplots(2, 2).ravel(), pixels, strict=True):
            show(axes, shown)
    return Outcome(tuple(rows), {"cloth_drops.png": "Both at 0.45 s and at 1 s."}, NOTES, values)


NOTES = (
    "No published numbers. Cloth and steps are those of the pyramid, the ball is a mesh of 2562 vertices: a ball as a "
    "shape would press at its nearest place alone. Edges of the cloth's triangles against all faces, of the cloth, "
    "ball and floor, after each step.",
)

ENTRY = Entry(
    "cloth9",
    "Cloth: dropped over a ball and onto itself",
    "A square of cloth of 1 m falls over a ball on a floor, and another one, upright, onto itself.",
    run,
)
