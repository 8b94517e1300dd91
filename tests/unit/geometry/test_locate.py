"""Point location."""

import numpy as np
import pytest

from add.errors import InputError
from add.geometry import FAMILIES, HEX8, Locator, SoftMesh, box_mesh, locate, validate
from add.geometry.locate import closest_on_triangles, locate_on_cells
from add.geometry.sheet import IRREGULAR, rectangle

families = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())


def distorted(family, rng, amount=0.08):
    mesh = box_mesh((2.0, 3.0, 1.5), (2, 3, 2), family)
    return validate(SoftMesh(mesh.points + rng.uniform(-amount, amount, mesh.points.shape), mesh.cells, family)).mesh


@families
def test_inside_points_are_reproduced(family, rng):
    mesh = distorted(family, rng)
    locator = Locator(mesh)
    for _ in range(60):
        element = rng.integers(mesh.n_elements)
        xi = rng.uniform(-1, 1, 3) if family is HEX8 else rng.dirichlet(np.ones(4))[1:]
        shape = family.shape(xi)
        x = shape @ mesh.points[mesh.cells[element]]
        found = locator.locate(x)
        assert found.element == element and found.distance == 0.0
        np.testing.assert_array_equal(found.nodes, mesh.cells[element])
        np.testing.assert_allclose(found.weights, shape, atol=1e-10)


@families
def test_nodes_are_inside(family, rng):
    mesh = distorted(family, rng)
    locator = Locator(mesh)
    for node in range(mesh.n_nodes):
        found = locator.locate(mesh.points[node])
        assert found.distance == pytest.approx(0.0, abs=1e-12)
        weights = np.zeros(mesh.n_nodes)
        weights[found.nodes] = found.weights
        np.testing.assert_allclose(weights, np.eye(mesh.n_nodes)[node], atol=1e-8)


@families
def test_outside_points(family, rng):
    mesh = box_mesh((2.0, 3.0, 1.5), (2, 3, 2), family)
    for _ in range(40):
        x = rng.uniform(-4, 4, 3)
        found = locate(mesh, x)
        exact = np.linalg.norm(np.maximum(np.abs(x) - (1.0, 1.5, 0.75), 0.0))
        assert found.distance == pytest.approx(exact, abs=1e-12)
        np.testing.assert_allclose(found.weights.sum(), 1, atol=1e-12)
        np.testing.assert_allclose(found.weights @ mesh.points[found.nodes], x, atol=1e-11)


@families
def test_outside_of_distorted_meshes(family, rng):
    mesh = distorted(family, rng)
    for _ in range(40):
        x = rng.normal(size=3) * 3
        found = locate(mesh, x)
        np.testing.assert_allclose(found.weights @ mesh.points[found.nodes], x, atol=1e-10)
        assert found.distance >= 0.0


@families
def test_weights_are_continuous_across_the_surface(family):
    mesh = box_mesh((2.0, 3.0, 1.5), (2, 3, 2), family)
    inside, outside = locate(mesh, (0.3, 1.5 - 1e-9, 0.2)), locate(mesh, (0.3, 1.5 + 1e-9, 0.2))
    assert inside.element == outside.element
    np.testing.assert_allclose(inside.weights, outside.weights, atol=1e-7)


def test_bad_position():
    mesh = box_mesh((1, 1, 1), (1, 1, 1), HEX8)
    for x in ((1.0, 2.0), (np.nan, 0.0, 0.0)):
        with pytest.raises(InputError, match="three finite numbers"):
            locate(mesh, x)


def test_closest_on_triangles(rng):
    triangles = rng.normal(size=(30, 3, 3))
    x = rng.normal(size=3)
    n = 120
    grid = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)]) / n
    samples = np.einsum("si,tia->tsa", grid, triangles)
    best = np.linalg.norm(samples - x, axis=2).min(axis=1)
    found = np.linalg.norm(closest_on_triangles(x, triangles) - x, axis=1)
    assert (found <= best + 1e-12).all() and (best - found < 0.02).all()


@pytest.mark.parametrize("corners", [3, 2])
def test_a_place_on_a_net_is_that_of_its_cell(corners: int, rng: np.random.Generator) -> None:
    """Between nodes, on nodes, and beside the net: weights give the nearest place of triangles and of edges."""
    points, triangles = rectangle((1.0, 0.6), (5, 3), IRREGULAR)
    points = points + 0.05 * np.outer(points[:, 0] ** 2, [0.0, 0.0, 1.0])
    cells = triangles if corners == 3 else np.sort(triangles[:, :2], axis=1)
    shares = rng.dirichlet(np.ones(corners), size=len(cells))
    for cell, share in zip(cells, shares, strict=True):
        nodes, weights, away = locate_on_cells(share @ points[cell], points, cells)
        assert away < 1e-15 and weights.sum() == pytest.approx(1.0, abs=1e-14)
        np.testing.assert_allclose(weights @ points[nodes], share @ points[cell], atol=1e-14)
    nodes, weights, away = locate_on_cells(points[4], points, cells)
    assert nodes.tolist() == [4] and weights.tolist() == [1.0] and away == 0.0
    nodes, weights, away = locate_on_cells(np.array([0.0, 0.4, 0.0]), points, cells)
    assert away == pytest.approx(np.linalg.norm(weights @ points[nodes] - [0.0, 0.4, 0.0]), rel=1e-12) and away >= 0.1
    assert (weights > -1e-12).all()
