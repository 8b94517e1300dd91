"""The equations of a step as values, when they count as solved, and how a solve ended."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import final

import numpy as np

from add.compiled.newton import MOST_SHORTENED
from add.equations.kinematics import Kinematics, Weights
from add.equations.lifted import StepLimit
from add.equations.system import BranchEquations
from add.errors import SolverError
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class Zones:
    """Parts of the unknowns that no entry of a matrix joins: bodies by themselves, piles, each an impact zone.

    A direction of Newton's method is made of theirs. Each is searched along by a length of its own, and one that has
    converged waits for the others.

    Attributes
    ----------
    number : int
    labels : (n_free + n_multipliers,) the zone of each unknown
    order : int
        1 or 2, the norm.
    """

    number: int
    labels: IntArray
    order: int

    def norms(self, x: FloatArray | BoolArray) -> FloatArray:
        """Return the norm of each zone's entries of x, which are those of the first unknowns."""
        sizes = x * x if self.order == 2 else np.abs(x)
        total = np.bincount(self.labels[: x.size], sizes, self.number).astype(float)
        return np.sqrt(total) if self.order == 2 else total

    def settled(self, tolerance: float) -> float:
        """Return the merit of a zone that waits, so that all of them together are below the tolerance."""
        if self.number == 1:
            return 0.0
        return 0.5 * tolerance / (math.sqrt(self.number) if self.order == 2 else self.number)


class Status(Enum):
    """How a solve ended."""

    CONVERGED = "converged"
    ROUND_OFF = "as small as round-off allows"
    MAX_ITERATIONS = "iteration limit reached"
    NO_DECREASE = "line search found no decrease"
    NOT_FINITE = "no finite first guess (inverted elements)"
    SINGULAR = "the Jacobian is singular"
    BLOCKED = "surfaces are in the way of every step"

    @property
    def success(self) -> bool:
        """Whether the result may be used."""
        return self in (Status.CONVERGED, Status.ROUND_OFF)


@final
@dataclass(frozen=True)
class NewtonOptions:
    """When to stop.

    Attributes
    ----------
    atol : float
        Absolute tolerance on |r| [N].
    rtol : float
        Tolerance relative to the norm of the largest force family at the first guess [-].
    norm : int
        1 or 2: the norm of r over the free coordinates.
    max_iterations : int
        Per attempt.
    reuse : float
        The factors of an iteration serve the next one, too, where it left less than this share of the residual; where
        they no longer halve it, the matrix is factored anew. Fewer factorisations for more iterations, and a tail that
        is not quadratic; 0 is Newton's method. Nothing is kept from step to step.
    """

    atol: float = 1e-9
    rtol: float = 1e-10
    norm: int = 2
    max_iterations: int = 50
    reuse: float = 0.0


@final
@dataclass(frozen=True)
class StepEquations:
    """The unknown of a step and how the kinematics follow from it.

        q = q_star + u,   v = c u,   a = c (v - v_star)

    with q_star = sum alpha_k q_k, v_star likewise, c = 1/(beta dt).  c = 0 is static equilibrium: v = a = 0.
    Prescribed entries of u are fixed in ``u_prescribed``.

    ``dt`` is the step [s], zero of static equilibrium. ``pull`` and ``anchor`` make the equations of a proximal step
    (`add.solve.proximal`), whose inertia forces also draw u to the anchor (n,):
    a = c (v - v_star) + pull c^2 (u - anchor). A step of time has none.
    """

    q_star: FloatArray
    v_star: FloatArray
    c: float
    t: float
    step: int
    u_prescribed: FloatArray
    dt: float = 0.0
    pull: float = 0.0
    anchor: FloatArray | None = None

    @property
    def weights(self) -> Weights:
        """The factors of dr/dq, dr/dv, dr/da in J = dr/du."""
        return Weights(1.0, self.c, self.c * self.c * (1.0 + self.pull), 1.0)

    def kinematics(self, u: FloatArray) -> Kinematics:
        """Return (q, v, a) at ``u`` (n,)."""
        v = self.c * u
        a = self.c * (v - self.v_star)
        if self.anchor is not None:
            a += self.pull * self.c * self.c * (u - self.anchor)
        return Kinematics(self.q_star + u, v, a, self.t, self.step)

    def reached(
        self, limit: StepLimit, origin: FloatArray, u: FloatArray, free: IntArray, theta: FloatArray
    ) -> FloatArray:
        """Return the guess, or as much of its way from ``origin`` (n,) as is free.

        Raises
        ------
        SolverError
            If prescribed motion passes through what stands still.
        """
        begin, aim = origin - self.q_star, u.copy()
        moves = aim != begin
        moves[free] = False
        for shortened in range(MOST_SHORTENED + 1):
            share = limit.share(origin, self.q_star + aim, theta)
            if share >= 1.0:
                return aim
            # At last the free ones stay where they are.
            length = share if shortened < MOST_SHORTENED - 1 else 0.0
            aim[free] = begin[free] + length * (aim - begin)[free]
            if not moves.any():
                return aim
        raise SolverError(
            f"step {self.step} (t={self.t:.6g} s): a body of given motion passes through others within one step; "
            f"try time.dt = {0.25 * self.dt:.3g} s or less"
        )


@final
@dataclass(frozen=True)
class NewtonResult:
    """The solution with the equations of the decisions that hold there.

    Attributes
    ----------
    left : (n_free,) bool or None
        Of a solve that failed: the free coordinates of the zones that did not converge; None for all.
    """

    kin: Kinematics
    mu: FloatArray
    branch: BranchEquations
    report: NewtonReport
    left: BoolArray | None = None


@dataclass(frozen=True)
class NewtonReport:
    """The report of a solve.

    ``attempt`` counts the attempts: 0 is the normal path, then come the other first guesses, a few proximal steps,
    regularised steps, continuation in the contact stiffness, and proximal steps from every guess.
    """

    status: Status
    iterations: int
    factorizations: int
    residual: float
    tolerance: float
    worst: int
    attempt: int
    history: tuple[float, ...]

    def behind(self, iterations: int, factorizations: int, merits: FloatArray) -> NewtonReport:
        """Return the report of a solve that went on from the iterate behind so many others, with their residuals."""
        return replace(
            self,
            iterations=self.iterations + iterations,
            factorizations=self.factorizations + factorizations,
            history=(*merits.tolist(), *self.history),
        )
