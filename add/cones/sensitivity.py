"""Cones of contacts, and derivatives of the solution of a complementarity problem, all modes held.

The mode equations F(l, u; bound) = 0 with u = G l + g (see `add.kernels.cone_modes`) give

    K dl = -(dF/du (dG l + dg) + dF/dbound dbound),      K = dF/dl + dF/du G

Redundant contacts share loads by a rule (`add.kernels.cone_shares`) that is one of the mode equations, so that dl and
du are its derivatives, too. What it leaves open makes K singular; then dl is the one of least norm (in scaled
impulses), and du and J^T dl are unique as long as the kernel of K has no velocity, which
`Sensitivity.velocity_is_unique` tells.

Relaxed derivatives are those of the central path of the cones, as interior points have them:

    closed    u + kappa grad phi(l) = 0,   phi = -log(l_n), or -log(mu^2 l_n^2 - |l_t|^2) where the contact sticks
    separate  l_n u_n = kappa

are linearised at the exact solution (Howell et al. 2022, who solve them instead): what rests gives way a little, what
is near pulls a little. kappa -> 0 is the exact derivative. It is no derivative of the simulation: an optimiser that
starts where the exact one is zero may need it, and nothing else should.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from add.kernels import cone_modes, cones as kernel
from add.kernels.cone_modes import SEPARATE, STICK
from add.kernels.cone_solve import row_scale
from add.kernels.cones import Blocks
from add.typing import FloatArray, IntArray

# --- Products of the cones of contact: one a contact or joint row -----------------------------------------------------


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
    def free(cls, n: int) -> "Cones":
        """Return n rows without a condition on the impulse: joints."""
        return cls._of(ConeKind.FREE, np.zeros(n))

    @classmethod
    def half_lines(cls, n: int) -> "Cones":
        """Return n normal rows: impulses >= 0."""
        return cls._of(ConeKind.HALF_LINE, np.zeros(n))

    @classmethod
    def discs(cls, radius: ArrayLike) -> "Cones":
        """Return pairs of tangential rows with impulses up to ``radius`` (k,) [N s]."""
        return cls._of(ConeKind.DISC, radius)

    @classmethod
    def friction(cls, mu: ArrayLike) -> "Cones":
        """Return contacts (t_1, t_2, n) with Coulomb's cones of coefficients ``mu`` (k,)."""
        return cls._of(ConeKind.CONE, mu)

    @classmethod
    def pyramids(cls, mu: ArrayLike) -> "Cones":
        """Return contacts (t_1, t_2, n) with |l_1|, |l_2| <= mu l_n: the boxed problem of many engines.

        Friction against a slip between the two axes is up to sqrt(2) times that of the cone.
        """
        return cls._of(ConeKind.PYRAMID, mu)

    @classmethod
    def _of(cls, kind: ConeKind, bound: ArrayLike) -> "Cones":
        values = np.atleast_1d(np.array(bound, dtype=float))
        return cls(np.full(values.size, int(kind), dtype=np.int64), values)

    def __add__(self, other: "Cones") -> "Cones":
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
    scale: FloatArray = row_scale(G, cones.blocks)
    return scale


# ----------------------------------------------------------------------------------------------------------------------

#: Least distance from the edge of a cone, and least velocity, as shares of the largest impulse.
_FLOOR = 1e-6


def relax(
    cones: Cones, modes: IntArray, l: FloatArray, u: FloatArray, kappa: float, by_l: FloatArray, by_u: FloatArray
) -> None:
    """Add kappa's terms to the derivatives of the mode equations, in scaled numbers.

    Parameters
    ----------
    cones, modes, l, u : the solution, scaled
    kappa : relative to the square of the largest impulse [-]
    by_l, by_u : (m, m) dF/dl and dF/du; changed
    """
    largest = float(np.abs(l).max(initial=0.0))
    if kappa <= 0.0 or largest == 0.0:
        return
    kappa, floor = kappa * largest**2, _FLOOR * largest
    for kind, first, size, mu, mode in zip(cones.kind, cones.first, cones.sizes, cones.bound, modes, strict=True):
        if kind in (ConeKind.FREE, ConeKind.DISC):
            continue
        n = first + size - 1
        if mode == SEPARATE:
            by_u[n, n] += kappa / max(u[n], floor) ** 2
        elif kind == ConeKind.CONE and mode == STICK and mu > 0.0:
            rows = slice(first, n + 1)
            by_l[rows, rows] += kappa * _barrier(l[rows], mu, floor)
        else:
            by_l[n, n] += kappa / max(l[n], floor) ** 2


def _barrier(l: FloatArray, mu: float, floor: float) -> FloatArray:
    """Return the Hessian (3, 3) of -log(mu^2 l_n^2 - |l_t|^2)."""
    room = max(float((mu * l[2]) ** 2 - l[0] ** 2 - l[1] ** 2), floor**2)
    slope = 2.0 * np.array([l[0], l[1], -(mu**2) * l[2]])
    return np.diag([2.0, 2.0, -2.0 * mu**2]) / room + np.outer(slope, slope) / room**2


class ConeCotangent(NamedTuple):
    """Cotangents of G (m, m), g (m,) and the bounds (k,) of a problem."""

    delassus: FloatArray
    offset: FloatArray
    bound: FloatArray


@final
@dataclass(frozen=True)
class Sensitivity:
    """The linearised solution.

    Attributes
    ----------
    cones : Cones
    impulse : (m,) l [N s]
    inverse : (m, m) of K
    by_u : (m, m) dF/du
    by_bound : (m,) dF/dbound of the row's own block
    redundant : int
        Number of impulses that others could replace.
    velocity_is_unique : bool
        False where the modes leave the motion open.
    derivative_is_unique : bool
        False also where redundant impulses of sliding contacts could be shared by another rule: how the velocities
        change with a single friction coefficient, or with a spin, depends on the shares.
    """

    cones: Cones
    impulse: FloatArray
    inverse: FloatArray
    by_u: FloatArray
    by_bound: FloatArray
    redundant: int
    velocity_is_unique: bool
    derivative_is_unique: bool

    @classmethod
    def at(
        cls,
        G: FloatArray,
        cones: Cones,
        impulse: FloatArray,
        velocity: FloatArray,
        modes: IntArray,
        relaxation: float = 0.0,
    ) -> "Sensitivity":
        """Linearise the mode equations at a solution that was found before; the scale is that of `solve`."""
        return cls.of(G, cones, impulse, velocity, modes, block_scale(G, cones), relaxation)

    @classmethod
    def of(
        cls,
        G: FloatArray,
        cones: Cones,
        impulse: FloatArray,
        velocity: FloatArray,
        modes: IntArray,
        scale: FloatArray,
        relaxation: float = 0.0,
    ) -> "Sensitivity":
        """Linearise the mode equations at a solution; in scaled numbers, so that the rank is found.

        With a ``relaxation`` kappa > 0 these are not the derivatives (see `add.cones.sensitivity`).
        """
        blocks = cones.blocks
        scaled, by_l, by_u, by_bound = cone_modes.scaled_equations(
            np.ascontiguousarray(G), blocks, modes, impulse, velocity, scale
        )
        # A tangent follows its own velocity through dF/du only where it slides or is at a bound.
        slides = by_l.diagonal() != 0.0
        shares = impulse / scale
        if relaxation > 0.0:
            relax(cones, modes, impulse / scale, scale * velocity, relaxation, by_l, by_u)
            shares = np.zeros(0)
        inverse, by_u, by_bound, redundant, moving, shared = cone_modes.linearised(
            scaled, blocks, modes, by_l, by_u, by_bound, slides, scale, shares
        )
        still = moving <= 1e-7
        return cls(cones, impulse, inverse, by_u, by_bound, redundant, still, still and shared <= 1e-7)

    def pushforward(
        self, delassus_dot: FloatArray | None, offset_dot: FloatArray, bound_dot: FloatArray | None = None
    ) -> FloatArray:
        """Return the tangent of the impulse along tangents of G, g and the bounds; of g and the bounds also (., c)."""
        u_dot = offset_dot if delassus_dot is None else delassus_dot @ self.impulse + offset_dot
        rhs = self.by_u @ u_dot
        if bound_dot is not None:
            rhs = rhs + (self.by_bound * bound_dot[self.cones.block_of_row].T).T
        return np.asarray(-(self.inverse @ rhs))

    def velocity_cotangent(self, impulse_bar: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return minus the cotangents of u at fixed l (m,), and the cotangents of the bounds (k,)."""
        b = self.inverse.T @ impulse_bar
        shares = np.bincount(self.cones.block_of_row, self.by_bound * b, self.cones.kind.size)
        return self.by_u.T @ b, -shares.astype(float)

    def pullback(self, impulse_bar: FloatArray) -> ConeCotangent:
        """Return the cotangents of G, g and the bounds from that of the impulse (m,)."""
        c, bound = self.velocity_cotangent(impulse_bar)
        return ConeCotangent(-np.outer(c, self.impulse), -c, bound)
