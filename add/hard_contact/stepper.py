"""Implicit steps with exact contact: BDF1 and BDF2 with complementarity at the end of the step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations import charts
from add.equations.kinematics import Kinematics, State
from add.errors import SolverError
from add.hard_contact.equations import HardStep
from add.hard_contact.geometry import Touches, touches
from add.hard_contact.law import Branch
from add.hard_contact.options import HardOptions, HardReport
from add.hard_contact.pairs import ContactPairs
from add.hard_contact.solver import HardSolution, solve
from add.simulation import BDF, StartUp
from add.solve.newton import StepEquations
from add.solve.step_matrix import Assembler
from add.typing import BoolArray, FloatArray, IntArray

#: Steps after a first touch whose history still spans it.
SETTLING = 2


@final
@dataclass(frozen=True)
class HardRecord:
    """A finished step: forces and branches of the pairs that were near.

    Attributes
    ----------
    kin : Kinematics
    mu : multipliers of the system's own constraints
    order : int
        Of the formula that this step used.
    pair : (k,) rows of the `ContactPairs`
    force : (k, 3) on the points [N]
    branch : (k,) of `Branch`
    gap : (k,) [m]
    normal, place, velocity : (k, 3) normal, place of contact [m], velocity of the point relative to the obstacle [m/s]
    calm : int
        Steps since a pair touched that had not touched before.
    report : HardReport
    """

    kin: Kinematics
    mu: FloatArray
    order: int
    pair: IntArray
    force: FloatArray
    branch: IntArray
    gap: FloatArray
    normal: FloatArray
    place: FloatArray
    velocity: FloatArray
    calm: int
    report: HardReport

    @property
    def normal_force(self) -> FloatArray:
        """F_n (k,) [N]."""
        return np.einsum("ki,ki->k", self.normal, self.force)

    @property
    def friction(self) -> FloatArray:
        """Tangential forces (k, 3) [N]."""
        return self.force - self.normal_force[:, None] * self.normal

    @property
    def tangential_velocity(self) -> FloatArray:
        """Sliding velocities (k, 3) [m/s]."""
        along = np.einsum("ki,ki->k", self.normal, self.velocity)
        return self.velocity - along[:, None] * self.normal

    @property
    def touching(self) -> IntArray:
        """Rows of the `ContactPairs` that touch."""
        return self.pair[self.branch != Branch.SEPARATE]

    def count(self, branch: Branch) -> int:
        """Return how many of the pairs near are on a branch."""
        return int(np.count_nonzero(self.branch == branch))

    def forces(self, n_pairs: int) -> FloatArray:
        """Return the forces (n_pairs, 3) of all pairs."""
        out = np.zeros((n_pairs, 3))
        out[self.pair] = self.force
        return out


@final
@dataclass(frozen=True)
class HardContactStepper:
    """One step of r(q, v, a) - sum_i G_i^T F_i = 0 with 0 <= g _|_ F_n >= 0 and Coulomb's law at its end.

        v = c (q - sum alpha_k q_k),   a = c (v - sum alpha_k v_k),   c = 1/(beta dt)

    Gaps are those of the new positions and never negative (Geilinger et al. 2020, section 4.1); sliding velocities are
    the new ones. A body that falls on the floor ends the step on it, with the velocity that brings it there, and rests
    from the next step on: with BDF1 impacts are plastic. BDF2 takes velocities from before the impact for part of its
    derivative and throws the body back by up to its full speed, whichever the phase of the step. Hence ``restart``: the
    step in which a pair touches anew, and the two behind, are taken with BDF1.

    Attributes
    ----------
    step_size : float
        dt [s].
    bdf_order : int
        1 or 2.
    options : HardOptions
    start_up : StartUp
        How BDF2 begins.
    restart : bool
        Whether BDF2 falls back to BDF1 where its history would span a first touch.
    """

    step_size: float
    bdf_order: int = 1
    options: HardOptions = HardOptions()  # noqa: RUF009
    start_up: StartUp = StartUp.BDF1
    restart: bool = True

    @property
    def bdf(self) -> BDF:
        """The formula."""
        return BDF(self.step_size, self.bdf_order, self.start_up, self.options.newton)

    def start(self, q: FloatArray, v: FloatArray) -> State:
        """Return the state at t = 0."""
        return self.bdf.start(q, v)

    def step(
        self,
        assembler: Assembler,
        pairs: ContactPairs,
        state: State,
        theta: FloatArray,
        previous: HardRecord | None = None,
    ) -> tuple[State, HardRecord]:
        """Take one step.

        Parameters
        ----------
        assembler : Assembler
            Of the system without contact terms.
        pairs : ContactPairs
        state : State
        theta : (n_theta,)
        previous : HardRecord, optional
            Of the step before: first guesses, and what touched.

        Raises
        ------
        SolverError
            If neither Newton nor projections find the end of the step.
        """
        had = previous.touching if previous else self._touching_now(pairs, state, theta)
        calm = previous.calm if previous else SETTLING
        if self.bdf_order == 1 or (self.restart and calm < SETTLING):
            end = self._attempt(1, assembler, pairs, state, theta, previous)
            return self._finish(1, end, assembler, pairs, state, had, calm)
        end = self._attempt(self.bdf_order, assembler, pairs, state, theta, previous)
        fresh = np.setdiff1d(end.rows[end.solution.branch != Branch.SEPARATE], had)
        if self.restart and fresh.size:
            end = self._attempt(1, assembler, pairs, state, theta, previous)
            return self._finish(1, end, assembler, pairs, state, had, -1)
        first = state.step == 0 and self.start_up is StartUp.BDF1
        return self._finish(1 if first else self.bdf_order, end, assembler, pairs, state, had, calm)

    def _touching_now(self, pairs: ContactPairs, state: State, theta: FloatArray) -> IntArray:
        """Return the pairs that touch at the start: no impact brings them together."""
        kin = Kinematics(state.q[0], state.v[0], np.zeros_like(state.q[0]), state.t, state.step)
        return np.flatnonzero(touches(pairs, kin, theta).gap <= 1e-9)

    def _attempt(
        self,
        order: int,
        assembler: Assembler,
        pairs: ContactPairs,
        state: State,
        theta: FloatArray,
        previous: HardRecord | None,
    ) -> _End:
        """Solve over the pairs that are near; add those that the solution passes through and solve again."""
        formula = BDF(self.step_size, order, self.start_up, self.options.newton)
        c, alpha = formula.coefficients(state.step)
        q_star = sum(a * q for a, q in zip(alpha, state.q, strict=False))
        v_star = sum(a * v for a, v in zip(alpha, state.v, strict=False))
        t = (state.step + 1) * self.step_size
        prescribed = assembler.system.partition.prescribed
        equations = StepEquations(
            q_star, v_star, c, t, state.step + 1, assembler.prescribed(t, theta) - q_star[prescribed]
        )
        a_last = (state.v[0] - state.v[1]) / self.step_size
        guesses = [v_star / c + a_last / c**2, state.v[0] / c, state.q[0] - q_star]
        movable = _movable(pairs, assembler)
        near = np.zeros(pairs.n, dtype=bool)
        force = np.zeros((pairs.n, 3))
        if previous is not None:
            near[previous.touching] = True
            force = previous.forces(pairs.n)
        for guess in guesses[:2]:
            near |= movable & (touches(pairs, equations.kinematics(guess), theta).gap <= 0.0)
        while True:
            rows = np.flatnonzero(near)
            work = HardStep(assembler, equations, pairs.select(rows), theta, self.options)
            solution = solve(work, guesses, force[rows])
            if not solution.report.status.success:
                raise _failure(solution, assembler, equations, self.step_size)
            at = touches(pairs, solution.kin, theta)
            missed = movable & ~near & (at.gap < -self.options.gap)
            if not missed.any():
                return _End(solution, rows)
            near |= missed
            force[rows] = solution.force
            guesses = [solution.u, *guesses]

    def _finish(
        self,
        order: int,
        end: _End,
        assembler: Assembler,
        pairs: ContactPairs,
        state: State,
        had: IntArray,
        calm: int,
    ) -> tuple[State, HardRecord]:
        solution, kin = end.solution, end.solution.kin
        fresh = np.setdiff1d(end.rows[solution.branch != Branch.SEPARATE], had)
        at: Touches = solution.at
        record = HardRecord(
            kin,
            solution.mu,
            order,
            end.rows,
            solution.force,
            solution.branch,
            at.gap,
            at.normal,
            at.place,
            at.velocity,
            0 if fresh.size else calm + 1,
            solution.report,
        )
        following = State(kin.t, state.step + 1, np.stack([kin.q, state.q[0]]), np.stack([kin.v, state.v[0]]))
        changed = charts.beyond(kin.q, assembler.system.rotations)
        return charts.change(following, changed) if changed.size else following, record


@final
@dataclass(frozen=True)
class _End:
    """A solved step and the pairs it was solved with."""

    solution: HardSolution
    rows: IntArray


def _movable(pairs: ContactPairs, assembler: Assembler) -> BoolArray:
    """Return which pairs (m,) have a free coordinate: what is held cannot get out of the way."""
    free = np.zeros(assembler.system.n + 1, dtype=bool)
    free[assembler.system.partition.free] = True
    dofs = pairs.dofs()
    return np.asarray(free[np.where(dofs >= 0, dofs, assembler.system.n)].any(axis=1))


def _failure(solution: HardSolution, assembler: Assembler, equations: StepEquations, dt: float) -> SolverError:
    report = solution.report
    place = assembler.system.dofs.describe(report.worst)
    return SolverError(
        f"step {equations.step} (t={equations.t:.6g} s), hard contact: |r|={report.residual:.3e} N (tolerance "
        f"{report.tolerance:.3e} N) after {report.iterations} iterations and {report.projections} rounds of "
        f"projections ({report.status.value}); worst dof {place}; try dt < {dt:g}"
    )
