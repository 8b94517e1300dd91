"""`add compare`: one scene under several friction laws."""

import json

import numpy as np
import pytest
from support.impulse_scenes import CUBE, scene

from add.commands.cli import main
from add.commands.compare import compare_laws, comparison_text
from add.errors import InputError
from add.scene import scene_from_dict


def sliding(law: str = "linear") -> dict:
    """A cube that slides to rest, by a stiff penalty where it is one."""
    raw = scene(CUBE | {"velocity": [0.8, 0, 0]}, dt=0.004, steps=60, friction=0.4)
    raw["time"] = {"dt": 0.004, "steps": 60, "integrator": "bdf1"}
    raw["contact"] |= {"friction_law": law, "stiffness": 2e5, "damping": 200.0}
    raw["markers"] = {"c": {"body": "body", "center_of_mass": True}}
    raw["objective"] = [{"type": "point", "marker": "c", "target": [0, 0, 0.1], "axes": "x", "time": "end"}]
    raw["parameters"] = [{"path": "contact.friction"}, {"path": "bodies.body.velocity"}]
    return raw


@pytest.mark.slow
def test_laws_agree_about_a_sliding_cube(tmp_path, capsys) -> None:
    """All tend to one motion; the exact gradient of the square of the way is known: d(x^2)/d mu = -2 x^2/mu."""
    runs = {run.law: run for run in compare_laws(scene_from_dict(sliding()), ["linear", "hybrid", "impulse", "exact"])}
    ends = np.array([run.ends["body"][0] for run in runs.values()])
    np.testing.assert_allclose(ends, 0.8**2 / (2 * 0.4 * 9.81), rtol=0.05)
    found = runs["impulse"].gradient["contact.friction"][0]
    assert runs["exact"].gradient["contact.friction"][0] == pytest.approx(found, rel=1e-6)
    assert found == pytest.approx(-2.0 * runs["impulse"].value / 0.4, rel=0.05)
    assert runs["linear"].gradient["contact.friction"][0] == pytest.approx(found, rel=0.05)
    assert all(run.steps == 60 and run.forward > 0.0 for run in runs.values())
    assert runs["impulse"].both > 0.0

    (tmp_path / "s.json").write_text(json.dumps(sliding()))
    with pytest.raises(SystemExit) as caught:
        main(["compare", str(tmp_path / "s.json"), "--laws", "linear,impulse"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0].split() == ["law", "linear", "impulse"]
    for row in ("body x [m]", "objective", "d/d contact.friction", "d/d bodies.body.velocity[2]", "run [ms a step]"):
        assert row in text


def test_changes_are_told() -> None:
    """What a law does not know is left out, and said."""
    raw = sliding("impulse")
    raw["contact"] |= {"impact_time": "linear", "pairs": [{"body": "body", "obstacle": "floor", "restitution": 0.3}]}
    raw["time"]["steps"] = 5
    runs = compare_laws(scene_from_dict(raw), ["impulse", "linear", "exact"])
    assert [run.refused for run in runs] == ["", "", ""]
    assert runs[0].changed == ()
    assert runs[1].changed == ("without impact_time",)
    assert runs[2].changed == ("without impact_time", "impacts are plastic")
    raw = sliding()
    raw["time"] |= {"integrator": "bdf2", "steps": 5}
    (run,) = compare_laws(scene_from_dict(raw), ["impulse"])
    assert run.changed == ("by bdf1",)
    assert "impulse: by bdf1" in comparison_text([run])


def test_a_law_that_refuses_is_named() -> None:
    raw = sliding()
    raw["time"] |= {"initial": "equilibrium", "steps": 3}
    raw["time"].pop("integrator")
    runs = compare_laws(scene_from_dict(raw), ["exact"])
    assert "starts from a given state" in runs[0].refused
    assert "exact: no run" in comparison_text(runs)


@pytest.mark.parametrize(("laws", "message"), [(["coulomb"], "no friction law"), (["tanh", "tanh"], "named twice")])
def test_unknown_laws(laws: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare_laws(scene_from_dict(sliding()), laws)
