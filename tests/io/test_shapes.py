"""Meshes of simple shapes, and those that are kept in data/meshes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from add.errors import InputError
from add.fem import boundary_faces, surface, validate, volume
from add.io import read_mesh, shape_mesh
from add.io.tetrahedra import quality

ROOT = Path(__file__).resolve().parents[2]
SPHERE = {"shape": "sphere", "radius": 0.05, "edge": 0.02}
CYLINDER = {"shape": "cylinder", "radius": 0.03, "height": 0.02, "edge": 0.01}
TORUS = {"shape": "torus", "radius": 0.03, "tube_radius": 0.009, "edge": 0.006}
EXACT = {
    "sphere": 4 / 3 * np.pi * 0.05**3,
    "cylinder": np.pi * 0.03**2 * 0.02,
    "torus": 2 * np.pi**2 * 0.03 * 0.009**2,
}
round_shapes = pytest.mark.parametrize("arguments", [SPHERE, CYLINDER, TORUS], ids=EXACT)


def off_surface(name, points):
    r, z = np.linalg.norm(points[:, :2], axis=1), points[:, 2]
    if name == "sphere":
        return np.abs(np.linalg.norm(points, axis=1) - 0.05)
    if name == "torus":
        return np.abs(np.hypot(r - 0.03, z) - 0.009)
    return np.minimum(np.abs(r - 0.03), np.abs(np.abs(z) - 0.01))


@round_shapes
@pytest.mark.parametrize(("element", "loss"), [("tet4", 0.12), ("tet10", 0.002)])
def test_round_shapes(arguments, element, loss):
    mesh = shape_mesh(**arguments, element=element)
    name = arguments["shape"]
    assert mesh.family.name == element
    valid = validate(mesh)
    assert (valid.n_dropped, valid.n_flipped) == (0, 0)
    assert EXACT[name] * (1 - loss) < volume(mesh) < EXACT[name] * 1.002
    assert off_surface(name, mesh.points[np.unique(boundary_faces(mesh).faces)]).max() < 1e-15
    assert quality(mesh.points, mesh.cells[:, :4]).min() > 0.3
    edges = np.unique(np.sort(surface(mesh).triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1), axis=0)
    euler = len(surface(mesh).nodes) - len(edges) + len(surface(mesh).triangles)
    assert euler == (0 if name == "torus" else 2)


@round_shapes
def test_edge_sets_the_size(arguments):
    coarse, fine = (shape_mesh(**{**arguments, "edge": arguments["edge"] * f}) for f in (1, 0.5))
    assert 4 < fine.n_elements / coarse.n_elements < 16


@round_shapes
@pytest.mark.parametrize("ratio", [0.9, 0.61, 0.43, 0.3, 0.25])
def test_many_sizes(arguments, ratio):
    least = min(value for key, value in arguments.items() if key in ("radius", "height", "tube_radius"))
    mesh = shape_mesh(**{**arguments, "edge": ratio * least})
    assert quality(mesh.points, mesh.cells).min() > 0.3


def test_same_arguments_same_mesh():
    code = "import sys; from add.io import shape_mesh; " + "; ".join(
        f"m = shape_mesh(**{a}); sys.stdout.buffer.write(m.points.tobytes() + m.cells.tobytes())"
        for a in (SPHERE, CYLINDER, TORUS)
    )
    elsewhere = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True).stdout
    for _ in range(2):
        meshes = [shape_mesh(**arguments) for arguments in (SPHERE, CYLINDER, TORUS)]
        assert b"".join(mesh.points.tobytes() + mesh.cells.tobytes() for mesh in meshes) == elsewhere


def test_shapes_are_centred():
    for arguments in (SPHERE, CYLINDER, TORUS):
        mesh = shape_mesh(**arguments)
        assert np.abs(mesh.points.max(axis=0) + mesh.points.min(axis=0)).max() < 0.2 * arguments["edge"]


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
    assert quality(mesh.points, mesh.cells).min() > 0.3
    assert mesh.n_elements < 2000


def test_ready_meshes_can_be_made_again():
    import importlib.util

    spec = importlib.util.spec_from_file_location("make_meshes", ROOT / "scripts" / "make_meshes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, arguments in module.MESHES.items():
        kept, made = read_mesh(ROOT / "data" / "meshes" / f"{name}.msh"), shape_mesh(**arguments)
        assert volume(made) == pytest.approx(volume(kept), rel=0.02), name
