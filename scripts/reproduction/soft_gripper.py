"""Two fingers on one supply of air lift a ball to a point: by gradients and by CMA-ES (Qiao et al.)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import add
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import SCENES, Context, Entry, Outcome
from scripts.reproduction.reaching import Task, draw_way, reach, towards

#: Step, duration, and how long the fingers close [s].
DT, DURATION, CLOSING = 0.01, 1.0, 0.4
#: How far the hand is lifted at first [m].
FIRST = 0.05
#: Where the ball is to be from where it lies [m]; the share of the way that is 5 mm; most evaluations, runs of CMA-ES.
WAY, NEAR, MOST, CMA_RUNS = (0.05, 0.02, 0.2), 0.005, 10, 10


def scene(steps: int, most: int) -> dict[str, Any]:
    """Return the gripper of the gallery, which closes and lifts a little, and the point that the ball is to be at."""
    raw: dict[str, Any] = json.loads((SCENES / "pneumatic_gripper.json").read_text(encoding="utf-8"))
    ball = raw["bodies"]["ball"]["position"]
    paths = {
        "signals.lift.values.1": {"bounds": [-0.4, 0.4], "scale": 0.1},
        "signals.filling.values.1": {"bounds": [2e5, 3e5], "scale": 2e4},
    }
    target = [x + way for x, way in zip(ball, WAY, strict=True)]
    signals = {
        "filling": {"type": "table", "times": [0, CLOSING], "values": [101325, 250000]},
        "lift": {"type": "table", "times": [CLOSING, DURATION], "values": [[0, 0, 0], [0, 0, FIRST]]},
    }
    own = {"time": {"dt": DT, "steps": steps, "integrator": "bdf1"}, "signals": signals, "expect": {}}
    return raw | own | towards("ball", target, "xyz", paths, most)


def run(context: Context) -> Outcome:
    """Lift by gradients, then by CMA-ES with as many runs and seconds."""
    raw = scene(4, 2) if context.short else scene(round(DURATION / DT), MOST)
    problem = add.scene_from_dict(raw).inverse_problem()
    way = float(np.linalg.norm(WAY))
    with figure(context.image("soft_gripper.png"), 6.4, 2.6) as drawn:
        left, right = drawn.subplots(1, 2)
        task = Task(problem, f"gripper ({problem.n} numbers)", way, NEAR / way, CMA_RUNS, "soft5.distance")
        found = reach(context, task, left)
        ball, target = found.trajectory.q[:, -6:-3], raw["objective"][0]["target"]
        draw_way(right, found.trajectory.t, ball, target, "ball")
    images = {"soft_gripper.png": "Distance to the point against runs; way of the ball in the best run."}
    return Outcome(found.rows, images, NOTES, found.values)


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
    "and by CMA-ES, three seeds (after Qiao, Liang, Koltun, Lin, NeurIPS 2021).",
    run,
)
