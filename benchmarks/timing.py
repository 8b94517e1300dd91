"""Where the processor time of a run goes. All of it with BLAS at one thread, and the least of repeats."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import final

import numpy as np

from add.adjoint import value_and_gradient
from add.equations.kinematics import State, Weights
from add.linalg import Factorization, factorization_for
from add.objectives import Objective
from add.simulation import Record
from add.simulation.run import Simulation, Trajectory
from benchmarks.backends import DefaultLU, Timed
from benchmarks.kernels import clocked_kernels

#: Figures by name.
Row = dict[str, float]


def least(call: Callable[[], object], seconds: float, most: int) -> float:
    """Return the least processor time of a call repeated for so many seconds, at least twice, at most so often [s]."""
    best, spent, done = np.inf, 0.0, 0
    while done < 2 or (spent < seconds and done < most):
        begin = time.process_time()
        call()
        taken = time.process_time() - begin
        best, spent, done = min(best, taken), spent + taken, done + 1
    return float(best)


def timed_run(
    simulation: Simulation, n_steps: int, back_end: Callable[[int], Factorization] = factorization_for
) -> tuple[Trajectory, Timed, float]:
    """Return a run, what its back end did, and its processor time [s]."""
    clocks: list[Timed] = []

    def solver(n: int) -> Factorization:
        clocks.append(Timed(back_end(n)))
        return clocks[-1]

    begin = time.process_time()
    trajectory = replace(simulation, solver=solver).run(n_steps=n_steps)
    return trajectory, clocks[0], time.process_time() - begin


def time_forward(simulation: Simulation, n_steps: int, seconds: float, most: int = 5) -> Row:
    """Time forward runs: as they are, taken apart, and with SuperLU at its defaults in the same process."""
    # The first of the repeats also compiles what is not in numba's cache.
    forward = least(lambda: simulation.run(n_steps=n_steps), seconds, most)
    trajectory, clock, with_clock = timed_run(simulation, n_steps)
    with clocked_kernels() as kernels:
        begin = time.process_time()
        simulation.run(n_steps=n_steps)
        with_kernels = time.process_time() - begin
    slow, superlu, slow_seconds = timed_run(simulation, n_steps, lambda n: DefaultLU())
    reports = [record.report for record in trajectory.records]
    factorizations = len(clock.factoring)
    factor = float(np.median(clock.factoring))
    iterations = sum(report.iterations for report in reports)
    factoring, solving = sum(clock.factoring) / with_clock, clock.solving / with_clock
    inside = min(kernels.seconds / with_kernels, 1.0 - factoring - solving)
    return {
        "coordinates": simulation.system.n,
        "steps": n_steps,
        "ms_per_step": 1e3 * forward / n_steps,
        "iterations_per_step": iterations / n_steps,
        "factorizations_per_step": factorizations / n_steps,
        "ms_per_factorization": 1e3 * factor,
        "over_floor": forward / (factorizations * factor),
        "factor_share": factoring,
        "solve_share": solving,
        "kernel_share": inside,
        "python_share": 1.0 - factoring - solving - inside,
        "python_us_per_iteration": 1e6 * (1.0 - factoring - solving - inside) * forward / max(iterations, 1),
        "kernel_calls_per_iteration": kernels.calls / max(iterations, 1),
        "superlu_ms_per_step": 1e3 * slow_seconds / n_steps,
        "superlu_ms_per_factorization": 1e3 * float(np.median(superlu.factoring)),
        "superlu_iterations_per_step": sum(r.report.iterations for r in slow.records) / n_steps,
        "superlu_over_ours": slow_seconds / with_clock,
    }


@final
class _EndOfForward:
    """An observer that remembers when the last step was done."""

    at = 0.0

    def __call__(self, state: State, record: Record) -> None:
        self.at = time.process_time()


def time_gradient(simulation: Simulation, objective: Objective, n_steps: int, seconds: float, most: int = 5) -> Row:
    """Time backward sweeps beside the forward passes of the same calls, and the units that they are made of."""
    value_and_gradient(simulation, objective, n_steps=min(n_steps, 3))
    forward = backward = np.inf
    spent, done = 0.0, 0
    while done < 2 or (spent < seconds and done < most):
        clock = _EndOfForward()
        begin = time.process_time()
        value_and_gradient(simulation, objective, n_steps=n_steps, observers=[clock])
        end = time.process_time()
        forward, backward = min(forward, clock.at - begin), min(backward, end - clock.at)
        spent, done = spent + end - begin, done + 1
    trajectory = simulation.run(n_steps=n_steps)
    unit = min(_units(simulation, trajectory) for _ in range(max(done, 2)))
    iterations = sum(record.report.iterations for record in trajectory.records)
    return {
        "parameters": simulation.theta.size,
        "steps": n_steps,
        "forward_ms_per_step": 1e3 * forward / n_steps,
        "gradient_ms_per_step": 1e3 * backward / n_steps,
        "unit_ms": 1e3 * unit,
        "iterations_per_step": iterations / n_steps,
        "gradient_over_forward": backward / forward,
        "gradient_over_units": backward / (unit * n_steps),
    }


def _units(simulation: Simulation, trajectory: Trajectory) -> float:
    """Return the mean processor time of an assembly, a factorisation and a solve at (at most 50 of) the steps [s]."""
    assembler = simulation.assembler()
    records = trajectory.records[:: max(1, len(trajectory.records) // 50)]
    free = simulation.system.partition.free
    cotangent = np.random.default_rng(0).normal(size=free.size)
    # Once round for the analyses of all patterns, which a run has made before it sweeps back.
    for _ in range(2):
        begin = time.process_time()
        for record in records:
            weights = Weights(1.0, record.c, record.c**2, 1.0)
            factors = assembler.factor(
                record.kin, record.mu, simulation.theta, weights, simulation.system.on_branch(record.decisions)
            )
            factors.solve_transposed(np.concatenate([cotangent, np.zeros(record.mu.size)]))
    return (time.process_time() - begin) / len(records)
