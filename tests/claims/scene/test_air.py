"""Air on bodies of scenes: terminal velocities, forces of a steady wind, gradients, and what is refused."""

import copy

import numpy as np
import pytest

from add.errors import InputError
from add.scene import apply_overrides, scene_from_dict
from add.scene.build.coupling_parts import is_closed

BALL = {
    "type": "rigid",
    "geometry": {"shape": "sphere", "radius": 0.1},
    "mass": 0.05,
    "position": [0, 0, 5],
}
SHEET = {
    "type": "mass-spring",
    "mesh": {"shape": "sheet", "size": [0.4, 0.3], "divisions": [2, 2]},
    "mass": 0.02,
    "stiffness": 50,
    "damping": 0.1,
    "position": [0, 0, 2],
}
BOX = {
    "type": "rigid",
    "geometry": {"shape": "box", "size": [0.2, 0.3, 0.4]},
    "mass": 1.0,
    "orientation": [0.9238795325112867, 0, 0, 0.3826834323650898],
}
SOFT = {
    "type": "soft",
    "mesh": {"shape": "box", "size": [0.2, 0.3, 0.4], "divisions": [1, 2, 2]},
    "material": {"model": "neo-hookean", "young": 1e5, "poisson": 0.3, "density": 20},
}


def scene(body, /, *, time=None, gravity=(0, 0, -9.81), **air):
    return scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": time or {"dt": 0.005, "steps": 200, "integrator": "bdf2"},
            "gravity": list(gravity),
            "bodies": {"body": copy.deepcopy(body)},
            "couplings": {"air": air},
        }
    )


def of_whole(**more):
    return {"type": "drag", "on": {"body": "body"}, **more}


def on_faces(**more):
    return {"type": "air", "body": "body", **more}


def test_a_ball_falls_as_fast_as_drag_lets_it():
    """v = v_t tanh(g t / v_t),  v_t = sqrt(2 m g / (rho C A))."""
    run = scene(BALL, **of_whole()).build().run()
    limit = np.sqrt(2 * 0.05 * 9.81 / (1.2 * 0.47 * np.pi * 0.01))
    assert run.v[-1, 2] == pytest.approx(-limit * np.tanh(9.81 / limit), rel=1e-5)
    assert abs(run.v[-1, 2]) < 0.9 * 9.81  # without air: 9.81


def test_a_plate_falls_flat_at_its_own_speed():
    """m g = rho C A v^2 / 2 on the face below alone, C = 2."""
    plate = {"type": "rigid", "geometry": {"shape": "box", "size": [0.4, 0.3, 0.01]}, "mass": 0.02}
    run = scene(plate, time={"dt": 0.01, "steps": 150}, **on_faces()).build().run()
    limit = np.sqrt(0.02 * 9.81 / (1.2 * 0.4 * 0.3))
    np.testing.assert_allclose(run.v[-1], [0, 0, -limit, 0, 0, 0], rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("up", [3.0, -3.0])
def test_a_sheet_is_pressed_from_both_sides(up):
    """f = rho C A w^2 / 2 with the wind, C = 2."""
    built = scene(SHEET, time={"dt": 1e-6, "steps": 1}, gravity=(0, 0, 0), **on_faces(wind=[0, 0, up])).build()
    momentum = 0.02 * built.model.bodies[0].mass_shares() @ built.run().v[-1].reshape(-1, 3)
    np.testing.assert_allclose(momentum / 1e-6, [0, 0, 1.2 * 0.12 * abs(up) * up], rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("body", [BOX, SOFT], ids=["rigid", "soft"])
def test_pressure_of_a_steady_wind_on_a_box(body):
    """Only the faces that the wind meets are pressed: rho C A (w . n)^2 / 2 against n, on each of them."""
    wind, dt = np.array([3.0, 1.0, -2.0]), 1e-6
    built = scene(body, time={"dt": dt, "steps": 1}, gravity=(0, 0, 0), **on_faces(wind=wind.tolist())).build()
    run = built.run()
    turn = np.array([[1, -1, 0], [1, 1, 0], [0, 0, np.sqrt(2)]]) / np.sqrt(2) if body is BOX else np.eye(3)
    force = np.zeros(3)
    for axis, area in enumerate((0.12, 0.08, 0.06)):
        n = -turn[:, axis] * np.sign(turn[:, axis] @ wind)
        force -= 0.5 * 1.2 * 2.0 * area * (wind @ n) ** 2 * n
    mass = 1.0 if body is BOX else 20 * 0.024
    if body is BOX:
        momentum = mass * run.v[-1, :3]
    else:
        masses = 20.0 * 0.024 * built.model.bodies[0].mass_shares()
        momentum = masses @ run.v[-1].reshape(-1, 3)
    np.testing.assert_allclose(momentum / dt, force, rtol=1e-4)


@pytest.mark.parametrize("edge, error", [(0.03, 0.12), (0.015, 0.03)])
def test_a_ball_in_water_has_half_its_displacement_added(edge, error):
    """F = (m + rho V/2) a with d = R/2, for a force in any direction; water is met across faces, not beside."""
    force, mesh = np.array([3.0, -1.0, 2.0]), {"shape": "sphere", "radius": 0.05, "edge": edge}
    ball = SOFT | {"mesh": mesh, "material": SOFT["material"] | {"young": 1e6, "density": 500}}
    ball["loads"] = [{"where": {"all": True}, "force": force.tolist()}]
    air = on_faces(density=1000, coefficient=0.0, depth=0.025)
    built = scene(ball, time={"dt": 1e-3, "steps": 20}, gravity=(0, 0, 0), **air).build()
    shares, volume = built.model.bodies[0].mass_shares(), 4.0 / 3.0 * np.pi * 0.05**3
    speed = shares @ built.run().v[-1].reshape(-1, 3)
    np.testing.assert_allclose(speed / 0.02, force / (500 * volume + 500 * volume), rtol=error)


def test_added_mass_of_what_has_no_nodes_of_its_own_is_refused():
    with pytest.raises(InputError) as caught:
        scene(BOX, **on_faces(depth=0.1)).build()
    assert "couplings.air.depth: the medium follows nodes" in str(caught.value)


def test_friction_alone_drags_a_plate_along_itself():
    """f = c A w along, nothing across."""
    dt = 1e-6
    air = on_faces(density=1.0, coefficient=0.0, friction=0.7, wind=[2.0, 0, 0])
    run = scene(SHEET, time={"dt": dt, "steps": 1}, gravity=(0, 0, 0), **air).build().run()
    shares = scene(SHEET, **air).build().model.bodies[0].mass_shares()
    momentum = 0.02 * shares @ run.v[-1].reshape(-1, 3)
    np.testing.assert_allclose(momentum / dt, [0.7 * 0.12 * 2.0, 0, 0], rtol=1e-4, atol=1e-9)


WIND = {"type": "table", "times": [0.0, 0.1, 0.3], "values": [[1.0, 0.5, 0.0], [4.0, -1.0, 0.5], [2.0, 0.0, 1.0]]}
GIVEN = {
    "drag of a ball": (BALL, of_whole(), ("density", "coefficient", "area")),
    "faces of a box": (BOX, on_faces(friction=0.2), ("density", "coefficient", "friction")),
    "faces of a sheet": (SHEET, on_faces(friction=0.2), ("density", "coefficient", "friction")),
    "faces of a soft block": (SOFT, on_faces(friction=0.2), ("density", "coefficient", "friction")),
    "faces with added mass": (SOFT, on_faces(depth=0.5), ("density", "coefficient", "depth")),
}


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
@pytest.mark.parametrize("case", GIVEN)
def test_gradients_of_a_run_in_gusts(case, integrator):
    body, air, keys = GIVEN[case]
    thrown = body | {"velocity": [1.0, 0.5, -2.0], "angular_velocity": [2.0, 1.0, 3.0]}
    raw = scene(thrown, time={"dt": 0.01, "steps": 20, "integrator": integrator}, **air).raw | {
        "signals": {"gust": copy.deepcopy(WIND)},
        "time": {"dt": 0.01, "steps": 20, "integrator": integrator, "newton": {"atol": 1e-12, "rtol": 0}},
    }
    raw["couplings"]["air"]["wind"] = {"signal": "gust"}
    built = scene_from_dict(raw).build()
    paths = [f"couplings.air.{key}" for key in keys] + ["signals.gust.values", "bodies.body.velocity"]
    values = {path: np.array(built.numbers.values[built.numbers.place(path)]) for path in paths}
    rng = np.random.default_rng(4)
    run = built.rollout(values)
    q_bar, v_bar = rng.normal(size=run.q.shape), rng.normal(size=run.v.shape)
    found = run.vjp(q_bar, v_bar)
    for path in paths:
        along = rng.normal(size=np.shape(values[path]))
        ends = [built.rollout(values | {path: values[path] + s * 1e-5 * along}) for s in (1, -1)]
        totals = [(q_bar * end.q).sum() + (v_bar * end.v).sum() for end in ends]
        difference = (totals[0] - totals[1]) / 2e-5
        slope = float((found[path] * along).sum())
        assert abs(slope) > 1e-6, path
        assert slope == pytest.approx(difference, rel=1e-6, abs=1e-9), path
        q_dot, v_dot = run.jvp({path: along})
        assert (q_bar * q_dot).sum() + (v_bar * v_dot).sum() == pytest.approx(slope, rel=1e-10), path


def test_drag_acts_on_links():
    body = {
        "type": "articulated",
        "links": {"arm": {"mass": 0.1, "inertia": [1e-3, 1e-3, 1e-3, 0, 0, 0], "center_of_mass": [0, 0, -0.3]}},
        "joints": {"hinge": {"child": "arm", "axis": [0, 1, 0], "value": 1.5}},
    }
    ends = {}
    for area in (0.0001, 0.3):
        air = {"type": "drag", "on": {"body": "body/arm", "at": [0, 0, -0.3]}, "area": area}
        run = scene(body, time={"dt": 0.005, "steps": 400, "integrator": "bdf2"}, **air).build().run()
        ends[area] = np.abs(run.q[200:, 0]).max()
    assert ends[0.3] < 0.8 * ends[0.0001]


def test_still_air_takes_energy_and_wind_gives_it():
    built = scene(BALL, gravity=(0, 0, 0), **of_whole(wind=[2.0, 0, 0])).build()
    still = apply_overrides(built.scene, {"couplings.air.wind": [0, 0, 0], "bodies.body.velocity": [3, 0, 0]}).build()
    assert 0.0 < built.run().v[-1, 0] < 2.0
    speeds = still.run().v[:, 0]
    assert (np.diff(speeds) < 0.0).all() and speeds[-1] > 0.0


@pytest.mark.parametrize(
    ("body", "air", "place", "word"),
    [
        (BOX, of_whole(), "couplings.air.area", "cross-section"),
        (BALL, on_faces(), "couplings.air.body", "without faces"),
        (BALL | {"type": "kinematic", "mass": None}, on_faces(), "couplings.air.body", "motion is given"),
        (BALL, {"type": "drag", "on": {"at": [0, 0, 0]}}, "couplings.air.on.body", "a drag acts on a body"),
        (BALL, of_whole(density=-1.0), "couplings.air.density", "expected above 0"),
    ],
)
def test_refused(body, air, place, word):
    body = {key: value for key, value in body.items() if value is not None}
    with pytest.raises(InputError) as error:
        scene(body, **air).build()
    assert place in str(error.value) and word in str(error.value)


def test_open_and_closed_surfaces():
    tetrahedron = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
    assert is_closed(tetrahedron) and is_closed(tetrahedron[:, ::-1])
    assert not is_closed(tetrahedron[:3])
    turned = tetrahedron.copy()
    turned[0] = turned[0, ::-1]
    assert not is_closed(turned)
