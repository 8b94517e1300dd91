"""All elastic laws with names, each a formula (one line adds one to the loops); silicones and foams by name.

One is no function of C, and does not see rotations as such: Hooke's law in the small strain eps = sym F - I.
"""

import functools
from typing import NamedTuple

from add.kernels.caching import njit
from add.laws import parse
from add.materials.formulas import LAME, Formula, LawFunctions, Material, Modulus
from add.materials.invariants import by_invariants

_INLINE = {"cache": True, "nogil": True, "error_model": "numpy", "inline": "always"}


@njit(**_INLINE)
def _stress(mu, lame, f, out):
    """Write 2 mu eps + lambda tr eps I."""
    pressure = lame * (f[0, 0] + f[1, 1] + f[2, 2] - 3.0)
    for i in range(3):
        for m in range(3):
            out[i, m] = mu * (f[i, m] + f[m, i])
        out[i, i] += pressure - 2.0 * mu


@njit(**_INLINE)
def _energy(p, f, cof, jac):
    trace, square = f[0, 0] + f[1, 1] + f[2, 2] - 3.0, 0.0
    for i in range(3):
        for m in range(3):
            strain = 0.5 * (f[i, m] + f[m, i]) - (1.0 if i == m else 0.0)
            square += strain * strain
    return p[0] * square + 0.5 * p[1] * trace * trace


@njit(**_INLINE)
def _law_stress(p, f, cof, jac, out):
    _stress(p[0], p[1], f, out)


@njit(**_INLINE)
def _tangent(p, f, cof, jac, out):
    out[:] = 0.0
    for i in range(3):
        for j in range(i, 3):
            out[i, j, i, j] += p[1]
            out[i, j, j, i] += p[0]
        for m in range(3):
            out[i, i, m, m] += p[0]


@njit(**_INLINE)
def _by_parameters(p, f, cof, jac, out):
    _stress(1.0, 0.0, f, out[0])
    _stress(0.0, 1.0, f, out[1])


@njit(**_INLINE)
def _linear_moduli(p, slopes):
    slopes[:] = 0.0
    slopes[0, 0] = slopes[1, 1] = 1.0
    return p[0], p[1]


#: W = mu eps : eps + lambda/2 (tr eps)^2: for small motions, in which what turns by an angle a stretches by a^2/2.
LINEAR = Material("linear", LAME, lambda: LawFunctions(_energy, _law_stress, _tangent, _by_parameters, _linear_moduli))


_BULK = Modulus("kappa", "Pa", "bulk modulus")

#: Energies U(J) of changes of volume, all of the same bulk modulus at rest: the first lets an element collapse (U stays
#: finite at J = 0), the others do not; the last (Ciarlet 1988; Simo & Miehe 1992) is convex in J, too.
VOLUMETRIC = {
    "quadratic": "kappa/2*(J - 1)**2",
    "logarithmic": "kappa/2*log(J)**2",
    "ciarlet": "kappa/2*((J**2 - 1)/2 - log(J))",
}


def _named(name: str, energy: str, *parameters: Modulus) -> Material:
    return by_invariants(name, parameters, Formula.of(parse(energy)))


def _powers(n: int) -> tuple[Modulus, ...]:
    return tuple(
        modulus
        for k in range(1, n + 1)
        for modulus in (
            Modulus(f"mu{k}", "Pa", f"modulus of power {k}"),
            Modulus(f"alpha{k}", "-", f"exponent of power {k}"),
        )
    )


class _Rubber(NamedTuple):
    """A law with a bulk modulus: its energy without changes of volume, the key of its own U(J), its parameters."""

    energy: str
    volumetric: str
    parameters: tuple[Modulus, ...]

    def law(self, name: str, volumetric: str = "") -> Material:
        """Return the law of that name with an energy of changes of volume, by default its own."""
        return _named(name, f"{self.energy} + {VOLUMETRIC[volumetric or self.volumetric]}", *self.parameters, _BULK)


#: Compressible laws of Neo-Hooke; -mu ln J makes the rest state free of stress.
NEO_HOOKEAN = _named("neo-hookean", "mu/2*(I1 - 3) - mu*log(J) + lambda_/2*log(J)**2", *LAME)

#: With the volumetric part of Ciarlet (1988), as in Geilinger et al. 2020.
NEO_HOOKEAN_CIARLET = _named(
    "neo-hookean-ciarlet", "mu/2*(I1 - 3) - mu*log(J) + lambda_/2*((J**2 - 1)/2 - log(J))", *LAME
)

#: Hooke's law in Green's strain E = (C - I)/2, W = mu E : E + lambda/2 (tr E)^2, with 4 E : E = C : C - 2 I1 + 3 and
#: C : C = I1^2 - 2 I2. It softens in compression (a bar along its axis from a stretch of 1/sqrt(3) on) and does not
#: resist a collapse to no volume: for moderate strains.
ST_VENANT_KIRCHHOFF = _named("stvk", "mu/4*(I1**2 - 2*I2 - 2*I1 + 3) + lambda_/8*(I1 - 3)**2", *LAME)

#: Hooke's law in the strain that turns with the body, U - I of F = R U (Stomakhin et al. 2012); the moduli of `LAME`.
COROTATED = _named("corotated", "mu*((l1 - 1)**2 + (l2 - 1)**2 + (l3 - 1)**2) + lambda_/2*(l1 + l2 + l3 - 3)**2", *LAME)

#: Foams (Hill 1978; Storakers 1986) in up to two powers of the stretches, of the same Poisson's ratio at all strains;
#: mu = mu1 + mu2 at rest.
HYPERFOAM = _named(
    "hyperfoam",
    " + ".join(
        f"2*mu{k}/alpha{k}**2*(l1**alpha{k} + l2**alpha{k} + l3**alpha{k} - 3 "
        f"+ (J**(-alpha{k}*poisson/(1 - 2*poisson)) - 1)*(1 - 2*poisson)/poisson)"
        for k in (1, 2)
    ),
    *_powers(2),
    Modulus("poisson", "-", "Poisson's ratio"),
)

#: Laws whose energy of changes of volume may be another of `VOLUMETRIC`.
_RUBBERS = {
    # Rubber (Mooney 1940; Rivlin 1948); mu = 2 (c10 + c01) at rest.
    "mooney-rivlin": _Rubber(
        "c10*(I1b - 3) + c01*(I2b - 3)",
        "quadratic",
        (
            Modulus("c10", "Pa", "modulus of the first isochoric invariant"),
            Modulus("c01", "Pa", "modulus of the second isochoric invariant"),
        ),
    ),
    # Rubber and silicone that stiffen (Yeoh 1993); mu = 2 c10 at rest.
    "yeoh": _Rubber(
        "c10*(I1b - 3) + c20*(I1b - 3)**2 + c30*(I1b - 3)**3",
        "quadratic",
        (
            Modulus("c10", "Pa", "modulus of the first power"),
            Modulus("c20", "Pa", "modulus of the second power"),
            Modulus("c30", "Pa", "modulus of the third power"),
        ),
    ),
    # Rubber whose chains can be stretched so far (Gent 1996).
    "gent": _Rubber(
        "-mu/2*limit*log(1 - (I1b - 3)/limit)",
        "ciarlet",
        (
            Modulus("mu", "Pa", "shear modulus"),
            Modulus("limit", "-", "what I1b - 3 stays below"),
        ),
    ),
    # Rubber in up to three powers of the stretches (Ogden 1972); mu = sum mu_k alpha_k / 2 at rest.
    "ogden": _Rubber(
        " + ".join(f"mu{k}/alpha{k}*(l1b**alpha{k} + l2b**alpha{k} + l3b**alpha{k} - 3)" for k in (1, 2, 3)),
        "quadratic",
        _powers(3),
    ),
    # Heart muscle: fibres and sheets that pull in tension only (Holzapfel & Ogden 2009).
    "holzapfel-ogden": _Rubber(
        "a/(2*b)*(exp(b*(I1b - 3)) - 1) + a_f/(2*b_f)*(exp(b_f*pos(I4 - 1)**2) - 1) "
        "+ a_s/(2*b_s)*(exp(b_s*pos(I6 - 1)**2) - 1) + a_fs/(2*b_fs)*(exp(b_fs*I8**2) - 1)",
        "ciarlet",
        (
            *(
                Modulus(f"{key}{part}", unit, f"{what} {of}")
                for part, of in (
                    ("", "of the ground"),
                    ("_f", "along fibres"),
                    ("_s", "along sheets"),
                    ("_fs", "between them"),
                )
                for key, unit, what in (("a", "Pa", "modulus"), ("b", "-", "exponent"))
            ),
        ),
    ),
    # Walls of arteries, with fibres scattered by ``dispersion`` (Gasser, Ogden & Holzapfel 2006).
    "hgo": _Rubber(
        "c/2*(I1b - 3) + k1/(2*k2)*(exp(k2*pos(dispersion*(I1b - 3) + (1 - 3*dispersion)*(I4b - 1))**2) - 1) ",
        "ciarlet",
        (
            Modulus("c", "Pa", "shear modulus of the ground"),
            Modulus("k1", "Pa", "modulus of the fibres"),
            Modulus("k2", "-", "exponent of the fibres"),
            Modulus("dispersion", "-", "0 for fibres in one direction, 1/3 for all directions"),
        ),
    ),
}

MOONEY_RIVLIN, YEOH, GENT, OGDEN, HOLZAPFEL_OGDEN, HGO = (rubber.law(name) for name, rubber in _RUBBERS.items())

MATERIALS: tuple[Material, ...] = (
    NEO_HOOKEAN,
    NEO_HOOKEAN_CIARLET,
    ST_VENANT_KIRCHHOFF,
    MOONEY_RIVLIN,
    YEOH,
    GENT,
    LINEAR,
    COROTATED,
    OGDEN,
    HOLZAPFEL_OGDEN,
    HGO,
    HYPERFOAM,
)


#: Names of all laws: "yeoh", and "yeoh-logarithmic" of one with another energy of changes of volume.
NAMES = (
    *(law.name for law in MATERIALS),
    *(f"{name}-{key}" for name, one in _RUBBERS.items() for key in VOLUMETRIC if key != one.volumetric),
)


@functools.cache
def material(name: str, volumetric: str | None = None) -> Material:
    """Return the law of a name of `NAMES`, or of that name with an energy of changes of volume of `VOLUMETRIC`."""
    if volumetric is not None and volumetric != _RUBBERS[name].volumetric:
        return _RUBBERS[name].law(f"{name}-{volumetric}", volumetric)
    laws = [law for law in MATERIALS if law.name == name]
    return laws[0] if laws else material(*name.rsplit("-", 1))


@functools.cache
def formula_law(text: str, units: tuple[tuple[str, str], ...] = (), place: str = "numbers.") -> Material:
    """Return the law that a scene writes; its parameters, in alphabetical order, have the names behind ``place``.

    Parameters
    ----------
    text : formula of W
    units : (name, unit) of numbers that are not in Pa

    Raises
    ------
    InputError
        If the text is no formula.
    """
    formula, given = Formula.read(text), dict(units)
    parameters = tuple(
        Modulus(f"{place}{name}", given.get(name, "Pa"), "number of the formula") for name in formula.parameters
    )
    return by_invariants(f"formula-{formula.energy.key}", parameters, formula, text)


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
