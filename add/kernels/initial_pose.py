"""The derivative of how a body of nodes starts: x = p + R X, v = velocity + omega x R (X - X_c)."""

import numpy as np

from add.kernels.caching import njit
from add.kernels.rotation import left_jacobian, rotation_matrix


@njit(cache=True)
def nodes_pose_vjp(rest, centre, start, theta, position, orientation, velocity, angular_velocity, q_bar, v_bar, out):
    """Add the cotangents of p, the rotation vector, velocity and omega to ``out``.

    From those of x and v of all nodes, in q_bar and v_bar from coordinate ``start`` on. A turn dR = [turn]x R gives

        dx = turn x R X,    dv = omega x (turn x R (X - X_c)),

    and is itself J_l times the change of the rotation vector.
    """
    w, omega = np.empty(3), np.empty(3)
    for i in range(3):
        w[i], omega[i] = theta[orientation[i]], theta[angular_velocity[i]]
    R = rotation_matrix(w)
    turn, moment = np.zeros(3), np.zeros((3, 3))  # moment = sum a v_bar^T
    x, a = np.empty(3), np.empty(3)
    for k in range(rest.shape[0]):
        at = start + 3 * k
        for i in range(3):
            x[i] = a[i] = 0.0
            for j in range(3):
                x[i] += R[i, j] * rest[k, j]
                a[i] += R[i, j] * (rest[k, j] - centre[j])
        for i in range(3):
            m, n = (i + 1) % 3, (i + 2) % 3
            turn[i] += x[m] * q_bar[at + n] - x[n] * q_bar[at + m]
            out[position[i]] += q_bar[at + i]
            out[velocity[i]] += v_bar[at + i]
            for j in range(3):
                moment[i, j] += a[i] * v_bar[at + j]
    trace = moment[0, 0] + moment[1, 1] + moment[2, 2]
    for i in range(3):
        m, n = (i + 1) % 3, (i + 2) % 3
        out[angular_velocity[i]] += moment[m, n] - moment[n, m]
        # omega x (turn x a) . v_bar = turn . (v_bar (a . omega) - omega (a . v_bar))
        turn[i] -= trace * omega[i]
        for j in range(3):
            turn[i] += moment[j, i] * omega[j]
    jacobian = left_jacobian(w)
    for i in range(3):
        for j in range(3):
            out[orientation[i]] += jacobian[j, i] * turn[j]
