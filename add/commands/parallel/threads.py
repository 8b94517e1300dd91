"""Gradients of one process on all of its cores."""

from __future__ import annotations

from dataclasses import replace

from add.commands.parallel.workers import cores
from add.inverse import InverseProblem

#: Below this many unknowns a step is linearised faster than another thread is asked to.
LARGE = 1000


def on_all_cores(problem: InverseProblem) -> InverseProblem:
    """Return the problem with sweeps of derivatives that linearise ahead on all cores, where systems are large.

    The numbers are the same; see `add.adjoint.prefetch`. For problems whose experiments run in this process, one after
    another: where processes share the cores already, threads would get in their way.
    """
    experiments = []
    for item in problem.experiments:
        simulation = item.simulation
        if simulation.system.n_unknowns >= LARGE:
            simulation = replace(simulation, threads=cores())
        experiments.append(replace(item, simulation=simulation))
    return replace(problem, experiments=tuple(experiments))
