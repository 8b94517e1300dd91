"""A Gauss-Newton optimisation that is killed goes on bit by bit: from the last accepted point and five numbers."""

import copy
import json
import signal

import pytest
from commands.test_resume import INVERSE, assert_same, copied, log_of, result_of, run, stop_after, synthetic, write
from support.tiers import long_case

pytestmark = pytest.mark.usefixtures("undrawn")

#: Bad steps in both phases: with so little damping the first ones go too far.
OPTIMIZER = {**copy.deepcopy(INVERSE["optimizer"]), "method": "gauss-newton", "damping": 1e-9, "max_evaluations": 9}
#: The kill comes in the second phase.
KILL_AFTER = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume_gauss_newton")
    synthetic(folder)
    assert run("optimize", write(folder, optimizer=OPTIMIZER), "-o", folder / "whole", "-q") == 0
    return folder


def test_the_fit_is_a_fit(folder):
    result = result_of(folder / "whole")
    assert result["objective"]["end"] < 0.01 * result["objective"]["start"]
    assert result["parameters"]["bodies.box.velocity[0]"]["value"] == pytest.approx(0.4, abs=0.01)
    assert [phase["name"] for phase in result["phases"]] == ["throw", "all"]
    lines = log_of(folder / "whole")
    assert len(lines) == result["evaluations"] > KILL_AFTER + 1
    assert all(len(line["memory"]) == 6 and len(line["gradient"]) in (0, 3) for line in lines)
    assert run("plot", folder / "whole", "-q") == 0 and (folder / "whole" / "convergence.png").is_file()


def test_killed_and_resumed(folder, tmp_path):
    killed = tmp_path / "killed"
    code, _, _ = stop_after(killed, KILL_AFTER, signal.SIGKILL, "optimize", folder / "scene.json", "-o", killed)
    assert code == -signal.SIGKILL and not (killed / "result.json").exists()
    made = len(log_of(killed))
    assert made >= KILL_AFTER
    assert run("optimize", folder / "scene.json", "-o", killed, "--resume", "-q") == 0
    assert_same(killed, folder / "whole")
    assert result_of(killed)["replayed_evaluations"] == made


@pytest.mark.parametrize("kept", [1, long_case(3), 7, None])
def test_cut_off_anywhere(folder, tmp_path, kept):
    """Also within a line, in either phase, and where nothing is left to do."""
    cut = copied(folder / "whole", tmp_path / "run")
    if kept is not None:
        lines = (cut / "evaluations.jsonl").read_bytes().splitlines(keepends=True)
        (cut / "evaluations.jsonl").write_bytes(b"".join(lines[:kept]) + lines[kept][: len(lines[kept]) // 2])
    assert run("optimize", folder / "scene.json", "-o", cut, "--resume", "-q") == 0
    assert_same(cut, folder / "whole")
    assert result_of(cut)["replayed_evaluations"] == (kept or len(log_of(folder / "whole")))


def test_changed_recording_is_refused(tmp_path, capsys):
    synthetic(tmp_path)
    path = write(tmp_path, optimizer={"method": "gauss-newton", "max_evaluations": 2})
    assert run("optimize", path, "-o", tmp_path / "run", "-q") == 0
    synthetic(tmp_path, shift=0.01)
    capsys.readouterr()
    assert run("optimize", path, "-o", tmp_path / "run", "--resume", "-q") == 2
    err = capsys.readouterr().err
    assert err.count("error:") == 1 and "cannot be resumed" in err and "evaluations.jsonl" in err


def test_other_method_is_refused(folder, tmp_path, capsys):
    run_folder = copied(folder / "whole", tmp_path / "run")
    raw = json.loads((folder / "scene.json").read_text())
    raw["optimizer"]["method"] = "l-bfgs-b"
    raw["recording"]["file"] = str(folder / "recording.csv")
    (tmp_path / "scene.json").write_text(json.dumps(raw))
    assert run("optimize", tmp_path / "scene.json", "-o", run_folder, "--resume") == 2
    assert "optimizer.method" in capsys.readouterr().err
