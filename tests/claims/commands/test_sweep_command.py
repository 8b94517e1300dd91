"""`add sweep` and `add plot` of what it leaves, from outside."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from commands.test_sweep import SCENE, TWO, lines
from support.processes import signals_as_usual
from support.tiers import long_case

from add.commands.cli import main
from add.commands.console import COMPILING
from add.io.hdf5 import read_sweep
from add.io.runfolder import RunFolder


@pytest.fixture
def add(capsys, tmp_path, monkeypatch):
    """Run a command in this process, in an empty folder with the scene: code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "throw.json").write_text(json.dumps(SCENE))

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return end.value.code, out, err.replace(f"{COMPILING}\n", "")  # by whoever comes first

    return run


def sweep(*texts):
    return ["sweep", "throw.json", *(part for text in texts for part in ("--parameter", text))]


def test_sweep_and_plot(add, tmp_path):
    code, out, err = add(*sweep(*TWO), "--jobs", 1)
    assert (code, err) == (0, "") and "12 samples, 0 failed" in out and "bodies.ball.velocity[2] = " in out
    run = tmp_path / "runs" / "throw_sweep"
    made = {"grid.json", "result.json", "samples.jsonl", "scene.json", "sweep.h5", "versions.json"}
    assert {path.name for path in run.iterdir()} == made
    code, out, _ = add("plot", run, "--format", "svg", "--json")
    assert code == 0 and json.loads(out) == [str(run / "landscape.svg")]
    assert add("info", run)[0] == 0
    code, out, err = add(*sweep(*TWO), "--jobs", 1, "--json")
    assert (code, err) == (0, "") and json.loads(out) == RunFolder(run, create=False).read_json("result.json")
    code, _, err = add(*sweep(TWO[0]), "--jobs", 1)
    assert code == 2 and "another grid" in err and err.count("\n") == 1
    assert add(*sweep(TWO[0]), "--jobs", 1, "--force", "-q")[0] == 0
    assert {path.name for path in run.iterdir()} == made
    assert add("plot", run, "--log", "-q")[0] == 0


def test_mistakes_leave_nothing(add, tmp_path):
    assert add("sweep", "throw.json")[0] == 2
    code, _, err = add(*sweep("contact.stifness"))
    assert code == 2 and "did you mean 'contact.stiffness'" in err
    assert [path.name for path in tmp_path.iterdir()] == ["throw.json"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    assert add(*sweep(*TWO), "-o", "mine", "--force")[0] == 2
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("how", "code", "word"), [(signal.SIGINT, 130, "interrupted"), long_case(signal.SIGTERM, 143, "terminated")]
)
def test_interrupted_over_two_processes(add, tmp_path, how, code, word):
    """The signal reaches every process; the run goes on in one and is what one alone would have made."""
    texts = ("bodies.ball.velocity.0=0.5:1.5:15", "bodies.ball.velocity.2=-1:1:6")
    command = [sys.executable, "-m", "add", *sweep(*texts), "-o", "cut", "--jobs", "2"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=signals_as_usual,
    )  # fmt: skip
    log, end = tmp_path / "cut" / "samples.jsonl", time.monotonic() + 120
    while not (log.is_file() and log.read_bytes().count(b"\n") >= 5):
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.002)
    os.killpg(process.pid, how)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    cut = RunFolder(tmp_path / "cut", create=False)
    made = len(lines(cut))
    result = cut.read_json("result.json")
    assert 5 <= made < 90 and (result["status"], result["sampled"]) == ("interrupted", made)
    assert read_sweep(cut.sweep).sampled.sum() == made
    assert err == f"{word}; kept in cut: {made} of 90 samples; the same `add sweep` again goes on\n"
    assert f"kept: {made} of 90 samples" in add("info", "cut")[1]
    refused = add("view", "cut")
    assert refused[0] == 2 and "`add plot cut` draws it" in refused[2]
    assert add(*sweep(*texts), "-o", "cut", "--jobs", 1, "-q")[0] == 0
    assert add(*sweep(*texts), "-o", "whole", "--jobs", 1, "-q")[0] == 0
    whole = RunFolder(tmp_path / "whole", create=False)
    assert lines(cut) == lines(whole)
    a, b = read_sweep(cut.sweep), read_sweep(whole.sweep)
    assert np.array_equal(a.values, b.values) and np.array_equal(a.gradients, b.gradients)
