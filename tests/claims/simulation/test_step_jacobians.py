"""Derivatives of single steps: against replayed differences of the step, the sweeps of runs, and known formulas."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from support.rigid_models import DT, NEWTON, PAIRS, linkage, rigid_on_moving, rigid_on_rigid, rigid_on_world
from support.small_models import two_bodies

from add.adjoint import Cotangents, pullback, pushforward
from add.contact import FrictionLaw
from add.equations.charts import Twists
from add.equations.kinematics import State, StateTangent
from add.errors import InputError
from add.geometry import HEX8
from add.hard_contact import with_impulse_contact
from add.hard_contact.impulse_coupling import CarriedImpulses
from add.kernels.cone_modes import SLIDE, STICK
from add.kernels.contact_pairs import ACTIVE, BITS, SLIP, STICKS
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.scene import scene_from_dict
from add.simulation import BDF, Record, StartUp, Step
from add.simulation.run import Simulation, Trajectory
from add.simulation.start import Begun
from add.simulation.step_jacobians import rotation_vectors

STEPPERS = {
    "bdf1": BDF(DT, 1, newton=NEWTON),
    "bdf2": BDF(DT, 2, newton=NEWTON),
    "bdf2-line": BDF(DT, 2, StartUp.STRAIGHT_LINE, NEWTON),
}


def soft(law: FrictionLaw, stepper: BDF) -> Simulation:
    """A held block with prescribed nodes, a point with multipliers, and a cube that lands."""
    mu = 8.0 if law is FrictionLaw.HYBRID else 0.3
    order, start_up = stepper.bdf_order, stepper.start_up
    return two_bodies(HEX8, law=law, order=order, start_up=start_up, mu_slide=mu, n_steps=20)[1]


CASES = {
    **{f"soft-{law.name.lower()}-{key}": (soft, law, key) for law, key in product(FrictionLaw, STEPPERS)},
    **{
        f"{pair}-{law.name.lower()}-{key}": (lambda law, stepper, make=make: make(law, stepper)[1], law, key)
        for (pair, make), law, key in product(PAIRS.items(), FrictionLaw, STEPPERS)
    },
}


def _cases() -> list:
    """Each body kind with each law and each integrator in the quick suite; all combinations in the slow one."""
    out = []
    for n, name in enumerate(CASES):
        i, j, k = n // 12, n // 3 % 4, n % 3
        marks = () if (i + j + k) % 3 == 0 and (i + 2 * j) % 4 == 0 else pytest.mark.slow
        out.append(pytest.param(name, marks=marks))
    return out


def tags(record: Record) -> Iterator[str]:
    """Name what a step shows: contact that sticks or slips, modes of cones, a change of chart."""
    if record.charts.size:
        yield "chart"
    if record.carry.marks:
        modes = CarriedImpulses.of(record.carry).modes
        yield from ["stick"] * bool((modes == STICK).any()) + ["slip"] * bool((modes == SLIDE).any())
    for decision in record.decisions:
        if decision.ndim == 2:
            touching = decision[decision[:, BITS] & ACTIVE != 0, BITS]
            yield from ["stick"] * bool((touching & SLIP == 0).any()) + ["slip"] * bool((touching & SLIP != 0).any())
            yield from ["held"] * bool((touching & STICKS != 0).any())


def chosen(trajectory: Trajectory, most: int = 4) -> list[int]:
    """Return the first step, and of the others those that show something new."""
    seen: Counter[str] = Counter()
    out = [0]
    for k, record in enumerate(trajectory.records):
        new = {tag for tag in tags(record) if not seen[tag]}
        if new and len(out) < most:
            seen.update(new)
            out.append(k)
    assert {"stick", "slip"} & seen.keys(), "contact has to act"
    return sorted(set(out))


def stacked(state: State) -> np.ndarray:
    return np.stack([state.q, state.v], axis=1).ravel()


def differences(simulation: Simulation, step: Step, dx: np.ndarray, d_theta: np.ndarray, h: float) -> np.ndarray:
    """Return central differences of the step with its decisions held."""
    m, n = step.before.q.shape
    assembler, ends = simulation.assembler(), []
    for sign in (1.0, -1.0):
        pairs = sign * h * dx.reshape(m, 2, n)
        state = replace(step.before, q=step.before.q + pairs[:, 0], v=step.before.v + pairs[:, 1])
        theta = simulation.theta + sign * h * d_theta
        ends.append(stacked(simulation.differentiable.step(assembler, state, theta, step.record)[0]))
    return (ends[0] - ends[1]) / (2.0 * h)


def check_step(simulation: Simulation, step: Step, rng: np.random.Generator, directions: int = 3) -> None:
    """Compare with replayed differences, with the transpose, and the operators with the matrices."""
    m, n = step.before.q.shape
    names = [entry.name for entry in simulation.system.parameters.entries]
    found = simulation.step_derivatives(parameters=names).jacobians(step)
    operators = simulation.step_operators(step, parameters=names)
    read = found.n_read
    assert found.q_q.shape == found.v_v.shape == (read, n, n) and found.transition.shape == (2 * m * n, 2 * m * n)
    theta, layout = simulation.theta, simulation.system.parameters
    for k in range(directions):
        # q and v of the same size of effect on the end; a history that the step reads.
        dx = rng.normal(size=(m, 2, n))
        dx[:, 1] /= simulation.stepper.dt if k == 1 else 1.0
        d_theta = rng.normal(size=theta.size) * np.where(theta != 0.0, np.abs(theta), 0.1) * (k != 0)
        along = found.transition @ dx.ravel()
        by_theta = np.zeros((2, n))
        for name, item in found.parameters.items():
            moved = d_theta[layout[name].slice][item.index]
            by_theta += np.stack([item.q @ moved, item.v @ moved])
        along[: 2 * n] += by_theta.ravel()
        errors = []
        for h in (1e-5, 1e-6, 1e-7, 1e-8):
            by_differences = differences(simulation, step, dx.ravel(), d_theta, h)
            each = [np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in
                    zip(along.reshape(-1, n), by_differences.reshape(-1, n), strict=True)]  # fmt: skip
            errors.append(max(each))
            if errors[-1] < 1e-6:
                break
        assert min(errors) < 1e-6, errors
    # The transpose is that of the pull-back, operators are the matrices.
    bar, x = rng.normal(size=2 * m * n), rng.normal(size=(2 * m * n, 3))
    assert operators.transition @ x == pytest.approx(found.transition @ x, rel=1e-10, abs=1e-10 * size(found))
    assert operators.transition.T @ bar == pytest.approx(found.transition.T @ bar, abs=1e-10 * size(found))
    for key in ("q_q", "q_v", "v_q", "v_v"):
        for block, matrix in zip(getattr(operators, key), getattr(found, key), strict=True):
            assert block @ x[:n] == pytest.approx(matrix @ x[:n], abs=1e-10 * size(found))
            assert block.T @ bar[:n] == pytest.approx(matrix.T @ bar[:n], abs=1e-10 * size(found))
    for name, item in found.parameters.items():
        largest = np.abs(item.v).max(initial=0.0) + 1e-5  # where all cancels, some 1e-15 is left
        backwards = operators.parameters[name].v.T @ bar[:n]
        assert backwards[item.index] == pytest.approx(item.v.T @ bar[:n], abs=1e-9 * largest)
        backwards[item.index] = 0.0
        assert np.abs(backwards).max(initial=0.0) <= 1e-9 * largest


def size(found) -> float:
    return float(np.abs(found.transition).max())


@pytest.mark.parametrize("case", _cases())
def test_steps_of_every_integrator_and_law(case: str) -> None:
    make, law, key = CASES[case]
    simulation = make(law, STEPPERS[key])
    trajectory = simulation.run()
    rng = np.random.default_rng(2)
    for k in chosen(trajectory):
        step = trajectory.step(k)
        check_step(simulation, step, rng, 2 if case.startswith("soft") else 3)
        expected = 1 if key == "bdf1" or (key == "bdf2" and k == 0) else 2
        assert simulation.step_derivatives().jacobians(step.record).n_read == expected


@pytest.mark.parametrize("pair", ["rigid-on-world", pytest.param("soft-on-rigid", marks=pytest.mark.slow),
                                  pytest.param("rigid-on-moving", marks=pytest.mark.slow)])  # fmt: skip
def test_steps_with_impulses(pair: str) -> None:
    simulation = with_impulse_contact(PAIRS[pair](FrictionLaw.LINEAR, BDF(DT, 1, newton=NEWTON))[1])
    trajectory = simulation.run()
    for k in chosen(trajectory):
        check_step(simulation, trajectory.step(k), np.random.default_rng(4), 2)


def test_stick_slip_and_charts_are_met() -> None:
    """The models above show both modes and changes of chart in chosen steps, so that the branches are tested."""
    for law, stepper in ((FrictionLaw.HYBRID, "bdf2"), (FrictionLaw.LINEAR, "bdf1")):
        trajectory = rigid_on_world(law, STEPPERS[stepper])[1].run()
        shown = {tag for k in chosen(trajectory) for tag in tags(trajectory.records[k])}
        assert {"stick", "slip", "chart"} <= shown | ({"slip"} if law is FrictionLaw.HYBRID else set()), shown


def test_joints_and_their_branches() -> None:
    simulation = linkage(STEPPERS["bdf2"])[1]
    trajectory = simulation.run()
    for k in (1, 20):
        check_step(simulation, trajectory.step(k), np.random.default_rng(4), 2)


def test_products_are_the_derivatives_of_runs() -> None:
    """Chained over steps with contact and a change of chart they are push-forward and pull-back of the run."""
    simulation = rigid_on_rigid(FrictionLaw.HYBRID, STEPPERS["bdf2"])[1]
    trajectory, theta = simulation.run(), simulation.theta
    assert any(record.charts.size for record in trajectory.records)
    names = [entry.name for entry in simulation.system.parameters.entries]
    rng = np.random.default_rng(0)
    direction = rng.normal(size=theta.size) * np.where(theta != 0.0, np.abs(theta), 0.1)
    tangents = pushforward(simulation, trajectory, theta, [direction])
    derivatives = simulation.step_derivatives(parameters=names)
    n, layout = simulation.system.n, simulation.system.parameters
    first = tangents.states[0].dot
    x = np.stack([first.q[:, :, 0], first.v[:, :, 0]], axis=1).ravel()
    bars = Cotangents(np.zeros_like(trajectory.q), np.zeros_like(trajectory.v))
    bars.q[-1], bars.v[-1] = rng.normal(size=(2, n))
    steps = [derivatives.jacobians(trajectory.step(k)) for k in range(trajectory.n_steps)]
    for found in steps:
        x = found.transition @ x
        for name, item in found.parameters.items():
            moved = direction[layout[name].slice][item.index]
            x[:n] += item.q @ moved
            x[n : 2 * n] += item.v @ moved
    assert x[:n] == pytest.approx(tangents.q[0, -1], rel=1e-10, abs=1e-10 * np.abs(x[:n]).max())
    assert x[n : 2 * n] == pytest.approx(tangents.v[0, -1], rel=1e-10, abs=1e-10 * np.abs(x[n : 2 * n]).max())
    bar = np.concatenate([bars.q[-1], bars.v[-1], np.zeros(2 * n)])
    theta_bar = np.zeros_like(theta)
    for found in reversed(steps):
        for name, item in found.parameters.items():
            np.add.at(theta_bar[layout[name].slice], item.index, item.q.T @ bar[:n] + item.v.T @ bar[n : 2 * n])
        bar = found.transition.T @ bar
    pairs = bar.reshape(2, 2, n)
    q_bar, v_bar = simulation.differentiable.start_pullback(StateTangent(pairs[:, 0], pairs[:, 1]))
    simulation.start.pullback(Begun(simulation.assembler(), trajectory.start, theta), q_bar, v_bar, theta_bar)
    wanted = pullback(simulation, trajectory, theta, bars)
    assert theta_bar == pytest.approx(wanted, rel=1e-10, abs=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize("make", [rigid_on_world, rigid_on_moving])
def test_twists(make) -> None:
    """In body axes: by turning the body before the step and comparing rotations and angular velocities after it."""
    simulation = make(FrictionLaw.TANH, STEPPERS["bdf2"])[1]
    trajectory = simulation.run()
    k = next(k for k, record in enumerate(trajectory.records) if record.charts.size)
    n, rng = simulation.system.n, np.random.default_rng(1)
    rotations = rotation_vectors(simulation.system)
    assert rotations.size == n // 6
    for step in (trajectory.step(k), trajectory.step(k + 3)):
        found = simulation.step_derivatives(chart="twist").jacobians(step)
        operators = simulation.step_operators(step, chart="twist")
        dx = rng.normal(size=4 * n)
        assert operators.transition @ dx == pytest.approx(found.transition @ dx, abs=1e-10 * size(found))
        assert operators.transition.T @ dx == pytest.approx(found.transition.T @ dx, abs=1e-10 * size(found))
        assert min(twist_errors(simulation, step, dx, found.transition @ dx, h) for h in (1e-5, 1e-6, 1e-7)) < 1e-6


def twist_errors(simulation: Simulation, step: Step, dx: np.ndarray, along: np.ndarray, h: float) -> float:
    """The largest error of small rotations and angular velocities before and after the step, by differences."""
    n, rotations = simulation.system.n, rotation_vectors(simulation.system)
    coordinates = Twists.at(step.before, rotations).inverse(dx[:, None])[:, 0]
    ends, before, worst = [], [], 0.0
    for sign in (1.0, -1.0):
        pairs = sign * h * coordinates.reshape(2, 2, n)
        state = replace(step.before, q=step.before.q + pairs[:, 0], v=step.before.v + pairs[:, 1])
        before.append(state)
        theta = simulation.theta
        ends.append(simulation.differentiable.step(simulation.assembler(), state, theta, step.record)[0])
    for states, middle, wanted in ((before, step.before, dx), (ends, step.after, along)):
        of_pairs = wanted.reshape(2, 2, n)
        for pair, first in product((0, 1), rotations):
            part = slice(first, first + 3)
            R = rotation_matrix(middle.q[pair, part])
            turned = [R.T @ rotation_matrix(state.q[pair, part]) for state in states]
            small = (turned[0] - turned[1]) / (2.0 * h)
            angle = np.array([small[2, 1] - small[1, 2], small[0, 2] - small[2, 0], small[1, 0] - small[0, 1]]) / 2
            spins = [body_rate(state.q[pair, part], state.v[pair, part]) for state in states]
            rate = (spins[0] - spins[1]) / (2.0 * h)
            for a, b in ((angle, of_pairs[pair, 0, part]), (rate, of_pairs[pair, 1, part])):
                worst = max(worst, float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1.0)))
    return worst


def body_rate(w: np.ndarray, w_dot: np.ndarray) -> np.ndarray:
    """The angular velocity in world axes, turned into the body's."""
    return rotation_matrix(w).T @ (left_jacobian(w) @ w_dot)


def test_twists_need_the_states() -> None:
    simulation = rigid_on_world(FrictionLaw.TANH, STEPPERS["bdf2"])[1]
    trajectory = simulation.run(n_steps=2)
    with pytest.raises(InputError, match="states around a step"):
        simulation.step_derivatives(chart="twist").jacobians(trajectory.records[0])
    with pytest.raises(InputError, match="'coordinates' or 'twist'"):
        simulation.step_derivatives(chart="body").jacobians(trajectory.records[0])
    with pytest.raises(InputError, match="no such block"):
        simulation.step_derivatives(parameters=["mass"]).jacobians(trajectory.records[0])


def cart(basis: str, rows: int = 10):
    """A block on a spring, pushed along x by a control: m a = f - k x."""
    return scene_from_dict({
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 10, "integrator": "bdf1", "newton": {"atol": 1e-13, "rtol": 0}},
        "gravity": [0, 0, 0],
        "bodies": {"cart": {"type": "rigid", "geometry": {"shape": "box", "size": [0.2, 0.1, 0.1]}, "mass": 2.0,
                            "collision": {"points": False, "shape": False}}},
        "signals": {"push": {"type": "control", "basis": basis, "rows": rows, "values": [[1.0, 0, 0]] * rows}},
        "couplings": {"motor": {"type": "force", "on": {"body": "cart", "at": [0, 0, 0]}, "force": {"signal": "push"}}},
    }).build()  # fmt: skip


@pytest.mark.parametrize(("basis", "acting"), [("constant", 1), ("linear", 2), ("cubic", 4)])
def test_controls_of_a_step(basis: str, acting: int) -> None:
    """The rows that act come back, and of a free mass the derivatives are dt / m and dt^2 / m."""
    built = cart(basis)
    trajectory = built.run()
    found = built.step_derivatives(parameters=["bodies.cart.mass"]).jacobians(trajectory.step(4))
    control = found.controls["push"]
    rows, components = np.divmod(control.index, 3)
    assert np.unique(rows).size <= acting and set(components) == {0, 1, 2}
    weights = control.v[:3].reshape(3, -1, 3)
    assert weights.sum(axis=1) == pytest.approx(0.01 / 2.0 * np.eye(3), rel=1e-9, abs=1e-15)
    assert control.q == pytest.approx(0.01 * control.v, rel=1e-9, abs=1e-15)
    if basis == "constant":
        assert rows.tolist() == [4, 4, 4]
    assert found.q_v[0, :3, :3] == pytest.approx(0.01 * np.eye(3))
    by_mass = found.parameters["bodies.cart.mass"].v[0, 0]
    assert by_mass == pytest.approx(-0.01 * 1.0 / 4.0, rel=1e-9)
