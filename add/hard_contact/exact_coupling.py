"""Derivatives of a step with contact in positions, all branches held.

The step ends with R = r(q, v, a) - G^T F = 0 and phi(F, g, n, v_t) = 0 of the pairs that touch (see `equations`), with
v = c (q - s), a = c (v - s'), s and s' of the history. Along what moves,

    A dx - G^T dF = -dR,    L dx + E dF = -dphi,    A = d(r - G^T F)/du,   L = dphi/du,   E = dphi/dF

dR and dphi with the free coordinates and F held. Redundant contacts make E + L A^-1 G^T singular: dF is of least norm,
in both modes. The factors rho of phi drop out, as g = 0 and y lies along F_t.

A step hands its contacts on to the next (`ContactState`), with forces, branches and places.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from add.equations.kinematics import (
    Carry,
    Columns,
    Directions,
    KinematicCotangent,
    State,
    StateTangent,
    StateTangents,
    ThetaMap,
    push,
)
from add.errors import SolverError
from add.hard_contact import law
from add.hard_contact.equations import REDUNDANT, ContactEquations, Held, Iterate
from add.hard_contact.geometry import ContactPairs, LocalBlocks, Touches, gathered, scatter, touches
from add.hard_contact.law import Branch, ExactOptions
from add.hard_contact.solver import ContactSolution, solve
from add.kernels import contact_rows as kernel
from add.simulation import Coupling, Record, Solution
from add.solve.step_equations import StepEquations
from add.solve.step_matrix import Assembler
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class ContactState:
    """The k pairs that were near a step, at its end.

    Attributes
    ----------
    pairs : ContactPairs
        Those pairs alone.
    pair : (k,) their numbers in the stepper's `ContactPairs`
    force : (k, 3) on the points [N]
    branch : (k,) of `Branch`
    touches : Touches
        Gaps, normals, velocities and places.
    """

    pairs: ContactPairs
    pair: IntArray
    force: FloatArray
    branch: IntArray
    touches: Touches

    @property
    def normal_force(self) -> FloatArray:
        """F_n (k,) [N]."""
        return np.einsum("ki,ki->k", self.touches.normal, self.force)

    @property
    def friction(self) -> FloatArray:
        """Tangential forces (k, 3) [N]."""
        return self.force - self.normal_force[:, None] * self.touches.normal

    @property
    def touching(self) -> IntArray:
        """Numbers of the pairs that touch."""
        return self.pair[self.branch != Branch.SEPARATE]

    def count(self, branch: Branch) -> int:
        """Return how many of the pairs near are on a branch."""
        return int(np.count_nonzero(self.branch == branch))


@final
@dataclass(frozen=True)
class CarriedContacts:
    """Pairs near a step, in the numbering of its `ContactPairs`.

    In a `Carry` the forces are one row of the memory; the others are the marks.

    Attributes
    ----------
    pair : (k,)
    branch : (k,) of `Branch`
    force : (k, 3) on the points [N]
    rims : (k,) bits by which the step decided of rims, zeros at points of none; see `ContactPairs.decided`
    calm : int
        Steps since a pair touched that had not touched before.
    """

    pair: IntArray
    branch: IntArray
    force: FloatArray
    rims: IntArray
    calm: int

    @classmethod
    def of(cls, carry: Carry) -> "CarriedContacts | None":
        """Return what a state carries; None at the start of a run, where no step has been taken."""
        if not carry.marks:
            return None
        number, branch, calm = carry.marks
        pair = number & kernel.PAIRS
        return cls(pair, branch, carry.memory.reshape(-1, 3), number - pair, int(calm[0]))

    def carry(self) -> Carry:
        """Return them as a state carries them."""
        calm = np.array([self.calm], dtype=np.int64)
        return Carry(self.force.reshape(1, -1), (self.pair + self.rims, self.branch, calm))

    def of_step(self, pairs: ContactPairs) -> ContactPairs:
        """Return them of all pairs of a stepper, as the step that they come from decided of rims."""
        return replace(pairs, number=(pairs.number[self.pair] & kernel.PAIRS) + self.rims)

    @property
    def touching(self) -> IntArray:
        """Pairs that touch."""
        return self.pair[self.branch != Branch.SEPARATE]

    def forces(self, n_pairs: int) -> FloatArray:
        """Return the forces (n_pairs, 3) of all pairs; nothing but a touching pair has any."""
        out = np.zeros((n_pairs, 3))
        out[self.pair] = self.force
        return out


@final
class ExactCoupling(Coupling):
    """The contacts of a finished step, ready for both directions.

    Parameters
    ----------
    pairs : ContactPairs
        All of the stepper.
    assembler : Assembler
    record : Record
    theta : (n_theta,)
    options : ExactOptions
    """

    def __init__(
        self, pairs: ContactPairs, assembler: Assembler, record: Record, theta: FloatArray, options: ExactOptions
    ) -> None:
        self.assembler, self.record, self.theta = assembler, record, theta
        kept = CarriedContacts.of(record.carry)
        assert kept is not None
        closed = kept.branch != Branch.SEPARATE
        self.pairs = kept.of_step(pairs).select(closed)
        kin, c, system = record.kin, record.c, assembler.system
        self.smooth = system.on_branch(record.decisions, record.solution.candidates)
        u = kin.v / c
        equations = StepEquations(
            kin.q - u, kin.v - kin.a / c, c, kin.t, kin.step, u[system.partition.prescribed], record.solution.dt
        )
        held = Held(kept.branch[closed], self.smooth)
        work = ContactEquations(assembler, equations, self.pairs, theta, options, held)
        self.point = Iterate(work, u, record.mu, kept.force[closed])
        rows = np.arange(self.pairs.n)
        by = self.point.at.by_coordinates(c, self.point.force)
        by_u, by_force = work.law_rows(self.point, by, rows)
        self.law = law.derivatives(self.point.contacts, held.branch)
        by_v = self.law.by_velocity @ by.push.transpose(0, 2, 1)
        self.dofs = self.pairs.dofs()
        # Of phi by the velocities; of G^T F and of phi by the coordinates, velocities held.
        self.by_v = LocalBlocks(self.dofs, by_v)
        self.by_q = LocalBlocks(self.dofs, np.concatenate([by.pushed, by_u - c * by_v], axis=1))
        self.solver = work.factored(work.tangent(self.point, by, rows))
        self.rows = work.wide(rows, by_u)
        pull = work.wide(rows, by.push.transpose(0, 2, 1)).T
        self.per_force = self.solver.solve(pull.toarray()) if rows.size else np.zeros((work.n_u, 0))
        reduced = np.asarray(self.rows @ self.per_force)
        places = np.arange(3 * rows.size).reshape(-1, 3)
        reduced[places[:, :, None], places[:, None, :]] += by_force
        self.inverse = np.linalg.pinv(reduced, rcond=REDUNDANT)

    # --- linear equations ---------------------------------------------------------------------------------------------

    def solve(self, balance: FloatArray, contact: FloatArray) -> FloatArray:
        """Return dx (n_unknowns, k) from the right-hand sides of both equations."""
        freely = self.solver.solve(balance)
        return np.asarray(freely + self.per_force @ (self.inverse @ (contact - self.rows @ freely)))

    def solve_transposed(self, x_bar: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents of both right-hand sides from that of x (n_unknowns,)."""
        contact = self.inverse.T @ (self.per_force.T @ x_bar)
        return self.solver.solve_transposed(x_bar - self.rows.T @ contact), contact

    # --- what moves the equations -------------------------------------------------------------------------------------

    @cached_property
    def _by_centres(self) -> LocalBlocks:
        """Derivatives of G^T F (12) and phi (3) by the centres of mass."""
        d, by = self.law, self.point.at.by_centres(self.point.force)
        phi = d.by_gap[:, :, None] * by.gap[:, None, :] + d.by_normal @ by.normal + d.by_velocity @ by.velocity
        return LocalBlocks(self.pairs.centres, np.concatenate([by.pushed, phi], axis=1))

    @cached_property
    def _by_friction(self) -> LocalBlocks:
        """The derivative of phi by c_f."""
        return LocalBlocks(self.pairs.c_f[:, None], law.by_friction(self.point.contacts, self.point.branch)[:, :, None])

    def _theta_jvp(self, theta_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tangents of G^T F (n,) and phi (3 k,) along theta_dot."""
        both, out = self._by_centres.push(theta_dot[:, None])[:, :, 0], np.zeros(self.assembler.system.n)
        scatter(both[:, :-3], self.dofs, out)
        return out, (both[:, -3:] + self._by_friction.push(theta_dot[:, None])[:, :, 0]).ravel()

    def _theta_vjp(self, force_bar: FloatArray, phi_bar: FloatArray, out: FloatArray) -> None:
        """Add the cotangent of theta from those of G^T F (n,) and phi (3 k,)."""
        local = phi_bar.reshape(-1, 3)
        self._by_centres.pull(np.concatenate([gathered(force_bar, self.dofs), local], axis=1), out)
        self._by_friction.pull(local, out)

    # --- both directions ----------------------------------------------------------------------------------------------

    def pull(
        self, adjoint: FloatArray, contact: FloatArray, bar: KinematicCotangent, before: StateTangent, share: FloatArray
    ) -> None:
        """Add the part of contact in cotangents; see `Coupling.pull`."""
        local = contact.reshape(-1, 3)
        self.by_q.pull(np.concatenate([-gathered(adjoint, self.dofs), local], axis=1), bar.q)
        self.by_v.pull(local, bar.v)
        self._theta_vjp(-adjoint, contact, share)

    def push(
        self, tangents: StateTangents, q_dot: FloatArray, v_dot: FloatArray, by_theta: Columns, balance: FloatArray
    ) -> FloatArray:
        """Add the part of contact in tangents; see `Coupling.push`."""
        both = self.by_q.push(q_dot)
        scatter(both[:, :-3], self.dofs, balance)
        phi = -(both[:, -3:] + self.by_v.push(v_dot)).reshape(-1, q_dot.shape[1])
        places, n = tangents.places(by_theta.index), self.assembler.system.n
        balance[:n, places] += by_theta.values[:n]
        phi[:, places] -= by_theta.values[n:]
        return phi

    def along(self, directions: Directions) -> Columns:
        """Return the tangents of (G^T F, phi) (n + 3 k, .) along directions of theta."""
        n, size = self.assembler.system.n, self.assembler.system.n + 3 * self.pairs.n

        def jvp(theta_dot: FloatArray, out: FloatArray) -> None:
            force, phi = self._theta_jvp(theta_dot)
            out[:n] += force
            out[n:] += phi

        def vjp(bar: FloatArray, out: FloatArray) -> None:
            self._theta_vjp(bar[:n], bar[n:], out)

        return push([ThetaMap(jvp, vjp)] if self.pairs.n else [], size, directions)


# --- The implicit solve of a step with exact contact: over the pairs that are near, until none is passed through ------


@final
@dataclass(frozen=True)
class ExactContactSolve:
    """r(q, v, a) - sum_i G_i^T F_i = 0 with 0 <= g _|_ F_n >= 0 and Coulomb's law at the end of the step.

    The carry of a solution has the pairs that were near, with a ``calm`` of zero.

    Attributes
    ----------
    pairs : ContactPairs
    options : ExactOptions
    """

    pairs: ContactPairs
    options: ExactOptions

    def solve(
        self,
        assembler: Assembler,
        equations: StepEquations,
        theta: FloatArray,
        guesses: Sequence[FloatArray],
        before: State,
    ) -> Solution:
        """Solve over the pairs that are near; add those that the solution passes through and solve again."""
        pairs, guesses = self.pairs, list(guesses)
        carried = CarriedContacts.of(before.carry)
        movable = _movable(pairs, assembler)
        near = np.zeros(pairs.n, dtype=bool)
        force = np.zeros((pairs.n, 3))
        if carried is not None:
            near[carried.touching] = True
            force = carried.forces(pairs.n)
        gaps = [touches(pairs, equations.kinematics(guess), theta).gap for guess in guesses[:2]]
        for gap in gaps:
            near |= movable & (gap <= 0.0)
        near &= np.isfinite(gaps[0])  # lines that cross no longer
        while True:
            rows = np.flatnonzero(near)
            work = ContactEquations(assembler, equations, pairs.select(rows), theta, self.options)
            end = solve(work, guesses, force[rows])
            if not end.report.status.success:
                raise _failure(end, assembler, equations)
            gap = touches(pairs, end.kin, theta).gap
            missed = movable & ~near & (gap < -self.options.gap)
            if not missed.any():
                rims = pairs.number[rows] & ~kernel.PAIRS
                carry = CarriedContacts(rows, end.branch, end.force, rims, 0).carry()
                return Solution(end.kin, end.mu, end.decisions, equations.c, equations.dt, end.report, carry)
            near |= missed
            force[rows] = end.force
            guesses = [end.u, *guesses]

    def replayed(self, assembler: Assembler, equations: StepEquations, theta: FloatArray, record: Record) -> Solution:
        """Solve on the branches of a record, whatever the signs."""
        kept = CarriedContacts.of(record.carry)
        assert kept is not None
        held = Held(kept.branch, assembler.system.on_branch(record.decisions, record.solution.candidates))
        work = ContactEquations(assembler, equations, kept.of_step(self.pairs), theta, self.options, held)
        end = solve(work, [record.kin.v / equations.c], kept.force)
        if not end.report.status.success:
            raise _failure(end, assembler, equations)
        carry = replace(kept, force=end.force).carry()
        return Solution(end.kin, end.mu, end.decisions, equations.c, equations.dt, end.report, carry)


def _movable(pairs: ContactPairs, assembler: Assembler) -> BoolArray:
    """Return which pairs (m,) have a free coordinate: what is held cannot get out of the way."""
    free = np.zeros(assembler.system.n + 1, dtype=bool)
    free[assembler.system.partition.free] = True
    dofs = pairs.dofs()
    return np.asarray(free[np.where(dofs >= 0, dofs, assembler.system.n)].any(axis=1))


def _failure(found: ContactSolution, assembler: Assembler, equations: StepEquations) -> SolverError:
    report = found.report
    place = assembler.system.dofs.describe(report.worst)
    return SolverError(
        f"step {equations.step} (t={equations.t:.6g} s), exact contact: |r|={report.residual:.3e} N (tolerance "
        f"{report.tolerance:.3e} N) after {report.iterations} iterations and {report.attempt} rounds of "
        f"projections ({report.status.value}); worst dof {place}; try dt < {equations.dt:g}"
    )
