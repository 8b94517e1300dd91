"""Laws of thin things: an energy of the strains of small stencils by formula, and a resistance of their rates.

A stencil with strains z(x) (`add.kernels.strains`) stores w W(z; p) and resists with w R(z_dot; p), w its area or
length at rest; `add.materials.strain_loops` makes forces and matrices of them.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from add.errors import InputError
from add.kernels import strains
from add.laws import Expression, derivative, evaluate, parse, symbols, unknown_sign
from add.materials.formulas import Modulus
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class Strain:
    """The strains of a kind of stencil.

    Attributes
    ----------
    name : str
    variables, rates : names of z and z_dot in formulas
    rest : (nz,) z at rest
    value, second : compiled functions, see `add.kernels.strains`
    """

    name: str
    variables: tuple[str, ...]
    rates: tuple[str, ...]
    rest: tuple[float, ...]
    value: Callable[..., None]
    second: Callable[..., None]


_OF_C = ("C11", "C22", "C12")
#: C = F^T F of a triangle in its axes of warp and weft, and dC/dt.
MEMBRANE = Strain("membrane", _OF_C, ("D11", "D22", "D12"), (1.0, 1.0, 0.0), strains.membrane_value,
                  strains.membrane_second)  # fmt: skip
#: Bending of a hinge away from its angle at rest [rad].
HINGE = Strain("hinge", ("bend",), ("rate",), (0.0,), strains.bends_value, strains.bends_second)
#: Change of curvature of a triangle [1/m].
PLATE = Strain("plate", ("B11", "B22", "B12"), ("D11", "D22", "D12"), (0.0, 0.0, 0.0), strains.bends_value,
               strains.bends_second)  # fmt: skip
#: Stretch of a segment.
LENGTH = Strain("length", ("stretch",), ("rate",), (1.0,), strains.length_value, strains.length_second)
#: Cosine of the turn between two segments.
TURN = Strain("turn", ("cosine",), ("rate",), (1.0,), strains.turn_value, strains.turn_second)


def symbol_of(modulus: Modulus) -> str:
    """Return the symbol of a number: the last word of its key, ``k11_2`` for entry 2 of ``k11``."""
    before, _, last = modulus.key.rpartition(".")
    return f"{before.rpartition('.')[2]}_{last}" if last.isdigit() else last


@final
@dataclass(frozen=True)
class StrainLaw:
    """An energy W of strains and a resistance R of their rates, by formula.

    A symbol of it is the last word of a parameter's key, see `symbol_of`.
    """

    name: str
    strain: Strain
    parameters: tuple[Modulus, ...]
    energy: Expression
    resistance: Expression

    @property
    def words(self) -> list[str]:
        """Symbols of the parameters."""
        return [symbol_of(modulus) for modulus in self.parameters]

    @property
    def damped(self) -> bool:
        """Whether there is a resistance."""
        return bool(symbols(self.resistance))

    def at_rest(self, numbers: dict[str, float]) -> tuple[FloatArray, FloatArray]:
        """Return dW/dz (nz,) and d2W/dz2 (nz, nz) at rest; NaN where the law has no value there."""
        at = dict(zip(self.strain.variables, self.strain.rest, strict=True)) | numbers
        first = [derivative(self.energy, name) for name in self.strain.variables]
        second = [[derivative(one, name) for name in self.strain.variables] for one in first]
        inside = all(float(evaluate(one, at)) > 0.0 for one in unknown_sign(self.energy, frozenset()))
        with np.errstate(all="ignore"):
            values = np.array([float(evaluate(one, at)) for one in first])
            curved = np.array([[float(evaluate(one, at)) for one in row] for row in second])
        return (values, curved) if inside else (values * np.nan, curved * np.nan)

    def require_sound(self, numbers: dict[str, float]) -> None:
        """Refuse a law that is not free of stress at rest, or not stable there.

        Raises
        ------
        InputError
            With the value that is wrong.
        """
        stress, curved = self.at_rest(numbers)
        if not (np.isfinite(stress).all() and np.isfinite(curved).all()):
            raise InputError("the law has no value at rest, where C11 = C22 = 1 and C12 = 0")
        scale = np.abs(curved).max()
        if np.abs(stress).max() > 1e-9 * scale:
            raise InputError("the law is not free of stress at rest, where C11 = C22 = 1 and C12 = 0",
                             found=f"slopes {', '.join(f'{one:.6g}' for one in stress)}", expected="0")  # fmt: skip
        least = float(np.linalg.eigvalsh(curved).min())
        if not least > 0.0:
            raise InputError("the law is not stable at rest", found=f"least eigenvalue of its tangent {least:.6g}",
                             expected="above 0")  # fmt: skip


def law(
    name: str, strain: Strain, parameters: Sequence[Modulus], energy: Expression, resistance: str = "0"
) -> StrainLaw:
    """Return a law of formulas."""
    words = [symbol_of(modulus) for modulus in parameters]
    return StrainLaw(name, strain, tuple(parameters), energy, parse(resistance, [*strain.rates, *words]))


THICKNESS = Modulus("thickness", "m", "thickness")
_VISCOSITY = Modulus("membrane.viscosity", "N s/m", "viscosity against stretching, times the thickness")
#: Stress eta dE/dt, E = (C - I)/2.
_VISCOUS = "viscosity/8*(D11**2 + D22**2 + 2*D12**2)"


def _membrane(name: str, energy: str, *moduli: tuple[str, str]) -> StrainLaw:
    numbers = [Modulus(f"membrane.{key}", unit, "modulus of the membrane") for key, unit in moduli]
    parameters = [*([THICKNESS] if "thickness" in energy else []), _VISCOSITY, *numbers]
    known = [*_OF_C, *(symbol_of(modulus) for modulus in parameters)]
    return law(name, MEMBRANE, parameters, parse(energy, known), _VISCOUS)


_ISOTROPIC = (("young", "Pa"), ("poisson", "-"))
#: Laws of membranes, W [J/m^2] of C; plane stress. Neo-Hooke's is h (mu/2 (tr C - 2 - 2 ln J) + lambda/2 ln^2 J), stvk
#: h Y/(1 - nu^2) ((1 - nu) tr E^2 + nu (tr E)^2)/2; orthotropic (k11 E11^2 + k22 E22^2 + 2 k12 E11 E22 + k33 E12^2)/2,
#: so that G h = k33/4; Baraff and Witkin 1998 hold stretch and shear apart.
MEMBRANES = {
    one.name: one
    for one in (
        _membrane(
            "neo-hookean",
            "thickness*young/(4*(1 + poisson))*(C11 + C22 - 2 - log(C11*C22 - C12**2))"
            " + thickness*young*poisson/(8*(1 - poisson**2))*log(C11*C22 - C12**2)**2",
            *_ISOTROPIC,
        ),
        _membrane(
            "stvk",
            "thickness*young/(8*(1 - poisson**2))*((1 - poisson)*((C11 - 1)**2 + (C22 - 1)**2 + 2*C12**2)"
            " + poisson*(C11 + C22 - 2)**2)",
            *_ISOTROPIC,
        ),
        _membrane(
            "orthotropic",
            "(k11*(C11 - 1)**2 + k22*(C22 - 1)**2 + 2*k12*(C11 - 1)*(C22 - 1) + k33*C12**2)/8",
            *((key, "N/m") for key in ("k11", "k22", "k12", "k33")),
        ),
        _membrane(
            "baraff-witkin",
            "(k_u*(sqrt(C11) - 1)**2 + k_v*(sqrt(C22) - 1)**2 + k_s*C12**2)/2",
            *((key, "N/m") for key in ("k_u", "k_v", "k_s")),
        ),
    )
}


def _bending(name: str, strain: Strain, energy: str, resistance: str, *moduli: tuple[str, str]) -> StrainLaw:
    numbers = [Modulus(f"bending.{key}", unit, "modulus of bending") for key, unit in moduli]
    known = [*strain.variables, *(key for key, _ in moduli)]
    return law(name, strain, numbers, parse(energy, known), resistance)


_OF_PLATE = "{0}/2*((1 - poisson)*({1}11**2 + {1}22**2 + 2*{1}12**2) + poisson*({1}11 + {1}22)**2)"
#: Laws of bending: by the angle of each hinge, and by the curvature of each triangle.
BENDINGS = {
    "hinge": _bending(
        "hinge", HINGE, "stiffness/2*bend**2", "damping/2*rate**2", ("stiffness", "N m"), ("damping", "N m s")
    ),
    "plate": _bending(
        "plate", PLATE, _OF_PLATE.format("rigidity", "B"), _OF_PLATE.format("damping", "D"),
        ("rigidity", "N m"), ("poisson", "-"), ("damping", "N m s"),
    ),
}  # fmt: skip

#: Laws of rods: EA (s - 1)^2/2 a length, and B |kappa b|^2/2 of Bergou et al. 2008, |kappa b|^2 = 4 (1 - c)/(1 + c).
ROD_STRETCHING = law(
    "rod-stretching", LENGTH, [Modulus("stretching", "N", "EA"), Modulus("damping", "N s", "damping of stretching")],
    parse("stretching/2*(stretch - 1)**2"), "damping/2*rate**2",
)  # fmt: skip
ROD_BENDING = law(
    "rod-bending", TURN, [Modulus("bending", "N m^2", "EI")], parse("2*bending*(1 - cosine)/(1 + cosine)")
)


@functools.cache
def membrane_formula(text: str, units: tuple[tuple[str, str], ...] = ()) -> StrainLaw:
    """Return the membrane of a formula W(C11, C22, C12) [J/m^3] that a scene writes.

    Parameters
    ----------
    text : formula of W; its parameters are ``membrane.numbers.NAME``, in alphabetical order
    units : (name, unit) of numbers that are not in Pa

    Raises
    ------
    InputError
        If the text is no formula.
    """
    energy, given = parse(f"thickness*({text})"), dict(units)
    names = [name for name in symbols(parse(text)) if name not in _OF_C]
    numbers = [Modulus(f"membrane.numbers.{name}", given.get(name, "Pa"), "number of the formula") for name in names]
    return law(f"membrane-{energy.key}", MEMBRANE, [THICKNESS, _VISCOSITY, *numbers], energy, _VISCOUS)


def _by_table(name: str, strains: Sequence[float], of: Sequence[str]) -> str:
    """Return the energy whose second derivative by the strain goes through ``name`` at the strains, of several E.

    W = k_0 E^2/2 + sum_i d_i pos(E - e_i)^3/6, d_i the change at e_i of the slope of k, which is constant outside; with
    two strains E and -E in ``of`` it is that of |E|.
    """
    k = [f"{name}_{i}" for i in range(len(strains))]
    slopes = [f"({b} - {a})/{d!r}" for a, b, d in zip(k, k[1:], np.diff(strains).tolist(), strict=False)]
    changes = zip([*slopes, "0"], ["0", *slopes], strains, strict=True)
    parts = [
        f"({after} - {before})*pos({one} - {at!r})**3/6" for after, before, at in changes for one in of
    ] if slopes else []  # fmt: skip
    return " + ".join([f"{k[0]}*({of[0]})**2/2", *parts])


@functools.cache
def membrane_table(strains: tuple[float, ...]) -> StrainLaw:
    """Return the woven membrane whose stiffness changes with the strain.

    W = W_1(E11) + W_2(E22) + W_3(|E12|) + k12 E11 E22, where W_1'' = k11 goes linearly from row to row of a table and
    is constant before the first strain, in compression, and beyond the last one: forces are its integral, and have an
    energy (the published tables of Wang et al. 2011 multiply the strain by a stiffness of it, which has none).

    Parameters
    ----------
    strains : (m,) of the rows, from 0 on, ascending
    """
    energy = " + ".join(
        [
            _by_table("k11", strains, ["C11/2 - 1/2"]),
            _by_table("k22", strains, ["C22/2 - 1/2"]),
            _by_table("k33", strains, ["C12/2", "-C12/2"]),
            "k12*(C11 - 1)*(C22 - 1)/4",
        ]
    )
    rows = [(f"{key}.{k}", "N/m") for key in ("k11", "k22", "k33") for k in range(len(strains))]
    return _membrane("table", energy, *rows, ("k12", "N/m"))
