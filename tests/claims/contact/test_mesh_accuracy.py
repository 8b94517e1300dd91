"""Accuracy of contact between meshes: forces over triangulated ground, pressure between blocks of different meshes."""

from typing import Any

import numpy as np
import pytest
from support.static_part import static_part
from support.surfaces import sheet

from add.contact import FrictionLaw
from add.contact.meshes import MeshContact
from add.contact.surfaces import ContactSurface, SurfacePart, one_side
from add.equations.kinematics import Kinematics
from add.equations.sites import NO_INDICES
from add.geometry import surface
from add.geometry.mesh_round import ball_mesh
from add.scene import scene_from_dict

RADIUS = 0.3


@pytest.fixture(scope="module")
def ball_on_ground() -> tuple[MeshContact, np.ndarray]:
    """Return a rigid ball on irregular triangles of 0.1 m, skins that touch at half of that, and theta."""
    mesh = ball_mesh(RADIUS, 0.02)
    found = surface(mesh)
    number = np.full(len(mesh.points), -1)
    number[found.nodes] = np.arange(len(found.nodes))
    ground, faces = sheet(11, (-0.5, -0.5, 0.0), wave=0.0)
    inner = (np.abs(ground[:, :2]) < 0.49).all(axis=1)
    ground[inner, :2] += np.random.default_rng(0).uniform(-0.02, 0.02, size=(inner.sum(), 2))
    none = np.zeros((0, 2), dtype=np.int64)
    ball = SurfacePart(mesh.points[found.nodes], number[found.triangles], none, 0, None, NO_INDICES, 0, 0.0)
    both = ContactSurface.of([ball, static_part(ground, faces, 0, 0.0)])
    tables, skins = np.arange(6).reshape(1, 1, 6), np.array([6, 6])
    contact = MeshContact(both, tables, skins, FrictionLaw.NONE, sides=one_side(both))
    return contact, np.array([1e6, 0.0, 0.0, 0.0, 0.015, 0.015, 0.025])


@pytest.mark.parametrize(("rolls", "most"), [(False, 1e-12), (True, 0.01)], ids=["slides", "rolls"])
def test_ripple_of_a_rigid_ball_over_triangles(
    ball_on_ground: tuple[MeshContact, np.ndarray], rolls: bool, most: float
) -> None:
    """The ground's edges are not felt at all; where the ball rolls, its own facets are, by less than a percent."""
    contact, theta = ball_on_ground
    forces = []
    for x in np.linspace(-0.05, 0.15, 61):
        q = np.array([x, 0.013, RADIUS + 0.05 * 0.7, 0.0, x / RADIUS if rolls else 0.0, 0.0])
        forces.append(contact.forces(Kinematics(q, np.zeros(6), np.zeros(6), 0.0, 1), theta)[:3])
    normal = np.array(forces)[:, 2]
    assert np.ptp(normal) < most * normal.mean() and normal.min() > 50.0
    assert np.abs(np.array(forces)[:, :2]).max() < 1e-12 * normal.mean()


def pressed(low: int, up: int) -> tuple[float, list[float]]:
    """Return the force between two blocks pressed by 1 mm over its exact value, and how uneven both surfaces are."""
    block = {"type": "soft", "material": {"young": 1e5, "poisson": 0.0, "density": 1e3}}
    reach, gap = 0.004, 0.003

    def side(cells: int, z: float, held: list[float]) -> dict[str, Any]:
        mesh = {"shape": "box", "size": [0.1, 0.1, 0.05], "divisions": [cells, cells, cells // 2]}
        pins = [{"where": {"box": {"min": [-1, -1, held[0]], "max": [1, 1, held[1]]}}}]
        return block | {"mesh": mesh, "position": [0.0, 0.0, z], "pins": pins}

    raw = {
        "schema": "add-scene/1",
        "gravity": [0.0, 0.0, 0.0],
        "time": {"dt": 0.01, "steps": 1, "initial": "equilibrium"},
        "bodies": {"low": side(low, -0.025, [-1.0, -0.0249]), "up": side(up, 0.025 + gap, [0.0249, 1.0])},
        "contact": {"friction_law": "none", "stiffness_per": "area"}
        | {"mesh": {"thickness": reach, "stiffness": 1e8, "onset": 1e-6}},
    }
    scene = scene_from_dict(raw).build()
    q = scene.simulation.run().state(0).q[0]
    uneven, forces = [], []
    (term,) = scene.model.term(MeshContact)
    force = term.forces(Kinematics(q, np.zeros_like(q), np.zeros_like(q), 0.0, 0), scene.theta)
    for name, sign in (("low", 1.0), ("up", -1.0)):
        dofs = scene.model.system.dofs
        rest, x = scene.model.body(name).rest, dofs.view(q, name).reshape(-1, 3)
        moved = (x - rest)[np.abs(rest[:, 2] - 0.025 * sign) < 1e-9, 2]
        moved = moved - (-0.025 if name == "low" else 0.025 + gap)
        uneven.append(float(moved.std() / abs(moved.mean())))
        forces.append(abs(float(dofs.view(force, name).reshape(-1, 3)[:, 2].sum())))
    assert forces[0] == pytest.approx(forces[1], rel=1e-12)
    return forces[0] / (1e5 * 1e-3 / 0.1 * 0.01), uneven


def test_pressure_between_blocks_of_different_meshes() -> None:
    """Of uniform strain, the force is right to a percent and the surfaces are even to first order in h."""
    coarse, fine = pressed(4, 6), pressed(8, 12)
    for force, uneven in (coarse, fine):
        assert force == pytest.approx(1.0, abs=0.01) and max(uneven) < 0.05
    orders = np.log2(np.array(coarse[1]) / fine[1])
    assert (orders > 0.8).all()
