"""Steps of contact in velocities, Coulomb's cone and exact derivatives; no stiffness of contact."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, final

import numpy as np

from add.compiled.impulse_near import Possible
from add.compiled.pack import elements_of, trees_of
from add.compiled.steps import Block
from add.cones import WEAK
from add.equations.family_term import plain
from add.equations.kinematics import Directions, State, StateTangents, StretchTangents
from add.equations.lift import Lift
from add.equations.system import System
from add.errors import SolverError
from add.hard_contact.geometry import ContactPairs, contact_term, lift_of
from add.hard_contact.impulse_coupling import CarriedImpulses, ChoiceTally
from add.hard_contact.impulse_part import ImpulsePart
from add.hard_contact.law import ImpulseOptions
from add.hard_contact.step_rows import JointStops
from add.kernels.cone_modes import SEPARATE
from add.simulation import BDF, ContactForces, Record, StartUp
from add.simulation.composed import StepsInParts
from add.simulation.derivative import Linearised, linearise
from add.simulation.run import Simulation
from add.simulation.start import finished
from add.simulation.stepper import BlockStepper, TakenBlock
from add.simulation.substeps import whole_steps
from add.solve.step_equations import NewtonOptions
from add.solve.step_matrix import Assembler
from add.terms import JointLimits
from add.typing import BoolArray, FloatArray, IntArray

#: Steps that are taken at once. While nothing is near those behind a touch are taken again.
FLIGHT = 16
#: Share of the tolerance of other steps.
_FINER = 1e-3


@final
@dataclass(frozen=True)
class ImpulseContact(StepsInParts, BlockStepper):
    """Steps of contact in velocities (see `ImpulsePart`), of order one; in compiled blocks.

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

    #: One.
    order: ClassVar[int] = 1

    @property
    def dt(self) -> float:
        """Step [s]."""
        return self.whole.whole

    def solved_by(self, options: NewtonOptions) -> "ImpulseContact":
        """Return the stepper with other options of Newton's method."""
        return replace(self, whole=replace(self.whole, newton=options))

    # --- forward ------------------------------------------------------------------------------------------------------

    def step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step; see `DifferentiableStepper.step`."""
        return self._step(assembler, state, theta, replay, False)

    def _step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None, tried: bool
    ) -> tuple[State, Record]:
        """Take one step, which compiled steps may have ``tried`` in vain."""
        if replay is None:
            taken = self._advance(assembler, self.whole, state, theta, 0, tried)
        else:
            taken, begin = [], state
            for part, earlier in self.parts(replay):
                taken.append(part.follow(assembler, begin, theta, earlier))
                begin = self._between(state, *taken[-1])
        q, last = taken[-1]
        shifted = last.solution if q is last.kin.q else replace(last.solution, kin=replace(last.kin, q=q))
        changed = replay.charts if replay else None
        following, record = finished(assembler.system, state, shifted, (1.0,), changed)
        # Derivatives are taken where the equations of the step hold.
        inner = last.inner if len(taken) == 1 else tuple(record for _, record in taken)
        return following, Record(last.solution, (1.0,), record.charts, record.unchanged, inner)

    @cached_property
    def _flight(self) -> BDF:
        """The steps in which nothing is near."""
        return BDF(self.dt, 1, StartUp.BDF1, self.newton)

    @property
    def _finer(self) -> NewtonOptions:
        return replace(self.newton, atol=_FINER * self.newton.atol, rtol=_FINER * self.newton.rtol)

    @cached_property
    def _small_flight(self) -> BDF:
        """The same of few coordinates: the first guess is so good that light bodies would never be solved for."""
        return BDF(self.dt, 1, StartUp.BDF1, self._finer)

    def steps(self, assembler: Assembler, state: State, theta: FloatArray, n: int) -> Block | tuple[State, Record]:
        """Take up to ``n`` steps at once, those of BDF1 while nothing is near; see `BlockStepper.steps`."""
        system, q, v = assembler.system, state.q[:1], state.v[:1]
        touched = state.carry.marks and state.carry.marks[0].size
        if assembler.compiled is not None and not touched and self.whole.apart(system, state, q, (v, v), theta):
            flight = self._small_flight if assembler.compiled.dense else self._flight
            block = flight.steps(assembler, state, theta, min(n, FLIGHT))
            if isinstance(block, Block):
                steps, last = block.steps, block.n - 1
                q, v = np.concatenate([q, steps.states_q[:last]]), np.concatenate([v, steps.states_v[:last]])
                free = self.whole.apart(system, state, q, (v, steps.v[: block.n]), theta)
                if free:
                    return replace(block, n=free)
        # Compiled steps leave contacts in doubt to those of the terms, and mostly they are so again.
        if touched and (CarriedImpulses.of(state.carry).margin < WEAK).any():
            found = None
        else:
            found = self.whole.at_once(assembler, state, theta, min(n, FLIGHT), self.whole.options.halvings > 0)
        return self._step(assembler, state, theta, None, True) if found is None else found

    def push_stretch(
        self, taken: TakenBlock, tangents: StateTangents, directions: Directions
    ) -> StretchTangents | None:
        """Push tangents through steps in which nothing is near; see `DifferentiableStepper.push_stretch`."""
        return self._flight.push_stretch(taken, tangents, directions)

    def _advance(
        self, assembler: Assembler, part: ImpulsePart, state: State, theta: FloatArray, halved: int, tried: bool = False
    ) -> list[tuple[FloatArray, Record]]:
        """Take a part of a step, divided where it has to be; return the ends and records of what it became."""
        may_divide = halved < part.options.halvings
        try:
            whole = part.take(assembler, state, theta, may_divide, halved >= part.options.finest, tried)
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


def _possible(pairs: ContactPairs, restitution: IntArray, stops: JointStops, lift: Lift, system: System) -> Possible:
    """Return what compiled steps take of pairs and stops; what is held cannot get out of the way."""
    partition = system.partition
    movable: BoolArray = np.ones(pairs.n, dtype=bool)
    if partition.prescribed.size:
        free = np.append(lift.moved_by(partition.is_free), False)
        movable = np.asarray(free[pairs.dofs()].any(axis=1))
    return Possible(
        pairs.packed, pairs.number, np.concatenate([movable, partition.is_free[stops.dof]]), plain(restitution),
        plain(pairs.c_f), plain(pairs.velocity), plain(stops.dof), plain(stops.limit), stops.sign,
        elements_of(lift, trees_of(system)),
    )  # fmt: skip


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
    lift, sides = lift_of(simulation.system), JointStops.of(stops)
    whole = ImpulsePart(
        pairs, bdf.step_size, bdf.step_size, 0.0, index, lift, sides, _possible(pairs, index, sides, lift, system),
        options or ImpulseOptions(), bdf.newton, ChoiceTally() if options and options.exploring else None,
    )  # fmt: skip
    return replace(simulation, system=system, stepper=ImpulseContact(whole))
