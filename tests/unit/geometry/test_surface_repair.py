"""Small defects of surfaces are repaired, large ones refused."""

import numpy as np
import pytest

from add.errors import InputError
from add.geometry.boundary import mesh_quality
from add.geometry.mesh_round import shape_mesh
from add.geometry.triangle_surface import TriangleSurface, box_surface, check_surface, repaired


def ball():
    """A closed surface of 80 n^2 triangles: the boundary of a meshed ball."""
    from add.geometry import boundary_faces

    mesh = shape_mesh("sphere", radius=1.0, edge=0.25)
    faces = boundary_faces(mesh).faces
    used, corners = np.unique(faces, return_inverse=True)
    return TriangleSurface(mesh.points[used], corners.reshape(-1, 3))


def test_a_good_surface_is_left_alone():
    found = repaired(ball())
    assert found.notes == ()
    assert found.surface.triangles == pytest.approx(ball().triangles)
    assert 3.9 < found.volume < 4.0 / 3.0 * np.pi


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_windings(rng, share):
    """Turned triangles are turned back, all of them too."""
    points, triangles = ball()
    turned = rng.random(len(triangles)) < share
    mixed = np.where(turned[:, None], triangles[:, ::-1], triangles)
    found = repaired(TriangleSurface(points, mixed))
    check_surface(*found.surface)
    assert found.volume == pytest.approx(repaired(ball()).volume, rel=1e-12)
    assert f"{int(turned.sum())} triangles were wound" in found.notes[0]


def test_twice_and_a_small_hole():
    points, triangles = ball()
    damaged = np.concatenate([triangles[1:], triangles[5:9]])
    found = repaired(TriangleSurface(points, damaged))
    check_surface(*found.surface)
    assert found.volume == pytest.approx(repaired(ball()).volume, rel=1e-9)
    assert "4 triangles that were there twice" in found.notes[0]
    assert "1 holes were closed, the largest of 3 edges" in found.notes[1]


def test_a_large_hole_is_refused_unless_asked_for():
    """A box without its lid: its volume is a guess, but a good one."""
    points, triangles = box_surface([2.0, 1.0, 1.0])
    with pytest.raises(InputError, match="large hole"):
        repaired(TriangleSurface(points, triangles[2:]))
    found = repaired(TriangleSurface(points, triangles[2:]), fill=True)
    check_surface(*found.surface)
    assert found.volume == pytest.approx(2.0, rel=1e-12)


def test_three_triangles_at_an_edge():
    points, triangles = box_surface([1.0, 1.0, 1.0])
    fin = np.concatenate([points, [[3.0, 0.0, 0.0]]])
    with pytest.raises(InputError, match="odd number of triangles"):
        repaired(TriangleSurface(fin, np.concatenate([triangles, [[*triangles[0][:2], len(points)]]])))


def test_quality_of_the_regular_tetrahedron_and_of_a_flat_one():
    from add.geometry import TET4, SoftMesh

    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=float)
    regular = mesh_quality(SoftMesh(corners, np.array([[0, 2, 1, 3]]), TET4))
    assert regular.shapes == pytest.approx([1.0])
    angle = np.degrees(np.arccos(1.0 / 3.0))
    assert (regular.smallest_angle, regular.largest_angle) == pytest.approx((angle, angle))
    flat = corners.copy()
    flat[3] = 1e-4 * corners[3] + (1 - 1e-4) * corners[:3].mean(axis=0)
    assert mesh_quality(SoftMesh(flat, np.array([[0, 2, 1, 3]]), TET4)).shapes[0] < 1e-3
