"""Two fingers on one supply of air lift a ball to a point: by gradients and by CMA-ES (Qiao et al.)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import add
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import SCENES, Context, Entry, Outcome
from scripts.reproduction.soft_fish import reach

#: Step, duration, and how long the fingers close [s].
DT, DURATION, CLOSING = 0.01, 1.0, 0.4
#: How far the hand is lifted at first [m].
FIRST = 0.05
#: Where the ball is to be from where it lies [m]; the share of the way that is 5 mm; most evaluations, runs of CMA-ES.
WAY, NEAR, MOST, CMA_RUNS = (0.05, 0.02, 0.2), 0.005, 10, 10


def scene(steps: int, most: int) -> dict[str, Any]:
    """Return the gripper of the gallery, which closes and lifts a little, and the point that the ball is to be at."""
    raw: dict[str, Any] = json.loads((SCENES / "pneumatic_gripper.json").read_text(encoding="utf-8"))
    begin = CLOSING * steps * DT / DURATION
    ball = raw["bodies"]["ball"]["position"]
    return raw | {
        "time": {"dt": DT, "steps": steps, "integrator": "bdf1"},
        "signals": {
            "filling": {"type": "table", "times": [0, begin], "values": [101325, 250000]},
            "lift": {"type": "table", "times": [begin, steps * DT], "values": [[0, 0, 0], [0, 0, FIRST]]},
        },
        "objective": [
            {
                "type": "point",
                "marker": "ball",
                "target": [x + way for x, way in zip(ball, WAY, strict=True)],
                "time": "end",
            }
        ],
        "parameters": [
            {"path": "signals.lift.values.1", "bounds": [-0.4, 0.4], "scale": 0.1},
            {"path": "signals.filling.values.1", "bounds": [2e5, 3e5], "scale": 2e4},
        ],
        "optimizer": {"method": "l-bfgs-b", "max_evaluations": most},
        "expect": {},
    }


def run(context: Context) -> Outcome:
    """Lift by gradients, then by CMA-ES with as many runs and seconds."""
    problem = add.scene_from_dict(scene(4, 2) if context.short else scene(round(DURATION / DT), MOST)).inverse_problem()
    way = float(np.linalg.norm(WAY))
    with figure(context.image("soft_gripper.png"), 6.4, 2.6) as drawn:
        left, right = drawn.subplots(1, 2)
        about = f"gripper ({problem.n} numbers)"
        found = reach(context, problem, left, about, way, NEAR / way, CMA_RUNS, "soft5.distance", seeds=1)
        (trajectory,) = problem.value(found.x)[1].values()
        right.plot(trajectory.t, 1e3 * trajectory.q[:, -6:-3], label=["x", "y", "z"])
        for axis, wanted in enumerate(WAY):
            right.plot(trajectory.t[-1], 1e3 * (wanted + (0.0251 if axis == 2 else 0.0)), f"C{axis}x")
        right.set(xlabel="time [s]", ylabel="ball [mm]")
        right.legend()
    images = {"soft_gripper.png": "Distance to the point against runs; way of the ball in the best run."}
    return Outcome(tuple(found.rows), images, NOTES, found.values)


NOTES = (
    "The fingers of scenes/pneumatic_gripper.json on one gas, with steps twice as long. Four numbers: where the "
    "hand goes, evenly, once the fingers have closed, and what is filled in; both begin with a hand that lifts the "
    "ball by 5 cm. A drone carries the published gripper, whose curves, those of CMA-ES and MBPO among them, have "
    "no numbers. CMA-ES runs whole generations, of eight.",
)

ENTRY = Entry(
    "soft5",
    "Soft bodies: a gripper lifts a ball to a point",
    "Two soft fingers grasp a ball by the pressure of their chambers; the way of the hand and what fills them are "
    "to bring the ball to a point 0.2 m above and 54 mm beside it; by L-BFGS-B through air, tissue and friction, "
    "and by CMA-ES, one seed (after Qiao, Liang, Koltun, Lin, NeurIPS 2021).",
    run,
)
