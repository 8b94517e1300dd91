"""States as controllers see them, what they cost, and the backward pass over these costs.

How far one state is from another is measured in body axes where there are rotations:

    difference(s, r):  phi = log(R_r^T R_s),   omega_s - omega_r in body axes;   q and v themselves elsewhere

To first order it is T (s - r) with `add.equations.charts.Twists` at r, in whichever charts the two states are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
import scipy.linalg
from scipy.spatial.transform import Rotation

from add.equations.kinematics import State
from add.errors import InputError
from add.kernels.rotation import left_jacobian
from add.objectives.over_time import CoordinateErrors
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class CoordinateCost(CoordinateErrors):
    """phi = sum over steps of sum_i w_q,i (q_i - q*_i)^2 + w_v,i (v_i - v*_i)^2, from ``first`` to ``last``.

    For turning bodies take markers (points of an objective) instead: rotation vectors change their charts, and are
    refused by `ControlProblem`.

    Attributes
    ----------
    index : (k,) coordinates
    q, v : (k,) targets [m], [m/s]
    weight_q, weight_v : (k,) at least 0
    first, last : int
        The states that count, both included; equal for a final cost.
    """

    index: IntArray
    q: FloatArray
    v: FloatArray
    weight_q: FloatArray
    weight_v: FloatArray
    first: int
    last: int

    def __post_init__(self) -> None:
        sizes = {np.asarray(part).shape for part in (self.index, self.q, self.v, self.weight_q, self.weight_v)}
        if sizes != {(np.size(self.index),)} or np.min(self.weight_q) < 0.0 or np.min(self.weight_v) < 0.0:
            raise InputError(
                "a cost of coordinates needs a target and two weights of at least 0 for each",
                found=f"shapes {sorted(sizes)}", expected=f"({np.size(self.index)},) each",
            )  # fmt: skip

    def steps(self, theta: FloatArray) -> IntArray:
        """Return the states that count."""
        return np.arange(self.first, self.last + 1)

    def targets(self, state: State) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return the targets of a state that counts, and the roots of the weights."""
        roots = np.sqrt(np.concatenate([self.weight_q, self.weight_v]))
        return (self.q, self.v, roots) if self.first <= state.step <= self.last else None


def _product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the rotation vectors (..., 3), at most pi long, of exp([a]x) exp([b]x)."""
    product = Rotation.from_rotvec(a.reshape(-1, 3)) * Rotation.from_rotvec(b.reshape(-1, 3))
    return np.asarray(product.as_rotvec().reshape(a.shape))


def _right_jacobians(w: FloatArray) -> FloatArray:
    """Return J_r(w) = J_l(-w) (..., 3, 3) of rotation vectors (..., 3)."""
    return np.array([left_jacobian(-vector) for vector in w.reshape(-1, 3)]).reshape(*w.shape, 3)


def _rotations(state: State, rotations: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return rotation vectors and their body rates, (m, b, 3) each."""
    index = rotations[:, None] + np.arange(3)
    w, w_dot = state.q[:, index], state.v[:, index]
    return w, np.asarray((_right_jacobians(w) @ w_dot[..., None])[..., 0])


def difference(state: State, reference: State, rotations: IntArray) -> FloatArray:
    """Return the difference (2 m n,) of the pairs of two states, rotations as twists at the reference."""
    dq, dv = state.q - reference.q, state.v - reference.v
    if rotations.size:
        index = rotations[:, None] + np.arange(3)
        (w, rate), (w_r, rate_r) = _rotations(state, rotations), _rotations(reference, rotations)
        dq[:, index], dv[:, index] = _product(-w_r, w), rate - rate_r
    return np.stack([dq, dv], axis=1).ravel()


def moved(reference: State, change: FloatArray, rotations: IntArray) -> State:
    """Return the state whose `difference` from the reference is ``change`` (2 m n,); all pairs in one chart."""
    m, n = reference.q.shape
    pairs = change.reshape(m, 2, n)
    q, v = reference.q + pairs[:, 0], reference.v + pairs[:, 1]
    if rotations.size:
        index = rotations[:, None] + np.arange(3)
        w_r, rate_r = _rotations(reference, rotations)
        w = _product(w_r, pairs[:, 0][:, index])
        for k in range(1, m):  # a formula needs all pairs in the chart of the newest
            length = np.linalg.norm(w[k], axis=-1, keepdims=True)
            other = w[k] * (1.0 - 2.0 * np.pi / np.where(length > 1e-9, length, 1.0))
            nearer = np.linalg.norm(other - w[0], axis=-1) < np.linalg.norm(w[k] - w[0], axis=-1)
            w[k] = np.where((nearer & (length[:, 0] > 1e-9))[:, None], other, w[k])
        rates = (rate_r + pairs[:, 1][:, index])[..., None]
        q[:, index], v[:, index] = w, np.linalg.solve(_right_jacobians(w), rates)[..., 0]
    return replace(reference, q=q, v=v)


# --- The backward pass: quadratic models of the cost to go, and the controls that minimise them within limits ---------
# Within a stage the model is over z = (dx, du): steps carry it back by z_(k+1) = [A, B; 0, I] z_k + (d, 0), d the gap
# at a node of multiple shooting; at its beginning it is minimised over du. Limits by a projected Newton method
# (box-DDP; Tassa, Mansard & Todorov, Control-limited differential dynamic programming, ICRA 2014).


class StepModel(NamedTuple):
    """A step, linear about the nominal one, and the cost of the state before it.

    Attributes
    ----------
    A, B : (s, s), (s, k)
    gap : (s,) or None
        What the step ends beside the nominal state after it.
    gradient, hessian : (s,), (s, s) of the cost of the state before the step
    """

    A: FloatArray
    B: FloatArray
    gap: FloatArray | None
    gradient: FloatArray
    hessian: FloatArray


class StageModel(NamedTuple):
    """The steps of one stage with the cost of its controls.

    Attributes
    ----------
    steps : tuple of StepModel
    gradient, hessian : (k,), (k, k) of the cost of the controls themselves
    lower, upper : (k,) how far they may move
    """

    steps: tuple[StepModel, ...]
    gradient: FloatArray
    hessian: FloatArray
    lower: FloatArray
    upper: FloatArray


@final
@dataclass(frozen=True)
class Policy:
    """du = share k + K dx for every stage, and what it promises.

    Attributes
    ----------
    k, K : for each stage (k,), (k, s)
    linear, quadratic : float
        The change of cost, regularisation included, that the model expects of a share a: a linear + a^2 quadratic.
    slope : float
        Largest entry of the gradient by controls that no limit holds.
    largest : float
        Largest entry of the gradient of the cost to go by a state.
    """

    k: tuple[FloatArray, ...]
    K: tuple[FloatArray, ...]
    linear: float
    quadratic: float
    slope: float
    largest: float

    def expected(self, share: float) -> float:
        """Return the expected decrease."""
        return -(share * self.linear + share * share * self.quadratic)


def backward(stages: Sequence[StageModel], last: tuple[FloatArray, FloatArray], regularisation: float) -> Policy | None:
    """Return the policy; None where a Hessian is not positive definite.

    The cost of regularisation goes on to the stages before, so that a step is that of Levenberg and Marquardt over all
    controls. In Q_uu alone, the last stages that can reach a goal would see to it, whatever it takes of them, and those
    before would find no slope left.

    Parameters
    ----------
    last : gradient and Hessian of the cost of the last state
    regularisation : mu of a cost mu/2 |du|^2 that every stage has beside its own
    """
    v, V = last
    gains: list[tuple[FloatArray, FloatArray]] = []
    linear = quadratic = slope = largest = 0.0
    for stage in reversed(stages):
        size, k = v.size, stage.gradient.size
        g = np.concatenate([v, np.zeros(k)])
        H = np.zeros((size + k, size + k))
        H[:size, :size] = V
        P = np.eye(size + k)
        for step in reversed(stage.steps):
            if step.gap is not None:
                g = g + H[:, :size] @ step.gap
            P[:size, :size], P[:size, size:] = step.A, step.B
            g, H = P.T @ g, P.T @ H @ P
            g[:size] += step.gradient
            H[:size, :size] += step.hessian
        H = 0.5 * (H + H.T)
        Q_u, Q_ux = g[size:] + stage.gradient, H[size:, :size]
        Q_uu = H[size:, size:] + stage.hessian + regularisation * np.eye(k)
        minimum = minimise_in_box(Q_uu, Q_u, stage.lower, stage.upper)
        if minimum is None:
            return None
        du, free = minimum
        K = np.zeros((k, size))
        if free.any():
            K[free] = -scipy.linalg.solve(Q_uu[np.ix_(free, free)], Q_ux[free], assume_a="pos")
        linear += float(Q_u @ du)
        quadratic += 0.5 * float(du @ Q_uu @ du)
        slope = max(slope, float(np.abs(Q_u[free]).max(initial=0.0)))
        v = g[:size] + K.T @ (Q_uu @ du + Q_u) + Q_ux.T @ du
        V = H[:size, :size] + K.T @ Q_uu @ K + K.T @ Q_ux + Q_ux.T @ K
        V = 0.5 * (V + V.T)
        largest = max(largest, float(np.abs(v).max(initial=0.0)))
        gains.append((du, K))
    gains.reverse()
    return Policy(tuple(k for k, _ in gains), tuple(K for _, K in gains), linear, quadratic, slope, largest)


def minimise_in_box(
    H: FloatArray, g: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, BoolArray] | None:
    """Return the minimum of g.u + u.H u/2 in a box that holds zero, and which entries no limit holds there.

    Projected Newton (Bertsekas 1982): the free set is that of the gradient at the point; an Armijo search along the
    projected direction. None where H is not positive definite on the free set.
    """
    u = np.clip(np.zeros_like(g), lower, upper)
    free = np.ones(g.size, dtype=bool)
    if not g.size:
        return u, free
    for _ in range(100):
        slope = g + H @ u
        free = ~(((u <= lower) & (slope > 0.0)) | ((u >= upper) & (slope < 0.0)))
        if not free.any():
            return u, free
        try:
            factor = scipy.linalg.cho_factor(H[np.ix_(free, free)])
        except (np.linalg.LinAlgError, ValueError):
            return None
        if np.abs(slope[free]).max() <= 1e-12 * max(1.0, float(np.abs(g).max())):
            return u, free
        direction = np.zeros_like(u)
        direction[free] = -scipy.linalg.cho_solve(factor, slope[free])
        value, share = float(g @ u + 0.5 * u @ H @ u), 1.0
        while True:
            trial = np.clip(u + share * direction, lower, upper)
            change = float(g @ trial + 0.5 * trial @ H @ trial) - value
            if change <= 1e-4 * float(slope @ (trial - u)) or share < 1e-12:
                break
            share *= 0.5
        still = np.abs(trial - u).max() <= 1e-14 * max(1.0, float(np.abs(u).max()))
        u = trial
        if still:
            return u, free
    return u, free
