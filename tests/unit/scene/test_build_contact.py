"""From a scene to obstacles and contact."""

import numpy as np
import pytest
from support.cube_scene import (
    HALF,
    built,
    value,
)

from add.contact import FrictionLaw
from add.kernels import distance


@pytest.mark.parametrize(
    "normal", [[0, 0, 5], [0, 0, -1], [1, 0, 0], [-2, 0, 0], [0, 3, 0], [1, -2, 0.5], [0.9, 0.1, 0.0]]
)
def test_plane_orientation(normal):
    """The free side is where the normal points, whatever its length."""
    n = np.array(normal) / np.linalg.norm(normal)
    scene = built(
        ("obstacles", {"wall": {"shape": "plane", "point": [1, 2, 3], "normal": normal, "velocity": [0, 1, 0]}}),
        ("bodies.cube.position", np.add(n, [1, 2, 3]).tolist()),
    )
    (wall,) = scene.model.obstacles
    assert wall.rotation.T @ wall.rotation == pytest.approx(np.eye(3), abs=1e-14)
    assert np.linalg.det(wall.rotation) == pytest.approx(1.0)
    assert wall.rotation[:, 2] == pytest.approx(n)
    assert (wall.kind, wall.position.tolist(), wall.velocity.tolist()) == (distance.PLANE, [1, 2, 3], [0, 1, 0])
    if normal == [0, 0, 5]:
        assert (wall.rotation == np.eye(3)).all()


def test_shapes_of_obstacles():
    turned = {"center": [1, 2, 3], "orientation": HALF}
    scene = built(
        (
            "obstacles",
            {
                "ball": {"shape": "sphere", "center": [1, 2, 3], "radius": 0.5},
                "box": {"shape": "box", "half_size": [1, 2, 3], **turned},
                "capsule": {"shape": "capsule", "radius": 0.1, "half_length": 0.4, **turned},
                "rod": {"shape": "cylinder", "radius": 0.1, "half_length": 0.4, **turned},
            },
        )
    )
    kinds = [(o.kind, tuple(o.size)) for o in scene.model.obstacles]
    assert kinds == [
        (distance.SPHERE, (0.5, 0, 0)),
        (distance.BOX, (1, 2, 3)),
        (distance.CAPSULE, (0.1, 0.4, 0)),
        (distance.CYLINDER, (0.1, 0.4, 0)),
    ]
    for obstacle in scene.model.obstacles[1:]:
        assert obstacle.rotation == pytest.approx(np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]]), abs=1e-12)
        assert obstacle.position.tolist() == [1, 2, 3]


def test_contact_pairs():
    """What a pair says counts for it, the rest for all; a pair may be switched off."""
    contact = {
        "stiffness": 1000,
        "friction": 0.4,
        "friction_law": "tanh",
        "coulomb_normal": "total",
        "onset": 0.001,
        "damping_ramp": 0.002,
        "pairs": [
            {"body": "block", "obstacle": "ball", "friction": 0.8, "stiffness": 500},
            {"body": "cube", "obstacle": "floor", "stick_stiffness": 7, "damping": 2},
            {"body": "cube", "obstacle": "ball", "enabled": False},
        ],
    }
    scene = built(("contact", contact))
    found = {
        pair: tuple(float(value(scene, f"contact.{pair}.{key}")) for key in ("k_n", "k_d", "k_t", "c_f"))
        for pair in ("block.floor", "block.ball", "cube.floor", "cube.ball")
    }
    assert found == {
        "block.floor": (1000, 0, 10, 0.4),
        "block.ball": (500, 0, 5, 0.8),
        "cube.floor": (1000, 2, 7, 0.4),
        "cube.ball": (1000, 0, 10, 0.4),
    }
    term, _ = scene.model.system.deciding  # nodes on obstacles, and the two soft bodies by their meshes
    assert term.law is FrictionLaw.TANH and term.total_normal
    assert term.pairs.enabled.tolist() == [[True, True], [True, False]]
    assert (term.pairs.onset == 0.001).all() and (term.pairs.ramp == 0.002).all()
    assert (term.scale == 1.0).all()
    areas = built(("contact", {"stiffness_per": "area"})).model.system.deciding[0].scale
    assert areas.sum() == pytest.approx(0.4 + 0.24)


@pytest.mark.parametrize(
    ("integrator", "rule", "factor"),
    [("bdf1", "dt", 1.0), ("bdf2", "dt", 1.0), ("bdf1", "effective-dt", 1.0), ("bdf2", "effective-dt", 2 / 3)],
)
def test_stick_stiffness_is_tied_to_stiffness(integrator, rule, factor):
    """k_t = k_n dt, of the step that the integrator takes: a change of k_n changes both."""
    scene = built(("time.integrator", integrator), ("contact", {"stiffness": 300, "stick_stiffness_rule": rule}))
    assert value(scene, "contact.*.floor.k_t") == pytest.approx(300 * 0.01 * factor)
    dot = np.zeros(scene.numbers.layout.n)
    dot[scene.numbers.resolve("contact.stiffness")[0]] = 1.0
    theta_dot = scene.numbers.ties.pushforward(scene.numbers.values, dot)
    view = scene.model.system.parameters.view
    assert view(theta_dot, "contact.*.ball.k_n") == 1.0
    assert view(theta_dot, "contact.*.ball.k_t") == pytest.approx(0.01 * factor)
    assert "contact.stick_stiffness" not in scene.numbers.layout
