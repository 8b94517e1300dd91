"""Fig. 7: a foam sphere from a recording."""

from __future__ import annotations

from scripts.reproduction.entry import MESHES, Context, Entry, Outcome
from scripts.reproduction.mocap import Recorded, fit

CASE = Recorded(
    "fig7",
    "fig7_foam_sphere",
    "foam_sphere",
    "sphere",
    {
        "bodies.sphere.mesh.file": str(MESHES / "ball_small.msh"),
        "bodies.sphere.scale": 2.0,
        "time.duration": 0.1,
        "optimizer.phases": [{"name": "all", "max_evaluations": 3}],
    },
)


def run(context: Context) -> Outcome:
    """Fit the sphere."""
    return fit(CASE, context)


ENTRY = Entry(
    "fig7",
    "Fig. 7: a foam sphere from motion capture",
    "Seventeen numbers (how it was thrown, material, friction of floor and wall) from one recording, in stages.",
    run,
)
