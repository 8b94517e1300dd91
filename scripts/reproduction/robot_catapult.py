"""A catapult that throws a block to a place in the air, by gradients and by CMA-ES (Werling et al. 2021, Fig. 7)."""

from __future__ import annotations

import copy
import time
from typing import Any, NamedTuple

import numpy as np

import add
from add.control import ILQR, ControlProblem, MultipleShooting
from add.equations.kinematics import State
from add.inverse import InverseProblem
from add.typing import FloatArray
from scripts.reproduction.cma_search import search
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row
from scripts.reproduction.held_differences import gradient_error
from scripts.reproduction.robot_jacobians import WORM as HINGES
from scripts.reproduction.robot_scenes import robot_scene

#: Where the block is to be at the end [m], as published; all below is ours. End of the run and of the push [s].
GOAL, END, PUSH = (2.2, 2.2), 0.6, 0.25
#: Rows of torque a hinge over the push, bound of the torques [N m], the first guess, and what a change of one is.
ROWS, TORQUE, GUESS, SCALE = 6, 1000.0, (-400.0, -200.0, -200.0), 100.0
#: Stops of the hinges [N m/rad, N m s/rad], into which the guess presses the arm by 0.75 rad: those of joints without
#: numbers up to 0.4.0. Without numbers they are stiffer now, up to 2650 and 38, and the guess throws elsewhere.
STOPS = {"limit_stiffness": 1e3, "limit_damping": 1.0}
#: Values of the objective that count as arrived: 1 cm and 1 mm [m^2].
NEAR, WANTED = 1e-4, 1e-6
#: When a guess of states has the block fly to the goal [s], and the gap of pieces that count as one run.
AIMED, MET = 0.3, 1e-9
#: Evaluations of the gradient methods, runs of CMA-ES, and starts drawn about the guess.
MOST, RUNS, STARTS = 40, 1000, 10


def catapult(steps: int, rows: int, guess: tuple[float, ...] = GUESS) -> dict[str, Any]:
    """Return the block on the middle segment, torques over the push, and the goal."""
    q = {"x": 0.2, "y": -0.1985, "tail1": np.pi / 4, "tail2": np.pi / 4, "tail3": np.pi / 4}
    raw = robot_scene(
        "catapult.xml", q, dt=END / steps, steps=steps, up="y", floor=-0.575, torques=HINGES,
        limits="penalty", self_collision=True, spacing=0.05,
    )  # fmt: skip
    raw["time"] |= {"integrator": "bdf2", "newton": {"atol": 1e-10, "rtol": 1e-12}}
    for name in HINGES:
        raw["bodies"]["robot"]["joints"][name] |= STOPS
    for name, drive in raw["bodies"]["robot"]["drives"].items():
        drive["input"] = {"signal": name}
    raw["signals"] = {
        name: {"type": "control", "basis": "constant", "rows": rows, "end": PUSH, "values": [value] * rows}
        for name, value in zip(HINGES, guess, strict=True)
    }
    raw["contact"] = {
        "friction_law": "tanh", "friction": 1.0, "stiffness": 2e4, "stick_stiffness": 200.0, "onset": 2e-3,
        "damping": 150.0, "damping_ramp": 2e-3,
    }  # fmt: skip
    raw["markers"] = {"block": {"body": "robot/projectile", "point": [0, 0, 0]}}
    raw["objective"] = [{"type": "point", "marker": "block", "target": [*GOAL, 0], "axes": "xy", "time": "end"}]
    raw["parameters"] = [
        {"path": f"signals.{name}.values", "bounds": [-TORQUE, TORQUE], "scale": SCALE} for name in HINGES
    ]
    return raw


class Found(NamedTuple):
    """The best value after each run, processor seconds until then, and the best x."""

    best: FloatArray
    seconds: FloatArray
    x: FloatArray


def by_gradients(raw: dict[str, Any], method: str, most: int) -> Found:
    """Return what an optimiser of scenes finds by single shooting."""
    raw = copy.deepcopy(raw) | {"optimizer": {"method": method, "max_evaluations": most}}
    problem = add.scene_from_dict(raw).inverse_problem()
    values, seconds, begin = list[float](), list[float](), time.process_time()

    def note(evaluation: Any, better: bool) -> None:
        values.append(evaluation.value)
        seconds.append(time.process_time() - begin)

    result = problem.optimize(progress=note)
    return Found(np.minimum.accumulate(values), np.array(seconds), result.x)


def by_stages(problem: InverseProblem, most: int, aims: bool = False) -> Found:
    """Return what iLQR finds over the derivatives of single steps, or multiple shooting from a block that flies well.

    A value counts where the pieces of the run meet.
    """
    values, seconds, begin = list[float](), list[float](), time.process_time()

    def note(iteration: Any) -> None:
        values.append(iteration.value if iteration.gap <= MET else np.inf)
        seconds.append(time.process_time() - begin)

    control, ilqr = ControlProblem(problem), ILQR(max_iterations=most)
    if aims:
        shooting = MultipleShooting(max_iterations=most, end=ilqr)
        result = shooting.run(control, aimed(control, problem.x0), progress=note)
    else:
        result = ilqr.run(control, progress=note)
    return Found(np.minimum.accumulate(values), np.array(seconds), result.x)


def aimed(control: ControlProblem, x: FloatArray) -> dict[int, State]:
    """Return the state of the run with x soon after the push, the block on the parabola from there to the goal."""
    simulation, dt = control.experiment.simulation, control.experiment.simulation.stepper.dt
    k = round(AIMED / dt)
    state, left = control.run(x).steps[k].before, END - AIMED
    q, v = state.q.copy(), state.v.copy()
    fall = np.array([0.0, -9.81])
    start = (np.array(GOAL) - state.q[0, :2]) / left - 0.5 * fall * left
    for row, t in enumerate((0.0, -dt)):
        q[row, :2], v[row, :2] = state.q[0, :2] + start * t + 0.5 * fall * t * t, start + fall * t
    return {k: simulation.state(q, v, step=k)}


def miss(value: float) -> str:
    """Return how far off the goal a value of the objective is [mm], as it is printed."""
    return f"{1e3 * value**0.5:.2g}"


def until(found: Found, target: float) -> str:
    """Return runs and seconds until the objective is below a target."""
    below = np.flatnonzero(found.best <= target)
    return f"{below[0] + 1}; {found.seconds[below[0]]:.1f}" if below.size else f"not in {found.best.size}"


def from_starts(steps: int, rows: int, starts: int, most: int) -> list[float]:
    """Return how far off L-BFGS-B ends [m] from torques drawn about the guess, between nothing and twice each."""
    rng = np.random.default_rng(0)
    drawn = [tuple(np.array(GUESS) * rng.uniform(0.0, 2.0, 3)) for _ in range(starts)]
    return [float(by_gradients(catapult(steps, rows, guess), "l-bfgs-b", most).best[-1] ** 0.5) for guess in drawn]


def run(context: Context) -> Outcome:
    """Throw by Gauss-Newton, L-BFGS-B, iLQR, multiple shooting and CMA-ES from one guess; then from ten others."""
    steps, rows, most, runs, starts = (300, 3, 8, 30, 1) if context.short else (600, ROWS, MOST, RUNS, STARTS)
    raw = catapult(steps, rows)
    problem = add.scene_from_dict(raw).inverse_problem()
    first, trajectories = problem.value(problem.x0)
    error = gradient_error(problem, problem.x0)
    found = {
        "Gauss-Newton": by_gradients(raw, "gauss-newton", most),
        "L-BFGS-B": by_gradients(raw, "l-bfgs-b", most),
        "iLQR": by_stages(problem, most),
        "multiple shooting": by_stages(problem, most, aims=True),
    }
    sampled = search(problem, 1.0, runs, WANTED)
    if sampled is not None:
        found["CMA-ES"] = Found(*sampled)
    out = [
        Row("gradient by the torques: largest error against differences with contacts held, over its norm",
            f"{error:.1e}"),
        Row("the guess: off the goal [mm]", miss(first)),
    ]  # fmt: skip
    for name, one in found.items():
        published = "robots4.search" if name == "CMA-ES" else "robots4.gradient" if name == "Gauss-Newton" else None
        counted = "iterations" if name in ("iLQR", "multiple shooting") else "runs"
        out += [
            Row(f"{name}: {counted}; time [s] until 1 cm", until(one, NEAR), published),
            Row(f"{name}: {counted}; time [s] until 1 mm", until(one, WANTED)),
            Row(f"{name}: off the goal at the end [mm]", miss(one.best[-1])),
        ]
    others = from_starts(steps, rows, starts, most)
    arrived = [sum(off <= near**0.5 for off in others) for near in (NEAR, WANTED)]
    out.append(
        Row(f"L-BFGS-B from {starts} random guesses: within 1 cm, within 1 mm; median [mm]",
            f"{arrived[0]}, {arrived[1]}; {1e3 * np.median(others):.2g}")
    )  # fmt: skip
    (after,) = problem.value(found["Gauss-Newton"].x)[1].values()
    (before,) = trajectories.values()
    with figure(context.image("robot_catapult.png"), 6.4, 2.7) as drawn:
        thrown, course = drawn.subplots(1, 2)
        for label, trajectory, style in (("guess", before, "C7--"), ("found", after, "C0")):
            thrown.plot(trajectory.q[:, 0], trajectory.q[:, 1], style, label=label)
        for k, shade in ((0, 0.9), (steps // 8, 0.6), (steps // 5, 0.3)):
            thrown.plot(*arm(after.q[k, 2:]).T, "k.-", alpha=shade, lw=1.0, ms=3.0)
        thrown.plot(*GOAL, "C3x", label="goal")
        thrown.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")
        thrown.legend()
        for name, one in found.items():
            course.loglog(np.maximum(one.seconds, 0.03), np.maximum(one.best, 1e-16), label=name)
        course.axhline(WANTED, color="k", lw=0.6, ls=":")
        course.set(xlabel="time [s]", ylabel="objective, best so far [m$^2$]")
        course.legend()
    values = {
        "error": error, "first": first, "others": others,
        "found": {name: {"value": float(one.best[-1]), "runs": one.best.size} for name, one in found.items()},
    }  # fmt: skip
    caption = "The throw, with the arm at three times; the objective over time."
    return Outcome(tuple(out), {"robot_catapult.png": caption}, NOTES, values)


def arm(angles: FloatArray) -> FloatArray:
    """Return the ends of the three segments of 0.25 m in the plane (4, 2) [m]."""
    turned = np.cumsum(angles)
    steps = 0.25 * np.column_stack([-np.sin(turned), np.cos(turned)])
    return np.array([0.5, -0.45]) + np.vstack([np.zeros(2), np.cumsum(steps, axis=0)])


NOTES = (
    f"Bounded: {MOST} evaluations of the gradient methods and {RUNS} runs of CMA-ES (first standard deviation "
    f"{SCALE:g} N m, seed 1); all begin with torques of 400, 200 and 200 N m. An evaluation of L-BFGS-B is a run with "
    "its gradient, one of Gauss-Newton a run, with forward sensitivities where it is accepted, an iteration of iLQR "
    f"takes the Jacobians of all steps. Multiple shooting begins with the guess until {AIMED:g} s, and from there with "
    "the block on the parabola to the goal; it counts where the gap is closed. Published are the goal and curves; the "
    "goal is met at 0.6 s here, in 600 steps of BDF2, with torques in six intervals over 0.25 s and penalty contact of "
    "2e4 N/m a point.",
    "Contact points on edges (`spacing`) are needed: by its corners alone the block, which is wider than the arm, "
    "falls past it. Guesses that miss the arm, or end on the ground, may have no way down to the goal.",
    "The arm throws against its stops, springs of 1000 N m/rad with 1 N m s/rad, which the guess bends by 0.75 rad "
    "before the block has left. Stops by weight, as joints without numbers have them (up to 2650 N m/rad and "
    "38 N m s/rad), throw the same guess 3.1 m off the goal, and Gauss-Newton has no way down from there: after eight "
    "runs it is 2.7 m off, from torques that differ by up to 1e-3 of it between 1.0 and 2.7 m.",
)

ENTRY = Entry(
    "robots4",
    "Robots: a catapult",
    "Three hinges throw a block, which lies on the middle segment, to (2.2, 2.2) m at a given time; torques by "
    "gradients through penalty contact, beside stochastic search (Werling et al. 2021).",
    run,
)
