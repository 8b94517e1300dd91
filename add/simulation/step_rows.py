"""Many cotangents pulled back through one step at once: rows of derivatives of a run, a few or hundreds.

With J = dr/dq + c dr/dv + c^2 dr/da and one column of bars a row, J^T lambda = q_bar + c v_bar for all of them with one
factorisation; see `add.simulation.bdf.BDF` for what follows of lambda.
"""

import numpy as np

from add.equations import charts
from add.equations.kinematics import Columns, Directions, StateTangent, Weights
from add.linalg import DenseLU, LinearSolve
from add.simulation.derivative import linearise, named_instant
from add.simulation.stepper import TakenStep
from add.typing import FloatArray


def pull_rows(
    step: TakenStep, bars: StateTangent, directions: Directions, matrices: tuple[FloatArray, Columns] | None
) -> tuple[StateTangent, Columns]:
    """Pull cotangents (m, n, r) of the state after a step by a formula of backward differentiation to what is before.

    Parameters
    ----------
    matrices : (3, n, n) and Columns, or None
        dr/dq, dr/dv, dr/da and dr along the directions, of a system without multipliers; None: those of the terms.

    Returns
    -------
    StateTangent
        Those of the state before, (m, n, r).
    Columns
        Those of theta times the directions, (r, k).

    Raises
    ------
    SolverError
        If the matrix of the step is singular.
    """
    (assembler, record, theta, _), system = step, step.assembler.system
    c, kin, mu = record.c, record.kin, record.mu
    free, prescribed, n = system.partition.free, system.partition.prescribed, system.n
    if record.unchanged is not None:
        bars = charts.pullback(record.unchanged, record.charts, bars)
    u_bar, count = bars.q[0] + c * bars.v[0], bars.q.shape[2]
    adjoint = np.zeros((n + mu.size, count))
    by_rates, by_a, whole = np.zeros((3, n, count))
    if matrices is not None:
        by_theta, (dq, dv, da) = matrices[1], matrices[0]
        rates = dv + c * da
        matrix, factors = dq + c * rates, DenseLU()
        with named_instant(record.solution):
            factors.factor_matrix(np.asfortranarray(matrix if free.size == n else matrix[np.ix_(free, free)]))
            adjoint[free] = factors.solve_transposed(u_bar[free])
        by_rates, by_a = rates.T @ adjoint, da.T @ adjoint
        if prescribed.size:
            whole = matrix.T @ adjoint
    else:
        linearised = linearise(assembler, record.solution, theta)
        branch, solver = linearised.branch, linearised.factors
        assert isinstance(solver, LinearSolve)
        with named_instant(record.solution):
            both = solver.solve_transposed(np.concatenate([u_bar[free], np.zeros((mu.size, count))]))
        adjoint[free], adjoint[n:] = both[: free.size], both[free.size :]
        by_theta = branch.parameter_tangents(kin, mu, theta, directions)

        def transposed(weights: Weights) -> FloatArray:
            return assembler.transposed(kin, mu, theta, branch, adjoint, weights)

        by_rates, by_a = transposed(Weights(0.0, 1.0, c)), transposed(Weights(0.0, 0.0, 1.0))
        if prescribed.size:
            whole = transposed(Weights(1.0, c, c * c))
    before = StateTangent(np.zeros_like(bars.q), np.zeros_like(bars.v))
    before.q[0], before.v[0] = bars.q[1], bars.v[1]
    for k, alpha in enumerate(record.alpha):
        before.q[k] += c * alpha * (by_rates - bars.v[0])
        before.v[k] += c * alpha * by_a
    moved = system.motion_tangents(kin.t, theta, directions)
    index = np.union1d(by_theta.index, moved.index)
    out = np.zeros((count, index.size))
    out[:, np.searchsorted(index, by_theta.index)] = -adjoint.T @ by_theta.values
    if moved.index.size:
        out[:, np.searchsorted(index, moved.index)] += (u_bar - whole)[prescribed].T @ moved.values
    return before, Columns(index, out)
