"""Contact points of rigid bodies: on the surface, close enough together, and noticing what they promise to."""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from add.errors import InputError
from add.geometry import box_points, capsule_points, cylinder_points, sphere_points, surface_points

SQUARE = (
    np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]),
    np.array([[0, 1, 2], [0, 2, 3]]),
)


def box_distance(points, size):
    outside = np.abs(points) - np.asarray(size) / 2.0
    return np.linalg.norm(np.maximum(outside, 0.0), axis=1) + np.minimum(outside.max(axis=1), 0.0)


def test_box():
    size = [0.3, 0.2, 0.1]
    corners = box_points(size, np.inf)
    assert corners.shape == (8, 3)
    np.testing.assert_allclose(np.abs(corners), np.tile([0.15, 0.1, 0.05], (8, 1)))
    points = box_points(size, 0.1)
    assert len(points) == 4 * 3 * 2  # 3 x 2 x 1 cells: the grid has no inner points
    np.testing.assert_allclose(box_distance(points, size), 0.0, atol=1e-16)
    assert {tuple(p) for p in np.round(corners, 12)} <= {tuple(p) for p in np.round(points, 12)}
    fine = box_points(size, 0.03)
    assert len(np.unique(np.round(fine, 12), axis=0)) == len(fine)
    nearest = cKDTree(fine).query(fine, k=2)[0][:, 1]
    assert nearest.max() <= 0.03


def crossed(depth, spacing, along, across):
    """Whether points notice two edges that cross at right angles, the upper box `depth` below touching."""
    size = np.ones(3)
    points = box_points(size, spacing)
    lower, upper = Rotation.from_euler("x", 45, degrees=True), Rotation.from_euler("y", 45, degrees=True)
    shift = np.array([along, across, np.sqrt(2.0) - depth])
    seen = box_distance(lower.inv().apply(upper.apply(points) + shift), size).min()
    return min(seen, box_distance(upper.inv().apply(lower.apply(points) - shift), size).min()) < 0.0


def test_crossing_edges_sink_in_by_half_a_spacing_at_most():
    offsets = np.linspace(-0.05, 0.05, 21)
    for spacing in (0.1, 0.05):
        assert all(crossed(0.505 * spacing, spacing, a, b) for a in offsets for b in offsets)
        assert not all(crossed(0.45 * spacing, spacing, a, b) for a in offsets for b in offsets)


def test_sphere_and_capsule():
    np.testing.assert_array_equal(sphere_points(0.2), np.zeros((1, 3)))
    points = capsule_points(0.1, 0.25, 0.2)
    np.testing.assert_allclose(points[:, 2], np.linspace(-0.25, 0.25, 4))
    np.testing.assert_array_equal(points[:, :2], 0.0)
    np.testing.assert_allclose(capsule_points(0.1, 0.25, np.inf)[:, 2], [-0.25, 0.25])
    np.testing.assert_allclose(np.diff(capsule_points(0.1, 0.15, 0.1)[:, 2]), 0.1)  # not one more by round-off


def test_cylinder():
    points = cylinder_points(0.1, 0.3, 0.05)
    assert len(points) == 2 * 13
    np.testing.assert_allclose(np.hypot(points[:, 0], points[:, 1]), 0.1)
    np.testing.assert_allclose(np.abs(points[:, 2]), 0.15)
    np.testing.assert_array_equal(points[:13, :2], points[13:, :2])  # it lies on two points at once
    assert len(cylinder_points(0.1, 0.3, np.inf)) == 6


@pytest.mark.parametrize("every_vertex", [True, False])
def test_surface(every_vertex):
    points = surface_points(*SQUARE, 0.1, seed=3, every_vertex=every_vertex)
    np.testing.assert_array_equal(points[:, 2], 0.0)
    assert (points >= 0.0).all()
    assert (points <= 1.0).all()
    places = np.random.default_rng(0).random((20000, 2))
    holes = cKDTree(points[:, :2]).query(places)[0]
    assert holes.max() < 0.11
    nearest = cKDTree(points).query(points, k=2)[0][:, 1]
    assert nearest.min() > (0.02 if every_vertex else 0.1 - 1e-12)
    edge = np.sort(points[points[:, 1] == 0.0, 0])
    assert edge[[0, -1]].tolist() == [0.0, 1.0]
    if every_vertex:
        assert np.diff(edge).max() < 0.1 + 1e-12
    np.testing.assert_array_equal(points, surface_points(*SQUARE, 0.1, seed=3, every_vertex=every_vertex))
    assert not np.array_equal(points, surface_points(*SQUARE, 0.1, seed=4, every_vertex=every_vertex))


def test_vertices_of_a_fine_mesh_are_thinned():
    x, y = np.meshgrid(np.linspace(0.0, 1.0, 51), np.linspace(0.0, 1.0, 51), indexing="ij")
    grid = np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])
    a = (51 * np.arange(50)[:, None] + np.arange(50)).ravel()
    triangles = np.concatenate([np.column_stack([a, a + 51, a + 52]), np.column_stack([a, a + 52, a + 1])])
    assert len(surface_points(grid, triangles, 0.1, seed=0)) == 51**2
    assert 50 < len(surface_points(grid, triangles, 0.1, seed=0, every_vertex=False)) < 130


@pytest.mark.parametrize(
    "call",
    [
        lambda: box_points([1.0, 1.0, 1.0], 0.0),
        lambda: box_points([1.0, 1.0, 1.0], np.nan),
        lambda: capsule_points(1.0, 1.0, -1.0),
        lambda: surface_points(*SQUARE, np.inf, 0),
        lambda: surface_points(*SQUARE, 0.0, 0),
    ],
)
def test_impossible_spacing(call):
    with pytest.raises(InputError, match="impossible spacing"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: box_points([1.0, 1.0, 1.0], 1e-3),
        lambda: box_points([1.0, 1.0, 1.0], 1e-9),
        lambda: capsule_points(1.0, 1.0, 1e-12),
        lambda: surface_points(*SQUARE, 1e-4, 0),
        lambda: surface_points(*SQUARE, 1e-9, 0),
    ],
)
def test_units_mistaken(call):
    with pytest.raises(InputError, match="is the spacing in metres"):
        call()
