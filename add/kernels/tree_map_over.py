"""Poses of links and their derivatives at many places in one call; `add.kernels.tree_map` has the equations."""

from add.kernels.caching import njit
from add.kernels.tree_map import link_parameters, link_rates, place_links


@njit(cache=True)
def place_links_over(tree, theta, links, q, X, P):
    """Fill X (k, 6 n_l) and P (k, 6 n_l, n) at k places q (k, n)."""
    for k in range(q.shape[0]):
        place_links(tree, theta, links, q[k], X[k], P[k])


@njit(cache=True)
def link_rates_over(tree, theta, links, q, v, Q):
    """Fill Q = d(P v)/dq (k, 6 n_l, n) at k states."""
    for k in range(q.shape[0]):
        link_rates(tree, theta, links, q[k], v[k], Q[k])


@njit(cache=True)
def link_parameters_over(tree, theta, links, q, u, dX, dU):
    """Fill the derivatives of X and of P u by the numbers of the placements, (k, 6 n_l, N, 6) each."""
    for k in range(q.shape[0]):
        link_parameters(tree, theta, links, q[k], u[k], dX[k], dU[k])
