"""Fig. 7 with a recording from a mesh twice as fine, and its second motion."""

from __future__ import annotations

from scripts.reproduction import fig07_sphere, sliding
from scripts.reproduction.entry import Context, Entry, Outcome

FINER = {"bodies.sphere.mesh": {"shape": "sphere", "radius": 0.0495, "edge": 0.02}}
THROWS = sliding.Throws(
    fig07_sphere.CASE,
    flight=0.12,
    bounce=0.2,
    second_flight=0.19,
    finer=FINER,
    tolerance=3e-6,
    points_tolerance=1e-7,
)


def run(context: Context) -> Outcome:
    """Fit the sphere and predict its second throw."""
    return sliding.run(THROWS, context)


ENTRY = Entry(
    "fig7_sliding",
    "Fig. 7, a throw that slips, recorded on a mesh twice as fine; the second motion",
    "Throw, material and both frictions from markers and from points; then the bounces of another throw, predicted.",
    run,
)
