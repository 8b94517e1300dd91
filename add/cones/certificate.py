"""Residuals of a step of contact, computed from its definition: nothing of the solvers is used.

All are relative and zero for a solution; V = max |v_f|, E = v_f^T A v_f.
"""

from typing import Any, NamedTuple, final

import numpy as np

from add.cones.cones import ConeKind
from add.cones.step import ContactStep
from add.typing import FloatArray


@final
class Certificate(NamedTuple):
    """How well velocities and impulses solve a step.

    Attributes
    ----------
    balance : max |A (v - v_f) - J^T l| / sqrt(A_ii), over max sqrt(A_ii) |v_f|
    cone : what is outside the cones, over max |l|
    normal : velocities into the contact, over V; and those of joints
    complementarity : max |u_n l_n| / E
    dissipation : max |l_t . u_t + r |u_t|| / E, r = mu l_n
    """

    balance: float
    cone: float
    normal: float
    complementarity: float
    dissipation: float

    @property
    def worst(self) -> float:
        """The largest residual; NaN counts as infinite."""
        values = np.array(self)
        return float(values.max()) if np.isfinite(values).all() else np.inf


def certify(A: Any, step: ContactStep, velocity: FloatArray, impulse: FloatArray) -> Certificate:
    """Return the residuals of (v, l); ``A`` is the metric itself, an array or a sparse matrix."""
    J, free, cones = step.rows, step.free, step.cones
    root = np.sqrt(A.diagonal())
    momentum = A @ free
    energy = max(float(free @ momentum), 1e-300)
    speed, largest = max(np.abs(free).max(initial=0.0), 1e-300), max(np.abs(impulse).max(initial=0.0), 1e-300)
    balance = np.abs((A @ velocity - momentum - J.T @ impulse) / root).max(initial=0.0)
    u = J @ velocity + step.bias
    outside, into, product, loss = 0.0, 0.0, 0.0, 0.0
    for kind, first, size, bound in zip(cones.kind, cones.first, cones.sizes, cones.bound, strict=True):
        last = first + size - 1
        if kind == ConeKind.FREE:
            into = max(into, abs(u[last]))
            continue
        radius = bound
        if kind != ConeKind.DISC:
            into, outside = max(into, -u[last]), max(outside, -impulse[last])
            product = max(product, abs(u[last] * impulse[last]))
            radius = bound * impulse[last]
        if kind == ConeKind.HALF_LINE:
            continue
        l_t, u_t = impulse[first : first + 2], u[first : first + 2]
        if kind == ConeKind.PYRAMID:
            outside = max(outside, float((np.abs(l_t) - radius).max()))
            loss = max(loss, float(np.abs(l_t * u_t + radius * np.abs(u_t)).max()))
        else:
            outside = max(outside, float(np.hypot(*l_t)) - radius)
            loss = max(loss, abs(float(l_t @ u_t) + radius * float(np.hypot(*u_t))))
    start = max(float(np.abs(root * free).max(initial=0.0)), 1e-300)
    return Certificate(float(balance) / start, outside / largest, into / speed, product / energy, loss / energy)
