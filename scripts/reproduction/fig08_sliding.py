"""Fig. 8 with a recording from a mesh twice as fine, and its second motion."""

from __future__ import annotations

from scripts.reproduction import fig08_cube, sliding
from scripts.reproduction.entry import Context, Entry, Outcome

FINER = {"bodies.cube.mesh.divisions": [4, 4, 4]}
THROWS = sliding.Throws(
    fig08_cube.CASE,
    flight=0.16,
    bounce=0.25,
    second_flight=0.17,
    finer=FINER,
    tolerance=1e-4,
    points_tolerance=1e-4,
)


def run(context: Context) -> Outcome:
    """Fit the cube and predict its second throw."""
    return sliding.run(THROWS, context)


ENTRY = Entry(
    "fig8_sliding",
    "Fig. 8, a throw that slips, recorded on a mesh twice as fine; the second motion",
    "Throw, material and both frictions from markers and from points; then the bounces of another throw, predicted.",
    run,
)
