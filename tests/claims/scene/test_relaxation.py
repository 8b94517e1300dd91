"""Stress that relaxes: closed forms, order, gradients of runs, checkpoints, resumed runs, what is refused."""

import copy
import itertools
from typing import Any

import numpy as np
import pytest
from support.reference_tables import table as deformables

from add import scene_from_dict
from add.adjoint import value_and_gradient
from add.adjoint.schedule import Checkpoints, States
from add.commands.check_gradient import check_gradients
from add.errors import InputError
from add.scene.build.inverse_problem import scene_objective
from add.simulation.composed import Remembering

SIDE, YOUNG = 0.02, 5e4

SCENE: dict[str, Any] = {
    "schema": "add-scene/1",
    "name": "relaxing",
    "gravity": [0, 0, 0],
    "time": {"dt": 0.01, "duration": 0.08, "integrator": "bdf2"},
    "signals": {"pull": {"type": "table", "times": [0, 0.05, 0.4], "values": [[0, 0, 0], [0.01] * 3, [0.01, 4e-3, 0]]}},
    "bodies": {
        "b": {
            "type": "soft",
            "mesh": {"shape": "box", "size": [2 * SIDE, SIDE, SIDE], "divisions": [2, 1, 1]},
            "element": "hex8",
            "material": {
                "young": YOUNG,
                "poisson": 0.45,
                "density": 1000,
                "viscosity": 1.0,
                "relaxation": {
                    "slow": {"share": 0.3, "time": 0.05},
                    "band": {"loss": 0.1, "frequencies": [0.5, 20]},
                },
            },
            "pins": [
                {"where": {"box": {"max": [-0.0199, None, None]}}},
                {"where": {"box": {"min": [0.0199, None, None]}}, "motion": {"signal": "pull"}},
            ],
        }
    },
    "markers": {"m": {"body": "b", "point": [0.001, 0.005, 0.003]}},
    "objective": [{"type": "point", "marker": "m", "target": [0.004, 0.004, 0.003], "time": "end"}],
    "parameters": [{"path": "bodies.b.material.relaxation.slow.time", "transform": "log"}],
}


def relaxing(**body: Any) -> dict[str, Any]:
    raw = copy.deepcopy(SCENE)
    raw["bodies"]["b"] |= body
    return raw


def cube(dt: float, times: list[float], forces: list[float], branches: dict[str, Any]) -> dict[str, Any]:
    """A cube without a mass to speak of, pulled along x, free to grow thin."""
    raw = relaxing(mesh={"shape": "box", "size": [SIDE] * 3, "divisions": [1, 1, 1]})
    del raw["objective"], raw["parameters"], raw["markers"]
    body = raw["bodies"]["b"]
    body["material"] = {"young": YOUNG, "poisson": 0.3, "density": 1e-3, "relaxation": branches}
    corner = -0.5 * SIDE + 1e-6
    body["pins"] = [
        {"where": {"box": {"max": [corner if k == axis else None for k in range(3)]}}, "axes": "xyz"[axis]}
        for axis in range(3)
    ]
    body["loads"] = [{"where": {"box": {"min": [-corner, None, None]}}, "force": {"signal": "pull"}}]
    raw["signals"]["pull"] |= {"times": times, "values": [[f, 0, 0] for f in forces]}
    raw["time"] = {"dt": dt, "duration": times[-1], "integrator": "bdf2", "newton": {"atol": 1e-14}}
    return raw


@pytest.mark.parametrize("omega", [0.3, 3.0, 30.0])
def test_storage_and_loss_moduli(omega: float) -> None:
    """Of a small vibration, against closed forms of the series; the error is of second order in the step."""
    table = deformables("prony.npz")
    g, tau = table["g"], table["tau"]
    branches = {f"b{k}": {"share": g[k], "time": tau[k]} for k in range(3)}
    x = 1j * omega * tau
    modulus = YOUNG * (1.0 - (g / (1.0 + x)).sum())
    assert np.interp(omega, table["omega"], table["storage"]) == pytest.approx(modulus.real / YOUNG, rel=2e-3)
    errors = []
    for steps in (40, 80):
        period = 2.0 * np.pi / omega
        t = period * np.arange(8 * steps + 1) / steps
        built = scene_from_dict(cube(period / steps, t.tolist(), (1e-3 * np.sin(omega * t)).tolist(), branches)).build()
        run = built.run()
        end = np.argmax(built.model.bodies[0].rest.sum(axis=1))
        last = slice(-steps, None)
        u = run.q.reshape(len(run.q), -1, 3)[last, end, 0] - 0.5 * SIDE
        # What the start has left fades so slowly that the mean over a period does not see it.
        found = 2e3j * (u * np.exp(-1j * omega * run.t[last])).mean()
        errors.append(abs(found * modulus * SIDE - 1.0))
    assert errors[1] < 1e-3
    if omega < 10.0:  # of faster ones what the start has left is as large as the error
        assert errors[0] / errors[1] > 3.0


def test_creep_goes_from_the_fast_modulus_to_that_at_rest() -> None:
    """One branch: J(t) = (1 - g exp(-(1 - g) t/tau))/(E (1 - g))."""
    g, tau, force = 0.4, 0.5, 1e-3
    t = np.concatenate([[0.0, 1e-4], np.linspace(0.01, 2.0, 5)])
    raw = cube(0.01, [0.0, 1e-4, 2.0], [0.0, force, force], {"one": {"share": g, "time": tau}})
    raw["time"]["duration"] = 2.0
    built = scene_from_dict(raw).build()
    run = built.run()
    end = np.argmax(built.model.bodies[0].rest.sum(axis=1))
    u = run.q.reshape(len(run.q), -1, 3)[:, end, 0] - 0.5 * SIDE
    known = force / (YOUNG * SIDE) * (1.0 - g * np.exp(-(1.0 - g) * run.t / tau)) / (1.0 - g)
    np.testing.assert_allclose(u[5:], known[5:], rtol=5e-3)
    assert t.size and u[-1] / u[1] == pytest.approx(1.0 / (1.0 - g), rel=0.06)


def test_shape_at_rest_is_that_of_the_elastic_body() -> None:
    """Bent and held, all stress goes to 0.7 of the elastic one: every point forgets what it alone remembers."""
    raw = relaxing()
    raw["bodies"]["b"]["material"]["relaxation"] = {"slow": {"share": 0.3, "time": 0.05}}
    raw["time"]["duration"] = 2.0
    del raw["parameters"], raw["objective"]
    relaxed = scene_from_dict(raw).build().run()
    del raw["bodies"]["b"]["material"]["relaxation"]
    elastic = scene_from_dict(raw).build().run()
    moved = np.abs(elastic.q[-1] - elastic.q[0]).max()
    np.testing.assert_allclose(relaxed.q[-1], elastic.q[-1], rtol=0, atol=1e-7 * moved)


def test_static_equilibrium_is_relaxed() -> None:
    """A run from equilibrium stays where it begins: the body has been there for ever."""
    raw = cube(0.01, [0.0, 0.2], [0.02, 0.02], {"one": {"share": 0.4, "time": 0.05}})
    raw["time"]["initial"] = "equilibrium"
    built = scene_from_dict(raw).build()
    run = built.run()
    assert np.abs(run.q - run.q[0]).max() < 1e-12
    end = np.argmax(built.model.bodies[0].rest.sum(axis=1))
    stretch = run.q[0].reshape(-1, 3)[end, 0] / SIDE - 0.5
    assert stretch == pytest.approx(0.02 / (SIDE**2 * YOUNG * 0.6), rel=5e-3)


@pytest.mark.parametrize(
    ("element", "mean", "integrator"),
    [("hex8", True, "bdf2"), ("tet4", False, "bdf1"), ("tet10", True, "bdf1"), ("hex8", False, "bdf2")],
)
def test_gradient_by_every_number(element: str, mean: bool, integrator: str) -> None:
    """Of a whole run, forward and backward, against differences."""
    raw = relaxing(element=element, mean_dilatation=mean)
    raw["time"]["integrator"] = integrator
    wanted = {f"bodies.b.material.relaxation.{key}" for key in ("slow.share", "slow.time", "band.loss")}
    for one in check_gradients(scene_from_dict(raw), n_steps=4, free=False):
        assert one.passed, one
        assert wanted <= {number.name for number in one.parameters if number.adjoint != 0.0}


def test_gradient_from_equilibrium_and_of_two_bodies() -> None:
    raw = relaxing()
    other = copy.deepcopy(raw["bodies"]["b"])
    other["position"], other["material"]["relaxation"] = [0, 0.1, 0], {"own": {"share": 0.2, "time": 0.02}}
    raw["bodies"]["other"] = other
    raw["gravity"], raw["time"]["initial"] = [0, -30, 0], "equilibrium"
    raw["markers"]["n"] = {"body": "other", "point": [0.001, 0.005, 0.003]}
    raw["objective"].append({"type": "point", "marker": "n", "target": [0.0, 0.11, 0], "time": "end"})
    for one in check_gradients(scene_from_dict(raw), n_steps=3, free=False):
        assert one.passed, one


def test_recomputed_and_resumed_runs_are_the_same() -> None:
    scene = scene_from_dict(SCENE)
    built = scene.build()
    simulation, theta = built.simulation, built.theta
    assert isinstance(simulation.stepper, Remembering)
    whole = simulation.run(theta)
    part = simulation.run(theta, n_steps=3)
    again = simulation.run(theta, state=part.state(3))
    assert np.array_equal(again.q[-1], whole.q[-1])
    objective = scene_objective(scene, built, "scene", simulation.n_steps)
    assert objective is not None
    stored = value_and_gradient(simulation, objective, theta)
    assert np.abs(stored.gradient).max() > 0.0
    for schedule in (Checkpoints(3), States()):
        recomputed = value_and_gradient(simulation, objective, theta, schedule=schedule)
        assert np.array_equal(stored.gradient, recomputed.gradient)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slow": {"share": 0.7, "time": 1.0}, "fast": {"share": 0.3, "time": 0.1}}, "nothing is left of the stress"),
        ({"slow": {"share": 1.5, "time": 1.0}}, "slow.share"),
        ({"slow": {"share": 0.5}}, "slow.time"),
        ({"band": {"loss": 0.1, "frequencies": [10, 1]}}, "lower to a higher"),
    ],
)
def test_errors_say_where(change: dict[str, Any], message: str) -> None:
    raw = relaxing()
    raw["bodies"]["b"]["material"]["relaxation"] = change
    with pytest.raises(InputError) as error:
        scene_from_dict(raw).build()
    assert message in str(error.value) and "bodies.b.material.relaxation" in str(error.value)


def test_steps_that_do_not_remember_are_refused() -> None:
    for integrator, substeps in itertools.product(("bdf1", "bdf2"), ("auto",)):
        raw = relaxing()
        raw["time"] |= {"integrator": integrator, "substeps": substeps}
        with pytest.raises(InputError, match="whole steps of bdf1 or bdf2"):
            scene_from_dict(raw).build()
    built = scene_from_dict(SCENE).build()
    with pytest.raises(InputError, match="no function of coordinates and velocities"):
        built.simulation.step_derivatives()
