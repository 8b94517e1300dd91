"""Staggered projections (Kaufman et al. 2008): normal and friction impulses in turn, until the exact cone is met.

    l_n = argmin over l_n >= 0          of 1/2 l_n^T G_nn l_n + l_n^T (g_n + G_nt l_t)
    l_t = argmin over |l_t| <= mu l_n   of 1/2 l_t^T G_tt l_t + l_t^T (g_t + G_tn l_n)

The scheme has no proof of convergence and is not monotone; its authors stop after 3 to 10 sweeps, which leaves natural
maps up to several per cent. It is here to be compared with: `add.cones.solve` is the solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.cones.cones import Cones
from add.cones.solver import solve
from add.kernels.cones import natural_map
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class StaggeredResult:
    """The end of the sweeps.

    Attributes
    ----------
    impulse : (3 k,) [N s]
    history : (sweeps,) natural map after each sweep, in scaled numbers
    """

    impulse: FloatArray
    history: FloatArray

    @property
    def natural_map(self) -> float:
        """That of the last sweep."""
        return float(self.history[-1])


def solve_staggered(
    G: FloatArray, g: FloatArray, mu: FloatArray, *, max_sweeps: int = 200, tolerance: float = 1e-10
) -> StaggeredResult:
    """Return the impulses of k contacts (t_1, t_2, n), from no friction.

    Parameters
    ----------
    G : (3 k, 3 k), g : (3 k,), mu : (k,)
    max_sweeps : the published scheme takes 3 to 10
    tolerance : natural map, of the scaled problem, at which it stops
    """
    cones = Cones.friction(mu)
    m, k = cones.n_rows, cones.kind.size
    normal = 3 * np.arange(k) + 2
    tangent = np.setdiff1d(np.arange(m), normal)
    per_block = np.sqrt(3.0 / np.diagonal(G).reshape(k, 3).sum(axis=1))
    scale = np.repeat(per_block, 3)
    size = max(float(np.abs(scale * g).max(initial=0.0)), 1e-300)
    l, history = np.zeros(m), []
    for _ in range(max_sweeps):
        g_n = g[normal] + G[np.ix_(normal, tangent)] @ l[tangent]
        l[normal] = solve(G[np.ix_(normal, normal)], g_n, Cones.half_lines(k)).impulse
        radius = np.maximum(cones.bound * l[normal], 0.0)
        g_t = g[tangent] + G[np.ix_(tangent, normal)] @ l[normal]
        l[tangent] = solve(G[np.ix_(tangent, tangent)], g_t, Cones.discs(radius)).impulse
        u = G @ l + g
        history.append(float(natural_map(cones.blocks, l / (scale * size), scale * u / size)))
        if history[-1] <= tolerance:
            break
    return StaggeredResult(l, np.array(history))
