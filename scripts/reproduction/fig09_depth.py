"""Fig. 9: a ball from the points of one depth camera."""

from __future__ import annotations

import numpy as np

from scripts.make_foam_ball_recording import TRUTH
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import ROOT, Context, Entry, Outcome, Row, clock
from scripts.reproduction.running import scene

SHORT = {
    "time.duration": 0.1,
    "optimizer.phases": [{"name": "throw", "parameters": ["bodies.ball.velocity"], "max_evaluations": 3}],
}
KEYS = {
    "bodies.ball.material.young": "Young's modulus [Pa]",
    "bodies.ball.material.viscosity": "viscosity [Pa s]",
    "contact.friction": "friction",
    "bodies.ball.velocity": "velocity [m/s]",
}


def run(context: Context) -> Outcome:
    """Fit throw, material and friction, and draw points beside the path of the ball's middle."""
    base = scene("fig9_depth_ball", SHORT if context.short else {})
    problem, built = base.inverse_problem(), base.build()
    problem.residuals(problem.x0, window=(0.0, 5 * base.time.dt))  # compiles what is not compiled
    with clock() as taken:
        found = problem.optimize()
    start, end = ({p.name: problem.values(x)[p.slice] for p in problem.parameters} for x in (problem.x0, found.x))
    true = {key: np.atleast_1d(value) for key, value in TRUTH.items()}

    def text(values: np.ndarray) -> str:
        return ", ".join(f"{value:.4g}" for value in np.atleast_1d(values))

    rows = [
        Row(f"{name}: start -> found (truth)", f"{text(start[key])} -> {text(end[key])} ({text(true[key])})")
        for key, name in KEYS.items()
    ]
    rows += [
        Row("evaluations", str(found.evaluations)),
        Row("optimisation [s]", f"{taken.seconds:.0f}"),
    ]
    recording = np.load(ROOT / "data" / "recordings" / "depth_ball.npz")
    with figure(context.image("fig9.png"), 6.4, 2.6) as drawn:
        axes = drawn.subplots()
        points = recording["points"]
        axes.scatter(points[:, 0], points[:, 2], s=1.0, c=recording["colours"] / 255.0, linewidths=0)
        for x, style, name in ((problem.x0, ":", "start"), (found.x, "-", "found")):
            (experiment,) = problem.experiments
            (after,) = problem.value(x)[1].values()
            theta = problem.theta(x, experiment)
            path = np.array([built.markers.points(after.kinematics(k), theta)[0][0] for k in range(after.n_steps + 1)])
            axes.plot(path[:, 0], path[:, 2], style, color="#1f4e9c", label=f"middle of the ball, {name}")
        axes.set(xlabel="x [m]", ylabel="z [m]", aspect="equal", xlim=(-0.25, 1.35), ylim=(-0.05, 0.4))
        axes.legend(loc="upper right")
    return Outcome(
        tuple(rows),
        {"fig9.png": "All recorded points, in their colours, seen from the side, and the path of the ball's middle."},
        (
            "The recording is synthetic: the published one was never released. It is of a finer mesh with half the "
            "step, 11 frames with 1.5 mm of noise along the rays, and holds the floor, a hand and stray points, which "
            "box filters in space and colour leave out. Nothing says which point is which, and the spin is not "
            "sought: one view all but hides it ([recordings](../recordings.md)).",
        ),
        {"young": float(end["bodies.ball.material.young"][0]), "friction": float(end["contact.friction"][0])},
    )


ENTRY = Entry(
    "fig9",
    "Fig. 9: a foam ball seen by one depth camera",
    "How it was thrown, its material and its friction from the points of one depth camera, without markers.",
    run,
)
