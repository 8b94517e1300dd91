"""Steps that are divided where no solution is found, or where an impact is over within a fraction of a step."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from add.compiled.steps import Block
from add.equations.kinematics import (
    NO_CARRY,
    Carry,
    Columns,
    Directions,
    State,
    StateTangent,
    StateTangents,
    StretchTangents,
)
from add.errors import SolverError
from add.simulation.bdf import BDF, RESTART, stepwise
from add.simulation.composed import AroundSteps, StepsInParts
from add.simulation.derivative import Linearised
from add.simulation.impacts import MOST, RESOLVED, SUDDEN, SUDDEN_GIVEN, UNRESOLVED, Impacts
from add.simulation.stepper import BlockStepper, Pair, Record, Stepper, TakenBlock, TakenStep
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray

#: Numbers of parts that are tried, and how far each goes where Newton's method fails (`add.solve.fallbacks.solve`); one
#: part is a whole step that looks back to one state. Second those of steps that are never divided.
WAYS = ((1, 0), (4, 0), (16, 0), (MOST, 4), (16, 4), (4, 4))
WHOLE = ((1, None),)
#: Steps that are taken at once: those behind one that is to be divided are thrown away. Where only sudden changes are
#: looked for, such are rare.
AHEAD = 32


def whole_steps(stepper: Stepper) -> Stepper:
    """Return the steps that are divided, of any other way to step itself."""
    return stepper.inner if isinstance(stepper, Substeps) else stepper


@final
@dataclass(frozen=True)
class Substeps(AroundSteps, StepsInParts, BlockStepper):
    """Steps of ``inner``, of which those that are too long are divided into 4, 16 or 64 parts.

    A step is divided where Newton's method finds no solution from the first guess, without ``impacts`` that are eager
    only where no fallback finds one either, and where contact changes the velocity of a body, of a point of a rigid one
    or of a node, so much that it would move by `UNRESOLVED` of its thinnest part in the step. Under bdf2 a sudden
    change makes a step one part; so does any of these where ``impacts`` never divide. The parts are steps of BDF1, all
    with the numbers of the whole one: the stiffness of friction at rest, k_t, does not follow. How many there are is a
    decision: `Record.inner` has the parts, and replays and derivatives hold them. The step after a divided one is one
    of BDF1 (`State.carry` says so): no formula looks across an impact.

    Where no number of parts finds a solution, the step is a whole one, whose impact is not resolved; if it has none
    either, that of BDF1 is tried with all fallbacks.

    Attributes
    ----------
    inner : BDF
    impacts : Impacts, optional
    """

    inner: BDF
    impacts: Impacts | None

    # --- forward ------------------------------------------------------------------------------------------------------

    @cached_property
    def _whole(self) -> BDF:
        """Whole steps."""
        return replace(self.inner, attempts=0) if self._eager else self.inner

    @property
    def anew(self) -> Carry:
        """That of the steps."""
        return self.inner.anew

    @property
    def _eager(self) -> bool:
        return self.impacts is not None and self.impacts.eager

    @cached_property
    def _restarted(self) -> BDF:
        """Whole steps that look back to one state."""
        return replace(self._whole, bdf_order=1)

    def _of(self, record: Record) -> BDF:
        """Return the stepper of a whole step."""
        return self._restarted if len(record.alpha) == 1 else self._whole

    def _part(self, n: int, attempts: int | None = 0) -> BDF:
        """Return the stepper of each of n parts, whose steps are numbered n times as fast."""
        return replace(self._restarted, step_size=self.dt / n, one_chart=True, attempts=attempts)

    def steps(self, assembler: Assembler, state: State, theta: FloatArray, n: int) -> Block | tuple[State, Record]:
        """Take up to ``n`` steps at once, or one; see `BlockStepper.steps`."""
        stepper, before = self._whole, state
        most = min(n, AHEAD) if self._eager else n
        if state.carry.marks:
            # The acceleration of an impact does not go on: neither does the first guess.
            stepper, most = self._restarted, 1
            state = replace(state, v=np.stack([state.v[0], state.v[0]]))
        try:
            piece = stepper.steps(assembler, state, theta, most)
        except SolverError as error:
            # With all fallbacks, and of BDF1: what would be tried at last has been.
            tried = not self._eager and len(stepper.formula.coefficients(state.step)[1]) == 1
            return self._divided(assembler, state, theta, 4, error if tried else None)
        if self.impacts is None:
            return piece
        if isinstance(piece, Block):
            after = piece.steps.states_q[: piece.n], piece.steps.states_v[: piece.n]
        else:
            after = piece[0].q[:1], piece[0].v[:1]
        velocities = self._velocities(self.impacts, before, *after, theta)
        change, v = np.diff(velocities, axis=0), velocities[2:]
        limit = np.inf if self.inner.bdf_order == 1 else SUDDEN if self.impacts.eager else SUDDEN_GIVEN
        # Of two solutions of a step the one that fallbacks find need not be the nearer one.
        doubtful = self.impacts.stops and not isinstance(piece, Block) and piece[1].report.attempt
        far = RESOLVED if doubtful else UNRESOLVED
        if self.impacts.calm(change, v, self.dt, min(limit, far)):
            return piece
        if isinstance(piece, Block):
            ends = piece.steps.ends[: piece.n]
            touching = np.any([ends[:, k] < ends[:, k + 1] for k in self.impacts.contacts], axis=0)
        else:
            touching = np.array([any(piece[1].decisions[k].size for k in self.impacts.contacts)])
        x = self._rotations(self.impacts, np.concatenate([before.q[:1], after[0]]))
        spun = np.diff(self.impacts.spins(x, velocities[1:]), axis=0)
        moved = self.impacts.moved(change[1:], spun, x[1:], v, self.dt, touching)
        sudden = self.impacts.sudden(change, self.dt, touching, limit)
        unresolved = np.flatnonzero((moved > far) & (touching | self.impacts.divides) | sudden)
        if not unresolved.size:
            return piece
        first = int(unresolved[0])
        if first and isinstance(piece, Block):
            return replace(piece, n=first)
        return self._divided(assembler, state, theta, self.impacts.enough(1, float(moved[first])), stepper)

    def step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step; see `DifferentiableStepper.step`."""
        if replay is None:
            return next(stepwise(self.steps(assembler, state, theta, 1)))
        if not replay.inner:
            return self._of(replay).step(assembler, state, theta, replay)
        n = len(replay.inner)
        part, at = self._part(n), self._begin(state, n)
        records: list[Record] = []
        for earlier in replay.inner:
            at, record = part.step(assembler, at, theta, earlier)
            records.append(record)
        return self._end(assembler, state, records, replay.charts)

    def _begin(self, state: State, n: int) -> State:
        """Return the state before the first of n parts, as if the acceleration had been the same before."""
        q, v, h = state.q[0], state.v[0], self.dt / n
        return State(state.t, state.step * n, np.stack([q, q - h * v]), np.stack([v, v - (v - state.v[1]) / n]))

    def _divided(
        self, assembler: Assembler, state: State, theta: FloatArray, n: int, whole: BDF | SolverError | None
    ) -> tuple[State, Record]:
        """Take a step in n parts, in more, in n or more with some fallbacks, or at last as one.

        That is by ``whole``, if it finds the step, else one of BDF1 with all fallbacks; an error if that has failed.
        """
        divides = self.impacts is None or self.impacts.divides
        for parts, attempts in WAYS if divides else WHOLE:
            if divides and parts < n:
                continue
            part, begin = self._part(parts, attempts), self._begin(state, parts)
            taken: list[tuple[State, Record]] = []
            try:
                while len(taken) < parts:
                    at = taken[-1][0] if taken else begin
                    taken += stepwise(part.steps(assembler, at, theta, parts - len(taken)))
            except SolverError:
                pass
            else:
                if self.impacts is not None:
                    q, v = (np.stack([getattr(after, name)[0] for after, _ in taken]) for name in ("q", "v"))
                    velocities = self._velocities(self.impacts, state, q, v, theta)[1:]
                    change = velocities[1:] - velocities[0]
                    x = self._rotations(self.impacts, np.concatenate([state.q[:1], q]))
                    spins, all_touch = self.impacts.spins(x, velocities), np.ones(1, dtype=bool)
                    moved = self.impacts.moved(change, spins[1:] - spins[0], x[1:], velocities[1:], self.dt, all_touch)
                    n = self.impacts.enough(parts, float(moved.max()))
                if n <= parts:
                    return self._end(assembler, state, [record for _, record in taken], None)
        if isinstance(whole, BDF):
            return next(stepwise(whole.steps(assembler, state, theta, 1)))
        try:
            if whole is not None:
                raise whole
            return replace(self._restarted, attempts=None).step(assembler, state, theta)
        except SolverError as error:
            if not divides:
                raise
            raise SolverError(f"{error}; its parts, up to {MOST}, found none either") from error

    def _velocities(
        self, impacts: Impacts, state: State, q: FloatArray, v: FloatArray, theta: FloatArray
    ) -> FloatArray:
        """Return V (k + 2, n_x) of the state before a state, of the state, and of k that follow, (k, n) each."""
        lift, v = impacts.lift, np.concatenate([state.v[1::-1], v])
        if lift.is_identity:
            return v
        if impacts.by_coordinates or (not impacts.eager and impacts.still(v[1:], self.dt)):
            out = np.zeros((len(v), lift.rows.n))
            out[:, lift.same] = v[:, : lift.n_same]
            return out
        return lift.velocities(np.concatenate([state.q[1::-1], q]), v, theta)

    @staticmethod
    def _rotations(impacts: Impacts, q: FloatArray) -> FloatArray:
        """Return X (k, n_x) of k states, of rigid bodies alone: zero where coordinates are others."""
        out = np.zeros((len(q), impacts.lift.rows.n))
        out[:, impacts.lift.same] = q[:, : impacts.lift.n_same]
        return out

    def _end(
        self, assembler: Assembler, state: State, records: list[Record], changed: IntArray | None
    ) -> tuple[State, Record]:
        """Return the state after a step of these parts, and its record."""
        carry = RESTART if self.inner.bdf_order > 1 else NO_CARRY
        last, reports = records[-1].solution, [record.report for record in records]
        spent = [sum(getattr(report, name) for report in reports) for name in ("iterations", "factorizations")]
        report = replace(last.report, iterations=spent[0], factorizations=spent[1])
        whole = replace(last, kin=replace(last.kin, step=state.step + 1), report=report, carry=carry)
        following, record = self._restarted.formula.finish(assembler.system, state, whole, changed)
        return following, replace(record, inner=tuple(records))

    def contact_changes(self, record: Record, other: Record) -> int:
        """Return in how many parts two records differ."""
        parts = zip(record.inner, other.inner, strict=False)
        alike = [all(map(np.array_equal, one.decisions, two.decisions)) for one, two in parts]
        return max(len(record.inner), len(other.inner)) - sum(alike)

    # --- derivatives --------------------------------------------------------------------------------------------------

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised | None:
        """Assemble and factor the matrix of a whole step; a divided one has many."""
        return None if record.inner else self._of(record).linearise(assembler, record, theta)

    def matrices(self, step: TakenStep, directions: Directions) -> tuple[FloatArray, Columns] | None:
        """Return those of a whole step; see `DifferentiableStepper.matrices`."""
        return None if step.record.inner else self._of(step.record).matrices(step, directions)

    def step_matrices(self, step: TakenStep, directions: Directions) -> tuple[FloatArray, Columns] | None:
        """Return those of a whole step; see `DifferentiableStepper.step_matrices`."""
        return None if step.record.inner else self._of(step.record).step_matrices(step, directions)

    def pull_each(self, step: TakenStep, bars: Pair, directions: Directions) -> tuple[StateTangent, Columns]:
        """Pull cotangents back through the parts; see `DifferentiableStepper.pull_each`."""
        columns = []
        for part, taken in reversed(self.parts(step.record)):
            before, by_theta = part.pull_each(TakenStep(step.assembler, taken, step.theta), bars, directions)
            bars = before.q[0], before.v[0]
            columns.append(by_theta)
        return before, Columns.summed(*columns)

    def push_stretch(
        self, taken: TakenBlock, tangents: StateTangents, directions: Directions
    ) -> StretchTangents | None:
        """Push tangents through steps of a block; see `DifferentiableStepper.push_stretch`."""
        return self.inner.push_stretch(taken, tangents, directions)

    def parts(self, record: Record) -> list[tuple[BDF, Record]]:
        """Return the parts of a step, or the whole one; see `StepsInParts.parts`."""
        if not record.inner:
            return [(self._of(record), record)]
        part = self._part(len(record.inner))
        return [(part, inner) for inner in record.inner]
