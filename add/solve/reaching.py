"""First guesses that are reached from the state before the step without passing through a surface."""

from __future__ import annotations

from add.equations.step_limit import StepLimit
from add.errors import SolverError
from add.solve.step_equations import StepEquations
from add.typing import FloatArray, IntArray

#: How often a guess is shortened where prescribed coordinates move, which go all their way whatever the others do.
MOST_SHORTENED = 8


def reached(
    limit: StepLimit, equations: StepEquations, origin: FloatArray, u: FloatArray, free: IntArray, theta: FloatArray
) -> FloatArray:
    """Return the guess, or as much of its way from ``origin`` (n,) as is free.

    Raises
    ------
    SolverError
        If prescribed motion passes through what stands still.
    """
    begin, aim = origin - equations.q_star, u.copy()
    for shortened in range(MOST_SHORTENED + 1):
        share = limit.share(origin, equations.q_star + aim, theta)
        if share >= 1.0:
            return aim
        # At last the free ones stay where they are.
        length = share if shortened < MOST_SHORTENED - 1 else 0.0
        aim[free] = begin[free] + length * (aim - begin)[free]
        if free.size == aim.size:
            return aim
    raise SolverError(
        f"step {equations.step} (t={equations.t:.6g} s): a body of given motion passes through others within one step; "
        f"try time.dt = {0.25 * equations.dt:.3g} s or less"
    )
