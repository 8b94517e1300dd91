"""Time a step of a bar of tissue around a chain of bones: python -m scripts.tissue_chains [BONES ...].

Links of one tree or free bodies with stiff hinges between them, tissue tied by condensation or by multipliers; what
docs/soft-robots.md says of the choice comes from here.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import add

#: Length of a bone and its part of the bar [m], cells along and across it; steps that are timed.
LENGTH, CELLS, STEPS = 0.1, (5, 4), 10
BONE = {"shape": "box", "size": [0.08, 0.02, 0.02]}


def scene(bones: int, links: str, by: str) -> dict[str, Any]:
    """Return a bar that one end holds and that falls."""
    names = [f"bone {k}" for k in range(bones)]
    tissue = {
        "type": "soft",
        "element": "hex8",
        "mesh": {
            "shape": "box",
            "size": [LENGTH * bones, 0.04, 0.04],
            "divisions": [CELLS[0] * bones, CELLS[1], CELLS[1]],
        },
        "position": [0.5 * LENGTH * bones, 0, 0],
        "material": {"young": 4e4, "poisson": 0.4, "density": 1000, "viscosity": 20},
        "embedded": [{"body": f"chain/{name}" if links == "tree" else name, "by": by} for name in names],
    }
    made: dict[str, Any] = {
        "schema": "add-scene/1",
        "time": {"dt": 0.002, "steps": STEPS, "integrator": "bdf2"},
        "contact": {"friction_law": "none"},
        "bodies": {"tissue": tissue},
        "couplings": {},
    }
    if links == "tree":
        shape = {"geometry": BONE, "position": [0.5 * LENGTH, 0, 0]}
        made["bodies"]["chain"] = {
            "type": "articulated",
            "links": {name: {"mass": 0.05, "shapes": [shape]} for name in names},
            "joints": {
                f"joint {k}": {"child": names[k], "axis": [0, 1, 0], "stiffness": 1.0}
                | ({"parent": names[k - 1], "position": [LENGTH, 0, 0]} if k else {})
                for k in range(bones)
            },
        }
        return made
    for k, name in enumerate(names):
        made["bodies"][name] = {"type": "rigid", "geometry": BONE, "mass": 0.05, "position": [(k + 0.5) * LENGTH, 0, 0]}
        ends = {"a": {"body": names[k - 1] if k else None, "at": [0.5 * LENGTH if k else 0, 0, 0]}, "b": {"body": name}}
        made["couplings"][f"joint {k}"] = {"type": "hinge", "axis": [0, 1, 0], "stiffness": 1e4} | ends
        made["couplings"][f"joint {k}"] |= {"angular_stiffness": 20.0}
    return made


def measured(bones: int, links: str, by: str) -> str:
    """Return unknowns, entries of the matrix in thousands, and processor milliseconds a step."""
    built = add.scene_from_dict(scene(bones, links, by)).build()
    built.run(n_steps=1)
    begin = time.process_time()
    run = built.run()
    taken = 1e3 * (time.process_time() - begin) / run.n_steps
    assembler = built.simulation.assembler()
    branch = built.simulation.system.on_branch(run.records[-1].decisions, run.records[-1].solution.candidates)
    return f"{built.model.system.n_unknowns}; {assembler.pattern(branch).nnz / 1e3:.0f}; {taken:.3g}"


def main() -> None:
    """Print one row a number of bones."""
    ways = [(links, by) for links in ("tree", "free") for by in ("condensation", "multipliers")]
    print("bones", *(f"{links}, {by}" for links, by in ways), sep=" | ")
    for bones in map(int, sys.argv[1:] or ("1", "4", "8", "16")):
        print(bones, *(measured(bones, *way) for way in ways), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
