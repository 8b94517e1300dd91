"""Geometry, mass and surface of meshes; boxes and quadratic tetrahedra; what `validate` mends and refuses."""

import numpy as np
import pytest

from add.errors import InputError
from add.geometry import (
    FAMILIES,
    HEX8,
    TET4,
    TET10,
    SoftMesh,
    boundary_faces,
    box_mesh,
    element_volumes,
    facets,
    mass_pairs,
    quadrature_geometry,
    surface,
    to_tet10,
    validate,
    volume,
)

families = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())


def distorted(family, rng, amount=0.08):
    """Box of 2 x 3 x 2 cells whose nodes are displaced; quadratic elements become curved."""
    mesh = box_mesh((2.0, 3.0, 1.5), (2, 3, 2), family)
    return SoftMesh(mesh.points + rng.uniform(-amount, amount, mesh.points.shape), mesh.cells, family)


def mass_matrix(mesh, lumped=False):
    rows, cols, values = mass_pairs(mesh, lumped)
    matrix = np.zeros((mesh.n_nodes, mesh.n_nodes))
    matrix[rows, cols] = values
    return matrix


# --- boxes ----------------------------------------------------------------------------------------------------------


@families
def test_box(family):
    mesh = box_mesh((2.0, 3.0, 1.5), (2, 3, 1), family)
    valid = validate(mesh)
    assert (valid.n_dropped, valid.n_flipped) == (0, 0)
    assert mesh.n_elements == 6 * (1 if family is HEX8 else 6)
    np.testing.assert_allclose(mesh.points.min(axis=0), (-1, -1.5, -0.75))
    np.testing.assert_allclose(mesh.points.max(axis=0), (1, 1.5, 0.75))
    assert volume(mesh) == pytest.approx(9.0, rel=1e-14)
    assert surface(mesh).areas.sum() == pytest.approx(2 * (6 + 3 + 4.5), rel=1e-14)


@pytest.mark.parametrize(
    ("size", "divisions"),
    [
        ((1, 1), (1, 1, 1)),
        ((1, 1, 0), (1, 1, 1)),
        ((1, 1, np.nan), (1, 1, 1)),
        ((1, 1, 1), (1, 0, 1)),
        ((1, 1, 1), (1, 1.5, 1)),
    ],
)
def test_impossible_box(size, divisions):
    with pytest.raises(InputError, match="impossible"):
        box_mesh(size, divisions, HEX8)


# --- geometry -------------------------------------------------------------------------------------------------------


@families
def test_gradients_hold_linear_fields(family, rng):
    mesh = distorted(family, rng)
    slope = rng.normal(size=3)
    gradients, weights = quadrature_geometry(mesh)
    assert gradients.shape == (mesh.n_elements, len(family.quadrature.weights), family.n_nodes, 3)
    found = np.einsum("ei,eqia->eqa", (mesh.points @ slope + 2.0)[mesh.cells], gradients)
    np.testing.assert_allclose(found, np.broadcast_to(slope, found.shape), atol=1e-12)
    if family is not TET10:  # the determinant of a curved tet10 is of degree 3, the rule of degree 2
        assert weights.sum() == pytest.approx(volume(mesh), rel=1e-13)


@families
def test_stiffness_rule_integrates_linear_fields_of_straight_elements(family, rng):
    mesh = box_mesh((2.0, 3.0, 1.5), (2, 3, 2), family)
    shape = family.shape(family.quadrature.points)
    x = np.einsum("qi,eia->eqa", shape, mesh.points[mesh.cells])
    weights = quadrature_geometry(mesh).weights
    assert (weights * (x @ (1.0, 2.0, 3.0) + 4.0)).sum() == pytest.approx(36.0, rel=1e-13)
    if family is not TET4:
        assert (weights * x[..., 0] ** 2).sum() == pytest.approx(9.0 / 3.0, rel=1e-13)


@families
def test_curved_volume_equals_flux_through_the_surface(family, rng):
    """Volume = integral of x . n / 3 over the boundary, exactly for tet4; sub-triangles converge for the others."""
    mesh = distorted(family, rng, 0.0 if family is not TET4 else 0.08)
    a, b, c = mesh.points[surface(mesh).triangles.T]
    assert np.einsum("ta,ta->", a, np.cross(b, c)) / 6 == pytest.approx(volume(mesh), rel=1e-13)


# --- mass -----------------------------------------------------------------------------------------------------------


@families
def test_mass_totals(family, rng):
    mesh = distorted(family, rng)
    for lumped in (False, True):
        rows, cols, values = mass_pairs(mesh, lumped)
        assert values.sum() == pytest.approx(volume(mesh), rel=1e-13)
        keys = rows * mesh.n_nodes + cols
        assert (np.diff(keys) > 0).all()  # sorted and unique
        assert rows.dtype == cols.dtype == np.int64
    assert (values > 0).all() and (rows == cols).all() and len(rows) == mesh.n_nodes


@families
def test_consistent_mass_is_symmetric_and_positive(family, rng):
    matrix = mass_matrix(distorted(family, rng))
    assert (matrix == matrix.T).all()
    assert np.linalg.eigvalsh(matrix).min() > 0


@families
def test_consistent_mass_integrates_products_of_coordinates(family, rng):
    """x^T M y = integral of x y dV, compared with a much finer rule."""
    mesh = distorted(family, rng)
    n = 9
    t, w = np.polynomial.legendre.leggauss(n)
    grid = np.stack(np.meshgrid(t, t, t, indexing="ij"), -1).reshape(-1, 3)
    weights = np.einsum("i,j,k->ijk", w, w, w).ravel()
    if family is not HEX8:  # Duffy: cube to tetrahedron
        s, t, u = ((grid + 1) / 2).T
        weights = weights / 8 * (1 - s) ** 2 * (1 - t)
        grid = np.stack([s, t * (1 - s), u * (1 - s) * (1 - t)], -1)
    corners = mesh.points[mesh.cells]
    x = np.einsum("qi,eia->eqa", family.shape(grid), corners)
    det = np.linalg.det(np.einsum("eia,qib->eqab", corners, family.gradient(grid)))
    moments = np.einsum("q,eq,eqa,eqb->ab", weights, det, x, x)
    np.testing.assert_allclose(mesh.points.T @ mass_matrix(mesh) @ mesh.points, moments, atol=1e-12)


@families
def test_moments_of_a_box(family):
    mesh = box_mesh((2.0, 3.0, 1.5), (3, 2, 2), family)
    moments = mesh.points.T @ mass_matrix(mesh) @ mesh.points
    np.testing.assert_allclose(moments, 9.0 / 12 * np.diag([4.0, 9.0, 2.25]), atol=1e-13)


def test_consistent_mass_of_one_tet4():
    mesh = SoftMesh(TET4.nodes, [[0, 1, 2, 3]], TET4)
    np.testing.assert_allclose(mass_matrix(mesh), (np.ones((4, 4)) + np.eye(4)) / 120, rtol=1e-14)


def test_lumping_is_hrz():
    mesh = SoftMesh(TET10.nodes, [range(10)], TET10)
    consistent, lumped = mass_matrix(mesh), mass_pairs(mesh, True).values
    assert (consistent.sum(axis=1)[:4] < 0).all()  # why row sums do not do
    np.testing.assert_allclose(lumped, np.diag(consistent) / np.trace(consistent) / 6, rtol=1e-13)


# --- surface --------------------------------------------------------------------------------------------------------


@families
def test_surface_is_closed_and_outward(family, rng):
    mesh = distorted(family, rng)
    triangles, nodes, areas = surface(mesh)
    a, b, c = mesh.points[triangles.T]
    normals = np.cross(b - a, c - a) / 2
    np.testing.assert_allclose(normals.sum(axis=0), 0, atol=1e-13)
    enclosed = np.einsum("ta,ta->", a, np.cross(b, c)) / 6
    assert enclosed == pytest.approx(volume(mesh), rel=0.02)
    edges = {(int(p), int(q)) for t in triangles for p, q in zip(t, np.roll(t, -1), strict=True)}
    assert len(edges) == 3 * len(triangles)  # consistently oriented: each directed edge once ...
    assert all((q, p) in edges for p, q in edges)  # ... and its opposite too
    np.testing.assert_array_equal(nodes, np.unique(triangles))
    assert (areas > 0).all()
    if family is not HEX8:
        assert areas.sum() == pytest.approx(np.linalg.norm(normals, axis=1).sum(), rel=1e-13)


@families
def test_facets_follow_curved_faces(family, rng):
    """They enclose the volume of the curved elements, 16 times as closely as the triangles of the nodes."""
    mesh = distorted(family, rng)
    found, outline = facets(mesh), surface(mesh)
    places = found.corners @ mesh.points[found.nodes]
    assert found.corners.sum(axis=1) == pytest.approx(1.0)

    def enclosed(triangles, points):
        a, b, c = points[triangles.T]
        return np.einsum("mk,mk->", a, np.cross(b, c)) / 6.0

    exact = volume(mesh)
    gap = enclosed(found.triangles, places) - exact
    by_nodes = enclosed(outline.triangles, mesh.points) - exact
    if family is TET10:
        assert abs(by_nodes) > 1e-3 * exact and gap == pytest.approx(by_nodes / 16.0, rel=0.05)
    else:
        assert (places[found.triangles] == mesh.points[outline.triangles]).all()


def test_areas_of_quadrilaterals_prefer_no_corner():
    triangles, nodes, areas = surface(box_mesh((1, 1, 1), (1, 1, 1), HEX8))
    assert len(triangles) == 12 and len(nodes) == 8
    np.testing.assert_allclose(areas, 6 / 8, rtol=1e-14)


def test_surface_leaves_inner_nodes_out():
    mesh = box_mesh((1, 1, 1), (2, 2, 2), HEX8)
    found = surface(mesh)
    assert len(found.nodes) == 26 and mesh.n_nodes == 27
    assert len(boundary_faces(mesh).faces) == 24


# --- quadratic tetrahedra -------------------------------------------------------------------------------------------


def test_to_tet10_keeps_the_shape(rng):
    mesh = distorted(TET4, rng)
    raised = to_tet10(mesh)
    np.testing.assert_array_equal(raised.points[: mesh.n_nodes], mesh.points)
    np.testing.assert_allclose(element_volumes(raised), element_volumes(mesh), rtol=1e-12)
    assert len(np.unique(raised.points.round(12), axis=0)) == raised.n_nodes
    assert to_tet10(raised) is raised
    with pytest.raises(InputError, match="quadratic"):
        to_tet10(box_mesh((1, 1, 1), (1, 1, 1), HEX8))


def test_to_tet10_projects_the_boundary_only():
    mesh = box_mesh((1, 1, 1), (2, 2, 2), TET4)
    raised = to_tet10(mesh, lambda p: 1.02 * p)
    straight = to_tet10(mesh)
    moved = np.flatnonzero((raised.points != straight.points).any(axis=1))
    assert set(moved) == set(surface(straight).nodes[surface(straight).nodes >= mesh.n_nodes])


def test_to_tet10_does_not_fold():
    raised = to_tet10(box_mesh((1, 1, 1), (2, 2, 2), TET4), lambda p: -3.0 * p)
    validate(raised)
    assert volume(raised) == pytest.approx(1.0)


# --- validate -------------------------------------------------------------------------------------------------------


@families
def test_orientation_is_mended(family, rng):
    mesh = distorted(family, rng, 0.03)
    cells = mesh.cells.copy()
    wrong = np.arange(0, mesh.n_elements, 3)
    cells[wrong] = cells[wrong][:, family.flip]
    assert (element_volumes(SoftMesh(mesh.points, cells, family))[wrong] < 0).all()
    valid = validate(SoftMesh(mesh.points, cells, family))
    assert valid.n_flipped == len(wrong)
    np.testing.assert_array_equal(valid.mesh.cells, mesh.cells)
    mirrored = validate(SoftMesh(mesh.points * (1, 1, -1), mesh.cells, family))
    assert mirrored.n_flipped == mesh.n_elements
    assert volume(mirrored.mesh) == pytest.approx(volume(mesh), rel=1e-13)


@families
def test_unused_nodes_are_dropped(family, rng):
    mesh = box_mesh((1, 2, 1), (1, 2, 1), family)
    points = np.concatenate([[[np.nan, 0, 0]], mesh.points, rng.normal(size=(2, 3))])
    valid = validate(SoftMesh(points, mesh.cells + 1, family))
    assert valid.n_dropped == 3
    np.testing.assert_array_equal(valid.mesh.points, mesh.points)
    np.testing.assert_array_equal(valid.kept, np.arange(mesh.n_nodes) + 1)


@families
def test_degenerate_is_refused_by_number(family):
    mesh = box_mesh((1, 2, 1), (1, 2, 1), family)
    last = mesh.n_elements
    flat = family.nodes * (1, 1, 1e-12) + (5, 0, 0)
    points = np.concatenate([mesh.points, flat])
    cells = np.concatenate([mesh.cells, [np.arange(family.n_nodes) + mesh.n_nodes]])
    with pytest.raises(InputError, match=rf"element {last} \(counted from 0\) is degenerate"):
        validate(SoftMesh(points, cells, family))


def test_folded_hexahedron_is_refused():
    points = HEX8.nodes.copy()
    points[6] = (-2.5, -2.5, -2.5)
    with pytest.raises(InputError, match=r"element 0 .*folded"):
        validate(SoftMesh(points, [range(8)], HEX8))


@families
def test_duplicates_are_refused(family):
    mesh = box_mesh((1, 2, 1), (1, 2, 1), family)
    cells = np.concatenate([mesh.cells, mesh.cells[1:2, family.flip]])
    with pytest.raises(InputError, match=rf"element {mesh.n_elements} .* duplicate: .* element 1"):
        validate(SoftMesh(mesh.points, cells, family))


@families
def test_other_refusals(family):
    mesh = box_mesh((1, 2, 1), (1, 2, 1), family)
    cells = mesh.cells.copy()
    cells[1, 2] = mesh.n_nodes
    with pytest.raises(InputError, match=rf"element 1 .*found {mesh.n_nodes}; expected 0 to {mesh.n_nodes - 1}"):
        validate(SoftMesh(mesh.points, cells, family))
    cells[1, 2] = -1
    with pytest.raises(InputError, match=r"element 1 .*found -1"):
        validate(SoftMesh(mesh.points, cells, family))
    cells[1, 2] = cells[1, 1]
    with pytest.raises(InputError, match=r"element 1 .*one node twice"):
        validate(SoftMesh(mesh.points, cells, family))
    for bad in (np.nan, np.inf):
        points = mesh.points.copy()
        points[3, 1] = bad
        with pytest.raises(InputError, match=r"node 3 .*not finite"):
            validate(SoftMesh(points, mesh.cells, family))
    with pytest.raises(InputError, match="no elements"):
        validate(SoftMesh(mesh.points, mesh.cells[:0], family))
    with pytest.raises(InputError, match="wrong number of nodes"):
        SoftMesh(mesh.points, mesh.cells[:, 1:], family)
    with pytest.raises(InputError, match="three-dimensional"):
        SoftMesh(mesh.points[:, :2], mesh.cells, family)


def test_crowded_face_is_refused():
    points = np.concatenate([TET4.nodes, [[0, 0, -1], [0.2, 0.2, -2]]])
    with pytest.raises(InputError, match="three or more"):
        validate(SoftMesh(points, [[0, 1, 2, 3], [0, 2, 1, 4], [0, 2, 1, 5]], TET4))


@families
@pytest.mark.parametrize("mirrored", [False, True])
def test_tangled_meshes_are_refused(family, mirrored):
    """A corner in the middle of the box is moved through the faces opposite to it: some elements turn inside out."""
    mesh = box_mesh((3.0, 3.0, 3.0), (3, 3, 3), TET4 if family is TET10 else family)
    points = mesh.points.copy()
    inner = np.flatnonzero((np.abs(points) < 1.0).all(axis=1))[0]
    points[inner] += (1.6, 0.1, 0.2)
    cells = mesh.cells[:, mesh.family.flip] if mirrored else mesh.cells
    tangled = SoftMesh(points, cells, mesh.family)
    if family is TET10:
        tangled = to_tet10(tangled)
    turned = np.flatnonzero((element_volumes(tangled) < 0.0) != mirrored)
    # A hexahedron folds before its volume changes sign.
    assert family is HEX8 or 0 < len(turned) < mesh.n_elements / 2
    first = "degenerate: flat, folded" if family is HEX8 else rf"tangled: \d+ elements overlap .*, {turned[0]}, "
    with pytest.raises(InputError, match=first):
        validate(tangled)


@families
def test_elements_of_either_order_are_no_tangle(family, rng):
    mesh = distorted(family, rng, 0.05)
    swapped = rng.random(mesh.n_elements) < 0.5
    cells = np.where(swapped[:, None], mesh.cells[:, family.flip], mesh.cells)
    valid = validate(SoftMesh(mesh.points, cells, family))
    assert valid.n_flipped == swapped.sum()
    np.testing.assert_array_equal(valid.mesh.cells, mesh.cells)


def test_overlapping_neighbours_of_positive_volume_are_refused():
    points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.2, 0.2, 2)]
    with pytest.raises(InputError, match=r"tangled: 2 elements overlap their neighbours, 0, 1 .*found 1 faces"):
        validate(SoftMesh(points, [[0, 1, 2, 3], [0, 1, 2, 4]], TET4))
