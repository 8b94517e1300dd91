"""Equilibria from which a run starts and in which nothing stays: a column that stands straight beyond its load."""

from typing import Any

import numpy as np
from scipy.sparse.linalg import splu

from add.equations.kinematics import Weights
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory

#: Parts of a matrix that are no symmetry, and pivots that are no more than round-off.
_UNSYMMETRIC, _NONE = 1e-8, 1e-13


def unstable(built: BuiltScene, start: Trajectory) -> dict[str, Any]:
    """Return the entry ``unstable`` of ``result.json``: that the equilibrium at the start is none that holds.

    Of matrices dr/dq that are symmetric, by the signs of their pivots; of others, as friction and pressure on a part of
    a surface make them, and where multipliers hold something, nothing is said.

    Parameters
    ----------
    built : BuiltScene
    start : Trajectory
        Without steps.
    """
    found, simulation = start.start, built.simulation
    if found is None or found.mu.size or not simulation.system.partition.free.size:
        return {}
    branch = simulation.system.on_branch(found.decisions, found.candidates)
    pattern, data = simulation.assembler().assemble(
        found.kin, found.mu, simulation.theta, Weights(1.0, 0.0, 0.0, 1.0), branch
    )
    matrix = pattern.matrix(data)
    size = float(abs(matrix).max())
    if float(abs(matrix - matrix.T).max()) > _UNSYMMETRIC * size:
        return {}
    try:
        factors = splu(
            matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True, "Equil": False}
        )
    except RuntimeError:  # a pivot of zero
        return {}
    pivots = factors.U.diagonal()
    k = int(np.argmin(pivots))
    if not np.array_equal(factors.perm_r, factors.perm_c) or pivots[k] >= -_NONE * size:
        return {}
    # K = P^T L D L^T P: along the way P^T L^-T e_k the energy bends by the pivot.
    way = factors.solve(pivots[k] * factors.L[:, [k]].toarray().ravel()[factors.perm_r])
    system = simulation.system
    place = system.dofs.describe(int(system.partition.free[np.argmax(np.abs(way))]))
    text = (
        f"nothing stays in the equilibrium at the start: the least push takes it away, most of all {place}; let the "
        "scene start beside it, or a load there"
    )
    return {"unstable": [{"warning": True, "text": text}]}
