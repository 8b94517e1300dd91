"""A fit from several starts that is killed goes on bit by bit: among the starts, in the first and in the last."""

import json

import pytest
from commands.test_resume import copied, log_of, result_of, run
from support.tiers import long_case

pytestmark = pytest.mark.usefixtures("undrawn")

SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 25},
    "bodies": {
        "ball": {
            "type": "rigid",
            "geometry": {"shape": "sphere", "radius": 0.05},
            "mass": 0.2,
            "position": [0, 0, 0.1],
            "velocity": [0.5, 0, -1.0],
        }
    },
    "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
    "contact": {"stiffness": 2000, "friction": 0.3, "friction_law": "tanh"},
    "markers": {"ball": {"body": "ball", "center_of_mass": True}},
    "objective": [{"type": "point", "marker": "ball", "target": [0.3, 0.05, 0.2], "time": "end"}],
    "parameters": [{"path": "bodies.ball.velocity", "scale": 0.5}],
}
STARTS = {"count": 6, "seed": 3, "spread": 3.0, "keep": 2}
METHODS = {
    # With so little damping the first steps go too far.
    "gauss-newton": {"method": "gauss-newton", "damping": 1e-9, "max_evaluations": 6},
    "l-bfgs-b": {"method": "l-bfgs-b", "max_evaluations": 4},
}


def written(folder, **optimizer):
    path = folder / "scene.json"
    path.write_text(json.dumps(SCENE | {"optimizer": {"starts": STARTS, **optimizer}}), encoding="utf-8")
    return path


@pytest.mark.parametrize("method", ["gauss-newton", long_case("l-bfgs-b")])
def test_cut_off_anywhere(tmp_path, method):
    scene = written(tmp_path, **METHODS[method])
    assert run("optimize", scene, "-o", tmp_path / "whole", "-q") == 0
    lines = log_of(tmp_path / "whole")
    names = [line["phase"] for line in lines]
    assert names[:6] == 6 * ["all (starts)"] and names[6] == "all" and names[-1] == "all (start 2)"
    values = [float.fromhex(line["value"]) for line in lines]
    # From the two lowest of the six, the lowest first; the end is the lowest of all that was tried.
    assert [values[names.index(name)] for name in ("all", "all (start 2)")] == sorted(values[:6])[:2]
    assert result_of(tmp_path / "whole")["objective"]["end"] == min(values)
    if method == "gauss-newton":
        assert any(not line["gradient"] for line in lines[6:-2])  # a step that went too far, and is met again
    raw = (tmp_path / "whole" / "evaluations.jsonl").read_bytes().splitlines(keepends=True)
    first = names.index("all (start 2)")
    for kept in (3, 7, first - 1, first + 1, len(lines) - 1):
        cut = copied(tmp_path / "whole", tmp_path / f"cut {kept}")
        (cut / "evaluations.jsonl").write_bytes(b"".join(raw[:kept]))
        assert run("optimize", scene, "-o", cut, "--resume", "-q") == 0, kept
        assert log_of(cut) == lines
        again, result = result_of(cut), result_of(tmp_path / "whole")
        assert all(again[key] == result[key] for key in ("status", "parameters", "objective", "phases", "evaluations"))


def test_more_kept_than_there_are(tmp_path, capsys):
    assert run("optimize", written(tmp_path, starts={"count": 2, "keep": 3}), "-o", tmp_path / "run") == 2
    err = capsys.readouterr().err
    assert "optimizer.starts.keep" in err and "more than the 2 starts" in err and err.count("error:") == 1
