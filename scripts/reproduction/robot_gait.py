"""A gait found with nearly ideal motors, played on compliant ones and found again for these (ADD's compliant robot)."""

from __future__ import annotations

from typing import Any

import numpy as np

from add.errors import SolverError
from add.inverse import InverseProblem
from add.scene import apply_overrides
from add.typing import FloatArray
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row, clock
from scripts.reproduction.running import scene

#: Stiffness of the motors [N m/rad]: nearly ideal, as the scene has it, and over two decades below.
GAINS = (1e5, 3e4, 1e4, 3e3, 1e3)
#: The gain for which the gait is found again, and evaluations of both optimisations.
SOFT, MOST = 1e3, 20
#: How far the robot is to walk [m].
WAY = 1.0


def problem_of(gain: float, most: int, steps: int | None = None) -> InverseProblem:
    """Return the walk of Table 2 with motors of a stiffness."""
    base = scene("robot_rigid")
    changes: dict[str, Any] = {f"couplings.{name}.motor.stiffness": gain for name in base.couplings}
    changes |= {"optimizer.max_evaluations": most}
    return apply_overrides(base, changes).inverse_problem()


def walked(problem: InverseProblem, x: FloatArray) -> tuple[FloatArray, float] | None:
    """Return the trunk's places (k + 1, 3) [m] and its largest tilt [degrees]; None where a step fails."""
    try:
        (run,) = problem.value(x)[1].values()
    except SolverError:
        return None
    turns = np.array([up_of(vector) for vector in run.q[:, 3:6]])
    return run.q[:, :3], float(np.degrees(np.arccos(np.clip(turns, -1.0, 1.0)).max()))


def up_of(vector: FloatArray) -> float:
    """Return the cosine between the turned z axis and the vertical, R_zz of a rotation vector."""
    angle = float(np.linalg.norm(vector))
    if angle == 0.0:
        return 1.0
    return float(np.cos(angle) + (1.0 - np.cos(angle)) * (vector[2] / angle) ** 2)


def run(context: Context) -> Outcome:
    """Walk with the gait of stiff motors over the gains, and with the one found for the softest."""
    most, gains = (2, (1e5, 1e3)) if context.short else (MOST, GAINS)
    rows, values, paths = [], {}, {}
    stiff = problem_of(gains[0], most)
    with clock() as taken:
        nominal = stiff.optimize()
    rows.append(Row("motors of 1e5 N m/rad: runs; time [s]", f"{nominal.evaluations}; {taken.seconds:.0f}"))
    for gain in gains:
        found = walked(problem_of(gain, most), nominal.x)
        values[f"{gain:g}"] = None if found is None else float(found[0][-1, 0])
        text = "a step fails" if found is None else f"{found[0][-1, 0]:.3f}; {found[0][-1, 2]:.3f}; {found[1]:.0f}"
        rows.append(Row(f"its gait, motors of {gain:g} N m/rad: way [m]; height [m], largest tilt [degrees]", text,
                        "robots7.nominal" if gain == SOFT else None))  # fmt: skip
        if found is not None:
            paths[f"its gait, {gain:g} N m/rad"] = found[0]
    soft = problem_of(SOFT, most)
    with clock() as taken:
        again = soft.optimize(nominal.x)
    found = walked(soft, again.x)
    assert found is not None  # the optimiser has just run it
    values["again"] = float(found[0][-1, 0])
    paths[f"found again, {SOFT:g} N m/rad"] = found[0]
    rows += [
        Row(f"found again for {SOFT:g} N m/rad: way [m]; height [m], largest tilt [degrees]",
            f"{found[0][-1, 0]:.3f}; {found[0][-1, 2]:.3f}; {found[1]:.0f}", "robots7.again"),
        Row(f"found again for {SOFT:g} N m/rad: runs; time [s]", f"{again.evaluations}; {taken.seconds:.0f}"),
    ]  # fmt: skip
    with figure(context.image("robot_gait.png"), 5.6, 2.6) as drawn:
        axes = drawn.subplots()
        for k, (label, path) in enumerate(paths.items()):
            t = np.arange(len(path)) / 60.0
            axes.plot(t, path[:, 0], "k--" if "again" in label else f"C{k}", label=label)
        axes.axhline(WAY, color="k", lw=0.6, ls=":")
        axes.set(xlabel="time [s]", ylabel="way of the trunk [m]")
        axes.legend()
    return Outcome(tuple(rows), {"robot_gait.png": "Ways of the trunk."}, NOTES, values)


NOTES = (
    "The rigid robot of Table 2 with motors of 1e5 N m/rad, which bend by less than a milliradian, stands for ideal "
    f"motors. Bounded: {MOST} evaluations each; the second optimisation begins with the first gait. Published is that "
    "the nominal gait fails on the compliant robot and the optimised one walks. Here the nominal gait does not fall, "
    "and comes less far on softer motors. Soft feet are not played.",
)

ENTRY = Entry(
    "robots7",
    "Robots: a gait on compliant motors",
    "The rigid robot of Table 2 walks a metre with a gait that was found for stiff motors; the same angles are played "
    "on motors over two decades of stiffness, and the gait is found again for the softest.",
    run,
)
