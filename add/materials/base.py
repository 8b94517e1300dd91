"""The elastic law of a material as a value.

A law is a strain energy density W(F; p) [J/m^3] of the deformation gradient F with a few parameters p. The loops over
elements are compiled for each law (`add.materials.elements`): a call behind a pointer costs four times one that the
compiler can see.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final


class Modulus(NamedTuple):
    """A parameter of a law: its key in scenes and in theta, its unit, and a line about it."""

    key: str
    unit: str
    description: str


class LawFunctions(NamedTuple):
    """The compiled functions of an elastic law.

    All take p (n_p,), and those of a deformation F (3, 3), its cofactor matrix J F^-T and J = det F > 0.

    Attributes
    ----------
    energy : (p, f, cof, jac) -> W [J/m^3]
    stress : (p, f, cof, jac, out)
        Writes the first Piola stress P = dW/dF (3, 3) [Pa].
    tangent : (p, f, cof, jac, out)
        Writes out[i, j, m, n] = d2W/dF_im dF_jn [Pa] for i <= j; the others follow by symmetry.
    by_parameters : (p, f, cof, jac, out)
        Writes out[k] = dP/dp_k (3, 3).
    linear_moduli : (p, slopes) -> (mu, lambda)
        The Lame constants of the law linearised at rest [Pa]; writes their slopes (2, n_p) by p. Damping that is
        proportional to stiffness is made of them.
    """

    energy: Callable[..., float]
    stress: Callable[..., None]
    tangent: Callable[..., None]
    by_parameters: Callable[..., None]
    linear_moduli: Callable[..., tuple[float, float]]


@final
@dataclass(frozen=True)
class Material:
    """An elastic law: its name, its parameters, its compiled functions, and its formula where a scene writes that.

    Attributes
    ----------
    name : str
        Of scenes and results; of a formula a hash that tells its kernels from others.
    parameters : tuple of Modulus
        In the order of p.
    make : () -> LawFunctions
        Makes the functions, when they are asked for first: to derive those of all laws takes a quarter of a second.
    by_point : bool
        Whether every quadrature point has numbers of its own.
    formula : str
        Of a law that a scene writes itself, see `add.materials.formulas`; empty for laws with names.
    """

    name: str
    parameters: tuple[Modulus, ...]
    make: Callable[[], LawFunctions]
    by_point: bool = False
    formula: str = ""

    @functools.cached_property
    def functions(self) -> LawFunctions:
        """The compiled functions."""
        return self.make()


#: Parameters of laws that are written in Lame's constants: scenes may give Young's modulus and Poisson's ratio instead.
LAME = (
    Modulus("mu", "Pa", "shear modulus, Lame's second parameter"),
    Modulus("lambda", "Pa", "Lame's first parameter"),
)

#: Unit directions of fibres at rest, which the parameters of laws with fibres end with.
DIRECTIONS = tuple(
    Modulus(f"{name}.{axis}", "-", f"{axis} of the unit vector of the {name} at rest")
    for name in ("fibre", "sheet")
    for axis in "xyz"
)
