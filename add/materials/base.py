"""The elastic law of a material as a value, and the choice of one by an integer inside compiled loops.

A law is a strain energy density W(F; p) [J/m^3] of the deformation gradient F with a few parameters p. Compiled loops
over elements choose it by its place among all laws (`dispatch`): a function handed over as an argument is not cached
by numba, and one behind a pointer costs four times a call that the compiler can see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

from add.kernels.caching import njit


class Modulus(NamedTuple):
    """A parameter of a law: its key in scenes and in theta, its unit, and a line about it."""

    key: str
    unit: str
    description: str


@final
@dataclass(frozen=True)
class Material:
    """An elastic law: its name, its parameters and five compiled functions.

    All functions take p (n_p,), and those of a deformation F (3, 3), its cofactor matrix J F^-T and J = det F > 0.

    Attributes
    ----------
    name : str
        Of scenes and results.
    parameters : tuple of Modulus
        In the order of p.
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

    name: str
    parameters: tuple[Modulus, ...]
    energy: Callable[..., float]
    stress: Callable[..., None]
    tangent: Callable[..., None]
    by_parameters: Callable[..., None]
    linear_moduli: Callable[..., tuple[float, float]]


#: Parameters of laws that are written in Lame's constants: scenes may give Young's modulus and Poisson's ratio instead.
LAME = (
    Modulus("mu", "Pa", "shear modulus, Lame's second parameter"),
    Modulus("lambda", "Pa", "Lame's first parameter"),
)


@njit(nogil=True, error_model="numpy")
def lame_moduli(p, slopes):
    """Return mu and lambda of a law whose parameters are these; see `Material.linear_moduli`."""
    slopes[:] = 0.0
    slopes[0, 0] = 1.0
    slopes[1, 1] = 1.0
    return p[0], p[1]
