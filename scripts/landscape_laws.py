"""How rough the objective of Fig. 3's throw is under each normal law: a table of docs/studies/landscape.md.

    python -m scripts.landscape_laws

A coarse ball is thrown at the floor and is to end at a point. Of fine scans of the vertical velocity around the throw
with one bounce: the largest departure from a parabola over the range of the scan, the number of local minima inside it,
and how many of the exact derivatives have the sign of the parabola's slope.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from add.scene import Scene, apply_overrides, load_scene
from scripts.reproduction.entry import MESHES, SCENES
from scripts.reproduction.fig03_landscape import FINE, MIDDLE, SCAN, roughness, scan

#: Thicknesses of the layers [m]; the soft-max's is the width of its kink.
LAWS: dict[str, dict[str, Any]] = {
    "penalty": {},
    "penalty, onset 1 mm": {"contact.onset": 1e-3},
    "penalty+wall, 4 mm": {"contact.law": "penalty+wall", "contact.thickness": 4e-3},
    "penalty+wall, 4 mm, onset 1 mm": {
        "contact.law": "penalty+wall", "contact.thickness": 4e-3, "contact.onset": 1e-3,
    },
    "log-barrier, 4 mm": {"contact.law": "log-barrier", "contact.thickness": 4e-3},
    "soft-max, 0.2 mm": {"contact.law": "soft-max", "contact.thickness": 2e-4},
    "soft-max, 1 mm": {"contact.law": "soft-max", "contact.thickness": 1e-3},
}  # fmt: skip
STIFFNESSES = (100.0, 1000.0)


def thrown(stiffness: float, law: dict[str, Any]) -> Scene:
    """Return the throw of Fig. 3 with a coarse ball."""
    mesh = {"bodies.ball.mesh.file": str(MESHES / "ball_small.msh")}
    return apply_overrides(
        load_scene(SCENES / "fig10a_ball_to_point.json"), mesh | {"contact.stiffness": stiffness} | law
    )


def minima(values: np.ndarray) -> int:
    """Return how many samples inside a scan are below both neighbours."""
    return int(np.sum((values[1:-1] < values[:-2]) & (values[1:-1] < values[2:])))


def agreeing(speeds: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> int:
    """Return how many of the derivatives have the sign of the slope of the parabola through a scan."""
    s = speeds - speeds.mean()
    trend = np.polyval(np.polyder(np.polyfit(s, values, 2)), s)
    return int(np.sum(np.sign(trend) == np.sign(slopes)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=SCAN, help="of each scan")
    parser.add_argument("--step", type=float, default=FINE, help="between samples [m/s]")
    given = parser.parse_args()
    print(
        "| law | k_n [N/m] | departure from a parabola | in mm^2 | minima inside | derivatives that follow its slope |"
    )
    print("|---|---|---|---|---|---|")
    for stiffness in STIFFNESSES:
        for name, law in LAWS.items():
            problem = thrown(stiffness, law).inverse_problem()
            speeds, values, slopes = scan(problem, MIDDLE, given.samples)
            rough, follow = roughness(values), agreeing(speeds, values, slopes)
            away = 1e6 * rough * np.ptp(values)
            found = f"{rough:.1%} | {away:.2g} | {minima(values)} | {follow} of {speeds.size}"
            print(f"| {name} | {stiffness:g} | {found} |", flush=True)


if __name__ == "__main__":
    main()
