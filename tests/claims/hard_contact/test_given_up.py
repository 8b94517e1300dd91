"""Steps by impulses whose cone problems have no solution are given up soon."""

from dataclasses import replace
from typing import Any

import pytest

from add.errors import SolverError
from add.hard_contact import impulse_part, impulse_solve
from add.scene import scene_from_dict


def test_a_step_without_a_certificate_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each such problem takes all iterations there are; of fifty in each part a stack of boxes took minutes."""
    box = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.2, 0.3]}, "mass": 1.0}
    box |= {"position": [0, 0, 0.155], "velocity": [1, 0, -2], "angular_velocity": [20, 30, 0]}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1, "integrator": "bdf1"}, "bodies": {"box": box}}
    raw |= {"obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}}
    built = scene_from_dict(raw | {"contact": {"friction": 0.5, "friction_law": "impulse"}}).build()
    calls, solve = [], impulse_solve.solve

    def unsolved(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return replace(solve(*arguments, **options), natural_map=1e-3)

    monkeypatch.setattr(impulse_solve, "solve", unsolved)
    monkeypatch.setattr(impulse_part, "at_hand", lambda: False)
    monkeypatch.setattr(impulse_solve, "LENGTHS", (0.05,))  # Newton's method is far from its end
    with pytest.raises(SolverError):
        built.run()
    assert 3 <= len(calls) <= 30
