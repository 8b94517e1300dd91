"""Throws that are optimised: from a scene with other starts and methods to velocities, distances and counts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.errors import SolverError
from add.inverse import InverseProblem, LoggedEvaluation
from add.scene import Scene, apply_overrides
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory
from scripts.reproduction.entry import clock
from scripts.reproduction.running import bounces, centre_path

METHODS = ("l-bfgs-b", "gauss-newton")
NAMES = {"l-bfgs-b": "L-BFGS", "gauss-newton": "Gauss-Newton"}


@final
@dataclass(frozen=True)
class Throw:
    """A throw that an optimiser found.

    Attributes
    ----------
    method, start : str, (3,) velocity it began with [m/s]
    values : (k,) objective of every simulation, infinite where one failed
    seconds : (k,)
        Processor time from the start to the end of each simulation and what followed it.
    simulation : float
        Processor time of one simulation.
    parameters : (n,) physical values found
    problem, built, run : what was optimised, and the run at the end
    bounces : int
    path : (m, 3) centre over that run [m]
    """

    method: str
    start: tuple[float, ...]
    values: np.ndarray
    seconds: np.ndarray
    simulation: float
    parameters: np.ndarray
    problem: InverseProblem
    built: BuiltScene
    run: Trajectory
    bounces: int
    path: np.ndarray

    @property
    def best(self) -> np.ndarray:
        """The lowest objective so far after each simulation (k,)."""
        return np.minimum.accumulate(self.values)

    @property
    def distance(self) -> float:
        """The root of the objective at the end: a distance, where that is one target [m]."""
        return float(np.sqrt(self.best[-1]))

    @property
    def reduction(self) -> float:
        """Phi / Phi_0."""
        return float(self.best[-1] / self.values[0])

    def simulations_to(self, distance: float) -> int | None:
        """Return how many simulations it took to come that near [m]; None if it did not."""
        near = np.flatnonzero(np.sqrt(self.best) <= distance)
        return int(near[0]) + 1 if near.size else None

    def seconds_to(self, distance: float) -> float:
        """Return the processor time to come that near [s]; all of it if it did not."""
        return float(self.seconds[(self.simulations_to(distance) or self.values.size) - 1])


def throw(base: Scene, method: str, body: str, start: tuple[float, ...], most: int, **changes: Any) -> Throw | None:
    """Optimise a throw from a velocity; None if the first simulation fails.

    Parameters
    ----------
    base : Scene
    method : of `METHODS`
    body : what is thrown
    start : (3,) velocity [m/s]
    most : number of simulations
    changes : further values of the scene
    """
    own: Mapping[str, Any] = {
        f"bodies.{body}.velocity": list(start),
        "optimizer.method": method,
        "optimizer.max_evaluations": most,
    }
    scene = apply_overrides(base, {**own, **changes})
    problem = scene.inverse_problem()
    values: list[float] = []
    times: list[float] = []

    def note(evaluation: LoggedEvaluation, _: bool) -> None:
        values.append(evaluation.value)
        times.append(time.process_time())

    try:
        problem.value(problem.x0)  # compiles what is not compiled
        begin = time.process_time()
        found = problem.optimize(progress=note)
    except SolverError:
        return None
    with clock() as one:
        _, runs = problem.value(found.x)
    (run,), built = runs.values(), scene.build()
    return Throw(
        method,
        start,
        np.array(values),
        np.array(times) - begin,
        one.seconds,
        problem.values(found.x),
        problem,
        built,
        run,
        bounces(built, run),
        centre_path(built, run),
    )
