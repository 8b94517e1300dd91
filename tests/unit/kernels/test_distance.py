"""Signed distances: every smooth branch against central differences, gaps against sampled surfaces."""

from itertools import product

import numpy as np
import pytest

from add.kernels import distance
from add.kernels.distance import (
    BOTTOM,
    RIM_BOTTOM,
    RIM_TOP,
    SIDE,
    TOP,
    distance_branch,
    distance_inside,
    signed_distance,
)
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, PLANE, SPHERE

SIZES = {
    PLANE: np.zeros(3),
    SPHERE: np.array([0.7, 0.0, 0.0]),
    BOX: np.array([0.5, 0.8, 0.3]),
    CAPSULE: np.array([0.4, 0.6, 0.0]),
    CYLINDER: np.array([0.5, 0.4, 0.0]),
}
BOX_FACES = {4, 10, 12, 14, 16, 22}
FEATURES = {
    PLANE: {0},
    SPHERE: {0},
    BOX: set(range(27)) - {13},
    CAPSULE: {SIDE, TOP, BOTTOM},
    CYLINDER: {SIDE, TOP, BOTTOM, RIM_TOP, RIM_BOTTOM},
}
KINDS = sorted(SIZES)
#: Faces that go on beyond edges, with two radii.
BESIDE = {
    BOX: {
        27 + 81 * level + 27 * axis + 13 + 9 * s[0] + 3 * s[1] + s[2]
        for level in (0, 2)
        for axis in range(3)
        for s in product((-1, 0, 1), repeat=3)
        if s[axis] and np.count_nonzero(s) > 1
    },
    CYLINDER: {27 + 81 * level + 27 * axis + cap for level in (0, 2) for axis in (0, 1) for cap in (TOP, BOTTOM)},
}


def evaluate(kind, X, feature=-1):
    n, H = np.full(3, np.nan), np.full((3, 3), np.nan)
    g, feature = signed_distance(kind, SIZES[kind], X, feature, n, H)
    return g, n, H, feature


def numerical(kind, X, feature, h=1e-3):
    """Fourth-order central differences of the gap and of the normal of one branch, derivative index last."""
    gradient, hessian = [], []
    for e in np.eye(3) * h:
        (g1, n1), (g2, n2), (g3, n3), (g4, n4) = (evaluate(kind, X + s * e, feature)[:2] for s in (1, -1, 2, -2))
        gradient.append((8.0 * (g1 - g2) - (g3 - g4)) / (12.0 * h))
        hessian.append((8.0 * (n1 - n2) - (n3 - n4)) / (12.0 * h))
    return np.array(gradient), np.stack(hessian, axis=-1)


def points_by_feature(kind, per_feature=8, seed=0):
    """Random points, `per_feature` of every branch, away from the places where a branch is not smooth."""
    rng = np.random.default_rng(seed)
    found = {feature: [] for feature in FEATURES[kind]}
    for X in rng.uniform(-1.3, 1.3, (20000, 3)):
        g, _, _, feature = evaluate(kind, X)
        near_axis = np.hypot(X[0], X[1]) < 0.15
        on_edge = g > 0.0 and g < 0.15
        if len(found[feature]) < per_feature and not near_axis and not on_edge:
            found[feature].append(X)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_branch_has_its_gradient_and_hessian(kind):
    for feature, points in points_by_feature(kind).items():
        assert len(points) == 8, f"feature {feature} not reached"
        for X in points:
            _, n, H, found = evaluate(kind, X, feature)
            assert found == feature
            gradient, hessian = numerical(kind, X, feature)
            np.testing.assert_allclose(n, gradient, atol=2e-8)
            np.testing.assert_allclose(H, hessian, atol=2e-7)
            np.testing.assert_allclose(H, H.T, atol=0.0)
            np.testing.assert_allclose(np.linalg.norm(n), 1.0, rtol=1e-14)
            np.testing.assert_allclose(H @ n, 0.0, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_imposed_feature_is_the_smooth_continuation(kind):
    """On foreign ground: values there are no distances, but the derivatives are still those of one smooth function."""
    rng = np.random.default_rng(1)
    for feature in FEATURES[kind] | BESIDE.get(kind, set()):
        checked = 0
        for X in rng.uniform(-1.5, 1.5, (60, 3)):
            _, n, H, found = evaluate(kind, X, feature)
            assert found == feature
            if np.hypot(X[0], X[1]) < 0.3 or (np.max(np.abs(H)) > 4.0):
                continue
            checked += 1
            gradient, hessian = numerical(kind, X, feature)
            np.testing.assert_allclose(n, gradient, atol=2e-7)
            np.testing.assert_allclose(H, hessian, atol=2e-6)
        assert checked > 10


@pytest.mark.parametrize("kind", KINDS)
def test_deciding_equals_imposing_the_decision(kind):
    rng = np.random.default_rng(2)
    for X in rng.uniform(-1.2, 1.2, (200, 3)):
        g, n, H, feature = evaluate(kind, X)
        g2, n2, H2, _ = evaluate(kind, X, feature)
        assert g == g2
        assert np.array_equal(n, n2) and np.array_equal(H, H2)


@pytest.mark.parametrize("kind", KINDS)
def test_inside_is_the_sign_of_the_gap(kind):
    rng = np.random.default_rng(3)
    signs = []
    for X in rng.uniform(-1.0, 1.0, (2000, 3)):
        g = evaluate(kind, X)[0]
        assert distance_inside(kind, *SIZES[kind], *X) == (g < 0.0)
        signs.append(g < 0.0)
    assert 0.05 < np.mean(signs) < 0.95


def surface_samples(kind, m):
    """Dense samples of the surface; the second value bounds the distance from any surface point to a sample."""
    if kind == BOX:
        u = np.linspace(-1.0, 1.0, m)
        a, b = np.meshgrid(u, u, indexing="ij")
        faces = []
        for axis in range(3):
            for side in (-1.0, 1.0):
                faces.append(np.insert(np.stack([a.ravel(), b.ravel()], 1), axis, side, axis=1))
        return np.concatenate(faces) * SIZES[BOX], 2.0 * 0.8 / (m - 1)
    r, length = SIZES[kind][:2]
    if kind == CAPSULE:  # meridian from the south to the north pole
        angle = np.linspace(-np.pi / 2, 0.0, m)
        z = np.linspace(-length, length, m)
        rho = np.concatenate([r * np.cos(angle), np.full(m, r), r * np.cos(angle[::-1])])
        z = np.concatenate([r * np.sin(angle) - length, z, length - r * np.sin(angle[::-1])])
    else:
        rho = np.concatenate([np.linspace(0.0, r, m), np.full(m, r), np.linspace(r, 0.0, m)])
        z = np.concatenate([np.full(m, -length), np.linspace(-length, length, m), np.full(m, length)])
    phi = np.linspace(0.0, 2.0 * np.pi, 4 * m)
    points = np.stack(
        [np.outer(rho, np.cos(phi)), np.outer(rho, np.sin(phi)), np.repeat(z[:, None], 4 * m, axis=1)], axis=-1
    )
    return points.reshape(-1, 3), 2.0 * max(r, length) / (m - 1)


@pytest.mark.parametrize("kind", [BOX, CAPSULE, CYLINDER])
def test_gap_is_the_distance_to_the_sampled_surface(kind):
    samples, spacing = surface_samples(kind, 120)
    rng = np.random.default_rng(4)
    for X in rng.uniform(-1.2, 1.2, (150, 3)):
        g, n, _, _ = evaluate(kind, X)
        sampled = np.sqrt(np.min(np.sum((samples - X) ** 2, axis=1)))
        assert -1e-12 <= sampled - abs(g) <= spacing
        if abs(g) > 0.1:
            assert sampled - abs(g) <= 1.1 * spacing**2 / abs(g)
        np.testing.assert_allclose(evaluate(kind, X - g * n)[0], 0.0, atol=1e-12)


def test_only_faces_sides_and_caps_are_penetrated():
    rng = np.random.default_rng(5)
    for kind, allowed in ((BOX, BOX_FACES), (CYLINDER, {SIDE, TOP, BOTTOM})):
        found = set()
        for X in rng.uniform(-0.8, 0.8, (4000, 3)):
            g, _, _, feature = evaluate(kind, X)
            if g < 0.0:
                found.add(feature)
        assert found == allowed


@pytest.mark.parametrize("kind", KINDS)
def test_singular_places_are_finite(kind):
    corner = SIZES[kind].copy()
    for feature in FEATURES[kind]:
        for X in (np.zeros(3), np.array([0.0, 0.0, 0.4]), np.array([0.5, 0.0, 0.4]), corner, -corner):
            g, n, H, _ = evaluate(kind, X, feature)
            assert np.isfinite(g) and np.isfinite(H).all()
            np.testing.assert_allclose(np.linalg.norm(n), 1.0, rtol=1e-14)


def test_order_limits_what_is_written():
    n, H = np.full(3, np.nan), np.full((3, 3), np.nan)
    g0 = distance_branch(CYLINDER, SIZES[CYLINDER], 0.6, 0.2, 0.7, RIM_TOP, 0, n, H)
    assert np.isnan(n).all() and np.isnan(H).all()
    g1 = distance_branch(CYLINDER, SIZES[CYLINDER], 0.6, 0.2, 0.7, RIM_TOP, 1, n, H)
    assert np.isfinite(n).all() and np.isnan(H).all()
    assert g0 == g1


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_equals_interpreted(kind, monkeypatch):
    rng = np.random.default_rng(6)
    points = rng.uniform(-1.2, 1.2, (40, 3))
    compiled = [evaluate(kind, X) for X in points]
    for name in ("distance_feature", "distance_branch", "_rim"):
        monkeypatch.setattr(distance, name, getattr(distance, name).py_func)
    for X, (g, n, H, feature) in zip(points, compiled, strict=True):
        n2, H2 = np.full(3, np.nan), np.full((3, 3), np.nan)
        g2, feature2 = signed_distance.py_func(kind, SIZES[kind], X, -1, n2, H2)
        assert feature == feature2
        assert distance_inside.py_func(kind, *SIZES[kind], *X) == (g < 0.0)
        np.testing.assert_allclose(g2, g, atol=1e-15)
        np.testing.assert_allclose(n2, n, atol=1e-15)
        np.testing.assert_allclose(H2, H, atol=1e-13)
