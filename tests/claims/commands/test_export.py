"""`add export --controls`: a table of signals for the machine that plays them, and what it refuses."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

import add
from add.commands.cli import cli
from add.commands.export import sampled_controls
from add.mocap import read_take

ROWS = [0.1, -0.4, 0.5, 0.2, 0.9]
SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 10},
    "bodies": {
        "arm": {"type": "rigid", "geometry": {"shape": "box", "size": [0.2, 0.04, 0.03]}, "mass": 0.2,
                "collision": {"points": False, "shape": False}},
        "plate": {"type": "kinematic", "translation": {"signal": "lift"}},
    },
    "signals": {
        "aim": {"type": "control", "basis": "constant", "rows": 5, "values": ROWS},
        "lift": {"type": "table", "times": [0, 0.1], "values": [[0, 0, 0], [0, 0.2, 0.4]]},
    },
    "couplings": {"hinge": {"type": "hinge", "a": {"at": [0, 0, 0]}, "b": {"body": "arm"}, "axis": [0, 0, 1],
                            "stiffness": 2000.0, "angular_stiffness": 20.0,
                            "motor": {"angle": {"signal": "aim"}, "stiffness": 1.5}}},
    "parameters": [{"path": "signals.aim.values", "bounds": [-0.5, 1.0]}],
    "markers": {"tip": {"body": "arm", "point": [0.1, 0, 0]}},
    "objective": [{"type": "proximity", "signal": "aim", "value": 0.0},
                  {"type": "point", "marker": "tip", "target": [0.1, 0, 0], "time": "end", "weight": 1e-6}],
}  # fmt: skip


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "scene.json"
    file.write_text(json.dumps(SCENE))
    return file


def run(*arguments):
    return CliRunner().invoke(cli, ["export", *map(str, arguments)])


def table(file):
    with open(file, newline="") as stream:
        head, *rows = csv.reader(stream)
    return head, np.array(rows, dtype=float)


def test_signals_go_out_and_come_back(path, tmp_path):
    out = tmp_path / "controls.csv"
    done = run(path, "--controls", "--rate", 125, "-o", out)
    assert done.exit_code == 0, done.output
    head, numbers = table(out)
    assert head == ["time_s", "aim [rad]", "lift.x [m]", "lift.y [m]", "lift.z [m]"]
    assert np.array_equal(numbers[:, 0], np.arange(13) / 125)
    # Each row of the control is held for 20 ms from its beginning on; the motion is linear.
    assert np.array_equal(numbers[:, 1], [ROWS[min(int((k * 0.008 + 1e-9) / 0.02), 4)] for k in range(13)])
    assert numbers[:, 4] == pytest.approx(4.0 * numbers[:, 0], abs=1e-15)
    # As a table of a scene, the exported motion moves the plate as it did.
    exported = {"signals.lift.times": numbers[:, 0].tolist(), "signals.lift.values": numbers[:, 2:5].tolist()}
    again = add.apply_overrides(add.load_scene(path), exported).build()
    first = add.load_scene(path).build()
    assert again.run(n_steps=9).q == pytest.approx(first.run(n_steps=9).q, abs=1e-9)


def test_limits_warn_and_strict_refuses(path, tmp_path, caplog):
    out = tmp_path / "controls.csv"
    slow = ("--max-rate", "aim=20", "--limit", "lift.z=-1:0.3", "--limit", "aim=-1:1")
    done = run(path, "--controls", "--rate", 125, "-o", out, *slow)
    assert done.exit_code == 0 and out.exists()
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "'aim' changes by 112.5 rad/s at t = 0.032 s, faster than 20 rad/s",
        "'lift.z' is 0.384 m at t = 0.096 s, above its upper limit of 0.3 m",
    ]
    out.unlink()
    done = run(path, "--controls", "--rate", 125, "-o", out, "--strict", *slow)
    assert "--strict makes warnings errors" in str(done.exception) and not out.exists()
    done = run(path, "--controls", "--rate", 125, "-o", out, "--strict", "--max-rate", "aim=200", "--limit", "aim=-1:1")
    assert done.exit_code == 0 and out.exists()


def test_what_does_not_fit_is_refused(path, tmp_path):
    out = tmp_path / "controls.csv"
    cases = {
        ("--rate", "0"): "the rate does not fit",
        ("--rate", "125", "--signal", "push"): "there is no such signal",
        ("--rate", "125", "--limit", "push=0:1"): "a limit is of no signal",
        ("--rate", "125", "--limit", "aim=1"): "a limit needs numbers",
        ("--rate", "125", "--limit", "aim=1:0"): "below the upper one",
        ("--rate", "125", "--max-rate", "aim"): "no limit of a signal",
        ("--rate", "125", "--max-rate", "aim=-1"): "above 0",
    }
    for arguments, message in cases.items():
        done = run(path, "--controls", "-o", out, *arguments)
        assert done.exit_code != 0 and isinstance(done.exception, SystemExit | add.InputError), arguments
        assert message in str(done.exception) + done.output, arguments
        assert not out.exists()
    assert run(path, "--rate", "125", "-o", out).exit_code == 2  # of what?
    (tmp_path / "empty").mkdir()
    done = run(tmp_path / "empty", "--controls", "--rate", 125, "-o", out)
    assert "holds no run" in str(done.exception) + done.output
    done = run(tmp_path / "nothing", "--controls", "--rate", 125, "-o", out)
    assert "nothing: is not there (expected a scene file (JSON) or a run folder)" in str(done.exception) + done.output


def test_fitted_numbers_of_a_run_are_exported(path, tmp_path):
    folder = tmp_path / "run"
    done = CliRunner().invoke(cli, ["optimize", str(path), "-o", str(folder), "-q"])
    assert done.exit_code == 0, done.output
    out = tmp_path / "found.csv"
    assert run(folder, "--controls", "--rate", 50, "--signal", "aim", "-o", out).exit_code == 0
    head, numbers = table(out)
    assert head == ["time_s", "aim [rad]"] and np.abs(numbers[:, 1]).max() < 1e-4


def test_controls_are_those_of_an_experiment(path, tmp_path, caplog):
    """Numbers that a fit found for one take alone are its overrides; the scene itself has the start of all."""
    out, numbers = tmp_path / "found.csv", {}
    ends = {"a": 1.0, "b": 2.0}
    own = [{"name": n, "overrides": {"signals.lift.values": [[0, 0, 0], [0, 0, z]]}} for n, z in ends.items()]
    path.write_text(json.dumps(SCENE | {"experiments": own}))
    asked = ("--controls", "--rate", 50, "-o", out, "--force")
    failed = run(path, *asked).exception
    assert str(failed) == "--experiment: the experiments have controls of their own (expected one of a, b)"
    for name in "ab":
        assert run(path, *asked, "--experiment", name).exit_code == 0
        numbers[name] = table(out)[1][-1, 4]
    assert numbers["b"] == pytest.approx(2.0 * numbers["a"]) and numbers["a"] > 0.0
    assert "no such experiment (found c; expected a, b)" in str(run(path, *asked, "--experiment", "c").exception)
    path.write_text(json.dumps(SCENE | {"experiments": own[1:]}))
    assert run(path, *asked).exit_code == 0 and table(out)[1][-1, 4] == numbers["b"]
    path.write_text(json.dumps(SCENE))
    assert "no such experiment (found a" in str(run(path, *asked, "--experiment", "a").exception)


def test_motions_are_those_of_an_experiment(path, tmp_path, caplog, monkeypatch):
    folder, out = tmp_path / "run", tmp_path / "markers.csv"
    own = [{"name": "a"}, {"name": "b", "overrides": {"bodies.arm.position": [0, 0, 1]}}]
    changes = {"couplings": {}, "parameters": [{"path": "bodies.arm.mass"}], "objective": SCENE["objective"][1:]}
    changes["markers"] = SCENE["markers"] | {"nose": {"body": "arm", "direction": [1, 0, 0]}}
    path.write_text(json.dumps(SCENE | changes | {"experiments": own}))
    done = CliRunner().invoke(cli, ["optimize", str(path), "-o", str(folder), "-q"])
    assert done.exit_code == 0, done.output
    heights = {}
    for name in ("a", "b", None):
        caplog.clear()
        done = run(folder, "--markers", "-o", out, "--force", *(("--experiment", name) if name else ()))
        assert done.exit_code == 0, done.output
        head, numbers = table(out)
        assert head == ["time_s", "tip_x_m", "tip_y_m", "tip_z_m"]
        assert ("left out, since directions are no points: nose" in done.output) == (name != "b")
        heights[name] = numbers[0, 3]
        assert ("this is the motion of experiment 'a': --experiment for b" in caplog.text) == (name is None)
    assert heights["a"] == heights[None] == heights["b"] - 1.0
    asked = ("--markers", "-o", out, "--force", "--experiment")
    assert "no such experiment (found c" in str(run(folder, *asked, "c").exception)
    assert "holds no experiments" in str(run(folder / "trajectory_b.h5", *asked, "b").exception)
    # `add view` chooses among them in the same way, also among the starts that a scene has.
    seen = []
    monkeypatch.setattr(
        "add.view.screenshot", lambda data, file, **_: seen.append(float(data.pose(data.solids[0], 0)[1][2])) or file
    )
    for source in (folder, path):
        for name in ("a", "b", None):
            caplog.clear()
            choice = ("--experiment", name) if name else ()
            done = CliRunner().invoke(cli, ["view", str(source), "--screenshot", "x.png", *choice])
            assert done.exit_code == 0, done.output
            unsaid = "--experiment for b" if source == folder else "what experiments override: 'b'"
            assert (unsaid in caplog.text + done.output) == (name is None)
    assert seen == [0.0, 1.0, 0.0] * 2
    done = CliRunner().invoke(cli, ["view", str(path), "--screenshot", "x.png", "--experiment", "c"])
    assert "no such experiment (found c" in str(done.exception)


def test_a_file_that_is_there_stays_without_force(path, tmp_path):
    out = tmp_path / "controls.csv"
    out.write_text("somebody's")
    done = run(path, "--controls", "--rate", 125, "-o", out)
    assert "is already there" in str(done.exception) and "--force" in str(done.exception)
    assert out.read_text() == "somebody's"
    assert run(path, "--controls", "--rate", 125, "-o", out, "--force").exit_code == 0
    assert table(out)[0][0] == "time_s"
    # Of a motion, too, and of the folder of OBJ files.
    (tmp_path / "run.h5").touch()
    (tmp_path / "moments").mkdir()
    for kind, name in (("--markers", "controls.csv"), ("--surfaces", "moments.obj")):
        done = run(tmp_path / "run.h5", kind, "-o", tmp_path / name)
        assert "is already there" in str(done.exception), name


def test_vectors_and_scalars(path):
    built = add.load_scene(path).build()
    assert [s.name for s in sampled_controls(built, 10.0, ("lift",))] == ["lift.x", "lift.y", "lift.z"]


def test_a_bag_of_ros_2_has_controls_joint_states_and_poses(tmp_path):
    """Read by the reader of the package mcap-ros2-support, and back by `read_take`."""
    ros = pytest.importorskip(
        "mcap_ros2.reader", reason="mcap-ros2-support is not installed: pip install 'add-sim[ros]'"
    )
    urdf = tmp_path / "arm.urdf"
    inertia = '<inertia ixx="1e-3" ixy="0" ixz="0" iyy="2e-3" iyz="0" izz="1e-3"/>'
    link = f'<inertial><origin xyz="0 0 -0.1"/><mass value="0.5"/>{inertia}</inertial>'
    link += '<collision><geometry><sphere radius="0.02"/></geometry></collision>'
    chain = [("shoulder", "base", "upper"), ("elbow", "upper", "fore"), ("wrist", "fore", "hand")]
    urdf.write_text(
        '<robot name="arm"><link name="base"/>'
        + "".join(f'<link name="{child}">{link}</link>' for _, _, child in chain)
        + "".join(f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
                  '<origin xyz="0 0 -0.2"/><axis xyz="0 1 0"/></joint>' for name, parent, child in chain)
        + "</robot>"
    )  # fmt: skip
    scene = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 10, "integrator": "bdf1"},
        "bodies": {"arm": {
            "type": "articulated", "model": str(urdf),
            "joints": {"wrist": {"motion": {"signal": "turn"}}},
            "drives": {
                "servo": {"type": "position", "joint": "shoulder", "input": {"signal": "aim"}, "stiffness": 3.0,
                          "damping": 0.1},
                "motor": {"joint": "elbow", "input": {"signal": "pull"}, "limit": 0.3},
            },
        }},
        "signals": {"aim": {"type": "table", "times": [0, 0.1], "values": [0.2, 0.5]},
                    "pull": {"type": "table", "times": [0, 0.1], "values": [0.1, 0.5]},
                    "turn": {"type": "table", "times": [0, 0.1], "values": [0.0, 0.2]}},
    }  # fmt: skip
    path, out = tmp_path / "arm.json", tmp_path / "arm.mcap"
    path.write_text(json.dumps(scene))
    done = run(path, "--controls", "--rate", 100, "-o", out)
    assert done.exit_code == 0, done.output
    seen = {}
    for found in ros.read_ros2_messages(str(out)):
        seen.setdefault(found.channel.topic, []).append((found.log_time_ns, found.ros_msg))
    assert set(seen) == {"/joint_states", "/tf", "/signals/aim", "/signals/pull", "/signals/turn"}
    assert [time for time, _ in seen["/joint_states"]] == [k * 10_000_000 for k in range(11)]
    assert [message.data for _, message in seen["/signals/aim"]] == pytest.approx(np.linspace(0.2, 0.5, 11))
    built = add.load_scene(path).build()
    motion = built.run()
    states = [message for _, message in seen["/joint_states"]]
    assert states[0].name == ["shoulder", "elbow", "wrist"]
    q, v, f = (np.array([getattr(state, key) for state in states]) for key in ("position", "velocity", "effort"))
    assert q == pytest.approx(motion.q, abs=1e-12) and v == pytest.approx(motion.v, abs=1e-12)
    t = 0.01 * np.arange(11)
    assert f[:, 0] == pytest.approx(3.0 * (0.2 + 3.0 * t - q[:, 0]) - 0.1 * v[:, 0], abs=1e-12)
    assert f[:, 1] == pytest.approx(np.minimum(0.1 + 4.0 * t, 0.3), abs=1e-12)
    # With the torques that they say and the wrist as given, the equations of motion hold: r = M a + bias - f.
    for k, record in enumerate(motion.records, start=1):
        torque = built.simulation.dynamics(motion.q[k], motion.v[k], record.kin.a, t=t[k]).residual
        assert torque == pytest.approx([0.0, 0.0, f[k, 2]], abs=1e-9)
    take = read_take(out)
    hand = take.bodies["arm/hand"]
    angles = np.cumsum(q[-1])
    place = -0.2 * np.array([np.sin([0, *angles[:2]]).sum(), 0, np.cos([0, *angles[:2]]).sum()])
    assert hand.position[-1] == pytest.approx(place, abs=1e-12)
    assert take.angles.angles == pytest.approx(q) and {s.name for s in take.signals} >= {"signals/aim", "wrist.effort"}


def test_servos_keep_to_their_joints(tmp_path, caplog):
    """Ranges and rates of a robot's file are the limits of what its position servos are sent; others may be given."""
    inertial = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    (tmp_path / "arm.urdf").write_text(
        f'<robot name="arm"><link name="base"/><link name="arm">{inertial}</link><joint name="hinge" type="revolute">'
        '<parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>'
        '<limit lower="-1" upper="0.5" effort="9" velocity="3"/></joint></robot>'
    )
    drive = {"joint": "hinge", "type": "position", "input": {"signal": "aim"}, "stiffness": 9}
    scene = {
        "schema": "add-scene/1", "time": {"dt": 0.01, "steps": 20},
        "bodies": {"arm": {"type": "articulated", "model": "arm.urdf", "drives": {"motor": drive}}},
        "signals": {"aim": {"type": "table", "times": [0, 0.1, 0.2], "values": [0, 0.4, 0.6]}},
    }  # fmt: skip
    (tmp_path / "arm.json").write_text(json.dumps(scene))
    wanted = (tmp_path / "arm.json", "--controls", "--rate", 50, "-o", tmp_path / "aim.csv")
    assert run(*wanted).exit_code == 0
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "'aim' is 0.6 rad at t = 0.2 s, above its upper limit of 0.5 rad",
        "'aim' changes by 4 rad/s at t = 0 s, faster than 3 rad/s",
    ]
    assert run(*wanted, "--force", "--strict", "--limit", "aim=-1:1", "--max-rate", "aim=5").exit_code == 0
