"""Silicones and foams by name against the tests that they are fitted to, and their page."""

import json
from typing import get_args

import numpy as np
import pytest
from scipy.optimize import brentq
from support.law_points import Point
from support.places import ROOT

from add import FoamMaterial, SiliconeMaterial, scene_from_dict
from add.errors import InputError
from add.materials import FOAMS, HYPERFOAM, SILICONES, YEOH, Material
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
#: McCulloch, Delp & Kuhl 2026 (doi 10.1007/s00366-026-02398-y; CC BY 4.0), Tables 1 and 2: nominal stress [kPa] of
#: unconfined compression at these strains; slopes [kPa] of strains up to 10 %, in tension, compression and shear.
PRESSED = np.arange(0.1, 0.61, 0.05)
FOAM_STRESS = {
    "asics-ff-leap": [32.65, 45.64, 55.37, 65.47, 77.17, 91.21, 108.06, 129.08, 156.19, 191.67, 241.60],
    "asics-ff-turbo-plus": [32.75, 51.40, 64.33, 76.82, 90.92, 107.86, 128.72, 155.11, 189.78, 236.96, 305.43],
}
FOAM_SLOPES = {"asics-ff-leap": (623.65, 299.22, 117.16), "asics-ff-turbo-plus": (884.15, 267.94, 219.12)}
PAGE = (ROOT / "docs/materials.md").read_text(encoding="utf-8")


def stress(moduli: np.ndarray, stretch: float, law: Material = YEOH, guess: float = 0.0) -> float:
    """Nominal stress of a bar whose sides are free [Pa]."""

    def at(side: float) -> np.ndarray:
        return Point(law, moduli, np.diag([stretch, side, side])).stress()

    guess = guess or stretch**-0.5
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


@pytest.mark.parametrize("name", FOAMS)
def test_press_is_that_of_the_tests(name: str) -> None:
    """Within the stated error in compression, stable beyond; in other tests as far off as the page says."""
    material, row = FoamMaterial(model=name, density=100.0), FOAMS[name]
    moduli = np.array([material.modulus(key) for key, _, _ in HYPERFOAM.parameters])

    def at(strain: float) -> float:
        return stress(moduli, 1.0 + strain, HYPERFOAM, 1.0)

    ratios = np.array([-at(-strain) for strain in PRESSED]) / (1e3 * np.array(FOAM_STRESS[name]))
    assert 0.9 * row.error < np.abs(ratios - 1.0).max() <= row.error + 5e-4
    assert abs(ratios.mean() - 1.0) < 0.01
    strains = np.linspace(-0.85, 1.5, 48)
    assert (np.diff([at(strain) for strain in strains]) > 0.0).all()

    small = np.linspace(0.001, 0.1, 100)
    pulled, pressed = (small @ [sign * at(sign * e) for e in small] / (small @ small) for sign in (1.0, -1.0))
    offs = 1e-3 * np.array([pulled, pressed, row.mu1 + row.mu2]) / FOAM_SLOPES[name] - 1.0
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}`"))
    found = [cell.strip() for cell in line.strip("|").split("|")]
    expected = [row.mu1, row.alpha1, row.mu2, row.alpha2, 100 * row.error, *(np.round(100 * offs))]
    assert [float(cell) for cell in found[1:]] == pytest.approx(expected, abs=1e-9)


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
    assert get_args(FoamMaterial.model_fields["model"].annotation) == tuple(FOAMS)


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
        ({"model": "asics-ff-leap"}, "density"),
        ({"model": "hyperfoam", "mu1": 2e4, "alpha1": 8, "poisson": 0, "density": 60}, "poisson"),
        ({"model": "hyperfoam", "mu1": 2e4, "alpha1": 0, "poisson": 0.1, "density": 60}, "alpha1"),
        ({"model": "hyperfoam", "mu1": 2e4, "alpha1": 8, "mu2": -3e4, "poisson": 0.1, "density": 60}, "mu1"),
    ],
)
def test_errors(material: dict[str, object], place: str) -> None:
    with pytest.raises(InputError) as caught:
        scene_from_dict(scene(**material))
    assert place in caught.value.place
