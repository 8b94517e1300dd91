"""What an optimisation says of its objective and of the targets that it missed."""

import json

import pytest

from add.commands.cli import main

pytestmark = pytest.mark.usefixtures("undrawn")


def thrown(objective):
    """A ball without gravity whose velocity is bounded: in a second it cannot come farther than 0.5 m."""
    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1, "velocity": [0.1, 0, 0]}
    return {
        "schema": "add-scene/1", "time": {"dt": 0.05, "steps": 20}, "gravity": [0, 0, 0], "bodies": {"ball": ball},
        "markers": {"m": {"body": "ball", "point": [0, 0, 0]}, "up": {"body": "ball", "direction": [0, 0, 1]}},
        "objective": objective,
        "parameters": [{"path": "bodies.ball.velocity", "components": [0], "bounds": [-0.5, 0.5]}],
    }  # fmt: skip


def optimised(folder, capsys, objective):
    """Return what `add optimize` says, its result, and its report."""
    (folder / "throw.json").write_text(json.dumps(thrown(objective)))
    with pytest.raises(SystemExit) as ended:
        main(["optimize", str(folder / "throw.json"), "-o", str(folder / "run")])
    assert ended.value.code == 0
    result = json.loads((folder / "run" / "result.json").read_text())
    return capsys.readouterr().out, result, (folder / "run" / "report.md").read_text()


def test_the_rest_of_a_target_that_is_out_of_reach_is_said(tmp_path, capsys):
    """A target at 0.8 m that a ball comes 0.3 m short of: how far, in its unit, on the screen and in the report."""
    said, result, report = optimised(
        tmp_path, capsys, [{"type": "point", "marker": "m", "target": [0.8, 0, 0], "time": "end"}]
    )
    line = "off the target: 300 mm (objective.0, point of m)"
    assert line in said and line in report
    assert "-> 0.09, of point [m^2]" in said and ", of point \\[m^2\\] |" in report
    (target,) = next(iter(result["experiments"].values()))["targets"]
    assert target["rms"] == pytest.approx(0.3) and target["time"] == pytest.approx(1.0)


def test_of_several_targets_the_worst_is_named_and_angles_are_apart(tmp_path, capsys):
    """Two of a kind are counted, their weights named; a direction that cannot turn is off by its angle."""
    point = {"type": "point", "marker": "m", "time": "end"}
    objective = [
        point | {"target": [0.8, 0, 0]},
        {"type": "prior", "parameter": "bodies.ball.velocity", "mean": 0.5, "sigma": 1.0, "weight": 0.001},
        {"type": "nearest", "marker": "m", "target": [0.3, 0.4, 0], "softness": 0.001},
        point | {"target": [0.9, 0, 0]},
        {"type": "point", "marker": "up", "target": [1, 0, 0], "time": "end"},
    ]
    said, _, _ = optimised(tmp_path, capsys, objective)
    assert "of 2 x point [m^2] + 0.001 x prior [-] + nearest [m^2] + point [-]" in said
    assert "off 3 targets: rms 369.7" in said and "at most 400" in said and "of m)" in said
    assert "off the target: 1.571 rad (objective.4, point of up)" in said
