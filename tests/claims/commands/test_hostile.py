"""Commands on what is damaged, too large, or meant to do harm: one error, the right code, and nothing else touched."""

import json
import logging
import os
import re
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
from faults.runs import ran
from fuzz.seeds import SMALL, write_files, write_runs

from add.commands.cli import main
from add.commands.report import write_report
from add.commands.simulate import Keeper
from add.inverse.problem import InverseProblem
from add.io.runfolder import RunFolder
from add.scene.build import sizes

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of all commands; tests that damage them work on copies."""
    folder = tmp_path_factory.mktemp("runs")
    write_files(folder)
    write_runs(folder)
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    (tmp_path / "scene.json").write_text(json.dumps(SMALL))
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
        return end.value.code, out, err

    return run


def copied(runs, name):
    return RunFolder(shutil.copytree(runs / name, name), create=False)


# --- memory ----------------------------------------------------------------------------------------------------------


def test_a_run_that_is_too_long_is_refused(add, here):
    (here / "scene.json").write_text(json.dumps(SMALL | {"time": {"dt": 1e-6, "steps": 10**9}}))
    for command in (("simulate",), ("optimize",), ("sweep", "--parameter", "bodies.box.velocity.0=-1:1:2")):
        code, out, err = add(*command, "scene.json", "-o", "run", "-q")
        assert (code, out) == (2, "") and err.count("\n") == 1
        assert err.startswith("error: scene.json: time: this run needs about") and "free" in err
        assert not (here / "run" / "trajectory.h5").exists()


def test_a_trajectory_that_no_disk_holds_is_refused(add, here, monkeypatch):
    monkeypatch.setattr(sizes, "free_disk", lambda folder: 10.0)
    code, _, err = add("simulate", "scene.json", "-o", "run", "-q")
    assert code == 2 and err.startswith("error: scene.json: output.every: the trajectory of this run needs about")


def test_memory_that_ends_during_a_run(add, here, monkeypatch):
    """What was computed is kept, and said."""

    def hungry(self, state, record, real=Keeper.__call__):
        real(self, state, record)
        if len(self._steps) == 5:
            np.ones(10**15)

    monkeypatch.setattr(Keeper, "__call__", hungry)
    code, out, err = add("simulate", "scene.json", "-o", "run", "-q")
    assert (code, out) == (3, "") and err.count("\n") == 1
    assert err.startswith("error: the memory was not enough; kept in run: ") and "`add view run`" in err
    result = json.loads((here / "run" / "result.json").read_text())
    assert (result["status"], result["steps"]) == ("failed", 5)
    assert add("info", "run")[0] == 0


def test_memory_that_ends_anywhere(add, monkeypatch):
    def hungry(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("add.scene.read.reader._parse", hungry)
    assert add("check", "scene.json") == (3, "", "error: the memory was not enough\n")


@pytest.mark.parametrize("command", ["optimize", "sweep"])
def test_memory_that_ends_in_an_evaluation(add, here, monkeypatch, command):
    count = iter(range(100))

    def hungry(self, x, *arguments, real=InverseProblem.value_and_grad, **options):
        if next(count) == 2:
            raise MemoryError
        return real(self, x, *arguments, **options)

    monkeypatch.setattr(InverseProblem, "value_and_grad", hungry)
    more = ["--parameter", "bodies.box.velocity.0=-1:1:4", "--jobs", "1"] if command == "sweep" else []
    (here / "scene.json").write_text(json.dumps(SMALL | {"optimizer": {"max_evaluations": 20}}))
    code, _, err = add(command, "scene.json", "-o", "run", "-q", *more)
    assert code == 3 and err.startswith("error: the memory was not enough; kept in run: 2 ")
    assert json.loads((here / "run" / "result.json").read_text())["status"] == "failed"


# --- what is not what it seems ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("check",), ("simulate",), ("view", "--screenshot", "a.png")])
def test_pipes_and_devices(add, here, command):
    os.mkfifo(here / "pipe.json")
    for path in ("pipe.json", "/dev/zero"):
        code, _, err = add(command[0], path, *command[1:])
        assert code == 2 and err.count("\n") == 1 and ("not a plain file" in err or "not the folder" in err)


def test_a_meshes_link_is_not_followed(add, here):
    """Neither by --force, which removes meshes, nor by the run, which would write them there."""
    ball = {"type": "soft", "mesh": {"shape": "sphere", "radius": 0.05, "edge": 0.05}, "position": [0, 0, 0.1],
            "material": {"model": "neo-hookean", "young": 1e5, "poisson": 0.3, "density": 1000}}  # fmt: skip
    raw = {key: SMALL[key] for key in ("schema", "time", "obstacles", "contact")} | {"bodies": {"ball": ball}}
    (here / "scene.json").write_text(json.dumps(raw))
    assert add("simulate", "scene.json", "-o", "run", "-q")[0] == 0
    (here / "run" / "meshes").rename(here / "outside")
    before = (here / "outside" / "ball.msh").read_bytes()
    (here / "run" / "meshes").symlink_to(here / "outside")
    for command in (("simulate", "scene.json", "-o", "run", "--force"), ("simulate", "scene.json", "-o", "run")):
        code, _, err = add(*command, "-q")
        assert code == 2 and err.count("\n") == 1
    assert [path.name for path in (here / "outside").iterdir()] == ["ball.msh"]
    assert (here / "outside" / "ball.msh").read_bytes() == before


@pytest.mark.parametrize("name", ["simulate", "optimize", "sweep"])
@pytest.mark.parametrize(
    "content",
    ["[]", "3", '{"status": "done"}', '{"parameters": {"a": 1}}', '{"message": ["x"]}', "[" * 10**5, "\0" * 99],
)
def test_results_of_wrong_types(add, runs, name, content):
    folder = copied(runs, name)
    folder.result.write_text(content)
    for command in ("info", "plot"):
        code, _, err = add(command, name)
        assert code in (0, 2) and err.count("error: ") == (code == 2) and err.count("\n") <= 1


@pytest.mark.parametrize("content", ["[]", "3", '{"optimizer": 3}', '{"optimizer": []}', "{}", "[" * 10**5])
def test_scenes_of_wrong_types_in_a_resumed_run(add, runs, content):
    folder = copied(runs, "optimize")
    folder.scene.write_text(content)
    code, _, err = add("optimize", runs / "small.json", "-o", "optimize", "--resume")
    assert code == 2 and err.count("\n") == 1 and err.startswith("error: ")


@pytest.mark.parametrize(
    "change",
    [{"gradient": []}, {"x": ["0x1p+0", "0x1p+0"]}, {"value": "x"}, {"phase": 3}, {"seconds": "long"}, {"index": -1}],
)
def test_evaluations_of_wrong_types_in_a_resumed_run(add, runs, change):
    folder = copied(runs, "optimize")
    lines = folder.read_lines("evaluations.jsonl")
    lines[0] |= change
    folder.evaluations.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, _, err = add("optimize", runs / "small.json", "-o", "optimize", "--resume")
    assert code == 2 and err.count("\n") == 1 and "evaluations.jsonl" in err


@pytest.mark.parametrize("change", [{"index": [99]}, {"index": [0, 0]}, {"gradient": []}, {"value": "0x1p+99999"}])
def test_samples_of_wrong_types(add, runs, change):
    folder = copied(runs, "sweep_cut")
    lines = folder.read_lines("samples.jsonl")
    lines[0] |= change
    (folder.path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    axis = ["--parameter", "bodies.box.velocity.0=-1:1:3", "--jobs", "1"]
    code, _, err = add("sweep", runs / "small.json", "-o", "sweep_cut", *axis)
    assert code == 2 and err.count("\n") == 1 and "samples.jsonl" in err


@pytest.mark.parametrize("count", ["1000000000000", "9" * 5000, "1", "-3", "x"])
def test_sweeps_of_too_many_values(add, count):
    code, _, err = add("sweep", "scene.json", "--parameter", f"bodies.box.velocity.0=-1:1:{count}")
    assert code == 2 and "not a number of values" in err and len(err) < 500


FILMS = (
    ("--fps", "1", "--speed", "1e-300", "--movie", "a.gif"),
    ("--fps", "1000000000", "--movie", "a.gif"),
    ("--speed", "nan", "--movie", "a.gif"),
    ("--time", "nan", "--screenshot", "a.png"),
)


@pytest.mark.parametrize("options", FILMS)
def test_films_without_end(add, runs, options):
    code, _, err = add("view", runs / "simulate", *options, "-q")
    assert code == 2 and err.count("error: ") == 1


def test_a_link_in_a_trajectory_is_refused_by_all(add, runs, here):
    copied(runs, "simulate")
    with h5py.File("simulate/trajectory.h5", "a") as file:
        del file["t"]
        file["t"] = h5py.ExternalLink(str(runs / "optimize" / "trajectory.h5"), "/t")
    for command in (
        ("plot", "simulate"),
        ("view", "simulate", "--screenshot", "a.png"),
        ("view", "simulate/trajectory.h5", "--screenshot", "a.png"),
    ):
        code, _, err = add(*command)
        assert code == 2 and err.count("\n") == 1 and "a link into another file" in err


# --- names -----------------------------------------------------------------------------------------------------------

EVIL = "<script>alert(1)</script>|a|b `c` [d](http://e) *f*\n# g"


def test_names_are_escaped_in_reports(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.write_json("versions.json", {EVIL: EVIL})
    entry = {"value": 1.0, "unit": EVIL, "start": 1.0, "standard_error": None, "lower": None, "upper": 1.0}
    run.write_json(
        "result.json",
        {
            "command": EVIL, "status": EVIL, "scene": EVIL, "parameters": {EVIL: entry},
            "phases": [{"name": EVIL, "evaluations": 1, "status": EVIL, "start": 1, "end": 1, "success": False}],
            "fit": {"rms": 1, "samples": 1, "unit": EVIL, "per_marker": {EVIL: 1}},
            "checks": {EVIL: {"passed": True, "value": EVIL}},
        },
    )  # fmt: skip
    text = write_report(run, draw=False).read_text()
    outside = "".join(part for k, part in enumerate(text.split("`")) if k % 2 == 0)  # code shows what it holds
    assert not re.search(r"<script|(?<!\\)\]\(http|(?<!\\)\*f", outside)
    widths = {"parameter": 5, "phase": 4, "marker": 2, "check": 5}
    for line in text.splitlines():
        assert not line.startswith("# g")
        if line.startswith("|"):
            cells = line.replace("\\|", "").count("|") - 1
            assert cells in (2, *widths.values())
        head = line.split("|")[1].strip() if line.startswith("|") else ""
        if head in widths:
            assert line.replace("\\|", "").count("|") - 1 == widths[head]


def test_names_are_letters_in_pictures(add, runs):
    """A dollar begins no formula, and a name that is none is refused."""
    copied(runs, "simulate")
    with h5py.File("simulate/trajectory.h5", "a") as file:
        file.move("markers/corner", "markers/$\\frac{1")
        file["energy/<b>$x"] = file["energy/kinetic"][()]
    assert add("plot", "simulate", "-q")[0] == 0
    with h5py.File("simulate/trajectory.h5", "a") as file:
        h5py.h5g.create(file["markers"].id, b"\xff\xfe")
    code, _, err = add("plot", "simulate", "-q")
    assert code == 2 and "no text" in err


def test_names_of_files_that_are_no_text(tmp_path):
    """A byte that is no letter, as a command line can have it."""
    none = b"\xff"
    alone = subprocess.run([sys.executable, "-m", "add", b"info", none], capture_output=True, text=True, cwd=tmp_path)
    said = [(alone.returncode, alone.stdout, alone.stderr)]
    name = os.fsdecode(none)
    said += [ran(tmp_path, "check", f"{name}.json"), ran(tmp_path, "simulate", "scene.json", "-q", "-o", name)]
    for code, _, err in said:
        assert code == 2 and err.count("error: ") == 1 and "Traceback" not in err


def test_a_file_that_cannot_be_used(add, here):
    """What the system refuses is one error, whatever it is: here a name that is too long for it."""
    code, _, err = add("simulate", "scene.json", "-o", "x" * 300, "-q")
    assert code == 2 and err.startswith("error: x") and err.count("\n") == 1


@pytest.mark.parametrize("command", ["simulate", "optimize", "converge", "sweep"])
def test_an_empty_name_of_a_folder_is_none(add, here, command):
    """As of a variable that is not set: nothing may lie, or be replaced, under the name of the scene instead."""
    more = ["--parameter", "bodies.box.velocity.0=-1:1:2"] if command == "sweep" else []
    code, _, err = add(command, "scene.json", "-o", "", "-q", *more)
    assert (code, err) == (2, "error: -o: no name of a folder (found ''; expected a run folder)\n")
    assert not (here / "runs").exists()
