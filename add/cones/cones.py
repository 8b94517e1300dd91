"""Products of the cones of contact: one a contact or joint row."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from add.kernels import cones as kernel
from add.kernels.cone_solve import row_scale
from add.kernels.cones import Blocks
from add.typing import FloatArray, IntArray


class ConeKind(IntEnum):
    """The condition on the impulses of a block of rows; see `add.kernels.cones`."""

    FREE = kernel.FREE
    HALF_LINE = kernel.HALF_LINE
    DISC = kernel.DISC
    CONE = kernel.CONE
    PYRAMID = kernel.PYRAMID


#: Rows of a block, by kind.
_ROWS = np.array([1, 1, 2, 3, 3])


@final
@dataclass(frozen=True)
class Cones:
    """A product of cones; ``a + b`` has the rows of a, then those of b.

    Attributes
    ----------
    kind : (k,) of `ConeKind`
    bound : (k,)
        Radius of a disc [N s]; friction coefficient of a cone or a pyramid; unused by the others.

    Raises
    ------
    ValueError
        If a bound is negative or not finite.
    """

    kind: IntArray
    bound: FloatArray

    def __post_init__(self) -> None:
        if not np.all((self.bound >= 0.0) & np.isfinite(self.bound)):
            worst = self.bound[~((self.bound >= 0.0) & np.isfinite(self.bound))][0]
            raise ValueError(f"a friction coefficient or radius is {worst}, expected a finite number >= 0")

    @classmethod
    def free(cls, n: int) -> Cones:
        """Return n rows without a condition on the impulse: joints."""
        return cls._of(ConeKind.FREE, np.zeros(n))

    @classmethod
    def half_lines(cls, n: int) -> Cones:
        """Return n normal rows: impulses >= 0."""
        return cls._of(ConeKind.HALF_LINE, np.zeros(n))

    @classmethod
    def discs(cls, radius: ArrayLike) -> Cones:
        """Return pairs of tangential rows with impulses up to ``radius`` (k,) [N s]."""
        return cls._of(ConeKind.DISC, radius)

    @classmethod
    def friction(cls, mu: ArrayLike) -> Cones:
        """Return contacts (t_1, t_2, n) with Coulomb's cones of coefficients ``mu`` (k,)."""
        return cls._of(ConeKind.CONE, mu)

    @classmethod
    def pyramids(cls, mu: ArrayLike) -> Cones:
        """Return contacts (t_1, t_2, n) with |l_1|, |l_2| <= mu l_n: the boxed problem of many engines.

        Friction against a slip between the two axes is up to sqrt(2) times that of the cone.
        """
        return cls._of(ConeKind.PYRAMID, mu)

    @classmethod
    def _of(cls, kind: ConeKind, bound: ArrayLike) -> Cones:
        values = np.atleast_1d(np.array(bound, dtype=float))
        return cls(np.full(values.size, int(kind), dtype=np.int64), values)

    def __add__(self, other: Cones) -> Cones:
        return Cones(np.concatenate([self.kind, other.kind]), np.concatenate([self.bound, other.bound]))

    @cached_property
    def sizes(self) -> IntArray:
        """Rows of each block (k,)."""
        return np.asarray(_ROWS[self.kind])

    @cached_property
    def first(self) -> IntArray:
        """First row of each block (k,)."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    @property
    def n_rows(self) -> int:
        """Number of rows m."""
        return int(self.sizes.sum())

    @cached_property
    def is_convex(self) -> bool:
        """Whether the problem is a convex program: it has no cone whose bound moves with the normal impulse."""
        return bool(np.all(self.kind <= kernel.DISC))

    @cached_property
    def block_of_row(self) -> IntArray:
        """Number of the block of each row (m,)."""
        return np.repeat(np.arange(self.kind.size), self.sizes)

    @cached_property
    def blocks(self) -> Blocks:
        """The cones as the kernels take them."""
        return Blocks(self.kind, self.first, self.bound)


def block_scale(G: FloatArray, cones: Cones) -> FloatArray:
    """Return one number a block, on its rows (m,): the inverse root of the mean diagonal; 1 where nothing moves."""
    found: FloatArray = row_scale(G, cones.blocks)
    return found
