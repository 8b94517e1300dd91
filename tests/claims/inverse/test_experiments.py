"""Experiments with runs, priors, clocks and phases of their own; a free particle, so that all answers are known."""

import json
import logging

import numpy as np
import pytest
from click.testing import CliRunner

from add.commands.check_gradient import check_gradients
from add.commands.cli import cli
from add.commands.optimize import check_optimization, optimize_scene
from add.errors import InputError
from add.io.runfolder import RunFolder
from add.mocap import Recording, write_csv
from add.scene import scene_from_dict

pytestmark = pytest.mark.usefixtures("roughly_drawn")

VELOCITY = "bodies.p.velocity"
SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "duration": 0.1},
    "gravity": [0, 0, 0],
    "bodies": {
        name: {"type": "particles", "mesh": {"points": [[0, y, 0]]}, "mass": 1.0, "velocity": [1, 0, 0]}
        for name, y in (("p", 0), ("q", 1))
    },
    "markers": {"m": {"body": "p", "nodes": [0]}, "n": {"body": "q", "nodes": [0]}},
    "objective": [{"type": "point", "marker": "m", "target": [1, 0, 0], "axes": "x", "time": "end"}],
    "parameters": [{"path": VELOCITY, "components": [0]}],
}
LONG = {"name": "long", "overrides": {"time.duration": 0.5}}


def scene(**sections):
    return scene_from_dict({**SCENE, **sections})


def recorded(folder, velocity=1.0, end=0.4, start=0.0, **recording):
    """A recording of m at a constant velocity along x."""
    times = start + np.arange(0.0, end + 1e-9, 0.01)
    places = np.zeros((times.size, 1, 3))
    places[:, 0, 0] = velocity * times
    write_csv(folder / "r.csv", Recording(("m",), times, places, np.ones((times.size, 1), dtype=bool), ""))
    sections = {"file": str(folder / "r.csv"), "markers": {"m": "m"}, **recording}
    return {"recording": sections, "objective": [{"type": "markers"}]}


# --- windows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["l-bfgs-b", "gauss-newton"])
def test_an_experiment_runs_to_its_own_end(method):
    """sum over e of (v T_e - 1)^2, also of an experiment that is longer than the scene."""
    problem = scene(experiments=[{"name": "short"}, LONG], optimizer={"method": method}).inverse_problem()
    found = problem.optimize()
    v = (0.1 + 0.5) / (0.1**2 + 0.5**2)
    assert problem.values(found.x)[0] == pytest.approx(v, rel=1e-6)
    assert found.value == pytest.approx((0.1 * v - 1) ** 2 + (0.5 * v - 1) ** 2, rel=1e-9)
    assert found.value == pytest.approx(problem.value(found.x)[0], rel=1e-12)


def test_result_and_phases_see_the_same_runs(tmp_path):
    """What an optimiser minimised is what result.json says."""
    raw = recorded(tmp_path, velocity=0.2, end=0.9)
    result = optimize_scene(scene(**raw, experiments=[{**LONG, "overrides": {"time.duration": 0.9}}]),
                            RunFolder(tmp_path / "run"))  # fmt: skip
    assert result["phases"][0]["start"] == pytest.approx(result["objective"]["start"], rel=1e-12)
    assert result["phases"][0]["end"] == pytest.approx(result["objective"]["end"], rel=1e-12, abs=1e-25)
    assert result["experiments"]["long"]["fit"]["samples"] == 91
    assert result["parameters"][VELOCITY]["value"] == pytest.approx(0.2, rel=1e-6)


def test_a_window_reaches_as_far_as_it_says(tmp_path):
    """In every experiment up to its own end; windows may be as long as the longest run."""
    raw = {**recorded(tmp_path, end=0.6), "experiments": [{"name": "short"}, LONG]}
    phases = [{"name": "a", "window": [0.0, 0.3]}, {"name": "b", "end_time": 0.45}, {"name": "c"}]
    loaded = scene(**raw, optimizer={"phases": phases})
    problem, optimizer = check_optimization(loaded)
    assert [phase.window for phase in optimizer.phases] == [(0.0, 0.3), (0.0, 0.45), None]
    steps = [[e.within(phase.window)[1] for e in problem.experiments] for phase in optimizer.phases]
    assert steps == [[10, 30], [10, 45], [10, 50]]
    samples = [e.within((0.0, 0.3))[0].objectives[0].n_samples for e in problem.experiments]
    assert samples == [11, 31]
    with pytest.raises(InputError, match=r"phases.0.window: outside the simulated time .*\[0, 0.5\]"):
        scene(**raw, optimizer={"phases": [{"name": "a", "window": [0.0, 0.6]}]})


def test_times_of_the_objective_are_those_of_the_experiments(tmp_path):
    """A time that every experiment reaches is good, whatever the scene's own duration."""
    objective = [{**SCENE["objective"][0], "time": 0.4}]
    problem = scene(objective=objective, experiments=[LONG]).inverse_problem()
    assert problem.value(problem.x0)[0] == pytest.approx(0.6**2)
    with pytest.raises(InputError, match=r"objective.0.time: outside the simulated time"):
        scene(objective=objective, experiments=[{"name": "short"}, LONG])
    crop = recorded(tmp_path, end=0.6, crop=[0.2, 0.4])
    assert scene(**crop, experiments=[LONG]).inverse_problem().experiments[0].recording.n_frames == 21


def test_gradient_check_of_a_smaller_step():
    """Each experiment's window is its own steps of its own length."""
    fine = {"name": "fine", "overrides": {"time.dt": 0.001}}
    objective = [{**SCENE["objective"][0], "time": None, "window": [0.0, 0.1]}]
    found = check_gradients(scene(experiments=[{"name": "coarse"}, fine]), free=False)
    assert [item.passed for item in found] == [True, True]
    found = check_gradients(scene(objective=objective, experiments=[{"name": "coarse"}, fine]), free=False)
    assert [item.passed for item in found] == [True, True]
    # The mean over the steps that the window has, t = 0, 1 ms ... 40 ms: not a mean over ten times as many.
    expected = np.mean((0.001 * np.arange(41) - 1.0) ** 2)
    assert [item.n_steps for item in found] == [10, 40] and found[1].value == pytest.approx(expected, rel=1e-9)


# --- priors and phases of experiments --------------------------------------------------------------------------------

OWN = [{"path": VELOCITY, "components": [0], "experiment": name} for name in ("one", "two")]
BOTH = [{"name": "one"}, {"name": "two"}]


def prior(parameter, **more):
    return [*SCENE["objective"], {"type": "prior", "parameter": parameter, "mean": 0.0, "sigma": 0.1, **more}]


@pytest.mark.parametrize(
    ("name", "acting"), [(VELOCITY, [1, 1]), (f"{VELOCITY}@one", [1, 0]), (f"{VELOCITY}@two", [0, 1])]
)
def test_prior_on_a_parameter_of_every_experiment(name, acting):
    problem = scene(objective=prior(name), experiments=BOTH, parameters=OWN).inverse_problem()
    x = np.array([0.7, 0.4])
    value, gradient = problem.value_and_grad(x)
    data = ((0.1 * x - 1) ** 2).sum()
    assert value == pytest.approx(data + (np.array(acting) * (x / 0.1) ** 2).sum(), rel=1e-12)
    assert gradient == pytest.approx(0.2 * (0.1 * x - 1) + np.array(acting) * 200 * x, rel=1e-9)
    rho, jacobian = problem.residuals_and_jacobian(x)
    assert rho @ rho == pytest.approx(value) and 2 * jacobian.transposed(rho) == pytest.approx(gradient)
    found = problem.optimize()
    expected = [0.1 / (0.01 + 100 * on) for on in acting]
    assert problem.values(found.x) == pytest.approx(expected, rel=1e-5)


def test_prior_on_entries_that_are_parameters_each():
    parameters = [{"path": VELOCITY, "components": [k]} for k in (2, 0)]
    problem = scene(objective=prior(VELOCITY), parameters=parameters).inverse_problem()
    assert problem.value(np.array([0.3, 0.5]))[0] == pytest.approx(0.95**2 + 9 + 25)


@pytest.mark.parametrize("name", [f"{VELOCITY}@three", "bodies.q.velocity@one", f"{VELOCITY}@"])
def test_names_of_no_parameter(name):
    with pytest.raises(InputError, match="there is no entry of `parameters` of that name"):
        scene(objective=prior(name), experiments=BOTH, parameters=OWN)
    with pytest.raises(InputError, match="there is no entry of `parameters` of that name"):
        scene(experiments=BOTH, parameters=OWN, optimizer={"phases": [{"name": "a", "parameters": [name]}]})


@pytest.mark.parametrize(
    ("names", "free"),
    [
        (["bodies.q.velocity"], [0, 1, 2, 3, 4, 5]),
        (["bodies.p.velocity@one"], [0, 1, 2]),
        (["bodies.q.velocity@two"], [3, 4, 5]),
        (["bodies.p.velocity@two", "bodies.q.velocity@one"], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_phase_names_the_second_of_shared_paths(names, free):
    paths = ["bodies.p.velocity", "bodies.q.velocity"]
    parameters = [{"paths": paths, "experiment": name} for name in ("one", "two")]
    phases = [{"name": "a", "parameters": names}]
    problem, optimizer = check_optimization(
        scene(experiments=BOTH, parameters=parameters, optimizer={"phases": phases})
    )
    assert problem.index_of(optimizer.phases[0].parameters).tolist() == free
    found = problem.optimize()
    moved = np.flatnonzero(found.x != problem.x0)
    assert moved.tolist() == [i for i in free if i % 3 == 0]


# --- displacements and clocks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "more"),
    [(0.0, {"crop": [0.05, 0.1]}), (0.05, {}), (0.0, {"crop": [0.0537, 0.1], "time_offset": 0.0021})],
    ids=["crop", "late start", "between steps"],
)
def test_displacements_count_from_the_first_frame(tmp_path, start, more):
    """On both sides: the recorded velocity is found."""
    raw = recorded(tmp_path, velocity=0.8, start=start, displacement=True, **more)
    problem = scene(**raw).inverse_problem()
    found = problem.optimize()
    assert problem.values(found.x)[0] == pytest.approx(0.8, rel=1e-6)
    assert problem.value(found.x)[0] < 1e-12


@pytest.mark.parametrize("method", ["l-bfgs-b", "gauss-newton"])
@pytest.mark.parametrize("velocity", [1.0, -1.0], ids=["fits", "never fits"])
def test_a_clock_is_not_paid_for_losing_frames(tmp_path, method, velocity, caplog):
    """Frames beyond the run keep their weight: the true offset is found, and a wrong motion stays wrong."""
    raw = recorded(tmp_path, time_offset=0.1)
    raw["time"] = {"dt": 0.01, "duration": 0.2}
    raw["bodies"] = {**SCENE["bodies"], "p": {**SCENE["bodies"]["p"], "velocity": [velocity, 0, 0]}}
    raw["parameters"] = [{"path": "recording.time_offset", "scale": 0.01}]
    raw["optimizer"] = {"method": method}
    problem = scene(**raw).inverse_problem()
    lowest = 0.0 if velocity == 1.0 else np.var(2.0 * np.arange(0.1, 0.301, 0.01))
    for offset in np.linspace(-1.0, 1.0, 21):
        t = np.arange(0.1, 0.301, 0.01)
        expected = np.mean((velocity * (t - offset) - t) ** 2)
        assert problem.value(np.array([offset / 0.01]))[0] == pytest.approx(expected, rel=1e-9, abs=1e-20)
    with caplog.at_level(logging.WARNING):
        result = optimize_scene(scene(**raw), RunFolder(tmp_path / "run"))
    assert result["objective"]["end"] == pytest.approx(lowest, rel=1e-6, abs=1e-12)
    offset = result["parameters"]["recording.time_offset"]["value"]
    assert offset == pytest.approx(0.0 if velocity == 1.0 else 0.4, abs=1e-6)
    assert result["experiments"]["scene"]["fit"]["frames_outside"] == (9 if velocity == 1.0 else 21)
    assert "longer time.duration" in caplog.text
    x = problem.design.inverse(np.array([0.0371]))
    _, gradient = problem.value_and_grad(x)
    h = 1e-3
    ends = [problem.value(x + s * h)[0] for s in (1, -1)]
    assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(gradient[0], rel=1e-6)
    rho, jacobian = problem.residuals_and_jacobian(x)
    assert 2 * jacobian.transposed(rho) == pytest.approx(gradient, rel=1e-9)


def test_screen_and_folder_show_every_experiment(tmp_path):
    """From the command line: a line of the fit, a section and a picture of each take."""
    raw = recorded(tmp_path, velocity=0.2)
    takes = [{"name": "short"}, {"name": "take 2", "overrides": {"time.duration": 0.3}}]
    (tmp_path / "scene.json").write_text(json.dumps({**SCENE, **raw, "experiments": takes}))
    run = tmp_path / "run"
    done = CliRunner().invoke(cli, ["optimize", str(tmp_path / "scene.json"), "-o", str(run)])
    assert done.exit_code == 0, done.output
    again = CliRunner().invoke(cli, ["info", str(run)])
    for text in (done.output, again.output):
        assert "markers of short: rms" in text and "over 11 samples" in text
        assert "markers of take 2: rms" in text and "over 31 samples" in text
    report = (run / "report.md").read_text()
    assert "### Experiment short" in report and "### Experiment take 2" in report
    assert (run / "markers.png").is_file() and (run / "markers_take 2.png").is_file()
