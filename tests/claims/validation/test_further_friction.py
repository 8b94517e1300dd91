"""Static and kinetic, torsional and rolling friction against analytic answers, and gradients of runs with them."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.body_scene import check_crowd, crowd
from support.run_checks import check_gradient_of_run, events
from support.small_models import RoughObjective
from support.tiers import long_case

import add
from add.contact import FrictionLaw
from add.equations.kinematics import Kinematics
from add.errors import InputError
from add.kernels.contact_laws import braking, friction_coefficient
from add.kernels.rotation import left_jacobian
from add.scene.spec.friction import CURVES

G, MASS = 9.81, 2.0
STATIC, KINETIC, SPEED = 0.5, 0.3, 0.05
STRIBECK_CURVE = CURVES[0]
FLOOR = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}


def test_laws_of_one_pair() -> None:
    """Both scalar laws against differences, on either side of where their series take over."""
    for u, curve in itertools.product((0.0, 0.02, 0.05, 0.4), CURVES):
        at = np.array([u, 3.0, KINETIC, STATIC, SPEED])
        mu, *slopes = friction_coefficient(curve.code, *at)
        if curve is STRIBECK_CURVE:
            assert mu == pytest.approx(KINETIC + (STATIC - KINETIC) * np.exp(-((u / SPEED) ** 2)), abs=1e-15)
        for k, slope in enumerate(slopes):
            step = np.where(np.arange(5) == k, 1e-6, 0.0)
            if k == 0 and u == 0.0:
                continue  # a speed is never negative
            ends = [friction_coefficient(curve.code, *(at + sign * step))[0] for sign in (1.0, -1.0)]
            assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8, rel=1e-6)
        # Equal coefficients are one, whatever the other number: what pairs have that say neither.
        assert friction_coefficient(curve.code, 0.3, 3.0, KINETIC, KINETIC, 1.0)[:3] == (KINETIC, 0.0, 0.0)
    for x in (1e-5, 0.9e-4, 1.1e-4, 0.05, 0.3, 40.0):
        share, over_x, by_rate = braking(x, 0.1)
        h = 1e-3 * x
        assert over_x * x == pytest.approx((braking(x + h, 0.1)[0] - braking(x - h, 0.1)[0]) / (2 * h), rel=1e-4)
        assert by_rate == pytest.approx((braking(x, 0.1 + 1e-6)[0] - braking(x, 0.1 - 1e-6)[0]) / 2e-6, rel=1e-6)
        assert share == pytest.approx(np.tanh(x / 0.1) / x, rel=1e-9)


@pytest.mark.parametrize("law", [FrictionLaw.LINEAR, pytest.param(FrictionLaw.TANH, marks=pytest.mark.slow)])
def test_derivatives(law: FrictionLaw) -> None:
    """Of all bodies, nodes and shapes at once, by the state and by every number; some points stick, some slip."""
    scene, decision, _ = check_crowd(
        np.random.default_rng(1), law, law is FrictionLaw.LINEAR, 0, further=STRIBECK_CURVE
    )
    counts = scene.contact.describe(decision)
    if law is FrictionLaw.LINEAR:
        assert counts["sticking"] and counts["slipping"]


def test_defaults_are_the_law_of_one_coefficient() -> None:
    """Equal coefficients and couples without length change no bit of any force; and couples take, never give, power."""
    scene = crowd(FrictionLaw.LINEAR, further=STRIBECK_CURVE)
    pairs, theta = scene.contact.pairs, scene.theta.copy()
    theta[pairs.further[..., 0]] = theta[pairs.c_f]
    theta[pairs.couples[1:, :, :2]] = 0.0
    plain = replace(scene.contact, pairs=replace(pairs, further=None, couples=None))
    force = plain.forces(scene.kin, scene.theta)
    assert np.array_equal(scene.contact.forces(scene.kin, theta), force)
    # Power of the couples alone, and of all friction between bodies and what stands still.
    still = replace(scene.contact, velocity=np.zeros_like(scene.contact.velocity))
    without = replace(still, pairs=replace(pairs, couples=None))
    smooth = replace(without, law=FrictionLaw.NONE)
    for seed in range(20):
        v = np.random.default_rng(seed).normal(size=scene.kin.v.size)
        kin = Kinematics(scene.kin.q, v, scene.kin.a, 0.0, 0)
        forces = [term.forces(kin, scene.theta) @ v for term in (still, without, smooth)]
        assert forces[0] < forces[1] < forces[2]


def block(friction_law: str, dt: float, duration: float, rate: float) -> add.Scene:
    """A block on its four corners, pulled at its underside by a force that grows with time."""
    depth = MASS * G / (4 * 1e5)
    return add.scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": dt, "duration": duration, "integrator": "bdf2"},
            "bodies": {
                "block": {
                    "type": "rigid",
                    "geometry": {"shape": "box", "size": [0.2, 0.2, 0.1]},
                    "mass": MASS,
                    "position": [0, 0, 0.05 - depth],
                }
            },
            "obstacles": FLOOR,
            "couplings": {
                "pull": {
                    "type": "force",
                    "on": {"body": "block", "at": [0, 0, -0.05]},
                    "force": {"signal": "grows"},
                }
            },
            "signals": {
                "grows": {"type": "table", "times": [0, duration], "values": [[0, 0, 0], [rate * duration, 0, 0]]}
            },
            "contact": {
                "stiffness": 1e5, "damping": 150, "stick_stiffness": 1e4, "friction_law": friction_law,
                "friction": KINETIC, "static_friction": STATIC, "stribeck_speed": SPEED,
            },
        }
    )  # fmt: skip


@pytest.mark.parametrize("mass", [MASS, 4 * MASS])
def test_braking_fades_with_load_and_speed(mass: float) -> None:
    """A block that slides to rest, m v' = -mu m g with its power m g v on four points: heavier ones slide further.

    With s = v / u_0, u_0 = 4 P / (m g): dt = -u_0 (1 + s) / (g (c_f + c_r s)) ds, which has a closed form.
    """
    speed, power, hot, cold = 2.0, 6.0, 0.15, 0.45
    scale = 4 * power / (mass * G)

    def until(v: float) -> float:
        s, ratio = v / scale, 1.0 - cold / hot
        return scale / (G * hot) * (s + ratio * np.log((cold + hot * s) / cold))

    depth, duration = mass * G / (4 * 1e6), until(speed) - until(0.3)
    scene = {
        "schema": "add-scene/1",
        "time": {"dt": 1e-3, "duration": float(np.round(duration, 3)), "integrator": "bdf2"},
        "bodies": {
            "block": {
                "type": "rigid",
                "geometry": {"shape": "box", "size": [0.4, 0.4, 1e-3]},
                "mass": mass,
                "position": [0, 0, 5e-4 - depth],
                "velocity": [speed, 0, 0],
            }
        },
        "obstacles": FLOOR,
        "contact": {
            "stiffness": 1e6, "damping": 2e3, "friction_law": "linear", "friction": cold, "faded_friction": hot,
            "fading_power": power,
        },
    }  # fmt: skip
    run = add.scene_from_dict(scene).build().run()
    reached = run.v[-1, 0]
    assert until(speed) - until(reached) == pytest.approx(run.t[-1], rel=2e-4)
    assert run.v[-1, 0] < 0.35 and until(speed) > 1.2 * speed / (cold * G)


def test_block_breaks_loose_and_slides() -> None:
    """Held by equations up to c_s m g; then its speed is that of m v' = F - mu(v) m g."""
    rate, dt = 40.0, 5e-4
    loose = STATIC * MASS * G / rate
    run = block("hybrid", dt, 0.45, rate).build().run()
    speed = run.v[:, 0]
    assert np.abs(speed[run.t < loose - dt]).max() < 1e-7  # its middle moves as it leans; its corners do not
    assert speed[np.searchsorted(run.t, loose + 4 * dt)] > 1e-5

    def mu(v: float) -> float:
        return KINETIC + (STATIC - KINETIC) * np.exp(-((v / SPEED) ** 2))

    exact = solve_ivp(
        lambda t, v: [rate * t / MASS - mu(v[0]) * G], (loose, 0.45), [0.0], rtol=1e-10, atol=1e-14, dense_output=True
    )
    late = run.t > loose + 0.05
    assert exact.sol(0.45)[0] > 5 * SPEED
    np.testing.assert_allclose(speed[late], exact.sol(run.t[late])[0], atol=6e-3)
    # Far above the speed it slides with the kinetic coefficient alone.
    fast = np.flatnonzero(speed > 4 * SPEED)
    slope = np.diff(speed[fast]) / dt
    middle = run.t[fast[1:]] - 0.5 * dt
    np.testing.assert_allclose(slope, rate * middle / MASS - KINETIC * G, atol=2e-2)


def ball(friction_law: str, *, dt: float, duration: float, omega: tuple, velocity: tuple, **contact) -> add.Scene:
    """A ball of 0.1 m on a floor, in the balance of its weight."""
    return add.scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": dt, "duration": duration, "integrator": "bdf2"},
            "bodies": {
                "ball": {
                    "type": "rigid",
                    "geometry": {"shape": "sphere", "radius": 0.1},
                    "mass": MASS,
                    "inertia": [0.008, 0.008, 0.008, 0, 0, 0],
                    "position": [0, 0, 0.1 - MASS * G / 1e5],
                    "velocity": list(velocity),
                    "angular_velocity": list(omega),
                }
            },
            "obstacles": FLOOR,
            "contact": {
                "stiffness": 1e5, "damping": 100, "stick_stiffness": 1e5, "friction": 0.4,
                "friction_law": friction_law, **contact,
            },
        }
    )  # fmt: skip


def rates(run: add.Trajectory) -> np.ndarray:
    """Angular velocities (frames, 3)."""
    return np.array([left_jacobian(q[3:6]) @ v[3:6] for q, v in zip(run.q, run.v, strict=True)])


@pytest.mark.parametrize("friction_law", ["linear", pytest.param("hybrid", marks=pytest.mark.slow)])
def test_spin_decays_to_rest(friction_law: str) -> None:
    """I omega' = -c_t m g tanh(omega / w_0), which sinh(omega / w_0) = sinh(omega_0 / w_0) exp(-b t) solves."""
    c_t, w_0, start, inertia = 2e-3, 0.2, 3.0, 0.008
    slows = c_t * MASS * G / inertia
    rest = start / slows
    run = ball(
        friction_law, dt=1e-3, duration=1.6 * rest, omega=(0, 0, start), velocity=(0, 0, 0), torsional_friction=c_t,
        spin_rate=w_0,
    ).build().run()  # fmt: skip
    found = rates(run)[:, 2]
    exact = w_0 * np.arcsinh(np.sinh(start / w_0) * np.exp(-slows * run.t / w_0))
    np.testing.assert_allclose(found, exact, atol=2e-5 * start)
    assert found[np.searchsorted(run.t, 0.5 * rest)] == pytest.approx(0.5 * start, rel=1e-3)
    assert abs(found[-1]) < 1e-3 * start and np.abs(run.q[:, :2]).max() < 1e-12


@pytest.mark.parametrize("friction_law", ["hybrid", pytest.param("tanh", marks=pytest.mark.slow)])
def test_rolling_ball_slows_down(friction_law: str) -> None:
    """(1 + I / (m R^2)) v' = -(c_r / R) g tanh(omega / w_0), R being its height where it is held, or its radius."""
    c_r, w_0, omega = 1e-3, 0.05, 3.0
    radius = 0.1 - MASS * G / 1e5 if friction_law == "hybrid" else 0.1
    speed = omega * radius
    run = ball(
        friction_law, dt=1e-3, duration=0.6, omega=(0, omega, 0), velocity=(speed, 0, 0), rolling_friction=c_r,
        spin_rate=w_0,
    ).build().run()  # fmt: skip
    slows = c_r / radius * G / (1.0 + 0.008 / (MASS * radius**2))
    assert 0.1 * speed < slows * 0.6 < 0.5 * speed
    np.testing.assert_allclose(run.v[:, 0], speed - slows * run.t, atol=2e-4 * speed)
    np.testing.assert_allclose(radius * rates(run)[:, 1], run.v[:, 0], atol=2e-4 * speed)


# --- gradients of runs ------------------------------------------------------------------------------------------------

CONTACT = {"stiffness": 2000.0, "damping": 1.0, "damping_ramp": 5e-4, "friction": 0.35}
STRIBECK = {"static_friction": 0.6, "stribeck_speed": 0.3}
FADING = {"friction": 0.6, "faded_friction": 0.3, "fading_power": 0.4}
#: Friction and normal force by formula: rubber, and a force between a parabola and a line.
FORMULAS = {
    "friction_curve": {"coefficient": "mu*(1 + growth*log(1 + u/slow))", "numbers": {"growth": 0.2, "slow": 0.1}},
    "friction": 0.32,
    "law": {"energy": "d**3/(d + 0.002)", "damping": "d/(d + 0.0005)"},
    "damping_ramp": 0.0,
}
COUPLES = {"torsional_friction": 4e-3, "rolling_friction": 3e-3, "spin_rate": 1.0}
BOX = {"shape": "box", "size": [0.1, 0.08, 0.06]}
INERTIA = [7e-5, 1e-4, 1.3e-4, 1e-5, -5e-6, 7e-6]


def thrown(what: str, friction_law: str, order: int, curve: dict[str, float]) -> add.Scene:
    """A rigid box, a box as a free link, or a soft block, thrown on a floor and on a moving ball."""
    start = {"position": [0, 0, 0.055], "velocity": [0.5, 0.1, -0.7], "angular_velocity": [2, 1, 4]}
    rough = 1.0 if friction_law == "hybrid" else 0.0
    contact = CONTACT | curve | {"friction_law": friction_law, "stick_stiffness": 6.0}
    for key in {"friction", "static_friction", "faded_friction"} & contact.keys():
        contact[key] += rough
    n_steps = 34
    if what == "rigid":
        body = {"type": "rigid", "geometry": BOX, "mass": 0.1, "inertia": INERTIA} | start
        if friction_law != "hybrid":  # flat enough that some points are held
            body |= {"orientation": [0.9, 0.3, 0.3, 0.1], "center_of_mass": [2e-3, -1e-3, 3e-3]}
        contact |= COUPLES
    elif what == "link":
        link = {"mass": 0.1, "inertia": INERTIA, "shapes": [{"geometry": BOX}]}
        body = {"type": "articulated", "base": "free", "links": {"a": link}, "joints": {"a": {}}} | start
        contact |= COUPLES
    else:
        body = {
            "type": "soft",
            "mesh": {"shape": "box", "size": [0.05, 0.05, 0.05], "divisions": [1, 1, 1]},
            "material": {"model": "neo-hookean", "young": 5e4, "poisson": 0.3, "density": 400, "viscosity": 3},
            "position": [0.0, 0.0, 0.026],
            "velocity": [0.5, 0.1, -0.6],
            "angular_velocity": [1, 2, -1],
        }
        n_steps = 20
    return add.scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {
                "dt": 0.002, "steps": n_steps, "integrator": f"bdf{order}", "newton": {"atol": 1e-11, "rtol": 1e-13},
            },
            "bodies": {"body": body},
            "obstacles": FLOOR,
            "contact": contact,
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("what", "friction_law", "order", "curve"),
    [
        ("rigid", "linear", 2, FADING),
        ("soft", "hybrid", 1, FADING),
        ("link", "tanh", 2, FORMULAS),
        *itertools.starmap(
            long_case,
            itertools.product(
                ["rigid", "link", "soft"], ["linear", "tanh", "hybrid"], [1, 2], [STRIBECK, FADING, FORMULAS]
            ),
        ),
    ],
)
def test_gradient_of_run(what: str, friction_law: str, order: int, curve: dict[str, float]) -> None:
    """Every number of theta, static and kinetic ones and couples among them, over an impact and the slide after it."""
    built = thrown(what, friction_law, order, curve).build()
    counts = events(built.simulation, built.simulation.run())
    assert counts["touching"] > 0
    if friction_law != "tanh":
        assert counts["slipping"] and counts["sticking"]
    objective = RoughObjective(np.random.default_rng(0).normal(size=built.model.system.n))
    check_gradient_of_run(built.simulation, objective)


# --- scenes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"contact.stribeck_speed": None}, "contact.static_friction"),
        ({"contact.friction_law": "impulse", "time.integrator": "bdf1"}, "contact.static_friction"),
        ({"contact.static_friction": None}, "contact.stribeck_speed"),
        ({"contact.torsional_friction": 1e-3}, "contact.torsional_friction"),
        ({"contact.spin_rate": 1.0}, "contact.spin_rate"),
    ],
)
def test_refusals(changes: dict, place: str) -> None:
    with pytest.raises(InputError, match=place.replace(".", r"\.")):
        add.apply_overrides(thrown("soft", "linear", 1, STRIBECK), changes).build()
