"""Runs that are killed or interrupted: what was finished is kept, and an optimisation goes on bit by bit."""

import copy
import json
import os
import signal
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.processes import Forked, wait_until
from support.tiers import long_case

from add.commands.cli import main
from add.mocap import Recording, write_csv
from add.scene import apply_overrides, load_scene, scene_from_dict
from add.scene.read.paths import within

pytestmark = pytest.mark.usefixtures("undrawn")

SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.005, "steps": 30},
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
    "contact": {"friction": 0.2, "friction_law": "tanh"},
    "markers": {"top": {"body": "box", "point": [0, 0, 0.05]}, "side": {"body": "box", "point": [0.05, 0, 0]}},
}
TRUTH = {"bodies.box.material.young": 1.2e4, "bodies.box.velocity": [0.4, 0.0, -0.6]}
INVERSE = {
    "recording": {"file": "recording.csv", "markers": {"A": "top", "B": "side"}},
    "objective": [{"type": "markers"}],
    "parameters": [
        {"path": "bodies.box.velocity", "components": [0, 2]},
        {"path": "bodies.box.material.young", "transform": "log", "bounds": [1e3, 1e6]},
    ],
    "optimizer": {
        "max_evaluations": 12,
        "phases": [
            {"name": "throw", "parameters": ["bodies.box.velocity"], "end_time": 0.05, "max_evaluations": 6},
            {"name": "all"},
        ],
    },
}
#: The kill comes in the second phase.
KILL_AFTER = 9


def synthetic(folder: Path, name: str = "recording.csv", shift: float = 0.0) -> None:
    """Record a run of other parameters on a clock of its own."""
    built = apply_overrides(scene_from_dict(SCENE), TRUTH).build()
    trajectory = built.run()
    places = np.stack([built.markers.points(trajectory.kinematics(k), built.theta)[0] for k in range(31)])
    times = np.arange(0.0, 0.15, 1 / 120)
    frames = np.array([[np.interp(times, trajectory.t, places[:, j, i]) for i in range(3)] for j in range(2)])
    frames = np.moveaxis(frames, -1, 0) + shift + 1e-4 * np.random.default_rng(3).normal(size=(times.size, 2, 3))
    write_csv(folder / name, Recording(("A", "B"), times, frames, np.ones((times.size, 2), dtype=bool), name))


def write(folder: Path, **sections) -> Path:
    path = folder / "scene.json"
    path.write_text(json.dumps({**SCENE, **copy.deepcopy(INVERSE), **sections}), encoding="utf-8")
    return path


def run(*arguments) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    return end.value.code


def stop_after(run_folder: Path, evaluations: int, how: signal.Signals, *arguments) -> tuple[int, str, str]:
    """Run a command and send it a signal once so many evaluations are logged."""
    log = run_folder / "evaluations.jsonl"
    process = Forked(".", *arguments)
    wait_until(lambda: log.is_file() and log.read_bytes().count(b"\n") >= evaluations, process)
    process.send_signal(how)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def log_of(run_folder: Path) -> list[dict]:
    """The evaluations without what a clock measured."""
    lines = (run_folder / "evaluations.jsonl").read_text().splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]


def result_of(run_folder: Path) -> dict:
    return json.loads((run_folder / "result.json").read_text())


def assert_same(one: Path, two: Path) -> None:
    """Two finished runs agree bit by bit."""
    assert log_of(one) == log_of(two)
    a, b = result_of(one), result_of(two)
    for key in ("status", "parameters", "objective", "phases", "evaluations", "fit"):
        assert a[key] == b[key], key
    with h5py.File(one / "trajectory.h5") as x, h5py.File(two / "trajectory.h5") as y:
        assert np.array_equal(x["q"][:], y["q"][:])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the scene, its recording and the run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("resume")
    synthetic(folder)
    assert run("optimize", write(folder), "-o", folder / "whole", "-q") == 0
    return folder


@pytest.fixture(scope="module")
def killed(folder):
    """A run that was killed in its second phase."""
    arguments = ("optimize", folder / "scene.json", "-o", folder / "killed")
    code, _, _ = stop_after(folder / "killed", KILL_AFTER, signal.SIGKILL, *arguments)
    assert code == -signal.SIGKILL
    return folder / "killed"


def copied(run_folder: Path, to: Path) -> Path:
    to.mkdir()
    for path in run_folder.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    return to


def test_the_fit_is_a_fit(folder):
    result = result_of(folder / "whole")
    assert result["objective"]["end"] < 0.01 * result["objective"]["start"]
    assert result["parameters"]["bodies.box.velocity[0]"]["value"] == pytest.approx(0.4, abs=0.01)
    assert [phase["name"] for phase in result["phases"]] == ["throw", "all"]
    assert result["evaluations"] > KILL_AFTER + 2


def test_killed_and_resumed(folder, killed, tmp_path):
    assert not (killed / "result.json").exists()
    made = len(log_of(killed))
    assert KILL_AFTER <= made < result_of(folder / "whole")["evaluations"]
    resumed = copied(killed, tmp_path / "run")
    assert run("optimize", folder / "scene.json", "-o", resumed, "--resume", "-q") == 0
    assert_same(resumed, folder / "whole")
    assert result_of(resumed)["replayed_evaluations"] == made
    assert (resumed / "report.md").is_file()


@pytest.mark.parametrize("kept", [3, 1])
def test_truncated_last_line(folder, killed, tmp_path, kept):
    """The kill came while a line was written; what is cut off is made again."""
    cut = copied(killed, tmp_path / "run")
    lines = (cut / "evaluations.jsonl").read_bytes().splitlines(keepends=True)
    (cut / "evaluations.jsonl").write_bytes(b"".join(lines[:kept]) + lines[kept][: len(lines[kept]) // 2])
    assert run("optimize", folder / "scene.json", "-o", cut, "--resume", "-q") == 0
    assert_same(cut, folder / "whole")
    assert result_of(cut)["replayed_evaluations"] == kept


def test_resume_of_a_finished_run_changes_nothing(folder, tmp_path):
    again = copied(folder / "whole", tmp_path / "run")
    assert run("optimize", folder / "scene.json", "-o", again, "--resume", "-q") == 0
    assert_same(again, folder / "whole")


#: What stops a command: signal, exit code, and the word for it.
INTERRUPTED, TERMINATED = (signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")


@pytest.mark.parametrize(("how", "expected", "word"), [INTERRUPTED, long_case(*TERMINATED)])
def test_interrupted_keeps_its_log_and_goes_on(folder, tmp_path, capsys, how, expected, word):
    stopped = tmp_path / "run"
    code, out, err = stop_after(stopped, 4, how, "optimize", folder / "scene.json", "-o", stopped)
    assert (code, out) == (expected, "")
    made = len(log_of(stopped))
    going_on = f"`add optimize {folder / 'scene.json'} -o {stopped} --resume` goes on"
    last = err.splitlines()[-1]
    assert last == f"{word}; kept in {stopped}: {made} evaluations; {going_on}"
    assert made >= 4
    assert result_of(stopped)["status"] == "interrupted"
    assert run("info", stopped) == 0
    said = capsys.readouterr().out
    assert f"{stopped}: optimize, interrupted" in said and f"kept: {made} evaluations" in said and "--resume" in said
    assert run("optimize", folder / "scene.json", "-o", stopped, "--resume", "-q") == 0
    assert_same(stopped, folder / "whole")


def test_clock_goes_on(folder, killed, tmp_path):
    """The wall time is that of all parts: of one that was killed, that of its evaluations."""
    resumed = copied(killed, tmp_path / "run")
    lines = [json.loads(line) | {"seconds": 1000.0} for line in (killed / "evaluations.jsonl").read_text().splitlines()]
    (resumed / "evaluations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run("optimize", folder / "scene.json", "-o", resumed, "--resume", "-q") == 0
    total = result_of(resumed)["seconds"]
    assert 1000.0 * len(lines) < total < 1000.0 * (len(lines) + 1)
    assert run("optimize", folder / "scene.json", "-o", resumed, "--resume", "-q") == 0
    assert total < result_of(resumed)["seconds"] < 1000.0 * (len(lines) + 1), "those of a finished part once"


def test_killed_run_is_explained(folder, killed, tmp_path, capsys):
    """No result: what there is, and how to go on; the folder's own scene serves as well."""
    made = len(log_of(killed))
    run_folder = copied(killed, tmp_path / "run")
    assert run("info", run_folder) == 0
    said = capsys.readouterr().out
    going_on = f"add optimize {run_folder / 'scene.json'} -o {run_folder} --resume"
    assert f"{run_folder}: optimize, not finished" in said and "killed" in said
    assert f"kept: {made} evaluations; `{going_on}` goes on" in said
    assert run("info", run_folder, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["result"] is None and found["unfinished"]["command"] == "optimize"
    assert run("view", run_folder) == 2
    error = capsys.readouterr().err
    assert going_on in error and f"add plot {run_folder}" in error and f"add view {run_folder / 'scene.json'}" in error
    assert run(*going_on.split()[1:], "-q") == 0
    assert_same(run_folder, folder / "whole")


def test_resume_of_another_command_is_refused(folder, tmp_path, capsys):
    assert run("simulate", folder / "scene.json", "-o", tmp_path / "run", "-q") == 0
    before = (tmp_path / "run" / "result.json").read_bytes()
    assert run("optimize", folder / "scene.json", "-o", tmp_path / "run", "--resume") == 2
    assert "`add simulate`: there is nothing to resume" in capsys.readouterr().err
    assert (tmp_path / "run" / "result.json").read_bytes() == before


def test_more_evaluations_may_be_asked_for(folder, killed, tmp_path):
    more = copied(killed, tmp_path / "run")
    optimizer = copy.deepcopy(INVERSE["optimizer"])
    optimizer["max_evaluations"] += 2
    recording = {**INVERSE["recording"], "file": str(folder / "recording.csv")}
    path = write(tmp_path, optimizer=optimizer, recording=recording)
    assert run("optimize", path, "-o", more, "--resume", "-q") == 0
    made = len(log_of(killed))
    assert log_of(more)[:made] == log_of(killed)


CHANGES = {
    "start": ({"bodies.box.velocity": [0.2, 0, -0.5]}, "bodies.box.velocity.0"),
    # these leave x as it was: the log would answer for a scene that it was not made with
    "gravity": ({"gravity": [0, 0, -1.62]}, "gravity"),
    "time step": ({"time.dt": 0.004}, "time.dt"),
    "friction": ({"contact.friction": 0.5}, "contact.friction"),
    "window": ({"optimizer.phases.0.end_time": 0.1}, "optimizer.phases.0.end_time"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_scene_is_refused(folder, killed, tmp_path, capsys, change):
    edits, place = CHANGES[change]
    raw = {**copy.deepcopy(SCENE), **copy.deepcopy(INVERSE)}
    for path, value in edits.items():
        *parents, last = path.split(".")
        node = raw
        for key in parents:
            node = node[int(key)] if isinstance(node, list) else node[key]
        node[last] = value
    raw["recording"]["file"] = str(folder / "recording.csv")
    (tmp_path / "scene.json").write_text(json.dumps(raw))
    run_folder = copied(killed, tmp_path / "run")
    (run_folder / ".lock").unlink(missing_ok=True)  # of the run that was killed; it goes with the next holder
    before = {path.name: path.read_bytes() for path in run_folder.iterdir()}
    assert run("optimize", tmp_path / "scene.json", "-o", run_folder, "--resume") == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("error:") == 1 and err.count("\n") == 1
    assert place in err and "another scene" in err
    assert {path.name: path.read_bytes() for path in run_folder.iterdir()} == before


def test_changed_recording_is_refused(tmp_path, capsys):
    """The scene is the same, but not what it reads."""
    synthetic(tmp_path)
    path = write(tmp_path, optimizer={"max_evaluations": 2})
    assert run("optimize", path, "-o", tmp_path / "run", "-q") == 0
    synthetic(tmp_path, shift=0.01)
    capsys.readouterr()
    assert run("optimize", path, "-o", tmp_path / "run", "--resume", "-q") == 2
    err = capsys.readouterr().err
    assert err.count("error:") == 1 and "cannot be resumed" in err and "evaluations.jsonl" in err


@pytest.mark.parametrize(("how", "expected", "word"), [TERMINATED, long_case(*INTERRUPTED)])
def test_interrupted_simulation_keeps_its_steps(folder, tmp_path, how, expected, word):
    raw = {**SCENE, "time": {"dt": 0.0005, "steps": 100_000}}
    (tmp_path / "long.json").write_text(json.dumps(raw))
    stepped = str(tmp_path / "stepped")
    process = Forked(".", "simulate", tmp_path / "long.json", "-o", tmp_path / "run", stepped=stepped)
    wait_until((tmp_path / "stepped").is_file, process)
    process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (expected, "")
    result = result_of(tmp_path / "run")
    steps = f"{result['steps']} step" + "s" * (result["steps"] > 1)
    kept = f"kept in {tmp_path / 'run'}: {steps}, to t = {result['end_time']:g} s"
    assert f"{word}; {kept}; `add view {tmp_path / 'run'}` shows it" in err and err.count("\n") == 1
    assert result["status"] == "interrupted" and result["steps"] >= 1
    with h5py.File(tmp_path / "run" / "trajectory.h5") as file:
        assert file["t"].shape == (result["steps"] + 1,)
        assert np.allclose(np.diff(file["t"][:]), 0.0005)
        assert np.isfinite(file["q"][:]).all()
    assert not [name for name in os.listdir(tmp_path / "run") if name.startswith(".")]
    assert run("plot", tmp_path / "run", "-q") == 0


def test_a_folder_with_meshes_of_its_own_may_be_moved(tmp_path):
    ball = {**SCENE["bodies"]["box"], "mesh": {"shape": "sphere", "radius": 0.05, "edge": 0.05}}
    raw = {**SCENE, "bodies": {"box": ball}, "time": {"dt": 0.005, "steps": 2}}
    (tmp_path / "ball.json").write_text(json.dumps(raw))
    assert run("simulate", tmp_path / "ball.json", "-o", tmp_path / "run", "-q") == 0
    (tmp_path / "run").rename(tmp_path / "moved")
    (tmp_path / "moved" / "result.json").unlink()  # as of a run that was killed
    mesh = load_scene(tmp_path / "moved" / "scene.json").bodies["box"].mesh
    assert Path(mesh.file) == tmp_path / "moved" / "meshes" / "box.msh"
    assert run("simulate", tmp_path / "ball.json", "--resume", "-o", tmp_path / "moved", "-q") == 0


def test_a_folder_counts_its_own_meshes_however_it_is_written(tmp_path):
    """By "..", as a link, and from elsewhere than where the run was begun."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    mesh = {"bodies": {"box": {"mesh": {"file": str(tmp_path / "run" / "meshes" / "box.msh")}}}}
    linked = {"bodies": {"box": {"mesh": {"file": str(tmp_path / "link" / "run" / "meshes" / "box.msh")}}}}
    for raw in (mesh, linked):
        for folder in ("run", "sub/../run", "link/run"):
            found = within(raw, tmp_path / folder)["bodies"]["box"]["mesh"]["file"]
            assert found == "meshes/box.msh"
        assert within(raw, tmp_path / "other") == raw


def test_killed_simulation_is_explained(tmp_path, capsys, monkeypatch):
    """What is left of one that was killed: nothing but the scene, or states written on the way."""
    (tmp_path / "short.json").write_text(json.dumps(SCENE))
    assert run("simulate", tmp_path / "short.json", "-o", tmp_path / "run", "-q") == 0
    (tmp_path / "run" / "result.json").unlink()
    capsys.readouterr()
    assert run("info", tmp_path / "run") == 0
    said = capsys.readouterr().out
    assert f"{tmp_path / 'run'}: simulate, not finished" in said and "states up to t = 0.15 s" in said
    assert "--resume` goes on" in said
    (tmp_path / "run" / "trajectory.h5").unlink()
    assert run("info", tmp_path / "run") == 0
    assert "nothing yet" in capsys.readouterr().out
    assert run("view", tmp_path / "run") == 2
    assert f"`add view {tmp_path / 'run' / 'scene.json'}` shows the scene" in capsys.readouterr().err


def test_stopped_where_nothing_is_kept(tmp_path):
    """A gradient check keeps nothing, and does not say otherwise."""
    raw = SCENE | {"time": {"dt": 0.0005, "steps": 1000}, "check": {"steps": 1000}}
    (tmp_path / "long.json").write_text(json.dumps(raw))
    process = Forked(tmp_path, "check", "long.json", "--gradient")
    assert process.stdout is not None and "valid" in process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143 and "kept" not in out
    assert err.strip() == "terminated"


@pytest.mark.parametrize("command", ["simulate", "optimize"])
def test_a_result_that_says_done_has_its_checks(tmp_path, monkeypatch, command):
    """A process that ends while they are made goes on: until then nothing says that the run is done."""

    def interrupted(*_):
        raise KeyboardInterrupt

    synthetic(tmp_path)
    end = {"expect": {command: {"markers.top.final": {"min": -1.0}}}}
    scene = write(tmp_path, **end, optimizer={"max_evaluations": 2})
    with monkeypatch.context() as patch:
        patch.setattr("add.commands.run_summary.checks_of", interrupted)
        assert run(command, scene, "-o", tmp_path / "run", "-q") == 130
    assert run(command, scene, "-o", tmp_path / "run", "--resume", "-q") == 0
    checks = json.loads((tmp_path / "run" / "result.json").read_text())["checks"]
    assert list(checks) == ["markers.top.final"]
