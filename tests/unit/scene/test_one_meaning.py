"""A number means the same as a parameter, in the file, and as an override: defaults that depend on it follow it."""

import numpy as np
import pytest

from add.errors import InputError
from add.scene import apply_overrides, scene_from_dict
from add.scene.build.write_back import with_values
from add.scene.read.recorded_starts import numbers_of

BOX = {"shape": "box", "size": [0.1, 0.1, 0.1]}
TILTED = [0.9689124217106447, 0.0, 0.24740395925452294, 0.0]  # 0.5 rad about y
JOINT = {"stiffness": 1e3, "angular_stiffness": 10.0, "a": {"body": "a", "at": [0.05, 0, 0]}, "b": {"body": "b"}}


def scene(couplings, parameters=(), **more):
    bodies = {
        name: {"type": "rigid", "mass": 1.0, "geometry": BOX, "position": position, "orientation": TILTED}
        for name, position in (("a", [0.0, 0, 0]), ("b", [0.2, 0.1, 0]))
    }
    bodies["soft"] = {
        "type": "soft",
        "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]},
        "material": {"model": "neo-hookean", "young": 1e4, "poisson": 0.3, "density": 1e3},
        "anchors": [{"at": [0, 0, 0]}],
        "position": [0.5, 0, 0],
    }
    return scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.01, "duration": 0.05},
            "bodies": bodies,
            "couplings": couplings,
            "contact": {"stiffness": 1e3},
            "markers": {"m": {"body": "b", "point": [0, 0, 0]}},
            "objective": [{"type": "point", "marker": "m", "target": [0, 0, 0], "time": "end"}],
            "parameters": list(parameters),
            **more,
        }
    )


COUPLINGS = {
    "spring": {"type": "spring", "a": {"body": "a", "at": [0.05, 0, 0]}, "b": {"body": "b"}, "stiffness": 10.0},
    "length": {"type": "spring", "a": {"body": "a", "at": [0.05, 0, 0]}, "b": {"body": "b", "at": [0, 0.1, 0]},
               "stiffness": 10.0},
    "to world": {"type": "cable", "a": {"body": "a", "at": [0.05, 0, 0]}, "b": {"at": [0, 0, 1]}, "stiffness": 10.0},
    "ball": {"type": "ball", "a": {"at": [0, 0, 0.3]}, "b": {"body": "b"}, "stiffness": 1e3},
    "fixed": {"type": "fixed", **JOINT},
    "slider": {"type": "slider", "axis": [0, 1, 2], **JOINT},
    "hinge": {"type": "hinge", "axis": [0, 1, 2], "motor": {"angle": 0.1, "stiffness": 1.0}, **JOINT},
    "hinged start": {"type": "hinge", "axis": [0, 1, 2], "start": {"angle": 0.3, "rate": 1.0}, **JOINT},
    "attachment": {"type": "attachment", "nodes": "soft", "where": {"nodes": [0, 1]}, "body": "b", "stiffness": 1e2},
}  # fmt: skip
CHANGES = {
    "bodies.a.position": [0.03, -0.02, 0.01],
    "bodies.b.position": [0.25, 0.08, 0.02],
    "bodies.a.orientation": [0.9950041652780258, 0.09983341664682815, 0.0, 0.0],
    "bodies.b.orientation": [0.955336489125606, 0.0, 0.0, 0.29552020666133955],
    "bodies.soft.position": [0.55, 0.1, 0.0],
    "bodies.soft.orientation": [0.955336489125606, 0.0, 0.0, 0.29552020666133955],
}


@pytest.mark.parametrize("path", CHANGES)
@pytest.mark.parametrize("name", COUPLINGS)
def test_defaults_follow(name, path):
    """theta, and the initial state, from a changed number are those of the scene that has this number in its file."""
    before = scene({"c": COUPLINGS[name]})
    built = before.build()
    index, _ = built.numbers.resolve(path)
    s = built.numbers.values.copy()
    s[index] = numbers_of(path, CHANGES[path], None)
    theta = built.numbers.ties.forward(s)
    rebuilt = apply_overrides(before, {path: CHANGES[path]}).build()
    assert theta == pytest.approx(rebuilt.theta, rel=1e-12, abs=1e-14)
    for found, expected in zip(built.model.initial.evaluate(theta), rebuilt.model.initial.evaluate(rebuilt.theta),
                               strict=True):  # fmt: skip
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("path", ["couplings.c.axis", "markers.d.direction"])
@pytest.mark.parametrize("joint", ["hinge", "slider", "hinged start"])
def test_a_direction_has_two_numbers_and_stays_on_the_sphere(joint, path):
    markers = {"m": {"body": "b", "point": [0, 0, 0]}, "d": {"body": "b", "direction": [3.0, 0, 4.0]}}
    this = scene({"c": COUPLINGS[joint]}, [{"path": path}], markers=markers)
    problem = this.inverse_problem()
    assert problem.n == 2 and problem.units() == ["rad", "rad"] and problem.x0.tolist() == [0.0, 0.0]
    x = np.array([0.4, -0.9])
    layout = this.build().model.system.parameters
    theta = problem.theta(x, problem.experiments[0])
    block = path if path.startswith("markers") else f"{path}.a"
    turned = layout.view(theta, block)
    assert np.linalg.norm(turned) == pytest.approx(1.0, abs=1e-15)
    start = layout.view(this.build().theta, block)
    assert np.arccos(turned @ start) == pytest.approx(np.hypot(*x))
    again = with_values(this, problem, x)
    assert again.build().theta == pytest.approx(theta, abs=1e-14)


@pytest.mark.parametrize("path", ["joints.tip.orientation", "joints.root.orientation"])
def test_places_of_joints_are_written_as_in_the_file(path):
    """Orientations are quaternions there, rotation vectors among the numbers."""
    link = {"mass": 1.0, "shapes": [{"geometry": BOX}]}
    joints = {"root": {"orientation": TILTED}, "tip": {"parent": "root", "type": "ball", "orientation": TILTED}}
    tree = {"type": "articulated", "links": {"root": link, "tip": link}, "joints": joints}
    path = f"bodies.tree.{path}"
    markers = {"m": {"body": "tree/tip", "point": [0, 0, 0.1]}}
    objective = [{"type": "point", "marker": "m", "target": [0, 0, 0], "time": "end"}]
    this = scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.01, "steps": 2},
            "bodies": {"tree": tree},
            "markers": markers,
            "objective": objective,
            "parameters": [{"path": path}],
        }
    )
    problem = this.inverse_problem()
    x = problem.x0 + np.array([0.1, -0.2, 0.3])
    again = with_values(this, problem, x)
    assert again.build().theta == pytest.approx(problem.theta(x, problem.experiments[0]), abs=1e-12)


@pytest.mark.parametrize("length", [1e200, 1e-200, 1e300, 1e-300])
def test_directions_of_any_length_are_scaled(length):
    """A plane's normal of 1e200 once left no plane at all."""
    obstacles = {
        "floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, length]},
        "wall": {"shape": "plane", "point": [0, 0, 0], "normal": [0, length, length]},
    }
    hinge = COUPLINGS["hinge"] | {"axis": [0, length, 2.0 * length]}
    built = scene({"c": hinge}, obstacles=obstacles).build()
    floor, wall = built.model.obstacles
    assert np.array_equal(floor.rotation, np.eye(3))
    assert wall.rotation[:, 2] == pytest.approx(np.array([0, 1, 1]) / np.sqrt(2.0))
    axis = built.model.system.parameters.view(built.theta, "couplings.c.axis.a")
    assert axis == pytest.approx(np.array([0, 1, 2]) / np.sqrt(5.0))


def test_a_choice_of_nodes_cannot_follow_a_parameter():
    spring = {"type": "spring", "a": {"body": "a", "at": [0.45, 0, 0]}, "b": {"body": "soft"}, "stiffness": 10.0}
    orientation = {"bodies.a.orientation": [1, 0, 0, 0]}
    raw = apply_overrides(scene({}), orientation).raw | {"couplings": {"c": spring}}
    scene_from_dict(raw)
    with pytest.raises(InputError, match=r"the nodes of couplings.c.b are those where the other end starts"):
        scene_from_dict(raw | {"parameters": [{"path": "bodies.a.position"}]})


def test_a_prior_on_a_direction_is_refused():
    prior = {"type": "prior", "parameter": "couplings.c.axis", "mean": 0.0, "sigma": 1.0}
    with pytest.raises(InputError, match="count from the scene's direction"):
        scene({"c": COUPLINGS["hinge"]}, [{"path": "couplings.c.axis"}], objective=[prior])


def test_a_direction_in_a_phase_is_written_as_in_the_scene():
    phases = [{"name": "one", "overrides": {"couplings.c.axis": [0.0, 1.0, 0.0]}}, {"name": "two"}]
    this = scene({"c": COUPLINGS["slider"]}, [{"path": "bodies.b.velocity"}], optimizer={"phases": phases})
    problem = this.inverse_problem()
    override = problem.optimizer.phases[0].overrides[0]
    numbers = problem.experiments[0].numbers.copy()
    numbers[override.index] = override.values
    layout = this.build().model.system.parameters
    axis = layout.view(problem.experiments[0].ties.forward(numbers), "couplings.c.axis.a")
    assert axis == pytest.approx([0.0, 1.0, 0.0], abs=1e-15)


@pytest.mark.parametrize("offset", [0.0, 0.013, 0.029])
def test_a_clock_that_is_written_back_counts_the_same_frames(tmp_path, offset):
    """Frames from before and after the run would come in, for there are more of them than the run is long."""
    times = np.arange(-0.1, 0.2, 0.0031)
    path = tmp_path / "take.csv"
    rows = np.column_stack([times, 0.2 + times, 0.1 - times**2, 0.3 * times])
    np.savetxt(path, rows, delimiter=",", header="time_s,m_x_m,m_y_m,m_z_m", comments="")
    this = scene(
        {},
        [{"path": "recording.time_offset", "bounds": [0.0, 0.03]}, {"path": "bodies.b.velocity"}],
        recording={"file": str(path), "markers": {"m": "m"}, "time_offset": 0.01, "crop": [0.02, 0.03]},
        objective=[{"type": "markers"}],
    )
    problem = this.inverse_problem()
    x = problem.x0.copy()
    x[0] *= offset / 0.01
    x[1:] += 0.1
    again = with_values(this, problem, x).inverse_problem()
    assert again.experiments[0].recording.n_frames == problem.experiments[0].recording.n_frames > 2
    assert again.value(again.x0)[0] == pytest.approx(problem.value(x)[0], rel=1e-9)


@pytest.mark.parametrize("path", ["couplings.c.axis.0", "bodies.b.orientation.1"])
def test_an_entry_of_a_direction_is_no_override_of_a_phase(path):
    """As a parameter it is an angle, in the file a component."""
    phases = [{"name": "one", "overrides": {path: 0.1}}, {"name": "two"}]
    with pytest.raises(InputError, match="an entry by itself says nothing"):
        scene({"c": COUPLINGS["slider"]}, [{"path": "bodies.b.velocity"}], optimizer={"phases": phases})


SOLID = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "density": 1000}


@pytest.mark.parametrize(
    ("part", "place"),
    [
        ({"bodies": {"b": SOLID | {"geometry": {"shape": "capsule", "radius": 5e198, "half_length": 0.1}}}},
         "bodies.b.geometry.radius"),
        ({"markers": {"m": {"body": "b", "point": [0, 1e199, 0]}}}, "markers.m.point.1"),
        ({"time": {"dt": 1e-300, "steps": 3}}, "time.dt"),
        ({"bodies": {"b": SOLID | {"geometry": {"shape": "sphere", "radius": 1e-200}}}}, "bodies.b.geometry.radius"),
        ({"gravity": [0, 0, -1e61]}, "gravity.2"),
    ],
)  # fmt: skip
def test_numbers_whose_powers_are_none_are_refused(part, place):
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"b": SOLID}} | part
    with pytest.raises(InputError, match="impossible value") as refused:
        scene_from_dict(raw)
    assert f"{place}: " in str(refused.value) and any(text in str(refused.value) for text in ("1e+60: ", "least 1e-60"))


def test_numbers_of_a_fit_keep_within_what_the_format_allows():
    """A stiffness above zero, Poisson's ratio below a half; a coordinate goes anywhere, and bounds narrow that."""
    paths = ["couplings.c.stiffness", "bodies.soft.material.poisson", "bodies.b.position", "contact.friction"]
    parameters = [{"path": path} for path in paths] + [{"path": "couplings.c.angular_stiffness", "bounds": [0, 50]}]
    problem = scene({"c": COUPLINGS["slider"]}, parameters).inverse_problem()
    low, high = problem.bounds
    values = problem.values(np.where(np.isfinite(low), low, 0.0))
    assert values[[0, 5, 6]] == pytest.approx([1e-3, 0.0, 1e-5])
    assert np.isneginf(low[2:5]).all() and np.isposinf(high[[0, 2, 3, 4, 5]]).all()
    top = problem.values(np.where(np.isfinite(high), high, 0.0))
    assert 0.4999 < top[1] < 0.5 and top[6] == 50.0
