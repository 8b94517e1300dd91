"""Maps on one vector z = [s; theta; constants], so that a tie may read any number and set any entry; rules of them.

    theta = (select . tie_k . ... . tie_1 . extend)(s)

`Extended` lays out z and copies scaled numbers; each `Tie` then sets some entries of z from others by a `Rule`, a
function of a few numbers with its derivative; `Selected` returns theta. `add.inverse.maps.Composed` chains them. Rules
here are of materials, contacts and solids: moduli, the damping that gives a restitution, masses by sizes.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import scipy.sparse as sp

from add.contact.restitution import (
    clipped_damping_derivatives,
    clipped_damping_from_restitution,
    damping_derivatives,
    damping_from_restitution,
)
from add.inverse.maps import Composed, DesignMap, Injection
from add.typing import FloatArray, IntArray


class Rule(ABC):
    """A function of a few numbers, evaluated for many sets of them at once."""

    @abstractmethod
    def value(self, x: FloatArray) -> FloatArray:
        """Return the results (m, n_out) at x (m, n_in)."""

    @abstractmethod
    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the derivatives (m, n_out, n_in) at x (m, n_in)."""


@final
@dataclass(frozen=True)
class Extended(DesignMap):
    """z = [s; theta; constants], theta with its copies of numbers.

    Attributes
    ----------
    copies : from s (n_s,) into theta (n_theta,)
    constants : (n_c,)
    """

    copies: Injection
    constants: FloatArray

    def forward(self, x: FloatArray) -> FloatArray:
        """Return z."""
        return np.concatenate([x, self.copies.forward(x), self.constants])

    def pullback(self, x: FloatArray, y_bar: FloatArray) -> FloatArray:
        """Add the cotangents of all copies of a number."""
        n = self.copies.n_in
        return y_bar[:n] + self.copies.pullback(x, y_bar[n : n + self.copies.base.size])

    def jacobian(self, x: FloatArray) -> sp.csr_array:
        """Return the factors below an identity."""
        n = self.copies.n_in
        nothing = sp.csr_array((self.constants.size, n))
        return sp.csr_array(sp.vstack([sp.eye_array(n), self.copies.jacobian(x), nothing]))


@final
@dataclass(frozen=True)
class Tie(DesignMap):
    """z -> z with z[outputs_i] = rule(z[inputs_i]) for m sets of entries; the others stay.

    Attributes
    ----------
    rule : Rule
    inputs : (m, n_in) places in z
    outputs : (m, n_out) places in z, all different
    """

    rule: Rule
    inputs: IntArray
    outputs: IntArray

    def forward(self, x: FloatArray) -> FloatArray:
        """Return z with the outputs set."""
        y = x.copy()
        y[self.outputs] = self.rule.value(x[self.inputs])
        return y

    def pullback(self, x: FloatArray, y_bar: FloatArray) -> FloatArray:
        """Pass the cotangents of the outputs on to the inputs."""
        x_bar = y_bar.copy()
        x_bar[self.outputs] = 0.0
        share = np.einsum("moi,mo->mi", self.rule.derivative(x[self.inputs]), y_bar[self.outputs])
        np.add.at(x_bar, self.inputs, share)
        return x_bar

    def jacobian(self, x: FloatArray) -> sp.csr_array:
        """Return the identity with the rows of the outputs replaced."""
        blocks = self.rule.derivative(x[self.inputs])
        rows = np.broadcast_to(self.outputs[:, :, None], blocks.shape).ravel()
        cols = np.broadcast_to(self.inputs[:, None, :], blocks.shape).ravel()
        stays = np.setdiff1d(np.arange(x.size), self.outputs)
        places = np.concatenate([rows, stays]), np.concatenate([cols, stays])
        entries = np.concatenate([blocks.ravel(), np.ones(stays.size)])
        return sp.csr_array((entries, places), shape=(x.size, x.size))


@final
@dataclass(frozen=True)
class Selected(DesignMap):
    """The entries z[start:stop].

    Attributes
    ----------
    n_in, start, stop : int
    """

    n_in: int
    start: int
    stop: int

    def forward(self, x: FloatArray) -> FloatArray:
        """Return the entries."""
        return x[self.start : self.stop].copy()

    def pullback(self, x: FloatArray, y_bar: FloatArray) -> FloatArray:
        """Put the cotangents in their place."""
        x_bar = np.zeros(self.n_in)
        x_bar[self.start : self.stop] = y_bar
        return x_bar

    def jacobian(self, x: FloatArray) -> sp.csr_array:
        """Return ones at the entries."""
        n = self.stop - self.start
        places = np.arange(n), np.arange(self.start, self.stop)
        return sp.csr_array((np.ones(n), places), shape=(n, self.n_in))


def copies_of(ties: Composed, places: IntArray) -> Injection | None:
    """Return the copies of the numbers at ``places`` of s; None if a rule reads one, or sets an entry that has one.

    Nothing else depends on these numbers: the pullback of the copies is theirs of all ties, to the bit.
    """
    extended = ties.maps[0]
    assert isinstance(extended, Extended)
    copies = extended.copies
    own = np.isin(copies.source, places)
    used = np.concatenate([np.ravel(places), copies.n_in + copies.target[own]])
    for tie in ties.maps[1:]:
        if isinstance(tie, Tie) and (np.isin(tie.inputs, used).any() or np.isin(tie.outputs, used).any()):
            return None
    factor = np.broadcast_to(copies.factor, own.shape)[own]
    return replace(copies, source=copies.source[own], target=copies.target[own], factor=factor)


@final
@dataclass(frozen=True)
class LameFromYoung(Rule):
    """(E, nu) -> (mu, lambda): mu = E / (2 (1 + nu)), lambda = E nu / ((1 + nu) (1 - 2 nu))."""

    def value(self, x: FloatArray) -> FloatArray:
        """Return mu and lambda [Pa]."""
        e, nu = x.T
        return np.stack([e / (2.0 * (1.0 + nu)), e * nu / ((1.0 + nu) * (1.0 - 2.0 * nu))], axis=1)

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes by E and nu."""
        e, nu = x.T
        d = (1.0 + nu) * (1.0 - 2.0 * nu)
        by_mu = [0.5 / (1.0 + nu), -0.5 * e / (1.0 + nu) ** 2]
        by_lambda = [nu / d, e * (1.0 + 2.0 * nu * nu) / d**2]
        return np.stack([np.stack(by_mu, axis=1), np.stack(by_lambda, axis=1)], axis=1)


@final
@dataclass(frozen=True)
class FlatLoss(Rule):
    """(loss factor) -> shares g_i of branches of relaxing stress whose loss factor is that at 1/tau_i of every one.

    tan(delta) = sum g_i x/(1 + x^2) / (1 - sum g_i/(1 + x^2)), x = omega tau_i, is linear in g at each omega = 1/tau_j.

    Attributes
    ----------
    times : tau_i [s]
    """

    times: tuple[float, ...]

    def _matrices(self) -> tuple[FloatArray, FloatArray]:
        """Return what g is multiplied with, without and with the loss factor."""
        x = np.array(self.times) / np.array(self.times)[:, None]
        return x / (1.0 + x * x), 1.0 / (1.0 + x * x)

    def value(self, x: FloatArray) -> FloatArray:
        """Return the shares."""
        lost, slow = self._matrices()
        return np.stack([np.linalg.solve(lost + loss * slow, np.full(len(self.times), loss)) for loss in x[:, 0]])

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes by the loss factor."""
        lost, slow = self._matrices()
        own = zip(x[:, 0], self.value(x), strict=True)
        return np.stack([np.linalg.solve(lost + loss * slow, 1.0 - slow @ g)[:, None] for loss, g in own])


@final
@dataclass(frozen=True)
class WeightedSum(Rule):
    """(x_1, ..., x_n) -> weights . x + offset, clipped to limits."""

    weights: tuple[float, ...]
    offset: float = 0.0
    limits: tuple[float, float] = (-np.inf, np.inf)

    def value(self, x: FloatArray) -> FloatArray:
        """Return the sum."""
        return np.clip(x @ np.array(self.weights) + self.offset, *self.limits)[:, None]

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the weights, zeros where the sum is clipped."""
        total = x @ np.array(self.weights) + self.offset
        free = (total == np.clip(total, *self.limits))[:, None, None]
        return np.where(free, np.array(self.weights), 0.0)


@final
@dataclass(frozen=True)
class Begun(Rule):
    """(x, rows) -> x + weights . rows: ``width`` numbers, and what a signal of these rows adds to them at t = 0."""

    weights: tuple[float, ...]
    width: int

    def value(self, x: FloatArray) -> FloatArray:
        """Return the sums."""
        rows = x[:, self.width :].reshape(x.shape[0], -1, self.width)
        return np.asarray(x[:, : self.width] + np.array(self.weights) @ rows)

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the weights."""
        slopes = np.kron(np.array([1.0, *self.weights]), np.eye(self.width))
        return np.tile(slopes, (x.shape[0], 1, 1))


@final
@dataclass(frozen=True)
class Line(Rule):
    """x -> slopes x + offsets, several numbers of one."""

    slopes: tuple[float, ...]
    offsets: tuple[float, ...]

    def value(self, x: FloatArray) -> FloatArray:
        """Return the numbers."""
        return np.asarray(x * np.array(self.slopes) + np.array(self.offsets))

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes."""
        return np.tile(np.array(self.slopes)[:, None], (x.shape[0], 1, 1))


@final
@dataclass(frozen=True)
class DampingFromRestitution(Rule):
    """(e, k_n, m_a, m_b) -> k_d of one of the points that touch at once; m_b is infinite where nothing gives way.

    Attributes
    ----------
    n_points : int
        Points that touch at once.
    adhesive_damping : bool
        Whether the contact may pull: then k_d is that of Eq. 22 (Geilinger et al. 2020).
    """

    n_points: int
    adhesive_damping: bool

    @staticmethod
    def _mass(m_a: float, m_b: float) -> tuple[float, float, float]:
        """Return the effective mass [kg] and its slopes by both masses."""
        if np.isinf(m_b):
            return m_a, 1.0, 0.0
        total = m_a + m_b
        return m_a * m_b / total, (m_b / total) ** 2, (m_a / total) ** 2

    def value(self, x: FloatArray) -> FloatArray:
        """Return k_d [N s/m]."""
        formula = damping_from_restitution if self.adhesive_damping else clipped_damping_from_restitution
        return np.array([[formula(e, k_n, self._mass(m_a, m_b)[0], self.n_points)] for e, k_n, m_a, m_b in x.tolist()])

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes by e, k_n and both masses."""
        formula = damping_derivatives if self.adhesive_damping else clipped_damping_derivatives
        out = np.empty((x.shape[0], 1, 4))
        for i, (e, k_n, m_a, m_b) in enumerate(x.tolist()):
            mass, by_a, by_b = self._mass(m_a, m_b)
            slopes = formula(e, k_n, mass, self.n_points)
            out[i, 0] = slopes.restitution, slopes.stiffness, slopes.mass * by_a, slopes.mass * by_b
        return out


# --- Mass and inertia of simple solids by their sizes -----------------------------------------------------------------

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
