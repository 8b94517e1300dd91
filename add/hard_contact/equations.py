"""The equations of one step with complementarity, linearised: Newton's step and that of the projections.

Unknowns are u (and the multipliers of the system's own constraints) and one force F_i in world axes for every pair that
may touch:

    r(q, v, a) - sum_i G_i^T F_i = 0,   phi_i(F_i, g_i, n_i, v_i) = 0          (see `add.hard_contact.law`)

Newton takes the exact derivative of the branch that every contact is on. A contact that is apart has the row F_i = 0
and drops out; what remains is

    [ A   -G^T ] [du]     [ r - G^T F ]
    [ C_u  C_F ] [dF] = - [   phi     ],   A = dr/du - d(G^T)/du F

On rigid bodies contacts are redundant (four corners of a box, three needed): there u is eliminated and dF is the
shortest that solves the rest, so that u is unique where F is not. Equations are never changed, only the step.

For steps at which Newton cycles there is another: F from the linearised problem with the cones as they are, by
staggered projections, as in a sequence of quadratic programs (Geilinger et al. 2020, section 4.1).
"""

import math
from typing import NamedTuple, final

import numpy as np
import scipy.sparse as sp

from add.compiled.newton import ROUND_OFF
from add.contact import BodyContact
from add.equations.kinematics import Kinematics, Weights
from add.equations.system import BranchEquations
from add.errors import SolverError
from add.hard_contact import law
from add.hard_contact.geometry import ContactPairs, TouchDerivatives, touches
from add.hard_contact.law import Branch, Contacts, ExactOptions
from add.kernels.contact_rows import staggered_projections
from add.linalg import DENSE_LIMIT, DenseLU, Factorization, LinearSolve, SparseLU
from add.linalg.pattern import Pattern
from add.solve.step_equations import StepEquations
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray

#: Singular values of the redundant contact equations below this share of the largest count as zero.
REDUNDANT = 1e-9


@final
class Held(NamedTuple):
    """Decisions of an earlier run in a step: branches (m,) of the pairs, and the equations of the other terms."""

    branch: IntArray
    smooth: BranchEquations


class Iterate:
    """Unknowns with all that follows from them."""

    __slots__ = (
        "at", "balance", "branch", "contacts", "force", "kin", "merit", "mu", "phi", "r", "rows", "smooth", "u",
    )  # fmt: skip

    def __init__(self, step: "ContactEquations", u: FloatArray, mu: FloatArray, force: FloatArray) -> None:
        self.u, self.mu, self.force = u, mu, force
        self.kin = step.equations.kinematics(u)
        smooth = step.held.smooth if step.held else None
        self.r, self.rows, self.smooth = step.assembler.residual(self.kin, mu, step.theta, smooth)
        self.at = touches(step.pairs, self.kin, step.theta)
        pushed = np.zeros_like(self.r)
        self.at.add_forces(force, pushed)
        self.r -= pushed
        at = self.at
        self.contacts = Contacts(force, at.gap, at.normal, at.velocity, step.c_f, step.rho_n, step.rho_t)
        self.branch = law.decide(self.contacts) if step.held is None else step.held.branch
        self.phi = law.residual(self.contacts, self.branch)
        self.balance = np.concatenate([self.r[step.free], step.row_scale * self.rows])
        merit = math.sqrt(float(self.balance @ self.balance) + float(np.vdot(self.phi, self.phi)))
        self.merit = merit if math.isfinite(merit) else math.inf


class ContactEquations:
    """The equations of one step over given pairs: what Newton and the projections need of them.

    Parameters
    ----------
    assembler : Assembler
        Of the system without its contact terms.
    equations : StepEquations
    pairs : ContactPairs
    theta : (n_theta,)
    options : ExactOptions
    held : Held, optional
        Of a step that is replayed or differentiated: signs are not asked for then.
    """

    def __init__(
        self,
        assembler: Assembler,
        equations: StepEquations,
        pairs: ContactPairs,
        theta: FloatArray,
        options: ExactOptions,
        held: Held | None = None,
    ) -> None:
        if any(isinstance(term, BodyContact) for term in assembler.system.deciding):
            raise ValueError("hard contact replaces the contact terms: take them out of the system")
        self.assembler, self.system = assembler, assembler.system
        self.equations, self.pairs, self.theta, self.options = equations, pairs, theta, options
        self.held = held
        self.free = self.system.partition.free
        self.n_u = self.system.n_unknowns
        compressed = np.full(self.system.n + 1, -1, dtype=np.int64)
        compressed[self.free] = np.arange(self.free.size)
        #: Free numbers of the coordinates of carriers and hosts (m, 12); -1 where prescribed or absent.
        self.columns = compressed[np.where(pairs.dofs() >= 0, pairs.dofs(), self.system.n)]
        self.c_f = pairs.friction(theta)
        self.row_scale = 1.0
        self.rho_n, self.rho_t = self._scales()
        self._force_scale = -1.0
        #: Done so far.
        self.factorizations = 0

    # --- scales and tolerances ------------------------------------------------------------------------------------

    def _scales(self) -> tuple[FloatArray, FloatArray]:
        """Return rho: the inverse of how far the two bodies of a contact give way to a unit force, others held."""
        zero = self.equations.kinematics(np.zeros(self.system.n))
        mu = np.zeros(self.system.n_multipliers)
        matrix = self.matrix(zero, mu, self.system.residual(zero, mu, self.theta)[2])
        if self.system.n_multipliers:
            diagonal = np.abs(matrix.diagonal()[: self.free.size])
            self.row_scale = float(diagonal.mean())
        m, c = self.pairs.n, self.equations.c
        rho_n, rho_t = np.ones(m), np.ones(m)
        if not m:
            return rho_n, rho_t
        at = touches(self.pairs, zero, self.theta)
        push = at.by_coordinates(c).push
        give = np.zeros((m, 3, 3))
        for side in (slice(0, 6), slice(6, 12)):
            half = push[:, side]
            give += half.transpose(0, 2, 1) @ np.linalg.pinv(self._own_blocks(matrix, self.columns[:, side])) @ half
        along = np.einsum("mi,mij,mj->m", at.normal, give, at.normal)
        across = 0.5 * (np.trace(give, axis1=1, axis2=2) - along)
        np.divide(1.0, along, out=rho_n, where=along > 0.0)
        np.divide(1.0, c * across, out=rho_t, where=across > 0.0)
        return rho_n, rho_t

    def _own_blocks(self, matrix: sp.csc_array, columns: IntArray) -> FloatArray:
        """Return the diagonal blocks (m, 6, 6) over the coordinates in each row of ``columns``, zero where missing."""
        bodies, which = np.unique(columns, axis=0, return_inverse=True)
        owner, local = np.full(self.n_u, -1, dtype=np.int64), np.zeros(self.n_u, dtype=np.int64)
        body, place = np.nonzero(bodies >= 0)
        at = bodies[body, place]
        owner[at], local[at] = body, place
        entries = matrix.tocoo()
        row, col = entries.coords
        kept = (owner[row] >= 0) & (owner[row] == owner[col])
        blocks = np.zeros((bodies.shape[0], 6, 6))
        np.add.at(blocks, (owner[row[kept]], local[row[kept]], local[col[kept]]), entries.data[kept])
        return blocks[which.ravel()]

    def force_scale(self, at: Iterate) -> float:
        """Return the norm of the largest force family, found once at the first finite iterate [N]."""
        if self._force_scale < 0.0:
            self._force_scale = self.assembler.force_scale(at.smooth, at.kin, self.theta, self.options.newton.norm)
        return self._force_scale

    def tolerance(self, at: Iterate) -> float:
        """Return the tolerance on the balance of forces [N]."""
        newton = self.options.newton
        return newton.atol + (newton.rtol * self.force_scale(at) if newton.rtol else 0.0)

    def balance_norm(self, at: Iterate) -> float:
        """Return the norm that the tolerance is compared with [N]."""
        return float(np.linalg.norm(at.balance, self.options.newton.norm)) if at.balance.size else 0.0

    def solved(self, at: Iterate) -> bool:
        """Whether the balance of forces and every contact hold to tolerance."""
        return self.balance_norm(at) <= self.tolerance(at) and self._contacts_hold(at)

    def _contacts_hold(self, at: Iterate) -> bool:
        touching, apart = at.branch != Branch.SEPARATE, at.branch == Branch.SEPARATE
        if np.any(np.abs(at.at.gap[touching]) > self.options.gap):
            return False
        if self.held is None and np.any(at.at.gap[apart] < -self.options.gap):
            return False
        sticking, slipping = at.branch == Branch.STICK, at.branch == Branch.SLIP
        if np.any(np.abs(at.at.tangential_velocity[sticking]) > self.options.speed):
            return False
        tolerance = self.tolerance(at)
        return bool(np.all(np.abs(at.force[apart]) <= tolerance) and np.all(np.abs(at.phi[slipping]) <= tolerance))

    def at_round_off(self, at: Iterate) -> bool:
        """Whether nothing but rounding is left of an iterate that no step improves."""
        if not math.isfinite(at.merit):
            return False
        eps = float(np.finfo(float).eps)
        scale = self.force_scale(at) + float(np.abs(at.force).sum())
        for weights, coordinates in ((self.equations.weights, at.u), (Weights(1.0, 0.0, 0.0), at.kin.q)):
            pattern, data = self.assembler.assemble(at.kin, at.mu, self.theta, weights, at.smooth)
            sizes = np.zeros(pattern.n)
            sizes[: self.free.size] = np.abs(coordinates[self.free])
            scale += float(np.linalg.norm(abs(pattern.matrix(data)) @ sizes, self.options.newton.norm))
        reach = float(np.abs(at.kin.q).max(initial=0.0))
        lift = float((self.rho_n * reach + self.rho_t * np.abs(at.kin.v).max(initial=0.0)).max(initial=0.0))
        return at.merit <= ROUND_OFF * eps * (scale + lift)

    # --- linear algebra -------------------------------------------------------------------------------------------

    def matrix(self, kin: Kinematics, mu: FloatArray, branch: BranchEquations) -> sp.csc_array:
        """Return dr/du of the system without contact."""
        pattern, data = self.assembler.assemble(kin, mu, self.theta, self.equations.weights, branch)
        return sp.csc_array(pattern.matrix(data.copy()))

    def wide(self, rows: IntArray, blocks: FloatArray) -> sp.csc_array:
        """Return derivatives (k, d, 12) by the coordinates of pairs ``rows`` as a matrix (k d, n_unknowns)."""
        k, d, _ = blocks.shape
        at = np.broadcast_to(self.columns[rows][:, None, :], blocks.shape)
        row = np.broadcast_to(np.arange(k * d).reshape(k, d)[:, :, None], blocks.shape)
        kept = at >= 0
        return sp.coo_array((blocks[kept], (row[kept], at[kept])), shape=(k * d, self.n_u)).tocsc()

    def tangent(self, point: Iterate, by: TouchDerivatives, rows: IntArray) -> sp.csc_array:
        """Return A = d(r - G^T F)/du over the unknowns."""
        matrix = self.matrix(point.kin, point.mu, point.smooth)
        bent = by.pushed[rows]
        turned = (self.pairs.rigid | self.pairs.hosted)[rows]
        if not turned.any():
            return matrix
        bent, columns = bent[turned], self.columns[rows[turned]]
        row = np.broadcast_to(columns[:, :, None], bent.shape)
        col = np.broadcast_to(columns[:, None, :], bent.shape)
        kept = (row >= 0) & (col >= 0)
        shape = (self.n_u, self.n_u)
        return (matrix - sp.coo_array((bent[kept], (row[kept], col[kept])), shape=shape)).tocsc()

    def factored(self, matrix: sp.csc_array) -> LinearSolve:
        """Factor a matrix whose structure changes with what touches, so that no analysis outlives it."""
        self.factorizations += 1
        solver: Factorization = DenseLU() if matrix.shape[0] <= DENSE_LIMIT else SparseLU()
        solver.factor(*Pattern.of(matrix))
        return solver

    def law_rows(self, point: Iterate, by: TouchDerivatives, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return dphi/du (k, 3, 12) and dphi/dF (k, 3, 3) of the contacts ``rows``."""
        d = law.derivatives(point.contacts, point.branch)
        by_u = d.by_gap[:, :, None] * by.gap[:, None, :] + d.by_normal @ by.normal + d.by_velocity @ by.velocity
        return by_u[rows], d.by_force[rows]

    def direction(self, point: Iterate) -> tuple[FloatArray, FloatArray]:
        """Return Newton's step: of u with the multipliers (n_unknowns,), and of the forces (m, 3).

        Raises
        ------
        SolverError
            If the matrix is singular.
        """
        rows = np.flatnonzero(point.branch != Branch.SEPARATE)
        by = point.at.by_coordinates(self.equations.c, point.force)
        force_step = -point.force
        # What lets go takes its force out of the balance at once.
        let_go = np.zeros(self.system.n)
        gone = np.where((point.branch == Branch.SEPARATE)[:, None], point.force, 0.0)
        point.at.add_forces(gone, let_go)
        rhs = -np.concatenate([point.r[self.free] + let_go[self.free], point.rows])
        if not rows.size:
            weights = self.equations.weights
            self.factorizations += 1
            smooth = self.assembler.factor(point.kin, point.mu, self.theta, weights, point.smooth)
            return smooth.solve(rhs), force_step
        matrix = self.tangent(point, by, rows)
        by_u, by_force = self.law_rows(point, by, rows)
        pull = self.wide(rows, by.push[rows].transpose(0, 2, 1)).T
        law_u, law_rhs = self.wide(rows, by_u), -point.phi[rows].ravel()
        if self.pairs.rigid[rows].any():
            solver = self.factored(matrix)
            freely, per_force = solver.solve(rhs), solver.solve(pull.toarray())
            reduced = law_u @ per_force
            places = np.arange(3 * rows.size).reshape(-1, 3)
            reduced[places[:, :, None], places[:, None, :]] += by_force
            # Singular where contacts are redundant: the shortest step of the forces.
            forces = np.linalg.lstsq(reduced, law_rhs - law_u @ freely, rcond=REDUNDANT)[0]
            step = freely + per_force @ forces
        else:
            at = np.arange(rows.size + 1)
            block = sp.bsr_array((by_force, at[:-1], at)).tocsc()
            both = sp.block_array([[matrix, -pull], [law_u, block]], format="csc")
            solution = self.factored(both).solve(np.concatenate([rhs, law_rhs]))
            step, forces = solution[: self.n_u], solution[self.n_u :]
        if not (np.isfinite(step).all() and np.isfinite(forces).all()):
            raise SolverError("the Newton step is not finite")
        force_step[rows] = forces.reshape(-1, 3)
        return step, force_step

    def project(self, point: Iterate) -> tuple[FloatArray, FloatArray]:
        """Return the step to the solution of the linearised problem with the cones as they are, by projections."""
        by = point.at.by_coordinates(self.equations.c, point.force)
        rows = np.arange(self.pairs.n)
        solver = self.factored(self.tangent(point, by, rows))
        # r + A du - G^T F_new = 0 with r taken without contact forces.
        smooth = np.zeros(self.system.n)
        point.at.add_forces(point.force, smooth)
        smooth += point.r
        freely = -solver.solve(np.concatenate([smooth[self.free], point.rows]))
        per_force = solver.solve(self.wide(rows, by.push.transpose(0, 2, 1)).T.toarray())
        gap_u, velocity_u = self.wide(rows, by.gap[:, None, :]), self.wide(rows, by.velocity)
        m = self.pairs.n
        force = point.force.copy()
        staggered_projections(
            point.at.gap + gap_u @ freely,
            point.at.velocity + (velocity_u @ freely).reshape(m, 3),
            np.ascontiguousarray((gap_u @ per_force).reshape(m, m, 3)),
            np.ascontiguousarray((velocity_u @ per_force).reshape(m, 3, m, 3)),
            point.at.normal,
            self.c_f,
            self.options.sweeps,
            0.01 * self.tolerance(point),
            force,
        )
        return freely + per_force @ force.ravel(), force - point.force

    # --- moves ----------------------------------------------------------------------------------------------------

    def moved(self, point: Iterate, length: float, step: FloatArray, force_step: FloatArray) -> Iterate:
        """Return the iterate a share of a step further."""
        u = point.u.copy()
        u[self.free] += length * step[: self.free.size]
        mu = point.mu + length * step[self.free.size :]
        return Iterate(self, u, mu, point.force + length * force_step)
