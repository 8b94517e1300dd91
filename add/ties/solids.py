"""Mass and inertia of simple solids by their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from add.ties.base import Rule
from add.typing import FloatArray

#: A sum of monomials: coefficient and powers of three sizes.
Polynomial = Sequence[tuple[float, int, int, int]]

_PI = float(np.pi)
_ACROSS: Polynomial = ((_PI / 2.0, 4, 1, 0), (2.0 * _PI / 3.0, 2, 3, 0))
_ALONG: Polynomial = ((_PI, 4, 1, 0),)
_BALL: Polynomial = ((8.0 * _PI / 15.0, 5, 0, 0),)
_ENDS: Polynomial = ((4.0 * _PI / 3.0, 3, 2, 0), (_PI, 4, 1, 0))
#: Volume and the moments about x, y, z at density one, by sizes: the edges of a box; radius and half-length of others.
SOLIDS: dict[str, tuple[Polynomial, ...]] = {
    "box": (
        ((1.0, 1, 1, 1),),
        ((1.0 / 12.0, 1, 3, 1), (1.0 / 12.0, 1, 1, 3)),
        ((1.0 / 12.0, 3, 1, 1), (1.0 / 12.0, 1, 1, 3)),
        ((1.0 / 12.0, 3, 1, 1), (1.0 / 12.0, 1, 3, 1)),
    ),
    "sphere": (((4.0 * _PI / 3.0, 3, 0, 0),), _BALL, _BALL, _BALL),
    "cylinder": (((2.0 * _PI, 2, 1, 0),), _ACROSS, _ACROSS, _ALONG),
    "capsule": (
        ((2.0 * _PI, 2, 1, 0), (4.0 * _PI / 3.0, 3, 0, 0)),
        (*_ACROSS, *_BALL, *_ENDS),
        (*_ACROSS, *_BALL, *_ENDS),
        (*_ALONG, *_BALL),
    ),
}
#: What depends on the sizes: the mass, the inertia, or both.
MASS, INERTIA = slice(0, 1), slice(1, 7)


@final
@dataclass(frozen=True)
class SolidMass(Rule):
    """(density or mass, sizes) -> mass [kg] and inertia Ixx, Iyy, Izz, Ixy, Ixz, Iyz [kg m^2], or one of both.

    Attributes
    ----------
    shape : key of `SOLIDS`
    first, stop : which of these seven numbers
    by_mass : whether the first argument is the mass [kg], which the sizes do not change; else the density [kg/m^3]
    """

    shape: str
    first: int
    stop: int
    by_mass: bool

    def value(self, x: FloatArray) -> FloatArray:
        """Return mass and moments."""
        volume, *moments = (_sum(part, x[:, 1:]) for part in SOLIDS[self.shape])
        per = 1.0 / volume if self.by_mass else np.ones_like(volume)
        out = np.zeros((x.shape[0], 7))
        out[:, 0] = x[:, 0] * volume * per
        for k, moment in enumerate(moments):
            out[:, 1 + k] = x[:, 0] * moment * per
        return out[:, self.first : self.stop]

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes by density or mass, and by the sizes."""
        parts = [(_sum(part, x[:, 1:]), _slopes(part, x[:, 1:])) for part in SOLIDS[self.shape]]
        volume, by_volume = parts[0]
        out = np.zeros((x.shape[0], 7, x.shape[1]))
        for k, (value, slope) in enumerate(parts):
            if self.by_mass:
                slope = slope / volume[:, None] - (value / volume**2)[:, None] * by_volume
                value = value / volume
            out[:, k, 0], out[:, k, 1:] = value, x[:, :1] * slope
        return out[:, self.first : self.stop]


def _sum(polynomial: Polynomial, sizes: FloatArray) -> FloatArray:
    """Return the polynomial at sizes (m, n)."""
    out = np.zeros(sizes.shape[0])
    for factor, *powers in polynomial:
        out += factor * np.prod(sizes ** np.array(powers[: sizes.shape[1]]), axis=1)
    return out


def _slopes(polynomial: Polynomial, sizes: FloatArray) -> FloatArray:
    """Return its derivatives (m, n)."""
    out = np.zeros_like(sizes)
    for c in range(sizes.shape[1]):
        for factor, *powers in polynomial:
            if powers[c]:
                lower = np.array(powers[: sizes.shape[1]]) - np.eye(sizes.shape[1], dtype=int)[c]
                out[:, c] += factor * powers[c] * np.prod(sizes**lower, axis=1)
    return out
