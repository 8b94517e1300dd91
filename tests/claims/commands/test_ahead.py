"""The second process that compiles beside a run which is the first of its kind."""

import os
import subprocess

import pytest
from support.places import SCENES

from add.commands import ahead


@pytest.mark.parametrize("name", ["bouncing_throw", "two_soft_balls", "three_frictions", "cube_stops_impulse"])
def test_matrices_of_every_kind_of_contact_are_compiled(name):
    """Without detection: that is what the run compiles meanwhile."""
    ahead.compile_matrices(str(SCENES / f"{name}.json"))


def test_a_process_is_started_where_a_core_is_idle_and_ends_with_the_run(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (1e9, 0.0, 0.0))
    assert ahead.begin(str(SCENES / "bouncing_throw.json")) is None
    monkeypatch.setattr(os, "getloadavg", lambda: (-1e9, 0.0, 0.0))
    process = ahead.begin(str(SCENES / "bouncing_throw.json"))
    assert isinstance(process, subprocess.Popen)
    assert process.poll() is None
    ahead.ended(process)
    assert process.poll() is not None
