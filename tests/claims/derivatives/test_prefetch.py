"""Linearisations made ahead: in order, as many as there is room for, and errors where they belong.

That the derivatives are bit-equal is checked with every gradient of a run (`run_checks`).
"""

import threading
from dataclasses import replace

import numpy as np
import pytest
from support.compiled_runs import by_terms
from support.small_models import RoughObjective, two_bodies

from add.adjoint import forward, pushforward, schedule, value_and_gradient
from add.errors import SolverError
from add.geometry import TET4
from add.linalg import DenseLU, Factorization, MultifrontalLU
from add.simulation import BDF


@pytest.fixture
def simulation():
    return by_terms(two_bodies(TET4, n_steps=6)[1])  # compiled steps are linearised by themselves


@pytest.mark.parametrize("threads", [1, 2, 5, 20])
def test_order_and_threads(simulation, threads, monkeypatch):
    run = simulation.run()
    assembler = simulation.assembler()
    assemblers = schedule.prefetch_assemblers(assembler, threads)
    assert len(assemblers) == (1 if threads == 1 else threads + 1)
    seen = []
    linearise = BDF.linearise

    def watched(self, assembler, record, theta):
        seen.append(threading.current_thread())
        return linearise(self, assembler, record, theta)

    monkeypatch.setattr(BDF, "linearise", watched)
    steps = schedule.linearisations(simulation.stepper, assemblers, simulation.theta, run.records)
    for record, step in zip(run.records, steps, strict=True):
        for found, recorded in zip(step.branch.decisions, record.decisions, strict=True):
            assert found is recorded
    others = [thread for thread in seen if thread is not threading.main_thread()]
    assert len(seen) == 6 and len(others) == (0 if threads == 1 else 6)
    assert not any(thread.is_alive() for thread in others)


def test_memory_limits_the_prefetch(simulation, monkeypatch):
    assembler = simulation.assembler()
    assembler.factorization = MultifrontalLU()
    record = simulation.run().records[0]
    simulation.stepper.linearise(assembler, record, simulation.theta)
    size = assembler.factorization.memory
    assert size > 1000
    for copies, expected in ((0.5, 1), (1.5, 2), (2.5, 3), (100.0, 5)):
        monkeypatch.setattr(schedule, "available_memory", lambda copies=copies: copies * size / schedule.SHARE)
        assert len(schedule.prefetch_assemblers(assembler, 4)) == expected


def test_a_back_end_that_cannot_be_copied_stays_on_one_thread(simulation):
    class Plain(Factorization):
        """The three methods that a back end of a user needs."""

        def __init__(self):
            self.inner = DenseLU()

        def factor(self, pattern, data):
            self.inner.factor(pattern, data)

        def solve(self, b):
            return self.inner.solve(b)

        def solve_transposed(self, b):
            return self.inner.solve_transposed(b)

    objective = RoughObjective(np.ones(simulation.system.n))
    plain = replace(simulation, solver=lambda n: Plain())
    threaded = value_and_gradient(replace(plain, threads=3), objective)
    np.testing.assert_array_equal(threaded.gradient, value_and_gradient(plain, objective).gradient)


def test_forward_sweeps_know_the_memory_too(simulation, monkeypatch):
    """The crew is called after the first factorisation, whose analysis and size it shares."""
    crews = []
    prefetch_assemblers = schedule.prefetch_assemblers

    def watched(assembler, threads):
        crews.append((assembler.factorization.statistics.factorizations, prefetch_assemblers(assembler, threads)))
        return crews[-1][1]

    monkeypatch.setattr(forward, "prefetch_assemblers", watched)
    threaded = replace(simulation, threads=2, solver=lambda n: MultifrontalLU())
    directions = np.eye(simulation.theta.size)[:, :3]
    pushforward(threaded, simulation.run(), simulation.theta, directions)
    ((factorizations, assemblers),) = crews
    assert factorizations > 0
    assert [a.factorization.statistics.analyses for a in assemblers] == [1, 0, 0]


def test_an_error_of_the_objective_leaves_no_thread(simulation):
    class Broken(RoughObjective):
        def step_pullback(self, state, theta, state_bar, theta_bar):
            if state.step == 4:
                raise ArithmeticError("broken")

    before = threading.active_count()
    with pytest.raises(ArithmeticError):
        value_and_gradient(replace(simulation, threads=3), Broken(np.ones(simulation.system.n)))
    assert threading.active_count() == before


def test_a_failure_ends_the_sweep(simulation, monkeypatch):
    """The error of the thread comes out, and no thread is left."""
    linearise = BDF.linearise

    def failing(self, assembler, record, theta):
        if record.kin.step == 3:
            raise SolverError("no such luck")
        return linearise(self, assembler, record, theta)

    monkeypatch.setattr(BDF, "linearise", failing)
    before = threading.active_count()
    objective = RoughObjective(np.ones(simulation.system.n))
    with pytest.raises(SolverError, match="no such luck"):
        value_and_gradient(replace(simulation, threads=3), objective)
    assert threading.active_count() == before
