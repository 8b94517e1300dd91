"""The equations of a step with contact in velocities: Newton on the smooth forces, a cone problem in each iteration.

    r(q, v, a) - J^T F = 0,    v = c u,    u_c = J v - V + bias in the dual cones of F

J is that of the beginning of the step (`add.hard_contact.impulse_rows`), so the contact forces are linear in F and do
no work that they should not do. With K = dr/du of an iterate, du = K^-1 (J^T F - r): Delassus's operator is
G = c J K^-1 J^T, velocities per force.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from add.compiled.impulses import AGREE, LEFT_OVER, LENGTHS, ROUND_OFF
from add.cones import Cones, ConeSolution, solve, solve_on_modes
from add.equations.kinematics import Kinematics
from add.equations.system import BranchEquations
from add.equations.term import Decisions
from add.errors import SolverError
from add.hard_contact.step_rows import StepRows
from add.kernels.cone_modes import SLIDE
from add.linalg import LinearSolve
from add.solve.fallbacks import SMALLER_STEP
from add.solve.step_equations import NewtonOptions, NewtonReport, Status, StepEquations
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray

#: Cone problems without a solution, one after the other, at which a step is given up: each takes all iterations there
#: are, seconds where thirty points touch, and shorter steps may find one.
_UNSOLVED = 3


@final
@dataclass(frozen=True)
class ImpulseStepSolution:
    """A solved step.

    Attributes
    ----------
    u, mu : increment (n,) and multipliers
    kin, branch : there
    force : (n_rows,) of the near pairs, in their axes, and of stops [N], [N m]
    cone : ConeSolution or None
        None without any pair or stop near.
    report : NewtonReport
    """

    u: FloatArray
    mu: FloatArray
    kin: Kinematics
    branch: BranchEquations
    force: FloatArray
    cone: ConeSolution | None
    report: NewtonReport


class Delassus:
    """G = c J K^-1 J^T of a factored K, and solves with K over all coordinates.

    Attributes
    ----------
    columns : (n_unknowns, n_rows) K^-1 J^T
    matrix : (n_rows, n_rows) G
    freely : (n_unknowns,) -K^-1 r of a residual, solved for at once with the columns
    """

    def __init__(
        self, assembler: Assembler, factors: LinearSolve, J: FloatArray, c: float, r: FloatArray | None = None
    ) -> None:
        self.free = assembler.system.partition.free
        self.n_rows = assembler.system.n_multipliers
        self.factors, self.c, self._whole = factors, c, J
        self.J = J[:, self.free] if self.free.size < J.shape[1] else J
        k = J.shape[0]
        wide = np.zeros((self.free.size + self.n_rows, k if r is None else k + 1))
        wide[: self.free.size, :k] = self.J.T
        if r is not None:
            wide[:, k] = -r
        solved = factors.solve(wide) if wide.shape[1] else wide
        self.columns = solved if r is None else solved[:, :k]
        self.freely = np.zeros(0) if r is None else solved[:, k]
        self.matrix = c * self.J @ self.columns[: self.free.size]

    def velocities(self, u: FloatArray) -> FloatArray:
        """Return c J u (n_rows,) of the increment to which no contact force would lead from u (n,)."""
        ahead = u.copy()
        ahead[self.free] += self.freely[: self.free.size]
        return np.asarray(self._whole @ (self.c * ahead))

    def load_size(self, u_bar: FloatArray, y: FloatArray, by_rows: FloatArray) -> float:
        """Return the size a^T K^T a of the cotangent of loads a = y - c K^-T J^T by_rows, y = K^-T u_bar."""
        pulled = self.c * (self.J.T @ by_rows)
        a = y - self.factors.solve_transposed(self.extended(pulled))[: y.size]
        return abs(float(a @ (u_bar - pulled)))

    def extended(self, free: FloatArray) -> FloatArray:
        """Return a vector over free coordinates with zeros for the multipliers."""
        return np.concatenate([free, np.zeros((self.n_rows, *free.shape[1:]))])


def solve_step(
    assembler: Assembler,
    equations: StepEquations,
    theta: FloatArray,
    rows: StepRows,
    cones: Cones,
    guess: FloatArray,
    options: NewtonOptions,
    replay: tuple[Decisions, IntArray, FloatArray] | None = None,
    last: tuple[IntArray, FloatArray] | None = None,
) -> ImpulseStepSolution:
    """Solve a step over given pairs.

    Parameters
    ----------
    guess : u (n,)
    replay : decisions of the other terms, and modes and forces of the rows, of an earlier run
    last : modes and forces to begin with, those of the step before

    Raises
    ------
    SolverError
        If Newton does not converge, or a cone problem is not solved; it names step, time, residual and remedy.
    """
    system, c = assembler.system, equations.c
    free = system.partition.free
    J, u = rows.matrix, guess.copy()
    pull = J[:, free].T if free.size < J.shape[1] else J.T
    u[system.partition.prescribed] = equations.u_prescribed
    mu, force = np.zeros(system.n_multipliers), np.zeros(J.shape[0])
    kept = system.on_branch(replay[0]) if replay else None

    def evaluate(u: FloatArray, mu: FloatArray) -> tuple[Kinematics, FloatArray, BranchEquations]:
        kin = equations.kinematics(u)
        r, constraint_rows, branch = assembler.residual(kin, mu, theta, kept)
        return kin, np.concatenate([r[free], constraint_rows]), branch

    def size(r: FloatArray, force: FloatArray) -> float:
        left = r.copy()
        left[: free.size] -= pull @ force
        value = (math.sqrt(left @ left) if options.norm == 2 else float(np.abs(left).sum())) if left.size else 0.0
        return value if math.isfinite(value) else math.inf

    kin, r, branch = evaluate(u, mu)
    merit, scale = size(r, force), assembler.force_scale(branch, kin, theta, options.norm)
    history, factorizations, cone = [merit], 0, None
    tolerance, status, unsolved = options.atol + options.rtol * scale, Status.MAX_ITERATIONS, 0
    for _ in range(options.max_iterations):
        factors = assembler.factor(kin, mu, theta, equations.weights, branch)
        factorizations += 1
        new_force = force
        if not J.shape[0]:
            step = -factors.solve(r)
        else:
            delassus = Delassus(assembler, factors, J, c, r)
            offset = delassus.velocities(u) + rows.shift
            if replay:
                cone = solve_on_modes(delassus.matrix, offset, cones, replay[1], replay[2])
            else:
                cone = solve(delassus.matrix, offset, cones, guess=last, agree=AGREE, left_over=LEFT_OVER)
            new_force = cone.impulse
            last = (cone.modes, new_force) if cone.certified else last
            unsolved = 0 if cone.certified else unsolved + 1
            if unsolved == _UNSOLVED and not replay:
                raise _without_certificate(equations, cone)
            step = delassus.freely + delassus.columns @ new_force
        best = None
        for length in LENGTHS:
            trial = u.copy()
            trial[free] += length * step[: free.size]
            trial_mu = mu + length * step[free.size :]
            point = evaluate(trial, trial_mu)
            value = size(point[1], new_force)
            if best is None or value < best[0]:
                best = (value, trial, trial_mu, point)
            if value <= max(0.9 * merit, tolerance) or (length == 1.0 and len(history) == 1):
                break
        assert best is not None
        previous = merit
        merit, u, mu, (kin, r, branch) = best
        force = new_force
        history.append(merit)
        if merit <= tolerance:
            status = Status.CONVERGED
            break
        # Contacts may bear more than all that presses on them: an impact within a step.
        borne = float(np.linalg.norm(pull @ force, options.norm))
        if len(history) > 3 and merit >= 0.5 * previous and merit <= ROUND_OFF * max(scale, borne):
            status = Status.ROUND_OFF
            break
    worst = int(free[np.abs(r[: free.size] - pull @ force).argmax()]) if free.size else 0
    report = NewtonReport(status, len(history) - 1, factorizations, merit, tolerance, worst, 0, tuple(history))
    if not status.success:
        raise _unsolved(equations, report, system.dofs.describe(worst))
    if cone is not None and not replay and not cone.certified:
        raise _without_certificate(equations, cone)
    return ImpulseStepSolution(u, mu, kin, branch, force, cone, report)


def _unsolved(equations: StepEquations, report: NewtonReport, worst: str) -> SolverError:
    return SolverError(
        f"step {equations.step} (t={equations.t:.6g} s), contact in velocities: |r|={report.residual:.3e} N > "
        f"{report.tolerance:.3e} N after {report.iterations} iterations ({report.status.value}); worst dof {worst}; "
        f"{SMALLER_STEP.format(dt=0.25 * equations.dt)}"
    )


def _without_certificate(equations: StepEquations, cone: ConeSolution) -> SolverError:
    modes = np.bincount(np.minimum(cone.modes, SLIDE), minlength=3).tolist()
    return SolverError(
        f"step {equations.step} (t={equations.t:.6g} s): no solution of the contacts was found "
        f"({cone.cones.kind.size} near; {modes} separate, stick, slide; natural map {cone.natural_map:.1e} after "
        f"{cone.iterations} iterations): with much friction there may be none; "
        f"{SMALLER_STEP.format(dt=0.25 * equations.dt)}"
    )
