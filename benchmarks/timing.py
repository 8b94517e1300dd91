"""Where the time of a run goes."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from add.adjoint import value_and_gradient
from add.assembly import Pattern
from add.kinematics import Weights
from add.linalg import Factorization, factorization_for
from add.objectives import Objective
from add.simulate import Simulation
from add.typing import FloatArray


@final
class Timed(Factorization):
    """A factorisation that counts its calls and their seconds."""

    def __init__(self, inner: Factorization) -> None:
        self.inner = inner
        self.factor_seconds = 0.0
        self.solve_seconds = 0.0
        self.factorizations = 0

    def factor(self, pattern: Pattern, data: FloatArray) -> None:
        begin = time.perf_counter()
        self.inner.factor(pattern, data)
        self.factor_seconds += time.perf_counter() - begin
        self.factorizations += 1

    def solve(self, b: FloatArray) -> FloatArray:
        begin = time.perf_counter()
        x = self.inner.solve(b)
        self.solve_seconds += time.perf_counter() - begin
        return x

    def solve_transposed(self, b: FloatArray) -> FloatArray:
        begin = time.perf_counter()
        x = self.inner.solve_transposed(b)
        self.solve_seconds += time.perf_counter() - begin
        return x


@final
@dataclass(frozen=True)
class Timing:
    """Times of one scene; `unit` is one assembly, one factorisation and one solve at the recorded states."""

    n: int
    steps: int
    forward: float
    iterations: float
    factor_share: float
    solve_share: float
    gradient: float
    unit: float

    @property
    def row(self) -> dict[str, float]:
        """Return the numbers that are printed and stored."""
        return {
            "coordinates": self.n,
            "steps": self.steps,
            "forward_s": self.forward,
            "ms_per_step": 1e3 * self.forward / self.steps,
            "iterations_per_step": self.iterations,
            "factorisation_share": self.factor_share,
            "solve_share": self.solve_share,
            "gradient_s": self.gradient,
            "gradient_over_forward": self.gradient / self.forward,
            "gradient_over_unit": self.gradient / (self.unit * self.steps),
        }


def time_simulation(simulation: Simulation, objective: Objective, n_steps: int, repeats: int = 3) -> Timing:
    """Time forward runs and gradients in turn and keep the fastest of each: the rest is noise of the machine."""
    simulation.run(n_steps=2)
    value_and_gradient(simulation, objective, n_steps=2)
    forward, total, unit = np.inf, np.inf, np.inf
    shares = (0.0, 0.0)
    for _ in range(repeats):
        clocks: list[Timed] = []

        def solver(n: int, clocks: list[Timed] = clocks) -> Factorization:
            clocks.append(Timed(factorization_for(n)))
            return clocks[-1]

        begin = time.perf_counter()
        trajectory = replace(simulation, solver=solver).run(n_steps=n_steps)
        seconds = time.perf_counter() - begin
        if seconds < forward:
            forward = seconds
            shares = (clocks[0].factor_seconds / seconds, clocks[0].solve_seconds / seconds)
        begin = time.perf_counter()
        value_and_gradient(simulation, objective, n_steps=n_steps)
        total = min(total, time.perf_counter() - begin)
        unit = min(unit, _unit(simulation, trajectory))
    iterations = float(np.mean([record.report.iterations for record in trajectory.records]))
    return Timing(simulation.system.n, n_steps, forward, iterations, *shares, total - forward, unit)


def _unit(simulation: Simulation, trajectory) -> float:
    """Return the mean seconds of one assembly, factorisation and solve over (at most 50 of) the recorded steps."""
    assembler = simulation.assembler()
    records = trajectory.records[:: max(1, len(trajectory.records) // 50)]
    free = simulation.system.partition.free
    rhs = np.ones(simulation.system.n_unknowns)
    rhs[: free.size] = np.random.default_rng(0).normal(size=free.size)
    first = records[0]
    for warm in (True, False):
        begin = time.perf_counter()
        for record in [first] if warm else records:
            weights = Weights(1.0, record.c, record.c**2, 1.0)
            assembler.factor(record.kin, record.mu, simulation.theta, weights, record.decisions)
            assembler.factorization.solve_transposed(rhs)
    return (time.perf_counter() - begin) / len(records)
