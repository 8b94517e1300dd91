"""Balls and capsules against faces: nothing slips through between nodes, balls roll, gradients are exact."""

from typing import Any

import numpy as np
import pytest
from support.run_checks import check_gradient_of_run, events, tight
from support.small_models import RoughObjective

from add.contact import MeshContact
from add.errors import InputError
from add.kernels.rotation import left_jacobian
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene
from add.scene.build.doubts import doubts

ALL = [{"where": {"all": True}}]
SHEET = {"type": "mass-spring", "stiffness": 1.0, "pins": ALL}
BLOCK = {
    "type": "soft",
    "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]},
    "material": {"young": 1e5, "poisson": 0.3, "density": 1e3},
    "pins": ALL,
}


def sheet(size: float, cells: int) -> dict[str, Any]:
    return SHEET | {"mesh": {"shape": "sheet", "size": [size, size], "divisions": [cells, cells]}}


def ball(radius: float, **more: Any) -> dict[str, Any]:
    return {"type": "rigid", "geometry": {"shape": "sphere", "radius": radius}, "density": 500.0} | more


def built(bodies: dict[str, Any], contact: dict[str, Any], by_meshes: bool = True, **time: Any) -> BuiltScene:
    pairs = [{"between": list(bodies), "by_meshes": by_meshes}]
    raw = {"schema": "add-scene/1", "time": {"dt": 0.002, **time}, "bodies": bodies}
    return scene_from_dict(raw | {"contact": {"pairs": pairs, **contact}}).build()


def paths(scene: BuiltScene, body: str) -> tuple[np.ndarray, np.ndarray]:
    """Return places and velocities (n, 6) of a rigid body."""
    trajectory = scene.simulation.run()
    dofs = scene.model.system.dofs
    states = [trajectory.state(k) for k in range(len(trajectory.records) + 1)]
    q, v = ([dofs.view(getattr(s, key)[0], body).ravel() for s in states] for key in "qv")
    return np.array(q), np.array(v)


SLOW = [pytest.param(law, marks=pytest.mark.slow) for law in ("tanh", "hybrid")]


@pytest.mark.parametrize("friction_law", ["linear", *SLOW])
def test_a_ball_that_slides_ends_rolling_at_five_sevenths_of_its_speed(friction_law: str) -> None:
    """Coulomb (1835): a ball thrown without spin rolls after 2 v / (7 c_f g), whatever the friction was."""
    bodies = {"floor": sheet(2.0, 7), "ball": ball(0.1, position=[-0.3, 0.02, 0.1], velocity=[1.0, 0.0, 0.0])}
    contact = {"friction_law": friction_law, "friction": 0.3, "stiffness": 1e6, "stick_stiffness": 2e4}
    mesh = {"mesh": {"thickness": 1e-5, "onset": 1e-6}}
    dt = 0.003
    q, v = paths(built(bodies, contact | mesh, dt=dt, steps=60), "ball")
    slide = 2.0 / (7.0 * 0.3 * 9.81)
    half = int(0.5 * slide / dt)
    assert v[half, 0] == pytest.approx(1.0 - 0.3 * 9.81 * dt * half, rel=0.02)
    assert v[-1, 0] == pytest.approx(5.0 / 7.0, rel=2e-3) and np.abs(v[-1, 1:3]).max() < 1e-3
    if friction_law == "hybrid":  # it is held on its skin, and does not creep
        rate = left_jacobian(q[-1, 3:]) @ v[-1, 3:]
        assert abs(v[-1, 0] - rate[1] * q[-1, 2]) < 1e-10
    assert q[-1, 2] == pytest.approx(0.1, abs=1e-4)


def test_a_small_ball_rests_on_a_coarse_mesh_between_its_nodes() -> None:
    """By points the block has eight, all pinned at its corners, and the ball falls into it."""
    bodies = {"block": BLOCK, "ball": ball(0.01, position=[0.013, 0.007, 0.07])}
    contact = {"stiffness": 500.0, "damping": 1.0, "mesh": {"thickness": 0.002, "onset": 1e-5}}
    low, _ = paths(built(bodies, contact, by_meshes=False, dt=0.004, steps=60), "ball")
    assert low[-1, 2] < -0.1, "nodes have no ball near"
    scene = built(bodies, contact, dt=0.004, steps=60)
    q, _ = paths(scene, "ball")
    weight = 500.0 * 4.0 / 3.0 * np.pi * 0.01**3 * 9.81
    assert scene.model.term(MeshContact)
    # Stiffness counts for the one point of the ball, as it does for points of shapes.
    assert q[-1, 2] == pytest.approx(0.05 + 0.01 + 0.001 - weight / 500.0 - 5e-6, abs=1e-6)
    assert q[:, 2].min() > 0.058
    texts = [text for text in doubts(built(bodies, contact, by_meshes=False, steps=20)) if "between nodes" in text]
    assert len(texts) == 1 and "ball and block" in texts[0] and "by_meshes" in texts[0]
    assert not any("between nodes" in text or "one place" in text for text in doubts(scene))
    bodies["ball"] = ball(0.4, position=[0.0, 0.0, 0.5])
    assert any("ball and block: the first is many edges" in text for text in doubts(built(bodies, contact, steps=20)))


def test_a_capsule_rests_across_a_bar() -> None:
    """Its ends are in the air, and the bar's corners are far: its axis crosses the bar's edges."""
    bar = {"type": "kinematic", "geometry": {"shape": "box", "size": [1.0, 0.06, 0.1]}}
    capsule = {
        "type": "rigid",
        "geometry": {"shape": "capsule", "radius": 0.03, "half_length": 0.3},
        "density": 500.0,
        "position": [0.0, 0.0, 0.083],
        "orientation": [np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0],
    }
    contact = {"stiffness": 1e4, "damping": 200.0, "mesh": {"thickness": 0.002, "onset": 1e-5}}
    q, _ = paths(built({"bar": bar, "capsule": capsule}, contact, by_meshes=False, steps=150), "capsule")
    assert q[-1, 2] == pytest.approx(0.08, abs=1e-3)
    q, v = paths(built({"bar": bar, "capsule": capsule}, contact, steps=150), "capsule")
    assert 0.078 < q[-1, 2] < 0.081 and np.abs(v[-1]).max() < 1e-2 and np.abs(q[-1, 3:] - q[0, 3:]).max() < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["sphere", "capsule"])
def test_a_fast_one_does_not_pass_a_sheet(shape: str) -> None:
    """At 20 m/s, 0.2 m a step, edges of 0.02 m: by meshes it ends on its side, by nodes it is gone."""
    half = {"half_length": 0.05} if shape == "capsule" else {}
    turned = {"orientation": [np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0], "angular_velocity": [3.0, 1.0, 2.0]}
    thrown = ball(0.01, position=[0.003, 0.002, 0.06], velocity=[0.0, 0.0, -20.0], **turned)
    thrown["geometry"] = {"shape": shape, "radius": 0.01, **half}
    sides = {"min": [-1, -1, -1], "max": [-0.119, 1, 1]}, {"min": [0.119, -1, -1], "max": [1, 1, 1]}
    held = sheet(0.24, 12) | {"mass": 0.1, "stiffness": 2000.0, "damping": 0.5}
    bodies = {"sheet": held | {"pins": [{"where": {"box": box}} for box in sides]}, "ball": thrown}
    contact = {"friction": 0.2, "damping": 5.0, "stiffness": 1e4, "mesh": {"thickness": 0.004}}
    time = {"dt": 0.01, "steps": 6, "integrator": "bdf1"}
    passed, _ = paths(built(bodies, contact, by_meshes=False, **time), "ball")
    assert passed[-1, 2] < -1.0
    scene = built(bodies, contact, **time)
    trajectory, dofs = scene.simulation.run(), scene.model.system.dofs
    heights = [dofs.view(q, "ball").ravel()[2] for q in trajectory.q]
    lowest = [dofs.view(q, "sheet").reshape(-1, 3)[:, 2].min() for q in trajectory.q]
    # The sheet is lowest below it.
    assert (np.subtract(heights, lowest) > 0.009).all() and heights[-1] > heights[-2] and min(lowest) < -0.01


@pytest.mark.slow
@pytest.mark.parametrize(("law", "integrator"), [("linear", "bdf2"), ("tanh", "bdf1")])
def test_gradient_of_a_ball_that_bounces_off_a_soft_block(law: str, integrator: str) -> None:
    """Of all numbers, among them the radius by which the ball touches, and its centre of mass."""
    block = BLOCK | {"pins": [{"where": {"box": {"min": [-1, -1, -1], "max": [1, 1, -0.049]}}}]}
    # An inertia against which the differences' steps are small.
    heavy: dict[str, Any] = {
        "mass": 0.02,
        "inertia": [2e-3, 2e-3, 2e-3, 0, 0, 0],
        "center_of_mass": [0, 0, 0],
        "density": None,
    }
    heavy |= {"position": [0.013, 0.007, 0.0715], "velocity": [0.5, 0.1, -1.0], "angular_velocity": [3.0, 5.0, 2.0]}
    thrown = ball(0.02, **heavy)
    contact = {"friction_law": law, "friction": 0.3, "stiffness": 2e3, "damping": 1.0, "stick_stiffness": 3.0}
    scene = built(
        {"block": block, "ball": thrown}, contact | {"mesh": {"thickness": 0.002}}, dt=0.001, steps=14,
        integrator=integrator,
    )  # fmt: skip
    simulation = tight(scene.simulation)
    trajectory = check_gradient_of_run(
        simulation, RoughObjective(np.random.default_rng(0).normal(size=scene.model.system.n))
    )
    assert "bodies.ball.half_thickness" in {entry.name for entry in scene.model.system.parameters.entries}
    counts = events(simulation, trajectory)
    assert counts["touching"] > 5
    if law == "linear":
        assert counts["sticking"] > 0 and counts["slipping"] > 0


@pytest.mark.parametrize(
    ("bodies", "place", "words"),
    [
        ({"a": ball(0.01), "b": ball(0.01, position=[1, 0, 0])}, "contact.pairs.0.by_meshes", "meet faces"),
        ({"a": ball(0.01, contact={"thickness": 0.001}), "b": BLOCK | {"position": [1, 0, 0]}},
         "bodies.a.contact.thickness", "is its radius"),
        ({"a": ball(0.01, position=[0, 0, 0.054]), "b": BLOCK}, "bodies", "overlap at the start: 'a' and 'b'"),
        ({"a": ball(0.01, position=[0, 0, 0.046]), "b": BLOCK}, "bodies", "overlap at the start: 'a' and 'b'"),
    ],
)  # fmt: skip
def test_one_clear_error(bodies: dict[str, Any], place: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        built(bodies, {}, steps=2)
    assert caught.value.place == place and words in str(caught.value)
