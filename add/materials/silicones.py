"""Silicones by name: the law of Yeoh fitted to published tensile tests, densities of the maker."""

from __future__ import annotations

from typing import NamedTuple

#: Tests, fit and choices behind every row of `SILICONES`.
SOURCE = (
    "Yeoh's law, fitted at stretches 1.11 to 3 to the tensile tests (ASTM D412, 450 mm/min, pulled until it fails) of "
    "Marechal et al. 2021, Soft Robotics Materials Database, doi 10.5281/zenodo.3611329; density as Smooth-On says; "
    "kappa for nu = 0.49, a choice"
)

#: Ratio of kappa to mu for nu = 0.49. A pull says nothing about it; c10 and c20 are fitted with it. It keeps changes of
#: volume small where meshes of mean dilatation still converge quickly.
_KAPPA = 2.0 * (1.0 + 0.49) / (3.0 * (1.0 - 2.0 * 0.49))


class Silicone(NamedTuple):
    """A silicone as a material of a scene, of the law `YEOH`; c30 is zero, so that it is stable at every stretch.

    Attributes
    ----------
    density : at rest [kg/m^3]
    c10, c20 : moduli of the law [Pa]
    error : the largest deviation of the fit from the measured stress, as a share of it [-]
    """

    density: float
    c10: float
    c20: float
    error: float

    @property
    def numbers(self) -> dict[str, float]:
        """All numbers of the material by their keys in a scene."""
        kappa = float(f"{_KAPPA * 2.0 * self.c10:.3g}")
        return {"density": self.density, "c10": self.c10, "c20": self.c20, "c30": 0.0, "kappa": kappa}


SILICONES = {
    "ecoflex-00-10": Silicone(1040.0, 3490.0, 182.0, 0.044),
    "ecoflex-00-30": Silicone(1070.0, 7100.0, 230.0, 0.136),
    "ecoflex-00-50": Silicone(1070.0, 10100.0, 383.0, 0.081),
    "dragon-skin-10": Silicone(1070.0, 21400.0, 2740.0, 0.063),
    "dragon-skin-20": Silicone(1080.0, 58800.0, 7210.0, 0.108),
    "dragon-skin-30": Silicone(1080.0, 90500.0, 7990.0, 0.070),
}
