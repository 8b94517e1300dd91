"""Friction and limits of balls, tendons, drives on them, loops, starts that close loops: against differences."""

import numpy as np
import pytest
from derivatives.test_trees import LINK, TURNED

from add.equations.kinematics import Kinematics
from add.kernels.muscles import AFFINE, MUSCLE, NUMBERS, length_drive
from add.scene import scene_from_dict
from add.terms import BallFriction, BallLimits, JointCouplings, LinkLoops, OnLengths
from add.testing import check_constraint, check_term


def scene(**more):
    """A chain with a ball, hinges and a slide, two tendons, drives on them, and every kind of loop."""
    lowest = {"parent": "hand", "position": [0.05, 0, -0.2], "axis": [0, 1, 0], "value": 0.5}
    arm = {
        "type": "articulated",
        "position": [0.1, -0.2, 0.9],
        "orientation": TURNED,
        "links": {name: LINK for name in ("trunk", "rail", "hand", "finger", "thumb", "end")},
        "joints": {
            "trunk": {"axis": [1, 2, -1], "value": 0.4},
            "rail": {"parent": "trunk", "type": "slide", "axis": [0, 1, 1], "position": [0.1, 0, -0.2], "value": -0.1,
                     "orientation": TURNED},
            "hand": {"parent": "rail", "type": "ball", "position": [0, 0.1, -0.2], "value": [0.9, -0.6, 1.2],
                     "dry_friction": 0.3, "slip_speed": 0.7, "upper": 1.55, "limit_stiffness": 30,
                     "limit_damping": 0.4},
            "finger": lowest,
            "thumb": lowest | {"position": [-0.05, 0, -0.2], "axis": [0, 1, 0.3]},
            "end": {"parent": "thumb", "position": [0, 0.1, -0.2], "type": "ball", "dry_friction": 0.1},
        },
        "tendons": {
            "long": {"joints": {"trunk": 0.05, "rail": -0.7, "thumb": 0.03}, "stiffness": 20, "rest": 0.01,
                     "damping": 0.2, "dry_friction": 0.4, "slip_speed": 0.3, "lower": -0.2, "upper": 0.05},
            "short": {"joints": {"finger": 1.0, "thumb": -0.5}, "damping": 0.1},
        },
        "drives": {
            "pull": {"tendon": "long", "input": {"signal": "wanted"}, "limit": 50},
            "hold": {"tendon": "short", "type": "position", "input": 0.3, "stiffness": 4, "damping": 0.2},
            "turn": {"tendon": "short", "type": "velocity", "input": {"signal": "wanted"}, "damping": 0.2},
            "stop": {"tendon": "long", "input": 3.0, "limit": 0.5},
        },
    }  # fmt: skip
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 3},
        "bodies": {"arm": arm | more},
        "signals": {"wanted": {"type": "spline", "times": [0, 0.05, 0.1], "values": [0.1, 0.4, -0.2]}},
        "contact": {"between_bodies": False},
    }


def state(built, rng, scale=0.1):
    q, v = built.model.initial.given(built.theta)
    n = q.size
    return Kinematics(q + scale * rng.normal(size=n), v + rng.normal(size=n), rng.normal(size=n), 0.03, 3)


def test_balls_and_lengths(rng):
    built = scene_from_dict(scene()).build()
    kin, layout = state(built, rng, 0.02), built.model.system.parameters
    for kind, count, active in ((BallFriction, 1, "qv"), (BallLimits, 1, "qv")):
        terms = built.model.term(kind)
        assert len(terms) == count
        found = check_term(terms[0], kin, built.theta, rng=rng, layout=layout, energy=False)
        assert all(getattr(found, name) > 0.0 for name in active)
        assert {layout.describe(i).rsplit(".", 1)[1] for i in found.parameters} >= (
            {"dry_friction", "slip_speed"} if kind is BallFriction else {"upper", "limit_stiffness", "limit_damping"}
        )
    lengths = [term for term in built.model.system.terms if isinstance(term, OnLengths)]
    assert len(lengths) == 7  # springs, resistance, limits; four drives
    names, clipped = set(), 0
    for term in lengths:
        found = check_term(term, kin, built.theta, rng=rng, layout=layout)
        own = {layout.describe(i).split(".", 2)[2] for i in found.parameters}
        clipped += all("factors" in name for name in own)
        names |= own
    assert clipped == 1, "one drive is at its limit"
    assert {"tendons.long.factors[1]", "tendons.long.stiffness", "tendons.long.rest", "tendons.short.damping",
            "tendons.long.dry_friction", "tendons.long.upper", "drives.hold.g0"} <= names  # fmt: skip


def test_friction_of_a_ball_at_rest(rng):
    """The series near zero joins the closed form, and the torque has the size asked for where the ball turns."""
    built = scene_from_dict(scene()).build()
    (term,) = built.model.term(BallFriction)
    kin = state(built, rng)
    for size in (0.0, 1e-5, 1e-3 - 1e-9, 1e-3 + 1e-9, 1.0):
        v = kin.v / np.abs(kin.v).max() * 0.1 * size
        check_term(term, Kinematics(kin.q, v, kin.a, 0.0, 0), built.theta, rng=rng, scales={"v": 1e-3})
    fast = Kinematics(kin.q * 0.0, 1e3 * kin.v, kin.a, 0.0, 0)
    r = np.zeros_like(kin.q)
    term.residual(fast, built.theta, r)
    assert np.linalg.norm(r[term.dofs], axis=1) == pytest.approx([0.3, 0.1], rel=1e-12)


@pytest.mark.parametrize("law", [AFFINE, MUSCLE])
@pytest.mark.parametrize("asked", [0.4, 3.0], ids=["free", "clipped"])
def test_slopes_of_an_actuator(rng, asked, law):
    """By length, rate, signal and all numbers at once; a clipped signal moves nothing, nor does a clipped force."""
    numbers = rng.uniform(0.5, 2.0, 6) if law == AFFINE else [20.0, 0.2, 1.5, 0.5, 1.6, 1.3, 1.2, 0.08]
    x = np.concatenate([[0.3, -0.07, asked], numbers])

    def slopes(x, most=50.0):
        out = np.empty(4 + NUMBERS[law])
        length_drive(law, x[0], x[1], x[2], x, np.arange(3, x.size), np.array([-1.0, 1.0, -most, most]), out)
        return out

    found, h = slopes(x), 1e-6
    differences = [(slopes(x + h * unit)[0] - slopes(x - h * unit)[0]) / (2.0 * h) for unit in np.eye(x.size)]
    assert abs(slopes(x, 1e-3)[0]) == 1e-3 and not slopes(x, 1e-3)[1:].any()
    assert found[1:] == pytest.approx(differences, abs=1e-7)
    assert (found[3] == 0.0) == (asked > 1.0) and np.abs(found[4:][found[4:] != 0.0]).size >= 6


LOOPS = {
    "point": {"type": "point", "a": {"link": "finger", "position": [0.01, 0.02, -0.2]},
              "b": {"link": "end", "position": [0.02, 0.01, -0.1]}},
    "hinge": {"type": "hinge", "a": {"link": "finger", "position": [0.01, 0.02, -0.2], "orientation": TURNED},
              "b": {"link": "trunk", "position": [0.02, 0.01, -0.1]}},
    "fixed": {"type": "fixed", "a": {"position": [0.01, 0.02, -0.2], "orientation": TURNED}, "b": {"link": "end"}},
    "slider": {"type": "slider", "a": {"link": "rail", "orientation": TURNED}, "b": {"link": "end"}},
    "distance": {"type": "distance", "a": {"position": [0.5, 0, 0]}, "b": {"link": "end"}, "length": 0.4},
}  # fmt: skip
COUPLED = {"type": "joints", "joint": "finger", "other": "thumb", "coefficients": [0.1, -0.8, 0.3, 0.2]}
KEPT = {"type": "joints", "joint": "rail", "coefficients": [0.15]}


@pytest.mark.parametrize("kind", LOOPS)
def test_rows_of_loops(kind, rng, monkeypatch):
    """Rows away from where they hold, by coordinates, multipliers, places of both ends and lengths."""
    from add.scene.build import articulated

    count = {"point": 3, "hinge": 5, "fixed": 6, "slider": 5, "distance": 1}[kind]
    monkeypatch.setattr(articulated, "independent_rows", lambda tree, numbers: np.arange(count))
    built = scene_from_dict(scene(loops={kind: LOOPS[kind]})).build()
    (constraint,) = built.model.system.constraints
    assert isinstance(constraint.inner, LinkLoops) and constraint.n_rows == count
    kin, layout = state(built, rng), built.model.system.parameters
    mu = rng.normal(size=count)
    found = check_constraint(constraint, kin, mu, built.theta, rng=rng, layout=layout, scales={"q": 0.1})
    assert found.q > 0.0 and found.multiplier > 0.0 and found.v == 0.0
    names = {layout.describe(i).split(".", 2)[2] for i in found.parameters}
    assert f"joints.{kind}_a.position[0]" in names and f"joints.{kind}_b.position[1]" in names
    assert (f"loops.{kind}.length" in names) == (kind == "distance")
    assert any(f"{kind}_a.orientation" in name for name in names) or kind in ("point", "distance")


def test_rows_of_joints(rng):
    built = scene_from_dict(scene(loops={"coupled": COUPLED, "kept": KEPT})).build()
    (constraint,) = built.model.system.constraints
    assert isinstance(constraint, JointCouplings) and constraint.n_rows == 2
    kin, layout = state(built, rng), built.model.system.parameters
    found = check_constraint(constraint, kin, rng.normal(size=2), built.theta, rng=rng, layout=layout)
    assert found.q > 0.0 and found.multiplier > 0.0
    names = {layout.describe(i).split(".", 2)[2] for i in found.parameters}
    assert names == {f"loops.coupled.coefficients[{k}]" for k in range(4)} | {"loops.kept.coefficients"}


def test_starts_close_loops(rng):
    """The closest closed pose and rates, by all numbers of theta: forward and reverse against differences."""
    loops = {"point": LOOPS["point"], "coupled": COUPLED, "distance": LOOPS["distance"]}
    joints = scene()["bodies"]["arm"]["joints"]
    rates = {"trunk": 0.7, "rail": -0.4, "hand": [0.3, 0.2, -0.5], "finger": 1.1}
    for name, rate in rates.items():
        joints[name] = joints[name] | {"rate": rate}
    joints["rail"]["motion"] = {"signal": "wanted"}  # it keeps its start
    built = scene_from_dict(scene(loops=loops, joints=joints)).build()
    initial, theta = built.model.initial, built.theta
    q, v = initial.evaluate(theta)
    q_g, v_g = initial.given(theta)
    assert np.abs(q - q_g).max() > 0.05 and np.abs(v - v_g).max() > 0.05, "the given start was open"
    assert q[1] == q_g[1] and v[1] == v_g[1]
    kin = Kinematics(q, v, q * 0.0, 0.0, 0)
    n, rows_of = q.size, []
    for constraint in built.model.system.constraints:
        rows = np.zeros(constraint.n_rows)
        constraint.residual(kin, rows * 0.0, theta, np.zeros(n), rows)
        assert np.abs(rows).max() < 1e-13
        later = np.zeros(constraint.n_rows)
        moved = Kinematics(q + 1e-6 * v, v, v, 0.0, 0)
        constraint.residual(moved, later * 0.0, theta, np.zeros(n), later)
        rows_of.append(np.abs(later).max())
    assert max(rows_of) < 1e-10, "rates keep them closed to first order"
    along = rng.normal(size=theta.size) * (np.abs(theta) > 0) * np.maximum(np.abs(theta), 0.1) * 0.1
    along += (
        0.01
        * rng.normal(size=theta.size)
        * np.array([".joints." in built.model.system.parameters.describe(i) for i in range(theta.size)])
    )
    tangents = initial.jvp(theta, along)
    h = 1e-6
    sides = [initial.evaluate(theta + sign * h * along) for sign in (1.0, -1.0)]
    for tangent, plus, minus in zip(tangents, *sides, strict=True):
        assert np.abs(tangent).max() > 1e-3
        assert tangent == pytest.approx((plus - minus) / (2 * h), rel=1e-6, abs=1e-7)
    bars, out = rng.normal(size=(2, n)), np.zeros(theta.size)
    initial.vjp(theta, bars[0], bars[1], out)
    assert out @ along == pytest.approx(bars[0] @ tangents[0] + bars[1] @ tangents[1], rel=1e-10)


class _Raced(list):
    """A list into which another thread puts something of its own behind what is put there."""

    def __setitem__(self, place, values):
        super().__setitem__(place, values)
        other = tuple(part + 1.0 for part in self[0][1])
        super().__setitem__(place, [(b"of another thread", other)])


def test_starts_of_several_threads():
    """What one thread closes another one does not get."""
    built = scene_from_dict(scene(loops={"distance": LOOPS["distance"]})).build()
    assembly = built.model.initial.assembly
    expected = built.model.initial.evaluate(built.theta)
    object.__setattr__(assembly, "_last", _Raced())
    for found, part in zip(built.model.initial.evaluate(built.theta), expected, strict=True):
        assert np.array_equal(found, part)


def test_free_body_on_two_rods(rng):
    """The end of the second rod stands behind what stands still, and turns about its own body all the same."""
    rods = {
        key: {"type": "distance", "length": 0.5, "a": {"link": "body", "position": [x, 0, 0.1]},
              "b": {"position": [x, 0, 0.6]}} for key, x in (("left", -0.2), ("right", 0.2))
    }  # fmt: skip
    loose = {"type": "articulated", "base": "free", "links": {"body": LINK}, "joints": {"body": {}}, "loops": rods}
    built = scene_from_dict(scene() | {"bodies": {"loose": loose}, "signals": {}}).build()
    (constraint,) = built.model.system.constraints
    layout = built.model.system.parameters
    found = check_constraint(constraint, state(built, rng), rng.normal(size=2), built.theta, rng=rng, layout=layout)
    assert found.q > 0.0
