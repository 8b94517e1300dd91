"""`python -m benchmarks.paired BEFORE [--scenes NAME ...] [--rounds N]`: speed beside another checkout of this project.

    git worktree add /tmp/before v0.3.0 && (cd /tmp/before && python -m add warm)

A worker runs in each checkout, turn by turn, by this Python with the checkout first on PYTHONPATH: machines get slower
and faster by themselves, so that only figures of one run compare. Prints, for each scene, the least time of a forward
step and of a step backwards, and their ratios. Where the two runs do not end alike, the difference stands beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SCENES = (
    "rigid_ball_throw", "bouncing_throw", "strings_cube", "bands_cubes", "robot_rigid", "sheet_flip", "reaching_arm",
    "double_pendulum_tree", "fig2_cylinder_linear", "fig2_cylinder_hybrid", "ball_on_floor", "fig5_tori",
)  # fmt: skip
MOST_STEPS, REPEATS = 60, 8


def work(names: list[str]) -> None:
    """Print the least microseconds of a step forward and backward, and the sums of the ends, of each scene as JSON."""
    import add
    from add.adjoint import Cotangents, pullback

    out = {}
    for name in names:
        simulation = add.load_scene(Path.cwd() / "scenes" / f"{name}.json").build().simulation
        n = min(simulation.n_steps, MOST_STEPS)
        trajectory = simulation.run(n_steps=n)
        ones = np.ones_like(trajectory.q)
        forward = backward = np.inf
        for _ in range(REPEATS):
            begin = time.process_time()
            trajectory = simulation.run(n_steps=n)
            between = time.process_time()
            gradient = pullback(simulation, trajectory, simulation.theta, Cotangents(ones, ones))
            forward, backward = min(forward, between - begin), min(backward, time.process_time() - between)
        out[name] = [1e6 * forward / n, 1e6 * backward / n, float(trajectory.q.sum()), float(np.abs(gradient).sum())]
    print(json.dumps(out))


def measured(root: Path, names: list[str]) -> dict[str, list[float]]:
    """Return what `work` prints in a checkout."""
    one = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    command = [sys.executable, __file__, "--work", *names]
    environment = os.environ | one | {"PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{root}: {done.stderr}")
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def main() -> None:
    """Parse the arguments, run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paired", description=__doc__)
    parser.add_argument("before", type=Path, help="checkout to compare with")
    parser.add_argument("--scenes", nargs="+", default=list(SCENES), metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    roots = {"before": options.before.resolve(), "now": ROOT}
    rounds = [{who: measured(root, options.scenes) for who, root in roots.items()} for _ in range(options.rounds)]
    print(
        "| scene | step before [us] | now | ratio | back before [us] | now | ratio | ends differ by |\n|" + "---|" * 8
    )
    for name in options.scenes:
        best = {who: np.min([found[who][name][:2] for found in rounds], axis=0) for who in roots}
        ends = [np.array(rounds[0][who][name][2:]) for who in roots]
        apart = float((np.abs(ends[1] - ends[0]) / np.abs(ends[0]).clip(1e-300)).max())
        cells = [f"{b:.1f} | {n:.1f} | {n / b:.3f}" for b, n in zip(best["before"], best["now"], strict=True)]
        print(f"| {name} | {' | '.join(cells)} | {apart:.0e} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2:])
    else:
        main()
