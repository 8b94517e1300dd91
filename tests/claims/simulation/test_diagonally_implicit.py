"""Diagonally implicit steps of order three: against DOP853, BDF2, conditions of order; gradients; what is refused."""

import copy

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.run_checks import check_gradient_of_run, tight
from support.small_models import RoughObjective

from add.errors import InputError
from add.scene import scene_from_dict
from add.simulation.runge_kutta import GAMMA, SDIRK, DiagonallyImplicit, history_coefficients

ARM = {
    "type": "articulated",
    "links": {"upper": {"mass": 0.1, "inertia": [5e-4, 5e-4, 5e-4, 0, 0, 0], "center_of_mass": [0, 0, -0.1]}},
    "joints": {"shoulder": {"child": "upper", "axis": [0, -1, 0], "value": -0.5, "rate": 4.0, "damping": 1e-3}},
}  # fmt: skip
STRIP = {
    "type": "soft", "mesh": {"shape": "box", "size": [0.2, 0.04, 0.04], "divisions": [4, 1, 1]},
    "material": {"model": "neo-hookean", "young": 4e3, "poisson": 0.3, "density": 1000, "viscosity": 1},
    "pins": [{"where": {"box": {"max": [-0.099, None, None]}}}],
}  # fmt: skip


def built(dt, steps, integrator="sdirk3", **sections):
    time = {"dt": dt, "steps": steps, "integrator": integrator} | sections.pop("time", {})
    return scene_from_dict(copy.deepcopy({"schema": "add-scene/1", "time": time} | sections)).build()


def test_coefficients():
    """Conditions of order three, and none of a stiff mode is left: R(infinity) = 1 - b^T A^-1 1 = 0."""
    a, b, c = SDIRK
    assert a.sum(axis=1) == pytest.approx(c, abs=1e-15)
    assert np.array_equal(a[-1], b)
    found = [b.sum(), b @ c, b @ c**2, b @ a @ c]
    assert found == pytest.approx([1, 1 / 2, 1 / 3, 1 / 6], abs=1e-15)
    assert 1.0 - b @ np.linalg.solve(a, np.ones(3)) == pytest.approx(0.0, abs=1e-14)
    assert GAMMA**3 - 3 * GAMMA**2 + 1.5 * GAMMA == pytest.approx(1 / 6, abs=1e-15)


def test_history_of_the_stages():
    """y' = z y by sums of earlier stages, and by the definition Y = y + z dt A Y."""
    z = -0.7 + 1.9j
    stages = np.linalg.solve(np.eye(3) - z * SDIRK.a, np.ones(3))
    states = [1.0 + 0.0j]
    for alpha in history_coefficients(SDIRK):
        before = sum(x * y for x, y in zip(alpha, reversed(states), strict=True))
        states.append(before / (1.0 - z * GAMMA))
    assert states[1:] == pytest.approx(stages, rel=1e-13)


def test_a_pendulum_against_dop853():
    m, l, inertia, d, g = 0.1, 0.1, 5e-4, 1e-3, 9.81
    change = lambda t, y: (y[1], -(m * g * l * np.sin(y[0]) + d * y[1]) / (inertia + m * l * l))  # noqa: E731
    exact = solve_ivp(change, (0, 0.6), (-0.5, 4.0), method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    errors = []
    for n in (30, 60, 120):
        found = built(0.6 / n, n, bodies={"arm": ARM}, gravity=[0, 0, -g]).run()
        errors.append(np.abs([found.q[-1, 0] - exact[0], found.v[-1, 0] - exact[1]]).max())
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx(3.0, abs=0.25)


def test_a_soft_body_against_bdf2():
    """A third of the error of BDF2 with as many solves, or less, and the one limit."""
    sections = {"bodies": {"strip": STRIP}, "gravity": [0, 0, -0.5]}
    exact = built(0.0005, 240, **sections).run().q[-1]
    ours = [np.abs(built(0.12 / n, n, **sections).run().q[-1] - exact).max() for n in (30, 60)]
    others = [np.abs(built(0.04 / n, 3 * n, "bdf2", **sections).run().q[-1] - exact).max() for n in (30, 60)]
    assert ours[0] < others[0] / 3.0
    assert ours[1] < others[1] / 3.0
    assert ours[1] < ours[0] / 4.5


BLOCK = {
    "type": "soft", "mesh": {"shape": "box", "size": [0.06, 0.06, 0.06], "divisions": [1, 1, 1]},
    "position": [0, 0, 0.031], "velocity": [0.5, 0.1, -0.5],
    "material": {"model": "neo-hookean", "young": 3e4, "poisson": 0.3, "density": 500, "viscosity": 5},
}  # fmt: skip
PUSHED = ARM | {"drives": {"push": {"joint": "shoulder", "input": {"signal": "push"}}}}
BOX = {
    "type": "rigid", "density": 300, "geometry": {"shape": "box", "size": [0.1, 0.08, 0.06]},
    "position": [0, 0, 0.055], "orientation": [0.98, 0.19899748742132398, 0, 0], "velocity": [0.3, 0.1, -0.6],
    "angular_velocity": [0.5, 9.0, 0.3],
}  # fmt: skip
FLOOR = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}
CONTACT = {
    "stiffness": 3000, "damping": 4, "onset": 0.002, "damping_ramp": 0.004, "friction": 0.4, "friction_law": "tanh",
}  # fmt: skip
MOVED = STRIP | {"pins": [{"where": {"box": {"max": [-0.099, None, None]}}, "motion": {"signal": "lift"}}]}
CASES = {
    "a driven arm": {
        "bodies": {"arm": PUSHED},
        "signals": {"push": {"type": "control", "basis": "constant", "rows": 3, "values": [0.02, -0.01, 0.03]}},
    },
    "a box on a floor": {"bodies": {"box": BOX}, "obstacles": FLOOR, "contact": CONTACT},
    "a soft block on a floor": {
        "bodies": {"block": BLOCK}, "obstacles": FLOOR, "contact": CONTACT | {"friction_law": "linear"},
    },
    "a led strip": {
        "bodies": {"strip": MOVED},
        "signals": {"lift": {"type": "spline", "times": [0, 0.05, 0.1], "values": [[0, 0, 0], [0, 0, 0.01], [0] * 3]}},
    },
}  # fmt: skip


def test_stages_have_times_of_their_own():
    """A torque that grows: a = s t / I, so that the angle is cubic, and exact."""
    links = {"upper": {"mass": 0.1, "inertia": [5e-4] * 3 + [0, 0, 0], "center_of_mass": [0, 0, 0]}}
    joint = {"child": "upper", "axis": [0, -1, 0]}
    arm = PUSHED | {"links": links, "joints": {"shoulder": joint}}
    push = {"type": "spline", "times": [0, 0.3, 0.6], "values": [0, 0.003, 0.006]}
    found = built(0.05, 12, bodies={"arm": arm}, signals={"push": push}).run()
    assert found.q[:, 0] == pytest.approx(0.01 * found.t**3 / 6.0 / 5e-4, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_gradients(case, rng):
    scene = built(0.004, 12, **CASES[case])
    simulation = tight(scene.simulation)
    assert isinstance(simulation.stepper, DiagonallyImplicit)
    trajectory = check_gradient_of_run(simulation, RoughObjective(rng.normal(size=simulation.system.n)))
    touched = [any(len(decision) for decision in record.decisions) for record in trajectory.records]
    assert any(touched) == ("contact" in CASES[case])
    if case == "a soft block on a floor":
        (term,), stages = simulation.system.deciding, [s for record in trajectory.records for s in record.inner]
        seen = [term.describe(stage.decisions[0]) for stage in stages]
        assert any(one["sticking"] for one in seen) and any(one["slipping"] for one in seen)
    # Charts change at the ends of steps.
    turned = built(0.02, 25, bodies={"box": BOX | {"position": [0, 0, 1]}}).run()
    assert any(record.charts.size for record in turned.records)


def test_derivatives_of_a_step(rng):
    simulation = tight(built(0.004, 6, **CASES["a box on a floor"]).simulation)
    found, theta = simulation.run(), simulation.theta
    jacobians = simulation.step_derivatives(theta).jacobians(found.records[4])
    dot, assembler, ends = rng.normal(size=12), simulation.assembler(), []
    for h in (1e-7, -1e-7):
        begin = simulation.state(found.q[4] + h * dot[:6], found.v[4] + h * dot[6:], step=4)
        after, _ = simulation.stepper.step(assembler, begin, theta, found.records[4])
        ends.append(np.concatenate([after.q[0], after.v[0]]))
    assert jacobians.n_read == 1
    assert jacobians.transition[:12, :12] @ dot == pytest.approx((ends[0] - ends[1]) / 2e-7, rel=1e-5, abs=1e-5)


def test_a_run_goes_on(rng):
    simulation = built(0.004, 12, **CASES["a box on a floor"]).simulation
    found = simulation.run()
    assert np.array_equal(simulation.run(state=found.state(5)).q, found.q[5:])
    again = simulation.run(replay=found.replay)
    assert again.q == pytest.approx(found.q, abs=1e-14)
    assert not any(record.report.iterations for record in again.records)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"contact": CONTACT | {"friction_law": "hybrid"}}, "no friction that holds"),
        ({"contact": {"friction": 0.4, "friction_law": "exact"}}, "'sdirk3' steps without hard contact"),
        ({"contact": CONTACT, "time": {"substeps": "auto"}}, "steps of 'sdirk3' are not divided"),
    ],
)
def test_what_is_refused(sections, message):
    with pytest.raises(InputError, match=message):
        built(0.01, 3, bodies={"box": BOX}, obstacles=FLOOR, **sections)
