"""Couplings whose law stands in the scene: against those with names, gradients, errors with their place."""

import copy
import json
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.places import SCENES

from add import scene_from_dict
from add.commands.check_gradient import check_gradients
from add.errors import InputError, SolverError
from add.simulation.derivative import named_instant

DUFFING = {
    "energy": "k/2*(l - L)**2 + k3/4*(l - L)**4",
    "resistance": "c*l_dot",
    "numbers": {"k": 50, "k3": 2000, "L": 1, "c": 0.4},
}
CHAIN = {"energy": "-k/2*R**2*log(1 - ((l - L)/R)**2)", "numbers": {"k": 50, "R": 0.3, "L": 1}}


def scene(coupling: dict[str, Any], **ends: Any) -> dict[str, Any]:
    """The mass on a spring that hardens, for a part of its period."""
    raw = copy.deepcopy(json.loads((SCENES / "hardening_spring.json").read_text(encoding="utf-8")))
    for key in ("$schema", "expect", "parameters", "check"):
        del raw[key]
    own = raw["couplings"]["spring"]
    raw["couplings"]["spring"] = {key: own[key] for key in "ab"} | coupling | ends
    raw["time"]["duration"] = 0.5
    return raw


def test_a_formula_moves_as_the_named_coupling() -> None:
    named = {"type": "hardening-spring", "stiffness": 50, "cubic": 2000, "damping": 0.4, "length": 1}
    runs = [scene_from_dict(scene(law)).build().run().q for law in ({"type": "formula", **DUFFING}, named)]
    assert np.abs(runs[0] - runs[1]).max() < 1e-12
    assert np.ptp(runs[0][:, 0]) > 0.3


def test_energy_is_conserved_up_to_the_length_of_a_chain() -> None:
    """A chain that cannot be longer than L + R: it turns the mass round where its energy is the kinetic one."""
    raw = scene({"type": "formula", **CHAIN})
    raw["bodies"]["mass"] |= {"position": [1, 0, 0], "velocity": [3.0, 0, 0]}
    raw["objective"][0]["time"] = 0.3
    x = scene_from_dict(raw).build().run().q[:, 0]
    # 1/2 m v^2 = -k/2 R^2 ln(1 - (x/R)^2)
    reach = 0.3 * np.sqrt(1.0 - np.exp(-(3.0**2) / (50 * 0.3**2)))
    assert x.max() - 1.0 == pytest.approx(reach, rel=2e-3)


@pytest.mark.parametrize("law", [DUFFING, CHAIN], ids=["duffing", "chain"])
def test_gradient_by_every_number(law: dict[str, Any]) -> None:
    raw = scene({"type": "formula", **law})
    raw["objective"][0]["time"] = 0.02
    for found in check_gradients(scene_from_dict(raw), n_steps=20, free=False):
        assert found.passed, found
        moved = {number.name for number in found.parameters if number.adjoint != 0.0}
        assert {f"couplings.spring.numbers.{name}" for name in law["numbers"]} <= moved


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"energy": "k*(l - LL)"}, "energy: unknown symbol 'LL'"),
        ({"energy": "k*l*l_dot"}, "energy: unknown symbol 'l_dot'"),
        ({"resistance": "c*v"}, "resistance: unknown symbol 'v'"),
        ({"resistance": "c*abs(l_dot)"}, "resistance: there is no function 'abs'"),
        ({"resistance": ""}, "numbers.c: the force dV/dl + D does not have this number"),
        ({"energy": "k + c", "resistance": "", "numbers": {"k": 1, "c": 1}}, "numbers.c: the force dV/dl + D does not"),
        ({"energy": "l*l", "resistance": "", "numbers": {}}, "numbers: the force dV/dl + D has no number"),
        ({"energy": "k*l**1e300 + L*l + k3*l"}, "energy: a number is too large"),
        ({"numbers": {"l": 1}}, "numbers.l: this cannot be the name of a number"),
        ({"units": {"m": "kg"}}, "units.m: there is no such number"),
        (CHAIN | {"resistance": "", "numbers": {"k": 50, "R": 0.1, "L": 1}}, "energy: the formula has no value where "
         "the motion starts (found l = 1.2)"),
    ],
)  # fmt: skip
def test_errors_say_where(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        scene_from_dict(scene({"type": "formula", **DUFFING, **change})).build()
    assert str(error.value).startswith(f"couplings.spring.{message}")


def pendulum(formula: dict[str, Any]) -> dict[str, Any]:
    """A box on a hinge in the world, without weight, turned by 1 rad about it by its start."""
    hinge = {
        "type": "hinge", "a": {"at": [0, 0, 0]}, "b": {"body": "box", "at": [0, 0, 0]}, "axis": [0, 1, 0],
        "stiffness": 1e6, "angular_stiffness": 1e4, "start": {"angle": 1.0}, "formula": formula,
    }  # fmt: skip
    return {
        "schema": "add-scene/1",
        "gravity": [0, 0, 0],
        "time": {"dt": 0.002, "duration": 0.5, "integrator": "bdf2"},
        "bodies": {"box": {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "mass": 1,
                           "inertia": [0.01, 0.01, 0.01, 0, 0, 0]}},
        "couplings": {"hinge": hinge},
        "markers": {"corner": {"body": "box", "point": [0.05, 0, 0.05]}},
        "objective": [{"type": "point", "marker": "corner", "target": [0, 0, 0.1], "time": "end"}],
    }  # fmt: skip


BUSHING = {"energy": "k*(1 - cos(angle)) + k3/4*angle**4", "resistance": "c*rate",
           "numbers": {"k": 0.3, "k3": 0.2, "c": 1e-3}}  # fmt: skip


def test_ends_that_met_are_named() -> None:
    """A pull that does not vanish with the distance has no direction where ends meet: steps and derivatives say so."""
    magnet = {"energy": "-k/(l + c)", "resistance": "d*l_dot", "numbers": {"k": 9, "c": 1, "d": 9}}
    raw = scene({"type": "formula", **magnet})
    raw["bodies"]["mass"]["position"] = [1e-3, 0, 0]
    raw["time"]["substeps"] = "off"
    built = scene_from_dict(raw).build()
    with pytest.raises(SolverError, match="draws them together with 9 N even there"):
        built.run()
    system, record = built.model.system, built.run(n_steps=1).records[0]
    for place, said in ((0.0, "9 N even there"), (1.0, "try time.dt")):
        record.kin.q[:] = place
        with (
            pytest.raises(SolverError, match=rf"step 1 .*noise; .*{said}"),
            named_instant(record.solution, system, built.theta),
        ):
            raise SolverError("noise")


def test_a_hinge_turns_as_its_formula_says() -> None:
    """I angle'' = -k sin(angle) - k3 angle^3 - c angle', against scipy's solver."""
    built = scene_from_dict(pendulum(BUSHING)).build()
    trajectory = built.run()
    found = np.linalg.norm(trajectory.q[:, 3:6], axis=1)

    def slope(t: float, x: np.ndarray) -> list[float]:
        return [x[1], -(0.3 * np.sin(x[0]) + 0.2 * x[0] ** 3 + 1e-3 * x[1]) / 0.01]

    expected = solve_ivp(slope, (0.0, 0.5), [1.0, 0.0], t_eval=trajectory.t, rtol=1e-10, atol=1e-10).y[0]
    assert np.ptp(expected) > 1.5
    np.testing.assert_allclose(found, np.abs(expected), atol=5e-3)


def test_gradient_by_the_numbers_of_a_hinge() -> None:
    for found in check_gradients(scene_from_dict(pendulum(BUSHING)), n_steps=12, free=False):
        assert found.passed, found
        moved = {number.name for number in found.parameters if number.adjoint != 0.0}
        assert {f"couplings.hinge.formula.numbers.{name}" for name in BUSHING["numbers"]} <= moved


def test_errors_of_a_hinge_say_where() -> None:
    with pytest.raises(InputError, match=r"couplings\.hinge\.formula\.energy: unknown symbol 'l'"):
        scene_from_dict(pendulum({"energy": "k*l", "numbers": {"k": 1.0}}))
    with pytest.raises(
        InputError, match=r"couplings\.hinge\.formula\.energy: the formula has no value where .* angle = 1\b"
    ):
        scene_from_dict(pendulum({"energy": "-k*log(1 - (angle/R)**2)", "numbers": {"k": 1.0, "R": 0.5}})).build()
