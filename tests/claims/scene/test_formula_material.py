"""Materials whose law stands in the scene: runs, gradients, results, errors with their place."""

import copy
import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from support.places import SCENES

from add import scene_from_dict
from add.commands.check_gradient import check_gradients
from add.commands.cli import cli
from add.errors import InputError
from add.geometry import quadrature_geometry
from add.io.trajectory_file import read_run, write_run
from add.scene.build.run_data import run_data
from add.terms import Viscous
from add.view.quantities import von_mises

NUMBERS = {"c10": 15000.0, "c20": 1500.0, "kappa": 1.9e6}
DAMPED = {"density": 1070, "viscosity": 5, "rayleigh_stiffness": 2e-3}


def strip(material: dict[str, Any] | None = None, **body: Any) -> dict[str, Any]:
    """The strip of the scene, of fewer elements and pulled quickly."""
    raw = copy.deepcopy(json.loads((SCENES / "yeoh_strip.json").read_text(encoding="utf-8")))
    for key in ("$schema", "expect", "optimizer", "check"):
        del raw[key]
    raw["signals"]["pull"]["times"] = [0, 0.1, 0.2]
    raw["time"] |= {"duration": 0.12}
    raw["objective"] = [{"type": "point", "marker": "end", "target": [0.05, 0.01, 0], "time": "end"}]
    own = raw["bodies"]["strip"]
    own["mesh"]["divisions"] = [2, 1, 1]
    own["material"] |= DAMPED | (material or {})
    own |= body
    return raw


def test_a_formula_moves_as_the_named_law() -> None:
    named = strip()
    named["bodies"]["strip"]["material"] = {"model": "yeoh", **NUMBERS, **DAMPED}
    named["parameters"] = []
    ends = [scene_from_dict(raw).build().run().q for raw in (strip(), named)]
    assert np.ptp(ends[0][-1]) > 0.05
    assert np.abs(ends[0] - ends[1]).max() < 1e-12


@pytest.mark.parametrize(("element", "mean"), [("tet4", False), ("tet10", True), ("hex8", True)])
def test_gradient_by_every_number(element: str, mean: bool) -> None:
    """Of a whole run, forward and backward, against differences."""
    scene = scene_from_dict(strip(element=element, mean_dilatation=mean))
    found = check_gradients(scene, n_steps=4, free=False)
    moduli = {f"bodies.strip.material.numbers.{key}" for key in NUMBERS}
    for one in found:
        assert one.passed, one
        assert moduli <= {number.name for number in one.parameters if number.adjoint != 0.0}


def test_results_keep_the_formula(tmp_path) -> None:
    raw = strip({"rayleigh_stiffness": 0})
    raw["signals"]["pull"]["times"], raw["time"]["duration"] = [0, 1.5, 1.6], 1.6
    built = scene_from_dict(raw).build()
    data = run_data(built, built.run(), built.theta)
    write_run(tmp_path / "run.h5", data)
    (body,) = read_run(tmp_path / "run.h5").bodies
    assert body.model == "formula" and body.formula == "c10*(I1b - 3) + c20*(I1b - 3)**2 + kappa/2*(J - 1)**2"
    assert body.law is data.bodies[0].law and body.moduli[0].tolist() == list(NUMBERS.values())
    # Uniaxial: the axial Cauchy stress is the force over the area that is left.
    q = data.q[-1][body.entries]
    x = q.reshape(-1, 3)
    area = np.ptp(x[:, 1]) * np.ptp(x[:, 2])
    stress = von_mises(body, q, quadrature_geometry(body.mesh))
    np.testing.assert_allclose(stress, 9.0 / area, rtol=2e-3)


@pytest.mark.parametrize(
    ("material", "message"),
    [
        ({"energy": "c10*(I1c - 3) + c20 + kappa"}, "material.energy: unknown symbol 'I1c'; did you mean 'I1'?"),
        ({"numbers": {"c10": 1.0, "c20": 1.0}}, "material.energy: unknown symbol 'kappa'"),
        ({"numbers": NUMBERS | {"c30": 1.0}}, "material.numbers.c30: the formula does not have this number"),
        ({"numbers": NUMBERS | {"J": 1.0}}, "material.numbers.J: this cannot be the name of a number"),
        ({"numbers": NUMBERS | {"c10": "soft"}}, "material.numbers.c10: wrong type"),
        ({"numbers": NUMBERS | {"c10": -1.0}}, "material.energy: the law is not stable at rest (found eigenvalues"),
        ({"units": {"c11": "kPa"}}, "material.units.c11: there is no such number"),
        ({"energy": "__import__('os').abort()"}, "material.energy: this has no place in a formula"),
    ],
)
def test_errors_say_where(material: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        scene_from_dict(strip(material))
    assert str(error.value).startswith(f"bodies.strip.{message}")
    assert error.value.exit_code == 2


def test_units_are_those_of_the_scene() -> None:
    built = scene_from_dict(strip({"units": {"c20": "kPa"}})).build()
    units = {entry.name: entry.unit for entry in built.numbers.layout.entries}
    assert units["bodies.strip.material.numbers.c20"] == "kPa"
    assert units["bodies.strip.material.numbers.c10"] == "Pa"


def test_commands_say_where_a_silicones_numbers_are_from() -> None:
    path = str(SCENES / "pulled_silicone.json")
    found = json.loads(CliRunner().invoke(cli, ["check", path, "--json"]).stdout)
    (said,) = found["materials"].items()
    assert said[0] == "bodies.strip.material" and "10.5281/zenodo.3611329" in said[1]
    for command in ("check", "info"):
        text = CliRunner().invoke(cli, [command, path]).stdout
        assert f"{said[0]}: {said[1]}" in " ".join(text.split())


RATED = {"type": "formula", "dissipation": "nu/2*DD + zeta/2*trD**2 + k*trD**2*DD/(1 + l*DD)",
         "numbers": {"nu": 5.0, "zeta": 2.0, "k": 0.1, "l": 0.2}, "units": {"l": "s^2"}}  # fmt: skip


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize(
    ("own", "text"),
    [
        ({"viscosity": 3.0}, "nu/2*DD"),
        ({"viscosity": 3.0, "viscosity_exponent": 1.5}, "nu/h*(DD + 1e-6)**(h/2)"),
    ],
)
def test_a_viscosity_by_formula_moves_as_the_one_with_a_name(own: dict[str, Any], text: str, mean: bool) -> None:
    numbers = {"nu": 3.0} | ({"h": 1.5} if "h" in text else {})
    by_formula = {"viscosity": {"dissipation": text, "numbers": numbers}}
    runs = [
        scene_from_dict(strip(given, element="tet10", mean_dilatation=mean)).build().run().q
        for given in (own, by_formula, {"viscosity": 0})
    ]
    assert np.abs(runs[0] - runs[1]).max() < 1e-12
    assert np.abs(runs[0] - runs[2]).max() > 1e-6


@pytest.mark.parametrize(("element", "mean"), [("tet4", False), ("hex8", True)])
def test_gradient_by_every_number_of_the_viscosity(element: str, mean: bool) -> None:
    raw = strip({"viscosity": RATED}, element=element, mean_dilatation=mean)
    built = scene_from_dict(raw).build()
    (term,) = built.model.term(Viscous)
    assert term.linear == "" and not term.law.is_linear
    assert built.numbers.layout["bodies.strip.material.viscosity.numbers.l"].unit == "s^2"
    numbers = {f"bodies.strip.material.viscosity.numbers.{key}" for key in RATED["numbers"]}
    for one in check_gradients(scene_from_dict(raw), n_steps=4, free=False):
        assert one.passed, one
        assert numbers <= {number.name for number in one.parameters if number.adjoint != 0.0}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dissipation": "nu/2*Dd"}, r"viscosity\.dissipation: unknown symbol 'Dd'"),
        ({"dissipation": "nu*DD**0.6"}, r"viscosity\.dissipation: .* no value at rest.*inf"),
        ({"dissipation": "nu*DD**1.5"}, r"viscosity\.dissipation: .* no value at rest.*inf"),
        ({"dissipation": "nu*log(DD)"}, r"viscosity\.dissipation: .* no value at rest"),
        ({"dissipation": "nu/2*DD + 3*trD"}, r"viscosity\.dissipation: .* a stress at rest.*3 Pa"),
        ({"dissipation": "-nu/2*DD"}, r"viscosity\.dissipation: .* drives .*-2 Pa s of D"),
        ({"dissipation": "nu/2*DD - nu*trD**2"}, r"viscosity\.dissipation: .* drives .*-3\.33333 Pa s of tr D"),
        ({"dissipation": "DD"}, r"viscosity\.numbers\.nu: no viscous stress depends"),
        ({"numbers": {"nu": 2.0, "trD": 1.0}}, r"viscosity\.numbers\.trD: this cannot be the name"),
    ],
)
def test_potentials_that_cannot_be(changed: dict[str, Any], message: str) -> None:
    raw = strip({"viscosity": {"dissipation": "nu/2*DD", "numbers": {"nu": 2.0}} | changed})
    with pytest.raises(InputError, match=message):
        scene_from_dict(raw)


def test_an_exponent_beside_a_law_of_viscosity_is_refused() -> None:
    with pytest.raises(InputError, match=r"viscosity_exponent: .* a viscosity that is a number"):
        scene_from_dict(strip({"viscosity": {"dissipation": "DD/2"}, "viscosity_exponent": 1.5}))
