"""The contacts of a finished step with exact contact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.hard_contact.geometry import Touches
from add.hard_contact.law import Branch
from add.hard_contact.pairs import ContactPairs
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class ContactState:
    """The k pairs that were near a step, at its end.

    Attributes
    ----------
    pairs : ContactPairs
        Those pairs alone.
    pair : (k,) their numbers in the stepper's `ContactPairs`
    force : (k, 3) on the points [N]
    branch : (k,) of `Branch`
    touches : Touches
        Gaps, normals, velocities and places.
    """

    pairs: ContactPairs
    pair: IntArray
    force: FloatArray
    branch: IntArray
    touches: Touches

    @property
    def gap(self) -> FloatArray:
        """(k,) [m]."""
        return self.touches.gap

    @property
    def place(self) -> FloatArray:
        """Places (k, 3) at which the surfaces meet [m]."""
        return self.touches.place

    @property
    def normal_force(self) -> FloatArray:
        """F_n (k,) [N]."""
        return np.einsum("ki,ki->k", self.touches.normal, self.force)

    @property
    def friction(self) -> FloatArray:
        """Tangential forces (k, 3) [N]."""
        return self.force - self.normal_force[:, None] * self.touches.normal

    @property
    def tangential_velocity(self) -> FloatArray:
        """Sliding velocities (k, 3) [m/s]."""
        return self.touches.tangential_velocity

    @property
    def touching(self) -> IntArray:
        """Numbers of the pairs that touch."""
        return self.pair[self.branch != Branch.SEPARATE]

    def count(self, branch: Branch) -> int:
        """Return how many of the pairs near are on a branch."""
        return int(np.count_nonzero(self.branch == branch))
