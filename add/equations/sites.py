"""Sites, on which joints act: points, directions and spins of bodies; and the numbers of their laws.

`add.kernels.sites` has the equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, final

import numpy as np

from add.equations.layout import node_dofs
from add.equations.signals import Constant, Signal
from add.kernels import sites as kernel
from add.kernels.law_numbers import LawNumbers
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

    def grouped(self, arity: int) -> Sites:
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
    def of(cls, *columns: Indices) -> LawValues:
        """Return columns (n,) of indices in theta."""
        index = np.stack([np.asarray(c, dtype=np.int64) for c in columns], axis=1)
        return cls(index, Constant(), np.zeros((1, index.shape[0], 0), dtype=np.int64))

    @classmethod
    def driven(cls, signal: Signal, rows: IntArray, *columns: Indices) -> LawValues:
        """Return columns (n,) of indices in theta, and behind them those of a signal, ``rows`` (n_rows, n, n_s)."""
        rows = np.asarray(rows, dtype=np.int64)
        index = np.stack(columns, axis=1) if columns else np.zeros((rows.shape[1], 0))
        return cls(index.astype(np.int64), signal, rows)


@final
class Evaluation:
    """Sites and law values at one state: what the kernels of one call share."""

    __slots__ = ("frame", "p", "values", "weights", "y", "y_dot")

    y: FloatArray
    y_dot: FloatArray
    frame: FloatArray
    p: FloatArray
    values: LawValues
    weights: FloatArray

    def __init__(
        self, sites: Sites, values: LawValues, q: FloatArray, v: FloatArray, t: float, theta: FloatArray
    ) -> None:
        n_f = sites.kind.size
        self.y = np.empty((n_f, 3))
        self.y_dot = np.empty((n_f, 3))
        self.frame = np.empty((n_f, 12))
        self.p = np.empty((values.index.shape[0], values.index.shape[1] + values.rows.shape[2]))
        self.values, self.weights = values, values.signal.weights(t)
        kernel.evaluate(
            q,
            v,
            theta,
            sites.kind,
            sites.dofs,
            sites.weights,
            sites.place,
            values.index,
            self.weights,
            values.rows,
            self.y,
            self.y_dot,
            self.frame,
            self.p,
        )

    @property
    def numbers(self) -> LawNumbers:
        """The places of the law's numbers, as the kernels of derivatives by theta take them."""
        return LawNumbers(self.values.index, self.weights, self.values.rows)

    def pull(self, sites: Sites, q: FloatArray, f: FloatArray, out: FloatArray) -> None:
        """Add -J^T f to ``out``."""
        kernel.pull(-1.0, q, sites.kind, sites.dofs, sites.weights, self.frame, f, out)

    def arguments(self, sites: Sites, q: FloatArray) -> tuple[Any, ...]:
        """Return the arguments of the kernels between their first and the forces."""
        return q, sites.kind, sites.dofs, sites.weights, self.frame


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
    def of_nodes(cls, nodes: IntArray, weights: FloatArray) -> Site:
        """Return a weighted sum of nodes of the system."""
        return cls(SiteKind.NODES, node_dofs(nodes).ravel(), np.asarray(weights, dtype=float))

    @classmethod
    def of_world(cls, arm: IntArray) -> Site:
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
