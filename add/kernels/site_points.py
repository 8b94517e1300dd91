"""Tangents and cotangents of sites as points: the map (q, v, theta) -> (y, y_dot) of `add.kernels.sites`."""

import numpy as np

from add.kernels.caching import njit
from add.kernels.law_numbers import entry
from add.kernels.rotation import fill_rotation
from add.kernels.sites import NODES, POINT, SPIN, WORLD, cross, jacobians


@njit(cache=True, error_model="numpy")
def points_vjp(y_bar, rate_bar, q, v, kind, dofs, shares, arm, centre, frame, q_bar, v_bar, theta_bar):
    """Add J^T y_bar + J_v^T rate_bar to q_bar, J^T rate_bar to v_bar, R^T (y_bar + rate_bar x omega) to the arms."""
    m = dofs.shape[1]
    J, J_v, G, work = np.empty((3, m)), np.empty((3, m)), np.empty((3, 3)), np.empty((2, 3, 3))
    none = np.zeros((kind.size, 3))
    bar, R = np.empty(3), np.empty((3, 3))
    for b in range(kind.size):
        code = kind[b]
        n = jacobians(b, q, v, kind, dofs, shares, frame, none, J, J_v, G, work)
        for j in range(n):
            for i in range(3):
                if code != SPIN:  # the place of an angular velocity is no number
                    q_bar[dofs[b, j]] += J[i, j] * y_bar[b, i]
                q_bar[dofs[b, j]] += J_v[i, j] * rate_bar[b, i]
                v_bar[dofs[b, j]] += J[i, j] * rate_bar[b, i]
        if code == NODES or code == SPIN:
            continue
        if code == WORLD:
            for i in range(3):
                if arm[b, i] >= 0:
                    theta_bar[arm[b, i]] += y_bar[b, i]
            continue
        cross(rate_bar[b], frame[b, 9:], bar)
        for i in range(3):
            bar[i] += y_bar[b, i]
        first = dofs[b, 3] if code == POINT else dofs[b, 0]
        fill_rotation(q[first : first + 3], frame[b, 3:9], R)
        for i in range(3):
            value = R[0, i] * bar[0] + R[1, i] * bar[1] + R[2, i] * bar[2]
            if arm[b, i] >= 0:
                theta_bar[arm[b, i]] += value
            if code == POINT and centre[b, i] >= 0:
                theta_bar[centre[b, i]] -= value


@njit(cache=True, error_model="numpy")
def points_jvp(q_dot, v_dot, theta_dot, q, v, kind, dofs, shares, arm, centre, frame, y_dot, rate_dot):
    """Fill the tangents of y and of its rate (n, 3)."""
    m = dofs.shape[1]
    J, J_v, G, work = np.empty((3, m)), np.empty((3, m)), np.empty((3, 3)), np.empty((2, 3, 3))
    none = np.zeros((kind.size, 3))
    X, rho, turned, R = np.empty(3), np.empty(3), np.empty(3), np.empty((3, 3))
    for b in range(kind.size):
        code = kind[b]
        n = jacobians(b, q, v, kind, dofs, shares, frame, none, J, J_v, G, work)
        for i in range(3):
            y_dot[b, i] = 0.0
            rate_dot[b, i] = 0.0
            for j in range(n):
                if code != SPIN:
                    y_dot[b, i] += J[i, j] * q_dot[dofs[b, j]]
                rate_dot[b, i] += J_v[i, j] * q_dot[dofs[b, j]] + J[i, j] * v_dot[dofs[b, j]]
        if code == NODES or code == SPIN:
            continue
        for i in range(3):
            X[i] = entry(theta_dot, arm[b, i])
            if code == POINT:
                X[i] -= entry(theta_dot, centre[b, i])
        if code == WORLD:
            for i in range(3):
                y_dot[b, i] += X[i]
            continue
        first = dofs[b, 3] if code == POINT else dofs[b, 0]
        fill_rotation(q[first : first + 3], frame[b, 3:9], R)
        for i in range(3):
            rho[i] = R[i, 0] * X[0] + R[i, 1] * X[1] + R[i, 2] * X[2]
        cross(frame[b, 9:], rho, turned)
        for i in range(3):
            y_dot[b, i] += rho[i]
            rate_dot[b, i] += turned[i]
