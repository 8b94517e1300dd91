"""`add mesh` and surfaces in scenes, by the mesher itself."""

import json
import struct

import numpy as np
import pytest
from click.testing import CliRunner

from add.commands.cli import cli
from add.errors import InputError
from add.geometry import volume
from add.geometry.mesh_round import shape_mesh
from add.geometry.triangle_surface import box_surface
from add.io.meshes import read_mesh
from add.io.surfaces import filled
from add.scene import load_scene
from add.scene.build.selections import freeze_meshes

pytest.importorskip("pytetwild", reason="the extra `mesh` is not installed")


def stl(path, size=(100.0, 40.0, 20.0), drop=()):
    """A box in millimetres, as binary STL."""
    points, triangles = box_surface(size)
    triangles = np.delete(triangles, list(drop), axis=0)
    with open(path, "wb") as file:
        file.write(b"box".ljust(80) + struct.pack("<I", len(triangles)))
        for corners in points[triangles]:
            file.write(struct.pack("<12fH", 0, 0, 0, *corners.ravel(), 0))
    return str(path)


def run(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def test_a_specimen(tmp_path):
    """Millimetres in, metres out, the volume of the box, a picture."""
    out = tmp_path / "specimen.msh"
    asked = run("mesh", stl(tmp_path / "s.stl"), "--edge", "20mm", "--unit", "mm", "-o", out, "--picture",
                tmp_path / "mesh.png")  # fmt: skip
    assert asked.exit_code == 0, asked.output
    again = run("mesh", tmp_path / "s.stl", "--edge", "20mm", "-o", out)
    assert "is already there" in str(again.exception) and "--force" in str(again.exception)
    mesh = read_mesh(out)
    assert np.ptp(mesh.points, axis=0) == pytest.approx([0.1, 0.04, 0.02], rel=2e-3)
    assert volume(mesh) == pytest.approx(8e-5, rel=2e-3)
    assert " m^3" in asked.output and "angles between faces" in asked.output
    assert (tmp_path / "mesh.png").stat().st_size > 10000
    ends = mesh.points[mesh.cells[:, mesh.family.edges]]
    assert 0.005 < np.median(np.linalg.norm(ends[:, :, 0] - ends[:, :, 1], axis=2)) < 0.027


@pytest.mark.slow
def test_a_hole(tmp_path):
    path = stl(tmp_path / "s.stl", drop=(0, 1))
    asked = run("mesh", path, "--edge", "30mm", "--unit", "mm", "-o", tmp_path / "m.msh")
    assert isinstance(asked.exception, InputError)
    assert "large hole" in str(asked.exception) and "s.stl" in str(asked.exception)
    asked = run("mesh", path, "--edge", "30mm", "--unit", "mm", "-o", tmp_path / "m.msh", "--fill-holes")
    assert asked.exit_code == 0, asked.output
    assert volume(read_mesh(tmp_path / "m.msh")) == pytest.approx(8e-5, rel=2e-3)


@pytest.mark.parametrize("edge", ["5", "0mm", "-1mm", "mm", "nanmm", "1e999mm"])
def test_lengths_have_units(tmp_path, edge):
    asked = run("mesh", stl(tmp_path / "s.stl"), "--edge", edge, "-o", tmp_path / "m.msh")
    assert asked.exit_code == 2 and "with its unit" in asked.output


def test_kept_under_its_content(tmp_path, monkeypatch):
    """Another edge, tolerance or file is meshed anew, the same never again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked = []

    def counted(surface, edge, tolerance=None):
        asked.append((edge, tolerance))
        return shape_mesh("box", size=[1.0, 1.0, 1.0], divisions=[1, 1, len(asked)])

    monkeypatch.setattr("add.io.surfaces.fill", counted)
    path = stl(tmp_path / "s.stl")
    first = filled(path, 5.0)
    assert filled(path, 5.0).points == pytest.approx(first.points, abs=0.0)
    assert filled(path, 4.0).n_elements == 2 * first.n_elements
    filled(path, 4.0, 0.1)
    stl(tmp_path / "s.stl", size=(90.0, 40.0, 20.0))
    filled(path, 5.0)
    assert asked == [(5.0, None), (4.0, None), (4.0, 0.1), (5.0, None)]


def millimetres(tmp_path, edge):
    """A scene of a box whose STL is in millimetres."""
    stl(tmp_path / "s.stl")
    raw = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 1},
        "bodies": {
            "box": {
                "type": "soft",
                "mesh": {"surface": "s.stl", "edge": edge},
                "scale": 0.001,
                "element": "tet10",
                "material": {"young": 1e5, "poisson": 0.3, "density": 1000},
            }
        },
    }
    (tmp_path / "scene.json").write_text(json.dumps(raw))
    return tmp_path / "scene.json"


def test_a_run_keeps_the_mesh_that_check_made(tmp_path, monkeypatch):
    """The mesher is asked once, for the edge in the unit of the file, and the run's copy is in that unit, too."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked = []

    def counted(surface, edge, tolerance=None):
        asked.append(edge)
        return shape_mesh("box", size=[100.0, 40.0, 20.0], divisions=[2, 1, 1])

    monkeypatch.setattr("add.io.surfaces.fill", counted)
    scene = load_scene(millimetres(tmp_path, 0.03))
    built = scene.build()
    frozen = freeze_meshes(scene, tmp_path / "run")
    assert asked == [pytest.approx(30.0)]
    assert np.ptp(read_mesh(tmp_path / "run" / "meshes" / "box.msh").points, axis=0) == pytest.approx([100, 40, 20])
    assert frozen.build().model.bodies[0].rest == pytest.approx(built.model.bodies[0].rest, abs=1e-15)


def test_too_many_tetrahedra_are_refused_before_the_mesher_starts(tmp_path, monkeypatch):
    monkeypatch.setattr("add.io.surfaces.read_apart", lambda *a, **k: pytest.fail("the mesher was asked"))
    asked = run("mesh", stl(tmp_path / "s.stl"), "--edge", "0.02mm", "--unit", "mm", "-o", tmp_path / "m.msh")
    assert isinstance(asked.exception, InputError) and asked.exception.exit_code == 2
    assert "about 8e+10 tetrahedra" in str(asked.exception) and "s.stl" in str(asked.exception)
    assert "edges of 0.68 or more" in str(asked.exception)


def test_the_mesher_is_announced(tmp_path, monkeypatch, caplog):
    """Without --verbose, and before it is asked."""
    said = []

    def stopped(*arguments, **options):
        said.extend(caplog.messages)
        raise InputError("stopped")

    monkeypatch.setattr("add.io.surfaces.read_apart", stopped)
    run("mesh", stl(tmp_path / "s.stl"), "--edge", "4mm", "--unit", "mm", "-o", tmp_path / "m.msh")
    assert said == ["the mesher is asked for about 1e+04 tetrahedra ..."]


@pytest.mark.slow
def test_a_scene_names_the_surface(tmp_path, monkeypatch):
    """Meshed once for the same content, edge and tolerance; `scale` says the unit."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = millimetres(tmp_path, 0.03)
    raw = json.loads(path.read_text())
    scene = load_scene(path)
    first = scene.build().model
    assert first.bodies[0].rest.max() == pytest.approx(0.05, rel=2e-3)
    kept = list((tmp_path / "cache" / "add" / "meshes").glob("*.msh"))
    assert len(kept) == 1
    assert scene.build().model.bodies[0].rest == pytest.approx(first.bodies[0].rest)
    stl(tmp_path / "s.stl", size=(100.0, 40.0, 30.0))
    assert scene.build().model.bodies[0].rest[:, 2].max() == pytest.approx(0.015, rel=5e-3)
    assert len(list((tmp_path / "cache" / "add" / "meshes").glob("*.msh"))) == 2
    raw["bodies"]["box"]["element"] = "hex8"
    (tmp_path / "scene.json").write_text(json.dumps(raw))
    with pytest.raises(InputError, match="filled with tetrahedra"):
        load_scene(tmp_path / "scene.json").build()
