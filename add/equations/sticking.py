"""Decisions of what sticks, and equations that hold it, known by their rows with all derivatives."""

from abc import abstractmethod
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.term import NO_NUMBERS, Candidates, Decision, Entries, StickConstraint, StickingTerm, StickOperators
from add.kernels import sticking as kernel
from add.kernels.contact_pairs import BITS, PAIR, RELEASED, STICKS
from add.kernels.sticking import StickRows
from add.linalg.pattern import add_blocks
from add.typing import BoolArray, FloatArray, IntArray

#: Slower than this [m/s] a point rests: what was held in the last step moves by round-off.
REST = 1e-10


class _Evaluated(NamedTuple):
    content: tuple[object, ...]
    reactions: FloatArray
    rows: StickRows


class StickingRows(StickConstraint):
    """Rows of k points that stick, known with all their derivatives; `add.kernels.sticking` has those of contact.

    Attributes
    ----------
    n : int
        Number k of points.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._last: _Evaluated | None = None

    @property
    @abstractmethod
    def dofs(self) -> IntArray:
        """Coordinates (k, m) that each point moves with; -1 for none."""

    @property
    @abstractmethod
    def theta_index(self) -> IntArray:
        """Parameters (k, p) that each point depends on; -1 for none."""

    @abstractmethod
    def _evaluate(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray) -> StickRows:
        """Return the rows at ``kin`` with ``reactions`` (k, 3)."""

    def evaluate(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray | None = None) -> StickRows:
        """Return the rows at ``kin`` with ``reactions`` (k, 3); without them `geometric` has no meaning.

        A step asks for rows, limits and derivatives of the same state in turn: the last evaluation is kept.
        """
        last, content = self._last, kin.content(theta)
        if last is not None and last.content == content:
            if reactions is None or np.array_equal(reactions, last.reactions):
                return last.rows
        if reactions is None:
            reactions = np.zeros((self.n, 3))
        rows = self._evaluate(kin, theta, reactions)
        self._last = _Evaluated(content, reactions.copy(), rows)
        return rows

    @property
    def n_rows(self) -> int:
        """Three a point."""
        return 3 * self.n

    @cached_property
    def _places(self) -> tuple[IntArray, IntArray, IntArray]:
        """Pair, row and column of every entry of the pairs' dense blocks."""
        kept = self.dofs >= 0
        pair, row, column = np.nonzero(kept[:, :, None] & kept[:, None, :])
        return pair, row, column

    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return the entries of d(by_v^T reactions)/dq, of the rows, and of the columns of the reactions."""
        pair, row, column = self._places
        kept_pair, kept = np.nonzero(self.dofs >= 0)
        at = np.repeat(first + 3 * kept_pair, 3) + np.tile(np.arange(3), kept.size)
        dof = np.repeat(self.dofs[kept_pair, kept], 3)
        rows = np.concatenate([self.dofs[pair, row], at, dof])
        return rows, np.concatenate([self.dofs[pair, column], dof, at])

    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add minus the forces that hold, and c."""
        reactions = mu.reshape(-1, 3)
        at = self.evaluate(kin, theta, reactions)
        rows += at.rows.ravel()
        kernel.add_forces(self.dofs, at.by_v, reactions, out)

    def jacobian(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray
    ) -> None:
        """Add the weighted derivatives."""
        at = self.evaluate(kin, theta, mu.reshape(-1, 3))
        pair, row, column = self._places
        kept_pair, kept = np.nonzero(self.dofs >= 0)
        by_state = weights.q * at.by_q + weights.v * at.by_v
        values = np.concatenate(
            [
                weights.q * at.geometric[pair, row, column],
                by_state[kept_pair, :, kept].ravel(),
                weights.multiplier * at.by_v[kept_pair, :, kept].ravel(),
            ]
        )
        np.add.at(data, slots, values)

    @final
    def add_geometry(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, factor: float, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor d(by_v^T reactions)/dq."""
        add_blocks(self.entries, factor, self.evaluate(kin, theta, mu.reshape(-1, 3)).geometric, data, slots)

    def operators(self, kin: Kinematics, theta: FloatArray) -> StickOperators:
        """Return the linearised rows."""
        at = self.evaluate(kin, theta)
        return StickOperators(at.by_v, at.by_q)

    def limits(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return c_f f_c of each pair, -1 where it does not touch [N]."""
        return self.evaluate(kin, theta).limit

    def first_guess(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return k_t c, the forces of the linear law."""
        at = self.evaluate(kin, theta)
        return (at.stiffness[:, None] * at.rows).ravel()

    def by_numbers(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> Entries:
        """See `Constraint.by_numbers`."""
        index = self.theta_index
        if not (index >= 0).any():
            return NO_NUMBERS
        at, n = self.evaluate(kin, theta, mu.reshape(-1, 3)), kin.q.size
        rows = n + np.arange(self.n_rows).reshape(-1, 3)
        places = np.concatenate([self.dofs, rows], axis=1)[:, :, None]
        values = np.concatenate([at.geometric_by_theta, at.by_theta], axis=1)
        places, numbers = np.broadcast_arrays(places, index[:, None])
        kept = (places >= 0) & (numbers >= 0)
        return Entries(places[kept], numbers[kept], values[kept])


class StickingDecisions(StickingTerm):
    """A term whose decision has rows (number, feature, bits) of what acts or sticks, sorted by number.

    Bits are those of `add.kernels.contact_pairs`.
    """

    def holdable(self, decision: Decision) -> BoolArray:
        """Return which rows (k,) may be held by equations: all of them, unless a kind of contact says otherwise."""
        return np.ones(decision.shape[0], dtype=bool)

    @final
    def stick(self, decision: Decision) -> Decision:
        """Return the decision with all rows sticking that touch, may be held and do not slip."""
        return self._with_sticking(decision, False)

    @final
    def stick_touching(self, decision: Decision) -> Decision:
        """Return the decision with all rows sticking that touch and may be held; new ones stick stiffly."""
        return self._with_sticking(decision, True)

    def _with_sticking(self, decision: Decision, slipping: bool) -> Decision:
        return np.where(self.holdable(decision)[:, None], kernel.with_sticking(decision, slipping), decision)

    @final
    def none_creeps(self, decision: Decision) -> bool:
        """Return whether all rows that touch and may be held stick or slip."""
        return bool(kernel.none_creeps(decision[self.holdable(decision)]))

    @final
    def at_rest(self, kin: Kinematics, theta: FloatArray) -> Decision:
        """Return the branch at ``kin`` with all rows sticking that rest, and those released that creep."""
        decision = self.stick_touching(self.decide(kin, theta))
        constraint = self.stick_constraint(decision)
        if constraint is None:
            return decision
        return np.asarray(kernel.resting(decision, constraint.evaluate(kin, theta).rows, REST))

    @final
    def stick_constraint(self, decision: Decision, candidates: Candidates | None = None) -> StickingRows | None:
        """Return the equations of what sticks."""
        rows = decision[_sticks(decision)]
        return self._stick_constraint(decision, rows, candidates) if rows.size else None

    @abstractmethod
    def _stick_constraint(self, decision: Decision, rows: Decision, candidates: Candidates | None) -> StickingRows:
        """Return the equations of what sticks, one row (k, 3) of the decision at least."""

    @final
    def release(self, decision: Decision, rows: BoolArray) -> Decision:
        """Return the decision with some of what sticks released, which ``rows`` (k,) picks in their order."""
        out = decision.copy()
        free = np.flatnonzero(_sticks(decision))[rows]
        out[free, BITS] = out[free, BITS] & ~STICKS | RELEASED
        return out

    @final
    def without(self, decision: Decision, rows: BoolArray) -> Decision:
        """Return the decision without some of its stick constraints, as if they had never been."""
        out = self.release(decision, rows)
        out[:, BITS] &= ~RELEASED
        return out[out[:, BITS] != 0]

    @final
    def is_sticking(self, decision: Decision, other: Decision) -> BoolArray:
        """Return which of the rows that stick in ``decision`` stick in another one, too."""
        return np.isin(decision[_sticks(decision), PAIR], other[_sticks(other), PAIR], assume_unique=True)

    @final
    def changes(self, decision: Decision, other: Decision) -> int:
        """Return how many rows differ between two decisions, by their numbers."""
        rows, counts = np.unique(np.concatenate([decision, other]), axis=0, return_counts=True)
        return int(np.unique(rows[counts == 1, PAIR]).size)


def _sticks(decision: Decision) -> BoolArray:
    """Return which rows stick."""
    return np.asarray(decision[:, BITS] & STICKS != 0)
