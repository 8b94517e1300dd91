"""Signed distances of closed meshes: against all triangles and the winding number, derivatives on all features."""

import numpy as np
import pytest
from support.meshes import notched_cube, torus, winding

from add.errors import InputError
from add.geometry.triangle_surface import CollisionMesh
from add.kernels.distance import distance_bound, signed_distance
from add.kernels.mesh_distance import mesh_branch, mesh_feature
from add.kernels.primitives import point_triangle_distance
from add.kernels.shape_codes import MESH

SHAPES = {"notched cube": notched_cube(), "torus": torus()}


@pytest.fixture(params=SHAPES)
def mesh(request):
    return CollisionMesh(*SHAPES[request.param])


def places(mesh, n, rng):
    """Return places around and in a mesh, half of them near its surface."""
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    anywhere = rng.uniform(low - 0.3 * (high - low), high + 0.3 * (high - low), (n // 2, 3))
    corners = mesh.vertices[mesh.triangles[rng.integers(len(mesh.triangles), size=n // 2)]]
    weights = rng.dirichlet((0.5, 0.5, 0.5), n // 2)
    near = np.einsum("nk,nkc->nc", weights, corners) + 0.02 * (high - low).max() * rng.normal(size=(n // 2, 3))
    return np.concatenate([anywhere, near])


def test_distance_and_sign(mesh):
    x = places(mesh, 400, np.random.default_rng(0))
    gaps = mesh.gaps(x)
    inside = winding(x, mesh.vertices, mesh.triangles) > 0.5
    assert 0.1 < inside.mean() < 0.9
    np.testing.assert_array_equal(gaps < 0.0, inside)
    corners = mesh.vertices[mesh.triangles]
    least = [min(point_triangle_distance(y, *triangle) for triangle in corners) for y in x]
    np.testing.assert_allclose(np.abs(gaps), least, rtol=0, atol=1e-14)


def kind_of(mesh, feature):
    n_faces = len(mesh.triangles)
    n_edges = n_faces * 3 // 2
    return "face" if feature < n_faces else "edge" if feature < n_faces + n_edges else "vertex"


@pytest.mark.parametrize("imposed", [False, True])
def test_normal_and_hessian_on_every_feature(mesh, imposed):
    """Central differences of the gap and of the normal, of the closest feature and of one imposed elsewhere."""
    rng = np.random.default_rng(3)
    size = float(np.ptp(mesh.vertices, axis=0).max())
    seen = {}
    h = 1e-5 * size
    for x in places(mesh, 300, rng):
        n, H, ahead, back, none = np.zeros(3), np.zeros((3, 3)), np.zeros(3), np.zeros(3), np.zeros((3, 3))
        feature = mesh_feature(mesh.row, *x)
        if imposed:
            x = x + 0.05 * size * rng.normal(size=3)
        g = mesh_branch(mesh.row, *x, feature, 2, n, H)
        if abs(g) < 0.02 * size and kind_of(mesh, feature) != "face":
            continue  # differences would need smaller steps
        by_g, by_n = np.zeros(3), np.zeros((3, 3))
        for k, e in enumerate(h * np.eye(3)):
            high = mesh_branch(mesh.row, *(x + e), feature, 2, ahead, none)
            low = mesh_branch(mesh.row, *(x - e), feature, 2, back, none)
            by_g[k], by_n[:, k] = (high - low) / (2 * h), (ahead - back) / (2 * h)
        np.testing.assert_allclose(n, by_g, atol=1e-8)
        np.testing.assert_allclose(H, by_n, rtol=1e-5, atol=1e-6 / size)
        assert abs(n @ n - 1.0) < 1e-13
        np.testing.assert_allclose(H @ n, 0.0, atol=1e-10 / size)
        key = kind_of(mesh, feature), bool(g < 0.0)
        seen[key] = seen.get(key, 0) + 1
    assert {key[0] for key in seen} == {"face", "edge", "vertex"}
    if not imposed:
        assert ("face", True) in seen and ("edge", True) in seen


def test_concave_features_are_met_from_inside():
    """In a cube without an octant the edges of the hole and its corner are nearest to places inside the solid."""
    mesh = CollisionMesh(*notched_cube())
    n, H = np.zeros(3), np.zeros((3, 3))
    g, feature = signed_distance(MESH, mesh.row, np.array([-0.1, -0.2, -0.2]), -1, n, H)
    assert kind_of(mesh, feature) == "vertex" and g == pytest.approx(-0.3)
    np.testing.assert_allclose(n, np.array([1, 2, 2]) / 3, atol=1e-15)
    g, feature = signed_distance(MESH, mesh.row, np.array([0.4, -0.3, -0.4]), -1, n, H)
    assert kind_of(mesh, feature) == "edge" and g == pytest.approx(-0.5)
    np.testing.assert_allclose(n, [0.0, 0.6, 0.8], atol=1e-15)
    assert distance_bound(MESH, *mesh.half_extent) == pytest.approx(3.0**0.5)


def test_gap_is_continuous_across_features(mesh):
    """Along random lines the gap changes by no more than the way."""
    rng = np.random.default_rng(8)
    size = float(np.ptp(mesh.vertices, axis=0).max())
    for _ in range(10):
        a, b = places(mesh, 2, rng)
        line = a + np.linspace(0.0, 1.0, 400)[:, None] * (b - a)
        steps = np.abs(np.diff(mesh.gaps(line)))
        assert steps.max() <= np.linalg.norm(b - a) / 399 * (1 + 1e-9) + 1e-13 * size


def test_on_the_surface_itself_nothing_is_undefined():
    mesh = CollisionMesh(*notched_cube())
    for x in ([0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 0.2, 0.3]):
        n, H = np.zeros(3), np.zeros((3, 3))
        g, _ = signed_distance(MESH, mesh.row, np.array(x), -1, n, H)
        assert g == 0.0 and n @ n == pytest.approx(1.0) and np.isfinite(H).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v, t: (v, t[1:]), "not closed"),
        (lambda v, t: (v, t[:, ::-1]), "inside out"),
        (lambda v, t: (v, np.concatenate([t[:1, ::-1], t[1:]])), "wound against"),
        (lambda v, t: (v * [1, 1, 0], t), "inside out"),
    ],
)
def test_what_is_no_closed_shape_is_one_error(change, message):
    with pytest.raises(InputError, match=message):
        CollisionMesh(*change(*torus()))


def test_an_edge_of_four_triangles_is_refused():
    """Two cubes that touch along an edge bound a volume, but the sign there is no one's."""
    from support.meshes import cells_surface

    filled = np.zeros((2, 2, 1), dtype=bool)
    filled[0, 0], filled[1, 1] = True, True
    with pytest.raises(InputError, match="share an edge"):
        CollisionMesh(*cells_surface(filled))
