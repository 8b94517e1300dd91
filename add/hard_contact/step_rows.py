"""All rows of a step in velocities, over the coordinates: contacts first, then stops of joints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from add.cones import Cones
from add.hard_contact.beginning import Beginning
from add.hard_contact.impulse_rows import ImpulseRows
from add.hard_contact.stop_rows import StopRows
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class StepRows:
    """The rows J of a step, u = J v+ + shift; each contact has three of them, each stop one.

    Attributes
    ----------
    beginning : Beginning
    contacts : ImpulseRows
        Over the rows of X.
    stops : StopRows
        Over the coordinates.
    """

    beginning: Beginning
    contacts: ImpulseRows
    stops: StopRows

    @property
    def n(self) -> int:
        """Number of contacts and stops."""
        return self.contacts.n + self.stops.n

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return 3 * self.contacts.n + self.stops.n

    @cached_property
    def over_rows(self) -> FloatArray:
        """Rows (3 k, n_x) of the contacts over X."""
        return self.contacts.matrix

    @cached_property
    def matrix(self) -> FloatArray:
        """J (n_rows, n)."""
        if self.beginning.same and not self.stops.n:
            return self.over_rows
        of_contacts = np.ascontiguousarray(self.beginning.pull(self.over_rows.T).T)
        return np.concatenate([of_contacts, self.stops.matrix(of_contacts.shape[1])]) if self.stops.n else of_contacts

    @cached_property
    def shift(self) -> FloatArray:
        """U without any velocity (n_rows,)."""
        return np.concatenate([self.contacts.shift, self.stops.shift]) if self.stops.n else self.contacts.shift

    def cones(self, pyramids: bool) -> Cones:
        """Return the conditions on the forces of all rows."""
        friction = self.contacts.friction(self.beginning.theta)
        of_contacts = (Cones.pyramids if pyramids else Cones.friction)(friction)
        return of_contacts + Cones.half_lines(self.stops.n) if self.stops.n else of_contacts

    def of_contacts(self, values: FloatArray) -> FloatArray:
        """Return the part of values (n_rows, ...) that belongs to contacts."""
        return values[: 3 * self.contacts.n]

    def of_stops(self, values: FloatArray) -> FloatArray:
        """Return the part of values (n_rows, ...) that belongs to stops."""
        return values[3 * self.contacts.n :]
