"""`add export --markers` and `--vtk`: read back by our own readers and by meshio, against the run."""

import re

import meshio
import numpy as np
import pytest
from click.testing import CliRunner
from view.sample_run import sample_run
from view.sample_solids import solids_run

from add.commands.cli import cli
from add.commands.export_run import export_markers, export_vtu
from add.errors import InputError
from add.io.trajectory import write_run
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
