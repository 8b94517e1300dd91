"""The backward pass: quadratic models of the cost to go, and the controls that minimise them within limits.

Within a stage the model is over z = (dx, du): steps carry it back by z_(k+1) = [A, B; 0, I] z_k + (d, 0), d the gap at
a node of multiple shooting; at its beginning it is minimised over du. Limits by a projected Newton method (box-DDP;
Tassa, Mansard & Todorov, Control-limited differential dynamic programming, ICRA 2014).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg

from add.typing import BoolArray, FloatArray


@final
@dataclass(frozen=True)
class StepModel:
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


@final
@dataclass(frozen=True)
class StageModel:
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
    found: list[tuple[FloatArray, FloatArray]] = []
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
        found.append((du, K))
    found.reverse()
    return Policy(tuple(k for k, _ in found), tuple(K for _, K in found), linear, quadratic, slope, largest)


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
