"""Mesh files: what comes back, and one clear error for each broken one."""

import meshio
import numpy as np
import pytest

from add.errors import InputError
from add.geometry import FAMILIES, HEX8, TET4, TET10, box_mesh, volume
from add.io.meshes import read_mesh, write_mesh

families = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())


@families
@pytest.mark.parametrize("suffix", [".msh", ".vtu", ".vtk", ".inp"])
def test_round_trip(family, suffix, tmp_path, rng):
    mesh = box_mesh((1, 2, 3), (1, 2, 2), family)
    write_mesh(tmp_path / f"box{suffix}", mesh)
    again = read_mesh(tmp_path / f"box{suffix}")
    assert again.family is family
    np.testing.assert_array_equal(again.cells, mesh.cells)
    np.testing.assert_allclose(again.points, mesh.points, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("suffix", [".node", ".ele"])
def test_tetgen_pairs(suffix, tmp_path):
    mesh = box_mesh((1, 2, 3), (1, 2, 2), TET4)
    write_mesh(tmp_path / "box.node", mesh)
    again = read_mesh(tmp_path / f"box{suffix}")
    np.testing.assert_array_equal(again.cells, mesh.cells)
    (tmp_path / ("box.ele" if suffix == ".node" else "box.node")).unlink()
    with pytest.raises(InputError, match=rf"box{suffix}: cannot be read"):
        read_mesh(tmp_path / f"box{suffix}")


def test_other_cells_and_blocks(tmp_path):
    mesh = box_mesh((1, 2, 3), (1, 2, 2), TET4)
    cells = [("line", [[0, 1]]), ("tetra", mesh.cells[:5]), ("triangle", [[0, 1, 2]]), ("tetra", mesh.cells[5:])]
    meshio.write_points_cells(tmp_path / "a.vtu", mesh.points, cells)
    np.testing.assert_array_equal(read_mesh(tmp_path / "a.vtu").cells, mesh.cells)


def test_conversion(tmp_path):
    mesh = box_mesh((1, 2, 3), (1, 2, 2), TET4)
    path = tmp_path / "a.msh"
    write_mesh(path, mesh)
    raised = read_mesh(path, element="tet10")
    assert raised.family is TET10 and volume(raised) == pytest.approx(6.0)
    assert read_mesh(path, element="tet4").family is TET4
    with pytest.raises(InputError, match="found tet4; expected hex8"):
        read_mesh(path, element="hex8")
    with pytest.raises(InputError, match="unknown element family"):
        read_mesh(path, element="tet5")
    write_mesh(path, raised)
    with pytest.raises(InputError, match="found tet10; expected tet4"):
        read_mesh(path, element="tet4")


def test_mended_meshes_are_noted(tmp_path, caplog):
    mesh = box_mesh((1, 2, 3), (1, 2, 2), TET4)
    cells = mesh.cells.copy()
    cells[3] = cells[3, TET4.flip]
    points = np.concatenate([mesh.points, [[9, 9, 9]]])
    meshio.write_points_cells(tmp_path / "a.vtu", points, [("tetra", cells)])
    with caplog.at_level("INFO"):
        again = read_mesh(tmp_path / "a.vtu")
    np.testing.assert_array_equal(again.cells, mesh.cells)
    assert "1 nodes that no volume element uses" in caplog.text and "1 inverted elements" in caplog.text


def write_broken(folder):
    mesh = box_mesh((1, 2, 3), (1, 2, 2), TET4)
    write_mesh(folder / "good.msh", mesh)
    good = (folder / "good.msh").read_text()
    texts = {
        "empty.msh": "",
        "noise.msh": "this is no mesh\n" * 5,
        "cut.msh": good[: len(good) // 2],
        "cut_nodes.msh": good[:200],
        "cut_cells.msh": good[: int(0.85 * len(good))],
        "noise.vtu": "<xml",
        "noise.vtk": "\0\1\2",
        "noise.node": "a b c\n",
        "unknown.format": good,
        "no_suffix": good,
        "noise.xdmf": "<Xdmf>",
        "words.msh": good.replace(good.splitlines()[6], "1 a b c"),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "folder.msh").mkdir()
    points, cells = mesh.points, mesh.cells
    write = meshio.write_points_cells
    write(folder / "surface.vtu", points, [("triangle", cells[:, :3])])
    hexes = box_mesh((1, 2, 3), (1, 2, 2), HEX8)
    write(folder / "mixed.vtu", points, [("tetra", cells), ("hexahedron", hexes.cells)])
    write(folder / "wedge.vtu", points, [("wedge", cells[:1, [0, 1, 2, 3, 3, 3]])])
    write(folder / "degenerate.vtu", points * (1, 1, 0), [("tetra", cells)])
    write(folder / "twice.vtu", points, [("tetra", np.concatenate([cells, cells[:1]]))])
    broken = points.copy()
    broken[4] = np.nan
    write(folder / "nan.vtu", broken, [("tetra", cells)])
    write(folder / "flat.vtk", points, [])
    tangled = box_mesh((2, 2, 2), (2, 2, 2), TET4)
    moved = tangled.points.copy()
    moved[np.linalg.norm(moved, axis=1) < 0.1] = (1.2, 0.3, 0.2)
    write(folder / "tangled.vtu", moved, [("tetra", tangled.cells)])


BROKEN = {
    "missing.msh": "no such file",
    "folder.msh": "not a file",
    "empty.msh": "cannot be read",
    "noise.msh": "cannot be read",
    "cut.msh": "cannot be read",
    "cut_nodes.msh": "cannot be read",
    "cut_cells.msh": "cannot be read",
    "words.msh": "cannot be read",
    "noise.vtu": "cannot be read",
    "noise.vtk": "cannot be read",
    "noise.node": "cannot be read",
    "noise.xdmf": "cannot be read",
    "unknown.format": "cannot be read",
    "no_suffix": "cannot be read",
    "surface.vtu": "volume mesh is needed .*found 24 triangle",
    "mixed.vtu": "several families .*found 24 tetra, 4 hexahedron",
    "wedge.vtu": "not supported: wedge",
    "degenerate.vtu": r"element 0, 1, .* is degenerate",
    "twice.vtu": "element 24 .* duplicate",
    "nan.vtu": "node 4 .* not finite",
    "flat.vtk": "cannot be read",
    "tangled.vtu": r"tangled: \d+ elements overlap their neighbours, .* \(counted from 0\)",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(name, tmp_path, capfd):
    write_broken(tmp_path)
    capfd.readouterr()
    with pytest.raises(InputError, match=BROKEN[name]) as info:
        read_mesh(tmp_path / name)
    assert str(tmp_path / name) in str(info.value)
    assert capfd.readouterr() == ("", "")


def test_unwritable(tmp_path):
    mesh = box_mesh((1, 1, 1), (1, 1, 1), HEX8)
    for name in ("a.format", "no/such/folder/a.msh"):
        with pytest.raises(InputError, match="cannot write"):
            write_mesh(tmp_path / name, mesh)
