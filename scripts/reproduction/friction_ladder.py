"""A scene under the friction laws: time, Newton's convergence, and where the body goes (Figs. 2 and 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from add.commands.run_summary import summary
from add.scene import Scene
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory
from scripts.reproduction.entry import clock
from scripts.reproduction.running import COLOURS, LAWS, centre_path, with_law

#: Residuals below this many times the median of the last ones are round-off.
ROUND_OFF = 10.0


@final
@dataclass(frozen=True)
class LawRun:
    """One law's run.

    Attributes
    ----------
    law : str
    built : BuiltScene
    run : Trajectory
    seconds : float
        Processor time of the run, without compilation.
    centre : (k + 1, 3) centre of the surface [m]
    speed : (k + 1,) its speed [m/s]
    end : dict
        `summary` of the run.
    """

    law: str
    built: BuiltScene
    run: Trajectory
    seconds: float
    centre: np.ndarray
    speed: np.ndarray
    end: dict

    @property
    def histories(self) -> list[tuple[float, ...]]:
        """Residuals per iteration [N], a row a step."""
        return [record.report.history for record in self.run.records]


def run_laws(base: Scene) -> tuple[list[LawRun], list[str]]:
    """Run a scene under every law that the scene format has; return the runs and the laws that it has not."""
    found, missing = [], []
    for law in LAWS:
        scene = with_law(base, law)
        if scene is None:
            missing.append(law)
            continue
        built = scene.build()
        built.run(n_steps=min(20, built.simulation.n_steps))  # compiles what is not compiled
        with clock() as taken:
            run = built.run()
        centre = centre_path(built, run)
        speed = np.linalg.norm(np.gradient(centre, run.t, axis=0), axis=1)
        found.append(LawRun(law, built, run, taken.seconds, centre, speed, summary(built, run, built.theta)))
    return found, missing


def orders(histories: Sequence[Sequence[float]]) -> list[float]:
    """Return the orders at which the last residuals of the steps fell: ln(r3/r2) / ln(r2/r1).

    The last three residuals above round-off count, and only where the first of the two iterations was a good one
    (r2 < r1 / 10): before, contacts still change. Steps with fewer say nothing.
    """
    floor = ROUND_OFF * float(np.median([history[-1] for history in histories]))
    found = []
    for history in histories:
        r = [x for x in history if x > floor][-3:]
        if len(r) == 3 and r[2] < r[1] < 0.1 * r[0]:
            found.append(float(np.log(r[2] / r[1]) / np.log(r[1] / r[0])))
    return found


def draw_convergence(axes: Sequence, runs: Sequence[LawRun], tolerance: float) -> None:
    """Draw the residual against the iteration for all steps of each law."""
    longest = max(len(h) for item in runs for h in item.histories)
    for panel, item in zip(axes, runs, strict=False):
        for history in item.histories:
            panel.semilogy(range(len(history)), np.maximum(history, 1e-17), color=COLOURS[item.law], lw=0.5, alpha=0.3)
        panel.axhline(tolerance, color="k", lw=0.6, ls=":")
        panel.set(xlabel="iteration", ylabel="residual [N]", title=item.law, xlim=(0, longest))
    for panel in axes[len(runs) :]:
        panel.set_axis_off()
