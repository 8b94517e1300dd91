"""The broad phase finds all pairs that are near, and no others."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.compiled_runs import by_terms
from support.surfaces import joined, sheet

from add.adjoint import Cotangents, pullback
from add.compiled.pack import PackedSystem
from add.compiled.run import CompiledRun
from add.contact.crossings import candidates
from add.scene import scene_from_dict
from scripts.reproduction.cloth_pyramid import PYRAMID, crumpling


def by_hand(primitives, x0, x1, reach):
    """Return the pairs whose boxes come within reach, all against all."""

    def boxes(corners):
        both = np.concatenate([x0[corners], x1[corners]], axis=1)
        return both.min(axis=1), both.max(axis=1)

    def near(a, b, same):
        (low_a, high_a), (low_b, high_b) = boxes(a), boxes(b)
        met = (low_a[:, None] - reach <= high_b[None]).all(axis=2)
        met &= (low_b[None] <= high_a[:, None] + reach).all(axis=2)
        met &= primitives.meets[primitives.body[a[:, 0]][:, None], primitives.body[b[:, 0]][None]]
        for k in range(a.shape[1]):
            for m in range(b.shape[1]):
                met &= a[:, k][:, None] != b[:, m][None]
        return np.argwhere(np.triu(met, 1) if same else met)

    edges = np.flatnonzero(primitives.sharp)
    vf = near(np.arange(len(x0))[:, None], primitives.faces, False)
    return vf, edges[near(primitives.edges[edges], primitives.edges[edges], True)]


CASES = {
    "two sheets": dict(parts=[sheet(9), sheet(7, (0.01, 0.02, 0.05))], reach=0.06),
    "moving": dict(parts=[sheet(9), sheet(7, (0.01, 0.02, 0.5))], reach=0.01, move=(0.1, 0.0, -0.5)),
    "one with itself": dict(parts=[sheet(9, wave=0.3)], itself=[0], reach=0.15),
    "apart": dict(parts=[sheet(6), sheet(6, (0, 0, 0.02)), sheet(6, (0, 0, 0.04))], apart=[(0, 1)], reach=0.1),
    "large and small": dict(parts=[sheet(2), sheet(12, (0.2, 0.1, 0.01))], reach=0.02),
    "blunt edges": dict(parts=[sheet(8), sheet(8, (0.01, 0.0, 0.03))], reach=0.05, blunt=60),
    "far away": dict(parts=[sheet(5), sheet(5, (0, 0, 9.0))], reach=0.1),
}


@pytest.mark.parametrize("name", CASES)
def test_all_pairs_and_no_others(name):
    case = dict(CASES[name])
    reach, move = case.pop("reach"), case.pop("move", (0, 0, 0))
    x0, primitives = joined(**case)
    x1 = x0 + np.where(primitives.body[:, None] == 1, np.asarray(move, dtype=float), 0.0)
    found, expected = candidates(primitives, x0, x1, reach), by_hand(primitives, x0, x1, reach)
    assert (len(expected[0]) == 0) == (name == "far away")
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_nothing_meets_nothing():
    x, primitives = joined([sheet(4)])
    assert not any(pairs.size for pairs in candidates(primitives, x, None, 10.0))


def test_the_command_line_starts_without_the_toolkit():
    code = "import sys, add.commands.cli, add.contact.crossings, add.model; sys.exit('ipctk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def thrown(folder):
    """Return a cloth that is thrown into a pyramid."""
    pyramid = folder / "pyramid.obj"
    pyramid.write_text(PYRAMID, encoding="utf-8")
    scene = crumpling(8, pyramid)
    scene["time"]["dt"], scene["bodies"]["cloth"]["velocity"] = 0.01, [0, 0, -3]
    return scene_from_dict(scene).build().simulation


def test_a_compiled_step_goes_on_where_something_acts_that_had_no_places(tmp_path, monkeypatch):
    """Not all that a cloth meets within a step is foreseen."""
    simulation = thrown(tmp_path)
    went_on, of_terms = [], by_terms(simulation)
    with_places = CompiledRun._with_places

    def counted(run, chosen, candidates):
        wider = with_places(run, chosen, candidates)
        went_on.append(wider is not candidates)
        return wider

    monkeypatch.setattr(CompiledRun, "_with_places", counted)
    assembler, other_assembler, compared = simulation.assembler(), of_terms.assembler(), 0
    state = simulation.run(n_steps=1).state(1)
    for _ in range(12):
        went_on.clear()
        after, record = simulation.advance(assembler, state, simulation.theta)
        if any(went_on):
            other_after, other = of_terms.advance(other_assembler, state, simulation.theta)
            assert record.report.iterations == other.report.iterations
            assert_allclose(record.report.history[:-1], other.report.history[:-1], rtol=1e-4)
            assert_allclose(after.q, other_after.q, rtol=0, atol=1e-10)
            for mine, theirs in zip(record.decisions, other.decisions, strict=True):
                np.testing.assert_array_equal(mine, theirs)
            compared += 1
        state = after
    assert compared >= 4


def test_a_sweep_back_goes_through_steps_with_the_places_of_later_ones(tmp_path, monkeypatch):
    """Every step of a cloth that touches has a pattern of its own; back, one serves for two steps at least."""
    simulation, made = thrown(tmp_path), []
    of_step = PackedSystem.of_step
    monkeypatch.setattr(PackedSystem, "of_step", lambda *arguments: made.append(0) or of_step(*arguments))
    trajectory = simulation.run(n_steps=25)
    forward = len(made)
    simulation.packed.patterns._kept.clear()
    ones = Cotangents(*(np.ones(trajectory.q.shape) for _ in range(2)))
    gradient = pullback(simulation, trajectory, simulation.theta, ones)
    assert forward > 15 and len(made) - forward <= 13
    expected = pullback(by_terms(simulation), trajectory, simulation.theta, ones)
    assert_allclose(gradient, expected, rtol=1e-8, atol=1e-12 * np.abs(expected).max())
