"""The numbers of local laws, read from theta: constants, and values of signals."""

from typing import Any, NamedTuple

from add.kernels.caching import njit

_JIT = {"cache": True, "error_model": "numpy"}


class LawNumbers(NamedTuple):
    """Where the numbers p of a law stand: ``index`` (n, n_i) and ``rows`` (n_rows, n, n_s) in theta, -1 for zero.

    ``weights`` (n_rows,) are those of the signal at this time.
    """

    index: Any
    weights: Any
    rows: Any


@njit(**_JIT)
def entry(theta, i):
    """Return theta[i], or zero for i = -1."""
    return theta[i] if i >= 0 else 0.0


@njit(**_JIT)
def law_values(theta, numbers, p):
    """Fill p (n, n_i + n_s): columns read from theta at ``index``, then a signal's, sum_k weights_k theta[rows_k]."""
    index, weights, rows = numbers
    n_i = index.shape[1]
    for e in range(p.shape[0]):
        for j in range(n_i):
            p[e, j] = entry(theta, index[e, j])
        for j in range(rows.shape[2]):
            total = 0.0
            for k in range(weights.size):
                total += weights[k] * entry(theta, rows[k, e, j])
            p[e, n_i + j] = total
