"""From a scene to what runs: selections, pins, loads, masses, markers, contact, numbers, recordings, errors."""

import copy
import json

import numpy as np
import pytest

from add.commands.optimize import check_optimization
from add.contact import FrictionLaw
from add.errors import InputError
from add.geometry import surface
from add.kernels import distance
from add.kernels.rotation import rotation_matrix, rotation_vector
from add.mocap import Recording, write_csv
from add.scene import experiment_scenes, load_scene, scene_from_dict
from add.scene.build.scene import build
from add.scene.build.selections import select
from add.scene.spec.common import (
    AllSelectorSpec,
    BoxSelectorSpec,
    NodesSelectorSpec,
    SphereSelectorSpec,
    SurfaceSelectorSpec,
)
from add.simulation import StartUp
from add.terms import Gravity, Inertia, NodalForce

HALF = [2**-0.5, 0, 0, 2**-0.5]  # a quarter turn about z
SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 10},
    "bodies": {
        "block": {
            "type": "soft",
            "mesh": {"shape": "box", "size": [0.4, 0.2, 0.2], "divisions": [4, 2, 2]},
            "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.25, "density": 100},
            "position": [1.0, 2.0, 3.0],
            "orientation": HALF,
        },
        "cube": {
            "type": "soft",
            "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]},
            "element": "hex8",
            "scale": 2.0,
            "mass": "lumped",
            "mean_dilatation": True,
            "material": {"model": "neo-hookean-ciarlet", "mu": 1e4, "lambda": 2e4, "density": 50, "viscosity": 3},
        },
    },
    "obstacles": {
        "floor": {"shape": "plane", "point": [0, 0, -1], "normal": [0, 0, 5]},
        "ball": {"shape": "sphere", "center": [5, 0, 0], "radius": 0.5, "velocity": [0.1, 0, 0]},
    },
}
BLOCK, CUBE = "bodies.block", "bodies.cube"


def edited(*edits):
    raw = copy.deepcopy(SCENE)
    for path, value in edits:
        *parents, last = path.split(".")
        node = raw
        for key in parents:
            node = node[int(key)] if isinstance(node, list) else node.setdefault(key, {})
        node[last] = copy.deepcopy(value)
    return raw


def built(*edits, folder="."):
    return build(scene_from_dict(edited(*edits), folder=folder))


def value(scene, name):
    return scene.model.system.parameters.view(scene.theta, name)


# --- selections ------------------------------------------------------------------------------------------------------


def test_selectors():
    mesh = built().model.bodies[0].mesh
    x = mesh.points

    def chosen(kind, **content):
        return select(mesh, kind(**content), "here").tolist()

    left = chosen(BoxSelectorSpec, box={"max": [-0.2, None, None]})
    assert left == np.flatnonzero(np.isclose(x[:, 0], -0.2)).tolist() and len(left) == 9
    both = chosen(BoxSelectorSpec, box={"min": [-0.1, 0.0, None], "max": [0.1, 0.1, 0.0]})
    inside = (np.abs(x[:, 0]) < 0.101) & (x[:, 1] > -1e-6) & (x[:, 2] < 1e-6)
    assert both == np.flatnonzero(inside).tolist() and len(both) == 12
    near = chosen(SphereSelectorSpec, sphere={"center": [0.2, 0, 0], "radius": 0.1})
    assert near == np.flatnonzero(np.linalg.norm(x - [0.2, 0, 0], axis=1) < 0.1 + 1e-9).tolist() and len(near) == 6
    assert chosen(NodesSelectorSpec, nodes=[7, 3]) == [7, 3]
    assert chosen(SurfaceSelectorSpec, surface=True) == surface(mesh).nodes.tolist()
    assert len(chosen(SurfaceSelectorSpec, surface=True)) == 45 - 3
    assert chosen(AllSelectorSpec, all=True) == list(range(45))


def test_selections_are_in_the_rest_frame_after_scale():
    """The cube is scaled by two: its corner is at 0.1."""
    scene = built((f"{CUBE}.pins", [{"where": {"box": {"min": [0.099, 0.099, 0.099]}}}]))
    (pin,) = scene.model.bodies[1].pins
    assert scene.model.bodies[1].mesh.points[pin.nodes] == pytest.approx(np.full((1, 3), 0.1))


# --- bodies ----------------------------------------------------------------------------------------------------------


def test_bodies_and_settings():
    scene = built(
        (
            "time",
            {"dt": 0.02, "duration": 0.1, "integrator": "bdf1", "newton": {"atol": 1e-5, "rtol": 1e-3, "norm": "l1"}},
        )
    )
    block, cube = scene.model.bodies
    assert (block.law.name, block.mean_dilatation, block.lumped, block.mesh.family.name) == (
        "neo-hookean",
        False,
        False,
        "tet4",
    )
    assert (cube.law.name, cube.mean_dilatation, cube.lumped, cube.mesh.family.name) == (
        "neo-hookean-ciarlet",
        True,
        True,
        "hex8",
    )
    assert np.ptp(cube.mesh.points, axis=0) == pytest.approx([0.2, 0.2, 0.2])
    stepper = scene.simulation.stepper
    assert (stepper.dt, stepper.order, scene.simulation.n_steps) == (0.02, 1, 5)
    assert (stepper.newton.atol, stepper.newton.rtol, stepper.newton.norm) == (1e-5, 1e-3, 1)
    assert built(("time.start", "straight-line")).simulation.stepper.start_up is StartUp.STRAIGHT_LINE


def test_initial_pose_and_velocity():
    """A quarter turn about z: rest x becomes world y; the field is v + omega x (x - centre of mass)."""
    scene = built((f"{BLOCK}.velocity", [1, 0, 0]), (f"{BLOCK}.angular_velocity", [0, 0, 2]))
    q, v = (part.reshape(-1, 3)[:45] for part in scene.model.initial.evaluate(scene.theta))
    x = scene.model.bodies[0].mesh.points
    turned = np.stack([-x[:, 1], x[:, 0], x[:, 2]], axis=1)
    assert q == pytest.approx(turned + np.array([1, 2, 3]), abs=1e-12)
    assert v == pytest.approx(np.stack([1 - 2 * turned[:, 1], 2 * turned[:, 0], 0 * x[:, 0]], axis=1), abs=1e-12)


def test_pins_with_motion():
    """Pinned nodes follow the start plus the signal, along the named axes only."""
    pins = [
        {"where": {"nodes": [0, 5]}, "axes": "xz", "motion": {"signal": "shake"}},
        {"where": {"nodes": [8]}, "motion": [0.01, 0.02, 0.03]},
        {"where": {"nodes": [9]}, "axes": "y"},
    ]
    shake = {"type": "sine", "amplitude": [0.01, 9, 0.02], "offset": [0, 0, 0.005], "frequency": 2.0, "phase": 0.3}
    scene = built((f"{BLOCK}.pins", pins), ("signals.shake", shake))
    system = scene.model.system
    assert system.partition.prescribed.tolist() == [0, 2, 15, 17, 24, 25, 26, 28]
    start, _ = scene.model.initial.evaluate(scene.theta)
    t, omega = 0.07, 4 * np.pi
    moved = system.motion.positions(t, scene.theta) - start[system.partition.prescribed]
    sine = np.sin(omega * t + 0.3)
    once = [0.01 * sine, 0.005 + 0.02 * sine]
    assert moved == pytest.approx([*once, *once, 0.01, 0.02, 0.03, 0.0])
    rates = system.motion.velocities(t, scene.theta)
    cosine = omega * np.cos(omega * t + 0.3)
    assert rates == pytest.approx([*[0.01 * cosine, 0.02 * cosine] * 2, 0, 0, 0, 0])
    trajectory = scene.run(n_steps=2)
    end = system.motion.positions(0.02, scene.theta)
    assert trajectory.q[2, system.partition.prescribed] == pytest.approx(end, abs=1e-12)


SIGNALS = {
    "constant": ({"type": "constant", "value": [1, 2, 3]}, [1, 2, 3]),
    "table": ({"type": "table", "times": [0, 0.1], "values": [[0, 0, 0], [1, 2, 4]]}, [0.5, 1, 2]),
    "sine": ({"type": "sine", "amplitude": [1, 0, 2], "frequency": 5.0}, [1, 0, 2]),
    "spline": (
        {"type": "spline", "times": [0, 0.05, 0.1], "values": [[0, 0, 0], [3, 1, 2], [0, 0, 0]]},
        [3, 1, 2],
    ),
}


@pytest.mark.parametrize("kind", SIGNALS)
def test_loads_with_signals(kind):
    """A load shares its total force equally over its nodes, at each time."""
    signal, expected = SIGNALS[kind]
    load = {"where": {"nodes": [1, 2, 3, 4]}, "force": {"signal": "push"}}
    scene = built((f"{BLOCK}.loads", [load]), ("signals.push", signal))
    (term,) = scene.model.term(NodalForce)
    out = np.zeros(scene.model.system.n)
    kin = scene.run(n_steps=5).kinematics(5)
    term.residual(kin, scene.theta, out)
    force = -out.reshape(-1, 3)  # r = M a - f
    assert kin.t == pytest.approx(0.05)
    assert force[1:5] == pytest.approx(np.tile(np.array(expected) / 4.0, (4, 1)), abs=1e-9)
    assert np.count_nonzero(np.delete(force, [1, 2, 3, 4], axis=0)) == 0


def test_one_signal_drives_a_load_and_a_pin():
    """The rows are one set of numbers, whatever they drive."""
    wave = {"type": "table", "times": [0, 1], "values": [[0, 0, 0], [1, 2, 3]]}
    scene = built(
        (f"{BLOCK}.loads", [{"where": {"nodes": [1]}, "force": {"signal": "wave"}}]),
        (f"{BLOCK}.pins", [{"where": {"nodes": [9]}, "motion": {"signal": "wave"}}]),
        ("signals.wave", wave),
        ("signals.idle", {"type": "constant", "value": [1, 1, 1]}),
    )
    index, unit = scene.numbers.resolve("signals.wave.values.1.2")
    assert index.size == 1 and unit == ""
    s = scene.numbers.values.copy()
    s[index] = 7.0
    theta = scene.numbers.ties.forward(s)
    view = scene.model.system.parameters.view
    assert view(theta, "signals.wave.N")[1].tolist() == view(theta, "signals.wave.m")[1].tolist() == [1.0, 2.0, 7.0]
    assert scene.numbers.resolve("signals.idle.value")[0].size == 3


def mass_matrix(scene):
    """Mass matrix along each axis (3, n_nodes, n_nodes), from the residual of unit accelerations."""
    (inertia,) = scene.model.term(Inertia)
    n = scene.model.system.n
    kin = scene.run(n_steps=1).kinematics(1)
    out = np.zeros((n, n))
    for i in range(n):
        a = np.zeros(n)
        a[i] = 1.0
        inertia.residual(type(kin)(kin.q, np.zeros(n), a, 0.0, 1), scene.theta, out[i])
    return np.stack([out[d::3, d::3] for d in range(3)])


def test_point_masses():
    """A mass adds m w w^T to the mass matrix and m g w to the weight."""
    masses = [
        {"at": [0.03, 0.02, 0.01], "mass": 0.7},
        {"where": {"nodes": [0, 1]}, "mass": 0.3},
    ]
    plain, loaded = built(), built((f"{BLOCK}.point_masses", masses))
    added = (mass_matrix(loaded) - mass_matrix(plain))[0]
    assert added.sum() == pytest.approx(1.0)
    assert mass_matrix(plain)[0].sum() == pytest.approx(100 * 0.016 + 50 * 0.008)
    two = np.zeros(45 + 8)
    two[:2] = 0.5
    rest = added - 0.3 * np.outer(two, two)
    assert np.linalg.matrix_rank(rest, tol=1e-9) == 1
    w = rest.sum(axis=0) / 0.7
    assert w.sum() == pytest.approx(1.0)
    assert w[:45] @ loaded.model.bodies[0].mesh.points == pytest.approx([0.03, 0.02, 0.01])
    weight = []
    for scene in (plain, loaded):
        (gravity,) = scene.model.term(Gravity)
        out = np.zeros(scene.model.system.n)
        gravity.residual(scene.run(n_steps=1).kinematics(1), scene.theta, out)
        weight.append(-out.reshape(-1, 3))
    assert weight[1] - weight[0] == pytest.approx(np.outer(0.7 * w + 0.3 * two, [0, 0, -9.81]), abs=1e-9)


def test_point_mass_parameter():
    scene = built((f"{BLOCK}.point_masses", [{"at": [0, 0, 0], "mass": 0.7}]))
    index, unit = scene.numbers.resolve(f"{BLOCK}.point_masses.0.mass")
    assert scene.numbers.values[index].tolist() == [0.7] and unit == "kg"


# --- markers ---------------------------------------------------------------------------------------------------------


def test_markers():
    """A material point, weighted nodes, and the area-weighted mean of a face; in the order of the scene."""
    scene = built(
        (
            "markers",
            {
                "face": {"body": "block", "surface": {"box": {"min": [0.2, None, None]}}},
                "mean": {"body": "cube", "nodes": [0, 6], "weights": [1, 3]},
                "inner": {"body": "block", "point": [0.03, -0.02, 0.01]},
                "outer": {"body": "block", "point": [0.205, 0.0, 0.0]},
                "equal": {"body": "block", "nodes": [2, 4]},
            },
        )
    )
    assert scene.marker_names == ("face", "mean", "inner", "outer", "equal")
    places = scene.markers.points(scene.run(n_steps=0).kinematics(0), scene.theta)[0]
    cube, block = scene.model.bodies[1].mesh.points, scene.model.bodies[0].mesh.points

    def world(x):
        return np.stack([-x[..., 1], x[..., 0], x[..., 2]], axis=-1) + np.array([1, 2, 3])

    # nodes of the rim count with their whole area: the mean is near the middle, and in the face
    assert places[0] == pytest.approx(world(np.array([0.2, 0, 0])), abs=0.02)
    assert places[0, 1] == pytest.approx(2.2, abs=1e-12)
    assert places[1] == pytest.approx(0.25 * cube[0] + 0.75 * cube[6])
    assert places[2] == pytest.approx(world(np.array([0.03, -0.02, 0.01])))
    assert places[3] == pytest.approx(world(np.array([0.205, 0.0, 0.0])))
    assert places[4] == pytest.approx(world(block[[2, 4]]).mean(axis=0))
    assert scene.markers.weights.sum(axis=1) == pytest.approx(np.ones(5))
    assert built().markers.n_points == 0


def test_surface_marker_weighs_by_area():
    scene = built(("markers", {"all": {"body": "block", "surface": {"all": True}}}))
    boundary = scene.model.bodies[0].surface
    used = scene.markers.weights[0] > 0
    assert scene.markers.nodes[0][used].tolist() == boundary.nodes.tolist()
    assert scene.markers.weights[0][used] == pytest.approx(boundary.areas / boundary.areas.sum())
    assert boundary.areas.sum() == pytest.approx(2 * (0.4 * 0.2 * 2 + 0.2 * 0.2))


# --- obstacles and contact -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "normal", [[0, 0, 5], [0, 0, -1], [1, 0, 0], [-2, 0, 0], [0, 3, 0], [1, -2, 0.5], [0.9, 0.1, 0.0]]
)
def test_plane_orientation(normal):
    """The free side is where the normal points, whatever its length."""
    scene = built(
        ("obstacles", {"wall": {"shape": "plane", "point": [1, 2, 3], "normal": normal, "velocity": [0, 1, 0]}})
    )
    (wall,) = scene.model.obstacles
    n = np.array(normal) / np.linalg.norm(normal)
    assert wall.rotation.T @ wall.rotation == pytest.approx(np.eye(3), abs=1e-14)
    assert np.linalg.det(wall.rotation) == pytest.approx(1.0)
    assert wall.rotation[:, 2] == pytest.approx(n)
    assert (wall.kind, wall.position.tolist(), wall.velocity.tolist()) == (distance.PLANE, [1, 2, 3], [0, 1, 0])
    if normal == [0, 0, 5]:
        assert (wall.rotation == np.eye(3)).all()


def test_shapes_of_obstacles():
    turned = {"center": [1, 2, 3], "orientation": HALF}
    scene = built(
        (
            "obstacles",
            {
                "ball": {"shape": "sphere", "center": [1, 2, 3], "radius": 0.5},
                "box": {"shape": "box", "half_size": [1, 2, 3], **turned},
                "capsule": {"shape": "capsule", "radius": 0.1, "half_length": 0.4, **turned},
                "rod": {"shape": "cylinder", "radius": 0.1, "half_length": 0.4, **turned},
            },
        )
    )
    kinds = [(o.kind, tuple(o.size)) for o in scene.model.obstacles]
    assert kinds == [
        (distance.SPHERE, (0.5, 0, 0)),
        (distance.BOX, (1, 2, 3)),
        (distance.CAPSULE, (0.1, 0.4, 0)),
        (distance.CYLINDER, (0.1, 0.4, 0)),
    ]
    for obstacle in scene.model.obstacles[1:]:
        assert obstacle.rotation == pytest.approx(np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]]), abs=1e-12)
        assert obstacle.position.tolist() == [1, 2, 3]


def test_contact_pairs():
    """What a pair says counts for it, the rest for all; a pair may be switched off."""
    contact = {
        "stiffness": 1000,
        "friction": 0.4,
        "friction_law": "tanh",
        "coulomb_normal": "total",
        "onset": 0.001,
        "damping_ramp": 0.002,
        "pairs": [
            {"body": "block", "obstacle": "ball", "friction": 0.8, "stiffness": 500},
            {"body": "cube", "obstacle": "floor", "stick_stiffness": 7, "damping": 2},
            {"body": "cube", "obstacle": "ball", "enabled": False},
        ],
    }
    scene = built(("contact", contact))
    found = {
        pair: tuple(float(value(scene, f"contact.{pair}.{key}")) for key in ("k_n", "k_d", "k_t", "c_f"))
        for pair in ("block.floor", "block.ball", "cube.floor", "cube.ball")
    }
    assert found == {
        "block.floor": (1000, 0, 10, 0.4),
        "block.ball": (500, 0, 5, 0.8),
        "cube.floor": (1000, 2, 7, 0.4),
        "cube.ball": (1000, 0, 10, 0.4),
    }
    term = scene.model.system.deciding[0]
    assert term.law is FrictionLaw.TANH and term.total_normal
    assert term.pairs.enabled.tolist() == [[True, True], [True, False]]
    assert (term.pairs.onset == 0.001).all() and (term.pairs.ramp == 0.002).all()
    assert (term.scale == 1.0).all()
    areas = built(("contact", {"stiffness_per": "area"})).model.system.deciding[0].scale
    assert areas.sum() == pytest.approx(0.4 + 0.24)


@pytest.mark.parametrize(
    ("integrator", "rule", "factor"),
    [("bdf1", "dt", 1.0), ("bdf2", "dt", 1.0), ("bdf1", "effective-dt", 1.0), ("bdf2", "effective-dt", 2 / 3)],
)
def test_stick_stiffness_is_tied_to_stiffness(integrator, rule, factor):
    """k_t = k_n dt, of the step that the integrator takes: a change of k_n changes both."""
    scene = built(("time.integrator", integrator), ("contact", {"stiffness": 300, "stick_stiffness_rule": rule}))
    assert value(scene, "contact.*.floor.k_t") == pytest.approx(300 * 0.01 * factor)
    dot = np.zeros(scene.numbers.layout.n)
    dot[scene.numbers.resolve("contact.stiffness")[0]] = 1.0
    theta_dot = scene.numbers.ties.pushforward(scene.numbers.values, dot)
    view = scene.model.system.parameters.view
    assert view(theta_dot, "contact.*.ball.k_n") == 1.0
    assert view(theta_dot, "contact.*.ball.k_t") == pytest.approx(0.01 * factor)
    assert "contact.stick_stiffness" not in scene.numbers.layout


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_young_and_poisson_are_tied_to_lame():
    scene = built()
    assert value(scene, f"{BLOCK}.mu") == pytest.approx(2e4 / 2.5)
    assert value(scene, f"{BLOCK}.lambda") == pytest.approx(2e4 * 0.25 / (1.25 * 0.5))
    assert (value(scene, f"{CUBE}.mu"), value(scene, f"{CUBE}.lambda")) == (1e4, 2e4)
    with pytest.raises(InputError, match="cannot be a parameter"):
        scene.numbers.resolve(f"{BLOCK}.material.mu")


def test_every_entry_of_theta_follows_from_a_number():
    """No number of theta is left at zero by mistake: each has a source, or is what its mesh makes it."""
    scene = built(
        (f"{BLOCK}.loads", [{"where": {"nodes": [1]}, "force": [1, 2, 3]}]),
        (f"{BLOCK}.pins", [{"where": {"nodes": [9]}, "motion": [0, 0, 1]}]),
        (f"{BLOCK}.point_masses", [{"at": [0, 0, 0], "mass": 1}]),
    )
    ties, layout = scene.numbers.ties, scene.model.system.parameters
    copied, *tied, _ = ties.maps
    fed = set(copied.target.tolist()) | {i - copied.n_in for tie in tied for i in tie.outputs.ravel().tolist()}
    assert [layout.describe(i) for i in range(layout.n) if i not in fed and scene.theta[i] <= 0.0] == []


@pytest.mark.parametrize(
    ("path", "size", "unit", "first"),
    [
        ("gravity", 3, "m/s^2", 0.0),
        ("gravity.2", 1, "m/s^2", -9.81),
        (f"{BLOCK}.material.young", 1, "Pa", 2e4),
        (f"{BLOCK}.material.poisson", 1, "-", 0.25),
        (f"{CUBE}.material.lambda", 1, "Pa", 2e4),
        (f"{CUBE}.material.density", 1, "kg/m^3", 50.0),
        (f"{CUBE}.material.viscosity", 1, "Pa s", 3.0),
        (f"{CUBE}.material.rayleigh_mass", 1, "1/s", 0.0),
        (f"{CUBE}.material.rayleigh_stiffness", 1, "s", 0.0),
        (f"{BLOCK}.position", 3, "m", 1.0),
        (f"{BLOCK}.position.1", 1, "m", 2.0),
        (f"{BLOCK}.orientation", 3, "rad", 0.0),
        (f"{BLOCK}.velocity", 3, "m/s", 0.0),
        (f"{BLOCK}.angular_velocity.0", 1, "rad/s", 0.0),
        (f"{BLOCK}.loads.0.force", 3, "N", 1.0),
        (f"{BLOCK}.pins.0.motion.2", 1, "m", 6.0),
        ("signals.push.values", 6, "N", 0.0),
        ("signals.push.values.1", 3, "N", 3.0),
        ("signals.push.values.1.2", 1, "N", 5.0),
        ("signals.shake.amplitude.1", 1, "m", 8.0),
        ("signals.shake.offset", 3, "m", 1.0),
        ("contact.stiffness", 1, "N/m", 1e3),
        ("contact.friction", 1, "-", 0.4),
        ("contact.damping", 1, "N s/m", 0.0),
        ("contact.pairs.0.friction", 1, "-", 0.9),
    ],
)
def test_resolve(path, size, unit, first):
    load = {"where": {"nodes": [1]}, "force": [1, 2, 3]}
    scene = built(
        (f"{BLOCK}.loads", [load, {"where": {"nodes": [2]}, "force": {"signal": "push"}}]),
        (
            f"{BLOCK}.pins",
            [{"where": {"nodes": [9]}, "motion": [4, 5, 6]}, {"where": {"nodes": [8]}, "motion": {"signal": "shake"}}],
        ),
        ("signals.push", {"type": "table", "times": [0, 1], "values": [[0, 1, 2], [3, 4, 5]]}),
        ("signals.shake", {"type": "sine", "amplitude": [7, 8, 9], "offset": [1, 1, 1], "frequency": 2.0}),
        ("contact.pairs", [{"body": "block", "obstacle": "floor", "friction": 0.9}]),
    )
    index, found = scene.numbers.resolve(path)
    assert (index.size, found) == (size, unit)
    assert scene.numbers.values[index[0]] == pytest.approx(first)


def test_units_per_area():
    scene = built(("contact", {"stiffness_per": "area", "stick_stiffness": 5.0}))
    units = [scene.numbers.resolve(f"contact.{key}")[1] for key in ("stiffness", "damping", "stick_stiffness")]
    assert units == ["N/m/m^2", "N s/m/m^2", "N s/m/m^2"]


@pytest.mark.parametrize(
    ("quaternion", "vector"),
    [
        ([1, 0, 0, 0], [0, 0, 0]),
        ([-1, 0, 0, 0], [0, 0, 0]),
        (HALF, [0, 0, np.pi / 2]),
        ([-x for x in HALF], [0, 0, np.pi / 2]),
        ([0, 1, 0, 0], [np.pi, 0, 0]),
        ([0.5, 0.5, 0.5, 0.5], [2 * np.pi / 3 / 3**0.5] * 3),
        ([0.99995, 0.0, 0.0099998333, 0.0], [0, 0.02, 0]),
    ],
)
def test_orientation_is_a_rotation_vector(quaternion, vector):
    scene = built((f"{BLOCK}.orientation", quaternion))
    found = value(scene, f"{BLOCK}.orientation")
    assert rotation_matrix(found.copy()) == pytest.approx(rotation_matrix(np.array(vector, dtype=float)), abs=1e-6)
    assert np.linalg.norm(found) <= np.pi + 1e-12


# --- recordings ------------------------------------------------------------------------------------------------------


def record(folder, times, positions, names=("A", "B", "C", "D"), valid=None):
    positions = np.asarray(positions, dtype=float)
    valid = np.ones(positions.shape[:2], dtype=bool) if valid is None else valid
    write_csv(folder / "r.csv", Recording(tuple(names), np.asarray(times, float), positions, valid, ""))


MARKERS = {"a": {"body": "cube", "nodes": [0]}, "b": {"body": "cube", "nodes": [6]}}


def with_recording(folder, **options):
    recording = {"file": "r.csv", "markers": {"A": "a", "B": "b"}, **options}
    return scene_from_dict(
        edited(
            ("markers", MARKERS),
            ("recording", recording),
            ("objective", [{"type": "markers"}]),
            ("parameters", [{"path": "gravity"}]),
        ),
        folder=folder,
    )


def test_recording_is_registered_cropped_and_masked(tmp_path):
    """Positions come to the scene's frame, times to its clock; what is outside or masked counts nowhere."""
    rest = {"B": [0.1, 0.1, 0.1], "C": [0.3, 0, 0], "D": [0, 0.2, -0.1], "A": [0, 0, 0.4]}
    world = np.array([rest[name] for name in "ABCD"])
    rotation, shift = rotation_matrix(np.array([0.4, -1.1, 0.7])), np.array([3.0, -2.0, 1.0])
    times = 7.0 + np.arange(30) * 0.01
    moving = world + np.where(times < 7.055, 0.0, times - 7.055)[:, None, None] * np.array([0.0, 0.0, 1.0])
    frames = 1000 * ((moving - shift) @ rotation)
    record(tmp_path, times, frames / 1000)
    scene = with_recording(
        tmp_path,
        register={"markers": {name: rest[name] for name in "BCD"}, "window": [7.0, 7.05]},
        time_offset=7.1,
        crop=[0.01, 0.07],
        mask=[{"marker": "B", "from": 0.035, "to": 0.055}],
    )
    (experiment,) = scene.inverse_problem().experiments
    found = experiment.recording
    assert found.names == ("a", "b")
    assert found.times == pytest.approx(np.arange(1, 8) * 0.01)
    assert found.positions[:, 0] == pytest.approx(moving[11:18, 0], abs=1e-9)
    assert found.valid[:, 0].all() and found.valid[:, 1].tolist() == [True, True, True, False, False, True, True]
    (tracking,) = experiment.objective.objectives
    assert tracking.n_samples == 12 and tracking.weights.sum() == pytest.approx(1.0)
    assert (tracking.weights[found.valid] == 1 / 12).all()


def test_recording_ends_with_the_simulation(tmp_path):
    """A frame at the very end, or a rounding error away from the start, counts."""
    times = np.array([0.3, 0.35, 0.3 + 0.1, 0.41])
    record(tmp_path, times, np.zeros((4, 4, 3)))
    scene = with_recording(tmp_path, time_offset=0.1 + 0.2)
    (experiment,) = scene.inverse_problem().experiments
    assert experiment.recording.times == pytest.approx([0.0, 0.05, 0.1], abs=1e-15)
    assert experiment.recording.times[0] == 0.0
    (tracking,) = experiment.objective.objectives
    assert tracking.points.n_points == 2


def test_recording_in_millimetres(tmp_path):
    (tmp_path / "r.csv").write_text("time_s,A_x_mm,A_y_mm,A_z_mm,B_x_mm,B_y_mm,B_z_mm\n0,1,2,3,4,5,6\n")
    (experiment,) = with_recording(tmp_path, unit="mm").inverse_problem().experiments
    assert experiment.recording.positions[0] == pytest.approx(np.array([[1, 2, 3], [4, 5, 6]]) / 1000)


def test_experiments_have_recordings_of_their_own(tmp_path):
    record(tmp_path, [0.0, 0.05], np.zeros((2, 4, 3)))
    (tmp_path / "r.csv").rename(tmp_path / "other.csv")
    record(tmp_path, [0.0, 0.05, 0.1], np.ones((3, 4, 3)))
    recording = {"file": "r.csv", "markers": {"A": "a"}}
    raw = edited(
        ("markers", MARKERS),
        ("recording", recording),
        ("objective", [{"type": "markers"}]),
        ("parameters", [{"path": f"{CUBE}.velocity"}]),
        (
            "experiments",
            [{"name": "one"}, {"name": "two", "recording": {**recording, "file": "other.csv", "markers": {"B": "b"}}}],
        ),
    )
    one, two = scene_from_dict(raw, folder=tmp_path).inverse_problem().experiments
    assert (one.recording.names, one.recording.times.size) == (("a",), 3)
    assert (two.recording.names, two.recording.times.size) == (("b",), 2)


# --- errors ----------------------------------------------------------------------------------------------------------

TOP = {"top": {"body": "cube", "point": [0, 0, 0.1]}}
POINT = [{"type": "point", "marker": "top", "target": [0, 0, 0], "time": "end"}]
FIT = [("markers", TOP), ("objective", POINT), ("parameters", [{"path": "gravity"}])]
RECORDING = [
    ("markers", MARKERS),
    ("objective", [{"type": "markers"}]),
    ("parameters", [{"path": "gravity"}]),
    ("recording", {"file": "r.csv", "markers": {"A": "a", "B": "b"}}),
]
# edits, file of the error (None: the scene), its place, a word
ERRORS = {
    "pin nowhere": (
        [(f"{BLOCK}.pins", [{"where": {"all": True}}, {"where": {"box": {"min": [9, None, None]}}}])],
        None,
        f"{BLOCK}.pins.1.where",
        "holds no node",
    ),
    "no such node": (
        [(f"{BLOCK}.loads", [{"where": {"nodes": [45]}, "force": [0, 0, 1]}])],
        None,
        f"{BLOCK}.loads.0.where.nodes",
        "0..44",
    ),
    "pinned twice": (
        [
            (
                f"{BLOCK}.pins",
                [{"where": {"nodes": [1]}, "axes": "xy"}, {"where": {"all": True}, "axes": "y", "motion": [0, 1, 0]}],
            )
        ],
        None,
        f"{BLOCK}.pins.1",
        "node 1 is already held along y",
    ),
    "mass outside": (
        [(f"{BLOCK}.point_masses", [{"at": [1, 0, 0], "mass": 1}])],
        None,
        f"{BLOCK}.point_masses.0.at",
        "outside the body",
    ),
    "mass nowhere": (
        [(f"{BLOCK}.point_masses", [{"where": {"sphere": {"center": [0, 5, 0], "radius": 1}}, "mass": 1}])],
        None,
        f"{BLOCK}.point_masses.0.where",
        "holds no node",
    ),
    "marker outside": (
        [("markers", {"top": {"body": "block", "point": [0, 0, 0.15]}})],
        None,
        "markers.top.point",
        "0.05 m away",
    ),
    "marker nodes": (
        [("markers", {"top": {"body": "cube", "nodes": [3, 8]}})],
        None,
        "markers.top.nodes",
        "no such node",
    ),
    "marker inside": (
        [("markers", {"top": {"body": "block", "surface": {"sphere": {"center": [0, 0, 0], "radius": 0.01}}}})],
        None,
        "markers.top.surface",
        "no surface node",
    ),
    "mesh file": ([(f"{BLOCK}.mesh", {"file": "bad.msh"})], "bad.msh", f"{BLOCK}.mesh.file", "cannot be read"),
    "element of the file": (
        [(f"{BLOCK}.mesh", {"file": "tet.vtk"}), (f"{BLOCK}.element", "hex8")],
        "tet.vtk",
        f"{BLOCK}.mesh.file",
        "hex8",
    ),
    "nothing to minimise": ([("parameters", [{"path": "gravity"}])], None, "objective", "nothing to minimise"),
    "nothing to change": ([("objective", POINT), ("markers", TOP)], None, "parameters", "nothing to change"),
    "not differentiated": (
        [*FIT, ("parameters", [{"path": "contact.onset"}])],
        None,
        "parameters.0.path",
        "cannot be a parameter",
    ),
    "obstacle": (
        [*FIT, ("parameters", [{"path": "obstacles.ball.radius"}])],
        None,
        "parameters.0.path",
        "cannot be a parameter",
    ),
    "window between steps": (
        [*FIT, ("objective", [{k: v for k, v in POINT[0].items() if k != "time"} | {"window": [0.011, 0.019]}])],
        None,
        "objective.0.window",
        "no step ends",
    ),
    "pose of another mesh": (
        [*FIT, ("objective", [{"type": "pose", "body": "cube", "positions_file": "pose.csv", "time": "end"}])],
        "pose.csv",
        "objective.0.positions_file",
        "(2, 3)",
    ),
    "pose that is text": (
        [*FIT, ("objective", [{"type": "pose", "body": "cube", "positions_file": "bad.msh", "time": "end"}])],
        "bad.msh",
        "objective.0.positions_file",
        "not a table of numbers",
    ),
    "no recording": ([*RECORDING[:3]], None, "", "recording"),
    "phase sees nothing": (
        [*FIT, ("optimizer", {"phases": [{"name": "early", "end_time": 0.05}]})],
        None,
        "optimizer.phases",
        "lies in the window",
    ),
    "recording of others": (
        [*RECORDING, ("recording.markers", {"A": "a", "Z": "b"})],
        "r.csv",
        "recording",
        "Z",
    ),
    "recording before": (
        [*RECORDING, ("recording.time_offset", 50.0)],
        "r.csv",
        "recording.time_offset",
        "frames from -50 to -49.9 s on the clock of the simulation, with a time_offset of 50 s; expected one within "
        "[0, 0.1] s",
    ),
    "recording not in its window": (
        [*RECORDING, ("recording.crop", [0.01, 0.02])],
        "r.csv",
        "recording.crop",
        "no frame lies in this window",
    ),
    "no recording there": (
        [*RECORDING, ("recording.file", "bad.msh")],
        "bad.msh",
        "recording",
        "",
    ),
    "surface": (
        [("bodies.stone", {"type": "rigid", "mass": 1, "geometry": {"file": "bad.stl"}})],
        "bad.stl",
        "bodies.stone.geometry.file",
        "",
    ),
    "register others": (
        [*RECORDING, ("recording.register", {"markers": {"A": [0, 0, 0], "B": [1, 0, 0], "Z": [0, 1, 0]}})],
        "r.csv",
        "recording",
        "Z",
    ),
    "all masked": (
        [*RECORDING, ("recording.mask", [{"marker": m, "from": 0, "to": 1} for m in "AB"])],
        "r.csv",
        "recording",
        "no marker is seen",
    ),
    "displacement of a missing marker": (
        [*RECORDING, ("recording.displacement", True), ("recording.file", "hole.csv")],
        None,
        "recording",
        "no b",
    ),
}
VTK = """# vtk DataFile Version 3.0
tet
ASCII
DATASET UNSTRUCTURED_GRID
POINTS 4 double
0 0 0 1 0 0 0 1 0 0 0 1
CELLS 1 5
4 0 1 2 3
CELL_TYPES 1
10
"""


@pytest.fixture
def files(tmp_path):
    times = np.array([0.0, 0.05, 0.1])
    valid = np.ones((3, 4), dtype=bool)
    valid[0, 1] = False
    record(tmp_path, times, np.where(valid[:, :, None], 0.1, np.nan) * np.ones((3, 4, 3)), valid=valid)
    (tmp_path / "r.csv").rename(tmp_path / "hole.csv")
    record(tmp_path, times, np.random.default_rng(0).normal(size=(3, 4, 3)))
    (tmp_path / "bad.msh").write_text("this is no mesh")
    (tmp_path / "bad.stl").write_text("this is no surface")
    (tmp_path / "tet.vtk").write_text(VTK)
    (tmp_path / "pose.csv").write_text("1,2,3\n4,5,6\n")
    return tmp_path


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_file_and_place(files, case):
    edits, file, place, word = ERRORS[case]
    path = files / "scene.json"
    path.write_text(json.dumps(edited(*edits)))
    with pytest.raises(InputError) as caught:
        scene = load_scene(path)
        if {"objective", "parameters"} & {name for name, _ in edits}:
            check_optimization(scene)
        else:
            scene.build()
    error = caught.value
    assert str(error.file) == str(path), "the scene, whatever file it names"
    assert file is None or str(files / file) in error.message
    assert str(error.place or "").startswith(place)
    text = str(error)
    assert word in text and str(error.file) in text and place in text
    assert "\n" not in text


def test_errors_of_scenes_without_a_file():
    with pytest.raises(InputError, match=r"^bodies\.block\.pins\.0\.where: the selection holds no node"):
        built((f"{BLOCK}.pins", [{"where": {"box": {"min": [9, None, None]}}}]))


ORIENTATIONS = {
    "start as a quaternion": {"path": f"{BLOCK}.orientation", "start": HALF},
    "fourth entry": {"path": f"{BLOCK}.orientation.3"},
    "bounds on the angle": {"path": f"{BLOCK}.orientation", "bounds": [-2.0, 0.5]},
}


@pytest.mark.parametrize("case", ORIENTATIONS)
def test_orientation_as_a_parameter(case):
    """The parameter is the rotation vector [rad]: what does not fit is an input error, what fits is not."""
    raw = edited(*FIT[:2], ("parameters", [ORIENTATIONS[case]]), (f"{BLOCK}.orientation", [1, 0, 0, 0]))
    if case == "bounds on the angle":
        assert scene_from_dict(raw).inverse_problem().values(np.zeros(3)).tolist() == [0, 0, 0]
    else:
        with pytest.raises(InputError, match=r"parameters\.0"):
            scene_from_dict(raw).inverse_problem()


def test_orientation_start():
    """Without a start the scene's orientation is where the search begins."""
    raw = edited(*FIT[:2], ("parameters", [{"path": f"{BLOCK}.orientation"}]))
    problem = scene_from_dict(raw).inverse_problem()
    assert problem.values(problem.x0) == pytest.approx([0, 0, np.pi / 2])
    assert problem.units() == ["rad"] * 3


def test_experiment_scenes_build():
    """An experiment's overrides reach the numbers that theta is made of."""
    raw = edited(("experiments", [{"name": "heavy", "overrides": {f"{CUBE}.material.density": 80}}, {"name": "same"}]))
    scenes = {name: build(item) for name, item in experiment_scenes(scene_from_dict(raw)).items()}
    assert value(scenes["heavy"], f"{CUBE}.density") == 80 and value(scenes["same"], f"{CUBE}.density") == 50


def test_anchors_hold_points_exactly():
    """Points between nodes stay where they start, or go where a signal says, under gravity."""
    bar = {
        "type": "soft",
        "mesh": {"shape": "box", "size": [0.4, 0.1, 0.1], "divisions": [4, 1, 1]},
        "material": {"model": "neo-hookean", "young": 1e5, "poisson": 0.3, "density": 1000},
        "position": [0.0, 0.0, 1.0],
        "orientation": [0.6, 0.0, 0.8, 0.0],
        "anchors": [{"at": [-0.13, 0.01, 0.02]}, {"at": [0.17, 0.0, 0.03], "place": {"signal": "up"}}],
    }
    start = rotation_matrix(rotation_vector((0.6, 0.0, 0.8, 0.0))) @ [0.17, 0.0, 0.03] + [0.0, 0.0, 1.0]
    scene = scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.01, "steps": 6},
            "bodies": {"bar": bar},
            "signals": {"up": {"type": "table", "times": [0, 0.05], "values": [list(start), list(start + 0.02)]}},
            "markers": {
                "a": {"body": "bar", "point": [-0.13, 0.01, 0.02]},
                "b": {"body": "bar", "point": [0.17, 0, 0.03]},
            },
        }
    ).build()
    run = scene.run()
    first, last = (scene.markers.points(run.kinematics(k), scene.theta)[0] for k in (0, 6))
    np.testing.assert_allclose(last[0], first[0], atol=1e-13)
    np.testing.assert_allclose(last[1], first[1] + 0.02, atol=1e-13)
    assert np.abs(run.records[-1].mu).max() > 1.0  # they carry the weight
