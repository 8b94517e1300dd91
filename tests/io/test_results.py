"""The run folder and its trajectory: round trips, and errors that say what is wrong."""

import dataclasses
import json

import h5py
import numpy as np
import pytest
from view.sample_run import sample_run

from add.errors import InputError
from add.io.results import read_run, write_run
from add.io.runfolder import RunFolder, versions


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

    monkeypatch.setattr("add.io.results._write", fail)
    with pytest.raises(InputError, match="No space left"):
        write_run(path, data)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


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
    with pytest.raises(InputError, match="overwrite"):
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
    assert run.read_lines("evaluations.jsonl") == []
    for i in range(3):
        run.append_line("evaluations.jsonl", {"index": i, "value": (0.1 * i).hex()})
    whole = run.evaluations.read_bytes()
    for cut in range(len(whole) - 1, len(whole) - 20, -1):
        run.evaluations.write_bytes(whole[:cut])
        assert [line["index"] for line in run.read_lines("evaluations.jsonl")] == [0, 1]
    run.append_line("evaluations.jsonl", {"index": 7, "long": "x" * 10_000})
    run.evaluations.write_bytes(run.evaluations.read_bytes()[:-1])  # a piece longer than one block
    run.append_line("evaluations.jsonl", {"index": 8})
    assert [line["index"] for line in run.read_lines("evaluations.jsonl")] == [0, 1, 8]
    lines = run.evaluations.read_text().splitlines()
    run.evaluations.write_text("\n".join([lines[0], "{", lines[2], ""]))
    with pytest.raises(InputError, match="line 2: not JSON"):
        run.read_lines("evaluations.jsonl")


def test_versions():
    found = versions()
    assert set(found) == {"add", "python", "numpy", "scipy", "numba", "platform"}
    assert json.dumps(found)
    assert found["numpy"] == np.__version__
