"""Takes that are fitted beside takes that are predicted; a free particle, so that all answers are known."""

import csv
import json

import numpy as np
import pytest

from add.commands.cli import main
from add.commands.optimize import optimize_scene
from add.errors import InputError
from add.io.runfolder import RunFolder
from add.mocap import Recording, write_csv
from add.scene import load_scene, scene_from_dict

pytestmark = pytest.mark.usefixtures("roughly_drawn")

VELOCITY, GRAVITY = "bodies.p.velocity", "gravity"
G = 9.5


def throw(folder, name: str, velocity: float, bump: float = 0.0) -> dict:
    """A take of a particle that is thrown up with a velocity of its own and falls with G; a bump after 0.2 s."""
    times = np.arange(0.0, 0.4 + 1e-9, 0.01)
    places = np.zeros((times.size, 1, 3))
    # BDF1 start, then BDF2: what the stepper gives, so that a fit is exact.
    places[:, 0, 2] = velocity * times - 0.5 * G * times**2 + bump * (times > 0.2)
    write_csv(folder / f"{name}.csv", Recording(("m",), times, places, np.ones((times.size, 1), dtype=bool), ""))
    return {"name": name, "recording": {"file": str(folder / f"{name}.csv"), "markers": {"m": "m"}}}


def raw(folder, *experiments, **sections) -> dict:
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.002, "duration": 0.4},
        "gravity": [0, 0, -9.0],
        "bodies": {"p": {"type": "mass-spring", "mesh": {"points": [[0, 0, 0]]}, "mass": 1.0, "velocity": [0, 0, 1]}},
        "markers": {"m": {"body": "p", "nodes": [0]}},
        "experiments": list(experiments),
        "objective": [{"type": "markers"}],
        "parameters": [{"path": GRAVITY, "components": [2]}]
        + [{"path": VELOCITY, "components": [2], "experiment": item["name"]} for item in experiments],
        "optimizer": {"method": "gauss-newton"},
        **sections,
    }


@pytest.mark.parametrize("method", ["gauss-newton", "l-bfgs-b"])
def test_a_take_is_predicted_with_what_another_found(method, tmp_path):
    """Its own start is fitted to its flight; gravity is the other's, and what follows the window says nothing."""
    fitted = throw(tmp_path, "one", 1.5)
    predicted = throw(tmp_path, "two", 2.0, bump=0.1) | {"use": "validate", "fit_window": [0.0, 0.15]}
    scene = scene_from_dict(raw(tmp_path, fitted, predicted, optimizer={"method": method}))
    folder = RunFolder(tmp_path / "run")
    result = optimize_scene(scene, folder)
    found = {name: item["value"] for name, item in result["parameters"].items()}
    assert found[f"{GRAVITY}[2]"] == pytest.approx(-G, rel=2e-3)
    assert found[f"{VELOCITY}@one[2]"] == pytest.approx(1.5, rel=2e-3)
    assert found[f"{VELOCITY}@two[2]"] == pytest.approx(2.0, rel=2e-3)
    assert [phase["name"] for phase in result["phases"]] == ["all", "start of two"]
    one, two = result["experiments"]["one"], result["experiments"]["two"]
    assert (one["use"], two["use"]) == ("fit", "validate")
    assert one["fit"]["rms"] < 2e-4
    # 20 of 41 frames lie beyond the bump.
    assert two["fit"]["rms"] == pytest.approx(0.1 * np.sqrt(20 / 41), rel=0.01)
    assert result["objective"]["end"] == pytest.approx(one["fit"]["rms"] ** 2, rel=1e-6)
    with (tmp_path / "run" / "residuals.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 82
    distances = np.array([float(row["distance_m"]) for row in rows if row["experiment"] == "two"])
    assert np.sqrt((distances**2).mean()) == pytest.approx(two["fit"]["rms"], rel=1e-6)
    last = rows[-1]
    assert (last["use"], last["marker"], float(last["time_s"])) == ("validate", "m", 0.4)
    assert float(last["dz_m"]) == pytest.approx(-0.1, abs=2e-3)
    fit = load_scene(tmp_path / "run" / "fitted.json").inverse_problem()
    assert [item.name for item in fit.experiments] == ["one"]
    assert fit.value(fit.x0)[0] == pytest.approx(result["objective"]["end"], rel=1e-6, abs=1e-12)


def test_what_is_predicted_changes_nothing(tmp_path):
    """The fit is, to the bit, the one without the other take."""
    one, two = throw(tmp_path, "one", 1.5), throw(tmp_path, "two", 2.0)
    alone = scene_from_dict(raw(tmp_path, one)).inverse_problem()
    beside = scene_from_dict(raw(tmp_path, one, {**two, "use": "validate", "fit_window": [0.0, 0.1]})).inverse_problem()
    value, gradient = alone.value_and_grad(alone.x0)
    again, more = beside.value_and_grad(beside.x0)
    assert value == again
    np.testing.assert_array_equal(more, [*gradient, 0.0])
    np.testing.assert_array_equal(beside.index_of(None), [0, 1])
    np.testing.assert_array_equal(beside.index_of((VELOCITY,)), [1])
    with pytest.raises(InputError, match="only validated"):
        beside.index_of((f"{VELOCITY}@two",))
    assert beside.optimize().x[:2].tobytes() == alone.optimize().x.tobytes()


def test_report_and_screen(tmp_path, capsys):
    two = throw(tmp_path, "two", 2.0) | {"use": "validate", "fit_window": [0.0, 0.15]}
    (tmp_path / "scene.json").write_text(json.dumps(raw(tmp_path, throw(tmp_path, "one", 1.5), two)))
    with pytest.raises(SystemExit) as stop:
        main(["optimize", str(tmp_path / "scene.json"), "-o", str(tmp_path / "run")])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    assert "markers of one: rms" in said
    assert "markers of two, predicted: rms" in said
    report = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    rows = {line.split(" | ")[0]: line for line in report.splitlines() if line.startswith(("| one |", "| two |"))}
    assert rows["| one"].endswith("| fitted |") and rows["| two"].endswith("| predicted |")
    assert "### Experiment one, fitted" in report
    for name in ("residuals.png", "markers.png", "markers_two.png"):
        assert (tmp_path / "run" / name).stat().st_size > 5000
        assert name in report


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        ({"use": "validate"}, r"parameters\.2\.experiment", "only validated"),
        ({"fit_window": [0.0, 0.1]}, r"experiments\.1\.fit_window", "goes with"),
        ({"use": "predict"}, r"experiments\.1\.use", "unknown value"),
    ],
)
def test_bad_uses(change, place, message, tmp_path):
    with pytest.raises(InputError, match=f"{place}.*{message}"):
        scene_from_dict(raw(tmp_path, throw(tmp_path, "one", 1.5), throw(tmp_path, "two", 2.0) | change))


def test_nothing_to_fit(tmp_path):
    shared = [{"path": GRAVITY, "components": [2]}]
    one = throw(tmp_path, "one", 1.5) | {"use": "validate"}
    with pytest.raises(InputError, match="none of them is fitted"):
        scene_from_dict(raw(tmp_path, one, parameters=shared))
    with pytest.raises(InputError, match="there is nothing to fit"):
        two = throw(tmp_path, "two", 1.5) | {"use": "validate", "fit_window": [0.0, 0.1]}
        scene_from_dict(raw(tmp_path, throw(tmp_path, "one", 1.5), two, parameters=shared))
