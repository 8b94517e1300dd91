"""Normal equations from a sweep backward, solved by elimination along time: those of the forward Jacobian."""

import json
from pathlib import Path

import numpy as np
import pytest
from inverse.test_least_squares import PARAMETERS, controlled
from inverse.test_problem import SCENE, TWO, problem_of

from add.equations.kinematics import Directions
from add.inverse import LevenbergMarquardt, MemoryLog, Phase
from add.inverse.along_time import AlongTime, along_time, may_go_backward, observed
from add.inverse.experiment import WholeNormal
from add.scene import scene_from_dict

ROOT = Path(__file__).resolve().parents[3]
N = 24
PUSHED = {"type": "control", "basis": "constant", "rows": N, "values": [[0.3, 0, 0.1 * (k % 3)] for k in range(N)]}
#: Of points to be met [s], between steps.
TIMES = tuple(0.01 * k - 0.0034 for k in range(1, N, 3))
#: A box that turns beyond pi and lands on an edge, pushed and turned anew in each step.
BOX = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": N, "newton": {"atol": 1e-12, "rtol": 0}},
    "bodies": {
        "box": {
            "type": "rigid", "mass": 0.3, "geometry": {"shape": "box", "size": [0.1, 0.08, 0.06]},
            "position": [0, 0, 0.12], "orientation": [0.28, 0, 0.96, 0], "velocity": [0.2, 0, -0.6],
            "angular_velocity": [0.3, 6.0, 0.2],
        }
    },
    "signals": {"push": PUSHED, "turn": {**PUSHED, "values": [[0, 0.002, 0.001]] * N}},
    "couplings": {
        "push": {"type": "force", "on": {"body": "box", "at": [0, 0, 0.01]}, "force": {"signal": "push"}},
        "turn": {"type": "torque", "body": "box", "torque": {"signal": "turn"}},
    },
    "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
    "contact": {"stiffness": 2e3, "friction": 0.3, "damping": 1.0, "damping_ramp": 0.002, "friction_law": "tanh"},
    "markers": {"corner": {"body": "box", "point": [0.05, 0.04, 0.03]}, "top": {"body": "box", "direction": [0, 0, 1]}},
    "objective": [
        *({"type": "point", "marker": "corner", "target": [0.1, 0, 0.1], "time": time} for time in TIMES),
        {"type": "point", "marker": "top", "target": [0, 0, 1], "window": [0, 0.24], "weight": 0.1},
        {"type": "smoothness", "signal": "push", "weight": 1e-3},
        {"type": "proximity", "signal": "turn", "weight": 1e-2, "value": [0, 0, 0]},
    ],
    "parameters": [
        {"path": "signals.push.values", "scale": 0.1}, {"path": "signals.turn.values", "scale": 0.01},
        {"path": "contact.friction", "transform": "log"}, {"path": "bodies.box.velocity", "scale": 0.1},
    ],
}  # fmt: skip


def box(**sections):
    return scene_from_dict({**BOX, **sections}).inverse_problem()


def thrown(law, integrator="bdf2"):
    """The box, thrown so fast that its impacts are divided: in one part and in four, beyond pi."""
    contact = {**BOX["contact"], "stiffness": 2e5, "damping": 20.0, "friction_law": law}
    body = {**BOX["bodies"]["box"], "position": [0, 0, 0.14], "velocity": [0.2, 0, -2.5]}
    time = {**BOX["time"], "integrator": integrator, "substeps": "auto"}
    return box(time=time, bodies={"box": body}, contact=contact)


def of_scene(name, *, steps, **sections):
    """A scene of the repository, cut short."""
    raw = json.loads((ROOT / "scenes" / f"{name}.json").read_text(encoding="utf-8"))
    raw.pop("expect", None)
    return scene_from_dict({**raw, "time": {**raw["time"], "steps": steps}, **sections}).inverse_problem()


def strings(**sections):
    """Handles that are led, BDF2, and contact that slides: two controls of every step."""
    target = {"type": "pose", "body": "cube", "translation": [0.1, 0.02, 0.05], "time": "end"}
    smooth = [{"type": "smoothness", "signal": signal, "weight": 0.01} for signal in ("left", "right")]
    return of_scene("strings_cube", steps=25, objective=[target, *smooth], **sections)


def dropped():
    """The cube among its strings thrown down: the numbers of a signal set in one after the other within a step."""
    raw = json.loads((ROOT / "scenes" / "strings_cube.json").read_text(encoding="utf-8"))
    cube = {**raw["bodies"]["cube"], "velocity": [0.3, 0, -3.0]}
    time = {**raw["time"], "steps": 25, "substeps": "auto"}
    return strings(bodies={**raw["bodies"], "cube": cube}, contact={**raw["contact"], "stiffness": 1e5}, time=time)


CASES = {
    "box": box,
    "bdf1": lambda: box(time={**BOX["time"], "integrator": "bdf1"}),
    "divided": lambda: thrown("tanh"),
    "divided, bdf1": lambda: thrown("linear", "bdf1"),
    "divided, sticking": lambda: thrown("hybrid"),
    "divided, led": dropped,
    "strings": strings,
    "spline": controlled,
    "start and numbers": lambda: problem_of(parameters=PARAMETERS),
    "sticking": lambda: problem_of(parameters=PARAMETERS, contact={**SCENE["contact"], "friction_law": "hybrid"}),
}


def seen(problem, point, most=10**6):
    """What the residuals see of the run along all numbers."""
    (experiment,) = problem.experiments
    along = Directions(problem.map_of(experiment).jacobian(point.x))
    return observed(experiment, point, problem.theta(point.x, experiment), along, most)


def both(problem, x):
    """The normal equations by elimination along time, whatever it costs, and those of the forward Jacobian."""
    point = problem.residuals(x)
    found = seen(problem, point)
    jacobian = problem.jacobian(point)
    whole = WholeNormal(jacobian, jacobian.transposed(point.rho))
    return AlongTime(found, jacobian.sparse, point.rho[point.of_runs :]), whole, point


@pytest.mark.parametrize("name", CASES)
def test_the_same_equations(name, rng):
    problem = CASES[name]()
    x = problem.x0 * (1.0 + 0.02 * rng.normal(size=problem.n)) + 1e-3 * rng.normal(size=problem.n)
    along, whole, point = both(problem, x)
    size = np.abs(whole.slope).max()
    assert size > 0.0
    assert along.slope == pytest.approx(whole.slope, rel=0, abs=1e-11 * size)
    _, gradient = problem.value_and_grad(x)
    assert 2.0 * along.slope == pytest.approx(gradient, rel=0, abs=1e-10 * size)
    assert along.largest == pytest.approx(whole.largest, rel=1e-10)
    v = rng.normal(size=problem.n)
    product = whole.product(v)
    assert along.product(v) == pytest.approx(product, rel=0, abs=1e-11 * np.abs(product).max())
    reduced = along.run.jacobian()
    assert reduced.shape[0] == point.of_runs
    direct = whole.matrix - (problem.jacobian(point).sparse.T @ problem.jacobian(point).sparse).toarray()
    assert reduced.T @ reduced == pytest.approx(direct, rel=0, abs=1e-11 * np.abs(direct).max())
    some = np.ones(problem.n, dtype=bool)
    some[::3] = False
    for free in (some, ~some, np.ones(problem.n, dtype=bool)):
        for damping in (1e-1, 1e-4):
            step = along.solve(free, damping * whole.largest, -whole.slope)
            wanted = whole.solve(free, damping * whole.largest, -whole.slope)
            assert step == pytest.approx(wanted, rel=0, abs=1e-8 * np.abs(wanted).max())
            assert not step[~free].any()


def test_what_the_cases_are_about():
    """The box turns beyond pi with a frame in that step, and lands; what sticks has rows of its own."""
    problem = box()
    (run,) = problem.residuals(problem.x0).runs.values()
    turned = [k + 1 for k, record in enumerate(run.records) if record.charts.size]
    assert turned and {int(np.ceil(time / 0.01)) for time in TIMES} & set(turned)
    touching = [len(record.decisions[0]) for record in run.records]
    assert min(touching) == 0 and max(touching) > 0
    sticking = CASES["sticking"]()
    (run,) = sticking.residuals(sticking.x0).runs.values()
    assert any(record.mu.size for record in run.records)
    for name in ("divided", "divided, bdf1", "divided, sticking"):
        problem = CASES[name]()
        (run,) = problem.residuals(problem.x0).runs.values()
        divided = [record for record in run.records if record.inner]
        wanted = {4} if name == "divided, bdf1" else {1, 4}
        assert {len(record.inner) for record in divided} == wanted
        assert {len(record.inner) for record in divided if record.charts.size} == wanted, "beyond pi"
        sticks = [part.mu.size > 0 for record in divided for part in record.inner]
        assert any(sticks) == (name == "divided, sticking") and not all(sticks)
    problem = dropped()
    (run,) = problem.residuals(problem.x0).runs.values()
    assert max(len(record.inner) for record in run.records) == 16


class Forward:
    """A problem whose normal equations are always those of the forward Jacobian."""

    def __init__(self, problem):
        self.problem = problem

    def __getattr__(self, name):
        return getattr(self.problem, name)

    def normal_equations(self, point, free, *, backward=True):
        return self.problem.normal_equations(point, free, backward=False)


def iterates(problem, n):
    log = MemoryLog()
    LevenbergMarquardt((Phase("all", None, None, n),), 1e-3, 1e-12, 1e-14).run(problem, log=log)
    return log.evaluations


@pytest.mark.parametrize("name", ["box", "divided", "swing-up"])
def test_the_same_iterates(name, monkeypatch):
    """Contact that comes and goes; steps that are divided; bounds that are met."""
    monkeypatch.setattr("add.inverse.along_time.OVERHEAD", -1e9)  # a few hundred numbers are handled whole otherwise
    if name in CASES:
        problem = CASES[name]()
    else:
        raw = json.loads((ROOT / "scenes" / "cartpole_swing_up.json").read_text(encoding="utf-8"))
        parameters = [{**raw["parameters"][0], "bounds": [-4, 4], "start": [1.0] * 100}]
        objective = [
            {**part, **({"window": [1.96, 2.0]} if part["type"] == "point" else {})} for part in raw["objective"]
        ]
        problem = of_scene("cartpole_swing_up", steps=100, parameters=parameters, objective=objective)
    point, free = problem.residuals(problem.x0), np.arange(problem.n)
    assert isinstance(problem.normal_equations(point, free), AlongTime)
    found, wanted = iterates(problem, 8), iterates(Forward(problem), 8)
    assert len(found) == len(wanted) > 4
    # The first step of the swing has a nearly singular matrix: rounding alone moves it by 3e-9 to 2e-8 of its size.
    near = 1e-8 if name in CASES else 1e-7
    for one, other in zip(found, wanted, strict=True):
        assert one.x == pytest.approx(other.x, rel=0, abs=near * np.abs(other.x).max())
        assert one.value == pytest.approx(other.value, rel=1e-7)
    lower, upper = problem.bounds
    assert name in CASES or ((wanted[-1].x == lower) | (wanted[-1].x == upper)).any()


def test_which_way_is_taken():
    """Backward where a state is seen by few rows beside the numbers; along time where these are thousands."""
    problem = box()
    point, free = problem.residuals(problem.x0), np.arange(problem.n)
    found = problem.normal_equations(point, free)
    assert found.backward and isinstance(found, WholeNormal)  # 148 numbers: one small matrix
    assert not problem.normal_equations(point, free, backward=False).backward
    few = np.array([0, 3, 144, 147])
    assert not problem.normal_equations(point, few).backward
    assert seen(problem, point, 5) is None  # six rows see the last states
    several = problem_of(parameters=PARAMETERS, experiments=TWO)
    point = several.residuals(several.x0)
    assert not several.normal_equations(point, np.arange(several.n)).backward


def test_rows_have_room(monkeypatch):
    """Frames are looked at stretch by stretch; a sweep whose rows would fill the memory is not begun."""
    problem = box()
    along, whole, point = both(problem, problem.x0)
    monkeypatch.setattr("add.objectives.frames_over.MOST_UNITS", 8 * 6 * 6 * 4)  # four states
    again, _, _ = both(problem, problem.x0)
    assert again.slope == pytest.approx(along.slope, rel=0, abs=1e-13 * np.abs(whole.slope).max())
    v = np.linspace(-1.0, 1.0, problem.n)
    product = along.product(v)
    assert again.product(v) == pytest.approx(product, rel=0, abs=1e-13 * np.abs(product).max())
    assert may_go_backward(point, 37)
    monkeypatch.setattr("add.inverse.along_time.MOST_ENTRIES", 24 * (point.of_runs + 24) - 1)
    assert not may_go_backward(point, 37)


def test_work_decides_how_equations_are_solved(monkeypatch):
    monkeypatch.setattr("add.inverse.along_time.OVERHEAD", 0.0)
    kinds = []
    for problem in (strings(), controlled()):  # numbers of one step each, and of most steps
        point = problem.residuals(problem.x0)
        run, sparse = seen(problem, point), problem.jacobian(point).sparse
        kinds.append(type(along_time(run, sparse, point.rho[point.of_runs :])))
    assert kinds == [AlongTime, WholeNormal]
