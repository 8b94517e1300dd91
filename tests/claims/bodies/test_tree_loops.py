"""Loops of trees closed exactly: the four-bar of the reference, redundant rows, couplings of joints, errors."""

import json

import numpy as np
import pytest
from scipy.optimize import fsolve
from support.places import SPECS

from add.adjoint import Cotangents, pullback, pushforward
from add.errors import InputError
from add.scene import scene_from_dict

REFERENCE = SPECS / "articulated" / "reference"
there = pytest.mark.skipif(not REFERENCE.is_dir(), reason="the reference values are not there")

ROD = {"mass": 0.4, "center_of_mass": [0.125, 0, 0], "inertia": [4e-5, 2.1e-3, 2.1e-3, 0, 0, 0]}


def four_bar(loop="point", **more):
    """Crank 0.1, coupler 0.3, rocker 0.25 m, ground 0.3 m; hinges about y."""
    turned = [0.7071067811865476, 0.7071067811865476, 0, 0]  # z of the loop's frames along the hinges' axes
    body = {
        "type": "articulated",
        "links": {
            "crank": {"mass": 0.2, "center_of_mass": [0.05, 0, 0], "inertia": [2e-5, 1.8e-4, 1.8e-4, 0, 0, 0]},
            "coupler": {"mass": 0.5, "center_of_mass": [0.15, 0, 0], "inertia": [5e-5, 3.8e-3, 3.8e-3, 0, 0, 0]},
            "rocker": ROD,
        },
        "joints": {
            "crank": {"axis": [0, 1, 0], "value": -0.5, "rate": 4.0},
            "coupler": {"parent": "crank", "axis": [0, 1, 0], "position": [0.1, 0, 0], "value": -0.2},
            "rocker": {"parent": "coupler", "axis": [0, 1, 0], "position": [0.3, 0, 0], "value": 2.3},
        },
        "loops": {"closing": {"type": loop, "a": {"link": "rocker", "position": [0.25, 0, 0], "orientation": turned},
                              "b": {"position": [0.3, 0, 0], "orientation": turned}}},
    }  # fmt: skip
    return {"schema": "add-scene/1", "time": {"dt": 1e-3, "steps": 100}, "bodies": {"bar": body | more},
            "contact": {"between_bodies": False}}  # fmt: skip


def gap(q):
    """Distance of the rocker's end from the ground's (n,)."""
    angles = np.cumsum(q, axis=-1)
    lengths = np.array([0.1, 0.3, 0.25])
    return np.hypot((lengths * np.cos(angles)).sum(axis=-1) - 0.3, (lengths * np.sin(angles)).sum(axis=-1))


def from_file(steps, dt, integrator, **newton):
    """The file's four-bar from the reference's start, whose rates and two angles follow from the loop."""
    trajectory = json.loads((REFERENCE / "trajectories" / "four_bar_trajectory.json").read_text(encoding="utf-8"))
    body = {"type": "articulated", "model": str(REFERENCE / "models" / "four_bar.xml")}
    names = ("crank", "coupler", "rocker")
    body["joints"] = {
        name: {"value": q, "rate": v} for name, q, v in zip(names, trajectory["q"][0], trajectory["v"][0], strict=True)
    }
    raw = {"schema": "add-scene/1", "time": {"dt": dt, "steps": steps, "integrator": integrator, "newton": newton},
           "bodies": {"bar": body}, "contact": {"between_bodies": False}}  # fmt: skip
    return scene_from_dict(raw).build(), trajectory


@there
@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_four_bar_of_the_reference_converges(integrator):
    """0.05 s from the start; the loop is closed to 1e-12 m, and its force is the reference's."""
    pytest.importorskip("mujoco", reason="MJCF files are read by the package mujoco")
    errors, forces = [], []
    for steps in (50, 100):
        built, trajectory = from_file(steps, 0.05 / steps, integrator)
        run = built.run()
        assert gap(run.q).max() <= 1e-12
        errors.append(np.abs(run.q[-1] - trajectory["q"][1]).max())
        (own,) = built.tree_reactions(run.records[-1])["bar"].values()
        angle = run.q[-1].sum()  # the force is in the rocker's axes
        turned = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        force = turned @ own[[0, 2]]
        forces.append(np.abs(force - trajectory["force_on_rocker_end_xz"][1]).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx({"bdf1": 1.0, "bdf2": 2.0}[integrator], abs=0.25), errors
    assert forces[1] < 0.6 * forces[0] and forces[1] < {"bdf1": 0.2, "bdf2": 0.02}[integrator], forces


@there
@pytest.mark.slow
def test_four_bar_of_the_reference_over_two_seconds():
    """At dt = 1e-4: what is left after 2 s and 10 to 18 rad/s is the formula's error, and the loop stays closed.

    With half the steps the error is four times as large, and what both extrapolate to is within 1e-6.
    """
    pytest.importorskip("mujoco", reason="MJCF files are read by the package mujoco")
    found = []
    for every in (250, 500):
        built, trajectory = from_file(40 * every, 0.05 / every, "bdf2", atol=1e-7)
        run = built.run()
        assert gap(run.q).max() <= 1e-12
        found.append(run.q[::every])
    reference = np.array(trajectory["q"])
    coarse, fine, extrapolated = (
        np.abs(q - reference).max(axis=1) for q in (*found, (4.0 * found[1] - found[0]) / 3.0)
    )
    print("errors over time", fine, "extrapolated", extrapolated)
    assert fine[1] <= 1e-6 and fine.max() < 1e-4
    assert coarse.max() / fine.max() == pytest.approx(4.0, abs=0.2)
    assert extrapolated.max() <= 1e-6


def test_rows_that_depend_on_others():
    """Five rows of a planar hinge are two."""
    built = scene_from_dict(four_bar("hinge")).build()
    (constraint,) = built.model.system.constraints
    assert constraint.n_rows == 2
    run, other = built.run(), scene_from_dict(four_bar("point")).build().run()
    assert gap(run.q).max() < 1e-12
    assert np.abs(run.q - other.q).max() < 1e-10


@pytest.mark.parametrize("loop", ["fixed", "slider"])
def test_more_rows_than_joints_can_do(loop):
    """Three of the six rows of a plane count: no freedom is left, and the four-bar's rocker does not fit."""
    with pytest.raises(InputError, match=r"bodies\.bar\.loops: loops do not close"):
        scene_from_dict(four_bar(loop)).build()


def test_a_start_is_closed():
    """The closest closed pose, as the minimum of the distance found by another way."""
    built = scene_from_dict(four_bar()).build()
    q, v = built.model.initial.evaluate(built.theta)
    given, rate = built.model.initial.given(built.theta)
    assert gap(given) > 0.01 > 1e-13 > gap(q)

    def rows(q):
        angles, lengths = np.cumsum(q), np.array([0.1, 0.3, 0.25])
        x, z = lengths * np.cos(angles), -lengths * np.sin(angles)
        return np.array([x.sum() - 0.3, z.sum()]), np.array(
            [[z[k:].sum() for k in range(3)], [-x[k:].sum() for k in range(3)]]
        )

    def conditions(y):
        c, G = rows(y[:3])
        return np.concatenate([y[:3] - given + G.T @ y[3:], c])

    assert q == pytest.approx(fsolve(conditions, np.concatenate([q + 1e-3, np.zeros(2)]), xtol=1e-13)[:3], abs=1e-11)
    G = rows(q)[1]
    assert v == pytest.approx(rate - G.T @ np.linalg.solve(G @ G.T, G @ rate), abs=1e-12)


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_gradients_of_runs_with_loops(integrator, rng):
    """Of all states by all numbers, lengths and places of the loop among them: reverse, forward, differences."""
    raw = four_bar("hinge")
    raw["time"] = {"dt": 2e-3, "steps": 15, "integrator": integrator, "newton": {"atol": 1e-13, "rtol": 1e-14}}
    built = scene_from_dict(raw).build()
    simulation, numbers = built.simulation, built.numbers
    run = simulation.run(built.theta)
    q_bar, v_bar = rng.normal(size=(2, *run.q.shape))
    gradient = pullback(simulation, run, built.theta, Cotangents(q_bar, v_bar))
    along = np.maximum(np.abs(numbers.values), 0.1) * rng.normal(size=numbers.values.size) * 0.1
    theta_dot = numbers.ties.pushforward(numbers.values, along)
    tangents = pushforward(simulation, run, built.theta, [theta_dot])
    forward = (q_bar * tangents.q[0]).sum() + (v_bar * tangents.v[0]).sum()
    assert gradient @ theta_dot == pytest.approx(forward, rel=1e-8)
    sides = []
    for sign in (1.0, -1.0):
        theta = numbers.ties.forward(numbers.values + sign * 1e-5 * along)
        there = simulation.run(theta, replay=run.replay)
        sides.append((q_bar * there.q).sum() + (v_bar * there.v).sum())
    assert forward == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-6)
    length = simulation.system.parameters["bodies.bar.joints.rocker.position"].indices[0]
    assert abs(gradient[length]) > 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("law", "h"), [("hybrid", 1e-5), ("impulse", 1e-7)])
def test_loops_beside_contact(law, h, rng):
    """The rocker comes down on the floor: the loop stays closed, and gradients are right.

    Under impulses its foot slips at 1e-5 m/s in one step, and further away no state slips there as it did.
    """
    ball = {"geometry": {"shape": "sphere", "radius": 0.03}, "position": [0.15, 0, -0.03]}
    raw = four_bar("hinge")
    raw["bodies"]["bar"]["links"]["rocker"] = ROD | {"shapes": [ball]}
    raw["bodies"]["bar"]["joints"]["crank"]["rate"] = 9.0
    raw["time"] = {"dt": 2e-3, "steps": 100, "integrator": "bdf1", "newton": {"atol": 1e-12, "rtol": 1e-13}}
    raw["contact"] = {"friction": 0.4, "friction_law": law, "between_bodies": False}
    if law == "hybrid":
        raw["contact"] |= {"stiffness": 2000, "damping": 5, "damping_ramp": 0.002, "onset": 0.002}
    free = scene_from_dict(raw).build().run()
    raw["obstacles"] = {"floor": {"shape": "plane", "point": [0, 0, 0.0395], "normal": [0, 0, 1]}}
    built = scene_from_dict(raw).build()
    simulation, numbers, run = built.simulation, built.numbers, built.run()
    assert gap(run.q).max() < 1e-14 and np.abs(run.q - free.q).max() > 1e-2, "closed, and the floor was met"
    q_bar, v_bar = rng.normal(size=(2, *run.q.shape))
    gradient = pullback(simulation, run, built.theta, Cotangents(q_bar, v_bar))
    along = np.maximum(np.abs(numbers.values), 0.1) * rng.normal(size=numbers.values.size) * 0.05
    theta_dot = numbers.ties.pushforward(numbers.values, along)
    tangents = pushforward(simulation, run, built.theta, [theta_dot])
    forward = (q_bar * tangents.q[0]).sum() + (v_bar * tangents.v[0]).sum()
    assert gradient @ theta_dot == pytest.approx(forward, rel=1e-9)
    sides = []
    for sign in (1.0, -1.0):
        there = simulation.run(numbers.ties.forward(numbers.values + sign * h * along), replay=run.replay)
        sides.append((q_bar * there.q).sum() + (v_bar * there.v).sum())
    assert forward == pytest.approx((sides[0] - sides[1]) / (2.0 * h), rel=1e-6)


def test_dynamics_with_loops():
    """M a + bias + G^T mu = 0 with G a + (dG v) = 0 is the motion of a run's fine steps, and its force of closure."""
    raw = four_bar("hinge")
    raw["time"] = {"dt": 1e-5, "steps": 4, "integrator": "bdf1", "newton": {"atol": 1e-6}}
    built = scene_from_dict(raw).build()
    run, h = built.run(), 1e-6
    q, v = run.q[3], run.v[3]
    found = built.simulation.dynamics(q, v)
    G = found.rows
    assert G.shape == (2, 3) and np.abs(G @ v).max() < 1e-3 < np.abs(G).max()
    sides = [built.simulation.dynamics(q + sign * h * v, v).rows @ v for sign in (1.0, -1.0)]
    curved = (sides[0] - sides[1]) / (2.0 * h)
    matrix = np.block([[found.mass, G.T], [G, np.zeros((2, 2))]])
    solution = np.linalg.solve(matrix, -np.concatenate([found.bias, curved]))
    assert (run.v[4] - run.v[3]) / 1e-5 == pytest.approx(solution[:3], rel=1e-3)
    assert run.records[-1].mu == pytest.approx(solution[3:], rel=1e-3)


def test_a_coupling_is_a_mimic_joint():
    """A linear coupling moves as the joint that follows another one, whose column is in the mass matrix."""
    links = {"upper": ROD, "lower": ROD}
    joints = {"upper": {"axis": [0, 1, 0], "value": 0.3, "rate": 1.0},
              "lower": {"parent": "upper", "axis": [0, 1, 0], "position": [0.25, 0, 0], "value": 0.4}}  # fmt: skip
    coupled = {"geared": {"type": "joints", "joint": "lower", "other": "upper", "coefficients": [0.1, -2.0]}}
    body = {"links": links, "loops": coupled}
    one = scene_from_dict(four_bar(**body, joints=joints)).build()
    q = one.model.initial.evaluate(one.theta)[0]
    mimic = {"upper": joints["upper"] | {"value": q[0], "rate": 0.2},
             "lower": {k: v for k, v in joints["lower"].items() if k != "value"}
             | {"mimic": {"joint": "upper", "factor": -2.0, "offset": 0.1}}}  # fmt: skip
    other = scene_from_dict(four_bar(links=links, loops={}, joints=mimic)).build()
    assert one.model.initial.evaluate(one.theta)[1] == pytest.approx([0.2, -0.4], abs=1e-14)
    runs = one.run(), other.run()
    assert np.abs(runs[0].q[:, 0] - runs[1].q[:, 0]).max() < 1e-9
    assert np.abs(runs[0].q[:, 1] - 0.1 + 2.0 * runs[0].q[:, 0]).max() < 1e-13


ERRORS = {
    "no-link": ({"a": {"link": "hand"}, "b": {}, "type": "point"}, "loops.closing.a.link", "no link of this name"),
    "length": ({"a": {"link": "rocker"}, "b": {}, "type": "distance"}, "loops.closing.length",
               "goes with a 'distance'"),
    "far": ({"a": {"link": "rocker"}, "b": {"position": [9, 0, 0]}, "type": "point"}, "loops", "do not close near"),
    "no-joint": ({"joint": "hip", "coefficients": [0], "type": "joints"}, "loops.closing.joint", "no joint of this"),
    "one link": ({"a": {"link": "rocker"}, "b": {"link": "rocker"}, "type": "point"}, "loops.closing", "holds nothing"),
    "itself": ({"joint": "crank", "other": "crank", "coefficients": [0], "type": "joints"}, "loops.closing.other",
               "follows another one"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    loop, place, text = ERRORS[case]
    with pytest.raises(InputError) as caught:
        scene_from_dict(four_bar(loops={"closing": loop})).build()
    assert f"bodies.bar.{place}" in str(caught.value) and text in str(caught.value)


def test_singular_starts_are_refused():
    """A parallelogram that lies flat may go on in two ways."""
    joints = {
        "crank": {"axis": [0, 1, 0]},
        "coupler": {"parent": "crank", "axis": [0, 1, 0], "position": [0.1, 0, 0]},
        "rocker": {"parent": "coupler", "axis": [0, 1, 0], "position": [0.3, 0, 0], "value": np.pi},
    }
    loop = {"type": "point", "a": {"link": "rocker", "position": [0.1, 0, 0]}, "b": {"position": [0.3, 0, 0]}}
    with pytest.raises(InputError, match="the loops are singular where they start"):
        scene_from_dict(four_bar(joints=joints, loops={"closing": loop})).build()


@pytest.mark.parametrize("turn", [[0, 1, 0, 0], [0.5, 0.5, 0.5, 0.5], [0.28, 0, 0.96, 0]])
def test_frames_that_would_close_turned(turn):
    """The rows of a fixed loop vanish at half and third turns of its frames, too, which is not what it says."""
    links, joints = {"crank": ROD}, {"crank": {"type": "ball"}}
    loop = {"type": "fixed", "a": {"link": "crank"}, "b": {"orientation": turn}}
    with pytest.raises(InputError, match=r"loops\.closing: the loop closes near its start with its frames turned"):
        scene_from_dict(four_bar(links=links, joints=joints, loops={"closing": loop})).build()
