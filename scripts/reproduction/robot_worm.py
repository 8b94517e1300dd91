"""The jump-worm's highest jump: torques by gradients through contact that comes and goes (Werling et al. 2021)."""

from __future__ import annotations

from typing import Any

import numpy as np

import add
from add.errors import SolverError
from add.hard_contact.impulse_coupling import CarriedImpulses
from add.inverse import InverseProblem
from add.kernels.cone_modes import SEPARATE
from add.typing import FloatArray
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row, clock
from scripts.reproduction.robot_jacobians import WORM
from scripts.reproduction.robot_scenes import robot_scene

#: Bound of the torques [N m], as published; intervals of control, steps, evaluations, starts and their torques: ours.
TORQUE, ROWS, STEPS, MOST, STARTS, SPREAD = 100.0, 6, 30, 30, 10, 10.0
#: End of the run [s].
END = 0.3
#: Height of the goal above the floor, out of reach [m]; of the floor; of the root above it at the start.
GOAL, FLOOR, START = 6.0, -0.575, 0.446


def worm(rows: int, steps: int, most: int) -> dict[str, Any]:
    """Return the worm on the ground, three torques over time, and a goal far above."""
    q = {"y": START + FLOOR, "tail1": np.pi / 2, "tail2": np.pi / 2, "tail3": np.pi / 4}
    raw = robot_scene("jump_worm.xml", q, dt=END / steps, steps=steps, up="y", floor=FLOOR, torques=WORM)
    for name, drive in raw["bodies"]["robot"]["drives"].items():
        drive["input"] = {"signal": name}
    raw["signals"] = {
        name: {"type": "control", "basis": "constant", "rows": rows, "values": [0.0]} for name in WORM
    }  # fmt: skip
    raw["markers"] = {"root": {"body": "robot/root", "point": [0, 0, 0]}}
    target = {"type": "point", "marker": "root", "target": [0, GOAL + FLOOR, 0], "axes": "y", "time": "end"}
    raw["objective"] = [target]
    raw["parameters"] = [
        {"path": f"signals.{name}.values", "bounds": [-TORQUE, TORQUE], "scale": 20.0} for name in WORM
    ]  # fmt: skip
    raw["optimizer"] = {"method": "l-bfgs-b", "max_evaluations": most}
    return raw


def height(problem: InverseProblem, x: FloatArray) -> float:
    """Return how high above the floor the root is at the end [m]."""
    return GOAL - float(np.sqrt(problem.value(x)[0]))


def run(context: Context) -> Outcome:
    """Optimise from random torques; best and median."""
    rows, steps, most, starts = (5, 25, 5, 1) if context.short else (ROWS, STEPS, MOST, STARTS)
    problem = add.scene_from_dict(worm(rows, steps, most)).inverse_problem()
    begin = height(problem, problem.x0)
    first, last, failed, paths = [], [], 0, []
    with clock() as taken:
        for seed in range(starts):
            x0 = problem.x0 + SPREAD / 20.0 * np.random.default_rng(seed).normal(size=problem.n)
            try:
                before = height(problem, x0)
                found = problem.optimize(x0)
                after = height(problem, found.x)
            except SolverError:
                failed += 1
                continue
            first.append(before)
            last.append(after)
            paths.append(found.x)
    best = int(np.argmax(last))
    (trajectory,) = problem.value(paths[best])[1].values()
    kept = [CarriedImpulses.of(record.carry) for record in trajectory.records]
    touching = [int((contacts.modes[: contacts.near.pair.size] != SEPARATE).any()) for contacts in kept]
    switches = int(np.abs(np.diff(touching)).sum())
    gain = np.array(last) / np.array(first)
    out = [
        Row("without torques: height of the root above the floor at the end [m]", f"{begin:.3f}"),
        Row(f"first guesses, random torques of {SPREAD:g} N m: best, median [m]",
            f"{max(first):.3f}, {np.median(first):.3f}"),
        Row("found: best, median [m]", f"{max(last):.3f}, {np.median(last):.3f}"),
        Row("how many times higher than the guess: best, median", f"{gain.max():.2f}, {np.median(gain):.2f}"),
        Row("rise over the start: best, median [m]", f"{max(last) - START:.3f}, {np.median(last) - START:.3f}"),
        Row("the best: steps in contact, changes between contact and flight", f"{sum(touching)}, {switches}"),
        Row(f"time a start [s], at most {most} evaluations with gradients; starts that met an unsolved step",
            f"{taken.seconds / starts:.0f}; {failed} of {starts}"),
    ]  # fmt: skip
    with figure(context.image("robot_worm.png"), 5.0, 2.4) as drawn:
        axes = drawn.subplots()
        axes.plot(trajectory.t, trajectory.q[:, 1] - FLOOR, label="root")
        axes.fill_between(trajectory.t[1:], 0.0, touching, alpha=0.2, label="contact", step="pre")
        axes.set(xlabel="time [s]", ylabel="height [m]")
        axes.legend()
    values = {"first": first, "last": last, "begin": begin, "switches": switches}
    images = {"robot_worm.png": "The best jump: height of the root, and when it touches."}
    return Outcome(tuple(out), images, NOTES, values)


NOTES = (
    "With the end at 0.6 s or later all starts tried ended upright on the ground, at 0.75 m: the tail is straight and "
    "its joints are at their stops, where the gradient by torques is zero; a penalty and relaxed contact ended there, "
    "too.",
)

ENTRY = Entry(
    "robots3",
    "Robots: the jump-worm's highest jump",
    "A worm of three segments on the ground, torques up to 100 N m, is to have its root as high as possible after "
    "0.3 s; single shooting by L-BFGS-B through contact by impulses from random torques. Published is a video.",
    run,
)
