"""Points and shapes in the runs and pairs that the kernels of contact between bodies go through."""

from __future__ import annotations

import numpy as np

from add.typing import FloatArray, IntArray


def point_runs(like: IntArray, arms: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return (first, stop, group, body, owner) of the longest runs of like points, and a ball around each of a body.

    ``like`` (n, 3) are row of the tables, row of the bodies and owner of each point.
    """
    n = like.shape[0]
    breaks = np.flatnonzero((like[1:] != like[:-1]).any(axis=1)) + 1
    firsts = np.concatenate([[0], breaks]).astype(np.int64) if n else np.zeros(0, dtype=np.int64)
    stops = np.concatenate([breaks, [n]]).astype(np.int64) if n else np.zeros(0, dtype=np.int64)
    runs = np.column_stack([firsts, stops, like[firsts]]).astype(np.int64)
    spheres = np.zeros((firsts.size, 4))
    for k, (first, stop) in enumerate(zip(firsts, stops, strict=True)):
        part = arms[first:stop]
        middle = 0.5 * (part[:, :3].min(axis=0) + part[:, :3].max(axis=0))
        reach = np.linalg.norm(part[:, :3] - middle, axis=1) + part[:, 3]
        spheres[k] = *middle, reach.max()
    return runs, spheres
