"""Where the derivatives of contact between bodies go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.typing import BoolArray, IntArray


@final
@dataclass(frozen=True)
class Blocks:
    """The dense blocks of the derivatives: one for every two carriers that may touch.

    Attributes
    ----------
    rows, cols : entries of the blocks that are always there
    own : (n_points,)
        First entry of the block of each point's carrier alone (shapes of the world); -1 where there is none.
    between : (n_bodies, n_bodies)
        First entry of the block of a body with points and a body with shapes.
    dynamic : bool
        Whether nodes may touch bodies: their blocks (9 x 9) come behind, one for every pair that touches.
    points, bodies : as the kernels take them
    """

    rows: IntArray
    cols: IntArray
    own: IntArray
    between: IntArray
    dynamic: bool
    points: IntArray
    bodies: IntArray

    @classmethod
    def build(cls, bodies: IntArray, points: IntArray, hosts: IntArray, enabled: BoolArray) -> Blocks:
        """Number the blocks of a `BodyContact`."""
        own = np.full(points.shape[0], -1, dtype=np.int64)
        between = np.full((bodies.shape[0], bodies.shape[0]), -1, dtype=np.int64)
        groups: list[IntArray] = []
        size = 0
        with_world = enabled[:, hosts < 0].any(axis=1)
        for rigid, width in ((True, 6), (False, 3)):
            chosen = np.flatnonzero(with_world & ((points[:, 2] >= 0) == rigid))
            starts, which = np.unique(points[chosen, 0], return_inverse=True)
            own[chosen] = size + width * width * which
            size += width * width * starts.size
            groups.append(starts[:, None] + np.arange(width))
        on_bodies = points[:, 2] >= 0
        met = np.zeros_like(between, dtype=bool)
        for o in np.flatnonzero(hosts >= 0):
            met[points[on_bodies & enabled[:, o], 2], hosts[o]] = True
        a, b = np.nonzero(met)
        between[a, b] = size + 144 * np.arange(a.size)
        six = np.arange(6)
        groups.append(np.concatenate([bodies[a, 0][:, None] + six, bodies[b, 0][:, None] + six], axis=1))
        rows, cols = zip(*(_entries(dofs) for dofs in groups), strict=True)
        dynamic = bool(enabled[np.ix_(~on_bodies, hosts >= 0)].any())
        return cls(np.concatenate(rows), np.concatenate(cols), own, between, dynamic, points, bodies)

    def pattern(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        """Return (rows, cols) of all blocks, those of ``keys`` last."""
        if keys.size == 0:
            return self.rows, self.cols
        i, b = np.divmod(keys, self.bodies.shape[0])
        node, body = self.points[i, 0][:, None] + np.arange(3), self.bodies[b, 0][:, None] + np.arange(6)
        rows, cols = _entries(np.concatenate([node, body], axis=1))
        return np.concatenate([self.rows, rows]), np.concatenate([self.cols, cols])


def _entries(dofs: IntArray) -> tuple[IntArray, IntArray]:
    """Return flat (rows, cols) of the dense blocks over each row of ``dofs`` (n_blocks, width)."""
    shape = (dofs.shape[0], dofs.shape[1], dofs.shape[1])
    rows = np.broadcast_to(dofs[:, :, None], shape).ravel()
    cols = np.broadcast_to(dofs[:, None, :], shape).ravel()
    return rows.astype(np.int64), cols.astype(np.int64)
