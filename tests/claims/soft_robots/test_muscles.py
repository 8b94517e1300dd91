"""Muscles of scenes: gradients of runs, closed forms, fields of fibres, what is refused."""

import numpy as np
import pytest
from support.actuated import check_gradient, hollow_block
from support.reference_tables import REFERENCE
from support.tiers import long_case

from add.equations.signals import Constant
from add.errors import InputError, SolverError
from add.scene import scene_from_dict
from add.scene.build.materials import ElementSource
from add.terms import Activation, Muscle
from add.terms.memories import Timing

SIGNALS = {
    "a": {"type": "table", "times": [0, 0.3, 0.6, 1], "values": [0.1, 0.8, 0.3, 0.5]},
    "j": {"type": "table", "times": [0, 0.3, 0.6, 1], "values": [1, 1.2, 0.9, 1.1]},
}
ALONG = {"activation": {"signal": "a"}, "fibres": {"direction": [1, 0.2, 0]}}
MUSCLES = {
    "active-stress": ALONG | {"type": "active-stress", "strength": 20000, "optimal": 1.1},
    "quadratic-fibre": ALONG | {"type": "quadratic-fibre", "stiffness": 3e4, "contraction": 0.4},
    "hill": ALONG | {"type": "hill", "strength": 20000, "optimal": 1.05, "speed": 8},
    "line": {
        "type": "hill",
        "activation": {"signal": "a"},
        "strength": 20,
        "points": [[-0.03, 0.02, 0.01], [0, 0.021, 0.012], [0.03, 0.02, 0.01]],
    },
    "volumetric-actuator": {"type": "volumetric-actuator", "stiffness": 1e5, "volume": {"signal": "j"}},
}
NUMBERS = {
    "active-stress": ("strength", "optimal", "width"),
    "quadratic-fibre": ("stiffness", "optimal", "contraction"),
    "hill": ("strength", "optimal", "speed"),
    "line": ("strength",),
    "volumetric-actuator": ("stiffness",),
}


@pytest.mark.parametrize(
    ("kind", "integrator", "steps"),
    [
        ("active-stress", "bdf2", 40), ("line", "bdf1", 40),
        *(long_case(kind, integrator, 200) for kind in MUSCLES for integrator in ("bdf1", "bdf2")),
    ],
)  # fmt: skip
def test_gradient_of_a_run(kind: str, integrator: str, steps: int) -> None:
    """Reverse = forward to 1e-10, and replayed differences to 1e-6, by activations and numbers."""
    at = "bodies.block.muscles.m"
    muscles = {"m": MUSCLES[kind]}
    scene = hollow_block(steps, integrator, SIGNALS, 1.0 / steps, element="tet4", muscles=muscles)
    check_gradient(
        scene, f"signals.{'j' if kind == 'volumetric-actuator' else 'a'}.-", *(f"{at}.{key}" for key in NUMBERS[kind])
    )


def block(**muscle) -> dict:
    """Return a cube that a muscle pulls together along x, free to widen, at rest after a while."""
    return {
        "schema": "add-scene/1",
        "time": {"dt": 1e4, "steps": 4},
        "gravity": [0, 0, 0],
        "bodies": {
            "cube": {
                "type": "soft",
                "element": "hex8",
                "mesh": {"shape": "box", "size": [0.02, 0.02, 0.02], "divisions": [2, 2, 2]},
                "material": {"mu": 1e4, "lambda": 3e4, "density": 1000},
                "pins": [
                    {"where": {"box": {"max": [-0.0099, None, None]}}, "axes": "x"},
                    {"where": {"nodes": [0]}},
                    {"where": {"nodes": [6]}, "axes": "z"},
                ],
                "muscles": {"m": {"fibres": {"direction": [3, 0, 0]}, **muscle}},
            }
        },
    }


@pytest.mark.parametrize(
    ("muscle", "nominal"),
    [
        ({"type": "active-stress", "activation": 0.6, "strength": 9000.0, "optimal": 1.05, "width": 0.4},
         lambda l: 0.6 * 9000.0 * np.exp(-(((l - 1.05) / 0.4) ** 2))),
        ({"type": "quadratic-fibre", "activation": 0.5, "stiffness": 2e4, "contraction": 0.5},
         lambda l: 2e4 * (l - 0.75)),
        ({"type": "hill", "activation": 0.5, "strength": 5000.0}, lambda l: 2500.0 * (1.0 - 8.0 * (1.0 - l) ** 2)),
    ],
)  # fmt: skip
def test_a_cube_shortens_until_its_elasticity_holds_the_tension(muscle: dict, nominal) -> None:
    """P_x of Neo-Hooke and the muscle vanish together, and P_y of Neo-Hooke: two equations of two stretches."""
    from scipy.optimize import fsolve

    def stresses(x: np.ndarray) -> list[float]:
        l, w = x
        log = np.log(l * w * w)
        return [1e4 * (l - 1 / l) + 3e4 * log / l + nominal(l), 1e4 * (w - 1 / w) + 3e4 * log / w]

    along, across = fsolve(stresses, [0.9, 1.03], xtol=1e-13)
    built = scene_from_dict(block(**muscle)).build()
    x = built.run().q[-1].reshape(-1, 3)
    assert 0.75 < along < 0.97
    assert np.ptp(x[:, 0]) / 0.02 == pytest.approx(along, rel=1e-7)
    assert np.ptp(x[:, 1]) / 0.02 == pytest.approx(across, rel=1e-7)
    (term,) = built.model.term(Muscle)
    assert term.stretches(built.run().kinematics(4)) == pytest.approx(along, rel=1e-7)


def test_a_line_pulls_as_much_at_every_point() -> None:
    """A chain of points held apart by nothing else: the tension is one, whatever the lengths of its segments."""
    scene = block(type="quadratic-fibre", activation=0.3, stiffness=0.5)
    muscle = scene["bodies"]["cube"]["muscles"]["m"]
    muscle.pop("fibres")
    muscle["points"] = [[-0.01, 0, 0], [-0.004, 0, 0], [0.01, 0, 0]]
    built = scene_from_dict(scene).build()
    run = built.run()
    (term,) = built.model.term(Muscle)
    kin = run.kinematics(4)
    force = np.zeros(built.model.system.n)
    term.residual(kin, built.theta, force)
    stretch = float(term.stretches(kin)[0])
    pulled = -force.reshape(-1, 3)[:, 0]
    tension = 0.5 * (stretch - 0.7)
    assert 0.9 < stretch < 1.0
    assert pulled[pulled > 0.0].sum() == pytest.approx(tension, rel=1e-3)
    assert abs(pulled.sum()) < 1e-12


def test_fibres_by_direction_axis_and_file(tmp_path) -> None:
    spec = scene_from_dict(hollow_block(signals=SIGNALS, muscles={"m": MUSCLES["active-stress"]}))
    body = spec.build().model.bodies[0]
    centres = body.mesh.points[body.mesh.cells].mean(axis=1)

    def fibres(given: dict) -> np.ndarray:
        muscle = MUSCLES["active-stress"] | {"fibres": given}
        own = scene_from_dict(hollow_block(signals=SIGNALS, muscles={"m": muscle})).bodies["block"]
        found = ElementSource(own, body.mesh, np.arange(26)).directions(own.muscles["m"].fibres, "m")
        return np.broadcast_to(found, (26, 3))

    assert fibres({"direction": [0, 0, 5]}) == pytest.approx(np.tile([0.0, 0.0, 1.0], (26, 1)))
    axis, point = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.1, 0.0])
    wound = fibres({"around": [2, 0, 0], "point": point.tolist(), "pitch": 0.3})
    assert wound @ axis == pytest.approx(np.full(26, np.sin(0.3)))
    assert np.abs(np.einsum("ei,ei->e", wound, (centres - point) * [0, 1, 1])).max() < 1e-15
    rows = np.random.default_rng(0).normal(size=(26, 3))
    unit = rows / np.linalg.norm(rows, axis=1)[:, None]
    np.save(tmp_path / "f.npy", rows)
    np.savetxt(tmp_path / "f.csv", rows, delimiter=",")
    for name in ("f.npy", "f.csv"):
        assert fibres({"file": str(tmp_path / name)}) == pytest.approx(unit, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"fibres": None}, "exactly one of 'fibres' or 'points'"),
        ({"points": [[0, 0, 0], [0.01, 0, 0]]}, "exactly one of 'fibres' or 'points'"),
        ({"fibres": None, "points": [[0, 0.02, 0], [0.5, 0, 0]]}, "outside the body"),
        ({"fibres": None, "points": [[0, 0.02, 0], [0, 0.02, 0]]}, "two points of a line are one"),
        ({"where": {"nodes": [0]}}, "no whole element"),
        ({"fibres": {"file": "none.csv"}}, "there is no such file"),
        ({"fibres": {"around": [1, 0, 0]}}, "nothing goes round it"),
        ({"activation": {"signal": "b"}}, "signal"),
    ],
)
def test_what_is_no_muscle_is_refused(change: dict, says: str) -> None:
    muscle = {key: value for key, value in (MUSCLES["active-stress"] | change).items() if value is not None}
    scene = hollow_block(signals=SIGNALS, muscles={"m": muscle})
    with pytest.raises(InputError) as error:
        scene_from_dict(scene).build()
    assert "bodies.block.muscles.m" in str(error.value) and says in str(error.value)


DYNAMICS = {"dynamics": {"rise": 0.03, "fall": 0.08}}


@pytest.mark.parametrize(
    ("integrator", "steps"), [("bdf2", 40), long_case("bdf1", 200), long_case("bdf2", 200)]
)  # fmt: skip
def test_gradient_by_the_times_of_activation(integrator: str, steps: int) -> None:
    """By what excites a muscle, by both times and by the strength."""
    muscles = {"m": MUSCLES["active-stress"] | DYNAMICS}
    scene = hollow_block(steps, integrator, SIGNALS, 1.0 / steps, element="tet4", muscles=muscles)
    at = "bodies.block.muscles.m"
    check_gradient(scene, "signals.a.-", f"{at}.dynamics.rise", f"{at}.dynamics.fall", f"{at}.strength")


def activation(excitation: float, before: float, dt: float, times: tuple[float, float] = (0.01, 0.04)) -> float:
    """Return the activation after one step of a constant excitation."""
    memory = Activation(Constant(), np.array([0]), np.array([1, 2]), np.array([3]))
    return memory.step(np.array([before]), np.array([excitation, *times, 0.0]), Timing(dt, dt))[0]


def test_activation_has_the_rates_of_mujoco() -> None:
    path = REFERENCE / "muscle_activation_mujoco.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    for control, before, rate in np.loadtxt(path, delimiter=",", skiprows=1):
        assert (activation(control, before, 1e-7) - before) / 1e-7 == pytest.approx(rate, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("excitation", [0.8, 0.05])
def test_activation_is_of_second_order_and_does_not_overshoot(excitation: float) -> None:
    """Against the differential equation, solved to 1e-12."""
    from scipy.integrate import solve_ivp

    def rate(_: float, a: np.ndarray) -> np.ndarray:
        bent = 0.5 + 1.5 * a
        return (excitation - a) / np.where(excitation > a, 0.01 * bent, 0.04 / bent)

    exact = solve_ivp(rate, (0.0, 0.02), [0.4], method="DOP853", rtol=1e-12, atol=1e-13).y[0, -1]
    errors = []
    for n in (20, 40, 80):
        a = 0.4
        for _ in range(n):
            a = activation(excitation, a, 0.02 / n)
        errors.append(abs(a - exact))
    assert errors[0] < 1e-3
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.2)
    assert abs(activation(excitation, 0.4, 10.0) - excitation) < 1e-12


def test_activation_starts_at_rest_and_needs_whole_steps() -> None:
    scene = hollow_block(3, "bdf1", SIGNALS, element="tet4", muscles={"m": MUSCLES["active-stress"] | DYNAMICS})
    built = scene_from_dict(scene).build()
    run = built.run()
    assert run.records[0].begun.memory[0, 0] == pytest.approx(0.1)
    assert run.records[2].begun.memory[0, 0] > 0.1
    scene["time"]["substeps"] = "auto"
    with pytest.raises(InputError, match="activations that follow"):
        scene_from_dict(scene).build()


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_a_line_that_draws_itself_to_a_point_is_refused(integrator: str) -> None:
    """It has no direction there, and is so stiff that hundreds of newtons were taken for its rounding."""
    line = {"type": "active-stress", "points": [[-0.04, 0, 0], [0, 0.01, 0.01], [0.04, -0.02, 0]], "strength": 2e4,
            "activation": 0.6062623934924263}  # fmt: skip
    fibre = {"around": [0, 0, 1], "point": [0.5, 0.1, 0], "pitch": 0.6}
    hgo = {"model": "hgo", "c": 5e3, "k1": 6e3, "k2": 0.8, "dispersion": 0.1, "kappa": 8e4, "fibres": {"fibre": fibre}}
    body = {"type": "soft", "mesh": {"shape": "box", "size": [0.1, 0.08, 0.06], "divisions": [1, 1, 1]},
            "element": "hex8", "mean_dilatation": True, "material": hgo | {"density": 1000.0},
            "muscles": {"m": line},
            "velocity": [0.1, 0.2, 0.3], "angular_velocity": [1, 2, -1]}  # fmt: skip
    raw = {"schema": "add-scene/1", "bodies": {"b": body}, "gravity": [1, 2, 3]}
    raw["time"] = {"dt": 0.002, "steps": 6, "integrator": integrator, "substeps": "off"}
    with pytest.raises(SolverError, match="less tension, or more stiffness against it"):
        scene_from_dict(raw).build().run()
