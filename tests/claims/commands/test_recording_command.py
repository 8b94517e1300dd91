"""`add recording`, and scenes that name the files of capture systems."""

import json

import numpy as np
import pytest
from support import capture_files as made
from support.c3d_files import c3d_bytes

from add.commands.cli import main
from add.errors import InputError
from add.mocap import read_pose_csv, read_take
from add.scene import scene_from_dict
from add.scene.build.doubts import doubts
from add.scene.build.recordings import load_recording

MOTION = made.motion()


@pytest.fixture
def files(tmp_path):
    """The same motion in every format."""
    found = {
        "motive": made.motive(MOTION), "vicon": made.vicon(MOTION, devices=True), "qualisys": made.qualisys(MOTION),
        "trc": made.trc(MOTION), "plain": made.plain(MOTION),
    }  # fmt: skip
    for name, data in found.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def run(*arguments) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["recording", *map(str, arguments)])
    return stop.value.code


@pytest.mark.parametrize("kind", ["motive", "vicon", "qualisys", "trc", "plain"])
def test_info(kind, files, capsys):
    assert run("info", files / kind) == 0
    said = capsys.readouterr()
    assert "12 frames from 0 to 0.11 s, 100 frames a second" in said.out
    assert "toe: 10 of 12 frames, 1 gap within" in said.out
    assert ("--up y" in said.err) is (kind == "motive")
    assert run("info", "--json", files / kind) == 0
    found = json.loads(capsys.readouterr().out)
    toe = next(item for name, item in found["markers"].items() if name.endswith("toe"))
    assert toe == {"seen": 10, "gaps": 1, "labelled": True}
    assert found["frames"] == 12


@pytest.mark.parametrize("kind", ["motive", "vicon", "qualisys", "trc", "plain"])
@pytest.mark.parametrize("suffix", [".csv", ".trc"])
def test_convert(kind, suffix, files, capsys):
    out = files / f"out{suffix}"
    assert run("convert", files / kind, out) == 0
    before, after = read_take(files / kind).markers, read_take(out).markers
    assert after.names == before.names
    assert after.positions.tobytes() == before.positions.tobytes()
    assert run("convert", files / kind, out) == 2
    assert "is already there" in capsys.readouterr().err
    assert run("convert", files / kind, out, "--force", "--marker", before.names[2]) == 0
    assert read_take(out).markers.names == before.names[2:]


def test_convert_bodies_and_signals(files, capsys):
    assert run("convert", files / "motive", files / "foot.csv", "--body", "Foot") == 0
    assert read_pose_csv(files / "foot.csv").n_frames == 10
    assert run("convert", files / "vicon", files / "plate.csv", "--signals") == 0
    lines = (files / "plate.csv").read_text().splitlines()
    assert lines[0] == "time_s,Plate 1 - Force Fx [N],Plate 1 - Force Fy [N],Plate 1 - Moment Mx [N.mm]"
    assert [float(x) for x in lines[12].split(",")] == [0.011, 1.1, -11.0, 33.0]
    for arguments, word in (
        (("motive", "out.c3d"), "format"), (("trc", "out.csv", "--signals"), "no signals"),
        (("motive", "out.csv", "--body", "Hand"), "no such body"),
        (("trc", "out.csv", "--marker", "knee"), "unknown marker"),
    ):  # fmt: skip
        assert run("convert", files / arguments[0], files / arguments[1], *arguments[2:]) == 2
        assert word in capsys.readouterr().err
        assert not (files / "out.csv").exists()


@pytest.mark.parametrize("kind", ["motive", "vicon", "plain"])
def test_plot(kind, files):
    assert run("plot", files / kind, "-o", files / "out.png") == 0
    assert (files / "out.png").stat().st_size > 10_000
    assert run("plot", files / kind, "-o", files / "out.png", "--track", "knee") == 2


def scene(file, **recording) -> dict:
    """A ball that a marker is glued to."""
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 20},
        "bodies": {"ball": {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.05}, "density": 1000}},
        "markers": {"top": {"body": "ball", "point": [0, 0, 0.05]}},
        "recording": {"file": str(file), "markers": {"toe": "top"}, **recording},
    }


@pytest.mark.parametrize("kind", ["motive", "qualisys", "trc", "plain"])
def test_a_scene_names_the_file(kind, files):
    recording = load_recording(scene_from_dict(scene(files / kind)), "recording")
    assert recording.names == ("top",)
    assert not recording.valid[4:6].any()
    np.testing.assert_allclose(recording.positions[:4, 0], MOTION[:4, 1] / 1000, atol=1e-12)


def test_a_scene_takes_the_choices(files, tmp_path):
    turned = load_recording(scene_from_dict(scene(files / "motive", up="y")), "recording")
    np.testing.assert_allclose(turned.positions[0, 0], MOTION[0, 1][[0, 2, 1]] * [1, -1, 1] / 1000, atol=1e-12)
    (tmp_path / "no unit").write_bytes(made.trc(MOTION, unit=""))
    with pytest.raises(InputError, match=r"does not say its unit"):
        load_recording(scene_from_dict(scene(tmp_path / "no unit")), "recording")
    read = load_recording(scene_from_dict(scene(tmp_path / "no unit", unit="mm")), "recording")
    np.testing.assert_allclose(read.positions[0, 0], MOTION[0, 1] / 1000, atol=1e-12)
    points = np.concatenate([np.nan_to_num(MOTION), np.zeros((12, 3, 1))], axis=2)
    (tmp_path / "twice").write_bytes(c3d_bytes(points, groups={"POINT": {"LABELS": ["a", "toe", "toe"]}}))
    section = {"markers": {"toe#2": "top"}, "number_repeated": True}
    read = load_recording(scene_from_dict(scene(tmp_path / "twice", **section)), "recording")
    np.testing.assert_allclose(read.positions[0, 0], MOTION[0, 2] / 1000, atol=1e-7)


def test_a_scene_takes_the_pose_of_a_body(files):
    raw = scene(files / "motive", pose={"body": "ball", "name": "Foot"}, up="z")
    del raw["recording"]["markers"]
    read = load_recording(scene_from_dict(raw), "recording")
    assert read.n_frames == 10
    # A quaternion of w = 0.8, x = 0.6 turns z by -sin, cos of 2 atan(0.75).
    np.testing.assert_allclose(read.positions[0, 0], [1e-3, 2e-3 - 0.05 * 0.96, 3e-3 + 0.05 * 0.28], atol=1e-12)
    raw["recording"]["pose"]["name"] = "Hand"
    with pytest.raises(InputError, match="no such body"):
        load_recording(scene_from_dict(raw), "recording")


def test_a_scene_doubts_a_frame_that_is_left_open(files):
    def said(**recording) -> str:
        return " ".join(doubts(scene_from_dict(scene(files / "motive", **recording)).build()))

    assert "y up unless its user chose otherwise" in said()
    assert "y up" not in said(up="z")
    points = {name: MOTION[0, k].tolist() for k, name in enumerate(made.NAMES)}
    assert "y up" not in said(register={"markers": points})
