"""The cube tosses over grids of static and kinetic, or of torsional and rolling friction: what such laws do at best.

    ADD_DATA=... python -m scripts.cube_tosses_friction static|spin [FOLDER] [--result runs/cube_tosses.json] [--others]

Damping and stiffness are those of the result of `cube_tosses.py fit`. The grid is searched by the error at the end of
the tosses that were fitted there, and its best point predicts the others. With --others the grid is searched on these
themselves: in hindsight no choice on this grid could have predicted them better.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

import numpy as np

import add
from add.errors import InputError
from scripts.cube_tosses import COUNT, EVERY, FOLDER, ROOT, prediction_errors
from scripts.cube_tosses_impulse import LOST
from scripts.recordings import read_result, recordings, scene_of_study

#: The numbers of each law, and their values; ratio stands for static over kinetic friction.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "static": {
        "friction": (0.16, 0.18, 0.2),
        "ratio": (0.7, 0.85, 1.0, 1.15, 1.3),
        "stribeck_speed": (0.1, 0.3, 0.8),
    },
    "spin": {
        "friction": (0.16, 0.18, 0.2),
        "torsional_friction": (0.0, 5e-4, 2e-3),
        "rolling_friction": (0.0, 2e-4, 1e-3),
    },
}


def contact_numbers(point: dict[str, float]) -> dict[str, float]:
    """Return the numbers of the contact at a point of a grid."""
    ratio = point.get("ratio")
    numbers = {f"contact.{key}": value for key, value in point.items() if key != "ratio"}
    return numbers if ratio is None else numbers | {"contact.static_friction": ratio * point["friction"]}


def main(argv: list[str]) -> None:
    """Search the grid, then predict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("law", choices=GRIDS)
    parser.add_argument("folder", nargs="*", type=Path)
    parser.add_argument("--result", type=Path, default=ROOT / "runs" / "cube_tosses.json")
    parser.add_argument("--others", action="store_true", help="search on the tosses that were not fitted")
    asked = parser.parse_args(argv)
    files = recordings(asked.folder, *FOLDER).files
    fitted = files[::EVERY][:COUNT]
    others = [file for file in files if file not in fitted]
    values, _ = read_result(asked.result)
    base = scene_of_study("cube_toss", files[0])
    grid = GRIDS[asked.law]

    def errors_of(point: dict[str, float], tosses: list[Path]) -> np.ndarray:
        built = add.apply_overrides(base, values | contact_numbers(point)).build()
        return prediction_errors(built, tosses, base.recording.scale)

    found = []
    for numbers in itertools.product(*grid.values()):
        point = dict(zip(grid, numbers, strict=True))
        errors = errors_of(point, others if asked.others else fitted)
        error = float(np.minimum(errors[:, :2], LOST).mean())
        median = np.median(errors[:, :2], axis=0)
        found.append((error, point))
        print(f"{point}: {error:.2f}; medians {median[0]:.1f} %, {median[1]:.1f} deg", flush=True)
    error, best = min(found, key=lambda item: item[0])
    print(f"best: {best}, {error:.2f}")
    if asked.others:
        return
    errors = errors_of(best, others)
    print(f"{len(errors)} tosses predicted")
    for name, row in (("median", np.median(errors, axis=0)), ("mean", errors.mean(axis=0))):
        print(f"| {name} | " + " | ".join(f"{value:.1f}" for value in row) + " |")
    print(f"ends on the right face: {100 * np.mean(errors[:, 1] < 45):.0f} %")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
