"""The equations that hold vertices and edges of one mesh on another."""

from functools import cached_property
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.sticking import StickingRows
from add.equations.term import Decision
from add.kernels.contact_blocks import WIDTH
from add.kernels.contact_pairs import Law
from add.kernels.mesh_arrays import Meshes
from add.kernels.mesh_derivatives import block_entries
from add.kernels.mesh_sticking import dense_places, stick_dofs, stick_rows_of_primitives
from add.kernels.sticking import StickRows, new_stick_rows
from add.typing import FloatArray, IntArray


class StickingContacts(StickingRows):
    """Rows of a contact term that stick; the equations stand in `add.kernels.sticking` and `mesh_sticking`.

    Attributes
    ----------
    decision : (m, 3) all rows
    rows : (k, 3) those that stick
    """

    def __init__(self, decision: Decision, rows: Decision) -> None:
        super().__init__(rows.shape[0])
        self.decision, self.rows = decision, rows


@final
class StickingPrimitives(StickingContacts):
    """Vertices that stick to other meshes, and edges that stick to edges; reactions in world axes."""

    def __init__(self, meshes: Meshes, law: Law, keys: IntArray, decision: Decision, rows: Decision) -> None:
        super().__init__(decision, rows)
        self.meshes, self.law, self.keys = meshes, law, keys

    @cached_property
    def _indices(self) -> tuple[IntArray, IntArray]:
        k = self.n
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
    def entries(self) -> IntArray:
        """The blocks of nodes and bodies."""
        first, _, _ = block_entries(self.keys, self.meshes)
        out = np.empty((self.n, WIDTH, WIDTH), dtype=np.int64)
        dense_places(self.rows, self.meshes, self.keys, first, out)
        return out

    def _evaluate(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray) -> StickRows:
        """Return the rows at ``kin`` with ``reactions``."""
        out = new_stick_rows(self.n, WIDTH, 6)
        rows = self.rows.copy()
        stick_rows_of_primitives(kin.q, kin.v, theta, self.meshes, self.law, rows, reactions, out)
        return out
