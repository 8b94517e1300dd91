"""Nodes that are fixed in a frame of a tree."""

from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.lift import Embedding
from add.equations.tree_embedding import TreeEmbedding
from add.kernels.rotation import jacobian_coefficients, left_jacobian, rotation_matrix, skew, turn_derivative
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class TiedNodes(Embedding):
    """Nodes in the frame (x, w) of one element of a tree: x_i = x + R(w) X_i.

    With rho_i = R X_i and omega = J_l(w) w',

        P_i = P_x - [rho_i]x Omega,   Omega = J_l P_w,   V_i = x' + omega x rho_i
        Q_i = Q_x - [rho_i]x (T P_w + J_l Q_w) - [omega]x [rho_i]x Omega,   T = d(J_l u)/dw at u = w'

    and the forces f_i curve as the frame's wrench (sum f_i, J_l^T m), m = sum rho_i x f_i, does, with

        P_w^T (d(J_l^T m)/dw + J_l^T sum [f_i]x [rho_i]x J_l) P_w

    added. Numbers move the nodes as coordinates do, by what they move of the frame.

    Attributes
    ----------
    frame : TreeEmbedding
        Of one element.
    rest : (k, 3) X_i in its frame [m]
    """

    frame: TreeEmbedding
    rest: FloatArray

    @property
    def n_coordinates(self) -> int:
        """That of the tree."""
        return self.frame.n_coordinates

    @property
    def n_rows(self) -> int:
        """Three a node."""
        return self.rest.size

    def _arms(self, w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return rho (k, 3), -[rho]x (k, 3, 3) and J_l (3, 3)."""
        arms = self.rest @ rotation_matrix(w).T
        crosses = np.zeros((len(arms), 3, 3))
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            crosses[:, b, c], crosses[:, c, b] = arms[:, a], -arms[:, a]
        return arms, crosses, left_jacobian(w)

    def _moved(self, w: FloatArray, by: FloatArray) -> FloatArray:
        """Return the change (3 k, m) of the places by changes (6, m) of the frame."""
        _, crosses, turn = self._arms(w)
        return np.asarray(by[:3] + crosses @ (turn @ by[3:])).reshape(-1, by.shape[1])

    def _rates_moved(self, w: FloatArray, u: FloatArray, by: FloatArray, rates_by: FloatArray) -> FloatArray:
        """Return the change (3 k, m) of the velocities by those (6, m) of frame and rate; ``u`` (3,) is w'."""
        _, crosses, turn = self._arms(w)
        turned, slope = turn @ by[3:], _slope(1.0, w, u)
        faster = slope @ by[3:] + turn @ rates_by[3:]
        out = rates_by[:3] + crosses @ faster + skew(turn @ u) @ (crosses @ turned)
        return np.asarray(out).reshape(-1, by.shape[1])

    def place(self, q: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Phi and P."""
        x, p = self.frame.place(q, theta)
        return (x[:3] + self._arms(x[3:])[0]).ravel(), self._moved(x[3:], p)

    def motion(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Phi and P v."""
        x, rate = self.frame.motion(q, v, theta)
        return (x[:3] + self._arms(x[3:])[0]).ravel(), self._moved(x[3:], rate[:, None])[:, 0]

    def rates(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Return Q = d(P v)/dq."""
        x, p = self.frame.place(q, theta)
        return self._rates_moved(x[3:], p[3:] @ v, p, self.frame.rates(q, v, theta))

    def curvature(self, q: FloatArray, theta: FloatArray, force: FloatArray) -> FloatArray:
        """Return sum_i force_i d2Phi_i/dq2."""
        x, p = self.frame.place(q, theta)
        w, f = x[3:], force.reshape(-1, 3)
        turn, spun = left_jacobian(w), (self.rest @ rotation_matrix(w).T).T @ f
        moment = np.array([spun[1, 2] - spun[2, 1], spun[2, 0] - spun[0, 2], spun[0, 1] - spun[1, 0]])
        wrench = np.concatenate([f.sum(axis=0), turn.T @ moment])
        turned, spun = turn @ p[3:], spun - np.trace(spun) * np.eye(3)
        own = p[3:].T @ _slope(-1.0, w, moment) @ p[3:] + turned.T @ spun @ turned
        return np.asarray(self.frame.curvature(q, theta, wrench) + own)

    @property
    def structure(self) -> BoolArray:
        """The coordinates of the joints that carry the frame, for all rows."""
        return np.broadcast_to(self.frame.structure[:1], (self.n_rows, self.n_coordinates))

    @property
    def parameters(self) -> IntArray:
        """Indices of those of the frame."""
        return self.frame.parameters

    def by_parameters(self, q: FloatArray, u: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dPhi/dtheta and d(P u)/dtheta."""
        x, rate = self.frame.motion(q, u, theta)
        by_place, by_rate = self.frame.by_parameters(q, u, theta)
        return self._moved(x[3:], by_place), self._rates_moved(x[3:], rate[3:], by_place, by_rate)


def _slope(sign: float, w: FloatArray, u: FloatArray) -> FloatArray:
    """Return d(J u)/dw (3, 3) at fixed u: J_l for sign 1, J_l^T for sign -1."""
    k, out = np.empty(6), np.empty((3, 3))
    jacobian_coefficients(float(w @ w), k)
    turn_derivative(sign, w, np.ascontiguousarray(u), k, out)
    return out
