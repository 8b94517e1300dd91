"""iLQR and multiple shooting: against dense solutions of linear problems, the adjoint's gradient, and swing-ups."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from support.places import SCENES

import add
from add.control import ILQR, ControlProblem, CoordinateCost, MultipleShooting
from add.control.costs import difference, minimise_in_box, moved
from add.equations.charts import Twists
from add.equations.kinematics import State
from add.errors import InputError
from add.inverse import InverseProblem
from scripts.swing_ups import LENGTH, by_stages

NOTHING = {"points": False, "shape": False}


def block(rows: int = 12, steps: int = 24, basis: str = "constant", integrator: str = "bdf2", **more) -> InverseProblem:
    """A block on a spring that is to be at two places at two times: linear."""
    objective = [
        {"type": "point", "marker": "centre", "target": [0.1, 0, 0.02], "time": 0.12},
        {"type": "point", "marker": "centre", "target": [0.3, 0, 0], "window": [0.2, 0.24], "weight": 2.0},
        {"type": "proximity", "signal": "push", "value": [0, 0, 0], "weight": 1e-5},
    ]
    return add.scene_from_dict({
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": steps, "integrator": integrator, "newton": {"atol": 1e-12, "rtol": 0}},
        "gravity": [0, 0, -1],
        "bodies": {"cart": {"type": "rigid", "geometry": {"shape": "box", "size": [0.2, 0.1, 0.1]}, "mass": 0.5,
                            "collision": NOTHING, "velocity": [0.2, 0, 0]}},
        "signals": {"push": {"type": "control", "basis": basis, "rows": rows, "values": [[0, 0, 0]] * rows}},
        "couplings": {"motor": {"type": "force", "on": {"body": "cart", "at": [0, 0, 0]}, "force": {"signal": "push"}}},
        "markers": {"centre": {"body": "cart", "point": [0, 0, 0]}},
        "objective": more.pop("objective", objective),
        "parameters": [{"path": "signals.push.values", "scale": 2.0, **more}],
    }).inverse_problem()  # fmt: skip


def dense(problem: InverseProblem) -> np.ndarray:
    """The solution of a linear problem, from the Jacobian of its whole run."""
    x0 = problem.x0
    rho, jacobian = problem.residuals_and_jacobian(x0)
    lower, upper = problem.bounds
    return x0 + lsq_linear(jacobian.array(), -rho, (lower - x0, upper - x0), tol=1e-14).x


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
@pytest.mark.parametrize("rows", [24, 8], ids=["one-step-stages", "three-step-stages"])
def test_linear_problems_take_one_iteration(rows: int, integrator: str) -> None:
    problem = block(rows, integrator=integrator)
    found = ILQR(max_iterations=3, regularisation=0.0).run(ControlProblem(problem))
    assert len(found.stages) == rows and all(index.size == 3 for index in found.stages)
    assert found.converged and found.iterations[0].share == 1.0
    assert found.iterations[0].decrease == pytest.approx(found.iterations[0].expected, rel=1e-6)
    wanted = dense(problem)
    assert found.x == pytest.approx(wanted, abs=1e-6 * np.abs(wanted).max())
    value, gradient = problem.value_and_grad(found.x)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert np.abs(gradient).max() < 1e-8


@pytest.mark.parametrize("mu", [1e-6, 1e-3])
def test_a_step_is_levenberg_marquardts(mu: float) -> None:
    """A goal at the end that the last stage reaches alone: all stages share the step, as of the Jacobian of the run."""
    goal = [{"type": "point", "marker": "centre", "target": [0.3, 0, 0.05], "time": "end"}]
    problem = block(8, objective=goal)
    found = ILQR(max_iterations=1, regularisation=mu).run(ControlProblem(problem))
    rho, jacobian = problem.residuals_and_jacobian(problem.x0)
    root = jacobian.array()
    wanted = -np.linalg.solve(2.0 * root.T @ root + mu * np.eye(problem.n), 2.0 * root.T @ rho)
    assert found.x - problem.x0 == pytest.approx(wanted, abs=1e-6 * np.abs(wanted).max())
    last = np.linalg.matrix_rank(root[:, -3:])
    assert last == rho.size, "the last stage could do it alone"
    assert np.linalg.norm(wanted[-3:]) < 0.3 * np.linalg.norm(wanted)


def test_limits_are_kept() -> None:
    problem = block(24, bounds=[-4.0, 4.0])
    free = dense(block(24))
    assert np.abs(2.0 * free).max() > 6.0, "the limits have to hold something"
    found = ILQR(max_iterations=50, tolerance=1e-12).run(ControlProblem(problem))
    wanted = dense(problem)
    assert np.abs(2.0 * found.x).max() <= 4.0 + 1e-12
    assert (np.abs(2.0 * found.x) > 4.0 - 1e-9).sum() >= 3
    assert found.value == pytest.approx(problem.value(wanted)[0], rel=1e-6)
    assert found.x == pytest.approx(wanted, abs=2e-3)


def test_own_costs_of_coordinates() -> None:
    """Running and final costs of q and v beside the objective; of rotation vectors they are refused."""
    problem = block(24)
    ones, none = np.ones(3), np.zeros(3)
    final = CoordinateCost(np.arange(3), np.array([0.0, 0.1, 0.0]), none, 50.0 * ones, ones, 24, 24)
    running = CoordinateCost(np.arange(3), none, none, 0.1 * ones, 0.01 * ones, 1, 23)
    control = ControlProblem(problem, ((1.0, final), (0.5, running)))
    found = ILQR(max_iterations=4, regularisation=0.0).run(control)
    assert found.converged and len(found.iterations) <= 3
    assert found.trajectory.q[-1, 1] == pytest.approx(0.1, abs=0.02)

    def value(x: np.ndarray) -> float:
        return control.run(x).value

    rng = np.random.default_rng(0)
    for _ in range(3):
        along = rng.normal(size=problem.n)
        slope = (value(found.x + 1e-4 * along) - value(found.x - 1e-4 * along)) / 2e-4
        curved = value(found.x + along) - found.value
        assert abs(slope) < 1e-6 * curved
    turning = CoordinateCost(np.array([4]), none[:1], none[:1], ones[:1], ones[:1], 24, 24)
    with pytest.raises(InputError, match="rotation vectors"):
        ControlProblem(problem, ((1.0, turning),))


def test_problems_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="several stages"):
        ILQR().run(ControlProblem(block(12, basis="linear")))
    smooth = [{"type": "point", "marker": "centre", "target": [0, 0, 0], "time": "end"},
              {"type": "smoothness", "signal": "push"}]  # fmt: skip
    with pytest.raises(InputError, match="couples"):
        ILQR().run(ControlProblem(block(12, objective=smooth)))
    problem = block(12)
    state = problem.experiments[0].simulation.state(np.zeros(6), np.zeros(6))
    with pytest.raises(InputError, match="no step of the run"):
        MultipleShooting().run(ControlProblem(problem), {24: state})


def test_minimum_in_a_box() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        k = int(rng.integers(1, 6))
        root = rng.normal(size=(k + 1, k))
        H, g = root.T @ root, rng.normal(size=k)
        lower, upper = -rng.uniform(0, 1, k), rng.uniform(0, 1, k)
        found = minimise_in_box(H, g, lower, upper)
        assert found is not None
        values, vectors = np.linalg.eigh(H)
        square = np.sqrt(values)[:, None] * vectors.T
        wanted = lsq_linear(square, -np.linalg.solve(square.T, g), (lower - 1e-15, upper + 1e-15), tol=1e-14).x
        assert found[0] == pytest.approx(wanted, abs=1e-5)
    assert minimise_in_box(-np.eye(2), np.ones(2), -np.ones(2), np.ones(2)) is None


def test_differences_of_states() -> None:
    """`moved` undoes `difference`, across charts too; to first order they are twists."""
    rng = np.random.default_rng(2)
    rotations = np.array([3, 9])
    for scale in (0.3, 1.5):
        q, v = scale * rng.normal(size=(2, 2, 12))
        q[1] = q[0] + 0.01 * rng.normal(size=12)
        state = State(0.0, 1, q, v)
        change = 0.5 * rng.normal(size=48)
        other = moved(state, change, rotations)
        assert difference(other, state, rotations) == pytest.approx(change, abs=1e-12)
        small = 1e-6 * rng.normal(size=48)
        near = moved(state, small, rotations)
        pairs = np.stack([near.q - state.q, near.v - state.v], axis=1).reshape(48, 1)
        if np.abs(pairs).max() < 1e-3:
            assert Twists.at(state, rotations).apply(pairs)[:, 0] == pytest.approx(small, abs=1e-10)
    for length in (3.0, 3.2):  # both pairs stay in one chart near pi
        w = np.array([0.0, length, 0.0])
        q = np.zeros((2, 6))
        q[0, 3:], q[1, 3:] = w, 0.97 * w
        after = moved(State(0.0, 1, q, np.ones((2, 6))), np.zeros(24), np.array([3]))
        assert np.linalg.norm(after.q[0, 3:] - after.q[1, 3:]) < 0.2


def pole(angle: float, steps: int = 30) -> InverseProblem:
    """The cart and pole of the scene, the pole upright but for an angle, to be held there."""
    scene = add.load_scene(SCENES / "cartpole_swing_up.json")
    turned = np.pi - angle
    half = [float(np.cos(turned / 2)), 0.0, float(np.sin(turned / 2)), 0.0]
    rows = [[0.0, 0.0, 0.0]] * steps
    return add.apply_overrides(scene, {
        "time.steps": steps, "signals.push.rows": steps, "signals.push.values": rows,
        "bodies.pole.position": [-0.5 * np.sin(turned), 0, -0.5 * np.cos(turned)], "bodies.pole.orientation": half,
        "objective.0.window": [0.4, 0.6], "objective.1.window": [0.4, 0.6],
        "parameters.0.components": [3 * k for k in range(steps)],
    }).inverse_problem()  # fmt: skip


def test_a_pole_is_caught() -> None:
    """Through the chart at pi: the value falls fiftyfold, and the adjoint finds no slope left."""
    problem = pole(0.1)
    control = ControlProblem(problem)
    start = control.run(problem.x0)
    assert start.value == pytest.approx(problem.value(problem.x0)[0], rel=1e-9)
    assert np.abs(start.steps[0].before.q[0, 10]) > 2.9
    found = ILQR(tolerance=1e-10).run(control)
    assert found.converged and found.value < 0.02 * start.value
    _, gradient = problem.value_and_grad(found.x)
    _, first = problem.value_and_grad(problem.x0)
    assert np.abs(gradient).max() < 1e-2 * np.abs(first).max()
    assert all(K.shape == (stage.size, 48) for stage, K in zip(found.stages, found.feedback, strict=True))
    assert max(np.abs(K).max() for K in found.feedback) > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", LENGTH)
def test_swing_ups(name: str) -> None:
    """By multiple shooting from an even turn, the weight of the goal rising: upright and at rest at the end."""
    scene = add.load_scene(SCENES / f"{name}.json")
    problem = scene.inverse_problem()
    x0 = problem.x0 + 0.1 * np.random.default_rng(1).normal(size=problem.n)
    x, count = by_stages(scene, LENGTH[name], x0)
    run = problem.value(x)[1].popitem()[1]
    angle, rate = abs(abs(run.q[-1, 10]) - np.pi), abs(run.v[-1, 10])
    print(f"{name}: {count} iterations, {angle:.2g} rad, {rate:.2g} rad/s")
    assert angle < 0.01 and rate < (0.01 if name.startswith("double") else 0.1)
    lower, upper = problem.bounds
    assert np.all(x >= lower) and np.all(x <= upper)
