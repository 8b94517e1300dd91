"""Error bars of `add optimize`: on screen, in result.json and in the report."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from add.commands.cli import cli
from add.errors import InputError
from add.mocap import Recording, write_csv
from add.scene import load_scene

pytestmark = pytest.mark.usefixtures("undrawn")

TIMES = np.arange(61) / 120.0


def files(folder, *, weak=False, frames=slice(None), noise=1e-3, **sections):
    """A box that spins about z in free flight, seen by one marker on that axis (b is beside it, not recorded)."""
    rng = np.random.default_rng(2)
    places = np.zeros((TIMES.size, 1, 3)) + noise * rng.normal(size=(TIMES.size, 1, 3))
    places[:, 0, 2] += 0.05
    places[:, 0, 0] += 0.4 * TIMES
    seen = np.ones((TIMES.size, 1), bool)[frames]
    write_csv(folder / "r.csv", Recording(("A",), TIMES[frames], places[frames], seen, ""))
    scene = {
        "schema": "add-scene/1",
        "name": "flight",
        "time": {"dt": 0.05, "duration": 0.5},
        "gravity": [0, 0, 0],
        "bodies": {
            "box": {
                "type": "rigid",
                "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]},
                "mass": 1.0,
                "velocity": [0.3, 0, 0],
            }
        },
        "markers": {"a": {"body": "box", "point": [0, 0, 0.05]}, "b": {"body": "box", "point": [0.05, 0, 0]}},
        "recording": {"file": "r.csv", "markers": {"A": "a"}},
        "objective": [{"type": "markers"}],
        "parameters": [{"path": "bodies.box.velocity", "components": [0], "bounds": [0.0, 2.0]}],
        "optimizer": {"method": "gauss-newton", "max_evaluations": 20},
        **sections,
    }
    if weak:
        scene["parameters"].append({"path": "bodies.box.angular_velocity", "components": [2], "scale": 1.0})
    (folder / "scene.json").write_text(json.dumps(scene))
    return str(folder / "scene.json")


def fit(folder, **sections):
    asked = CliRunner().invoke(cli, ["optimize", files(folder, **sections), "-o", str(folder / "run"), "--force"])
    assert asked.exit_code == 0, asked.output
    return asked.output, json.loads((folder / "run" / "result.json").read_text()), folder / "run"


def test_bars_say_what_is_in_them(tmp_path):
    """Screen, result and report agree; noise alone is not called the whole."""
    said, result, folder = fit(tmp_path)
    entry = result["parameters"]["bodies.box.velocity"]
    assert entry["interval_lower"] < 0.4 < entry["interval_upper"]
    assert entry["interval_lower"] < entry["value"] - entry["standard_error"]
    assert entry["errors"]["discretisation"] is None and entry["errors"]["takes"] is None
    contains = result["uncertainty"]["contains"]
    assert any("add converge" in text for text in contains)
    assert any("another take" in text for text in contains)
    report = (folder / "report.md").read_text()
    for text in contains:
        assert text in said
    assert "## Uncertainty" in report and "95 % interval" in report
    assert "another take would differ" in report


def test_unseen_number_and_the_marker_that_would_show_it(tmp_path):
    """A spin about the marker's own axis; the marker beside the axis, which nobody recorded, shows it."""
    said, result, folder = fit(tmp_path, weak=True)
    (weak,) = result["uncertainty"]["weak"]
    assert list(weak["parameters"]) == ["bodies.box.angular_velocity[2]"]
    assert "recording b in 'scene' would lower the spread" in weak["text"]
    # the marker moves by 0.05 m t a unit of spin: sigma / sqrt(sum (0.05 t)^2) with sigma the noise of the fit
    expected = 1e-3 / np.sqrt(((0.05 * TIMES) ** 2).sum())
    (candidate,) = weak["candidates"]
    assert candidate["spread"] == pytest.approx(expected, rel=0.15)
    assert weak["text"] in said
    assert "recording b" in (folder / "report.md").read_text()
    assert result["parameters"]["bodies.box.angular_velocity[2]"]["standard_error"] is None


def test_as_many_numbers_as_coordinates_have_no_bars_and_that_is_said(tmp_path):
    velocities = [{"path": "bodies.box.velocity"}, {"path": "bodies.box.position"}]
    said, result, folder = fit(tmp_path, frames=slice(5, 25, 10), parameters=velocities)
    (text,) = result["uncertainty"]["contains"]
    assert text.startswith("No error bars: there are no more recorded coordinates than numbers")
    assert text in said and text in (folder / "report.md").read_text()


def test_a_step_of_rounding_is_none(tmp_path):
    """Of a recording without noise: the fit has ended, and stands at no kink."""
    velocity = [{"path": "bodies.box.velocity", "components": [0]}]
    said, _, _ = fit(tmp_path, noise=0.0, parameters=velocity)
    assert "another step" not in said and "a kink" not in said


def test_candidates_only_on_request(tmp_path):
    _, result, _ = fit(tmp_path, weak=True, uncertainty={"candidates": False})
    (weak,) = result["uncertainty"]["weak"]
    assert weak["candidates"] == []
    assert "measure bodies.box.angular_velocity[2] by itself" in weak["text"]


def test_profile_and_bootstrap(tmp_path):
    asked = {"profile": ["bodies.box.velocity"], "bootstrap": 200}
    said, result, _ = fit(tmp_path, uncertainty=asked)
    entry = result["parameters"]["bodies.box.velocity"]
    assert entry["interval_by"] == "profile likelihood"
    half = 0.5 * (entry["interval_upper"] - entry["interval_lower"])
    assert half == pytest.approx(1.97 * entry["standard_error"], rel=0.05)
    assert entry["bootstrap"]["standard_error"] == pytest.approx(entry["standard_error"], rel=0.5)
    assert "95 % intervals by profile likelihood: bodies.box.velocity" in said


def test_profile_of_no_parameter(tmp_path):
    with pytest.raises(InputError, match=r"bodies\.box\.velocity") as error:
        load_scene(files(tmp_path, uncertainty={"profile": ["bodies.box.mass"]}))
    assert error.value.place == "uncertainty.profile.0"


def test_on_a_bound(tmp_path):
    """The number is named, has no bar, and its interval begins at the bound."""
    limited = [{"path": "bodies.box.velocity", "components": [0], "bounds": [0.41, 2.0], "start": 0.5}]
    said, result, _ = fit(tmp_path, parameters=limited, uncertainty={"profile": ["bodies.box.velocity"]})
    entry = result["parameters"]["bodies.box.velocity"]
    assert entry["at_bound"] and entry["standard_error"] is None
    assert entry["interval_lower"] == 0.41 and entry["interval_open"] == [True, False]
    assert "on its bound" in said


def test_a_number_that_takes_disagree_about_is_named(tmp_path):
    """Two takes of two speeds, hundreds of bars apart, fitted as one: the report compares what each take asks for."""
    places = np.zeros((TIMES.size, 1, 3)) + 1e-3 * np.random.default_rng(4).normal(size=(TIMES.size, 1, 3))
    places[:, 0, 2] += 0.05
    places[:, 0, 0] -= 0.2 * TIMES
    write_csv(tmp_path / "s.csv", Recording(("A",), TIMES, places, np.ones((TIMES.size, 1), bool), ""))
    takes = [{"name": name, "recording": {"file": f"{file}.csv", "markers": {"A": "a"}}}
             for name, file in (("there", "r"), ("back", "s"))]  # fmt: skip
    said, result, folder = fit(
        tmp_path, experiments=takes, parameters=[{"path": "bodies.box.velocity", "components": [0]}]
    )
    (item,) = result["uncertainty"]["changing"]
    assert item["takes"] == pytest.approx({"there": 0.4, "back": -0.2}, abs=5e-3)
    assert item["bars_apart"] > 100 and "changes from take to take" in item["text"]
    assert item["text"] in said and "changes from take to take" in (folder / "report.md").read_text()
    entry = result["parameters"]["bodies.box.velocity"]
    assert entry["interval_by"] == "range of takes" and ", range: -0." in said
    assert (entry["interval_lower"], entry["interval_upper"]) == pytest.approx((-0.5, 0.7), abs=0.02)
    assert any("Fewer than four takes see bodies.box.velocity" in text for text in result["uncertainty"]["contains"])


def test_a_bar_above_its_value_is_a_warning(tmp_path, caplog):
    """A drag that slows by a micrometre under a millimetre of noise: no interval over hundreds of decades."""
    air = {"type": "drag", "on": {"body": "box", "at": [0, 0, 0]}, "coefficient": 0.1, "area": 1e-3}
    parameters = [
        {"path": "bodies.box.velocity", "components": [0]},
        {"path": "couplings.air.coefficient", "transform": "log", "bounds": [1e-9, 1e9]},
    ]
    _, result, _ = fit(tmp_path, couplings={"air": air}, parameters=parameters)
    entry = result["parameters"]["couplings.air.coefficient"]
    assert entry["standard_error"] > entry["value"]
    assert entry["interval_lower"] is None and entry["interval_upper"] is None
    assert "couplings.air.coefficient exceeds the value" in caplog.text
    assert any("exceeds the value" in text for text in result["uncertainty"]["contains"])
    assert result["parameters"]["bodies.box.velocity"]["interval_lower"] is not None


def test_a_start_that_the_format_does_not_allow(tmp_path):
    """An error with file and place before the fit begins, and not behind it."""
    scene = files(tmp_path, parameters=[{"path": "bodies.box.mass", "start": -1.0}])
    asked = CliRunner().invoke(cli, ["optimize", scene, "-o", str(tmp_path / "run"), "--force"])
    assert isinstance(asked.exception, InputError) and asked.exception.exit_code == 2
    said = f"{scene}: parameters.0.start: the format does not allow this value (found -1; expected > 0)"
    assert str(asked.exception) == said
    assert "evaluation" not in asked.output
