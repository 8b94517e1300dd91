"""Dry friction of joints that holds: its equations against differences, and gradients of runs that stick and slip."""

from collections.abc import Callable

import numpy as np
import pytest
from simulation.test_step_jacobians import check_step
from support.compiled_runs import by_terms
from support.run_checks import check_gradient_of_run
from support.small_models import RoughObjective

import add
from add.adjoint import Cotangents, pullback, pushforward
from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Decision
from add.kernels.contact_pairs import ACTIVE, BITS, RELEASED, SLIP, STICKS
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory
from add.terms import HeldEquations, HeldResistance
from add.testing import check_constraint, check_deciding_term, check_term

LINK = {"mass": 0.8, "inertia": [0.01, 0.012, 0.005, 0, 0, 0.001], "center_of_mass": [0.02, 0.01, -0.15]}


def arm(integrator: str = "bdf1", steps: int = 40, **joints: dict) -> BuiltScene:
    """Return a hinge that a torque drives to and fro, a slide and a hinge behind it; all have dry friction."""
    own = {
        "a": {"axis": [0, 1, 0.2], "dry_friction": 3.0, "damping": 0.05, "value": 0.1},
        "b": {"parent": "a", "type": "slide", "axis": [0.2, 0, 1], "position": [0, 0, -0.3], "dry_friction": 17.0},
        "c": {"parent": "b", "axis": [0.3, 1, 0], "position": [0, 0, -0.1], "dry_friction": 1.1, "value": 0.1},
    }
    for name, more in joints.items():
        own[name] |= more
    wanted = {"type": "spline", "times": [0, 0.05, 0.1, 0.15, 0.2], "values": [0, 14, -8, 0, 0]}
    return add.scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.005, "steps": steps, "integrator": integrator, "newton": {"atol": 1e-13, "rtol": 1e-14}},
            "bodies": {"arm": {"type": "articulated", "dry_friction_law": "hybrid", "joints": own,
                               "links": {name: LINK for name in own},
                               "drives": {"motor": {"joint": "a", "input": {"signal": "torque"}}}}},
            "signals": {"torque": wanted},
        }
    ).build()  # fmt: skip


def decided(*joints: int, way: int = 1) -> Decision:
    """Return a decision with these bits of each joint."""
    return np.array([[i, way * (bits & SLIP != 0), ACTIVE | bits] for i, bits in enumerate(joints)])


def law_of(built: BuiltScene) -> HeldResistance:
    """Return the only term with branches."""
    (term,) = built.simulation.system.deciding
    assert isinstance(term, HeldResistance)
    return term


def moved(built: BuiltScene, rng: np.random.Generator) -> Kinematics:
    """Return a state in which the first joint creeps, the second slips up and the third down."""
    q, _ = built.model.initial.evaluate(built.theta)
    v = np.array([0.4, 1.7, -2.5]) * built.theta[law_of(built).slip]
    return Kinematics(q, v, rng.normal(size=3), 0.03, 3)


def test_equations(rng: np.random.Generator) -> None:
    built = arm(**{name: {"slip_speed": 0.3} for name in "abc"})
    term, kin, layout = law_of(built), moved(built, rng), built.model.system.parameters
    decision, found = check_deciding_term(term, kin, built.theta, rng=rng, layout=layout, scales={"v": 0.05})
    assert decision.tolist() == [[0, 0, ACTIVE], [1, 1, ACTIVE | SLIP], [2, -1, ACTIVE | SLIP]] and found.v > 0.0
    assert term.describe(decision) == {"sticking": 0, "slipping": 2, "creeping": 1}
    creeping, slipping, held = ("dry_friction", "slip_speed"), ("dry_friction",), ()
    for bits, keys in ((RELEASED, creeping), (RELEASED | SLIP, slipping), (STICKS, held)):
        branch = term.on_branch(decided(bits, 0, STICKS))
        found = check_term(branch, kin, built.theta, rng=rng, layout=layout, scales={"v": 0.05})
        own = {layout.describe(i).rsplit(".", 1)[1] for i in found.parameters if ".a." in layout.describe(i)}
        assert own == {"damping", *keys}
    constraint = term.stick_constraint(decided(STICKS, SLIP, STICKS))
    assert constraint is not None and constraint.n_rows == 6
    mu = rng.normal(size=6)
    found = check_constraint(constraint, kin, mu, built.theta, rng=rng, layout=layout)
    assert found.v > 0.0 and found.q == 0.0
    rows = np.zeros(6)
    constraint.residual(kin, mu, built.theta, np.zeros(3), rows)
    assert rows.tolist() == [kin.v[0], 0, 0, kin.v[2], 0, 0]
    # The solver's share of the matrix, in the slots of the frozen term, is p by_v^T by_u.
    operators, data = constraint.operators(kin, built.theta), np.zeros(3)
    by_u = Weights(1.0, 30.0, 900.0).v * operators.by_v
    constraint.add_products(2.0, operators.by_v, by_u, data, np.arange(3))
    assert data.tolist() == [60.0, 0.0, 60.0]


def balls(integrator: str = "bdf1", **more: object) -> BuiltScene:
    """Return two balls in a row, the first far from its chart's middle, that fall and are braked."""
    own = {
        "a": {"type": "ball", "dry_friction": 5.5, "value": [0.9, -1.6, 2.0], "rate": [1.0, 3.0, -1.0]} | more,
        "b": {"type": "ball", "parent": "a", "position": [0, 0, -0.3], "dry_friction": 1.5,
              "value": [0.2, 0.5, 0.3]} | more,
    }  # fmt: skip
    time = {"dt": 0.005, "steps": 50, "integrator": integrator, "newton": {"atol": 1e-13, "rtol": 1e-14}}
    body = {"type": "articulated", "dry_friction_law": "hybrid", "links": {"a": LINK, "b": LINK}, "joints": own}
    return add.scene_from_dict({"schema": "add-scene/1", "time": time, "bodies": {"arm": body}}).build()


def test_equations_of_balls(rng: np.random.Generator) -> None:
    built = balls(slip_speed=2.0)
    (term,), layout = built.simulation.system.deciding, built.model.system.parameters
    assert isinstance(term, HeldResistance) and term.width.tolist() == [3, 3]
    q, _ = built.model.initial.evaluate(built.theta)
    kin = Kinematics(q, np.array([0.4, 0.2, -0.3, 3.0, -1.0, 2.0]), rng.normal(size=6), 0.03, 3)
    decision, found = check_deciding_term(term, kin, built.theta, rng=rng, layout=layout, scales={"q": 0.1, "v": 0.1})
    assert decision.tolist() == [[0, 0, ACTIVE], [1, 0, ACTIVE | SLIP]] and found.q > 0.0 and found.v > 0.0
    creeping, slipping, held = {"dry_friction", "slip_speed"}, {"dry_friction"}, set[str]()
    for bits, keys in ((RELEASED, creeping), (RELEASED | SLIP, slipping), (STICKS, held)):
        branch = term.on_branch(decided(STICKS, bits, way=0))
        found = check_term(branch, kin, built.theta, rng=rng, layout=layout, scales={"q": 0.1, "v": 0.1})
        assert {layout.describe(i).rsplit(".", 1)[1] for i in found.parameters} == keys
    # One of them alone, so that places in the frozen term count.
    constraint, mu = term.stick_constraint(decided(SLIP, STICKS, way=0)), rng.normal(size=3)
    assert isinstance(constraint, HeldEquations)
    found = check_constraint(constraint, kin, mu, built.theta, rng=rng, layout=layout, scales={"q": 0.1, "v": 0.1})
    assert found.q > 0.0 and found.v > 0.0
    weights, (rows, cols), n = Weights(1.0, 30.0, 900.0, 1.0), constraint.pattern(6), 6
    values, whole = np.zeros(rows.size), np.zeros((9, 9))
    constraint.jacobian(kin, mu, built.theta, weights, values, np.arange(rows.size))
    np.add.at(whole, (rows, cols), values)
    rows, cols = term.on_branch(decision).pattern()
    operators = constraint.operators(kin, built.theta)
    by_u = weights.q * operators.by_q + weights.v * operators.by_v
    parts = np.zeros((2, rows.size))
    constraint.add_geometry(kin, mu, built.theta, weights.q, parts[0], np.arange(rows.size))
    constraint.add_products(2.0, operators.by_v, by_u, parts[1], np.arange(rows.size))
    for part, expected in zip(parts, (whole[:n, :n], 2.0 * whole[:n, n:] @ whole[n:, :n]), strict=True):
        found = np.zeros((n, n))
        np.add.at(found, (rows, cols), part)
        assert found == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())


def phases(built: BuiltScene, run: Trajectory) -> list[str]:
    """Return what each joint did, a letter for each spell: s sticks, l slips, c creeps."""
    bits = np.array([record.decisions[0][:, BITS] for record in run.records])
    letters = np.where(bits & STICKS, "s", np.where(bits & SLIP, "l", "c"))
    return ["".join(a for a, b in zip(row, ["", *row[:-1]], strict=True) if a != b) for row in letters.T]


def check_phases(built: BuiltScene, run: Trajectory) -> np.ndarray:
    """All joints stick, slip and stick, two of them twice, or balls slip and stick; return which stick in each step."""
    (term,), spells = built.simulation.system.deciding, phases(built, run)
    assert isinstance(term, HeldResistance)
    turning = bool((term.width == 3).all())
    assert spells == (["ls", "ls"] if turning else ["slsls", "sls", "slsls"])
    bits = np.array([record.decisions[0][:, BITS] for record in run.records])
    assert turning or (bits & RELEASED).any(), "a joint is let go within a step"
    every = term.stick_constraint(decided(*[STICKS] * term.width.size))
    assert isinstance(every, HeldEquations)
    rates = np.array([every.evaluate(record.kin, built.theta).rows for record in run.records])
    assert np.abs(rates[bits & STICKS != 0]).max() < 1e-12
    return bits & STICKS != 0


@pytest.mark.parametrize("make", [arm, balls])
def test_gradient_of_a_run(make: Callable[[str], BuiltScene], rng: np.random.Generator) -> None:
    """Reverse against forward mode and held differences along all numbers of the scene at once."""
    built = make("bdf2")
    simulation, numbers = built.simulation, built.numbers
    assert simulation.packed is not None, simulation.by_terms
    run = simulation.run(built.theta)
    check_phases(built, run)
    q_bar, v_bar = rng.normal(size=(2, *run.q.shape))
    gradient = pullback(simulation, run, built.theta, Cotangents(q_bar, v_bar))
    terms = by_terms(simulation)
    assert np.abs(terms.run(built.theta).q - run.q).max() < 1e-8
    expected = pullback(terms, run, built.theta, Cotangents(q_bar, v_bar))
    assert np.abs(gradient - expected).max() <= 1e-9 * np.abs(expected).max()
    along = np.maximum(np.abs(numbers.values), 0.1) * rng.normal(size=numbers.values.size)
    theta_dot = numbers.ties.pushforward(numbers.values, along)
    tangents = pushforward(simulation, run, built.theta, [theta_dot])
    forward = (q_bar * tangents.q[0]).sum() + (v_bar * tangents.v[0]).sum()
    assert gradient @ theta_dot == pytest.approx(forward, rel=1e-10)
    sides = []
    for sign in (1.0, -1.0):
        theta = numbers.ties.forward(numbers.values + sign * 1e-6 * along)
        there = simulation.run(theta, replay=run.replay)
        sides.append((q_bar * there.q).sum() + (v_bar * there.v).sum())
    assert forward == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-6)
    layout = simulation.system.parameters
    for joint in "abc" if make is arm else "ab":
        assert abs(gradient[layout[f"bodies.arm.joints.{joint}.dry_friction"].start]) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("make", "integrator"), [(arm, "bdf1"), (arm, "bdf2"), (balls, "bdf2")])
def test_gradient_by_every_number(make: Callable[[str], BuiltScene], integrator: str) -> None:
    """Number by number, by all schedules; of joints with one coordinate also Jacobians of steps in which some stick."""
    built = make(integrator)
    n = built.simulation.system.n
    run = check_gradient_of_run(built.simulation, RoughObjective(np.random.default_rng(1).normal(size=n)))
    held = check_phases(built, run).sum(axis=1)
    for count in (1, 2) if make is arm else ():
        check_step(built.simulation, run.step(int(np.flatnonzero(held == count)[0])), np.random.default_rng(2))
