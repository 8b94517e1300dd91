"""Meshes of simple shapes, and those that are kept in data/meshes."""

import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from add.errors import InputError
from add.fem import boundary_faces, surface, validate, volume
from add.io import shapes
from add.io.meshes import read_mesh
from add.io.shapes import shape_mesh

ROOT = Path(__file__).resolve().parents[2]
SPHERE = {"shape": "sphere", "radius": 0.05, "edge": 0.02}
CYLINDER = {"shape": "cylinder", "radius": 0.03, "height": 0.02, "edge": 0.01}
TORUS = {"shape": "torus", "radius": 0.03, "tube_radius": 0.009, "edge": 0.008}
EXACT = {
    "sphere": 4 / 3 * np.pi * 0.05**3,
    "cylinder": np.pi * 0.03**2 * 0.02,
    "torus": 2 * np.pi**2 * 0.03 * 0.009**2,
}
round_shapes = pytest.mark.parametrize("arguments", [SPHERE, CYLINDER, TORUS], ids=EXACT)


@pytest.fixture
def mesher(tmp_path, monkeypatch):
    """Skip without the mesher; else start from a folder of one's own, with no mesh made yet."""
    module = pytest.importorskip("pytetwild")
    monkeypatch.chdir(tmp_path)
    shapes._round_mesh.cache_clear()
    return module


def quality(mesh):
    """Mean ratio of the corner tetrahedra, (ne,) [-]: 1 regular, 0 flat, negative inverted."""
    corners = mesh.points[mesh.cells[:, :4]]
    edges = corners[:, [1, 2, 3, 2, 3, 3]] - corners[:, [0, 0, 0, 1, 1, 2]]
    volumes = np.linalg.det(edges[:, :3]) / 6.0
    return np.sign(volumes) * 12.0 * np.abs(3.0 * volumes) ** (2.0 / 3.0) / (edges**2).sum(axis=(1, 2))


def off_surface(name, points):
    r, z = np.linalg.norm(points[:, :2], axis=1), points[:, 2]
    if name == "sphere":
        return np.abs(np.linalg.norm(points, axis=1) - 0.05)
    if name == "torus":
        return np.abs(np.hypot(r - 0.03, z) - 0.009)
    return np.minimum(np.abs(r - 0.03), np.abs(np.abs(z) - 0.01))


@round_shapes
@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_the_surfaces_to_fill(arguments, factor):
    lengths = {key: value for key, value in arguments.items() if key != "shape"}
    solid = shapes._ROUND[arguments["shape"]](**{**lengths, "edge": lengths["edge"] * factor})
    assert off_surface(arguments["shape"], solid.points[np.unique(solid.triangles[:, :2])]).max() < 1e-15
    sides = {tuple(side) for side in solid.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2).tolist()}
    assert len(sides) == 3 * len(solid.triangles), "two triangles run along one side the same way"
    assert {(j, i) for i, j in sides} == sides, "it is not closed"
    assert len(solid.points) - len(sides) // 2 + len(solid.triangles) == (0 if arguments["shape"] == "torus" else 2)
    inside = np.linalg.det(solid.points[solid.triangles]).sum() / 6.0  # negative for triangles that face inwards
    assert EXACT[arguments["shape"]] * (1 - 0.2 * factor) < inside < EXACT[arguments["shape"]]


@round_shapes
@pytest.mark.parametrize(("element", "loss"), [("tet4", 0.2), ("tet10", 0.02)])
def test_round_shapes(mesher, arguments, element, loss):
    mesh = shape_mesh(**arguments, element=element)
    name = arguments["shape"]
    assert mesh.family.name == element
    valid = validate(mesh)
    assert (valid.n_dropped, valid.n_flipped) == (0, 0)
    assert EXACT[name] * (1 - loss) < volume(mesh) < EXACT[name] * 1.005
    away = off_surface(name, mesh.points[np.unique(boundary_faces(mesh).faces)])
    assert (away < 1e-15).mean() > 0.9
    assert away.max() < 0.3 * arguments["edge"]
    assert np.abs(mesh.points.max(axis=0) + mesh.points.min(axis=0)).max() < 0.3 * arguments["edge"]
    assert quality(mesh).min() > 0.05
    edges = np.unique(np.sort(surface(mesh).triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1), axis=0)
    euler = len(surface(mesh).nodes) - len(edges) + len(surface(mesh).triangles)
    assert euler == (0 if name == "torus" else 2)


@pytest.mark.parametrize("arguments", [SPHERE, CYLINDER], ids=["sphere", "cylinder"])
def test_edge_sets_the_size(mesher, arguments):
    coarse, fine = (shape_mesh(**{**arguments, "edge": arguments["edge"] * f}) for f in (1, 0.5))
    assert 3 < fine.n_elements / coarse.n_elements < 20


def test_size_does_not_matter_to_the_mesher(mesher):
    mesh = shape_mesh("sphere", radius=5e-6, edge=2e-6)
    assert 50 < mesh.n_nodes < 500
    assert volume(mesh) == pytest.approx(EXACT["sphere"] * 1e-12, rel=0.1)


def test_one_process_has_one_mesh(mesher, monkeypatch):
    first = shape_mesh(**SPHERE)
    monkeypatch.setattr(mesher, "tetrahedralize", None)
    again, curved = shape_mesh(**SPHERE), shape_mesh(**{**SPHERE, "radius": np.float64(0.05)}, element="tet10")
    np.testing.assert_array_equal(again.points, first.points)
    np.testing.assert_array_equal(again.cells, first.cells)
    np.testing.assert_array_equal(curved.points[: first.n_nodes], first.points)
    again.points[:] = 0.0
    np.testing.assert_array_equal(shape_mesh(**SPHERE).points, first.points)


def test_nothing_is_left_in_the_working_directory(mesher):
    shape_mesh(**SPHERE)
    assert os.listdir() == []
    Path("__tracked_surface.stl").write_text("somebody's")
    shape_mesh(**CYLINDER)
    assert os.listdir() == ["__tracked_surface.stl"]


def test_without_the_mesher(monkeypatch):
    shapes._round_mesh.cache_clear()
    monkeypatch.setitem(sys.modules, "pytetwild", None)
    with pytest.raises(InputError, match=r"a torus needs .*pip install 'add-sim\[mesh\]'"):
        shape_mesh(**TORUS)
    assert shape_mesh("box", size=(1, 1, 1), edge=1.0).n_elements == 6


def test_boxes():
    mesh = shape_mesh("box", size=(0.2, 0.1, 0.1), divisions=(4, 2, 1), element="hex8")
    assert mesh.n_elements == 8
    mesh = shape_mesh("box", size=(0.2, 0.1, 0.1), edge=0.05)
    assert mesh.family.name == "tet4" and mesh.n_elements == 6 * 4 * 2 * 2
    assert shape_mesh("box", size=(0.2, 0.1, 0.1), edge=1.0, element="tet10").n_elements == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": "cone"}, "unknown shape .*found 'cone'"),
        ({**SPHERE, "element": "hex9"}, "unknown element"),
        ({**SPHERE, "element": "hex8"}, "cannot be made of hex8"),
        ({"shape": "sphere", "radius": 1.0}, "needs edge"),
        ({"shape": "cylinder", "radius": 1.0}, "needs height, edge"),
        ({**SPHERE, "height": 1.0}, "takes no height"),
        ({**SPHERE, "radius": -1.0}, "impossible radius"),
        ({**SPHERE, "edge": float("nan")}, "impossible edge"),
        ({**TORUS, "tube_radius": 0.03}, "thinner"),
        ({**SPHERE, "edge": 0.06}, "edge is too long for this sphere .*<= 0.05 m"),
        ({**CYLINDER, "edge": 0.021}, "edge is too long"),
        ({"shape": "box", "size": (1, 1, 1)}, "either divisions or edge"),
        ({"shape": "box", "size": (1, 1, 1), "divisions": (1, 1, 1), "edge": 1.0}, "either divisions or edge"),
        ({"shape": "box", "size": (1, 1), "edge": 1.0}, "impossible"),
        ({"shape": "box", "size": (1, 1, "a"), "edge": 1.0}, "impossible"),
        ({"shape": "box", "size": (1, 1, 1), "divisions": "abc"}, "impossible"),
        ({**SPHERE, "radius": "a"}, "impossible radius"),
    ],
)
def test_impossible_shapes(arguments, message):
    with pytest.raises(InputError, match=message):
        shape_mesh(**arguments)


@pytest.mark.parametrize("path", sorted((ROOT / "data" / "meshes").glob("*.msh")), ids=lambda p: p.stem)
def test_ready_meshes(path):
    mesh = read_mesh(path)
    assert quality(mesh).min() > 0.3
    assert mesh.n_elements < 2000


def test_meshes_like_the_ready_ones(mesher, tmp_path):
    spec = importlib.util.spec_from_file_location("make_meshes", ROOT / "scripts" / "make_meshes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, made in module.make_meshes(tmp_path).items():
        kept = read_mesh(ROOT / "data" / "meshes" / f"{name}.msh")
        assert volume(made) == pytest.approx(volume(kept), rel=0.05), name
        assert 0.3 < made.n_elements / kept.n_elements < 3.0, name
        assert read_mesh(tmp_path / f"{name}.msh").n_elements == made.n_elements
