"""Equilibria that do not hold are said."""

import numpy as np
import pytest

import add
from add.commands.whole_run import unstable


def column(load: float, initial: str = "equilibrium", turn: float = 0.0) -> dict:
    """Return a rod that stands on its held first segment, w L^3/B = ``load``; at the start it turns by ``turn``."""
    n, bending = 20, 0.01
    angles = turn * np.arange(n) / n
    points = np.cumsum(np.column_stack([np.cos(angles), np.sin(angles), 0 * angles]) / (n - 0.5), axis=0)
    rod = {
        "type": "rod", "mesh": {"points": [[0, 0, 0], *points.tolist()]}, "density": load * bending / 10,
        "stretching": 1e4, "bending": bending, "pins": [{"where": {"nodes": [0, 1]}}],
    }  # fmt: skip
    time = {"dt": 0.01, "steps": 2, "initial": initial}
    return {"schema": "add-scene/1", "time": time, "gravity": [-10, 0, 0], "bodies": {"column": rod}}


@pytest.mark.parametrize(("load", "said"), [(7.7, False), (8.0, True), (100.0, True)])
def test_a_column_beyond_its_load(load: float, said: bool) -> None:
    """Greenhill's column buckles at 7.83735: straight beyond it, it is in an equilibrium that does not hold."""
    built = add.scene_from_dict(column(load)).build()
    start = built.run(n_steps=0)
    assert np.ptp(start.q[0].reshape(-1, 3)[:, 1:]) < 1e-9
    found = unstable(built, start)
    assert bool(found) == said
    if said:
        (entry,) = found["unstable"]
        assert entry["warning"]
        assert "column/node 20/" in entry["text"]


def test_nothing_is_said_of_starts_that_are_given() -> None:
    """There is no equilibrium, or one beside the straight column, which holds."""
    given = add.scene_from_dict(column(100.0, "given")).build()
    assert unstable(given, given.run(n_steps=0)) == {}
    bent = add.scene_from_dict(column(9.0, turn=1.5)).build()
    start = bent.run(n_steps=0)
    assert np.ptp(start.q[0].reshape(-1, 3)[:, 1]) > 0.1
    assert unstable(bent, start) == {}
