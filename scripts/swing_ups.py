"""Swing-ups by optimal control, beside single shooting and CMA-ES: the table of docs/control.md.

Run as ``python -m scripts.swing_ups``; ``--quick`` makes a few iterations of each.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import add
from add.control import ILQR, ControlProblem, MultipleShooting
from add.equations.kinematics import State
from add.inverse import InverseProblem
from add.scene import Scene

SCENES = Path(__file__).resolve().parents[1] / "scenes"
LENGTH = {"cartpole_swing_up": (0.0, 1.0), "double_pendulum_swing_up": (0.5, 0.5)}


def guess(problem: InverseProblem, lengths: tuple[float, float], seconds: float = 1.5) -> dict[int, State]:
    """Return states on an even turn from hanging to upright: a still cart and its pole, or two arms in one line."""
    simulation = problem.experiments[0].simulation
    first, second = lengths

    def pose(t: float) -> tuple[np.ndarray, np.ndarray]:
        phi, rate = np.pi * np.clip(t / seconds, 0.0, 1.0), np.pi / seconds * (0.0 < t < seconds)
        q, v = np.zeros(12), np.zeros(12)
        for body, radius in ((0, 0.5 * first), (6, first + 0.5 * second)):
            q[body : body + 3] = -radius * np.sin(phi), 0.0, -radius * np.cos(phi)
            v[body : body + 3] = -radius * np.cos(phi) * rate, 0.0, radius * np.sin(phi) * rate
            if radius:
                q[body + 4], v[body + 4] = phi, rate
        return q, v

    out = {}
    for k in range(10, simulation.n_steps, 10):
        pairs = [pose((k - j) * simulation.stepper.dt) for j in (0, 1)]
        out[k] = simulation.state(np.stack([q for q, _ in pairs]), np.stack([v for _, v in pairs]), step=k)
    return out


def by_stages(
    scene: Scene, lengths: tuple[float, float] | None, x0: np.ndarray, iterations: int = 60
) -> tuple[np.ndarray, int]:
    """Return controls found with a hundredth, a tenth and the whole weight of the goal, and the iterations.

    With lengths of the bodies the first stage begins with a guess of states.
    """
    count = 0
    for share in (0.01, 0.1, 1.0):
        weights = {f"objective.{k}.weight": share * 100.0 for k in (0, 1)}
        problem = add.apply_overrides(scene, weights).inverse_problem()
        control, ilqr = ControlProblem(problem), ILQR(max_iterations=iterations, tolerance=1e-3)
        if lengths is not None and share < 0.05:
            shooting = MultipleShooting(max_iterations=iterations, end=ilqr)
            found = shooting.run(control, guess(problem, lengths), x0)
        else:
            found = ilqr.run(control, x0)
        x0, count = found.x, count + len(found.iterations)
    return x0, count


def by_cma(problem: InverseProblem, x0: np.ndarray, evaluations: int) -> tuple[np.ndarray, int]:
    """Return the best of CMA-ES, and how many runs it took."""
    import cma

    lower, upper = problem.bounds
    options = {"bounds": [lower, upper], "maxfevals": evaluations, "seed": 1, "verbose": -9}
    found = cma.CMAEvolutionStrategy(x0, 2.0, options)
    while not found.stop():
        trials = found.ask()
        values = []
        for x in trials:
            try:
                values.append(problem.value(x)[0])
            except add.SolverError:
                values.append(1e3)
        found.tell(trials, values)
    return np.asarray(found.result.xbest), int(found.result.evaluations)


def compare(scene: Scene, name: str, quick: bool) -> None:
    """Write the lines of one scene, each when it is there."""
    iterations = 3 if quick else 60
    problem = scene.inverse_problem()
    x0 = problem.x0 + 0.1 * np.random.default_rng(1).normal(size=problem.n)

    def line(method: str, seconds: float, x: np.ndarray, count: str) -> None:
        value, runs = problem.value(x)
        (run,) = runs.values()
        end, rate = run.q[-1], run.v[-1]
        angle = abs(abs(end[10]) - np.pi)
        sys.stdout.write(
            f"| {name} | {method} | {count} | {seconds:.1f} | {value:.4g} | {angle:.2g} | {abs(rate[10]):.2g} |\n"
        )
        sys.stdout.flush()

    for method in ("iLQR", "multiple shooting"):
        begin = time.perf_counter()
        x, count = by_stages(scene, LENGTH[name] if method != "iLQR" else None, x0, iterations)
        line(method, time.perf_counter() - begin, x, f"{count} iterations")
    evaluations = 5 if quick else 150
    for method, label in (("l-bfgs-b", "single shooting, L-BFGS-B"), ("gauss-newton", "single shooting, Gauss-Newton")):
        changed = {"optimizer.method": method, "optimizer.max_evaluations": evaluations}
        single = add.apply_overrides(scene, changed).inverse_problem()
        begin = time.perf_counter()
        result = single.optimize(x0)
        line(label, time.perf_counter() - begin, result.x, f"{evaluations} evaluations at most")
    begin = time.perf_counter()
    x, count = by_cma(problem, x0, 50 if quick else 1000)
    line("single shooting, CMA-ES", time.perf_counter() - begin, x, f"{count} runs")


def main() -> None:
    """Write the table."""
    sys.stdout.write(
        "| scene | method | work | s | value | angle at the end [rad] | rate [rad/s] |\n|" + "---|" * 7 + "\n"
    )
    for name in LENGTH:
        compare(add.load_scene(SCENES / f"{name}.json"), name, "--quick" in sys.argv)


if __name__ == "__main__":
    main()
