"""Sites, on which joints act: points, directions and spins of bodies; and the numbers of their laws.

`add.kernels.sites` has the equations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.layout import node_dofs
from add.equations.points import Along, PointMap
from add.equations.signals import Constant, Signal
from add.kernels import sites as kernel
from add.kernels.site_points import points_jvp, points_vjp
from add.typing import FloatArray, IntArray

Indices = Sequence[int] | IntArray


class SiteKind(IntEnum):
    """Kinds of sites."""

    WORLD = kernel.WORLD
    NODES = kernel.NODES
    POINT = kernel.POINT
    DIRECTION = kernel.DIRECTION
    SPIN = kernel.SPIN


@final
@dataclass(frozen=True)
class Sites:
    """Vectors carried by bodies.

    Attributes
    ----------
    kind : (n_f,)
        Codes of `SiteKind`.
    dofs : (n_f, m)
        Coordinates: of the nodes; x and w of a POINT; w of a DIRECTION or SPIN. Padded with -1.
    weights : (n_f, m // 3)
        Of the nodes, padded with zeros.
    arm : (n_f, 3)
        Indices in theta of X; -1 for zero.
    centre : (n_f, 3)
        Indices in theta of the centre of mass X_c; -1 for zero. Read for a POINT.
    arity : int
        Sites of one interaction; they follow each other, site arity e + slot. Couplings set it themselves.
    pattern : (rows, cols), made
        Dense over the coordinates of an interaction.
    place : (n_f, 6), made
        ``arm``, then ``centre``.
    """

    kind: IntArray
    dofs: IntArray
    weights: FloatArray
    arm: IntArray
    centre: IntArray
    arity: int = 1
    pattern: tuple[IntArray, IntArray] = field(init=False, repr=False)
    place: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind.size % self.arity:
            raise ValueError(f"{self.kind.size} sites are no whole number of interactions of {self.arity}")
        dofs = self.dofs.reshape(self.n, self.arity * self.dofs.shape[1])
        rows, cols = np.broadcast_arrays(dofs[:, :, None], dofs[:, None, :])
        used = (rows >= 0) & (cols >= 0)
        object.__setattr__(self, "pattern", (rows[used], cols[used]))
        object.__setattr__(self, "place", np.concatenate([self.arm, self.centre], axis=1).astype(np.int64))

    @property
    def n(self) -> int:
        """Number of interactions."""
        return self.kind.size // self.arity

    @property
    def arrays(self) -> kernel.SiteArrays:
        """All of them, as the kernels take them."""
        return kernel.SiteArrays(self.kind, self.dofs, self.weights, self.place)

    def grouped(self, arity: int) -> "Sites":
        """Return the same sites with ``arity`` of them an interaction."""
        return self if arity == self.arity else replace(self, arity=arity)


@final
@dataclass(frozen=True)
class LawValues:
    """The numbers p (n, n_i + n_s) of a law: each linear in theta.

    Attributes
    ----------
    index : (n, n_i)
        Indices in theta of the first columns; -1 for zero.
    signal : Signal
        Of the last n_s columns, sum_k signal.weights(t)_k theta[rows_k]. One for all interactions of a term.
    rows : (n_rows, n, n_s)
        Indices in theta of the signal's coefficients; -1 for zero.
    """

    index: IntArray
    signal: Signal
    rows: IntArray

    def __post_init__(self) -> None:
        n_rows, n, _ = self.rows.shape
        if n_rows != self.signal.n_rows or n != self.index.shape[0]:
            raise ValueError(
                f"rows {self.rows.shape} must be ({self.signal.n_rows}, {self.index.shape[0]}, columns): rows of the "
                "signal, then interactions"
            )

    @property
    def n_columns(self) -> int:
        """Numbers of one interaction."""
        return self.index.shape[1] + self.rows.shape[2]

    @classmethod
    def of(cls, *columns: Indices) -> "LawValues":
        """Return columns (n,) of indices in theta."""
        index = np.stack([np.asarray(c, dtype=np.int64) for c in columns], axis=1)
        return cls(index, Constant(), np.zeros((1, index.shape[0], 0), dtype=np.int64))

    @classmethod
    def driven(cls, signal: Signal, rows: IntArray, *columns: Indices) -> "LawValues":
        """Return columns (n,) of indices in theta, and behind them those of a signal, ``rows`` (n_rows, n, n_s)."""
        rows = np.asarray(rows, dtype=np.int64)
        index = np.stack(columns, axis=1) if columns else np.zeros((rows.shape[1], 0))
        return cls(index.astype(np.int64), signal, rows)


@final
class Evaluation:
    """Sites and law values at one state: what the kernels of one call share."""

    __slots__ = ("frame", "p", "y", "y_dot")

    y: FloatArray
    y_dot: FloatArray
    frame: FloatArray
    p: FloatArray

    def __init__(
        self, sites: Sites, values: LawValues, q: FloatArray, v: FloatArray, t: float, theta: FloatArray
    ) -> None:
        n_f = sites.kind.size
        self.y = np.empty((n_f, 3))
        self.y_dot = np.empty((n_f, 3))
        self.frame = np.empty((n_f, 12))
        self.p = np.empty((values.index.shape[0], values.index.shape[1] + values.rows.shape[2]))
        numbers = kernel.LawNumbers(values.index, values.signal.weights(t), values.rows)
        kernel.evaluate(q, v, theta, sites.arrays, numbers, self.y, self.y_dot, self.frame, self.p)


#: Indices in theta of a vector that is zero.
NO_INDICES: IntArray = np.full(3, -1, dtype=np.int64)


@final
@dataclass(frozen=True)
class Site:
    """One site in the numbering of the system.

    Attributes
    ----------
    kind : SiteKind
    dofs : rows of X that it depends on
    weights : of nodes
    arm, centre : (3,) indices in theta of X and X_c; -1 for zero
    """

    kind: SiteKind
    dofs: IntArray
    weights: FloatArray = field(default_factory=lambda: np.zeros(0))
    arm: IntArray = field(default_factory=lambda: NO_INDICES)
    centre: IntArray = field(default_factory=lambda: NO_INDICES)

    @classmethod
    def of_nodes(cls, nodes: IntArray, weights: FloatArray) -> "Site":
        """Return a weighted sum of nodes of the system."""
        return cls(SiteKind.NODES, node_dofs(nodes).ravel(), np.asarray(weights, dtype=float))

    @classmethod
    def of_world(cls, arm: IntArray) -> "Site":
        """Return a place or direction of the world."""
        return cls(SiteKind.WORLD, np.zeros(0, dtype=np.int64), arm=arm)


def gather(sites: Sequence[Site]) -> Sites:
    """Return sites as arrays, padded to the widest."""
    n = len(sites)
    width = max([3, *(f.dofs.size for f in sites)])
    dofs = np.full((n, width), -1, dtype=np.int64)
    weights = np.zeros((n, width // 3))
    for i, site in enumerate(sites):
        dofs[i, : site.dofs.size] = site.dofs
        weights[i, : site.weights.size] = site.weights
    kind = np.array([f.kind for f in sites], dtype=np.int64)
    arm, centre = (
        np.array(part, dtype=np.int64).reshape(n, 3) for part in zip(*((f.arm, f.centre) for f in sites), strict=True)
    )
    return Sites(kind, dofs, weights, arm, centre)


# --- Sites of bodies as a map of points: markers and targets on rigid bodies, or on bodies of any kind ----------------


@final
@dataclass(frozen=True)
class SitePoints(PointMap):
    """Places of points, directions (unit vectors, rates of turning included) and weighted nodes.

    Attributes
    ----------
    sites : Sites
        Of arity one.
    """

    sites: Sites

    @property
    def n_points(self) -> int:
        """Number of points."""
        return self.sites.kind.size

    @property
    def numbers(self) -> IntArray:
        """Indices of arms and centres of mass."""
        place = self.sites.place
        return np.unique(place[place >= 0])

    def _evaluate(self, kin: Kinematics, theta: FloatArray) -> Evaluation:
        return Evaluation(self.sites, LawValues.of(np.full(self.n_points, -1)), kin.q, kin.v, kin.t, theta)

    def points(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (n_points, 3)."""
        evaluation = self._evaluate(kin, theta)
        return evaluation.y, evaluation.y_dot

    def points_over(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (k, n_points, 3) in k states."""
        one = Kinematics(q.ravel(), v.ravel(), v.ravel(), 0.0, 0)
        y, y_dot = self._repeated(*q.shape).points(one, theta)
        return y.reshape(q.shape[0], -1, 3), y_dot.reshape(q.shape[0], -1, 3)

    def jvp_over(self, at: Along, dot: Along) -> tuple[FloatArray, FloatArray]:
        """Return the tangents (k, c, n_points, 3) of positions and velocities in k states along c directions."""
        one = Kinematics(at.q.ravel(), at.v.ravel(), at.v.ravel(), 0.0, 0)
        (k, c, _), repeated = dot.q.shape, self._repeated(*at.q.shape)
        frame = repeated._evaluate(one, at.theta).frame
        by_q, by_v = (np.ascontiguousarray(part.transpose(1, 0, 2)).reshape(c, at.q.size) for part in dot[:2])
        x_dot, rate_dot = np.empty((2, c, k * self.n_points, 3))
        for moved in zip(by_q, by_v, np.ascontiguousarray(dot.theta), x_dot, rate_dot, strict=True):
            points_jvp(*moved[:3], one.q, one.v, repeated.sites.arrays, frame, *moved[3:])
        x, rate = (part.reshape(c, k, self.n_points, 3).transpose(1, 0, 2, 3) for part in (x_dot, rate_dot))
        return x, rate

    def _repeated(self, k: int, n: int) -> "SitePoints":
        """Return the points of k states of n coordinates, one behind the other, as those of one state."""
        f, again = self.sites, np.tile(np.arange(self.n_points), k)
        shifts = np.repeat(n * np.arange(k), self.n_points)[:, None]
        dofs = np.where(f.dofs[again] >= 0, f.dofs[again] + shifts, -1)
        return SitePoints(Sites(f.kind[again], dofs, f.weights[again], f.arm[again], f.centre[again]))

    def vjp(self, kin: Kinematics, theta: FloatArray, x_bar: FloatArray, xv_bar: FloatArray, out: Along) -> None:
        """Add the cotangents of (q, v, theta), theta for arms and centres of mass."""
        f, evaluation = self.sites, self._evaluate(kin, theta)
        bars = np.ascontiguousarray(x_bar), np.ascontiguousarray(xv_bar)
        points_vjp(*bars, kin.q, kin.v, f.arrays, evaluation.frame, *out)

    def select(self, rows: IntArray) -> "SitePoints":
        """Return the map of some of the points."""
        f = self.sites
        return SitePoints(Sites(f.kind[rows], f.dofs[rows], f.weights[rows], f.arm[rows], f.centre[rows]))
