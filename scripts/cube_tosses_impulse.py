"""The cube tosses with contact by impulses, beside the penalties of `cube_tosses.py`: the same tosses, the same starts.

    ADD_DATA=... python -m scripts.cube_tosses_impulse [FOLDER]

Friction and restitution are all that this contact has. They are searched on a grid, by the error at the end of the
tosses that `cube_tosses.py` fits, and the best ones predict the others.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np

import add
from add.errors import InputError
from add.scene.build.built import BuiltScene
from scripts.cube_tosses import COUNT, EVERY, FOLDER, prediction_errors
from scripts.recordings import recordings, scene_of_study

FRICTION = (0.14, 0.16, 0.17, 0.18, 0.19, 0.2, 0.22)
RESTITUTION = (0.0, 0.1, 0.2, 0.3, 0.4)
#: Beyond these a toss has gone another way, and how far says little [% of edge, deg].
LOST = 60.0


def built_for(base: add.Scene, friction: float, restitution: float) -> BuiltScene:
    """Return the toss with a contact by impulses."""
    contact: dict[str, object] = {"friction_law": "impulse", "friction": friction}
    if restitution:
        contact["pairs"] = [{"body": "cube", "obstacle": "table", "restitution": restitution}]
    changes = {"contact": contact, "time.integrator": "bdf1", "objective": [], "parameters": [], "check": None}
    return add.apply_overrides(base, changes).build()


def main(named: list[Path]) -> None:
    """Search on the fitted tosses, predict the others."""
    files = recordings(named, *FOLDER).files
    base = scene_of_study("cube_toss", files[0])
    fitted = files[::EVERY][:COUNT]
    others = [file for file in files if file not in fitted]
    found = {}
    for values in itertools.product(FRICTION, RESTITUTION):
        errors = prediction_errors(built_for(base, *values), fitted, base.recording.scale)
        found[values] = float(np.minimum(errors[:, :2], LOST).mean())
        print(f"friction {values[0]:.2f}, restitution {values[1]:.1f}: {found[values]:.2f}", flush=True)
    best = min(found, key=lambda values: found[values])
    errors = prediction_errors(built_for(base, *best), others, base.recording.scale)
    print(f"friction {best[0]:g}, restitution {best[1]:g}; {len(errors)} tosses predicted")
    for name, row in (("median", np.median(errors, axis=0)), ("mean", errors.mean(axis=0))):
        print(f"| {name} | " + " | ".join(f"{value:.1f}" for value in row) + " |")
    print(f"ends on the right face: {100 * np.mean(errors[:, 1] < 45):.0f} %")


if __name__ == "__main__":
    try:
        main([Path(name) for name in sys.argv[1:]])
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
