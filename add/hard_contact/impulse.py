"""A stepper with contact in velocities, Coulomb's cone and exact derivatives; no stiffness of contact."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from add.cones import WEAK, Cones, Sensitivity
from add.equations import charts
from add.equations.kinematics import Carry, Kinematics, State, StateTangent
from add.equations.tangents import Directions, StateTangents
from add.hard_contact.geometry import Touches, touches
from add.hard_contact.impact_times import ImpactTimes, free_dofs, one_time
from add.hard_contact.impulse_carry import CarriedImpulses
from add.hard_contact.impulse_derivatives import ContactDerivatives
from add.hard_contact.impulse_options import ImpulseOptions
from add.hard_contact.impulse_rows import ImpulseRows, NearPairs
from add.hard_contact.impulse_solve import Delassus, ImpulseStepSolution, solve_step
from add.hard_contact.pairs import ContactPairs
from add.kernels.cone_modes import SEPARATE, STICK
from add.simulation import BDFFormula, ContactForces, Record, Solution, StartUp, WeakContact
from add.simulation.implicit_solve import Linearised, NewtonSolve
from add.simulation.stepper import DifferentiableStepper
from add.solve.step_equations import NewtonOptions, StepEquations
from add.solve.step_matrix import Assembler
from add.typing import BoolArray, FloatArray, IntArray


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
    options : ImpulseOptions
    newton : NewtonOptions
    """

    pairs: ContactPairs
    step_size: float
    restitution: IntArray
    options: ImpulseOptions = ImpulseOptions()  # noqa: RUF009
    newton: NewtonOptions = NewtonOptions()
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
        before = Kinematics(state.q[0], state.v[0], np.zeros_like(state.q[0]), state.t, state.step)
        guess = state.v[0] / equations.c
        if replay is not None:
            kept = CarriedImpulses.of(replay.carry)
            rows = self._rows(kept.near, before, theta, self._free(kept.near, assembler, before, theta))
            decided = (replay.decisions, kept.modes, kept.force)
            cones = self._cones(rows, theta)
            found = solve_step(assembler, equations, theta, rows, cones, guess, self.newton, decided)
        else:
            rows, found = self._over_near_pairs(assembler, equations, before, theta, state.carry)
        carry = CarriedImpulses.solved(rows.near, found.force, found.cone).carry()
        solution = Solution(found.kin, found.mu, found.branch.decisions, equations.c, equations.dt, found.report, carry)
        times, changed = self._times(rows, assembler), replay.charts if replay else None
        if not times.any:
            return self.formula.finish(assembler.system, state, solution, changed)
        kin = found.kin
        shifted = replace(solution, kin=replace(kin, q=kin.q + times.shift(state.v[0], kin.v)))
        following, record = self.formula.finish(assembler.system, state, shifted, changed)
        # Derivatives are taken where the equations of the step hold.
        return following, replace(record, solution=solution)

    @staticmethod
    def _times(rows: ImpulseRows, assembler: Assembler) -> ImpactTimes:
        return ImpactTimes(rows, assembler.system.partition.is_free)

    def _over_near_pairs(
        self, assembler: Assembler, equations: StepEquations, before: Kinematics, theta: FloatArray, carry: Carry
    ) -> tuple[ImpulseRows, ImpulseStepSolution]:
        """Solve over the pairs that touch or would be passed through; add those that are missed, and solve again."""
        at = touches(self.pairs, before, theta)
        guess = before.v / equations.c
        resting = self._resting(theta, assembler)
        waits = (self._restitution(theta) > 0.0) & (at.gap > self.options.touching)
        if self.options.timed_impacts:  # what is slow comes to rest at the gap's end
            waits &= (at.normal_velocity < -resting) & (at.gap + self.dt * at.normal_velocity > 0.0)
        may = self._movable(assembler) & ~waits
        # With what gravity may add: of points on one plane round-off must not choose some.
        closing = np.minimum(at.normal_velocity - resting, 0.0)
        near = may & (at.gap + self.dt * closing <= self.options.touching)
        while True:
            pairs = np.flatnonzero(near)
            decided = self._decide(pairs, at.gap[pairs], at.normal_velocity[pairs], theta, assembler)
            rows = self._rows(decided, before, theta, self._free(decided, assembler, before, theta), at)
            last = CarriedImpulses.of(carry).on(pairs) if carry.marks else None
            cones = self._cones(rows, theta)
            found = solve_step(assembler, equations, theta, rows, cones, guess, self.newton, last=last)
            if not (may & ~near).any():
                return rows, found
            after = touches(self.pairs, replace(before, v=found.kin.v), theta)
            missed = may & ~near & (at.gap + self.dt * after.normal_velocity < -1e-6 * self.options.touching)
            if not missed.any():
                return rows, found
            near |= missed

    def _movable(self, assembler: Assembler) -> BoolArray:
        """Return which pairs (m,) have a free coordinate: what is held cannot get out of the way."""
        free = np.zeros(assembler.system.n + 1, dtype=bool)
        free[assembler.system.partition.free] = True
        return np.asarray(free[self.pairs.dofs()].any(axis=1))

    def _restitution(self, theta: FloatArray) -> FloatArray:
        return np.where(self.restitution >= 0, theta[self.restitution], 0.0)

    def _decide(
        self, pairs: IntArray, gap: FloatArray, approach: FloatArray, theta: FloatArray, assembler: Assembler
    ) -> NearPairs:
        """Decide who is stabilised, who anticipates, and who bounces."""
        options, dt = self.options, self.dt
        slope = np.where(gap > 0.0, 1.0 / dt, options.stabilisation / dt)
        slope[-slope * gap > options.stabilisation_speed] = 0.0
        # What rests on the ground approaches it by what gravity does in a step, and must not bounce.
        resting = self._resting(theta, assembler)
        bounces = (self._restitution(theta)[pairs] > 0.0) & (approach < -resting)
        timed = bounces & (gap > 0.0) & (gap + dt * approach <= 0.0) & options.timed_impacts
        impact = bounces & (gap <= options.touching) | timed
        if timed.any():
            is_free = assembler.system.partition.is_free
            dofs = free_dofs(self.pairs.dofs()[pairs[impact]], is_free)
            timed[impact] &= one_time(np.maximum(-gap[impact] / approach[impact], 0.0), dofs, is_free.size, dt)
        # What bounces leaves the shape by itself.
        return NearPairs(pairs, np.where(impact, 0.0, slope), impact, timed)

    def _resting(self, theta: FloatArray, assembler: Assembler) -> float:
        """Return the speed up to which an approach may be that of a body at rest: twice what gravity does in a step."""
        layout = assembler.system.parameters
        if not any(entry.name == "gravity" for entry in layout.entries):
            return 0.0
        return 2.0 * self.dt * float(np.linalg.norm(layout.view(theta, "gravity")))

    def _rows(
        self,
        near: NearPairs,
        before: Kinematics,
        theta: FloatArray,
        free: Record | None = None,
        known: Touches | None = None,
    ) -> ImpulseRows:
        velocity = None if free is None else free.kin.v
        e = self._restitution(theta)
        return ImpulseRows.of(self.pairs, near, e, before, theta, self.options, self.dt, velocity, known)

    def _free(self, near: NearPairs, assembler: Assembler, before: Kinematics, theta: FloatArray) -> Record | None:
        """Return the step without contacts, where impacts within the step ask for it."""
        if not near.timed.any():
            return None
        q, v = np.stack([before.q, before.q]), np.stack([before.v, before.v])
        equations = self.formula.equations(assembler, State(before.t, before.step, q, v), theta)
        nothing = near.none()
        cones, guess = Cones.half_lines(0), before.v / equations.c
        found = solve_step(assembler, equations, theta, self._rows(nothing, before, theta), cones, guess, self.newton)
        carry = CarriedImpulses.solved(nothing, found.force, None).carry()
        solution = Solution(found.kin, found.mu, found.branch.decisions, equations.c, equations.dt, found.report, carry)
        return Record(solution, (1.0,))

    def _cones(self, rows: ImpulseRows, theta: FloatArray) -> Cones:
        if not rows.n:
            return Cones.half_lines(0)
        return (Cones.pyramids if self.options.pyramids else Cones.friction)(rows.pairs.friction(theta))

    def contact_forces(self, record: Record, theta: FloatArray) -> ContactForces:
        """Return the contact forces of a step; see `Stepper.contact_forces`."""
        kept, rows, _ = self._recorded(record, theta)
        generalised = rows.matrix(record.kin.q.size).T @ kept.force
        touching = kept.modes != SEPARATE
        counts = {
            "touching": int(touching.sum()),
            "sticking": int((kept.modes == STICK).sum()),
            "slipping": int((kept.modes > STICK).sum()),
            "impacts": int(kept.near.impact.sum()),
            "weakly_active": int((kept.margin < WEAK).sum()),
        }
        if self.options.timed_impacts:
            early = kept.near.impact & ~kept.near.timed & (rows.at.gap > self.options.touching)
            counts["untimed_impacts"] = int(early.sum())
        force = rows.world(kept.force)
        weak = tuple(
            WeakContact(term, point, shape, float(margin))
            for (term, point, shape), margin in zip(rows.pairs.source.tolist(), kept.margin, strict=True)
            if margin < WEAK
        )
        return ContactForces(
            generalised, rows.at.place[touching], force[touching], rows.pairs.rigid[touching], counts,
            kept.modes[touching], kept.margin[touching], weak, kept.natural_map,
        )  # fmt: skip

    def contact_changes(self, record: Record, other: Record) -> int:
        """Return how many pairs are near in one record alone, or in another mode."""
        one, two = (CarriedImpulses.of(item.carry) for item in (record, other))
        modes = [dict(zip(kept.near.pair.tolist(), kept.modes.tolist(), strict=True)) for kept in (one, two)]
        return sum(modes[0].get(pair, SEPARATE) != modes[1].get(pair, SEPARATE) for pair in {*modes[0], *modes[1]})

    def _recorded(
        self, record: Record, theta: FloatArray, assembler: Assembler | None = None
    ) -> tuple[CarriedImpulses, ImpulseRows, Record | None]:
        """Return what a record keeps of its contacts, their rows, and the step without them (see `_free`)."""
        kin, c = record.kin, record.c
        q, v = kin.q - kin.v / c, kin.v - kin.a / c
        before = Kinematics(q, v, np.zeros_like(q), (kin.step - 1) * self.dt, kin.step - 1)
        kept = CarriedImpulses.of(record.carry)
        free = None if assembler is None else self._free(kept.near, assembler, before, theta)
        return kept, self._rows(kept.near, before, theta, free), free

    # --- derivatives --------------------------------------------------------------------------------------------------

    @staticmethod
    def _aside(record: Record, assembler: Assembler) -> Assembler:
        """Return an assembler for the step without contacts: the other one may be at work in another thread."""
        asked = CarriedImpulses.of(record.carry).near.timed.any()
        return (assembler.copy() or assembler) if asked else assembler

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised:
        """Assemble and factor K = dr/du; see `DifferentiableStepper.linearise`."""
        return NewtonSolve(self.newton).linearise(assembler, record.solution, theta)

    def _contacts(
        self, rows: ImpulseRows, kept: CarriedImpulses, v: FloatArray, theta: FloatArray
    ) -> ContactDerivatives:
        return ContactDerivatives(rows, kept.force, v, theta, self.restitution[kept.near.pair], self.dt)

    def _sensitivity(
        self, kept: CarriedImpulses, rows: ImpulseRows, delassus: Delassus, v: FloatArray, theta: FloatArray
    ) -> Sensitivity:
        """Linearise the mode equations of a record."""
        u = rows.matrix(v.size) @ v + rows.shift
        cones = self._cones(rows, theta)
        return Sensitivity.at(delassus.matrix, cones, kept.force, u, kept.modes, self.options.relaxation)

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
        J = rows.matrix(system.n)
        delassus = Delassus(assembler, linearised.factors, J, c)
        both = linearised.factors.solve_transposed(delassus.extended(u_bar[free]))
        by_rows, bound = np.zeros(J.shape[0]), np.zeros(rows.n)
        if rows.n:
            sensitivity = self._sensitivity(kept, rows, delassus, kin.v, theta)
            by_rows, bound = sensitivity.velocity_cotangent(delassus.J @ both[: free.size])
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
            contacts = self._contacts(rows, kept, kin.v, theta)
            contacts.pullback(adjoint, by_rows, bound, before, theta_bar)
            if without is not None:
                free_bar = StateTangent.zeros(self.n_history, system.n)
                free_bar.v[0] = contacts.free_cotangent(by_rows)
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
        system, c, kin, mu = assembler.system, record.c, record.kin, record.mu
        free, prescribed, n = system.partition.free, system.partition.prescribed, system.n
        aside = self._aside(record, assembler)
        kept, rows, without = self._recorded(record, theta, aside)
        free_dot = tangents if without is None else self.pushforward(aside, without, theta, tangents, directions)
        linearised = None if without is not None and aside is assembler else linearised
        linearised = linearised or self.linearise(assembler, record, theta)
        by_theta = linearised.branch.parameter_tangents(kin, mu, theta, directions)
        moved = system.motion_tangents(kin.t, theta, directions)
        contacts = self._contacts(rows, kept, kin.v, theta)
        contact = contacts.by_theta(directions)
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
        J = rows.matrix(n)
        delassus = Delassus(assembler, linearised.factors, J, c)
        if rows.n:
            u_dot, bound_dot = np.zeros((J.shape[0], count)), np.zeros((rows.n, count))
            pushed, moving = contacts.by_state(before.q[0], before.v[0])
            places = tangents.places(contact.index)
            pushed[:, places] += contact.values[:n]
            moving[:, places] += contact.values[n : n + J.shape[0]]
            if without is not None:
                moving[:, tangents.places(free_dot.index)] += contacts.by_free(free_dot.dot.v[0])
            bound_dot[:, places] = contact.values[n + J.shape[0] :]
            rhs[:n] += pushed
            q_dot[free] = linearised.factors.solve(np.concatenate([rhs[free], rhs[n:]]))[: free.size]
            u_dot = J @ (c * (q_dot - before.q[0])) + moving
            sensitivity = self._sensitivity(kept, rows, delassus, kin.v, theta)
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
