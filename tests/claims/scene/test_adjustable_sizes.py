"""Sizes of bodies and links as numbers: runs follow them as if the scene said them, gradients are exact."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.run_checks import check_gradient_of_run, events, tight
from support.small_models import RoughObjective

from add.contact import MeshContact
from add.errors import InputError
from add.scene import apply_overrides, scene_from_dict
from add.scene.build.built import BuiltScene
from add.scene.build.scene import build

FLOOR = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}
CONTACT = {"stiffness": 2e3, "damping": 2.0, "friction": 0.3, "friction_law": "tanh"}


def body(shape: str, **more: Any) -> dict[str, Any]:
    sizes = {"box": {"size": [0.2, 0.12, 0.1]}, "sphere": {"radius": 0.06}}
    sizes |= {key: {"radius": 0.05, "half_length": 0.07} for key in ("capsule", "cylinder")}
    return {"type": "rigid", "geometry": {"shape": shape, "adjustable": True, **sizes[shape]}, "density": 400.0} | more


def raw(**bodies: Any) -> dict[str, Any]:
    time = {"dt": 0.002, "steps": 12}
    return {"schema": "add-scene/1", "time": time, "bodies": bodies, "obstacles": FLOOR, "contact": CONTACT}


#: Bodies that begin to touch each other and the floor; the arm's hand, a link with two shapes, meets one of them.
PILE: dict[str, Any] = {
    "box": body("box", position=[0, 0, 0.0495], velocity=[0.3, 0.1, 0]),
    "ball": body("sphere", position=[0.01, 0.02, 0.1585], angular_velocity=[1, 5, 2]),
    "capsule": body(
        "capsule", position=[0.3, 0, 0.0495], orientation=[0.5**0.5, 0.5**0.5, 0, 0], mass=0.4, density=None
    ),
    "cylinder": body("cylinder", position=[0.3, 0.015, 0.1685], angular_velocity=[0.5, -0.3, 4]),
    "arm": {
        "type": "articulated",
        "position": [-0.3, 0, 0.3],
        "links": {
            "hand": {
                "mass": 0.3, "inertia": [1e-3, 1e-3, 1e-3, 0, 0, 0], "center_of_mass": [0, 0, -0.1],
                "shapes": [
                    {"geometry": {"shape": "capsule", "radius": 0.03, "half_length": 0.09, "adjustable": True},
                     "position": [0, 0, -0.181]},
                    {"geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "position": [0, 0, -0.05]},
                ],
            }
        },
        "joints": {"hand": {"axis": [0, 1, 0], "value": 0.03, "rate": 2.0}},
    },
}  # fmt: skip
NAMES = [
    "bodies.box.geometry.size", "bodies.ball.geometry.radius", "bodies.capsule.geometry.radius",
    "bodies.capsule.geometry.half_length", "bodies.cylinder.geometry.radius", "bodies.cylinder.geometry.half_length",
    "bodies.arm.links.hand.shapes.0.geometry.radius", "bodies.arm.links.hand.shapes.0.geometry.half_length",
]  # fmt: skip


def built(scene: dict[str, Any]) -> BuiltScene:
    return scene_from_dict(scene).build()


def end(scene: BuiltScene, values: np.ndarray) -> np.ndarray:
    """Return the last places of a run with other numbers."""
    simulation = replace(scene.simulation, theta=scene.numbers.ties.forward(values))
    return simulation.run().q[-1]


def test_a_run_follows_its_sizes() -> None:
    """With other numbers it is the run of a scene that says them: masses, points, shapes and radii of skins."""
    scene = built(raw(**PILE))
    values = scene.numbers.values.copy()
    overrides: dict[str, Any] = {}
    for k, name in enumerate(NAMES):
        index = scene.numbers.place(name)
        values[index] *= 1.0 + 0.002 * (k + 1)
        overrides[name] = values[index].tolist()
    other = build(apply_overrides(scene_from_dict(raw(**PILE)), overrides))
    found, expected = end(scene, values), end(other, other.numbers.values)
    assert np.abs(found - expected).max() < 1e-11
    assert np.abs(found - end(scene, scene.numbers.values)).max() > 1e-4


@pytest.mark.slow
def test_gradient_by_sizes() -> None:
    """Of all numbers: reverse, forward and held differences, with all shapes and features of rims and sides active."""
    scene = built(raw(**PILE))
    simulation = tight(scene.simulation)
    objective = RoughObjective(np.random.default_rng(0).normal(size=scene.model.system.n))
    counts = events(simulation, check_gradient_of_run(simulation, objective))
    assert counts["touching"] > 50


@pytest.mark.slow
def test_gradient_by_the_radius_of_a_ball_on_a_mesh() -> None:
    """Its skin, its mass and its inertia follow the radius."""
    sheet = {
        "type": "mass-spring", "stiffness": 500.0, "mass": 0.2, "damping": 0.1,
        "mesh": {"shape": "sheet", "size": [0.3, 0.3], "divisions": [3, 3]},
        "pins": [{"where": {"box": {"min": [-1, -1, -1], "max": [-0.14, 1, 1]}}}],
    }  # fmt: skip
    scene = raw(sheet=sheet, ball=body("sphere", position=[0.01, 0.02, 0.0605], velocity=[0.2, 0, -0.5]))
    del scene["obstacles"]
    scene["contact"] = CONTACT | {
        "pairs": [{"between": ["sheet", "ball"], "by_meshes": True}],
        "mesh": {"thickness": 0.002, "onset": 0.002, "damping_ramp": 0.002},
    }
    model = built(scene)
    assert model.model.term(MeshContact)
    values = model.numbers.values.copy()
    index = model.numbers.place("bodies.ball.geometry.radius")
    values[index] *= 1.004
    scene["bodies"]["ball"]["geometry"]["radius"] = float(values[index])
    other = built(scene)
    assert np.abs(end(model, values) - end(other, other.numbers.values)).max() < 1e-11
    objective = RoughObjective(np.random.default_rng(0).normal(size=model.model.system.n))
    simulation = tight(model.simulation)
    assert events(simulation, check_gradient_of_run(simulation, objective))["touching"] > 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"contact.friction_law": "hybrid"}, "friction laws without equations"),
        ({"contact.stiffness_per": "area"}, "areas of surfaces do not follow"),
        ({"bodies.arm.links.hand.inertia": None}, "masses of links do not follow"),
        ({"bodies.box.collision": {"shape": False}}, "a shape that others meet"),
        ({"contact.pairs": [{"between": ["box", "capsule"], "by_meshes": True}]}, "only the radius of a ball"),
    ],
)
def test_errors(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        build(apply_overrides(scene_from_dict(raw(**PILE)), change))
