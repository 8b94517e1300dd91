"""Dry friction of joints that holds: against what Coulomb's law says of hinges, slides and pendulums."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bodies.test_tree_loops import four_bar
from bodies.test_trees_hybrid import scene as on_floor
from support.walker import TURNED, walker

import add
from add.equations.kinematics import Kinematics
from add.errors import InputError
from add.kernels.contact_pairs import ACTIVE, BITS, STICKS
from add.scene.build.built import BuiltScene
from add.terms import HeldResistance

G = 9.81
INERTIA = 0.4


def joint(kind: str, *, friction: float, dt: float, steps: int, integrator: str = "bdf1", **more: object) -> BuiltScene:
    """A link on one joint: 1 kg on a slide, or a hinge or ball in its centre of mass."""
    own = {"type": kind, "dry_friction": friction} | more
    own |= {} if kind == "ball" else {"axis": [0, 0, 1]}
    force = own.pop("force", None)
    drives = {} if force is None else {"motor": {"joint": "a", "input": force}}
    body = {
        "type": "articulated", "dry_friction_law": "hybrid", "joints": {"a": own}, "drives": drives,
        "links": {"a": {"mass": 1.0, "inertia": [INERTIA] * 3 + [0, 0, 0], "center_of_mass": [0, 0, 0]}},
    }  # fmt: skip
    time = {"dt": dt, "steps": steps, "integrator": integrator}
    gravity = [0, 0, -G if kind == "slide" else 0.0]
    raw = {"schema": "add-scene/1", "time": time, "gravity": gravity, "bodies": {"arm": body}}
    return add.scene_from_dict(raw).build()


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
@pytest.mark.parametrize(("kind", "load", "inertia"), [("hinge", 0.0, INERTIA), ("slide", -G, 1.0)])
def test_a_joint_holds_up_to_its_limit(integrator: str, kind: str, load: float, inertia: float) -> None:
    """Below the limit nothing creeps in 10 s; above it the rest of the torque accelerates."""
    for share, steps in ((0.999, 100), (-0.999, 100), (1.01, 20), (-1.5, 20)):
        tau = 2.0
        built = joint(kind, friction=tau, dt=0.1, steps=steps, integrator=integrator, force=share * tau - load)
        run = built.run()
        if abs(share) < 1.0:
            assert run.t[-1] == pytest.approx(10.0) and np.abs(run.q - run.q[0]).max() < 1e-9
            continue
        expected = (share - np.sign(share)) * tau / inertia * run.t
        assert run.v[:, 0] == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_a_ball_stops() -> None:
    """It turns about a fixed axis, slower by tau/I, and stays where it stops."""
    tau, omega = 2.0, np.array([0.6, -0.8, 1.2])
    built = joint("ball", friction=tau, dt=0.01, steps=60, rate=omega.tolist())
    run, size = built.run(), np.linalg.norm(omega)
    expected = np.maximum(size - tau / INERTIA * run.t, 0.0)
    rates = np.array([run.v[0], *(law_rates(built, record.kin) for record in run.records)])
    assert rates == pytest.approx(expected[:, None] * omega / size, abs=1e-9)
    assert 20 < np.count_nonzero(expected) < 40 and np.abs(run.q[-20:] - run.q[-1]).max() < 1e-12


def law_rates(built: BuiltScene, kin: Kinematics) -> np.ndarray:
    """Return the rates of the only joint."""
    (law,) = built.simulation.system.deciding
    assert isinstance(law, HeldResistance)
    held = law.stick_constraint(np.array([[0, 0, ACTIVE | STICKS]]))
    assert held is not None
    return held.evaluate(kin, built.theta).rows[0]


def test_a_pendulum_loses_the_same_in_every_swing() -> None:
    """Small swings lose 4 tau/(m g l) a period, at the period without friction, and end in the dead band for good."""
    m, length, tau, dt = 1.0, 1.0, 0.02, 0.01
    loss, period = 2.0 * tau / (m * G * length), 2.0 * np.pi * np.sqrt(length / G)
    pendulum = {"mass": m, "inertia": [1e-9, 1e-9, 1e-9, 0, 0, 0], "center_of_mass": [0, 0, -length]}
    built = add.scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": dt, "duration": 7.0, "integrator": "bdf2"},
            "bodies": {"arm": {"type": "articulated", "dry_friction_law": "hybrid", "links": {"a": pendulum},
                               "joints": {"a": {"axis": [0, 1, 0], "dry_friction": tau, "value": 5.3 * loss}}}},
        }
    ).build()  # fmt: skip
    run = built.run()
    q, v = run.q[:, 0], run.v[:, 0]
    turns = np.flatnonzero((v[1:-1] * v[2:] <= 0.0) & (v[1:-1] != 0.0)) + 1
    # The vertex of the parabola through three angles about each turn.
    peaks = []
    for k in turns[:4]:
        c, b, a = q[k], 0.5 * (q[k + 1] - q[k - 1]), 0.5 * (q[k + 1] - 2.0 * q[k] + q[k - 1])
        peaks.append((run.t[k] - 0.5 * b / a * dt, c - 0.25 * b * b / a))
    times, sizes = np.array(peaks).T
    assert -np.diff(np.abs(sizes)) == pytest.approx([loss] * 3, rel=2e-3)
    assert np.diff(times) == pytest.approx([0.5 * period] * 3, rel=2e-3)
    rests = [bool(record.decisions[0][0, BITS] & STICKS) for record in run.records]
    first = rests.index(True)
    # The formula forgets the rate before the stop by thirds.
    assert all(rests[first + 3 :]) and first < len(rests) - 60
    assert np.abs(q[first + 40 :] - q[-1]).max() < 1e-12 and abs(q[-1]) < 0.5 * loss


@pytest.mark.slow
def test_a_walker_on_rough_joints() -> None:
    """Contact and joints stick in one step: at its end no joint that slips is driven by its friction."""
    body = walker() | {
        "type": "articulated", "limits": "penalty", "position": [0, 0, 0.415], "orientation": TURNED,
        "velocity": [0.3, 0.1, -0.2], "angular_velocity": [0.3, 0.2, -0.7], "dry_friction_law": "hybrid",
    }  # fmt: skip
    for name, own in body["joints"].items():
        own |= {"dry_friction": 0.5} if name != "trunk" else {}
    built = add.scene_from_dict(on_floor(body, 200, 0.5)).build()
    run, (contact, law) = built.run(), built.simulation.system.deciding
    assert isinstance(law, HeldResistance)
    both = 0
    for k, record in enumerate(run.records):
        touching, held = contact.describe(record.decisions[0]), record.decisions[1][:, BITS]
        both += touching["sticking"] > 0 and bool((held & STICKS).any())
        v, friction = run.v[k + 1][law.first], np.zeros(run.q.shape[1])
        law.on_branch(record.decisions[1]).residual(record.kin, built.theta, friction)
        assert np.abs(v[held & STICKS != 0]).max(initial=0.0) < 1e-10
        assert (friction[law.first] * v >= 0.0).all()
        reactions = record.mu.reshape(-1, 3)[touching["sticking"] :]
        assert np.abs(reactions).max(initial=0.0) <= 0.5
    assert both > 50


def changed(**more: object) -> Any:
    """Return a scene whose hinge says more."""
    joints = {"a": {"dry_friction": 1.0, "dry_friction_law": "hybrid"} | more}
    body = {"type": "articulated", "links": {"a": {"mass": 1.0, "inertia": [1, 1, 1, 0, 0, 0]}}, "joints": joints}
    return add.scene_from_dict({"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"arm": body}})


def test_refused() -> None:
    with pytest.raises(InputError, match=r"arm\.joints\.a\.dry_friction_law: .* holds hinges, slides and balls"):
        changed(motion=0.3).build()
    raw = four_bar("hinge", dry_friction_law="hybrid")
    for own in raw["bodies"]["bar"]["joints"].values():
        own["dry_friction"] = 0.1
    with pytest.raises(InputError, match=r"bodies\.bar: .* do not move independently.*3 coordinates"):
        add.scene_from_dict(raw).build()
    for name in ("coupler", "rocker"):
        raw["bodies"]["bar"]["joints"][name]["dry_friction_law"] = "tanh"
    (law,) = add.scene_from_dict(raw).build().simulation.system.deciding
    assert isinstance(law, HeldResistance) and law.first.tolist() == [0]
    raw["contact"] = {"friction_law": "impulse"}
    with pytest.raises(InputError, match=r"bodies\.bar\.dry_friction_law: .*'impulse' holds no joints"):
        add.scene_from_dict(raw)


def test_of_a_robots_file(tmp_path: Path) -> None:
    """Friction of a URDF holds where the scene says so."""
    inertial = '<inertial><origin xyz="0 0 -0.2"/><mass value="0.5"/>' \
               '<inertia ixx="2e-3" ixy="0" ixz="0" iyy="2e-3" iyz="0" izz="1e-4"/></inertial>'  # fmt: skip
    hinges = "".join(
        f'<joint name="{child}_hinge" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="0 1 0"/><dynamics friction="{friction}"/></joint>'
        for parent, child, friction in (("base", "upper", 0.2), ("upper", "lower", 0.0))
    )
    links = "".join(f'<link name="{name}">{inertial}</link>' for name in ("upper", "lower"))
    path = tmp_path / "arm.urdf"
    path.write_text(f'<robot name="arm"><link name="base"/>{links}{hinges}</robot>')
    body = {"type": "articulated", "model": str(path), "dry_friction_law": "hybrid"}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"arm": body}}
    built = add.scene_from_dict(raw).build()
    (law,) = built.simulation.system.deciding
    assert isinstance(law, HeldResistance) and law.first.size == 1  # the other hinge has no dry friction
    assert built.theta[law.friction] == 0.2
