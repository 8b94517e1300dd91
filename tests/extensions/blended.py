"""A time integrator and a linear solver of its own: BDF between orders one and two, and SciPy's SuperLU."""

from dataclasses import dataclass, replace
from typing import Literal, final

import scipy.sparse as sp
from pydantic import Field
from scipy.sparse.linalg import splu

from add.errors import SolverError
from add.extensions import IntegratorExtension, Share, SolverExtension
from add.linalg import Factorization
from add.simulation import DifferentiableStepper, NewtonSolve, finished, linearise
from add.solve.step_equations import StepEquations


@final
@dataclass(frozen=True)
class Blended(DifferentiableStepper):
    """v = c (q - sum alpha_k q_k) with BDF1's coefficients and a share s of the difference to BDF2's.

    (1 + s/2) q - (1 + s) q_0 + s/2 q_1 = dt v: of order one, with (1 - s) of BDF1's damping.
    """

    step_size: float
    share: float
    newton: object

    @property
    def order(self):
        """One."""
        return 1

    @property
    def dt(self):
        """Step [s]."""
        return self.step_size

    def solved_by(self, options):
        """Return the stepper with other options of Newton's method."""
        return replace(self, newton=options)

    def step(self, assembler, state, theta, replay=None):
        """Take one step."""
        s = self.share
        alpha = (1.0 + s) / (1.0 + 0.5 * s), -0.5 * s / (1.0 + 0.5 * s)
        q_star, v_star = (alpha[0] * x[0] + alpha[1] * x[1] for x in (state.q, state.v))
        t, c = (state.step + 1) * self.dt, (1.0 + 0.5 * s) / self.dt
        held = assembler.prescribed(t, theta) - q_star[assembler.system.partition.prescribed]
        equations = StepEquations(q_star, v_star, c, t, state.step + 1, held, self.dt)
        known = replay.solution if replay else None
        guesses = [v_star / c, state.v[0] / c]
        solution = NewtonSolve(self.newton).solve(assembler, equations, theta, guesses, state, known)
        return finished(assembler.system, state, solution, alpha, replay.charts if replay else None)

    def linearise(self, assembler, record, theta):
        """Assemble and factor the matrix of a step."""
        return linearise(assembler, record.solution, theta)

    def pull(self, step, bar, theta_bar):
        """Pull a cotangent back through one step."""
        return step.instant().pull(*bar, theta_bar)

    def push(self, step, tangents, directions):
        """Push tangents forward through one step."""
        return step.instant().push(tangents, directions)


class BlendedBDF(IntegratorExtension):
    """Backward differentiation between orders one and two."""

    type: Literal["blended-bdf"] = Field("blended-bdf", description="kind of integrator")
    share: Share = Field(0.5, description="0 is BDF1, towards 1 it damps less [-]")

    def stepper(self, dt, newton):
        """Return the stepper."""
        return Blended(dt, self.share, newton)


@final
class Plain(Factorization):
    """SuperLU as SciPy calls it: an ordering for every matrix."""

    def factor(self, pattern, data):
        """Factor a matrix."""
        try:
            self._lu = splu(
                sp.csc_array((data[: pattern.nnz], pattern.indices, pattern.indptr), shape=(pattern.n, pattern.n))
            )
        except RuntimeError as error:
            raise SolverError(str(error)) from None

    def solve(self, b):
        """Return x with A x = b."""
        return self._lu.solve(b)

    def solve_transposed(self, b):
        """Return x with A^T x = b."""
        return self._lu.solve(b, trans="T")


class PlainSuperLU(SolverExtension):
    """SuperLU of SciPy."""

    type: Literal["plain-superlu"] = Field("plain-superlu", description="kind of linear solver")

    def factorization(self, n):
        """Return the back end."""
        return Plain()
