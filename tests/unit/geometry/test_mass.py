"""Mass properties: closed forms against finely meshed surfaces, and what cannot be a solid."""

import numpy as np
import pytest

from add.errors import InputError
from add.geometry import (
    box_solid,
    capsule_solid,
    check_inertia,
    check_surface,
    cylinder_solid,
    mesh_solid,
    sphere_solid,
)
from add.io.surfaces import read_surface

CUBE = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
SQUARES = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
TRIANGLES = np.array([[q[0], q[k], q[k + 1]] for q in SQUARES for k in (1, 2)])


def revolved(profile, n):
    """Closed surface of a profile (m, 2) of (distance from the z axis, z) from pole to pole, outward."""
    angles = 2.0 * np.pi * np.arange(n) / n
    rings = [np.column_stack([r * np.cos(angles), r * np.sin(angles), np.full(n, z)]) for r, z in profile[1:-1]]
    m = len(rings)
    vertices = np.concatenate([*rings, [[0.0, 0.0, profile[0][1]], [0.0, 0.0, profile[-1][1]]]])
    triangles = []
    for j in range(n):
        k = (j + 1) % n
        triangles += [[m * n, k, j], [m * n + 1, (m - 1) * n + j, (m - 1) * n + k]]
        for i in range(m - 1):
            a, b, c, d = i * n + j, i * n + k, (i + 1) * n + k, (i + 1) * n + j
            triangles += [[a, b, c], [a, c, d]]
    return vertices, np.array(triangles)


def same(solid, other, rtol):
    assert solid.volume == pytest.approx(other.volume, rel=rtol)
    np.testing.assert_allclose(solid.centre, other.centre, atol=rtol)
    np.testing.assert_allclose(solid.inertia, other.inertia, rtol=rtol, atol=rtol * np.abs(other.inertia).max())


def test_box():
    size = np.array([0.3, 0.5, 0.7])
    solid = box_solid(size)
    assert solid.volume == pytest.approx(0.3 * 0.5 * 0.7)
    assert solid.inertia[0, 0] == pytest.approx(solid.volume * (0.25 + 0.49) / 12.0)
    same(mesh_solid((CUBE - 0.5) * size, TRIANGLES), solid, 1e-14)


def test_cube_of_contactnets():
    """0.37 kg, 0.1048 m: a solid cube has 6.77e-4 kg m^2, what the URDF says (8.1e-4) is not far off."""
    solid = box_solid(3 * [0.1048])
    np.testing.assert_allclose(solid.inertia * 0.37 / solid.volume, 6.773e-4 * np.eye(3), atol=1e-7)


@pytest.mark.parametrize("n", [60, 120])
def test_round_shapes(n):
    polar = np.linspace(0.0, np.pi, n)
    ball = np.column_stack([0.2 * np.sin(polar), -0.2 * np.cos(polar)])
    rtol = 4.0 * (np.pi / n) ** 2  # the triangles cut off what is round
    same(mesh_solid(*revolved(ball, n)), sphere_solid(0.2), rtol)
    can = np.array([[0.0, -0.3], [0.2, -0.3], [0.2, 0.3], [0.0, 0.3]])
    same(mesh_solid(*revolved(can, n)), cylinder_solid(0.2, 0.6), rtol)
    pill = ball + np.where(ball[:, 1:] < 0.0, [0.0, -0.3], [0.0, 0.3])
    same(mesh_solid(*revolved(pill, n)), capsule_solid(0.2, 0.3), rtol)


def test_capsule_shrinks_to_a_sphere():
    same(capsule_solid(0.2, 1e-12), sphere_solid(0.2), 1e-10)


def test_frame_invariance(rng):
    """Turned and moved far away: x_c -> R x_c + t, I -> R I R^T."""
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    rotation *= np.sign(np.linalg.det(rotation))
    vertices = CUBE * [0.01, 0.02, 0.05]
    solid, shift = mesh_solid(vertices, TRIANGLES), np.array([30.0, -20.0, 10.0])
    moved = mesh_solid(vertices @ rotation.T + shift, TRIANGLES)
    assert moved.volume == pytest.approx(solid.volume, rel=1e-10)
    np.testing.assert_allclose(moved.centre, rotation @ solid.centre + shift, rtol=1e-13)
    np.testing.assert_allclose(moved.inertia, rotation @ solid.inertia @ rotation.T, atol=1e-9 * solid.inertia.max())


def test_against_trimesh(rng):
    trimesh = pytest.importorskip("trimesh")
    hull = trimesh.convex.convex_hull(rng.normal(size=(40, 3)))
    solid = mesh_solid(hull.vertices, hull.faces)
    assert solid.volume == pytest.approx(hull.volume)
    np.testing.assert_allclose(solid.centre, hull.center_mass, atol=1e-12)
    np.testing.assert_allclose(solid.inertia, hull.moment_inertia, rtol=1e-10, atol=1e-12)


def test_cavity():
    inner = 0.5 + 0.5 * (CUBE - 0.5)
    hollow = mesh_solid(np.concatenate([CUBE, inner]), np.concatenate([TRIANGLES, TRIANGLES[:, ::-1] + 8]))
    assert hollow.volume == pytest.approx(1.0 - 0.125)
    assert hollow.inertia[0, 0] == pytest.approx((1.0 - 0.5**5) / 6.0)


def test_cubes_that_share_an_edge():
    vertices = np.concatenate([CUBE, CUBE + np.array([1.0, 1.0, 0.0])])
    merged, index = np.unique(vertices, axis=0, return_inverse=True)
    solid = mesh_solid(merged, index.reshape(-1)[np.concatenate([TRIANGLES, TRIANGLES + 8])])
    assert solid.volume == pytest.approx(2.0)
    np.testing.assert_allclose(solid.centre, [1.0, 1.0, 0.5])


@pytest.mark.parametrize(
    ("vertices", "triangles", "message"),
    [
        (CUBE, TRIANGLES[1:], r"not closed \(found 3 of 18 edges; the first one from vertex 0 to 1, \(0, 0, 0\) to "),
        (CUBE, np.vstack([TRIANGLES[1:], TRIANGLES[:1, ::-1]]), r"wound against .* \(found 3 of 18 edges; the first"),
        (CUBE, TRIANGLES[:, ::-1], "inside out .found volume -1 m"),
        (CUBE * [1.0, 1.0, 0.0], TRIANGLES, "encloses no volume"),
        (CUBE, TRIANGLES + 1, "does not exist"),
        (CUBE, TRIANGLES.astype(float), "bad triangles"),
        (CUBE[:, :2], TRIANGLES, "bad vertices"),
        (np.where(CUBE == 1.0, np.nan, CUBE), TRIANGLES, "bad vertices"),
    ],
)
def test_no_solid(vertices, triangles, message):
    with pytest.raises(InputError, match=message):
        mesh_solid(vertices, triangles)


def test_open_in_the_error_of_the_surface_itself():
    with pytest.raises(InputError, match="not closed"):
        check_surface(CUBE, TRIANGLES[:6])


@pytest.mark.parametrize(
    "call",
    [
        lambda: box_solid([1.0, 2.0]),
        lambda: box_solid([1.0, 2.0, 0.0]),
        lambda: box_solid("abc"),
        lambda: sphere_solid(-1.0),
        lambda: cylinder_solid(1.0, np.inf),
        lambda: capsule_solid(np.nan, 1.0),
    ],
)
def test_impossible_lengths(call):
    with pytest.raises(InputError, match=r"impossible .* of a (box|sphere|cylinder|capsule)"):
        call()


def test_inertia():
    np.testing.assert_array_equal(check_inertia(np.diag([1.0, 2.0, 3.0])), np.diag([1.0, 2.0, 3.0]))  # flat
    check_inertia(1e-9 * np.diag([1.0, 2.0, 2.9999999999]))
    for matrix, message in (
        (np.diag([1.0, 1.0, 2.1]), r"exceeds .*principal moments 1, 1, 2\.1; expected the largest <= 2"),
        (np.diag([1.0, 1.0, 0.0]), "not positive definite .found principal moments 0, 1, 1"),
        (np.diag([1.0, 1.0, -0.1]), "not positive definite"),
        (np.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), "not symmetric"),
        (np.eye(2), "not an inertia"),
        (np.diag([1.0, 1.0, np.nan]), "not an inertia"),
    ):
        with pytest.raises(InputError, match=message):
            check_inertia(matrix)


# --- files ------------------------------------------------------------------------------------------------------------

PLY = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"


@pytest.mark.parametrize("suffix", [".stl", ".obj", ".ply", ".off"])
def test_files(tmp_path, suffix):
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / f"cube{suffix}"
    trimesh.Trimesh(CUBE, TRIANGLES, process=False).export(path)
    surface = read_surface(path)
    assert surface.vertices.shape == (8, 3)
    assert surface.triangles.shape == (12, 3)
    same(mesh_solid(*surface), mesh_solid(CUBE, TRIANGLES), 1e-14)


def test_polygons_and_texture_seams(tmp_path):
    lines = [f"v {x} {y} {z}" for x, y, z in CUBE] + [f"vt {k / 24} 0" for k in range(24)]
    lines += ["f " + " ".join(f"{v + 1}/{4 * i + j + 1}" for j, v in enumerate(q)) for i, q in enumerate(SQUARES)]
    (tmp_path / "cube.obj").write_text("\n".join(lines) + "\n")
    surface = read_surface(tmp_path / "cube.obj")
    assert len(surface.vertices) == 8
    assert mesh_solid(*surface).volume == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.stl", None, "no such file"),
        ("noise.stl", "this is no mesh", "none|cannot be read|no triangles"),
        ("noise.xyzw", "this is no mesh", "cannot be read"),
        ("points.ply", PLY + "end_header\n0 0 0\n1 0 0\n0 1 0\n", "no triangles|cannot be read"),
        ("line.obj", "v 0 0 0\nv 1 0 0\nv 1 0 0\nf 1 2 3\n", "is a line or a point"),
    ],
)
def test_bad_files(tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_surface(tmp_path / name)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "volume"), [("spot.obj", 0.140740741), ("bunny_watertight.obj", 754923.909), ("torus.obj", 0.1295)]
)
def test_meshes_of_others(data_root, name, volume):
    path = data_root / "meshes" / name
    if not path.exists():
        pytest.skip(f"no {path}")
    assert mesh_solid(*read_surface(path)).volume == pytest.approx(volume, rel=1e-8)
