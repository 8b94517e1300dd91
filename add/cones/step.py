"""Complementarity problems as layers: of given matrices, and of a step of contact.

A is the metric of the step, M + h C + h^2 K; only solves with it are needed. Derivatives follow by the implicit
function theorem on the modes: with the residuals R_1 = A (v - v_f) - J^T l and u(v) = J v + b, a cotangent v_bar gives

    y = A^-T v_bar,   b = K^-T J y,   c = (dF/du)^T b,   a = y - A^-T J^T c,      x_bar -= a^T dR_1/dx + c^T du/dx

for every input x, at fixed v and l.

The two convex layers of staggered projections, on their own, are

    QP     l = argmin over l >= 0          of 1/2 l^T G l + g^T l        (Kaufman et al. 2008; Le Lidec et al. 2021)
    QCQP   l = argmin over |l_i| <= mu_i n_i of 1/2 l^T G l + g^T l      (two numbers a contact)

G is symmetric; its cotangents are symmetric, too.

A certificate is the residuals of a step, computed from its definition: nothing of the solvers is used. All are relative
and zero for a solution; V = max |v_f|, E = v_f^T A v_f.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from add.cones.sensitivity import ConeKind, Cones
from add.cones.solver import ConeSolution, solve
from add.linalg.base import LinearSolve
from add.typing import FloatArray


@final
class DenseMetric(LinearSolve):
    """A full matrix A, factored once."""

    def __init__(self, A: FloatArray) -> None:
        self._factors = lu_factor(A)

    def solve(self, b: FloatArray) -> FloatArray:
        """Return A^-1 b."""
        return np.asarray(lu_solve(self._factors, b))

    def solve_transposed(self, b: FloatArray) -> FloatArray:
        """Return A^-T b."""
        return np.asarray(lu_solve(self._factors, b, trans=1))


class StepCotangent(NamedTuple):
    """Cotangents of the inputs of a step, from one of the velocities after it.

    Attributes
    ----------
    balance : (n,)
        a: of every input x that enters R_1 = A (v - v_f) - J^T l, x_bar -= a^T dR_1/dx.
    rows : (m,)
        c: of every input x that enters u = J v + b, x_bar -= c^T du/dx.
    bound : (k,)
        Of the friction coefficients.
    """

    balance: FloatArray
    rows: FloatArray
    bound: FloatArray


@final
@dataclass(frozen=True)
class ContactStep:
    """The problem of a step.

    Attributes
    ----------
    metric : LinearSolve
        A, ready to be solved with.
    free : (n,) v_f, the velocity without contact
    rows : (m, n) J
    bias : (m,) b
        Restitution, stabilisation and given motions [m/s].
    cones : Cones of m rows
    """

    metric: LinearSolve
    free: FloatArray
    rows: FloatArray
    bias: FloatArray
    cones: Cones

    def solve(self) -> "StepSolution":
        """Return the velocities and impulses; see `add.cones.solver.solve`."""
        columns = self.metric.solve(np.ascontiguousarray(self.rows.T))
        cone = solve(self.rows @ columns, self.rows @ self.free + self.bias, self.cones)
        return StepSolution(self, columns, cone)


@final
@dataclass(frozen=True)
class StepSolution:
    """A solved step.

    Attributes
    ----------
    step : ContactStep
    columns : (n, m) A^-1 J^T
    cone : ConeSolution
        Impulses, modes, natural map, margins.
    """

    step: ContactStep
    columns: FloatArray
    cone: ConeSolution

    @cached_property
    def velocity(self) -> FloatArray:
        """The velocities v (n,) after the step."""
        return np.asarray(self.step.free + self.columns @ self.cone.impulse)

    def pullback(self, velocity_bar: FloatArray) -> StepCotangent:
        """Return the cotangents of the inputs from that of `velocity`."""
        rows, y = self.step.rows, self.step.metric.solve_transposed(velocity_bar)
        c, bound = self.cone.sensitivity.velocity_cotangent(rows @ y)
        return StepCotangent(y - self.step.metric.solve_transposed(rows.T @ c), c, bound)


@final
@dataclass(frozen=True)
class QPLayer:
    """Normal impulses at given friction.

    Attributes
    ----------
    solution : ConeSolution
        ``solution.impulse`` (k,) is l.
    """

    solution: ConeSolution

    @classmethod
    def of(cls, G: FloatArray, g: FloatArray) -> "QPLayer":
        """Solve for G (k, k) and g (k,)."""
        return cls(solve(G, g, Cones.half_lines(np.asarray(g).size)))

    def pullback(self, impulse_bar: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents of G and g."""
        bar = self.solution.sensitivity.pullback(impulse_bar)
        return 0.5 * (bar.delassus + bar.delassus.T), bar.offset


@final
@dataclass(frozen=True)
class QCQPLayer:
    """Friction impulses at given normal impulses.

    Attributes
    ----------
    solution : ConeSolution
        ``solution.impulse`` (2 k,) is l.
    mu, normal : (k,)
    """

    solution: ConeSolution
    mu: FloatArray
    normal: FloatArray

    @classmethod
    def of(cls, G: FloatArray, g: FloatArray, mu: FloatArray, normal: FloatArray) -> "QCQPLayer":
        """Solve for G (2 k, 2 k), g (2 k,), coefficients ``mu`` (k,) and normal impulses ``normal`` (k,) >= 0."""
        mu, normal = np.asarray(mu, dtype=float), np.asarray(normal, dtype=float)
        return cls(solve(G, g, Cones.discs(mu * normal)), mu, normal)

    def pullback(self, impulse_bar: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the cotangents of G, g, mu and the normal impulses; zero for discs of radius zero."""
        bar = self.solution.sensitivity.pullback(impulse_bar)
        return 0.5 * (bar.delassus + bar.delassus.T), bar.offset, self.normal * bar.bound, self.mu * bar.bound


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
