"""Silicones by name against the tensile tests that they are fitted to, and their page."""

import json
from typing import get_args

import numpy as np
import pytest
from scipy.optimize import brentq
from support.law_points import Point
from support.places import ROOT

from add import SiliconeMaterial, scene_from_dict
from add.errors import InputError
from add.materials import SILICONES, YEOH
from add.scene.read.reader import apply_overrides

#: Soft Robotics Materials Database (doi 10.5281/zenodo.3611329; ODbL), "Tensile-Tests-Data", commit 0f67d88: nominal
#: stress [kPa] at these nominal strains.
STRAINS = np.array([0.11362, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0])
MEASURED = {
    "ecoflex-00-10": [2.0967, 4.11, 7.91, 11.43, 14.79, 18.02, 21.76, 26.2667, 31.1167],
    "ecoflex-00-30": [3.82, 8.56, 16.89, 22.88, 29.72, 34.51, 40.08, 46.66, 52.39],
    "ecoflex-00-50": [5.715, 12.26, 22.775, 32.07, 40.95, 50.38, 59.51, 68.745, 79.005],
    "dragon-skin-10": [12.48, 26.427, 52.997, 82.293, 112.963, 149.83, 190.583, 233.527, 272.79],
    "dragon-skin-20": [32.66, 72.1467, 151.0733, 232.7667, 318.36, 410.47, 509.2367, 612.93, 722.2567],
    "dragon-skin-30": [51.92, 110.873, 213.917, 322.07, 437.123, 560.21, 689.383, 822.907, 959.47],
}
PAGE = (ROOT / "docs/materials.md").read_text(encoding="utf-8")


def stress(moduli: np.ndarray, stretch: float) -> float:
    """Nominal stress of a bar whose sides are free [Pa]."""

    def at(side: float) -> np.ndarray:
        return Point(YEOH, moduli, np.diag([stretch, side, side])).stress()

    guess = stretch**-0.5
    return float(at(brentq(lambda side: at(side)[1, 1], 0.5 * guess, 2.0 * guess, xtol=1e-14))[0, 0])


@pytest.mark.parametrize("name", SILICONES)
def test_pull_is_that_of_the_tests(name: str) -> None:
    """Within the stated error, at rest without stress and with the initial modulus of nu = 0.49."""
    material = SiliconeMaterial(model=name)
    moduli = np.array([material.modulus(key) for key, _, _ in YEOH.parameters])
    measured = 1e3 * np.array(MEASURED[name])
    ratios = np.array([stress(moduli, 1.0 + strain) for strain in STRAINS]) / measured
    largest = np.abs(ratios - 1.0).max()
    assert 0.9 * SILICONES[name].error < largest <= SILICONES[name].error + 5e-4
    assert abs(ratios.mean() - 1.0) < 0.02  # fitted, not beside

    assert not Point(YEOH, moduli, np.eye(3)).stress().any()
    young = 2.0 * 2.0 * SILICONES[name].c10 * 1.49
    assert (stress(moduli, 1.0 + 1e-5) - stress(moduli, 1.0 - 1e-5)) / 2e-5 == pytest.approx(young, rel=2e-3)
    tangents = [stress(moduli, x + 1e-4) - stress(moduli, x) for x in np.linspace(0.5, 6.0, 40)]
    assert min(tangents) > 0.0  # stable beyond the tests


@pytest.mark.parametrize("name", SILICONES)
def test_page_has_the_table(name: str) -> None:
    row = SILICONES[name]
    numbers = row.numbers
    at_double = MEASURED[name][4]
    cells = [f"`{name}`", f"{row.density:.0f}", f"{row.c10:.0f}", f"{row.c20:.0f}", f"{numbers['kappa']:.3g}"]
    line = next(line for line in PAGE.splitlines() if f"`{name}`" in line and line.startswith("|"))
    found = [cell.strip() for cell in line.strip("|").split("|")]
    assert found[:4] == cells[:4] and float(found[4]) == numbers["kappa"]
    assert float(found[5]) == pytest.approx(100 * row.error, abs=0.05) and float(found[6]) == pytest.approx(
        at_double, rel=0.005
    )


def scene(**material: object) -> dict[str, object]:
    raw = json.loads((ROOT / "scenes/pulled_silicone.json").read_text(encoding="utf-8"))
    raw["bodies"]["strip"]["material"] = material
    return raw


def test_names_are_those_of_the_table() -> None:
    assert get_args(SiliconeMaterial.model_fields["model"].annotation) == tuple(SILICONES)


def test_numbers_may_be_the_scenes_own() -> None:
    """Each is a number of the scene: given, overridden at its path, and said."""
    read = scene_from_dict(scene(model="ecoflex-00-30", density=1100, c20=None))
    material = read.bodies["strip"].material
    assert (material.density, material.c10, material.c20) == (1100.0, 7100.0, 230.0)
    assert "10.5281/zenodo.3611329" in material.source and material.source.endswith("density of the scene")
    changed = apply_overrides(read, {"bodies.strip.material.c10": 8000.0})
    assert changed.bodies["strip"].material.c10 == 8000.0 and changed.bodies["strip"].material.c20 == 230.0
    assert changed.bodies["strip"].material.source.endswith("; density, c10 of the scene")


@pytest.mark.parametrize(
    ("material", "place"),
    [
        ({"model": "ecoflex-00-31"}, "model"),
        ({"model": "ecoflex-00-30", "young": 7e4}, "young"),
        ({"model": "ecoflex-00-30", "kappa": 0}, "kappa"),
    ],
)
def test_errors(material: dict[str, object], place: str) -> None:
    with pytest.raises(InputError) as caught:
        scene_from_dict(scene(**material))
    assert place in caught.value.place
