"""How far a gradient may be trusted: growth of slopes along a run, and gradients at numbers nearby."""

from collections.abc import Callable

import numpy as np

from add.errors import SolverError
from add.typing import FloatArray

#: The relative step over which the free slope is called coarse: about what an optimiser's line search sees.
COARSE = 1e-2

#: Gradients at points within `COARSE` whose scatter is the trust in one of them, and the growth of a slope from halfway
#: on beyond which it is no power of time: 2 is that of a flight, 4 that of a force.
NEARBY, GROWTH = 6, 20.0


def trust(
    tangents: FloatArray, gradient: Callable[[FloatArray], FloatArray], s: FloatArray, scale: FloatArray, seed: int
) -> tuple[float, float]:
    """Return how far a gradient may be believed: the growth of slopes along the run, and signal over scatter.

    Growth is |q_dot| at the end over that halfway, of the tangents (d, k + 1, n) of a run. Signal over scatter is
    |mean| / rms |g - mean| of `NEARBY` gradients at s + 1e-2 scale N(0, 1), those that fail left out: below 1 most of a
    gradient is the place where it was taken. NaN where slopes are zero halfway, or fewer than two gradients are there.
    """
    rng, found = np.random.default_rng(seed), []
    for _ in range(NEARBY):
        try:
            found.append(gradient(s + COARSE * scale * rng.normal(size=s.size)))
        except SolverError:
            continue
    sizes = np.linalg.norm(tangents, axis=(0, 2))
    half, end = sizes[len(sizes) // 2], sizes[-1]
    growth = float(end / half) if half > 0.0 else np.nan
    if len(found) < 2:
        return growth, np.nan
    mean = np.mean(found, axis=0)
    scatter = float(np.sqrt(np.mean([np.sum((g - mean) ** 2) for g in found])))
    return growth, float(np.linalg.norm(mean)) / scatter if scatter > 0.0 else np.inf
