"""Obstacles, cylinders and links that meet others by their meshes."""

from typing import Any

import numpy as np
import pytest
from support.run_checks import check_gradient_of_run, events, tight
from support.small_models import RoughObjective

from add.contact import MeshContact
from add.errors import InputError
from add.geometry import cylinder_solid, cylinder_surface, mesh_solid
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene

BOX = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.05]}, "density": 1000.0}
CONTACT = {"mesh": {"thickness": 0.004, "stiffness": 1e8, "damping": 1e6}, "friction": 0.3}


def built(bodies: dict[str, Any], obstacles: dict[str, Any], steps: int, **more: Any) -> BuiltScene:
    pairs = [{"between": [next(iter(bodies)), [*bodies, *obstacles][-1]], "by_meshes": True}]
    raw = {"schema": "add-scene/1", "time": {"dt": 0.002, "steps": steps}, "bodies": bodies, "obstacles": obstacles}
    return scene_from_dict(raw | {"contact": CONTACT | {"pairs": pairs} | more}).build()


def test_a_cylinder_is_a_closed_prism() -> None:
    surface, whole = cylinder_surface(0.2, 0.3), cylinder_solid(0.2, 0.6)
    solid = mesh_solid(surface.vertices, surface.triangles)
    assert solid.volume == pytest.approx(12.0 / np.pi * np.sin(np.pi / 12.0) * whole.volume, rel=1e-12)
    assert np.abs(solid.centre).max() < 1e-12
    assert solid.inertia[2, 2] == pytest.approx(whole.inertia[2, 2], rel=0.03)


def test_an_obstacle_meets_as_a_kinematic_body_does() -> None:
    """A box dropped on a slab, which is an obstacle once, and a body without motion once: the same run."""
    falling = BOX | {"position": [0.01, 0.0, 0.032], "angular_velocity": [0.5, 1.0, 0.0]}
    slab = {"shape": "box", "half_size": [0.25, 0.15, 0.015], "center": [0.0, 0.0, -0.015]}
    body = {"type": "kinematic", "geometry": {"shape": "box", "size": [0.5, 0.3, 0.03]}, "position": [0, 0, -0.015]}
    one, two = built({"box": falling}, {"slab": slab}, 40), built({"box": falling, "slab": body}, {}, 40)
    found, expected = (scene.simulation.run() for scene in (one, two))
    dofs = one.model.system.dofs, two.model.system.dofs
    mine, theirs = (d.view(run.q[-1], "box") for d, run in zip(dofs, (found, expected), strict=True))
    assert np.abs(mine - theirs).max() < 1e-12 and 0.028 < mine[0, 2] < 0.03
    assert one.model.term(MeshContact)
    with pytest.raises(InputError, match="no mesh to meet others by"):
        built({"box": falling}, {"plane": {"shape": "plane", "point": [0, 0, -0.1], "normal": [0, 0, 1]}}, 2)


def test_a_cylinder_stands_on_its_skin() -> None:
    """It touches where half the sum of both thicknesses lies between the surfaces, here 0.006 m."""
    can = {"geometry": {"shape": "cylinder", "radius": 0.05, "half_length": 0.04}, "contact": {"thickness": 0.008}}
    can |= {"type": "rigid", "density": 1000.0, "position": [0, 0, 0.0459]}
    slab = {"shape": "box", "half_size": [0.25, 0.15, 0.015], "center": [0.0, 0.0, -0.015]}
    scene = built({"can": can}, {"slab": slab}, 120)
    trajectory = scene.simulation.run()
    (term,) = scene.model.term(MeshContact)
    rows = trajectory.records[-1].decisions[scene.simulation.system.deciding.index(term)]
    assert term.describe(rows)["touching"] >= 24
    assert np.abs(trajectory.state(120).v[0]).max() < 1e-3 and 0.0455 < trajectory.q[-1][2] < 0.046


def crossed(by_meshes: bool, steps: int, **more: Any) -> BuiltScene:
    """Return an arm of a box on a hinge that falls on a bar across it: no corner of either is near the other."""
    link = {"mass": 1.0, "inertia": [0.01, 0.03, 0.03, 0, 0, 0], "center_of_mass": [0.3, 0, 0]}
    shapes = [
        {"geometry": {"shape": "box", "size": [0.6, 0.06, 0.06]}, "position": [0.3, 0, 0]},
        {"geometry": {"shape": "cylinder", "radius": 0.04, "half_length": 0.05}, "position": [0.6, 0, 0]},
    ]
    arm = {
        "type": "articulated",
        "links": {"arm": link | {"shapes": shapes}},
        "joints": {"arm": {"axis": [0, 1, 0], "value": 0.004, "rate": 0.4}},
    }
    bar = {
        "type": "kinematic",
        "geometry": {"shape": "box", "size": [0.06, 0.6, 0.06]},
        "position": [0.31, 0.02, -0.065],
    }
    pairs = [{"between": ["arm/arm", "bar"], "by_meshes": by_meshes}]
    raw = {"schema": "add-scene/1", "time": {"dt": 0.002, "steps": steps}, "bodies": {"arm": arm, "bar": bar}}
    return scene_from_dict(raw | {"contact": CONTACT | {"pairs": pairs} | more}).build()


def test_edges_of_links_meet_edges() -> None:
    """No corner of either is near the other: the arm rests on edges, those of meshes 0.062 to 0.064 m apart."""
    angles = []
    for by_meshes in (False, True):
        scene = crossed(by_meshes, 80)
        path = scene.simulation.run().q
        angles.append([float(scene.model.system.dofs.view(q, "arm").ravel()[0]) for q in path])
    crossing, rests = angles
    assert 0.0 < crossing[-1] and max(crossing) < 0.03
    # The edges of the bar are 0.065 m below the axis, and the arm is 0.03 m thick below it.
    assert 0.0 < min(rests) and max(rests) < 0.01


@pytest.mark.slow
def test_gradient_of_a_link_on_an_edge() -> None:
    """Of all numbers, skins, centres of mass and places of joints among them."""
    scene = crossed(True, 20, friction_law="tanh")
    simulation = tight(scene.simulation)
    objective = RoughObjective(np.random.default_rng(0).normal(size=scene.model.system.n))
    assert events(simulation, check_gradient_of_run(simulation, objective))["touching"] > 10
