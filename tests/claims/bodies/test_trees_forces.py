"""Forces on all bodies of a robot: a fluid and weight taken away, as in MuJoCo, and gradients by their numbers."""

import re

import numpy as np
import pytest
from support.run_checks import check_gradient_of_run
from support.small_models import RoughObjective

from add import scene_from_dict
from add.errors import InputError
from add.joints.laws import AxialDrag, EllipsoidInFluid
from add.kernels.rotation import left_jacobian
from add.scene.build.run_data import run_data

#: Three slides and three hinges in place of a free joint, a hinge askew, a body that is welded to its parent.
SWIMMER = """<mujoco><compiler angle="radian"/>
<option density="800" viscosity="0.3" gravity="0 0 0" timestep="2e-4" integrator="RK4"/><worldbody><body name="a">
<joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
<joint name="z" type="slide" axis="0 0 1"/><joint name="rz" axis="0 0 1"/><joint name="ry" axis="0 1 0"/>
<joint name="rx" axis="1 0 0"/><geom type="ellipsoid" size=".1 .05 .03" euler=".2 .3 .1" density="900"/>
<body name="b" pos=".15 0 0"><joint name="h" axis="0 1 .3"/><geom type="box" size=".08 .02 .01" pos=".08 0 0"/>
<body name="c" pos=".16 0 .02" euler=".4 .2 0"><geom type="box" size=".03 .05 .01"/></body></body></body>
</worldbody></mujoco>"""
RATES = {"x": 0.5, "y": -0.3, "z": 0.2, "rz": 1.0, "ry": -2.0, "rx": 1.5, "h": 3.0}


def swimmer(folder, dt, duration=0.2, **body):
    (folder / "swimmer.xml").write_text(SWIMMER)
    own = {"type": "articulated", "model": str(folder / "swimmer.xml"), "self_collision": False}
    own |= {"joints": {name: {"rate": rate} for name, rate in RATES.items()}}
    time = {"dt": dt, "duration": duration, "integrator": "bdf2", "newton": {"atol": 1e-13, "rtol": 0}}
    return {"schema": "add-scene/1", "time": time, "gravity": [0, 0, 0], "bodies": {"s": own | body}}


def test_it_swims_as_in_mujoco(tmp_path):
    """Differences fall with the square of the step; without the fluid it ends a hundredth and more elsewhere."""
    mujoco = pytest.importorskip("mujoco")
    runs = [scene_from_dict(swimmer(tmp_path, dt)).build().run() for dt in (4e-3, 2e-3)]
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "swimmer.xml"))
    data = mujoco.MjData(model)
    data.qvel[:] = list(RATES.values())
    for _ in range(1000):
        mujoco.mj_step(model, data)
    far, near = (np.abs(run.q[-1] - data.qpos).max() for run in runs)
    assert near < 3e-5 and far / near == pytest.approx(4.0, rel=0.2)
    free = scene_from_dict(swimmer(tmp_path, 2e-3, ignore=["fluid"])).build()
    assert not free.model.term(AxialDrag) and np.abs(free.run().q[-1] - data.qpos).max() > 0.02


def test_gradient_of_a_run(tmp_path):
    """By density and viscosity among all numbers: backward, forward, replayed differences."""
    built = scene_from_dict(swimmer(tmp_path, 5e-3, 0.1, fluid={"density": 500})).build()
    assert "bodies.s.fluid.density" in built.numbers.layout
    check_gradient_of_run(built.simulation, RoughObjective(np.random.default_rng(0).normal(size=7)))
    fluid = {"density": 800, "viscosity": 0.3}
    said = [scene_from_dict(swimmer(tmp_path, 5e-3, 0.1, **one)).build().run().q for one in ({}, {"fluid": fluid})]
    assert (said[0] == said[1]).all()


#: Ellipsoids of five shapes of geoms, two on one body, with coefficients of their own; one body is a box.
FLYER = """<mujoco><compiler angle="radian"/><option density="700" viscosity="0.2" wind="0.4 -0.3 0.2"/>
<default><geom fluidshape="ellipsoid" density="900"/></default><worldbody>
<body name="a" pos="0 0 1"><joint name="s" type="slide" axis="1 2 3"/><joint name="b" type="ball"/>
<geom type="ellipsoid" size=".2 .1 .06" euler=".2 .3 .1" pos="0.02 0.01 0" fluidcoef="0.6 0.3 1.2 0.9 1.1"/>
<body name="w" pos=".3 0 0"><joint name="h" axis="0 1 .3" pos="-.05 .1 .02"/>
<geom type="box" size=".16 .08 .02" euler="0 0 1"/><geom type="sphere" size=".1" pos=".2 0 0"/>
<body name="c" pos=".2 0 .1"><joint name="i" axis="1 0 0"/><geom type="capsule" size=".05 .1" fluidshape="none"/>
<body name="d" pos="0 .3 0"><joint name="k" axis="0 0 1"/><geom type="capsule" size=".06 .12" euler="1 0 0"/>
<geom type="cylinder" size=".08 .05" pos=".1 0 0"/></body></body></body></body></worldbody></mujoco>"""


def flyer(folder, text=FLYER, **body):
    (folder / "flyer.xml").write_text(text)
    own = {"type": "articulated", "model": str(folder / "flyer.xml"), "self_collision": False} | body
    time = {"dt": 0.01, "steps": 6, "integrator": "bdf2", "newton": {"atol": 1e-12, "rtol": 0}}
    return scene_from_dict({"schema": "add-scene/1", "time": time, "gravity": [0, 0, 0], "bodies": {"f": own}}).build()


def test_ellipsoids_and_wind_are_mujoco_s(tmp_path):
    """Forces at random states; at rest there is the wind alone, and without it nothing."""
    mujoco = pytest.importorskip("mujoco")
    built = flyer(tmp_path)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "flyer.xml"))
    data, rng = mujoco.MjData(model), np.random.default_rng(3)
    (term,) = built.model.term(EllipsoidInFluid)
    assert term.sites.n == 5 and built.model.term(AxialDrag)[0].sites.n == 6
    for k in range(5):
        w = rng.normal(size=3)
        angle = np.linalg.norm(w)
        quaternion = [np.cos(angle / 2), *np.sin(angle / 2) * w / angle]
        data.qpos[:] = [0.3, *quaternion, *rng.normal(size=3)]
        rates = rng.normal(size=7) * (0.0 if k == 4 else 2.0)
        data.qvel[:] = rates
        mujoco.mj_forward(model, data)
        # Of a ball MuJoCo has the angular velocity in its own axes, we the rate of the rotation vector.
        jacobian = np.linalg.inv(right_jacobian(w))
        q = np.concatenate([[0.3], w, data.qpos[5:]])
        v = np.concatenate([rates[:1], jacobian @ rates[1:4], rates[4:]])
        found = built.simulation.dynamics(q, v)
        fluid = built.simulation.dynamics(q, v, theta=without_fluid(built)).bias - found.bias
        fluid[1:4] = jacobian.T @ fluid[1:4]
        assert np.abs(data.qfrc_passive).max() > 0.5
        np.testing.assert_allclose(fluid, data.qfrc_passive, rtol=0, atol=1e-9 * np.abs(data.qfrc_passive).max())
    assert not flyer(tmp_path, fluid={"wind": [0, 0, 0]}).run().v.any()
    assert not flyer(tmp_path, ignore=["fluid"]).model.term(EllipsoidInFluid)


def right_jacobian(w):
    """Return J_r with omega in the body's axes = J_r(w) w_dot."""
    return left_jacobian(-w)


def without_fluid(built):
    theta = built.theta.copy()
    for entry in built.simulation.system.parameters.entries:
        if ".fluid." in entry.name and entry.name.split(".")[-1] in ("b", "c", "density", "viscosity"):
            theta[entry.slice] = 0.0
    return theta


def test_gradient_of_a_flight(tmp_path):
    """By density, viscosity, wind and all numbers of the ellipsoids: backward, forward, replayed differences."""
    joints = {"h": {"rate": 3.0}, "i": {"rate": -2.0}, "k": {"rate": 5.0}}
    # Round ones have a kink where two of their axes change places, which no motion does.
    uneven = re.sub(r'type="(sphere|capsule|cylinder)" size="[^"]*"', 'type="ellipsoid" size=".1 .06 .08"', FLYER)
    built = flyer(tmp_path, uneven, joints=joints, fluid={"density": 500, "viscosity": 0.1, "wind": [1, 0, 0.5]})
    assert {"bodies.f.fluid.wind", "bodies.f.fluid.density"} <= {entry.name for entry in built.numbers.layout.entries}
    check_gradient_of_run(built.simulation, RoughObjective(np.random.default_rng(0).normal(size=7)))


def test_weight_is_taken_away(tmp_path):
    """A pendulum with a welded bob: what is left of its weight is MuJoCo's, and follows the gravity of the scene."""
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "light.xml").write_text("""<mujoco><option gravity="1 0 -8"/><worldbody><body gravcomp="0.5">
    <joint name="h" axis="0 1 0"/><geom size=".1" pos=".3 0 .1"/><body pos=".5 0 0" gravcomp="1.2">
    <geom size=".05"/></body></body></worldbody></mujoco>""")
    body = {"type": "articulated", "model": str(tmp_path / "light.xml")}
    raw = {"schema": "add-scene/1", "time": {"dt": 1e-4, "steps": 10}, "gravity": [1, 0, -8], "bodies": {"p": body}}
    built = scene_from_dict(raw).build()
    data = mujoco.MjData(model := mujoco.MjModel.from_xml_path(str(tmp_path / "light.xml")))
    mujoco.mj_forward(model, data)
    assert abs(data.qacc[0]) > 1.0
    assert built.run().v[-1, 0] == pytest.approx(data.qacc[0] * 1e-3, rel=1e-4)
    run = scene_from_dict(raw | {"gravity": [0, 0, 0]}).build().run()
    assert (run.v == 0.0).all()
    check_gradient_of_run(built.simulation, RoughObjective(np.ones(1)))
    push = {"type": "force", "on": {"body": "p/" + built.model.bodies[0].links[-1]}, "force": [0, 0.5, 2]}
    pushed = scene_from_dict(raw | {"couplings": {"push": push}}).build()
    kept = run_data(pushed, pushed.run(n_steps=2), pushed.theta)
    assert kept.lines["push"].tension == pytest.approx(np.hypot(0.5, 2.0)), (
        "what takes weight away is no force of the scene"
    )


def test_links_of_other_trees_are_boxes_of_their_inertia():
    """A cube that sinks in a viscous fluid: 3 pi beta d v = m g, d its edge."""
    inertia = [0.01 * 0.1**2 / 6] * 3 + [0, 0, 0]
    tree = {
        "type": "articulated", "joints": {"down": {"type": "slide", "axis": [0, 0, 1], "child": "cube"}},
        "links": {"cube": {"mass": 0.01, "inertia": inertia}}, "fluid": {"viscosity": 2.0},
    }  # fmt: skip
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 100}, "bodies": {"s": tree}}
    run = scene_from_dict(raw).build().run()
    assert run.v[-1, 0] == pytest.approx(-0.01 * 9.81 / (3 * np.pi * 2.0 * 0.1), rel=1e-8)
    with pytest.raises(InputError, match=r"bodies.s.fluid: a fluid needs a density or a viscosity"):
        scene_from_dict(raw | {"bodies": {"s": tree | {"fluid": {}}}}).build()
    with pytest.raises(InputError, match=r"bodies.s.fluid.density"):
        scene_from_dict(raw | {"bodies": {"s": tree | {"fluid": {"density": -1}}}})
