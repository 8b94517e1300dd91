"""Couplings whose law stands in the scene: against those with names, gradients, errors with their place."""

import copy
import json
from typing import Any

import numpy as np
import pytest
from support.places import SCENES

from add import scene_from_dict
from add.commands.check_gradient import check_gradients
from add.errors import InputError

DUFFING = {
    "energy": "k/2*(l - L)**2 + k3/4*(l - L)**4",
    "pull": "c*l_dot",
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
    for found in check_gradients(scene_from_dict(raw), n_steps=20):
        assert found.passed, found
        moved = {number.name for number in found.parameters if number.adjoint != 0.0}
        assert {f"couplings.spring.numbers.{name}" for name in law["numbers"]} <= moved


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"energy": "k*(l - LL)"}, "energy: unknown symbol 'LL'"),
        ({"energy": "k*l*l_dot"}, "energy: unknown symbol 'l_dot'"),
        ({"pull": "c*v"}, "pull: unknown symbol 'v'"),
        ({"pull": "c*abs(l_dot)"}, "pull: there is no function 'abs'"),
        ({"pull": ""}, "numbers.c: the pull dV/dl + D does not have this number"),
        ({"energy": "k + c", "pull": "", "numbers": {"k": 1, "c": 1}}, "numbers.c: the pull dV/dl + D does not"),
        ({"energy": "l*l", "pull": "", "numbers": {}}, "numbers: the pull dV/dl + D has no number"),
        ({"numbers": {"l": 1}}, "numbers.l: this cannot be the name of a number"),
        ({"units": {"m": "kg"}}, "units.m: there is no such number"),
        (CHAIN | {"pull": "", "numbers": {"k": 50, "R": 0.1, "L": 1}}, "energy: the formula has no value at the "
         "length with which it starts (found l = 1.2 m)"),
    ],
)  # fmt: skip
def test_errors_say_where(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        scene_from_dict(scene({"type": "formula", **DUFFING, **change})).build()
    assert str(error.value).startswith(f"couplings.spring.{message}")
