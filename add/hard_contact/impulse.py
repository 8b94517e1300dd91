"""A stepper with contact in velocities, Coulomb's cone and exact derivatives; no stiffness of contact."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from add.cones import Cones, Sensitivity
from add.equations import charts
from add.equations.kinematics import Carry, Kinematics, State, StateTangent
from add.equations.tangents import Directions, StateTangents
from add.hard_contact.geometry import touches
from add.hard_contact.impulse_carry import CarriedImpulses
from add.hard_contact.impulse_derivatives import ContactDerivatives
from add.hard_contact.impulse_options import ImpulseOptions
from add.hard_contact.impulse_rows import ImpulseRows, NearPairs
from add.hard_contact.impulse_solve import Delassus, ImpulseStepSolution, solve_step
from add.hard_contact.pairs import ContactPairs, contact_terms
from add.kernels.cone_modes import SEPARATE, SLIDE, STICK
from add.simulation import BDF, BDFFormula, ContactForces, Record, Solution, StartUp
from add.simulation.implicit_solve import Linearised, NewtonSolve
from add.simulation.run import Simulation
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
            rows = self._rows(kept.near, before, theta)
            decided = (replay.decisions, kept.modes, kept.force)
            cones = self._cones(rows, theta)
            found = solve_step(assembler, equations, theta, rows, cones, guess, self.newton, decided)
        else:
            rows, found = self._over_near_pairs(assembler, equations, before, theta, state.carry)
        modes = found.cone.modes if found.cone is not None else np.zeros(0, dtype=np.int64)
        carry = CarriedImpulses(rows.near, modes, found.force).carry()
        solution = Solution(found.kin, found.mu, found.branch.decisions, equations.c, equations.dt, found.report, carry)
        return self.formula.finish(assembler.system, state, solution, replay.charts if replay else None)

    def _over_near_pairs(
        self, assembler: Assembler, equations: StepEquations, before: Kinematics, theta: FloatArray, carry: Carry
    ) -> tuple[ImpulseRows, ImpulseStepSolution]:
        """Solve over the pairs that touch or would be passed through; add those that are missed, and solve again."""
        at = touches(self.pairs, before, theta)
        guess = before.v / equations.c
        may = self._movable(assembler) & ~((self._restitution(theta) > 0.0) & (at.gap > self.options.touching))
        near = may & (at.gap + self.dt * np.minimum(at.normal_velocity, 0.0) <= 0.0)
        while True:
            pairs = np.flatnonzero(near)
            rows = self._rows(
                self._decide(pairs, at.gap[pairs], at.normal_velocity[pairs], theta, assembler), before, theta
            )
            last = CarriedImpulses.of(carry).on(pairs) if carry.marks else None
            cones = self._cones(rows, theta)
            found = solve_step(assembler, equations, theta, rows, cones, guess, self.newton, last=last)
            after = touches(self.pairs, replace(before, v=found.kin.v), theta)
            missed = may & ~near & (at.gap + self.dt * after.normal_velocity < 0.0)
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
        resting = 2.0 * dt * self._gravity(theta, assembler)
        bounces = self._restitution(theta)[pairs] > 0.0
        impact = bounces & (gap <= options.touching) & (approach < -resting)
        # What bounces leaves the shape by itself.
        return NearPairs(pairs, np.where(impact, 0.0, slope), impact)

    @staticmethod
    def _gravity(theta: FloatArray, assembler: Assembler) -> float:
        layout = assembler.system.parameters
        if not any(entry.name == "gravity" for entry in layout.entries):
            return 0.0
        return float(np.linalg.norm(layout.view(theta, "gravity")))

    def _rows(self, near: NearPairs, before: Kinematics, theta: FloatArray) -> ImpulseRows:
        return ImpulseRows.of(self.pairs, near, self._restitution(theta), before, theta, self.options)

    def _cones(self, rows: ImpulseRows, theta: FloatArray) -> Cones:
        return Cones.friction(rows.pairs.friction(theta)) if rows.n else Cones.half_lines(0)

    def contact_forces(self, record: Record, theta: FloatArray) -> ContactForces:
        """Return the contact forces of a step; see `Stepper.contact_forces`."""
        kept, rows = self._recorded(record, theta)
        generalised = rows.matrix(record.kin.q.size).T @ kept.force
        touching = kept.modes != SEPARATE
        counts = {
            "touching": int(touching.sum()),
            "sticking": int((kept.modes == STICK).sum()),
            "slipping": int((kept.modes == SLIDE).sum()),
        }
        force = rows.world(kept.force)
        return ContactForces(generalised, rows.at.place[touching], force[touching], rows.pairs.rigid[touching], counts)

    def contact_changes(self, record: Record, other: Record) -> int:
        """Return how many pairs are near in one record alone, or in another mode."""
        one, two = (CarriedImpulses.of(item.carry) for item in (record, other))
        modes = [dict(zip(kept.near.pair.tolist(), kept.modes.tolist(), strict=True)) for kept in (one, two)]
        return sum(modes[0].get(pair, SEPARATE) != modes[1].get(pair, SEPARATE) for pair in {*modes[0], *modes[1]})

    def _recorded(self, record: Record, theta: FloatArray) -> tuple[CarriedImpulses, ImpulseRows]:
        """Return what a record keeps of its contacts, and their rows at the beginning of the step."""
        kin, c = record.kin, record.c
        q, v = kin.q - kin.v / c, kin.v - kin.a / c
        before = Kinematics(q, v, np.zeros_like(q), (kin.step - 1) * self.dt, kin.step - 1)
        kept = CarriedImpulses.of(record.carry)
        return kept, self._rows(kept.near, before, theta)

    # --- derivatives --------------------------------------------------------------------------------------------------

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised:
        """Assemble and factor K = dr/du; see `DifferentiableStepper.linearise`."""
        return NewtonSolve(self.newton).linearise(assembler, record.solution, theta)

    def _contacts(
        self, rows: ImpulseRows, kept: CarriedImpulses, v: FloatArray, theta: FloatArray
    ) -> ContactDerivatives:
        return ContactDerivatives(rows, kept.force, v, theta, self.restitution[kept.near.pair])

    def _sensitivity(
        self, kept: CarriedImpulses, rows: ImpulseRows, delassus: Delassus, v: FloatArray, theta: FloatArray
    ) -> Sensitivity:
        """Linearise the mode equations of a record."""
        u = rows.matrix(v.size) @ v + rows.shift
        cones = self._cones(rows, theta)
        return Sensitivity.at(delassus.matrix, cones, kept.force, u, kept.modes)

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
        u_bar = state_bar.q[0] + c * state_bar.v[0]
        linearised = linearised or self.linearise(assembler, record, theta)
        kept, rows = self._recorded(record, theta)
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
        before = StateTangent.zeros(self.n_history, system.n)
        before.q[0] += state_bar.q[1] + c * (bar.v + c * bar.a - state_bar.v[0] + contact_bar)
        before.v[0] += state_bar.v[1] + c * bar.a
        if rows.n:
            self._contacts(rows, kept, kin.v, theta).pullback(adjoint, by_rows, bound, before, theta_bar)
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
        linearised = linearised or self.linearise(assembler, record, theta)
        kept, rows = self._recorded(record, theta)
        by_theta = linearised.branch.parameter_tangents(kin, mu, theta, directions)
        moved = system.motion_tangents(kin.t, theta, directions)
        contacts = self._contacts(rows, kept, kin.v, theta)
        contact = contacts.by_theta(directions)
        tangents = tangents.including(by_theta.index, moved.index, contact.index)
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
            bound_dot[:, places] = contact.values[n + J.shape[0] :]
            rhs[:n] += pushed
            q_dot[free] = linearised.factors.solve(np.concatenate([rhs[free], rhs[n:]]))[: free.size]
            u_dot = J @ (c * (q_dot - before.q[0])) + moving
            sensitivity = self._sensitivity(kept, rows, delassus, kin.v, theta)
            q_dot[free] += delassus.columns[: free.size] @ sensitivity.pushforward(None, u_dot, bound_dot)
        else:
            q_dot[free] = linearised.factors.solve(np.concatenate([rhs[free], rhs[n:]]))[: free.size]
        v_dot = c * (q_dot - before.q[0])
        after = StateTangent(np.stack([q_dot, before.q[0]]), np.stack([v_dot, before.v[0]]))
        if record.unchanged is not None:
            after = charts.pushforward(record.unchanged, record.charts, after)
        return StateTangents(tangents.index, after)


def with_impulse_contact(
    simulation: Simulation, options: ImpulseOptions | None = None, *, bounces: bool = False
) -> Simulation:
    """Return a simulation with its penalty contact replaced by contact in velocities.

    Friction coefficients, points and obstacles are those of its contact terms; their stiffnesses, dampings and laws are
    not read, but for a law without friction.

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
    bdf = simulation.stepper
    if not isinstance(bdf, BDF) or bdf.bdf_order != 1:
        raise ValueError("contact in velocities steps by BDF1 only")
    contacts, system = contact_terms(simulation.system)
    pairs = ContactPairs.of(contacts)
    index = pairs.k_d if bounces else np.full(pairs.n, -1, dtype=np.int64)
    stepper = ImpulseContact(pairs, bdf.step_size, index, options or ImpulseOptions(), bdf.newton)
    return replace(simulation, system=system, stepper=stepper)
