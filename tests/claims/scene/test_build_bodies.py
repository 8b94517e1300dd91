"""From a scene to bodies: selections, poses, pins, loads, masses."""

import numpy as np
import pytest
from support.cube_scene import (
    BLOCK,
    CUBE,
    built,
)

from add.geometry import surface
from add.kernels.rotation import rotation_matrix, rotation_vector
from add.scene import scene_from_dict
from add.scene.build.selections import select
from add.scene.spec.common import (
    AllSelectorSpec,
    BoxSelectorSpec,
    NodesSelectorSpec,
    SphereSelectorSpec,
    SurfaceSelectorSpec,
)
from add.simulation import StartUp
from add.simulation.substeps import whole_steps
from add.terms import Gravity, Inertia, NodalForce


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
    stepper = whole_steps(scene.simulation.stepper)
    assert (stepper.dt, stepper.order, scene.simulation.n_steps) == (0.02, 1, 5)
    assert (stepper.newton.atol, stepper.newton.rtol, stepper.newton.norm) == (1e-5, 1e-3, 1)
    assert whole_steps(built(("time.start", "straight-line")).simulation.stepper).start_up is StartUp.STRAIGHT_LINE


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
