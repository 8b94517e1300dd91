"""Runs without compiled steps, for what is compared to the last bit."""

from dataclasses import replace

from add.linalg import factorization_for
from add.simulation.run import Simulation


def by_terms(simulation: Simulation) -> Simulation:
    """The same simulation without compiled steps: these are taken with the usual back ends alone."""
    return replace(simulation, solver=lambda n: factorization_for(n))
