"""Steppers of contact without penalties: BDF with complementarity at the end of the step, and contact in velocities."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from add.equations.kinematics import Directions, Kinematics, State, StateTangent, StateTangents
from add.errors import SolverError
from add.hard_contact.exact_coupling import CarriedContacts, ContactState, ExactContactSolve, ExactCoupling
from add.hard_contact.geometry import ContactPairs, contact_term, lift_of, touches
from add.hard_contact.impulse_coupling import ChoiceTally
from add.hard_contact.impulse_part import ImpulsePart
from add.hard_contact.law import Branch, ExactOptions, ImpulseOptions
from add.hard_contact.step_rows import JointStops
from add.kernels.cone_modes import SEPARATE
from add.simulation import BDF, BDFFormula, ContactForces, Record, Solution, StartUp
from add.simulation.composed import StepsInParts
from add.simulation.derivative import Instant, Linearised, linearise
from add.simulation.run import Simulation
from add.simulation.stepper import DifferentiableStepper, Pair, PushedStep, TakenStep
from add.simulation.substeps import whole_steps
from add.solve.step_matrix import Assembler, NewtonOptions
from add.terms import JointLimits
from add.typing import FloatArray, IntArray

#: Steps after a first touch whose history still spans it.
SETTLING = 2

#: Points at most this far from a shape at the start touch it already: no impact brings them there [m].
TOUCHING = 1e-9


@final
@dataclass(frozen=True)
class ExactContact(DifferentiableStepper):
    """One step of r(q, v, a) - sum_i G_i^T F_i = 0 with 0 <= g _|_ F_n >= 0 and Coulomb's law at its end.

        v = c (q - sum alpha_k q_k),   a = c (v - sum alpha_k v_k),   c = 1/(beta dt)

    Gaps are those of the new positions and never negative (Geilinger et al. 2020, section 4.1); sliding velocities are
    the new ones. A body that falls on the floor ends the step on it, with the velocity that brings it there, and rests
    from the next step on: with BDF1 impacts are plastic. BDF2 takes velocities from before the impact for part of its
    derivative and throws the body back by up to its full speed, whichever the phase of the step. Hence ``restart``: the
    step in which a pair touches anew, and the two behind, are taken with BDF1.

    Which pairs touched, with what force, and how long ago one touched anew, is in the carry of the state (see
    `CarriedContacts`): a step depends on the state before it alone.

    Attributes
    ----------
    pairs : ContactPairs
        What may touch what.
    step_size : float
        dt [s].
    bdf_order : int
        1 or 2.
    options : ExactOptions
    start_up : StartUp
        How BDF2 begins.
    restart : bool
        Whether BDF2 falls back to BDF1 where its history would span a first touch.
    """

    pairs: ContactPairs
    step_size: float
    bdf_order: int = 1
    options: ExactOptions = ExactOptions()  # noqa: RUF009
    start_up: StartUp = StartUp.BDF1
    restart: bool = True

    @property
    def order(self) -> int:
        """Two only for BDF2 with the BDF1 start, on stretches in which nothing touches anew."""
        return 2 if self.bdf_order == 2 and self.start_up is StartUp.BDF1 else 1

    @property
    def dt(self) -> float:
        """Step [s]."""
        return self.step_size

    @property
    def newton(self) -> NewtonOptions:  # type: ignore[override]
        """Tolerances on the balance of forces."""
        return self.options.newton

    def solved_by(self, options: NewtonOptions) -> ExactContact:
        """Return the stepper with other options of Newton's method."""
        return replace(self, options=replace(self.options, newton=options))

    def step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step; see `DifferentiableStepper.step`."""
        if replay is not None:
            formula = self._formula(len(replay.alpha))
            equations = formula.equations(assembler, state, theta)
            solution = ExactContactSolve(self.pairs, self.options).replayed(assembler, equations, theta, replay)
            return formula.finish(assembler.system, state, solution, replay.charts)
        carried = CarriedContacts.of(state.carry)
        had = carried.touching if carried else self._touching_now(state, theta)
        calm = carried.calm if carried else SETTLING
        order = 1 if self.restart and calm < SETTLING else self.bdf_order
        solution = self._solve(order, assembler, state, theta)
        fresh = self._fresh(solution, had)
        if fresh and self.restart and order > 1:
            order, calm = 1, -1
            solution = self._solve(order, assembler, state, theta)
            fresh = self._fresh(solution, had)
        contacts = CarriedContacts.of(solution.carry)
        assert contacts is not None
        carry = replace(contacts, calm=0 if fresh else calm + 1).carry()
        return self._formula(order).finish(assembler.system, state, replace(solution, carry=carry))

    def _formula(self, order: int) -> BDFFormula:
        return BDFFormula(self.step_size, order, self.start_up)

    def _solve(self, order: int, assembler: Assembler, state: State, theta: FloatArray) -> Solution:
        formula = self._formula(order)
        equations = formula.equations(assembler, state, theta)
        guesses = formula.guesses(state, equations)
        return ExactContactSolve(self.pairs, self.options).solve(assembler, equations, theta, guesses, state)

    def _touching_now(self, state: State, theta: FloatArray) -> IntArray:
        """Return the pairs that touch at the start."""
        kin = Kinematics(state.q[0], state.v[0], np.zeros_like(state.q[0]), state.t, state.step)
        return np.flatnonzero(touches(self.pairs, kin, theta).gap <= TOUCHING)

    @staticmethod
    def _fresh(solution: Solution, had: IntArray) -> bool:
        """Whether a pair touches that did not before."""
        contacts = CarriedContacts.of(solution.carry)
        return contacts is not None and np.setdiff1d(contacts.touching, had).size > 0

    def contact_state(self, record: Record, theta: FloatArray) -> ContactState:
        """Return forces, branches and places of the pairs that were near a step."""
        carried = CarriedContacts.of(record.carry)
        assert carried is not None
        pairs = self.pairs.select(carried.pair)
        return ContactState(pairs, carried.pair, carried.force, carried.branch, touches(pairs, record.kin, theta))

    def contact_changes(self, record: Record, other: Record) -> int:
        """Return how many pairs are on another branch in one record than in the other."""
        kept = [CarriedContacts.of(item.carry) for item in (record, other)]
        branches = [dict(zip(k.pair.tolist(), k.branch.tolist(), strict=True)) if k else {} for k in kept]
        pairs = {*branches[0], *branches[1]}
        return sum(branches[0].get(p, Branch.SEPARATE) != branches[1].get(p, Branch.SEPARATE) for p in pairs)

    # --- derivatives --------------------------------------------------------------------------------------------------

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised | None:
        """Return None: the matrix changes with what touches, and `pullback` does all of it."""
        return None

    def pull(self, step: TakenStep, bar: Pair, theta_bar: FloatArray) -> StateTangent:
        """Pull a cotangent back through one step; see `StepPart.pull`."""
        return self._coupled(step).pull(*bar, theta_bar)

    def push(self, step: TakenStep, tangents: StateTangents, directions: Directions) -> PushedStep:
        """Push tangents forward through one step; see `StepPart.push`."""
        return self._coupled(step).push(tangents, directions)

    def _coupled(self, step: TakenStep) -> Instant:
        """Return a step with its equations of contact."""
        coupling = ExactCoupling(self.pairs, step.assembler, step.record, step.theta, self.options)
        return step.instant(Linearised(coupling.smooth, coupling))

    def contact_forces(self, record: Record, theta: FloatArray) -> ContactForces:
        """Return the contact forces of a step; see `Stepper.contact_forces`."""
        contacts = self.contact_state(record, theta)
        generalised = np.zeros_like(record.kin.q)
        contacts.touches.add_forces(contacts.force, generalised)
        touching = contacts.branch != Branch.SEPARATE
        counts = {
            "touching": int(touching.sum()),
            "sticking": contacts.count(Branch.STICK),
            "slipping": contacts.count(Branch.SLIP),
        }
        place, force, rigid = contacts.place[touching], contacts.force[touching], contacts.pairs.rigid[touching]
        return ContactForces(generalised, place, force, rigid, counts)


def with_exact_contact(simulation: Simulation, options: ExactOptions | None = None) -> Simulation:
    """Return a simulation with its penalty contact replaced by exact contact.

    Friction coefficients, points and obstacles are those of its contact terms; their stiffnesses, dampings and laws are
    not read, but for a law without friction.

    Parameters
    ----------
    simulation : Simulation
        With a BDF, whose step, order, start and tolerances are taken.
    options : ExactOptions, optional

    Raises
    ------
    ValueError
        If it steps otherwise.
    """
    bdf = whole_steps(simulation.stepper)
    if not isinstance(bdf, BDF):
        raise ValueError(f"exact contact steps by BDF only, not by {type(bdf).__name__}")
    contact, system = contact_term(simulation.system)
    options = options or ExactOptions(newton=bdf.newton)
    stepper = ExactContact(ContactPairs.of(contact), bdf.step_size, bdf.bdf_order, options, bdf.start_up)
    return replace(simulation, system=system, stepper=stepper)


# --- A stepper with contact in velocities, Coulomb's cone and exact derivatives; no stiffness of contact --------------


@final
@dataclass(frozen=True)
class ImpulseContact(StepsInParts):
    """Steps of contact in velocities (see `ImpulsePart`), of order one.

    A step in which one body has impacts at several times, whose impacts give energy, or in which no solution is found,
    is halved, and its halves are, as often as the options say; how it is divided is a decision, which derivatives and
    replays hold. `Record.inner` of a divided step has its parts, and its own solution is that of the last one.

    Attributes
    ----------
    whole : ImpulsePart
        A step that is not divided.
    """

    whole: ImpulsePart

    @property
    def newton(self) -> NewtonOptions:  # type: ignore[override]
        """When a step counts as solved."""
        return self.whole.newton

    @property
    def tally(self) -> ChoiceTally | None:
        """Choices of the backward pass, of options that explore."""
        return self.whole.tally

    @property
    def order(self) -> int:
        """One."""
        return 1

    @property
    def dt(self) -> float:
        """Step [s]."""
        return self.whole.whole

    @property
    def _formula(self) -> BDFFormula:
        return BDFFormula(self.dt, 1, StartUp.BDF1)

    def solved_by(self, options: NewtonOptions) -> ImpulseContact:
        """Return the stepper with other options of Newton's method."""
        return replace(self, whole=replace(self.whole, newton=options))

    # --- forward ------------------------------------------------------------------------------------------------------

    def step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step; see `DifferentiableStepper.step`."""
        if replay is None:
            taken = self._advance(assembler, self.whole, state, theta, 0)
        else:
            taken, begin = [], state
            for part, earlier in self.parts(replay):
                taken.append(part.follow(assembler, begin, theta, earlier))
                begin = self._between(state, *taken[-1])
        q, last = taken[-1]
        shifted = replace(last.solution, kin=replace(last.kin, q=q))
        changed = replay.charts if replay else None
        following, record = self._formula.finish(assembler.system, state, shifted, changed)
        # Derivatives are taken where the equations of the step hold.
        inner = last.inner if len(taken) == 1 else tuple(record for _, record in taken)
        return following, replace(record, solution=last.solution, inner=inner)

    def _advance(
        self, assembler: Assembler, part: ImpulsePart, state: State, theta: FloatArray, halved: int
    ) -> list[tuple[FloatArray, Record]]:
        """Take a part of a step, divided where it has to be; return the ends and records of what it became."""
        may_divide = halved < part.options.halvings
        try:
            whole = part.take(assembler, state, theta, may_divide, may_gain=halved >= part.options.finest)
        except SolverError:
            # The shorter, the nearer is Delassus's operator to that of the mass alone, and the smaller are turns.
            if not may_divide:
                raise
            whole = None
        if whole is not None:
            return [whole]
        half = 0.5 * part.dt
        try:
            taken = self._advance(assembler, replace(part, dt=half, late=part.late + half), state, theta, halved + 1)
            begin = self._between(state, *taken[-1])
            return taken + self._advance(assembler, replace(part, dt=half), begin, theta, halved + 1)
        except SolverError:
            # A little energy from an impact is better than no step.
            if may_divide or (whole := part.take(assembler, state, theta, may_divide=False, may_gain=True)) is None:
                raise
            return [whole]

    @staticmethod
    def _between(state: State, q: FloatArray, record: Record) -> State:
        """Return the state after a part of the step that follows ``state``."""
        kin = record.kin
        return State(kin.t, state.step, q[None], kin.v[None], record.carry)

    def parts(self, record: Record) -> list[tuple[ImpulsePart, Record]]:
        """Return the parts of a step; see `StepsInParts.parts`."""
        if len(record.inner) < 2:
            return [(self.whole, record)]
        late = self.dt - np.cumsum([part.solution.dt for part in record.inner])
        return [
            (replace(self.whole, dt=part.solution.dt, late=float(left)), part)
            for part, left in zip(record.inner, late, strict=True)
        ]

    def contact_forces(self, record: Record, theta: FloatArray) -> ContactForces:
        """Return the contact forces of a step, of its parts by their share of it; see `Stepper.contact_forces`."""
        of_parts = [(part.dt / self.dt, part.contact_forces(taken, theta)) for part, taken in self.parts(record)]
        last = of_parts[-1][1]
        if len(of_parts) == 1:
            return last
        counts: Counter[str] = Counter(last.counts)
        for _, forces in of_parts[:-1]:
            for name in counts.keys() & {"impacts", "untimed_impacts", "weakly_active"}:
                counts[name] += forces.counts[name]
        return ContactForces(
            np.sum([share * forces.generalised for share, forces in of_parts], axis=0),
            np.concatenate([forces.places for _, forces in of_parts]),
            np.concatenate([share * forces.forces for share, forces in of_parts]),
            np.concatenate([forces.on_rigid for _, forces in of_parts]),
            dict(counts),
            np.concatenate([forces.modes for _, forces in of_parts]),
            np.concatenate([forces.margins for _, forces in of_parts]),
            tuple(weak for _, forces in of_parts for weak in forces.weak),
            max(forces.natural_map for _, forces in of_parts),
        )

    def contact_changes(self, record: Record, other: Record) -> int:
        """Return how many pairs and stops are near in one record alone, or in another mode."""
        one, two = ([part.modes(taken) for part, taken in self.parts(item)] for item in (record, other))
        changes = abs(len(one) - len(two))
        for a, b in zip(one, two, strict=False):
            changes += sum(a.get(pair, SEPARATE) != b.get(pair, SEPARATE) for pair in {*a, *b})
        return changes

    # --- derivatives --------------------------------------------------------------------------------------------------

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised:
        """Assemble and factor K = dr/du, of the last part; see `DifferentiableStepper.linearise`."""
        return linearise(assembler, record.solution, theta)


def with_impulse_contact(
    simulation: Simulation, options: ImpulseOptions | None = None, *, bounces: bool = False
) -> Simulation:
    """Return a simulation with its penalty contact replaced by contact in velocities.

    Friction coefficients, points and obstacles are those of its contact terms; their stiffnesses, dampings and laws are
    not read, but for a law without friction. Limits of joints that are `hard` become stops that give not at all.

    Parameters
    ----------
    simulation : Simulation
        With BDF1, whose step and tolerances are taken.
    options : ImpulseOptions, optional
    bounces : bool
        Whether theta has restitutions in the places of the dampings, which this law does not know; else impacts are
        plastic.

    Raises
    ------
    ValueError
        If it steps otherwise.
    """
    bdf = whole_steps(simulation.stepper)
    if not isinstance(bdf, BDF) or bdf.bdf_order != 1:
        raise ValueError("contact in velocities steps by BDF1 only")
    contact, system = contact_term(simulation.system)
    stops = [term for term in system.terms if isinstance(term, JointLimits) and term.hard]
    system = replace(system, terms=tuple(term for term in system.terms if not any(term is stop for stop in stops)))
    pairs = ContactPairs.of(contact)
    index = pairs.k_d if bounces else np.full(pairs.n, -1, dtype=np.int64)
    whole = ImpulsePart(
        pairs, bdf.step_size, bdf.step_size, 0.0, index, lift_of(simulation.system), JointStops.of(stops),
        options or ImpulseOptions(), bdf.newton, ChoiceTally() if options and options.exploring else None,
    )  # fmt: skip
    return replace(simulation, system=system, stepper=ImpulseContact(whole))
