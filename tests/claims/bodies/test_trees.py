"""Articulated bodies in runs: gradients of whole runs, given motions, loops, joints that follow, errors of scenes."""

import copy
import time
import tracemalloc

import numpy as np
import pytest
from derivatives.test_trees import LINK, scene
from faults.runs import same_run
from faults.test_resume_simulation import cut, whole
from support.tiers import long_case

from add.adjoint import Cotangents, pullback, pushforward
from add.commands.simulate import simulate_scene
from add.contact import BodyContact
from add.equations.kinematics import Kinematics
from add.errors import InputError
from add.model.overlaps import deep_starts
from add.scene import apply_overrides, load_scene, scene_from_dict
from add.scene.build import scene as scene_builder, sizes
from add.scene.build.doubts import doubts
from add.scene.build.file_doubts import robot_doubts
from add.scene.build.run_data import run_data
from add.terms import TreeInertia


@pytest.mark.parametrize("law", ["none", "linear", "tanh"])
@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_gradients_of_whole_runs(integrator, law, rng):
    """Of all states by all numbers of the scene: reverse against forward mode, and against replayed differences."""
    raw = scene(law)
    raw["time"] = {"dt": 0.005, "steps": 12, "integrator": integrator}
    built = scene_from_dict(raw).build()
    simulation, numbers = built.simulation, built.numbers
    run = simulation.run(built.theta)
    assert sum(len(decision) for record in run.records for decision in record.decisions) > 20, "links touch"
    q_bar, v_bar = rng.normal(size=(2, *run.q.shape))
    gradient = pullback(simulation, run, built.theta, Cotangents(q_bar, v_bar))
    scale = np.maximum(np.abs(numbers.values), 0.1)
    for _ in range(2):
        along = scale * rng.normal(size=numbers.values.size)
        theta_dot = numbers.ties.pushforward(numbers.values, along)
        tangents = pushforward(simulation, run, built.theta, [theta_dot])
        forward = (q_bar * tangents.q[0]).sum() + (v_bar * tangents.v[0]).sum()
        assert gradient @ theta_dot == pytest.approx(forward, rel=1e-9)
        sides = []
        for sign in (1.0, -1.0):
            theta = numbers.ties.forward(numbers.values + sign * 1e-6 * along)
            there = simulation.run(theta, replay=run.replay)
            sides.append((q_bar * there.q).sum() + (v_bar * there.v).sum())
        assert forward == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-5)


def arm(**joints):
    """Two links in the x-z plane under gravity, with more said of their joints."""
    own = {
        "shoulder": {"child": "upper", "axis": [0, 1, 0], "value": 0.6},
        "elbow": {"parent": "upper", "child": "lower", "axis": [0, 1, 0], "position": [0, 0, -0.4], "value": 0.3},
    }
    for name, more in joints.items():
        own.setdefault(name, {}).update(more)
    body = {"type": "articulated", "links": {"upper": LINK, "lower": LINK}, "joints": own}
    return {"schema": "add-scene/1", "time": {"dt": 0.002, "steps": 40}, "bodies": {"arm": body},
            "contact": {"between_bodies": False}}  # fmt: skip


def test_a_given_motion_has_a_torque():
    """Inverse dynamics: the torque that keeps a joint to its motion makes the same run as a drive."""
    raw = arm(shoulder={"motion": {"signal": "wave"}})
    raw["signals"] = {"wave": {"type": "sine", "frequency": 2.0, "amplitude": 0.3}}
    built = scene_from_dict(raw).build()
    run = built.run()
    t = run.t
    assert np.allclose(run.q[:, 0], 0.6 + 0.3 * np.sin(4.0 * np.pi * t), atol=1e-14)
    torques = []
    for k in range(1, t.size):
        out = np.zeros(2)
        for term in built.model.system.terms:
            term.residual(run.kinematics(k), built.theta, out)
        torques.append(out[0])
        assert abs(out[1]) < 1e-9, "the free joint is in balance"
    free = arm()
    free["signals"] = {"torque": {"type": "table", "times": t[1:].tolist(), "values": torques}}
    free["bodies"]["arm"]["drives"] = {"motor": {"joint": "shoulder", "input": {"signal": "torque"}}}
    free["bodies"]["arm"]["joints"]["shoulder"]["rate"] = 0.3 * 4.0 * np.pi
    driven = scene_from_dict(free).build().run()
    assert np.abs(driven.q - run.q).max() < 1e-3


def test_a_loop_closed_by_a_coupling():
    """A point of the last link is held at the world: a four-bar, its stiff joint closed to the order of 1/k."""
    gaps = []
    for stiffness in (1e4, 1e5):
        raw = arm()
        raw["couplings"] = {"pin": {"type": "ball", "a": {"body": "arm/lower", "at": [0, 0, -0.4]}, "b": {},
                                    "stiffness": stiffness}}  # fmt: skip
        raw["markers"] = {"end": {"body": "arm/lower", "point": [0, 0, -0.4]}}
        built = scene_from_dict(raw).build()
        run = built.run()
        places = [built.markers.points(run.kinematics(k), built.theta)[0][0] for k in (0, 40)]
        gaps.append(np.linalg.norm(places[1] - places[0]))
    assert 0.0 < gaps[1] < 0.3 * gaps[0] < 1e-3


def test_a_joint_that_follows_another():
    raw = arm(elbow={"mimic": {"joint": "shoulder", "factor": -2.0, "offset": 0.1}})
    del raw["bodies"]["arm"]["joints"]["elbow"]["value"]
    built = scene_from_dict(raw).build()
    assert built.model.system.dofs.n == 1
    run = built.run()
    (term,) = built.model.term(TreeInertia)
    energies = [
        term.energy(run.kinematics(k), built.theta) + term.kinetic_energy(run.kinematics(k), built.theta)
        for k in (0, 40)
    ]
    assert energies[1] == pytest.approx(energies[0], abs=2e-4)
    x = built.model.lift.kinematics(run.kinematics(40), built.theta).q.reshape(2, 2, 3)
    assert x[1, 1, 1] == pytest.approx(run.q[40, 0] - 2.0 * run.q[40, 0] + 0.1, abs=1e-12)


def test_limits_stop_a_joint():
    raw = arm(elbow={"lower": -0.2, "upper": 0.4, "limit_stiffness": 1e4, "limit_damping": 5.0})
    raw["time"] = {"dt": 0.002, "steps": 300}
    raw["bodies"]["arm"]["joints"]["elbow"]["rate"] = 3.0
    q = scene_from_dict(raw).build().run().q[:, 1]
    assert 0.4 < q.max() < 0.42 and q.min() > -0.22


def test_far_from_the_origin_nothing_changes():
    """Twists are about a place in the tree."""
    near, far = arm(), arm()
    far["bodies"]["arm"]["position"] = [1e4, -2e4, 3e4]
    runs = [scene_from_dict(raw).build().run().q for raw in (near, far)]
    assert np.abs(runs[1] - runs[0]).max() < 1e-9


ERRORS = {
    "no-child": (lambda b: b["joints"]["elbow"].update(child="hand"), "joints.elbow.child", "no link of this name"),
    "twice": (lambda b: b["joints"]["elbow"].update(child="upper"), "joints.elbow.child", "another joint carries"),
    "order": (lambda b: b["joints"]["shoulder"].update(parent="lower"), "joints.shoulder.parent", "no joint before"),
    "loose": (lambda b: b["links"].update(hand=LINK), "links.hand", "no joint carries"),
    "mass": (lambda b: b["links"].update(lower={"shapes": LINK["shapes"]}), "links.lower", "exactly one of"),
    "moved": (lambda b: b.update(velocity=[1, 0, 0]), "velocity", "the base does not move"),
    "drive": (lambda b: b.update(drives={"m": {"joint": "knee", "input": 1.0}}), "drives.m.joint", "no joint of this"),
    "servo": (lambda b: b.update(drives={"m": {"joint": "elbow", "type": "position", "input": 1.0}}),
              "drives.m.stiffness", "a position drive needs it"),
    "limits": (lambda b: b["joints"]["elbow"].update(lower=1.0, upper=0.5), "joints.elbow", "not below the upper"),
    "both": (lambda b: b.update(model="a1.urdf"), "joints.shoulder", "the robot's file says this"),
    "ball": (lambda b: b["joints"]["elbow"].update(type="ball"), "joints.elbow.value", "another number of values"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_of_scenes(case):
    change, place, text = ERRORS[case]
    raw = copy.deepcopy(arm())
    change(raw["bodies"]["arm"])
    with pytest.raises(InputError) as caught:
        scene_from_dict(raw).build()
    assert f"bodies.arm.{place}" in str(caught.value) and text in str(caught.value)


def test_the_law_that_trees_do_not_know():
    raw = arm()
    raw["contact"]["friction_law"] = "exact"
    with pytest.raises(InputError, match="articulated bodies"):
        scene_from_dict(raw)


def test_links_by_name():
    raw = arm()
    raw["markers"] = {"m": {"body": "arm", "point": [0, 0, 0]}}
    with pytest.raises(InputError, match="arm/upper"):
        scene_from_dict(raw)
    raw["markers"]["m"]["body"] = "arm/upper"
    built = scene_from_dict(raw).build()
    kin = Kinematics(*(np.zeros(2) for _ in range(3)), 0.0, 0)
    assert np.allclose(built.markers.points(kin, built.theta)[0], 0.0)


def test_energy_in_results():
    """Kinetic energy, that of gravity and of springs: together constant where nothing damps."""
    raw = arm(elbow={"stiffness": 4.0, "rest": -0.2})
    raw["time"] = {"dt": 0.0005, "steps": 400}
    built = scene_from_dict(raw).build()
    data = run_data(built, built.run(), built.theta)
    total = data.energy["kinetic"] + data.energy["gravity"] + data.energy["coupling"]
    assert np.ptp(total) < 1e-4 and np.ptp(data.energy["gravity"]) > 0.1 and np.ptp(data.energy["coupling"]) > 0.01


URDF = """<robot name="r"><link name="base"/>
  <link name="rod"><inertial><origin xyz="0 0 -0.2"/><mass value="0.5"/>
    <inertia ixx="2e-3" ixy="0" ixz="0" iyy="2e-3" iyz="0" izz="1e-4"/></inertial></link>
  <joint name="hip" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
    <dynamics damping="0.01"/></joint></robot>"""


def test_numbers_of_a_robots_file_are_parameters(tmp_path):
    """Their values are the file's; what was found is written into the scene, and the file stays."""
    (tmp_path / "r.urdf").write_text(URDF)
    raw = arm()
    raw["bodies"] = {"r": {"type": "articulated", "model": "r.urdf", "joints": {"hip": {"value": 1.0}}}}
    raw["markers"] = {"end": {"body": "r/rod", "point": [0, 0, -0.4]}}
    raw["objective"] = [{"type": "point", "marker": "end", "target": [-0.31, 0, -0.26], "time": "end"}]
    raw["parameters"] = [
        {"path": "bodies.r.joints.hip.damping", "bounds": [0.001, 1]},
        {"path": "bodies.r.links.rod.mass"},
    ]
    made = scene_from_dict(raw, folder=tmp_path)
    problem = made.inverse_problem()
    assert problem.values(problem.x0).tolist() == [0.01, 0.5]
    other = apply_overrides(made, {"bodies.r.links.rod.mass": 0.7})
    assert other.raw["bodies"]["r"]["links"]["rod"]["mass"] == 0.7
    layout = other.build().model.system.parameters
    assert layout.view(other.build().theta, "bodies.r.links.rod.mass") == 0.7
    with pytest.raises(InputError, match="no such path"):
        apply_overrides(made, {"bodies.r.links.hand.mass": 0.7})


def test_a_robots_file_is_no_scene(tmp_path):
    (tmp_path / "r.urdf").write_text(URDF)
    with pytest.raises(InputError, match="articulated"):
        load_scene(tmp_path / "r.urdf")


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_a_run_in_two_parts_is_the_whole_run(tmp_path, integrator):
    """States of runs are in the tree's coordinates, the file has the rows of its links."""
    raw = scene()
    raw["time"] = {"dt": 0.005, "steps": 16, "integrator": integrator}
    once = whole(tmp_path, raw)
    folder = cut(tmp_path, raw, 7)
    simulate_scene(scene_from_dict(raw), folder, resume=True)
    same_run(once.path, folder.path)


def test_dynamics_at_a_state(rng):
    """Mass, bias and derivatives of the whole system, contact and drives in it; their motion is the run's."""
    built = scene_from_dict(scene()).build()
    q, v = built.model.initial.evaluate(built.theta)
    v += rng.normal(size=q.size)
    a = rng.normal(size=q.size)
    found = built.simulation.dynamics(q, v, a, t=0.01)
    assert np.allclose(found.mass, found.mass.T, atol=1e-13) and np.linalg.eigvalsh(found.mass).min() > 0.0
    assert np.allclose(found.mass @ a + found.bias, found.residual, atol=1e-10)
    h = 1e-6
    for name, slopes in (("q", found.by_coordinates), ("v", found.by_velocities)):
        along = rng.normal(size=q.size)
        sides = []
        for sign in (h, -h):
            at = {"q": q, "v": v} | {name: (q if name == "q" else v) + sign * along}
            sides.append(built.simulation.dynamics(at["q"], at["v"], a, t=0.01).residual)
        assert np.allclose(slopes @ along, (sides[0] - sides[1]) / (2 * h), rtol=1e-5, atol=1e-5)
    raw = arm()
    raw["time"] = {"dt": 1e-5, "steps": 1, "integrator": "bdf1"}
    pendulum = scene_from_dict(raw).build()
    run = pendulum.run()
    there = pendulum.simulation.dynamics(run.q[0], run.v[0])
    assert (run.v[1] - run.v[0]) / 1e-5 == pytest.approx(np.linalg.solve(there.mass, -there.bias), rel=1e-4)
    with pytest.raises(InputError, match="another shape of 'v'"):
        pendulum.simulation.dynamics(run.q[0], np.zeros(3))


@pytest.mark.parametrize("together", [False, True, "not-at-start"])
def test_links_of_one_tree_touch_on_request(together):
    """The hand is folded back onto the first link; neighbours overlap and never touch."""
    raw = arm(hand={"parent": "lower", "child": "hand", "axis": [0, 1, 0], "position": [0, 0, -0.4], "value": 0.2})
    body = raw["bodies"]["arm"]
    slim = {"geometry": {"shape": "box", "size": [0.04, 0.04, 0.2]}, "position": [0.01, 0.02, -0.1]}
    body["links"]["hand"] = LINK | {"shapes": [slim]}
    body["joints"]["elbow"]["value"] = 3.1
    body["joints"]["hand"]["position"] = [0, 0, -0.1]
    body["self_collision"] = together
    raw["contact"] = {"stiffness": 500, "damping_ramp": 0.01, "onset": 0.01}
    built = scene_from_dict(raw).build()
    q, v = built.model.initial.evaluate(built.theta)
    kin = Kinematics(q, v, np.zeros_like(q), 0.0, 0)
    touching = sum(len(term.decide(kin, built.theta)) for term in built.model.system.deciding)
    assert (touching > 0) == (together is True)
    told = [text for text in robot_doubts(built) if "self_collision" in text]
    assert any("without `spacing`" in text for text in told) == bool(together)
    found = [text for text in told if "they start" in text]
    assert len(found) == (together == "not-at-start")
    assert not found or "start and pass through each other: 'hand' and 'upper'" in found[0]


@pytest.mark.parametrize("spacing", [None, 0.01])
def test_capsules_that_cross(spacing):
    """Their ends are far from each other: their axes cross, or points along them meet."""
    rod = {"geometry": {"shape": "capsule", "radius": 0.03, "half_length": 0.3}}
    link = {"mass": 1.0, "inertia": [0.1, 0.1, 0.1, 0, 0, 0], "shapes": [rod]}
    small = {"mass": 1.0, "inertia": [0.1, 0.1, 0.1, 0, 0, 0]}
    turned = [0.8660254037844386, 0.5, 0, 0]
    body = {"type": "articulated", "self_collision": True, "links": {"a": link, "between": small, "b": link},
            "joints": {"a": {}, "between": {"parent": "a"},
                       "b": {"parent": "between", "position": [0.05, 0.013, 0], "orientation": turned}}}  # fmt: skip
    if spacing:
        body["spacing"] = spacing
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"bot": body}}
    built = scene_from_dict(raw).build()
    (term,) = built.model.term(BodyContact)
    q = np.zeros(3)
    kin = built.model.lift.kinematics(Kinematics(q, q, q, 0.0, 0), built.theta)
    assert len(term.decide(kin, built.theta)) > 0


def test_hulls_of_meshes(tmp_path):
    """An open shell touches by its hull, which is closed."""
    corners = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    faces = [(1, 2, 4), (1, 4, 3), (5, 7, 8), (5, 8, 6)]  # two sides of a cube
    lines = ["v " + " ".join(map(str, c)) for c in corners] + ["f " + " ".join(map(str, f)) for f in faces]
    (tmp_path / "shell.obj").write_text("\n".join(lines), encoding="ascii")
    link = {"mass": 1.0, "inertia": [0.1, 0.1, 0.1, 0, 0, 0], "center_of_mass": [0, 0, 0],
            "shapes": [{"geometry": {"file": str(tmp_path / "shell.obj")}}]}  # fmt: skip
    body = {"type": "articulated", "links": {"a": link}, "joints": {"a": {}}, "meshes": "hull"}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"bot": body}}
    (carried,) = scene_from_dict(raw).build().model.body("bot/a").carried
    assert carried.mesh is not None
    vertices, triangles = carried.mesh.vertices, carried.mesh.triangles
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    assert np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0 == pytest.approx(1.0)
    body["meshes"] = "exact"
    with pytest.raises(InputError, match=r"surface|closed|open"):
        scene_from_dict(raw).build()


def chain(n):
    """Links that hang from each other, over a floor that none of them reaches."""
    shape = {"geometry": {"shape": "box", "size": [0.02, 0.02, 0.08]}, "position": [0, 0, -0.05]}
    links = {f"l{k}": {"mass": 0.1, "shapes": [shape]} for k in range(n)}
    joints = {f"l{k}": {"axis": [0, 1, 0], "damping": 0.01} for k in range(n)}
    for k in range(1, n):
        joints[f"l{k}"] |= {"parent": f"l{k - 1}", "position": [0, 0, -0.1]}
    floor = {"shape": "plane", "point": [0, 0, -1000], "normal": [0, 0, 1]}
    return {"schema": "add-scene/1", "time": {"dt": 0.002, "steps": 1}, "obstacles": {"floor": floor},
            "bodies": {"chain": {"type": "articulated", "links": links, "joints": joints}}}  # fmt: skip


@pytest.mark.parametrize("collides", [long_case(False), True])
def test_long_chains_are_built_in_a_time_and_memory_that_grow_with_their_length(collides):
    """Four times the links take four times as much, not sixteen times: no table of pairs, no paths to the root."""
    took = []
    for n in (3, 30, 120):  # the first brings the kernels
        raw = chain(n)
        raw["bodies"]["chain"]["self_collision"] = collides
        tracemalloc.start()
        begin = time.process_time()
        built = scene_from_dict(raw).build()
        deep_starts(built.model, built.theta)
        took.append((time.process_time() - begin, tracemalloc.get_traced_memory()[1]))
        tracemalloc.stop()
    for once, four in zip(*took[1:], strict=True):
        assert four < 8.0 * once


def test_a_chain_whose_matrix_no_memory_holds_is_refused(monkeypatch):
    """Its matrix is full: every link moves with all joints above it, and no machine makes that less."""
    built = scene_from_dict(chain(250)).build()
    monkeypatch.setattr(sizes, "available_memory", lambda: 1e6)
    with pytest.raises(InputError, match=r"bodies: .*the full matrix of a tree of 250 coordinates.*shorter trees"):
        sizes.require_room_to_run(built.simulation)
    monkeypatch.setattr(sizes, "available_memory", lambda: 1e9)
    with pytest.raises(InputError, match=r"bodies: .*contact of links in trees with 250 coordinates.*shorter trees"):
        sizes.require_room_to_run(built.simulation)
    assert any("contact of links" in text for text in doubts(built))


def test_such_a_chain_is_refused_before_it_is_built(monkeypatch):
    """By the coordinates of its joints; followers have none."""
    raw = chain(100)
    raw["bodies"]["chain"]["joints"]["l1"]["type"] = "ball"
    del raw["bodies"]["chain"]["joints"]["l1"]["axis"]
    raw["bodies"]["chain"]["joints"]["l9"] = {**raw["bodies"]["chain"]["joints"]["l9"], "mimic": {"joint": "l8"}}
    scene = scene_from_dict(raw)
    monkeypatch.setattr(scene_builder, "articulated_body", lambda *_: pytest.fail("is built"))
    monkeypatch.setattr(sizes, "available_memory", lambda: 340.0 * 101**2 - 1.0)
    said = r"bodies\.chain: .*about 3\.5 MB .*the full matrix of a tree of 101 coordinates: it takes shorter trees"
    with pytest.raises(InputError, match=said):
        scene.build()
