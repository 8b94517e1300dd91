"""Runs of scenes in which meshes meet meshes: momentum, gradients, what passes through and what does not."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from support.places import SCENES
from support.run_checks import check_gradient_of_run, events, tight
from support.small_models import RoughObjective
from support.tiers import long_case

import add
from add.contact import MeshContact
from add.equations.kinematics import Kinematics
from add.scene import apply_overrides, scene_from_dict
from add.scene.build.built import BuiltScene
from add.scene.build.scene import build
from add.simulation.run import Trajectory
from add.terms import Inertia

SCENE = SCENES / "two_soft_balls.json"


def built(**overrides: Any) -> BuiltScene:
    return build(apply_overrides(add.load_scene(SCENE), overrides))


def momentum(scene: BuiltScene, trajectory: Trajectory, k: int) -> np.ndarray:
    """Return the linear momentum after k steps [kg m/s]."""
    v, r = trajectory.state(k).v[0], np.zeros(scene.model.system.n)
    none = np.zeros_like(v)
    for term in scene.model.term(Inertia):
        term.residual(Kinematics(none, none, v, 0.0, 0), scene.theta, r)
    return r.reshape(-1, 3).sum(axis=0)


def velocity(scene: BuiltScene, trajectory: Trajectory, body: str, k: int) -> np.ndarray:
    return scene.model.system.dofs.view(trajectory.state(k).v[0], body).mean(axis=0)


def test_two_soft_balls_bounce_and_keep_their_momentum() -> None:
    scene = built()
    trajectory = scene.simulation.run()
    (term,) = scene.model.term(MeshContact)
    touching = [term.describe(record.decisions[0])["touching"] for record in trajectory.records]
    assert max(touching) > 20 and touching[0] == 0 and touching[-1] == 0
    assert velocity(scene, trajectory, "left", 60)[0] < -0.5 < 0.5 < velocity(scene, trajectory, "right", 60)[0]
    start = momentum(scene, trajectory, 0)
    size = 0.5 * 1000.0 * 4.0 / 3.0 * np.pi * 0.05**3 * 4.0
    for k in range(10, 61, 10):
        assert np.abs(momentum(scene, trajectory, k) - start).max() < 1e-12 * size


#: A window of the scene with coarse meshes, in which the balls touch, press and begin to part.
QUICK = {
    "bodies.left.mesh.edge": 0.05,
    "bodies.right.mesh.edge": 0.045,
    "bodies.left.position": [-0.0515, 0.002, 0.0],
    "bodies.right.position": [0.0515, 0.0, 0.0],
    "bodies.left.velocity": [2.0, 0.3, 0.1],
    "contact.damping": 1e3,
    "contact.stiffness_per": "area",
    "time.dt": 0.001,
}


@pytest.mark.parametrize(("law", "integrator"), [("linear", "bdf2"), ("tanh", "bdf1")])
def test_gradient_of_two_balls(law: str, integrator: str) -> None:
    """Of all numbers: velocities, moduli, stiffness, damping, friction, depths and skins among them."""
    changed = QUICK | {"contact.friction_law": law, "time.integrator": integrator, "time.steps": 14}
    scene = built(**changed | ({"contact.mesh.stick_stiffness": 2e4} if law == "linear" else {}))
    simulation = tight(scene.simulation)
    trajectory = check_gradient_of_run(
        simulation, RoughObjective(np.random.default_rng(0).normal(size=scene.model.system.n))
    )
    counts = events(simulation, trajectory)
    assert counts["touching"] > 100
    if law == "linear":
        assert counts["sticking"] > 10 and counts["slipping"] > 10


def run_of(raw: dict[str, Any]) -> tuple[BuiltScene, Trajectory]:
    scene = scene_from_dict({"schema": "add-scene/1", **raw}).build()
    return scene, scene.simulation.run()


def test_crossed_edges_of_two_boxes_do_not_pass() -> None:
    """Of two bars that lie across each other no corner ever meets a face: their edges do, and those of their meshes."""

    def bar(size: list[float], **more: Any) -> dict[str, Any]:
        return {"geometry": {"shape": "box", "size": size}, **more}

    raw: dict[str, Any] = {
        "time": {"dt": 0.002, "steps": 120},
        "bodies": {
            "low": bar([1.0, 0.1, 0.1], type="kinematic"),
            "up": bar([0.1, 1.0, 0.1], type="rigid", density=500.0, position=[0.02, 0.01, 0.13]),
        },
        "contact": {"mesh": {"thickness": 0.01, "stiffness": 1e8, "damping": 1e5}},
    }
    scene, trajectory = run_of(raw)
    assert trajectory.state(120).q[0][scene.model.system.dofs["up"].start + 2] == pytest.approx(0.1, abs=1e-3)
    raw["contact"]["pairs"] = [{"between": ["low", "up"], "by_meshes": True}]
    scene, trajectory = run_of(raw)
    height = [trajectory.state(k).q[0][scene.model.system.dofs["up"].start + 2] for k in range(121)]
    # The skins of the bars touch at 0.11 m, and the surfaces at 0.10 m.
    assert 0.105 < min(height) < 0.11 and max(height[60:]) < 0.12
    (term,) = scene.model.term(MeshContact)
    number = scene.simulation.system.deciding.index(term)
    assert max(term.describe(record.decisions[number])["touching"] for record in trajectory.records) == 4


def crossed_bars(damping: float, **more: Any) -> dict[str, Any]:
    """Return a scene of a rigid bar across a rigid one, under a slanted gravity; their corners are far away."""
    bar = {"shape": "box", "size": [1.0, 0.1, 0.1]}, {"shape": "box", "size": [0.1, 0.4, 0.1]}
    return {
        "gravity": [1.0, 0.7, -9.7],
        "time": {"dt": 0.002, "steps": 300, "integrator": "bdf1"},
        "bodies": {
            "low": {"geometry": bar[0], "type": "kinematic"},
            "up": {"geometry": bar[1], "type": "rigid", "density": 500.0, "position": [0.02, 0.01, 0.1101]} | more,
        },
        "contact": {
            "friction": 0.5, "friction_law": "hybrid", "pairs": [{"between": ["low", "up"], "by_meshes": True}],
            "mesh": {"thickness": 0.01, "stiffness": 1e8, "damping": damping},
        },
    }  # fmt: skip


def test_crossed_bars_stand_truly() -> None:
    """Edges on edges are held where they cross: in every step that they touch, and to round-off once they rest."""
    scene, trajectory = run_of(crossed_bars(2e6))
    (term,) = scene.model.term(MeshContact)
    number = scene.simulation.system.deciding.index(term)
    counts = [term.describe(record.decisions[number]) for record in trajectory.records]
    assert counts[-1] == {"touching": 4, "sticking": 4, "slipping": 0, "creeping": 0}
    assert all(count["creeping"] == 0 for count in counts)
    assert np.abs(trajectory.state(300).v[0]).max() < 1e-9


@pytest.mark.slow
def test_gradient_of_crossed_bars_that_stick_and_slip() -> None:
    """Held differences, reverse and forward: one run that rocks and sticks, one that slides."""
    for speed, wanted in ((0.0, "sticking"), (0.5, "slipping")):
        raw = crossed_bars(1e6, velocity=[speed, 0.3 * speed, 0.0], position=[0.02, 0.01, 0.1098])
        raw["time"]["steps"] = 8
        scene = scene_from_dict({"schema": "add-scene/1", **raw}).build()
        simulation = tight(scene.simulation)
        objective = RoughObjective(np.random.default_rng(0).normal(size=scene.model.system.n))
        assert events(simulation, check_gradient_of_run(simulation, objective))[wanted] > 10


def inclined(meshes: bool, friction: float, cells: tuple[int, int] = (14, 9), **more: Any) -> dict[str, Any]:
    """Return a scene of a soft block on an incline of 0.2 rad: a plane, or another mesh."""
    slope = 0.2
    block = {"shape": "box", "size": [0.1, 0.1, 0.05], "divisions": [4, 4, 2]}
    soft = {"type": "soft", "material": {"young": 1e6, "poisson": 0.3, "density": 1000.0, "viscosity": 500.0}}
    skin = {"onset": 1e-4, "damping_ramp": 1e-4}
    raw: dict[str, Any] = {
        "gravity": [9.81 * np.sin(slope), 0.0, -9.81 * np.cos(slope)],
        "time": {"dt": 0.002, "steps": 150},
        "bodies": {"block": soft | {"mesh": block, "position": [0.0, 0.0, 0.0285]}},
        "contact": {"friction": friction, "stiffness_per": "area", "stiffness": 1e8, "damping": 1e6} | skin,
    }
    raw["contact"] |= {"stick_stiffness": 1e5, "mesh": {"thickness": 0.004}} | more
    if meshes:
        ground = {"shape": "box", "size": [0.5, 0.3, 0.03], "divisions": [*cells, 1]}
        raw["bodies"]["ground"] = soft | {
            "mesh": ground, "position": [0.0, 0.0, -0.015], "pins": [{"where": {"all": True}}],
        }  # fmt: skip
    else:
        raw["obstacles"] = {"ground": {"shape": "plane", "point": [0.0, 0.0, 0.004], "normal": [0.0, 0.0, 1.0]}}
    return raw


@cache
def incline(meshes: bool, friction: float, cells: tuple[int, int] = (14, 9), **more: Any) -> np.ndarray:
    """Return the velocity of the block after 0.3 s."""
    scene, trajectory = run_of(inclined(meshes, friction, cells, **more))
    return velocity(scene, trajectory, "block", 150)


def test_a_block_slides_on_a_mesh_as_on_a_plane() -> None:
    on_mesh, on_plane = incline(True, 0.1), incline(False, 0.1)
    assert on_plane[0] > 0.2 and np.abs(on_mesh - on_plane).max() < 1e-6 * on_plane[0]


def test_a_block_creeps_on_meshes_as_on_a_plane() -> None:
    """It sticks by k_t: how fast it creeps says how much area the pairs count."""
    on_plane = incline(False, 0.6)
    assert 0.0 < on_plane[0] < 1e-3
    for cells in ((14, 9), (5, 4)):
        assert np.abs(incline(True, 0.6, cells) - on_plane).max() < 1e-6 * on_plane[0]


@pytest.mark.parametrize("cells", [long_case((14, 9)), pytest.param((20, 12))], ids=["other grid", "same grid"])
def test_a_block_on_a_mesh_sticks_truly(cells: tuple[int, int]) -> None:
    """Under hybrid friction it stands, also where its vertices are over those of the ground; else it slides."""
    scene, trajectory = run_of(inclined(True, 0.6, cells, friction_law="hybrid"))
    (term,) = scene.model.term(MeshContact)
    last = trajectory.records[-1].decisions[0]
    assert term.none_creeps(last) and term.describe(last)["sticking"] >= 9 and term.describe(last)["slipping"] == 0
    assert np.abs(velocity(scene, trajectory, "block", 150)).max() < 1e-9
    slides = incline(True, 0.1, cells, friction_law="hybrid")
    assert slides[0] == pytest.approx(incline(True, 0.1)[0], rel=0.02)


def test_a_rigid_block_on_a_rigid_mesh_sticks_truly() -> None:
    """Its corners are held where the surfaces meet; held at their own places they would keep it from settling."""
    raw = inclined(False, 0.6, friction_law="hybrid")
    block = {"geometry": {"shape": "box", "size": [0.1, 0.1, 0.05]}, "type": "rigid", "density": 1000.0}
    ground = {"geometry": {"shape": "box", "size": [0.5, 0.3, 0.03]}, "type": "kinematic", "position": [0, 0, -0.015]}
    raw["bodies"] = {"block": block | {"position": [0.0, 0.0, 0.0288]}, "ground": ground}
    raw["contact"]["pairs"] = [{"between": ["block", "ground"], "by_meshes": True}]
    raw["time"]["steps"] = 150
    del raw["obstacles"]
    scene, trajectory = run_of(raw)
    (term,) = scene.model.term(MeshContact)
    number = scene.simulation.system.deciding.index(term)
    counts = [term.describe(record.decisions[number]) for record in trajectory.records]
    assert counts[-1] == {"touching": 4, "sticking": 4, "slipping": 0, "creeping": 0}
    assert all(count["creeping"] == 0 for count in counts)
    assert np.abs(trajectory.state(150).v[0]).max() < 1e-9
    assert np.abs(trajectory.state(150).q[0] - trajectory.state(100).q[0]).max() < 1e-9
    # Until it has settled it leans, downhill by micrometres.
    assert np.abs(trajectory.state(150).q[0][:2]).max() < 5e-6


@pytest.mark.slow
def test_gradient_of_blocks_that_stick_and_slip() -> None:
    """Hybrid friction between soft meshes: held differences, with one block that stands and another that slides."""
    raw = inclined(True, 0.6, (6, 5), friction_law="hybrid")
    bottom = {"box": {"min": [-1, -1, -1], "max": [1, 1, -0.01]}}
    raw["bodies"]["ground"] |= {"pins": [{"where": bottom}]}
    small = {"shape": "box", "size": [0.06, 0.06, 0.03], "divisions": [3, 2, 1]}
    slider = {"mesh": small, "position": [0.01, 0.11, 0.0188], "velocity": [0.4, -0.1, 0.0]}
    raw["bodies"]["slider"] = raw["bodies"]["block"] | slider
    raw["bodies"]["block"] |= {"position": [0.0, -0.05, 0.0288]}
    raw["contact"]["pairs"] = [{"between": ["slider", "ground"], "friction": 0.05}]
    raw["time"]["steps"] = 6
    scene = scene_from_dict({"schema": "add-scene/1", **raw}).build()
    simulation = tight(scene.simulation)
    objective = RoughObjective(np.random.default_rng(0).normal(size=scene.model.system.n))
    counts = events(simulation, check_gradient_of_run(simulation, objective))
    assert counts["sticking"] > 10 and counts["slipping"] > 10


def test_a_stack_of_cards_stays() -> None:
    """Cards that do not lie exactly on each other: hybrid friction holds them, on the floor and on each other."""
    card = {"type": "soft", "mesh": {"shape": "box", "size": [0.1, 0.06, 0.01], "divisions": [5, 3, 1]}}
    card["material"] = {"young": 1e6, "poisson": 0.3, "density": 1000.0, "viscosity": 200.0}
    raw: dict[str, Any] = {
        "time": {"dt": 0.004, "steps": 60, "integrator": "bdf1"},
        "bodies": {
            f"card{k}": card | {"position": [0.001 * k * (-1) ** k, 0.0008 * k, 0.005 + 0.0138 * k]} for k in range(3)
        },
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"friction_law": "hybrid", "stiffness_per": "area", "stiffness": 1e8, "damping": 1e5}
        | {"mesh": {"thickness": 0.004}},
    }
    scene, trajectory = run_of(raw)
    for name in raw["bodies"]:
        at, later = (scene.model.system.dofs.view(trajectory.state(k).q[0], name) for k in (40, 60))
        assert np.abs(later - at).max() < 1e-7
    heights = [scene.model.system.dofs.view(trajectory.state(60).q[0], f"card{k}")[:, 2].mean() for k in range(3)]
    assert (np.diff(heights) > 0.0135).all() and (np.diff(heights) < 0.0141).all()
