"""Files that are none of what their names say: refused at once, and nothing outside of them is read or written."""

import json
import os
import time

import h5py
import meshio
import numpy as np
import pytest
from support.tiers import long_case
from view.sample_run import sample_run

from add.errors import InputError
from add.geometry import TET4, box_mesh
from add.io import hdf5
from add.io.hdf5 import SweepData, read_sweep, write_sweep
from add.io.lock import replacing
from add.io.meshes import read_mesh, write_mesh
from add.io.runfolder import RunFolder
from add.io.surfaces import read_surface
from add.io.trajectory_file import last_time, read_run, write_run
from add.machine.files import require_plain_json
from add.machine.foreign import read_apart
from add.mocap import read_csv

#: Seconds of this process within which what needs no process of its own is refused.
AT_ONCE = 5.0


@pytest.fixture
def at_once():
    begin = time.process_time()
    yield
    assert time.process_time() - begin < AT_ONCE


# --- meshes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["", "\n\n\n", "# only comments\n", "a b c\n", "5 3 0\n", "-1 3 0 0\n"])
@pytest.mark.parametrize("damaged", ["node", "ele"])
def test_tetgen_without_its_counts(tmp_path, at_once, content, damaged):
    """Its reader waits for a line of counts that never comes."""
    write_mesh(tmp_path / "a.node", box_mesh((1, 1, 1), (1, 1, 1), TET4))
    (tmp_path / f"a.{damaged}").write_text(content)
    with pytest.raises(InputError, match="cannot be read as a mesh"):
        read_mesh(tmp_path / "a.node")


def test_tetgen_that_counts_more_than_it_has(tmp_path, at_once):
    write_mesh(tmp_path / "a.node", box_mesh((1, 1, 1), (1, 1, 1), TET4))
    text = (tmp_path / "a.node").read_text()
    (tmp_path / "a.node").write_text(text.replace("8 3 0 0", "800000000000 3 0 0"))
    with pytest.raises(InputError, match="too short for what it counts"):
        read_mesh(tmp_path / "a.node")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.msh", b"\0" * 100), ("a.msh", b""), ("a.msh", b"points\n"), ("a.vtk", b"noise"), ("a.vtu", b"noise"),
        ("a.inp", b"noise"), ("a.mesh", b"noise"),
    ],
)  # fmt: skip
def test_meshes_of_another_kind(tmp_path, at_once, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}.*cannot be read as a mesh"):
        read_mesh(tmp_path / name)


#: Files whose readers in meshio 5.3 never return.
ENDLESS = {
    "tecplot.tec": 'VARIABLES = "X", "Y", "Z"\nZONE NODES = 4, ELEMENTS = 1,\n'
    "DATAPACKING = BLOCK, ZONETYPE = FETETRAHEDRON\n0.0 1.0\n",
    "ansys.msh": '(1 "mesh',
    "off.off": "OFF\n# nothing more",
}


@pytest.mark.parametrize("name", ["tecplot.tec", long_case("ansys.msh"), "off.off"])
def test_readers_that_do_not_end(tmp_path, name, monkeypatch):
    monkeypatch.setattr("add.machine.foreign.PATIENCE", 0.3)
    (tmp_path / name).write_text(ENDLESS[name])
    begin = time.monotonic()
    with pytest.raises(InputError, match=f"{name}.*does not come to an end"):
        read_mesh(tmp_path / name)
    assert time.monotonic() - begin < 60.0


def test_meshes_read_apart_are_the_same(tmp_path):
    mesh = box_mesh((1, 2, 3), (1, 2, 2), TET4)
    meshio.write_points_cells(tmp_path / "a.su2", mesh.points, [("tetra", mesh.cells)])
    again = read_mesh(tmp_path / "a.su2")
    np.testing.assert_array_equal(again.cells, mesh.cells)
    np.testing.assert_allclose(again.points, mesh.points, rtol=1e-14)


def test_a_reader_that_takes_all_memory(tmp_path):
    (tmp_path / "a.x").write_text("x")
    with pytest.raises(InputError, match=r"a\.x.*needs more than the 4 GB"):
        read_apart("fuzz.greedy:greedy", tmp_path / "a.x", memory=4e9)


def test_a_damaged_number_does_not_take_all_memory(tmp_path, at_once):
    """Gmsh numbers its nodes as it likes, and the reader makes a table up to the highest number."""
    mesh = box_mesh((1, 1, 1), (1, 1, 1), TET4)
    meshio.write_points_cells(tmp_path / "a.msh", mesh.points, [("tetra", mesh.cells)], file_format="gmsh", binary=True)
    content = (tmp_path / "a.msh").read_bytes()
    tags = np.arange(1, 9, dtype=np.int64).tobytes()
    assert content.count(tags) == 1
    damaged = np.array([1, 2, 3, 4, 5, 6, 7, 2**33], dtype=np.int64).tobytes()
    (tmp_path / "a.msh").write_bytes(content.replace(tags, damaged))
    with pytest.raises(InputError, match=r"a\.msh: cannot be read as a mesh"):
        read_mesh(tmp_path / "a.msh")


# --- surfaces --------------------------------------------------------------------------------------------------------


def test_a_cut_stl(tmp_path):
    """What is left of a binary STL would be taken for the whole."""
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "a.stl")
    content = (tmp_path / "a.stl").read_bytes()
    for part in (content[:-50], content[:-1], content[:90], content[:40], content + b"\0" * 50):
        (tmp_path / "a.stl").write_bytes(part)
        with pytest.raises(InputError, match=r"a\.stl.*cannot be read as a surface"):
            read_surface(tmp_path / "a.stl")


def test_archives_are_not_opened(tmp_path, at_once):
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match="an archive"):
        read_surface(tmp_path / "a.zip")


# --- what is no file, and what is too much of one --------------------------------------------------------------------


@pytest.mark.parametrize("reader", [read_mesh, read_surface, read_csv, read_run, read_sweep])
def test_pipes_and_devices(tmp_path, at_once, reader):
    for suffix in (".msh", ".stl", ".node", ".csv", ".h5"):
        os.mkfifo(tmp_path / f"pipe{suffix}")
        with pytest.raises(InputError, match=r"not a plain file.*a pipe"):
            reader(tmp_path / f"pipe{suffix}")
    with pytest.raises(InputError, match=r"not a plain file.*a device"):
        reader("/dev/zero")


def test_a_table_with_very_many_columns(tmp_path, at_once):
    names = ",".join(f"M{i}_{axis}_m" for i in range(40_000) for axis in "xyz")
    (tmp_path / "a.csv").write_text(f"time_s,{names}\n0{',1' * 120_000}\n")
    with pytest.raises(InputError, match=r"a\.csv.*too many columns"):
        read_csv(tmp_path / "a.csv")


def test_giants_without_content(tmp_path, at_once):
    for name, reader in (("a.csv", read_csv), ("a.msh", read_mesh), ("a.stl", read_surface), ("a.node", read_mesh)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(10**13)
        with pytest.raises(InputError, match=f"{name}.*too large"):
            reader(tmp_path / name)


# --- HDF5 ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def trajectory(tmp_path):
    write_run(tmp_path / "a.h5", sample_run(5))
    write_run(tmp_path / "other.h5", sample_run(5))
    (tmp_path / "raw").write_bytes(np.linspace(0.0, 1.0, 5).tobytes())
    return tmp_path / "a.h5"


def _external(file, path):
    file["t"] = h5py.ExternalLink(str(path.with_name("other.h5")), "/t")


def _soft(file, path):
    file["t"] = h5py.SoftLink("/energy/kinetic")


def _raw(file, path):
    file.create_dataset("t", (5,), "f8", external=[(str(path.with_name("raw")), 0, 40)])


def _virtual(file, path):
    layout = h5py.VirtualLayout((5,), "f8")
    layout[:] = h5py.VirtualSource(str(path.with_name("other.h5")), "t", (5,))
    file.create_virtual_dataset("t", layout)


def _giant(file, path):
    file.create_dataset("t", (10**12,), "f8", chunks=(2**16,), compression="gzip")


def _bomb(file, path):
    data = file.create_dataset("t", (10**12,), "f8", chunks=(2**16,), compression="gzip")
    data[: 2**16] = 1.0


def _empty(file, path):
    file.create_dataset("t", (5,), "f8")


def _text(file, path):
    file["t"] = ["a"] * 5


def _circle(file, path):
    del file["markers"]
    file["markers"] = file["/"]
    file["t"] = np.arange(5.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_external, "a link into another file"), (_soft, "a link to another place"), (_raw, "data that lie in another"),
        (_virtual, "data that lie in another"), (_giant, "not in the file"), (_bomb, "not in the file"),
        (_empty, "not in the file"), (_text, "not numbers"), (_circle, "holds itself"),
    ],
)  # fmt: skip
def test_hdf5_that_reaches_outside(trajectory, at_once, change, message):
    with h5py.File(trajectory, "a") as file:
        del file["t"]
        change(file, trajectory)
    for reader in (read_run, last_time):
        with pytest.raises(InputError, match=rf"a\.h5: /.*{message}"):
            reader(trajectory)


def test_hdf5_larger_than_the_memory(trajectory, monkeypatch):
    monkeypatch.setattr(hdf5, "available_memory", lambda: 1000.0)
    with pytest.raises(InputError, match=r"a\.h5: larger than the memory"):
        read_run(trajectory)


@pytest.mark.parametrize("part", ["values", "gradients", "grid/0"])
def test_sweeps_that_do_not_fit(tmp_path, part):
    data = SweepData(("a",), ("m",), (np.array([1.0, 2.0]),), (True,), np.array([1.0, 3.0]), np.zeros((2, 1)))
    write_sweep(tmp_path / "a.h5", data)
    with h5py.File(tmp_path / "a.h5", "a") as file:
        attributes = dict(file[part].attrs)
        del file[part]
        file[part] = np.array([3.0, 2.0, 1.0])
        file[part].attrs.update(attributes)
    with pytest.raises(InputError, match=r"a\.h5"):
        read_sweep(tmp_path / "a.h5")


# --- temporary files, links in run folders ---------------------------------------------------------------------------


def test_temporary_names_cannot_be_foreseen(tmp_path, monkeypatch):
    names = []
    for _ in range(2):
        with replacing(tmp_path / "a.txt") as temporary:
            names.append(temporary.name)
            assert temporary.is_file() and str(os.getpid()) not in temporary.name[:12]
            temporary.write_text("x")
    assert names[0] != names[1] and [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    monkeypatch.setattr("secrets.token_hex", lambda n: "0" * 2 * n)
    (tmp_path / "outside").write_text("somebody else's")
    with replacing(tmp_path / "a.txt") as temporary:
        pass
    temporary.symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="exists"), replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("y")
    assert (tmp_path / "outside").read_text() == "somebody else's"


@pytest.mark.parametrize("name", ["result.json", "evaluations.jsonl", "scene.json", "versions.json"])
def test_files_of_a_run_are_its_own(tmp_path, name):
    run = RunFolder(tmp_path / "run")
    (tmp_path / "outside").write_text('{"a": 1}\n')
    (run.path / name).symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match=f"{name}: is a link"):
        run.read_lines(name) if name.endswith("l") else run.read_json(name)
    with pytest.raises(InputError, match=f"{name}: is a link"):
        run.append_line(name, {"b": 2})
    assert (tmp_path / "outside").read_text() == '{"a": 1}\n'
    if not name.endswith("l"):
        run.write_json(name, {})
        assert not (run.path / name).is_symlink() and (tmp_path / "outside").read_text() == '{"a": 1}\n'


def test_meshes_of_somebody_else_stay(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.msh").write_text("somebody else's")
    run = RunFolder(tmp_path / "run")
    run.write_json("scene.json", {})
    (run.path / "meshes").symlink_to(outside)
    run.clear()
    with pytest.raises(InputError, match="meshes: is a link to another folder"):
        RunFolder(run.path, overwrite=True)
    assert (outside / "a.msh").read_text() == "somebody else's"


# --- JSON of a run ---------------------------------------------------------------------------------------------------

WRONG = {
    "result.json": ["[]", "1", '{"status": 3}', '{"evaluations": "many"}', '{"seconds": NaN}', '{"seconds": "1"}',
                    '{"parameters": {"a": 1}}', '{"bodies": {"a": {"centre": [1]}}}', '{"phases": [{}]}',
                    '{"message": "\\ud800"}', '{"a": ' + "[" * 5000 + "]" * 5000 + "}",
                    '{"a": ' + "[" * 90 + "]" * 90 + "}"],
    "versions.json": ["[]", '{"add": 1}'],
    "grid.json": ["{}", "[]", "[1]", '[{"name": "a", "unit": "m", "logarithmic": false, "values": [1]}]',
                  "[{}, {}, {}]"],
}  # fmt: skip
EVALUATION = {"phase": "a", "index": 0, "x": ["0x1p+0"], "value": "0x1p+0", "gradient": ["0x1p+0"], "seconds": 1.0}
LINES = {
    "evaluations.jsonl": [[], 1, {}, EVALUATION | {"x": [1]}, EVALUATION | {"value": "0x1p+99999"},
                          EVALUATION | {"seconds": None}, EVALUATION | {"gradient": "0x1p+0"}],
    "samples.jsonl": [[], {}, {"index": [0], "seconds": "1"}, {"index": ["a"], "seconds": 1.0}],
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in WRONG for text in WRONG[name]])
def test_wrong_forms_are_one_error(tmp_path, name, text):
    run = RunFolder(tmp_path / "run")
    (run.path / name).write_text(text)
    with pytest.raises(InputError, match=name):
        run.read_json(name)


@pytest.mark.parametrize(("name", "line"), [(name, line) for name in LINES for line in LINES[name]])
def test_wrong_lines_are_one_error(tmp_path, name, line):
    run = RunFolder(tmp_path / "run")
    (run.path / name).write_text(json.dumps(line) + "\n")
    with pytest.raises(InputError, match=f"{name}: line 1"):
        run.read_lines(name)


def test_giant_lines(tmp_path):
    run = RunFolder(tmp_path / "run")
    for name in ("evaluations.jsonl", "result.json"):
        with (run.path / name).open("wb") as file:
            file.truncate(10**12)
        with pytest.raises(InputError, match=f"{name}: too large"):
            run.read_lines(name) if name.endswith("l") else run.read_json(name)


def test_a_circle_is_nested_too_deeply():
    circle = []
    circle.append(circle)
    with pytest.raises(InputError, match="nested too deeply"):
        require_plain_json(circle, "scene")
