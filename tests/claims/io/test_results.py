"""The run folder and its trajectory: round trips, and errors that say what is wrong."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from view.sample_run import sample_run
from view.sample_solids import solids_run

from add.equations.kinematics import Carry, State
from add.errors import InputError
from add.io.lock import CannotWrite
from add.io.runfolder import RunFolder, versions
from add.io.trajectory_file import ResumePoint, read_point, read_run, write_run
from add.io.trajectory_parts import ContactData, JointData, LineData, MassSpringData, SolidData


@pytest.fixture(scope="module")
def data():
    return sample_run(11)


def equal(a, b):
    if dataclasses.is_dataclass(a):
        return all(equal(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("family", ["tet4", "tet10", "hex8"])
def test_round_trip_is_exact(tmp_path, family):
    data = sample_run(5, (2, 2, 1), family)
    write_run(tmp_path / "a.h5", data)
    assert equal(read_run(tmp_path / "a.h5"), data)
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"], "temporary files stay behind"


def test_solids_sheets_and_links(tmp_path):
    data = solids_run(7)
    write_run(tmp_path / "a.h5", data)
    found = read_run(tmp_path / "a.h5")
    assert equal(found, data)
    assert len(found.solids) == 8 and len(found.sheets) == 3 and found.contacts.offsets[-1] > 0


def test_files_without_solids_have_no_new_groups(tmp_path, data):
    """Files of runs of soft bodies are what they were; files from before solids are read."""
    write_run(tmp_path / "a.h5", data)
    with h5py.File(tmp_path / "a.h5") as file:
        assert set(file) == {
            "t", "q", "v", "contact_force", "energy", "newton", "bodies", "obstacles", "markers", "targets",
            "targets_time",
        }  # fmt: skip
    found = read_run(tmp_path / "a.h5")
    assert found.solids == found.sheets == () and found.lines == found.joints == found.goals == {}
    assert [len(part) for part in found.contacts.at(3)] == [0, 0]


def test_poses_and_twists():
    """Finite differences of a place on a turning body whose centre of mass is off its origin."""
    h = 1e-6
    t = np.array([0.0, h, 2 * h])
    q = np.array([0.3, -0.2, 0.5, 0.4, 0.7, -1.1]) + t[:, None] * np.array([1.0, 2.0, 3.0, -2.0, 1.5, 0.5])
    v = np.tile([1.0, 2.0, 3.0, -2.0, 1.5, 0.5], (3, 1))
    solid = SolidData("a", 0, centre=[0.1, 0.2, -0.3])
    data = dataclasses.replace(
        solids_run(3), t=t, q=q, v=v, contact_force=0 * q, sheets=(), solids=(solid,), lines={}, joints={},
        contacts=ContactData(), goals={},
    )  # fmt: skip
    place = np.array([0.5, -0.1, 0.2])
    x = [data.pose(solid, k)[0] @ place + data.pose(solid, k)[1] for k in range(3)]
    velocity, spin = data.twist(solid, 1)
    rate = velocity + np.cross(spin, x[1] - q[1, :3])
    np.testing.assert_allclose((x[2] - x[0]) / (2 * h), rate, atol=1e-8)
    rotation, position = data.pose(solid, 0)
    np.testing.assert_allclose(rotation @ solid.centre + position, q[0, :3], atol=1e-15)


def test_parts_that_do_not_fit():
    data = solids_run(3)
    with pytest.raises(InputError, match=r"solids\.crate\.start: body outside of q"):
        dataclasses.replace(data, solids=(dataclasses.replace(data.solids[0], start=10**6),))
    with pytest.raises(InputError, match="unknown kind of shape"):
        SolidData("a", 0, kind=7)
    with pytest.raises(InputError, match="do not exist"):
        MassSpringData("a", 0, np.zeros((2, 3)), [[0, 2]])
    with pytest.raises(InputError, match=r"lines\.rope: wrong number of states"):
        dataclasses.replace(data, lines={"rope": LineData("cable", np.zeros((2, 2, 3)), np.zeros(2))})
    with pytest.raises(InputError, match=r"joints\.pin: wrong number of states"):
        dataclasses.replace(data, joints={"pin": JointData(np.zeros((1, 3)), np.zeros((1, 3)))})
    with pytest.raises(InputError, match="'spring' or 'cable' or 'load'"):
        LineData("rod", np.zeros((2, 2, 3)), np.zeros(2))
    with pytest.raises(InputError, match="offsets and places"):
        ContactData([0, 1, 3], np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(InputError, match="rise from zero"):
        ContactData([0, 2, 1], np.zeros((1, 3)), np.zeros((1, 3)))


def test_contacts_of_states_from_the_end():
    """-1 is the last state, as of the arrays of a run; of a state beyond there are none."""
    contacts = ContactData([0, 1, 3, 3, 4], np.arange(12.0).reshape(4, 3), np.ones((4, 3)))
    for k in range(4):
        np.testing.assert_array_equal(contacts.at(k - 4)[0], contacts.at(k)[0])
    assert [len(contacts.at(k)[0]) for k in (-4, -3, -2, -1)] == [1, 2, 0, 1]
    for k in (-5, 4):
        with pytest.raises(IndexError):
            contacts.at(k)
    assert not len(ContactData().at(7)[0])


@pytest.mark.parametrize(
    "part", ["solids/crate/vertices", "sheets/cloth/edges", "lines/cable/tension", "joints/hinge/axis",
             "contacts/offsets", "goals/spot/points"],
)  # fmt: skip
def test_missing_part_of_solids(tmp_path, part):
    path = tmp_path / "a.h5"
    write_run(path, solids_run(3))
    with h5py.File(path, "a") as file:
        del file[part]
    with pytest.raises(InputError, match=f"/{part}: missing"):
        read_run(path)
    with h5py.File(path, "a") as file:
        file[part] = np.zeros((1, 1, 1, 1))
    with pytest.raises(InputError, match="wrong shape"):
        read_run(path)


def test_missing_attribute_of_a_solid(tmp_path):
    path = tmp_path / "a.h5"
    write_run(path, solids_run(3))
    with h5py.File(path, "a") as file:
        del file["solids/crate"].attrs["centre"]
    with pytest.raises(InputError, match=r"/solids/crate\.centre: attribute missing"):
        read_run(path)


def test_odd_names_and_order(tmp_path, data):
    markers = {name: data.markers["front"] for name in ("z/%2F", "a.b", "..", "ä")}
    changed = dataclasses.replace(data, markers=markers, targets={}, obstacles=())
    write_run(tmp_path / "a.h5", changed)
    assert list(read_run(tmp_path / "a.h5").markers) == list(markers)


def test_one_state(tmp_path, data):
    one = dataclasses.replace(
        data, t=data.t[:1], q=data.q[:1], v=data.v[:1], contact_force=data.contact_force[:1],
        energy={}, newton_iterations=[], newton_residual=[], markers={},
    )  # fmt: skip
    write_run(tmp_path / "a.h5", one)
    assert equal(read_run(tmp_path / "a.h5"), one)


def test_wrong_shapes(data):
    with pytest.raises(InputError, match=r"newton\.iterations: wrong shape"):
        dataclasses.replace(data, newton_iterations=np.zeros(11))
    with pytest.raises(InputError, match="outside of q"):
        dataclasses.replace(data, bodies=(dataclasses.replace(data.bodies[0], start=3),))
    with pytest.raises(InputError, match="do not exist"):
        dataclasses.replace(data.bodies[0], surface=[[0, 1, 10**6]])


def test_a_failed_write_keeps_the_old_file(tmp_path, data, monkeypatch):
    path = tmp_path / "a.h5"
    write_run(path, data)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(CannotWrite, match=r"a\.h5: no space left on device"):
        write_run(path, data)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_disk_is_one_error(tmp_path, data):
    """In a process of its own: a file that HDF5 cannot close would fell Python at its end."""
    write_run(tmp_path / "whole.h5", data)
    code = """
import os, sys
from pathlib import Path
from add.errors import AddError
from add.io.trajectory_file import read_run, write_run
data = read_run("whole.h5")
real = os.open
def full(path, flags, *rest):  # a new file, whose place then leads to the device that is always full
    number = real(path, flags, *rest)
    if flags & os.O_EXCL:
        os.unlink(path)
        os.symlink("/dev/full", path)
    return number
os.open = full
try:
    write_run("a.h5", data)
except AddError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "a.h5: no space left on device\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["whole.h5"]


def test_errors_name_the_file(tmp_path, data):
    path = tmp_path / "a.h5"
    with pytest.raises(InputError, match=r"a\.h5: no such file"):
        read_run(path)
    path.write_text("t, q\n0, 1\n")
    with pytest.raises(InputError, match=r"a\.h5: not an HDF5 file"):
        read_run(path)
    path.write_bytes(b"")
    with pytest.raises(InputError, match="not an HDF5 file"):
        read_run(path)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.999])
def test_truncated(tmp_path, data, share):
    path = tmp_path / "a.h5"
    write_run(path, data)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"a\.h5: truncated or damaged"):
        read_run(path)


def test_damaged_data(tmp_path, data):
    path = tmp_path / "a.h5"
    write_run(path, sample_run(40))
    with h5py.File(path) as file:
        chunk = file["q"].id.get_chunk_info(0)
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset + 20 : chunk.byte_offset + 60] = bytes(40)
    path.write_bytes(content)
    with pytest.raises(InputError, match="truncated or damaged"):
        read_run(path)


@pytest.mark.parametrize("part", ["q", "newton/residual", "bodies/block/cells", "targets_time/front", "obstacles"])
def test_missing_part(tmp_path, data, part):
    path = tmp_path / "a.h5"
    write_run(path, data)
    with h5py.File(path, "a") as file:
        del file[part]
    with pytest.raises(InputError, match=f"/{part}: missing"):
        read_run(path)


@pytest.mark.parametrize("found", ["add-trajectory/9", None])
def test_other_format(tmp_path, data, found):
    path = tmp_path / "a.h5"
    write_run(path, data)
    with h5py.File(path, "a") as file:
        del file.attrs["format"]
        if found:
            file.attrs["format"] = found
    with pytest.raises(InputError, match=r"another format.*add-trajectory/1"):
        read_run(path)


def test_run_folder_protects_what_is_there(tmp_path):
    other = tmp_path / "photos"
    other.mkdir()
    (other / "a.jpg").write_bytes(b"x")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="other things than a run"):
            RunFolder(other, overwrite=overwrite)
    with pytest.raises(InputError, match="in the way"):
        RunFolder(other / "a.jpg")
    with pytest.raises(InputError, match="not the folder of a run"):
        RunFolder(other, create=False)
    with pytest.raises(InputError, match="no such run"):
        RunFolder(tmp_path / "missing", create=False)

    run = RunFolder(tmp_path / "deep" / "run")
    RunFolder(run.path)  # still empty
    run.write_json("result.json", {"a": 1})
    with pytest.raises(InputError, match="there is a run in this folder already"):
        RunFolder(run.path)
    (run.path / "notes.txt").write_text("mine")
    again = RunFolder(run.path, overwrite=True)
    assert again.read_json("result.json") == {"a": 1}
    again.clear()
    assert [p.name for p in run.path.iterdir()] == ["notes.txt"]


def test_json(tmp_path):
    run = RunFolder(tmp_path / "run")
    given = {"x": np.float64(0.1), "n": np.int64(3), "list": np.arange(2), "bad": float("nan"), "path": tmp_path}
    run.write_json("result.json", given)
    assert run.read_json("result.json") == {"x": 0.1, "n": 3, "list": [0, 1], "bad": None, "path": str(tmp_path)}
    run.scene.write_text("{")
    with pytest.raises(InputError, match=r"scene\.json: not JSON"):
        run.read_json("scene.json")
    with pytest.raises(InputError, match="no such file"):
        run.read_json("versions.json")


def test_lines_survive_a_kill(tmp_path):
    run = RunFolder(tmp_path / "run")
    lines_file = run.path / "lines.jsonl"
    assert run.read_lines("lines.jsonl") == []
    for i in range(3):
        run.append_line("lines.jsonl", {"index": i, "value": (0.1 * i).hex()})
    whole = lines_file.read_bytes()
    for cut in range(len(whole) - 1, len(whole) - 20, -1):
        lines_file.write_bytes(whole[:cut])
        assert [line["index"] for line in run.read_lines("lines.jsonl")] == [0, 1]
    run.append_line("lines.jsonl", {"index": 7, "long": "x" * 10_000})
    lines_file.write_bytes(lines_file.read_bytes()[:-1])  # a piece longer than one block
    run.append_line("lines.jsonl", {"index": 8})
    assert [line["index"] for line in run.read_lines("lines.jsonl")] == [0, 1, 8]
    lines = lines_file.read_text().splitlines()
    lines_file.write_text("\n".join([lines[0], "{", lines[2], ""]))
    with pytest.raises(InputError, match="line 2: not JSON"):
        run.read_lines("lines.jsonl")


def test_versions():
    found = versions()
    assert set(found) == {"add", "python", "numpy", "scipy", "numba", "platform"}
    assert json.dumps(found)
    assert found["numpy"] == np.__version__


def test_clear_removes_meshes_that_nobody_needs(tmp_path):
    """A mesh of an earlier run would be taken for that of the next."""
    run = RunFolder(tmp_path / "run")
    meshes = run.path / "meshes"
    meshes.mkdir()
    for name in ("old.msh", "needed.msh", "notes.txt"):
        (meshes / name).write_text("x")
    run.write_json("scene.json", {})
    (run.path / ".123.trajectory.h5").write_text("cut off")
    run.clear(keep=[meshes / "needed.msh"])
    assert sorted(path.name for path in run.path.rglob("*")) == ["meshes", "needed.msh", "notes.txt"]
    with pytest.raises(InputError, match="other things than a run"):
        RunFolder(run.path)
    (meshes / "notes.txt").unlink()
    assert not RunFolder(run.path).is_run, "a run that was cut before it left more than a mesh is in nobody's way"


def test_a_run_that_cannot_be_cleared_is_an_error(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.write_json("scene.json", {})
    (run.path / "result.json" / "in the way").mkdir(parents=True)
    with pytest.raises(InputError, match=r"run: result\.json: the run in this folder cannot be replaced"):
        run.clear()


@pytest.mark.parametrize(
    ("name", "content", "command"),
    [
        ("result.json", '{"command": "sweep"}', "sweep"),
        ("result.json", "{", None),
        ("grid.json", "", "sweep"),
        ("evaluations.jsonl", "", "optimize"),
        ("trajectory.h5", "", "simulate"),
        ("scene.json", "", None),
    ],
)
def test_command_of_a_run(tmp_path, name, content, command):
    run = RunFolder(tmp_path / "run")
    (run.path / name).write_text(content)
    assert run.command == command
    with pytest.raises(InputError, match=f"a run of `add {command}`" if command else "there is a run in this folder"):
        RunFolder(run.path)


@pytest.mark.parametrize("n_memory", [0, 7, 4000])
def test_what_a_state_carries_comes_back(tmp_path, n_memory):
    """Numbers to the bit and marks of any length; files of before have none, and say so."""
    rng, run = np.random.default_rng(n_memory), sample_run()
    marks = (np.array([3, 5, 8]), np.zeros(0, dtype=np.int64), np.array([2]))
    q = rng.normal(size=(2, run.q.shape[1]))
    state = State(0.25, 5, q, rng.normal(size=q.shape), Carry(rng.normal(size=(1, n_memory)), marks))
    path = tmp_path / "trajectory.h5"
    write_run(path, dataclasses.replace(run, carry=state.carry), ResumePoint(state, {"steps": 5}, "hash"))
    found = read_point(path)
    assert found is not None and (found.state.t, found.state.step, found.model) == (0.25, 5, "hash")
    np.testing.assert_array_equal(found.state.q, state.q)
    np.testing.assert_array_equal(found.state.carry.memory, state.carry.memory)
    assert len(found.state.carry.marks) == len(marks)
    for mark, wanted in zip(found.state.carry.marks, marks, strict=True):
        assert mark.dtype == np.int64 and mark.tolist() == wanted.tolist()
    np.testing.assert_array_equal(read_run(path).carry.memory, state.carry.memory)
    with h5py.File(path, "r+") as file:
        del file["carry"]
    old = read_point(path)
    assert old is not None and old.state.carry.marks == () and old.state.carry.memory.size == 0
    np.testing.assert_array_equal(old.state.v, state.v)
    assert read_run(path).carry.marks == ()
