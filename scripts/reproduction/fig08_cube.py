"""Fig. 8: a foam cube from a recording."""

from __future__ import annotations

from scripts.reproduction.entry import Context, Entry, Outcome
from scripts.reproduction.mocap import Recorded, fit

CASE = Recorded(
    "fig8",
    "fig8_foam_cube",
    "foam_cube",
    "cube",
    {
        "bodies.cube.mesh.divisions": [2, 2, 2],
        "time.duration": 0.1,
        "optimizer.phases": [{"name": "all", "max_evaluations": 3}],
    },
)


def run(context: Context) -> Outcome:
    """Fit the cube."""
    return fit(CASE, context)


ENTRY = Entry(
    "fig8",
    "Fig. 8: a foam cube from motion capture",
    "The same for a cube, over a horizon that grows by 0.15 s.",
    run,
)
