"""Steps of contact without penalties: BDF with complementarity at the end of the step."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from add.equations.kinematics import Directions, Kinematics, State, StateTangent, StateTangents
from add.hard_contact.exact_coupling import CarriedContacts, ContactState, ExactContactSolve, ExactCoupling
from add.hard_contact.geometry import ContactPairs, contact_term, touches
from add.hard_contact.law import Branch, ExactOptions
from add.simulation import BDF, BDFFormula, ContactForces, Record, Solution, StartUp
from add.simulation.derivative import Instant, Linearised
from add.simulation.run import Simulation
from add.simulation.stepper import DifferentiableStepper, Pair, PushedStep, TakenStep
from add.simulation.substeps import whole_steps
from add.solve.step_equations import NewtonOptions
from add.solve.step_matrix import Assembler
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

    def solved_by(self, options: NewtonOptions) -> "ExactContact":
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
        pairs = self.pairs.decided(_start(state), theta)
        return ExactContactSolve(pairs, self.options).solve(assembler, equations, theta, guesses, state)

    def _touching_now(self, state: State, theta: FloatArray) -> IntArray:
        """Return the pairs that touch at the start."""
        start = _start(state)
        return np.flatnonzero(touches(self.pairs.decided(start, theta), start, theta).gap <= TOUCHING)

    @staticmethod
    def _fresh(solution: Solution, had: IntArray) -> bool:
        """Whether a pair touches that did not before."""
        contacts = CarriedContacts.of(solution.carry)
        return contacts is not None and np.setdiff1d(contacts.touching, had).size > 0

    def contact_state(self, record: Record, theta: FloatArray) -> ContactState:
        """Return forces, branches and places of the pairs that were near a step."""
        carried = CarriedContacts.of(record.carry)
        assert carried is not None
        pairs = carried.of_step(self.pairs)
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
        place, force, rigid = contacts.touches.place[touching], contacts.force[touching], contacts.pairs.rigid[touching]
        return ContactForces(generalised, place, force, rigid, counts)


def _start(state: State) -> Kinematics:
    """Return where a step from a state begins."""
    return Kinematics(state.q[0], state.v[0], np.zeros_like(state.q[0]), state.t, state.step)


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
