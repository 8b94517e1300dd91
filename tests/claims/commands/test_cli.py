"""The commands from outside: what they print, leave behind and end with."""

import copy
import csv
import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import h5py
import pytest
from support.places import SCENES
from support.processes import Forked
from support.tiers import long_case

from add.commands import console
from add.commands.cli import cli, main
from add.commands.console import COMPILING, Console, say_simulation
from add.io import runfolder

pytestmark = pytest.mark.usefixtures("undrawn")

SCENE = {
    "schema": "add-scene/1",
    "name": "box",
    "time": {"dt": 0.005, "steps": 20},
    "bodies": {
        "box": {
            "type": "soft",
            "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [2, 2, 2]},
            "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 200, "viscosity": 2},
            "position": [0, 0, 0.055],
            "velocity": [0.3, 0, -0.5],
        }
    },
    "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
    "markers": {"top": {"body": "box", "point": [0, 0, 0.05]}},
    "expect": {"simulate": {"steps": {"value": 20}, "contact.touching": {"min": 1}}},
}
INVERSE = {
    "objective": [{"type": "point", "marker": "top", "target": [0.03, 0, 0.1], "time": "end"}],
    "parameters": [{"path": "bodies.box.velocity", "components": [0]}],
    "optimizer": {"max_evaluations": 4},
}


#: Of pictures, which take seconds where the processor draws them.
SMALL = ("--size", "160x120")


def scene(*edits, **sections):
    """The scene with whole sections replaced and (path, value) edits."""
    raw = {**copy.deepcopy(SCENE), **copy.deepcopy(sections)}
    for path, value in edits:
        *parents, last = path.split(".")
        node = raw
        for key in parents:
            node = node[key]
        node[last] = value
    return raw


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work in an empty folder; leave logging as it was."""
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield tmp_path
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def add(capsys):
    """Run a command in this process: code, stdout, stderr."""

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return end.value.code, out, err.replace(f"{COMPILING}\n", "")  # by whoever comes first

    return run


def write(raw, name="scene.json"):
    with open(name, "w", encoding="utf-8") as file:
        json.dump(raw, file)
    return name


def parsed(text):
    """Parse JSON as a strict parser would."""

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run folder of `simulate` and one of `optimize`."""
    folder = tmp_path_factory.mktemp("runs")
    for command, raw in (("simulate", scene()), ("optimize", scene(**INVERSE, expect={}))):
        path = folder / f"{command}.json"
        path.write_text(json.dumps(raw), encoding="utf-8")
        with pytest.raises(SystemExit) as end:
            main([command, str(path), "-o", str(folder / command), "-q"])
        assert end.value.code == 0
    return folder


# --- what works ------------------------------------------------------------------------------------------------------


def test_simulate(add, here):
    code, out, err = add("simulate", write(scene()))
    assert (code, err) == (0, "")
    assert "20 steps to t = 0.1 s" in out and "ok   contact.touching" in out and "FAIL" not in out
    folder = here / "runs" / "scene"
    assert sorted(p.name for p in folder.iterdir()) == ["result.json", "scene.json", "trajectory.h5", "versions.json"]
    result = json.loads((folder / "result.json").read_text())
    assert (result["command"], result["status"], result["steps"]) == ("simulate", "done", 20)
    assert result["contact"]["touching"] > 0
    with h5py.File(folder / "trajectory.h5") as file:
        assert file["t"].shape == (21,)
    again = json.loads((folder / "scene.json").read_text())
    assert again["time"] == SCENE["time"] | {"substeps": "auto"}


def test_simulate_prints_json_only(add):
    code, out, err = add("simulate", write(scene()), "--json", "-o", "here")
    assert (code, err) == (0, "")
    result = parsed(out)
    assert result["status"] == "done" and result["checks"]["steps"]["passed"] is True


def test_run_folder_repeats_the_run(add, here):
    """The scene in a run folder is complete: run again, it gives the same bits."""
    assert add("simulate", write(scene()), "-o", "one", "-q")[0] == 0
    (here / "scene.json").unlink()
    assert add("simulate", "one/scene.json", "-o", "two", "-q")[0] == 0
    with h5py.File("one/trajectory.h5") as one, h5py.File("two/trajectory.h5") as two:
        assert (one["q"][:] == two["q"][:]).all()


def test_failed_expectation_is_said(add):
    code, out, _ = add("simulate", write(scene(("expect.simulate.steps", {"value": 21}))))
    assert code == 0
    assert "FAIL steps = 20.0 (expected 21.0 +- 0)" in out


@pytest.mark.parametrize("path", ["no.such", "bodies", "status"])
def test_expectation_of_nothing_is_refused_on_reading(add, here, path):
    code, _, err = add("simulate", write(scene(expect={"simulate": {path: {"max": 0}}})), "-o", "run")
    assert code == 2
    assert err.startswith("error: scene.json") and f"expect.simulate.{path}" in err
    assert not (here / "run").exists()


def test_expectation_of_nothing_costs_no_run(add, here):
    """A result that comes out without a number that it might have is an input error, but what was computed is kept."""
    code, _, err = add("simulate", write(scene(expect={"simulate": {"couplings.taut": {"max": 0}}})), "-o", "run")
    assert code == 2
    assert err.startswith("error: scene.json") and "expect.simulate.couplings.taut" in err
    assert json.loads((here / "run" / "result.json").read_text())["status"] == "done"


def test_quiet_is_silent(add):
    assert add("simulate", write(scene()), "-q") == (0, "", "")
    assert add("check", "scene.json", "-q") == (0, "", "")
    assert add("info", "runs/scene", "-q") == (0, "", "")
    assert add("version", "-q") == (0, "", "")


def test_force_replaces_a_run(add, here):
    assert add("simulate", write(scene()), "-q", "-o", "run")[0] == 0
    (here / "run" / "evaluations.jsonl").write_text("")
    code, _, err = add("simulate", "scene.json", "-o", "run")
    assert code == 2 and err.count("error:") == 1 and "run" in err
    assert add("simulate", "scene.json", "-q", "-o", "run", "--force")[0] == 0
    assert not (here / "run" / "evaluations.jsonl").exists()


def test_a_run_of_another_command_is_named(add, here):
    write(scene(**INVERSE, expect={}))
    assert add("simulate", "scene.json", "-q")[0] == 0
    code, _, err = add("optimize", "scene.json")
    assert code == 2 and "a run of `add simulate`" in err and "-o" in err and "--force" in err


def test_force_where_it_cannot_be(add, here):
    assert add("simulate", write(scene()), "-q", "-o", "run")[0] == 0
    (here / "run" / "report.md" / "in the way").mkdir(parents=True)
    code, out, err = add("simulate", "scene.json", "-o", "run", "--force")
    assert (code, out) == (2, "") and err.startswith("error: run: report.md: ") and err.count("\n") == 1


@pytest.mark.parametrize("command", ["simulate", "optimize"])
def test_force_makes_the_mesh_anew(add, here, command):
    """Another mesh under the same name is another simulation."""
    sizes = []
    for edge, more in ((0.05, []), (0.025, ["--force"])):
        raw = scene(("bodies.box.mesh", {"shape": "sphere", "radius": 0.05, "edge": edge}), **INVERSE, expect={})
        assert add(command, write(raw), "-o", "run", "-q", *more)[0] == 0
        sizes.append(json.loads((here / "run" / "result.json").read_text())["bodies"]["box"]["elements"])
    assert sizes[1] > 2 * sizes[0]
    assert add("simulate", "run/scene.json", "-o", "run", "--force", "-q")[0] == 0, "it reads its own mesh"
    assert json.loads((here / "run" / "result.json").read_text())["bodies"]["box"]["elements"] == sizes[1]


def test_a_scene_without_a_name_is_called_by_its_file(add, here):
    raw = scene(**INVERSE, expect={})
    del raw["name"]
    assert add("optimize", write(raw, "throw.json"), "-q")[0] == 0
    assert (here / "runs" / "throw" / "report.md").read_text().startswith("# throw\n")
    assert add("info", "runs/throw")[1].startswith("runs/throw: optimize, done: throw\n")
    assert add("simulate", "runs/throw/scene.json", "-o", "again", "-q")[0] == 0
    assert add("info", "again")[1].startswith("again: simulate, done: throw\n")


def test_report_says_how_the_phases_ended(add, here):
    inverse = INVERSE | {"optimizer": {"max_evaluations": 1}}
    assert add("optimize", write(scene(**inverse, expect={})), "-o", "run", "-q")[0] == 0
    (phase,) = json.loads((here / "run" / "result.json").read_text())["phases"]
    report = (here / "run" / "report.md").read_text()
    assert "limit of evaluations" in phase["status"] and not phase["success"]
    assert f"| all | {phase['status']} | {phase['evaluations']} |" in report
    assert "did not converge" in report and "| status | done, not converged |" in report
    assert phase["status"] in add("info", "run")[1]
    inverse = INVERSE | {"optimizer": {"max_evaluations": 50}}
    assert add("optimize", write(scene(**inverse, expect={})), "-o", "run", "--force", "-q")[0] == 0
    report = (here / "run" / "report.md").read_text()
    assert "is below its tolerance" in report and "not converge" not in report


def test_gradient_check_says_where_it_is_without_a_terminal(add, monkeypatch):
    monkeypatch.setattr("add.commands.console.LINE_EVERY", 0.0)
    write(scene(("bodies.box.mesh.divisions", [1, 1, 1])))
    code, _, err = add("check", "scene.json", "--gradient", "--steps", "1")
    assert code == 0 and re.search(r"^gradient: 2 of \d+ numbers in \d+ s$", err, re.MULTILINE)
    for silent in ("--json", "-q"):
        assert add("check", "scene.json", "--gradient", "--steps", "1", silent)[2] == ""


def test_time_of_a_step_leaves_kernels_out(capsys):
    result = {"steps": 10, "end_time": 1.0, "seconds": 21.0, "newton": {"iterations_per_step": 2.0}}
    say_simulation(Console(False, False), result | {"kernel_seconds": 20.0})
    assert "in 21.00 s, 20.00 s of it for compiling or loading kernels (100.00 ms a step" in capsys.readouterr().out
    say_simulation(Console(False, False), result | {"kernel_seconds": 0.1})
    assert "in 21.00 s (2090.00 ms a step" in capsys.readouterr().out


def test_output_every_keeps_the_last(add, here):
    assert add("simulate", write(scene(output={"every": 7})), "-q", "-o", "run")[0] == 0
    with h5py.File("run/trajectory.h5") as file:
        assert file["t"][:] == pytest.approx([0, 0.035, 0.07, 0.1])


def test_optimize(add, here):
    code, out, err = add("optimize", write(scene(**INVERSE, expect={})), "-o", "run", "--no-log")
    assert (code, err) == (0, "")
    assert "objective" in out and "bodies.box.velocity" in out and "m/s" in out
    names = {p.name for p in (here / "run").iterdir()}
    wanted = {"scene.json", "versions.json", "trajectory.h5", "evaluations.jsonl", "result.json", "report.md"}
    assert wanted <= names
    result = json.loads((here / "run" / "result.json").read_text())
    assert result["objective"]["end"] < result["objective"]["start"]
    lines = (here / "run" / "evaluations.jsonl").read_text().splitlines()
    assert len(lines) == result["evaluations"]


def test_lines_of_a_log_without_a_terminal(add, here):
    """Number, phase, objective, parameters and time of every evaluation; in a table on request; not with --quiet."""
    path = write(scene(**INVERSE, expect={}))
    code, out, err = add("optimize", path, "-o", "run", "--csv")
    assert code == 0 and "evaluation" not in out.splitlines()[0]
    lines = [line for line in err.splitlines() if line != COMPILING]
    logged = [json.loads(line) for line in (here / "run" / "evaluations.jsonl").read_text().splitlines()]
    assert len(lines) == len(logged) >= 2
    for k, (line, known) in enumerate(zip(lines, logged, strict=True)):
        value, velocity = float.fromhex(known["value"]), known["parameters"]["bodies.box.velocity"]
        start = f"evaluation {k + 1} of at most 4, phase all: objective {value:.6g}"
        assert line.startswith(start) and f"bodies.box.velocity = {velocity:.6g} m/s; " in line
    assert " left" in lines[0]
    with (here / "run" / "evaluations.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["objective"]) for row in rows] == [float.fromhex(item["value"]) for item in logged]
    assert [float(row["bodies.box.velocity [m/s]"]) for row in rows] == [
        item["parameters"]["bodies.box.velocity"] for item in logged
    ]
    assert add("optimize", path, "-o", "run", "--force", "-q")[2] == ""
    assert not (here / "run" / "evaluations.csv").exists()


def test_optimize_prints_json_only(add):
    path, results = write(scene(**INVERSE, expect={})), []
    for schedule in ("--checkpoints", "--states"):
        code, out, err = add("optimize", path, "--json", "--force", schedule)
        assert (code, err) == (0, "")
        results.append(parsed(out))
    assert results[0]["status"] == "done" and results[0]["parameters"] == results[1]["parameters"]
    code, _, err = add("optimize", path, "--force", "--checkpoints", "--states")
    assert code == 2 and "say one of them" in err


def test_check(add, here):
    code, out, err = add("check", write(scene()))
    assert (code, err) == (0, "")
    assert "valid; 1 body, 81 coordinates, 20 steps" in out
    code, out, _ = add("check", "scene.json", "--json")
    numbers = parsed(out).pop("contact")
    assert code == 0 and parsed(out) == {"valid": True, "coordinates": 81, "warnings": [], "contact": numbers}
    assert "contact.stiffness" in numbers[0] and "resolves it" in numbers[1]
    assert [p.name for p in here.iterdir()] == ["scene.json"]


def test_check_says_what_pins_hold(add):
    pins = [{"where": {"box": {"max": [None, None, -0.04]}}}, {"where": {"nodes": [26]}}]
    code, out, _ = add("check", write(scene(("bodies.box.pins", pins))))
    assert code == 0
    assert "bodies.box.pins.0: holds 9 of 27 nodes" in out and "bodies.box.pins.1: holds 1 of 27 nodes" in out


def test_check_gradient(add):
    small = scene(("bodies.box.mesh.divisions", [1, 1, 1]), ("bodies.box.position", [0, 0, 0.0505]))
    code, out, err = add("check", write(small), "--gradient", "--steps", "3", "--json")
    assert (code, err) == (0, "")
    (found,) = parsed(out)
    assert found["passed"] and found["steps"] == 3 and found["decisions"]["touching"] > 0
    assert {p["name"] for p in found["parameters"]} >= {"gravity[2]", "contact.friction", "bodies.box.material.young"}
    code, out, err = add("check", "scene.json", "--gradient", "--steps", "1")
    assert (code, err) == (0, "")
    assert "passed" in out and "bodies.box.velocity[0]" in out


def test_check_gradient_that_is_wrong_ends_with_3(add, monkeypatch):
    monkeypatch.setattr("add.commands.check_gradient.TOLERANCE", 0.0)
    code, _, err = add("check", write(scene(("bodies.box.mesh.divisions", [1, 1, 1]))), "--gradient", "--steps", "1")
    assert code == 3 and err == "error: scene.json: the gradient is not confirmed, see above\n"


def test_divided_steps_are_said_by_every_command(add, here):
    """An impact within a step, in a run and in the last run of an optimisation."""
    box = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "mass": 0.4}
    raw = scene(**INVERSE, expect={}, time={"dt": 0.01, "duration": 0.2})
    raw["bodies"]["box"] = box | {"position": [0, 0, 0.1], "velocity": [0.5, 0, -6.0]}
    raw["optimizer"] = {"max_evaluations": 1}
    for command in ("simulate", "optimize"):
        code, out, err = add(command, write(raw), "-o", command)
        assert code == 0, err
        assert re.search(r"steps divided \(docs/contact.md\): [1-9]\d* of 20", out)


def test_view_screenshot(add, here, finished):
    code, _, err = add("view", finished / "simulate", "--screenshot", "a.png", *SMALL, "--colour", "stress")
    assert (code, err) == (0, "")
    assert (here / "a.png").read_bytes().startswith(b"\x89PNG")
    code, out, err = add("view", write(scene()), "--screenshot", "b.png", *SMALL, "--json")
    assert (code, err) == (0, "")
    assert parsed(out) == ["b.png"]
    assert (here / "b.png").is_file()


def test_drawing_is_not_silent(add, here, finished, monkeypatch):
    """Films, pages and diagrams say now and then how far they are, as other work of minutes does."""
    monkeypatch.setattr(console, "LINE_EVERY", 0.0)
    run = finished / "simulate"
    code, _, film = add("view", run, "--movie", "a.gif", *SMALL, "--fps", "10", "--speed", "1")
    assert code == 0 and re.search(r"a\.gif: 2 of \d+ frames in \d+ s", film)
    assert (here / "a.gif").read_bytes().startswith(b"GIF8")
    _, _, page = add("view", run, "--html", "a.html")
    assert re.search(r"a\.html: 2 of \d+ frames in \d+ s", page)
    _, _, diagrams = add("plot", run)
    assert "drawing: 1 of 1 run in " in diagrams
    _, _, quiet = add("plot", run, "-q")
    assert quiet == ""


def test_plot(add, finished):
    code, out, err = add("plot", finished / "optimize", "--format", "svg")
    assert (code, err) == (0, "")
    names = {line.rsplit("/", 1)[-1] for line in out.split()}
    assert names >= {"convergence.svg", "energies.svg", "newton.svg"}
    code, out, _ = add("plot", finished / "simulate", "--json")
    assert code == 0 and all(path.endswith(".png") for path in parsed(out))


def test_info(add, finished):
    code, out, err = add("info", finished / "simulate")
    assert (code, err) == (0, "")
    assert "simulate, done: box" in out and "steps: 20" in out and "numpy" in out
    code, out, _ = add("info", finished / "optimize", "--json")
    assert code == 0 and parsed(out)["result"]["command"] == "optimize"
    scene = SCENES / "three_frictions.json"
    code, out, _ = add("info", scene)
    assert code == 0 and "body spinner: rigid" in out and "800 steps of 0.001 s by bdf2" in out
    code, _, err = add("export", finished / "simulate", "--vtk", "-o", finished / "simulate")
    assert code == 2 and "this is a folder" in err


def test_schema_and_version(add):
    code, out, _ = add("schema")
    assert code == 0 and parsed(out)["title"]
    code, out, _ = add("version")
    assert code == 0 and out.strip() == parsed(add("version", "--json")[1])["add"]
    assert add("--version")[:2] == (0, out)


def test_help_of_every_command(add):
    code, out, _ = add("-h")
    assert code == 0
    assert "..." not in out.partition("Commands:")[2]
    for command in ("simulate", "optimize", "sweep", "check", "view", "plot", "info", "schema", "version"):
        assert command in out
        code, text, _ = add(command, "-h")
        assert code == 0 and "--json" in text
        if "runs/NAME" in text:
            assert "NAME.json" in text


def test_every_option_is_explained():
    for name, command in cli.commands.items():
        for option in command.params:
            assert isinstance(option, click.Argument) or getattr(option, "help", None), f"{name}: {option.name}"


# --- bad input: 2 ----------------------------------------------------------------------------------------------------

BAD_COMMANDS = [
    ([], ""),
    (["simulat", "scene.json"], "simulat"),
    (["simulate"], "SCENE"),
    (["simulate", "scene.json", "--nonsense"], "--nonsense"),
    (["check", "scene.json", "--steps", "0"], "--steps"),
    (["check", "scene.json", "--gradient", "--steps", "few"], "few"),
    (["view", "scene.json", "--colour", "pink"], "pink"),
    (["simulate", "none.json"], "none.json"),
    (["optimize", "none.json"], "none.json"),
    (["optimize", "scene.json"], "nothing to minimise"),
    (["optimize", "scene.json", "--resume"], "scene.json"),
    (["check", "none.json"], "none.json"),
    (["view", "none"], "none"),
    (["view", "scene.json", "--screenshot", "a.txt"], ".png"),
    (["view", "scene.json", "--movie", "no/such/folder/a.gif"], "no/such/folder"),
    (["view", "empty"], "trajectory.h5"),
    (["plot", "none"], "none"),
    (["plot", "empty"], "not the folder of a run"),
    (["info", "none"], "none"),
    (["simulate", "scene.json", "-o", "scene.json"], "a file is in the way"),
    (["simulate", "scene.json", "-o", "scene.json/run"], "scene.json/run"),
    (["simulate", "scene.json", "-o", "other"], "other things than a run"),
    (["simulate", "scene.json", "-o", "other", "--force"], "other things than a run"),
]


@pytest.mark.parametrize(("arguments", "word"), BAD_COMMANDS, ids=[" ".join(a) or "nothing" for a, _ in BAD_COMMANDS])
def test_bad_command(add, here, arguments, word):
    write(scene())
    (here / "empty").mkdir()
    (here / "other").mkdir()
    (here / "other" / "thesis.txt").write_text("mine")
    before = sorted(here.rglob("*"))
    code, out, err = add(*arguments)
    assert (code, out) == (2, "")
    if arguments:
        assert err.lower().count("error:") == 1
    assert word in err
    assert sorted(here.rglob("*")) == before


BOX = "bodies.box"
BAD_SCENES = {
    "unknown key": ([("tme", {})], "tme"),
    "impossible value": ([("time.dt", -1)], "time.dt"),
    "missing mesh": ([(f"{BOX}.mesh", {"file": "none.msh"})], f"{BOX}.mesh.file"),
    "malformed mesh": ([(f"{BOX}.mesh", {"file": "bad.msh"})], "bad.msh"),
    "mesh of points": ([(f"{BOX}.mesh", {"file": "cloud.vtk"})], "cloud.vtk"),
    "empty selection": ([(f"{BOX}.pins", [{"where": {"box": {"min": [9, 9, 9]}}}])], f"{BOX}.pins.0.where"),
    "marker outside": ([("markers.top.point", [0, 0, 1])], "markers.top.point"),
}
CLOUD = """# vtk DataFile Version 3.0
cloud
ASCII
DATASET UNSTRUCTURED_GRID
POINTS 2 double
0 0 0 1 1 1
CELLS 2 4
1 0
1 1
CELL_TYPES 2
1
1
"""


@pytest.mark.parametrize("command", ["simulate", "check", "optimize"])
@pytest.mark.parametrize("case", BAD_SCENES)
def test_bad_scene(add, here, command, case):
    edits, word = BAD_SCENES[case]
    (here / "bad.msh").write_text("$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\nnonsense")
    (here / "cloud.vtk").write_text(CLOUD)
    inverse = INVERSE if command == "optimize" else {}
    code, out, err = add(command, write(scene(*edits, **inverse)))
    assert (code, out) == (2, "")
    assert err.count("error:") == 1 and err.startswith("error: ") and word in err, err
    assert not (here / "runs").exists()


RECORDINGS = {
    "empty": ("", "empty"),
    "no header": ("0,1,2,3\n", "line 1"),
    "two columns": ("time_s,P_x_m,P_y_m\n0,1,2\n", "P"),
    "short line": ("time_s,P_x_m,P_y_m,P_z_m\n0,1,2\n", "line 2"),
    "word": ("time_s,P_x_m,P_y_m,P_z_m\n0,1,2,high\n", "high"),
    "time runs back": ("time_s,P_x_m,P_y_m,P_z_m\n0,1,2,3\n-1,1,2,3\n", "line 3"),
    "other marker": ("time_s,Q_x_m,Q_y_m,Q_z_m\n0,1,2,3\n", "'P'"),
    "binary": (b"\xff\xfe\x00\x01", "rec.csv"),
    "nothing while it runs": ("time_s,P_x_m,P_y_m,P_z_m\n50,1,2,3\n51,1,2,3\n", "rec.csv"),
}


@pytest.mark.parametrize("case", RECORDINGS)
@pytest.mark.parametrize("command", ["optimize", "check"])
def test_bad_recording(add, here, command, case):
    content, word = RECORDINGS[case]
    (here / "rec.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    inverse = {**INVERSE, "objective": [{"type": "markers"}]}
    raw = scene(**inverse, recording={"file": "rec.csv", "markers": {"P": "top"}})
    code, out, err = add(command, write(raw))
    assert (code, out) == (2, "")
    assert err.count("error:") == 1 and err.startswith("error: ") and word in err, err
    assert not (here / "runs").exists()


@pytest.mark.parametrize(
    ("edits", "word"),
    [
        ({"phases": [{"name": "late", "window": [0.0412, 0.0413]}]}, "optimizer.phases"),
        ({"phases": [{"name": "other", "parameters": ["gravity"]}]}, "optimizer.phases.0.parameters"),
    ],
)
def test_bad_phase_leaves_nothing(add, here, edits, word):
    raw = scene(**{**INVERSE, "optimizer": edits}, expect={})
    code, out, err = add("optimize", write(raw))
    assert (code, out) == (2, "")
    assert err.count("error:") == 1 and word in err
    assert not (here / "runs").exists()


def test_bad_scene_does_not_cost_an_old_run(add, here):
    """--force throws a run away only when there is something to put in its place."""
    assert add("simulate", write(scene()), "-o", "run", "-q")[0] == 0
    raw = scene(**{**INVERSE, "optimizer": {"phases": [{"name": "late", "window": [0.0412, 0.0413]}]}})
    assert add("optimize", write(raw), "-o", "run", "--force")[0] == 2
    assert add("simulate", write(scene(("time.dt", 0))), "-o", "run", "--force")[0] == 2
    assert (here / "run" / "trajectory.h5").is_file() and (here / "run" / "result.json").is_file()


def test_damaged_run(add, here):
    assert add("simulate", write(scene()), "-o", "run", "-q")[0] == 0
    data = (here / "run" / "trajectory.h5").read_bytes()
    (here / "run" / "trajectory.h5").write_bytes(data[: len(data) // 2])
    (here / "run" / "result.json").write_text('{"command": ')
    for arguments in (["plot", "run"], ["view", "run", "--screenshot", "a.png"], ["info", "run"]):
        code, _, err = add(*arguments)
        assert code == 2 and err.count("error:") == 1 and "run/" in err
    assert not (here / "a.png").exists()


def test_info_of_a_result_from_elsewhere(add, here):
    """Another use of an experiment, or a fit without its numbers."""
    (here / "odd").mkdir()
    fit = {"rms": 0.1, "samples": 3, "unit": "m"}
    for run, place in (({"use": "train", "fit": fit}, "experiments.a.use"), ({"fit": {"rms": 1.0}}, "a.fit.samples")):
        (here / "odd" / "result.json").write_text(json.dumps({"status": "done", "experiments": {"a": run, "b": {}}}))
        code, _, err = add("info", "odd")
        assert code == 2 and err.count("error:") == 1 and "odd/result.json" in err and place in err


# --- the solver fails: 3 ---------------------------------------------------------------------------------------------

WHOLE = (("time.substeps", "off"), ("time.integrator", "bdf1"))
FAILING = {
    "one iteration": [("time.newton", {"max_iterations": 1}), ("contact", {"stiffness": 1e9}), *WHOLE],
    "very stiff contact": [("time.newton", {"max_iterations": 1}), ("contact", {"stiffness": 1e12}), *WHOLE],
}


@pytest.mark.parametrize("case", FAILING)
def test_solver_failure_keeps_the_steps_before(add, here, case):
    code, out, err = add("simulate", write(scene(*FAILING[case])), "-o", "run")
    assert (code, out) == (3, "")
    assert err.count("error:") == 1
    remedies = ("try time.newton.max_iterations = 50", "try time.dt = 0.00125 s")
    for word in ("step ", "(t=", "|r|=", " N > ", "iterations", "worst dof box/node ", *remedies):
        assert word in err
    step = int(err.split("step ")[1].split()[0])
    result = json.loads((here / "run" / "result.json").read_text())
    assert (result["status"], result["steps"]) == ("failed", step - 1)
    assert result["message"] in err and step > 1
    with h5py.File("run/trajectory.h5") as file:
        assert file["t"].shape == (step,) and file["q"].shape[0] == step
    for arguments in (["info", "run"], ["plot", "run"]):
        assert add(*arguments)[0] == 0
    assert add("info", "run")[1].startswith("run: simulate, failed")


def test_equilibrium_that_is_not_there(add, here):
    """A body that nothing holds has no equilibrium."""
    code, _, err = add("simulate", write(scene(("time.initial", "equilibrium"), ("obstacles", {}))), "-o", "run")
    assert code == 3
    assert err.count("error:") == 1 and "equilibrium" in err and "pin them" in err
    result = json.loads((here / "run" / "result.json").read_text())
    assert result["status"] == "failed" and result["message"] in err


def test_optimisation_that_cannot_start(add, here):
    raw = scene(("time.newton", {"max_iterations": 1}), ("contact", {"stiffness": 1e9}), *WHOLE, **INVERSE, expect={})
    code, out, err = add("optimize", write(raw), "-o", "run")
    assert (code, out) == (3, "")
    assert err.count("error:") == 1 and "worst dof" in err
    result = json.loads((here / "run" / "result.json").read_text())
    assert (result["command"], result["status"]) == ("optimize", "failed")
    assert add("info", "run")[0] == 0


# --- a full disk: 2 --------------------------------------------------------------------------------------------------


def fill(patch, file):
    """Let the place where a file is written lead to the device that is always full."""
    real_open, real_regular = os.open, runfolder.open_regular

    def full(path, flags, *rest, **options):
        number = real_open(path, flags, *rest, **options)
        if str(path).endswith(file) and flags & os.O_EXCL:
            os.unlink(path)
            os.symlink("/dev/full", path)
        return number

    def appended(path, *rest, **options):
        return os.open("/dev/full", os.O_RDWR) if path.name == file and rest else real_regular(path, *rest, **options)

    patch.setattr(os, "open", full)
    patch.setattr(runfolder, "open_regular", appended)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
@pytest.mark.parametrize(
    ("command", "file"),
    [
        long_case("simulate", "scene.json"),
        ("simulate", "trajectory.h5"),
        ("optimize", "evaluations.jsonl"),
        long_case("optimize", "trajectory.h5"),
        long_case("sweep", "sweep.h5"),
    ],
)
def test_full_disk(add, here, monkeypatch, command, file):
    """One error, nothing that is half written, and what was computed is kept as far as there is room."""
    write(scene(**INVERSE, expect={}))
    more = ["--parameter", "bodies.box.velocity.0=0:1:2", "--jobs", "1"] if command == "sweep" else []
    with monkeypatch.context() as patch:
        fill(patch, file)
        code, _, err = add(command, "scene.json", "-o", "run", *more)
    errors = [line for line in err.splitlines() if not line.startswith("evaluation ")]
    assert (code, errors) == (2, [f"error: run/{file}: no space left on device"])
    left = {path.name for path in (here / "run").iterdir()}
    assert not [name for name in left if name.startswith(".")]
    if file == "scene.json":
        assert left == set()
        return
    if file == "evaluations.jsonl":
        (here / "run" / file).unlink(missing_ok=True)
    code, out, err = add("info", "run")
    assert (code, err) == (0, "")
    if file != "sweep.h5":
        assert f"{command}, failed: box\n  run/{file}: no space left on device\n  kept: " in out
    else:
        assert "kept: 2 of 2 samples" in out


# --- as a process ----------------------------------------------------------------------------------------------------


def test_as_a_process(here):
    """Not a terminal: no progress bar, nothing on standard error, JSON alone on standard output."""
    write(scene())
    done = subprocess.run(
        [sys.executable, "-m", "add", "simulate", "scene.json", "--json"], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert parsed(done.stdout)["steps"] == 20
    process = Forked(here, "simulate", "scene.json")
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, "")
    assert err.startswith("error: ") and "runs/scene" in err and err.count("\n") == 1


def test_bar_on_a_terminal_only(add, monkeypatch):
    """A bar with rate and remaining time on a terminal, none with -q or --json."""
    write(scene())
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True, raising=False)
    _, _, err = add("simulate", "scene.json")
    assert "simulate" in err and "step/s" in err and "20/20" in err
    assert add("simulate", "scene.json", "--force", "-q")[2] == ""
    assert add("simulate", "scene.json", "--force", "--json")[2] == ""
