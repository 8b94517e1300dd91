"""The second process that compiles beside a run which is the first of its kind."""

import os
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
from support.compiled_runs import by_terms
from support.places import SCENES

from add.adjoint import Cotangents, pullback
from add.commands import ahead, beside
from add.compiled.stages import pull_back_stages, take_stages
from add.contact.body_family import call_stick_rows, functions_of_contact
from add.equations.family_term import OverFamily
from add.kernels.arena import signatures
from add.kernels.caching import is_kept
from add.linalg.fronts import factorise
from add.linalg.substitution import refine
from add.machine import files
from add.scene import load_scene


@pytest.mark.parametrize(
    "name", ["bouncing_throw", "two_soft_balls", "three_frictions", "cube_stops_impulse", "fig2_cylinder_hybrid"]
)
def test_matrices_of_every_kind_of_contact_are_compiled(name):
    """Without detection: that is what the run compiles meanwhile."""
    ahead.compile_matrices(str(SCENES / f"{name}.json"))


def test_families_are_there_before_a_run_asks_for_contact():
    """Where no other process is at them: the run then waits for contact alone."""
    simulation = load_scene(SCENES / "ball_on_floor.json").build().simulation
    ahead.compile_others(simulation)
    assert factorise.executables and refine.executables
    kinds = [term.one.family.kind for term in simulation.system.terms if isinstance(term, OverFamily)]
    assert any(kind.jacobian for kind in kinds)
    for kind in kinds:
        for function, (signature, _) in zip(kind.functions[:2], signatures(), strict=False):
            assert function is None or signature in function.executables, kind.name


def test_contact_of_links_is_asked_with_the_frames_of_links(monkeypatch):
    """Kernels look up rigid coordinates without asking how many there are: with those of joints they read past them."""
    asked = []
    kept = SimpleNamespace(record=lambda kin, theta, record: asked.append(kin.q.size))
    monkeypatch.setattr(ahead, "ContactTracks", lambda system: kept)
    ahead.compile_matrices(str(SCENES / "reaching_arm.json"))
    assert asked == [24]  # three links and a free body; three joints and that body have nine


def test_contact_is_compiled_for_what_a_run_calls_it_with():
    """Types of arguments that no run has would be compiled for nobody."""
    simulation = by_terms(load_scene(SCENES / "rigid_ball_throw.json").build().simulation)
    simulation.run(n_steps=simulation.n_steps)
    for function, signature in functions_of_contact():
        assert signature in function.executables, function.__name__


def test_what_sticks_is_compiled_for_what_a_run_calls_it_with():
    """Energies and places come with forces."""
    ahead.compile_matrices(str(SCENES / "fig2_cylinder_hybrid.json"))
    function, signature, _ = call_stick_rows.callee
    assert list(function.executables) == [signature]


def test_explicit_steps_are_compiled_for_what_a_run_calls_them_with():
    """`add warm` has them with all others."""
    simulation = load_scene(SCENES / "thrown_chain.json").build().simulation
    pullback(simulation, simulation.run(n_steps=2), simulation.theta, Cotangents(*np.ones((2, 3, simulation.system.n))))
    signatures_of = dict(ahead.of_all_runs())
    for function in (take_stages, pull_back_stages):
        assert list(function.executables) == [signatures_of[function]], function.__name__


def test_a_process_is_started_where_a_core_is_idle_and_ends_with_the_run(monkeypatch):
    monkeypatch.setattr(beside, "idle_cores", lambda: 1.0)
    assert beside.begin(str(SCENES / "bouncing_throw.json")) is None
    monkeypatch.setattr(beside, "idle_cores", lambda: 2.0)
    process = beside.begin(str(SCENES / "bouncing_throw.json"))
    assert isinstance(process, subprocess.Popen)
    assert process.poll() is None
    beside.ended(process)
    assert process.poll() is not None


def test_idle_cores_are_counted_while_the_process_sleeps(monkeypatch):
    """Each answer takes two readings; where the system gives none, the load of the last minute counts."""
    ticks = iter([1000, 1000 + int(0.013 * os.sysconf("SC_CLK_TCK")), 0, 10**6])
    monkeypatch.setattr(files, "_idle_ticks", lambda: next(ticks))
    monkeypatch.setattr(files, "cores", lambda: 2)
    assert files.idle_cores(0.01) == pytest.approx(1.0)
    assert files.idle_cores(0.01) == 2.0  # those of others on a large machine are not for this process

    def nothing():
        raise FileNotFoundError

    monkeypatch.setattr(files, "_idle_ticks", nothing)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.5, 0.0, 0.0))
    assert files.idle_cores() == 1.5


def test_where_nothing_is_kept_is_known_before_anything_heavy_is_loaded(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert beside.nothing_kept()
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "turn.py311.nbi").touch()
    assert not beside.nothing_kept()
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    assert beside.nothing_kept() == (not is_kept(*functions_of_contact()[0]))
