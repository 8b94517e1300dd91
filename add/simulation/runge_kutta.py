"""Steps of Runge-Kutta methods, explicit and diagonally implicit, with exact derivatives.

A diagonally implicit stage i solves r(q_i, v_i, a_i) = 0 at t_n + c_i dt, with

    Y_i = y_n + dt sum_(j<i) a_ij y'_j + gamma dt y'_i,    y = (q, v),  y' = (v, a)

so that y'_j = (Y_j - Y*_j)/(gamma dt), where Y*_j is what Y_j is without its own rate: Y*_i is a sum of Y_j and y_n
whose coefficients are numbers of the method. A stage is then an instant like a step of backward differentiation, which
looks back to the stages before it, and so are its derivatives (`add.simulation.derivative`).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, final

import numpy as np

from add.compiled.run import CompiledRun
from add.compiled.stages import take_stages
from add.compiled.steps import Block, Stages, Steps, Tableau, Timing
from add.compiled.structure import CHUNK, WITHIN
from add.equations.family_term import plain
from add.equations.kinematics import Directions, State, StateTangent, StateTangents
from add.errors import InputError, SolverError
from add.simulation.bdf import FLED, record_of, state_after
from add.simulation.composed import aside
from add.simulation.derivative import Linearised, NewtonSolve
from add.simulation.run import Simulation
from add.simulation.start import BDFFormula, StartUp, finished
from add.simulation.stepper import BlockStepper, DifferentiableStepper, Pair, PushedStep, Record, TakenStep
from add.solve.step_equations import NewtonOptions, StepEquations
from add.solve.step_matrix import Assembler
from add.typing import FloatArray

#: Kutta's method (1901; Hairer, Norsett & Wanner, Solving ordinary differential equations I, II.1).
RK4 = Tableau(
    np.array([[0.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]),
    np.array([1.0, 2.0, 2.0, 1.0]) / 6.0,
    np.array([0.0, 0.5, 0.5, 1.0]),
)


@final
@dataclass(frozen=True)
class RungeKutta4(BlockStepper):
    """q' = v, M(q) v' = -r(q, v, 0), by four stages a step; the discrete adjoint goes back through these.

    For smooth motion without stiff forces: trees of joints without contact. No step is solved by Newton's method.

    Attributes
    ----------
    step_size : float
        dt [s].
    newton : NewtonOptions
        Not asked.
    """

    step_size: float
    newton: NewtonOptions = NewtonOptions()

    #: Four.
    order: ClassVar[int] = 4

    @property
    def dt(self) -> float:
        """Step [s]."""
        return self.step_size

    #: It has no others.
    needs_compiled: ClassVar[bool] = True

    def solved_by(self, options: NewtonOptions) -> "RungeKutta4":
        """Return the stepper with other options, which it does not ask."""
        return replace(self, newton=options)

    @cached_property
    def _clock(self) -> BDFFormula:
        """How steps are numbered, as BDF1 has it."""
        return BDFFormula(self.dt, 1, StartUp.BDF1)

    def steps(self, assembler: Assembler, state: State, theta: FloatArray, n: int) -> Block:
        """Take up to ``n`` steps at once; see `BlockStepper.steps`."""
        before, step = (state.q[0], state.v[0]), state.step + 1
        block = _taken(_compiled(assembler), self._clock.timing(state.step), before, n, theta)
        if not block.n:
            raise SolverError(
                f"step {step} (t={step * self.dt:.6g} s): the explicit step leaves every scale, or a mass matrix is "
                f"singular; try time.dt = {0.25 * self.dt:.3g} s, or bdf2 for what is stiff"
            )
        return block

    def step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step; see `Stepper.step`."""
        block = self.steps(assembler, state, theta, 1)
        if replay is not None:
            turned = np.isin(assembler.system.rotations, replay.charts)[None]
            block = replace(block, steps=block.steps._replace(turned=turned))
        return state_after(block, 0), record_of(block, 0)

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised | None:
        """Return None: the pull-back does all of it in one call."""
        return None

    def pull(self, step: TakenStep, bar: Pair, theta_bar: FloatArray) -> StateTangent:
        """Pull a cotangent back through the stages; see `StepPart.pull`."""
        record, n = step.record, bar[0].size
        compiled, kin = _compiled(step.assembler), record.kin
        block = compiled.block_of(self._clock.timing(kin.step - 1), (kin.q, kin.v, kin.a), ())
        block = replace(block, stages=Stages(RK4, record.stages[None]))
        q_bars, v_bars = np.zeros((2, 2, n)), np.zeros((2, 2, n))
        q_bars[1, 0], v_bars[1, 0] = bar
        compiled.pull_back(block, 1, step.theta, (q_bars, v_bars), np.zeros(n), theta_bar)
        return StateTangent(q_bars[0], v_bars[0])

    def push(self, step: TakenStep, tangents: StateTangents, directions: Directions) -> PushedStep:
        """Push tangents forward through the stages; see `StepPart.push`."""
        compiled, dt, t = _compiled(step.assembler), self.dt, (step.record.kin.step - 1) * self.dt
        matrices = []
        for c, q, v, a in zip(RK4.c.tolist(), *step.record.stages, strict=True):
            matrices.append(compiled.matrices_at(t + max(c, WITHIN) * dt, (q, v, a), step.theta, directions))
        tangents = tangents.including(*(columns.index for _, columns in matrices))
        q_dot, v_dot = tangents.dot.q[0], tangents.dot.v[0]
        rates: list[FloatArray] = []
        slopes: list[FloatArray] = []
        for i, ((by_q, by_v, by_a), columns) in enumerate(matrices):
            at_q = q_dot + dt * sum((RK4.a[i, j] * rates[j] for j in range(i)), np.zeros_like(q_dot))
            at_v = v_dot + dt * sum((RK4.a[i, j] * slopes[j] for j in range(i)), np.zeros_like(v_dot))
            rhs = -(by_q @ at_q + by_v @ at_v)
            rhs[:, tangents.places(columns.index)] -= columns.values
            rates.append(at_v)
            slopes.append(np.linalg.solve(by_a, rhs))
        after = [
            x + dt * sum(b * k for b, k in zip(RK4.b, ks, strict=True)) for x, ks in ((q_dot, rates), (v_dot, slopes))
        ]
        return tangents, after[0], after[1]


def _taken(
    compiled: CompiledRun, timing: Timing, before: tuple[FloatArray, FloatArray], n: int, theta: FloatArray
) -> Block:
    """Take up to ``n`` steps from q and v (n_coordinates,): all coordinates are free, and nothing decides.

    Fewer at the end of a chunk, or where a step ends with a velocity beyond `FLED` or cannot be taken.
    """
    n = min(n, CHUNK - (timing.first + 1) % CHUNK, compiled.system.steps_a_call)
    q, v = map(plain, before)
    taken, after_q, after_v, states_q, states_v, turned, stages = take_stages(
        *compiled.explicit, RK4, timing, (q, v), compiled.signals(timing, n, RK4.c), plain(theta), FLED
    )
    a = np.ascontiguousarray(stages[:, 2, -1])
    counts, merits = np.zeros((n, 5), dtype=np.int64), np.zeros((n, 1))
    counts[:, 2] = RK4.b.size
    steps = Steps(
        after_q, after_v, a, states_q, states_v, turned, counts, merits[:, 0].copy(), merits,
        np.zeros((0, 3), dtype=np.int64), np.zeros((n, 1), dtype=np.int64),
    )  # fmt: skip
    return Block(compiled.system, timing, steps, taken, q, v, stages=Stages(RK4, stages))


def _compiled(assembler: Assembler) -> CompiledRun:
    """Return the compiled equations, which `refuse_implicit` has asked for."""
    assert assembler.compiled is not None
    return assembler.compiled


#: gamma of Alexander's L-stable method of three stages and order three, whose last stage is the step: the root in
#: (1/6, 1/2) of gamma^3 - 3 gamma^2 + 3/2 gamma = 1/6 (SIAM J. Numer. Anal. 14, 1977, 1006-1021, theorem 5).
GAMMA = 0.43586652150845899942
_B1, _B2 = -1.5 * GAMMA**2 + 4.0 * GAMMA - 0.25, 1.5 * GAMMA**2 - 5.0 * GAMMA + 1.25
SDIRK = Tableau(
    np.array([[GAMMA, 0.0, 0.0], [0.5 * (1.0 - GAMMA), GAMMA, 0.0], [_B1, _B2, GAMMA]]),
    np.array([_B1, _B2, GAMMA]),
    np.array([GAMMA, 0.5 * (1.0 + GAMMA), 1.0]),
)


def history_coefficients(tableau: Tableau) -> list[tuple[float, ...]]:
    """Return those of each stage's Y*: of the stages before it, the newest first, and of the state before the step."""
    n, rows = tableau.c.size, list[FloatArray]()
    states = np.eye(n + 1)  # y_n, then the stages
    for i in range(n):
        rates = ((states[j + 1] - rows[j]) / tableau.a[j, j] for j in range(i))
        rows.append(states[0] + sum((a * rate for a, rate in zip(tableau.a[i], rates, strict=False)), np.zeros(n + 1)))
    return [tuple(row[i::-1].tolist()) for i, row in enumerate(rows)]


@final
@dataclass(frozen=True)
class DiagonallyImplicit(DifferentiableStepper):
    """Three implicit stages a step, of order three for smooth motion; stiff parts die away as under BDF1.

    Attributes
    ----------
    step_size : float
        dt [s].
    newton : NewtonOptions
    """

    step_size: float
    newton: NewtonOptions = NewtonOptions()

    #: Three.
    order: ClassVar[int] = 3
    _alphas: ClassVar[list[tuple[float, ...]]] = history_coefficients(SDIRK)

    @property
    def dt(self) -> float:
        """Step [s]."""
        return self.step_size

    def solved_by(self, options: NewtonOptions) -> "DiagonallyImplicit":
        """Return the stepper with other options of Newton's method."""
        return replace(self, newton=options)

    def step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step; see `Stepper.step`."""
        prescribed, solve = assembler.system.partition.prescribed, NewtonSolve(self.newton).solve
        part, a = GAMMA * self.dt, (state.v[0] - state.v[1]) / self.dt
        c, before, q, v, stages = 1.0 / part, state, [state.q[0]], [state.v[0]], []
        for i, (share, alpha) in enumerate(zip(SDIRK.c.tolist(), self._alphas, strict=True)):
            q_star, v_star = (sum(x * y for x, y in zip(alpha, reversed(ys), strict=True)) for ys in (q, v))
            t = (state.step + share) * self.dt
            held = assembler.prescribed(t, theta) - q_star[prescribed]
            equations = StepEquations(q_star, v_star, c, t, state.step + 1, held, part)
            guesses = [(v_star + a / c) / c, before.q[0] + part * before.v[0] - q_star, before.q[0] - q_star]
            known = replay.inner[i].solution if replay else None
            solution = solve(assembler, equations, theta, guesses, before, known)
            kin = solution.kin
            stages.append(Record(solution, alpha))
            before = State(t, state.step, np.stack([kin.q, q[-1]]), np.stack([kin.v, v[-1]]))
            a, q, v = kin.a, [*q, kin.q], [*v, kin.v]
        reports = [stage.report for stage in stages]
        spent = {name: sum(getattr(x, name) for x in reports) for name in ("iterations", "factorizations")}
        attempt = max(report.attempt for report in reports)
        whole = replace(solution, report=replace(solution.report, **spent, attempt=attempt))
        changed = replay.charts if replay else None
        following, record = finished(assembler.system, state, whole, (1.0,), changed)
        return following, replace(record, inner=tuple(stages))

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised | None:
        """Return None: each stage has a matrix of its own."""
        return None

    def pull(self, step: TakenStep, bar: Pair, theta_bar: FloatArray) -> StateTangent:
        """Pull a cotangent back through the stages; see `StepPart.pull`."""
        stages, before = step.record.inner, StateTangent.zeros(self.n_history, bar[0].size)
        other, bars = aside(step.assembler, step.record), [np.zeros((2, bar[0].size)) for _ in stages]
        bars.append(np.stack(bar))
        for i in range(len(stages), 0, -1):
            pulled = TakenStep(other, stages[i - 1], step.theta).instant().pull(bars[i][0], bars[i][1], theta_bar)
            for j in range(i):
                bars[i - 1 - j] += pulled.q[j], pulled.v[j]
        before.q[0], before.v[0] = bars[0]
        return before

    def push(self, step: TakenStep, tangents: StateTangents, directions: Directions) -> PushedStep:
        """Push tangents forward through the stages; see `StepPart.push`."""
        other, now = aside(step.assembler, step.record), tangents
        for stage in step.record.inner:
            now, q_dot, v_dot = TakenStep(other, stage, step.theta).instant().push(now, directions)
            ends = zip((q_dot, v_dot), (now.dot.q, now.dot.v), strict=True)
            now = StateTangents(now.index, StateTangent(*(np.concatenate([end[None], all_]) for end, all_ in ends)))
        return StateTangents(now.index, tangents.including(now.index).dot), q_dot, v_dot


def refuse_holding(simulation: Simulation) -> None:
    """Refuse friction that holds: what rests is decided once a step, not in its stages.

    Raises
    ------
    InputError
        For hybrid friction, of contact or of joints.
    """
    if simulation.system.sticking:
        raise InputError(
            "the stages of a step take no friction that holds", place="time.integrator", found="friction law 'hybrid'",
            expected="'bdf1' or 'bdf2', or another law",
        )  # fmt: skip


def refuse_implicit(simulation: Simulation) -> None:
    """Refuse systems whose accelerations do not follow from q and v by one mass matrix.

    Raises
    ------
    InputError
        For contact and other forces that decide, constraints, coordinates that are led or held, and systems of sparse
        matrices.
    """
    system, found = simulation.system, ""
    if system.deciding:
        found = "contact, or another force that decides on its branch"
    elif system.n_multipliers:
        found = "constraints"
    elif system.partition.prescribed.size:
        found = "coordinates that are held or led"
    elif simulation.packed is None:
        found = f"steps that are not compiled: {simulation.by_terms}"
    elif simulation.packed.sparse:
        found = "soft bodies, or so many coordinates that matrices are sparse"
    if found:
        raise InputError(
            "an explicit step takes M(q) a = f(q, v) alone",
            place="time.integrator",
            found=found,
            expected="'bdf1' or 'bdf2'",
        )
