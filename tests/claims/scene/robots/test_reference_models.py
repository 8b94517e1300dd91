"""Robots of the reference pack: masses, poses and mass matrices against tables that other engines made."""

import json
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
from support.places import SPECS
from support.robot_dynamics import mass_matrix, poses_and_motions

from add.scene.robots import read_robot

REFERENCE = SPECS / "articulated" / "reference"
pytestmark = pytest.mark.skipif(not REFERENCE.exists(), reason="shared/specs with the reference models is not there")

URDF = ("a1", "atlas_v4", "double_pendulum", "panda", "simple_humanoid")
MJCF = ("cartpole", "catapult", "half_cheetah", "jump_worm", "mixed_joints", "pendulum7", "random_tree12")


def table(name):
    return json.loads((REFERENCE / "dynamics" / f"{name}_dynamics.json").read_text(encoding="utf-8"))


def robot(name):
    found = table(name)
    if name in MJCF:
        pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")
    base = "free" if found["floating_base"] else None
    path = REFERENCE / "models" / found["model"]
    return read_robot(path, base=base, ignore={"limit", "mesh"} if name in URDF else ())


def coordinates(found, state):
    counts = {"free": 7, "ball": 4, "slide": 1, "hinge": 1}
    return {item["name"]: state["q"][item["q"] : item["q"] + counts[item["type"]]] for item in found["joints"]}


@pytest.mark.parametrize("name", URDF + MJCF)
def test_mass_matrix(name):
    """To 1e-10 in all states, all coordinates independent (the reference leaves out mimic)."""
    found, given = table(name), robot(name)
    assert {joint.name for joint in given.joints} == {item["name"] for item in found["joints"]}
    sizes = {"free": 6, "ball": 3, "slide": 1, "hinge": 1}
    kinds = {joint.name: joint.kind for joint in given.joints}
    assert kinds == {item["name"]: item["type"] for item in found["joints"]}
    for state in found["states"]:
        ours, columns = mass_matrix(given, coordinates(found, state))
        order = np.concatenate([np.r_[columns[item["name"]]] for item in found["joints"]])
        places = np.concatenate([np.arange(i["v"], i["v"] + sizes[i["type"]]) for i in found["joints"]])
        theirs = np.array(state["M"])
        assert theirs.shape == ours.shape and (places == np.arange(len(theirs))).all()
        np.testing.assert_allclose(ours[np.ix_(order, order)], theirs, rtol=0, atol=1e-10 * np.abs(theirs).max())


@pytest.mark.parametrize("name", URDF + MJCF)
def test_poses_and_centres(name):
    """World pose of every body and centre of mass of every link, in all states."""
    found, given = table(name), robot(name)
    masses = {link.name: link for link in given.links}
    assert len(found["links"]) == sum(link.mass > 0 for link in given.links)
    for state in found["states"]:
        poses, _ = poses_and_motions(given, coordinates(found, state))
        for body, theirs in zip(found["links"], state["links"], strict=True):
            link, position, rotation = given.place(body)
            assert link == body
            p, r = poses[link]
            np.testing.assert_allclose(p + r @ position, theirs["position"], rtol=0, atol=1e-10)
            np.testing.assert_allclose(r @ rotation, np.reshape(theirs["rotation"], (3, 3)), rtol=0, atol=1e-10)
            np.testing.assert_allclose(p + r @ masses[link].centre, theirs["centre_of_mass"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", URDF + MJCF)
def test_numbers_of_joints(name):
    found, given = table(name), robot(name)
    sizes = {"free": 6, "ball": 3, "slide": 1, "hinge": 1}
    for key, field in (("armature", "armature"), ("damping", "damping")):
        theirs = {i["name"]: found[key][i["v"] : i["v"] + sizes[i["type"]]] for i in found["joints"]}
        for joint in given.joints:
            assert theirs[joint.name] == [pytest.approx(getattr(joint, field), rel=1e-12)] * joint.n


@pytest.mark.parametrize("name", URDF)
def test_total_mass_of_urdf(name):
    """The sum of the file's own numbers, less what stands still."""
    given = robot(name)
    root = ElementTree.parse(REFERENCE / "models" / f"{name}.urdf").getroot()
    stated = sum(float(node.get("value")) for node in root.iter("mass"))
    assert given.mass + given.static.mass == pytest.approx(stated, rel=1e-12)
    assert given.static.mass > 0 if name in ("panda", "double_pendulum") else given.static.mass == 0


@pytest.mark.parametrize("name", MJCF)
def test_masses_of_mjcf(name):
    given = robot(name)
    mujoco = pytest.importorskip("mujoco")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what a newer version calls deprecated
        model = mujoco.MjModel.from_xml_path(str(REFERENCE / "models" / f"{name}.xml"))
    assert given.mass == pytest.approx(model.body_mass.sum(), rel=1e-12)
    for body in range(1, model.nbody):
        one = next(link for link in given.links if link.name == model.body(body).name)
        assert one.mass == pytest.approx(model.body_mass[body], rel=1e-12)


def test_springs_act_as_in_the_reference():
    """-damping v - stiffness (q - reference) of hinges and slides are the passive forces of the tables."""
    for name in ("mixed_joints", "half_cheetah", "random_tree12"):
        found, given = table(name), robot(name)
        joints = {joint.name: joint for joint in given.joints}
        springs = 0
        for state in found["states"]:
            for item in found["joints"]:
                joint = joints[item["name"]]
                if joint.kind in ("hinge", "slide"):
                    q, v = state["q"][item["q"]], state["v"][item["v"]]
                    force = -joint.damping * v - joint.stiffness * (q - joint.reference)
                    assert state["passive"][item["v"]] == pytest.approx(force, rel=1e-10, abs=1e-12)
                    springs += joint.stiffness > 0
        assert springs or name == "random_tree12"


def test_loop_of_the_four_bar():
    """The two ends of the loop meet in the assembled pose of the reference, and are apart in the zero pose."""
    pytest.importorskip("mujoco")
    given = read_robot(REFERENCE / "models" / "four_bar.xml")
    (loop,) = given.loops
    assert loop.kind == "point"
    trajectory = json.loads((REFERENCE / "trajectories" / "four_bar_trajectory.json").read_text(encoding="utf-8"))
    names = ("crank", "coupler", "rocker")

    def gap(q):
        poses, _ = poses_and_motions(given, {name: [angle] for name, angle in zip(names, q, strict=True)})
        ends = [poses[link][0] + poses[link][1] @ at for link, at in zip(loop.links, loop.positions, strict=True)]
        return np.linalg.norm(ends[0] - ends[1])

    assert max(gap(q) for q in trajectory["q"]) < 1e-10
    assert gap([0.0, 0.0, 0.0]) > 0.1
