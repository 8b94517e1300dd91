"""`add converge`: errors of steps and meshes against answers that are known."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from add.commands import converge
from add.commands.cli import cli
from add.commands.convergence_file import (
    doubts,
    estimate_text,
    left_over,
    overridden,
    refined_text,
    with_coarser_meshes,
    with_finer_meshes,
    with_shorter_steps,
)
from add.errors import InputError
from add.inverse.refit import Refit, derivatives
from add.io.runfolder import RunFolder
from add.mocap import Recording, write_csv
from add.scene import load_scene, scene_from_dict
from add.scene.build.write_back import with_values

pytestmark = pytest.mark.usefixtures("undrawn")

OMEGA, DT = 12.0, 0.02
TIMES = np.arange(1, 61) / 120.0


def files(folder, dt=DT, **sections):
    """A mass on a spring, its exact motion cos(omega t) recorded: BDF1 and BDF2 find another stiffness."""
    places = np.zeros((TIMES.size, 1, 3))
    places[:, 0, 0] = 0.1 * np.cos(OMEGA * TIMES)
    write_csv(folder / "r.csv", Recording(("m",), TIMES, places, np.ones((TIMES.size, 1), bool), ""))
    scene = {
        "schema": "add-scene/1",
        "name": "spring",
        "time": {"dt": dt, "duration": 0.52, "integrator": "bdf2"},
        "gravity": [0, 0, 0],
        "bodies": {
            "p": {
                "type": "rigid",
                "geometry": {"shape": "sphere", "radius": 0.01},
                "mass": 1.0,
                "position": [0.1, 0, 0],
            }
        },
        "couplings": {
            "s": {
                "type": "spring",
                "a": {"at": [-1, 0, 0]},
                "b": {"body": "p", "at": [0, 0, 0]},
                "stiffness": 120.0,
                "length": 1.0,
            }
        },
        "markers": {"m": {"body": "p", "point": [0, 0, 0]}},
        "recording": {"file": "r.csv", "markers": {"m": "m"}},
        "objective": [{"type": "markers"}],
        "parameters": [{"path": "couplings.s.stiffness", "transform": "log"}],
        "optimizer": {"method": "gauss-newton", "max_evaluations": 30},
        **sections,
    }  # fmt: skip
    (folder / "scene.json").write_text(json.dumps(scene))
    return str(folder / "scene.json")


def run(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def test_the_true_stiffness_lies_within_two_bars(tmp_path):
    """k = m omega^2 = 144; the noise bar of the fit alone does not hold it, the one with the step's error does."""
    path, folder = files(tmp_path), tmp_path / "run"
    assert run("optimize", path, "-o", folder).exit_code == 0
    before = json.loads((folder / "result.json").read_text())["parameters"]["couplings.s.stiffness"]
    asked = run("converge", path, "-o", folder, "--mesh-levels", 0)
    assert asked.exit_code == 0, asked.output
    after = json.loads((folder / "result.json").read_text())["parameters"]["couplings.s.stiffness"]
    assert after["value"] == before["value"]
    entry = json.loads((folder / "discretisation.json").read_text())["parameters"]["couplings.s.stiffness"]
    assert entry["time"]["converges"]
    assert entry["time"]["limit"] == pytest.approx(OMEGA**2, rel=0.01)
    assert entry["error"] == pytest.approx(abs(after["value"] - OMEGA**2), rel=0.35)
    # runs with half and twice the step had said so before
    said = json.loads((folder / "discretisation.json").read_text())["estimate"]
    assert said.keys() == {"time"}
    assert 1.0 < said["time"]["errors"]["couplings.s.stiffness"] / abs(after["value"] - OMEGA**2) < 1.4
    assert estimate_text(said) in asked.output and estimate_text(said) in (folder / "report.md").read_text()
    assert asked.output.index("Estimated") < asked.output.index("dt 0.01 s")
    assert after["errors"]["discretisation"] == entry["error"]
    shifts = json.loads((folder / "result.json").read_text())["uncertainty"]["shifts"]
    assert after["value"] > OMEGA**2
    assert shifts == {"labels": ["couplings.s.stiffness"], "vectors": [[-entry["error"]]]}
    assert abs(after["value"] - OMEGA**2) < 2 * after["standard_error"]
    assert after["interval_lower"] < OMEGA**2 < after["interval_upper"]
    assert "The discretisation is in them" in (folder / "report.md").read_text()
    # a following fit in the folder picks it up, and so does a scene that names the file
    assert run("optimize", path, "-o", folder, "--force").exit_code == 0
    again = json.loads((folder / "result.json").read_text())["parameters"]["couplings.s.stiffness"]
    assert again["standard_error"] == pytest.approx(after["standard_error"], rel=1e-6)
    named = files(tmp_path, uncertainty={"convergence": str(folder / "discretisation.json")})
    assert run("optimize", named, "-o", tmp_path / "other").exit_code == 0
    other = json.loads((tmp_path / "other" / "result.json").read_text())["parameters"]["couplings.s.stiffness"]
    assert other["errors"]["discretisation"] == entry["error"]


def test_a_study_that_was_stopped_goes_on(tmp_path, monkeypatch):
    """The fit says what the study takes; what had ended is kept, and the numbers are those of one that was not."""
    path, folder = files(tmp_path), tmp_path / "run"
    assert run("optimize", path, "-o", folder).exit_code == 0
    said = json.loads((folder / "result.json").read_text())["uncertainty"]["contains"][-1]
    assert "Not in them: the discretisation." in said and f"`add converge {path} -o {folder}` says" in said
    assert "adds it, in the time of about 12 of the fit's evaluations" in said
    # The clock of the fit, beside other work or resumed, says nothing of this study.
    lines = [json.loads(line) | {"seconds": 5e4} for line in (folder / "evaluations.jsonl").read_text().splitlines()]
    (folder / "evaluations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    made, calls = converge.refit, []

    def stopped(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return made(*arguments)

    monkeypatch.setattr(converge, "refit", stopped)
    first = run("converge", path, "-o", folder, "--mesh-levels", 0)
    assert first.exit_code != 0 and "more, by the simulations made just now" in first.output
    assert " h " not in first.output and first.output.index("more, by the") < first.output.index("Estimated")
    assert not (folder / "discretisation.json").exists()
    again = run("converge", path, "-o", folder, "--mesh-levels", 0)
    assert again.exit_code == 0 and len(calls) == 4
    assert "kept from before" in again.output
    assert "more, by the simulations made just now" not in again.output  # it was kept: nothing was measured
    found = json.loads((folder / "discretisation.json").read_text())
    (folder / "refits.jsonl").unlink()
    assert run("converge", path, "-o", folder, "--mesh-levels", 0).exit_code == 0
    whole = json.loads((folder / "discretisation.json").read_text())
    assert whole["parameters"] == found["parameters"] and whole["runs"] == found["runs"]


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ({"time": ["a"]}, "the steps alone"),
        ({"mesh": ["a"]}, "the meshes alone"),
        ({"time": ["a"], "mesh": ["b"]}, "steps and meshes"),
    ],
)
def test_what_was_not_refined_is_said(levels, said):
    found = {"levels": {kind: {"names": names} for kind, names in levels.items()}}
    assert said in refined_text(found, scene_from_dict(BALL))


def bar(gravity, dt, divisions, end, poisson):
    """A bar that is clamped at one end and let go, along its axis or across it."""
    return {
        "schema": "add-scene/1",
        "time": {"dt": dt, "duration": end, "integrator": "bdf2"},
        "gravity": gravity,
        "bodies": {
            "bar": {
                "type": "soft",
                "mesh": {"shape": "box", "size": [0.1, 0.02, 0.02], "divisions": divisions},
                "element": "hex8",
                "material": {"young": 5e4, "poisson": poisson, "density": 1000, "viscosity": 10},
                "pins": [{"where": {"box": {"max": [-0.0499, None, None]}}}],
            }
        },
        "markers": {"tip": {"body": "bar", "point": [0.05, 0, 0]}},
    }


@pytest.mark.parametrize(
    ("kind", "arguments", "true"),
    [
        ("time", ([60, 0, 0], 0.01, [2, 2, 2], 0.1, 0.0), (0.00125, [2, 2, 2])),
        ("mesh", ([0, 0, -9.81], 0.01, [4, 2, 2], 0.2, 0.3), (0.01, [8, 4, 4])),
    ],
)
def test_whether_the_step_or_the_mesh_dominates_is_known_before(tmp_path, kind, arguments, true):
    """The recording is the same bar with the step, or the mesh, much finer: the modulus that is off is off by that."""
    gravity, _, _, end, poisson = arguments
    fine = scene_from_dict(bar(gravity, true[0], true[1], end, poisson)).build()
    whole = fine.run()
    steps = np.arange(round(0.01 / true[0]), whole.n_steps + 1, round(0.01 / true[0]))
    places = np.array([fine.markers.points(whole.kinematics(k), fine.theta)[0] for k in steps])
    seen = np.ones((steps.size, 1), bool)
    write_csv(tmp_path / "r.csv", Recording(("tip",), steps * true[0], places, seen, ""))
    sections = {
        "recording": {"file": "r.csv", "markers": {"tip": "tip"}},
        "objective": [{"type": "markers"}],
        "parameters": [{"path": "bodies.bar.material.young", "transform": "log"}],
        "optimizer": {"method": "gauss-newton", "max_evaluations": 30},
    }
    (tmp_path / "s.json").write_text(json.dumps(bar(*arguments) | sections))
    assert run("optimize", tmp_path / "s.json", "-o", tmp_path / "run").exit_code == 0
    problem, x, _ = converge.fitted_problem(load_scene(tmp_path / "s.json"), RunFolder(tmp_path / "run", create=False))
    at_fit = with_values(load_scene(tmp_path / "s.json"), problem, x)
    rows = derivatives(problem, x)
    said = converge.estimate(at_fit, problem, Refit(x, problem.evaluate(x).value, 1, True), rows)
    off = abs(float(problem.values(x)[0]) - 5e4)
    assert off > 500.0
    assert 0.6 < said[kind]["errors"]["bodies.bar.material.young"] / off < 2.2
    other = {"time": "mesh", "mesh": "time"}[kind]
    assert said[kind]["size"] > 2.0 * said[other]["size"] > 0.0
    assert f"The {'step' if kind == 'time' else 'mesh'} dominates (`--{other}-levels 0`" in estimate_text(said)


def test_estimates_in_words():
    def of(size):
        return {"errors": {"a": 1.0, "start@one": 2.0}, "size": size}

    text = estimate_text({"time": of(3.0), "mesh": of(4.0)})
    assert "a by 1 (3 standard errors of noise in all)" in text and "Step and mesh matter alike" in text
    assert "start@one" not in text
    text = estimate_text({"time": of(3.0), "mesh": {"unknown": "why"}})
    assert "nothing is known of the mesh: why." in text and "alike" not in text


def test_that_the_step_is_what_a_fit_leaves_over():
    """A damping that BDF1 hides at every step of a study is none of the bars; the objective tells."""
    levels = {"time": {"names": ["dt 0.001 s", "dt 0.0005 s"], "objectives": [1.14e-5, 1.73e-6, 1.23e-7]}}
    bdf1 = scene_from_dict({"schema": "add-scene/1", "time": {"dt": 0.002, "steps": 9, "integrator": "bdf1"},
                            "bodies": {"p": {"type": "rigid", "mass": 1, "inertia": [1, 1, 1, 0, 0, 0]}}})  # fmt: skip
    (text,) = left_over({"levels": levels}, bdf1)
    assert (
        text.startswith("with dt 0.0005 s the objective falls from 1.14e-05 to 1.23e-07")
        and '"bdf1" itself damps' in text
    )
    levels["time"]["objectives"] = [2.4e-7, 2.3e-7, 2.1e-7]
    assert left_over({"levels": levels}, bdf1) == []


def test_with_a_clock(tmp_path):
    """The release is fitted, too: the same frames count at every level, and the stiffness converges to the truth."""
    places = np.zeros((TIMES.size, 1, 3))
    places[:, 0, 0] = 0.1 * np.cos(OMEGA * TIMES)
    path = files(
        tmp_path,
        parameters=[
            {"path": "couplings.s.stiffness", "transform": "log"},
            {"path": "recording.time_offset", "scale": 0.01, "bounds": [-0.05, 0.05], "start": 0.004},
        ],
        time={"dt": DT, "duration": 0.6},
    )
    write_csv(tmp_path / "r.csv", Recording(("m",), TIMES + 0.012, places, np.ones((TIMES.size, 1), bool), ""))
    assert run("optimize", path, "-o", tmp_path / "run").exit_code == 0
    asked = run("converge", path, "-o", tmp_path / "run", "--mesh-levels", 0)
    assert asked.exit_code == 0, asked.output
    found = json.loads((tmp_path / "run" / "discretisation.json").read_text())["parameters"]
    assert found["couplings.s.stiffness"]["time"]["limit"] == pytest.approx(OMEGA**2, rel=0.02)
    assert found["recording.time_offset"]["time"]["limit"] == pytest.approx(0.012, abs=0.002)


def test_a_file_for_another_step_does_not_count(tmp_path, caplog):
    """Its errors are not those of this scene: a warning, and the bars say what is missing."""
    path, folder = files(tmp_path), tmp_path / "run"
    assert run("optimize", path, "-o", folder).exit_code == 0
    assert run("converge", path, "-o", folder, "--time-levels", 1, "--mesh-levels", 0).exit_code == 0
    changed = files(tmp_path, dt=0.01, uncertainty={"convergence": str(folder / "discretisation.json")})
    assert run("optimize", changed, "-o", tmp_path / "other").exit_code == 0
    result = json.loads((tmp_path / "other" / "result.json").read_text())
    assert result["parameters"]["couplings.s.stiffness"]["errors"]["discretisation"] is None
    assert any("made with another step or mesh" in text for text in result["uncertainty"]["contains"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "not JSON"),
        ("{}", "no file of `add converge`"),
        ('{"format": "add-convergence/1"}', "the parameters are missing"),
        ('{"format": "add-convergence/1", "parameters": {"a": {"error": -1}}}', "no error"),
    ],
)
def test_damaged_files(tmp_path, text, said):
    (tmp_path / "bad.json").write_text(text)
    path = files(tmp_path, uncertainty={"convergence": "bad.json"})
    with pytest.raises(InputError) as error:
        asked = run("optimize", path, "-o", tmp_path / "run")
        raise asked.exception
    assert said in str(error.value) and "bad.json" in str(error.value)


def test_without_a_fit(tmp_path):
    path = files(tmp_path)
    assert run("simulate", path, "-o", tmp_path / "run").exit_code == 0
    asked = run("converge", path, "-o", tmp_path / "run")
    assert isinstance(asked.exception, InputError)
    assert "no fit in this folder" in str(asked.exception)


# --- refined scenes --------------------------------------------------------------------------------------------------

BALL = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 4},
    "bodies": {
        "b": {
            "type": "soft",
            "mesh": {"shape": "box", "size": [1, 1, 1], "divisions": [1, 2, 3]},
            "material": {"young": 1e5, "poisson": 0.3, "density": 100},
        }
    },
    "obstacles": {"floor": {"shape": "plane", "point": [0, 0, -9], "normal": [0, 0, 1]}},
    "contact": {"stiffness": 1000.0, "friction_law": "tanh"},
}


def test_shorter_steps_keep_the_friction_law():
    """k_t = k_n dt of the scene as it was; the run is as long."""
    scene = with_shorter_steps(scene_from_dict(BALL), 4)
    assert scene.time.dt == 0.0025 and scene.time.end == pytest.approx(0.04)
    assert scene.contact.stick_stiffness == pytest.approx(10.0)
    own = {**BALL, "contact": {**BALL["contact"], "stick_stiffness": 3.0}}
    assert with_shorter_steps(scene_from_dict(own), 2).contact.stick_stiffness == 3.0


def test_steps_of_experiments_are_shorter_too():
    """With the law of friction of each: all had that of the scene."""
    raw = {**BALL, "experiments": [{"name": "a"}, {"name": "b", "overrides": {"time.dt": 0.02, "time.steps": 2}}]}
    scene = with_shorter_steps(scene_from_dict(raw), 2)
    stiff = {"name": "c", "overrides": {"contact.stiffness": 2e3}}
    assert scene.experiments[1].overrides == {"time.dt": 0.01, "time.steps": 4, "contact.stick_stiffness": 20.0}
    scene = with_shorter_steps(scene_from_dict({**BALL, "experiments": [{"name": "a"}, stiff]}), 2)
    assert scene.experiments[0].overrides == {} and scene.contact.stick_stiffness == 10.0
    assert scene.experiments[1].overrides["contact.stick_stiffness"] == 20.0


def test_meshes_whose_nodes_have_numbers_stay(tmp_path):
    """Markers, pins and ties by number were other places, and other supports, in the finer mesh."""
    pinned = BALL["bodies"]["b"] | {"pins": [{"where": {"nodes": [0, 1]}}]}
    tied = {"type": "attachment", "nodes": "b", "where": {"nodes": [0]}, "stiffness": 10}
    for more, said in (
        ({"bodies": {"b": pinned}}, "bodies.b.pins.0.where"),
        ({"markers": {"m": {"body": "b", "nodes": [3]}}}, "markers.m"),
        ({"couplings": {"t": tied}}, "couplings.t.where"),
    ):
        scene = scene_from_dict(BALL | more)
        assert with_finer_meshes(scene, tmp_path)[1] == ()
        assert any(text.startswith(f"the mesh of 'b' is not refined by itself: {said} sel") for text in doubts(scene))
    own = {"experiments": [{"name": "e", "overrides": {"bodies.b.mesh.divisions": [3, 4, 5]}}]}
    assert any("experiment 'e' has a mesh of its own" in text for text in doubts(scene_from_dict(BALL | own)))
    larger = {"experiments": [{"name": "e", "overrides": {"bodies.b.mesh.size": [1, 2, 3]}}]}
    assert not any("not refined" in text for text in doubts(scene_from_dict(BALL | larger)))


def test_finer_meshes(tmp_path):
    scene, names = with_finer_meshes(scene_from_dict(BALL), tmp_path)
    assert names == ("b",)
    assert scene.bodies["b"].mesh.divisions == (2, 4, 6)


def test_coarser_meshes():
    """Cells in pairs, the last one alone; what a cell thin, hollow or from a file is cannot be had coarser."""
    assert with_coarser_meshes(scene_from_dict(BALL)) is None
    raw = json.loads(json.dumps(BALL))
    mesh = raw["bodies"]["b"]["mesh"]
    mesh["divisions"] = [2, 4, 5]
    assert with_coarser_meshes(scene_from_dict(raw)).bodies["b"].mesh.divisions == (1, 2, 3)
    raw["bodies"]["b"]["mesh"] = {"shape": "sphere", "radius": 1.0, "edge": 0.2}
    assert with_coarser_meshes(scene_from_dict(raw)).bodies["b"].mesh.edge == 0.4
    raw["bodies"]["b"]["mesh"] = mesh | {"hollows": [[[0, 0, 0], [1, 1, 1]]]}
    assert with_coarser_meshes(scene_from_dict(raw)) is None
    raw["bodies"]["b"]["mesh"] = {"file": "data/meshes/ball_coarse.msh"}
    assert with_coarser_meshes(scene_from_dict(raw, folder=".")) is None


def test_finer_meshes_of_files(tmp_path):
    raw = json.loads(json.dumps(BALL))
    raw["bodies"]["b"] |= {"mesh": {"file": "data/meshes/ball_coarse.msh"}, "scale": 2.0}
    scene = scene_from_dict(raw, folder=".")
    finer, _ = with_finer_meshes(scene, tmp_path)
    before, after = (item.build().model.system.n for item in (scene, finer))
    assert 6 * before < after < 8 * before
    assert finer.bodies["b"].scale == 2.0
    (tmp_path / "finer.json").write_text(json.dumps({"bodies.b.scale": 3.0}))
    assert overridden(scene, tmp_path / "finer.json").bodies["b"].scale == 3.0
    with pytest.raises(InputError, match="no overrides"):
        (tmp_path / "none.json").write_text("{}")
        overridden(scene, tmp_path / "none.json")


def test_scene_of_the_page_loads():
    assert load_scene("scenes/foam_ball.json").uncertainty.candidates
