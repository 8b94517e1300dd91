"""Laws of contact by formula: against the laws of the format, closed answers, and what is refused."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

import add
from add.errors import InputError

G = 9.81
FLOOR = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}
BALL = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.01}, "mass": 0.05}
BOX = {"type": "rigid", "geometry": {"shape": "box", "size": [0.4, 0.4, 1e-3]}, "mass": 2}


def scene(body: dict, contact: dict, dt: float, duration: float, **more) -> add.Scene:
    return add.scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": dt, "duration": duration, "integrator": "bdf2"},
            "bodies": {"body": body},
            "obstacles": FLOOR,
            "contact": contact,
            **more,
        }
    )


@pytest.mark.parametrize(
    ("named", "formula"),
    [
        (
            {"static_friction": 0.5, "stribeck_speed": 0.2},
            {
                "friction_curve": {
                    "coefficient": "mu + (top - mu)*exp(-(u/w)**2)", "numbers": {"top": 0.5, "w": 0.2},
                }
            },
        ),
        (
            {"law": "log-barrier", "thickness": 0.004},
            {"law": {"energy": "-d**2*log(1 - d/r)"}, "thickness": 0.004},
        ),
        ({"law": "penalty"}, {"law": {"energy": "d**2/2"}}),
    ],
)  # fmt: skip
def test_they_are_the_laws_that_they_write(named: dict, formula: dict) -> None:
    body = BOX | {"position": [0, 0, 0.003], "velocity": [0.6, 0.1, -0.1]}
    contact = {"stiffness": 2e4, "damping": 20, "friction": 0.3, "friction_law": "tanh"}
    one, two = (scene(body, contact | law, 1e-3, 0.06).build().run() for law in (named, formula))
    assert np.abs(one.v[:, 0] - 0.6).max() > 0.01  # friction acts
    np.testing.assert_allclose(two.q, one.q, rtol=0, atol=1e-11)


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_impact_by_hertz(damping: float) -> None:
    """k d^(3/2) (1 + c d_t), against SciPy's integration; without damping the closed depth of Hertz and its time."""
    mass, k, speed, height = 0.05, 2e6, 1.0, 2e-4
    body = BALL | {"position": [0, 0, 0.01 + height], "velocity": [0, 0, -speed]}
    contact = {
        "stiffness": k, "damping": k * damping, "friction": 0, "law": {"energy": "2/5*d**2.5", "damping": "d**1.5"},
    }  # fmt: skip
    run = scene(body, contact, 1e-5, 3.5e-3, gravity=[0, 0, 0]).build().run()
    depth = 0.01 - run.q[:, 2]

    def rate(_: float, y: np.ndarray) -> list[float]:
        d = max(-y[0], 0.0)
        return [y[1], k * d**1.5 * (1.0 - damping * y[1]) / mass]

    found = solve_ivp(rate, (0.0, 3.5e-3), [height, -speed], rtol=1e-10, atol=1e-13, max_step=1e-5)
    assert run.v[-1, 2] == pytest.approx(found.y[1, -1], abs=1e-4)
    assert depth.max() == pytest.approx(-found.y[0].min(), rel=1e-3)
    if damping == 0.0:
        deepest = (5 * mass * speed**2 / (4 * k)) ** 0.4
        assert depth.max() == pytest.approx(deepest, rel=1e-3)
        assert np.count_nonzero(depth > 0) * 1e-5 == pytest.approx(2.9432 * deepest / speed, rel=0.01)


@pytest.mark.parametrize("friction_law", ["linear", "hybrid"])
def test_rubber_brakes(friction_law: str) -> None:
    """A block of any mass comes to rest after the integral of u / (g mu(u)), mu = 0.4 (1 + 0.2 ln(1 + u / 0.1))."""
    body = BOX | {"position": [0, 0, 5e-4 - BOX["mass"] * G / 4e6], "velocity": [1.0, 0, 0]}
    curve = {"coefficient": "mu*(1 + a*log(1 + u/w))", "numbers": {"a": 0.2, "w": 0.1}}
    contact = {
        "stiffness": 1e6, "damping": 2e3, "friction": 0.4, "friction_law": friction_law, "friction_curve": curve,
    }  # fmt: skip
    run = scene(body, contact, 1e-3, 0.3).build().run()

    def brake(u: float) -> float:
        return G * 0.4 * (1 + 0.2 * np.log(1 + u / 0.1))

    assert abs(run.v[-1, 0]) < 1e-3
    assert run.q[-1, 0] == pytest.approx(quad(lambda u: u / brake(u), 0.0, 1.0)[0], rel=2e-3)


def test_numbers_are_parameters_with_their_units() -> None:
    curve = {"coefficient": "mu*(1 + a*u)", "numbers": {"a": 0.2}, "units": {"a": "s/m"}}
    body = BOX | {"position": [0, 0, 1e-3]}
    built = scene(body, {"stiffness": 1e4, "friction_curve": curve}, 1e-3, 0.01).build()
    numbers = built.numbers.layout
    assert numbers["contact.friction_curve.numbers.a"].unit == "s/m"


LAW, CURVE = "contact.law", "contact.friction_curve"


@pytest.mark.parametrize(
    ("contact", "place", "message"),
    [
        ({"law": {"energy": "d**2*x"}}, f"{LAW}.energy", "unknown symbol 'x'"),
        ({"law": {"energy": "d"}}, f"{LAW}.energy", "not zero where contact begins"),
        ({"law": {"energy": "-d**2"}}, f"{LAW}.energy", "does not push"),
        ({"law": {"energy": "d**2.5", "damping": "d**0.5"}}, f"{LAW}.damping", "no value"),
        ({"law": {"energy": "d**2", "damping": "-d"}}, f"{LAW}.damping", "drives"),
        ({"law": {"energy": "d**2"}, "thickness": 0.01}, "contact.thickness", "no layer"),
        ({"law": {"energy": "d**3/r"}}, "contact.thickness", "not given"),
        ({"law": {"energy": "d**2"}, "onset": 1e-3}, "contact.onset", "sets in by itself"),
        ({"law": {"energy": "d**2", "damping": "d"}, "damping_ramp": 1e-3}, "contact.damping_ramp", None),
        ({"law": {"energy": "d**2"}, "stiffness": None}, "contact.stiffness", "needs its stiffness"),
        ({"law": {"energy": "d**2"}, "friction_law": "impulse"}, LAW, "hard contact"),
        ({"law": {"type": "hertz"}}, f"{LAW}.type", "unknown kind"),
        ({"law": 3.0}, LAW, "the name of a law, or an object"),
        ({"friction_curve": {"coefficient": "mu*k"}}, f"{CURVE}.coefficient", "unknown symbol 'k'"),
        ({"friction_curve": {"coefficient": "mu - u"}}, f"{CURVE}.coefficient", "below zero"),
        ({"friction_curve": {"coefficient": "mu/f_n"}}, f"{CURVE}.coefficient", "no value"),
        ({"friction_curve": {"coefficient": "mu*f_n**0.5"}}, f"{CURVE}.coefficient", "no value"),
        ({"friction_curve": {"coefficient": "mu", "numbers": {"a": 1}}}, f"{CURVE}.numbers.a", "does not have"),
        (
            {"friction_curve": {"coefficient": "mu*a*b*c", "numbers": {"a": 1, "b": 1, "c": 1}}},
            f"{CURVE}.numbers", "too many",
        ),
        ({"friction_curve": {"coefficient": "mu*u"}, "friction_law": "none"}, CURVE, "does not know"),
        (
            {"friction_curve": {"coefficient": "mu*u"}, "static_friction": 0.3, "stribeck_speed": 0.1},
            "contact.static_friction", "one curve",
        ),
    ],
)  # fmt: skip
def test_refusals(contact: dict, place: str, message: str | None) -> None:
    with pytest.raises(InputError) as caught:
        scene(BOX | {"position": [0, 0, 0.5]}, {"stiffness": 1e4} | contact, 1e-3, 0.01).build()
    assert caught.value.place == place or place in str(caught.value)
    assert message is None or message in str(caught.value)
