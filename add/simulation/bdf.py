"""Steps by backward differentiation, order one and two, their exact derivatives, and blocks of compiled ones."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self, final

import numpy as np

from add.compiled.members import CompiledMembers, Members
from add.compiled.newton import AT_ROUND_OFF, FRESH, Criteria
from add.compiled.run import CompiledRun
from add.compiled.steps import Block, Timing
from add.equations import charts
from add.equations.kinematics import (
    NO_CARRY,
    Carry,
    Columns,
    Directions,
    Kinematics,
    State,
    StateTangent,
    StateTangents,
    StretchTangents,
)
from add.equations.system import System
from add.errors import SolverError
from add.simulation.derivative import Linearised, NewtonSolve, Solution, linearise
from add.simulation.start import BDFFormula, StartUp
from add.simulation.stepper import NO_CHARTS, NO_STAGES, BlockStepper, Pair, PushedStep, Record, TakenBlock, TakenStep
from add.solve.step_equations import NewtonOptions, NewtonReport, Status
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray

# --- Blocks of compiled steps as states and records, made where they are asked for ------------------------------------

_NOTHING: FloatArray = np.zeros(0)


def state_after(block: Block, k: int) -> State:
    """Return the state after step ``k`` of a block."""
    steps, timing = block.steps, block.timing
    step = timing.first + k + 1
    if steps.turned[k].any():
        return charts.change(_unchanged(block, k), turned(block, k))
    before = (steps.states_q[k - 1], steps.states_v[k - 1]) if k else (block.q, block.v)
    q = np.concatenate([steps.q[k], before[0]]).reshape(2, -1)
    v = np.concatenate([steps.v[k], before[1]]).reshape(2, -1)
    return State(step * timing.dt, step, q, v, _carry(block, k))


def _carry(block: Block, k: int) -> Carry:
    return block.carry(k) if block.carry else NO_CARRY


def record_of(block: Block, k: int) -> Record:
    """Return the record of step ``k`` of a block."""
    steps, timing = block.steps, block.timing
    step = timing.first + k + 1
    row = 0 if step == 1 else 1
    status, iterations, factorizations, worst, _ = steps.counts[k].tolist()
    merits = tuple(steps.merits[k, : iterations + 1].tolist())
    report = NewtonReport(
        Status.ROUND_OFF if status == AT_ROUND_OFF else Status.CONVERGED,
        iterations, factorizations, merits[-1], float(steps.tolerance[k]), worst, 0, merits,
    )  # fmt: skip
    kin = Kinematics(steps.q[k], steps.v[k], steps.a[k], step * timing.dt, step)
    c, alphas = float(timing.c[row]), (float(timing.alpha_0[row]), float(timing.alpha_1[row]))
    solution = Solution(kin, block.mu[k], block.decisions(k), c, timing.dt, report, _carry(block, k), block.candidates)
    alpha: tuple[float, ...] = alphas if alphas[1] else alphas[:1]
    stages = NO_STAGES if block.stages is None else block.stages.values[k]
    if not steps.turned[k].any():
        return Record(solution, alpha, stages=stages)
    return Record(solution, alpha, turned(block, k), _unchanged(block, k), stages=stages)


def turned(block: Block, k: int) -> IntArray:
    """Return the first coordinates of the rotation vectors that change chart after step ``k`` of a block."""
    chosen = block.steps.turned[k]
    return block.system.system.rotations[chosen] if chosen.any() else NO_CHARTS


def _unchanged(block: Block, k: int) -> State:
    """Return the state after step ``k`` before its change of chart."""
    steps, timing = block.steps, block.timing
    before = (steps.states_q[k - 1], steps.states_v[k - 1]) if k else (block.q, block.v)
    step = timing.first + k + 1
    q, v = np.stack([steps.q[k], before[0]]), np.stack([steps.v[k], before[1]])
    return State(step * timing.dt, step, q, v, _carry(block, k))


def stepwise(taken: Block | tuple[State, Record]) -> Iterator[tuple[State, Record]]:
    """Yield the steps of a block, or the one step, with the states after them."""
    if isinstance(taken, Block):
        for k in range(taken.n):
            yield state_after(taken, k), record_of(taken, k)
    else:
        yield taken


#: Speed that nothing reaches [m/s], [rad/s], three times that of light.
FLED = 1e9


def sound(system: System, piece: Block | tuple[State, Record]) -> Block | tuple[State, Record]:
    """Return steps up to one after which something is beyond `FLED`: it may be solved as well as any other.

    Raises
    ------
    SolverError
        If that is the first.
    """
    v = piece.steps.states_v[: piece.n] if isinstance(piece, Block) else piece[0].v[:1]
    if not v.size or np.abs(v).max() <= FLED:
        return piece
    n = int(np.argmax(np.abs(v).max(axis=1) > FLED))
    if n and isinstance(piece, Block):
        return replace(piece, n=n)
    state = state_after(piece, 0) if isinstance(piece, Block) else piece[0]
    worst = int(np.argmax(np.abs(v[0])))
    raise SolverError(
        f"step {state.step} (t={state.t:.6g} s): the run leaves every scale: {system.dofs.describe(worst)} moves at "
        f"{v[0, worst]:.3g} m/s (or rad/s), faster than light; what drives it has no end: try weaker loads, muscles, "
        "chambers or drives"
    )


# ----------------------------------------------------------------------------------------------------------------------

#: Handed on where no formula may look back beyond a state: its history would span a jump, or there is none.
RESTART = Carry(np.zeros((0, 0)), (np.ones(1, dtype=np.int64),))
#: Numbers that the tangents of a stretch of states may take.
MOST_TANGENTS = 1 << 21


def _compiled(assembler: Assembler, record: Record) -> CompiledRun | None:
    """Return the compiled steps that hold as much by equations; None where there are none."""
    compiled = assembler.compiled
    return compiled and compiled.holding(assembler.system.held(record.decisions))


def _kinematics(compiled: CompiledRun, record: Record) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return q, v and a of a record with its multipliers, as compiled matrices take them."""
    wide, kin = compiled.system.with_multipliers, record.kin
    return wide(kin.q, record.mu), wide(kin.v), wide(kin.a)


@final
@dataclass(frozen=True)
class BDF(BlockStepper):
    """Backward differentiation (see `BDFFormula`), each step solved by Newton's method.

    `add.simulation.derivative` has the derivative of a step.

    Attributes
    ----------
    step_size : float
        dt [s].
    bdf_order : int
        1 or 2.
    start_up : StartUp
        Only BDF2 asks.
    newton : NewtonOptions
    attempts : int, optional
        See `NewtonSolve`.
    one_chart : bool
        Whether rotation vectors stay in their chart: parts of a step.
    formula, implicit : BDFFormula, NewtonSolve
        The equations of a step, and how they are solved.
    """

    step_size: float
    bdf_order: int = 2
    start_up: StartUp = StartUp.BDF1
    newton: NewtonOptions = NewtonOptions()
    attempts: int | None = None
    one_chart: bool = False
    formula: BDFFormula = field(init=False, repr=False, compare=False)
    implicit: NewtonSolve = field(init=False, repr=False, compare=False)
    _criteria: Criteria = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "formula", BDFFormula(self.step_size, self.bdf_order, self.start_up))
        object.__setattr__(self, "implicit", NewtonSolve(self.newton, self.attempts))
        o = self.newton
        criteria = Criteria(float(o.atol), float(o.rtol), float(o.reuse), int(o.norm), int(o.max_iterations))
        object.__setattr__(self, "_criteria", criteria)

    @property
    def order(self) -> int:
        """Two only for BDF2 with the BDF1 start."""
        return 2 if self.bdf_order == 2 and self.start_up is StartUp.BDF1 else 1

    @property
    def dt(self) -> float:
        """Step [s]."""
        return self.step_size

    @property
    def anew(self) -> Carry:
        """The mark of a state without a history: a straight one would cost a third of its first step's force."""
        return RESTART if self.order > 1 else NO_CARRY

    @cached_property
    def _once(self) -> "BDF":
        """The step that looks back to one state."""
        return replace(self, bdf_order=1)

    def _timing(self, record: Record) -> Timing:
        """Return the formula of a step that was taken."""
        taken = self._once if len(record.alpha) == 1 else self
        return taken.formula.timing(record.kin.step - 1)

    def solved_by(self, options: NewtonOptions) -> Self:
        """Return the stepper with other options of Newton's method."""
        return replace(self, newton=options)

    def step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step; see `Stepper.step`."""
        if self.bdf_order > 1 and (state.carry.marks if replay is None else len(replay.alpha) == 1):
            return self._once.step(assembler, state, theta, replay)
        compiled = assembler.compiled if replay is None else _compiled(assembler, replay)
        if compiled is not None:
            given = None if replay is None else (replay.kin.v / replay.c, replay.decisions, replay.solution.candidates)
            block = compiled.take(self.formula.timing(state.step), self._criteria, (state.q, state.v), 1, theta, given)
            if not block.n and replay is None:
                block = self._resting(compiled, state, theta, 1) or block
            if block.n and (replay is None or np.array_equal(turned(block, 0), replay.charts)):
                return state_after(block, 0), record_of(block, 0)
        return self._by_terms(assembler, state, theta, replay)

    def steps(self, assembler: Assembler, state: State, theta: FloatArray, n: int) -> Block | tuple[State, Record]:
        """Take up to ``n`` steps at once; see `BlockStepper.steps`."""
        if self.bdf_order > 1 and state.carry.marks:
            return self._once.steps(assembler, state, theta, 1)
        timing, compiled = self.formula.timing(state.step), assembler.compiled
        if compiled is not None:
            block = None
            if compiled.failed(timing, state.q[0], theta) is None:
                block = compiled.take(timing, self._criteria, (state.q, state.v), n, theta)
            if block is None or not block.n:
                block = self._resting(compiled, state, theta, n) or block
            if block and block.n and not (self.one_chart and block.steps.turned[: block.n].any()):
                return block
            if self.attempts == 0 and block and not block.n and not assembler.system.sticking:
                raise SolverError(f"step {state.step + 1}: Newton's method finds no solution from the first guess")
        return self._by_terms(assembler, state, theta, None)

    def _resting(self, compiled: CompiledRun, state: State, theta: FloatArray, n: int) -> Block | None:
        """Return steps in which equations hold all that touches; None where that is not to be."""
        return compiled.take_resting(self.formula.timing(state.step), self._criteria, (state.q, state.v), n, theta)

    def each(
        self,
        compiled: CompiledMembers,
        firsts: IntArray,
        before: tuple[FloatArray, FloatArray],
        thetas: FloatArray,
    ) -> Members:
        """Take one compiled step of each of b states: their numbers (b,), their pairs q and v (b, 2, n)."""
        return compiled.take(self.formula.timing(0), firsts, self._criteria, before, thetas)

    def _by_terms(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None
    ) -> tuple[State, Record]:
        formula = self.formula
        known = replay.solution if replay else None
        equations = formula.equations(assembler, state, theta)
        guesses = formula.guesses(state, equations)
        loose, done, rested, compiled = _NOTHING, FRESH, False, assembler.compiled
        if replay is None and compiled is not None:
            ended = compiled.failed(formula.timing(state.step), state.q[0], theta)
            (loose, done), rested = ended or (loose, done), compiled.rested
        guesses = [loose, *guesses] if loose.size else guesses
        solution = self.implicit.solve(assembler, equations, theta, guesses, state, known, rested)
        if loose.size:
            solution = replace(
                solution, report=solution.report.behind(done.iterations, done.factorizations, done.merits)
            )
        charts = replay.charts if replay else NO_CHARTS if self.one_chart else None
        return formula.finish(assembler.system, state, solution, charts)

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised | None:
        """Assemble and factor J = dr/dq + c dr/dv + c^2 dr/da; see `DifferentiableStepper.linearise`."""
        compiled = _compiled(assembler, record)
        if compiled is not None and compiled.dense:
            return None
        return linearise(assembler, record.solution, theta)

    def matrices(self, step: TakenStep, directions: Directions) -> tuple[FloatArray, Columns] | None:
        """Return the matrices of compiled steps; see `DifferentiableStepper.matrices`."""
        compiled = _compiled(step.assembler, step.record)
        held = step.record.mu.size > step.assembler.system.n_multipliers  # rows that depend on each other
        if compiled is None or not compiled.dense or held:
            return None
        given = _kinematics(compiled, step.record), step.record.decisions
        return compiled.matrices(self._timing(step.record), *given, step.theta, directions)

    def step_matrices(self, step: TakenStep, directions: Directions) -> tuple[FloatArray, Columns] | None:
        """Return those of compiled steps, all coordinates free and in one chart; see `DifferentiableStepper`."""
        compiled, record = _compiled(step.assembler, step.record), step.record
        if compiled is None or not compiled.dense:
            return None
        if record.unchanged is not None or step.assembler.system.partition.prescribed.size:
            return None
        timing, read = self._timing(record), (record.c, record.alpha, self.n_history)
        given = _kinematics(compiled, record), record.decisions
        return compiled.step_matrices(timing, read, *given, step.theta, directions)

    def pull(self, step: TakenStep, bar: Pair, theta_bar: FloatArray) -> StateTangent:
        """Pull a cotangent back through one step; see `StepPart.pull`."""
        compiled, kin = _compiled(step.assembler, step.record), step.record.kin
        if compiled is not None and step.linearised is None:
            block = compiled.block_of(
                self._timing(step.record), (kin.q, kin.v, kin.a), step.record.decisions,
                step.record.solution.candidates, step.record.mu,
            )  # fmt: skip
            n, theta = kin.q.size, step.theta
            q_bars, v_bars, by_position = np.zeros((2, 2, n)), np.zeros((2, 2, n)), np.zeros(n)
            q_bars[1, 0], v_bars[1, 0] = bar
            if not compiled.pull_back(block, 1, theta, (q_bars, v_bars), by_position, theta_bar):
                compiled.add_start(theta, by_position, theta_bar)
                return StateTangent(q_bars[0], v_bars[0])
        return step.instant().pull(*bar, theta_bar)

    def pull_each(self, step: TakenStep, bars: Pair, directions: Directions) -> tuple[StateTangent, Columns]:
        """Pull cotangents back through one step; see `DifferentiableStepper.pull_each`."""
        return replace(step.instant(), matrices=self.matrices(step, directions)).pull_each(*bars, directions)

    def push_stretch(
        self, taken: TakenBlock, tangents: StateTangents, directions: Directions
    ) -> StretchTangents | None:
        """Push tangents through steps of a block in one compiled call; see `DifferentiableStepper.push_stretch`.

        Not beyond a change of chart, nor through more steps than have room (`MOST_TANGENTS`). None where there are no
        compiled steps, coordinates are prescribed, or a matrix cannot be solved with.
        """
        (assembler, block, steps, theta), compiled = taken, taken.assembler.compiled
        if compiled is None or not compiled.dense or assembler.system.partition.prescribed.size:
            return None
        first, n = steps.start, max(1, min(len(steps), MOST_TANGENTS // (2 * directions.n * assembler.system.n + 1)))
        changes = np.flatnonzero(block.steps.turned[first : first + n].any(axis=1))
        n = int(changes[0]) + 1 if changes.size else n
        done, index, q, v = compiled.push(block, first, n, theta, tangents, directions)
        if done < n:
            return None
        before = np.zeros((2, 1, index.size, assembler.system.n))
        before[:, 0, : tangents.index.size] = tangents.dot.q[0].T, tangents.dot.v[0].T
        q, v = np.concatenate([before[0], q]), np.concatenate([before[1], v])
        pairs = (np.ascontiguousarray(x[[n, n - 1]].transpose(0, 2, 1)) for x in (q, v))
        after = StateTangent(*pairs)
        if changes.size:
            record = record_of(block, first + n - 1)
            assert record.unchanged is not None
            after = charts.pushforward(record.unchanged, record.charts, after)
            q[n], v[n] = after.q[0].T, after.v[0].T
        return StretchTangents(index, q, v, StateTangents(index, after))

    def push(self, step: TakenStep, tangents: StateTangents, directions: Directions) -> PushedStep:
        """Push tangents forward through one step; see `StepPart.push`."""
        if step.linearised is not None:
            return step.instant().push(tangents, directions)
        matrices = self.matrices(step, directions)
        return replace(step.instant(), matrices=matrices).push(tangents, directions)
