"""Memory: numbers beside coordinates and velocities that a step reads, and makes anew at its end.

A memory m stands in entries of theta of its own while a step is solved, so that terms read it as they read every other
number and their derivatives by theta are those by the memory (`add.simulation.composed`). Those entries are zero, or
what a tie makes of them, wherever nothing is remembered: in static equilibrium.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

from add.typing import FloatArray, IntArray

#: Of q and theta.
Pair = tuple[FloatArray, FloatArray]


class Timing(NamedTuple):
    """A step: the time at its end, and its length [s]; of a state of None the time of that state."""

    t: float
    dt: float


class Memory(ABC):
    """The memory of one body over one ``step``; arrays of tangents have one column a direction.

    A state ``m`` of None is that of a body that has been at rest where a run begins for ever.
    """

    @property
    @abstractmethod
    def n(self) -> int:
        """How many numbers it has."""

    @property
    @abstractmethod
    def entries(self) -> IntArray:
        """Entries of theta that stand for it while a step is solved."""

    @abstractmethod
    def write(self, m: FloatArray, theta: FloatArray, step: Timing) -> None:
        """Write ``entries`` of ``theta`` (n_theta,)."""

    @abstractmethod
    def write_push(
        self, m: FloatArray, m_dot: FloatArray, theta: FloatArray, theta_dot: FloatArray, step: Timing
    ) -> None:
        """Write the tangents of ``entries`` into ``theta_dot`` (n_theta, k)."""

    @abstractmethod
    def write_pull(self, m: FloatArray, theta: FloatArray, theta_bar: FloatArray, step: Timing) -> FloatArray:
        """Return the cotangent of m (n,) from those of ``entries``; add what else ``theta_bar`` gets by it."""

    @abstractmethod
    def after(self, m: FloatArray | None, q: FloatArray, theta: FloatArray, step: Timing) -> FloatArray:
        """Return the memory (n,) after a step that ends at ``q`` (n_q,); of None that of a rest there."""

    @abstractmethod
    def after_push(self, m: FloatArray | None, m_dot: FloatArray, at: Pair, theta: Pair, step: Timing) -> FloatArray:
        """Return the tangents (n, k) of `after`; ``at`` and ``theta`` are q and theta with their tangents."""

    @abstractmethod
    def after_pull(self, m: FloatArray | None, at: Pair, bar: FloatArray, bars: Pair, step: Timing) -> FloatArray:
        """Return the cotangent of m (n,) from that of `after` at q and theta; add theirs to ``bars``."""
