"""The equations that hold touching pairs against sliding."""

from abc import abstractmethod
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.term import NO_NUMBERS, Decision, Entries, StickConstraint, StickOperators
from add.kernels import sticking as kernel
from add.kernels.contact_blocks import WIDTH
from add.kernels.contact_pairs import PAIR, Law
from add.kernels.mesh_arrays import Meshes
from add.kernels.mesh_derivatives import block_entries
from add.kernels.mesh_sticking import add_at, dense_places, stick_dofs, stick_rows_of_primitives
from add.kernels.sticking import StickRows, new_stick_rows
from add.typing import FloatArray, IntArray

#: Slower than this [m/s] a point rests: what was held in the last step moves by round-off.
REST = 1e-10


class _Evaluated(NamedTuple):
    kin: Kinematics
    theta: FloatArray
    reactions: FloatArray
    rows: StickRows


class StickingRows(StickConstraint):
    """The rows of a contact term that stick; the equations stand in `add.kernels.sticking` and `mesh_sticking`.

    Attributes
    ----------
    decision : (m, 3) all rows
    rows : (k, 3) those that stick
    """

    def __init__(self, decision: Decision, rows: Decision) -> None:
        self.decision, self.rows = decision, rows
        self._last: _Evaluated | None = None

    @property
    @abstractmethod
    def dofs(self) -> IntArray:
        """Coordinates (k, m) that each pair moves with; -1 for none."""

    @property
    @abstractmethod
    def theta_index(self) -> IntArray:
        """Parameters (k, p) that each pair depends on; -1 for none."""

    @abstractmethod
    def _evaluate(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray) -> StickRows:
        """Return the rows at ``kin`` with ``reactions`` (k, 3)."""

    def evaluate(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray | None = None) -> StickRows:
        """Return the rows at ``kin`` with ``reactions`` (k, 3); without them `geometric` has no meaning.

        A step asks for rows, limits and derivatives of the same state in turn: the last evaluation is kept.
        """
        last = self._last
        if last is not None and last.kin is kin and last.theta is theta:
            if reactions is None or np.array_equal(reactions, last.reactions):
                return last.rows
        if reactions is None:
            reactions = np.zeros((self.rows.shape[0], 3))
        rows = self._evaluate(kin, theta, reactions)
        self._last = _Evaluated(kin, theta, reactions.copy(), rows)
        return rows

    def rest(self, kin: Kinematics, theta: FloatArray) -> bool:
        """Whether no pair slides at ``kin``."""
        rows = self.evaluate(kin, theta).rows
        return bool(np.abs(rows).max(initial=0.0) <= REST)

    @property
    def n_rows(self) -> int:
        """Three a pair."""
        return 3 * self.rows.shape[0]

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


class StickingPairs(StickingRows):
    """Points that stick to shapes.

    Attributes
    ----------
    points, shapes : (k,) of the sticking pairs
    """

    def __init__(self, decision: Decision, rows: Decision, n_shapes: int) -> None:
        super().__init__(decision, rows)
        self.points, self.shapes = np.divmod(rows[:, PAIR], n_shapes)

    @property
    @abstractmethod
    def first_slots(self) -> IntArray:
        """The first entry of the block of each pair (k,) among the entries of the frozen term; row by row."""

    def add_geometry(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, factor: float, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor d(by_v^T reactions)/dq."""
        geometric = self.evaluate(kin, theta, mu.reshape(-1, 3)).geometric
        kernel.add_blocks(self.dofs, self.first_slots, factor, geometric, data, slots)

    def add_products(
        self, factor: float, left: FloatArray, right: FloatArray, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor left^T right."""
        kernel.add_products(self.dofs, self.first_slots, factor, left, right, data, slots)


# --- The equations that hold vertices and edges of one mesh on another ------------------------------------------------


@final
class StickingPrimitives(StickingRows):
    """Vertices that stick to other meshes, and edges that stick to edges; reactions in world axes."""

    def __init__(self, meshes: Meshes, law: Law, keys: IntArray, decision: Decision, rows: Decision) -> None:
        super().__init__(decision, rows)
        self.meshes, self.law, self.keys = meshes, law, keys

    @cached_property
    def _indices(self) -> tuple[IntArray, IntArray]:
        k = self.rows.shape[0]
        dofs = np.empty((k, WIDTH), dtype=np.int64)
        centres = np.empty((k, 6), dtype=np.int64)
        stick_dofs(self.rows, self.meshes, dofs, centres)
        return dofs, centres

    @property
    def dofs(self) -> IntArray:
        """The coordinates of what carries the vertex or the first edge, then those of what it meets."""
        return self._indices[0]

    @property
    def theta_index(self) -> IntArray:
        """The centres of mass of both bodies."""
        return self._indices[1]

    @cached_property
    def _dense(self) -> IntArray:
        """Entries (k, 15, 15) of the frozen term."""
        first, _, _ = block_entries(self.keys, self.meshes)
        out = np.empty((self.rows.shape[0], WIDTH, WIDTH), dtype=np.int64)
        dense_places(self.rows, self.meshes, self.keys, first, out)
        return out

    def _evaluate(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray) -> StickRows:
        """Return the rows at ``kin`` with ``reactions``."""
        out = new_stick_rows(self.rows.shape[0], WIDTH, 6)
        rows = self.rows.copy()
        stick_rows_of_primitives(kin.q, kin.v, theta, self.meshes, self.law, rows, reactions, out)
        return out

    def add_geometry(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, factor: float, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor d(by_v^T reactions)/dq."""
        geometric = self.evaluate(kin, theta, mu.reshape(-1, 3)).geometric
        add_at(self._dense, factor, geometric, data, slots)

    def add_products(
        self, factor: float, left: FloatArray, right: FloatArray, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor left^T right."""
        add_at(self._dense, factor, np.einsum("kam,kan->kmn", left, right), data, slots)
