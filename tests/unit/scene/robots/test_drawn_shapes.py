"""Surfaces of the shapes of links, as they are drawn and exported: closed, outward, of the right size."""

import numpy as np
import pytest

from add.geometry import check_surface, mesh_solid
from add.scene.build.link_contact import surface_of
from add.scene.robots.model import RobotGeometry, RobotLink


def surface(shape, size):
    there = np.array([1.0, 2.0, 3.0])
    link = RobotLink("a", 1.0, np.zeros(3), np.eye(3), (RobotGeometry(shape, size, there, np.eye(3)),))
    return surface_of(link)


@pytest.mark.parametrize(
    ("shape", "size", "half", "volume"),
    [
        ("box", (0.1, 0.2, 0.3), [0.1, 0.2, 0.3], 8 * 0.1 * 0.2 * 0.3),
        ("sphere", (0.2,), [0.2, 0.2, 0.2], 4 / 3 * np.pi * 0.2**3),
        ("cylinder", (0.2, 0.3), [0.2, 0.2, 0.3], np.pi * 0.2**2 * 0.6),
        ("capsule", (0.2, 0.3), [0.2, 0.2, 0.5], np.pi * 0.2**2 * 0.6 + 4 / 3 * np.pi * 0.2**3),
    ],
)
def test_shapes(shape, size, half, volume):
    vertices, triangles = surface(shape, size)
    check_surface(vertices, triangles)
    found = mesh_solid(vertices, triangles)
    assert 0.94 * volume < found.volume <= volume * (1.0 + 1e-12)
    np.testing.assert_allclose(found.centre, [1.0, 2.0, 3.0], atol=1e-12)
    # The rings of a sphere lie half a step from its equator.
    np.testing.assert_allclose(np.ptp(vertices, axis=0), 2.0 * np.array(half), rtol=5e-3)
