"""Surfaces of several bodies in one numbering."""

import numpy as np
from support.static_part import static_part

from add.contact.surfaces import ContactSurface, SurfacePart
from add.equations.sites import NO_INDICES
from add.geometry import TET4, box_mesh, surface

CUBE_FACES = np.array(
    [[0, 2, 1], [0, 3, 2], [4, 5, 6], [4, 6, 7], [0, 1, 5], [0, 5, 4], [1, 2, 6], [1, 6, 5], [2, 3, 7], [2, 7, 6],
     [3, 0, 4], [3, 4, 7]]
)  # fmt: skip
CUBE = np.array([[x, y, z] for z in (0, 1) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))], dtype=float)
NONE = np.zeros((0, 2), dtype=np.int64)


def soft_part(carrier: int, meets_itself: bool = False) -> SurfacePart:
    mesh = box_mesh((1.0, 1.0, 1.0), (2, 2, 2), TET4)
    found = surface(mesh)
    faces = np.searchsorted(found.nodes, found.triangles)
    return SurfacePart(
        mesh.points[found.nodes], faces, NONE, carrier, found.nodes, NO_INDICES, 0, 0.01, meets_itself
    )  # fmt: skip


def test_two_bodies_and_a_static_mesh() -> None:
    soft = soft_part(6)
    rigid = SurfacePart(CUBE, CUBE_FACES, NONE, 0, None, np.arange(3), 1, 0.02)
    floor = static_part(np.eye(3), np.array([[0, 1, 2]]), 2, 0.0)
    both = ContactSurface.of([soft, rigid, floor], apart=[(1, 2)])
    n = soft.points.shape[0]
    assert both.n_points == n + 8 + 3
    assert both.n_edges == 3 * soft.faces.shape[0] // 2 + 18 + 3
    assert both.carrier[0] == 6 + 3 * soft.nodes[0]
    assert (both.carrier[n : n + 8] == 0).all() and both.rigid[n : n + 8].all()
    assert (both.carrier[-3:] == -1).all() and not both.rigid[-3:].any()
    assert np.array_equal(both.meets, [[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    assert both.reach == 0.04
    # Every body's vertices, and its edges, stand for its area each: edges between faces take a third of both.
    of_edge = both.body[both.edges[:, 0]]
    for body, area in enumerate((6.0, 6.0, np.sqrt(3.0) / 2.0)):
        assert np.isclose(both.vertex_areas[both.body == body].sum(), area)
        assert np.isclose(both.edge_areas[of_edge == body].sum(), area)
    # The six diagonals of the rigid cube are no edges; a soft body's are, for they bend.
    assert both.sharp[of_edge == 1].sum() == 12
    assert both.sharp[of_edge == 0].all()
    ends = both.edges[both.face_edges]
    assert np.array_equal(np.sort(ends[:, 0], axis=1), np.sort(both.faces[:, :2], axis=1))
    assert np.array_equal(np.sort(ends[:, 2], axis=1), np.sort(both.faces[:, [2, 0]], axis=1))


def test_ropes_have_edges_and_no_faces() -> None:
    x = np.array([[0.0, 0, 0], [1, 0, 0], [3, 0, 0]])
    rope = SurfacePart(
        x, np.zeros((0, 3), dtype=np.int64), np.array([[0, 1], [2, 1]]), 0, np.arange(3), NO_INDICES, 0, 0.1, True
    )  # fmt: skip
    found = ContactSurface.of([rope])
    assert found.edges.tolist() == [[0, 1], [1, 2]] and found.sharp.all()
    assert found.edge_areas.tolist() == [1.0, 4.0] and found.vertex_areas.tolist() == [1.0, 2.5, 4.0]
    assert found.meets.all()


def test_places_follow_nodes_and_frames() -> None:
    soft = soft_part(6)
    rigid = SurfacePart(CUBE, CUBE_FACES, NONE, 0, None, np.arange(3), 1, 0.02)
    both = ContactSurface.of([soft, rigid, static_part(np.eye(3), np.array([[0, 1, 2]]), 2, 0.0)])
    rng = np.random.default_rng(1)
    q, theta = rng.normal(size=6 + 3 * 27), np.array([0.5, 0.25, 0.0])
    q[3:6] = 0.0, 0.0, np.pi / 2.0
    x = both.places(q, theta)
    n = soft.points.shape[0]
    assert np.array_equal(x[:n], q[6:].reshape(-1, 3)[soft.nodes])
    arm = CUBE - theta
    assert np.allclose(x[n : n + 8], q[:3] + np.column_stack([-arm[:, 1], arm[:, 0], arm[:, 2]]))
    assert np.array_equal(x[-3:], np.eye(3))
