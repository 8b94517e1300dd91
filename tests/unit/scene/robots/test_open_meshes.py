"""Collision meshes that are no solids: hulls with a warning, unless the scene wants them exactly."""

import json
import os
import subprocess

import numpy as np
import pytest
import trimesh
from click.testing import CliRunner
from support.robot_files import INERTIAL, joint, link, urdf, written

from add.commands.cli import cli
from add.errors import InputError
from add.geometry.triangle_surface import TriangleSurface
from add.machine import foreign
from add.scene import scene_from_dict
from add.scene.build.doubts import doubts
from add.scene.robots import read_robot
from add.scene.robots.shapes import MeshFiles

CUBE = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
CLOSED = ["1 2 4 3", "5 7 8 6", "1 5 6 2", "3 4 8 7", "1 3 7 5", "2 6 8 4"]


def robot(folder, faces, name="arm"):
    """A link with a cube of some faces, each of two triangles."""
    corners = [face.split() for face in faces]
    triangles = [f"f {a} {b} {c}\nf {a} {c} {d}" for a, b, c, d in corners]
    (folder / "cube.obj").write_text("\n".join([*(f"v {x} {y} {z}" for x, y, z in CUBE), *triangles]), encoding="ascii")
    mesh = '<collision><geometry><mesh filename="cube.obj"/></geometry></collision>'
    return written(folder, urdf(link("base"), link(name, INERTIAL, mesh), joint("turn", "base", name)))


def built(path, **more):
    body = {"type": "articulated", "model": str(path), **more}
    return scene_from_dict(
        {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 20}, "bodies": {"bot": body}}
    ).build()


def info(path, *more):
    return CliRunner().invoke(cli, ["info", str(path), *more])


def test_an_open_mesh_becomes_its_hull(tmp_path):
    path = robot(tmp_path, CLOSED[:5])
    found = built(path)
    (carried,) = found.model.body("bot/arm").carried
    assert carried.mesh.triangles.shape == (12, 3)
    (text,) = [text for text in doubts(found) if "meshes" in text]
    assert text.startswith("bodies.bot.meshes: link 'arm' touches by the convex hull of its mesh")
    assert "cube.obj': the surface is not closed, 4 of " in text
    assert not [text for text in doubts(built(path, meshes="hull")) if "meshes" in text]


def test_exact_refuses_it_and_names_robot_and_mesh(tmp_path):
    path = robot(tmp_path, CLOSED[:5])
    with pytest.raises(InputError) as caught:
        built(path, meshes="exact")
    text = str(caught.value)
    assert text.startswith("bodies.bot.links.arm.shapes.0: ") and '"meshes": "hull"' in text
    assert str(path) in text and "cube.obj" in text


def test_a_closed_mesh_stays(tmp_path):
    found = built(robot(tmp_path, [*CLOSED]))
    (carried,) = found.model.body("bot/arm").carried
    assert carried.mesh.triangles[0].tolist() == [0, 1, 3]
    assert not [text for text in doubts(found) if "meshes" in text]


def test_info_warns_of_the_hull(tmp_path):
    path = robot(tmp_path, CLOSED[:5])
    found = info(path)
    assert (
        found.exit_code == 0 and "  warning: bodies.robot.meshes: link 'arm' touches by the convex hull" in found.output
    )
    assert info(path, "--strict").exit_code != 0
    assert len(json.loads(info(path, "--json").output)["warnings"]) == 1


def test_info_fails_where_no_scene_builds(tmp_path):
    """A mesh whose hull has no volume."""
    error = info(robot(tmp_path, CLOSED[:1], "arm")).exception
    assert isinstance(error, InputError) and error.exit_code == 2
    assert "the file is read, but no scene with the robot builds" in str(error) and "hull has no volume" in str(error)


@pytest.mark.parametrize("suffix", ["glb", "dae"])
def test_foreign_meshes_are_read_in_one_process(tmp_path, suffix, monkeypatch):
    """Files that take a process of their own share it; each has its own error, and one that ends it takes no other."""
    if suffix == "dae":
        pytest.importorskip("collada", reason="pycollada is not installed")
    sizes = (0.1, 0.2, 0.3)
    for k, size in enumerate(sizes):
        trimesh.creation.box((size,) * 3).export(tmp_path / f"m{k}.{suffix}")
    shapes = "".join(f'<collision><geometry><mesh filename="m{k}.{suffix}"/></geometry></collision>' for k in range(3))
    path = written(tmp_path, urdf(link("arm", INERTIAL + shapes)))
    begun, popen = [], subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: begun.append(a) or popen(*a, **k))
    found = read_robot(path, base="free").links[0].collision
    assert [float(shape.vertices.max()) for shape in found] == pytest.approx([size / 2 for size in sizes])
    assert len(begun) == 1
    (tmp_path / f"m1.{suffix}").write_bytes(b"nothing of the kind")
    (arm,) = read_robot(path, base="free", ignore=["mesh"]).links
    assert [float(shape.vertices.max()) for shape in arm.collision] == pytest.approx([0.05, 0.15])
    (doubt,) = read_robot(path).doubts
    assert f"m1.{suffix}: cannot be read as a surface" in doubt and f"m0.{suffix}" not in doubt


def test_a_reader_that_ends_its_process_takes_no_other_file(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign, "PATIENCE", 1.0)
    names = ("good", "ends", "good", "refuses", "endless", "good")
    paths = [tmp_path / f"{k}.{name}" for k, name in enumerate(names)]
    for path in paths:
        path.write_text(str(os.getpid()))
    found = foreign.read_all_apart("fuzz.greedy:moody", paths)
    assert [int(one["a"][0]) if isinstance(one, dict) else 0 for one in found] == [4, 0, 4, 0, 0, 4]
    for k, text in ((1, "its reader ended with 3"), (3, "no mood"), (4, "does not come to an end")):
        assert text in str(found[k]) and str(paths[k]) in str(found[k])


@pytest.mark.parametrize(
    ("unit", "metres"),
    [
        ('<unit name="inch" meter="0.0254"/>', 0.0254),
        ("<unit meter = '0.01'/>", 0.01),
        ("<unit/>", 1.0),
        ("", 1.0),
        ('<unit meter="none"/>', 1.0),
    ],
)
def test_a_collada_file_says_its_unit(tmp_path, unit, metres):
    """Which other programs that read robots count with, beside the `scale` of the robot's file."""
    box = trimesh.creation.box((1.0, 1.0, 1.0))
    for name in ("m.dae", "m.stl"):
        (tmp_path / name).write_text(f'<?xml version="1.0"?><COLLADA><asset>{unit}</asset></COLLADA>')
    files = MeshFiles(tmp_path / "robot.urdf")
    surface = TriangleSurface(np.asarray(box.vertices), np.asarray(box.faces))
    files._read.update({tmp_path / name: surface for name in ("m.dae", "m.stl")})
    assert np.abs(files.read("m.dae", np.full(3, 2.0))[1].vertices).max() == pytest.approx(metres)
    assert np.abs(files.read("m.stl", np.full(3, 2.0))[1].vertices).max() == 1.0


@pytest.mark.parametrize(("up", "said"), [("X_UP", True), ("Y_UP", True), ("Z_UP", False), (None, False)])
def test_what_a_collada_file_calls_up_turns_nothing_and_is_said(tmp_path, monkeypatch, up, said):
    """As in the programs that robots' files are written for; once for a robot, whichever of its meshes says so."""
    head = f"<up_axis> {up}</up_axis>" if up else ""
    for name in ("a.dae", "b.dae"):
        (tmp_path / name).write_text(f'<?xml version="1.0"?><COLLADA><asset>{head}</asset></COLLADA>')
    box = trimesh.creation.box((1.0, 2.0, 3.0))
    surface = TriangleSurface(np.asarray(box.vertices), np.asarray(box.faces))
    monkeypatch.setattr("add.scene.robots.shapes.read_surfaces", lambda paths: dict.fromkeys(paths, surface))
    shapes = "".join(f'<collision><geometry><mesh filename="{name}.dae"/></geometry></collision>' for name in "aab")
    robot = read_robot(written(tmp_path, urdf(link("arm", INERTIAL + shapes))), base="free")
    notes = [text for text in robot.ignored if "up_axis" in text]
    assert len(notes) == said
    if said:
        assert f"mesh {tmp_path / 'a.dae'}: <up_axis> {up} turns no points, nor does it in RViz and Gazebo" in notes[0]
    for shape in robot.links[0].collision:
        assert np.ptp(shape.vertices, axis=0) == pytest.approx([1.0, 2.0, 3.0])
