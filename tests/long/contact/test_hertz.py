"""A soft ball pressed on a plane and on a rigid ball, beside Hertz (1882): F = 4/3 E/(1 - nu^2) sqrt(R) delta^(3/2)."""

from pathlib import Path

import meshio
import numpy as np
import pytest
from scipy.optimize import brentq

from add.contact import BodyContact
from add.equations.kinematics import Kinematics
from add.geometry.mesh_round import ball_mesh
from add.scene import scene_from_dict

RADIUS, YOUNG, POISSON = 0.05, 1e5, 0.3
STIFFNESS = YOUNG / (1.0 - POISSON**2)
#: Edges at the south pole are (1 - DENSE) / (1 + DENSE) of those in the middle.
DENSE = 0.8


def dense_ball(layers: int, path: Path) -> str:
    """Write a ball with dense nodes at its south pole: a Moebius map of the unit ball onto itself keeps all angles."""
    mesh = ball_mesh(1.0, 1.1 / layers)
    x, c = mesh.points, np.array([0.0, 0.0, -DENSE])
    along, square, most = x @ c, (x**2).sum(axis=1), DENSE**2
    y = (1.0 - most) * x + (1.0 + 2.0 * along + square)[:, None] * c
    y /= (1.0 + 2.0 * along + most * square)[:, None]
    file = path / f"ball_{layers}.vtk"
    meshio.write_points_cells(file, RADIUS * y, [("tetra", mesh.cells)])
    return str(file)


def force(file: str, approach: float, *, on_ball: bool) -> float:
    """Return the force on a ball, its upper half held, pressed by ``approach`` [m], over Hertz's.

    On a rigid ball of the same size the radius in Hertz's formula is half of it.
    """
    radius = 0.5 * RADIUS if on_ball else RADIUS
    patch = np.sqrt(radius * approach)
    half = {"where": {"box": {"min": [-1, -1, -1e-9], "max": [1, 1, 1]}}}
    ball = {
        "type": "soft",
        "mesh": {"file": file},
        "material": {"young": YOUNG, "poisson": POISSON, "density": 1e3},
        "position": [0.0, 0.0, RADIUS - approach],
        "pins": [half],
    }
    other = {"type": "kinematic", "geometry": {"shape": "sphere", "radius": RADIUS}, "position": [0.0, 0.0, -RADIUS]}
    raw = {
        "schema": "add-scene/1",
        "gravity": [0.0, 0.0, 0.0],
        "time": {"dt": 0.01, "steps": 1, "initial": "equilibrium"},
        "bodies": {"ball": ball} | ({"other": other} if on_ball else {}),
        "obstacles": {} if on_ball else {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        # The penalty's depth is 0.2 % of the approach.
        "contact": {"friction_law": "none", "stiffness_per": "area", "stiffness": 400.0 * STIFFNESS / patch},
    }
    scene = scene_from_dict(raw).build()
    q = scene.simulation.run().state(0).q[0]
    (term,) = scene.model.term(BodyContact)
    forces = term.forces(Kinematics(q, np.zeros_like(q), np.zeros_like(q), 0.0, 0), scene.theta)
    lift = scene.model.system.dofs.view(forces, "ball").reshape(-1, 3)[:, 2].sum()
    return float(lift / (4.0 / 3.0 * STIFFNESS * np.sqrt(radius) * approach**1.5))


def between(layers: np.ndarray, order: float) -> float:
    """Return the ratio of the differences of errors that go with this power of the width of the mesh."""
    one, two, three = layers**-order
    return float((one - two) / (two - three))


@pytest.mark.slow
@pytest.mark.parametrize("on_ball", [False, True], ids=["plane", "ball"])
def test_force_over_approach_converges_to_that_of_hertz(on_ball: bool, tmp_path: Path) -> None:
    """Hertz's bodies are half-spaces: what a ball of finite size is stiffer goes with a / R, and is extrapolated."""
    layers = np.array([6.0, 9.0, 13.0])
    files = [dense_ball(int(n), tmp_path) for n in layers]
    limits = []
    for patch in (0.05, 0.1):
        radius = 0.5 * RADIUS if on_ball else RADIUS
        shares = np.array([force(file, (patch * RADIUS) ** 2 / radius, on_ball=on_ball) for file in files])
        # Second order in the width of the mesh
        limit = np.polynomial.polynomial.polyfit(layers**-2.0, shares, 1)[0]
        assert shares[0] > shares[1] > shares[2] > limit > 1.0
        if patch == 0.05:  # by the three alone; at 0.1 they fall less evenly
            ratio = (shares[0] - shares[1]) / (shares[1] - shares[2])
            assert 1.5 < brentq(lambda p, ratio=ratio: between(layers, p) - ratio, 0.5, 5.0) < 3.0
        limits.append(limit)
    near, far = limits
    assert 0.015 < near - 1.0 < 0.04 and 1.5 < (far - 1.0) / (near - 1.0) < 2.5
    assert 2.0 * near - far == pytest.approx(1.0, abs=0.01)
