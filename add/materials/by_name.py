"""Silicones and foams by name: laws fitted to published tests, densities where a source has them."""

from typing import NamedTuple

_SILICONES = (
    "Yeoh's law, fitted at stretches 1.11 to 3 to the tensile tests (ASTM D412, 450 mm/min, pulled until it fails) of "
    "Marechal et al. 2021, Soft Robotics Materials Database, doi 10.5281/zenodo.3611329; density as Smooth-On says; "
    "kappa for nu = 0.49, a choice"
)
_FOAMS = (
    "law 'hyperfoam', fitted at compressive strains of 10 to 60 % to Tables 1 and 2 (means of loading and unloading, "
    "five samples, 0.25/s) of McCulloch, Delp & Kuhl 2026, Engineering with Computers, doi 10.1007/s00366-026-02398-y; "
    "poisson 0.001 for their 0; no density there"
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
    def source(self) -> str:
        """Tests, fit and choices behind the numbers."""
        return _SILICONES

    @property
    def numbers(self) -> dict[str, float]:
        """All numbers of the material by their keys in a scene."""
        kappa = float(f"{_KAPPA * 2.0 * self.c10:.3g}")
        return {"density": self.density, "c10": self.c10, "c20": self.c20, "c30": 0.0, "kappa": kappa}


class Foam(NamedTuple):
    """A foam as a material of a scene, of the law `HYPERFOAM`, whose sides hardly move.

    Attributes
    ----------
    mu1, alpha1, mu2, alpha2 : moduli [Pa] and exponents [-] of the law
    error : the largest deviation of the fit from the measured stress, as a share of it [-]
    """

    mu1: float
    alpha1: float
    mu2: float
    alpha2: float
    error: float

    @property
    def source(self) -> str:
        """Tests, fit and choices behind the numbers."""
        return _FOAMS

    @property
    def numbers(self) -> dict[str, float]:
        """All numbers of the material by their keys in a scene; its density is not known."""
        return {"mu1": self.mu1, "alpha1": self.alpha1, "mu2": self.mu2, "alpha2": self.alpha2, "poisson": 1e-3}


SILICONES = {
    "ecoflex-00-10": Silicone(1040.0, 3490.0, 182.0, 0.044),
    "ecoflex-00-30": Silicone(1070.0, 7100.0, 230.0, 0.136),
    "ecoflex-00-50": Silicone(1070.0, 10100.0, 383.0, 0.081),
    "dragon-skin-10": Silicone(1070.0, 21400.0, 2740.0, 0.063),
    "dragon-skin-20": Silicone(1080.0, 58800.0, 7210.0, 0.108),
    "dragon-skin-30": Silicone(1080.0, 90500.0, 7990.0, 0.070),
}

FOAMS = {
    "asics-ff-leap": Foam(195000.0, 10.5, 21700.0, -0.821, 0.020),
    "asics-ff-turbo-plus": Foam(179000.0, 5.81, 9730.0, -2.31, 0.049),
}
