"""The equations that hold vertices and edges of one mesh on another."""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np

from add.contact.sticking import StickingRows
from add.equations.kinematics import Kinematics
from add.equations.term import Decision
from add.kernels import mesh_sticking as kernel
from add.kernels.contact_blocks import WIDTH
from add.kernels.contact_pairs import Law
from add.kernels.mesh_arrays import Meshes
from add.kernels.mesh_derivatives import block_entries
from add.kernels.sticking import StickRows, new_stick_rows
from add.typing import FloatArray, IntArray


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
        kernel.stick_dofs(self.rows, self.meshes, dofs, centres)
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
        kernel.dense_places(self.rows, self.meshes, self.keys, first, out)
        return out

    def _evaluate(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray) -> StickRows:
        """Return the rows at ``kin`` with ``reactions``."""
        out = new_stick_rows(self.rows.shape[0], WIDTH, 6)
        rows = self.rows.copy()
        kernel.stick_rows_of_primitives(kin.q, kin.v, theta, self.meshes, self.law, rows, reactions, out)
        return out

    def add_geometry(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, factor: float, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor d(by_v^T reactions)/dq."""
        geometric = self.evaluate(kin, theta, mu.reshape(-1, 3)).geometric
        kernel.add_at(self._dense, factor, geometric, data, slots)

    def add_products(
        self, factor: float, left: FloatArray, right: FloatArray, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor left^T right."""
        kernel.add_at(self._dense, factor, np.einsum("kam,kan->kmn", left, right), data, slots)
