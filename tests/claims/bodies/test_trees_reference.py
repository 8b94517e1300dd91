"""Trees of links against independent engines: dynamics, poses, trajectories (shared/specs/articulated/reference)."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.places import SPECS

from add.equations.kinematics import Kinematics
from add.kernels.rotation import jacobian_coefficients, left_jacobian, turn_derivative
from add.scene import scene_from_dict
from add.scene.spec.links import robot_of
from add.terms import TreeInertia

REFERENCE = SPECS / "articulated" / "reference"
MODELS = {
    "cartpole": "xml", "pendulum7": "xml", "mixed_joints": "xml", "random_tree12": "xml", "jump_worm": "xml",
    "catapult": "xml", "half_cheetah": "xml", "double_pendulum": "urdf", "panda": "urdf", "a1": "urdf",
    "simple_humanoid": "urdf", "atlas_v4": "urdf",
}  # fmt: skip
IGNORED = {"xml": [], "urdf": ["mesh", "limit"]}

pytestmark = pytest.mark.skipif(not REFERENCE.is_dir(), reason="the reference values are not there")


def loaded(folder, name):
    file = REFERENCE / folder / f"{name}_{'dynamics' if folder == 'dynamics' else 'trajectory'}.json"
    if not file.is_file():
        pytest.skip(f"no such file: {file.name}")
    if MODELS[name] == "xml":
        pytest.importorskip("mujoco", reason="MJCF files are read by the package mujoco")
    return json.loads(file.read_text())


def scene(name, reference, free=False, **more):
    model = REFERENCE / "models" / f"{name}.{MODELS[name]}"
    body = {"type": "articulated", "model": str(model), "ignore": IGNORED[MODELS[name]]}
    if MODELS[name] == "urdf":
        body["base"] = "free" if reference["floating_base"] else "fixed"
    time = more.pop("time", {"dt": 0.01, "steps": 1})
    contact = {"between_bodies": False}
    gravity = reference.get("gravity", [0.0, 0.0, -9.81])
    raw = {"schema": "add-scene/1", "time": time, "gravity": gravity, "bodies": {"r": body | more}, "contact": contact}
    made = scene_from_dict(raw)
    # The engines of the reference leave mimic joints free.
    robot = robot_of("r", made.bodies["r"])
    changes = {"mimic": None} | ({"lower": -np.inf, "upper": np.inf, "dry_friction": 0.0} if free else {})
    made.bodies["r"]._robot = replace(robot, joints=tuple(replace(joint, **changes) for joint in robot.joints))
    return made.build()


class Coordinates:
    """From the reference's coordinates, with quaternions and rates in body axes, to those of a tree."""

    def __init__(self, built, joints):
        self.tree = built.model.body("r")
        first = dict(zip((joint.name for joint in self.tree.joints), self.tree.first, strict=True))
        kinds = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}
        known = [joint for joint in joints if joint["name"] in first]
        assert len(known) == len(joints) or len(joints) == len(first), (list(first), joints)
        names = [joint["name"] for joint in joints] if len(known) == len(joints) else list(first)
        self.entries = [(first[name], kinds[j["type"]], j["q"], j["v"]) for name, j in zip(names, joints, strict=True)]
        self.n = self.tree.coordinates()[0]

    def q(self, q):
        out = np.zeros(self.n)
        for first, width, at, _ in self.entries:
            if width == 1:
                out[first] = q[at]
                continue
            place = 3 if width == 6 else 0
            out[first : first + place] = q[at : at + place]
            w, x, y, z = q[at + place : at + place + 4]
            out[first + place : first + width] = Rotation.from_quat([x, y, z, w]).as_rotvec()
        return out

    def matrix(self, q):
        """T with v of the reference = T q_dot; rows in the reference's order."""
        out = np.zeros((self.n, self.n))
        for first, width, _, at in self.entries:
            out[at : at + width, first : first + width] = np.eye(width)
            if width > 1:
                w = q[first + width - 3 : first + width]
                out[at + width - 3 : at + width, first + width - 3 : first + width] = left_jacobian(w).T
        return out

    def rates(self, q, v, a):
        """q_dot, q_ddot with v = T q_dot, a = T q_ddot + T_dot q_dot."""
        T = self.matrix(q)
        q_dot = np.linalg.solve(T, v)
        change = np.zeros(self.n)
        for first, width, _, at in self.entries:
            if width > 1:
                part = slice(first + width - 3, first + width)
                k, D = np.empty(6), np.empty((3, 3))
                jacobian_coefficients(float(q[part] @ q[part]), k)
                turn_derivative(-1.0, q[part], q_dot[part], k, D)
                change[at + width - 3 : at + width] = D @ q_dot[part]
        return q_dot, np.linalg.solve(T, a - change)


def residual(term, built, q, v, a):
    out = np.zeros(q.size)
    term.residual(Kinematics(q, v, a, 0.0, 0), built.theta, out)
    return out


@pytest.mark.parametrize("name", MODELS)
def test_dynamics(name):
    reference = loaded("dynamics", name)
    built = scene(name, reference)
    (term,) = built.model.term(TreeInertia)
    index = [i for i in term.tree.armature if i >= 0]
    built.simulation.theta[index] = 0.0  # M is that of the links alone
    system = Coordinates(built, reference["joints"])
    for state in reference["states"]:
        q = system.q(np.array(state["q"]))
        T = system.matrix(q)
        for a, wanted in ((np.zeros(system.n), state["bias"]), (np.array(state["a"]), state["tau"])):
            q_dot, q_ddot = system.rates(q, np.array(state["v"]), a)
            found = np.linalg.solve(T.T, residual(term, built, q, q_dot, q_ddot))
            assert np.abs(found - wanted).max() <= 1e-10 * max(np.abs(wanted).max(), 1.0)
        none = np.zeros(system.n)
        bias = residual(term, built, q, q_dot, none)
        M = np.stack([residual(term, built, q, q_dot, unit) - bias for unit in np.eye(system.n)], axis=1)
        M = np.linalg.solve(T.T, np.linalg.solve(T.T, M.T).T)
        assert np.abs(M - np.array(state["M"])).max() <= 1e-10 * np.abs(state["M"]).max()
        kin = Kinematics(q, q_dot, none, 0.0, 0)
        assert term.kinetic_energy(kin, built.theta) == pytest.approx(state["kinetic_energy"], rel=1e-10)
        if "dtau_dq" in state and state["dtau_dq"] is not None:
            for key, weights in (("dtau_dq", (1.0, 0.0, 0.0)), ("dtau_dv", (0.0, 1.0, 0.0))):
                wanted = np.array(state[key])
                found = derivative(term, built, q, q_dot, q_ddot, weights)
                order = [first for first, *_ in sorted(system.entries, key=lambda entry: entry[3])]
                assert np.abs(found[np.ix_(order, order)] - wanted).max() <= 1e-9 * np.abs(wanted).max(), key


def derivative(term, built, q, v, a, weights):
    from add.kernels.tree_dynamics import tree_jacobian

    out = np.zeros((q.size, q.size))
    tree_jacobian(term.tree, built.theta, 0, q.size, q, v, a, weights, out)
    return out


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
@pytest.mark.parametrize("name", ["cartpole", "pendulum7", "mixed_joints", "random_tree12", "half_cheetah",
                                  "double_pendulum", "panda", "a1", "simple_humanoid"])  # fmt: skip
def test_trajectories_converge(name, integrator):
    """Poses of all links after 0.05 s from a random state, without limits and dry friction."""
    dynamics, reference = loaded("dynamics", name), loaded("trajectories", name)
    errors = []
    for steps in (50, 100):
        time = {"dt": 0.05 / steps, "steps": steps, "integrator": integrator}
        built = scene(name, dynamics, time=time, free=True)
        system = Coordinates(built, dynamics["joints"])
        q, wanted = (system.q(np.array(reference["q"][sample])) for sample in (0, 1))
        q_dot, _ = system.rates(q, np.array(reference["v"][0]), np.zeros(system.n))
        found = built.simulation.run(built.theta, state=built.simulation.state(q, q_dot))
        place = built.model.lift.embeddings[0].place
        errors.append(np.abs(place(found.q[-1], built.theta)[0] - place(wanted, built.theta)[0]).max())
    order = np.log2(errors[0] / errors[1])
    assert order == pytest.approx({"bdf1": 1.0, "bdf2": 2.0}[integrator], abs=0.25), errors


@pytest.mark.slow  # minutes: 1e5 steps each
@pytest.mark.parametrize("name", ["cartpole", "pendulum7", "mixed_joints", "random_tree12", "half_cheetah",
                                  "double_pendulum", "a1"])  # fmt: skip
def test_trajectories_at_the_finest_step(name):
    """Places of all links [m] over the whole second with dt = 1e-5, by pieces from sample to sample."""
    dynamics, reference = loaded("dynamics", name), loaded("trajectories", name)
    steps, dt = 5000, 1e-5
    time = {"dt": dt, "steps": steps, "integrator": "bdf2"}
    simulation = (built := scene(name, dynamics, time=time, free=True)).simulation
    system = Coordinates(built, dynamics["joints"])
    wanted = [system.q(np.array(sample)) for sample in reference["q"]]
    assert np.allclose(reference["t"], steps * dt * np.arange(len(wanted)))
    place = built.model.lift.embeddings[0].place
    q_dot, _ = system.rates(wanted[0], np.array(reference["v"][0]), np.zeros(system.n))
    state, errors = simulation.state(wanted[0], q_dot), []
    for k, q in enumerate(wanted[1:], 1):
        run = simulation.run(built.theta, state=state, n_steps=k * steps)
        state = run.state(run.n_steps)
        errors.append(np.abs(place(state.q[0], built.theta)[0] - place(q, built.theta)[0]).max())
    assert max(errors) < 1e-5, errors


@pytest.mark.parametrize("name", ["cartpole", "pendulum7", "jump_worm"])
def test_torques_of_given_motions(name):
    """Inverse dynamics: each joint moves as q + v t + a t^2 / 2, which BDF2 differentiates exactly; r is tau."""
    reference = loaded("dynamics", name)
    state, dt, steps = reference["states"][0], 0.02, 6
    t = dt * np.arange(steps + 1) - dt * steps
    joints, signals = {}, {}
    for joint in reference["joints"]:
        q, v, a = (state[key][joint[at]] for key, at in (("q", "q"), ("v", "v"), ("a", "v")))
        path = q + v * t + 0.5 * a * t**2
        joints[joint["name"]] = {"value": path[0], "rate": v - a * dt * steps, "motion": {"signal": joint["name"]}}
        signals[joint["name"]] = {"type": "table", "times": (t - t[0]).tolist(), "values": (path - path[0]).tolist()}
    time = {"dt": dt, "steps": steps, "integrator": "bdf2"}
    body = {"type": "articulated", "model": str(REFERENCE / "models" / f"{name}.xml"), "joints": joints}
    raw = {"schema": "add-scene/1", "time": time, "gravity": reference.get("gravity", [0.0, 0.0, -9.81]),
           "bodies": {"r": body}, "signals": signals, "contact": {"between_bodies": False}}  # fmt: skip
    built = scene_from_dict(raw).build()
    record = built.run().records[-1]
    found = built.tree_reactions(record)["r"]
    assert list(found) == [joint["name"] for joint in reference["joints"]]
    assert record.kin.a == pytest.approx([state["a"][joint["v"]] for joint in reference["joints"]], rel=1e-9)
    for joint in reference["joints"]:
        at, path = joint["v"], f"bodies.r.joints.{joint['name']}.armature"
        armature = built.model.system.parameters.view(built.theta, path)
        wanted = state["tau"][at] + armature * state["a"][at] - state["passive"][at]
        assert found[joint["name"]] == pytest.approx([wanted], rel=1e-9)
