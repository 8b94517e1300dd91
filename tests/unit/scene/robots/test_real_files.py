"""Robots' files as they are found: each is read, or refused for what is wrong with it."""

import numpy as np
import pytest
from support.places import DATA
from support.robot_files import INERTIAL, joint, link, urdf, written

from add.errors import InputError
from add.scene.robots import read_robot

ROBOTS = DATA / "robots"
there = pytest.mark.skipif(not ROBOTS.exists(), reason="shared/data with robots is not there")

# file: words of `ignore` for which scenes warn of nothing, moving links, coordinates, mass [kg]
READ = {
    "example_robot_data_bsd3/a1_description/urdf/a1.urdf": ("", 12, 12, 7.74),
    "example_robot_data_bsd3/double_pendulum_description/urdf/double_pendulum_simple.urdf": ("", 2, 2, 0.5),
    "example_robot_data_bsd3/laikago_description/urdf/laikago.urdf": ("", 12, 12, 11.7),
    "example_robot_data_bsd3/panda_description/urdf/panda.urdf": ("mesh", 9, 8, 16.8221),
    "example_robot_data_bsd3/quadruped_description/urdf/quadruped.urdf": ("", 8, 8, 0.772),
    "example_robot_data_bsd3/simple_humanoid_description/urdf/simple_humanoid.urdf": ("mesh", 29, 29, 103.8),
    "example_robot_data_bsd3/solo_description/robots/solo12.urdf": ("mesh", 12, 12, 1.3389),
    "example_robot_data_bsd3/ur_description/urdf/ur5_robot.urdf": ("", 6, 6, 16.9939),
    "pybullet_data_zlib/laikago/laikago_toes_zup.urdf": ("mesh", 12, 12, 11.852),
    "pybullet_data_zlib/quadruped/quadruped.urdf": ("", 16, 16, 2.8),
    "pybullet_data_zlib/laikago/laikago.urdf": ("mesh", 12, 12, 11.452),
    # pitfall 19: a dummy of 1e-6 kg with a singular tensor, all entries equal; where it stands still, it is a note
    "example_robot_data_bsd3/anymal_b_simple_description/robots/anymal.urdf": ("", 12, 12, 13.6319),
    "pybullet_data_zlib/mini_cheetah/mini_cheetah.urdf": ("mesh inertia", 12, 12, 5.552),
    "roboschool_mit/atlas_v4_with_multisense.urdf": ("", 30, 30, 172.9078),
    "gymnasium_mit/ant.xml": ("", 9, 14, 0.9109),
    "gymnasium_mit/hopper.xml": ("", 6, 6, 15.82),
    "gymnasium_mit/humanoid.xml": ("", 18, 23, 42.116),
    "gymnasium_mit/inverted_double_pendulum.xml": ("", 3, 3, 18.8695),
    "gymnasium_mit/pusher.xml": ("", 11, 11, 13.673),
    "gymnasium_mit/reacher.xml": ("", 4, 4, 0.0785),
    "gymnasium_mit/swimmer.xml": ("", 5, 5, 106.8142),
    "gymnasium_mit/walker2d_v5.xml": ("", 9, 9, 23.6771),
}
REFUSED = {
    "pybullet_data_zlib/mjcf/half_cheetah.xml": "MuJoCo refuses the file: XML Error: required attribute missing: 'pos'",
}


def needs(name):
    if name.endswith(".xml"):
        pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")


@there
@pytest.mark.parametrize("name", READ)
def test_read(name):
    needs(name)
    word, links, n, mass = READ[name]
    robot = read_robot(ROBOTS / name)
    assert bool(robot.doubts) == bool(word) and not read_robot(ROBOTS / name, ignore=word.split()).doubts
    assert (len(robot.links), robot.n) == (links, n)
    assert robot.mass == pytest.approx(mass, abs=1e-4)


@there
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    needs(name)
    with pytest.raises(InputError, match=REFUSED[name]):
        read_robot(ROBOTS / name)


@there
def test_repaired():
    """The dummy of anymal is merged into the base with two more links; of a cheetah, several legs are near."""
    file = ROBOTS / "example_robot_data_bsd3/anymal_b_simple_description/robots/anymal.urdf"
    robot = read_robot(file, ignore=["mesh"], repair=True, base="free")
    assert robot.links[0].mass == pytest.approx(16.843507758 + 1e-6, rel=1e-12)
    assert sum("repaired" in line for line in robot.ignored) == 1
    file = ROBOTS / "pybullet_data_zlib/mini_cheetah/mini_cheetah.urdf"
    assert read_robot(file, ignore=["mesh"], repair=True).n == 12


def l_shape(folder):
    """Write an L of three cubes, whose convex hull has half a cube more; return its vertices."""
    outline = np.array([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]], dtype=float)
    bottom = np.column_stack([outline, np.zeros(6)])
    points = np.concatenate([bottom, bottom + np.array([0, 0, 1])])
    caps = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
    faces = [face[::-1] for face in caps] + [tuple(6 + k for k in face) for face in caps]
    for k in range(6):
        m = (k + 1) % 6
        faces += [(k, m, 6 + m), (k, 6 + m, 6 + k)]
    lines = [f"v {x} {y} {z}" for x, y, z in points] + ["f " + " ".join(str(k + 1) for k in face) for face in faces]
    (folder / "l.obj").write_text("\n".join(lines), encoding="ascii")
    return points


def volume(shape):
    a, b, c = (shape.vertices[shape.triangles[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6


def test_meshes_do_not_become_their_hulls(tmp_path):
    """Pitfall 22: what is not convex stays so, and where it is, also in the frame that MuJoCo gives a mesh."""
    points = l_shape(tmp_path)
    mesh = '<collision><geometry><mesh filename="l.obj"/></geometry></collision>'
    path = written(tmp_path, urdf(link("base"), link("arm", INERTIAL, mesh), joint("turn", "base", "arm")))
    pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")
    other = written(
        tmp_path,
        '<mujoco><asset><mesh name="l" file="l.obj"/></asset><worldbody><body name="arm"><joint pos="0.3 0.1 0.2"/>'
        '<geom type="mesh" mesh="l"/></body></worldbody></mujoco>',
        "l.xml",
    )
    for file in (path, other):
        robot = read_robot(file)
        (shape,) = robot.links[0].collision
        assert volume(shape) == pytest.approx(3.0, rel=1e-6)  # of the hull: 3.5
        _, origin, _ = robot.place("arm")
        found = shape.vertices @ shape.rotation.T + shape.position - origin
        distances = np.linalg.norm(found[:, None] - points[None], axis=2)
        assert distances.min(axis=1).max() < 1e-6 and distances.min(axis=0).max() < 1e-6
