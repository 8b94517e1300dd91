"""A stepper with contact in velocities, Coulomb's cone and exact derivatives; no stiffness of contact."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from add.cones import WEAK, Sensitivity
from add.equations import charts
from add.equations.kinematics import Carry, Kinematics, State, StateTangent
from add.equations.lift import Lift
from add.equations.tangents import Directions, StateTangents
from add.errors import InputError
from add.hard_contact.beginning import Beginning
from add.hard_contact.exploring import ChoiceTally, wanted_modes
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
from add.kernels.contact_places import Touches
from add.simulation import BDFFormula, ContactForces, Record, Solution, StartUp, WeakContact
from add.simulation.implicit_solve import Linearised, NewtonSolve
from add.simulation.stepper import DifferentiableStepper
from add.solve.step_equations import NewtonOptions, StepEquations
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class ImpulseContact(DifferentiableStepper):
    """One step of r(q, v, a) - J^T F = 0 with Signorini's law in velocities and Coulomb's cone (see `impulse_rows`).

        v = (q - q_0)/dt,   a = (v - v_0)/dt,   0 <= F_n  _|_  w_n + e w_n- + b(g_0) >= 0,   |F_t| <= c_f F_n

    Order one. Geometry is that of the beginning of the step; a step depends on (q_0, v_0) and theta alone. Derivatives
    are those of the equations of the modes (separate, stick, slide) that the step ended in.

    Attributes
    ----------
    pairs : ContactPairs
        What may touch what.
    step_size : float
        dt [s].
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
    step_size: float
    restitution: IntArray
    lift: Lift
    stops: JointStops
    options: ImpulseOptions = ImpulseOptions()  # noqa: RUF009
    newton: NewtonOptions = NewtonOptions()
    tally: ChoiceTally | None = field(default=None, repr=False, compare=False)
    formula: BDFFormula = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "formula", BDFFormula(self.step_size, 1, StartUp.BDF1))

    @property
    def order(self) -> int:
        """One."""
        return 1

    @property
    def dt(self) -> float:
        """Step [s]."""
        return self.step_size

    @property
    def n_history(self) -> int:
        """Two pairs, so that objectives may interpolate."""
        return 2

    def solved_by(self, options: NewtonOptions) -> ImpulseContact:
        """Return the stepper with other options of Newton's method."""
        return replace(self, newton=options)

    def start(self, q: FloatArray, v: FloatArray) -> State:
        """Return the state at t = 0."""
        return self.formula.start(q, v)

    def start_pullback(self, state_bar: StateTangent) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents of the initial q and v."""
        return state_bar.q.sum(axis=0), state_bar.v.sum(axis=0) - self.dt * state_bar.q[1]

    def start_pushforward(self, q_dot: FloatArray, v_dot: FloatArray) -> StateTangent:
        """Return the tangent of the state at t = 0."""
        return StateTangent(np.stack([q_dot, q_dot - self.dt * v_dot]), np.stack([v_dot, v_dot]))

    # --- forward ------------------------------------------------------------------------------------------------------

    def step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step; see `DifferentiableStepper.step`."""
        equations = self.formula.equations(assembler, state, theta)
        kin = Kinematics(state.q[0], state.v[0], np.zeros_like(state.q[0]), state.t, state.step)
        before = Beginning.of(self.lift, kin, theta)
        if replay is not None:
            kept = CarriedImpulses.of(replay.carry)
            rows = self._rows(kept.near, kept.stops, before, self._free(kept.near, assembler, before))
            decided = (replay.decisions, kept.modes, kept.force)
            cones, guess = rows.cones(self.options.pyramids), state.v[0] / equations.c
            found = solve_step(assembler, equations, theta, rows, cones, guess, self.newton, decided)
        else:
            rows, found = self._over_near(assembler, equations, before, state.carry)
        carry = CarriedImpulses.solved(rows.contacts.near, rows.stops.near, found.force, found.cone).carry()
        solution = Solution(found.kin, found.mu, found.branch.decisions, equations.c, equations.dt, found.report, carry)
        times, changed = self._times(rows, assembler), replay.charts if replay else None
        if not times.any:
            return self.formula.finish(assembler.system, state, solution, changed)
        kin = found.kin
        shifted = replace(solution, kin=replace(kin, q=kin.q + times.shift(kin.v)))
        following, record = self.formula.finish(assembler.system, state, shifted, changed)
        # Derivatives are taken where the equations of the step hold.
        return following, replace(record, solution=solution)

    @staticmethod
    def _times(rows: StepRows, assembler: Assembler) -> ImpactTimes:
        return ImpactTimes(rows, assembler.system.partition.is_free)

    def _over_near(
        self, assembler: Assembler, equations: StepEquations, before: Beginning, carry: Carry
    ) -> tuple[StepRows, ImpulseStepSolution]:
        """Solve over what touches or would be passed through; add what is missed, and solve again."""
        e = self._restitution(before.theta)
        search = NearSearch(self.pairs, self.stops, e, self.options, self.dt, before, assembler.system)
        guess = before.kin.v / equations.c
        while True:
            pairs, stops = search.decided()
            rows = self._rows(pairs, stops, before, self._free(pairs, assembler, before), search.at)
            last = CarriedImpulses.of(carry).on(pairs.pair, stops.number) if carry.marks else None
            cones = rows.cones(self.options.pyramids)
            found = solve_step(assembler, equations, before.theta, rows, cones, guess, self.newton, last=last)
            if not search.add_missed(found.kin.v):
                return rows, found

    def _restitution(self, theta: FloatArray) -> FloatArray:
        return np.where(self.restitution >= 0, theta[self.restitution], 0.0)

    def _rows(
        self,
        near: NearPairs,
        stops: NearStops,
        before: Beginning,
        free: Record | None = None,
        known: Touches | None = None,
    ) -> StepRows:
        theta, options = before.theta, self.options
        velocity = None if free is None else before.push(free.kin.v)
        e = self._restitution(theta)
        contacts = ImpulseRows.of(self.pairs, near, e, before.rows, theta, options, self.dt, velocity, known)
        return StepRows(before, contacts, StopRows.of(self.stops, stops, before.kin.q, theta, options))

    def _free(self, near: NearPairs, assembler: Assembler, before: Beginning) -> Record | None:
        """Return the step without contacts, where impacts within the step ask for it."""
        if not near.timed.any():
            return None
        kin, theta = before.kin, before.theta
        q, v = np.stack([kin.q, kin.q]), np.stack([kin.v, kin.v])
        equations = self.formula.equations(assembler, State(kin.t, kin.step, q, v), theta)
        rows = self._rows(near.none(), NearStops.none(), before)
        cones, guess = rows.cones(self.options.pyramids), kin.v / equations.c
        found = solve_step(assembler, equations, theta, rows, cones, guess, self.newton)
        carry = CarriedImpulses.solved(rows.contacts.near, rows.stops.near, found.force, None).carry()
        solution = Solution(found.kin, found.mu, found.branch.decisions, equations.c, equations.dt, found.report, carry)
        return Record(solution, (1.0,))

    def contact_forces(self, record: Record, theta: FloatArray) -> ContactForces:
        """Return the contact forces of a step; see `Stepper.contact_forces`."""
        kept, step, _ = self._recorded(record, theta)
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
            WeakContact(term, point, shape, float(share))
            for (term, point, shape), share in zip(rows.pairs.source.tolist(), margin, strict=True)
            if share < WEAK
        )
        return ContactForces(
            step.over_rows.T @ force, rows.at.place[touching], rows.world(force)[touching],
            rows.pairs.rigid[touching], counts, modes[touching], margin[touching], weak, kept.natural_map,
        )  # fmt: skip

    def contact_changes(self, record: Record, other: Record) -> int:
        """Return how many pairs and stops are near in one record alone, or in another mode."""
        modes = []
        for item in (record, other):
            kept = CarriedImpulses.of(item.carry)
            number = np.concatenate([kept.near.pair, self.pairs.n + kept.stops.number])
            modes.append(dict(zip(number.tolist(), kept.modes.tolist(), strict=True)))
        return sum(modes[0].get(pair, SEPARATE) != modes[1].get(pair, SEPARATE) for pair in {*modes[0], *modes[1]})

    def _recorded(
        self, record: Record, theta: FloatArray, assembler: Assembler | None = None
    ) -> tuple[CarriedImpulses, StepRows, Record | None]:
        """Return what a record keeps of its contacts, their rows, and the step without them (see `_free`)."""
        kin, c = record.kin, record.c
        q, v = kin.q - kin.v / c, kin.v - kin.a / c
        before = Kinematics(q, v, np.zeros_like(q), (kin.step - 1) * self.dt, kin.step - 1)
        begin = Beginning.of(self.lift, before, theta)
        kept = CarriedImpulses.of(record.carry)
        free = None if assembler is None else self._free(kept.near, assembler, begin)
        return kept, self._rows(kept.near, kept.stops, begin, free), free

    # --- derivatives --------------------------------------------------------------------------------------------------

    @staticmethod
    def _aside(record: Record, assembler: Assembler) -> Assembler:
        """Return an assembler for the step without contacts: the other one may be at work in another thread."""
        asked = CarriedImpulses.of(record.carry).near.timed.any()
        return (assembler.copy() or assembler) if asked else assembler

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised:
        """Assemble and factor K = dr/du; see `DifferentiableStepper.linearise`."""
        return NewtonSolve(self.newton).linearise(assembler, record.solution, theta)

    def _changes(self, rows: StepRows, kept: CarriedImpulses, v: FloatArray, free: Record | None) -> StepChanges:
        restitution, without = self.restitution[kept.near.pair], None if free is None else free.kin.v
        return StepChanges(rows, kept.force, v, restitution, self.dt, without)

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
        state_bar: StateTangent,
        theta_bar: FloatArray,
        linearised: Linearised | None = None,
    ) -> StateTangent:
        """Pull a cotangent back through one step; see `DifferentiableStepper.pullback`."""
        system, c, kin, mu = assembler.system, record.c, record.kin, record.mu
        free, prescribed = system.partition.free, system.partition.prescribed
        if record.unchanged is not None:
            state_bar = charts.pullback(record.unchanged, record.charts, state_bar)
        aside = self._aside(record, assembler)
        kept, rows, without = self._recorded(record, theta, aside)
        linearised = None if without is not None and aside is assembler else linearised
        before, times = StateTangent.zeros(self.n_history, system.n), self._times(rows, assembler)
        if times.any:
            moved = times.pullback(state_bar.q[0], kin.v, before, theta_bar)
            state_bar = StateTangent(state_bar.q, np.stack([state_bar.v[0] + moved, state_bar.v[1]]))
        u_bar = state_bar.q[0] + c * state_bar.v[0]
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
        wanted = ("q" if prescribed.size else "") + "va"
        bar = linearised.branch.state_vjp(kin, mu, theta, adjoint, both[free.size :], wanted)
        contact_bar = J.T @ by_rows
        if prescribed.size:
            by_position = (u_bar - bar.q - c * bar.v - c * c * bar.a - c * contact_bar)[prescribed]
            system.motion.vjp(kin.t, theta, by_position, None, theta_bar)
        share = np.zeros_like(theta_bar)
        linearised.branch.parameter_vjp(kin, mu, theta, adjoint, both[free.size :], share)
        theta_bar -= share
        before.q[0] += state_bar.q[1] + c * (bar.v + c * bar.a - state_bar.v[0] + contact_bar)
        before.v[0] += state_bar.v[1] + c * bar.a
        if rows.n:
            changes = self._changes(rows, kept, kin.v, without)
            changes.pullback(adjoint, by_rows, bound, before, theta_bar)
            if without is not None:
                free_bar = StateTangent.zeros(self.n_history, system.n)
                free_bar.v[0] = changes.free_pullback(by_rows, before, theta_bar)
                more = self.pullback(aside, without, theta, free_bar, theta_bar)
                before.q[0] += more.q[0]
                before.v[0] += more.v[0]
        return before

    def pushforward(
        self,
        assembler: Assembler,
        record: Record,
        theta: FloatArray,
        tangents: StateTangents,
        directions: Directions,
        linearised: Linearised | None = None,
    ) -> StateTangents:
        """Push tangents forward through one step; see `DifferentiableStepper.pushforward`."""
        if self.options.exploring:
            raise InputError(
                "the complementarity-aware choice depends on the objective: it has no tangents",
                found="gradient.contact = 'explore'", expected="'exact' or 'relaxed', or an optimizer with gradients",
            )  # fmt: skip
        system, c, kin, mu = assembler.system, record.c, record.kin, record.mu
        free, prescribed, n = system.partition.free, system.partition.prescribed, system.n
        aside = self._aside(record, assembler)
        kept, rows, without = self._recorded(record, theta, aside)
        free_dot = tangents if without is None else self.pushforward(aside, without, theta, tangents, directions)
        linearised = None if without is not None and aside is assembler else linearised
        linearised = linearised or self.linearise(assembler, record, theta)
        by_theta = linearised.branch.parameter_tangents(kin, mu, theta, directions)
        moved = system.motion_tangents(kin.t, theta, directions)
        changes = self._changes(rows, kept, kin.v, without)
        contact = changes.by_theta(directions)
        times = self._times(rows, assembler)
        timed = times.by_theta(kin.v, directions) if times.any else contact
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
        if times.any:
            q_dot = q_dot + times.by_state(before.q[0], before.v[0], kin.v, v_dot)
            q_dot[:, tangents.places(timed.index)] += timed.values
        after = StateTangent(np.stack([q_dot, before.q[0]]), np.stack([v_dot, before.v[0]]))
        if record.unchanged is not None:
            after = charts.pushforward(record.unchanged, record.charts, after)
        return StateTangents(tangents.index, after)
