"""Residuals and their Jacobian against value and gradient; Levenberg-Marquardt's rules."""

import numpy as np
import pytest
from inverse.test_problem import BODY, SCENE, TWO, VELOCITY, YOUNG, problem_of, touched

from add.errors import InputError, SolverError
from add.inverse import LBFGSB, LevenbergMarquardt, LoggedEvaluation, MemoryLog, Phase
from add.objectives import Objective, Proximity, Smoothness, WeightedSum
from add.scene import scene_from_dict

PARAMETERS = [
    {"path": YOUNG, "transform": "log"},
    {"path": "contact.friction", "transform": "log"},
    {"path": VELOCITY},
    {"path": "bodies.box.orientation"},
]
HAND = {"type": "control", "basis": "cubic", "rows": 6, "values": [[0, 0, 0.02 * k] for k in range(6)]}
STICKS = {
    **BODY,
    "pins": [{"where": {"box": {"max": [-0.04, None, None]}}, "motion": {"signal": "hand"}}],
    "velocity": [0, 0, 0],
    "angular_velocity": [0, 0, 0],
}
CONTROLLED = {
    **SCENE,
    "bodies": {"box": {**STICKS, "position": [0, 0, 0.05]}},
    "signals": {"hand": HAND},
    "markers": {"top": SCENE["markers"]["top"]},
    "objective": [
        {"type": "pose", "body": "box", "translation": [0.02, 0, 0.06], "time": "end", "weight": 3.0},
        {"type": "point", "marker": "top", "target": [0, 0, 0.1], "window": [0.02, 0.04], "axes": "xz"},
        {"type": "smoothness", "signal": "hand", "weight": 0.2},
        {"type": "proximity", "signal": "hand", "weight": 0.1, "value": [0.01, 0, 0]},
        {"type": "prior", "parameter": YOUNG, "mean": 1e4, "sigma": 5e3, "weight": 1e-4},
    ],
    "parameters": [{"path": "signals.hand.values", "scale": 0.1}, {"path": YOUNG, "transform": "log"}],
}


def controlled(**sections):
    return scene_from_dict({**CONTROLLED, **sections}).inverse_problem()


def consistent(problem, x, window=None):
    rho, jacobian = problem.residuals_and_jacobian(x, window=window)
    value, gradient = problem.value_and_grad(x, window=window)
    assert rho @ rho == pytest.approx(value, rel=1e-12)
    slope = 2.0 * jacobian.transposed(rho)
    assert slope == pytest.approx(gradient, rel=1e-10, abs=1e-10 * np.abs(gradient).max())
    return rho, jacobian


@pytest.mark.parametrize(
    "make",
    [
        lambda: (problem_of(parameters=PARAMETERS), None),
        lambda: (problem_of(parameters=PARAMETERS), (0.0, 0.03)),
        lambda: (problem_of(parameters=PARAMETERS, experiments=TWO), None),
        lambda: (controlled(), None),
    ],
    ids=["contact", "window", "experiments", "control"],
)
def test_jacobian_of_residuals(make, rng):
    problem, window = make()
    x = problem.x0 * (1.0 + 0.01 * rng.normal(size=problem.n))
    rho, jacobian = consistent(problem, x, window)
    assert jacobian.shape == (rho.size, problem.n)
    columns = jacobian.array()
    replay = {name: run.replay for name, run in problem.residuals(x, window=window).runs.items()}
    for i in range(problem.n):
        d = np.zeros(problem.n)
        d[i] = 1e-5 * max(abs(x[i]), 0.1)
        ends = [problem.residuals(x + s * d, window=window, replay=replay).rho for s in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * d[i])
        assert columns[:, i] == pytest.approx(slope, rel=1e-5, abs=1e-6 * np.abs(columns).max())


def test_an_experiment_that_no_number_moves(tmp_path):
    """All numbers of the fit belong to the other one: its tracked points have residuals and no derivatives."""
    recording = tmp_path / "ball.csv"
    recording.write_text("time_s,m_x_m,m_y_m,m_z_m\n0.01,0,0,0.2\n0.03,0,0,0.1\n")
    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.05}, "density": 500, "position": [0, 0, 0.3]}
    problem = scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.005, "steps": 8},
            "bodies": {"ball": ball},
            "markers": {"m": {"body": "ball", "point": [0, 0, 0]}},
            "recording": {"file": str(recording), "markers": {"m": "m"}},
            "experiments": [{"name": "one"}, {"name": "two"}],
            "parameters": [{"path": "bodies.ball.velocity", "experiment": "two"}],
            "objective": [{"type": "markers"}],
        }
    ).inverse_problem()
    rho, jacobian = consistent(problem, problem.x0)
    moved = [jacobian.transposed(row).any() for row in np.eye(rho.size)]
    assert rho.size == 12 and sum(moved) == 6


def test_contact_is_there():
    problem = problem_of(parameters=PARAMETERS)
    counts = touched(problem, problem.x0)
    assert counts["sticking"] > 0 and counts["slipping"] > 0


def test_parts_of_the_jacobian(rng):
    """Products, normal matrix, and a part of the variables."""
    problem = controlled()
    point = problem.residuals(problem.x0)
    whole = problem.jacobian(point)
    array = whole.array()
    assert whole.sparse.shape[0] == 15 + 18 + 1 and whole.sparse.nnz == 2 * 15 + 18 + 1
    u, v = rng.normal(size=array.shape[0]), rng.normal(size=array.shape[1])
    assert whole.product(v) == pytest.approx(array @ v, rel=1e-12, abs=1e-15)
    assert whole.transposed(u) == pytest.approx(array.T @ u, rel=1e-12, abs=1e-13)
    assert whole.normal() == pytest.approx(array.T @ array, rel=1e-12, abs=1e-15)
    free = np.array([18, 2, 5])
    assert problem.jacobian(point, free).array() == pytest.approx(array[:, free], rel=1e-9, abs=1e-12)


def test_regularisers_are_what_they_say():
    table = np.array([[4, 1], [0, 3], [2, 5]])
    theta = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    assert Smoothness(table).parameter_value(theta) == pytest.approx(15**2 + 6**2 + 3**2 + 24**2)
    near = Proximity(table, np.array([1.0, 2.0]))
    assert near.parameter_value(theta) == pytest.approx(15**2 + 0 + 0 + 6**2 + 3**2 + 30**2)
    for part in (Smoothness(table), near):
        bar = np.zeros(6)
        part.parameter_gradient(theta, bar)
        for i in range(6):
            d = 0.5 * np.eye(6)[i]
            slope = part.parameter_value(theta + d) - part.parameter_value(theta - d)
            assert bar[i] == pytest.approx(slope, rel=1e-12)


def test_not_a_sum_of_squares():
    class Odd(Objective):
        def step_value(self, state, theta):
            return 0.0

        def step_pullback(self, state, theta, state_bar, theta_bar):
            pass

    with pytest.raises(TypeError, match="Odd is not a sum of squares"):
        WeightedSum((1.0,), (Odd(),)).as_squares()


# --- Levenberg-Marquardt ---------------------------------------------------------------------------------------------


def phases(problem, n=40, names=None):
    end = max(e.simulation.n_steps * e.simulation.stepper.dt for e in problem.experiments)
    return (Phase("all", names, (0.0, end), n),)


def test_minimum_is_that_of_lbfgsb():
    problem = controlled()
    damped = LevenbergMarquardt(phases(problem)).run(problem)
    slow = LBFGSB(phases(problem, 400)).run(problem)
    assert damped.phases[0].success
    assert damped.value <= slow.value * (1.0 + 1e-8)
    assert damped.evaluations < 20 < slow.evaluations
    assert np.abs(damped.gradient).max() < 1e-5 * damped.phases[0].start
    assert damped.value == pytest.approx(problem.value(damped.x)[0], rel=1e-12)


def test_bounds_hold():
    bounded = [{"path": "signals.hand.values", "scale": 0.1, "bounds": [-0.005, 0.011]}]
    start = {"hand": {**HAND, "values": [[0, 0, 0.01]]}}
    objective = CONTROLLED["objective"][:4]
    problem = controlled(parameters=bounded, signals=start, objective=objective)
    found = LevenbergMarquardt(phases(problem)).run(problem)
    lower, upper = problem.bounds
    at_lower, at_upper = found.x == lower, found.x == upper
    assert (found.x >= lower).all() and (found.x <= upper).all()
    assert (at_lower | at_upper).any() and not (at_lower | at_upper).all()
    # First-order conditions: no slope inside, and on a bound only into it.
    _, gradient = problem.value_and_grad(found.x)
    size = found.phases[0].start
    assert np.abs(gradient[~at_lower & ~at_upper]).max() < 1e-5 * size
    assert (gradient[at_lower] > -1e-5 * size).all() and (gradient[at_upper] < 1e-5 * size).all()
    slow = LBFGSB(phases(problem, 400)).run(problem)
    assert found.value <= slow.value * (1.0 + 1e-8)


def test_phase_frees_some_only():
    problem = controlled()
    found = LevenbergMarquardt(phases(problem, 5, (YOUNG,))).run(problem)
    assert np.array_equal(found.x[:-1], problem.x0[:-1]) and found.x[-1] != problem.x0[-1]
    assert not found.gradient[:-1].any()


def test_limit_and_log():
    problem = controlled()
    log, seen = MemoryLog(), []
    found = LevenbergMarquardt(phases(problem, 3)).run(problem, log=log, progress=lambda e, best: seen.append(best))
    assert found.evaluations == len(log.evaluations) == len(seen) == 3
    assert not found.phases[0].success and "limit" in found.phases[0].status
    assert [e.index for e in log.evaluations] == [0, 1, 2]
    accepted = [e for e in log.evaluations if e.memory[0]]
    assert [e.value for e in accepted] == sorted((e.value for e in accepted), reverse=True)
    assert found.value == accepted[-1].value


class Interrupted(MemoryLog):
    """A log that was kept from another run."""

    def __init__(self, kept):
        super().__init__()
        self.kept = kept

    def earlier(self, phase, index, x):
        return [e for e in self.kept[index:] if e.phase == phase]

    def store(self, evaluation):
        if evaluation.index < len(self.kept):
            logged = self.kept[evaluation.index]
            assert (evaluation.value, evaluation.memory) == (logged.value, logged.memory)
            assert np.array_equal(evaluation.gradient, logged.gradient)
        else:
            super().store(evaluation)


def same(one: LoggedEvaluation, two: LoggedEvaluation) -> bool:
    parts = (one.index, one.value, one.memory) == (two.index, two.value, two.memory)
    return parts and np.array_equal(one.x, two.x) and np.array_equal(one.gradient, two.gradient)


def test_resumed_anywhere_it_ends_bit_equal():
    """Also behind steps that failed, which a large first step makes sure of, and before such as do not."""
    problem = problem_of(parameters=PARAMETERS)
    optimizer = LevenbergMarquardt(phases(problem, 6), damping=1e-4)
    log = MemoryLog()
    whole = optimizer.run(problem, log=log)
    assert any(not e.memory[0] for e in log.evaluations)
    failed = [n + 1 for n, e in enumerate(log.evaluations) if not e.memory[0]]
    n = len(log.evaluations)
    for kept in sorted({1, *failed[:2], n // 2, n - 1, n}):
        again = Interrupted(log.evaluations[:kept])
        found = optimizer.run(problem, log=again)
        assert all(same(a, b) for a, b in zip(again.evaluations, log.evaluations[kept:], strict=True))
        assert np.array_equal(found.x, whole.x) and found.phases == whole.phases


def test_failed_simulation_is_a_bad_step():
    """A start at which nothing runs is an error; later failures only shorten the step."""
    problem = controlled()
    n_calls = 0
    from add.inverse.problem import InverseProblem

    real = InverseProblem.residuals

    def fragile(self, x, **options):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 2:
            raise SolverError("inverted element")
        return real(self, x, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InverseProblem, "residuals", fragile)
        log = MemoryLog()
        found = LevenbergMarquardt(phases(problem)).run(problem, log=log)
    assert np.isinf(log.evaluations[1].value) and not log.evaluations[1].gradient.size
    assert found.phases[0].success and found.value < 0.1 * found.phases[0].start

    def broken(self, x, **options):
        raise SolverError("nothing runs")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InverseProblem, "residuals", broken)
        with pytest.raises(SolverError, match="nothing runs"):
            LevenbergMarquardt(phases(problem)).run(problem)


# --- the scene format ------------------------------------------------------------------------------------------------


def test_method_of_the_scene():
    scene = scene_from_dict({**CONTROLLED, "optimizer": {"method": "gauss-newton", "damping": 0.1}})
    assert scene.build_optimizer() == LevenbergMarquardt((Phase("all", None, None, 100),), 0.1)
    assert isinstance(scene_from_dict(CONTROLLED).build_optimizer(), LBFGSB)


@pytest.mark.parametrize(
    ("objective", "place"),
    [
        ({"type": "smoothness", "signal": "head"}, "objective.0.signal"),
        ({"type": "proximity", "signal": "still"}, "objective.0.signal"),
        ({"type": "smoothness", "signal": "idle"}, "objective.0.signal"),
        ({"type": "proximity", "signal": "hand", "value": 1.0}, "objective.0.value"),
    ],
)
def test_regulariser_that_does_not_fit(objective, place):
    signals = {"hand": HAND, "idle": HAND, "still": {"type": "constant", "value": [0, 0, 0]}}
    with pytest.raises(InputError) as error:
        controlled(signals=signals, objective=[objective, *CONTROLLED["objective"][:1]], parameters=[{"path": YOUNG}])
    assert error.value.place == place
