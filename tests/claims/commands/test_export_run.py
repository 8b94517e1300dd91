"""`add export --markers` and `--vtk`: read back by our own readers and by meshio, against the run."""

import re

import meshio
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation
from view.sample_run import sample_run
from view.sample_solids import solids_run

from add.commands.cli import cli
from add.commands.export import export_markers, export_vtu
from add.commands.export_surfaces import export_surfaces, shapes
from add.errors import InputError
from add.io.trajectory_file import write_run
from add.mocap import read_take


@pytest.fixture(scope="module")
def data():
    return sample_run(16, (3, 2, 2))


@pytest.mark.parametrize(("name", "digits"), [("a.c3d", 1e-6), ("a.trc", 0.0), ("a.csv", 0.0)])
def test_markers(tmp_path, data, name, digits):
    """At the steps, as they are."""
    assert export_markers(data, tmp_path / name, None) == data.n_states
    found = read_take(tmp_path / name).markers
    assert found.names == tuple(data.markers)
    assert found.times == pytest.approx(data.t - (data.t[0] if name == "a.c3d" else 0.0), abs=1e-9)
    expected = np.stack(list(data.markers.values()), axis=1)
    assert np.abs(found.positions - expected).max() <= digits


def test_markers_at_a_rate(tmp_path, data):
    """Linear between states."""
    rate = 0.5 / float(data.t[1] - data.t[0]) * 3.0
    export_markers(data, tmp_path / "a.csv", rate)
    found = read_take(tmp_path / "a.csv").markers
    name, x = next(iter(data.markers.items()))
    assert found.rate == pytest.approx(rate)
    expected = np.stack([np.interp(found.times, data.t, x[:, k]) for k in range(3)], axis=1)
    assert found.positions[:, found.names.index(name)] == pytest.approx(expected, abs=1e-12)


def test_vtu_of_a_soft_body(tmp_path, data):
    assert export_vtu(data, tmp_path / "a.pvd", None) == data.n_states
    listed = re.findall(r'timestep="([^"]*)".*file="([^"]*)"', (tmp_path / "a.pvd").read_text())
    assert [float(time) for time, _ in listed] == data.t.tolist()
    mesh = meshio.read(tmp_path / listed[-1][1])
    body, k = data.bodies[0], data.n_states - 1
    assert mesh.points == pytest.approx(data.positions(body, k))
    assert np.array_equal(mesh.cells[0].data, body.cells)
    moved = data.positions(body, k) - data.positions(body, 0)
    assert mesh.point_data["displacement"] == pytest.approx(moved)
    assert mesh.point_data["contact force"] == pytest.approx(data.contact_force[k, body.entries].reshape(-1, 3))
    assert mesh.point_data["von Mises stress"].shape == (body.n_nodes,) and mesh.point_data["strain"].max() > 0.0


def test_vtu_of_rigid_bodies_and_sheets(tmp_path):
    data = solids_run(5)
    export_vtu(data, tmp_path / "a.pvd", None)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/result.json").write_text("{}")
    with pytest.raises(InputError, match=r"result\.json"):
        export_vtu(data, tmp_path / "run.pvd", None)
    listed = re.findall(r'part="(\d+)" name="([^"]*)" file="([^"]*)"', (tmp_path / "a.pvd").read_text())
    names = {name for _, name, _ in listed}
    assert {"cloth", "rope", "handle"} <= names and data.solids[0].name in names
    solid = data.solids[0]
    file = [path for _, name, path in listed if name == solid.name][3]
    rotation, position = data.pose(solid, 3)
    own = (meshio.read(tmp_path / file).points - position) @ rotation
    assert np.abs(own).max(axis=0) == pytest.approx(solid.size, abs=1e-6)


def test_command(tmp_path, data):
    write_run(tmp_path / "run.h5", data)
    asked = CliRunner().invoke(cli, ["export", str(tmp_path / "run.h5"), "--markers", "-o", str(tmp_path / "a.trc")])
    assert asked.exit_code == 0 and "16 moments" in asked.output
    for arguments in (["--markers", "--vtk"], ["--controls"], ["--vtk", "--signal", "a"], []):
        asked = CliRunner().invoke(cli, ["export", str(tmp_path / "run.h5"), *arguments, "-o", "a.pvd"])
        assert asked.exit_code == 2


def test_refusals(tmp_path, data):
    with pytest.raises(InputError, match=r"\.csv or \.trc or \.c3d"):
        export_markers(data, tmp_path / "a.xyz", None)
    with pytest.raises(InputError, match=r"\.pvd"):
        export_vtu(data, tmp_path / "a.vtu", None)
    with pytest.raises(InputError, match="rate does not fit"):
        export_markers(data, tmp_path / "a.csv", -1.0)


@pytest.mark.parametrize("run", ["soft", "solids"])
def test_usd_has_every_surface_by_time(tmp_path, data, run):
    """Opened by USD's own library: points in the world at all moments, axes, units, rate."""
    from pxr import Usd, UsdGeom

    run = data if run == "soft" else solids_run()
    assert export_surfaces(run, tmp_path / "a.usdc", None) == run.n_states
    stage = Usd.Stage.Open(str(tmp_path / "a.usdc"))
    assert UsdGeom.GetStageUpAxis(stage) == "Z" and UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    assert stage.GetTimeCodesPerSecond() * np.diff(run.t).min() == pytest.approx(1.0)
    meshes = {prim.GetDisplayName(): UsdGeom.Mesh(prim) for prim in stage.Traverse() if prim.IsA(UsdGeom.Mesh)}
    expected = shapes(run, run.t)
    assert set(meshes) == {item.name for item in expected}
    for item in expected:
        mesh = meshes[item.name]
        assert np.array_equal(np.reshape(mesh.GetFaceVertexIndicesAttr().Get(), (-1, 3)), item.triangles)
        for k in (0, run.n_states - 1):
            code = float(run.t[k]) * stage.GetTimeCodesPerSecond()
            x = np.array(mesh.GetPointsAttr().Get(code))
            to_world = np.array(mesh.ComputeLocalToWorldTransform(code))
            assert x @ to_world[:3, :3] + to_world[3, :3] == pytest.approx(item.at(k), abs=2e-6)
    last = export_surfaces(run, tmp_path / "b.usdc", 60.0) - 1
    asked = Usd.Stage.Open(str(tmp_path / "b.usdc"))
    assert (asked.GetTimeCodesPerSecond(), asked.GetEndTimeCode()) == (60.0, last)  # whole frames, for players


@pytest.mark.parametrize("run", ["soft", "solids"])
def test_gltf_is_animated(tmp_path, data, run):
    """The rest by trimesh, y up; transforms and morph targets by the arrays of the file."""
    import pygltflib
    import trimesh

    run = data if run == "soft" else solids_run()
    export_surfaces(run, tmp_path / "a.glb", None)
    expected = {item.name: item for item in shapes(run, run.t)}
    scene = trimesh.load_scene(tmp_path / "a.glb")
    file = pygltflib.GLTF2.load_binary(str(tmp_path / "a.glb"))
    blob = file.binary_blob()

    def array(number, width):
        accessor = file.accessors[number]
        view = file.bufferViews[accessor.bufferView]
        raw = np.frombuffer(blob, np.float32, view.byteLength // 4, view.byteOffset)
        assert view.byteOffset + view.byteLength <= len(blob)
        return raw.reshape(-1, width).astype(float)

    names = {node.name: k for k, node in enumerate(file.nodes)}
    assert set(expected) <= set(names) and len(scene.geometry) == len(expected)
    upright = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
    (animation,) = file.animations
    found = {(c.target.node, c.target.path): animation.samplers[c.sampler] for c in animation.channels}
    k = run.n_states - 1
    for name, item in expected.items():
        node = names[name]
        primitive = file.meshes[file.nodes[node].mesh].primitives[0]
        x = array(primitive.attributes.POSITION, 3)
        if item.places is not None:
            weights = array(found[node, "weights"].output, 1).reshape(run.n_states, -1)
            target = array(primitive.targets[-1].POSITION if hasattr(primitive.targets[-1], "POSITION")
                           else primitive.targets[-1]["POSITION"], 3)  # fmt: skip
            assert weights[k].argmax() == len(primitive.targets) - 1 and weights[k].sum() == 1.0
            assert x + target == pytest.approx(item.at(k), abs=2e-6)
            continue
        moved = array(found[node, "translation"].output, 3)[k]
        turn = Rotation.from_quat(array(found[node, "rotation"].output, 4)[k]).as_matrix()
        assert x @ turn.T + moved == pytest.approx(item.at(k), abs=2e-6)
    solid = next(item for item in expected.values() if item.places is None) if run is not data else None
    if solid is not None:  # the pose that the file stands in is that without an animation: its frame, turned upright
        pose, _ = scene.graph[solid.name]
        assert pose[:3, :3] == pytest.approx(upright, abs=1e-6)


def test_obj_sequence(tmp_path, data):
    """Opened by trimesh, a file a moment; the folder of something else is left alone."""
    import trimesh

    assert export_surfaces(data, tmp_path / "a.obj", None) == data.n_states
    files = sorted((tmp_path / "a").glob("a_*.obj"))
    assert len(files) == data.n_states
    found = trimesh.load_scene(files[-1], process=False).to_geometry().vertices
    expected = np.concatenate([item.at(-1) for item in shapes(data, data.t)])
    away, _ = cKDTree(found).query(expected)
    assert away.max() < 1e-7 and f"o {data.bodies[0].name}" in files[-1].read_text()
    # Fewer moments take the place of more.
    assert export_surfaces(data, tmp_path / "a.obj", 2.0 / data.t[-1]) == len(list((tmp_path / "a").iterdir())) == 3
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "scene.obj").write_text("")
    with pytest.raises(InputError, match="has other files"):
        export_surfaces(data, tmp_path / "b.obj", None)
    with pytest.raises(InputError, match="unknown kind of file"):
        export_surfaces(data, tmp_path / "b.fbx", None)
