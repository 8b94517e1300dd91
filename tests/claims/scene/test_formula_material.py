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
