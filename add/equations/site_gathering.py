"""One site of a body in the numbering of the system, and many of them gathered into `Sites`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.equations.layout import node_dofs
from add.equations.sites import SiteKind, Sites
from add.typing import FloatArray, IntArray

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
