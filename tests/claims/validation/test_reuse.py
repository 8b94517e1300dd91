"""Factors that serve another iteration change the work of a step, not its result."""

from dataclasses import replace

import numpy as np
from support.rigid_models import PAIRS
from support.small_models import RoughObjective, two_bodies

from add.adjoint import Checkpoints, value_and_gradient
from add.contact import FrictionLaw
from add.geometry import TET10
from add.simulation import BDF
from add.simulation.run import Simulation
from add.solve.step_equations import NewtonOptions


def with_reuse(simulation: Simulation, share: float) -> Simulation:
    stepper = simulation.stepper
    assert isinstance(stepper, BDF)
    return replace(simulation, stepper=replace(stepper, newton=replace(stepper.newton, reuse=share)))


def test_the_same_run_with_fewer_factorisations() -> None:
    _, simulation = two_bodies(TET10, n_steps=12)
    plain, reused = simulation.run(), with_reuse(simulation, 0.1).run()
    counts = [sum(r.report.factorizations for r in run.records) for run in (plain, reused)]
    print(counts, [sum(r.report.iterations for r in run.records) for run in (plain, reused)])
    assert counts[1] < 0.8 * counts[0]
    assert np.abs(reused.q - plain.q).max() < 1e-10
    for a, b in zip(plain.records, reused.records, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a.decisions, b.decisions, strict=True))
        assert b.report.residual <= b.report.tolerance


def test_gradients_and_checkpoints() -> None:
    """Nothing is kept from step to step: a recomputation meets the same numbers."""
    model, simulation = PAIRS["rigid-on-world"](FrictionLaw.HYBRID, BDF(0.002, 2, newton=NewtonOptions(1e-12, 0.0)))
    objective = RoughObjective(np.random.default_rng(0).normal(size=model.system.n))
    exact = value_and_gradient(simulation, objective)
    simulation = with_reuse(simulation, 0.1)
    stored = value_and_gradient(simulation, objective)
    again = value_and_gradient(simulation, objective, schedule=Checkpoints(5))
    assert np.array_equal(stored.gradient, again.gradient)
    assert np.abs(stored.gradient - exact.gradient).max() < 1e-7 * np.abs(exact.gradient).max()
