"""Obstacles whose place, direction and velocity are numbers: the same motion, exact gradients, known answers."""

import copy

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from add.commands.check_gradient import check_gradients
from add.commands.simulate import simulate_scene
from add.errors import InputError
from add.inverse import LevenbergMarquardt, Phase
from add.io.runfolder import RunFolder
from add.io.trajectory_file import read_run
from add.mocap import Recording, write_csv
from add.scene import scene_from_dict
from add.scene.build.write_back import with_values

LEANING = [0.05, 0.1, 1.0]
TURNED = (np.array([0.97, 0.12, 0.18, 0.12]) / np.linalg.norm([0.97, 0.12, 0.18, 0.12])).tolist()
CONTACT = {"stiffness": 2e4, "friction": 0.3, "damping": 20, "damping_ramp": 0.001, "stick_stiffness": 100}
#: A cube that turns and is about to meet what is under it with one corner.
CUBE = {
    "type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "mass": 1.0, "position": [0, 0, 0.06],
    "velocity": [0.3, 0.1, -0.4], "angular_velocity": [0.5, 1.0, 0.2],
}  # fmt: skip
SOFT = {
    "type": "soft", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]}, "element": "hex8",
    "material": {"young": 5e4, "poisson": 0.3, "density": 1000, "viscosity": 5}, "position": [0, 0, 0.0495],
    "velocity": [0.05, 0.02, -0.3],
}  # fmt: skip
BALL = {
    "type": "rigid", "geometry": {"shape": "sphere", "radius": 0.05}, "mass": 0.5, "position": [0.01, 0.02, 0.049],
    "velocity": [0.4, 0.1, -0.2],
}  # fmt: skip
LINK = {
    "mass": 0.3, "inertia": [1e-3, 1e-3, 8e-4, 0, 0, 0],
    "shapes": [{"geometry": {"shape": "sphere", "radius": 0.05}}],
}  # fmt: skip
TREE = {
    "type": "articulated", "base": "free", "position": [0, 0, 0.053], "velocity": [0.3, 0.1, -0.4],
    "links": {"body": LINK, "tail": LINK},
    "joints": {"body": {}, "tail": {"parent": "body", "axis": [0.6, 0.8, 0], "position": [0.12, 0.02, 0.0]}},
}  # fmt: skip
PLANE = {"shape": "plane", "point": [0.01, 0.02, 0.001], "normal": LEANING, "velocity": [0.05, 0.0, 0.03]}
SHAPES = {
    "plane": PLANE,
    "sphere": {"shape": "sphere", "center": [0.01, -0.02, -0.3], "radius": 0.3, "velocity": [0.05, 0, 0.03]},
    "box": {"shape": "box", "center": [0.01, 0.02, -0.2], "orientation": TURNED, "half_size": [0.3, 0.3, 0.2]},
    "capsule": {
        "shape": "capsule", "center": [0, 0, -0.2], "orientation": TURNED, "radius": 0.1, "half_length": 0.1,
    },
    "cylinder": {
        "shape": "cylinder", "center": [0, 0, -0.2], "orientation": TURNED, "radius": 0.2, "half_length": 0.2,
    },
}  # fmt: skip


def raw(body, obstacle, law="tanh", order=2, adjustable=True, steps=40, **contact):
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.002, "steps": steps, "integrator": f"bdf{order}"},
        "bodies": {"thing": copy.deepcopy(body)},
        "obstacles": {"table": {**copy.deepcopy(obstacle), "adjustable": adjustable}},
        "contact": {**CONTACT, "friction_law": law, **contact},
    }


def judged(scene, marker=None, steps=30):
    """Return the scene with an objective that sees its body alone, so that obstacles matter by contact only."""
    scene["markers"] = {"seen": marker or {"body": "thing", "point": [0.05, 0.03, 0.02]}}
    scene["objective"] = [{"type": "point", "marker": "seen", "target": [0.1, 0.2, 0.3], "time": 0.002 * steps}]
    return scene


@pytest.mark.parametrize("shape", SHAPES)
def test_an_adjustable_obstacle_changes_no_motion(shape):
    still, moved = (scene_from_dict(raw(CUBE, SHAPES[shape], adjustable=a)).build() for a in (False, True))
    one, other = still.run(), moved.run()
    n = still.model.system.n
    assert any(record.decisions and any(d.size for d in record.decisions) for record in one.records)
    assert other.q[:, :n] == pytest.approx(one.q, abs=1e-11)


CASES = {
    "cube, tanh, plane": (CUBE, "plane", "tanh", 2, ("point", "normal", "velocity"), ("touching",)),
    "cube, linear, box": (CUBE, "box", "linear", 2, ("center", "orientation"), ("sticking", "slipping")),
    "cube, hybrid, plane": (CUBE, "plane", "hybrid", 2, ("point", "normal", "velocity"), ("sticking", "slipping")),
    "cube, hybrid, cylinder": (CUBE, "cylinder", "hybrid", 1, ("center", "orientation"), ("sticking", "slipping")),
    "cube, impulse, plane": (CUBE, "plane", "impulse", 1, ("point", "normal"), ("touching",)),
    "ball, linear, sphere": (BALL, "sphere", "linear", 1, ("center", "velocity"), ("sticking", "slipping")),
    "links, tanh, plane": (TREE, "plane", "tanh", 2, ("point", "normal", "velocity"), ("touching",)),
    "links, hybrid, box": (TREE, "box", "hybrid", 1, ("center", "orientation"), ("sticking", "slipping")),
    "nodes, hybrid, plane": (SOFT, "plane", "hybrid", 2, ("point", "normal", "velocity"), ("sticking", "slipping")),
    "nodes, linear, capsule": (SOFT, "capsule", "linear", 1, ("center", "orientation"), ("slipping",)),
}


#: The others take seconds each.
QUICK = ("cube, tanh, plane",)


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in CASES]
)
def test_gradient(case):
    """Adjoint, differences with decisions held and forward mode agree, and the place matters."""
    body, shape, law, order, keys, seen = CASES[case]
    marker = {id(SOFT): {"body": "thing", "nodes": [7]}, id(TREE): {"body": "thing/tail", "point": [0.05, 0, 0]}}
    steps = 12 if case in QUICK else 30
    scene = judged(raw(body, SHAPES[shape], law, order), marker.get(id(body)), steps)
    (found,) = check_gradients(scene_from_dict(scene), n_steps=steps, free=False)
    errors = {p.name: p.replayed_error for p in found.parameters if p.replayed_error > 1e-6}
    assert found.passed, f"{errors}, {found.taylor_rates}, {found.forward_error:.1e}"
    for key in keys:
        mine = [p for p in found.parameters if p.name.startswith(f"obstacles.table.{key}")]
        assert max(abs(p.adjoint) for p in mine) > 1e-4 * found.norm
    for key in seen:
        assert found.decisions.get(key, 0) > 0, f"nothing is {key}"


def test_a_slide_down_a_slope():
    """A block slides s = g t^2 (sin a - c cos a) / 2 down a slope, ds/da = g t^2 (cos a + c sin a) / 2.

    The block is a ball that does not turn, and starts at rest, pressed in by its weight.
    """
    angle, c, t, k_n, g = 0.5, 0.2, 0.4, 1e6, 9.81
    normal, down = np.array([0.0, -np.sin(angle), np.cos(angle)]), np.array([0.0, -np.cos(angle), -np.sin(angle)])
    place = (0.05 - g * np.cos(angle) / k_n) * normal
    block = BALL | {"mass": 1.0, "inertia": [1e9] * 3 + [0] * 3, "position": place.tolist(), "velocity": [0, 0, 0]}
    slope = {"shape": "plane", "point": [0, 0, 0], "normal": normal.tolist()}
    scene = raw(
        block, slope, "linear", steps=200, stiffness=k_n, friction=c, damping=0, damping_ramp=0, stick_stiffness=1e5
    )
    built = scene_from_dict(scene).build()
    found = built.rollout({"obstacles.table.normal": [0.0, 0.0]})
    moved = found.q[-1, :3] - place
    assert moved @ down == pytest.approx(0.5 * g * t**2 * (np.sin(angle) - c * np.cos(angle)), rel=0.005)
    # The first tilt turns the normal about the x axis.
    change, _ = found.jvp({"obstacles.table.normal": [1.0, 0.0]})
    assert change[-1, :3] @ down == pytest.approx(0.5 * g * t**2 * (np.cos(angle) + c * np.sin(angle)), rel=0.005)


def test_a_bounce_off_a_wall():
    """A ball that bounces without loss ends twice as far away as the wall is moved, and leaves it at twice its speed.

    x(T) = 2 (h + V t) - x0 + u T at the bounce at t = (x0 - h) / (u + V): dx/dh = 2, dv/dV = 2 at V = 0.
    """
    ball = BALL | {"position": [0, 0, 0.051], "velocity": [0, 0, -1]}  # the impact lasts 7 ms
    wall = {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}
    scene = raw(ball, wall, "none", stiffness=1e5, damping=0, onset=5e-4)
    scene |= {"gravity": [0, 0, 0], "time": {"dt": 5e-5, "steps": 300, "integrator": "bdf2"}}
    built = scene_from_dict(scene).build()
    found = built.rollout({"obstacles.table.point": [0, 0, 0], "obstacles.table.velocity": [0, 0, 0]})
    assert found.v[-1, 2] == pytest.approx(1.0, rel=0.01)
    moved, _ = found.jvp({"obstacles.table.point": [0, 0, 1.0], "obstacles.table.velocity": [0, 0, 0]})
    _, pushed = found.jvp({"obstacles.table.point": [0, 0, 0], "obstacles.table.velocity": [0, 0, 1.0]})
    assert [moved[-1, 2], pushed[-1, 2]] == pytest.approx([2.0, 2.0], rel=0.01)


def toss_of(folder, name, height, normal):
    """Write the markers of a cube tossed on a table of that height and normal."""
    scene = raw(CUBE, {"shape": "plane", "point": [0, 0, height], "normal": normal}, steps=80)
    scene["markers"] = {f"m{k}": {"body": "thing", "point": p} for k, p in enumerate(CORNERS)}
    built = scene_from_dict(scene).build()
    run, steps = built.run(), np.arange(0, 81, 8)
    places = np.stack([built.markers.points(run.kinematics(int(k)), built.theta)[0] for k in steps])
    seen = Recording(built.marker_names, 0.002 * steps, places, np.ones(places.shape[:2], dtype=bool), "")
    write_csv(folder / f"{name}.csv", seen)
    return {"file": str(folder / f"{name}.csv"), "markers": {marker: marker for marker in scene["markers"]}}


CORNERS = [[0.05, 0.05, -0.05], [-0.05, 0.05, 0.05], [0.05, -0.05, 0.05], [-0.05, -0.05, -0.05]]


def test_height_and_lean_of_each_take_are_found(tmp_path):
    """Two tosses on tables of two heights and leans: both found with the friction that they share; written back."""
    truth = {"one": (0.002, [0.03, -0.02, 1.0]), "two": (-0.001, [-0.01, 0.04, 1.0])}
    scene = raw(CUBE, {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}, steps=80, friction=0.2)
    scene["markers"] = {f"m{k}": {"body": "thing", "point": p} for k, p in enumerate(CORNERS)}
    scene["objective"] = [{"type": "markers"}]
    scene["experiments"] = [
        {"name": name, "recording": toss_of(tmp_path, name, *table)} for name, table in truth.items()
    ]
    scene["parameters"] = [{"path": "contact.friction", "scale": 0.05}]
    for name in truth:
        scene["parameters"] += [
            {"path": "obstacles.table.point.2", "scale": 0.001, "experiment": name},
            {"path": "obstacles.table.normal", "scale": 0.02, "experiment": name},
        ]
    read = scene_from_dict(scene)
    problem = read.inverse_problem()
    found = LevenbergMarquardt((Phase("first touch", None, (0.0, 0.06), 15),), 1e-3, 1e-12, 1e-16).run(problem)
    values = problem.values(found.x)
    assert values[0] == pytest.approx(0.3, rel=1e-6)
    again = with_values(read, problem, found.x)
    for k, (height, normal) in enumerate(truth.values()):
        own = again.experiments[k].overrides
        assert own["obstacles.table.point"][2] == pytest.approx(height, abs=1e-9)
        wanted = np.array(normal) / np.linalg.norm(normal)
        assert own["obstacles.table.normal"] == pytest.approx(wanted, abs=1e-7)
    # What was written down is where the next fit starts.
    after = again.inverse_problem()
    assert after.value_and_grad(after.x0)[0] < 1e-12 < 1e-6 < problem.value_and_grad(problem.x0)[0]


def test_a_run_keeps_the_obstacle_where_it_was(tmp_path):
    simulate_scene(scene_from_dict(raw(CUBE, SHAPES["box"], steps=4)), RunFolder(tmp_path / "run"))
    (table,) = read_run(tmp_path / "run" / "trajectory.h5").obstacles
    box = SHAPES["box"]
    assert table.name == "table" and table.position == pytest.approx(box["center"])
    w, x, y, z = box["orientation"]
    assert table.rotation == pytest.approx(Rotation.from_quat([x, y, z, w]).as_matrix())


def test_an_obstacle_that_is_not_adjustable_says_so():
    scene = judged(raw(CUBE, PLANE, adjustable=False)) | {"parameters": [{"path": "obstacles.table.point"}]}
    with pytest.raises(InputError, match=r'expected "adjustable": true in obstacles\.table'):
        scene_from_dict(scene).inverse_problem()
    scene["obstacles"]["table"] = SHAPES["box"] | {"adjustable": True}
    scene["parameters"] = [{"path": "obstacles.table.half_size"}]
    with pytest.raises(InputError, match="this number cannot be a parameter"):
        scene_from_dict(scene).inverse_problem()


def test_an_objective_of_contact_refuses_an_adjustable_obstacle():
    scene = judged(raw(CUBE, PLANE)) | {"parameters": [{"path": "obstacles.table.point"}]}
    scene["objective"] = [{"type": "contact", "marker": "seen", "obstacle": "table"}]
    with pytest.raises(InputError, match=r"objective\.0\.obstacle: .*adjustable"):
        scene_from_dict(scene).inverse_problem()


@pytest.mark.parametrize("shape", ["plane", "box"])
def test_adjustable_obstacles_take_compiled_steps(shape):
    assert scene_from_dict(raw(CUBE, SHAPES[shape])).build().simulation.by_terms == ""
