"""A step, or a part of one, with contact in velocities and Coulomb's cone: its solution and its exact derivatives."""

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from add.compiled.impulse_near import SUDDEN, Possible, Rules
from add.compiled.impulses import at_hand
from add.compiled.newton import Criteria
from add.compiled.steps import Block, Timing
from add.cones import WEAK
from add.equations.kinematics import Directions, Kinematics, State, StateTangent, StateTangents, Weights
from add.equations.lift import Lift
from add.equations.system import System
from add.errors import InputError
from add.hard_contact.geometry import ContactPairs, Touches
from add.hard_contact.impact_times import ImpactTimes, NearSearch, resting_speed
from add.hard_contact.impulse_coupling import CarriedImpulses, ChoiceTally, ImpulseCoupling, kept_of
from add.hard_contact.impulse_rows import ImpulseRows, NearPairs
from add.hard_contact.impulse_solve import Delassus, ImpulseStepSolution, solve_step
from add.hard_contact.law import ImpulseOptions
from add.hard_contact.step_changes import StepChanges
from add.hard_contact.step_rows import Beginning, JointStops, NearStops, StepRows, StopRows
from add.kernels.cone_modes import SEPARATE, STICK
from add.kernels.contact_rows import steps_apart
from add.linalg import LinearSolve
from add.simulation import ContactForces, Record, Solution, WeakContact
from add.simulation.bdf import record_of
from add.simulation.derivative import Instant, Linearised, linearise
from add.simulation.stepper import Pair, PushedStep, StepPart, TakenStep
from add.solve.step_equations import NewtonOptions, StepEquations
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray

#: Energy that impacts may add to that of a step without them, as a share of the kinetic one, before it is divided.
GAIN = 1e-5
#: The same that a step gives by which joints turn far, of that before it, and the turn [rad]: links that swing in
#: coordinates of other links feed themselves, and most where an impact sets them going.
GAIN_SWINGING, TURN = 1e-3, 0.1


@final
@dataclass(frozen=True)
class ImpulsePart(StepPart):
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
    possible : Possible
        The same for compiled steps.
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
    possible: Possible
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
        self,
        assembler: Assembler,
        state: State,
        theta: FloatArray,
        may_divide: bool,
        may_gain: bool,
        tried: bool = False,
    ) -> tuple[FloatArray, Record] | None:
        """Return the coordinates (n,) at the end, and the record; None where the part is to be divided.

        That is, where one body has impacts at several times or joints turn so far that energy grows and
        ``may_divide``, or where impacts give energy and not ``may_gain``. ``tried``: compiled steps have not found it.

        Raises
        ------
        SolverError
            If the equations are not solved.
        """
        equations = self._equations(assembler, state, theta)
        at_once = None if tried else self.at_once(assembler, state, theta, 1, may_divide)
        if at_once is not None:
            solution = record_of(at_once, 0).solution
            kin = replace(solution.kin, t=equations.t)  # of a part
            return kin.q, Record(replace(solution, kin=kin), (1.0,))
        before = self._beginning(state.q[0], state.v[0], state.t, state.step, theta)
        e, movable = self._restitution(theta), self.possible.movable
        search = NearSearch(
            self.pairs, self.stops, e, self.options, self.dt, self.whole, before, assembler.system, movable
        )
        record, guess, carry, without = None, state.v[0] / equations.c, state.carry, None
        while True:
            pairs, stops, apart = search.decided()
            if apart and may_divide:
                return None
            rows = self._rows(pairs, stops, before, without, search.at)
            last = CarriedImpulses.of(carry).on(pairs.pair, stops.number) if carry.marks else None
            cones = rows.cones(self.options.pyramids)
            solved = solve_step(assembler, equations, theta, rows, cones, guess, self.newton, last=last)
            if search.add_missed(solved.kin.v, without is not None):
                continue
            record = self._record(rows, solved, equations, without)
            if without is not None or not search.arrive(solved.kin.v):
                end = self._end(rows, record, assembler)
                v, was = (speeds[self.lift.n_same :] for speeds in (solved.kin.v, state.v[0]))
                swings = np.maximum(np.abs(v), np.abs(v - was) / SUDDEN).max(initial=0.0) * self.dt > TURN
                others = [before.kin] if without is None else [before.kin, without.kin]
                if may_divide and swings and self._gains(assembler, others[:1], record, end, theta, GAIN_SWINGING):
                    return None
                if not may_gain and without is not None and self._gains(assembler, others, record, end, theta, GAIN):
                    return None
                return end, record
            without = record

    def at_once(self, assembler: Assembler, state: State, theta: FloatArray, n: int, may_divide: bool) -> Block | None:
        """Return up to ``n`` compiled steps, or the part; None where the normal path is not enough."""
        compiled, options, newton = assembler.at_once, self.options, self.newton
        system = assembler.system
        if compiled is None or options.pyramids or self.lift.carried or system.sticking or system.n_multipliers:
            return None
        if not at_hand():
            return None
        resting = resting_speed(system, theta, self.whole)
        above, turn = options.touching if self.dt < self.whole else 0.0, TURN if may_divide else math.inf
        speed, share = options.stabilisation_speed if options.stabilisation > 0.0 else 0.0, options.stabilisation
        # Numbers of Python's programs may be integers, for which everything would be compiled anew.
        rules = Rules(*map(float, (options.touching, above, share / self.whole, speed, resting, turn)))
        times = np.array([state.t, *((state.step + k) * self.whole - self.late for k in range(1, n + 1))], dtype=float)
        targets = np.array([assembler.prescribed(t, theta) for t in times[1:].tolist()])
        block = compiled.take_impulses(
            Timing(self.dt, state.step, np.full(2, 1.0 / self.dt), np.ones(2), np.zeros(2)),
            Criteria(float(newton.atol), float(newton.rtol), 0.0, newton.norm, newton.max_iterations),
            times, (state.q[0], state.v[0]), theta,
            (self.possible, rules, targets, (*kept_of(state.carry), bool(state.carry.marks))),
        )  # fmt: skip
        return block if block.n else None

    @staticmethod
    def _gains(
        assembler: Assembler, others: list[Kinematics], record: Record, end: FloatArray, theta: FloatArray, share: float
    ) -> bool:
        """Whether a step gives energy, with the coordinates ``end`` (n,) after it: more than all others have.

        Their law gives none without friction; a step by which a body turns far does, as it ends with other inertias
        and turning forces than its rows began with. It counts if there is more than without the impacts, and more than
        before the step. Work is that of what depends on places alone, the mean of the two ends.
        """
        branch, free = assembler.system.on_branch(record.decisions), assembler.system.partition.free

        def kinetic_and_rest(kin: Kinematics) -> tuple[float, FloatArray]:
            pattern, data = assembler.assemble(kin, record.mu, theta, Weights(0.0, 0.0, 1.0), branch)
            v = np.zeros(pattern.n)
            v[: free.size] = kin.v[free]
            still = replace(kin, v=np.zeros_like(kin.v), a=np.zeros_like(kin.v))
            r, _ = branch.residual(still, np.zeros_like(record.mu), theta)
            return 0.5 * float(v @ (pattern.matrix(data) @ v)), r[free]

        after, there = kinetic_and_rest(replace(record.kin, q=end))
        for other in others:
            kinetic, here = kinetic_and_rest(other)
            if after + 0.5 * (here + there) @ (end - other.q)[free] <= (1.0 + share) * kinetic:
                return False
        return True

    def apart(
        self,
        system: System,
        state: State,
        q: FloatArray,
        v: tuple[FloatArray, FloatArray],
        theta: FloatArray,
    ) -> int:
        """Return how many steps from q (k, n), with v (k, n) before and behind, surely end without anything near.

        See `add.kernels.contact_rows.steps_apart`; none where links or stops are asked about.
        """
        if self.stops.n or not self.lift.is_identity:
            return 0
        resting = resting_speed(system, theta, self.whole)
        theta = np.require(theta, requirements=["C", "W"])  # each layout would be compiled apart
        return int(
            steps_apart(
                state.t, self.dt, (q, *v), theta, self.pairs.packed, self.pairs.number, resting, self.options.touching
            )
        )

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
        solved = solve_step(assembler, equations, theta, rows, cones, guess, self.newton, decided)
        record = self._record(rows, solved, equations, without)
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

    def _instant(
        self,
        step: TakenStep,
        recorded: tuple[CarriedImpulses, StepRows],
        free: tuple[IntArray, FloatArray] | None = None,
    ) -> tuple[Instant, ImpulseCoupling | None]:
        """Return a solved part with its equations of contact, which are there where anything is near."""
        (kept, rows), record, coupling = recorded, step.record, None
        linearised = step.linearised or linearise(step.assembler, record.solution, step.theta)
        if rows.n:
            assert isinstance(linearised.factors, LinearSolve)
            without = record.inner[0].kin.v if record.inner else None
            changes = StepChanges(rows, kept.force, record.kin.v, self.restitution[kept.near.pair], without)
            delassus = Delassus(step.assembler, linearised.factors, rows.matrix, record.c)
            coupling = ImpulseCoupling(rows, changes, kept, delassus, record.kin.v, self.options, self.tally, free)
        return step.instant(Linearised(linearised.branch, coupling or linearised.factors)), coupling

    def pull(self, step: TakenStep, bar: Pair, theta_bar: FloatArray) -> StateTangent:
        """Pull a cotangent back through the part; see `StepPart.pull`."""
        record, (q_bar, v_bar) = step.record, bar
        kin, n, recorded = record.kin, q_bar.size, self._recorded(record, step.theta)
        early, free_bar = StateTangent.zeros(2, n), np.zeros(n)
        times = self._times(recorded[1], record, step.assembler)
        if times is not None:
            moved, free_bar = times.pullback(q_bar, kin.v, early, theta_bar)
            v_bar = v_bar + moved
        instant, coupling = self._instant(step, recorded)
        cotangents = [early, instant.pull(q_bar, v_bar, theta_bar)]
        if record.inner:
            free_bar = free_bar + coupling.free_bar if coupling else free_bar
            # The factors above are not asked again: the assembler may make others.
            without = TakenStep(step.assembler, record.inner[0], step.theta)
            cotangents.append(self.pull(without, (np.zeros(n), free_bar), theta_bar))
        return StateTangent(np.sum([x.q for x in cotangents], axis=0), np.sum([x.v for x in cotangents], axis=0))

    def push(self, step: TakenStep, tangents: StateTangents, directions: Directions) -> PushedStep:
        """Push tangents forward through the part; see `StepPart.push`."""
        if self.options.exploring:
            raise InputError(
                "the complementarity-aware choice depends on the objective: it has no tangents",
                found="gradient.contact = 'explore'", expected="'exact' or 'relaxed', or an optimizer with gradients",
            )  # fmt: skip
        free, record = None, step.record
        if record.inner:
            without = TakenStep(step.assembler, record.inner[0], step.theta)
            tangents, _, v_dot = self.push(without, tangents, directions)
            free = tangents.index, v_dot
        recorded = self._recorded(record, step.theta)
        times, v_after = self._times(recorded[1], record, step.assembler), record.kin.v
        if times is not None:
            timed = times.by_theta(v_after, directions)
            tangents = tangents.including(timed.index)
        instant, _ = self._instant(step, recorded, free)
        tangents, q_dot, v_dot = instant.push(tangents, directions)
        if times is not None and free is not None and tangents.index.size:
            before = tangents.dot
            q_dot = q_dot + times.by_state(before.q[0], before.v[0], v_after, v_dot)
            q_dot[:, tangents.places(timed.index)] += timed.values
            q_dot[:, tangents.places(free[0])] += times.by_free(free[1], v_after)
        return tangents, q_dot, v_dot
