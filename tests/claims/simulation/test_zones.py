"""Zones: bodies and piles that nothing joins converge on their own within a step."""

from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from support.compiled_runs import by_terms
from support.run_checks import check_gradient_of_run, tight
from support.small_models import RoughObjective

from add.equations.kinematics import Weights
from add.equations.lifted import AllLimits
from add.scene import load_scene, scene_from_dict
from add.simulation.start import BDFFormula, StartUp
from add.solve import fallbacks, newton
from add.solve.newton import Point, Solve
from add.solve.step_equations import NewtonOptions, Zones
from add.solve.step_matrix import Assembler

SIDE, N = 0.04, 36


def cubes(gap, steps, n=N):
    """Return the scene of rows of cubes that fall from heights of their own; it asks for no compiled steps."""
    rng, bodies = np.random.default_rng(3), {}
    for k in range(n):
        turn = 0.05 * rng.uniform(-1.0, 1.0, 3)
        bodies[f"cube {k}"] = {
            "type": "rigid",
            "geometry": {"shape": "box", "size": [SIDE] * 3},
            "density": 500,
            "position": [(SIDE + gap) * (k % 6), (SIDE + gap) * (k // 6), 0.5 * SIDE + rng.uniform(0.0, 0.1)],
            "orientation": (np.array([1.0, *turn]) / np.sqrt(1.0 + turn @ turn)).tolist(),
        }
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": steps, "integrator": "bdf1", "substeps": "off"},
        "bodies": bodies,
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"stiffness": 1e3, "friction": 0.3, "onset": 1e-3, "damping": 1, "damping_ramp": 1e-3},
    }


def alone(raw):
    return [raw | {"bodies": {name: body}} for name, body in raw["bodies"].items()]


def one_zone(self, branch, order, together=False):
    return Zones(1, np.zeros(self.free.size + branch.n_rows, dtype=np.int64), order)


def looked_at(built):
    """Return the run, and how many coordinates its residuals were for in all."""
    asked, made = Counter(), Point.__init__

    def counted(self, solve, u, mu):
        asked["coordinates"] += solve.free.size
        made(self, solve, u, mu)

    with patch.object(Point, "__init__", counted):
        return built.run(), asked["coordinates"]


def test_each_converges_as_if_it_were_alone():
    raw = cubes(gap=SIDE, steps=18)
    run, asked = looked_at(scene_from_dict(raw).build())
    ends = np.concatenate([scene_from_dict(one).build().run().q[-1] for one in alone(raw)])
    assert np.abs(run.q[-1] - ends).max() < 1e-8
    assert max(record.report.attempt for record in run.records) > 0  # some are hard
    with patch.object(Assembler, "zones", one_zone):
        together, all_asked = looked_at(scene_from_dict(raw).build())
    assert np.abs(together.q[-1] - ends).max() < 1e-8
    assert asked < 0.6 * all_asked


def test_steps_are_solved_where_zones_meet():
    built = scene_from_dict(cubes(gap=0.002, steps=16)).build()
    run, system = built.run(), built.simulation.system
    (term,) = system.deciding
    pairs = 0
    for record in run.records:
        branch = system.on_branch(record.decisions)
        r, _ = branch.residual(record.kin, record.mu, built.theta)
        assert np.linalg.norm(r[system.partition.free]) <= record.report.tolerance
        pairs = max(pairs, term.keys(record.decisions[0]).size)
    assert pairs > 3  # cubes lean on others

    # Those that lean on each other are one zone, others are not.
    assembler, record = built.simulation.assembler(), run.records[-1]
    branch = system.on_branch(record.decisions, record.solution.candidates)
    assembler.assemble(record.kin, record.mu, built.theta, Weights(1.0, record.c, record.c**2), branch)
    zones, touching = assembler.zones(branch, 2), np.divmod(term.keys(record.decisions[0]), N)
    graph = sp.coo_array((np.ones(touching[0].size), touching), shape=(N, N))
    number, labels = connected_components(graph, directed=False)
    assert 1 < zones.number == number < N and np.array_equal(zones.labels, np.repeat(labels, 6))


def test_a_gradient_through_hard_steps(monkeypatch):
    monkeypatch.setattr(newton, "MANY", 0)
    monkeypatch.setattr(newton, "FEW", 0)
    for module in (newton, fallbacks):  # four cubes are soon solved otherwise
        monkeypatch.setattr(module, "PATIENCE", 8)
    simulation = by_terms(scene_from_dict(cubes(gap=SIDE, steps=9, n=4)).build().simulation)
    run = check_gradient_of_run(tight(simulation), RoughObjective(np.random.default_rng(1).normal(size=24)))
    attempts, parts = [record.report.attempt for record in run.records], Counter()
    within = Assembler.within
    monkeypatch.setattr(Assembler, "within", lambda self, *given: (parts.update(self.free), within(self, *given))[1])
    simulation.run()
    assert max(attempts) > 0 and parts


def test_a_part_has_the_forces_and_the_matrix_of_the_whole():
    built = scene_from_dict(cubes(gap=0.002, steps=14)).build()
    run, system, theta = built.run(), built.simulation.system, built.theta
    kin, assembler = run.records[-1].kin, built.simulation.assembler()
    candidates = system.candidates(run.records[-2].kin, theta, 0.01)
    assert candidates[0].size and not system.deciding[0].blocks.constant
    free = np.arange(12 * 6, 15 * 6)
    part, near = assembler.within(free, candidates)
    assert 0 < near[0].size < candidates[0].size
    assert part.system.deciding[0].arrays.runs.shape[0] < 0.8 * system.deciding[0].arrays.runs.shape[0]
    none, weights = np.zeros(0), Weights(1.0, 100.0, 1e4)
    r, _, branch = system.residual(kin, none, theta, candidates=candidates)
    r_part, _, branch_part = part.system.residual(kin, none, theta, candidates=near)
    assert np.array_equal(r[free], r_part[free]) and branch_part.decisions[0].size
    pattern, data = assembler.assemble(kin, none, theta, weights, branch)
    whole = pattern.matrix(data.copy()).toarray()
    pattern, data = part.assemble(kin, none, theta, weights, branch_part)
    assert np.abs(pattern.matrix(data).toarray() - whole[np.ix_(free, free)]).max() <= 1e-12 * np.abs(whole).max()


def test_some_systems_keep_one_length(monkeypatch):
    """Few bodies, rows of constraints, what sticks, and ways that are free for all at once are not divided."""
    built = {name: load_scene(f"scenes/{name}.json").build() for name in ("ball_on_floor", "four_bar")}
    sticking = cubes(gap=SIDE, steps=1, n=2)
    sticking["contact"]["friction_law"] = "hybrid"
    systems = {name: one.simulation.system for name, one in built.items()}
    systems |= {"hybrid": scene_from_dict(sticking).build().simulation.system}
    systems |= {"limit": replace(systems["ball_on_floor"], limit=AllLimits(()))}
    at = built["ball_on_floor"].simulation
    assert newton.FEW > 8
    monkeypatch.setattr(newton, "FEW", 0)
    equations = BDFFormula(0.01, 1, StartUp.BDF1).equations(at.assembler(), at.run(n_steps=0).state(0), at.theta)
    found = {
        name: Solve(Assembler(system), equations, at.theta, NewtonOptions(), None).together
        for name, system in systems.items()
    }
    assert found == {"ball_on_floor": False, "four_bar": True, "hybrid": True, "limit": True}


@pytest.mark.parametrize("order", [1, 2])
def test_settled_zones_are_below_the_tolerance_together(order):
    zones = Zones(3, np.array([0, 0, 1, 2, 2, 2]), order)
    r = np.array([3.0, -4.0, 2.0, 1.0, 2.0, -2.0])
    assert np.allclose(zones.norms(r), [5.0, 2.0, 3.0] if order == 2 else [7.0, 2.0, 5.0])
    most = np.full(3, zones.settled(1e-3))
    assert np.linalg.norm(most, order) <= 0.5e-3 * (1.0 + 1e-12)
