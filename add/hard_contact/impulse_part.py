"""A step, or a part of one, with contact in velocities and Coulomb's cone: its solution and its exact derivatives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from add.cones import WEAK, Sensitivity
from add.equations.kinematics import Kinematics, State, StateTangent
from add.equations.lift import Lift
from add.equations.tangents import Directions, StateTangents
from add.errors import InputError
from add.hard_contact.beginning import Beginning
from add.hard_contact.exploring import ChoiceTally, wanted_modes
from add.hard_contact.geometry import Touches
from add.hard_contact.impact_times import ImpactTimes
from add.hard_contact.impulse_carry import CarriedImpulses
from add.hard_contact.impulse_options import ImpulseOptions
from add.hard_contact.impulse_rows import ImpulseRows, NearPairs
from add.hard_contact.impulse_solve import Delassus, ImpulseStepSolution, solve_step
from add.hard_contact.near_search import NearSearch
from add.hard_contact.pairs import ContactPairs
from add.hard_contact.step_changes import StepChanges
from add.hard_contact.step_rows import StepRows
from add.hard_contact.stop_rows import JointStops, NearStops, StopRows
from add.kernels.cone_modes import SEPARATE, STICK
from add.simulation import ContactForces, Record, Solution, WeakContact
from add.simulation.implicit_solve import Linearised, NewtonSolve
from add.solve.step_equations import NewtonOptions, StepEquations
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class ImpulsePart:
    """r(q, v, a) - J^T F = 0 with Signorini's law in velocities and Coulomb's cone (see `impulse_rows`).

        v = (q - q_0)/dt,   a = (v - v_0)/dt,   0 <= F_n  _|_  w_n + bias >= 0,   |F_t| <= c_f F_n

    Geometry is that of the beginning; what comes out depends on (q_0, v_0) and theta alone. Where there are impacts,
    the same equations are solved without them first (`Record.inner` keeps that): when and how fast bodies arrive
    follows from it. Derivatives are those of the equations of the modes (separate, stick, slide) of the solution.

    Attributes
    ----------
    pairs : ContactPairs
        What may touch what.
    whole : float
        The step of the run [s].
    dt : float
        Length of the part, dt in the equations [s].
    late : float
        From its end to that of the step [s].
    restitution : (m,)
        Index in theta of e of every pair; -1 is zero.
    lift : Lift
        Rows X that the pairs are numbered by.
    stops : JointStops
        Limits of coordinates that give not at all.
    options : ImpulseOptions
    newton : NewtonOptions
    tally : ChoiceTally, optional
        Counts what the backward pass chose, of options that explore.
    """

    pairs: ContactPairs
    whole: float
    dt: float
    late: float
    restitution: IntArray
    lift: Lift
    stops: JointStops
    options: ImpulseOptions
    newton: NewtonOptions
    tally: ChoiceTally | None

    # --- forward ------------------------------------------------------------------------------------------------------

    def _equations(self, assembler: Assembler, state: State, theta: FloatArray) -> StepEquations:
        """Return the equations of BDF1, whose prescribed coordinates are those of the end of the part."""
        q, v, t = state.q[0], state.v[0], (state.step + 1) * self.whole - self.late
        u_prescribed = assembler.prescribed(t, theta) - q[assembler.system.partition.prescribed]
        return StepEquations(q, v, 1.0 / self.dt, t, state.step + 1, u_prescribed, self.dt)

    def take(
        self, assembler: Assembler, state: State, theta: FloatArray, may_divide: bool
    ) -> tuple[FloatArray, Record] | None:
        """Return the coordinates (n,) at the end, and the record; None where one body has impacts at several times.

        Raises
        ------
        SolverError
            If the equations are not solved.
        """
        equations = self._equations(assembler, state, theta)
        before = self._beginning(state.q[0], state.v[0], state.t, state.step, theta)
        e = self._restitution(theta)
        search = NearSearch(self.pairs, self.stops, e, self.options, self.dt, self.whole, before, assembler.system)
        record, guess, carry, without = None, state.v[0] / equations.c, state.carry, None
        while True:
            pairs, stops, apart = search.decided()
            if apart and may_divide:
                return None
            rows = self._rows(pairs, stops, before, without, search.at)
            last = CarriedImpulses.of(carry).on(pairs.pair, stops.number) if carry.marks else None
            cones = rows.cones(self.options.pyramids)
            found = solve_step(assembler, equations, theta, rows, cones, guess, self.newton, last=last)
            if search.add_missed(found.kin.v, without is not None):
                continue
            record = self._record(rows, found, equations, without)
            if without is not None or not search.arrive(found.kin.v):
                return self._end(rows, record, assembler), record
            without = record

    def follow(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record
    ) -> tuple[FloatArray, Record]:
        """Return the same, with the decisions of an earlier run."""
        equations = self._equations(assembler, state, theta)
        before = self._beginning(state.q[0], state.v[0], state.t, state.step, theta)
        without = self.follow(assembler, state, theta, replay.inner[0])[1] if replay.inner else None
        kept = CarriedImpulses.of(replay.carry)
        rows = self._rows(kept.near, kept.stops, before, without)
        decided = (replay.decisions, kept.modes, kept.force)
        cones, guess = rows.cones(self.options.pyramids), state.v[0] / equations.c
        found = solve_step(assembler, equations, theta, rows, cones, guess, self.newton, decided)
        record = self._record(rows, found, equations, without)
        return self._end(rows, record, assembler), record

    @staticmethod
    def _record(rows: StepRows, found: ImpulseStepSolution, equations: StepEquations, without: Record | None) -> Record:
        carry = CarriedImpulses.solved(rows.contacts.near, rows.stops.near, found.force, found.cone).carry()
        solution = Solution(found.kin, found.mu, found.branch.decisions, equations.c, equations.dt, found.report, carry)
        return Record(solution, (1.0,), inner=() if without is None else (without,))

    def _end(self, rows: StepRows, record: Record, assembler: Assembler) -> FloatArray:
        """Return the coordinates (n,) at the end: impacts with a time within the part shift them."""
        times = self._times(rows, record, assembler)
        return record.kin.q if times is None else record.kin.q + times.shift(record.kin.v)

    @staticmethod
    def _times(rows: StepRows, record: Record, assembler: Assembler) -> ImpactTimes | None:
        if not rows.contacts.near.timed.any():
            return None
        return ImpactTimes(rows, assembler.system.partition.is_free, record.inner[0].kin.v)

    def _beginning(self, q: FloatArray, v: FloatArray, t: float, step: int, theta: FloatArray) -> Beginning:
        return Beginning.of(self.lift, Kinematics(q, v, np.zeros_like(q), t, step), theta)

    def _restitution(self, theta: FloatArray) -> FloatArray:
        return np.where(self.restitution >= 0, theta[self.restitution], 0.0)

    def _rows(
        self,
        near: NearPairs,
        stops: NearStops,
        before: Beginning,
        without: Record | None,
        known: Touches | None = None,
    ) -> StepRows:
        theta, options = before.theta, self.options
        free = None if without is None else before.push(without.kin.v)
        e = self._restitution(theta)
        contacts = ImpulseRows.of(self.pairs, near, e, before.rows, theta, options, self.dt, free, known)
        return StepRows(before, contacts, StopRows.of(self.stops, stops, before.kin.q, theta, options))

    def _recorded(self, record: Record, theta: FloatArray) -> tuple[CarriedImpulses, StepRows]:
        """Return what a record keeps of its contacts, and their rows."""
        kin, c = record.kin, record.c
        t = (kin.step - 1) * self.whole + (self.whole - self.late - self.dt)
        begin = self._beginning(kin.q - kin.v / c, kin.v - kin.a / c, t, kin.step - 1, theta)
        kept = CarriedImpulses.of(record.carry)
        return kept, self._rows(kept.near, kept.stops, begin, record.inner[0] if record.inner else None)

    def contact_forces(self, record: Record, theta: FloatArray) -> ContactForces:
        """Return the contact forces; see `Stepper.contact_forces`."""
        kept, step = self._recorded(record, theta)
        rows, force = step.contacts, step.of_contacts(kept.force)
        modes, margin = kept.modes[: rows.n], kept.margin[: rows.n]
        touching = modes != SEPARATE
        counts = {
            "touching": int(touching.sum()),
            "sticking": int((modes == STICK).sum()),
            "slipping": int((modes > STICK).sum()),
            "impacts": int(kept.near.impact.sum()),
            "weakly_active": int((kept.margin < WEAK).sum()),
        }
        if self.options.timed_impacts:
            early = kept.near.impact & ~kept.near.timed & (rows.at.gap > self.options.touching)
            counts["untimed_impacts"] = int(early.sum())
        if self.stops.n:
            counts["at_stops"] = int((kept.modes[rows.n :] != SEPARATE).sum())
        weak = tuple(
            WeakContact(int(point), int(shape), float(share))
            for point, shape, share in zip(rows.pairs.point, rows.pairs.shape, margin, strict=True)
            if share < WEAK
        )
        return ContactForces(
            step.over_rows.T @ force, rows.at.place[touching], rows.world(force)[touching],
            rows.pairs.rigid[touching], counts, modes[touching], margin[touching], weak, kept.natural_map,
        )  # fmt: skip

    def modes(self, record: Record) -> dict[int, int]:
        """Return the mode of every pair and stop that is near, by its number."""
        kept = CarriedImpulses.of(record.carry)
        number = np.concatenate([kept.near.pair, self.pairs.n + kept.stops.number])
        return dict(zip(number.tolist(), kept.modes.tolist(), strict=True))

    # --- derivatives --------------------------------------------------------------------------------------------------

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised:
        """Assemble and factor K = dr/du."""
        return NewtonSolve(self.newton).linearise(assembler, record.solution, theta)

    def _changes(self, rows: StepRows, kept: CarriedImpulses, record: Record) -> StepChanges:
        free = record.inner[0].kin.v if record.inner else None
        return StepChanges(rows, kept.force, record.kin.v, self.restitution[kept.near.pair], free)

    def _sensitivity(self, kept: CarriedImpulses, rows: StepRows, delassus: Delassus, v: FloatArray) -> Sensitivity:
        """Linearise the mode equations of a record."""
        u, cones = rows.matrix @ v + rows.shift, rows.cones(self.options.pyramids)
        return Sensitivity.at(delassus.matrix, cones, kept.force, u, kept.modes, self.options.relaxation)

    def _contact_cotangent(
        self,
        kept: CarriedImpulses,
        rows: StepRows,
        delassus: Delassus,
        v: FloatArray,
        u_bar: FloatArray,
        y: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return minus the cotangents of u at fixed forces, and those of the bounds, from y = K^-T u_bar."""
        cotangent = delassus.J @ y
        found = self._sensitivity(kept, rows, delassus, v).velocity_cotangent(cotangent)
        if not self.options.exploring:
            return found
        modes = wanted_modes(delassus.matrix, cotangent, rows.cones(self.options.pyramids), kept.modes)
        other = self._sensitivity(replace(kept, modes=modes), rows, delassus, v).velocity_cotangent(cotangent)
        larger = delassus.load_size(u_bar, y, other[0]) > (1.0 + 1e-9) * delassus.load_size(u_bar, y, found[0])
        if self.tally is not None:
            self.tally.add(larger)
        return other if larger else found

    def pullback(
        self,
        assembler: Assembler,
        record: Record,
        theta: FloatArray,
        bar: tuple[FloatArray, FloatArray],
        theta_bar: FloatArray,
        linearised: Linearised | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents of q_0 and v_0 (n,) from those at the end; add that of theta to ``theta_bar``."""
        system, c, kin, mu = assembler.system, record.c, record.kin, record.mu
        free, prescribed = system.partition.free, system.partition.prescribed
        kept, rows = self._recorded(record, theta)
        before, (q_bar, v_bar) = StateTangent.zeros(1, system.n), bar
        times, free_bar = self._times(rows, record, assembler), np.zeros(system.n)
        if times is not None:
            moved, free_bar = times.pullback(q_bar, kin.v, before, theta_bar)
            v_bar = v_bar + moved
        u_bar = q_bar + c * v_bar
        linearised = linearised or self.linearise(assembler, record, theta)
        J = rows.matrix
        delassus = Delassus(assembler, linearised.factors, J, c)
        both = linearised.factors.solve_transposed(delassus.extended(u_bar[free]))
        by_rows, bound = np.zeros(J.shape[0]), np.zeros(rows.n)
        if rows.n:
            by_rows, bound = self._contact_cotangent(kept, rows, delassus, kin.v, u_bar[free], both[: free.size])
            both = both - c * linearised.factors.solve_transposed(delassus.extended(delassus.J.T @ by_rows))
        adjoint = np.zeros(system.n)
        adjoint[free] = both[: free.size]
        by = linearised.branch.state_vjp(
            kin, mu, theta, adjoint, both[free.size :], ("q" if prescribed.size else "") + "va"
        )
        contact_bar = J.T @ by_rows
        if prescribed.size:
            by_position = (u_bar - by.q - c * by.v - c * c * by.a - c * contact_bar)[prescribed]
            system.motion.vjp(kin.t, theta, by_position, None, theta_bar)
        share = np.zeros_like(theta_bar)
        linearised.branch.parameter_vjp(kin, mu, theta, adjoint, both[free.size :], share)
        theta_bar -= share
        before.q[0] += c * (by.v + c * by.a - v_bar + contact_bar)
        before.v[0] += c * by.a
        if rows.n:
            changes = self._changes(rows, kept, record)
            changes.pullback(adjoint, by_rows, bound, before, theta_bar)
            if record.inner:
                free_bar += changes.free_pullback(by_rows, before, theta_bar)
        if record.inner:
            # The factors above are not asked again: the assembler may make others.
            more = self.pullback(assembler, record.inner[0], theta, (np.zeros(system.n), free_bar), theta_bar)
            return before.q[0] + more[0], before.v[0] + more[1]
        return before.q[0], before.v[0]

    def pushforward(
        self,
        assembler: Assembler,
        record: Record,
        theta: FloatArray,
        tangents: StateTangents,
        directions: Directions,
        linearised: Linearised | None = None,
    ) -> StateTangents:
        """Return the tangents at the end, and those at the beginning as the older pair, along all that move them."""
        if self.options.exploring:
            raise InputError(
                "the complementarity-aware choice depends on the objective: it has no tangents",
                found="gradient.contact = 'explore'", expected="'exact' or 'relaxed', or an optimizer with gradients",
            )  # fmt: skip
        system, c, kin, mu = assembler.system, record.c, record.kin, record.mu
        free, prescribed, n = system.partition.free, system.partition.prescribed, system.n
        kept, rows = self._recorded(record, theta)
        without = record.inner[0] if record.inner else None
        free_dot = tangents
        if without is not None:
            free_dot = self.pushforward(assembler, without, theta, tangents, directions)
        linearised = linearised or self.linearise(assembler, record, theta)
        by_theta = linearised.branch.parameter_tangents(kin, mu, theta, directions)
        moved = system.motion_tangents(kin.t, theta, directions)
        changes = self._changes(rows, kept, record)
        contact = changes.by_theta(directions)
        times = self._times(rows, record, assembler)
        timed = contact if times is None else times.by_theta(kin.v, directions)
        tangents = tangents.including(by_theta.index, moved.index, contact.index, timed.index, free_dot.index)
        count = tangents.index.size
        if not count:
            return tangents
        before, q_dot = tangents.dot, np.zeros((n, count))
        q_dot[np.ix_(prescribed, tangents.places(moved.index))] = moved.values
        shift = c * (q_dot - before.q[0])
        rhs = -assembler.product(kin, mu, theta, linearised.branch, q_dot, shift, c * (shift - before.v[0]))
        rhs[:, tangents.places(by_theta.index)] -= by_theta.values
        J = rows.matrix
        delassus = Delassus(assembler, linearised.factors, J, c)
        if rows.n:
            u_dot, bound_dot = np.zeros((J.shape[0], count)), np.zeros((rows.n, count))
            pushed, moving = changes.by_state(before.q[0], before.v[0])
            places = tangents.places(contact.index)
            pushed[:, places] += contact.values[:n]
            moving[:, places] += contact.values[n : n + J.shape[0]]
            if without is not None:
                moving[:, tangents.places(free_dot.index)] += changes.by_free(free_dot.dot.v[0])
            bound_dot[:, places] = contact.values[n + J.shape[0] :]
            rhs[:n] += pushed
            q_dot[free] = linearised.factors.solve(np.concatenate([rhs[free], rhs[n:]]))[: free.size]
            u_dot = J @ (c * (q_dot - before.q[0])) + moving
            sensitivity = self._sensitivity(kept, rows, delassus, kin.v)
            q_dot[free] += delassus.columns[: free.size] @ sensitivity.pushforward(None, u_dot, bound_dot)
        else:
            q_dot[free] = linearised.factors.solve(np.concatenate([rhs[free], rhs[n:]]))[: free.size]
        v_dot = c * (q_dot - before.q[0])
        if times is not None:
            q_dot = q_dot + times.by_state(before.q[0], before.v[0], kin.v, v_dot)
            q_dot[:, tangents.places(timed.index)] += timed.values
            q_dot[:, tangents.places(free_dot.index)] += times.by_free(free_dot.dot.v[0], kin.v)
        after = StateTangent(np.stack([q_dot, before.q[0]]), np.stack([v_dot, before.v[0]]))
        return StateTangents(tangents.index, after)
