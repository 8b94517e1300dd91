"""Meshes of simple shapes, and those that are kept in data/meshes."""

import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from support.places import ROOT

from add.errors import InputError
from add.geometry import boundary_faces, edge_lengths, surface, validate, volume
from add.geometry.mesh_round import ball_mesh, shape_mesh, torus_mesh
from add.io.meshes import read_mesh

SPHERE = {"shape": "sphere", "radius": 0.05, "edge": 0.02}
CYLINDER = {"shape": "cylinder", "radius": 0.03, "height": 0.02, "edge": 0.01}
TORUS = {"shape": "torus", "radius": 0.03, "tube_radius": 0.009, "edge": 0.008}
EXACT = {
    "sphere": 4 / 3 * np.pi * 0.05**3,
    "cylinder": np.pi * 0.03**2 * 0.02,
    "torus": 2 * np.pi**2 * 0.03 * 0.009**2,
}
BOX = {"shape": "box", "size": (0.2, 0.1, 0.1), "edge": 0.03}
round_shapes = pytest.mark.parametrize("arguments", [SPHERE, CYLINDER, TORUS], ids=EXACT)


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
@pytest.mark.parametrize(("element", "loss"), [("tet4", 0.2), ("tet10", 0.02)])
def test_round_shapes(arguments, element, loss):
    mesh = shape_mesh(**arguments, element=element)
    name = arguments["shape"]
    assert mesh.family.name == element
    valid = validate(mesh)
    assert (valid.n_dropped, valid.n_flipped) == (0, 0)
    assert EXACT[name] * (1 - loss) < volume(mesh) < EXACT[name] * 1.005
    away = off_surface(name, mesh.points[np.unique(boundary_faces(mesh).faces)])
    assert away.max() < 1e-13  # nodes are rounded to 12 digits
    assert np.abs(mesh.points[surface(mesh).nodes].mean(axis=0)).max() < 1e-13
    assert quality(mesh).min() > 0.6
    edges = np.unique(np.sort(surface(mesh).triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1), axis=0)
    euler = len(surface(mesh).nodes) - len(edges) + len(surface(mesh).triangles)
    assert euler == (0 if name == "torus" else 2)


@pytest.mark.parametrize("arguments", [SPHERE, CYLINDER], ids=["sphere", "cylinder"])
def test_edge_sets_the_size(arguments):
    coarse, fine = (shape_mesh(**{**arguments, "edge": arguments["edge"] * f}) for f in (1, 0.5))
    assert 3 < fine.n_elements / coarse.n_elements < 20
    assert edge_lengths(fine).mean() == pytest.approx(arguments["edge"] / 2, rel=0.35)


@pytest.mark.parametrize("n", range(1, 7))
def test_layers_of_a_ball(n):
    mesh = ball_mesh(2.0, 2.2 / n)
    assert mesh.n_elements == 20 * n**3
    layer = np.linalg.norm(mesh.points, axis=1) * n / 2.0
    assert np.abs(layer - np.round(layer)).max() < 1e-11
    assert np.bincount(np.round(layer).astype(int)).tolist() == [1, *(10 * k**2 + 2 for k in range(1, n + 1))]


def test_a_thick_torus_and_shapes_as_coarse_as_they_may_be():
    assert quality(validate(torus_mesh(0.03, 0.027, 0.009)).mesh).min() > 0.1
    for arguments in (SPHERE, CYLINDER, TORUS):
        shortest = min(value for key, value in arguments.items() if key not in ("shape", "edge"))
        assert quality(shape_mesh(**{**arguments, "edge": shortest})).min() > 0.5


DIGESTS = {
    "sphere": "56e875f979e5ee94",
    "cylinder": "204c3f4b8af9189e",
    "torus": "e7a1ca4f29e4d2ae",
    "box": "a1ee583dfd5f485d",
}
OTHER_PROCESS = """
import hashlib, json, sys
from add.geometry.mesh_round import shape_mesh
for arguments in json.loads(sys.argv[1]):
    mesh = shape_mesh(**arguments)
    print(hashlib.sha256(mesh.points.tobytes() + mesh.cells.tobytes()).hexdigest())
"""


@pytest.mark.parametrize("seed", "12")
def test_every_process_has_the_same_meshes(seed):
    shapes = [shape | {"element": e} for shape in (SPHERE, CYLINDER, TORUS, BOX) for e in ("tet4", "tet10")]
    meshes = [shape_mesh(**arguments) for arguments in shapes]
    here = [hashlib.sha256(mesh.points.tobytes() + mesh.cells.tobytes()).hexdigest() for mesh in meshes]
    made = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, json.dumps(shapes)], env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert made.stdout.split() == here


def test_the_quickstart_says_how_large_its_mesh_is():
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    lengths = re.search(r'"shape": "sphere", "radius": ([\d.]+), "edge": ([\d.]+)', page)
    mesh = shape_mesh("sphere", radius=float(lengths[1]), edge=float(lengths[2]))
    assert set(re.findall(r"(\d+) coordinates", page)) == {str(mesh.points.size)}
    assert set(re.findall(r"(\d+) elements", page)) == {str(mesh.n_elements)}


@pytest.mark.parametrize("arguments", [SPHERE, CYLINDER, TORUS, BOX], ids=lambda a: a["shape"])
def test_every_machine_has_the_same_mesh(arguments):
    # Should this fail after a change of the construction that is meant, the numbers of docs/quickstart.md change too.
    mesh = shape_mesh(**arguments)
    digest = hashlib.sha256(mesh.points.tobytes() + mesh.cells.tobytes()).hexdigest()
    assert digest.startswith(DIGESTS[arguments["shape"]])


def test_size_does_not_matter_to_the_mesher():
    mesh = shape_mesh("sphere", radius=5e-6, edge=2e-6)
    assert 50 < mesh.n_nodes < 500
    assert volume(mesh) == pytest.approx(EXACT["sphere"] * 1e-12, rel=0.1)


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


def test_meshes_like_the_ready_ones(tmp_path):
    spec = importlib.util.spec_from_file_location("make_meshes", ROOT / "scripts" / "make_meshes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, made in module.make_meshes(tmp_path).items():
        kept = read_mesh(ROOT / "data" / "meshes" / f"{name}.msh")
        assert volume(made) == pytest.approx(volume(kept), rel=0.05), name
        assert 0.3 < made.n_elements / kept.n_elements < 3.0, name
        assert read_mesh(tmp_path / f"{name}.msh").n_elements == made.n_elements
    assert (tmp_path / "ring.obj").read_bytes() == (ROOT / "data" / "meshes" / "ring.obj").read_bytes()
