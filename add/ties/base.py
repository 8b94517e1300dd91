"""Maps on one vector z = [s; theta; constants], so that a tie may read any number and set any entry of theta.

    theta = (select . tie_k . ... . tie_1 . extend)(s)

`Extended` lays out z and copies scaled numbers; each `Tie` then sets some entries of z from others by a `Rule`, a
function of a few numbers with its derivative; `Selected` returns theta. `add.inverse.maps.Composed` chains them.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp

from add.inverse.maps import Composed, DesignMap
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
    """z = [s; theta; constants] with theta_target = factor s_source, and theta = base elsewhere.

    Attributes
    ----------
    n_in : int
        Size of s.
    base : (n_theta,)
    constants : (n_c,)
    source, target : (k,)
        Places in s and in theta.
    factor : (k,)
    """

    n_in: int
    base: FloatArray
    constants: FloatArray
    source: IntArray
    target: IntArray
    factor: FloatArray

    def forward(self, x: FloatArray) -> FloatArray:
        """Return z."""
        theta = self.base.copy()
        theta[self.target] = self.factor * x[self.source]
        return np.concatenate([x, theta, self.constants])

    def pullback(self, x: FloatArray, y_bar: FloatArray) -> FloatArray:
        """Add the cotangents of all copies of a number."""
        copies = self.factor * y_bar[self.n_in + self.target]
        return y_bar[: self.n_in] + np.bincount(self.source, copies, minlength=self.n_in)

    def jacobian(self, x: FloatArray) -> sp.csr_array:
        """Return the factors below an identity."""
        copies = sp.csr_array((self.factor, (self.target, self.source)), shape=(self.base.size, self.n_in))
        nothing = sp.csr_array((self.constants.size, self.n_in))
        return sp.csr_array(sp.vstack([sp.eye_array(self.n_in), copies, nothing]))


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


@final
@dataclass(frozen=True)
class Copies:
    """theta[target] = factor s[source], and nothing else depends on these entries of s.

    Attributes
    ----------
    source, target, factor : (k,)
    """

    source: IntArray
    target: IntArray
    factor: FloatArray

    def write(self, values: FloatArray, thetas: FloatArray) -> None:
        """Set the entries of theta (b, n_theta) for the numbers (b, n_s)."""
        thetas[:, self.target] = self.factor * values[:, self.source]

    def pullback(self, theta_bars: FloatArray, n: int) -> FloatArray:
        """Return the cotangents (b, n) of the numbers, zero of all others, as `Composed.pullback` to the bit."""
        b = theta_bars.shape[0]
        places = n * np.arange(b)[:, None] + self.source
        shares = self.factor * theta_bars[:, self.target]
        summed = np.bincount(places.ravel(), shares.ravel(), minlength=b * n)
        return np.asarray(summed, dtype=float).reshape(b, n)


def copies_of(ties: Composed, places: IntArray) -> Copies | None:
    """Return the copies of the numbers at ``places`` of s; None if a rule reads one, or sets an entry that has one."""
    extended = ties.maps[0]
    assert isinstance(extended, Extended)
    own = np.isin(extended.source, places)
    used = np.concatenate([np.ravel(places), extended.n_in + extended.target[own]])
    for tie in ties.maps[1:]:
        if isinstance(tie, Tie) and (np.isin(tie.inputs, used).any() or np.isin(tie.outputs, used).any()):
            return None
    return Copies(extended.source[own], extended.target[own], extended.factor[own])
