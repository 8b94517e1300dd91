"""`add info` of a robot's file."""

import json

import pytest
from click.testing import CliRunner
from support.robot_files import INERTIAL, joint, link, urdf, written

import add
from add.commands.cli import cli, main
from add.scene import robots as reading
from add.scene.robots.xml_file import read_xml

BOX = '<collision><geometry><box size="1 1 1"/></geometry></collision>'


def small(folder, name="small.urdf", limits='lower="-1" upper="2"'):
    more = f'<limit {limits} effort="5" velocity="3"/><dynamics damping="0.1" friction="0.2"/>'
    text = urdf(
        link("base"),
        link("arm", INERTIAL, BOX),
        link("hand"),
        link("finger"),
        joint("turn", "base", "arm", more=more),
        joint("glue", "arm", "hand", "fixed", ""),
        joint(
            "grip", "hand", "finger", "prismatic", '<limit lower="0" upper="0.1"/><mimic joint="turn" offset="0.5"/>'
        ),
        '<transmission name="t"/>',
    )
    return written(folder, text, name)


def code(*arguments):
    with pytest.raises(SystemExit) as end:
        main([str(item) for item in arguments])
    return end.value.code


def said(*arguments):
    return CliRunner().invoke(cli, ["info", *map(str, arguments)], catch_exceptions=False)


@pytest.mark.parametrize("command", ["info", "view"])
def test_the_file_is_read_once(tmp_path, monkeypatch, command):
    """Chains of thousands of links take seconds each time."""
    read = []

    def counted(path):
        read.append(path)
        return read_xml(path)

    monkeypatch.setattr(reading, "read_xml", counted)
    picture = ["--screenshot", str(tmp_path / "small.png"), "--size", "160x120"] if command == "view" else []
    assert code(command, small(tmp_path), *picture) == 0
    assert len(read) == 1


@pytest.mark.parametrize("name", ["small.urdf", "small.txt"])
def test_lines(tmp_path, name):
    """The tree, masses, limits, laws, places, pairs, and what is ignored; also by content alone."""
    found = said(small(tmp_path, name))
    assert found.exit_code == 0
    lines = found.output.splitlines()
    assert lines[0].endswith("robot 'small', fixed base: 2 links, 1 coordinate, 3 kg")
    assert lines[1].startswith("  arm: 2 kg at (0, 0, 0); hinge turn about (0, 0, 1), -1..2 rad, damping 0.1 N m s/rad")
    assert "dry friction 0.2 N m, at most 5 N m and 3 rad/s; box" in lines[1]
    assert lines[2].startswith("    finger: 1 kg") and lines[2].endswith("mimics turn times 1 plus 0.5 m")
    assert "  places: base on the world, hand on arm" in lines
    assert "  links that do not touch: world - arm, arm - finger" in lines
    assert "  ignored: robot: <transmission>" in lines


def test_a_file_of_one_link_that_stands_still(tmp_path):
    """It has no links that move: its scene is built, and steps."""
    path = written(tmp_path, urdf(link("body", INERTIAL, BOX)), "body.urdf")
    found = said(path)
    assert found.exit_code == 0 and "0 links, 0 coordinates, 0 kg\n  stands still; box" in found.output
    bodies = {"b": {"type": "articulated", "model": str(path)}}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 2}, "bodies": bodies}
    built = add.scene_from_dict(raw).build()
    model, last = built.model, built.run().kinematics(2)
    state = model.body("b").state(last, model.node_masses(built.theta), built.theta, model.layouts)
    assert (state["mass"], state["speed"]) == (0.0, 0.0) and state["centre"] == [0.0, 0.0, 0.0]


def test_json_and_base(tmp_path):
    found = json.loads(said(small(tmp_path), "--base", "free", "--up", "y", "--json").output)
    assert (found["mass"], found["coordinates"]) == (4.0, 7)
    assert [item["kind"] for item in found["joints"]] == ["free", "hinge", "slide"]
    assert found["joints"][1]["limits"] == [-1, 2] and found["joints"][0]["limits"] == [None, None]
    assert found["joints"][2]["mimic"] == ["turn", 1.0, 0.5]
    assert found["places"]["hand"]["link"] == "arm"


def test_ignore(tmp_path, capsys):
    path = small(tmp_path, limits='lower="1" upper="1"')
    assert code("info", str(path)) == 0
    assert "lower = upper = 1" in capsys.readouterr().out
    assert code("info", str(path), "--ignore", "limit") == 0
    assert "ignored: line 6, joint 'turn': <limit>: lower = upper = 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.urdf", None, "a.urdf: there is no such file"),
        ("a.urdf", "{}", "a.urdf: line 1: not XML"),
        ("a.json", "{}", "a.json: schema: the version of the format is missing"),
        ("a.bin", "\0\1", "a.bin: neither a run, a robot nor a scene"),
        ("a.xml", "<html/>", "a.xml: line 1: not a robot's file"),
        ("nothing", None, "nothing: there is no such file"),
    ],
)
def test_errors(tmp_path, capsys, name, content, message):
    """One line and exit code 2."""
    path = tmp_path / name
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert code("info", str(path)) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_view(tmp_path):
    """A picture of the robot as its file poses it; errors name the file alone."""
    pytest.importorskip("pyvista", reason="pyvista is not installed: pip install 'add-sim[view]'")
    path, picture = small(tmp_path), tmp_path / "small.png"
    assert code("view", path, "--base", "free", "--screenshot", picture, "--size", "160x120") == 0
    assert picture.stat().st_size > 1000
    assert code("view", small(tmp_path, limits='lower="one" upper="1"'), "--screenshot", picture) == 2


def test_options_are_for_robots(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    assert code("info", str(tmp_path / "run"), "--up", "y") == 2
    assert "are for a robot's file" in capsys.readouterr().err
    assert code("view", tmp_path / "run", "--base", "free") == 2
    assert "are for a robot's file" in capsys.readouterr().err


@pytest.mark.parametrize("n", [2, 3])
def test_what_is_left_out_again_and_again_is_said_once(tmp_path, n):
    """Three meshes that are missing are one line, two are two; JSON has each."""
    shapes = [f'<collision><geometry><mesh filename="package://p/{k}.stl"/></geometry></collision>' for k in range(n)]
    path = written(tmp_path, urdf(link("base", more="".join(shapes))), "base.urdf")
    lines = [line for line in said(path).output.splitlines() if "is not found" in line]
    assert len(lines) == (2 if n == 2 else 1)
    assert lines[0].endswith("; 2 more alike (--json has all)") == (n == 3)
    assert sum("is not found" in text for text in json.loads(said(path, "--json").output)["ignored"]) == n
