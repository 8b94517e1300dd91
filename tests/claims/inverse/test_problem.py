"""The inverse problem: value and gradient through parameters, experiments, priors and phases; the optimiser's rules."""

import numpy as np
import pytest

from add.adjoint import Checkpoints
from add.commands.evaluation_log import FolderLog
from add.errors import InputError, SolverError
from add.inverse import LBFGSB, MemoryLog, Phase
from add.io.runfolder import RunFolder
from add.mocap import Recording, write_csv
from add.scene import scene_from_dict

BODY = {
    "type": "soft",
    "mesh": {"shape": "box", "size": [0.1, 0.08, 0.06], "divisions": [1, 1, 1]},
    "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 200, "viscosity": 2},
    "position": [0, 0, 0.034],
    "velocity": [0.5, 0.1, -0.4],
    "angular_velocity": [1.0, 2.0, 0.5],
}
#: Sticks where the first body slips.
SLOW = {"position": [0.3, 0, 0.031], "velocity": [0.02, 0, -0.4], "angular_velocity": [0, 0, 0]}
SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.005, "steps": 10, "newton": {"atol": 1e-13, "rtol": 0}},
    "bodies": {"box": BODY, "other": {**BODY, **SLOW}},
    "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
    "contact": {"stiffness": 2e3, "friction": 0.3, "damping": 0.5, "damping_ramp": 0.001},
    "markers": {"top": {"body": "box", "point": [0, 0, 0.03]}, "far": {"body": "other", "point": [0.05, 0, 0]}},
    "objective": [
        {"type": "point", "marker": "top", "target": [0.1, 0, 0.1], "time": "end"},
        {"type": "point", "marker": "far", "target": [0.4, 0, 0.1], "window": [0.01, 0.04], "weight": 2.0},
    ],
}
YOUNG, VELOCITY = "bodies.box.material.young", "bodies.box.velocity"
TWO = [
    {"name": "slow", "overrides": {"bodies.box.angular_velocity": [0.0, 0.0, 0.0]}},
    {"name": "light", "overrides": {"bodies.other.material.density": 120, "gravity": [0, 0, -5.0]}},
]


def problem_of(folder=".", **sections):
    return scene_from_dict({**SCENE, **sections}, folder=folder).inverse_problem()


def check(problem, x, *, window=None, rtol=1e-6):
    """The gradient against central differences on which all decisions are held; return value and gradient."""
    value, gradient = problem.value_and_grad(x, window=window)
    plain, runs = problem.value(x, window=window)
    assert plain == pytest.approx(value, rel=1e-12)
    replay = {name: run.replay for name, run in runs.items()}
    found = np.zeros(problem.n)
    for i in range(problem.n):
        errors = []
        for h in (1e-4, 1e-5):
            d = np.zeros(problem.n)
            d[i] = h * max(abs(x[i]), 0.1)
            ends = [problem.value(x + s * d, window=window, replay=replay)[0] for s in (1, -1)]
            errors.append((ends[0] - ends[1]) / (2 * d[i]))
        found[i] = min(errors, key=lambda f: abs(f - gradient[i]))
    size = np.abs(gradient).max()
    assert size > 0
    assert found == pytest.approx(gradient, rel=rtol, abs=rtol * size)
    return value, gradient


def touched(problem, x):
    """Contacts that stick and slip over all runs: a gradient without them would prove little."""
    counts = {"sticking": 0, "slipping": 0}
    _, runs = problem.value(x)
    for experiment in problem.experiments:
        contact, *_ = experiment.simulation.system.deciding  # on the floor; the two meet by their meshes, never here
        for record in runs[experiment.name].records:
            for key, n in contact.describe(record.decisions[0]).items():
                counts[key] = counts.get(key, 0) + n
    return counts


# --- gradients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", ["linear", "log", "softplus"])
def test_transforms(transform):
    """d phi / d x through a transform is d phi / d p times its slope."""
    parameters = [
        {"path": YOUNG, "transform": transform, "scale": 1.0 if transform == "log" else 1e4},
        {"path": "contact.friction", "transform": transform},
        {"path": "bodies.box.material.poisson", "transform": transform},
    ]
    problem = problem_of(parameters=parameters)
    counts = touched(problem, problem.x0)
    assert counts["sticking"] > 0 and counts["slipping"] > 0
    assert problem.values(problem.x0) == pytest.approx([2e4, 0.3, 0.3], rel=1e-12)
    _, gradient = check(problem, problem.x0)
    linear = problem_of(parameters=[{"path": p["path"], "scale": 1.0} for p in parameters])
    _, by_value = linear.value_and_grad(linear.x0)
    slopes = problem.design.pushforward(problem.x0, np.ones(3))
    assert gradient == pytest.approx(by_value * slopes, rel=1e-9)


def test_default_scale_is_the_size_of_the_start():
    problem = problem_of(parameters=[{"path": VELOCITY}, {"path": YOUNG, "transform": "log"}, {"path": "gravity"}])
    assert problem.labels()[:4] == [f"{VELOCITY}[0]", f"{VELOCITY}[1]", f"{VELOCITY}[2]", YOUNG]
    assert problem.units() == ["m/s"] * 3 + ["Pa"] + ["m/s^2"] * 3
    assert problem.x0 == pytest.approx([1.0, 0.2, -0.8, np.log(2e4), 0, 0, -1])


def test_shared_paths():
    """Two paths, one value: the gradient is the sum."""
    paths = [YOUNG, "bodies.other.material.young"]
    shared = problem_of(parameters=[{"paths": paths, "transform": "log"}])
    assert (shared.n, shared.labels()) == (1, ["+".join(paths)])
    _, gradient = check(shared, shared.x0)
    apart = problem_of(parameters=[{"path": path, "transform": "log"} for path in paths])
    _, parts = apart.value_and_grad(apart.x0)
    assert (np.abs(parts) > 0).all()
    assert gradient[0] == pytest.approx(parts.sum(), rel=1e-12)
    vectors = problem_of(parameters=[{"paths": [VELOCITY, "bodies.other.velocity"], "start": [0.3, 0.1, -0.4]}])
    check(vectors, vectors.x0)


def test_components():
    """Only the chosen entries are free; the others keep the scene's values."""
    some = problem_of(parameters=[{"path": VELOCITY, "components": [2, 0], "start": [-0.3, 0.6], "scale": 1.0}])
    assert some.x0.tolist() == [-0.3, 0.6]
    (experiment,) = some.experiments
    layout = experiment.simulation.system.parameters
    assert layout.view(some.theta(some.x0, experiment), VELOCITY).tolist() == [0.6, 0.1, -0.3]
    _, gradient = check(some, some.x0)
    entries = problem_of(parameters=[{"path": f"{VELOCITY}.2", "start": -0.3}, {"path": f"{VELOCITY}.0", "start": 0.6}])
    assert entries.values(entries.x0).tolist() == [-0.3, 0.6]
    _, other = entries.value_and_grad(entries.x0)
    assert other / entries.design.scale == pytest.approx(gradient, rel=1e-9)


def test_two_experiments_share_x():
    """The gradient of a shared parameter is the sum over the experiments."""
    parameters = [{"path": YOUNG, "transform": "log"}, {"path": "contact.friction", "transform": "log"}]
    both = problem_of(experiments=TWO, parameters=parameters)
    assert [e.name for e in both.experiments] == ["slow", "light"]
    value, gradient = check(both, both.x0)
    alone = [problem_of(experiments=[item], parameters=parameters) for item in TWO]
    parts = [p.value_and_grad(p.x0) for p in alone]
    assert value == pytest.approx(parts[0][0] + parts[1][0], rel=1e-13)
    assert gradient == pytest.approx(parts[0][1] + parts[1][1], rel=1e-12)
    assert both.evaluate(both.x0).parts == pytest.approx({"slow": parts[0][0], "light": parts[1][0]}, rel=1e-13)


def test_parameters_of_one_experiment():
    """A parameter of one experiment leaves the other alone."""
    parameters = [
        {"path": VELOCITY, "components": [0], "experiment": "slow", "start": 0.4},
        {"path": VELOCITY, "components": [0], "experiment": "light", "start": 0.7},
        {"path": YOUNG, "transform": "log"},
    ]
    problem = problem_of(experiments=TWO, parameters=parameters)
    assert problem.labels() == [f"{VELOCITY}@slow", f"{VELOCITY}@light", YOUNG]
    check(problem, problem.x0)
    before = problem.evaluate(problem.x0).parts
    moved = problem.x0.copy()
    moved[1] *= 1.5
    after = problem.evaluate(moved).parts
    assert after["slow"] == before["slow"] and after["light"] != before["light"]
    assert problem.index_of((f"{VELOCITY}@light",)).tolist() == [1]
    assert problem.index_of((VELOCITY,)).tolist() == [0, 1]
    assert problem.index_of((YOUNG,)).tolist() == [2]
    assert problem.index_of(None).tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="no such parameter"):
        problem.index_of(("gravity",))


def test_priors():
    """((p - mean) / sigma)^2 of the physical value, through the transform, summed over components."""
    objective = [
        *SCENE["objective"],
        {"type": "prior", "parameter": YOUNG, "mean": 1.5e4, "sigma": 2e3, "weight": 0.01},
        {"type": "prior", "parameter": VELOCITY, "mean": 0.1, "sigma": 0.2, "weight": 0.5},
    ]
    parameters = [{"path": YOUNG, "transform": "log"}, {"path": VELOCITY, "components": [0, 2]}]
    problem = problem_of(objective=objective, parameters=parameters)
    value, gradient = check(problem, problem.x0)
    without = problem_of(parameters=parameters)
    plain, slope = without.value_and_grad(without.x0)
    prior = 0.01 * 2.5**2 + 0.5 * ((0.4 / 0.2) ** 2 + (0.5 / 0.2) ** 2)
    assert value - plain == pytest.approx(prior)
    more = np.array([0.01 * 2 * 2.5 / 2e3 * 2e4, 0.5 * 2 * 0.4 / 0.04 * 0.5, -0.5 * 2 * 0.5 / 0.04 * 0.5])
    assert gradient - slope == pytest.approx(more)
    # a prior counts once, however many experiments there are
    both = problem_of(objective=objective, parameters=parameters, experiments=TWO)
    result = both.evaluate(both.x0)
    assert result.value - sum(result.parts.values()) == pytest.approx(prior)
    check(both, both.x0)


def test_schedules_agree():
    problem = problem_of(parameters=[{"path": VELOCITY}, {"path": "contact.friction"}])
    value, gradient = problem.value_and_grad(problem.x0)
    again = problem.value_and_grad(problem.x0, schedule=Checkpoints())
    assert again[0] == value and np.array_equal(again[1], gradient)


# --- windows ---------------------------------------------------------------------------------------------------------


def record(folder, seed=2):
    times = np.arange(0.0, 0.051, 0.0043)
    frames = np.random.default_rng(seed).normal(size=(times.size, 1, 3)) * 0.02 + np.array([0.02, 0, 0.06])
    write_csv(folder / "r.csv", Recording(("T",), times, frames, np.ones((times.size, 1), bool), ""))
    return {"recording": {"file": "r.csv", "markers": {"T": "top"}}, "objective": [{"type": "markers"}]}


@pytest.mark.parametrize("window", [(0.0, 0.02), (0.012, 0.031), (0.03, 0.05), (0.0, 0.05)])
def test_windows(tmp_path, window):
    """A window ends the run, leaves out frames outside, and stays a mean."""
    parameters = [{"path": VELOCITY}, {"path": YOUNG, "transform": "log"}]
    problem = problem_of(tmp_path, **record(tmp_path), parameters=parameters)
    value, _ = check(problem, problem.x0, window=window)
    found, runs = problem.value(problem.x0, window=window)
    assert runs["scene"].n_steps == int(np.ceil(window[1] / 0.005 - 1e-9))
    (experiment,) = problem.experiments
    times, marks = experiment.recording.times, experiment.recording.positions[:, 0]
    inside = (times >= window[0]) & (times <= window[1])
    _, whole = problem.value(problem.x0)
    tracking, residuals = experiment.objective.objectives[0], []
    for state in whole["scene"].states():
        for frame in tracking.frames(state, experiment.simulation.theta):
            if inside[frame]:
                residuals.append(tracking.observed(state, frame, experiment.simulation.theta)[0] - marks[frame])
    assert len(residuals) == inside.sum()
    assert value == found == pytest.approx((np.array(residuals) ** 2).sum(axis=1).mean(), rel=1e-9)


def test_empty_window_is_an_error(tmp_path):
    problem = problem_of(tmp_path, **record(tmp_path), parameters=[{"path": VELOCITY}])
    with pytest.raises(InputError, match="no target or recorded frame of experiment 'scene'"):
        problem.value(problem.x0, window=(0.001, 0.002))


# --- the optimiser ---------------------------------------------------------------------------------------------------


def test_phases(tmp_path):
    """Each phase starts from the best point before it and moves its own parameters only."""
    optimizer = {
        "max_evaluations": 5,
        "phases": [
            {"name": "first", "parameters": [VELOCITY], "end_time": 0.02, "max_evaluations": 3},
            {"name": "second", "parameters": [YOUNG]},
        ],
    }
    parameters = [{"path": VELOCITY}, {"path": YOUNG, "transform": "log", "bounds": [1e3, 1e5]}]
    problem = problem_of(tmp_path, **record(tmp_path), parameters=parameters, optimizer=optimizer)
    log, seen = MemoryLog(), []
    result = problem.optimize(log=log, progress=lambda evaluation, better: seen.append((evaluation, better)))
    first = [e for e in log.evaluations if e.phase == "first"]
    second = [e for e in log.evaluations if e.phase == "second"]
    assert [e.index for e in log.evaluations] == list(range(len(first) + len(second))) and first and second
    assert [e for e, _ in seen] == log.evaluations
    assert (first[0].x == problem.x0).all()
    assert all(e.x[3] == problem.x0[3] and e.gradient[3] == 0.0 for e in first)
    best = min(first, key=lambda e: e.value)
    assert (second[0].x == best.x).all()
    assert all((e.x[:3] == best.x[:3]).all() and (e.gradient[:3] == 0.0).all() for e in second)
    assert first[0].value == problem.value(problem.x0, window=(0.0, 0.02))[0]
    assert second[0].value == problem.value(best.x)[0]
    end = min(second, key=lambda e: e.value)
    assert (result.x == end.x).all() and result.value == end.value and result.evaluations == len(log.evaluations)
    assert [p.name for p in result.phases] == ["first", "second"]
    for phase, evaluations in zip(result.phases, (first, second), strict=True):
        assert (phase.start, phase.evaluations) == (evaluations[0].value, len(evaluations))
        assert phase.end == min(e.value for e in evaluations)
    assert len(first) <= 3 + 30


def test_bounds_hold():
    """No evaluation leaves the bounds, also through a transform and from a start on one of them."""
    parameters = [
        {"path": VELOCITY, "components": [0], "bounds": [0.45, 0.55]},
        {"path": "contact.friction", "transform": "log", "bounds": [0.3, 0.4]},
    ]
    problem = problem_of(parameters=parameters, optimizer={"max_evaluations": 6})
    log = MemoryLog()
    problem.optimize(log=log)
    lower, upper = problem.bounds
    assert all((lower <= e.x).all() and (e.x <= upper).all() for e in log.evaluations)
    values = np.array([problem.values(e.x) for e in log.evaluations])
    assert values.min(axis=0) == pytest.approx([values[:, 0].min(), 0.3], rel=1e-12)
    assert problem.values(lower) == pytest.approx([0.45, 0.3]) and problem.values(upper) == pytest.approx([0.55, 0.4])
    assert len(np.unique(values, axis=0)) > 1


class Bowl:
    """(x - 1)^2 + 30 (y - 1)^2, failing in places; not an `InverseProblem`, but asked like one."""

    n = 2
    x0 = np.array([0.2, 0.3])
    bounds = (np.full(2, -np.inf), np.full(2, np.inf))

    def __init__(self, fails):
        self.fails = fails

    def index_of(self, names):
        return np.arange(2)

    def labels(self):
        return ["x", "y"]

    def values(self, x):
        return x

    def value_and_grad(self, x, **options):
        if self.fails(x):
            raise SolverError("step 3: no")
        scale = np.array([1.0, 30.0])
        return float(scale @ (x - 1.0) ** 2), 2.0 * scale * (x - 1.0)


def behind_the_wall(x):
    """The first step of the line search, of length one, ends there."""
    return x[1] > 1.2


OPTIMIZER = LBFGSB((Phase("all", None, (0.0, 1.0), 60),))


def test_failing_simulation_in_a_line_search(caplog):
    """A point at which the simulation fails is too high, not the end; the optimiser goes around it."""
    caplog.set_level("ERROR")
    log = MemoryLog()
    problem = Bowl(behind_the_wall)
    result = OPTIMIZER.run(problem, log=log)
    failed = [e for e in log.evaluations if np.isinf(e.value)]
    assert failed and all((e.gradient == 0.0).all() for e in failed)
    assert result.x == pytest.approx([1.0, 1.0], abs=1e-5)
    assert np.isfinite(result.value) and result.phases[0].success


def test_failure_at_the_start_is_an_error():
    with pytest.raises(SolverError, match="step 3"):
        OPTIMIZER.run(Bowl(lambda x: True))


def test_failed_evaluations_survive_in_the_log(tmp_path, caplog):
    """Infinity and every bit come back from the file, and a resumed run asks nothing twice but the last."""
    caplog.set_level("ERROR")
    problem = Bowl(behind_the_wall)
    first = OPTIMIZER.run(problem, log=FolderLog(RunFolder(tmp_path / "run"), problem, resume=False))
    asked = []
    problem = Bowl(lambda x: asked.append(x) or behind_the_wall(x))
    log = FolderLog(RunFolder(tmp_path / "run", create=False), problem, resume=True)
    again = OPTIMIZER.run(problem, log=log)
    assert len(asked) == 1 and log.replayed == first.evaluations
    assert (again.x == first.x).all() and again.value == first.value and again.phases == first.phases


def test_failing_scene_in_a_line_search(caplog):
    """The same with a scene: damping that begins with a jump leaves the step of a first touch without a solution."""
    caplog.set_level("ERROR")
    still = {**BODY, "position": [0, 0, 0.04], "velocity": [0, 0, 0.5], "angular_velocity": [0, 0, 0]}
    problem = problem_of(
        time={"dt": 0.005, "steps": 6, "newton": {"max_iterations": 2}},
        contact={"stiffness": 1e4, "friction": 0.3, "damping": 1e5},
        bodies={"box": still},
        markers={"top": SCENE["markers"]["top"]},
        objective=[{"type": "point", "marker": "top", "target": [0, 0, 0.063], "time": "end"}],
        parameters=[{"path": VELOCITY, "components": [2], "scale": 1.0}],
    )
    assert touched(problem, problem.x0)["touching"] == 0
    with pytest.raises(SolverError, match="worst dof box/node"):
        problem.value_and_grad(problem.x0 - 1.0)
    log = MemoryLog()
    result = problem.optimize(log=log)
    assert any(np.isinf(e.value) for e in log.evaluations)
    assert result.value < 1e-10


def test_a_problem_without_optimizer_says_so():
    problem = problem_of(parameters=[{"path": VELOCITY}])
    from add.inverse import InverseProblem

    with pytest.raises(InputError, match="without an optimiser"):
        InverseProblem(problem.experiments, problem.parameters).optimize()
