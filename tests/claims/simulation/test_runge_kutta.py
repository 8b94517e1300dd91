"""Explicit steps of order four: against DOP853 and BDF2, gradients both ways, and what is refused."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from derivatives.test_tree_parts import scene as lengths_scene
from derivatives.test_trees import scene as joints_scene
from scipy.integrate import solve_ivp

from add.adjoint import Checkpoints, Cotangents, States, pullback, pushforward, value_and_gradient
from add.compiled.structure import CHUNK, WITHIN
from add.errors import InputError, SolverError
from add.scene import scene_from_dict
from add.simulation.composed import RecordedStates, Restarted

LINK = {"mass": 0.1, "inertia": [5e-4, 5e-4, 5e-4, 0, 0, 0], "center_of_mass": [0, 0, -0.1]}
SHOULDER = {"child": "upper", "axis": [0, -1, 0], "value": -0.5, "rate": 4.0, "damping": 1e-3}
ELBOW = {"parent": "upper", "child": "lower", "position": [0, 0, -0.17], "axis": [0, -1, 0], "value": 0.9, "rate": -5.0}
ARM = {
    "type": "articulated", "links": {"upper": LINK, "lower": {**LINK, "mass": 0.14}},
    "joints": {"shoulder": SHOULDER, "elbow": {**ELBOW, "damping": 2e-3}},
    "drives": {"push": {"joint": "elbow", "input": {"signal": "push"}}},
}  # fmt: skip
PUSH = [0.02, -0.01, 0.03, 0, 0.01, -0.02]
SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 60, "integrator": "rk4"},
    "bodies": {"arm": ARM},
    "signals": {"push": {"type": "control", "basis": "constant", "rows": 6, "values": PUSH}},
    "markers": {"tip": {"body": "arm/lower", "point": [0, 0, -0.1]}},
    "objective": [{"type": "point", "marker": "tip", "target": [0.1, 0, -0.2], "window": [0.2, 0.6]}],
    "parameters": [
        {"path": "signals.push.values", "scale": 0.01}, {"path": "bodies.arm.joints.shoulder.value"},
        {"path": "bodies.arm.joints.elbow.rate"}, {"path": "bodies.arm.links.lower.mass", "transform": "log"},
        {"path": "bodies.arm.joints.elbow.damping", "scale": 1e-3},
    ],
}  # fmt: skip


def changed(*changes, **sections):
    raw = copy.deepcopy({**SCENE, **sections})
    for path, value in changes:
        *way, last = path.split(".")
        place = raw
        for key in way:
            place = place[key]
        place[last] = value
    return scene_from_dict(raw)


def run(dt, integrator="rk4", **sections):
    time = {"dt": dt, "duration": 0.6, "integrator": integrator}
    return changed(time=time, **sections).build().run()


def test_a_pendulum_against_dop853():
    """theta'' = -(m g l sin theta + d theta') / (I + m l^2), the angle from hanging."""
    arm = {**ARM, "links": {"upper": LINK}, "joints": {"shoulder": SHOULDER}, "drives": {}}
    scene = {"bodies": {"arm": arm}, "signals": {}, "markers": {}, "objective": [], "parameters": []}
    m, l, inertia, d, g = 0.1, 0.1, 5e-4, 1e-3, 9.81
    change = lambda t, y: (y[1], -(m * g * l * np.sin(y[0]) + d * y[1]) / (inertia + m * l * l))  # noqa: E731
    exact = solve_ivp(change, (0, 0.6), (-0.5, 4.0), method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    errors = []
    for dt in (0.02, 0.01, 0.005):
        found = run(dt, gravity=[0, 0, -g], **scene)
        errors.append(np.abs([found.q[-1, 0] - exact[0], found.v[-1, 0] - exact[1]]).max())
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert rates == pytest.approx(4.0, abs=0.3)
    assert errors[-1] < 1e-6


def test_order_where_controls_jump():
    """Rows of a control begin at steps: each step meets its own."""
    finest = run(0.00125).q[-1]
    errors = [np.abs(run(dt).q[-1] - finest).max() for dt in (0.02, 0.01, 0.005)]
    assert np.log2(np.array(errors[:-1]) / errors[1:]).min() > 3.7
    assert run(0.0005, "bdf2").q[-1] == pytest.approx(finest, abs=2e-3)


def test_gradient_against_differences():
    problem = changed().inverse_problem()
    value, gradient = problem.value_and_grad(problem.x0)
    assert value == pytest.approx(problem.value(problem.x0)[0], rel=1e-13)
    for i in range(problem.n):
        h = 1e-4
        ends = [problem.value(problem.x0 + s * h * np.eye(problem.n)[i])[0] for s in (1, -1, 2, -2)]
        slope = (8.0 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12.0 * h)
        assert gradient[i] == pytest.approx(slope, rel=1e-7, abs=1e-8 * np.abs(gradient).max())
    assert np.all(gradient != 0.0)


def test_both_ways_and_all_schedules():
    problem = changed().inverse_problem()
    (experiment,) = problem.experiments
    theta, simulation = problem.theta(problem.x0, experiment), experiment.simulation
    objective, _ = experiment.within(None)
    found = value_and_gradient(simulation, objective, theta)
    directions = problem.map_of(experiment).jacobian(problem.x0)
    forward = pushforward(simulation, simulation.run(theta), theta, directions)
    slopes = forward.derivative(objective, simulation.run(theta), theta)
    assert slopes == pytest.approx(directions.T @ found.gradient, rel=1e-11, abs=1e-13)
    for schedule in (Checkpoints(), States()):
        again = value_and_gradient(simulation, objective, theta, schedule=schedule)
        assert np.array_equal(again.gradient, found.gradient) and again.value == found.value


def test_derivatives_of_a_step(rng):
    """As matrices, and of steps that begin anew in recorded states."""
    problem = changed().inverse_problem()
    (experiment,) = problem.experiments
    simulation, theta = experiment.simulation, problem.theta(problem.x0, experiment)
    found = simulation.run(theta, n_steps=5)
    transition = simulation.step_derivatives(theta).jacobians(found.records[4]).transition
    before, state = simulation.assembler(), found.state(4)
    dot = rng.normal(size=4)
    ends = []
    for h in (1e-6, -1e-6):
        q, v = state.q.copy(), state.v.copy()
        q[0] += h * dot[:2]
        v[0] += h * dot[2:]
        after, _ = simulation.stepper.step(before, replace(state, q=q, v=v), theta)
        ends.append(np.concatenate([after.q[0], after.v[0]]))
    assert transition[:4, :4] @ dot == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7, abs=1e-8)
    recorded = RecordedStates(found.q, found.v)
    anew = replace(simulation, stepper=Restarted(simulation.stepper, recorded))
    assert np.array_equal(anew.run(theta, n_steps=5).q, found.q)


BOX = {
    "type": "rigid", "mass": 0.3, "geometry": {"shape": "box", "size": [0.1, 0.08, 0.06]}, "position": [0, 0, 1],
    "angular_velocity": [0.5, 9.0, 0.3], "collision": {"points": False, "shape": False},
}  # fmt: skip
TUMBLING = {
    "bodies": {"box": BOX}, "signals": {}, "markers": {"tip": {"body": "box", "point": [0.05, 0.04, 0]}},
    "parameters": [{"path": "bodies.box.angular_velocity"}, {"path": "bodies.box.mass"}],
}  # fmt: skip


def test_a_body_that_turns_beyond_pi():
    """A free body, in rotation vectors: charts change after a step, and derivatives go through."""
    problem = changed(**TUMBLING).inverse_problem()
    (found,) = problem.residuals(problem.x0).runs.values()
    assert any(record.charts.size for record in found.records)
    _, gradient = problem.value_and_grad(problem.x0)
    for i in range(problem.n):
        h = 1e-4
        ends = [problem.value(problem.x0 + s * h * np.eye(problem.n)[i])[0] for s in (1, -1)]
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / (2.0 * h), rel=1e-6, abs=1e-8)


FLOOR = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}
BALL = {"type": "rigid", "mass": 0.2, "geometry": {"shape": "sphere", "radius": 0.05}, "position": [0, 0, 1]}
MESH = {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]}
SOFT = {
    "type": "soft", "mesh": MESH, "position": [0, 0, 1],
    "material": {"model": "neo-hookean", "young": 1e4, "poisson": 0.3, "density": 100},
    "pins": [{"where": {"box": {"max": [-0.04, None, None]}}}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"bodies": {"ball": BALL}, "obstacles": FLOOR}, "contact, or another force that decides"),
        ({"bodies": {"box": SOFT}}, "coordinates that are held or led"),
        ({"time": {**SCENE["time"], "substeps": "auto"}}, "steps of 'rk4' are not divided"),
        ({"bodies": {"ball": BALL}, "contact": {"friction_law": "exact"}}, "steps without hard contact"),
    ],
)
def test_what_is_refused(sections, message):
    bare = {"signals": {}, "markers": {}, "objective": [], "parameters": []} if "bodies" in sections else {}
    with pytest.raises(InputError, match=message):
        changed(**{**bare, **sections}).build()


def test_a_step_that_explodes_says_what_to_do():
    scene = changed(("bodies.arm.joints.elbow.damping", 50.0), ("time.dt", 0.05), ("time.steps", 200))
    with pytest.raises(SolverError, match=r"explicit step leaves every scale.*bdf2 for what is stiff"):
        scene.build().run()


@pytest.mark.parametrize("sections", [{}, TUMBLING])
def test_blocks_are_single_steps(sections):
    """Over an end of a chunk of signals, and the same whoever watches, goes on from the middle or follows."""
    n = CHUNK + 20
    simulation = changed(**sections, time={"dt": 0.01, "steps": n, "integrator": "rk4"}).build().simulation
    found, seen = simulation.run(), []
    assert [len(taken) for _, _, taken in _blocks(found)] == [21, 63]
    simulation.run(observers=[lambda state, record: seen.append((state, record))])
    again = simulation.run(replay=found.replay)
    assembler, state = simulation.assembler(), found.initial
    for k in range(n):
        state, record = simulation.step(state, assembler=assembler)
        for other in (found.state(k + 1), seen[k][0], again.state(k + 1)):
            assert np.array_equal(other.q, state.q) and np.array_equal(other.v, state.v) and other.t == state.t
        for other in (found.records[k], seen[k][1], again.records[k]):
            assert np.array_equal(other.stages, record.stages) and np.array_equal(other.charts, record.charts)
            assert other.report == record.report and np.array_equal(other.kin.a, record.stages[2, -1])
    assert np.array_equal(simulation.run(state=found.state(30)).q, found.q[30:])
    assert any(record.charts.size for record in found.records) == bool(sections)


def _blocks(trajectory):
    """Return the blocks of a run: first record, block, its steps; the last first."""
    return [(first, block, range(n)) for first, block, n in trajectory.records.blocks()]


def _without_contact(scene):
    """Return a scene whose bodies meet nothing, in explicit steps."""
    bodies = copy.deepcopy(scene["bodies"])
    for body in bodies.values():
        if body["type"] == "rigid":
            body["collision"] = {"points": False, "shape": False}
    time = {"dt": 1e-3, "steps": 12, "integrator": "rk4"}
    return scene | {"bodies": bodies, "contact": {"between_bodies": False}, "obstacles": {}, "time": time}


@pytest.mark.parametrize("scene", [joints_scene, lengths_scene])
def test_every_joint_and_force(scene, rng):
    """The stages solve the equations that the terms have, and go back as tangents go forward, by every number.

    All kinds of joints, placed turned, with armature; drives, limits, tendons; springs and joints between links and a
    free body.
    """
    built = scene_from_dict(_without_contact(scene())).build()
    simulation, theta, found = built.simulation, built.theta, built.simulation.run()
    forces = np.abs(simulation.dynamics(found.q[7], found.v[7], t=found.t[7]).bias).max()
    for c, *stage in zip((WITHIN, 0.5, 0.5, 1.0), *found.records[7].stages, strict=True):
        left = simulation.dynamics(*stage, t=found.t[7] + c * 1e-3).residual
        assert np.abs(left).max() < 1e-11 * forces
    bars = Cotangents(rng.normal(size=found.q.shape), rng.normal(size=found.q.shape))
    directions = rng.normal(size=(theta.size, 3)) * np.maximum(np.abs(theta), 1e-2)[:, None]
    back = pullback(simulation, found, theta, bars) @ directions
    tangents = pushforward(simulation, found, theta, directions)
    forward = np.einsum("kn,dkn->d", bars.q, tangents.q) + np.einsum("kn,dkn->d", bars.v, tangents.v)
    assert back == pytest.approx(forward, rel=1e-10)
    one = np.concatenate([pullback(simulation, replace(found, records=list(found.records)), theta, bars) @ directions])
    assert one == pytest.approx(back, rel=1e-13)


def test_a_step_that_fails_within_a_block_is_named():
    """What was found before it stays, and single steps fail at the same one."""
    scene = changed(("bodies.arm.joints.elbow.damping", 0.25), ("time.dt", 0.01), ("time.steps", 200))
    simulation = scene.build().simulation
    with pytest.raises(SolverError, match="explicit step leaves every scale") as failed:
        simulation.run()
    found = failed.value.trajectory
    assert 5 < found.n_steps < CHUNK - 1 and str(failed.value).startswith(f"step {found.n_steps + 1} (t=")
    assembler, state = simulation.assembler(), found.initial
    for k in range(found.n_steps):
        state, _ = simulation.step(state, assembler=assembler)
        assert np.array_equal(state.q[0], found.q[k + 1])
    with pytest.raises(SolverError, match=f"step {found.n_steps + 1} "):
        simulation.step(state, assembler=assembler)
