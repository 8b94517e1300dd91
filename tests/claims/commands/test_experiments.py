"""Experiments evaluated by workers: the same evaluations bit by bit, the same failures, the same way on."""

import json

import numpy as np
import pytest
from commands.test_sweep import SCENE

from add.commands.cli import main
from add.commands.optimize import optimize_scene
from add.commands.parallel.workers import LocalProcesses, Session, Workers, evaluated_by
from add.errors import SolverError
from add.io.runfolder import RunFolder
from add.scene import scene_from_dict

pytestmark = pytest.mark.usefixtures("undrawn")

#: Two throws with one stiffness, each with a velocity of its own; the contact is softer at first.
TWO = {
    **SCENE,
    "experiments": [{"name": "low"}, {"name": "high", "overrides": {"bodies.ball.position": [0, 0, 0.25]}}],
    "parameters": [
        {"path": "bodies.ball.velocity", "components": [0], "experiment": "low"},
        {"path": "bodies.ball.velocity", "components": [0, 2], "experiment": "high"},
        {"path": "contact.stiffness", "transform": "log", "bounds": [1e3, 1e5]},
    ],
    "optimizer": {
        "max_evaluations": 4,
        "phases": [{"name": "soft", "overrides": {"contact.damping": 2.0}}, {"name": "as it is"}],
    },
}


def evaluations(folder):
    return [{k: v for k, v in line.items() if k != "seconds"} for line in folder.read_lines("evaluations.jsonl")]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = RunFolder(tmp_path_factory.mktemp("alone") / "run")
    optimize_scene(scene_from_dict(TWO), folder)
    return evaluations(folder)


def test_processes(alone, tmp_path):
    """From the log of a run in this process, which was interrupted."""
    folder = RunFolder(tmp_path / "run")
    scene = scene_from_dict(TWO)

    def stop(evaluation, better):
        if evaluation.index == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimize_scene(scene, folder, progress=stop)
    assert folder.read_json("result.json")["status"] == "interrupted" and evaluations(folder) == alone[:4]
    optimize_scene(scene, folder, resume=True, workers=LocalProcesses(2))
    assert len(alone) > 4 and evaluations(folder) == alone


class Backwards(Workers):
    """Does the last task first, in this process, and counts them."""

    def __init__(self):
        self.done = 0

    def session(self, work):
        from contextlib import nullcontext

        workers, function = self, work.prepare()

        class Here(Session):
            def spread(self, tasks):
                for task in reversed(tasks):
                    workers.done += 1
                    yield task, function(task)

        return nullcontext(Here())


def test_order_and_window():
    scene, workers = scene_from_dict(TWO), Backwards()
    problem = scene.inverse_problem()
    x = problem.x0 + 0.01
    with evaluated_by(workers, scene, problem) as shared:
        value, gradient = shared.value_and_grad(x)
        expected, by_x = problem.value_and_grad(x)
        assert value == expected and np.array_equal(gradient, by_x) and workers.done == 2
        assert shared.value_and_grad(x, observers=(lambda state, record: None,))[0] == expected
        assert workers.done == 2, "who watches the steps needs them in this process"


HARD = {"stiffness": 1e3, "damping": 1e6}


def test_failure_of_the_first_experiment():
    """As without workers, however many fail and whoever is ready first."""
    raw = {
        **TWO,
        "time": {**TWO["time"], "newton": {"max_iterations": 2}, "substeps": "off"},
        "contact": {"stiffness": 1e3, "damping": 1e6},
    }
    raw |= {"parameters": TWO["parameters"][:2], "optimizer": {}}
    scene = scene_from_dict(raw)
    problem = scene.inverse_problem()
    with pytest.raises(SolverError) as alone:
        problem.value_and_grad(problem.x0)
    with evaluated_by(Backwards(), scene, problem) as shared, pytest.raises(SolverError) as found:
        shared.value_and_grad(problem.x0)
    assert str(found.value) == str(alone.value)
    with pytest.raises(SolverError) as other:
        scene_from_dict({**raw, "experiments": raw["experiments"][::-1]}).inverse_problem().value_and_grad(problem.x0)
    assert str(other.value) != str(alone.value), "the experiments fail alike: this shows nothing"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"experiments": [{"name": "low"}], "parameters": [{"path": "gravity"}], "optimizer": {}}, "a single one"),
        ({"optimizer": {"method": "gauss-newton"}}, "Gauss-Newton needs the runs"),
    ],
)
def test_nothing_to_share(tmp_path, monkeypatch, capsys, change, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.json").write_text(json.dumps({**TWO, **change}))
    with pytest.raises(SystemExit) as end:
        main(["optimize", "scene.json", "--jobs", "2", "-q"])
    error = capsys.readouterr().err
    assert end.value.code == 2 and message in error and error.startswith("error: scene.json: ")
    assert [path.name for path in tmp_path.iterdir()] == ["scene.json"]


def test_from_outside(tmp_path, monkeypatch, alone, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.json").write_text(json.dumps(TWO))
    with pytest.raises(SystemExit) as end:
        main(["optimize", "scene.json", "--jobs", "2", "-o", "run", "-q"])
    assert end.value.code == 0 and evaluations(RunFolder("run", create=False)) == alone
    with pytest.raises(SystemExit) as end:
        main(["optimize", "scene.json", "--cluster", "tcp://127.0.0.1", "-o", "run", "--force", "-q"])
    assert end.value.code == 2 and RunFolder("run", create=False).read_json("result.json")["status"] == "done"


@pytest.mark.parametrize(("scene", "said"), [(TWO, True), (SCENE, False)])
def test_a_simulation_says_what_it_leaves_out(tmp_path, monkeypatch, capsys, scene, said):
    """`add simulate` runs the scene itself, not what its experiments make of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "throws.json").write_text(json.dumps(scene))
    with pytest.raises(SystemExit) as end:
        main(["simulate", "throws.json", "-o", "run"])
    text = "the scene itself, without what experiments override: 'high'; `add optimize` runs each"
    assert end.value.code == 0 and (text in capsys.readouterr().out) == said
