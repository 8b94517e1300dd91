"""The objective and its gradient on a grid: values, resuming, failures, several processes."""

import copy

import numpy as np
import pytest

from add.commands import sweep as module
from add.commands.parallel.workers import LocalProcesses, Work
from add.commands.sweep import sweep_scene
from add.errors import InputError, SolverError
from add.io.hdf5 import SweepData, read_sweep, write_sweep
from add.io.runfolder import GRID, SAMPLES, RunFolder
from add.scene import apply_overrides, scene_from_dict
from add.scene.build.write_back import sweep_axes

BALL = {
    "type": "rigid",
    "geometry": {"shape": "sphere", "radius": 0.1},
    "mass": 1.0,
    "position": [0, 0, 0.15],
    "velocity": [1, 0, 0],
}
#: A throw with a bounce.
SCENE = {
    "schema": "add-scene/1",
    "name": "throw",
    "time": {"dt": 0.005, "steps": 60},
    "bodies": {"ball": BALL},
    "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
    "contact": {"stiffness": 5e3, "friction": 0.4, "damping": 5},
    "markers": {"centre": {"body": "ball", "point": [0, 0, 0]}},
    "objective": [{"type": "point", "marker": "centre", "target": [0.4, 0, 0.2], "time": "end"}],
    "parameters": [
        {"path": "bodies.ball.velocity", "components": [0, 2]},
        {"path": "contact.stiffness", "transform": "log", "bounds": [1e3, 1e5]},
        {"path": "bodies.ball.mass", "transform": "softplus", "bounds": [0.5, None]},
    ],
}
X, Z = "bodies.ball.velocity.0", "bodies.ball.velocity.2"
TWO = (f"{X}=0.5:1.5:3", f"{Z}=-1:1:4")


@pytest.fixture(scope="module")
def scene():
    return scene_from_dict(SCENE)


@pytest.fixture(scope="module")
def whole(scene, tmp_path_factory):
    folder = RunFolder(tmp_path_factory.mktemp("sweep") / "whole")
    return folder, sweep_scene(scene, folder, TWO)


def lines(folder):
    measured = ("seconds", "elapsed")
    found = [{k: v for k, v in line.items() if k not in measured} for line in folder.read_lines(SAMPLES)]
    return sorted(found, key=lambda line: line["index"])


def test_values_and_gradients(scene, whole):
    """Each sample is the objective of the scene with these values, its gradient by the physical values."""
    folder, result = whole
    data = read_sweep(folder.sweep)
    assert (data.values.shape, data.gradients.shape) == ((3, 4), (3, 4, 2))
    assert data.names == ("bodies.ball.velocity[0]", "bodies.ball.velocity[2]") and data.units == ("m/s", "m/s")
    for i, j in ((0, 0), (2, 1), (1, 3)):
        other = apply_overrides(scene, {"bodies.ball.velocity": [data.grid[0][i], 0, data.grid[1][j]]})
        problem = other.inverse_problem()
        value, gradient = problem.value_and_grad(problem.x0)
        assert data.values[i, j] == pytest.approx(value, rel=1e-12)
        assert data.gradients[i, j] == pytest.approx(gradient[:2] / problem.design.scale[:2], rel=1e-9)
    lowest = data.minimum
    assert result["objective"]["minimum"] == data.values[lowest] == np.nanmin(data.values)
    assert result["parameters"]["bodies.ball.velocity[2]"]["value"] == data.grid[1][lowest[1]]
    assert (result["command"], result["status"], result["samples"], result["failed"]) == ("sweep", "done", 12, 0)


@pytest.mark.parametrize("path", ["contact.stiffness", "bodies.ball.mass=0.5:2:5"])
def test_gradient_through_a_transform(tmp_path, scene, path):
    """A fine grid's differences are its gradients (before the bounce: smooth)."""
    raw = copy.deepcopy(SCENE) | {
        "time": {"dt": 0.005, "steps": 24},
        "bodies": {"ball": {**BALL, "position": [0, 0, 0.099]}},
    }
    name = path.partition("=")[0]
    value = float(np.sqrt(1e3 * 1e5)) if name == "contact.stiffness" else 1.2
    folder = RunFolder(tmp_path / "run")
    sweep_scene(scene_from_dict(raw), folder, [f"{name}={value * 0.9999}:{value * 1.0001}:3"])
    data = read_sweep(folder.sweep)
    slope = (data.values[2] - data.values[0]) / (data.grid[0][2] - data.grid[0][0])
    assert slope != 0.0 and data.gradients[1, 0] == pytest.approx(slope, rel=1e-4)
    assert data.logarithmic == (name == "contact.stiffness",)


@pytest.mark.parametrize("kept", [0, 1, 7])
def test_going_on(tmp_path, scene, whole, kept):
    """What is there is not made again; the rest comes out the same, bit by bit; a broken line is made again."""
    folder, first = whole
    again = RunFolder(tmp_path / "run")
    for name in ("scene.json", GRID):
        (again.path / name).write_bytes((folder.path / name).read_bytes())
    text = (folder.path / SAMPLES).read_bytes().splitlines(keepends=True)
    (again.path / SAMPLES).write_bytes(b"".join(text[:kept]) + text[kept][:20])
    done = []
    second = sweep_scene(scene, again, TWO, progress=lambda n, of: done.append((n, of)))
    assert done == [(n, 12) for n in range(kept, 13)]
    assert lines(again) == lines(folder)
    for key in ("objective", "parameters", "samples", "sampled", "failed"):
        assert second[key] == first[key], key
    assert np.array_equal(read_sweep(again.sweep).values, read_sweep(folder.sweep).values)


def test_a_finished_sweep_stays(scene, whole, monkeypatch):
    folder, first = whole
    monkeypatch.setattr(module, "_sample", None)  # nothing is evaluated
    before = (folder.path / SAMPLES).read_bytes()
    assert sweep_scene(scene, folder, TWO)["objective"] == first["objective"]
    assert (folder.path / SAMPLES).read_bytes() == before


@pytest.mark.parametrize("other", [(TWO[0],), TWO[::-1], (f"{X}=0.5:1.5:4", TWO[1]), (f"{X}=0.5:1.6:3", TWO[1])])
def test_another_grid_is_refused(scene, whole, other):
    with pytest.raises(InputError, match="another grid") as error:
        sweep_scene(scene, whole[0], other)
    assert "velocity[2]=-1:1:4" in error.value.found


def test_another_scene_or_kind_of_run_is_refused(tmp_path, scene, whole):
    with pytest.raises(InputError, match="another scene"):
        sweep_scene(apply_overrides(scene, {"gravity": [0, 0, -1.0]}), whole[0], TWO)
    run = RunFolder(tmp_path / "run")
    run.write_json("result.json", {})
    with pytest.raises(InputError, match="there is a run in this folder"):
        sweep_scene(scene, run, TWO)
    run.write_json("result.json", {"command": "simulate"})
    with pytest.raises(InputError, match="a run of `add simulate`"):
        sweep_scene(scene, run, TWO)
    assert [path.name for path in run.path.iterdir()] == ["result.json"]


def test_clock_goes_on(tmp_path, scene, whole):
    """The wall time is that of all parts, also of one that was killed after its last sample."""
    run = RunFolder(tmp_path / "run")
    for name in ("scene.json", GRID):
        (run.path / name).write_bytes((whole[0].path / name).read_bytes())
    line = whole[0].read_lines(SAMPLES)[0]
    assert line["elapsed"] >= line["seconds"]
    run.append_line(SAMPLES, line | {"elapsed": 1000.0})
    first = sweep_scene(scene, run, TWO)["seconds"]
    assert 1000.0 < first < 1500.0
    assert first < sweep_scene(scene, run, TWO)["seconds"] < 1500.0


def test_other_data_are_refused(tmp_path, scene, whole):
    """The scene is the same, but a sample does not come out again."""
    run = RunFolder(tmp_path / "run")
    for name in ("scene.json", GRID):
        (run.path / name).write_bytes((whole[0].path / name).read_bytes())
    line = whole[0].read_lines(SAMPLES)[0]
    run.append_line(SAMPLES, line | {"value": (1.01 * float.fromhex(line["value"])).hex()})
    with pytest.raises(InputError, match="cannot go on"):
        sweep_scene(scene, run, TWO)


def test_failures_are_kept_as_such(tmp_path, scene, monkeypatch):
    """A sample that fails is a line, a hole in the grid, and is not made again."""
    evaluate = module._sample

    class Broken:
        def __init__(self, problem):
            self.problem = problem

        def __getattr__(self, name):
            return getattr(self.problem, name)

        def value_and_grad(self, x):
            raise SolverError("step 3: no")

    def some(problem, axes, index):
        return evaluate(Broken(problem) if index == (1,) else problem, axes, index)

    monkeypatch.setattr(module, "_sample", some)
    run = RunFolder(tmp_path / "run")
    result = sweep_scene(scene, run, [TWO[0]])
    assert (result["failed"], result["sampled"]) == (1, 3)
    assert [line.get("failed") for line in lines(run)] == [None, "step 3: no", None]
    data = read_sweep(run.sweep)
    assert np.isnan(data.values).tolist() == [False, True, False] and data.minimum in ((0,), (2,))
    before = (run.path / SAMPLES).read_bytes()
    assert sweep_scene(scene, run, [TWO[0]])["failed"] == 1
    assert (run.path / SAMPLES).read_bytes() == before


def test_an_interrupt_keeps_what_was_finished(tmp_path, scene, whole):
    run = RunFolder(tmp_path / "run")

    def stop(done, total):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep_scene(scene, run, TWO, progress=stop)
    assert len(lines(run)) == 5
    result = run.read_json("result.json")
    assert (result["status"], result["sampled"]) == ("interrupted", 5)
    assert read_sweep(run.sweep).sampled.sum() == 5
    sweep_scene(scene, run, TWO)
    assert lines(run) == lines(whole[0])


# --- axes ------------------------------------------------------------------------------------------------------------


def test_axes(scene):
    problem = scene.inverse_problem()
    (axis,) = sweep_axes(problem, ["contact.stiffness"])
    assert axis.logarithmic and axis.values.size == 21 and axis.values[[0, 10, 20]] == pytest.approx([1e3, 1e4, 1e5])
    (axis,) = sweep_axes(problem, ["contact.stiffness=2e3:"])
    assert (axis.values[0], axis.values[-1]) == (2e3, 1e5)
    first, second = sweep_axes(problem, ["bodies.ball.velocity[2]=-1:1:3", "bodies.ball.mass=:3:2"])
    assert (first.index, first.unit, first.values.tolist()) == (1, "m/s", [-1.0, 0.0, 1.0])
    assert second.values.tolist() == [0.5, 3.0] and not second.logarithmic


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "one or two"),
        ([X, Z, "contact.stiffness"], "no lower bound|one or two"),
        ([X], "no lower bound"),
        (["bodies.ball.mass"], "no upper bound"),
        (["bodies.ball.velocity=0:1"], "choose one component"),
        (["bodies.ball.velocity.1=0:1"], "no such entry"),
        (["contact.stifness=1:2"], "did you mean 'contact.stiffness'"),
        ([f"{X}=0:1:2:3"], "not a range"),
        ([f"{X}=1"], "not a range"),
        ([f"{X}=a:1"], "not a number"),
        ([f"{X}=0:inf"], "not a number"),
        ([f"{X}=0:1:1"], "not a number of values"),
        ([f"{X}=0:1:2.5"], "not a number of values"),
        ([f"{X}=1:0"], "below the upper"),
        (["contact.stiffness=-1:5"], "above 0"),
        ([f"{X}=0:1", "bodies.ball.velocity[0]=1:2"], "given twice"),
    ],
)
def test_impossible_axes(scene, texts, message):
    with pytest.raises(InputError, match=message) as error:
        sweep_axes(scene.inverse_problem(), texts)
    assert error.value.place == "--parameter"


def test_shared_and_own_parameters():
    parameters = [
        {"paths": ["bodies.ball.position.0", "bodies.ball.position.1"], "start": 0.1},
        {"path": "gravity.2", "experiment": "low"},
    ]
    problem = scene_from_dict({**SCENE, "experiments": [{"name": "low"}], "parameters": parameters}).inverse_problem()
    for text in ("bodies.ball.position.1=0:1", "bodies.ball.position.0+bodies.ball.position.1=0:1"):
        assert sweep_axes(problem, [text])[0].index == 0
    assert sweep_axes(problem, ["gravity.2@low=-9:-1"])[0].name == "gravity.2@low"


# --- processes -------------------------------------------------------------------------------------------------------


class Square(Work[int, int]):
    """Squares; fails for 13, dies for 99."""

    def prepare(self):
        return self._square

    @staticmethod
    def _square(task):
        if task == 13:
            raise SolverError("unlucky")
        if task == 99:
            import os

            os._exit(1)
        return task * task


def test_spread():
    tasks = list(range(7))
    with LocalProcesses(1).session(Square()) as here:
        assert dict(here.spread(tasks)) == {n: n * n for n in tasks}
    found = []
    with LocalProcesses(2).session(Square()) as session:
        assert list(session.spread([])) == []
        assert dict(session.spread([5])) == {5: 25}  # one process, and one more for the next
        assert dict(session.spread(tasks)) == {n: n * n for n in tasks}
        with pytest.raises(SolverError, match="unlucky"):
            found += session.spread([*tasks, 13])
    with LocalProcesses(2).session(Square()) as session, pytest.raises(RuntimeError, match="ended before its task"):
        list(session.spread([99, 99]))
    assert found and set(found) <= {(n, n * n) for n in tasks}


def test_file_of_a_sweep(tmp_path):
    data = SweepData(("a",), ("m",), (np.array([1.0, 2.0]),), (False,), np.array([np.nan, 3.0]), np.zeros((2, 1)))
    write_sweep(tmp_path / "sweep.h5", data)
    again = read_sweep(tmp_path / "sweep.h5")
    assert (again.names, again.units, again.logarithmic) == (data.names, data.units, data.logarithmic)
    assert np.array_equal(again.values, data.values, equal_nan=True) and again.minimum == (1,)
    with pytest.raises(InputError, match="no such file"):
        read_sweep(tmp_path / "other.h5")
    (tmp_path / "broken.h5").write_bytes(b"text")
    with pytest.raises(InputError, match="not an HDF5 file"):
        read_sweep(tmp_path / "broken.h5")
