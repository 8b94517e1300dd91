"""Maps on one vector z = [s; theta; constants], so that a tie may read any number and set any entry of theta.

    theta = (select . tie_k . ... . tie_1 . extend)(s)

`Extended` lays out z and copies scaled numbers; each `Tie` then sets some entries of z from others by a `Rule`, a
function of a few numbers with its derivative; `Selected` returns theta. `add.inverse.maps.Composed` chains them.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import scipy.sparse as sp

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
