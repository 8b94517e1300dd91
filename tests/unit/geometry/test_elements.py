"""Shape functions, quadrature and faces of the reference elements."""

import pickle
from itertools import product
from math import factorial

import numpy as np
import pytest

from add.geometry import FAMILIES, HEX8, TET4, TET10

families = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())


def inner_points(family, rng, n=7):
    if family is HEX8:
        return rng.uniform(-1, 1, (n, 3))
    return rng.dirichlet(np.ones(4), n)[:, 1:]


@families
def test_kronecker(family):
    np.testing.assert_allclose(family.shape(family.nodes), np.eye(family.n_nodes), atol=1e-15)


@families
def test_gradient_is_the_derivative(family, rng):
    xi = inner_points(family, rng)
    h = 1e-6
    for k in range(3):
        step = h * np.eye(3)[k]
        quotient = (family.shape(xi + step) - family.shape(xi - step)) / (2 * h)
        np.testing.assert_allclose(family.gradient(xi)[..., k], quotient, atol=1e-9)


@families
def test_one_point_as_many(family, rng):
    xi = inner_points(family, rng)
    assert family.shape(xi[0]).shape == (family.n_nodes,)
    assert family.gradient(xi[0]).shape == (family.n_nodes, 3)
    np.testing.assert_array_equal(family.shape(xi[0]), family.shape(xi)[0])
    np.testing.assert_array_equal(family.gradient(xi[0]), family.gradient(xi)[0])


@families
def test_partition_of_unity_and_completeness(family, rng):
    xi = inner_points(family, rng)
    np.testing.assert_allclose(family.shape(xi).sum(axis=1), 1, atol=1e-14)
    np.testing.assert_allclose(family.gradient(xi).sum(axis=1), 0, atol=1e-14)
    np.testing.assert_allclose(family.shape(xi) @ family.nodes, xi, atol=1e-14)


def test_tet10_holds_quadratics(rng):
    xi = inner_points(TET10, rng)

    def field(p):
        x, y, z = p.T
        return 1 + x - 2 * y + x * y + 3 * y * z - z**2 + 2 * x**2

    np.testing.assert_allclose(TET10.shape(xi) @ field(TET10.nodes), field(xi), atol=1e-13)


def exact(family, powers):
    if family is HEX8:
        return np.prod([0.0 if p % 2 else 2.0 / (p + 1) for p in powers])
    return np.prod([factorial(p) for p in powers]) / factorial(sum(powers) + 3)


@pytest.mark.parametrize(
    ("family", "name", "degree"),
    [
        (TET4, "quadrature", 1),
        (TET4, "mass_quadrature", 2),
        (TET10, "quadrature", 2),
        (TET10, "mass_quadrature", 7),
        (HEX8, "quadrature", 3),
        (HEX8, "mass_quadrature", 5),
    ],
)
def test_quadrature_is_exact(family, name, degree):
    points, weights = getattr(family, name)
    assert (weights > 0).all() and (family.inside(points) > 0).all()
    for powers in product(range(degree + 1), repeat=3):
        if family is HEX8 or sum(powers) <= degree:
            value = weights @ np.prod(points ** np.array(powers), axis=1)
            assert value == pytest.approx(exact(family, powers), abs=1e-14), powers


@families
def test_inside(family, rng):
    xi = inner_points(family, rng)
    assert (family.inside(xi) > 0).all()
    np.testing.assert_allclose(family.inside(family.nodes), 0, atol=1e-15)
    assert family.inside(np.array([1.1, 1.1, 1.1])) < 0


@families
def test_faces_point_outward(family):
    for face in family.faces:
        corners = family.nodes[face[: 4 if family is HEX8 else 3]]
        normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
        assert normal @ (corners.mean(axis=0) - family.nodes.mean(axis=0)) > 0
        for triangle in family.face_triangles:
            a, b, c = family.nodes[face[triangle]]
            assert np.cross(b - a, c - a) @ normal > 0


@families
def test_flip_reverses_the_element(family):
    def determinant(nodes):
        return np.linalg.det(nodes.T @ family.gradient(family.centre))

    assert determinant(family.nodes) > 0
    assert determinant(family.nodes[family.flip]) < 0
    # a mirror image with the flipped order is a good element whose mid-edge nodes are in the right places
    mirrored = (family.nodes * (1, 1, -1))[family.flip]
    xi = family.quadrature.points
    jacobian = np.einsum("ia,qib->qab", mirrored, family.gradient(xi))
    np.testing.assert_allclose(np.linalg.det(jacobian), 1, atol=1e-13)


@families
def test_pickled_family_is_the_same_object(family):
    assert pickle.loads(pickle.dumps(family)) is family
