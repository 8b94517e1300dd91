"""`add new`: templates are scenes that pass the checks, run and have confirmed gradients; answers are checked."""

import json
from functools import cache
from pathlib import Path

import meshio
import numpy as np
import pytest
from click.testing import CliRunner

from add.commands.check_gradient import check_gradients
from add.commands.cli import cli
from add.commands.templates import TEMPLATES
from add.equations.kinematics import Kinematics
from add.errors import InputError
from add.scene import apply_overrides, load_scene
from add.scene.build.default_contact import said_numbers
from add.scene.build.doubts import doubts
from add.scene.build.write_back import with_values
from add.scene.spec.roles import schema_text

ARM = """<robot name="arm"><link name="base"/><link name="upper">{0}</link><link name="fore">{0}</link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>{1}</joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0 0 -0.3"/>{1}</joint>
</robot>""".format(
    '<inertial><origin xyz="0 0 -0.15"/><mass value="0.5"/><inertia ixx="4e-3" ixy="0" ixz="0" iyy="4e-3" iyz="0"'
    ' izz="1e-4"/></inertial>',
    '<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="9" velocity="9"/>',
)
SAID = {"robot": ("--set", "model=arm.urdf", "--set", "target=-0.3,0,-0.3")}
#: What makes a gradient check take seconds, and lets things touch in it.
QUICK = {
    "two-bodies": {"bodies.left.position.0": -0.0505, "bodies.right.position.0": 0.0505,
                   "bodies.left.velocity.0": 2.0, "time.dt": 0.001,
                   "bodies.left.mesh.edge": 0.05, "bodies.right.mesh.edge": 0.045},
    "throw": {"bodies.ball.position.2": 0.047, "bodies.ball.velocity": [0.8, 0, -0.5], "bodies.ball.mesh.edge": 0.05},
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def schema_made_once():
    """Each `add new` makes the schema anew, most of its time; it is the same text each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("add.scene.spec.roles.schema_text", cache(schema_text))
        yield


def run(*arguments, text=None):
    return CliRunner().invoke(cli, ["new", *map(str, arguments)], input=text)


def new(name, folder, monkeypatch, *arguments):
    monkeypatch.chdir(folder)
    (folder / "arm.urdf").write_text(ARM)
    (folder / "scenes").mkdir(exist_ok=True)
    asked = run(name, "--defaults", "-o", f"scenes/{name}.json", *SAID.get(name, ()), *arguments)
    assert asked.exit_code == 0, asked.output
    return folder / "scenes" / f"{name}.json"


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_are_scenes(name, tmp_path, monkeypatch):
    """They load from another folder than that of the command, build, and say where their schema is."""
    path = new(name, tmp_path, monkeypatch)
    scene = load_scene(path)
    built = scene.build()
    assert scene.name and scene.description and scene.check
    if scene.objective:
        scene.inverse_problem()
    assert built.simulation.n_steps > 10
    schema = path.parent / json.loads(path.read_text())["$schema"]
    assert json.loads(schema.read_text())["$id"] == "urn:add-scene:1"


def test_a_robot_that_moves_freely_is_not_welded(tmp_path, monkeypatch):
    """The base is what the file says, where the file puts it, and it comes to rest on the floor whatever it weighs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "brick.xml").write_text(
        '<mujoco><worldbody><body name="trunk" pos="0 0 0.3"><freejoint/>'
        '<geom type="box" size="0.1 0.1 0.1" mass="200"/></body></worldbody></mujoco>'
    )
    assert run("robot", "--defaults", "--set", "model=brick.xml", "-o", "brick.json").exit_code == 0
    simulation = load_scene(tmp_path / "brick.json").build().simulation
    state, _ = simulation.begin(simulation.assembler(), simulation.theta)
    assert simulation.system.n == 6 and state.q[0][2] == pytest.approx(0.3)
    end = simulation.run()
    assert end.q[-1][2] == pytest.approx(0.1, rel=0.01) and np.abs(end.v[-1]).max() < 1e-3
    welded = run("robot", "--defaults", "--set", "model=brick.xml", "--set", "base=fixed", "-o", "fixed.json")
    assert welded.exit_code != 0 and "nothing moves in this robot" in str(welded.exception)


@pytest.mark.slow
@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_run(name, tmp_path, monkeypatch):
    run = load_scene(new(name, tmp_path, monkeypatch)).build().run()
    assert np.isfinite(run.q).all()
    assert max(record.report.attempt for record in run.records) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TEMPLATES if name != "specimen"])
def test_gradients_of_templates(name, tmp_path, monkeypatch):
    scene = apply_overrides(load_scene(new(name, tmp_path, monkeypatch)), QUICK.get(name, {}))
    (found,) = check_gradients(scene, n_steps=9)
    assert found.passed
    if name in QUICK:
        assert found.decisions["touching"] > 0


def test_a_recording_makes_a_fit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{0.01 * k},{0.1},{0.015},{0.03 - 1e-4 * k}\n" for k in range(20))
    (tmp_path / "take.csv").write_text("time_s,tip_x_m,tip_y_m,tip_z_m\n" + rows)
    path = new("specimen", tmp_path, monkeypatch, "--set", "recording=take.csv", "--set", "markers=tip=0.1,0.015,0.03")
    problem = load_scene(path).inverse_problem()
    assert problem.labels() == ["bodies.specimen.material.young", "bodies.specimen.material.viscosity"]
    assert json.loads(path.read_text())["recording"]["file"] == "../take.csv"
    asked = run("specimen", "--defaults", "--set", "recording=take.csv", "--set", "markers=Tip=0,0,0", "-o", "b.json")
    assert isinstance(asked.exception, InputError) and "nearest 'tip'" in str(asked.exception)
    assert not (tmp_path / "b.json").exists()


def test_a_specimen_of_its_own_shape(tmp_path, monkeypatch):
    """A mesh in its own unit and frame, held at an end of it, registered by markers that stay where they are."""
    monkeypatch.chdir(tmp_path)
    mesh = Path(__file__).parents[3] / "data/meshes/ball_coarse.msh"
    radius = np.abs(meshio.read(mesh).points).max()
    fixed = {"a": (0.0, 0.0, 0.1), "b": (0.03, 0.0, 0.1), "tip": (0.0, 0.0, -0.05)}
    rows = [",".join(map(str, [0.01 * k, *(x for place in fixed.values() for x in place)])) for k in range(20)]
    head = ",".join(f"{name}_{axis}_m" for name in fixed for axis in "xyz")
    (tmp_path / "take.csv").write_text("\n".join([f"time_s,{head}", *rows]) + "\n")
    said = [f"surface={mesh}", f"scale={0.05 / radius}", "clamp=z>0.04", "up=0,2,0", "markers=tip=0,0,-0.05",
            "mount=a=0,0,0.1; b=0.03,0,0.1", "rest=0,0.05", "recording=take.csv", "release=0.06"]  # fmt: skip
    path = new("specimen", tmp_path, monkeypatch, *(part for text in said for part in ("--set", text)))
    scene = load_scene(path)
    assert scene.gravity == (0.0, -9.81, 0.0) and set(scene.recording.register_.markers) == set(fixed)
    assert scene.inverse_problem().labels()[-1] == "recording.time_offset"
    scene.build()  # a box that holds no node would be an error
    for left, place in ((said[:2], "markers"), ([*said[:2], said[4]], "clamp")):
        asked = run("specimen", "--defaults", "-o", "b.json", *(part for text in left for part in ("--set", text)))
        assert isinstance(asked.exception, InputError) and asked.exception.place == place


def test_a_robot_that_was_recorded(tmp_path, monkeypatch):
    """Markers on its links make a fit of every joint's damping and start; servos are as stiff as joints are strong."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{0.01 * k},0,0,{-0.6 + 1e-3 * k}\n" for k in range(20))
    (tmp_path / "take.csv").write_text("time_s,tip_x_m,tip_y_m,tip_z_m\n" + rows)
    (tmp_path / "arm.urdf").write_text(ARM)
    said = ["robot", "--defaults", "-o", "a.json", "--set", "model=arm.urdf", "--set", "recording=take.csv"]
    assert run(*said, "--set", "markers=tip=fore:0,0,-0.3", "--set", "duration=0.15").exit_code == 0
    problem = load_scene(tmp_path / "a.json").inverse_problem()
    expected = [f"bodies.robot.joints.{joint}.{key}" for key in ("damping", "value") for joint in ("shoulder", "elbow")]
    assert problem.labels() == expected
    assert isinstance(run(*said, "--force").exception, InputError)
    drives = json.loads(new("robot", tmp_path, monkeypatch).read_text())["bodies"]["robot"]["drives"]
    assert [(drive["stiffness"], drive["limit"]) for drive in drives.values()] == [(90.0, "file")] * 2


def test_a_reach_that_starts_at_a_stop(tmp_path, monkeypatch):
    """Commands count by the radian wherever a joint starts, and stay within its stops; a start may be given."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(ARM.replace('lower="-3"', 'lower="0.08726646"'))
    said = ["robot", "--defaults", "-o", "a.json", "--force", "--set", "model=arm.urdf", "--set", "target=-0.3,0,-0.3"]
    for more, starts in (((), [0.08726646, 0.08726646]), (("--set", "start=0.5,0.7"), [0.5, 0.7])):
        assert run(*said, *more).exit_code == 0
        scene = load_scene(tmp_path / "a.json")
        assert [joint.value for joint in scene.bodies["robot"].joints.values()] == starts
        assert [signal.values[0] for signal in scene.signals.values()] == starts
        assert [(item.scale, item.bounds) for item in scene.parameters] == [(1.0, (0.08726646, 3.0))] * 2
        assert scene.time.duration == 0.6  # 4 rad at 9 rad/s take less
    (tmp_path / "arm.urdf").write_text(ARM.replace('velocity="9"', 'velocity="2"'))
    assert run(*said).exit_code == 0 and load_scene(tmp_path / "a.json").time.duration == 2.0
    assert run(*said, "--set", "duration=0.5").exit_code == 0 and load_scene(tmp_path / "a.json").time.duration == 0.5


WORLD = """<mujoco><option gravity="0 0 -1.62"/><worldbody>
<geom name="ground" type="plane" size="5 5 1" {0}/><geom name="stair" type="box" pos="1 0 0.1" size="0.3 1 0.1" {0}/>
<body name="trunk" pos="0 0 0.5">{1}<geom type="box" size="0.2 0.1 0.05" {0}/><body name="leg" pos="0 0 -0.1">
<joint name="hip" axis="0 1 0"/><geom name="foot" type="sphere" size="0.05" {2}/></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("joint", ["<freejoint/>", ""])
def test_a_robot_stands_in_the_world_of_its_file(joint, tmp_path, monkeypatch):
    """Floor, stairs, friction and gravity of a file are the scene's; it gets a floor only where the file has none."""
    monkeypatch.chdir(tmp_path)

    def made(text):
        (tmp_path / "r.xml").write_text(text)
        asked = run("robot", "--defaults", "-o", "a.json", "--force", "--set", "model=r.xml")
        assert asked.exit_code == 0, asked.output
        return load_scene(tmp_path / "a.json")

    of_file = made(WORLD.format('friction="0.9"', joint, 'friction="0.9"'))
    assert {"robot ground", "robot stair"} <= set(of_file.obstacles) and not doubts(of_file.build())
    assert of_file.gravity == (0.0, 0.0, -1.62) and of_file.contact.friction == 0.9
    several = made(WORLD.format('friction="0.9"', joint, 'friction="0.4"'))
    assert several.contact.friction == 0.6
    bare = made(WORLD.format('contype="0" conaffinity="0"', joint, ""))
    assert list(bare.obstacles) == (["floor"] if joint else [])
    pinched = made(WORLD.format("", joint, "").replace('axis="0 1 0"', 'axis="0 1 0" limited="true" range="10 90"'))
    assert pinched.bodies["robot"].joints["hip"].value == pytest.approx(np.radians(10.0))  # at its stop, not beyond it
    alone = '<body pos="0 0 1"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02"/></body>'
    swings = made(f"<mujoco><worldbody>{alone}</worldbody></mujoco>")
    assert not doubts(swings.build()) and not said_numbers(swings, swings.build())  # of contact that it cannot have


def test_what_looks_mistaken_in_a_recording_is_masked(tmp_path, monkeypatch):
    """A ghost and two exchanged markers are left out of a scene from a recording, on its clock, and said."""
    monkeypatch.chdir(tmp_path)
    t = 0.01 * np.arange(60)
    a, b, c = (
        np.stack([0.1 + 0 * t, y + 0 * t, z + 0.01 * np.sin(8 * t)], axis=1) for y, z in ((0, 0.03), (0.03, 0), (0, 0))
    )
    a[40:46], b[40:46] = b[40:46].copy(), a[40:46].copy()
    c[20] += 0.4
    rows = [",".join(map(str, row)) for row in np.column_stack([t, a, b, c])]
    names = ",".join(f"{name}_{axis}_m" for name in "abc" for axis in "xyz")
    (tmp_path / "take.csv").write_text("\n".join([f"time_s,{names}", *rows]))
    said = ["--set", "markers=a=0.1,0,0.03; b=0.1,0.03,0; c=0.1,0,0", "--set", "recording=take.csv"]
    asked = run("specimen", "--defaults", "-o", "s.json", *said, "--set", "release=0.1", "--set", "duration=0.4")
    assert asked.exit_code == 0, asked.output
    mask = json.loads((tmp_path / "s.json").read_text())["recording"]["mask"]
    assert [(item["marker"], item["from"], item["to"]) for item in mask] == [
        ("c", 0.0995, 0.1005), ("a", 0.2995, 0.3505), ("b", 0.2995, 0.3505),
    ]  # fmt: skip
    assert "recording.mask): c from 0.0995 to 0.1005 s" in asked.output and not doubts(load_scene("s.json").build())


def test_fingers_hold_still_in_a_reach(tmp_path, monkeypatch):
    """Joints that do not lead to the hand have servos and are not looked for; a base that floats needs all of them."""
    monkeypatch.chdir(tmp_path)
    finger = '<joint name="finger" type="revolute"><parent link="fore"/><child link="tip"/>'
    limit = '<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="9" velocity="9"/></joint>'
    mass = '<inertial><mass value="0.1"/><inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial>'
    tool = '<link name="tool"/><joint name="end" type="fixed"><parent link="fore"/><child link="tool"/></joint>'
    (tmp_path / "gripper.urdf").write_text(
        ARM.replace("</robot>", f'<link name="tip">{mass}</link>{finger}{limit}{tool}</robot>').replace(
            '<link name="base"/>', f'<link name="base">{mass}</link>'
        )
    )
    said = ["robot", "--defaults", "-o", "a.json", "--force", "--set", "model=gripper.urdf", "--set", "target=0,0,-0.3"]

    def looked_for(*more):
        asked = run(*said, *more)
        assert asked.exit_code == 0, asked.output
        scene = json.loads((tmp_path / "a.json").read_text())
        assert list(scene["bodies"]["robot"]["drives"]) == ["shoulder", "elbow", "finger"]
        return [item["path"].split(".")[1] for item in scene["parameters"]]

    assert looked_for("--set", "hand=fore") == ["shoulder", "elbow"]
    assert looked_for("--set", "hand=tool") == ["shoulder", "elbow"]  # a fixed joint merged it into the fore
    unmoved = run(*said, "--set", "hand=base")
    assert isinstance(unmoved.exception, InputError) and unmoved.exception.expected == "upper, fore, tip"
    assert looked_for() == ["shoulder", "elbow", "finger"]
    assert looked_for("--set", "hand=fore", "--set", "base=free") == ["shoulder", "elbow", "finger"]


def test_by_asking(tmp_path, monkeypatch):
    """An answer that is none is asked for again; an empty one is the default."""
    monkeypatch.chdir(tmp_path)
    asked = run(text="throw\n-1\n0.04\n\n\n\n\n\n")
    assert asked.exit_code == 0, asked.output
    assert "radius: this is no answer" in asked.stderr
    scene = json.loads((tmp_path / "throw.json").read_text())
    assert scene["bodies"]["ball"]["mesh"]["radius"] == 0.04
    assert scene["contact"]["friction"] == 0.4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("cube", "--defaults"), "no such template"),
        (("throw", "--defaults", "--set", "radius=x"), "radius: this is no answer"),
        (("throw", "--defaults", "--set", "size=1"), "no such question"),
        (("throw", "--defaults", "--set", "radius"), "NAME=VALUE"),
        (("robot", "--defaults"), "model: this is no answer"),
        (("robot", "--defaults", "--set", "model=none.urdf"), "none.urdf"),
        (("specimen", "--defaults", "--set", "size=1,2"), "three numbers"),
        (("specimen", "--defaults", "--set", "poisson=0.5"), "below 0.5"),
        (("specimen", "--defaults", "--set", "recording=none.c3d"), "none.c3d"),
        (("throw", "--defaults", "-o", "none/a.json"), "no such folder"),
        (("specimen", "--defaults", "--set", "clamp=z>0.1"), "clamp: this needs more"),
        (("specimen", "--defaults", "--set", "clamp=w>0.1"), "an axis and an end"),
        (("specimen", "--defaults", "--set", "mount=a=0,0,0"), "mount: this needs more"),
        (("specimen", "--defaults", "--set", "rest=2,1"), "two times"),
        (("specimen", "--defaults", "--set", "up=0,0,0"), "a direction"),
        (("robot", "--defaults", "--set", "model=a.urdf", "--set", "markers=a=1,2"), "three numbers"),
    ],
)
def test_refusals(tmp_path, monkeypatch, arguments, said):
    """An error, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    asked = run(*arguments)
    assert isinstance(asked.exception, InputError) and said in str(asked.exception)
    assert not list(tmp_path.iterdir())


def test_nothing_is_replaced(tmp_path, monkeypatch):
    path = new("throw", tmp_path, monkeypatch)
    asked = run("throw", "--defaults", "-o", path)
    assert isinstance(asked.exception, InputError) and "already there" in str(asked.exception)


def test_list():
    asked = run("--list", "--json")
    assert set(json.loads(asked.output)) == set(TEMPLATES)
    assert all(name in run("--help").output for name in TEMPLATES)


def test_a_chain_starts_as_its_recording(tmp_path, monkeypatch):
    """Angles from the vertical, of three arms that swing: where they start and how fast, to the noise of the file."""
    monkeypatch.chdir(tmp_path)
    t = np.arange(0.0, 0.5, 0.01)
    angles = np.stack([2.0 + 3.0 * t, 3.5 - 2.0 * t + t * t, 4.0 + t], axis=1)
    rows = [",".join(f"{value:.9f}" for value in (time, *row)) for time, row in zip(t, angles, strict=True)]
    (tmp_path / "swing.csv").write_text("\n".join(["time_s,a_rad,b_rad,c_rad", *rows]) + "\n")
    said = [
        "recording=swing.csv",
        "lengths=0.2,0.15,0.1",
        "masses=0.1,0.1,0.05",
        "zero=up",
        "duration=0.3",
        "release=0.1",
    ]
    asked = run("chain", "--defaults", "-o", "chain.json", *(part for text in said for part in ("--set", text)))
    assert asked.exit_code == 0, asked.output
    scene = load_scene(tmp_path / "chain.json")
    joints = scene.bodies["chain"].joints
    values, rates = ([getattr(joint, key) for joint in joints.values()] for key in ("value", "rate"))
    assert values == pytest.approx([2.3 + np.pi, 3.31 - 2.3, 4.1 - 3.31], abs=1e-5)
    assert rates == pytest.approx([3.0, -1.8 - 3.0, 1.0 + 1.8], abs=1e-4)
    problem = scene.inverse_problem()
    inertias = ["inertia" in label for label in problem.labels()]
    for bound in problem.bounds:  # whatever a fit finds is the inertia of a body, so that its scene runs
        with_values(scene, problem, np.where(inertias, bound, problem.x0))
    for text in ("zero=up", "angles=a,b"):
        asked = run("chain", "--defaults", "-o", "other.json", "--set", text)
        assert isinstance(asked.exception, InputError) and asked.exception.place == text.partition("=")[0]
    built = scene.build()
    state, _ = built.simulation.begin(built.simulation.assembler(), built.theta)
    kin = Kinematics(state.q[0], state.v[0], state.v[0], 0.0, 0)
    seen = built.markers.points(kin, built.theta)[0]
    expected = [[-np.sin(angle), 0.0, np.cos(angle)] for angle in (2.3, 3.31, 4.1)]  # from upright, about -y
    assert seen == pytest.approx(np.array(expected), abs=1e-5)
    few = run("chain", "--defaults", "-o", "few.json", "--set", "recording=swing.csv")
    assert isinstance(few.exception, InputError) and "one angle an arm" in str(few.exception)


def test_angles_that_jump_by_a_turn_repeat_or_are_too_few(tmp_path, monkeypatch):
    """A jump is no speed, one angle is not that of two arms, and two frames tell no rate."""
    monkeypatch.chdir(tmp_path)
    t = 0.01 * np.arange(6)
    rows = [f"{time:.2f},{(3.13 + time + np.pi) % (2 * np.pi) - np.pi:.9f},0.1" for time in t]
    assert "-" not in rows[0] and "-" in rows[2]
    said = ["chain", "--defaults", "--force", "-o", "a.json", "--set", "recording=a.csv"]
    (tmp_path / "a.csv").write_text("\n".join(["time_s,a_rad,b_rad", *rows]) + "\n")
    assert run(*said).exit_code == 0
    joint = load_scene(tmp_path / "a.json").bodies["chain"].joints["joint1"]
    assert (joint.value, joint.rate) == pytest.approx((3.13, 1.0), abs=1e-5)
    twice = run(*said, "--set", "angles=a,a")
    assert isinstance(twice.exception, InputError) and "one angle an arm" in str(twice.exception)
    (tmp_path / "a.csv").write_text("\n".join(["time_s,a_rad,b_rad", *rows[:2]]) + "\n")
    few = run(*said)
    assert isinstance(few.exception, InputError) and "too few frames" in str(few.exception)


def test_a_toss_of_a_surface(tmp_path, monkeypatch):
    import trimesh

    monkeypatch.chdir(tmp_path)
    trimesh.creation.icosphere(subdivisions=1, radius=0.05).export("ball.stl")
    asked = run("toss", "--defaults", "-o", "toss.json", "--set", "surface=ball.stl")
    assert asked.exit_code == 0, asked.output
    assert load_scene(tmp_path / "toss.json").build().run(n_steps=2).n_steps == 2


def test_a_toss_starts_as_its_recording(tmp_path, monkeypatch):
    """Markers of a body in flight: velocity and place of the flight."""
    monkeypatch.chdir(tmp_path)
    places = np.array([[0.05, 0.05, 0.05], [-0.05, 0.05, 0.05], [0.05, -0.05, 0.05]])
    t = np.arange(0.0, 0.2, 0.01)
    centre = np.stack([0.5 * t, 0 * t, 0.5 + t - 0.5 * 9.81 * t**2], axis=1)
    x = centre[:, None] + places
    names = ["a", "b", "c"]
    head = ",".join(["time_s", *(f"{name}_{axis}_m" for name in names for axis in "xyz")])
    rows = [",".join(f"{value:.9f}" for value in (time, *row.ravel())) for time, row in zip(t, x, strict=True)]
    (tmp_path / "toss.csv").write_text("\n".join([head, *rows]) + "\n")
    marks = "; ".join(f"{name}={','.join(map(str, place))}" for name, place in zip(names, places, strict=True))
    said = ["recording=toss.csv", f"markers={marks}", "duration=0.15"]
    asked = run("toss", "--defaults", "-o", "toss.json", *(part for text in said for part in ("--set", text)))
    assert asked.exit_code == 0, asked.output
    body = load_scene(tmp_path / "toss.json").bodies["thing"]
    assert body.velocity == pytest.approx([0.5, 0, 1.0], abs=1e-3) and body.position[2] == pytest.approx(0.5, abs=1e-3)
